"""One small function for each question about protection by label."""

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, date, datetime, time

from foresail.api import velero
from foresail.api.instants import instant, stamp
from foresail.api.marks import EXEMPT, PROTECTION, PROTECTION_REASON, PROTECTION_UNTIL
from foresail.backups import good_backups, has_expired, in_order
from foresail.cron import Dialect
from foresail.protection.lateness import cron_of, lateness, zone_of
from foresail.protection.reasons import Reason
from foresail.protection.rows import BackupRow, ClassRow, LocationRow, NamespaceRow, ScheduleRow
from foresail.protection.view import Choice, Classes, NamespaceView
from foresail.reporting import Because
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.policy_timing import PolicyRow, timing_under
from foresail.slots.starts import first_start
from foresail.tenancy.points import hindrance

_SYSTEM = "kube-"
_LONGEST_SHOWN = 64


# What a namespace asks for


def choice(namespace: NamespaceRow, classes: Classes, now: datetime) -> Choice:
    """Return what a namespace gets: what it asks for, or what it would get if it asked for nothing.

    Only a valid exemption and Velero's own label take a namespace out of every Schedule. A label that is gone, or that
    names a class which does not exist, may be a mistake of a tool: it takes no backup away.
    """
    asked = namespace.asked
    if namespace.is_excluded:
        return Choice(leaves=True, problem=_excluded(namespace) if asked not in ("", EXEMPT) else None)
    if asked == EXEMPT:
        until = exempt_until(namespace.until)
        problem = _exemption_problem(namespace, until, now)
        if problem is None:
            return Choice(leaves=True, exempt_until=until)
        return Choice(_fallback(namespace, classes), problem=problem)
    if asked in classes.rows or asked in classes.unread:
        return Choice(asked)
    problem = _unknown(asked) if asked else None
    return Choice(_fallback(namespace, classes), problem=problem)


def _fallback(namespace: NamespaceRow, classes: Classes) -> str:
    """Return the class of a namespace that asks for none: the default, but not for what the cluster lives in."""
    is_system = namespace.name.startswith(_SYSTEM) or namespace.name in classes.never
    return "" if is_system else classes.default


def exempt_until(text: str) -> datetime | None:
    """Return until when an exemption holds: an instant, or the end of a day in UTC; None if it cannot be read."""
    try:
        day = date.fromisoformat(text) if len(text) == len("2026-01-31") else None
    except ValueError:
        return None
    return datetime.combine(day, time.max, UTC).replace(microsecond=0) if day is not None else instant(text)


def _exemption_problem(namespace: NamespaceRow, until: datetime | None, now: datetime) -> Because | None:
    if not namespace.reason.strip() or until is None:
        missing = PROTECTION_UNTIL if namespace.reason.strip() else PROTECTION_REASON
        text = f"namespace {namespace.name} has {PROTECTION}: {EXEMPT}, and annotation {missing} is missing or wrong"
        return Because(Reason.EXEMPTION_INCOMPLETE, f"{text}. Set a reason, and a date such as 2027-01-31.")
    if until <= now:
        text = f"the exemption of namespace {namespace.name} ended at {stamp(until)}"
        return Because(Reason.EXEMPTION_EXPIRED, f"{text}. Choose a class, or set a later date.")
    return None


def _excluded(namespace: NamespaceRow) -> Because:
    text = f"namespace {namespace.name} has a label by which Velero refuses every backup of it"
    return Because(Reason.EXCLUDED, f"{text}. Remove velero.io/exclude-from-backup.")


def _unknown(asked: str) -> Because:
    text = f"no ProtectionClass is named {asked[:_LONGEST_SHOWN]!r}"
    return Because(Reason.UNKNOWN_CLASS, f"{text}. Correct the label {PROTECTION}, or create the class.")


# Backups


def good_of(runs: Iterable[BackupRow], now: datetime) -> list[BackupRow]:
    """Return the good ones of the runs of one Schedule that have not expired, oldest first."""
    good = good_backups(in_order(runs))
    return [run for run in good if not has_expired(run.expires, now)]


def has_taken_over(schedule: ScheduleRow, runs: Sequence[BackupRow], namespace: NamespaceRow, now: datetime) -> bool:
    """Whether a Schedule has a good backup of a namespace since it takes that.

    Runs are read from the newest back to the first without the namespace: what was taken before that is of an earlier
    time in this Schedule.
    """
    own = [run for run in runs if _is_run_of(run, schedule)]
    good = {run.name for run in good_of(own, now)}
    for run in sorted(own, key=lambda row: (row.started, row.name), reverse=True):
        if not run.has(namespace):
            return False
        if run.name in good:
            return True
    return False


def _is_run_of(run: BackupRow, schedule: ScheduleRow) -> bool:
    """Whether a Schedule made a run, or somebody by hand since it exists: `foresail schedule run` records no UID."""
    by_hand = not run.schedule_uid and schedule.created is not None and run.started >= schedule.created
    return by_hand or run.schedule_uid == schedule.uid


