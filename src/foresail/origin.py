"""Where a Backup comes from: made in this cluster, or synced from a bucket that another cluster may write to.

Velero creates an object for each backup that it finds in a bucket. Such a Backup had started, and ended, before its
object was created. The UID of the Schedule, or of the tenant's request, that it was made for tells more than times.
"""

from collections.abc import Container
from datetime import datetime
from enum import Enum


class Origin(Enum):
    """Whether a Backup was made in this cluster."""

    HERE = "here"
    ELSEWHERE = "elsewhere"
    UNKNOWN = "unknown"


def is_synced(created: datetime, began: datetime | None, completed: datetime | None, *, made_for: str = "") -> bool:
    """Whether a Backup had ended, or begun, before its object was created, so that it came from a bucket.

    Velero's clock may be a second behind, so one with a UID in `made_for` is synced only if it had ended.
    """
    had_ended = completed is not None and created > completed
    if made_for:
        return had_ended
    # Without the time of its start, one that ended in the second of its creation is taken for synced.
    had_begun = created > began if began is not None else created == completed
    return had_ended or had_begun


def origin_of(
    created: datetime,
    started: datetime | None,
    completed: datetime | None,
    made_for: str,
    existing: Container[str],
) -> Origin:
    """Return where a Backup comes from; `made_for` is the UID on it, `existing` those UIDs that this cluster has.

    A Backup of a Schedule that was deleted and created again has a foreign UID too: it started after its object was
    created. One without a UID, which came from a bucket, may be this cluster's from before its objects were lost.
    """
    if made_for:
        is_here = made_for in existing or started is None or started >= created
        return Origin.HERE if is_here else Origin.ELSEWHERE
    return Origin.UNKNOWN if is_synced(created, started, completed) else Origin.HERE
