"""Rows of PersistentVolumeClaims."""

import sys
from datetime import datetime

import msgspec

from foresail.api import core


class ClaimRow(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    name: str
    namespace: str
    uid: str
    created: datetime
    is_bound: bool


def claim_row(wire: core.Claim) -> ClaimRow:
    """Return what is kept of a PersistentVolumeClaim."""
    meta = wire.metadata
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    is_bound = core.BOUND in (meta.annotations or {})
    return ClaimRow(meta.name, sys.intern(meta.namespace), meta.uid, meta.creation_timestamp, is_bound)
