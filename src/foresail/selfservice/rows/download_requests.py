"""Rows of Velero's DownloadRequests: which file was asked for, on whose behalf, and what Velero answered."""

from datetime import datetime

import msgspec

from foresail.api import mirrored, velero
from foresail.api.marks import BACKUP_UID, REQUEST_UID
from foresail.plan import Key, Keyed
from foresail.selfservice.families import FAMILIES

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
    results_of: Key | None = None  # if it is for the operator itself: the request that has failed
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


def _results_of(annotations: dict[str, str]) -> Key | None:
    for family in FAMILIES:
        name = annotations.get(family.origin_name)
        namespace = annotations.get(family.origin_namespace)
        if name and namespace:
            return family.queue_key(Key(namespace, name))
    return None
