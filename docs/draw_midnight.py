"""Draws docs/concepts/midnight.svg, 266 Schedules at midnight without and with a policy: python -m docs.draw_midnight.

`tests/worlds/test_schedules_midnight.py` runs the same night with the operator, and compares its starts with these.
"""

from datetime import timedelta
from heapq import heapreplace
from pathlib import Path

from docs.svg_text import svg_text
from foresail.plan import Key
from foresail.slots.spread import stable_delay

SCHEDULES, SPREAD, MOST = 266, timedelta(hours=2), 4
TAKES = timedelta(seconds=90)
NAMES = tuple(f"team-{number:03}" for number in range(SCHEDULES))
_MINUTES, _STEP, _LEFT, _HEIGHT = 150, 4.6, 60, 120
_BLUE, _RED, _DARK, _GREY = "#2f6fab", "#b3452c", "#1f2933", "#7b8794"


def offsets(names: tuple[str, ...] = NAMES) -> dict[str, timedelta]:
    """Return when each Schedule may start after midnight under the policy."""
    return {name: stable_delay(str(Key("velero", name)), SPREAD) for name in names}


def starts() -> dict[str, timedelta]:
    """Return when each Backup starts: at its offset, or when one of the four before it has finished."""
    free, found = [timedelta()] * MOST, {}
    for name, offset in sorted(offsets().items(), key=lambda each: (each[1], each[0])):
        found[name] = max(offset, free[0])
        heapreplace(free, found[name] + TAKES)
    return found


def files() -> dict[str, str]:
    """Return the picture, by its path below docs/."""
    # Without a policy all are made at midnight, and Velero works off four at a time.
    piled = [(timedelta(), (number // MOST + 1) * TAKES) for number in range(SCHEDULES)]
    spread = [(start, start + TAKES) for start in starts().values()]
    width, height = _LEFT + _MINUTES * _STEP + 30, 2 * _HEIGHT + 150
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height}" font-family="sans-serif">',
        f'<rect width="{width:g}" height="{height}" fill="#ffffff"/>',
        *_panel(30, "Without a policy: all 266 Backups are unfinished at midnight", piled, SCHEDULES, _RED),
        *_panel(_HEIGHT + 95, "spread 2h, concurrency.max 4: never more than 4 at once", spread, MOST, _BLUE),
        "</svg>\n",
    ]
    return {"concepts/midnight.svg": "\n".join(parts)}


def _panel(top: float, title: str, runs: list[tuple[timedelta, timedelta]], most: int, colour: str) -> list[str]:
    bottom = top + 15 + _HEIGHT
    parts = [svg_text((_LEFT, top), title, 14, _DARK, weight=600)]
    for minute in range(_MINUTES):
        at = timedelta(minutes=minute, seconds=30)
        count = sum(start <= at < end for start, end in runs)
        tall = count / most * _HEIGHT
        if count:
            parts.append(
                f'<rect x="{_LEFT + minute * _STEP:g}" y="{bottom - tall:g}" width="{_STEP - 0.6:g}" '
                f'height="{tall:g}" fill="{colour}"/>'
            )
    parts += [svg_text((_LEFT - 8, bottom - _HEIGHT + 8), str(most), 11, _GREY, anchor="end")]
    for hour in (0, 1, 2):
        parts.append(svg_text((_LEFT + hour * 60 * _STEP, bottom + 16), f"{hour:02}:00", 11, _GREY))
    return parts


if __name__ == "__main__":
    for path, text in files().items():
        (Path(__file__).parent / path).write_text(text)
