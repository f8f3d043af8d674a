"""The state that Foresail stores in a Schedule: Velero's own status fields, and one annotation."""

from datetime import datetime

import msgspec

from foresail.api.instants import stamp
from foresail.api.marks import OBSERVED
from foresail.schedules.observe import ScheduleRow
from foresail.slots.observed import Observed, observed_in

UNKNOWN = "unknown"

_encoder = msgspec.json.Encoder(order="deterministic")


def last_observed(schedule: ScheduleRow) -> Observed | None:
    """Return what was last observed; None without the annotation, or if it cannot be decoded."""
    return observed_in(schedule.annotations.get(OBSERVED, ""))


def pause_annotation(schedule: ScheduleRow, now: datetime) -> dict[str, str]:
    """Return the annotation that records a pause which the operator has not observed; none if it has.

    The client that unpauses knows of the pause. An operator that was down does not, and would take
    `skipImmediately: true` for one that it has applied before.
    """
    previous = last_observed(schedule)
    if previous is None or previous.paused:
        return {}
    return {OBSERVED: _encoder.encode(msgspec.structs.replace(previous, paused=stamp(now))).decode()}


class Changes(msgspec.Struct, frozen=True):
    """The desired state of a Schedule; None in `last_backup` and `last_skipped` leaves them unchanged."""

    observed: Observed
    phase: str
    errors: tuple[str, ...] = ()
    last_backup: datetime | None = None
    last_skipped: datetime | None = None
    clears_skip: bool = False  # remove spec.skipImmediately
    clears: tuple[str, ...] = ()  # fields of the status to remove, unless they get another value


def patch_body(schedule: ScheduleRow, changes: Changes) -> dict[str, object]:
    """Return the one merge patch that makes the changes; empty if nothing differs."""
    body: dict[str, object] = {}
    if last_observed(schedule) != changes.observed:
        body["metadata"] = {"annotations": {OBSERVED: _encoder.encode(changes.observed).decode()}}
    if changes.clears_skip:
        body["spec"] = {"skipImmediately": None}
    status: dict[str, object] = dict.fromkeys(changes.clears)
    if schedule.phase != changes.phase:
        status["phase"] = changes.phase
    if schedule.errors != changes.errors:
        status["validationErrors"] = list(changes.errors) or None
    if changes.last_backup is not None and changes.last_backup != schedule.last_backup:
        status["lastBackup"] = stamp(changes.last_backup)
    if changes.last_skipped is not None:
        status["lastSkipped"] = stamp(changes.last_skipped)
    if status:
        body["status"] = status
    return body
