"""One small function for each question about a Rollback."""

import re
from collections.abc import Collection, Iterable
from datetime import datetime, timedelta

import msgspec

from foresail.api.marks import ROLLBACK_FINALIZER
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.rollback import ENDED, MOST_STOPPED, Stopped
from foresail.cron.duration import length_of
from foresail.reporting import Because
from foresail.rollback import accounts, build, volumes
from foresail.rollback.kinds import CLAIMS, LISTED, full_name
from foresail.rollback.plan import stopped
from foresail.rollback.reasons import Reason
from foresail.rollback.status import COMPARED, condition
from foresail.rollback.unlisted import words_of
from foresail.rollback.view import (
    Findings,
    Listed,
    RequestSeen,
    RollbackRow,
    RollbackView,
    Survey,
    Suspendable,
    Unlisted,
)
from foresail.tenancy.requester import is_system_account

COMPLETED = "Completed"
FAILED = frozenset({"Failed", "PartiallyFailed", "FailedValidation", "Deleting"})
"""Phases of Velero's objects that are no success."""

_AN_HOUR, _A_DAY = timedelta(hours=1), timedelta(days=1)
_LONGEST_PAUSE = timedelta(minutes=30)


def survey_of(row: RollbackRow) -> Survey:
    """Return what to read for the step that runs."""
    status = row.status
    is_planned = status.phase == "Planning"
    is_undone, is_asked = status.phase == "Undoing", status.phase == "Completed"
    is_to_be_restored = status.phase == "Restoring" and not status.velero_restore
    return Survey(
        key=row.key,
        version=row.version,
        user=row.requester,
        groups=row.groups,
        to=row.spec.to if status.phase in _BEFORE_RESTORES else "",
        safety=status.safety_backup,
        restore=status.restore,
        undo=build.undo_name(row, status.undo_attempts) if status.undo_attempts else "",
        download=build.list_name(row) if is_planned else "",
        lists=is_planned or is_undone or is_to_be_restored or status.phase in ("Pruning", "Comparing"),
        prunes=row.spec.prune or is_undone or is_asked,
        claims_restore=status.claims_restore,
        storage=row.spec.volumes != "None" and (is_asked or status.phase in _WITH_STORAGE),
        kept=tuple(volume.volume for volume in status.volumes),
        accounts=accounts.are_read(status.phase, row.spec),
        unlisted=words_of(status),
        changes=is_planned or is_asked or is_to_be_restored,
    )


_BEFORE_RESTORES = frozenset({"Planning", "Suspending", "Stopping", "Replacing", "Restoring"})
"""The phases in which the backup is looked at: another one may have its name by now."""

_WITH_STORAGE = frozenset({"Planning", "Stopping", "Replacing", "Resuming", "Undoing"})
"""The phases in which claims and what uses them are looked at."""


# Whether it may begin


def refusal(view: RollbackView, now: datetime) -> Because | None:
    """Return why a new Rollback is refused; None if it begins, or waits."""
    row = view.row
    unknown = _requester_unknown(view)
    if unknown is not None:
        return unknown
    disabled = disabled_by(view)
    if disabled:
        return Because(Reason.DISABLED, disabled)
    if row.spec.undo:
        return Because(Reason.ROLLED_BACK_NOTHING, "The undo was asked for before the Rollback had begun")
    if now >= deadline(view):
        return Because(Reason.EXPIRED, "It did not begin in time, so it does not run; create another Rollback")
    return None


def disabled_by(view: RollbackView) -> str:
    """Return why the policy or the chart does not allow a Rollback like this; empty if they do."""
    if view.policy is None or not view.policy.spec.rollback.enabled:
        return "No SelfServicePolicy of this namespace has rollback.enabled; ask a cluster administrator"
    if not view.policy.chart.update_existing:
        return "selfService.updateExisting of the chart is false, so nothing that exists is changed"
    if view.row.spec.volumes != "None" and (not view.may_replace or view.policy.spec.rollback.volumes == "None"):
        return "rollback.volumes of the SelfServicePolicy, or of the chart, allows no volumes; leave out spec.volumes"
    return ""


def _requester_unknown(view: RollbackView) -> Because | None:
    row = view.row
    if row.restored_by:
        text = f"Velero's restore {row.restored_by[:100]} brought this Rollback back; create another one"
        return Because(Reason.RESTORED_FROM_BACKUP, text)
    if not row.requester:
        text = "The Rollback has no recorded requester; ask a cluster administrator for the admission policies"
        return Because(Reason.REQUESTER_UNKNOWN, text)
    if is_system_account(row.requester, view.reserved):
        text = f"{row.requester} is a system account, so its permissions do not count; create the Rollback as yourself"
        return Because(Reason.REQUESTER_UNKNOWN, text)
    return None


