"""Groups of Schedules of which only so many Backups may be unfinished at once: who runs, and who waits for whom.

A run that starts is reserved before its first write, so two reconciles cannot both take the last place. Nothing here is
stored: after a restart, the unfinished Backups of the cluster tell who runs.
"""

from bisect import bisect_left, bisect_right, insort
from collections.abc import Iterable, Mapping
from datetime import datetime, timedelta
from itertools import islice, takewhile
from operator import itemgetter

import msgspec

from foresail.api.instants import stamp
from foresail.plan import Key
from foresail.reporting import Because
from foresail.schedules.observe import BackupRow, GroupView, ScheduleRow, ScheduleView, Turn, is_unfinished
from foresail.schedules.policies import group_of, limit_in
from foresail.schedules.reasons import Reason
from foresail.slots.policy_timing import PolicyRow, policy_for

STUCK_AFTER = timedelta(hours=24)
"""How long a Backup may be unfinished before it counts as stuck: in its group it then counts no longer."""

RESERVED_FOR = timedelta(minutes=1)
"""How long a new Backup may be missing from the store before its place is free again."""

RECHECK = timedelta(minutes=5)
"""How long a run that waits is not reconciled; each Schedule adds a delay of its own, up to the same time."""


def counts_until(backup: BackupRow) -> datetime:
    """Return when a Backup no longer counts in the group of its Schedule, though it is unfinished."""
    limit = backup.created + STUCK_AFTER
    return limit if backup.expires is None else min(limit, backup.expires)


def stuck(view: ScheduleView, now: datetime) -> Because | None:
    """Report a Backup of the Schedule that has been unfinished for too long; it counts for its own Schedule only."""
    for backup in view.backups:
        if is_unfinished(backup, view.schedule, now) and backup.created + STUCK_AFTER <= now:
            text = (
                f"Backup {backup.key} is {backup.phase or 'New'} since {stamp(backup.created)} and blocks this Schedule"
            )
            return Because(Reason.BACKUP_STUCK, f"{text}, but no longer its group. Delete it if Velero has stopped it.")
    return None


def next_stuck(view: ScheduleView, now: datetime) -> datetime | None:
    """Return when the first unfinished Backup of the Schedule will count as stuck."""
    limits = (row.created + STUCK_AFTER for row in view.backups if is_unfinished(row, view.schedule, now))
    return min((limit for limit in limits if limit > now), default=None)


class _Reservation(msgspec.Struct, frozen=True):
    group: str
    backup: Key
    since: datetime


class _Unfinished:
    """The unfinished Backups of a group: all of them by name, and by the instant until which they count."""

    __slots__ = ("ending", "names")

    def __init__(self) -> None:
        self.names: list[str] = []
        self.ending: list[tuple[datetime, str]] = []

    def add(self, backups: Mapping[str, datetime]) -> None:
        for name, until in backups.items():
            insort(self.names, name)
            insort(self.ending, (until, name))

    def remove(self, backups: Mapping[str, datetime]) -> None:
        for name, until in backups.items():
            del self.names[bisect_left(self.names, name)]
            del self.ending[bisect_left(self.ending, (until, name))]

    def named(self, now: datetime, named: int) -> tuple[int, tuple[str, ...]]:
        past = self.ending[: bisect_right(self.ending, now, key=itemgetter(0))]
        left_out = {name for _, name in past}
        return len(self.names) - len(past), tuple(islice((n for n in self.names if n not in left_out), named))


