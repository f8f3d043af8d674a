"""The undo: everything as it was before the Rollback, whatever has failed and whenever it was asked for.

    the restores end or are called off → the old volumes are bound again → the safety backup is restored
    → what the restore created is deleted → resumed

What cannot be done now is tried again. What is suspended or stopped does not wait for that: it is resumed after one
attempt, but for workloads that are still as in the backup.
"""

from datetime import datetime

import msgspec

from foresail.api.instants import whole
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.rollback import RollbackStatus
from foresail.plan import Action, Level, Plan
from foresail.reporting import Because
from foresail.rollback import accounts, build, rules, unlisted, volumes
from foresail.rollback.kinds import ACCOUNT, full_name
from foresail.rollback.plan import owner_of_claim
from foresail.rollback.reasons import Reason
from foresail.rollback.replace import swapping
from foresail.rollback.status import moved, report, since
from foresail.rollback.steps import (
    PATIENCE,
    POLL,
    Step,
    act,
    hold_still,
    insist,
    is_late,
    left_lying,
    resumptions,
    wait,
)
from foresail.rollback.view import RequestSeen, RollbackRow


def undoing(step: Step) -> Plan:
    """Return the next step of the undo."""
    row = step.row
    if _is_touched_after_all(step):
        return report(row, msgspec.structs.replace(row.status, restore_started=_began_to_restore(row)), step.now)
    first = _call_off(step, row.status.claims_restore, step.findings.claims_restore)
    first = first or _call_off(step, row.status.restore, step.findings.restore) or swapping(step)
    if first is not None:
        return first
    if row.status.restore_started is None or row.status.undo_restored or _is_lost(step):
        return _end(step)
    if row.status.retry_at is not None:
        return _try_again(step)
    return _attempt(step) if row.status.undo_attempts else _begin(step)


def _is_touched_after_all(step: Step) -> bool:
    """Whether self-service took up the restore just before it was called off because nobody did."""
    seen = step.findings.restore
    return step.status.restore_started is None and seen is not None and bool(seen.velero_name) and not seen.refusal


def _began_to_restore(row: RollbackRow) -> datetime | None:
    return next((step.started for step in row.status.steps if step.name == "Restoring"), None)


def _is_lost(step: Step) -> bool:
    """Whether objects cannot be changed back: somebody has deleted the safety backup, and Velero restores none."""
    seen = step.findings.undo
    is_restored = seen is not None and seen.velero_phase == rules.COMPLETED
    return step.findings.safety is None and rules.has_ended(seen) and not is_restored and is_late(step)


def _attempt(step: Step) -> Plan:
    """Restore the safety backup; in the first attempt, with what would interfere suspended."""
    row, findings = step.row, step.findings
    held = hold_still(step, is_strict=False) if row.status.undo_attempts == 1 else None
    if held is not None:
        return held
    going = rules.going(row, findings) if findings.undo is None else ""
    if going:
        return _later(step, f"{going} is still being deleted, because of its finalizers")
    if findings.undo is None and row.status.undo_attempts == 1 and is_late(step):
        return _later(step, f"NonAdminRestore {build.undo_name(row, 1)} cannot be created")
    if findings.undo is None:
        return act(step, build.undo(row, row.status.undo_attempts, findings.served))
    return _follow(step, findings.undo)


def _call_off(step: Step, name: str, seen: RequestSeen | None) -> Plan | None:
    """Return the Plan while a restore of the backup has not ended; None once Velero does nothing more for it."""
    row = step.row
    if seen is None or rules.has_ended(seen):
        return None
    if not seen.velero_name and not seen.is_terminating:
        return act(step, build.delete(NON_ADMIN_RESTORE, row.key.namespace, name, seen.uid))
    return wait(step, f"Waiting for the end of NonAdminRestore {name}: Velero cannot stop a restore")


def _begin(step: Step) -> Plan:
    held = hold_still(step, is_strict=False)
    if held is not None:
        return held
    row = step.row
    name = rules.velero_restore(row, step.findings)
    return report(row, msgspec.structs.replace(row.status, undo_attempts=1, velero_restore=name), step.now)


def _try_again(step: Step) -> Plan:
    """Resume what is suspended, and begin the next attempt when it is time."""
    row, now = step.row, step.now
    started = volumes.to_start(row, step.findings, restored=False)
    writes = resumptions(step) or started
    if writes:
        return act(step, *writes)
    running = rules.resumed_by_now(row, step.findings)
    if running != row.status.stopped:  # whoever suspends it from now on is not us
        return _reported(step, msgspec.structs.replace(row.status, stopped=running))
    at = row.status.retry_at
    if at is not None and now < at:
        return Plan(wake_at=min(at, now + 6 * POLL))
    attempts = row.status.undo_attempts + 1
    status = msgspec.structs.replace(row.status, undo_attempts=attempts, retry_at=None, cleaning_since=None)
    return _reported(step, status)


def _reported(step: Step, status: RollbackStatus) -> Plan:
    """Return the Plan that writes a status, and leaves the condition about the undo that waits."""
    before = next((condition for condition in step.status.conditions if condition.type == "Succeeded"), None)
    is_told = before is not None and before.reason == Reason.UNDO_WAITS.value
    because = Because(Reason.UNDO_WAITS, before.message) if before is not None and is_told else None
    return report(step.row, status, step.now, because=because)


