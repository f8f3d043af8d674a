"""The rules: when skipImmediately applies, which recorded times count, and what blocks a run that is due.

Each rule is one small function named after its question; `judge` evaluates them in their order.
"""

import hashlib
from collections.abc import Callable
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.instants import instant, stamp, whole
from foresail.plan import Level
from foresail.schedules.build import backup_name
from foresail.schedules.expression import LONGEST_TEXT, diff_dialects, parse_expression
from foresail.schedules.observe import BackupRow, ScheduleRow, ScheduleView
from foresail.schedules.reasons import Because, Reason
from foresail.schedules.slots import base_of, due_and_upcoming, is_in_future, last_slot, missed_before
from foresail.schedules.status import UNKNOWN, Changes, Observed, last_observed

LONGEST_NAME = 63  # of a label's value: the name of a Schedule is in a label of each of its Backups
SETTLING_TIME = timedelta(seconds=10)
"""How long a new Backup may be missing from the store, and an answer of Velero may take."""

_RARE_RECHECK = timedelta(days=180)


class Verdict(msgspec.Struct, frozen=True):
    """The result of the rules for one Schedule at one instant."""

    changes: Changes
    base: datetime
    refused: Because | None = None  # it cannot run as it is
    skipped: bool = False  # skipImmediately was applied just now
    edited: bool = False
    due: datetime | None = None  # the slot whose run is due, blocked or not
    upcoming: datetime | None = None  # the first slot after now
    missed: int = 0  # slots before the due one that will not run; at most a hundred are counted
    blocked_by: Because | None = None
    dialect_changed: Because | None = None  # another dialect, and with it other fires
    is_settling: bool = False  # too early to tell: reconcile again in a moment
    in_future: Because | None = None  # a recorded time is in the future and ignored
    ignored: Because | None = None  # skipImmediately was set again without a pause, and that is not reported yet

    @property
    def fires(self) -> datetime | None:
        """The slot to make a Backup for now."""
        return None if self.blocked_by or self.is_settling else self.due

    @property
    def next_run(self) -> datetime | None:
        """The slot of the next run: the one that is due, or the one to come."""
        return self.due or self.upcoming


# skipImmediately


def is_new(schedule: ScheduleRow) -> bool:
    """Whether no controller has worked on it yet; one that Velero has worked on is not new to us either."""
    return not (schedule.phase or schedule.last_backup or schedule.last_skipped)


def is_unpaused(schedule: ScheduleRow, previous: Observed | None) -> bool:
    """Whether it was paused when last observed, and no longer is."""
    return not schedule.paused and previous is not None and bool(previous.paused)


def turned_true(schedule: ScheduleRow, previous: Observed | None) -> bool:
    """Whether the field is true and was not applied yet; set again without a pause, it counts as applied."""
    return schedule.skip is True and not (previous is not None and previous.consumed)


def is_skipped(schedule: ScheduleRow, previous: Observed | None, *, default: bool) -> bool:
    """Whether to apply skipImmediately now: only if new, unpaused or just set, and never while paused."""
    effective = default if schedule.skip is None else schedule.skip
    occasion = is_new(schedule) or is_unpaused(schedule, previous) or turned_true(schedule, previous)
    return effective and occasion and not schedule.paused


def is_ignored(schedule: ScheduleRow, *, skipped: bool) -> bool:
    """Whether skipImmediately was set again without a pause since it was applied."""
    return schedule.skip is True and not schedule.paused and not skipped


def is_edited(schedule: ScheduleRow, previous: Observed | None) -> bool:
    """Whether the expression differs from the one last observed."""
    return previous is not None and previous.schedule != stored_text(schedule.text)


def stored_text(text: str) -> str:
    """Return the expression as the annotation stores it; a digest if it is too long."""
    return text if len(text) <= LONGEST_TEXT else hashlib.sha256(text.encode()).hexdigest()


# Times that are not trusted


def times_in_future(schedule: ScheduleRow, previous: Observed | None, now: datetime) -> dict[str, datetime]:
    """Return the recorded times that lie in the future, by field: a clock was wrong, or somebody edited them.

    A creationTimestamp cannot be corrected; it no longer counts once an instant to count from is recorded.
    """
    since = previous.edited if previous else None
    created = None if since is not None and not is_in_future(since, now) else schedule.created
    recorded = {
        "lastBackup": schedule.last_backup,
        "lastSkipped": schedule.last_skipped,
        "since": since,
        "creationTimestamp": created,
    }
    return {field: moment for field, moment in recorded.items() if moment and is_in_future(moment, now)}


# What blocks a run that is due


def velero_schedules(view: ScheduleView, _now: datetime) -> Because | None:
    """Block runs while Velero's own schedule controller would create Backups for the same slots."""
    unread = view.server.unread
    if unread is not None:
        text = (
            f"Deployment {unread.key} cannot be read ({unread.problem}), so Velero may run Schedules itself. Correct it"
        )
        return Because(Reason.VELERO_SCHEDULES, f"{text}; the run then starts.")
    if not view.server.has_schedule_controller:
        return None
    text = "Velero's own schedule controller is on, so Foresail does not fire. Start Velero with"
    return Because(Reason.VELERO_SCHEDULES, f"{text} --disable-controllers=schedule.")


