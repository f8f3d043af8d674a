"""Fires drawn as SVG: every fire of every day to the minute, or the number of fires of each day."""

from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from datetime import date, datetime
from xml.sax.saxutils import escape

from foresail.cli.cron.load import SLOTS, Load
from foresail.cron.clock_changes import ClockJump

# Told apart by people who see colours otherwise too (after Okabe and Ito).
_COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#000000")
_INK, _PALE, _GRID = "#1c2a33", "#546e7a", "#dfe5e8"
_SKIPPED, _REPEATED = "#cfd8dc", "#fff2b3"
LEFT, WIDTH, _ROW = 110, 960, 22
_LEGEND = 20
_CELL = 46
_FONT = 'font-family="system-ui, sans-serif"'


def weeks_picture(
    zone: str,
    days: Sequence[date],
    names: Sequence[str],
    fires: Sequence[Sequence[datetime]],
    clock_jumps: Iterable[ClockJump],
    today: date | None = None,
) -> str:
    """Return a picture with one row for each day and one lane in it for each schedule.

    What the clock jumps over is grey; what it shows twice is yellow.
    """
    top = _top(names)
    row = max(_ROW, 7 * len(names) + 6)
    height = top + len(days) * row + 20
    parts = [*_legend(zone, names, fires), *day_grid(days, top, row, today), *clock_marks(days, clock_jumps, top, row)]
    rows = {day: top + number * row for number, day in enumerate(days)}
    lane = (row - 6) / max(len(names), 1)
    for number, one in enumerate(fires):
        for day, begin, end in _runs(one):
            x = LEFT + begin * WIDTH / 1440
            width = (end - begin) * WIDTH / 1440
            parts.append(
                f'<rect x="{x:.1f}" y="{rows[day] + 3 + number * lane:.1f}" width="{max(width, 1.6):.1f}" '
                f'height="{lane - 1:.1f}" fill="{_colour(number)}"/>'
            )
    return picture(LEFT + WIDTH + 30, height, f"Fires in {zone}", parts)


def day_grid(days: Sequence[date], top: float, row: float, today: date | None = None) -> Iterator[str]:
    """Yield the hours across and the days down, with their names; today's is bold."""
    bottom = top + len(days) * row
    for hour in range(25):
        x = LEFT + hour * WIDTH / 24
        yield f'<line x1="{x:g}" y1="{top:g}" x2="{x:g}" y2="{bottom:g}" stroke="{_GRID}"/>'
        if hour % 3 == 0:
            yield label(x, top - 6, f"{hour:02}:00", _PALE, "middle")
    for number, day in enumerate(days):
        y = top + number * row
        weight = "600" if day == today else "400"
        yield label(LEFT - 10, y + row / 2 + 4, f"{day:%a %d %b}", _INK, "end", weight)
        yield f'<line x1="{LEFT}" y1="{y:g}" x2="{LEFT + WIDTH}" y2="{y:g}" stroke="{_GRID}"/>'


def clock_marks(days: Sequence[date], clock_jumps: Iterable[ClockJump], top: float, row: float) -> Iterator[str]:
    """Yield what the clock jumps over in grey, and what it shows twice in yellow."""
    for jump in clock_jumps:
        x = LEFT + jump.begin * WIDTH / 1440
        width = (jump.end - jump.begin) * WIDTH / 1440
        y = top + days.index(jump.day) * row
        fill = _REPEATED if jump.repeated else _SKIPPED
        yield f'<rect x="{x:g}" y="{y:g}" width="{width:g}" height="{row:g}" fill="{fill}"/>'


