"""What is to be done about a Velero Backup without a NonAdminBackup.

First the NonAdminBackup is created, under the name and with the UID of the Backup in a mark. When its own UID is
observed, the record on the Velero Backup is written. A crash between the two is a pause: the mark leads on.
"""

from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import nonadmin, velero
from foresail.api.core import NAMESPACE
from foresail.api.marks import ADOPT, ADOPTED, ORPHANED, RECORD_SIGNATURE
from foresail.plan import Action, Create, Key, Note, Patch, Plan, Subject
from foresail.selfservice.adoption import rules
from foresail.selfservice.adoption.rules import Offer
from foresail.selfservice.adoption.view import AdoptionView
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.build import record
from foresail.selfservice.rows.requests import LARGEST_SPEC, RequestRow
from foresail.selfservice.signatures import Record, sign
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


_NEWS = timedelta(hours=1)  # what came back longer ago was announced then, and so was a namespace that did


def decide(view: AdoptionView, now: datetime) -> Plan:
    """Adopt a Velero Backup if that is permitted; else only offer it."""
    offer = rules.offer(view, now)
    if offer is None or view.namespace is None:
        return Plan()
    if not offer.is_permitted or offer.is_name_taken:
        return Plan(notes=announcement(view, view.namespace, offer, now), claims=(offer,))
    row = view.backup
    subject = Subject(BACKUPS.velero, row.key, row.uid)
    return Plan(_writes(view, view.namespace), subject=subject, claims=(offer,))


def _writes(view: AdoptionView, namespace: NamespaceRow) -> tuple[Action, ...]:
    request = view.request
    if request is None:
        return (create_request(view),)
    recorded = new_record(view, request, namespace)
    return (recorded,) if rules.is_ours(request, view.backup) else (mark_request(view, request), recorded)


def announcement(view: AdoptionView, namespace: NamespaceRow, offer: Offer, now: datetime) -> tuple[Note, ...]:
    """Return one Event for a namespace whose backups, or which itself, came back: they wait for an administrator.

    It is in the namespace, where its team may list it.
    """
    since = max(view.backup.created, namespace.created or view.backup.created)
    if view.is_announced or offer.is_name_taken or now - since > _NEWS:
        return ()
    name = view.owner.namespace
    text = (
        f"Velero has backups of namespace {name} without a NonAdminBackup; to give them to the tenant, a cluster "
        f"administrator runs foresail backup adopt -n {name}"
    )
    return (Note(NAMESPACE, Key(name, name), namespace.uid, Reason.BACKUPS_ADOPTABLE.value, text),)
