"""What the doctor says about storage locations, and about what others keep in them."""

from collections.abc import Iterator

from foresail.api import velero
from foresail.cli.doctor.evidence import Evidence
from foresail.cli.doctor.finding import Finding, good, minutes, problem, warning
from foresail.cli.doctor.running import log_command, server_state
from foresail.reporting import some
from foresail.safety.velero_pods import validation_of
from foresail.schedules.storage_errors import cause_of
from foresail.selfservice.rows.locations import ORIGIN_NAME, ORIGIN_NAMESPACE


def locations(seen: Evidence) -> Iterator[Finding]:
    """Report whether Velero can reach its buckets; those of tenants are theirs to repair."""
    if not seen.servers:
        return
    own = [location for location in seen.locations if _tenant_of(location) is None]
    if not own:
        yield problem("locations", "there is no BackupStorageLocation", "velero backup-location create default …")
    now = seen.server_time or seen.instant
    does_not_run = server_state(seen, now).problem
    for place in own:
        name = place.metadata.name
        validation = validation_of(place, seen.validates_every)
        late = validation.missed_for(now) if validation is not None else None
        if place.status.phase != velero.AVAILABLE:
            cause = cause_of(place.status.message) or "Velero has not validated it yet"
            fix = f"velero backup-location get, kubectl describe backupstoragelocation {name} -n {seen.namespace}"
            yield problem("locations", f"{name} is {place.status.phase or 'not validated'}: {cause}", fix)
        elif late is not None:
            says = f"{name} was available {minutes(late)} ago, and Velero has not validated it since"
            yield warning("locations", says, f"see why: {log_command(seen)}")
        elif does_not_run:
            says = f"{name} was available when Velero ran, and nothing validates it now"
            yield warning("locations", says, "correct what the finding velero says")
        else:
            yield good("locations", f"{name} is available")
    yield from _default_location(own)
    yield from _locations_of_tenants(seen)


def _default_location(own: list[velero.Location]) -> Iterator[Finding]:
    """Report what a Backup that names no location gets, if none is the default."""
    if not own or any(place.spec.default for place in own):
        return
    taken = velero.resolve_location("", ())
    is_there = any(place.metadata.name == taken for place in own)
    then = f"Velero takes {taken}, by its name" if is_there else "Backups must name one"
    fix = f"velero backup-location set {own[0].metadata.name} --default"
    yield warning("locations", f"none is the default, so {then}", fix)


def _locations_of_tenants(seen: Evidence) -> Iterator[Finding]:
    """Report tenants' locations that Velero cannot reach, and those that wait for an administrator."""
    closed = [
        tenant
        for location in seen.locations
        if (tenant := _tenant_of(location)) is not None and location.status.phase != velero.AVAILABLE
    ]
    if closed:
        fix = "foresail location get -A; their tenants check buckets and keys"
        yield warning("locations", f"{some(closed)}: Velero cannot use these locations of tenants", fix)
    asked = [
        approval.status.non_admin_backup_storage_location
        for approval in seen.approvals
        if approval.status.phase == "Pending"
    ]
    waiting = [f"{key.namespace}/{key.name}" for key in asked if key is not None]
    if waiting:
        fix = "foresail location request get, then foresail location request approve or reject"
        yield warning("locations", f"{some(waiting)}: waiting for approval", fix)


def _tenant_of(location: velero.Location) -> str | None:
    notes = location.metadata.annotations or {}
    namespace = notes.get(ORIGIN_NAMESPACE)
    name = notes.get(ORIGIN_NAME)
    return f"{namespace}/{name}" if namespace and name else None


def strangers(seen: Evidence) -> Iterator[Finding]:
    """Report whether locations hold Backups of Schedules that are not here."""
    schedules: dict[str, set[str]] = {}
    for backup in seen.backups:
        schedule = (backup.metadata.labels or {}).get(velero.SCHEDULE_LABEL, "")
        if schedule and schedule not in seen.schedules:
            schedules.setdefault(backup.spec.storage_location, set()).add(schedule)
    for location, names in sorted(schedules.items()):
        yield warning(
            "strangers",
            f"location {location} has Backups of Schedules that are not in this cluster: {some(sorted(names))}",
            "expected if they were deleted here or another cluster shares the location; else use separate prefixes",
        )
