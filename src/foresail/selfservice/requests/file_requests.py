"""DownloadRequests of the operator: create them, find answers, detect silence and expiry, clean up.

Downloads of tenants, results of failed requests and checks of access ask in this one way. Each has a prefix of its own:
a DownloadRequest is named after the prefix and the UID of its object, so a restart creates no second one.
"""

from collections.abc import Mapping
from datetime import datetime, timedelta

import msgspec

from foresail.api import nonadmin, velero
from foresail.plan import Create, Delete, Key
from foresail.selfservice.rows.velero import DownloadRequestRow, File

LIFETIME = timedelta(minutes=10)
"""How long a URL is valid that does not say it: Velero gives each ten minutes."""


class FileRequests(msgspec.Struct, frozen=True):
    """The DownloadRequests for objects of one name, which may have been created again since."""

    prefix: str
    uid: str  # of the object as it is now; empty if it is deleted
    rows: tuple[DownloadRequestRow, ...]

    @property
    def own(self) -> list[DownloadRequestRow]:
        """Our own ones; a record on any other name is not ours."""
        return [row for row in self.rows if row.request_uid and row.key.name == file_name(self.prefix, row.request_uid)]

    @property
    def current(self) -> DownloadRequestRow | None:
        """The one for this object, by its UID."""
        return next((row for row in self.own if row.request_uid == self.uid), None)

    def delete_all(self) -> tuple[Delete, ...]:
        """Return the deletion of all of them."""
        return tuple(map(delete_file_request, self.own))

    def delete_obsolete(self) -> tuple[Delete, ...]:
        """Return the deletion of those for earlier objects of this name: their URLs go with them."""
        return tuple(delete_file_request(row) for row in self.own if row.request_uid != self.uid)


def file_name(prefix: str, uid: str) -> str:
    """Return the name of the DownloadRequest for an object."""
    return f"{prefix}{uid}"


def ask(key: Key, file: File, record: Mapping[str, str], labels: Mapping[str, str] | None = None) -> Create:
    """Return the creation of a DownloadRequest, with its ownership record."""
    body = {
        "metadata": {"labels": {**nonadmin.LABELS, **(labels or {})}},
        "spec": {"target": {"kind": file.kind, "name": file.name}},
    }
    return Create(velero.DOWNLOAD_REQUEST, key, body, record)


def delete_file_request(row: DownloadRequestRow) -> Delete:
    """Return the deletion of a DownloadRequest."""
    return Delete(velero.DOWNLOAD_REQUEST, row.key, row.uid)


def expires_at(row: DownloadRequestRow) -> datetime:
    """Return until when the URL is valid."""
    return row.expires or row.created + LIFETIME


def silent_at(row: DownloadRequestRow, patience: timedelta) -> datetime | None:
    """Return when Velero counts as silent; None if it has answered."""
    return None if row.url else row.created + patience