def is_busy(backup: BackupRow, schedule: ScheduleRow, now: datetime) -> bool:
    """Whether a Backup of this Schedule runs or waits to run, in this cluster.

    Backups that another cluster made for its Schedule of the same name do not count, nor do expired ones: Velero
    synced those from storage and will delete them.
    """
    is_past = backup.expires is not None and backup.expires <= now
    return backup.is_of(schedule) and not backup.is_terminal and not is_past


def busy(view: ScheduleView, now: datetime) -> Because | None:
    """Block a run while the one before it has not ended."""
    for backup in view.backups:
        if is_busy(backup, view.schedule, now):
            text = f"Backup {backup.key} is {backup.phase or 'New'}; the next run starts when it finishes."
            return Because(Reason.BUSY, text)
    for unread in view.unread:
        text = f"Backup {unread.key} cannot be read ({unread.problem}), so it may be running. Correct or delete it"
        return Because(Reason.BUSY, f"{text}; the run then starts.")
    return None


def location_unavailable(view: ScheduleView, _now: datetime) -> Because | None:
    """Block a run while its location is unavailable: Velero would fail the Backup for good."""
    return _location_problem(view)


def _location_problem(view: ScheduleView) -> Because | None:
    location, name = view.location, view.schedule.location
    if location is None:
        problem = f"BackupStorageLocation {name} does not exist" if name else "there is no default storage location"
    elif location.is_read_only:
        problem = f"BackupStorageLocation {location.key} is read-only"
    elif location.phase != velero.AVAILABLE:
        cause = f": {location.message}" if location.message else ""
        problem = f"BackupStorageLocation {location.key} is {location.phase or 'not checked by Velero yet'}{cause}"
    else:
        return None
    return Because(Reason.LOCATION_UNAVAILABLE, f"{problem}; the run starts when it is available.")


BLOCKERS: tuple[Callable[[ScheduleView, datetime], Because | None], ...] = (
    velero_schedules,
    busy,
    location_unavailable,
)


def is_settling(view: ScheduleView, now: datetime) -> bool:
    """Whether the store does not have the Backup of the last run yet, so that its phase is unknown."""
    last = view.schedule.last_backup
    if last is None or now - last >= SETTLING_TIME or is_in_future(last, now):
        return False
    name = backup_name(view.schedule, last)
    return all(each.key.name != name for each in view.backups)


def is_version_awaited(view: ScheduleView, now: datetime) -> bool:
    """Whether the version was requested a moment ago, and an answer may still come."""
    return view.server.version_requested is not None and abs(now - view.server.version_requested) < SETTLING_TIME


# All together


def judge(view: ScheduleView, now: datetime) -> Verdict:
    """Evaluate every rule in order; the first that blocks a run is reported."""
    schedule, server, zone = view.schedule, view.server, view.settings.zone
    previous = last_observed(schedule)
    refused = _name_too_long(schedule)
    cron = refused or parse_expression(schedule.text, zone, server.dialect, now)
    is_unknown = isinstance(cron, Because) and cron.reason is Reason.DIALECT_UNKNOWN
    skipped = is_skipped(schedule, previous, default=view.settings.skip_immediately)
    edited = is_edited(schedule, previous)
    future = times_in_future(schedule, previous, now)
    observed = _observed(view, previous, now, skipped=skipped, future=future, edited=edited)
    base = base_of(view, observed, now)
    if skipped:
        base = max(base, whole(now))
    upcoming = due = None
    if not isinstance(cron, Because):
        due, upcoming = due_and_upcoming(cron, base, now)
        if due is None and upcoming is None:
            cron = _too_rare(schedule)
    errors = (cron.message,) if isinstance(cron, Because) and not is_unknown else ()
    changes = Changes(
        observed=observed,
        phase=schedule.phase if is_unknown else velero.FAILED_VALIDATION if errors else velero.ENABLED,
        errors=schedule.errors if is_unknown else errors,
        last_backup=_unrecorded_slot(view, now),
        last_skipped=whole(now) if skipped else None,
        clears_skip=skipped and schedule.skip is True,
        clears=tuple(field for field in ("lastBackup", "lastSkipped") if field in future),
    )
    verdict = Verdict(
        changes,
        base,
        skipped=skipped,
        edited=edited,
        dialect_changed=_dialect_changed(view, previous, now),
        in_future=_in_future(future),
        ignored=skip_not_applied() if observed.ignored and not (previous and previous.ignored) else None,
    )
    if isinstance(cron, Because):
        if not is_unknown:
            return msgspec.structs.replace(verdict, refused=cron)
        blocked_by = None if schedule.paused else cron
        return msgspec.structs.replace(verdict, blocked_by=blocked_by, is_settling=is_version_awaited(view, now))
    if schedule.paused:
        return verdict
    if due is None:
        return msgspec.structs.replace(verdict, upcoming=upcoming)
    return msgspec.structs.replace(
        verdict,
        due=due,
        upcoming=upcoming,
        missed=missed_before(cron, base, due),
        blocked_by=next(filter(None, (blocker(view, now) for blocker in BLOCKERS)), None),
        is_settling=is_settling(view, now),
    )


