"""The steps that replace volumes, and the way back: what uses the claims stands still meanwhile.

Suspending → Stopping → Replacing → Restoring, or Resuming if only data comes back
"""

from datetime import timedelta

import msgspec

from foresail.api.rollback import MOST_STOPPED, Stopped
from foresail.plan import Action, Level, Plan
from foresail.reporting import Because
from foresail.rollback import build, rules, volumes
from foresail.rollback.kinds import CLAIMS, STOPPED
from foresail.rollback.reasons import Reason
from foresail.rollback.status import COMPARED, moved, report, with_condition
from foresail.rollback.steps import (
    TOO_MANY,
    Step,
    act,
    attempt,
    begin_restore,
    follow,
    insist,
    is_late,
    turn_back,
    wait,
)

A_DAY = timedelta(days=1)


def stopping(step: Step) -> Plan:
    """Set the old volumes to Retain, stop what uses their claims, and wait until its pods are gone."""
    row, findings = step.row, step.findings
    until = max(rules.kept_until(step.view, None, step.now), step.now + A_DAY)  # if the Rollback vanishes meanwhile
    writes = volumes.to_keep(row, findings, until)
    if isinstance(writes, str):
        return turn_back(step, writes)
    if writes:
        return attempt(step, f"volume {writes[0].key.name} could not be kept", *writes)
    held = hold_stopped(step)
    if held is not None:
        return held
    pod = volumes.in_use(row, findings)
    if pod:
        return wait_patiently(step, f"pod {pod} still uses a claim to be replaced")
    number = sum(record.kind in STOPPED for record in row.status.stopped)
    return report(row, moved(row.status, "Replacing", step.now, f"{number} stopped"), step.now)


def replacing(step: Step) -> Plan:
    """Delete the claims, whose volumes stay, and restore them with their data."""
    held = hold_stopped(step)
    if held is not None:
        return held
    return _deleting(step) if volumes.old_claims(step.row, step.findings) else _filling(step)


def _deleting(step: Step) -> Plan:
    row, findings = step.row, step.findings
    pod = volumes.in_use(row, findings)
    if pod:
        return wait_patiently(step, f"pod {pod} uses a claim to be replaced")
    refused = rules.denied(findings, "delete", (CLAIMS,))
    if refused:
        return turn_back(step, f"the requester may no longer delete {refused}")
    lost = rules.lost(row, findings)
    if lost:
        return turn_back(step, lost)
    deletions = volumes.to_delete(row, findings)
    if deletions:
        return attempt(step, f"claim {deletions[0].key.name} could not be deleted", *deletions)
    left = ", ".join(claim.name for claim in volumes.old_claims(row, findings))
    return wait_patiently(step, f"claim {left} is still being deleted")


def _filling(step: Step) -> Plan:
    """Follow the restore of the claims."""
    row = step.row
    lost = rules.lost(row, step.findings) if not row.status.velero_claims_restore else ""
    if lost:
        return turn_back(step, lost)
    waits = follow(step, step.findings.claims_restore, "velero_claims_restore", build.claims_restore(row))
    if waits is not None:
        return waits
    missing = volumes.not_restored(row, step.findings)
    if missing:
        name = row.status.claims_restore
        return turn_back(step, f"NonAdminRestore {name} has not restored claim {missing} with a new volume")
    return _filled(step)


def _filled(step: Step) -> Plan:
    row, now = step.row, step.now
    text = f"{len(row.status.volumes)} claims replaced"
    if row.spec.volumes != "Data":
        return begin_restore(step, text)
    why = Because(Reason.COMPLETED, text, Level.NORMAL)
    return report(row, moved(with_condition(row, row.status, COMPARED, "True", why, now), "Resuming", now, text), now)


def wait_patiently(step: Step, message: str) -> Plan:
    """Wait for something that may never come; turn back after a while."""
    if is_late(step):
        return turn_back(step, message)
    return wait(step, f"Waiting: {message}")


def hold_stopped(step: Step) -> Plan | None:
    """Return the Plan that records or stops what uses the claims; None if nothing does."""
    row, findings = step.row, step.findings
    users = volumes.users(row, findings)
    refused = rules.denied(findings, "patch", (workload.resource for workload in users))
    if refused:
        return turn_back(step, f"the requester may no longer stop {refused}")
    stopped = _with_users(step)
    if len(stopped) > MOST_STOPPED:
        return turn_back(step, TOO_MANY)
    if stopped != row.status.stopped:
        return report(row, msgspec.structs.replace(row.status, stopped=stopped), step.now)
    if not users:
        return None
    writes = tuple(volumes.stop(row, workload) for workload in users)
    if findings.claims_restore is not None:
        return act(step, *writes)  # data may come back for hours, and somebody scales up meanwhile
    return attempt(step, f"{users[0].resource}/{users[0].name} could not be stopped", *writes)


def _with_users(step: Step) -> tuple[Stopped, ...]:
    """Return what is recorded, with what uses the claims."""
    new = volumes.unrecorded(step.row, step.findings)
    return (*rules.left_of(step.row, {record.uid for record in new}), *new) if new else step.row.status.stopped


# The way back. It needs no permissions of the requester: it takes back what the Rollback did with them, and the
# requester of a later undo had them when that began. So revoked permissions leave nobody without workloads or data.


def swapping(step: Step) -> Plan | None:
    """Return the Plan that binds the old volumes again; None if they are bound."""
    row, findings = step.row, step.findings
    if not row.status.claims_restore:
        return None
    writes = volumes.swap(row, findings)
    return (_unnamed(step) or _stop_again(step) or _swap(step, writes)) if writes else None


def _unnamed(step: Step) -> Plan | None:
    """Return the Plan that records the name of the Velero Restore: only its claims are deleted."""
    row, seen = step.row, step.findings.claims_restore
    if seen is None or not seen.velero_name or row.status.velero_claims_restore:
        return None
    return report(row, msgspec.structs.replace(row.status, velero_claims_restore=seen.velero_name), step.now)


def _stop_again(step: Step) -> Plan | None:
    """Return the Plan that records or stops what uses the claims; None if nothing does."""
    row, findings = step.row, step.findings
    stopped = _with_users(step)
    if len(stopped) > MOST_STOPPED:
        return _wait_for(step, TOO_MANY)
    if stopped != row.status.stopped:
        return report(row, msgspec.structs.replace(row.status, stopped=stopped), step.now)
    writes = tuple(volumes.stop(row, workload) for workload in volumes.users(row, findings))
    return insist(step, *writes) if writes else None


def _swap(step: Step, writes: tuple[Action, ...] | str) -> Plan:
    pod = volumes.in_use(step.row, step.findings)
    if pod:
        return _wait_for(step, f"pod {pod} uses a claim that gets its old volume back")
    return _wait_for(step, writes) if isinstance(writes, str) else insist(step, *writes)


def _wait_for(step: Step, message: str) -> Plan:
    """Wait, and say so in the condition if it takes long."""
    plan = wait(step, f"Waiting: {message}")
    if not is_late(step):
        return plan
    text = f"An old volume cannot be bound now: {message}. The operator tries again"
    because = Because(Reason.UNDO_WAITS, text)
    return report(step.row, step.status, step.now, "False", because, wake_at=plan.wake_at)
