"""The rules: when skipImmediately is applied, where the next run is counted from, and what holds a run that is due.

Each rule is one small function with the name of what it answers; `judge` asks them in their order.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import islice

import msgspec

from foresail.api import velero
from foresail.api.instants import instant, stamp, whole
from foresail.cron import Schedule, fires_after, outlook
from foresail.plan import Level
from foresail.schedules.build import backup_name
from foresail.schedules.observe import BackupRow, ScheduleRow, Seen
from foresail.schedules.reading import LONGEST_TEXT, change_of_dialect, reading
from foresail.schedules.reasons import Because, Reason
from foresail.schedules.status import UNKNOWN, Changes, Observed, remembered

LONGEST_NAME = 63  # of a label's value: the name of a Schedule is in a label of each of its Backups
UNSEEN = timedelta(seconds=10)
"""For how long a Backup that was just made may be missing from what is known, and an answer of Velero's may take."""

SKEW = timedelta(minutes=5)
"""How far ahead of our clock a recorded time may be: clocks of two replicas differ by less."""

_MOST_COUNTED = 100
_SIGHT = timedelta(days=4 * 365)  # both libraries look further ahead than that before they give up
_AGAIN = timedelta(days=180)


class Verdict(msgspec.Struct, frozen=True):
    """What the rules say about one Schedule at one instant."""

    changes: Changes
    base: datetime
    refused: Because | None = None  # it cannot run as it is
    skipped: bool = False  # skipImmediately was applied just now
    edited: bool = False
    due: datetime | None = None  # the slot whose run is due, held or not
    upcoming: datetime | None = None  # the first slot after now
    missed: int = 0  # slots before the due one that will not be run any more; no more than a hundred are counted
    held: Because | None = None
    redialled: Because | None = None  # the dialect has changed, and with it some fires
    is_settling: bool = False  # too early to tell: reconcile again in a moment
    in_future: Because | None = None  # a recorded time was not trusted
    ignored: Because | None = None  # skipImmediately was set again without a pause, and nobody was told yet

    @property
    def fires(self) -> datetime | None:
        """The slot to make a Backup for now."""
        return None if self.held or self.is_settling else self.due

    @property
    def next_run(self) -> datetime | None:
        """The slot of the next run: the one that is held, or the one to come."""
        return self.due or self.upcoming


# skipImmediately


def is_new(schedule: ScheduleRow) -> bool:
    """Whether no controller has worked on it yet; one that Velero has worked on is not new to us either."""
    return not (schedule.phase or schedule.last_backup or schedule.last_skipped)


def is_unpaused(schedule: ScheduleRow, memory: Observed | None) -> bool:
    """Whether it was paused when it was last seen, and is not any more."""
    return not schedule.paused and memory is not None and bool(memory.paused)


def turned_true(schedule: ScheduleRow, memory: Observed | None) -> bool:
    """Whether the field says true and that was not applied yet; put back without a pause it counts as applied."""
    return schedule.skip is True and not (memory is not None and memory.consumed)


def is_skipped(schedule: ScheduleRow, memory: Observed | None, *, default: bool) -> bool:
    """Whether skipImmediately is to be applied now: never while paused, and never without an occasion."""
    effective = default if schedule.skip is None else schedule.skip
    occasion = is_new(schedule) or is_unpaused(schedule, memory) or turned_true(schedule, memory)
    return effective and occasion and not schedule.paused


def is_ignored(schedule: ScheduleRow, *, skipped: bool) -> bool:
    """Whether skipImmediately was set again without a pause since it was applied."""
    return schedule.skip is True and not schedule.paused and not skipped


def is_edited(schedule: ScheduleRow, memory: Observed | None) -> bool:
    """Whether the expression is another one than was last seen."""
    return memory is not None and memory.schedule != noted_text(schedule.text)


def noted_text(text: str) -> str:
    """Return the expression as it is remembered: itself, or its digest if it is longer than any that is sensible."""
    return text if len(text) <= LONGEST_TEXT else hashlib.sha256(text.encode()).hexdigest()


# From where, and when


def is_in_future(moment: datetime | None, now: datetime) -> bool:
    """Whether a recorded time is later than any clock could say now."""
    return moment is not None and moment - now > SKEW


