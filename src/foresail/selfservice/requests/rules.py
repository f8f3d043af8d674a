"""The rules: ownership of Velero objects, whether a request may proceed, when an absence counts, and the outcome.

Each rule is one small function named after its question; `decide` evaluates them in the order of the flowchart.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.instants import instant, stamp
from foresail.api.nonadmin import Condition
from foresail.plan import Key
from foresail.selfservice.access.rules import requester_problem
from foresail.selfservice.families import RESTORES, Family
from foresail.selfservice.policy.locations import closed, is_administrators, missing, not_restorable, own_location
from foresail.selfservice.policy.quotas import no_policy, over_quota, over_restore_quota
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests import points
from foresail.selfservice.requests.status import (
    ACCEPTED,
    AUTHORIZED,
    BACKING_OFF,
    CREATED,
    FALSE,
    IN_DELETION,
    QUEUED,
    SUCCEEDED,
    UNKNOWN,
)
from foresail.selfservice.requests.view import RequestView, Target
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.rows.requests import LARGEST_SPEC, RequestRow, Status
from foresail.selfservice.rows.velero import DeletionRow, VeleroRow, glimpse, location_of
from foresail.selfservice.specs import annotations
from foresail.selfservice.specs.build import backup_spec, limited, restore_spec
from foresail.selfservice.specs.values import shown
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.records import is_owned, nacuuid

UNSEEN = timedelta(seconds=10)
"""How long a Velero object that an earlier leader created may be missing from the store."""

_FIRST_PAUSE, _LONGEST_PAUSE = timedelta(seconds=30), timedelta(hours=1)
_WAITS = (
    Reason.QUOTA_EXCEEDED,
    Reason.BACKUP_NOT_READY,
    Reason.LOCATION_UNAVAILABLE,
    Reason.RESTORED_FROM_BACKUP,
)


# Ownership


def has_nacuuid(request: RequestRow) -> bool:
    """Whether the name of its Velero object is recorded; any other name there is not ours."""
    return request.status.velero.nacuuid == nacuuid(request)


def own(view: RequestView) -> VeleroRow | None:
    """Return the Velero object of a request; one of that name that is not ours does not count."""
    row = view.velero
    namespace = view.namespace
    if row is None or namespace is None or not is_owned(view.request, namespace, row):
        return None
    return row


def is_in_own_location(view: RequestView) -> bool:
    """Whether a backup that is to be deleted is in a bucket that its tenant can rewrite."""
    return view.location is not None and view.location.owner is not None and own(view) is not None


def came_back(view: RequestView) -> bool:
    """Whether Velero's sync brought back a backup that was deleted by force."""
    condition = view.request.status.condition(IN_DELETION)
    return condition is not None and condition.reason == Reason.FORCE_DELETED and own(view) is not None


def own_deletion(view: RequestView) -> DeletionRow | None:
    """Return our DeleteBackupRequest for a request."""
    row = view.deletion
    return row if row is not None and row.request_uid == view.request.uid else None


def absence_counts_at(request: RequestRow, unobserved_since: datetime | None = None) -> datetime | None:
    """Return from when a missing Velero object counts as absent; None if there never was one."""
    if not has_nacuuid(request):
        return None
    conditions = (request.status.condition(kind) for kind in (ACCEPTED, QUEUED))
    times = [
        since
        for condition in conditions
        if condition is not None and (since := instant(condition.last_transition_time)) is not None
    ]
    if unobserved_since is not None:
        times.append(unobserved_since)  # it may have waited long for its turn
    return max(times) + UNSEEN if times else None


NOT_ADOPTED = "related Velero Backup to be synced from does not exist"
"""The message about a request with the label of an adopted one and without its backup: the existing controller's."""


# Whether it may proceed


def waits(family: Family) -> tuple[Reason, ...]:
    """Return the reasons with which a request is valid: it proceeds by itself once the reason is resolved.

    A new policy would start a backup at any later time, which is no harm; a restore it must not.
    """
    return _WAITS if family is RESTORES else (Reason.NO_POLICY, *_WAITS)


def is_refused(family: Family, phase: str, accepted: Condition | None) -> bool:
    """Whether a request stays blocked until someone changes its spec, or of a backup the policy, by its reason."""
    if accepted is None or accepted.status != FALSE:
        return False
    if accepted.reason in list(Reason):
        return accepted.reason not in waits(family)
    return phase == BACKING_OFF  # a reason that a later operator has added


def waiting_for(family: Family, request: RequestRow) -> str:
    """Return the reason for which a request waits without being wrong; empty if it does not wait."""
    if request.is_being_removed:
        return ""
    for kind, status, reasons in (
        (ACCEPTED, FALSE, waits(family)),
        (QUEUED, FALSE, (Reason.WAITING_FOR_TURN,)),
        (AUTHORIZED, UNKNOWN, (Reason.CHECKING_ACCESS, Reason.NAMESPACE_UNLABELLED)),
        (SUCCEEDED, UNKNOWN, (Reason.WAITING,)),
    ):
        condition = request.status.condition(kind)
        if condition is not None and condition.status == status and condition.reason in reasons:
            return condition.reason
    return ""


