"""The steps of a Rollback that runs: each finds what the one before has left, so a crash is only a delay.

    Planning → SafetyBackup → Suspending → Restoring → Pruning → Comparing → Resuming → Completed

If volumes come back, their steps are between Suspending and Restoring: see `replace`.

Until Suspending nothing of the namespace is changed, so a Rollback that cannot go on is refused. Whatever fails later
is undone. What is changed is in the status before, with what it was.
"""

from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import whole
from foresail.api.nonadmin import NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.api.rollback import MOST_STOPPED, RollbackStatus
from foresail.plan import Action, Create, Level, Plan
from foresail.reporting import Because
from foresail.rollback import accounts, build, rules, volumes
from foresail.rollback.kinds import full_name
from foresail.rollback.plan import Planned, is_of_tenant, make_plan, owner_of_claim
from foresail.rollback.reasons import Reason
from foresail.rollback.status import (
    COMPARED,
    LONGEST,
    SUCCEEDED,
    condition,
    moved,
    report,
    since,
    subject_of,
    waiting,
    with_condition,
)
from foresail.rollback.view import Findings, RequestSeen, RollbackRow, RollbackView

POLL = timedelta(seconds=5)
"""How long after a survey the next one is made, while a step waits."""

PATIENCE = timedelta(minutes=10)
"""How long a step waits for what may never come, such as Velero's list of what it has restored."""

TOO_MANY = f"more than {MOST_STOPPED} objects are to be suspended or stopped"


@dataclass(frozen=True, slots=True)
class Step:
    """A Rollback that runs, with a survey of its namespace."""

    view: RollbackView
    findings: Findings
    now: datetime

    @property
    def row(self) -> RollbackRow:
        """The Rollback."""
        return self.view.row

    @property
    def status(self) -> RollbackStatus:
        """What it has done."""
        return self.view.row.status


def refuse(row: RollbackRow, because: Because, now: datetime, status: RollbackStatus | None = None) -> Plan:
    """End a Rollback that has changed nothing."""
    return report(row, moved(status or row.status, "Refused", now, because.message), now, "False", because)


def turn_back(step: Step, failure: str = "", *, is_untouched: bool = False) -> Plan:
    """Undo what was done, because a step failed or because it was asked for; untouched objects are not restored."""
    status = msgspec.structs.replace(moved(step.status, "Undoing", step.now, failure), failure=failure[:LONGEST])
    if is_untouched:
        status = msgspec.structs.replace(status, restore_started=None)
    text = f"Undoing: {failure}" if failure else "Undoing, as requested"
    return report(step.row, status, step.now, because=Because(Reason.IN_PROGRESS, text, Level.NORMAL))


def wait(step: Step, message: str, actions: tuple[Action, ...] = ()) -> Plan:
    """Do this, and look again; the running step says what it waits for."""
    status = waiting(step.status, message)
    return report(step.row, status, step.now, actions=actions, wake_at=step.now + POLL)


def act(step: Step, *actions: Action) -> Plan:
    """Do this; a new survey then shows what is left."""
    return Plan(actions, wake_at=step.now + POLL, subject=subject_of(step.row))


def is_late(step: Step, patience: timedelta = PATIENCE) -> bool:
    """Whether the running step has taken long, such as when something refuses its writes."""
    return step.now >= since(step.status, step.now) + patience


def attempt(step: Step, failure: str, *actions: Action, patience: timedelta = PATIENCE) -> Plan:
    """Do this; turn back if it could not be done for long."""
    return turn_back(step, failure) if is_late(step, patience) else act(step, *actions)


def insist(step: Step, *actions: Action) -> Plan:
    """Do this again and again; if it could not be done for long, the condition has it first."""
    told = condition(step.status, SUCCEEDED)
    if is_late(step) and (told is None or told.reason != Reason.UNDO_WAITS.value):
        text = f"{actions[0].kind.name} {actions[0].key} cannot be written now. The operator tries again"
        return report(step.row, step.status, step.now, "False", Because(Reason.UNDO_WAITS, text))
    return act(step, *actions)


# Nothing is changed yet


def planning(step: Step) -> Plan:
    """Compare the backup with the namespace, and go on only if nothing is in the way."""
    row, findings, now = step.row, step.findings, step.now
    unusable = _unusable(step)
    if unusable:
        return leave_planning(step, refuse(row, Because(Reason.BACKUP_UNUSABLE, unusable), now))
    contents = findings.contents
    if findings.to is not None and is_of_tenant(findings.to.location):
        contents = {}  # nothing is read from there
    if contents is None:
        return _ask_for_list(step)
    policy = step.view.policy
    if policy is None:
        because = Because(Reason.DISABLED, "The SelfServicePolicy of the namespace is gone")
        return leave_planning(step, refuse(row, because, now))
    return _planned(step, make_plan(row.spec, policy.spec, findings, contents, step.view.keeping))


