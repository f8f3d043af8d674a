"""Restores from the backup of a ProtectionClass, which holds the objects of other teams too.

Of such a backup a restore brings back one namespace, the requester's own, into itself. Nothing is told of the others.
Pods stay out: what a pod names beside it is looked up in the whole archive, and controllers make their pods again.
"""

from collections.abc import Collection, Mapping
from datetime import datetime
from typing import Any

from foresail.api.instants import stamp
from foresail.selfservice.access.rules import CLAIMS, PODS, listed
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow, location_of
from foresail.selfservice.specs.values import shown
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.points import Hindrance, hindrance
from foresail.tenancy.policies import PolicyRow

_FIELD = "NonAdminRestore spec.fromProtection"
_PODS = (PODS, "pod", "po")


def source_of(request: RequestRow) -> str:
    """Return the backup of a restore in words."""
    return f"Backup {shown(request.point)}" if request.point else f"NonAdminBackup {shown(request.source)}"


def is_source(backup: VeleroRow | None, request: RequestRow, namespace: NamespaceRow) -> bool:
    """Whether the Velero Backup behind a restore belongs to this very namespace."""
    if backup is None:
        return False
    if request.point:
        return backup.is_of(request.key.namespace, namespace.uid)
    return backup.namespace_uid == namespace.uid


# The spec


def without_pods(spec: dict[str, Any]) -> dict[str, Any] | Refused:
    """Return the spec of a restore from the backup of a class."""
    named = spec.get("includedResources") or ()
    included = [kind for kind in named if kind.lower() not in _PODS]
    if named and not included:  # an empty list would mean every kind
        text = "Pods do not come back from the backup of a ProtectionClass: their controllers make them again"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; include other kinds, or ask a cluster administrator")
    excluded = dict.fromkeys((*(spec.get("excludedResources") or ()), PODS))
    kept = {"includedResources": included} if named else {}
    return {**spec, **kept, "excludedResources": list(excluded)}


def asked_too_much(tenant: Mapping[str, Any], request: RequestRow, policy: PolicyRow) -> Refused | None:
    """Return what a restore from the backup of a class must not ask for; None if there is nothing of that kind."""
    if not policy.chart.from_protection:
        text = f"{_FIELD} is off in this cluster; remove it, or ask a cluster administrator to enable protection"
        return Refused(Reason.POLICY_VIOLATION, text)
    if tenant.get("backupName"):
        text = f"{_FIELD} and spec.restoreSpec.backupName name a backup each; remove one"
        return Refused(Reason.INVALID_RESTORE_SPEC, text)
    if tenant.get("namespaceMapping"):
        text = f"{_FIELD} restores namespace {request.key.namespace} only; remove spec.restoreSpec.namespaceMapping"
        return Refused(Reason.INVALID_RESTORE_SPEC, text)
    if tenant.get("hooks"):
        text = f"{_FIELD} restores no pods, in which hooks would run; remove spec.restoreSpec.hooks"
        return Refused(Reason.INVALID_RESTORE_SPEC, text)
    return None


def files_left_out(view: RequestView, copied: Collection[str], allowed: Collection[str]) -> Refused | None:
    """Return why claims do not come back whose files Velero would write into pods; None if there are none."""
    if not view.request.point or not copied or CLAIMS not in allowed:
        return None
    claims = listed(sorted(filter(None, copied)) or ["without a name"])
    text = f"{source_of(view.request)} has copies of files of claim {claims}, which Velero restores with pods only"
    more = "exclude persistentvolumeclaims, or ask a cluster administrator to restore it"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; {more}")


# Whether it may be restored now


def not_restorable(view: RequestView, now: datetime) -> Refused | None:
    """Return why a restore gets nothing from its backup; None if it does."""
    source = view.source
    namespace = view.namespace
    backup = source.velero if source is not None else None
    if source is None or backup is None or namespace is None:
        return _no_point(view.request)
    has_location = view.source_location is not None or not location_of(backup)
    reason = hindrance(
        backup, view.request.key.namespace, namespace.uid, now, by_tenants=source.by_tenants, has_location=has_location
    )
    if reason is Hindrance.CLASS_REFUSES and source.is_class_unread:
        text = f"ProtectionClass {backup.protection_class} cannot be read; the restore starts when it can"
        return Refused(Reason.BACKUP_NOT_READY, text)
    return None if reason is None else _refused(reason, view.request, backup)


def taken_back(view: RequestView) -> Refused | None:
    """Return why a restore that waits in Velero must not begin; None if it may."""
    source = view.source
    namespace = view.namespace
    if source is None or namespace is None or not is_source(source.velero, view.request, namespace):
        return _no_point(view.request)
    if source.by_tenants or source.is_class_unread or source.velero is None:
        return None
    return _refused(Hindrance.CLASS_REFUSES, view.request, source.velero)


def _no_point(request: RequestRow) -> Refused:
    """Return one text for what does not exist and for what is of others: neither is told apart."""
    text = f"{_FIELD}.backup: {shown(request.point)} is no backup of namespace {request.key.namespace}"
    more = "choose one of the points that kubectl get protection protection --output=yaml lists"
    return Refused(Reason.INVALID_RESTORE_SPEC, f"{text}; {more}")


def _refused(reason: Hindrance, request: RequestRow, backup: VeleroRow) -> Refused:
    if reason is Hindrance.NOT_OF_IT:
        return _no_point(request)
    name = source_of(request)
    expired = f" at {stamp(backup.expires)}" if backup.expires is not None else ""
    ask = "ask a cluster administrator"
    closed = f"ProtectionClass {backup.protection_class} does not let teams restore from its backups; {ask} for"
    synced = f"{name} came back from the bucket, so what it says of its namespaces is not trusted"
    nowhere = f"The storage location of {name} does not exist or cannot be read; the restore starts automatically when"
    texts = {
        Hindrance.CLASS_REFUSES: (
            Reason.POLICY_VIOLATION,
            f"{closed} restore.byTenants: true, then run foresail restore retry",
        ),
        Hindrance.SYNCED: (Reason.INVALID_RESTORE_SPEC, f"{synced}; {ask} to restore it"),
        Hindrance.UNFINISHED: (
            Reason.BACKUP_NOT_READY,
            f"{name} is {backup.phase or 'New'}; the restore starts when it finishes",
        ),
        Hindrance.FAILED: (Reason.INVALID_RESTORE_SPEC, f"{name} is {backup.phase} and cannot be restored"),
        Hindrance.EXPIRED: (Reason.BACKUP_EXPIRED, f"{name} expired{expired}; restore from another backup"),
        Hindrance.LOCATION_GONE: (
            Reason.LOCATION_UNAVAILABLE,
            f"{nowhere} it can be used. If this persists, {ask}",
        ),
    }
    return Refused(*texts[reason])
