"""Rows of what Velero works on: Backups, Restores, requests to delete and to download, claims and their data."""

import sys
from collections.abc import Mapping
from datetime import datetime

import msgspec

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.marks import (
    ADOPT,
    ADOPTED,
    ATTEMPT,
    BACKUP_UID,
    NAMESPACE_UID,
    NAMESPACE_UIDS,
    ORPHANED,
    PROTECTION_CLASS,
    RECORD_SIGNATURE,
    REOPENED,
    REQUEST_UID,
    TARGET_NAMESPACE_UID,
)
from foresail.api.metadata import Metadata
from foresail.plan import Key, Keyed, PartKey
from foresail.selfservice.families import BACKUPS, FAMILIES, Family
from foresail.selfservice.signatures import LONGEST as LONGEST_SIGNATURE
from foresail.tenancy.points import namespace_uids
from foresail.tenancy.records import owner_of

LONGEST_NAME = 253


def up_to(most: int, text: str) -> str:
    """Return a tenant's text if it is no longer than that, else nothing: a part of it could name someone else."""
    return text if len(text) <= most else ""


def interned(raw: msgspec.Raw) -> str:
    """Return JSON as text; equal ones are one object."""
    return sys.intern(bytes(raw).decode())


Counts = tuple[tuple[str, int], ...]
"""How many volumes and bytes are how far, by the names that the status has for it; only what is not zero."""

_glimpse = msgspec.json.Decoder(mirrored.Glimpse)

_document = msgspec.json.Decoder(dict[str, object])

_source = msgspec.json.Decoder(nonadmin.RestoreSource)
_location = msgspec.json.Decoder(mirrored.Stored)
_encoder = msgspec.json.Encoder()

_VELEROS_OWN = "queuePosition"  # it does not count those that run, and it changes for all whenever one is done


_LONGEST_APPROVAL = 128  # two UIDs
_LONGEST_LABEL = 63  # the name is the value of a label


class Claim(msgspec.Struct, frozen=True, gc=False):
    """Of a Backup that may be adopted: how it came here, and what is said for it."""

    is_synced: bool  # Velero's sync created the object, after the backup had ended
    signature: str = ""
    approval: str = ""  # by an administrator
    is_adopted: bool = False  # this very object was adopted before


class VeleroRow(Keyed, frozen=True):
    """A Velero Backup or Restore, whoever made it, with the record of whose it is."""

    uid: str
    created: datetime
    owner: Key | None  # the tenant's object by its names
    request_uid: str
    namespace_uid: str
    is_orphaned: bool
    is_terminating: bool
    phase: str
    queue_position: int
    expires: datetime | None
    mirror: str
    spec: str  # of a Restore only while it waits
    source: str = ""  # of a Restore, the Velero Backup that it is made from
    target: str = ""  # of a Restore that we made into another namespace: its name
    target_uid: str = ""  # and its UID
    is_scheduled: bool = False  # of a Backup, whether a Schedule made it
    version: str = ""  # of one that waits: its resourceVersion
    reopened: str = ""  # of a Backup, the UID of the refused deletion for which Velero was made to end it once more
    claim: Claim | None = None  # of a Backup that Velero's sync brought, or that an administrator gives to its tenant
    protection_class: str = ""  # of a Backup that was made for one
    taken_of: str = ""  # of such a Backup, as it is written: the UIDs of its namespaces

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def started(self) -> datetime:
        """When it began, also of one that Velero's sync brought back."""
        return glimpse(self.mirror).start_timestamp or self.created

    @property
    def items(self) -> int | None:
        """How many objects it has; None if that is unknown."""
        progress = glimpse(self.mirror).progress
        return progress.items_backed_up if progress is not None else None

    @property
    def selection(self) -> dict[str, object]:
        """The spec without the ttl, by which it is compared with other runs."""
        spec = _document.decode(self.spec)
        spec.pop("ttl", None)
        return spec

    @property
    def is_terminal(self) -> bool:
        """Whether nothing happens in it any more."""
        return self.phase in velero.TERMINAL

    @property
    def is_synced(self) -> bool:
        """Whether Velero's sync brought it from the bucket."""
        return self.claim is not None and self.claim.is_synced

    def is_of(self, namespace: str, uid: str) -> bool:
        """Whether a Backup of a class was taken of this very namespace, not of an earlier one of its name."""
        return bool(self.taken_of and uid) and (namespace_uids(self.taken_of) or {}).get(namespace) == uid

    @property
    def is_recorded(self) -> bool:
        """Whether it carries our complete record."""
        return self.owner is not None and bool(self.request_uid) and bool(self.namespace_uid)

    @property
    def is_adoptable(self) -> bool:
        """Whether a tenant could restore from it if it had a NonAdminBackup."""
        is_kept = self.owner is not None and not self.is_terminating and not self.is_scheduled
        return is_kept and self.phase in velero.RESTORABLE and len(self.key.name) <= _LONGEST_LABEL

    @property
    def may_be_adopted(self) -> bool:
        """Whether it is adoptable and may be without a NonAdminBackup.

        A Backup that we made in this cluster has one, unless its tenant gave that up; only an administrator asks then.
        """
        return self.is_adoptable and (self.claim is not None or not self.request_uid)

    @property
    def is_waiting(self) -> bool:
        """Whether Velero has not begun with it."""
        return self.phase in velero.WAITING

    @property
    def is_queued(self) -> bool:
        """Whether it takes part in Velero's queue: it waits or runs, and not only its data is still moving."""
        return not self.is_terminal and self.phase not in velero.AFTER_THE_QUEUE


