"""What to do about a Rollback now: refuse it, begin it, do its next step, or undo it."""

from collections.abc import Callable
from datetime import datetime

import msgspec

from foresail.api.marks import ROLLBACK_FINALIZER
from foresail.api.rollback import ENDED
from foresail.plan import Level, Plan
from foresail.reporting import Because
from foresail.rollback import build, replace, rules, steps
from foresail.rollback.reasons import Reason
from foresail.rollback.status import moved, report, subject_of
from foresail.rollback.steps import POLL, Step
from foresail.rollback.undo import undoing
from foresail.rollback.view import Findings, RollbackView

STEPS: dict[str, Callable[[Step], Plan]] = {
    "Planning": steps.planning,
    "SafetyBackup": steps.safety_backup,
    "Suspending": steps.suspending,
    "Stopping": replace.stopping,
    "Replacing": replace.replacing,
    "Restoring": steps.restoring,
    "Pruning": steps.pruning,
    "Comparing": steps.comparing,
    "Resuming": steps.resuming,
    "Undoing": undoing,
}

STILL = frozenset({"Stopping", "Replacing", "Restoring", "Pruning", "Comparing"})
"""The phases in which whatever begins to change objects back is suspended, again if it must be."""


def decide(view: RollbackView, now: datetime) -> Plan:
    """Return the Plan for a Rollback."""
    row = view.row
    if view.namespace is None or view.namespace.is_terminating:
        return _let_go(view)  # everything in it goes, and nothing may keep it
    if row.status.phase == "New":
        return begin(view, now)
    if row.status.phase in ENDED:
        return rest(view, now)
    findings = _current(view, now)
    if isinstance(findings, Plan):
        return findings
    step = Step(view, findings, now)
    still = steps.hold_still(step, is_strict=False) if row.status.phase in STILL else None
    return _called_off(step) or still or STEPS[row.status.phase](step)


def _called_off(step: Step) -> Plan | None:
    """Return the Plan that ends a Rollback that is no longer wanted, or is switched off before it restores anything."""
    if rules.is_to_be_undone(step.row) and step.status.phase != "Undoing":
        text = "The undo was asked for before anything was changed"
        return _back(step, Because(Reason.ROLLED_BACK_NOTHING, text, Level.NORMAL), "")
    disabled = rules.disabled_by(step.view) if rules.restores_nothing_yet(step.row, step.findings) else ""
    return _back(step, Because(Reason.DISABLED, disabled), disabled) if disabled else None


def _back(step: Step, because: Because, failure: str) -> Plan:
    """Refuse what has changed nothing, and undo all else."""
    if step.status.phase in ("Planning", "SafetyBackup"):
        return steps.leave_planning(step, steps.refuse(step.row, because, step.now))
    return steps.turn_back(step, failure)


def begin(view: RollbackView, now: datetime) -> Plan:
    """Begin a Rollback, unless it is refused or another one comes first."""
    row = view.row
    if row.is_terminating:
        return _let_go(view)  # whoever creates a Rollback may give it the finalizer
    refused = rules.refusal(view, now)
    if refused is not None:
        return steps.refuse(row, refused, now)
    if view.blocking:
        text = f"Rollback {view.blocking} of this namespace comes first; this one starts when that has ended"
        because = Because(Reason.WAITING, text, Level.NORMAL)
        return report(row, row.status, now, because=because, wake_at=rules.deadline(view))
    return report(row, moved(row.status, "Planning", now), now)


def rest(view: RollbackView, now: datetime) -> Plan:
    """Undo what is complete if that is asked for in time; else nothing keeps the Rollback from being deleted."""
    row = view.row
    if row.status.phase == "Completed" and row.status.undo_until is not None and view.later:
        text = f"Rollback {view.later} came later, so this one can no longer be undone"
        status = msgspec.structs.replace(row.status, undo_until=None)
        return report(row, status, now, "True", Because(Reason.COMPLETED, text, Level.NORMAL))
    if row.status.phase != "Completed" or not row.spec.undo or row.is_terminating:
        return _let_go(view)
    return _undo(view, now)


def _undo(view: RollbackView, now: datetime) -> Plan:
    """Begin the undo that was asked for after the end, if it is not too late, and once nothing else runs."""
    row, until = view.row, view.row.status.undo_until
    if until is None or now > until:
        released = _let_go(view)
        if released.actions:
            return released
        text = f"The undo was asked for too late; restore NonAdminBackup {row.status.safety_backup} instead"
        return report(row, row.status, now, "True", Because(Reason.UNDO_TOO_LATE, text))
    if view.blocking:
        text = f"Rollback {view.blocking} of this namespace runs; the undo starts when that has ended"
        return report(row, row.status, now, "True", Because(Reason.WAITING, text, Level.NORMAL), wake_at=until)
    held = _not_allowed(view, now) or build.held(view, now)
    if held is not None:
        return held
    text = "Undoing, as requested"
    status = msgspec.structs.replace(moved(row.status, "Undoing", now), undo_attempts=0, failure="")
    return report(row, status, now, because=Because(Reason.IN_PROGRESS, text, Level.NORMAL))


def _not_allowed(view: RollbackView, now: datetime) -> Plan | None:
    """Return the Plan that waits until the undo could end, and whoever asked for it may do all of it; None if so."""
    findings = _current(view, now)
    if isinstance(findings, Plan):
        return findings
    refused, blocked = rules.may_not_undo(view.row, findings), rules.cannot_undo(view.row, findings)
    if not refused and not blocked:
        return None
    released = _let_go(view)
    if released.actions:
        return released  # the operator may have died before it was, and an undo that waits needs nothing
    text = f"{view.row.requester} may not {refused}: take spec.undo back, and have somebody set it who may"
    if not refused:
        text = f"The undo does not begin, because it could not end: {blocked}"
    because = Because(Reason.UNDO_WAITS, text)
    return report(view.row, view.row.status, now, "True", because, wake_at=now + 6 * POLL)


def _let_go(view: RollbackView) -> Plan:
    return Plan(build.released(view), subject=subject_of(view.row))


def _current(view: RollbackView, now: datetime) -> Findings | Plan:
    """Return a survey of the namespace as it is now, or the Plan that makes one."""
    held = build.held(view, now) if ROLLBACK_FINALIZER in view.row.finalizers else None
    if held is not None:
        return held
    query = rules.survey_of(view.row)
    read = view.read
    if read is None or read.query != query or read.ended + POLL <= now:
        return Plan(reads=(query,), subject=subject_of(view.row))
    findings = read.answer
    if findings.problem and view.row.status.phase == "Planning" and now >= rules.deadline(view):
        return steps.refuse(
            view.row, Because(Reason.BACKUP_UNUSABLE, f"There is no plan in time: {findings.problem}"), now
        )
    if findings.problem or findings.version != view.row.version:
        return Plan(wake_at=read.ended + POLL, subject=subject_of(view.row))
    return findings
