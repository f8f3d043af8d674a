"""What a decision about a NonAdminDownloadRequest sees: flat rows of it, of Velero's answer, and what it is about."""

import sys
from datetime import datetime

import msgspec

from foresail.api import mirrored, nonadmin
from foresail.api.marks import REQUEST_UID
from foresail.plan import Key, Keyed
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.rows.namespaces import NamespaceRow
from foresail.selfservice.rows.requests import Copy, RequestRow, Status
from foresail.selfservice.rows.text import LONGEST_NAME, up_to
from foresail.selfservice.rows.velero import VeleroRow

ORIGIN_NAME = "openshift.io/oadp-nadr-origin-name"
ORIGIN_NAMESPACE = "openshift.io/oadp-nadr-origin-namespace"
NACUUID_LABEL = "openshift.io/oadp-nadr-origin-nacuuid"

_glimpse = msgspec.json.Decoder(mirrored.DownloadGlimpse)


class File(msgspec.Struct, frozen=True):
    """What is asked for: which file, and of which object; the tenant's, or Velero's."""

    kind: str
    name: str


class DownloadRow(Keyed, frozen=True):
    """A NonAdminDownloadRequest."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_going: bool
    target: File
    url: str  # empty until it is in the status
    expires: datetime | None
    status: Status


class AnswerRow(Keyed, frozen=True):
    """A DownloadRequest of Velero's, whoever made it, with the record of whose it is."""

    uid: str
    created: datetime
    owner: Key | None
    request_uid: str
    target: File
    url: str  # empty until Velero has answered
    expires: datetime | None
    mirror: str
    results_of: Key | None = None  # if it is for the operator itself: the request that has failed


class DownloadSeen(msgspec.Struct, frozen=True):
    """Everything that a decision about one NonAdminDownloadRequest depends on, but the time."""

    request: DownloadRow | None  # None if it is gone; what was made for it may still be there
    velero_namespace: str
    namespace: NamespaceRow | None = None
    about: RequestRow | None = None  # the NonAdminBackup or NonAdminRestore of that name in the same namespace
    velero: VeleroRow | None = None  # by its name; whose it is, is for the rules to say
    backup: VeleroRow | None = None  # the Velero Backup in whose location the file lies
    answers: tuple[AnswerRow, ...] = ()
    has_policy: bool = True  # whether a SelfServicePolicy selects the namespace


def download_row(wire: nonadmin.Download) -> DownloadRow:
    """Return what is kept of a NonAdminDownloadRequest."""
    meta, status = wire.metadata, wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    mirror = bytes(status.velero.status).decode() if status.velero is not None else "{}"
    said = _glimpse.decode(mirror)
    return DownloadRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        is_going=meta.deletion_timestamp is not None,
        target=File(up_to(LONGEST_NAME, wire.spec.target.kind), up_to(LONGEST_NAME, wire.spec.target.name)),
        url=said.download_url,
        expires=said.expiration,
        status=Status(status.phase, tuple(status.conditions or ()), Copy(mirror=mirror)),
    )


def answer_row(wire: mirrored.Download) -> AnswerRow:
    """Return what is kept of a DownloadRequest."""
    meta, said = wire.metadata, _glimpse.decode(wire.status)
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    name, namespace = annotations.get(ORIGIN_NAME), annotations.get(ORIGIN_NAMESPACE)
    return AnswerRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        created=meta.creation_timestamp,
        owner=Key(namespace, name) if name and namespace else None,
        request_uid=annotations.get(REQUEST_UID, ""),
        target=File(wire.spec.target.kind, wire.spec.target.name),
        url=said.download_url,
        expires=said.expiration,
        mirror=bytes(wire.status).decode(),
        results_of=_results_of(annotations),
    )


def _results_of(annotations: dict[str, str]) -> Key | None:
    for family in (BACKUPS, RESTORES):
        name, namespace = annotations.get(family.origin_name), annotations.get(family.origin_namespace)
        if name and namespace:
            return family.looked_at(Key(namespace, name))
    return None
