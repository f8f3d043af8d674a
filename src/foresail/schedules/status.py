"""What Foresail remembers in a Schedule: Velero's own status fields, and one annotation for the rest."""

from datetime import datetime

import msgspec

from foresail.api.instants import instant, stamp
from foresail.api.marks import OBSERVED
from foresail.cron import Dialect
from foresail.schedules.observe import ScheduleRow

UNKNOWN = "unknown"


class Observed(msgspec.Struct, frozen=True, omit_defaults=True, forbid_unknown_fields=False):
    """What was last seen of a Schedule, as far as a later decision depends on it."""

    schedule: str
    paused: str = ""  # since when, as it was seen; empty if it was not
    consumed: bool = False  # skipImmediately was true and has been applied since the last pause
    since: str = ""  # when an edit of the expression was seen: nothing before it is due
    dialect: str = ""  # by whose rules it was read, UNKNOWN at first; only where the two would make a difference
    ignored: bool = False  # skipImmediately was set again without a pause, and that was reported
    ahead: str = ""  # a recorded time in the future that was cleared: it counts again once it has passed

    @property
    def paused_since(self) -> datetime | None:
        """The instant at which the pause was seen."""
        return instant(self.paused)

    @property
    def edited(self) -> datetime | None:
        """The instant at which the last edit of the expression was seen."""
        return instant(self.since)

    @property
    def read_by(self) -> Dialect | None:
        """The dialect by which it was read."""
        return next((each for each in Dialect if each.value == self.dialect), None)


_decoder = msgspec.json.Decoder(Observed)
_encoder = msgspec.json.Encoder(order="deterministic")


def remembered(schedule: ScheduleRow) -> Observed | None:
    """Read what was last seen; None if nothing was, or if someone has written something else there."""
    try:
        return _decoder.decode(schedule.annotations.get(OBSERVED, ""))
    except (msgspec.DecodeError, RecursionError):
        return None


def noted_pause(schedule: ScheduleRow, now: datetime) -> dict[str, str]:
    """Return the annotation by which an unpausing is noticed though nobody saw the pause; none if it was seen.

    Whoever unpauses knows that there was a pause. An operator that was away all the while would not, and would take a
    `skipImmediately: true` for one that it has applied before.
    """
    memory = remembered(schedule)
    if memory is None or memory.paused:
        return {}
    return {OBSERVED: _encoder.encode(msgspec.structs.replace(memory, paused=stamp(now))).decode()}


class Changes(msgspec.Struct, frozen=True):
    """What a Schedule is to contain from now on; None in `last_backup` and `last_skipped` leaves them alone."""

    observed: Observed
    phase: str
    errors: tuple[str, ...] = ()
    last_backup: datetime | None = None
    last_skipped: datetime | None = None
    takes_skip: bool = False  # spec.skipImmediately goes back to nil
    clears: tuple[str, ...] = ()  # fields of the status to remove, unless they get another value


def patch_body(schedule: ScheduleRow, changes: Changes) -> dict[str, object]:
    """Return the one merge patch that makes the changes; empty if everything stands as it should."""
    body: dict[str, object] = {}
    if remembered(schedule) != changes.observed:
        body["metadata"] = {"annotations": {OBSERVED: _encoder.encode(changes.observed).decode()}}
    if changes.takes_skip:
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
