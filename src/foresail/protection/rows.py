"""Of each kind only what decisions about protection need."""

import sys
from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import core, velero
from foresail.api.instants import instant, utc
from foresail.api.marks import (
    NAMESPACE_UIDS,
    OBSERVED,
    PROTECTION,
    PROTECTION_CLASS,
    PROTECTION_REASON,
    PROTECTION_UNTIL,
    SCHEDULE_UID,
    SLOT,
)
from foresail.api.protection import (
    Protection,
    ProtectionClass,
    ProtectionClassSpec,
    ProtectionClassStatus,
    ProtectionStatus,
)
from foresail.api.restore_check import is_sandbox
from foresail.cron import Dialect
from foresail.plan import Key, Keyed
from foresail.scope.covered import is_excluded
from foresail.slots.observed import observed_in
from foresail.tenancy.points import namespace_uids
from foresail.tenancy.records import owner_of

_TENANTS = "nab"  # what was made for a NonAdminBackup is of no class
_NAMESPACES = "includedNamespaces"


class NamespaceRow(Keyed, frozen=True):
    """A namespace, and what it says about its protection."""

    uid: str
    created: datetime
    asked: str = ""  # the value of the label
    reason: str = ""
    until: str = ""
    is_excluded: bool = False  # from every backup, by Velero's label or as a sandbox
    is_sandbox: bool = False
    is_terminating: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name


class ClassRow(Keyed, frozen=True):
    """A ProtectionClass."""

    uid: str
    generation: int
    spec: ProtectionClassSpec
    status: ProtectionClassStatus = ProtectionClassStatus()

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def template(self) -> dict[str, Any]:
        """The template of its Schedules, without namespaces."""
        template: dict[str, Any] = msgspec.to_builtins(self.spec.template)
        return template


class ScheduleRow(Keyed, frozen=True):
    """A Schedule in Velero's namespace; of one that is not ours, its name only."""

    uid: str = ""
    version: str = ""
    protection_class: str = ""  # by its mark; empty if it is not ours
    created: datetime | None = None
    labels: Mapping[str, str] = {}
    text: str = ""
    dialect: Dialect = Dialect.ROBFIG  # in which the operator of Schedules reads it
    template: bytes = b"{}"  # raw JSON
    members: tuple[str, ...] = ()
    paused: bool = False
    owns_backups: bool = False  # which go with it then
    phase: str = ""
    errors: tuple[str, ...] = ()
    last_backup: datetime | None = None
    is_terminating: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def asks(self) -> "ScheduleRow":
        """The row without what changes with each run."""
        return msgspec.structs.replace(self, version="", last_backup=None)


class BackupRow(Keyed, frozen=True):
    """A Backup of a class: which namespaces it was taken of, and how it went."""

    uid: str
    schedule: str
    schedule_uid: str
    protection_class: str
    uids: Mapping[str, str]  # of its namespaces
    phase: str
    started: datetime
    slot: datetime | None = None
    expires: datetime | None = None
    items: int | None = None
    selection: int = 0
    location: str = ""
    snapshots: int = 0
    is_synced: bool = False  # from the bucket, by Velero
    is_terminating: bool = False

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def is_terminal(self) -> bool:
        """Whether it has ended."""
        return self.phase in velero.TERMINAL

    def has(self, namespace: NamespaceRow) -> bool:
        """Whether it was taken of this very namespace, not of an earlier one of its name."""
        return self.is_of(namespace.name, namespace.uid)

    def is_of(self, namespace: str, uid: str) -> bool:
        """Whether it was taken of the namespace with this name and UID."""
        return bool(uid) and self.uids.get(namespace) == uid


class LocationRow(Keyed, frozen=True):
    """A storage location."""

    is_default: bool
    is_read_only: bool
    phase: str = ""
    wire: velero.Location | None = None  # when it was validated, by which a server is recognised that has no Deployment

    @property
    def asks(self) -> "LocationRow":
        """The row without what changes by itself."""
        return LocationRow(self.key, self.is_default, self.is_read_only)


class ClaimRow(Keyed, frozen=True):
    """A claim with a volume, whose data backups should have."""

    created: datetime


class ProtectionRow(Keyed, frozen=True):
    """A Protection."""

    uid: str
    version: str
    status: ProtectionStatus