def restorable_points(view: NamespaceView, now: datetime) -> list[BackupRow]:
    """Return the backups from which the team of a namespace can restore, newest first."""
    points = [backup for backup in view.backups if _is_point(backup, view, now)]
    return sorted(points, key=lambda row: (row.started, row.name), reverse=True)


def _is_point(backup: BackupRow, view: NamespaceView, now: datetime) -> bool:
    row = view.row
    by_tenants = backup.protection_class in view.open_classes
    has_location = not backup.location or backup.location in view.locations
    return hindrance(backup, row.name, row.uid, now, by_tenants=by_tenants, has_location=has_location) is None


def first_expiry(backups: Iterable[BackupRow]) -> datetime | None:
    """Return when the first of some backups expires; None if none does."""
    return min((backup.expires for backup in backups if backup.expires is not None), default=None)


def last_ended(backups: Iterable[BackupRow]) -> BackupRow | None:
    """Return the backup of a namespace that ended last."""
    ended = in_order(backups)
    return ended[-1] if ended else None


# Classes and their Schedules


def invalid_expression(row: ClassRow, zone: str) -> Because | None:
    """Return why the expression of a class cannot be used with every Velero; None if it can."""
    for dialect in Dialect:
        cron = read_expression(row.spec.schedule, zone, dialect)
        if isinstance(cron, Unusable):
            return Because(Reason.CLASS_INVALID, f"ProtectionClass {row.name}: {cron.message}")
    return None


def class_problem(
    row: ClassRow, policies: Collection[str], locations: Iterable[LocationRow], refused: str = ""
) -> Because | None:
    """Return what keeps a class from running as its spec says; None if nothing does."""
    return (
        invalid_expression(row, "UTC")
        or policy_missing(row, policies)
        or location_unusable(row, locations)
        or (write_refused(row, refused) if refused else None)
    )


def policy_missing(row: ClassRow, policies: Collection[str]) -> Because | None:
    """Return that the SchedulePolicy of a class does not exist."""
    named = row.spec.schedule_policy
    if named is None or named in policies:
        return None
    text = f"ProtectionClass {row.name} names SchedulePolicy {named}, which does not exist"
    return Because(Reason.POLICY_MISSING, f"{text}. Create it, or correct spec.schedulePolicy.")


def class_location(row: ClassRow, locations: Iterable[LocationRow]) -> str:
    """Return the name of the storage location that a class means."""
    named = row.spec.template.storage_location or ""
    return velero.resolve_location(named, (location.key.name for location in locations if location.is_default))


def location_unusable(row: ClassRow, locations: Iterable[LocationRow]) -> Because | None:
    """Return that the storage location of a class takes no backups, until someone changes it."""
    known = {location.key.name: location for location in locations}
    name = class_location(row, known.values())
    location = known.get(name)
    if location is not None and not location.is_read_only:
        return None
    what = "does not exist" if location is None else "is read-only"
    text = f"BackupStorageLocation {name} of ProtectionClass {row.name} {what}"
    return Because(Reason.LOCATION_UNUSABLE, f"{text}. Correct it, or spec.template.storageLocation.")


def write_refused(row: ClassRow, refused: str) -> Because:
    """Return that the API server refuses a Schedule of a class, in its words."""
    text = f"the API server refuses a Schedule of ProtectionClass {row.name}: {refused}"
    return Because(Reason.WRITE_REFUSED, f"{text}. The operator tries again.")


def class_unreadable(name: str, problem: str) -> Because:
    """Return that a class cannot be read."""
    text = f"ProtectionClass {name} cannot be read: {problem}"
    return Because(Reason.CLASS_UNREADABLE, f"{text}. Correct that field.")


def schedule_problem(schedule: ScheduleRow) -> Because | None:
    """Return why a Schedule does not run until someone acts; None if it does."""
    if schedule.paused:
        text = f"Schedule {schedule.key} is paused"
        return Because(Reason.SCHEDULE_PAUSED, f"{text}. Resume it: foresail schedule unpause {schedule.name}")
    if schedule.phase == velero.FAILED_VALIDATION:
        error = schedule.errors[0] if schedule.errors else "Velero gives no error"
        return Because(Reason.SCHEDULE_INVALID, f"Schedule {schedule.key} cannot run: {error}")
    return None


def schedule_unreadable(schedule: str, problem: str) -> Because:
    """Return that a Schedule of a class cannot be read, so that nobody comes into its groups or leaves them."""
    text = f"Schedule {schedule} cannot be read: {problem}"
    return Because(Reason.SCHEDULE_INVALID, f"{text}. Correct that field.")


def next_run(
    schedule: ScheduleRow, runs: Iterable[BackupRow], policy: PolicyRow | None, zone: str, now: datetime
) -> datetime | None:
    """Return when the next run of a Schedule is due, counted from the last that has ended: one that runs is not over.

    None if it is paused, or if its expression has no fires.
    """
    if schedule.paused or schedule.created is None:
        return None
    zone = zone_of(policy, zone)
    cron = cron_of(schedule, zone)
    if cron is None:
        return None
    own = [run for run in runs if run.schedule_uid == schedule.uid]
    ended = [run.slot or run.started for run in own if run.is_terminal]
    recorded = [schedule.last_backup] if schedule.last_backup and all(run.is_terminal for run in own) else []
    base = max((*ended, *recorded), default=schedule.created)
    return first_start(cron, base, now, timing_under(policy, str(schedule.key), zone))


