"""What a decision about a RestoreCheck sees: rows with only what it needs."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.apps import Deployment, is_server
from foresail.api.marks import (
    CHECK,
    CHECK_LABEL,
    CHECK_NAMESPACE,
    CHECK_NOW,
    CHECK_RUN,
    CHECK_SOURCE,
    NAMESPACE_UID,
    REQUEST_UID,
)
from foresail.api.metadata import Metadata, Named
from foresail.api.policy import RestoreChecksPolicy
from foresail.api.restore_check import (
    MOST_OBJECTS,
    SANDBOX_PREFIX,
    CheckedBackups,
    RestoreCheckSpec,
    RestoreCheckStatus,
)
from foresail.plan import Key, Keyed, ReadResult
from foresail.proof.checks.contents import Contents, Wanted
from foresail.proof.checks.judge import Verdict
from foresail.proof.checks.pod_rows import Pods, PodsFound
from foresail.proof.checks.settings import DataSettings
from foresail.proof.checks.volume_infos import SavedClaims
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import owner_of

_KUBERNETES = "velero.io/source-cluster-k8s-gitversion"
_LONGEST_VERSION = 256
_LONGEST_NAME = 253
_BACKUPS = "nab"
LARGEST_SPEC, MOST_VALUES = 4 << 10, 64
"""Bytes of JSON, and commas in it, that the spec of a tenant's check may have.

