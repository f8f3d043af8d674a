"""Points in time: from which backups of ProtectionClasses the team of a namespace may restore.

One rule for the Protection, which lists them, and for the restore, which accepts them.
"""

from collections.abc import Mapping
from datetime import datetime
from enum import Enum
from functools import lru_cache
from typing import TYPE_CHECKING, Protocol

import msgspec

from foresail.api.velero import RESTORABLE, TERMINAL
from foresail.backups import has_expired
from foresail.plan import Key, Keyed

if TYPE_CHECKING:  # `foresail backup get` needs none of the policies that it imports
    from foresail.api.protection import ProtectionClass

_uids = msgspec.json.Decoder(dict[str, str])


class Hindrance(Enum):
    """Why a namespace gets nothing from a backup."""

    NOT_OF_IT = "nothing says that it was taken of this very namespace"
    CLASS_REFUSES = "its class does not let teams restore, or is gone"
    SYNCED = "it came from the bucket, so whoever can write there has said what it was taken of"
    UNFINISHED = "it has not ended"
    FAILED = "it has failed, or is being deleted"
    EXPIRED = "it has expired"
    LOCATION_GONE = "its storage location does not exist"


class ClassBackup(Protocol):
    """A Velero Backup, as far as it matters here."""

    @property
    def phase(self) -> str:
        """Velero's phase."""

    @property
    def expires(self) -> datetime | None:
        """When it expires."""

    @property
    def protection_class(self) -> str:
        """The class that it was made for; empty if it is of no class."""

    @property
    def is_synced(self) -> bool:
        """Whether Velero's sync brought it, so that its annotations are what the bucket says."""

    @property
    def is_terminating(self) -> bool:
        """Whether the object is being deleted."""

    def is_of(self, namespace: str, uid: str) -> bool:
        """Whether it was taken of this very namespace, not of an earlier one of its name."""


class ClassRestoresRow(Keyed, frozen=True):
    """Whether teams may restore from the backups of a class."""

    by_tenants: bool


def class_restores_row(wire: "ProtectionClass") -> ClassRestoresRow:
    """Return what is kept of a ProtectionClass."""
    return ClassRestoresRow(Key("", wire.metadata.name), wire.spec.restore.by_tenants)


def hindrance(
    backup: ClassBackup, namespace: str, uid: str, now: datetime, *, by_tenants: bool, has_location: bool
) -> Hindrance | None:
    """Return why a namespace gets nothing from a backup now; None if its team may restore from it.

    What is not of the namespace comes first: nothing else is told of such a backup.
    """
    if not uid or not backup.protection_class or not backup.is_of(namespace, uid):
        return Hindrance.NOT_OF_IT
    for reason, is_so in (
        (Hindrance.CLASS_REFUSES, not by_tenants),
        (Hindrance.SYNCED, backup.is_synced),
        (Hindrance.FAILED, backup.is_terminating or (backup.phase in TERMINAL and backup.phase not in RESTORABLE)),
        (Hindrance.UNFINISHED, backup.phase not in RESTORABLE),
        (Hindrance.EXPIRED, has_expired(backup.expires, now)),
        (Hindrance.LOCATION_GONE, not has_location),
    ):
        if is_so:
            return reason
    return None


@lru_cache(maxsize=4096)  # the groups of a class stay what they are from night to night
def namespace_uids(text: str) -> Mapping[str, str] | None:
    """Return the UIDs of the namespaces that a Backup was taken of; None if it does not say."""
    try:
        return _uids.decode(text)
    except msgspec.DecodeError:
        return None
