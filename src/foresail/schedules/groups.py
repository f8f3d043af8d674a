"""Groups of Schedules of which only so many Backups may be unfinished at once: who runs, and who waits for whom.

A run that starts is reserved before its first write, so two reconciles cannot both take the last place. Nothing here is
stored: after a restart, the unfinished Backups of the cluster tell who runs.
"""

from bisect import insort
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from foresail.plan import Key
from foresail.schedules.observe import BackupRow, GroupView, ScheduleRow, is_unfinished
from foresail.schedules.policies import PolicyRow, group_of, policy_for

RESERVED_FOR = timedelta(minutes=1)
"""How long a new Backup may be missing from the store before its place is free again."""

RECHECK = timedelta(minutes=5)
"""How long a run that waits is not reconciled; each Schedule adds a delay of its own, up to the same time."""


class _Reservation(msgspec.Struct, frozen=True):
    group: str
    backup: Key
    since: datetime


class Groups:
    """Which Schedules of each group have unfinished Backups, which start one now, and which wait, in their order."""

    def __init__(self) -> None:
        self._group_of: dict[Key, str | None] = {}  # of each Schedule with unfinished Backups
        self._counts: dict[Key, int] = {}  # of those Backups
        self._running: dict[str, dict[Key, None]] = {}  # the same by group
        self._reserved: dict[Key, _Reservation] = {}
        self._reserved_in: dict[str, dict[Key, None]] = {}
        self._waits: dict[Key, tuple[str, datetime]] = {}
        self._queues: dict[str, list[tuple[datetime, Key]]] = {}  # by slot, then by name

    # Schedules with unfinished Backups

    def place(self, schedule: Key, group: str | None, count: int) -> str | None:
        """Note how many unfinished Backups a Schedule has, and in which group; return the group that has more room."""
        before, had = self._group_of.pop(schedule, None), self._counts.pop(schedule, 0)
        if before is not None:
            _discard(self._running, before, schedule)
        if count:
            self._group_of[schedule], self._counts[schedule] = group, count
            if group is not None:
                self._running.setdefault(group, {})[schedule] = None
        return before if before != group or count < had else None

    def with_unfinished(self) -> tuple[Key, ...]:
        """Return the Schedules with unfinished Backups."""
        return tuple(self._group_of)

    def has_unfinished(self, schedule: Key) -> bool:
        """Whether a Schedule has unfinished Backups."""
        return schedule in self._group_of

    def running(self, group: str) -> Iterable[Key]:
        """Return the Schedules of a group with unfinished Backups."""
        return tuple(self._running.get(group, ()))

    # Runs that start

    def reserve(self, schedule: Key, group: str, backup: Key, now: datetime) -> None:
        """Take a place for a Backup that is about to be created."""
        self.leave(schedule)
        self.release(schedule)
        self._reserved[schedule] = _Reservation(group, backup, now)
        self._reserved_in.setdefault(group, {})[schedule] = None

    def release(self, schedule: Key) -> None:
        """Give a reserved place back."""
        found = self._reserved.pop(schedule, None)
        if found is not None:
            _discard(self._reserved_in, found.group, schedule)

    def release_seen(self, backup: Key, schedule: Key) -> None:
        """Give a reserved place back whose Backup is in the store now, where it counts itself."""
        found = self._reserved.get(schedule)
        if found is not None and found.backup == backup:
            self.release(schedule)

    def reserved(self, group: str, now: datetime, without: Key | None = None) -> Iterator[Key]:
        """Return the Backups of a group that are about to be created, without the one of a Schedule."""
        for schedule in self._reserved_in.get(group, ()):
            found = self._reserved[schedule]
            if schedule != without and abs(now - found.since) < RESERVED_FOR:
                yield found.backup

    # Runs that wait

    def wait(self, schedule: Key, group: str, slot: datetime) -> None:
        """Queue a run that is due, in the order of slots, then of names."""
        if self._waits.get(schedule) == (group, slot):
            return
        self.leave(schedule)
        self._waits[schedule] = group, slot
        insort(self._queues.setdefault(group, []), (slot, schedule))

    def leave(self, schedule: Key) -> None:
        """Remove a run from the queue."""
        found = self._waits.pop(schedule, None)
        if found is not None:
            group, slot = found
            self._queues[group].remove((slot, schedule))
            if not self._queues[group]:
                del self._queues[group]

    def group_waited_for(self, schedule: Key) -> str | None:
        """Return the group in whose queue a Schedule is."""
        found = self._waits.get(schedule)
        return found[0] if found is not None else None

    def waits_since(self, schedule: Key, group: str) -> datetime | None:
        """Return the slot by which a Schedule is in the queue of a group."""
        found = self._waits.get(schedule)
        return found[1] if found is not None and found[0] == group else None

    def first(self, group: str, count: int, without: Key | None = None) -> tuple[tuple[datetime, Key], ...]:
        """Return the first runs of a group that wait."""
        return tuple(islice((each for each in self._queues.get(group, ()) if each[1] != without), max(count, 0)))

    # All of it

    def forget(self, schedule: Key) -> None:
        """Forget a Schedule that is deleted."""
        self.leave(schedule)
        self.release(schedule)

    def start_term(self) -> None:
        """Forget the runs that wait or start: another leader has run since."""
        for each in (self._reserved, self._reserved_in, self._waits, self._queues):
            each.clear()


def unfinished_of_groups(
    schedules: Iterable[ScheduleRow], backups: Iterable[BackupRow], policies: Iterable[PolicyRow], now: datetime
) -> dict[str, list[str]]:
    """Return the unfinished Backups of each group in a snapshot of a namespace."""
    rows, known = {each.key.name: each for each in schedules}, tuple(policies)
    found: dict[str, list[str]] = {}
    for backup in backups:
        schedule = rows.get(backup.schedule)
        if schedule is None or not is_unfinished(backup, schedule, now):
            continue
        group = group_of(policy_for(schedule.key.name, schedule.labels, known))
        if group is not None:
            found.setdefault(group, []).append(backup.key.name)
    return found


def view_of(policy: PolicyRow | None, unfinished: Mapping[str, Iterable[str]]) -> GroupView | None:
    """Return the group of a policy as a snapshot shows it, without the runs that wait."""
    group, limit = group_of(policy), policy.spec.concurrency if policy is not None else None
    if group is None or limit is None:
        return None
    return GroupView(group, limit.max, tuple(sorted(unfinished.get(group, ()))))


def _discard(found: dict[str, dict[Key, None]], group: str, schedule: Key) -> None:
    found[group].pop(schedule, None)
    if not found[group]:
        del found[group]