def restores_nothing_yet(row: RollbackRow, findings: Findings) -> bool:
    """Whether a Rollback that is switched off has nothing to finish: no restore has been asked for."""
    status = row.status
    is_asked = status.velero_restore or status.velero_claims_restore or findings.restore or findings.claims_restore
    return status.phase in _BEFORE_RESTORES | {"SafetyBackup"} and not is_asked


def deadline(view: RollbackView) -> datetime:
    """Return until when a Rollback must have its safety backup: it acts when it was asked for, or not at all."""
    return view.row.created + starting_deadline(view)


def starting_deadline(view: RollbackView) -> timedelta:
    """Return how long self-service lets a request wait before it ends it."""
    length = length_of(view.policy.spec.restore.starting_deadline) if view.policy is not None else None
    return _AN_HOUR if length is None else length


def is_in_progress(row: RollbackRow) -> bool:
    """Whether a Rollback has begun and not ended."""
    return row.status.phase != "New" and row.status.phase not in ENDED


def blocking(row: RollbackRow, others: Iterable[RollbackRow]) -> str:
    """Return the name of another Rollback of the namespace that comes first; empty if there is none."""
    rivals = [other for other in others if other.key != row.key]
    running = [rival.key.name for rival in rivals if is_in_progress(rival)]
    older = [
        rival.key.name
        for rival in rivals
        if rival.status.phase == "New"
        and not rival.is_terminating
        and (rival.created, rival.key.name) < (row.created, row.key.name)
    ]
    return min(running, default="") or min(older, default="")


def later(row: RollbackRow, others: Iterable[RollbackRow]) -> str:
    """Return the name of a Rollback that changed the namespace after this one; empty if there is none."""
    begun = row.status.restore_started
    if begun is None:
        return ""
    after = [other for other in others if other.key != row.key and other.status.restore_started is not None]
    return min((other.key.name for other in after if (other.status.restore_started or begun) > begun), default="")


def is_to_be_undone(row: RollbackRow) -> bool:
    """Whether an undo was asked for, or the Rollback is being deleted."""
    return row.spec.undo or (row.is_terminating and ROLLBACK_FINALIZER in row.finalizers)


def kept_until(view: RollbackView, expires: datetime | None, now: datetime) -> datetime:
    """Return until when a Rollback that ends now can be undone."""
    most = length_of(view.policy.spec.rollback.keep_old_volumes) if view.policy is not None else None
    most = _A_DAY if most is None else most
    asked = length_of(view.row.spec.keep_old_volumes or "")
    until = now + (most if asked is None else min(asked, most))
    return until if expires is None else min(until, expires)


# What is suspended


def unrecorded(row: RollbackRow, findings: Findings) -> tuple[Suspendable, ...]:
    """Return what is active and not recorded as to be resumed."""
    known = {record.uid for record in row.status.stopped if not record.resumed}
    return tuple(
        suspendable
        for suspendable in findings.suspendables
        if not suspendable.is_suspended and suspendable.uid not in known
    )


def recorded(row: RollbackRow, new: Iterable[Suspendable]) -> tuple[Stopped, ...]:
    """Return what is recorded, with something more."""
    more = tuple(map(stopped, new))
    uids = {record.uid for record in more}
    return (*left_of(row, uids), *more)


def left_of(row: RollbackRow, uids: Collection[str]) -> tuple[Stopped, ...]:
    """Return what is recorded of other objects; if that is much, only of what is still to be resumed."""
    others = tuple(record for record in row.status.stopped if record.uid not in uids)
    is_much = len(others) + len(uids) > MOST_STOPPED
    return tuple(record for record in others if not record.resumed) if is_much else others


def to_suspend(row: RollbackRow, findings: Findings) -> tuple[Suspendable, ...]:
    """Return what is recorded and active: it is suspended now, or once more."""
    known = {record.uid for record in row.status.stopped if not record.resumed}
    return tuple(
        suspendable
        for suspendable in findings.suspendables
        if not suspendable.is_suspended and suspendable.uid in known
    )


def to_resume(row: RollbackRow, findings: Findings) -> tuple[tuple[Suspendable, Stopped], ...]:
    """Return what is recorded and still suspended; whatever somebody else has changed since is left alone."""
    by_uid = {suspendable.uid: suspendable for suspendable in findings.suspendables if suspendable.is_suspended}
    waiting = [record for record in row.status.stopped if not record.resumed]
    return tuple((by_uid[record.uid], record) for record in waiting if record.uid in by_uid)


def resumed_by_now(row: RollbackRow, findings: Findings) -> tuple[Stopped, ...]:
    """Return what is recorded, and as resumed what is not suspended any more."""
    active = {suspendable.uid for suspendable in findings.suspendables if not suspendable.is_suspended}
    return tuple(
        msgspec.structs.replace(record, resumed=record.resumed or record.uid in active) for record in row.status.stopped
    )


