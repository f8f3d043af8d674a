"""The one place that writes the deletion of a Velero Backup; foresail.deletion decides what backups rules may delete.

A person may delete a backup whatever the rules keep. Both ways end in these writes, and nowhere else.
"""

from collections.abc import Mapping
from datetime import datetime

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import DELETE_AFTER, DELETE_REASON
from foresail.plan import Create, Delete, Key, Kind, Patch


def request_deletion(
    request: Key, backup: Key, uid: str, mark: Mapping[str, str], labels: Mapping[str, str], **metadata: object
) -> Create:
    """Return the request to Velero to delete a Backup with its data; its labels name this very object."""
    of_backup = {velero.BACKUP_NAME_LABEL: velero.label_of(backup.name), velero.BACKUP_UID_LABEL: uid}
    body = {"metadata": {"labels": {**labels, **of_backup}, **metadata}, "spec": {"backupName": backup.name}}
    return Create(velero.DELETE_REQUEST, request, body, mark)


def take_back(request: Key, uid: str) -> Delete:
    """Return the deletion of a request that Velero must not carry out, or that has ended."""
    return Delete(velero.DELETE_REQUEST, request, uid)


def delete_object(backup: Key, uid: str) -> Delete:
    """Return the deletion of the object alone: what is in the bucket stays, and Velero's sync brings it back."""
    return Delete(velero.BACKUP, backup, uid)


def delete_waiting(kind: Kind, waiting: Key, uid: str) -> Delete:
    """Return the deletion of a Backup or Restore that Velero has not begun: it has no data."""
    return Delete(kind, waiting, uid)


def mark(kind: Kind, backup: Key, uid: str, version: str, at: datetime | None, why: str) -> Patch:
    """Return the write of a mark, or without both of its removal; it fails if the backup has changed."""
    return Patch(kind, backup, {"metadata": {"uid": uid, "annotations": mark_annotations(at, why)}}, version)


def mark_annotations(at: datetime | None, why: str) -> dict[str, str | None]:
    """Return the annotations of a mark; without a date the deletion waits for an approval."""
    return {DELETE_AFTER: stamp(at) if at is not None else None, DELETE_REASON: why or None}