def times_in_future(schedule: ScheduleRow, memory: Observed | None, now: datetime) -> dict[str, datetime]:
    """Return the recorded times that are not to be trusted, by field: a clock was wrong, or somebody wrote them.

    A creationTimestamp stays as it is for ever; once an instant to count from is recorded, it does not matter.
    """
    since = memory.edited if memory else None
    created = None if since is not None and not is_in_future(since, now) else schedule.created
    recorded = {
        "lastBackup": schedule.last_backup,
        "lastSkipped": schedule.last_skipped,
        "since": since,
        "creationTimestamp": created,
    }
    return {field: moment for field, moment in recorded.items() if moment and is_in_future(moment, now)}


def base_of(seen: Seen, observed: Observed, now: datetime) -> datetime:
    """Return the instant that the next run is counted from; times in the future do not count.

    The last slot for which there is a Backup counts too: whoever made it may have been killed before it could say so.
    So does a time that was cleared and has passed since: the clock that found it in the future was the wrong one.
    """
    schedule = seen.schedule
    recorded = [schedule.last_backup or schedule.created, schedule.last_skipped, observed.edited]
    marks = [*recorded, instant(observed.ahead), last_slot(seen, now)]
    return max((mark for mark in marks if mark is not None and not is_in_future(mark, now)), default=whole(now))


def last_slot(seen: Seen, now: datetime) -> datetime | None:
    """Return the last slot that this very Schedule has a Backup for, or had until somebody deleted it."""
    ours = (each.slot for each in seen.backups if each.schedule_uid == seen.schedule.uid)
    return max((slot for slot in (*ours, seen.deleted) if slot is not None and slot <= now), default=None)


def slots(cron: Schedule, base: datetime, now: datetime) -> tuple[datetime | None, datetime | None]:
    """Return the slot that is due, the last one if several passed, and the first one to come.

    A library that finds nothing in the five years after the base gives up for good; asked from later on, it may find
    the rare day that has come into sight since.
    """
    found = outlook(cron, base, now)
    due, last = found.due, found.due or base
    while found.upcoming is None and last < now:
        last = min(last + _SIGHT, now)
        found = outlook(cron, last, now)
        due, last = found.due or due, found.due or last
    return due, found.upcoming


def missed_before(cron: Schedule, base: datetime, due: datetime) -> int:
    """Count the slots that were passed over: of several that are due only the last is run."""
    count = 0
    for slot in islice(fires_after(cron, base), _MOST_COUNTED):
        if slot >= due:
            break
        count += 1
    return count


# What holds a run that is due


def velero_schedules(seen: Seen, _now: datetime) -> Because | None:
    """Both controllers would make a Backup for the same slot."""
    unread = seen.engine.unread
    if unread is not None:
        text = (
            f"Deployment {unread.key} cannot be read ({unread.problem}), so Velero may run Schedules itself; correct it"
        )
        return Because(Reason.VELERO_SCHEDULES, f"{text}, and the run starts.")
    if not seen.engine.schedules_itself:
        return None
    text = "Velero's own schedule controller is on, so Foresail does not fire: start Velero with"
    return Because(Reason.VELERO_SCHEDULES, f"{text} --disable-controllers=schedule.")


def is_busy(backup: BackupRow, schedule: ScheduleRow, now: datetime) -> bool:
    """Whether a Backup of this Schedule runs or waits to run, in this cluster.

    One that another cluster made for its own Schedule of that name is not ours, and one whose time has passed was
    synced from storage only to be deleted.
    """
    is_past = backup.expires is not None and backup.expires <= now
    return backup.is_of(schedule) and not backup.is_terminal and not is_past


def busy(seen: Seen, now: datetime) -> Because | None:
    """Hold a run while the one before it has not ended."""
    for backup in seen.backups:
        if is_busy(backup, seen.schedule, now):
            text = f"Backup {backup.key} is {backup.phase or 'New'}; the next run starts when it has ended."
            return Because(Reason.BUSY, text)
    for unread in seen.unread:
        text = f"Backup {unread.key} cannot be read ({unread.problem}), so it may still run; correct or delete it"
        return Because(Reason.BUSY, f"{text}, and the run starts.")
    return None


def location_unavailable(seen: Seen, _now: datetime) -> Because | None:
    """Hold a run rather than have Velero refuse it for good."""
    return _location_problem(seen)