def _planned(step: Step, planned: Planned) -> Plan:
    """Show the plan, and go on if it may be carried out."""
    row, findings, now = step.row, step.findings, step.now
    backup_uid = findings.to.uid if findings.to is not None else ""
    status = msgspec.structs.replace(row.status, plan=planned.plan, backup_uid=backup_uid)
    if row.spec.dry_run:
        text = "It was a dry run: status.plan has what a Rollback would do"
        plan = report(row, moved(status, "Planned", now), now, "True", Because(Reason.PLANNED, text, Level.NORMAL))
        return leave_planning(step, plan)
    if planned.plan.in_the_way:
        because = Because(Reason.IN_THE_WAY, planned.plan.in_the_way[0])
        return leave_planning(step, refuse(row, because, now, status))
    if row.spec.plan_digest is not None and row.spec.plan_digest != planned.plan.digest:
        text = "The plan is another one than spec.planDigest names; look at status.plan, and create another Rollback"
        return leave_planning(step, refuse(row, Because(Reason.PLAN_CHANGED, text), now, status))
    held = build.held(step.view, now)
    if held is not None:
        return held
    status = msgspec.structs.replace(
        moved(status, "SafetyBackup", now),
        safety_backup=build.safety_name(row),
        pruned=planned.pruned,
        volumes=planned.volumes,
        claims_restore=build.claims_name(row) if planned.has_claims else "",
    )
    return leave_planning(step, report(row, status, now))


def _unusable(step: Step) -> str:
    """Return why the backup cannot be rolled back to; empty if it can."""
    to, download, findings = step.findings.to, step.findings.download, step.findings
    name = step.row.spec.to
    if to is None:
        return f"There is no NonAdminBackup {name} in this namespace"
    if to.velero_phase != rules.COMPLETED:
        return f"NonAdminBackup {name} is {to.velero_phase or 'not taken yet'}, not Completed"
    if download is not None and not download.is_ours:
        return f"NonAdminDownloadRequest {build.list_name(step.row)} exists; delete it and create another Rollback"
    if download is not None and download.problem and not download.has_url:
        return f"The list of NonAdminBackup {name} is not available: {download.problem}"
    if findings.contents is None and step.now >= rules.deadline(step.view):
        return findings.unreadable or f"Velero has not answered with the list of NonAdminBackup {name}"
    return ""


def _ask_for_list(step: Step) -> Plan:
    if step.findings.download is None:
        return act(step, build.list_request(step.row))
    return wait(step, step.findings.unreadable or "Waiting for the list of the backup")


def leave_planning(step: Step, plan: Plan) -> Plan:
    """Delete the request for the list before the status says that the plan is made."""
    download = step.findings.download
    if download is None or not download.is_ours:
        return plan
    name = build.list_name(step.row)
    gone = build.delete(NON_ADMIN_DOWNLOAD_REQUEST, step.row.key.namespace, name, download.uid)
    return msgspec.structs.replace(plan, actions=(*plan.actions, gone))


def safety_backup(step: Step) -> Plan:
    """Back up the namespace as it is: without a good backup of it, nothing is changed."""
    row, seen, now = step.row, step.findings.safety, step.now
    if now >= rules.deadline(step.view):
        text = f"Safety backup {row.status.safety_backup} was not complete in time, so nothing was changed"
        return refuse(row, Because(Reason.SAFETY_BACKUP_FAILED, text), now)
    if seen is None:
        return act(step, build.safety_backup(row))
    failure = rules.has_failed(seen) or seen.left_out
    if failure:
        text = f"Safety backup {row.status.safety_backup}: {failure}. Nothing was changed"
        return refuse(row, Because(Reason.SAFETY_BACKUP_FAILED, text), now)
    if seen.velero_phase != rules.COMPLETED:
        return wait(step, f"Waiting for safety backup {row.status.safety_backup}: {seen.velero_phase or seen.phase}")
    lost = volumes.missing_data(row, seen)
    if lost:
        text = f"Safety backup {row.status.safety_backup}: {lost}. Nothing was changed"
        return refuse(row, Because(Reason.SAFETY_BACKUP_FAILED, text), now)
    done = f"Safety backup {row.status.safety_backup} is complete"
    return report(row, moved(row.status, "Suspending", now, done), now)


# What changes objects back is suspended