# A namespace


def gaps(view: NamespaceView, now: datetime) -> list[Because]:
    """Return why a namespace is not protected as it asks; none if it is, or if a first backup is still to come."""
    chosen = view.chosen
    reasons = [chosen.problem, _for_teams(view)]
    own = [row for row in view.schedules if row.protection_class == chosen.protection_class]
    reasons += [schedule_problem(row) for row in own or view.schedules]
    reasons += _of_velero(view, now) if view.schedules else []
    if not chosen.protection_class and not chosen.leaves and view.schedules and chosen.problem is None:
        reasons.append(_no_class(view))
    last = last_ended(view.backups)
    if last is not None and last.name not in {run.name for run in _good_ones(view)}:
        text = f"the last backup, {last.name}, is {last.phase} or has lost most of its objects"
        reasons.append(Because(Reason.LAST_RUN_FAILED, f"{text}. See: velero backup describe {last.name}"))
    return [because for because in reasons if because is not None]


def _of_velero(view: NamespaceView, now: datetime) -> Iterator[Because]:
    """Yield why no run of a namespace is good, or why its newest good backup cannot be restored."""
    health = view.health
    good = newest_good(view, now)
    if health.velero is not None and health.velero.counts:
        yield Because(Reason.VELERO_NOT_READY, f"{health.velero.message}. See: foresail doctor")
    where = good.location if good is not None else ""
    is_lost = where not in ("", *view.locations)  # that of the class is missing by the reason LocationUnusable
    lost = f"BackupStorageLocation {where} of the newest good backup does not exist" if is_lost else ""
    for text in dict.fromkeys((health.location_problem(view.location), health.location_problem(where), lost)):
        if text:
            yield Because(Reason.LOCATION_UNAVAILABLE, f"{text}. See: velero backup-location get")
    late = lateness(view, good)
    if late is not None and late.at <= now:
        yield late.because


def _for_teams(view: NamespaceView) -> Because | None:
    """Return why the class of a namespace cannot run; the words of the API server may name other namespaces."""
    problem = view.problem
    if problem is None or problem.reason is not Reason.WRITE_REFUSED:
        return problem
    of = view.chosen.protection_class
    text = f"the API server refuses a Schedule of ProtectionClass {of}, whose condition Ready has its words"
    return Because(Reason.WRITE_REFUSED, f"{text}. The operator tries again.")


def doubts(view: NamespaceView, now: datetime) -> list[Because]:
    """Return what is unknown about a namespace with a good backup."""
    reasons: list[Because] = []
    good = newest_good(view, now)
    unknown = view.health.unknown
    if unknown is not None and unknown.counts:
        reasons.append(Because(Reason.RUNNER_UNKNOWN, f"{unknown.message}. See: foresail doctor"))
    own = _before(view.claims, good) if good is not None else 0
    if good is not None and own and good.snapshots < _before(view.claims_together, good):
        text = f"whether {good.name} has the data of {own} {'volume' if own == 1 else 'volumes'} is not proven"
        why = "it has fewer snapshots than its namespaces have volumes"  # how many is for administrators
        reasons.append(Because(Reason.VOLUMES_UNPROVEN, f"{text}: {why}. See: foresail coverage"))
    return reasons


def _before(created: Iterable[datetime], good: BackupRow) -> int:
    return sum(moment < good.started for moment in created)


def _no_class(view: NamespaceView) -> Because:
    text = f"namespace {view.row.name} names no class and stays in Schedule {view.schedules[0].name}"
    return Because(Reason.NO_CLASS, f"{text}. Choose a class, or {EXEMPT} with a reason and a date.")


def newest_good(view: NamespaceView, now: datetime) -> BackupRow | None:
    """Return the newest good backup of a namespace, of whichever class."""
    return max(good_ones(view, now), key=lambda row: (row.started, row.name), default=None)


def good_ones(view: NamespaceView, now: datetime) -> list[BackupRow]:
    """Return the good backups of a namespace that have not expired."""
    return [run for run in _good_ones(view) if not has_expired(run.expires, now)]


def _good_ones(view: NamespaceView) -> list[BackupRow]:
    """Return the good backups of a namespace: whether a run is good depends on those of its Schedule before it only."""
    return [run for runs in _by_schedule(view).values() for run in good_backups(in_order(runs)) if run.has(view.row)]


def _by_schedule(view: NamespaceView) -> Mapping[str, Sequence[BackupRow]]:
    """Return the runs to judge by their Schedule: all of those that take it, and of others those of this namespace."""
    by_schedule: dict[str, list[BackupRow]] = {name: list(runs) for name, runs in view.runs.items()}
    for backup in view.backups:
        if backup.schedule not in view.runs:
            by_schedule.setdefault(backup.schedule, []).append(backup)
    return by_schedule
