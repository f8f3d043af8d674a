"""The rules of tenants' own locations: whether one may be there, what was approved, and when the Secret is read."""

from datetime import datetime, timedelta
from hashlib import sha256
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.specs import BackupStorageLocationSpec
from foresail.selfservice.access.rules import requester_problem
from foresail.selfservice.locations.credentials import Credentials
from foresail.selfservice.locations.view import CredentialsCheck, CredentialsChecked, LocationView
from foresail.selfservice.policy.locations import is_listed
from foresail.selfservice.policy.quotas import no_policy
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.specs.location import location_spec, not_allowed
from foresail.selfservice.specs.values import as_json
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.records import nacuuid_of

REREAD = timedelta(hours=1)
"""After which the Secret is read again, if nothing asks for it before."""

_PAUSES = tuple(timedelta(seconds=seconds) for seconds in (5, 15, 30, 60, 120, 300, 600))
"""How long a problem with the Secret stands before it is read again; the last pause repeats."""

APPROVED, PENDING, REJECTED = "Approved", "Pending", "Rejected"
WAITS = (Reason.NO_POLICY, Reason.RESTORED_FROM_BACKUP)


# Whose it is


def nacuuid(location: TenantLocationRow) -> str:
    """Return the name of everything that is made for a location."""
    return nacuuid_of(location.key.namespace, location.key.name, location.uid)


def has_nacuuid(location: TenantLocationRow) -> bool:
    """Whether the name is written down, so that the spec is fixed."""
    return location.status.velero.nacuuid == nacuuid(location)


def own_velero(view: LocationView) -> LocationRow | None:
    """Return the Velero location that was made for this very location."""
    row = view.velero
    return row if row is not None and _is_own(view, row) else None


def own_approval(view: LocationView) -> ApprovalRow | None:
    """Return the request for approval that was made for this very location."""
    row = view.approval
    return row if row is not None and _is_own(view, row) else None


def _is_own(view: LocationView, row: LocationRow | ApprovalRow) -> bool:
    location = view.location
    namespace = view.namespace
    is_here = namespace is not None and row.namespace_uid == namespace.uid
    return is_here and row.owner == location.key and row.request_uid == location.uid


# Whether it may be there


def wanted_spec(view: LocationView) -> BackupStorageLocationSpec | Refused:
    """Return the spec that a location comes to, or why there is none."""
    location = view.location
    policy = view.policy
    if location.restored_by:
        return _brought_back(location)
    if policy is None:
        return no_policy(location.key.namespace)
    rules = policy.spec.locations
    if not rules.allowed:
        return not_allowed(policy)
    spec = _name_taken(view, policy) or _valid_spec(location, policy)
    if isinstance(spec, Refused):
        return spec
    return _too_many(view, rules.maximum, policy.name) or _requester_problem(view) or spec


def _name_taken(view: LocationView, policy: PolicyRow) -> Refused | None:
    """Report that the name means a location of the administrator: backups that name it must not come here."""
    name = view.location.key.name
    if not view.has_namesake and not is_listed(name, policy):
        return None
    text = f"{name[:80]} is the name of a storage location of the cluster administrator"
    return Refused(Reason.LOCATION_NAME_TAKEN, f"{text}; create the location with another name and delete this one")


def _valid_spec(location: TenantLocationRow, policy: PolicyRow) -> BackupStorageLocationSpec | Refused:
    if location.is_oversized:
        return Refused(Reason.BSL_SPEC_VALIDATION, "spec.backupStorageLocationSpec is too large; shorten it")
    try:
        tenant = msgspec.json.decode(location.spec or "{}", type=dict[str, Any])
    except RecursionError:
        return Refused(Reason.BSL_SPEC_VALIDATION, "spec.backupStorageLocationSpec is nested too deeply; flatten it")
    return location_spec(tenant, location.key.namespace, policy)


def _too_many(view: LocationView, most: int, policy: str) -> Refused | None:
    if has_nacuuid(view.location) or view.earlier < most:
        return None
    text = f"Limit of {most} storage locations reached; delete one with foresail location delete"
    more = f"or ask a cluster administrator to raise locations.maximum of SelfServicePolicy {policy}"
    return Refused(Reason.QUOTA_EXCEEDED, f"{text}, {more}")