def suspending(step: Step) -> Plan:
    """Suspend what would change objects back, each recorded before."""
    row, now = step.row, step.now
    held = hold_still(step, is_strict=True)
    if held is not None:
        return held
    number = len(row.status.stopped)
    text = f"{number} suspended" if number else "Nothing had to be suspended"
    if row.status.claims_restore:
        return report(row, moved(row.status, "Stopping", now, text), now)
    return begin_restore(step, text)


def begin_restore(step: Step, done: str) -> Plan:
    """Go on to the restore of objects, if the requester still may."""
    row, now = step.row, step.now
    lost = rules.lost(row, step.findings)
    if lost:
        return turn_back(step, lost)
    if rules.denied(step.findings, "create", (full_name(NON_ADMIN_RESTORE),)):
        return turn_back(step, _may_not())
    too_many = accounts.too_many(step.findings.accounts)
    if too_many:
        return turn_back(step, too_many)
    status = moved(row.status, "Restoring", now, done)
    status = msgspec.structs.replace(
        status,
        restore=build.restore_name(row),
        restore_started=row.written or whole(now),  # by the clock that dates what the restore creates
        accounts=accounts.records(step.findings.accounts),
    )
    return report(row, status, now)


def _may_not() -> str:
    return "the requester may no longer create NonAdminRestores"


def hold_still(step: Step, *, is_strict: bool) -> Plan | None:
    """Return the Plan that records or suspends what is active; None if nothing is, or it cannot be suspended.

    A tool that resumes itself, or that appears meanwhile, is suspended again. If it must be, and cannot be, the
    Rollback turns back.
    """
    failure, plan = _hold(step)
    return turn_back(step, failure) if failure and is_strict else plan


_GIVES_UP = ("Suspending", "Undoing")
"""The phases in which something that cannot be suspended is no longer waited for after a while."""


def _hold(step: Step) -> tuple[str, Plan | None]:
    """Return what cannot be suspended, and the next write for all else."""
    row, findings = step.row, step.findings
    new, active = rules.unrecorded(row, findings), rules.to_suspend(row, findings)
    refused = rules.denied(findings, "patch", (suspendable.resource for suspendable in (*new, *active)))
    failure = f"the requester may no longer suspend {refused}" if refused else ""
    new, active = (
        tuple(suspendable for suspendable in some if ("patch", suspendable.resource) not in findings.denied)
        for some in (new, active)
    )
    if new:
        stopped = rules.recorded(row, new)
        if len(stopped) > MOST_STOPPED:
            return TOO_MANY, None
        return failure, report(row, msgspec.structs.replace(row.status, stopped=stopped), step.now)
    if active and is_late(step) and row.status.phase in _GIVES_UP:
        return f"{active[0].resource}/{active[0].name} could not be suspended", None
    writes = tuple(build.suspend(suspendable, row.key.namespace) for suspendable in active)
    return failure, act(step, *writes) if writes else None


# The namespace changes


def restoring(step: Step) -> Plan:
    """Restore the backup into what exists, by self-service and so as the requester."""
    row = step.row
    if step.findings.restore is None and not row.status.velero_restore:
        lost, refused = rules.lost(row, step.findings), rules.may_no_longer(row, step.findings)
        failure = lost or (f"the requester may no longer {refused}" if refused else rules.edited(row, step.findings))
        if failure:
            return turn_back(step, failure, is_untouched=not row.status.volumes)
    waits = follow(step, step.findings.restore, "velero_restore", build.restore(row, step.findings.served))
    if waits is not None:
        return waits
    done = f"NonAdminRestore {row.status.restore} is complete"
    return report(row, moved(row.status, "Pruning" if row.status.pruned else "Comparing", step.now, done), step.now)


def follow(step: Step, seen: RequestSeen | None, field: str, create: Create) -> Plan | None:
    """Return the Plan until a restore is complete; the field of the status is for the name of Velero's."""
    row, name = step.row, create.key.name
    recorded = getattr(row.status, field)
    if seen is None and recorded:
        return turn_back(step, f"NonAdminRestore {name} was deleted")
    if seen is None:  # the deletion of claims may have taken half of that time
        return attempt(step, f"NonAdminRestore {name} could not be created", create, patience=2 * PATIENCE)
    lying = left_lying(step, seen)
    failure = rules.has_failed(seen) or lying
    if failure:  # what is refused may have had a name, and Velero never had it
        is_untouched = bool(seen.refusal or lying) and not row.status.volumes
        return turn_back(step, f"NonAdminRestore {name}: {failure}", is_untouched=is_untouched)
    if seen.velero_name and not recorded:
        return report(row, msgspec.structs.replace(row.status, **{field: seen.velero_name}), step.now)
    if seen.velero_phase != rules.COMPLETED:
        return wait(step, f"Waiting for NonAdminRestore {name}: {seen.velero_phase or seen.phase}")
    return None