def namespace_row(wire: core.Namespace) -> NamespaceRow:
    """Return the row of a namespace."""
    meta = wire.metadata
    labels = meta.labels or {}
    annotations = meta.annotations or {}
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    is_checks = is_sandbox(meta.name, labels)
    return NamespaceRow(
        key=Key("", meta.name),
        uid=meta.uid,
        created=meta.creation_timestamp,
        asked=sys.intern(labels.get(PROTECTION, "")),
        reason=annotations.get(PROTECTION_REASON, ""),
        until=annotations.get(PROTECTION_UNTIL, ""),
        is_excluded=is_checks or is_excluded(labels),
        is_sandbox=is_checks,
        is_terminating=meta.deletion_timestamp is not None,
    )


def class_row(wire: ProtectionClass) -> ClassRow:
    """Return the row of a class."""
    meta = wire.metadata
    return ClassRow(Key("", meta.name), meta.uid, meta.generation, wire.spec, wire.status)


def schedule_row(wire: velero.Schedule) -> ScheduleRow:
    """Return the row of a Schedule."""
    meta = wire.metadata
    key = Key(meta.namespace, meta.name)
    annotations = meta.annotations or {}
    of = annotations.get(PROTECTION_CLASS, "")
    if not of:
        return ScheduleRow(key)
    template: dict[str, Any] = msgspec.json.decode(wire.spec.template, type=dict[str, Any])
    named = template.get(_NAMESPACES)
    observed = observed_in(annotations.get(OBSERVED, ""))
    return ScheduleRow(
        key=key,
        uid=meta.uid,
        version=meta.resource_version,
        protection_class=sys.intern(of),
        created=meta.creation_timestamp,
        labels=meta.labels or {},
        text=wire.spec.schedule,
        dialect=(observed and observed.read_by) or Dialect.ROBFIG,  # recorded where the two differ
        template=bytes(wire.spec.template),
        members=tuple(map(sys.intern, map(str, named))) if isinstance(named, list) else (),
        paused=bool(wire.spec.paused),
        owns_backups=bool(wire.spec.use_owner_references_in_backup),
        phase=wire.status.phase,
        errors=tuple(wire.status.validation_errors or ()),
        last_backup=utc(wire.status.last_backup) if wire.status.last_backup else None,
        is_terminating=meta.deletion_timestamp is not None,
    )


def backup_row(wire: velero.Backup) -> BackupRow | None:
    """Return the row of a Backup of a class; None for any other."""
    meta = wire.metadata
    status = wire.status
    annotations = meta.annotations or {}
    uids = namespace_uids(annotations.get(NAMESPACE_UIDS, ""))
    created = meta.creation_timestamp
    if uids is None or created is None or owner_of(annotations, _TENANTS) is not None:
        return None
    progress = status.progress
    return BackupRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        schedule=sys.intern((meta.labels or {}).get(velero.SCHEDULE_LABEL, "")),
        schedule_uid=sys.intern(annotations.get(SCHEDULE_UID, "")),
        protection_class=sys.intern(annotations.get(PROTECTION_CLASS, "")),
        uids={sys.intern(name): sys.intern(uid) for name, uid in uids.items()},
        phase=status.phase,
        started=utc(status.start_timestamp or created),
        slot=instant(annotations.get(SLOT, "")),
        expires=utc(status.expiration) if status.expiration else None,
        items=progress.items_backed_up if progress is not None else None,
        selection=wire.spec.selection,
        location=sys.intern(wire.spec.storage_location),
        snapshots=status.snapshots,
        is_synced=status.completion_timestamp is not None and status.completion_timestamp < created,
        is_terminating=meta.deletion_timestamp is not None,
    )


def location_row(wire: velero.Location) -> LocationRow:
    """Return the row of a storage location."""
    key = Key(wire.metadata.namespace, wire.metadata.name)
    return LocationRow(key, bool(wire.spec.default), wire.spec.is_read_only, wire.status.phase, wire)


def claim_row(wire: core.Claim) -> ClaimRow | None:
    """Return the row of a claim; None if it has no volume, or nobody wants its data."""
    meta = wire.metadata
    if not wire.spec.volume_name or is_excluded(meta.labels or {}) or meta.creation_timestamp is None:
        return None
    return ClaimRow(Key(meta.namespace, meta.name), meta.creation_timestamp)


def protection_row(wire: Protection) -> ProtectionRow:
    """Return the row of a Protection."""
    meta = wire.metadata
    return ProtectionRow(Key(meta.namespace, meta.name), meta.uid, meta.resource_version, wire.status)
