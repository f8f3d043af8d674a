"""When the slots of a Schedule run under a policy: spread, windows and a deadline.

The nominal slot stays the identity of a run. What a policy changes is the instant at which the run may start, so an
edit of a policy never runs a slot twice.
"""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta
from itertools import islice, takewhile

import msgspec

from foresail.api.instants import stamp, whole
from foresail.cron import Schedule, fires_after, outlook
from foresail.slots.due import due_and_upcoming, missed_before
from foresail.slots.windows import (
    AHEAD,
    SECOND,
    Windows,
    is_open_since,
    last_inside,
    next_closing,
    next_opening,
    opened,
)

_MOST_COUNTED = 100
_MOST_STEPS = 1_000  # slots and openings that one search compares; what lies beyond is compared later


class Timing(msgspec.Struct, frozen=True):
    """What a policy says about the times of one Schedule."""

    offset: timedelta = timedelta()
    windows: Windows | None = None
    deadline: timedelta | None = None

    @property
    def skips_outside(self) -> bool:
        """Whether a slot outside the windows never runs."""
        return self.windows is not None and self.windows.skips

    def starts(self, slot: datetime) -> datetime | None:
        """Return the first instant at which the run of a slot may start; None if it never may."""
        effective = slot + self.offset
        if self.skips_outside:
            return effective if self.windows is None or self.windows.is_open(effective) else None
        return self.opens(effective)

    def opens(self, at: datetime) -> datetime | None:
        """Return the first instant from another on at which runs may start; None if there is none in the time ahead.

        What waits for an opening starts after it by the delay of the spread, so for each Schedule a window opens that
        much later. As everything before that moves to the same instant, the order of starts is that of the slots.
        """
        if self.windows is None:
            return at
        opening = next_opening(self.windows, at)
        since = self._opened(opening) if opening is not None else None
        return opening if opening is None or since is None else max(opening, since + self._delay_after(since))

    def last_open(self, at: datetime, after: datetime) -> datetime | None:
        """Return the last instant up to one, and after another, at which runs could start."""
        if self.windows is None or self.opens(at) == at:
            return at if at > after else None
        since = self._opened(at) if self.windows.is_open(at) else None
        return last_inside(self.windows, at if since is None else since - SECOND, after)

    def _opened(self, at: datetime) -> datetime | None:
        """Return when the open stretch of an instant began, if what waited for that may start later."""
        if self.windows is None or self.windows.skips or not self.offset:
            return None
        return opened(self.windows, at, at - self.offset)

    def _delay_after(self, opening: datetime) -> timedelta:
        """Return how long after an opening runs start that waited for it: the offset, within the open stretch."""
        if self.windows is None or is_open_since(self.windows, opening, opening + self.offset):
            return self.offset
        closing = next_closing(self.windows, opening)
        return self.offset if closing is None else self.offset % (closing - opening)

    def is_expired(self, start: datetime, now: datetime) -> bool:
        """Whether a run that could start at an instant is too late by now."""
        return self.deadline is not None and now - start > self.deadline


class NotRun(msgspec.Struct, frozen=True):
    """Slots that are never run, up to the last of them; at most a hundred are counted."""

    last: datetime
    outside: int = 0  # of the windows, or merged into a newer slot at the next opening
    expired: int = 0  # past startingDeadline
    superseded: int = 0  # by a newer slot


class Placed(msgspec.Struct, frozen=True):
    """The slot that is due and the one to come, with the first instants at which they may start."""

    due: datetime | None = None
    since: datetime | None = None
    upcoming: datetime | None = None
    starts: datetime | None = None
    not_run: NotRun | None = None  # to be recorded now
    wake_at: datetime | None = None  # when the clock alone changes this
    is_never_open: bool = False  # no slot has an opening in the time ahead
    is_undecided: bool = False  # slots up to the end of the search are skipped, and later ones are not compared yet

    @property
    def is_without_slots(self) -> bool:
        """Whether there is nothing to run, now or later."""
        return self.due is None and self.upcoming is None and not self.is_undecided


def place(cron: Schedule, base: datetime, now: datetime, timing: Timing | None) -> Placed:
    """Return what is due and what comes next, counted from the last slot that was run or skipped."""
    if timing is None:
        due, upcoming = due_and_upcoming(cron, base, now)
        return Placed(due, due, upcoming, upcoming, wake_at=upcoming)
    return _place(cron, base, now, timing)


def _place(cron: Schedule, base: datetime, now: datetime, timing: Timing) -> Placed:
    last, following = _last_and_following(cron, base, now, timing)
    since = timing.starts(last) if last is not None else None
    is_due = since is not None and _may_run(timing, since, now)
    due = last if is_due else None
    upcoming = following
    is_decided = True
    if timing.skips_outside and following is not None:
        upcoming, is_decided = _first_inside(cron, following, now, timing)
    starts = timing.starts(upcoming) if upcoming is not None else None
    wakes = [starts, *_ends_of_waiting(cron, base, timing, now)] if is_due else [starts]
    if timing.skips_outside and following is not None:
        wakes.append(following + timing.offset)  # a slot that is skipped is recorded when it comes
    return Placed(
        due=due,
        since=since if is_due else None,
        upcoming=upcoming if starts is not None else None,
        starts=starts,
        not_run=_not_run(cron, base, last, due, timing, now) if last is not None else None,
        wake_at=_first_after(wakes, now),
        is_never_open=is_decided and following is not None and starts is None,
        is_undecided=not is_decided,
    )


