"""What is made for a tenant's own location: a request for approval, a Velero location, and a copy of the credentials.

The copy is applied, never read, and Velero's location owns it: with the location Kubernetes deletes the copy.
"""

from base64 import b64encode
from typing import Any

import msgspec

from foresail.api import core, nonadmin, velero
from foresail.api.marks import CREDENTIALS, NAMESPACE_UID, ORPHANED, REQUEST_HASH, REQUEST_UID, REQUESTER, SUSPENDED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION, NON_ADMIN_LOCATION_REQUEST
from foresail.api.specs import BackupStorageLocationSpec
from foresail.plan import Apply, Body, Create, Delete, JsonPatch, Key, Patch
from foresail.selfservice.locations.credentials import Credentials
from foresail.selfservice.locations.rules import nacuuid
from foresail.selfservice.locations.view import LocationView
from foresail.selfservice.rows.locations import (
    FINALIZER,
    NACUUID_LABEL,
    ORIGIN_NAME,
    ORIGIN_NAMESPACE,
    ApprovalRow,
    LocationRow,
)
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.specs.location import (
    CREDENTIALS_KEY,
    READ_ONLY,
    READ_WRITE,
    REGISTRY,
    access_patch,
    velero_location,
)
from foresail.tenancy.namespaces import NamespaceRow

_FINALIZERS = "/metadata/finalizers"


def record(view: LocationView, namespace: NamespaceRow) -> dict[str, str]:
    """Return the record of whose an object is: names for people, UIDs for us."""
    location = view.location
    return {
        ORIGIN_NAMESPACE: location.key.namespace,
        ORIGIN_NAME: location.key.name,
        REQUEST_UID: location.uid,
        NAMESPACE_UID: namespace.uid,
    }


def create_approval(view: LocationView, namespace: NamespaceRow) -> Create:
    """Return the creation of the request for approval."""
    asked = {REQUESTER: view.location.requester}
    body = {"metadata": {"labels": _labels(view), "annotations": asked}, "spec": {"approvalDecision": "pending"}}
    return Create(NON_ADMIN_LOCATION_REQUEST, _key(view), body, record(view, namespace))


def show_request(
    view: LocationView, approval: ApprovalRow, phase: str, wanted: str, approved: str
) -> tuple[Patch, ...]:
    """Return the write of what is asked for into the status of the request; none if it is there."""
    location = view.location
    spec = msgspec.json.decode(location.spec)
    is_shown = (approval.phase, approval.request_hash, approval.approved_hash) == (phase, wanted, approved)
    if is_shown and msgspec.json.decode(approval.requested_spec) == spec:
        return ()
    asked = {
        "requestedSpec": spec,
        "nacuuid": nacuuid(location),
        "name": location.key.name,
        "namespace": location.key.namespace,
        "requestHash": wanted,
        "approvedHash": approved,
    }
    body = {"status": {"phase": phase, "nonAdminBackupStorageLocation": asked}}
    return (Patch(NON_ADMIN_LOCATION_REQUEST, approval.key, body, approval.version, "status"),)


def create_location(view: LocationView, namespace: NamespaceRow, spec: BackupStorageLocationSpec) -> Create:
    """Return the creation of the Velero location: read-only, and without a Secret yet."""
    name = nacuuid(view.location)
    labels = {**_labels(view), REGISTRY: "False"}
    secret = {CREDENTIALS: spec.credential.name or ""} if spec.credential is not None else {}
    metadata = {"labels": labels, "annotations": secret}
    body = {"metadata": metadata, "spec": velero_location(spec, name, READ_ONLY)}
    return Create(velero.LOCATION, _key(view), body, record(view, namespace))


def copy_credentials(view: LocationView, namespace: NamespaceRow, row: LocationRow, credentials: Credentials) -> Apply:
    """Return the write of the one key that Velero needs; the Velero location owns it."""
    owner = {"apiVersion": velero.LOCATION.api_version, "kind": velero.LOCATION.name, "name": row.name, "uid": row.uid}
    metadata = {"labels": _labels(view), "annotations": record(view, namespace), "ownerReferences": [owner]}
    body = {
        "metadata": metadata,
        "type": "Opaque",
        "data": {CREDENTIALS_KEY: b64encode(credentials.text.encode()).decode()},
    }
    return Apply(core.SECRET, _key(view), body)


def open_location(row: LocationRow, key: Key, spec: BackupStorageLocationSpec, wanted: str) -> Patch:
    """Return the write by which Velero uses a location; as it changes the spec, Velero checks the bucket at once."""
    marks = {REQUEST_HASH: wanted, SUSPENDED: None}
    return access_patch(row, key.namespace, marks, spec.access_mode or READ_WRITE)


def suspend(row: LocationRow, key: Key, reason: str) -> tuple[Patch, ...]:
    """Return the write by which nothing new comes into a location; none if it is so."""
    if row.suspended == reason and row.is_read_only:
        return ()
    return (access_patch(row, key.namespace, {SUSPENDED: reason}, READ_ONLY),)


def orphan(row: LocationRow, key: Key, at: str) -> Patch:
    """Return the write that keeps a location for the administrator though its namespace is gone."""
    return access_patch(row, key.namespace, {SUSPENDED: "NamespaceGone", ORPHANED: at}, READ_ONLY)


def delete_approval(approval: ApprovalRow) -> Delete:
    """Return the deletion of the request for approval."""
    return Delete(NON_ADMIN_LOCATION_REQUEST, approval.key, approval.uid)


def delete_velero(row: LocationRow, key: Key) -> Delete:
    """Return the deletion of the Velero location, with which the copy of the credentials goes."""
    return Delete(velero.LOCATION, Key(key.namespace, row.name), row.uid)


def force_delete(backup: RequestRow) -> Patch:
    """Return the write that deletes a NonAdminBackup and leaves its data in the bucket."""
    body = {"metadata": {"uid": backup.uid}, "spec": {"forceDeleteBackup": True}}
    return Patch(NON_ADMIN_BACKUP, backup.key, body)


def add_finalizer(view: LocationView) -> JsonPatch:
    """Return the write that adds our finalizer."""
    if view.location.has_others_finalizers:
        return _finalizers(view, {"op": "add", "path": f"{_FINALIZERS}/-", "value": FINALIZER})
    return _finalizers(view, {"op": "add", "path": _FINALIZERS, "value": [FINALIZER]})


def release(view: LocationView) -> JsonPatch:
    """Return the write that removes our finalizer."""
    return _finalizers(view, {"op": "remove", "path": f"{_FINALIZERS}/{view.location.finalizer_index}"})


def _finalizers(view: LocationView, *operations: Body) -> JsonPatch:
    return JsonPatch(NON_ADMIN_LOCATION, view.location.key, operations, view.location.version)


def _labels(view: LocationView) -> dict[str, Any]:
    return {**nonadmin.LABELS, NACUUID_LABEL: nacuuid(view.location)}


def _key(view: LocationView) -> Key:
    return Key(view.velero_namespace, nacuuid(view.location))
