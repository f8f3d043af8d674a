"""One small function for each question about a RestoreCheck."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from foresail.api import core, velero
from foresail.api.restore_check import CheckRun
from foresail.api.selectors import selects
from foresail.api.velero import COMPLETED, SCHEDULE_LABEL
from foresail.backups import good_backups, in_order
from foresail.cron import Dialect, Schedule
from foresail.cron.duration import length_of
from foresail.plan import Delete, Kind
from foresail.proof.checks import build, tenants
from foresail.proof.checks.rows import BackupRow, CheckRow, LocationRow, OwnedObject, QuotaRow, RequestRow, RestoreRow
from foresail.proof.checks.view import CheckView
from foresail.slots.expression import Unusable, read_expression
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.records import is_owned

ENDED = frozenset({"Completed", "PartiallyFailed", "Failed", "FailedValidation"})
"""The phases of a Restore in which nothing runs any more."""

_UTC = "UTC"


class Due(msgspec.Struct, frozen=True):
    """Whether a check starts now, when the next one does, or why none does."""

    is_due: bool = False
    upcoming: datetime | None = None
    problem: str = ""


def is_selected(check: CheckRow, backup: BackupRow) -> bool:
    """Whether a check is about a Backup."""
    chosen = check.spec.backups
    if chosen.schedule is not None:
        return backup.labels.get(SCHEDULE_LABEL) == chosen.schedule
    return chosen.selector is not None and selects(chosen.selector, backup.labels)


def is_of_administrator(location: LocationRow | None) -> bool:
    """Whether the administrator owns the bucket; whoever owns it can write what Velero restores, as cluster-admin."""
    return location is not None and not location.is_tenants


def is_of_tenant(
    check: CheckRow,
    backup: BackupRow,
    request: RequestRow | None,
    namespace: NamespaceRow,
    schedule: RequestRow | None,
    location: LocationRow | None,
) -> bool:
    """Whether the check of a tenant may restore a Backup: by its record it is the tenant's own, in a trusted bucket."""
    if request is None or not is_owned(request, namespace, backup):
        return False
    return tenants.is_chosen(check, request, schedule) and is_of_administrator(location)


def newest_good(view: CheckView) -> BackupRow | None:
    """Return the newest good Backup; one that partially failed is not good."""
    good = good_backups(in_order(view.backups))
    return good[-1] if good else None


def due(check: CheckRow, newest: BackupRow | None, now: datetime) -> Due:
    """Return whether a check is due: requested, by its schedule, or because of a new backup."""
    last = check.status.last
    is_requested = bool(check.request) and check.request != check.status.handled_request
    if check.spec.schedule is None:
        is_new = newest is not None and (
            last is None
            or (newest.uid != last.backup_uid and newest.completed is not None and newest.completed >= last.started)
        )
        return Due(is_requested or is_new)
    cron = expression(check.spec.schedule)
    if isinstance(cron, Unusable):
        return Due(is_requested, problem=cron.message)
    anchor = check.created if last is None else max(check.created, last.started)
    slot = cron.last_fire(min(anchor, now), now)
    return Due(is_requested or slot is not None, cron.next(now))


def pass_due(check: CheckRow, backups: Iterable[BackupRow]) -> datetime | None:
    """Return when a check must have passed again at the latest; None if nothing asks for one."""
    spec = check.spec
    passed = check.status.last_passed
    since = check.created if passed is None else max(check.created, passed)
    if spec.suspend:
        return None
    if spec.schedule is None:
        first = waiting_since(check, backups)
        return None if first is None else first + length(spec.deadline)
    cron = expression(spec.schedule)
    fire = None if isinstance(cron, Unusable) else cron.next(since)
    return None if fire is None else fire + length(spec.deadline)


def waiting_since(check: CheckRow, backups: Iterable[BackupRow]) -> datetime | None:
    """Return when the first backup since the last pass completed, as recorded: it may be deleted by now."""
    passed = check.status.last_passed
    recorded = check.status.waiting_since
    if check.spec.schedule is not None:
        return None
    if recorded is not None and (passed is None or recorded > passed):
        return recorded
    completed = [backup.completed for backup in good_backups(in_order(backups)) if backup.completed]
    first = min((instant for instant in completed if passed is None or instant > passed), default=None)
    return None if first is None else max(first, check.created)


def expression(text: str) -> Schedule | Unusable:
    """Return the schedule of a check."""
    return read_expression(text, _UTC, Dialect.ROBFIG)


def length(text: str) -> timedelta:
    """Return a duration of the spec; the API server has checked it."""
    return length_of(text) or timedelta()


def deadline(check: CheckRow, run: CheckRun) -> datetime:
    """Return when a run has taken too long."""
    return run.started + length(check.spec.deadline)


def seconds_left(check: CheckRow, run: CheckRun, now: datetime) -> int:
    """Return how long a run may still take, at least a second."""
    return max(int((deadline(check, run) - now).total_seconds()), 1)