def months_picture(zone: str, days: Sequence[date], names: Sequence[str], fires: Sequence[Sequence[datetime]]) -> str:
    """Return a picture with a square for each day, darker the more often it fires."""
    counts = Counter(fire.date() for one in fires for fire in one)
    most = max(counts.values(), default=1)
    top = _top(names)
    parts = [*_legend(zone, names, fires, coloured=False)]
    starts = [day for day in days if day.day == 1]
    for number, first in enumerate(starts):
        left = 20 + number % 3 * (7 * _CELL + 30)
        y = top + number // 3 * (7 * _CELL + 30)
        parts.append(label(left, y, f"{first:%B %Y}", _INK, "start", "600"))
        for day in days:
            if (day.year, day.month) == (first.year, first.month):
                column = day.weekday()
                line = (day.day - 1 + first.weekday()) // 7
                parts += _square(left + column * _CELL, y + 10 + line * _CELL, day, counts[day], most)
    height = top + ((len(starts) + 2) // 3) * (7 * _CELL + 30)
    width = 20 + min(len(starts), 3) * (7 * _CELL + 30)
    return picture(max(width, 480), height, f"Fires in {zone}", parts)


def _square(x: float, y: float, day: date, count: int, most: int) -> Iterator[str]:
    shade = 0 if count == 0 else 0.15 + 0.85 * count / most
    dark = shade > 0.55  # noqa: PLR2004 - where white text reads better than dark text
    yield (
        f'<rect x="{x:g}" y="{y:g}" width="{_CELL - 3}" height="{_CELL - 3}" rx="4" fill="{_COLOURS[0]}" '
        f'fill-opacity="{shade:.2f}" stroke="{_GRID}"/>'
    )
    yield label(x + 5, y + 14, str(day.day), "#ffffff" if dark else _PALE, "start", size=11)
    if count:
        yield label(x + _CELL / 2, y + 33, str(count), "#ffffff" if dark else _INK, "middle", "600")


def _runs(fires: Sequence[datetime]) -> Iterator[tuple[date, int, int]]:
    """Yield stretches of minutes in which it fires each minute, as one: (day, first minute, last plus one)."""
    run: tuple[date, int, int] | None = None
    for fire in fires:
        day = fire.date()
        minute = fire.hour * 60 + fire.minute
        if run is not None and run[0] == day and minute == run[2]:
            run = (day, run[1], minute + 1)
            continue
        if run is not None:
            yield run
        run = (day, minute, minute + 1)
    if run is not None:
        yield run


def _legend(
    zone: str, names: Sequence[str], fires: Sequence[Sequence[datetime]], *, coloured: bool = True
) -> Iterator[str]:
    for number, (name, one) in enumerate(zip(names, fires, strict=True)):
        y = 16 + number * _LEGEND
        if coloured:
            yield f'<rect x="20" y="{y - 9}" width="12" height="12" rx="2" fill="{_colour(number)}"/>'
        yield label(40 if coloured else 20, y + 2, f"{name} \u2014 {len(one)} fires in {zone}", _INK, "start")


def _top(names: Sequence[str]) -> int:
    return 40 + len(names) * _LEGEND


def _colour(number: int) -> str:
    return _COLOURS[number % len(_COLOURS)]


def label(x: float, y: float, text: str, fill: str, anchor: str, weight: str = "400", size: int = 13) -> str:
    """Return a line of text at a place."""
    return (
        f'<text x="{x:g}" y="{y:g}" font-size="{size}" font-weight="{weight}" fill="{fill}" '
        f'text-anchor="{anchor}">{escape(text)}</text>'
    )


def picture(width: float, height: float, title: str, parts: Sequence[str]) -> str:
    """Return a whole picture with its title and its parts on white."""
    return "\n".join(
        [
            f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" role="img" {_FONT}>',
            f"<title>{escape(title)}</title>",
            f'<rect width="{width:g}" height="{height:g}" fill="#ffffff"/>',
            *parts,
            "</svg>\n",
        ]
    )


_LOAD_ROW, _BAR = 56, 40
_PILE_LINE = 20
_CALM, _BUSY, _FULL = "#56b4e9", "#e69f00", "#d55e00"


def load_picture(load: Load, piles: Sequence[str]) -> str:
    """Return the picture; pile-ups are in words above it and as the highest bars in it."""
    top = 60 + _PILE_LINE * len(piles)
    height = top + len(load.days) * _LOAD_ROW + 20
    parts = [
        label(20, 22, load.title, _INK, "start", "600"),
        *(label(20, 42 + _PILE_LINE * number, text, _FULL, "start") for number, text in enumerate(piles)),
        *day_grid(load.days, top, _LOAD_ROW, load.today),
        *clock_marks(load.days, load.jumps, top, _LOAD_ROW),
        *_bars(load, top),
    ]
    return picture(LEFT + WIDTH + 30, height, load.title, parts)


def _bars(load: Load, top: int) -> Iterator[str]:
    width = WIDTH / SLOTS
    for number, day in enumerate(load.days):
        floor = top + (number + 1) * _LOAD_ROW
        for slot in range(SLOTS):
            count = load.peaks.get((day, slot), 0)
            if not count:
                continue
            tall = max(_BAR * count / load.most, 3)
            x = LEFT + slot * width
            yield (
                f'<rect x="{x + 1:.1f}" y="{floor - tall:.1f}" width="{width - 2:.1f}" height="{tall:.1f}" '
                f'fill="{_load_colour(count, load.most)}"><title>{count}</title></rect>'
            )
            yield label(x + width / 2, floor - tall - 3, str(count), _PALE, "middle", size=10)


def _load_colour(count: int, most: int) -> str:
    if count == 1:
        return _CALM
    return _FULL if 2 * count > most else _BUSY
