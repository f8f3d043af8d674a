"""Rows of BackupStorageLocations, of tenants' own locations, and of the requests to approve those."""

import sys
from datetime import datetime

import msgspec

from foresail.api import mirrored, nonadmin, velero
from foresail.api.marks import NAMESPACE_UID, REFRESH, REQUEST_HASH, REQUEST_UID, SUSPENDED
from foresail.cron.duration import nanoseconds
from foresail.plan import Key, Keyed
from foresail.selfservice.rows.requests import (
    LARGEST_SPEC,
    Status,
    conditions_of,
    copy_of,
)
from foresail.selfservice.rows.velero import LONGEST_NAME
from foresail.tenancy.requester import requester_of

ORIGIN_NAME = "openshift.io/oadp-nabsl-origin-name"
ORIGIN_NAMESPACE = nonadmin.LOCATION_ORIGIN
NACUUID_LABEL = "openshift.io/oadp-nabsl-origin-nacuuid"


class LocationRow(msgspec.Struct, frozen=True):
    """A BackupStorageLocation, whoever made it, with the record of whose it is."""

    name: str
    authority: str  # an additional CA certificate in PEM; empty if there is none
    is_default: bool = False
    is_read_only: bool = False
    is_available: bool = True
    last_synced: datetime | None = None  # when Velero last compared its Backups with the bucket
    storage: str = ""  # the bucket and prefix that records are signed for; empty if it is a tenant's own
    is_synced: bool = True  # whether Velero ever does
    phase: str = ""
    uid: str = ""
    owner: Key | None = None  # the tenant's NonAdminBackupStorageLocation; None if it is the administrator's
    request_uid: str = ""
    namespace_uid: str = ""
    request_hash: str = ""  # of the spec and the credentials that are in place; empty if there are none yet
    suspended: str = ""  # why it takes no backups of its tenant any more
    created: datetime | None = None


def location_row(wire: mirrored.Location) -> LocationRow:
    """Return what is kept of a BackupStorageLocation."""
    stored = wire.spec.object_storage
    annotations = wire.metadata.annotations or {}
    name = annotations.get(ORIGIN_NAME)
    namespace = annotations.get(ORIGIN_NAMESPACE)
    period = wire.spec.backup_sync_period
    owner = Key(sys.intern(namespace), name) if name and namespace else None
    return LocationRow(
        name=wire.metadata.name,
        authority=stored.ca_cert.decode(errors="replace") if stored is not None and stored.ca_cert else "",
        is_default=bool(wire.spec.default),
        is_read_only=wire.spec.is_read_only,
        is_available=wire.status.phase == velero.AVAILABLE,
        last_synced=wire.status.last_synced_time,
        storage=storage_of(wire) if owner is None else "",
        is_synced=period is None or nanoseconds(period) != 0,
        phase=sys.intern(wire.status.phase),
        uid=wire.metadata.uid,
        owner=owner,
        request_uid=annotations.get(REQUEST_UID, ""),
        namespace_uid=annotations.get(NAMESPACE_UID, ""),
        request_hash=annotations.get(REQUEST_HASH, ""),
        suspended=sys.intern(annotations.get(SUSPENDED, "")),
        created=wire.metadata.creation_timestamp,
    )


def storage_of(wire: mirrored.Location) -> str:
    """Return bucket and prefix of a location, which stay the same when it is created again.

    A bucket's name has no slash.
    """
    stored = wire.spec.object_storage
    return f"{stored.bucket}/{stored.prefix.strip('/')}" if stored is not None and stored.bucket else ""


FINALIZER = "nonadminbackupstoragelocation.oadp.openshift.io/finalizer"
LARGEST_AUTHORITY = 16 << 10
"""Bytes of JSON that the CA certificates may add to a spec."""


class TenantLocationRow(Keyed, frozen=True):
    """A NonAdminBackupStorageLocation."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_terminating: bool
    finalizer_index: int  # of our finalizer among all of them; -1 if it is not there
    has_others_finalizers: bool
    spec: str  # what the tenant asks for, as it came; empty if it is oversized
    status: Status
    requester: str = ""
    requester_groups: tuple[str, ...] = ()
    refresh: str = ""  # a new value asks for the Secret to be read again
    restored_by: str = ""  # the Velero Restore that brought it back; empty if nobody restored it
    is_oversized: bool = False

    @property
    def has_finalizer(self) -> bool:
        """Whether our finalizer is on it."""
        return self.finalizer_index >= 0


class ApprovalRow(Keyed, frozen=True):
    """A NonAdminBackupStorageLocationRequest, with the record of whose it is."""

    uid: str
    version: str
    owner: Key | None
    request_uid: str
    namespace_uid: str
    decision: str
    approved_request: str  # the hash that the administrator named; empty if none
    phase: str
    requested_spec: str  # the snapshot in its status, as it came
    request_hash: str
    approved_hash: str
    created: datetime | None = None


def tenant_location_row(wire: nonadmin.Location) -> TenantLocationRow:
    """Return what is kept of a NonAdminBackupStorageLocation."""
    meta = wire.metadata
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    asked = wire.spec.backup_storage_location_spec
    requester, groups = requester_of(annotations)
    is_oversized = memoryview(asked).nbytes > LARGEST_SPEC + LARGEST_AUTHORITY
    return TenantLocationRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        finalizer_index=meta.finalizers.index(FINALIZER) if FINALIZER in meta.finalizers else -1,
        has_others_finalizers=any(finalizer != FINALIZER for finalizer in meta.finalizers),
        spec="" if is_oversized else bytes(asked).decode(),
        status=Status(
            phase=sys.intern(status.phase),
            conditions=conditions_of(status.conditions or []),
            velero=copy_of(status.velero_backup_storage_location),
        ),
        requester=requester,
        requester_groups=groups,
        refresh=annotations.get(REFRESH, "")[:LONGEST_NAME],
        restored_by=(meta.labels or {}).get(velero.RESTORE_NAME_LABEL, ""),
        is_oversized=is_oversized,
    )


def approval_row(wire: nonadmin.Approval) -> ApprovalRow:
    """Return what is kept of a NonAdminBackupStorageLocationRequest."""
    meta = wire.metadata
    asked = wire.status.non_admin_backup_storage_location or nonadmin.RequestedLocation()
    annotations = meta.annotations or {}
    name = annotations.get(ORIGIN_NAME)
    namespace = annotations.get(ORIGIN_NAMESPACE)
    return ApprovalRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        owner=Key(sys.intern(namespace), name) if name and namespace else None,
        request_uid=annotations.get(REQUEST_UID, ""),
        namespace_uid=annotations.get(NAMESPACE_UID, ""),
        decision=sys.intern(wire.spec.approval_decision),
        approved_request=wire.spec.approved_request,
        phase=sys.intern(wire.status.phase),
        requested_spec=bytes(asked.requested_spec).decode(),
        request_hash=asked.request_hash,
        approved_hash=asked.approved_hash,
        created=meta.creation_timestamp,
    )
