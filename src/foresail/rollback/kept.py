"""When an old volume gets its former reclaim policy back: at the deadline, or once nobody can ask for an undo."""

from datetime import UTC, datetime, timedelta

from foresail.api.instants import instant
from foresail.plan import Key, Plan
from foresail.rollback.rules import is_in_progress
from foresail.rollback.steps import POLL
from foresail.rollback.view import KeptView, RollbackRow, Survey
from foresail.rollback.volumes import Record, record_of, release

GRACE = timedelta(minutes=1)
"""How long after its deadline a volume is released: an undo may have been asked for just before."""

_AT_ONCE = datetime(2000, 1, 1, tzinfo=UTC)


def survey_of(key: Key) -> Survey:
    """Return the read of a Rollback, live: a store may be behind, and a released volume does not come back."""
    return Survey(key=key, version="", user="", groups=(), to="", glance=True)


def keep_or_release(view: KeptView, now: datetime) -> Plan:
    """Return the Plan for one old volume."""
    record = record_of(view.volume.seen)
    if record is None:
        return Plan()  # nobody knows its former reclaim policy
    at = released_at(view.volume.seen.rollback_uid, record, view.rollback)
    if at is None or now < at:
        return Plan(wake_at=at)
    query, read = survey_of(record.key), view.read
    if read is None or read.query != query or read.ended + POLL <= now:
        return Plan(reads=(query,))
    if read.answer.problem:
        return Plan(wake_at=read.ended + POLL)
    at = released_at(view.volume.seen.rollback_uid, record, read.answer.row)
    return Plan((release(view.volume.seen, record),)) if at is not None and at <= now else Plan(wake_at=at)


def released_at(rollback_uid: str, record: Record, row: RollbackRow | None) -> datetime | None:
    """Return when a volume is released; None as long as its Rollback runs, or if that is not known."""
    until = instant(record.until)
    if row is None or row.uid != rollback_uid:
        return _AT_ONCE if record.is_done else until
    if is_in_progress(row):
        return None
    if row.status.phase != "Completed":
        return _AT_ONCE
    shown = max((volume.kept_until for volume in row.status.volumes if volume.kept_until is not None), default=_AT_ONCE)
    return (row.status.undo_until or shown) + GRACE  # a later Rollback ends the undo, and may fail itself
