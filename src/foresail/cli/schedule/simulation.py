"""What becomes of each slot of a Schedule, if nothing in the cluster changes but what the Schedule itself does.

Pure: the rules are asked at one instant after another, as the operator would ask them, and what they say is played
back to them.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import StrEnum
from itertools import takewhile

import msgspec

from foresail.api import velero
from foresail.api.marks import OBSERVED
from foresail.cron import Schedule, fires_after, outlook
from foresail.plan import Key
from foresail.schedules.build import backup_name
from foresail.schedules.decide import not_run
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import BackupRow, GroupView, ScheduleRow, ScheduleView, is_unfinished
from foresail.schedules.reasons import Because, Reason
from foresail.schedules.rules import Verdict, judge
from foresail.schedules.slots import base_of
from foresail.schedules.status import patch_body

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


def simulated(view: ScheduleView, now: datetime, span: Span, takes: timedelta) -> Iterator[Fate]:
    """Yield what becomes of every slot in a span that is not done yet, in order.

    Every Backup takes that long, those that run now included, the other ones of its group from now on. Whatever else
    holds a run holds it to the end.
    """
    cron = parse_expression(view.schedule.text, view.settings.zone, view.server.dialect, now)
    if isinstance(cron, Because):
        return
    at, group_ends = now, now + takes
    while at < span.until:
        view = _at(view, at, takes, group_ends)
        verdict = judge(view, at)
        if verdict.refused is not None or view.schedule.is_terminating:
            return
        if view.schedule.paused:
            yield from (Fate(slot, Outcome.PAUSED) for slot in span.slots(cron, verdict.base))
            return
        yield from _skipped(view, verdict, cron, at, span)
        slot, blocked_by = verdict.fires, verdict.blocked_by
        if blocked_by is not None and blocked_by.reason not in _PASSES:
            text = f"{blocked_by.reason}: {blocked_by.message}"
            yield from (Fate(each, Outcome.HELD, because=text) for each in span.slots(cron, verdict.base))
            return
        recorded = verdict.not_run
        if recorded is not None:
            text = not_run(recorded, verdict.base).reason.value
            end = recorded.last + timedelta(seconds=1)
            yield from (Fate(each, Outcome.SKIPPED, because=text) for each in span.slots(cron, verdict.base, end))
        if slot is not None:
            base = recorded.last if recorded is not None else verdict.base
            yield from (Fate(each, Outcome.MISSED) for each in span.slots(cron, base, slot))
            if at >= span.since:  # the run is in the span, even if its slot was before
                started = verdict.due_since or slot
                yield Fate(slot, Outcome.LATE if at - started >= timedelta(seconds=1) else Outcome.RUNS, at)
            view = _fired(view, slot, at)
        view = _recorded(view, verdict, slot)
        following = _following(view, verdict, at, takes, group_ends)
        if following is None:
            return
        at = following
    yield from _left(view, cron, now, span)


def _left(view: ScheduleView, cron: Schedule, now: datetime, span: Span) -> Iterator[Fate]:
    """Yield the slots that still wait for a Backup to end when the time is over."""
    verdict = judge(view, max(now, span.until - timedelta(seconds=1)))
    blocked_by = verdict.blocked_by
    if blocked_by is not None:
        slots = list(span.slots(cron, verdict.base))
        yield from (Fate(slot, Outcome.MISSED) for slot in slots[:-1])
        yield from (Fate(slot, Outcome.HELD, because=blocked_by.reason.value) for slot in slots[-1:])


def _skipped(view: ScheduleView, verdict: Verdict, cron: Schedule, at: datetime, span: Span) -> Iterator[Fate]:
    if verdict.skipped:
        base = base_of(view, verdict.changes.observed, at)
        yield from (Fate(slot, Outcome.SKIPPED) for slot in span.slots(cron, base, verdict.base))


def _following(
    view: ScheduleView, verdict: Verdict, at: datetime, takes: timedelta, group_ends: datetime
) -> datetime | None:
    """Return the next instant at which something may change."""
    if verdict.is_settling:
        return at + timedelta(seconds=1)
    ends = [end_of(each, takes) for each in view.backups if is_unfinished(each, view.schedule, at)]
    ends += [group_ends] if view.group is not None else []
    moments = [*([verdict.wake_at] if verdict.wake_at else []), *(ends if verdict.blocked_by else [])]
    return min((each for each in moments if each > at), default=None)


def end_of(backup: BackupRow, takes: timedelta) -> datetime:
    """Return when a Backup is taken to end."""
    return backup.created + takes


def _at(view: ScheduleView, at: datetime, takes: timedelta, group_ends: datetime) -> ScheduleView:
    """Return the view at an instant: Backups that have run long enough have ended."""
    backups = tuple(
        msgspec.structs.replace(each, phase=velero.COMPLETED)
        if not each.is_terminal and end_of(each, takes) <= at
        else each
        for each in view.backups
    )
    group = view.group
    if group is not None and at >= group_ends:
        group = GroupView(group.name, group.most)
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
    running = tuple(each for each in view.backups if not each.is_terminal)
    return msgspec.structs.replace(view, backups=(*running, made))


def _recorded(view: ScheduleView, verdict: Verdict, slot: datetime | None) -> ScheduleView:
    """Return the view after the operator has updated the status."""
    schedule, changes = view.schedule, verdict.changes
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
