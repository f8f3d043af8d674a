"""Recurring windows of time: whether an instant is inside, when they open next, and when they were last open.

A window opens at each fire of its expression and closes after its length. Everything is counted in whole minutes.
A day of UTC is an integer with one bit for each minute, so a search costs the same however often a window opens.
Every search is bounded in time alone: nothing found means that nothing is open in that time.
What becomes of a slot outside is decided in `starts`.
"""

from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from foresail.cron import CalendarSchedule
from foresail.cron.civil_time import EPOCH

AHEAD = timedelta(days=400)
"""How far ahead and back an opening is searched: more than a year, which includes every clock change."""

SECOND = timedelta(seconds=1)
MINUTE = timedelta(minutes=1)
"""Windows open and close at whole minutes."""

_MINUTES = 24 * 60
_WHOLE_DAY = (1 << _MINUTES) - 1


class Window(msgspec.Struct, frozen=True, cache_hash=True):
    """A stretch of time that recurs; its length is a whole number of minutes."""

    cron: CalendarSchedule
    length: timedelta


class Windows(msgspec.Struct, frozen=True, cache_hash=True):
    """When runs may start: inside an allowed window, if there is one, and outside every excluded one."""

    allowed: tuple[Window, ...] = ()
    excluded: tuple[Window, ...] = ()
    skips: bool = False  # whether a slot outside is skipped; else it waits for the next opening

    def is_open(self, at: datetime) -> bool:
        """Whether a run may start at that instant."""
        day, minute = _minute_of(at)
        return bool(_open_minutes(self, day) >> minute & 1)


def next_opening(windows: Windows, at: datetime) -> datetime | None:
    """Return the first instant from `at` on that is inside; None if there is none in the time ahead."""
    first, minute = _minute_of(at)
    for day in range(first, first + AHEAD.days + 1):
        later = _open_minutes(windows, day) >> minute
        if later:
            return max(at, _instant(day, minute + _lowest(later)))
        minute = 0
    return None


def next_closing(windows: Windows, at: datetime) -> datetime | None:
    """Return the first instant from `at` on that is not inside; None if there is none in the time ahead."""
    first, minute = _minute_of(at)
    for day in range(first, first + AHEAD.days + 1):
        later = (_WHOLE_DAY & ~_open_minutes(windows, day)) >> minute
        if later:
            return max(at, _instant(day, minute + _lowest(later)))
        minute = 0
    return None


def last_inside(windows: Windows, at: datetime, after: datetime) -> datetime | None:
    """Return the last instant up to `at`, and after `after`, that is inside; None if there is none in the time back."""
    last, minute = _minute_of(at)
    first, _ = _minute_of(max(after, at - AHEAD))
    for day in range(last, first - 1, -1):
        earlier = _open_minutes(windows, day) & (2 << minute) - 1
        if earlier:
            instant = min(at, _instant(day, earlier.bit_length()) - SECOND)
            return instant if instant > after else None
        minute = _MINUTES - 1
    return None


def opened(windows: Windows, at: datetime, after: datetime) -> datetime | None:
    """Return when the open stretch began that an instant is in; None if that is not after another instant."""
    last, minute = _minute_of(at)
    first, _ = _minute_of(max(after, at - AHEAD))
    for day in range(last, first - 1, -1):
        closed = ~_open_minutes(windows, day) & (2 << minute) - 1
        if closed:
            opening = _instant(day, closed.bit_length())
            return opening if opening > after else None
        minute = _MINUTES - 1
    return None


def is_open_since(windows: Windows, since: datetime, until: datetime) -> bool:
    """Whether runs may start at every instant from one to another, as far back as a search goes."""
    last, minute = _minute_of(until)
    first, first_minute = _minute_of(max(since, until - AHEAD))
    for day in range(last, first - 1, -1):
        asked = (2 << minute) - 1
        if day == first:
            asked &= ~((1 << first_minute) - 1)
        if asked & ~_open_minutes(windows, day):
            return False
        minute = _MINUTES - 1
    return True


@lru_cache(5_000)
def _open_minutes(windows: Windows, day: int) -> int:
    """Return the minutes of a day at which runs may start."""
    minutes = 0 if windows.allowed else _WHOLE_DAY
    for window in windows.allowed:
        if minutes == _WHOLE_DAY:
            break
        minutes |= _covered(window, day)
    for window in windows.excluded:
        if not minutes:
            break
        minutes &= ~_covered(window, day)
    return minutes


@lru_cache(20_000)
def _covered(window: Window, day: int) -> int:
    """Return the minutes of a day that are in a window."""
    length = window.length // MINUTE
    minutes = _extended(_fires(window, day), length)
    for back in range(1, (length - 1) // _MINUTES + 2):
        fires = _fires(window, day - back)
        if fires:  # of the earlier fires, the last one reaches furthest
            end = fires.bit_length() - 1 + length - back * _MINUTES
            return minutes | (1 << min(max(end, 0), _MINUTES)) - 1
    return minutes


@lru_cache(20_000)
def _fires(window: Window, day: int) -> int:
    return window.cron.minutes_on(day)


def _extended(fires: int, length: int) -> int:
    """Return the minutes of a day in which a window is that opens at the fires of the day."""
    if not fires:
        return 0
    if length >= _MINUTES:
        return _WHOLE_DAY & -(fires & -fires)
    done = 1
    while done < length:
        step = min(done, length - done)
        fires |= fires << step
        done += step
    return fires & _WHOLE_DAY


def _minute_of(at: datetime) -> tuple[int, int]:
    return divmod((at - EPOCH) // MINUTE, _MINUTES)


def _instant(day: int, minute: int) -> datetime:
    return EPOCH + timedelta(day, minutes=minute)


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
