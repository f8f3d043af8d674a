"""Recurring windows of time: whether an instant is inside, when they open next, and when they were last open.

A window opens at each fire of its expression and closes after its length. Everything is counted in whole seconds.
Every search is bounded in steps and in time, so windows that never open cost no more than others.
"""

from datetime import datetime, timedelta
from functools import lru_cache

import msgspec

from foresail.cron import CalendarSchedule

AHEAD = timedelta(days=400)
"""How far ahead an opening is searched: more than a year, which includes every clock change."""

MOST_STEPS = 500
"""How many openings and closings a search passes."""

SECOND = timedelta(seconds=1)


class Window(msgspec.Struct, frozen=True):
    """A stretch of time that recurs."""

    cron: CalendarSchedule
    length: timedelta

    def opened(self, at: datetime) -> datetime | None:
        """Return when it last opened, at that instant included; the same whichever instant a search starts from."""
        return _opened_at(self.cron, at)

    def opens_after(self, at: datetime) -> datetime | None:
        """Return when it opens next, after that instant."""
        last = self.opened(at)
        return self.cron.next(at if last is None else last)


@lru_cache(20_000)
def _opened_at(cron: CalendarSchedule, at: datetime) -> datetime | None:
    return cron.previous(at + SECOND)  # slow near a clock change, and asked for the same slots again and again


class Windows(msgspec.Struct, frozen=True):
    """When runs may start: inside an allowed window, if there is one, and outside every excluded one."""

    allowed: tuple[Window, ...] = ()
    excluded: tuple[Window, ...] = ()
    skips: bool = False  # whether a slot outside is skipped; else it waits for the next opening

    def is_open(self, at: datetime) -> bool:
        """Whether a run may start at that instant."""
        return not _covering(self.excluded, at) and (not self.allowed or bool(_covering(self.allowed, at)))


def next_opening(windows: Windows, at: datetime) -> datetime | None:
    """Return the first instant from `at` on that is inside; None if none is found."""
    limit = at + AHEAD
    for _ in range(MOST_STEPS):
        if at > limit:
            break
        closing = _covering(windows.excluded, at)
        if closing:
            at = max(fire + window.length for window, fire in closing)
        elif windows.is_open(at):
            return at
        else:
            opens = [each for each in (window.opens_after(at) for window in windows.allowed) if each is not None]
            if not opens:
                break
            at = min(opens)
    return None


def last_inside(windows: Windows, at: datetime, after: datetime) -> datetime | None:
    """Return the last instant up to `at`, and after `after`, that is inside; None if none is found."""
    for _ in range(MOST_STEPS):
        if at <= after:
            break
        closing = _covering(windows.excluded, at)
        if closing:
            at = min(fire for _, fire in closing) - SECOND
        elif windows.is_open(at):
            return at
        else:
            at = max((fire + window.length for window, fire in _opened(windows.allowed, at)), default=after) - SECOND
    return None


def is_open_since(windows: Windows, since: datetime, until: datetime) -> bool:
    """Whether runs may start at every instant from one to another."""
    at = until
    for _ in range(MOST_STEPS):
        if at < since:
            break
        if not windows.is_open(at):
            return False
        # Nothing closes between here and the earliest opening that covers it, but an exclusion that ends there.
        opened = min((fire for _, fire in _covering(windows.allowed, at)), default=since)
        excluded = max((fire + window.length for window, fire in _opened(windows.excluded, at)), default=opened)
        at = max(opened, excluded) - SECOND
    return True


def _opened(windows: tuple[Window, ...], at: datetime) -> list[tuple[Window, datetime]]:
    """Return the windows that opened before, with their last openings."""
    fires = ((each, each.opened(at)) for each in windows)
    return [(each, fire) for each, fire in fires if fire is not None]


def _covering(windows: tuple[Window, ...], at: datetime) -> list[tuple[Window, datetime]]:
    """Return the windows that an instant is in, with the openings that it follows."""
    return [(each, fire) for each, fire in _opened(windows, at) if fire + each.length > at]
