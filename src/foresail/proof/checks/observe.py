"""What a decision about a RestoreCheck sees: rows with only what it needs."""

from datetime import datetime
from typing import Any

import msgspec

from foresail.api.apps import Deployment, is_server
from foresail.api.marks import CHECK, CHECK_LABEL, CHECK_NOW, CHECK_RUN, CHECK_SOURCE
from foresail.api.metadata import Metadata
from foresail.api.restore_check import RestoreCheckSpec, RestoreCheckStatus
from foresail.api.velero import BackupSpec, BackupStatus
from foresail.plan import Key, Keyed, ReadResult
from foresail.proof.checks.contents import Contents, Wanted
from foresail.proof.checks.judge import Verdict

_KUBERNETES = "velero.io/source-cluster-k8s-gitversion"
_LONGEST_VERSION = 256


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
    request: str = ""  # by an administrator, to check now


def check_row(wire: CheckWire) -> CheckRow:
    """Return what is kept of a RestoreCheck."""
    meta = wire.metadata
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    return CheckRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        spec=wire.spec,
        status=wire.status,
        request=(meta.annotations or {}).get(CHECK_NOW, "")[:256],
    )


class BackupWire(msgspec.Struct, frozen=True):
    """A Velero Backup."""

    metadata: Metadata
    spec: BackupSpec = BackupSpec()
    status: BackupStatus = BackupStatus()


class BackupRow(Keyed, frozen=True):
    """A Velero Backup."""

    uid: str
    phase: str
    labels: dict[str, str]
    location: str
    completed: datetime | None = None
    kubernetes: str = ""  # the version of the cluster that was backed up


def backup_row(wire: BackupWire) -> BackupRow:
    """Return what is kept of a Backup; one that is being deleted is not Completed any more."""
    meta, status = wire.metadata, wire.status
    return BackupRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        phase="Deleting" if meta.deletion_timestamp is not None else status.phase,
        labels=meta.labels or {},
        location=wire.spec.storage_location,
        completed=status.completion_timestamp or status.start_timestamp,
        kubernetes=(meta.annotations or {}).get(_KUBERNETES, "")[:_LONGEST_VERSION],
    )


class Piece(Keyed, frozen=True):
    """An object that was made for a run of a RestoreCheck."""

    uid: str
    check: str  # the name of the RestoreCheck
    check_uid: str
    run: str
    source: str = ""  # of a sandbox: the namespace of the backup
    created: datetime | None = None
    is_terminating: bool = False


class PieceWire(msgspec.Struct, frozen=True):
    """A namespace or a ConfigMap."""

    metadata: Metadata


def piece_row(wire: PieceWire) -> Piece:
    """Return what is kept of a namespace or a ConfigMap."""
    return Piece(**_marks(wire.metadata))


class RestoreStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How a Restore went."""

    phase: str = ""
    failure_reason: str = ""
    validation_errors: list[str] | None = None
    start_timestamp: datetime | None = None
    completion_timestamp: datetime | None = None


class RestoreWire(msgspec.Struct, frozen=True):
    """A Velero Restore."""

    metadata: Metadata
    status: RestoreStatus = RestoreStatus()


class RestoreRow(Piece, frozen=True):
    """The Velero Restore of a run."""

    phase: str = ""
    problem: str = ""
    seconds: int | None = None


def restore_row(wire: RestoreWire) -> RestoreRow:
    """Return what is kept of a Restore."""
    status = wire.status
    seconds = None
    if status.start_timestamp is not None and status.completion_timestamp is not None:
        seconds = int((status.completion_timestamp - status.start_timestamp).total_seconds())
    problem = "; ".join(status.validation_errors or ()) or status.failure_reason
    return RestoreRow(**_marks(wire.metadata), phase=status.phase, problem=problem[:1024], seconds=seconds)


class DownloadTarget(msgspec.Struct, frozen=True):
    """Which file, and of what."""

    kind: str = ""
    name: str = ""


class DownloadSpec(msgspec.Struct, frozen=True):
    """What is asked for."""

    target: DownloadTarget = DownloadTarget()


class DownloadStatus(msgspec.Struct, frozen=True, rename="camel"):
    """What Velero answered."""

    download_url: str = msgspec.field(default="", name="downloadURL")
    expiration: datetime | None = None


class DownloadWire(msgspec.Struct, frozen=True):
    """A DownloadRequest."""

    metadata: Metadata
    spec: DownloadSpec = DownloadSpec()
    status: DownloadStatus = DownloadStatus()


class DownloadRow(Piece, frozen=True):
    """A DownloadRequest of a run."""

    target: DownloadTarget = DownloadTarget()
    url: str = ""
    expires: datetime | None = None


def download_row(wire: DownloadWire) -> DownloadRow:
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
    image = next((each.image for each in containers if is_server(each)), "")
    return ServerRow(Key(wire.metadata.namespace, wire.metadata.name), image[:_LONGEST_VERSION])


class Circumstances(msgspec.Struct, frozen=True, rename="camel"):
    """Under which a backup is checked, for the evidence."""

    velero_image: str = ""
    backup_kubernetes: str = ""
    location: str = ""
    bucket: str = ""
    prefix: str = ""


class NamedWire(msgspec.Struct, frozen=True):
    """A StorageClass: only its name counts."""

    metadata: Metadata


class NamedRow(Keyed, frozen=True):
    """A StorageClass."""


def named_row(wire: NamedWire) -> NamedRow:
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


class FilesFound(msgspec.Struct, frozen=True):
    """What the files say, or why they cannot be read now; `is_final` if they never can."""

    contents: Contents | None = None
    verdict: Verdict | None = None
    problem: str = ""
    is_final: bool = False
    kubernetes: str = ""  # the version of this cluster


class CheckView(msgspec.Struct, frozen=True):
    """Everything that a decision about one RestoreCheck depends on, but the time."""

    key: Key
    check: CheckRow | None  # None if it is deleted; what was made for it may still be there
    backups: tuple[BackupRow, ...] = ()  # those that it selects
    sandboxes: tuple[Piece, ...] = ()
    restores: tuple[RestoreRow, ...] = ()
    config_maps: tuple[Piece, ...] = ()
    downloads: tuple[DownloadRow, ...] = ()
    authority: str = ""
    classes: tuple[str, ...] = ()  # the names of all storage classes
    circumstances: Circumstances = Circumstances()
    read_result: ReadResult[Files, FilesFound] | None = None


def _marks(meta: Metadata) -> dict[str, Any]:
    annotations = meta.annotations or {}
    return {
        "key": Key(meta.namespace, meta.name),
        "uid": meta.uid,
        "check": annotations.get(CHECK, ""),
        "check_uid": (meta.labels or {}).get(CHECK_LABEL, ""),
        "run": annotations.get(CHECK_RUN, ""),
        "source": annotations.get(CHECK_SOURCE, ""),
        "created": meta.creation_timestamp,
        "is_terminating": meta.deletion_timestamp is not None,
    }
