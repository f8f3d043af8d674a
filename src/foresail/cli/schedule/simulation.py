"""What becomes of each slot of some Schedules, if nothing in the cluster changes but what they do themselves.

Pure: the rules are asked at one instant after another, as the operator would ask them, and what they say is played
back to them.
"""

from bisect import bisect_left, insort
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from enum import StrEnum
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import pairwise, takewhile
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.marks import OBSERVED
from foresail.api.schedule_policy import SchedulePolicy, SchedulePolicySpec
from foresail.cli.cron.load import Load, Timetable, load_of
from foresail.cli.cron.words import wall_time
from foresail.cli.errors import CommandError
from foresail.cli.options.unknown import refuse_unknown
from foresail.cli.options.values import objects
from foresail.cli.output.words import compact, counted
from foresail.cli.schedule.lifetimes import LONGER, expires_first, short_life_of
from foresail.cli.schedule.snapshot import EvaluatedSchedule, evaluate
from foresail.cron import Schedule, fires_after, outlook
from foresail.cron.zone_names import validate_zone_name
from foresail.cron.zones import load_zoneinfo
from foresail.plan import Key
from foresail.reporting import Because
from foresail.schedules.decide import not_run
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import BackupRow, GroupView, ScheduleRow, ScheduleView, Turn, is_unfinished
from foresail.schedules.policies import problem_with
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import Verdict, judge
from foresail.schedules.slots import backup_name, base_of
from foresail.schedules.status import patch_body
from foresail.slots.policy_timing import PolicyRow, policy_row, rpo_of

_RUNNING = "InProgress"
_PASSES = (Reason.BUSY, Reason.OUTSIDE_WINDOW, Reason.CONCURRENCY_LIMIT)  # what time alone ends


class Outcome(StrEnum):
    """What becomes of a slot."""

    RUNS = "runs"
    LATE = "runs late"
    MISSED = "missed"
    SKIPPED = "skipped"
    PAUSED = "paused"
    HELD = "held"


@dataclass(frozen=True, slots=True)
class Fate:
    """A slot, what becomes of it, when it runs if it does, and why not if it does not."""

    slot: datetime
    outcome: Outcome
    at: datetime | None = None
    because: str = ""


@dataclass(frozen=True, slots=True)
class Span:
    """The simulated time: from one instant on, and before another."""

    since: datetime
    until: datetime

    def slots(self, cron: Schedule, base: datetime, end: datetime | None = None) -> Iterator[datetime]:
        """Yield the slots in it that follow from a base, up to an earlier end if there is one.

        Years that lie before it cost nothing: the chain is entered at its last slot before the span.
        """
        last = min(end, self.until) if end else self.until
        before = outlook(cron, base, self.since - timedelta(seconds=1)).due or base
        return (slot for slot in takewhile(lambda slot: slot < last, fires_after(cron, before)) if slot >= self.since)


def simulated(
    view: ScheduleView, now: datetime, span: Span, takes: timedelta, on_step: Callable[[], None] = lambda: None
) -> list[Fate]:
    """Return what becomes of every slot of one Schedule in a span that is not done yet, in order.

    Every Backup takes that long, those that run now included, the other ones of its group from now on. Whatever else
    holds a run holds it to the end. `on_step` is called before each step, and ends the simulation if it raises.
    """
    return simulated_together([view], now, span, takes, on_step)[0]


def simulated_together(
    views: Sequence[ScheduleView],
    now: datetime,
    span: Span,
    takes: timedelta,
    on_step: Callable[[], None] = lambda: None,
) -> list[list[Fate]]:
    """Return the same for each of several Schedules; those of one group wait for each other."""
    played = [_Played(view, now, span, takes) for view in views]
    groups: dict[object, list[_Played]] = {}
    for number, play in enumerate(played):
        group = play.view.group
        groups.setdefault((play.key.namespace, group.name) if group is not None else number, []).append(play)
    simulated = {backup.key.name for view in views for backup in view.backups}
    for members in groups.values():
        _Group(members, simulated, now, takes).play(span.until, on_step)
    return [play.fates for play in played]


def cron_of(view: ScheduleView, now: datetime) -> Schedule | None:
    """Return the parsed expression of a Schedule; None if it cannot be used."""
    cron = parse_expression(view.schedule.text, view.settings.zone, view.server.dialect, now)
    return None if isinstance(cron, Because) else cron