Specs stay in memory, where each value needs some 50 bytes more; an honest one has below 1 KiB.
"""


class CheckMetadata(Metadata, frozen=True, rename="camel"):
    """With the generation of the spec."""

    generation: int = 0


class CheckWire(msgspec.Struct, frozen=True):
    """A RestoreCheck."""

    metadata: CheckMetadata
    spec: RestoreCheckSpec
    status: RestoreCheckStatus = RestoreCheckStatus()


class CheckRow(Keyed, frozen=True):
    """A RestoreCheck."""

    uid: str
    version: str
    generation: int
    created: datetime
    spec: RestoreCheckSpec
    status: RestoreCheckStatus
    velero_namespace: str = ""  # where the objects of its runs are
    request: str = ""  # by its owner, to check now
    most_objects: int = MOST_OBJECTS
    is_terminating: bool = False
    is_oversized: bool = False  # a tenant's spec is too large, and is not kept

    @property
    def is_tenants(self) -> bool:
        """Whether it is in the namespace of a tenant."""
        return self.key.namespace != self.velero_namespace


def check_row(wire: CheckWire, velero_namespace: str) -> CheckRow:
    """Return what is kept of a RestoreCheck."""
    meta = wire.metadata
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    is_oversized = meta.namespace != velero_namespace and _is_oversized(wire.spec)
    return CheckRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=RestoreCheckSpec(CheckedBackups()) if is_oversized else wire.spec,
        status=wire.status,
        velero_namespace=velero_namespace,
        is_terminating=meta.deletion_timestamp is not None,
        is_oversized=is_oversized,
        request=(meta.annotations or {}).get(CHECK_NOW, "")[:256],
    )


def _is_oversized(spec: RestoreCheckSpec) -> bool:
    written = msgspec.json.encode(spec)
    return len(written) > LARGEST_SPEC or written.count(b",") > MOST_VALUES


class BackupRow(Keyed, frozen=True):
    """A Velero Backup."""

    uid: str
    phase: str
    labels: dict[str, str]
    location: str
    completed: datetime | None = None
    items: int | None = None
    selection: int = 0
    kubernetes: str = ""  # the version of the cluster that was backed up
    owner: Key | None = None  # the NonAdminBackup by its names, and by the UIDs of it and of its namespace
    request_uid: str = ""
    namespace_uid: str = ""

    @property
    def name(self) -> str:
        """Its name."""
        return self.key.name

    @property
    def started(self) -> datetime | None:
        """When it ended: the order of backups that do not overlap."""
        return self.completed


def backup_row(wire: velero.Backup) -> BackupRow:
    """Return what is kept of a Backup; one that is being deleted is not Completed any more."""
    meta = wire.metadata
    status = wire.status
    annotations = wire.metadata.annotations or {}
    return BackupRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        phase="Deleting" if meta.deletion_timestamp is not None else status.phase,
        labels=meta.labels or {},
        location=wire.spec.storage_location,
        completed=status.completion_timestamp or status.start_timestamp,
        items=status.progress.items_backed_up if status.progress is not None else None,
        selection=wire.spec.selection,
        kubernetes=annotations.get(_KUBERNETES, "")[:_LONGEST_VERSION],
        owner=owner_of(annotations, _BACKUPS),
        request_uid=annotations.get(REQUEST_UID, ""),
        namespace_uid=annotations.get(NAMESPACE_UID, ""),
    )


class OwnedObject(Keyed, frozen=True):
    """An object that was made for a run of a RestoreCheck."""

    uid: str
    check: str  # the name of the RestoreCheck
    check_uid: str
    run: str
    source: str = ""  # of a sandbox: the namespace of the backup
    created: datetime | None = None
    is_terminating: bool = False
    check_namespace: str = ""  # of a tenant's RestoreCheck


def owned_object_row(wire: Named) -> OwnedObject:
    """Return what is kept of a namespace or a ConfigMap."""
    return OwnedObject(**_marks(wire.metadata))


class QuotaBounds(msgspec.Struct, frozen=True):
    """What a ResourceQuota bounds."""

    hard: dict[str, str] | None = None


class QuotaStatus(msgspec.Struct, frozen=True):
    """What is counted so far."""

    used: dict[str, str] | None = None


class QuotaWire(msgspec.Struct, frozen=True):
    """A ResourceQuota."""

    metadata: Metadata
    spec: QuotaBounds = QuotaBounds()
    status: QuotaStatus = QuotaStatus()


class QuotaRow(OwnedObject, frozen=True):
    """The ResourceQuota of a sandbox."""

    is_counted: bool = False  # before everything is, the API server refuses every object that it bounds


def quota_row(wire: QuotaWire) -> QuotaRow:
    """Return what is kept of a ResourceQuota; outside of sandboxes, where tenants may write, only its key."""
    meta = wire.metadata
    if not meta.namespace.startswith(SANDBOX_PREFIX):
        return QuotaRow(Key(meta.namespace, meta.name), uid="", check="", check_uid="", run="")
    is_counted = (wire.spec.hard or {}).keys() <= (wire.status.used or {}).keys()
    return QuotaRow(**_marks(meta), is_counted=is_counted)


class RestoreRow(OwnedObject, frozen=True):
    """The Velero Restore of a run."""

    phase: str = ""
    problem: str = ""
    seconds: int | None = None
    started: datetime | None = None


def restore_row(wire: velero.Restore) -> RestoreRow:
    """Return what is kept of a Restore."""
    status = wire.status
    seconds = None
    if status.start_timestamp is not None and status.completion_timestamp is not None:
        seconds = int((status.completion_timestamp - status.start_timestamp).total_seconds())
    problem = "; ".join(status.validation_errors or ()) or status.failure_reason
    marks = _marks(wire.metadata)
    began = status.start_timestamp
    return RestoreRow(**marks, phase=status.phase, problem=problem[:1024], seconds=seconds, started=began)


class DownloadRow(OwnedObject, frozen=True):
    """A DownloadRequest of a run."""

    target: velero.DownloadTarget = velero.DownloadTarget()
    url: str = ""
    expires: datetime | None = None


def download_row(wire: velero.Download) -> DownloadRow:
    """Return what is kept of a DownloadRequest."""
    status = wire.status
    marks = _marks(wire.metadata)
    return DownloadRow(**marks, target=wire.spec.target, url=status.download_url, expires=status.expiration)


class LocationRow(Keyed, frozen=True):
    """A BackupStorageLocation: its CA certificate in PEM."""

    authority: str = ""
    is_default: bool = False
    is_tenants: bool = False  # self-service made it for a tenant's own bucket
    bucket: str = ""
    prefix: str = ""


class ServerRow(Keyed, frozen=True):
    """A Deployment in Velero's namespace: the image of the Velero server, if it runs one."""

    image: str = ""


def server_row(wire: Deployment) -> ServerRow:
    """Return what is kept of a Deployment."""
    containers = wire.spec.template.spec.containers
    image = next((container.image for container in containers if is_server(container)), "")
    return ServerRow(Key(wire.metadata.namespace, wire.metadata.name), image[:_LONGEST_VERSION])


class Environment(msgspec.Struct, frozen=True, rename="camel"):
    """In which a backup is checked, for the evidence."""

    velero_image: str = ""
    backup_kubernetes: str = ""
    location: str = ""
    bucket: str = ""
    prefix: str = ""


