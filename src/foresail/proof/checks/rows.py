"""The rows of everything that a check depends on or makes: only what decisions need."""

import sys
from collections.abc import Mapping
from datetime import datetime
from functools import lru_cache
from typing import Any

import msgspec

from foresail.api import mirrored, nonadmin, velero
from foresail.api.apps import Deployment, is_server
from foresail.api.marks import (
    CHECK,
    CHECK_LABEL,
    CHECK_NAMESPACE,
    CHECK_NOW,
    CHECK_RUN,
    CHECK_SOURCE,
    NAMESPACE_UID,
    NOT_BACKED_UP,
    REQUEST_UID,
    SCHEDULE_UID,
)
from foresail.api.metadata import Metadata, Named
from foresail.api.nonadmin import SYNCED_FROM
from foresail.api.pod_problems import ObservedPod, waiting_word
from foresail.api.pods import FAILED, SUCCEEDED, ResourceQuota
from foresail.api.restore_check import (
    MOST_OBJECTS,
    SANDBOX_PREFIX,
    CheckedBackups,
    RestoreCheck,
    RestoreCheckSpec,
    RestoreCheckStatus,
)
from foresail.plan import Key, Keyed
from foresail.proof.checks.judge import Verdict
from foresail.tenancy.records import owner_of

_LONGEST_MESSAGE = 300


class PodRow(Keyed, frozen=True):
    """A pod in a sandbox."""

    phase: str = ""
    is_ready: bool = False
    is_terminating: bool = False
    exit_code: int | None = None
    message: str = ""  # the end of the log of a container that failed
    waits: str = ""  # why it is not ready, as one word of Kubernetes
    created: datetime | None = None

    @property
    def has_ended(self) -> bool:
        """Whether nothing in it runs any more."""
        return self.exit_code is not None or self.phase in (SUCCEEDED, FAILED)


def pod_row(wire: ObservedPod) -> PodRow:
    """Return what is kept of a pod; what its containers wrote is cut and made printable."""
    meta = wire.metadata
    status = wire.status
    ended = [
        container_status.state.terminated
        for container_status in status.container_statuses or ()
        if container_status.state.terminated is not None
    ]
    return PodRow(
        key=Key(meta.namespace, meta.name),
        phase=status.phase,
        is_ready=wire.is_ready,
        is_terminating=meta.deletion_timestamp is not None,
        exit_code=ended[0].exit_code if ended and status.phase in (SUCCEEDED, FAILED) else None,
        message=_printable(ended[0].message) if ended else "",
        waits=_printable(waiting_word(status))[:64],
        created=meta.creation_timestamp,
    )


class Pods(msgspec.Struct, frozen=True):
    """The sandboxes whose pods are to be read, and what the steps before have found out."""

    run: str
    sandboxes: tuple[tuple[str, str], ...]  # the namespace of the backup, and its sandbox
    outside: str = ""  # the address of the bucket, for the canary
    verdict: Verdict | None = None  # on the restore, once it has ended
    kubernetes: str = ""  # the version of this cluster


class PodsFound(msgspec.Struct, frozen=True):
    """The pods, or why they cannot be read now."""

    pods: tuple[PodRow, ...] = ()
    problem: str = ""


def _printable(text: str) -> str:
    """Return the end of a text in one line: a container may write anything."""
    line = " ".join("".join(letter if letter.isprintable() else " " for letter in text).split())
    return line[-_LONGEST_MESSAGE:]


_MOST_LABELS, _LONGEST_LABELS = 32, 2 << 10
"""Of a NonAdminBackup, and their characters in total; one with more counts as one without labels.

A tenant chooses them, and they stay in memory.
"""

_LONGEST_UID = 64


Labels = Mapping[str, str | None]
"""Labels that many objects have in common, in memory once; a value that is the object's own name is None."""


def _shared(labels: Mapping[str, str] | None, name: str) -> Labels:
    return _once(tuple((label, None if value == name else value) for label, value in (labels or {}).items()))


@lru_cache(maxsize=256)
def _once(labels: tuple[tuple[str, str | None], ...]) -> Labels:
    return dict(labels)


def _labels_of(row: "RequestRow | BackupRow") -> dict[str, str]:
    return {label: row.key.name if value is None else value for label, value in row.shared_labels.items()}


class RequestRow(Keyed, frozen=True):
    """A NonAdminBackup or a NonAdminSchedule."""

    uid: str
    shared_labels: Labels
    schedule_uid: str = ""
    adopted: str = ""  # the name of the Velero Backup that it was adopted from
    is_terminating: bool = False

    @property
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return _labels_of(self)


def request_row(wire: Named) -> RequestRow:
    """Return what is kept of a NonAdminBackup."""
    meta = wire.metadata
    labels = meta.labels or {}
    adopted = labels.get(SYNCED_FROM, "")
    is_small = len(labels) <= _MOST_LABELS and sum(map(len, (*labels, *labels.values()))) <= _LONGEST_LABELS
    return RequestRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=sys.intern(meta.uid),
        shared_labels=_shared(labels if is_small else None, meta.name),
        schedule_uid=(meta.annotations or {}).get(SCHEDULE_UID, "")[:_LONGEST_UID],
        adopted=adopted,
        is_terminating=meta.deletion_timestamp is not None,
    )