def left_lying(step: Step, seen: RequestSeen) -> str:
    """Return why a request is waited for no longer: nobody has taken it up, or ended it when its time was over."""
    if seen.velero_name or not is_late(step, rules.starting_deadline(step.view) + 2 * PATIENCE):
        return ""
    return "it was not taken up in time: does self-service run?"


def pruning(step: Step) -> Plan:
    """Delete what is recorded as not in the backup, if the requester may."""
    row, findings = step.row, step.findings
    left = rules.to_prune(row, findings)
    refused = rules.denied(findings, "delete", (listed.resource for listed in left))
    if refused:
        return turn_back(step, f"the requester may no longer delete {refused}")
    owner = owner_of_claim(findings, left)
    if owner:
        return turn_back(step, f"{owner}, which would be deleted with it")
    if left:
        return attempt(step, f"{left[0].name} could not be deleted", *build.deletions(left, row.key.namespace))
    done = f"{len(row.status.pruned)} deleted"
    return report(row, moved(row.status, "Comparing", step.now, done), step.now)


def comparing(step: Step) -> Plan:
    """Turn back if an object could not be made as the backup has it, or if that has no size of its own."""
    row, seen, now = step.row, step.findings.restore, step.now
    stopped = rules.stopped_in_backup(row, step.findings)
    if stopped:
        return turn_back(step, stopped)
    if seen is None or seen.restored is None:
        if now < since(row.status, now) + PATIENCE:
            return wait(step, "Waiting for Velero's list of what it has restored")
        text = "Velero's list of what it has restored could not be read"
        unknown = with_condition(row, row.status, COMPARED, "Unknown", Because(Reason.NOT_COMPARED, text), now)
        return report(row, moved(unknown, "Resuming", now, text), now)
    differing = rules.differences(seen)
    if differing:
        return turn_back(step, differing)
    items = seen.restored
    # Velero also writes an object that differs in the labels of an earlier restore alone, so these may be the same.
    text = f"{items.created.count} created, {items.changed_back.count} written back, {items.unchanged} unchanged"
    text += f". {seen.left_out}" if seen.left_out else ""
    why = Because(Reason.COMPLETED, text, Level.NORMAL)
    return report(row, moved(with_condition(row, row.status, COMPARED, "True", why, now), "Resuming", now, text), now)


def resuming(step: Step) -> Plan:
    """Resume what was suspended; then the Rollback is complete."""
    row, now = step.row, step.now
    lost = volumes.deleted_since(row, step.findings)
    if lost:
        return turn_back(step, f"claim {lost}, which was restored, has been deleted")
    resumed = start(step) or _ready(step) or resume(step)
    if resumed is not None:
        return resumed
    expires = step.findings.safety.expires if step.findings.safety is not None else None
    until = whole(rules.kept_until(step.view, expires, now))
    status = moved(row.status, "Completed", now, f"{len(row.status.stopped)} resumed")
    kept = tuple(msgspec.structs.replace(volume, kept_until=until) for volume in row.status.volumes)
    status = msgspec.structs.replace(status, stopped=rules.all_resumed(row), undo_until=until, volumes=kept)
    marks = volumes.complete(row, step.findings, until)
    compared = condition(row.status, COMPARED)
    if compared is None or compared.status != "True":
        text = "The restore is complete, and it is unknown whether every object is as in the backup"
        return report(row, status, now, "Unknown", Because(Reason.NOT_COMPARED, text), actions=marks)
    text = f"The namespace is as in NonAdminBackup {row.spec.to}: {compared.message}"
    return report(row, status, now, "True", Because(Reason.COMPLETED, text, Level.NORMAL), actions=marks)


def start(step: Step) -> Plan | None:
    """Return the Plan that gives workloads their size back; None if they have it."""
    writes = volumes.to_start(step.row, step.findings)
    return act(step, *writes) if writes else None


def _ready(step: Step) -> Plan | None:
    """Return the Plan that waits until what was stopped is ready; None if it is, or takes long.

    A workload that never gets ready may be so in the backup too, so it does not undo anything.
    """
    name = volumes.unready(step.row, step.findings)
    if not name or step.now >= since(step.row.status, step.now) + PATIENCE:
        return None
    return wait(step, f"Waiting until {name} is ready")


def resume(step: Step) -> Plan | None:
    """Return the Plan that resumes what is still suspended; None if nothing is."""
    writes = resumptions(step)
    return act(step, *writes) if writes else None


def resumptions(step: Step) -> tuple[Action, ...]:
    """Return the writes that resume what is still suspended."""
    waiting_ones = rules.to_resume(step.row, step.findings)
    return tuple(build.resume(seen, record, step.row.key.namespace) for seen, record in waiting_ones)