class DeletionRow(Keyed, frozen=True):
    """A DeleteBackupRequest."""

    uid: str
    created: datetime
    owner: Key | None
    request_uid: str
    attempt: int
    phase: str
    errors: tuple[str, ...]
    mirror: str
    stalls_at: datetime | None = None  # when it counts as abandoned, if Velero has begun it


class MovementRow(Keyed, frozen=True):
    """The data of one volume on its way."""

    of: str  # the Velero Backup or Restore that it belongs to
    phase: str
    claim: str = ""  # the UID of the claim; empty if the volume has none
    claim_name: str = ""  # of a PodVolumeBackup
    has_snapshot: bool = False  # its data can be restored
    bytes_done: int = 0
    total_bytes: int = 0  # as estimated; the same as done once it has ended, so that it moves nothing more


def velero_row(wire: mirrored.Mirrored, family: Family) -> VeleroRow:
    """Return what is kept of a Velero Backup or Restore."""
    meta = wire.metadata
    status = _glimpse.decode(wire.status)
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    wanted = nonadmin.RestoreSource() if family is BACKUPS else _source.decode(wire.spec)
    target_uid = "" if family is BACKUPS else annotations.get(TARGET_NAMESPACE_UID, "")
    protection_class, taken_of = _of_class(annotations, family)
    return VeleroRow(
        key=Key(sys.intern(meta.namespace), sys.intern(meta.name)),
        uid=meta.uid,
        created=meta.creation_timestamp,
        owner=owner_of(annotations, family.short),
        request_uid=sys.intern(annotations.get(REQUEST_UID, "")),
        namespace_uid=sys.intern(annotations.get(NAMESPACE_UID, "")),
        is_orphaned=ORPHANED in annotations,
        is_terminating=meta.deletion_timestamp is not None,
        phase=sys.intern(status.phase),
        queue_position=status.queue_position,
        expires=status.expiration,
        mirror=_without_position(wire.status) if status.queue_position else interned(wire.status),
        spec=interned(wire.spec) if family is BACKUPS or status.phase in velero.WAITING else "{}",
        source=sys.intern(wanted.backup_name or ""),
        target=sys.intern(next(iter((wanted.namespace_mapping or {}).values()), "")) if target_uid else "",
        target_uid=sys.intern(target_uid),
        is_scheduled=velero.SCHEDULE_LABEL in (meta.labels or {}),
        version=meta.resource_version if status.phase in velero.WAITING else "",
        reopened=annotations.get(REOPENED, ""),
        claim=_claim(meta, status) if family is BACKUPS else None,
        protection_class=protection_class,
        taken_of=taken_of,
    )


