"""What is reported of a namespace in its Protection, and of a ProtectionClass in its status."""

from collections.abc import Sequence
from datetime import datetime
from enum import StrEnum
from typing import Literal

import msgspec

from foresail.api.instants import whole
from foresail.api.protection import MOST_POINTS, NotCovered, PointInTime, ProtectionClassStatus, ProtectionStatus
from foresail.api.requests import Condition
from foresail.plan import Claim
from foresail.protection.reasons import Reason
from foresail.protection.rows import BackupRow
from foresail.protection.rules import doubts, good_ones, newest_good, next_run, restorable_points
from foresail.protection.view import ClassView, NamespaceView
from foresail.reporting import LONGEST_MESSAGE, Because, dated
from foresail.safety.verdict import Verdict, weighed

PROTECTED, READY = "Protected", "Ready"
_Truth = Literal["True", "False", "Unknown"]
_TRUTH: dict[Verdict, _Truth] = {Verdict.SAFE: "True", Verdict.UNKNOWN: "Unknown"}


class State(StrEnum):
    """The state of a namespace, for figures."""

    PROTECTED = "protected"
    WAITING = "waiting"  # for its first good backup
    GAP = "gap"
    EXEMPT = "exempt"
    UNKNOWN = "unknown"  # whether a restore would bring back everything
    NOT_ASKED = "not-asked"


class Report(Claim, msgspec.Struct, frozen=True):
    """What is known of a namespace, for the figures."""

    state: State
    protection_class: str
    gaps: tuple[str, ...] = ()


def report_of(view: NamespaceView, not_covered: Sequence[Because], now: datetime) -> Report:
    """Return the state of a namespace with these gaps."""
    reasons = tuple(because.reason.value for because in not_covered)
    return Report(_state(view, not_covered, now), view.chosen.protection_class or _kept_by(view), reasons)


def _state(view: NamespaceView, not_covered: Sequence[Because], now: datetime) -> State:
    chosen = view.chosen
    if not_covered:
        return State.GAP
    if chosen.exempt_until is not None:
        return State.EXEMPT
    if not chosen.protection_class and not view.schedules:
        return State.NOT_ASKED
    if not view.schedules or newest_good(view, now) is None:
        return State.WAITING
    return State.UNKNOWN if doubts(view, now) else State.PROTECTED


def protection_status(view: NamespaceView, not_covered: Sequence[Because], now: datetime) -> ProtectionStatus:
    """Return the status of the Protection of a namespace with these gaps."""
    chosen = view.chosen
    good = newest_good(view, now)
    good_names = {run.name for run in good_ones(view, now)}
    runs = (
        next_run(schedule, view.runs.get(schedule.name, ()), view.policies.get(schedule.name), view.zone, now)
        for schedule in view.schedules
    )
    return ProtectionStatus(
        protection_class=chosen.protection_class or _kept_by(view),
        schedules=tuple(schedule.name for schedule in view.schedules),
        next_run=min((run for run in runs if run is not None), default=None),
        newest_good=_point(good, is_good=True) if good is not None else None,
        points=tuple(
            _point(backup, is_good=backup.name in good_names) for backup in restorable_points(view, now)[:MOST_POINTS]
        ),
        exempt_until=chosen.exempt_until,
        not_covered=tuple(NotCovered(because.reason.value, because.message) for because in not_covered),
        conditions=(_protected(view, not_covered, good, now),),
    )


def _kept_by(view: NamespaceView) -> str:
    return view.schedules[0].protection_class if view.schedules else ""


def _point(backup: BackupRow, *, is_good: bool) -> PointInTime:
    return PointInTime(backup.name, whole(backup.started), is_good)


def _protected(view: NamespaceView, not_covered: Sequence[Because], good: BackupRow | None, now: datetime) -> Condition:
    chosen = view.chosen
    unknown = doubts(view, now)
    evidence = f"class {chosen.protection_class or _kept_by(view)} has good backups of it" if good is not None else ""
    safety = weighed(view.row.name, not_covered, [doubt.message for doubt in unknown], evidence)
    truth = _TRUTH.get(safety.verdict, "False")
    if not_covered:
        reason, text = not_covered[0].reason.value, not_covered[0].message
    elif chosen.exempt_until is not None:
        truth, reason, text = "False", Reason.EXEMPT.value, f"exempt: {view.row.reason}"
    elif not view.schedules:
        truth = "False"
        reason, text = _in_no_schedule(view)
    elif good is None:
        reason, text = Reason.NO_BACKUP_YET.value, "no good backup of the namespace exists yet"
    elif unknown:
        reason, text = unknown[0].reason.value, unknown[0].message
    else:
        reason, text = Reason.PROTECTED.value, safety.message
    before = view.protection.status.conditions if view.protection is not None else ()
    return dated(before, Condition(PROTECTED, truth, reason, text[:LONGEST_MESSAGE], whole(now)))


def _in_no_schedule(view: NamespaceView) -> tuple[str, str]:
    """Return why no backup is made of a namespace, however good the old ones are."""
    if view.chosen.leaves:
        return Reason.EXCLUDED.value, "it is excluded from backups by a label"
    if view.chosen.protection_class:
        return Reason.NO_BACKUP_YET.value, "its Schedule is being created"
    return Reason.NO_CLASS.value, "it names no class, and no class is the default"


def class_status(view: ClassView, now: datetime) -> ProtectionClassStatus:
    """Return the status of a class."""
    problem = view.problem
    truth: _Truth = "True" if problem is None else "False"
    reason = Reason.READY.value if problem is None else problem.reason.value
    text = _ready_text(view) if problem is None else problem.message
    row = view.row
    new = Condition(READY, truth, reason, text[:LONGEST_MESSAGE], whole(now), row.generation)
    return ProtectionClassStatus(view.namespaces, len(view.schedules), (dated(row.status.conditions, new),))


def _ready_text(view: ClassView) -> str:
    default = view.classes.default
    if view.row.spec.default and default != view.row.name:
        return f"its Schedules run; {default} is the default class, for it comes first by name"
    return "its Schedules run"