class Groups:
    """Which Schedules of each group have unfinished Backups, which start one now, and which wait, in their order."""

    def __init__(self) -> None:
        self._placed: dict[Key, tuple[str | None, Mapping[str, datetime]]] = {}  # by Schedule: its Backups
        self._unfinished: dict[str, _Unfinished] = {}  # the same by group
        self._reserved: dict[Key, _Reservation] = {}
        self._reserved_in: dict[str, dict[Key, None]] = {}
        self._waits: dict[Key, tuple[str, Turn]] = {}
        self._queues: dict[str, list[tuple[Turn, Key]]] = {}

    # Schedules with unfinished Backups

    def place(self, schedule: Key, group: str | None, backups: Mapping[str, datetime]) -> str | None:
        """Note the unfinished Backups of a Schedule and until when they count; return the group with more room now."""
        before, had = self._placed.pop(schedule, (None, {}))
        if before is not None:
            self._unfinished[before].remove(had)
            if not self._unfinished[before].names:
                del self._unfinished[before]
        if backups:
            self._placed[schedule] = group, backups
            if group is not None:
                self._unfinished.setdefault(group, _Unfinished()).add(backups)
        return before if before != group or len(backups) < len(had) else None

    def with_unfinished(self) -> tuple[Key, ...]:
        """Return the Schedules with unfinished Backups."""
        return tuple(self._placed)

    def has_unfinished(self, schedule: Key) -> bool:
        """Whether a Schedule has unfinished Backups."""
        return schedule in self._placed

    def unfinished(self, group: str, now: datetime, named: int) -> tuple[int, tuple[str, ...]]:
        """Return how many Backups of a group are unfinished, and the names of the first ones."""
        unfinished = self._unfinished.get(group)
        return unfinished.named(now, named) if unfinished is not None else (0, ())

    # Runs that start

    def reserve(self, schedule: Key, group: str, backup: Key, now: datetime) -> None:
        """Take a place for a Backup that is about to be created."""
        self.leave(schedule)
        self.release(schedule)
        self._reserved[schedule] = _Reservation(group, backup, now)
        self._reserved_in.setdefault(group, {})[schedule] = None

    def release(self, schedule: Key) -> None:
        """Give a reserved place back."""
        reservation = self._reserved.pop(schedule, None)
        if reservation is not None:
            del self._reserved_in[reservation.group][schedule]
            if not self._reserved_in[reservation.group]:
                del self._reserved_in[reservation.group]

    def release_seen(self, backup: Key, schedule: Key) -> None:
        """Give a reserved place back whose Backup is in the store now, where it counts itself."""
        reservation = self._reserved.get(schedule)
        if reservation is not None and reservation.backup == backup:
            self.release(schedule)

    def reserved(
        self, group: str, now: datetime, named: int, without: Key | None = None
    ) -> tuple[int, tuple[str, ...]]:
        """Return how many Backups of a group are about to be created, and some names; not those of one Schedule."""
        reserved = self._reserved_in.get(group, {})  # in the order of their age
        stale = sum(1 for _ in takewhile(lambda key: not self._is_fresh(key, now), reserved))
        mine = without is not None and without in reserved and self._is_fresh(without, now)
        names = (self._reserved[key].backup.name for key in islice(reserved, stale, None) if key != without)
        return len(reserved) - stale - mine, tuple(islice(names, named))

    def _is_fresh(self, schedule: Key, now: datetime) -> bool:
        return abs(now - self._reserved[schedule].since) < RESERVED_FOR

    # Runs that wait

    def wait(self, schedule: Key, group: str, turn: Turn) -> None:
        """Queue a run that is due: who waits longest comes first, of equals who ran longest ago, then by name."""
        if self._waits.get(schedule) == (group, turn):
            return
        self.leave(schedule)
        self._waits[schedule] = group, turn
        insort(self._queues.setdefault(group, []), (turn, schedule))

    def leave(self, schedule: Key) -> None:
        """Remove a run from the queue."""
        wait = self._waits.pop(schedule, None)
        if wait is not None:
            group, turn = wait
            queue = self._queues[group]
            del queue[bisect_left(queue, (turn, schedule))]
            if not queue:
                del self._queues[group]

    def group_waited_for(self, schedule: Key) -> str | None:
        """Return the group in whose queue a Schedule is."""
        wait = self._waits.get(schedule)
        return wait[0] if wait is not None else None

    def turn(self, schedule: Key, group: str) -> Turn | None:
        """Return by which turn a Schedule is in the queue of a group."""
        wait = self._waits.get(schedule)
        return wait[1] if wait is not None and wait[0] == group else None

    def first(self, group: str, count: int, without: Key | None = None) -> tuple[tuple[Turn, Key], ...]:
        """Return the first runs of a group that wait, without the one of a Schedule."""
        first = self._queues.get(group, [])[: count + 1]
        turn = self.turn(without, group) if without is not None else None
        if turn is not None and without is not None:
            at = bisect_left(first, (turn, without))
            del first[at : at + 1]
        return tuple(first[:count])

    # All of it

    def forget(self, schedule: Key) -> None:
        """Forget a Schedule that is deleted."""
        self.leave(schedule)
        self.release(schedule)

    def start_term(self) -> None:
        """Forget the runs that wait or start: another leader has run since."""
        for index in (self._reserved, self._reserved_in, self._waits, self._queues):
            index.clear()


def unfinished_of_groups(
    schedules: Iterable[ScheduleRow], backups: Iterable[BackupRow], policies: Iterable[PolicyRow], now: datetime
) -> dict[str, list[str]]:
    """Return the unfinished Backups of each group in a snapshot of a namespace."""
    rows = {row.key.name: row for row in schedules}
    known = tuple(policies)
    names: dict[str, list[str]] = {}
    for backup in backups:
        schedule = rows.get(backup.schedule)
        if schedule is None or not is_unfinished(backup, schedule, now) or counts_until(backup) <= now:
            continue
        group = group_of(policy_for(schedule.key.name, schedule.labels, known))
        if group is not None:
            names.setdefault(group, []).append(backup.key.name)
    return names


def view_of(
    policy: PolicyRow | None, policies: Iterable[PolicyRow], unfinished: Mapping[str, Iterable[str]]
) -> GroupView | None:
    """Return the group of a policy as a snapshot shows it, without the runs that wait."""
    view = limited_group(policy, policies)
    if view is None:
        return None
    return msgspec.structs.replace(view, unfinished=tuple(sorted(unfinished.get(view.name, ()))))


def limited_group(policy: PolicyRow | None, policies: Iterable[PolicyRow]) -> GroupView | None:
    """Return the group of a policy with its limit, the smallest max of all policies of the group."""
    group = group_of(policy)
    own = policy.spec.concurrency if policy is not None else None
    if group is None or own is None:
        return None
    most, name = limit_in(group, policies) or (own.max, "")
    return GroupView(group, most, limited_by=name if most < own.max else "")
