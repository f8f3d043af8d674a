"""What a decision about a NonAdminDownloadRequest sees: flat rows of it, of Velero's answer, and what it is about."""

import sys
from datetime import datetime

import msgspec

from foresail.api import nonadmin, velero
from foresail.plan import Claim, Key, Keyed, ReadResult
from foresail.selfservice.access.view import SecretsCheck, SecretsChecked
from foresail.selfservice.rows.requests import Copy, RequestRow, Status
from foresail.selfservice.rows.velero import LONGEST_NAME, DownloadRequestRow, File, VeleroRow, up_to
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.requester import requester_of

NACUUID_LABEL = "openshift.io/oadp-nadr-origin-nacuuid"

_glimpse = msgspec.json.Decoder(velero.DownloadStatus)


class Asks(Claim, msgspec.Struct, frozen=True):
    """The DownloadRequest by which Velero is asked for a file."""

    key: Key


class DownloadRow(Keyed, frozen=True):
    """A NonAdminDownloadRequest."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_terminating: bool
    target: File
    url: str  # empty until it is in the status
    expires: datetime | None
    status: Status
    requester: str = ""  # the requester; empty if no admission policy recorded it, or if Velero restored it
    requester_groups: tuple[str, ...] = ()


class DownloadView(msgspec.Struct, frozen=True):
    """Everything that a decision about one NonAdminDownloadRequest depends on, but the time."""

    request: DownloadRow | None  # None if it is deleted; its DownloadRequest may still exist
    velero_namespace: str
    namespace: NamespaceRow | None = None
    about: RequestRow | None = None  # the NonAdminBackup or NonAdminRestore of that name in the same namespace
    velero: VeleroRow | None = None  # found by name; the rules check ownership
    backup: VeleroRow | None = None  # the Velero Backup whose location has the file
    answers: tuple[DownloadRequestRow, ...] = ()
    has_policy: bool = True  # whether a SelfServicePolicy selects the namespace
    unanswered: int = 0  # files of the namespace that Velero was asked for and has not answered
    allows_contents: bool = False  # whether that policy allows downloads of contents
    reserved: frozenset[str] = frozenset()  # namespaces whose ServiceAccounts are never requesters
    read_result: ReadResult[SecretsCheck, SecretsChecked] | None = None


def download_row(wire: nonadmin.Download) -> DownloadRow:
    """Return the row of a NonAdminDownloadRequest."""
    meta = wire.metadata
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    mirror = bytes(status.velero.status).decode() if status.velero is not None else "{}"
    answer = _glimpse.decode(mirror)
    is_restored = velero.RESTORE_NAME_LABEL in (meta.labels or {})
    requester, groups = ("", ()) if is_restored else requester_of(meta.annotations or {})
    return DownloadRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=meta.creation_timestamp,
        is_terminating=meta.deletion_timestamp is not None,
        target=File(up_to(LONGEST_NAME, wire.spec.target.kind), up_to(LONGEST_NAME, wire.spec.target.name)),
        url=answer.download_url,
        expires=answer.expiration,
        status=Status(status.phase, tuple(status.conditions or ()), Copy(mirror=mirror)),
        requester=requester,
        requester_groups=groups,
    )
