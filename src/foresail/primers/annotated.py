"""CronJobs with the annotation foresail.dev/warm-up, read as if a Primer with these settings selected them.

What the status of a Primer would have is recorded in one annotation of the CronJob. Its owner can write anything there,
so a record counts only if it is small, complete and about this very CronJob.
"""

import re
from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any, get_args

import msgspec

from foresail.api.batch import CRON_JOB
from foresail.api.instants import whole
from foresail.api.marks import WARM_UP, WARM_UP_METHOD, WARM_UP_STATUS
from foresail.api.primer import AUTO, LONGEST_WARM_UP, WARM_UP_PATTERN, Method, Primed, PrimerStatus
from foresail.plan import Patch
from foresail.primers.reasons import Reason
from foresail.primers.rows import DELAYS, LONGEST_RECORD, RELEASE_AFTER, CronJobRow, PrimerRow, warm_up_of
from foresail.primers.view import Settings

_WARM_UP = re.compile(WARM_UP_PATTERN)
_MINUTES = re.compile("[0-9]{1,5}")
_METHODS: tuple[str, ...] = get_args(Method)
_MOST_SECONDS = 1_000_000
_MOST_ATTEMPTS = 10
_MOST_NODES = 20
_LONGEST_NOTE = 256
_YEARS = range(2000, 3000)


class StoredPrimed(Primed, frozen=True):
    """What the status of a Primer would have, and since when there is a record."""

    since: datetime | None = None


_record = msgspec.json.Decoder(StoredPrimed)


def annotated_primer(cron: CronJobRow, settings: Settings) -> PrimerRow:
    """Return the Primer that the annotations of a CronJob mean; a withdrawn one if they mean none."""
    annotations = cron.annotated
    is_allowed = settings.allows_annotations(cron.key.namespace)
    is_on = annotations is not None and annotations.warm_up is not None and is_allowed
    warm_up = read_warm_up(annotations.warm_up) if annotations is not None and annotations.warm_up is not None else None
    method = (annotations.method if annotations is not None else "") or AUTO
    status = read_record(annotations.record, cron.uid) if annotations is not None and is_allowed else PrimerStatus()
    return PrimerRow(
        key=cron.key,
        uid=cron.uid,
        version=annotations.version if annotations is not None else "",
        generation=0,
        created=_since(status) or cron.created,  # the CronJob is older than its annotation
        is_terminating=cron.is_terminating,
        cron_job=cron.key.name,
        selector=None,
        warm_up=warm_up or timedelta(0),
        method=method if method in _METHODS else AUTO,
        requests=(),
        replicas=None,
        release_after=RELEASE_AFTER,
        suspend=False,
        allow_standing=False,
        status=status,
        kind=CRON_JOB,
        problem=_problem(cron) if is_on else "",
        is_withdrawn=not is_on,
    )


def read_warm_up(text: str) -> timedelta | None:
    """Return the warm-up that an annotation means; None if the field `warmUp` of a Primer would not take it."""
    if _MINUTES.fullmatch(text):
        length = timedelta(minutes=int(text))
    elif text and _WARM_UP.fullmatch(text):
        length = warm_up_of(text)
    else:
        return None
    return length if timedelta(minutes=1) <= length <= timedelta(minutes=LONGEST_WARM_UP) else None


def read_record(text: str, uid: str) -> PrimerStatus:
    """Return what was recorded about a CronJob; empty if it is no record that the operator would write."""
    if not text or len(text) > LONGEST_RECORD:
        return PrimerStatus()
    try:
        primed = _record.decode(text)
    except (msgspec.DecodeError, ValueError, RecursionError):  # a text can be nested deeper than the decoder goes
        return PrimerStatus()
    is_ours = primed.uid == uid and all(map(_is_sane, _instants(primed))) and _is_bounded(primed)
    return PrimerStatus(cron_jobs=(primed,)) if is_ours else PrimerStatus()


