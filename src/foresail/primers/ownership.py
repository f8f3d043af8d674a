"""The annotations by which an object of ours says for which Primer, target and fire it was made."""

from datetime import datetime
from typing import TypedDict

from foresail.api.instants import instant
from foresail.api.marks import FIRE, PRIMER_UID, TARGET_UID
from foresail.api.metadata import Metadata
from foresail.plan import Key


class Owned(TypedDict):
    """What the rows of all objects that are made for a Primer have in common."""

    key: Key
    uid: str
    primer_uid: str
    target_uid: str
    is_terminating: bool


def owned(meta: Metadata) -> Owned:
    """Return which object it is, and for whom it says that it was made; anyone may have written that."""
    annotations = meta.annotations or {}
    return {
        "key": Key(meta.namespace, meta.name),
        "uid": meta.uid,
        "primer_uid": annotations.get(PRIMER_UID, ""),
        "target_uid": annotations.get(TARGET_UID, ""),
        "is_terminating": meta.deletion_timestamp is not None,
    }


def fire_of(meta: Metadata) -> datetime | None:
    """Return the fire that it says it was made for; None if it names none."""
    return instant((meta.annotations or {}).get(FIRE, ""))
