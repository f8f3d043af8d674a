"""The week of all Schedules as lines of text: a cell for each half hour, and the pile-ups in words."""

import sys
from collections.abc import Iterator, Sequence
from datetime import date, time

from foresail.cli.cron.load import SLOTS, Load, Pile, equal_step
from foresail.cli.output.terminal import BOLD, RED, YELLOW, painted

SHOWN = 5
"""Pile-ups that are named."""

_SHOWN_TIMES = 3
_DAY, _WEEK = 24 * 60, 7
_NAMED = 6
_MANY, _VERY_MANY = 3, 10


def week_lines(load: Load) -> Iterator[str]:
    """Yield the days as lines of half hours, each with the most runs that start at once in it, then the pile-ups."""
    yield load.title
    yield " " * 12 + "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()
    for day in load.days:
        cells = "".join(_cell(load, day, slot) for slot in range(SLOTS))
        runs = load.runs.get(day, 0)
        name = painted(f"{day:%a %d %b}", BOLD, sys.stdout) if day == load.today else f"{day:%a %d %b}"
        yield f"{name}  {cells}  {runs} {'run' if runs == 1 else 'runs'}"
    if load.most >= _VERY_MANY:
        yield f"# ten or more; the most is {load.most}"
    if not load.piles:
        return
    yield ""
    yield "in the same minute:"
    for pile in load.piles[:SHOWN]:
        yield f"  {pile_line(pile)}"
    if len(load.piles) > SHOWN:
        yield f"  and {len(load.piles) - SHOWN} more pile-ups; foresail schedule spread proposes other minutes"


def pile_line(pile: Pile) -> str:
    """Return a pile-up in words: when, how many, and whose."""
    names = ", ".join(pile.names[:_NAMED])
    more = f" and {len(pile.names) - _NAMED} more" if len(pile.names) > _NAMED else ""
    return f"{_when(pile)}: {len(pile.names)} ({names}{more})"


def _when(pile: Pile) -> str:
    rhythm = _rhythm(pile.minutes)
    is_daily = len(pile.days) == (pile.days[-1] - pile.days[0]).days + 1 and len(pile.days) >= _WEEK
    if rhythm and is_daily:
        return rhythm
    shown = ", ".join(f"{minute:%H:%M}" for minute in pile.minutes[:_SHOWN_TIMES])
    more = len(pile.minutes) - _SHOWN_TIMES
    times = rhythm or f"at {shown}{f' and {more} more times' if more > 0 else ''}"
    first = f"{pile.days[0]:%a %d %b}"
    days = "every day" if is_daily else first if len(pile.days) == 1 else f"{len(pile.days)} days from {first}"
    return f"{days} {times}"


def _rhythm(times: Sequence[time]) -> str:
    """Return times of a day at equal distances in words; empty if they are not, or too few."""
    step = equal_step(times)
    if step is None:
        return ""
    first, last = (f"{each:%H:%M}" for each in (times[0], times[-1]))
    words = f"{step} minutes" if step % 60 else "hour" if step == 60 else f"{step // 60} hours"  # noqa: PLR2004
    if len(times) * step != _DAY:
        return f"every {words} from {first} to {last}"
    if words == "hour":
        return f"every hour at :{times[0]:%M}" if times[0].minute else "every full hour"
    return f"every {words}" if step % 60 else f"every {words} from {first}"


def _cell(load: Load, day: date, slot: int) -> str:
    count = load.peaks.get((day, slot), 0)
    if not count:
        skipped = (jump for jump in load.jumps if jump.day == day and not jump.repeated)
        return " " if any(jump.begin <= slot * 30 < jump.end for jump in skipped) else "·"
    text = str(count) if count < _VERY_MANY else "#"
    if count >= _VERY_MANY:
        return painted(text, f"{BOLD};{RED}", sys.stdout)
    return painted(text, YELLOW, sys.stdout) if count >= _MANY else text