class _Played:
    """One Schedule while the simulated time passes."""

    def __init__(self, view: ScheduleView, now: datetime, span: Span, takes: timedelta) -> None:
        self.view = view
        self.key = view.schedule.key
        self.fates = list[Fate]()
        self.turn: Turn | None = None  # by which its run waits in its group
        self.starts = False  # a Backup at the last step
        self._now = now
        self._span = span
        self._takes = takes
        self._cron = cron_of(view, now)
        self.next = None if self._cron is None else now  # when the clock changes something

    def step(self, at: datetime, group: GroupView | None) -> None:
        """Ask the rules at an instant, and play back what they say."""
        self.next = None
        self.turn = None
        self.starts = False
        cron = self._cron
        span = self._span
        fates = self.fates
        self.view = view = _at(self.view, at, self._takes, group)
        verdict = judge(view, at)
        if cron is None or verdict.refused is not None or view.schedule.is_terminating:
            return
        if view.schedule.paused:
            fates += [Fate(slot, Outcome.PAUSED) for slot in span.slots(cron, verdict.base)]
            return
        fates += _skipped(view, verdict, cron, at, span)
        slot = verdict.fires
        blocked_by = verdict.blocked_by
        if blocked_by is not None and blocked_by.reason not in _PASSES:
            text = f"{blocked_by.reason}: {blocked_by.message}"
            fates += [Fate(instant, Outcome.HELD, because=text) for instant in span.slots(cron, verdict.base)]
            return
        recorded = verdict.not_run
        if recorded is not None:
            text = not_run(recorded, verdict.base).reason.value
            end = recorded.last + timedelta(seconds=1)
            fates += [Fate(instant, Outcome.SKIPPED, because=text) for instant in span.slots(cron, verdict.base, end)]
            self.view = _recorded(view, verdict, None)
            self.step(at, group)  # a run that is due starts once this is recorded
            return
        if slot is not None:
            fates += _started(verdict, slot, cron, at, span)
            self.view = _fired(view, slot, at)
            self.starts = True
        if blocked_by is not None and blocked_by.reason is Reason.CONCURRENCY_LIMIT and not verdict.is_settling:
            self.turn = verdict.turn
        self.view = _recorded(self.view, verdict, slot)
        self.next = _following(self.view, verdict, at, self._takes)

    def end(self, group: GroupView | None) -> None:
        """Note the slots that still wait for a Backup to end when the time is over."""
        if self._cron is None or (self.next is None and self.turn is None):
            return
        view = msgspec.structs.replace(self.view, group=group)
        verdict = judge(view, max(self._now, self._span.until - timedelta(seconds=1)))
        if verdict.blocked_by is not None:
            slots = list(self._span.slots(self._cron, verdict.base))
            because = verdict.blocked_by.reason.value
            self.fates += [Fate(slot, Outcome.MISSED) for slot in slots[:-1]]
            self.fates += [Fate(slot, Outcome.HELD, because=because) for slot in slots[-1:]]


class _Group:
    """Schedules that wait for each other, or one that waits for none: who runs, who waits, and who is next."""

    def __init__(self, members: list[_Played], simulated: set[str], now: datetime, takes: timedelta) -> None:
        self._members = members
        self._takes = takes
        self._view = members[0].view.group
        self._waiting: list[tuple[Turn, Key]] = []
        self._by_key = {member.key: member for member in members}
        own = [
            row for member in members for row in member.view.backups if is_unfinished(row, member.view.schedule, now)
        ]
        others = set(self._view.unfinished if self._view is not None else ()) - simulated
        self._ends = [end_of(row, takes) for row in own] + [now + takes] * len(others)
        heapify(self._ends)

    def play(self, until: datetime, on_step: Callable[[], None]) -> None:
        """Let time pass from one instant at which something changes to the next."""
        due = [(member.next, member.key) for member in self._members if member.next is not None]
        heapify(due)
        while (at := self._next_change(due)) is not None and at < until:
            on_step()
            while self._ends and self._ends[0] <= at:
                heappop(self._ends)
            while self._waiting and self._free():  # the first in the queue come first
                self._step(self._by_key[self._waiting[0][1]], at, due)
            while due and due[0][0] <= at:
                moment, key = heappop(due)
                if self._by_key[key].next == moment:  # else it was stepped meanwhile
                    self._step(self._by_key[key], at, due)
        for member in self._members:
            member.end(self._group_of(member))

    def _next_change(self, due: list[tuple[datetime, Key]]) -> datetime | None:
        """Return when a run is due, or ends while another one waits; None if neither is to come."""
        moments = [moment for moment, _ in due[:1]]
        if self._waiting:
            moments += self._ends[:1]
        return min(moments, default=None)

    def _step(self, play: _Played, at: datetime, due: list[tuple[datetime, Key]]) -> None:
        if play.turn is not None:
            del self._waiting[bisect_left(self._waiting, (play.turn, play.key))]
        play.step(at, self._group_of(play))
        if play.starts and self._takes:
            heappush(self._ends, at + self._takes)
        if play.turn is not None:
            insort(self._waiting, (play.turn, play.key))
        if play.next is not None:
            heappush(due, (play.next, play.key))

    def _free(self) -> int:
        return max(self._view.most - len(self._ends), 0) if self._view is not None else 0

    def _group_of(self, play: _Played) -> GroupView | None:
        """Return the group as one of its Schedules sees it."""
        own = play.view.group
        if own is None:
            return None
        ahead = tuple(entry for entry in self._waiting[: self._free() + 1] if entry[1] != play.key)
        return msgspec.structs.replace(own, unfinished=(), more=len(self._ends), waiting=ahead)