def _of_class(annotations: Mapping[str, str], family: Family) -> tuple[str, str]:
    """Return the class of a Backup that was made for no tenant, and of which namespaces it was taken."""
    if family is not BACKUPS or owner_of(annotations, family.short) is not None:
        return "", ""
    return sys.intern(annotations.get(PROTECTION_CLASS, "")), sys.intern(annotations.get(NAMESPACE_UIDS, ""))


def _claim(meta: Metadata, status: mirrored.Glimpse) -> Claim | None:
    """Return what adoption goes by; None for a Backup that was made in this cluster and that nobody gives away."""
    annotations = meta.annotations or {}
    ended = status.completion_timestamp
    is_synced = ended is not None and meta.creation_timestamp is not None and ended < meta.creation_timestamp
    approval = annotations.get(ADOPT, "")[:_LONGEST_APPROVAL]
    if not (is_synced or approval):
        return None
    signature = annotations.get(RECORD_SIGNATURE, "") if is_synced else ""
    is_adopted = annotations.get(ADOPTED) == meta.uid
    return Claim(is_synced, signature if len(signature) <= LONGEST_SIGNATURE else "", approval, is_adopted)


def deletion_row(wire: mirrored.MirroredDeletion) -> DeletionRow:
    """Return what is kept of a DeleteBackupRequest."""
    meta = wire.metadata
    status = _glimpse.decode(wire.status)
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    attempt = annotations.get(ATTEMPT, "")
    return DeletionRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        created=meta.creation_timestamp,
        owner=owner_of(annotations, BACKUPS.short),
        request_uid=annotations.get(REQUEST_UID, ""),
        attempt=int(attempt) if attempt.isdigit() else 1,
        phase=status.phase,
        errors=tuple(status.errors) if isinstance(status.errors, list) else (),
        mirror=interned(wire.status),
        stalls_at=velero.stalls_at(status.phase, meta.last_write or meta.creation_timestamp),
    )


def movement_row(wire: mirrored.Movement, label: str) -> MovementRow:
    """Return what is kept of the data of one volume on its way."""
    meta = wire.metadata
    labels = meta.labels or {}
    key = Key(meta.namespace, meta.name)
    bytes_done, total_bytes = _bytes_of(wire.status)
    return MovementRow(
        key,
        labels.get(label, ""),
        wire.status.phase,
        labels.get(velero.CLAIM_UID_LABEL, ""),
        sys.intern((meta.annotations or {}).get(velero.CLAIM_NAME_ANNOTATION, "")),
        bool(wire.status.snapshot_id),
        bytes_done,
        total_bytes,
    )


def _bytes_of(status: mirrored.MovementStatus) -> tuple[int, int]:
    """Return how many bytes of a volume were moved, and of how many; one number for both keeps the row small."""
    if status.progress is None:
        return 0, 0
    bytes_done = max(status.progress.bytes_done, 0)
    return bytes_done, bytes_done if status.phase in velero.MOVED else max(status.progress.total_bytes, bytes_done)


def glimpse(mirror: str) -> mirrored.Glimpse:
    """Read from a mirrored status what decisions need; nothing, if it cannot be read."""
    try:
        return _glimpse.decode(mirror)
    except msgspec.DecodeError:
        return mirrored.Glimpse()


def movements(rows: list[MovementRow], *, with_bytes: bool) -> Counts:
    """Count volumes by how far they are; a phase that the status has no number for counts in the total alone."""
    counts = {"total": len(rows)}
    if with_bytes:
        counts["bytesDone"] = sum(row.bytes_done for row in rows)
        counts["totalBytes"] = sum(row.total_bytes for row in rows)
    for row in rows:
        name = _COUNTED.get(row.phase)
        if name is not None:
            counts[name] = counts.get(name, 0) + 1
    return tuple(sorted((name, number) for name, number in counts.items() if number))