def velero_spec(view: RequestView, now: datetime) -> dict[str, Any] | Refused:
    """Return the spec of the Velero object for a request, or why there is none."""
    request = view.request
    policy = view.policy
    held = _held(view)
    if held is not None:
        return held
    if policy is None:
        return no_policy(request.key.namespace)
    try:
        tenant: dict[str, Any] = msgspec.json.decode(request.spec or "{}", type=dict[str, Any])
    except RecursionError:
        return Refused(view.family.invalid, f"spec.{view.family.word}Spec is nested too deeply; flatten it")
    if view.family is RESTORES:
        return _restore_spec(view, tenant, policy, now)
    return _backup_spec(view, tenant, policy, now)


def _backup_spec(
    view: RequestView, tenant: dict[str, Any], policy: PolicyRow, now: datetime
) -> dict[str, Any] | Refused:
    """Return the spec of the Velero Backup, or why there is none."""
    request = view.request
    named = tenant.get("storageLocation")
    own = _own_location(view, named, policy) if isinstance(named, str) and named else None
    absent = missing(named, policy) if isinstance(named, str) and own is None else None
    spec = absent or backup_spec(tenant, request.key.namespace, policy, own.name if own is not None else "")
    if isinstance(spec, Refused):
        return spec
    shut = closed(spec.get("storageLocation", ""), view.locations)
    if has_nacuuid(request):  # it already uses quota, but an own location may have been revoked since
        return shut if shut is not None and own is not None else spec
    expired = sum(expiration <= now for expiration in view.expirations)
    return over_quota(policy, view.stored, view.active, expired) or shut or spec


def _own_location(view: RequestView, name: str, policy: PolicyRow) -> LocationRow | None:
    if is_administrators(name, policy, view.locations):
        return None
    uid = view.namespace.uid if view.namespace is not None else ""
    return own_location(Key(view.request.key.namespace, name), uid, view.locations, view.owners)


def next_expiration(view: RequestView, now: datetime) -> datetime | None:
    """Return when the next backup of the namespace expires and no longer counts; None if none will."""
    return min((expiration for expiration in view.expirations if expiration > now), default=None)


def _restore_spec(
    view: RequestView, tenant: dict[str, Any], policy: PolicyRow, now: datetime
) -> dict[str, Any] | Refused:
    """Return the spec of the Velero Restore, or why there is none."""
    made = _by_policy(view, tenant, policy)
    if isinstance(made, Refused):
        return made
    over = None if has_nacuuid(view.request) else over_restore_quota(policy, view.stored, view.active)
    shut = _unknown_location(view) or not_restorable(view.source_location, policy)
    return _requester_problem(view) or _not_restorable(view, now) or shut or over or made


def _by_policy(view: RequestView, tenant: dict[str, Any], policy: PolicyRow) -> dict[str, Any] | Refused:
    """Return the spec of the Velero Restore that a policy allows, or why there is none."""
    backup = view.source.velero if view.source else None
    acting = acting_policy(view, policy)
    if isinstance(acting, Refused):
        return acting
    request = view.request
    if request.point:
        return _from_protection(view, tenant, acting)
    name = backup.key.name if backup else ""
    made = restore_spec(tenant, request.key.namespace, name, acting, request.target)
    made = made if isinstance(made, Refused) else annotations.removed(made, acting)
    return limited(made, policy) if not isinstance(made, Refused) and view.is_from_own_location else made


def _from_protection(view: RequestView, tenant: dict[str, Any], policy: PolicyRow) -> dict[str, Any] | Refused:
    """Return the spec of a restore from the backup of a ProtectionClass, or why there is none."""
    request = view.request
    too_much = points.asked_too_much(tenant, request, policy)
    if too_much is not None:
        return too_much
    made = restore_spec({**tenant, "backupName": request.point}, request.key.namespace, request.point, policy)
    made = made if isinstance(made, Refused) else annotations.removed(made, policy)
    return made if isinstance(made, Refused) else points.without_pods(made)


def restore_spec_today(view: RequestView) -> dict[str, Any] | Refused:
    """Return what the policy of today makes of a restore that Velero already has, or why there is nothing."""
    policy = view.policy
    if policy is None:
        return no_policy(view.request.key.namespace)
    try:
        tenant: dict[str, Any] = msgspec.json.decode(view.request.spec or "{}", type=dict[str, Any])
    except RecursionError:  # edited since: with that depth it is not accepted
        return Refused(view.family.invalid, "spec.restoreSpec is nested too deeply; create a new one")
    made = _by_policy(view, tenant, policy)
    if isinstance(made, Refused):
        return made
    taken = points.taken_back(view) if view.request.point else None
    return taken or not_restorable(view.source_location, policy) or made


