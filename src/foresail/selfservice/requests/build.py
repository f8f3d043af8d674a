"""Objects for a tenant in Velero's namespace: names, labels and ownership records."""

from collections.abc import Mapping
from datetime import datetime

from foresail import deletion_writes
from foresail.api import nonadmin, velero
from foresail.api.instants import stamp
from foresail.api.marks import (
    ATTEMPT,
    NAMESPACE_UID,
    ORPHANED,
    POD_VOLUME_TIMEOUT,
    PROTECTION_CLASS,
    RECORD_SIGNATURE,
    REOPENED,
    REQUEST_UID,
    REQUESTER,
    TARGET_NAMESPACE_UID,
)
from foresail.plan import Body, Create, Delete, JsonPatch, Key, Patch
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.policy.locations import location_named
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import DeletionRow, VeleroRow
from foresail.selfservice.signatures import Record, sign
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import nacuuid

_FINALIZERS = "/metadata/finalizers"


def record(family: Family, request: RequestRow, namespace: NamespaceRow) -> dict[str, str]:
    """Return the ownership record of a Velero object: names for people, UIDs for the operator."""
    return {
        family.origin_namespace: request.key.namespace,
        family.origin_name: request.key.name,
        REQUEST_UID: request.uid,
        NAMESPACE_UID: namespace.uid,
    }


def create_velero_object(view: RequestView, namespace: NamespaceRow, spec: Mapping[str, object]) -> Create:
    """Return the creation of the Velero Backup or Restore of a request."""
    family = view.family
    request = view.request
    name = nacuuid(request)
    labels = {**nonadmin.LABELS, family.nacuuid_label: name}
    annotations = {REQUESTER: request.requester} if request.requester else {}
    policy = view.acting_policy
    if policy is not None:
        rules = policy.spec.backup if family is BACKUPS else policy.spec.restore
        annotations[POD_VOLUME_TIMEOUT] = rules.pod_volume_timeout
    if request.point and view.source is not None and view.source.velero is not None:
        annotations[PROTECTION_CLASS] = view.source.velero.protection_class
    if view.target is not None and view.target.namespace is not None:
        annotations[TARGET_NAMESPACE_UID] = view.target.namespace.uid
    if family is BACKUPS:
        annotations |= signature(view, namespace, str(spec.get("storageLocation") or ""))
    body = {"metadata": {"labels": labels, "annotations": annotations}, "spec": spec}
    return Create(family.velero, Key(view.velero_namespace, name), body, record(family, request, namespace))


def signature(view: RequestView, namespace: NamespaceRow, location: str) -> dict[str, str]:
    """Return the annotation that signs the record of a Velero Backup; none without a key, or without its location."""
    request = view.request
    stored = location_named(location, view.locations)
    storage = stored.storage if stored is not None else ""
    name = nacuuid(request)
    key = request.key
    text = sign(Record(name, storage, key.namespace, namespace.uid, key.name, request.uid), view.keyring)
    return {RECORD_SIGNATURE: text} if text else {}


def create_deletion(view: RequestView, backup: VeleroRow, attempt: int) -> Create:
    """Return the request to Velero to delete a Backup with everything in the bucket."""
    request = view.request
    name = backup.key.name
    return deletion_writes.request_deletion(
        Key(view.velero_namespace, name),
        backup.key,
        backup.uid,
        {REQUEST_UID: request.uid, ATTEMPT: str(attempt)},
        {**nonadmin.LABELS, BACKUPS.nacuuid_label: name},
        annotations={BACKUPS.origin_namespace: request.key.namespace, BACKUPS.origin_name: request.key.name},
    )


def reopen(backup: VeleroRow, refused: DeletionRow) -> Patch:
    """Return the write by which Velero ends a Backup once more, and then no longer takes it for one that runs."""
    metadata = {"uid": backup.uid, "annotations": {REOPENED: refused.uid}}
    return Patch(velero.BACKUP, backup.key, {"metadata": metadata, "status": {"phase": velero.REOPENED[backup.phase]}})


def add_finalizer(view: RequestView) -> JsonPatch:
    """Return the write that adds our finalizer; refused if the request has changed since.

    It is written even if the finalizer exists, to check that the request has not changed.
    """
    request = view.request
    ours = view.family.finalizer
    if request.has_finalizer:
        return _finalizers(view)
    if request.has_others_finalizers:
        return _finalizers(view, {"op": "add", "path": f"{_FINALIZERS}/-", "value": ours})
    return _finalizers(view, {"op": "add", "path": _FINALIZERS, "value": [ours]})


def release(view: RequestView) -> JsonPatch:
    """Return the write that removes our finalizer."""
    return _finalizers(view, {"op": "remove", "path": f"{_FINALIZERS}/{view.request.finalizer_index}"})


def _finalizers(view: RequestView, *operations: Body) -> JsonPatch:
    """Return a write that needs no list of all finalizers: a tenant can make that as long as an object may be."""
    return JsonPatch(view.family.kind, view.request.key, operations, view.request.version)


def delete_request(view: RequestView) -> Delete:
    """Return the deletion of the tenant's own object; it stays while our finalizer is on it."""
    return Delete(view.family.kind, view.request.key, view.request.uid)


def mark_orphaned(view: RequestView, row: VeleroRow, now: datetime) -> Patch:
    """Mark a Velero object whose namespace is deleted; not a later object of that name."""
    metadata = {"uid": row.uid, "annotations": {ORPHANED: stamp(now)}}
    return Patch(view.family.velero, row.key, {"metadata": metadata})
