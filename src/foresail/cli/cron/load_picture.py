"""The week of all Schedules drawn as SVG: a bar for each half hour, as high as the runs that start at once in it."""

from collections.abc import Iterator, Sequence

from foresail.cli.cron.load import SLOTS, Load
from foresail.cli.cron.svg import LEFT, WIDTH, clock_marks, day_grid, label, picture

_ROW, _BAR = 56, 40
_LINE = 20
_CALM, _BUSY, _FULL = "#56b4e9", "#e69f00", "#d55e00"
_INK, _PALE = "#1c2a33", "#546e7a"


def load_picture(load: Load, piles: Sequence[str]) -> str:
    """Return the picture; pile-ups are in words above it and as the highest bars in it."""
    top = 60 + _LINE * len(piles)
    height = top + len(load.days) * _ROW + 20
    parts = [
        label(20, 22, load.title, _INK, "start", "600"),
        *(label(20, 42 + _LINE * number, text, _FULL, "start") for number, text in enumerate(piles)),
        *day_grid(load.days, top, _ROW, load.today),
        *clock_marks(load.days, load.jumps, top, _ROW),
        *_bars(load, top),
    ]
    return picture(LEFT + WIDTH + 30, height, load.title, parts)


def _bars(load: Load, top: int) -> Iterator[str]:
    width = WIDTH / SLOTS
    for number, day in enumerate(load.days):
        floor = top + (number + 1) * _ROW
        for slot in range(SLOTS):
            count = load.peaks.get((day, slot), 0)
            if not count:
                continue
            tall = max(_BAR * count / load.most, 3)
            x = LEFT + slot * width
            yield (
                f'<rect x="{x + 1:.1f}" y="{floor - tall:.1f}" width="{width - 2:.1f}" height="{tall:.1f}" '
                f'fill="{_colour(count, load.most)}"><title>{count}</title></rect>'
            )
            yield label(x + width / 2, floor - tall - 3, str(count), _PALE, "middle", size=10)


def _colour(count: int, most: int) -> str:
    if count == 1:
        return _CALM
    return _FULL if 2 * count > most else _BUSY