def _started(verdict: Verdict, slot: datetime, cron: Schedule, at: datetime, span: Span) -> Iterator[Fate]:
    """Yield the slots that a run replaces, and the run."""
    yield from (Fate(missed, Outcome.MISSED) for missed in span.slots(cron, verdict.base, slot))
    if at >= span.since:  # the run is in the span, even if its slot was before
        started = verdict.due_since or slot
        yield Fate(slot, Outcome.LATE if at - started >= timedelta(seconds=1) else Outcome.RUNS, at)


def _skipped(view: ScheduleView, verdict: Verdict, cron: Schedule, at: datetime, span: Span) -> Iterator[Fate]:
    if verdict.skipped:
        base = base_of(view, verdict.changes.observed, at)
        yield from (Fate(slot, Outcome.SKIPPED) for slot in span.slots(cron, base, verdict.base))


def _following(view: ScheduleView, verdict: Verdict, at: datetime, takes: timedelta) -> datetime | None:
    """Return the next instant at which something may change, except in its group."""
    if verdict.is_settling:
        return at + timedelta(seconds=1)
    ends = [end_of(backup, takes) for backup in view.backups if is_unfinished(backup, view.schedule, at)]
    moments = [*([verdict.wake_at] if verdict.wake_at else []), *(ends if verdict.blocked_by else [])]
    return min((moment for moment in moments if moment > at), default=None)


def end_of(backup: BackupRow, takes: timedelta) -> datetime:
    """Return when a Backup is taken to end."""
    return backup.created + takes


def _at(view: ScheduleView, at: datetime, takes: timedelta, group: GroupView | None) -> ScheduleView:
    """Return the view at an instant: Backups that have run long enough have ended."""
    backups = tuple(
        msgspec.structs.replace(backup, phase=velero.COMPLETED)
        if not backup.is_terminal and end_of(backup, takes) <= at
        else backup
        for backup in view.backups
    )
    return msgspec.structs.replace(view, backups=backups, group=group)


def _fired(view: ScheduleView, slot: datetime, at: datetime) -> ScheduleView:
    """Return the view after the Backup of a slot was created; earlier Backups that have ended are dropped."""
    schedule = view.schedule
    made = BackupRow(
        key=Key(schedule.key.namespace, backup_name(schedule, slot)),
        schedule=schedule.key.name,
        schedule_uid=schedule.uid,
        slot=slot,
        phase=_RUNNING,
        created=at,
        completed=None,
        expires=None,
    )
    running = tuple(backup for backup in view.backups if not backup.is_terminal)
    return msgspec.structs.replace(view, backups=(*running, made))


def _recorded(view: ScheduleView, verdict: Verdict, slot: datetime | None) -> ScheduleView:
    """Return the view after the operator has updated the status."""
    schedule = view.schedule
    changes = verdict.changes
    return msgspec.structs.replace(
        view,
        schedule=msgspec.structs.replace(
            schedule,
            annotations={**schedule.annotations, **_observed(schedule, verdict)},
            phase=changes.phase,
            last_backup=slot or changes.last_backup or schedule.last_backup,
            last_skipped=changes.last_skipped or schedule.last_skipped,
            skip=None if changes.clears_skip else schedule.skip,
        ),
    )


def _observed(schedule: ScheduleRow, verdict: Verdict) -> dict[str, str]:
    metadata = patch_body(schedule, verdict.changes).get("metadata")
    annotations = metadata.get("annotations", {}) if isinstance(metadata, dict) else {}
    return {OBSERVED: annotations[OBSERVED]} if OBSERVED in annotations else {}


KIND = "SchedulePolicy"
Fates = Sequence[tuple[Fate, EvaluatedSchedule]]