def record(primed: Primed) -> str:
    """Return the text of a record, never longer than `read_record` accepts."""
    warming = primed.warming
    if warming is not None:
        warming = msgspec.structs.replace(warming, nodes=warming.nodes[:_MOST_NODES])
    delays = tuple(
        msgspec.structs.replace(delay, note=delay.note and delay.note[:_LONGEST_NOTE]) for delay in primed.start_delays
    )
    return msgspec.json.encode(msgspec.structs.replace(primed, warming=warming, start_delays=delays)).decode()


def record_patch(cron: CronJobRow, primed: Primed | None, now: datetime) -> Patch | None:
    """Return the write that records this about a CronJob, or removes what is recorded; None if nothing changes."""
    annotations = cron.annotated
    text = None
    if annotations is None:
        return None
    if primed is not None:
        since = _since(read_record(annotations.record, cron.uid)) or whole(now)
        text = record(StoredPrimed(**msgspec.structs.asdict(primed), since=since))
    if (annotations.record or None) == text:
        return None
    body = {"metadata": {"annotations": {WARM_UP_STATUS: text}}}
    return Patch(CRON_JOB, cron.key, body, annotations.version)


def recorded_status(patch: Patch, uid: str) -> PrimerStatus:
    """Return what a write records about a CronJob."""
    metadata: Any = patch.body["metadata"]
    return read_record(metadata["annotations"][WARM_UP_STATUS] or "", uid)


def records_a_small_quota(row: CronJobRow) -> bool:
    """Whether nothing is held for a CronJob because of a quota."""
    return row.annotated is not None and f'"{Reason.QUOTA_TOO_SMALL.value}"' in row.annotated.record


def has_request_changed(old: CronJobRow | None, new: CronJobRow | None) -> bool:
    """Whether the pod template or the annotations of a CronJob have changed, so that what was refused is retried."""
    return _wanted(old) != _wanted(new)


def _since(status: PrimerStatus) -> datetime | None:
    return next((job.since for job in status.cron_jobs if isinstance(job, StoredPrimed)), None)


def _wanted(row: CronJobRow | None) -> tuple[object, ...]:
    annotations = row.annotated if row is not None else None
    return (row.shape, annotations.warm_up, annotations.method) if row is not None and annotations is not None else ()


def _problem(cron: CronJobRow) -> str:
    """Return what is wrong with the annotations of a CronJob, and what to write instead."""
    annotations = cron.annotated
    if annotations is None or annotations.warm_up is None:
        return ""
    if read_warm_up(annotations.warm_up) is None:
        text = f"annotation {WARM_UP} is {annotations.warm_up!r}"
        return f"CronJob {cron.key}: {text}: write 1m to 7 days, such as 10m or 1h30m."
    if annotations.method and annotations.method not in _METHODS:
        allowed = ", ".join(_METHODS)
        return f"CronJob {cron.key}: annotation {WARM_UP_METHOD} is {annotations.method!r}: write one of {allowed}."
    return ""


def _instants(primed: StoredPrimed) -> Iterator[datetime]:
    warming = primed.warming
    instants = [
        primed.next_fire,
        primed.next_warm_up,
        primed.buffer_unanswered,
        primed.since,
        primed.buffer_refused,
        *(delay.fire for delay in primed.start_delays),
    ]
    instants += [warming.fire, warming.since] if warming is not None else []
    return (instant for instant in instants if instant is not None)


def _is_sane(instant: datetime) -> bool:
    """Whether an instant has a zone, and time can be added to it: a yearly CronJob remembers ten years."""
    return instant.tzinfo is not None and instant.year in _YEARS


def _is_bounded(primed: Primed) -> bool:
    warming = primed.warming
    if len(primed.start_delays) > DELAYS:
        return False
    seconds = [delay.seconds for delay in primed.start_delays]
    if warming is not None:
        seconds += [warming.provisioned or 0]
        if not 1 <= warming.attempt <= _MOST_ATTEMPTS or not 0 <= warming.made <= _MOST_SECONDS:
            return False
    return all(0 <= second <= _MOST_SECONDS for second in seconds)