def _requester_problem(view: LocationView) -> Refused | None:
    problem = requester_problem(view.location.requester, view.reserved)
    if problem is None:
        return None
    text = "The location has no requester whose permissions count; create it again as yourself"
    return Refused(problem.reason, f"{text} with foresail location create")


def _brought_back(location: TenantLocationRow) -> Refused:
    key = location.key
    text = f"Velero Restore {location.restored_by} restored this location, so it is not used"
    ask = f"kubectl label nabsl {key.name} --namespace {key.namespace} {velero.RESTORE_NAME_LABEL}-"
    return Refused(Reason.RESTORED_FROM_BACKUP, f"{text}. To use it: {ask}")


# The credentials


class Wanted(msgspec.Struct, frozen=True):
    """What is to be in place, the hash that an approval is bound to, and when the Secret is read next."""

    spec: BackupStorageLocationSpec
    credentials: Credentials
    hash: str
    reread: datetime


class ReadAgain(msgspec.Struct, frozen=True):
    """The Secret is to be read now."""

    query: CredentialsCheck


class SecretProblem(msgspec.Struct, frozen=True):
    """Why there are no credentials, and when the Secret is read next."""

    message: str
    at: datetime


def credentials(
    view: LocationView, spec: BackupStorageLocationSpec, now: datetime
) -> Wanted | ReadAgain | SecretProblem:
    """Return what is to be in place, or what is to be done first.

    Nobody watches Secrets. One is read when its location is new, its annotation asks for it, Velero begins or ceases
    to reach the bucket, the operator starts, and an hour after the last time.
    """
    query = secret_check(view, spec)
    result = view.read_result
    if result is None or result.query != query or not isinstance(result.answer, CredentialsChecked):
        return ReadAgain(query)
    checked = result.answer
    if checked.credentials is not None:
        at = result.started + REREAD
        wanted = Wanted(spec, checked.credentials, request_hash(view, spec, checked.credentials), at)
        return wanted if now < at else ReadAgain(query)
    at = result.started + _PAUSES[min(result.attempts, len(_PAUSES)) - 1]
    return SecretProblem(checked.problem, at) if now < at else ReadAgain(query)


def secret_check(view: LocationView, spec: BackupStorageLocationSpec) -> CredentialsCheck:
    """Return the question about the Secret of a location."""
    location = view.location
    credential = spec.credential
    row = own_velero(view)
    is_reached = row is not None and row.is_available
    return CredentialsCheck(
        location.key.namespace,
        (credential.name if credential is not None else None) or "",
        credential.key if credential is not None else "",
        location.requester,
        location.requester_groups,
        f"{is_reached} {location.refresh}",
    )


# The approval


def request_hash(view: LocationView, spec: BackupStorageLocationSpec, credentials: Credentials) -> str:
    """Return what an approval is bound to: the namespace, the location, its spec and its credentials."""
    uid = view.namespace.uid if view.namespace is not None else ""
    parts = [uid, view.location.uid, as_json(spec), credentials.digest]
    return sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def withdrawn(view: LocationView) -> str | None:
    """Return the phase of a request whose decision lets nothing be used, whatever the credentials are; None if it may.

    If a decision is required and there is no request, nothing is decided.
    """
    approval = own_approval(view)
    rules = view.policy.spec.locations if view.policy is not None else None
    decision = approval.decision if approval is not None else ""
    if decision == "reject" or rules is None:
        return REJECTED
    return PENDING if rules.approval != "NotRequired" and decision != "approve" else None


def verdict(view: LocationView, approval: ApprovalRow, wanted: str) -> tuple[str, str]:
    """Return the phase of a request for approval, and the hash that is approved; empty if none is.

    Whoever approves without naming a hash approves the one that the status showed.
    """
    phase = withdrawn(view)
    if phase is not None:
        return phase, ""
    if view.policy is not None and view.policy.spec.locations.approval == "NotRequired":
        return APPROVED, wanted
    approved = approval.approved_request or approval.approved_hash or approval.request_hash
    return (APPROVED if approved == wanted else PENDING), approved
