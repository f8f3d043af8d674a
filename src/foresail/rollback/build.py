"""The objects of a Rollback: requests to self-service, and the writes that suspend and resume."""

import json
from collections.abc import Iterable, Iterator, Mapping
from datetime import datetime, timedelta

from foresail.api.core import NAMESPACE
from foresail.api.marks import (
    REQUESTER,
    REQUESTER_GROUPS,
    ROLLBACK_FINALIZER,
    ROLLBACK_IN_PROGRESS,
    ROLLBACK_UID,
)
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.api.rollback import ROLLBACK, RollbackSpec, Stopped
from foresail.plan import Create, Delete, Key, Kind, Patch, Plan
from foresail.rollback.kinds import BY_NAME, CLAIMS, NEVER, PAUSED, SCALED_OBJECT
from foresail.rollback.status import subject_of
from foresail.rollback.view import Listed, RollbackRow, RollbackView, Suspendable

TRUE = "true"
_CACHED_WITHIN = timedelta(seconds=2)
"""How long after a write to a Rollback the API server's admission may still decide by the Rollback before it."""


def safety_name(row: RollbackRow) -> str:
    """Return the name of the safety backup."""
    return f"{row.key.name}-before-{row.uid[:8]}"


def restore_name(row: RollbackRow) -> str:
    """Return the name of the restore."""
    return f"{row.key.name}-restore-{row.uid[:8]}"


def undo_name(row: RollbackRow, attempt: int) -> str:
    """Return the name of an attempt to restore the safety backup."""
    return f"{row.key.name}-undo-{row.uid[:8]}-{attempt}"


def claims_name(row: RollbackRow) -> str:
    """Return the name of the restore of claims."""
    return f"{row.key.name}-claims-{row.uid[:8]}"


def list_name(row: RollbackRow) -> str:
    """Return the name of the request for the list of the backup."""
    return f"{row.key.name}-list-{row.uid[:8]}"


def safety_backup(row: RollbackRow) -> Create:
    """Return the safety backup of all objects, and of the data of volumes if some are replaced."""
    spec = {"snapshotVolumes": True, "snapshotMoveData": True} if row.status.volumes else {"snapshotVolumes": False}
    return _request(row, NON_ADMIN_BACKUP, safety_name(row), {"backupSpec": spec})


def claims_restore(row: RollbackRow) -> Create:
    """Return the restore of claims with their data; those that exist stay as they are."""
    spec = {"backupName": row.spec.to, "includedResources": [CLAIMS], "restorePVs": True}
    return _request(row, NON_ADMIN_RESTORE, row.status.claims_restore, {"restoreSpec": spec})


def restore(row: RollbackRow, served: Iterable[str]) -> Create:
    """Return the restore of the backup into what exists."""
    return _request(
        row, NON_ADMIN_RESTORE, restore_name(row), {"restoreSpec": restore_spec(row.spec, row.spec.to, served)}
    )


def undo(row: RollbackRow, attempt: int, served: Iterable[str]) -> Create:
    """Return the restore of the safety backup: of the same kinds as the restore, with the node ports of Services."""
    spec = {**restore_spec(row.spec, row.status.safety_backup, served), "preserveNodePorts": True}
    return _request(row, NON_ADMIN_RESTORE, undo_name(row, attempt), {"restoreSpec": spec})


def restore_spec(spec: RollbackSpec, backup: str, served: Iterable[str]) -> dict[str, object]:
    """Return the restore of a backup into what exists, without what nobody changes and what is suspended meanwhile."""
    if spec.only is not None:
        kinds: dict[str, object] = {"includedResources": [*spec.only]}
    else:
        kinds = {"excludedResources": [*NEVER, *served]}
    return {"backupName": backup, **kinds, "existingResourcePolicy": "update", "restorePVs": False}


def list_request(row: RollbackRow) -> Create:
    """Return the request for the names of the objects in the backup; without a requester it gets no contents."""
    spec = {"target": {"kind": "BackupResourceList", "name": row.spec.to}}
    key = Key(row.key.namespace, list_name(row))
    return Create(NON_ADMIN_DOWNLOAD_REQUEST, key, {"spec": spec}, {ROLLBACK_UID: row.uid})