def without_bytes(counts: Counts) -> Counts:
    """Return how many volumes are how far, without what changes all the time while they move."""
    return tuple(count for count in counts if count[0] not in BYTES)


BYTES = ("bytesDone", "totalBytes")
"""The names of numbers that are no volumes."""

_COUNTED = {
    "": "new",
    "New": "new",
    "Accepted": "accepted",
    "Prepared": "prepared",
    "InProgress": "inProgress",
    "Canceling": "canceling",
    "Canceled": "canceled",
    "Failed": "failed",
    "Completed": "completed",
}


def _without_position(raw: msgspec.Raw) -> str:
    """Return a status without Velero's own number in the queue; the request says it in its own words."""
    document = _document.decode(raw)
    document.pop(_VELEROS_OWN, None)
    return sys.intern(_encoder.encode(document).decode())


def without_progress(mirror: str) -> str:
    """Return a status without the numbers of items: Velero counts what it looks at for other namespaces too."""
    document = _document.decode(mirror)
    if document.pop("progress", None) is None:
        return mirror
    return sys.intern(_encoder.encode(document).decode())


def location_of(backup: VeleroRow | None) -> str:
    """Return the name of the location of a Velero Backup; empty if it is not known."""
    return _location.decode(backup.spec).storage_location if backup is not None else ""


ORIGIN_NAME = "openshift.io/oadp-nadr-origin-name"
ORIGIN_NAMESPACE = "openshift.io/oadp-nadr-origin-namespace"

_status = msgspec.json.Decoder(velero.DownloadStatus)


class File(msgspec.Struct, frozen=True):
    """What is asked for: which file, and of which object; the tenant's, or Velero's."""

    kind: str
    name: str


class DownloadRequestRow(Keyed, frozen=True):
    """A DownloadRequest of Velero's, whoever made it, with the record of whose it is."""

    uid: str
    created: datetime
    owner: Key | None  # the NonAdminDownloadRequest
    request_uid: str
    target: File
    url: str  # empty until Velero has answered
    expires: datetime | None
    mirror: str
    results_of: PartKey | None = None  # if it is for the operator itself: the request that has failed
    backup_uid: str = ""  # the same: the Velero Backup whose contents it lists


def download_request_row(wire: mirrored.Download) -> DownloadRequestRow:
    """Return what is kept of a DownloadRequest."""
    meta = wire.metadata
    status = _status.decode(wire.status)
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    name = annotations.get(ORIGIN_NAME)
    namespace = annotations.get(ORIGIN_NAMESPACE)
    return DownloadRequestRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        created=meta.creation_timestamp,
        owner=Key(namespace, name) if name and namespace else None,
        request_uid=annotations.get(REQUEST_UID, ""),
        target=File(wire.spec.target.kind, wire.spec.target.name),
        url=status.download_url,
        expires=status.expiration,
        mirror=bytes(wire.status).decode(),
        results_of=_results_of(annotations),
        backup_uid=annotations.get(BACKUP_UID, ""),
    )


def _results_of(annotations: dict[str, str]) -> PartKey | None:
    for family in FAMILIES:
        name = annotations.get(family.origin_name)
        namespace = annotations.get(family.origin_namespace)
        if name and namespace:
            return family.queue_key(Key(namespace, name))
    return None


class ClaimRow(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    name: str
    namespace: str
    uid: str
    created: datetime
    is_bound: bool


def claim_row(wire: core.Claim) -> ClaimRow:
    """Return what is kept of a PersistentVolumeClaim."""
    meta = wire.metadata
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    is_bound = core.BOUND in (meta.annotations or {})
    return ClaimRow(meta.name, sys.intern(meta.namespace), meta.uid, meta.creation_timestamp, is_bound)