def _location_problem(seen: Seen) -> Because | None:
    location, name = seen.location, seen.schedule.location
    if location is None:
        problem = f"BackupStorageLocation {name} does not exist" if name else "there is no default storage location"
    elif location.is_read_only:
        problem = f"BackupStorageLocation {location.key} is read-only"
    elif location.phase != velero.AVAILABLE:
        said = f": {location.message}" if location.message else ""
        problem = f"BackupStorageLocation {location.key} is {location.phase or 'not checked by Velero yet'}{said}"
    else:
        return None
    return Because(Reason.LOCATION_UNAVAILABLE, f"{problem}; the run starts when it is available.")


HOLDS: tuple[Callable[[Seen, datetime], Because | None], ...] = (velero_schedules, busy, location_unavailable)


def is_settling(seen: Seen, now: datetime) -> bool:
    """Whether the Backup of the last run should be there and is not: then nobody knows whether it still runs."""
    last = seen.schedule.last_backup
    if last is None or now - last >= UNSEEN or is_in_future(last, now):
        return False
    name = backup_name(seen.schedule, last)
    return all(each.key.name != name for each in seen.backups)


def is_awaited(seen: Seen, now: datetime) -> bool:
    """Whether Velero was just asked for its version, and may answer yet."""
    return seen.engine.asked is not None and abs(now - seen.engine.asked) < UNSEEN


# All together


def judge(seen: Seen, now: datetime) -> Verdict:
    """Ask every rule, in order; the first that holds a run is the one that is named."""
    schedule, engine, zone = seen.schedule, seen.engine, seen.settings.zone
    memory = remembered(schedule)
    refused = _name_too_long(schedule)
    cron = refused or reading(schedule.text, zone, engine.dialect, now)
    is_unknown = isinstance(cron, Because) and cron.reason is Reason.DIALECT_UNKNOWN
    skipped = is_skipped(schedule, memory, default=seen.settings.skip_immediately)
    edited = is_edited(schedule, memory)
    future = times_in_future(schedule, memory, now)
    observed = _observed(seen, memory, now, skipped=skipped, future=future, edited=edited)
    base = base_of(seen, observed, now)
    if skipped:
        base = max(base, whole(now))
    upcoming = due = None
    if not isinstance(cron, Because):
        due, upcoming = slots(cron, base, now)
        if due is None and upcoming is None:
            cron = _too_rare(schedule)
    errors = (cron.message,) if isinstance(cron, Because) and not is_unknown else ()
    changes = Changes(
        observed=observed,
        phase=schedule.phase if is_unknown else velero.FAILED_VALIDATION if errors else velero.ENABLED,
        errors=schedule.errors if is_unknown else errors,
        last_backup=_unsaid(seen, now),
        last_skipped=whole(now) if skipped else None,
        takes_skip=skipped and schedule.skip is True,
        clears=tuple(field for field in ("lastBackup", "lastSkipped") if field in future),
    )
    verdict = Verdict(
        changes,
        base,
        skipped=skipped,
        edited=edited,
        redialled=_redialled(seen, memory, now),
        in_future=_in_future(future),
        ignored=skip_not_applied() if observed.ignored and not (memory and memory.ignored) else None,
    )
    if isinstance(cron, Because):
        if not is_unknown:
            return msgspec.structs.replace(verdict, refused=cron)
        held = None if schedule.paused else cron
        return msgspec.structs.replace(verdict, held=held, is_settling=is_awaited(seen, now))
    if schedule.paused:
        return verdict
    if due is None:
        return msgspec.structs.replace(verdict, upcoming=upcoming)
    return msgspec.structs.replace(
        verdict,
        due=due,
        upcoming=upcoming,
        missed=missed_before(cron, base, due),
        held=next(filter(None, (hold(seen, now) for hold in HOLDS)), None),
        is_settling=is_settling(seen, now),
    )


def cannot_run(seen: Seen, verdict: Verdict) -> Because | None:
    """Return why no run will ever come unless somebody changes something; a pause is what somebody wants."""
    if seen.schedule.paused:
        return None
    is_missing = seen.location is None or seen.location.is_read_only
    return verdict.refused or (_location_problem(seen) if is_missing else None)


def next_reconcile(verdict: Verdict, now: datetime) -> datetime | None:
    """Return the instant at which the clock alone may change the verdict."""
    if verdict.is_settling:
        return now + timedelta(seconds=1)
    if verdict.refused is not None and verdict.refused.reason is Reason.NEVER_FIRES:
        return now + _AGAIN  # what comes in eight years comes into sight one day
    return verdict.upcoming