def _request(row: RollbackRow, kind: Kind, name: str, spec: Mapping[str, object]) -> Create:
    """Return a request in the name of the requester, recognisable by the UID of the Rollback."""
    asked = {REQUESTER: row.requester, REQUESTER_GROUPS: "\n".join(row.groups)}
    annotations = {key: text for key, text in asked.items() if text}
    body = {"metadata": {"annotations": annotations}, "spec": spec}
    return Create(kind, Key(row.key.namespace, name), body, {ROLLBACK_UID: row.uid})


# What is suspended


def suspend(seen: Suspendable, namespace: str) -> Patch:
    """Return the write that suspends, if nobody has changed the object since it was read."""
    return _patch(seen, namespace, TRUE)


def resume(seen: Suspendable, stopped: Stopped, namespace: str) -> Patch:
    """Return the write of the former value, if nobody has changed the object since it was read."""
    return _patch(seen, namespace, stopped.former)


def _patch(seen: Suspendable, namespace: str, value: str) -> Patch:
    kind = BY_NAME[seen.resource]
    body: dict[str, object] = {"metadata": {"uid": seen.uid}}
    if kind == SCALED_OBJECT:
        body["metadata"] = {"uid": seen.uid, "annotations": {PAUSED: value or None}}
    else:
        body["spec"] = {"suspend": json.loads(value) if value else None}
    return Patch(kind, Key(namespace, seen.name), body, seen.version)


def deletions(objects: Iterable[Listed], namespace: str) -> Iterator[Delete]:
    """Return the deletions of objects that are not in the backup, or that the restore has created."""
    return (delete(BY_NAME[item.resource], namespace, item.name, item.uid) for item in objects)


def delete(kind: Kind, namespace: str, name: str, uid: str) -> Delete:
    """Return the deletion of a request of ours, or of one object."""
    return Delete(kind, Key(namespace, name), uid)


# The Rollback itself, and its namespace


def held(view: RollbackView, now: datetime) -> Plan | None:
    """Return the next step until admission admits changes; None if it does: the Rollback first, then the label."""
    subject = subject_of(view.row)
    own = finalizer(view.row, is_held=True)
    if own is not None:
        return Plan((own,), wake_at=now + _CACHED_WITHIN, subject=subject)
    if view.namespace is not None and ROLLBACK_IN_PROGRESS in view.namespace.labels:
        return None
    admitted = view.row.written + _CACHED_WITHIN if view.row.written is not None else now
    if now < admitted:
        return Plan(wake_at=admitted, subject=subject)
    return Plan((_label(view, TRUE),), subject=subject)


def released(view: RollbackView) -> tuple[Patch, ...]:
    """Return the writes that end that, in the other order; the label stays while another Rollback needs it."""
    own = finalizer(view.row, is_held=False)
    if own is None:
        return ()
    is_labelled = view.namespace is not None and ROLLBACK_IN_PROGRESS in view.namespace.labels
    return (*((_label(view, None),) if is_labelled and not view.is_shared else ()), own)


def _label(view: RollbackView, value: str | None) -> Patch:
    uid = view.namespace.uid if view.namespace is not None else ""
    body = {"metadata": {"uid": uid, "labels": {ROLLBACK_IN_PROGRESS: value}}}
    return Patch(NAMESPACE, Key("", view.row.key.namespace), body)


def finalizer(row: RollbackRow, *, is_held: bool) -> Patch | None:
    """Return the write that adds or removes the finalizer and the label for admission; None if it is right."""
    if (ROLLBACK_FINALIZER in row.finalizers, row.is_labelled) == (is_held, is_held):
        return None  # whoever creates a Rollback may give it the finalizer, and never the label
    others = [finalizer for finalizer in row.finalizers if finalizer != ROLLBACK_FINALIZER]
    finalizers = [*others, ROLLBACK_FINALIZER] if is_held else others
    labels = {ROLLBACK_IN_PROGRESS: TRUE if is_held else None}
    metadata = {"uid": row.uid, "finalizers": finalizers, "labels": labels}
    return Patch(ROLLBACK, row.key, {"metadata": metadata}, row.version)
