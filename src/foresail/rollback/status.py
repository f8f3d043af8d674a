"""How a Rollback is reported: its phase, its steps with their times, its condition, and the Plan that writes them."""

from collections.abc import Iterable
from datetime import datetime
from typing import Literal

import msgspec

from foresail.api.instants import whole
from foresail.api.requests import Condition
from foresail.api.rollback import ENDED, ROLLBACK, RollbackPhase, RollbackStatus, RollbackStep
from foresail.plan import Action, Level, Patch, Plan, Subject
from foresail.reporting import Because, dated, merge_patch, note
from foresail.rollback.reasons import Reason
from foresail.rollback.view import RollbackRow

SUCCEEDED, COMPARED = "Succeeded", "Compared"
LONGEST = 1024
"""Characters of a message."""

MOST_STEPS = 64
Truth = Literal["True", "False", "Unknown"]


def subject_of(row: RollbackRow) -> Subject:
    """Return the Rollback, for Events."""
    return Subject(ROLLBACK, row.key, row.uid)


def moved(status: RollbackStatus, phase: RollbackPhase, now: datetime, message: str = "") -> RollbackStatus:
    """Return the status in its next phase: the running step ends with this message, and the next one begins."""
    steps = finished(status.steps, now, message)
    if phase not in ENDED:
        steps = (*steps, RollbackStep(phase, whole(now)))[-MOST_STEPS:]
    return msgspec.structs.replace(status, phase=phase, steps=steps)


def finished(steps: tuple[RollbackStep, ...], now: datetime, message: str) -> tuple[RollbackStep, ...]:
    """Return the steps with the last one ended."""
    if not steps or steps[-1].finished is not None:
        return steps
    last = steps[-1]
    told = message[:LONGEST] or last.message
    return (*steps[:-1], msgspec.structs.replace(last, finished=whole(now), message=told))


def waiting(status: RollbackStatus, message: str) -> RollbackStatus:
    """Return the status with what the running step waits for."""
    if not status.steps or status.steps[-1].message == message[:LONGEST]:
        return status
    last = msgspec.structs.replace(status.steps[-1], message=message[:LONGEST])
    return msgspec.structs.replace(status, steps=(*status.steps[:-1], last))


def since(status: RollbackStatus, now: datetime) -> datetime:
    """Return when the running step began."""
    return status.steps[-1].started if status.steps else now


def condition(status: RollbackStatus, kind: str) -> Condition | None:
    """Return the condition of a type."""
    return next((condition for condition in status.conditions if condition.type == kind), None)


def with_condition(
    row: RollbackRow, status: RollbackStatus, kind: str, truth: Truth, because: Because, now: datetime
) -> RollbackStatus:
    """Return the status with this condition in its place."""
    message = because.message[:LONGEST]
    new = Condition(kind, truth, because.reason.value, message, whole(now), row.generation)
    others = tuple(condition for condition in status.conditions if condition.type != kind)
    return msgspec.structs.replace(status, conditions=(*others, dated(status.conditions, new)))


def report(
    row: RollbackRow,
    status: RollbackStatus,
    now: datetime,
    truth: Truth = "Unknown",
    because: Because | None = None,
    *,
    actions: Iterable[Action] = (),
    wake_at: datetime | None = None,
) -> Plan:
    """Return the Plan that does this and writes the status, with an Event if the condition has another reason."""
    before = condition(row.status, SUCCEEDED)
    why = because or Because(Reason.IN_PROGRESS, f"{status.phase}", Level.NORMAL)
    after = with_condition(row, status, SUCCEEDED, truth, why, now)
    after = msgspec.structs.replace(after, observed_generation=row.generation, requester=row.requester[:LONGEST])
    body = merge_patch(msgspec.to_builtins(row.status), msgspec.to_builtins(after))
    patch = Patch(ROLLBACK, row.key, {"status": body}, row.version, "status") if body else None
    is_news = before is None or before.reason != why.reason.value
    subject = subject_of(row)
    notes = (note(subject, why),) if is_news and because is not None else ()
    return Plan(tuple(actions), status=patch, notes=notes, wake_at=wake_at, subject=subject)