def _observed(
    seen: Seen, memory: Observed | None, now: datetime, *, skipped: bool, edited: bool, future: dict[str, datetime]
) -> Observed:
    schedule = seen.schedule
    paused = (memory.paused if memory and memory.paused else stamp(now)) if schedule.paused else ""
    if is_in_future(instant(paused), now):
        paused = stamp(now)
    consumed = not schedule.paused and ((skipped and schedule.skip is True) or (memory is not None and memory.consumed))
    since = stamp(now) if edited or future else memory.since if memory else ""
    dialect, ahead = _dialect(seen, memory, now, edited=edited), _ahead(schedule, memory, future)
    ignored = is_ignored(schedule, skipped=skipped)
    return Observed(noted_text(schedule.text), paused, consumed, since, dialect, ignored, ahead)


def _ahead(schedule: ScheduleRow, memory: Observed | None, future: dict[str, datetime]) -> str:
    """Return the latest time that was cleared, until a later run is recorded."""
    before = instant(memory.ahead) if memory else None
    times = [each for field, each in future.items() if field != "creationTimestamp"]
    latest = max((each for each in (before, *times) if each is not None), default=None)
    run = schedule.last_backup if "lastBackup" not in future else None
    return "" if latest is None or (run is not None and run >= latest) else stamp(latest)


def _dialect(seen: Seen, memory: Observed | None, now: datetime, *, edited: bool) -> str:
    """Return the dialect to be remembered: only of an expression on which the two differ, so that few are written."""
    known = seen.engine.dialect
    if memory is None or edited:
        differs = change_of_dialect(seen.schedule.text, seen.settings.zone, now) is not None
    else:
        differs = bool(memory.dialect)
    if known is None:
        before = memory.dialect if memory and not edited else ""
        return before or (UNKNOWN if differs else "")
    return known.value if differs else ""


def _redialled(seen: Seen, memory: Observed | None, now: datetime) -> Because | None:
    known = seen.engine.dialect
    if known is None or memory is None or memory.read_by in (None, known) or is_edited(seen.schedule, memory):
        return None
    found = change_of_dialect(seen.schedule.text, seen.settings.zone, now)
    if found is None:
        return None
    fires = sorted((*found.removed, *found.added))
    first = f" The first fire that differs is {stamp(fires[0])}." if fires else ""
    reason = f": {found.reason}" if found.reason else ""
    text = (
        f"Velero {seen.engine.version} reads {seen.schedule.text!r} by the rules of {known.value} now{reason}.{first}"
    )
    return Because(Reason.DIALECT_CHANGED, text)


def _unsaid(seen: Seen, now: datetime) -> datetime | None:
    """Return the slot of a Backup that was made without status.lastBackup saying so."""
    slot, said = last_slot(seen, now), seen.schedule.last_backup
    return slot if slot is not None and (said is None or slot > said or is_in_future(said, now)) else None


def _in_future(fields: dict[str, datetime]) -> Because | None:
    if not fields:
        return None
    named = " and ".join(f"{field} ({stamp(value)})" for field, value in fields.items())
    text = f"{named} is in the future, so it is ignored and the next run is counted from now. Check the clocks."
    return Because(Reason.TIME_IN_FUTURE, text)


def skip_not_applied() -> Because:
    """Return why a second skipImmediately has no effect."""
    text = "skipImmediately was applied since the last pause, so it is ignored until the next unpause."
    return Because(Reason.SKIP_NOT_APPLIED, f"{text} To skip now, pause the Schedule and unpause it.", Level.NORMAL)


def _name_too_long(schedule: ScheduleRow) -> Because | None:
    if len(schedule.key.name) <= LONGEST_NAME:
        return None
    text = f"the name has {len(schedule.key.name)} characters, and no Backup can carry it in its label"
    return Because(Reason.NAME_TOO_LONG, f"{text}: make the Schedule again with {LONGEST_NAME} at most.")


def _too_rare(schedule: ScheduleRow) -> Because:
    text = f"{schedule.text!r} has no fire in the next five years, as far as Velero looks. Correct spec.schedule."
    return Because(Reason.NEVER_FIRES, text)
