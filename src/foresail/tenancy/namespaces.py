"""Rows of namespaces."""

import msgspec

from foresail.api import core


class NamespaceRow(msgspec.Struct, frozen=True, gc=False):
    """A namespace."""

    uid: str
    labels: dict[str, str]
    is_terminating: bool


def namespace_row(wire: core.Namespace) -> NamespaceRow:
    """Return what is kept of a namespace."""
    meta = wire.metadata
    return NamespaceRow(meta.uid, meta.labels or {}, meta.deletion_timestamp is not None)
