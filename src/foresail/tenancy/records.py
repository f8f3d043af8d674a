"""Whose a Velero object is: its name and the record on it, with the UIDs of the request and the namespace."""

import sys
from collections.abc import Mapping
from functools import lru_cache
from typing import Protocol

from foresail.plan import Key
from foresail.tenancy.namespaces import NamespaceRow

_LONGEST = 63  # the name is the value of a label too
_UUID = 36
_SPACE = "5f0b1d0c-8f5b-5d1e-9a43-6f1c8b3a7e21"  # ours, drawn once: the seed of every name below


class Request(Protocol):
    """A tenant's request."""

    @property
    def key(self) -> Key:
        """Namespace and name."""

    @property
    def uid(self) -> str:
        """The UID."""

    @property
    def adopted(self) -> str:
        """The name of the Velero Backup that it was adopted from; empty if we made that ourselves."""


class Recorded(Protocol):
    """A Velero object with the record of whose it is."""

    @property
    def key(self) -> Key:
        """Namespace and name."""

    @property
    def owner(self) -> Key | None:
        """The tenant's object by its names."""

    @property
    def request_uid(self) -> str:
        """The UID of the tenant's object."""

    @property
    def namespace_uid(self) -> str:
        """The UID of the tenant's namespace."""


def nacuuid(request: Request) -> str:
    """Return the name of the Velero object of a request: `<namespace>-<name>-<uuid>`, cut to 63 characters.

    The UUID comes from the request's own: whoever asks, and however often, the name is the same, and a request that
    is made again under its old name gets another. The Velero Backup of an adopted request has the name that it had.
    """
    return request.adopted or nacuuid_of(request.key.namespace, request.key.name, request.uid)


@lru_cache(maxsize=4096)  # a reconcile calls it a dozen times with the same arguments
def nacuuid_of(namespace: str, name: str, uid: str) -> str:
    """Return that name for a request that is known by its names and its UID alone."""
    name = name.replace(".", "-")
    room = _LONGEST - _UUID - 1
    stem = f"{namespace}-{name}"[:room] if len(namespace) < room else namespace[: room - 1]
    import uuid  # noqa: PLC0415 - whoever only reads names needs none

    return f"{stem.rstrip('-')}-{uuid.uuid5(uuid.UUID(_SPACE), uid)}"


def origin_name(family: str) -> str:
    """Return the annotation of a Velero object with the name of the tenant's; `nab` are backups, `nar` restores."""
    return f"openshift.io/oadp-{family}-origin-name"


def origin_namespace(family: str) -> str:
    """Return the annotation with the tenant's namespace."""
    return f"openshift.io/oadp-{family}-origin-namespace"


def owner_of(annotations: Mapping[str, str], family: str) -> Key | None:
    """Return the tenant's object by the names in the record of a Velero object; None if it has no record."""
    name = annotations.get(origin_name(family))
    namespace = annotations.get(origin_namespace(family))
    return Key(sys.intern(namespace), name) if name and namespace else None


def is_owned(request: Request, namespace: NamespaceRow, row: Recorded) -> bool:
    """Whether a Velero object belongs to this request, by the names and UIDs of its record."""
    return (
        row.owner == request.key
        and row.request_uid == request.uid
        and row.namespace_uid == namespace.uid
        and row.key.name == nacuuid(request)
    )