def all_resumed(row: RollbackRow) -> tuple[Stopped, ...]:
    """Return what is recorded, all of it resumed."""
    return tuple(msgspec.structs.replace(record, resumed=True) for record in row.status.stopped)


def denied(findings: Findings, verb: str, resources: Iterable[str]) -> str:
    """Return the first of these resources for which the requester may not do that; empty if all are allowed."""
    return next((resource for resource in sorted(set(resources)) if (verb, resource) in findings.denied), "")


# What is restored, and deleted

CHANGES = ("create", "update", "patch")
"""What self-service asks of whoever restores objects over those that exist."""


def may_no_longer(row: RollbackRow, findings: Findings) -> str:
    """Return what the requester may not do any more with objects that are to be changed back; empty if nothing."""
    refused = ((verb, denied(findings, verb, _changed_kinds(row))) for verb in CHANGES)
    return next((f"{verb} {kind}" for verb, kind in refused if kind), "")


def _changed_kinds(row: RollbackRow) -> frozenset[str]:
    """Return the listed kinds that come back."""
    plan = row.status.plan
    groups = (plan.created, plan.existing) if plan is not None else ()
    if any(group.count > len(group.names) for group in groups):
        return frozenset(row.spec.only or map(full_name, LISTED))  # not all of them are named
    return frozenset(name.partition("/")[0] for group in groups for name in group.names)


def not_changed_back(row: RollbackRow, findings: Findings, seen: RequestSeen) -> str:
    """Return why a restore of the safety backup has left out what the Rollback has changed; empty if nothing."""
    if not velero_restore(row, findings) or (findings.restore is not None and findings.restore.refusal):
        return ""  # Velero never had the restore, so nothing was changed
    pruned = {record.kind for record in row.status.pruned}
    unlisted = {unlisted.word for unlisted in _changed_unlisted(row, findings)}
    return seen.left_out if _words(seen.left_out) & (_changed_kinds(row) | pruned | unlisted) else ""


def _changed_unlisted(row: RollbackRow, findings: Findings) -> tuple[Unlisted, ...]:
    """Return the kinds that are not listed and that the restore has not left out; none if that is not known."""
    compared = condition(row.status, COMPARED)
    text = findings.restore.left_out if findings.restore is not None else None
    if text is None and compared is not None and compared.status == "True":
        text = compared.message  # the restore may be deleted by now
    if text is None or re.search(r" and \d+ more", text):
        return ()
    return tuple(unlisted for unlisted in findings.unlisted if unlisted.word not in _words(text))


def _words(text: str) -> frozenset[str]:
    return frozenset(re.findall(r"[a-z0-9][a-z0-9.-]*[a-z0-9]", text))


def may_not_undo(row: RollbackRow, findings: Findings) -> str:
    """Return what the requester of an undo may not do of all that it does; empty if nothing."""
    changes = may_no_longer(row, findings) or _may_not_change(row, findings) if _has_changed(row) else ""
    refused = denied(findings, "create", (_RESTORES,))
    if refused or changes:
        return changes or f"create {refused}"
    questions = [("patch", record.kind) for record in row.status.stopped]
    questions += [(verb, CLAIMS) for verb in ("delete", "create") if row.status.claims_restore]
    questions += [("delete", kind) for kind in _created_kinds(row)]
    questions += [("create", record.kind) for record in row.status.pruned]
    return next((f"{verb} {kind}" for verb, kind in questions if (verb, kind) in findings.denied), "")


def _has_changed(row: RollbackRow) -> bool:
    """Whether the restore of objects may have begun."""
    return row.status.restore_started is not None


def _may_not_change(row: RollbackRow, findings: Findings) -> str:
    """Return what the requester may not do with kinds that are not listed, and that the restore did not leave out."""
    refused = (unlisted for unlisted in _changed_unlisted(row, findings) if unlisted.refused)
    return next((f"{unlisted.refused} {unlisted.word}" for unlisted in refused), "")


def has_safety_backup(findings: Findings) -> bool:
    """Whether there is a good backup of the namespace as it was, and not another one of that name."""
    seen = findings.safety
    return seen is not None and not seen.is_terminating and seen.velero_phase == COMPLETED and seen.is_ours


def cannot_undo(row: RollbackRow, findings: Findings) -> str:
    """Return why an undo of what is complete could not end; empty if nothing is known that keeps it from that."""
    if _has_changed(row) and not has_safety_backup(findings):
        return f"safety backup {row.status.safety_backup} is gone"
    return volumes.cannot_swap(row, findings)


_RESTORES = full_name(NON_ADMIN_RESTORE)