def _unknown_location(view: RequestView) -> Refused | None:
    """Say that a restore waits until it is known whose its location is; None if it is, or Velero has named none yet.

    Velero names the location of every backup that it has ended, and we name each location of a tenant.
    """
    backup = view.source.velero if view.source is not None else None
    if backup is None or view.source_location is not None or not location_of(backup) or view.request.point:
        return None
    text = f"The storage location of NonAdminBackup {shown(view.request.source)} does not exist or cannot be read"
    again = "the restore starts automatically when it can be used"
    return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}; {again}. If this persists, ask a cluster administrator")


def _held(view: RequestView) -> Refused | None:
    """Say why nothing is made for a request, whatever its spec asks for; None if something may be."""
    if view.request.restored_by:
        return _brought_back(view)
    if view.request.adopted:
        return Refused(view.family.not_found, NOT_ADOPTED)
    return _oversized(view.family) if view.request.is_oversized else None


def _oversized(family: Family) -> Refused:
    text = f"spec.{family.word}Spec is larger than {LARGEST_SPEC // 1024} KiB of JSON; shorten it or split it"
    return Refused(family.invalid, text)


def _brought_back(view: RequestView) -> Refused:
    """Block a request that a Velero Restore created: it ran before, and no one requested it again."""
    key = view.request.key
    kind = view.family.kind.name
    ask = f"kubectl label {kind.lower()} {key.name} --namespace {key.namespace} {velero.RESTORE_NAME_LABEL}-"
    text = f"Velero Restore {view.request.restored_by} restored this {kind}, so it does not run again"
    return Refused(Reason.RESTORED_FROM_BACKUP, f"{text}. To run it: {ask}")


def _requester_problem(view: RequestView) -> Refused | None:
    """Report why a restore has no requester to authorize; None if it has one, or needs none."""
    if view.policy is None or not view.is_by_requester:
        return None
    reserved = view.access.reserved if view.access is not None else frozenset({view.velero_namespace})
    return requester_problem(view.request.requester, reserved)


def _not_restorable(view: RequestView, now: datetime) -> Refused | None:
    """Report why the backup of a restore cannot be restored; None if it can."""
    if view.request.point:
        return points.not_restorable(view, now)
    name = view.request.source
    source = view.source
    if source is None or source.request is None or view.namespace is None:
        where = f"NonAdminBackup {shown(name)} does not exist in namespace {view.request.key.namespace}"
        return Refused(Reason.BACKUP_NOT_READY, f"{where}; the restore starts when that backup exists and has finished")
    backup = source.request
    row = source.velero
    if is_being_deleted(backup):
        return _invalid(f"NonAdminBackup {name} is being deleted")
    if row is not None and not is_owned(backup, view.namespace, row):
        return _invalid(f"NonAdminBackup {name} has no Velero Backup of its own")
    return _not_ready(backup, row) or _expired(backup, row, now)


def _expired(backup: RequestRow, row: VeleroRow | None, now: datetime) -> Refused | None:
    """Report that a backup has expired: Velero may delete its data at any moment, even during a restore."""
    if row is None or row.expires is None or row.expires > now:
        return None
    text = f"NonAdminBackup {backup.key.name} expired at {stamp(row.expires)}; restore from another backup"
    return Refused(Reason.BACKUP_EXPIRED, text)


def is_being_deleted(backup: RequestRow) -> bool:
    """Whether a backup is being deleted; a protected one can still be restored."""
    condition = backup.status.condition(IN_DELETION)
    is_protected = condition is not None and condition.reason == Reason.DELETION_PROTECTED
    return backup.is_terminating or ((backup.is_to_be_deleted or backup.is_to_be_forced) and not is_protected)


def _not_ready(backup: RequestRow, row: VeleroRow | None) -> Refused | None:
    """Report why there is nothing to restore, now or ever."""
    name = backup.key.name
    text = "NonAdminBackup is not ready to be restored"
    if row is not None and row.phase in velero.RESTORABLE:
        return None
    if row is None and backup.status.phase == CREATED:
        return _invalid(f"{text}: the Velero Backup of {name} does not exist")
    if row is not None and row.is_terminal:
        return _invalid(f"{text}: {name} is {row.phase}; create a new backup")
    state = "not backed up yet" if row is None else row.phase or "New"
    return Refused(Reason.BACKUP_NOT_READY, f"{text}: {name} is {state}; the restore starts when it finishes")


def _invalid(text: str) -> Refused:
    return Refused(Reason.INVALID_RESTORE_SPEC, f"NonAdminRestore spec.restoreSpec.backupName is invalid: {text}")


