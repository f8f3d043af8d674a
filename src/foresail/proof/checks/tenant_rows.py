"""Rows of NonAdminBackups and NonAdminSchedules: only what says whose a backup is."""

from foresail.api.marks import SCHEDULE_UID
from foresail.api.metadata import Named
from foresail.api.nonadmin import SYNCED_FROM
from foresail.plan import Key, Keyed

_MOST_LABELS, _LONGEST_LABELS = 32, 2 << 10
"""Of a NonAdminBackup, and their characters in total; one with more counts as one without labels.

A tenant chooses them, and they stay in memory.
"""

_LONGEST_UID = 64


class RequestRow(Keyed, frozen=True, gc=False):
    """A NonAdminBackup or a NonAdminSchedule."""

    uid: str
    labels: dict[str, str]
    schedule_uid: str = ""
    adopted: str = ""  # the name of the Velero Backup that it was adopted from
    is_terminating: bool = False


def request_row(wire: Named) -> RequestRow:
    """Return what is kept of a NonAdminBackup."""
    meta = wire.metadata
    labels = meta.labels or {}
    adopted = labels.get(SYNCED_FROM, "")
    is_small = len(labels) <= _MOST_LABELS and sum(map(len, (*labels, *labels.values()))) <= _LONGEST_LABELS
    return RequestRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        labels=labels if is_small else {},
        schedule_uid=(meta.annotations or {}).get(SCHEDULE_UID, "")[:_LONGEST_UID],
        adopted=adopted,
        is_terminating=meta.deletion_timestamp is not None,
    )


def schedule_row(wire: Named) -> RequestRow:
    """Return what is kept of a NonAdminSchedule; nothing selects one by its labels."""
    meta = wire.metadata
    return RequestRow(Key(meta.namespace, meta.name), meta.uid, {}, is_terminating=meta.deletion_timestamp is not None)