class NamedRow(Keyed, frozen=True):
    """A StorageClass."""


def named_row(wire: Named) -> NamedRow:
    """Return what is kept of a StorageClass."""
    return NamedRow(key=Key("", wire.metadata.name))


class Files(msgspec.Struct, frozen=True):
    """The files of a run to read, by their URLs, and how to read them."""

    run: str
    contents: str
    wanted: Wanted
    authority: str = ""
    phase: str = ""  # of the restore, once it has ended
    restored: str = ""
    results: str = ""
    sandboxes: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()  # storage classes of this cluster
    volumes: str = ""  # with depth Data


class FilesFound(msgspec.Struct, frozen=True):
    """What the files say, or why they cannot be read now; `is_final` if they never can."""

    contents: Contents | None = None
    verdict: Verdict | None = None
    problem: str = ""
    is_final: bool = False
    kubernetes: str = ""  # the version of this cluster
    outside: str = ""  # with depth Data: the address of the bucket
    claims: SavedClaims | None = None  # None if it was not asked for


Query = Files | Pods
Found = FilesFound | PodsFound


class Tenant(msgspec.Struct, frozen=True):
    """What holds for a check in the namespace of a tenant."""

    namespace: NamespaceRow | None  # None if it is deleted
    policy: RestoreChecksPolicy | None  # None if no SelfServicePolicy applies
    rank: int = 0  # how many checks of the namespace are older
    starts: tuple[OwnedObject, ...] = ()  # the recorded starts of checks of the namespace
    is_free: bool = True  # whether no other tenant's check runs or comes first
    busy_until: datetime | None = None  # when the one that runs must have ended
    sandboxes: tuple[OwnedObject, ...] = ()  # of all checks of the namespace


class CheckView(msgspec.Struct, frozen=True):
    """Everything that a decision about one RestoreCheck depends on, but the time."""

    key: Key
    check: CheckRow | None  # None if it is deleted; what was made for it may still be there
    tenant: Tenant | None = None  # None if it is the administrator's
    backups: tuple[BackupRow, ...] = ()  # those that it selects
    sandboxes: tuple[OwnedObject, ...] = ()
    quotas: tuple[QuotaRow, ...] = ()  # of the sandboxes
    restores: tuple[RestoreRow, ...] = ()
    config_maps: tuple[OwnedObject, ...] = ()
    downloads: tuple[DownloadRow, ...] = ()
    taken_volumes: tuple[str, ...] = ()  # which claims in the sandboxes have, and were not provisioned for them
    free_volumes: Mapping[str, str] = msgspec.field(default_factory=dict)
    """For each storage class with volumes that any claim could take, the name of one."""

    authority: str = ""
    classes: tuple[str, ...] = ()  # the names of all storage classes
    environment: Environment = Environment()
    data: DataSettings | None = None  # None if depth Data is off
    read_result: ReadResult[Query, Found] | None = None

    @property
    def files_result(self) -> ReadResult[Files, FilesFound] | None:
        """What the files say, if they were read last."""
        result = self.read_result
        if result is None or not (isinstance(result.query, Files) and isinstance(result.found, FilesFound)):
            return None
        return ReadResult(result.query, result.found, result.started, result.attempts)

    @property
    def pods_result(self) -> ReadResult[Pods, PodsFound] | None:
        """What the pods in the sandboxes do, if they were read last."""
        result = self.read_result
        if result is None or not (isinstance(result.query, Pods) and isinstance(result.found, PodsFound)):
            return None
        return ReadResult(result.query, result.found, result.started, result.attempts)


def _marks(meta: Metadata) -> dict[str, Any]:
    annotations = meta.annotations or {}
    return {
        "key": Key(meta.namespace, meta.name),
        "uid": meta.uid,
        "check": annotations.get(CHECK, "")[:_LONGEST_NAME],
        "check_uid": (meta.labels or {}).get(CHECK_LABEL, ""),
        "run": annotations.get(CHECK_RUN, "")[:_LONGEST_NAME],
        "source": annotations.get(CHECK_SOURCE, "")[:_LONGEST_NAME],
        "created": meta.creation_timestamp,
        "is_terminating": meta.deletion_timestamp is not None,
        "check_namespace": annotations.get(CHECK_NAMESPACE, "")[:_LONGEST_NAME],
    }