def _last_and_following(
    cron: Schedule, base: datetime, now: datetime, timing: Timing
) -> tuple[datetime | None, datetime | None]:
    """Return the last slot that has come, and the one after it."""
    first = base + timing.offset
    reached = whole(now) if timing.skips_outside else timing.last_open(whole(now), first)
    if reached is None:
        return None, due_and_upcoming(cron, base, base)[1]
    return due_and_upcoming(cron, base, reached - timing.offset)


def _first_after(instants: Iterable[datetime | None], now: datetime) -> datetime | None:
    return min((instant for instant in instants if instant is not None and instant > now), default=None)


def missed_slots(cron: Schedule, base: datetime, placed: Placed) -> int:
    """Count the slots before the due one that will not run and that no policy leaves out."""
    if placed.due is None:
        return 0
    return missed_before(cron, placed.not_run.last if placed.not_run is not None else base, placed.due)


def first_start(cron: Schedule, after: datetime, now: datetime, timing: Timing | None) -> datetime | None:
    """Return the first instant at which a slot after another instant could start, whether it has run or not."""
    slot = outlook(cron, after, after).upcoming
    if timing is None or slot is None:
        return slot
    if timing.windows is not None and timing.windows.skips:
        slot, _ = _first_inside(cron, slot, now, timing)
    return timing.starts(slot) if slot is not None else None


def _ends_of_waiting(cron: Schedule, base: datetime, timing: Timing, now: datetime) -> list[datetime | None]:
    """Return when the slots since the last run, of which one is due, may start again or are recorded as not run."""
    instants: list[datetime | None] = []
    first = outlook(cron, base, base).upcoming
    start = timing.starts(first) if first is not None else None
    if start is not None and timing.deadline is not None:
        instants.append(start + timing.deadline + SECOND)
    if timing.windows is not None:
        at = whole(now)
        if timing.windows.skips:
            instants.append(next_closing(timing.windows, at))
        else:
            instants.append(timing.opens(at))
    return instants


def _may_run(timing: Timing, since: datetime, now: datetime) -> bool:
    """Whether a slot that has come may still run: in time, and if outside means Skip, in the same open stretch."""
    if timing.is_expired(since, now):
        return False
    windows = timing.windows
    return windows is None or not windows.skips or is_open_since(windows, since, whole(now))


def _first_inside(cron: Schedule, slot: datetime | None, now: datetime, timing: Timing) -> tuple[datetime | None, bool]:
    """Return the first slot from one on that is inside the windows, and whether the time ahead is searched."""
    windows = timing.windows
    for _ in range(_MOST_STEPS):
        if slot is None or windows is None or slot - now > AHEAD:
            return None, True
        opening = next_opening(windows, slot + timing.offset)
        if opening is None or opening == slot + timing.offset:
            return slot if opening is not None else None, True
        slot = outlook(cron, slot, opening - timing.offset - SECOND).upcoming
    return None, False


def _not_run(
    cron: Schedule, base: datetime, last: datetime, due: datetime | None, timing: Timing, now: datetime
) -> NotRun | None:
    """Count the slots up to the last one that has come which are never run; those only superseded wait for the run."""
    if due is not None:
        before = outlook(cron, base, due - SECOND).due
        if before is None:
            return None
        last = before
    run = NotRun(last)
    for slot in islice(takewhile(lambda fire: fire <= last, fires_after(cron, base)), _MOST_COUNTED):
        field = _why(slot, timing, now)
        run = msgspec.structs.replace(run, **{field: getattr(run, field) + 1})
    return run if run.outside or run.expired else None


def _why(slot: datetime, timing: Timing, now: datetime) -> str:
    start = timing.starts(slot)
    if start is None:
        return "outside"
    if timing.is_expired(start, now):
        return "expired"
    is_moved = start > slot + timing.offset
    return "outside" if is_moved or not _may_run(timing, start, now) else "superseded"


def start_of_last(timing: Timing | None, last: datetime | None, since: datetime | None) -> datetime | None:
    """Return when the run of the last slot started; None if there is none, or it was made under another policy.

    `since` is the first instant at which the run that is due could start. A slot that were to start then too would
    have been replaced by the due one.
    """
    started = timing.starts(last) if timing is not None and last is not None else last
    return None if timing is not None and started == since else started


def not_run_text(slots: NotRun, base: datetime) -> str:
    """Return which slots a policy left out, and why."""
    words = {
        "outside its windows": slots.outside,
        "past startingDeadline": slots.expired,
        "superseded by a newer one": slots.superseded,
    }
    counts = ", ".join(f"{count} {word}" for word, count in words.items() if count)
    return f"Slots since {stamp(base)} that are not run, up to {stamp(slots.last)}: {counts}."


def starts_between(
    cron: Schedule, base: datetime, timing: Timing, start: datetime, end: datetime
) -> Iterator[datetime]:
    """Yield the instants from one on, and before another, at which runs start; several slots may start as one."""
    offset = timing.offset
    before = outlook(cron, base, start - offset - SECOND).due or base
    last: datetime | None = None
    if timing.windows is not None and not timing.windows.skips:
        # Slots before the span may have been moved into it.
        inside = timing.last_open(start - SECOND, start - AHEAD)
        before = base if inside is None else outlook(cron, base, inside - offset).due or base
    for slot in takewhile(lambda fire: fire + offset < end, fires_after(cron, before)):
        at = timing.starts(slot)
        if at is not None and start <= at < end and at != last:
            last = at
            yield at