def schedule_row(wire: Named) -> RequestRow:
    """Return what is kept of a NonAdminSchedule; nothing selects one by its labels."""
    meta = wire.metadata
    return RequestRow(Key(meta.namespace, meta.name), meta.uid, {}, is_terminating=meta.deletion_timestamp is not None)


_KUBERNETES = "velero.io/source-cluster-k8s-gitversion"
_LONGEST_VERSION = 256
_LONGEST_NAME = 253
_BACKUPS = "nab"
LARGEST_SPEC, MOST_VALUES = 4 << 10, 64
"""Bytes of JSON, and commas in it, that the spec of a tenant's check may have.

Specs stay in memory, where each value needs some 50 bytes more; an honest one has below 1 KiB.
"""


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


def check_row(wire: RestoreCheck, velero_namespace: str) -> CheckRow:
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
    shared_labels: Labels
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
    def labels(self) -> dict[str, str]:
        """Its labels."""
        return _labels_of(self)

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
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        phase=sys.intern("Deleting" if meta.deletion_timestamp is not None else status.phase),
        shared_labels=_shared(meta.labels, meta.name),
        location=sys.intern(wire.spec.storage_location),
        completed=status.completion_timestamp or status.start_timestamp,
        items=status.progress.items_backed_up if status.progress is not None else None,
        selection=wire.spec.selection,
        kubernetes=sys.intern(annotations.get(_KUBERNETES, "")[:_LONGEST_VERSION]),
        owner=owner_of(annotations, _BACKUPS),
        request_uid=sys.intern(annotations.get(REQUEST_UID, "")),
        namespace_uid=sys.intern(annotations.get(NAMESPACE_UID, "")),
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


class QuotaRow(OwnedObject, frozen=True):
    """The ResourceQuota of a sandbox."""

    is_counted: bool = False  # before everything is, the API server refuses every object that it bounds


def quota_row(wire: ResourceQuota) -> QuotaRow:
    """Return what is kept of a ResourceQuota; outside of sandboxes, where tenants may write, only its key."""
    meta = wire.metadata
    if not meta.namespace.startswith(SANDBOX_PREFIX):
        return QuotaRow(Key(meta.namespace, meta.name), uid="", check="", check_uid="", run="")
    is_counted = (wire.spec.hard or {}).keys() <= (wire.status.used or {}).keys()
    return QuotaRow(**_marks(meta), is_counted=is_counted)


class RestoreRow(OwnedObject, frozen=True):
    """The Velero Restore of a run; its `sandboxes` have the namespaces of the backup beside them, sorted."""

    phase: str = ""
    problem: str = ""
    seconds: int | None = None
    started: datetime | None = None
    sandboxes: tuple[tuple[str, str], ...] = ()


def restore_row(wire: velero.Restore) -> RestoreRow:
    """Return what is kept of a Restore."""
    status = wire.status
    seconds = None
    if status.start_timestamp is not None and status.completion_timestamp is not None:
        seconds = int((status.completion_timestamp - status.start_timestamp).total_seconds())
    problem = "; ".join(status.validation_errors or ()) or status.failure_reason
    marks = _marks(wire.metadata)
    began = status.start_timestamp
    return RestoreRow(
        **marks,
        phase=status.phase,
        problem=problem[:1024],
        seconds=seconds,
        started=began,
        sandboxes=tuple(sorted((wire.spec.namespace_mapping or {}).items())),
    )


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


class NamedRow(Keyed, frozen=True):
    """A StorageClass."""


def named_row(wire: Named) -> NamedRow:
    """Return what is kept of a StorageClass."""
    return NamedRow(key=Key("", wire.metadata.name))


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


EXCLUDED = {NOT_BACKED_UP: "true"}
"""On each object in a sandbox, never on its namespace.

While a namespace has it, Velero leaves cluster-scoped objects out of other Backups.
"""


def own_labels(check: CheckRow) -> dict[str, str]:
    """Return the label by which an object of a check is found."""
    return {CHECK_LABEL: check.uid}


def labels_in_sandbox(check: CheckRow) -> dict[str, str]:
    """Return the labels of an object that the operator creates in a sandbox."""
    return {**own_labels(check), **EXCLUDED}


def location_row(wire: mirrored.Location) -> LocationRow:
    """Return what is kept of a storage location."""
    storage = wire.spec.object_storage
    authority = storage.ca_cert if storage is not None else None
    return LocationRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        authority=authority.decode(errors="replace") if authority else "",
        is_default=bool(wire.spec.default),
        is_tenants=nonadmin.LOCATION_ORIGIN in (wire.metadata.annotations or {}),
        bucket=storage.bucket if storage is not None else "",
        prefix=storage.prefix if storage is not None else "",
    )