def _created_kinds(row: RollbackRow) -> frozenset[str]:
    names = row.status.plan.created.names if row.status.plan is not None else ()
    return frozenset(name.partition("/")[0] for name in names)


def lost(row: RollbackRow, findings: Findings) -> str:
    """Return why there is nothing to restore any more as it was planned, or no way back; empty if there is."""
    to = findings.to
    if to is None or to.uid != row.status.backup_uid or to.is_terminating:
        return f"NonAdminBackup {row.spec.to} is not that of the plan any more"
    if not has_safety_backup(findings):
        return f"safety backup {row.status.safety_backup} is gone"
    return ""


def edited(row: RollbackRow, findings: Findings) -> str:
    """Return an object to be changed back that somebody has changed since the safety backup; empty if there is none.

    The undo would lose that change. Where volumes are replaced, it may take hours, and nothing of that is thrown away.
    """
    began = findings.safety.started if findings.safety is not None else None
    if began is None or row.status.volumes:
        return ""
    kinds = _changed_kinds(row)
    late = (
        listed
        for listed in findings.listed
        if listed.resource in kinds and not listed.is_owned and listed.edited is not None and listed.edited > began
    )
    text = "was changed after the safety backup, so an undo would lose that"
    text += ": create another Rollback, or leave its kind out with spec.only"
    return next((f"{listed.resource}/{listed.name} {text}" for listed in late if _is_planned(row, listed)), "")


def _is_planned(row: RollbackRow, listed: Listed) -> bool:
    plan = row.status.plan
    groups = (plan.created, plan.existing) if plan is not None else ()
    spelled = f"{listed.resource}/{listed.name}"
    return any(spelled in group.names or group.count > len(group.names) for group in groups)


def has_failed(seen: RequestSeen) -> str:
    """Return why a request of ours is no success and never will be; empty if it is, or may still be one."""
    if not seen.is_ours:
        return "an object of that name exists that the Rollback has not made"
    if seen.is_terminating and seen.velero_phase != COMPLETED:
        return "it is being deleted"
    if seen.refusal:
        return seen.refusal
    return f"Velero reports {seen.velero_phase}" if seen.velero_phase in FAILED else ""


def has_ended(seen: RequestSeen | None) -> bool:
    """Whether Velero does nothing more for a request."""
    return seen is None or seen.velero_phase == COMPLETED or bool(has_failed(seen) and not seen.is_terminating)


def differences(seen: RequestSeen) -> str:
    """Return what a restore could not make as the backup has it; empty if it is all."""
    items = seen.restored
    if items is None or not items.failed.count + items.left.count:
        return ""
    names = ", ".join((*items.failed.names, *items.left.names))
    return f"{items.failed.count + items.left.count} objects are not as in the backup: {names}"


def stopped_in_backup(row: RollbackRow, findings: Findings) -> str:
    """Return a workload that another Rollback had stopped when the backup was taken; empty if there is none."""
    stopped = (
        listed
        for listed in findings.listed
        if listed.stopped_by not in ("", row.uid) and listed.restored_by == row.status.velero_restore
    )
    text = "is stopped in the backup, which was taken while another Rollback ran: choose another backup"
    return next((f"{listed.resource}/{listed.name} {text}" for listed in stopped), "")


def to_prune(row: RollbackRow, findings: Findings) -> tuple[Listed, ...]:
    """Return what is recorded as to be deleted, and not being deleted yet."""
    uids = {pruned.uid for pruned in row.status.pruned}
    return tuple(listed for listed in findings.listed if listed.uid in uids and not listed.is_terminating)


def going(row: RollbackRow, findings: Findings) -> str:
    """Return what was deleted and is not gone yet, because of its finalizers; empty if nothing is."""
    uids = {pruned.uid for pruned in row.status.pruned}
    terminating = (listed for listed in findings.listed if listed.uid in uids and listed.is_terminating)
    return next((f"{listed.resource}/{listed.name}" for listed in terminating), "")


def velero_restore(row: RollbackRow, findings: Findings) -> str:
    """Return the name of Velero's Restore of the backup; empty if there is none."""
    return row.status.velero_restore or (findings.restore.velero_name if findings.restore is not None else "")


def created_by_restore(row: RollbackRow, findings: Findings) -> tuple[Listed, ...]:
    """Return what the restore has created: by Velero's label, and younger than the restore."""
    name = velero_restore(row, findings)
    begun = row.status.restore_started
    if not name or begun is None:
        return ()
    return tuple(
        listed
        for listed in findings.listed
        if listed.restored_by == name
        and listed.created is not None
        and listed.created >= begun
        and not listed.is_terminating
    )


def pause(attempts: int) -> timedelta:
    """Return how long to wait after so many attempts to undo."""
    return min(timedelta(minutes=1 << min(attempts - 1, 10)), _LONGEST_PAUSE)
