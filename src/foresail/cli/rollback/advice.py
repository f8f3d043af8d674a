"""What to do next about a Rollback, by how it goes."""

from datetime import datetime

from foresail.api.rollback import NamedGroup
from foresail.cli.output.words import moment
from foresail.cli.rollback.rollbacks import Seen
from foresail.rollback.reasons import Reason

_AGAIN = "create another Rollback"
_ADMINISTRATOR = "ask a cluster administrator"

_REFUSED: dict[str, str] = {
    Reason.DISABLED: f"{_ADMINISTRATOR} to set spec.rollback.enabled in the SelfServicePolicy of the namespace",
    Reason.REQUESTER_UNKNOWN: "create it as yourself, with foresail rollback create or kubectl; "
    f"if you did, {_ADMINISTRATOR} whether Foresail's admission policies are installed",
    Reason.RESTORED_FROM_BACKUP: f"{_AGAIN} if you want one; this one can be deleted",
    Reason.EXPIRED: f"{_AGAIN}; foresail backup explain -n {{namespace}} shows what its safety backup waited for",
    Reason.IN_THE_WAY: f"do what the message says, then {_AGAIN}",
    Reason.PLAN_CHANGED: f"look at what it would do now with --dry-run, then {_AGAIN}",
    Reason.BACKUP_UNUSABLE: "choose a Completed one: foresail backup get -n {namespace}",
    Reason.SAFETY_BACKUP_FAILED: f"see why: foresail backup describe {{safety}} -n {{namespace}}. Then {_AGAIN}",
    Reason.ROLLED_BACK_NOTHING: f"{_AGAIN} if you still want one",
}
"""Why a Rollback has changed nothing, and what to do about it."""


_BY_REASON: dict[str, str] = {
    Reason.FAILED: f"do what the message says, then {_AGAIN}",
    Reason.UNDO_WAITS: "remove the cause that the message names; the operator tries again by itself",
    Reason.WAITING: "wait; see the other one with foresail rollback get -n {namespace}",
}
_BY_PHASE = {
    "Planned": "it was a dry run, and can be deleted: kubectl delete rollback {name} -n {namespace}",
    "Undone": "there is nothing to do",
    "Undoing": "wait; see its steps with foresail rollback describe {name} -n {namespace}",
}
_RUNS = "wait, or take it back: foresail rollback undo {name} -n {namespace}"


def next_step(seen: Seen, at: datetime) -> str:
    """Return what can be done about a Rollback now."""
    phase = seen.status.phase
    if phase == "Completed":
        return _completed(seen, at)
    if phase == "Refused":
        text = _REFUSED.get(seen.reason, f"do what the message says, or {_ADMINISTRATOR}")
    else:
        text = _BY_REASON.get(seen.reason) or _BY_PHASE.get(phase, _RUNS)
    return text.format(name=seen.key.name, namespace=seen.key.namespace, safety=seen.status.safety_backup)


def lost_by_undo(seen: Seen) -> str:
    """Return what an undo takes away for good, by name."""
    status = seen.status
    created = status.plan.created if status.plan is not None else NamedGroup()
    rest = created.count - len(created.names)
    names = ", ".join((*created.names, *((f"{rest} more",) if rest else ())))
    claims = ", ".join(volume.claim for volume in status.volumes)
    volumes = f", what was written since to the volumes of {claims}" if claims else ""
    objects = f", and what the rollback has created: {names}" if names else ""
    return f"What was changed since is lost{volumes}{objects}. To keep it, take a backup first."


def _completed(seen: Seen, at: datetime) -> str:
    status = seen.status
    if status.undo_until is not None and at <= status.undo_until:
        until = moment(status.undo_until, at)
        compare = ""
        if seen.reason == Reason.NOT_COMPARED:
            compare = f"compare it: foresail backup diff {seen.spec.to} -n {seen.key.namespace}. Or "
        return f"{compare}undo it until {until} with foresail rollback undo {seen.key.name} -n {seen.key.namespace}"
    restore = f"foresail restore create --from-backup {status.safety_backup} --existing-resource-policy update"
    return f"it can no longer be undone; what was before is in its safety backup: {restore} -n {seen.key.namespace}"