def cannot_run(view: ScheduleView, verdict: Verdict) -> Because | None:
    """Return why no run can start until somebody changes something; a pause is intended and does not count."""
    if view.schedule.paused:
        return None
    is_missing = view.location is None or view.location.is_read_only
    return verdict.refused or (_location_problem(view) if is_missing else None)


def next_reconcile(verdict: Verdict, now: datetime) -> datetime | None:
    """Return the instant at which the clock alone may change the verdict."""
    if verdict.is_settling:
        return now + timedelta(seconds=1)
    if verdict.refused is not None and verdict.refused.reason is Reason.NEVER_FIRES:
        return now + _RARE_RECHECK  # a fire in eight years is found once it is within five
    return verdict.upcoming


def _observed(
    view: ScheduleView,
    previous: Observed | None,
    now: datetime,
    *,
    skipped: bool,
    edited: bool,
    future: dict[str, datetime],
) -> Observed:
    schedule = view.schedule
    paused = (previous.paused if previous and previous.paused else stamp(now)) if schedule.paused else ""
    if is_in_future(instant(paused), now):
        paused = stamp(now)
    consumed = not schedule.paused and (
        (skipped and schedule.skip is True) or (previous is not None and previous.consumed)
    )
    since = stamp(now) if edited or future else previous.since if previous else ""
    dialect, ahead = _dialect(view, previous, now, edited=edited), _ahead(schedule, previous, future)
    ignored = is_ignored(schedule, skipped=skipped)
    return Observed(stored_text(schedule.text), paused, consumed, since, dialect, ignored, ahead)


def _ahead(schedule: ScheduleRow, previous: Observed | None, future: dict[str, datetime]) -> str:
    """Return the latest time that was cleared, until a later run is recorded."""
    before = instant(previous.ahead) if previous else None
    times = [each for field, each in future.items() if field != "creationTimestamp"]
    latest = max((each for each in (before, *times) if each is not None), default=None)
    run = schedule.last_backup if "lastBackup" not in future else None
    return "" if latest is None or (run is not None and run >= latest) else stamp(latest)


def _dialect(view: ScheduleView, previous: Observed | None, now: datetime, *, edited: bool) -> str:
    """Return the dialect to store: only for expressions on which the two differ, which saves writes."""
    known = view.server.dialect
    if previous is None or edited:
        differs = diff_dialects(view.schedule.text, view.settings.zone, now) is not None
    else:
        differs = bool(previous.dialect)
    if known is None:
        before = previous.dialect if previous and not edited else ""
        return before or (UNKNOWN if differs else "")
    return known.value if differs else ""


def _dialect_changed(view: ScheduleView, previous: Observed | None, now: datetime) -> Because | None:
    known = view.server.dialect
    if known is None or previous is None or previous.read_by in (None, known) or is_edited(view.schedule, previous):
        return None
    found = diff_dialects(view.schedule.text, view.settings.zone, now)
    if found is None:
        return None
    fires = sorted((*found.removed, *found.added))
    first = f" The first fire that differs is {stamp(fires[0])}." if fires else ""
    reason = f": {found.reason}" if found.reason else ""
    text = (
        f"Velero {view.server.version} now reads {view.schedule.text!r} by the rules of {known.value}{reason}.{first}"
    )
    return Because(Reason.DIALECT_CHANGED, text)


def _unrecorded_slot(view: ScheduleView, now: datetime) -> datetime | None:
    """Return the slot of a Backup that status.lastBackup does not record yet."""
    slot, recorded = last_slot(view, now), view.schedule.last_backup
    return slot if slot is not None and (recorded is None or slot > recorded or is_in_future(recorded, now)) else None


def _in_future(fields: dict[str, datetime]) -> Because | None:
    if not fields:
        return None
    named = " and ".join(f"{field} ({stamp(value)})" for field, value in fields.items())
    text = f"{named} is in the future, so it is ignored and the next run counts from now. Check the clocks."
    return Because(Reason.TIME_IN_FUTURE, text)


def skip_not_applied() -> Because:
    """Return why a second skipImmediately has no effect."""
    text = "skipImmediately was applied since the last pause, so it is ignored until the next unpause."
    return Because(Reason.SKIP_NOT_APPLIED, f"{text} To skip now, pause the Schedule and unpause it.", Level.NORMAL)


def _name_too_long(schedule: ScheduleRow) -> Because | None:
    if len(schedule.key.name) <= LONGEST_NAME:
        return None
    text = f"the name has {len(schedule.key.name)} characters, which does not fit into the label of a Backup"
    return Because(Reason.NAME_TOO_LONG, f"{text}. Create it again with at most {LONGEST_NAME} characters.")


def _too_rare(schedule: ScheduleRow) -> Because:
    text = f"{schedule.text!r} has no fire in the next five years, the limit of Velero's search. Correct spec.schedule."
    return Because(Reason.NEVER_FIRES, text)