# Outcome


def why_deleted(view: RequestView) -> str:
    """Return why a Created request has no Velero object."""
    kind = view.family.kind.name
    word = view.family.word
    again = f"Please create a new {kind} to initiate a new {word}"
    if not has_nacuuid(view.request):
        made = f"Another controller created the Velero {word.capitalize()} of this {kind}"
        if view.family is RESTORES:
            return f"{made}, so Foresail leaves it alone. {again}"
        adopt = f"foresail backup adopt {view.request.key.name} -n {view.request.key.namespace}"
        return f"{made}; to restore from it, ask a cluster administrator to run: {adopt}"
    return f"{kind} is finalized and its associated Velero {word.capitalize()} has been removed. {again}"


def was_missing(status: Status, family: Family) -> bool:
    """Whether a status reports that Velero's object was deleted."""
    accepted = status.condition(ACCEPTED)
    return accepted is not None and accepted.reason == family.not_found


def expires_at(request: RequestRow) -> datetime | None:
    """Return when the backup of a request expires; None if Velero has not reported it."""
    return glimpse(request.status.velero.mirror).expiration


# Deletion


def next_attempt_at(row: DeletionRow) -> datetime:
    """Return when to ask Velero again to delete a Backup: after half a minute, later each time, an hour at most."""
    pause: timedelta = _FIRST_PAUSE * 2 ** min(row.attempt - 1, 10)
    return row.created + min(pause, _LONGEST_PAUSE)


def deletion_failed(row: DeletionRow) -> str:
    """Return why Velero did not delete a Backup, and when the operator retries."""
    why = "; ".join(row.errors) or "no reason given"
    return f"Velero did not delete the backup: {why}. Next attempt at {stamp(next_attempt_at(row))}"


NOT_BEGUN = (
    "Velero has not begun to delete the backup for an hour. Ask a cluster administrator to check that Velero runs and "
    "that its backup-deletion controller is on"
)
"""The message about a deletion that Velero does not begin."""


def beyond_history(ended: list[RequestRow], kept: int) -> list[RequestRow]:
    """Return which finished restores of a namespace go: all but the newest."""
    if len(ended) <= kept:
        return []
    return sorted(ended, key=lambda row: (row.created, row.key), reverse=True)[kept:]


HOW_TO_DELETE = (
    "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup to true or finalizer removal"
)
"""The message about a request that was deleted without choosing what happens to the backup: the design document's."""


def command_to_delete(key: Key) -> str:
    """Return the command that deletes a backup with its data."""
    return f"foresail backup delete {key.name} --namespace {key.namespace}"


# Restores into another namespace: the policies of both must allow it, and that of the target applies, because objects
# are created there. What the requester may get here and create there is asked before the hand-over. Until then no
# message tells a target that does not exist from one that takes no restores.

_RESTRICTED = "(spec.restoreSpec.namespaceMapping is restricted)"


def acting_policy(view: RequestView, policy: PolicyRow) -> PolicyRow | Refused:
    """Return the policy that a restore is built by: that of the namespace with the objects, if both allow it."""
    target = view.request.target
    if not target or view.request.point:  # a backup of a class goes into its own namespace only
        return policy
    if not _allows_targets(policy):
        text = f"Namespace {view.request.key.namespace} may be restored into no other one {_RESTRICTED}"
        more = f"a cluster administrator can set restore.intoOtherNamespaces in SelfServicePolicy {policy.name}"
        return Refused(Reason.INVALID_RESTORE_SPEC, f"{text}; {more}")
    if view.is_from_own_location:
        text = "A backup in a storage location of the tenant is not restored into another namespace"
        return Refused(Reason.INVALID_RESTORE_SPEC, f"{text} {_RESTRICTED}; remove the mapping")
    acting = view.target.policy if view.target is not None and _is_live_target(view.target) else None
    if acting is None or not _allows_targets(acting):
        text = f"Nothing may be restored into namespace {shown(target)} {_RESTRICTED}"
        more = "it does not exist, or its policy does not set restore.intoOtherNamespaces: Allowed"
        return Refused(Reason.INVALID_RESTORE_SPEC, f"{text}: {more}")
    return acting


def target_over_quota(target: Target | None) -> Refused | None:
    """Report why the target takes no more restores; its requester asks again, for the wait would be there."""
    if target is None or target.policy is None:
        return None
    over = over_restore_quota(target.policy, target.stored, target.active)
    if over is None:
        return None
    text = f"Namespace {target.name} has as many restores as quotas.restores of its SelfServicePolicy allow"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; when one has finished, run foresail restore retry")


def _allows_targets(policy: PolicyRow) -> bool:
    return policy.spec.restore.into_other_namespaces == "Allowed"


def _is_live_target(target: Target) -> bool:
    return target.namespace is not None and not target.namespace.is_terminating