def held_by_velero(view: CheckView, run: CheckRun) -> str:
    """Return how Velero kept a run waiting until its deadline, which says nothing about the backup; empty if not."""
    restore = restore_of(view, run)
    if restore is None or restore.phase in ENDED:
        return ""
    if restore.phase in velero.WAITING:
        return (
            ": Velero has not begun its restore, because it runs one after the other. It says nothing about the backup"
        )
    if restore.phase in velero.FINALIZING:
        text = (
            f": Velero has restored, but keeps the restore {restore.phase}, where each waits for volume claims of those"
        )
        return f"{text} before it. It says nothing about the backup"
    return f": Velero's restore is {restore.phase}"


def restore_of(view: CheckView, run: CheckRun) -> RestoreRow | None:
    """Return the Velero Restore of a run."""
    return next((restore for restore in view.restores if restore.run == run.id), None)


def backup_of(view: CheckView, run: CheckRun) -> BackupRow | None:
    """Return the Backup of a run, unless it is deleted or being deleted."""
    return next((backup for backup in view.backups if backup.uid == run.backup_uid and backup.phase == COMPLETED), None)


def fences(view: CheckView, run: CheckRun, sources: Iterable[str]) -> dict[str, QuotaRow | None]:
    """Return the quota of each sandbox; None if it does not exist yet. Anyone may write one elsewhere."""
    rows = {quota.key: quota for quota in view.quotas if quota.run == run.id}
    return {source: rows.get(build.fence_key(run.id, source)) for source in sources}


def leftovers(view: CheckView, now: datetime) -> tuple[Delete, ...]:
    """Return the deletion of everything that no run needs: whoever made it, and whenever the operator was killed."""
    return tuple(_leftovers(view, now))


def _leftovers(view: CheckView, now: datetime) -> Iterator[Delete]:
    kept = kept_runs(view, now)
    families: tuple[tuple[Kind, tuple[OwnedObject, ...]], ...] = (
        (velero.RESTORE, view.restores),
        (core.NAMESPACE, tuple(sandbox for sandbox in view.sandboxes if build.is_sandbox(sandbox))),
        (velero.DOWNLOAD_REQUEST, view.downloads),
        (
            core.CONFIG_MAP,
            tuple(owned_object for owned_object in view.config_maps if not build.outlives_its_run(owned_object)),
        ),
    )
    for kind, owned in families:
        for owned_object in owned:
            if (owned_object.check_uid, owned_object.run) not in kept and not owned_object.is_terminating:
                yield build.delete(kind, owned_object)
    yield from (
        build.delete(core.CONFIG_MAP, owned_object) for owned_object in (*_old_evidence(view), *_old_starts(view, now))
    )


def kept_runs(view: CheckView, now: datetime) -> set[tuple[str, str]]:
    """Return the runs whose objects stay: the running one, and a failed one for as long as the spec says."""
    check = view.check
    if check is None:
        return set()
    run = check.status.run
    last = check.status.last
    kept = {(check.uid, run.id)} if run is not None else set()
    if last is not None and last.kept_until is not None and now < last.kept_until:
        kept.add((check.uid, last.id))
    return kept


def blocking_sandbox(view: CheckView, now: datetime) -> OwnedObject | None:
    """Return a sandbox of an earlier run that still exists; those that stay would become more with each run.

    Of a tenant, any check of the namespace may have left it: a check is soon deleted, and another one created.
    """
    kept = kept_runs(view, now)
    own = [sandbox for sandbox in view.sandboxes if (sandbox.check_uid, sandbox.run) not in kept]
    others = [sandbox for sandbox in view.tenant.sandboxes if sandbox.is_terminating] if view.tenant is not None else []
    return next((owned_object for owned_object in (*own, *others) if build.is_sandbox(owned_object)), None)


def starts_until(view: CheckView, now: datetime) -> datetime | None:
    """Return when the next start of a tenant's check counts no more; None if none does."""
    lasts = tenants.interval(view.tenant)
    ends = [
        owned_object.created + lasts
        for owned_object in view.config_maps
        if build.is_start(owned_object) and owned_object.created is not None
    ]
    return min((end for end in ends if end > now), default=None)


def _old_starts(view: CheckView, now: datetime) -> list[OwnedObject]:
    """Return the starts of a tenant's check that count no more, whether it still exists or not."""
    lasts = tenants.interval(view.tenant)
    starts = [
        owned_object
        for owned_object in view.config_maps
        if build.is_start(owned_object) and not owned_object.is_terminating
    ]
    return [start for start in starts if start.created is None or start.created + lasts <= now]


def _old_evidence(view: CheckView) -> list[OwnedObject]:
    own = [
        owned_object
        for owned_object in view.config_maps
        if build.is_evidence(owned_object) and not owned_object.is_terminating
    ]
    check = view.check
    if check is None:
        return own
    mine = [owned_object for owned_object in own if owned_object.check_uid == check.uid]
    mine.sort(key=lambda evidence: (evidence.created or check.created, evidence.key.name), reverse=True)
    return [
        *mine[check.spec.evidence :],
        *(owned_object for owned_object in own if owned_object.check_uid != check.uid),
    ]
