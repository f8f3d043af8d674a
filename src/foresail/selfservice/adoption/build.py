"""What an adoption writes: the NonAdminBackup, and the new record on the Velero Backup."""

from typing import Any

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.marks import ADOPT, ADOPTED, ORPHANED, RECORD_SIGNATURE
from foresail.plan import Create, Patch
from foresail.selfservice.adoption.observe import AdoptionView
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.records import Record, sign
from foresail.selfservice.requests.build import record
from foresail.selfservice.rows.requests import LARGEST_SPEC, RequestRow
from foresail.tenancy.namespaces import NamespaceRow

_OF_VELEROS_NAMESPACE = ("storageLocation", "volumeSnapshotLocations", "resourcePolicy")


def create_request(view: AdoptionView) -> Create:
    """Return the creation of the NonAdminBackup; nothing is backed up for it, as its label says."""
    metadata = {"labels": {nonadmin.SYNCED_FROM: view.backup.key.name}, "finalizers": [BACKUPS.finalizer]}
    body = {"metadata": metadata, "spec": {"backupSpec": tenant_spec(view.backup.spec)}}
    return Create(BACKUPS.kind, view.owner, body, {ADOPTED: view.backup.uid})


def tenant_spec(spec: str) -> dict[str, Any]:
    """Return the spec of a Velero Backup as its tenant sees it: without names of objects in Velero's namespace."""
    if len(spec) > LARGEST_SPEC:
        return {}
    document = msgspec.json.decode(spec, type=dict[str, Any])
    return {name: value for name, value in document.items() if name not in _OF_VELEROS_NAMESPACE}


def mark_request(view: AdoptionView, request: RequestRow) -> Patch:
    """Return the write that ties a NonAdminBackup of the existing controller to its Velero Backup."""
    labels = {nonadmin.SYNCED_FROM: view.backup.key.name}
    annotations = {ADOPTED: view.backup.uid}
    body = {"metadata": {"uid": request.uid, "labels": labels, "annotations": annotations}}
    return Patch(BACKUPS.kind, request.key, body, request.version)


def new_record(view: AdoptionView, request: RequestRow, namespace: NamespaceRow) -> Patch:
    """Return the write that records the new owner; the old signature would no longer fit."""
    row = view.backup
    key = request.key
    signed = Record(row.key.name, view.storage, key.namespace, namespace.uid, key.name, request.uid)
    annotations: dict[str, str | None] = {
        **record(BACKUPS, request, namespace),
        ADOPTED: row.uid,
        RECORD_SIGNATURE: sign(signed, view.keyring) or None,
        ADOPT: None,
        ORPHANED: None,
    }
    labels = {**nonadmin.LABELS, BACKUPS.nacuuid_label: row.key.name}
    metadata = {"uid": row.uid, "labels": labels, "annotations": annotations}
    return Patch(velero.BACKUP, row.key, {"metadata": metadata})