def policies_of(file: str, read: list[Any]) -> list[PolicyRow]:
    """Return the SchedulePolicies of a file; report one that cannot be used."""
    rows: dict[str, PolicyRow] = {}
    for item in objects(read, KIND):
        metadata = item.get("metadata")
        name = str(metadata.get("name", "?")) if isinstance(metadata, dict) else "?"
        try:
            row = policy_row(msgspec.convert(item, SchedulePolicy))
        except msgspec.ValidationError as error:
            raise CommandError(f"{KIND} {name} in {file}: {error}", "correct that field") from None
        refuse_unknown(f"{KIND} {name} in {file}", SchedulePolicySpec, item)
        problem = problem_with(row)
        if problem is not None:
            raise CommandError(f"{KIND} {name} in {file}: {problem}", "correct that field")
        if name in rows:
            raise CommandError(f"{file} has {KIND} {name} twice", "remove one of them")
        rows[name] = row
    if not rows:
        raise CommandError(f"{file} has no {KIND}", "specify a file with at least one")
    return list(rows.values())


PLANNED = "planned"
"""The operator in a snapshot of how a cluster would be under a policy."""


def under(schedule: EvaluatedSchedule, given: Iterable[PolicyRow], instant: datetime) -> EvaluatedSchedule:
    """Return a Schedule as it would be if these policies were applied over those of the cluster."""
    if schedule.known is None:
        return schedule
    merged = {row.name: row for row in (*schedule.known.policies, *given)}
    operator = schedule.known.operator or PLANNED  # Velero knows no policy, so these suppose that the operator runs
    known = replace(schedule.known, policies=tuple(merged.values()), operator=operator)
    return evaluate(schedule.schedule, schedule.content, known, instant)


def load_in(fates: Fates, span: Span, zone: str, now: datetime) -> Load:
    """Return how many runs start when, as they were simulated."""
    starts = {key: list[datetime]() for key in sorted({play.schedule.key for _, play in fates})}
    for fate, play in fates:
        if fate.at:
            starts[play.schedule.key].append(fate.at)
    wall = load_zoneinfo(validate_zone_name(zone))
    first = span.since.astimezone(wall).date()
    last = (span.until - timedelta(seconds=1)).astimezone(wall).date()
    days = [first + timedelta(days=number) for number in range((last - first).days + 1)]
    return load_of([Timetable(key, partial(_between, instants)) for key, instants in starts.items()], days, zone, now)


def _between(starts: Sequence[datetime], since: datetime, until: datetime) -> list[datetime]:
    return [at for at in starts if since <= at < until]


_NAMED = 3


def broken_promises(fates: Fates, zone: str) -> list[str]:
    """Return a sentence for each Schedule that will miss its objective, or whose Backups do not live until the next.

    Those beyond the first few are counted.
    """
    missed = list(_missed_objectives(fates, zone))
    expiring = list(_expiring(fates))
    return [
        *_first(missed, "will miss the objective"),
        *_first(expiring, "have no backup left after a run that fails"),
    ]


def _first(sentences: Sequence[str], of_others: str) -> list[str]:
    more = len(sentences) - _NAMED
    return [*sentences[:_NAMED], *([f"{counted(more, 'more Schedule')} {of_others}"] if more > 0 else [])]


def _expiring(fates: Fates) -> Iterator[str]:
    first = {str(play.schedule.key): (fate.slot, play.view) for fate, play in reversed(fates)}
    for name, (slot, view) in sorted(first.items()):
        life = short_life_of(view, slot)
        if life is not None:
            yield f"Schedule {name}: {expires_first(life)}; {LONGER}"


def _missed_objectives(fates: Fates, zone: str) -> Iterator[str]:
    starts: dict[str, list[datetime]] = {}
    schedules = {str(play.schedule.key): play for _, play in fates}
    for fate, play in fates:
        if fate.at is not None:
            starts.setdefault(str(play.schedule.key), []).append(fate.at)
    for name, times in sorted(starts.items()):
        policy = schedules[name].view.policy
        rpo = rpo_of(policy)
        ordered = sorted(times)
        pairs = list(pairwise(ordered))
        if policy is None or rpo is None or not pairs:
            continue
        start, end = max(pairs, key=lambda pair: pair[1] - pair[0])
        if end - start > rpo:
            between = f"{compact(end - start)} between the runs of {wall_time(start, zone)} and {wall_time(end, zone)}"
            yield (
                f"Schedule {name} will miss the objective of SchedulePolicy {policy.name}: {between}, "
                f"and objective.rpo is {compact(rpo)}"
            )