def _follow(step: Step, seen: RequestSeen) -> Plan:
    """Wait for the safety backup to be restored, and see whether it was."""
    row, now = step.row, step.now
    failure = rules.has_failed(seen)
    if failure:
        return _later(step, failure)
    lying = left_lying(step, seen) if row.status.undo_attempts == 1 else ""
    if lying:
        name = build.undo_name(row, 1)
        return _later(step, lying, build.delete(NON_ADMIN_RESTORE, row.key.namespace, name, seen.uid))
    if seen.velero_phase != rules.COMPLETED:
        return _waiting(step, f"Waiting for NonAdminRestore {build.undo_name(row, row.status.undo_attempts)}")
    if seen.restored is None and now < since(row.status, now) + PATIENCE:
        return _waiting(step, "Waiting for Velero's list of what it has restored")
    differing = rules.differences(seen) or rules.not_changed_back(row, step.findings, seen)
    return _later(step, differing) if differing else _delete_created(step)


def _waiting(step: Step, message: str) -> Plan:
    return wait(step, message) if step.status.undo_attempts == 1 else Plan(wake_at=step.now + POLL)


def _later(step: Step, failure: str, *actions: Action) -> Plan:
    """Say why the undo waits, and when it is tried again."""
    row, now = step.row, step.now
    at = whole(now + rules.pause(row.status.undo_attempts))
    text = f"Safety backup {row.status.safety_backup} cannot be restored now: {failure}. The operator tries again"
    status = msgspec.structs.replace(row.status, retry_at=at)
    return report(row, status, now, "False", Because(Reason.UNDO_WAITS, text), actions=actions)


def _delete_created(step: Step) -> Plan:
    """Delete what the restore has created, if the requester may."""
    row, findings = step.row, step.findings
    created = rules.created_by_restore(row, findings)
    owner = owner_of_claim(findings, created, since=row.status.restore_started)
    if owner:
        return _later(step, f"{owner}, which would be deleted with it")
    refused = rules.denied(findings, "delete", (listed.resource for listed in created))
    if refused:
        return _later(step, f"the requester may not delete {refused}, and the restore has created some")
    if created:
        return _clean_up(step, *build.deletions(created, row.key.namespace))
    return _take_back(step) or _delete_unread(step)


def _clean_up(step: Step, *writes: Action) -> Plan:
    """Take away what the restore has left; whatever is suspended does not wait for what cannot be written."""
    row, now = step.row, step.now
    begun = row.status.cleaning_since
    if begun is None:
        return report(row, msgspec.structs.replace(row.status, cleaning_since=whole(now)), now)
    if now >= begun + PATIENCE:
        return _later(step, f"{writes[0].kind.name} {writes[0].key} cannot be written")
    return act(step, *writes)


def _take_back(step: Step) -> Plan | None:
    """Take away what the restore has added to ServiceAccounts, if the requester may; None if there is nothing."""
    row, findings = step.row, step.findings
    writes = tuple(accounts.to_take_back(row.status.accounts, findings.accounts, row.key.namespace))
    if writes and rules.denied(findings, "patch", (full_name(ACCOUNT),)):
        return _later(step, f"the requester may not patch {full_name(ACCOUNT)}, and the restore has added to some")
    return _clean_up(step, *writes) if writes else None


def _delete_unread(step: Step) -> Plan:
    """Delete what the restore has created of kinds that are not listed; what stays is told."""
    row, findings, now = step.row, step.findings, step.now
    restore = rules.velero_restore(row, findings)
    kinds = unlisted.to_delete(findings) if restore else ()
    stay = unlisted.not_deletable(findings) if restore else ()
    done = msgspec.structs.replace(row.status, undo_restored=True, not_deleted=stay)
    if not kinds:
        return report(row, done, now)
    if row.status.cleaning_since is None:
        return report(row, msgspec.structs.replace(row.status, cleaning_since=whole(now)), now)
    waited = now - row.status.cleaning_since
    if waited >= PATIENCE:
        status = msgspec.structs.replace(done, not_deleted=(*stay, *map(full_name, kinds)))
        return report(row, status, now)
    first = int(waited / POLL) % len(kinds)  # a refused one keeps back those after it
    turns = (*kinds[first:], *kinds[:first])
    return report(row, done, now, actions=unlisted.deletions(turns, row.key.namespace, restore))


def _end(step: Step) -> Plan:
    """Resume everything, and say how it ended."""
    row, now = step.row, step.now
    findings = step.findings
    writes = volumes.to_release(row, findings) or volumes.to_start(row, findings) or resumptions(step)
    if writes:
        return insist(step, *writes)
    status = moved(row.status, "Undone", now, f"{len(row.status.stopped)} resumed")
    status = msgspec.structs.replace(status, stopped=rules.all_resumed(row), undo_until=None, retry_at=None)
    except_for = _except_for(row)
    if row.status.restore_started is not None and not row.status.undo_restored:
        text = f"{row.status.failure or 'An undo was asked for'}. Safety backup {row.status.safety_backup} is gone"
        why = Because(Reason.FAILED, f"{text}, so objects stay as the restore left them; old volumes are bound again")
        return report(row, status, now, "False", why)
    if row.status.failure:
        text = f"{row.status.failure}. Everything is as it was before{except_for}"
        return report(row, status, now, "False", Because(Reason.FAILED, text))
    text = f"The Rollback is undone: everything is as it was before{except_for}"
    return report(row, status, now, "False", Because(Reason.UNDONE, text, Level.NORMAL))


def _except_for(row: RollbackRow) -> str:
    """Return what the restore has created that stays, and how to delete it; empty if nothing does."""
    if not row.status.not_deleted:
        return ""
    command = unlisted.command(row.status.not_deleted, row.key.namespace, row.status.velero_restore)
    return f", except for what the restore has created and Foresail may not delete: {command}"
