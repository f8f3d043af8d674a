"""Checks of Velero and its objects: clocks, versions, Schedules, locations and Backups."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from foresail.api import velero
from foresail.api.marks import PRIMERS_LEASE, SCHEDULES_LEASE, SELF_SERVICE_LEASE
from foresail.api.monitoring import UNATTENDED
from foresail.cli.doctor.evidence import Backup, Evidence, Restore
from foresail.cli.doctor.finding import Finding, good, minutes, problem, some, warning
from foresail.cli.doctor.running import why_down, without_leader
from foresail.cli.output.words import compact
from foresail.proof.velero_pods import not_validated_for
from foresail.reporting import Because
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import ScheduleView, Unread, location_of, location_row
from foresail.schedules.policies import rpo_of, settings_under
from foresail.schedules.rules import cannot_run, judge
from foresail.schedules.settings import Settings
from foresail.schedules.storage_errors import cause_of
from foresail.schedules.velero_server import identify_server
from foresail.selfservice.rows.locations import ORIGIN_NAME, ORIGIN_NAMESPACE
from foresail.slots.interval import longest_gap
from foresail.slots.policy_timing import policy_for, policy_row

_SKEW = timedelta(seconds=5)
_OLD_ZONES = timedelta(days=500)
_PILE_UP = 20  # Schedules that start in one minute
_STARTS_WITHIN = timedelta(minutes=10)
_ENDS_WITHIN = timedelta(minutes=11)  # Velero waits 10 for the claims of one Restore
_RUNS_AT_MOST = timedelta(hours=24)


def clocks(seen: Evidence) -> Iterator[Finding]:
    """Report whether this machine, the API server and the operator agree what time it is."""
    if seen.server_time is None:
        return
    own = seen.instant - seen.server_time
    allowed = _SKEW + seen.doubt
    renewed = seen.lease.spec.renew_time if seen.lease is not None else None
    if abs(own) > allowed:
        yield warning("clock", f"this machine is {_ahead(own)} the API server", "set its clock: see timedatectl")
    elif renewed is not None and renewed - seen.server_time > allowed:
        says = f"the operator's clock is {_ahead(renewed - seen.server_time)} the API server's, and so are its runs"
        yield problem("clock", says, "set the clock of its node")
    else:
        yield good("clock", f"within {allowed.total_seconds():.0f} s of the API server's")


def zones(seen: Evidence) -> Iterator[Finding]:
    """Report whether the zone data of this installation is young enough."""
    year, _, number = seen.tzdata.partition(".")
    published = datetime(int(year), min(int(number) * 2, 12), 1, tzinfo=seen.instant.tzinfo)  # about six a year
    if seen.instant - published > _OLD_ZONES:
        yield warning("zones", f"tzdata {seen.tzdata} is more than a year old", "install a newer foresail, or tzdata")
    else:
        yield good("zones", f"tzdata {seen.tzdata}")


def attended(seen: Evidence) -> Iterator[Finding]:
    """Report whether exactly one controller runs the Schedules."""
    if not seen.servers:
        yield from _unrecognised(seen)
        return
    holder = seen.holder(seen.lease)
    by_velero = any(row.has_schedule_controller for row in seen.servers)
    by_us = any(operator.schedules for operator in seen.operators) or (bool(holder) and not seen.operators)
    if by_velero and by_us:
        fix = f"add --disable-controllers=schedule to the arguments of Deployment {seen.servers[0].key}"
        yield problem("schedules", "Velero's own schedule controller is on, so the operator fires nothing", fix)
    elif by_velero:
        yield good("schedules", "Velero's own schedule controller runs them")
        if seen.has_alert:
            says = "the alert ForesailSchedulesUnattended was left behind and fires although Velero runs them"
            yield warning("schedules", says, f"kubectl delete prometheusrule {UNATTENDED} -n {seen.namespace}")
    elif not holder:
        yield _unattended(seen)
    elif not by_us:
        fix = "start the operator with --schedules=true, or turn Velero's controller on"
        yield problem("schedules", "nothing runs them: both Velero's controller and the operator's are off", fix)
    else:
        yield good("schedules", f"{holder} runs them")


def _unattended(seen: Evidence) -> Finding:
    """Return that neither Velero nor a replica of the operator runs the Schedules."""
    fix = (
        f"start the operator (kubectl get pods -l app.kubernetes.io/name={SCHEDULES_LEASE} -A), or give them back"
        f" to Velero: remove --disable-controllers=schedule from Deployment {seen.servers[0].key}"
    )
    count = len(seen.schedules)
    those = f"the {count} Schedules" if count else "new Schedules"
    if count == 1:
        those = "the only Schedule"
    why = next((why_down(seen, operator) for operator in seen.operators if operator.schedules), "")
    return problem("schedules", f"nothing runs {those}: Velero's controller and the operator are off{why}", fix)


def _unrecognised(seen: Evidence) -> Iterator[Finding]:
    """Report an operator that fires nothing, because it recognises no Velero server."""
    by_us = [operator for operator in seen.operators if operator.schedules]
    if seen.has_read_deployments and by_us and not any(operator.velero_schedules_off for operator in by_us):
        says = "no Velero server is recognised, so the operator cannot know that Velero's schedule controller is off"
        value = "in the chart, schedules.veleroSchedulesOff"
        fix = f"if it is off, add --velero-schedules-off to Deployment {by_us[0].key} ({value})"
        yield problem("schedules", f"{says}, and fires nothing unless a pod shows it", fix)


def runnable(seen: Evidence) -> Iterator[Finding]:
    """Report the Schedules that never run until someone corrects them."""
    known = identify_server(seen.servers, "", None)
    now = seen.server_time or seen.instant
    places = [location_row(location) for location in seen.locations]
    reasons: dict[str, list[tuple[str, str]]] = {}
    minutes_of_starts: dict[datetime, list[str]] = {}
    policies = [policy_row(schedule_policy) for schedule_policy in seen.schedule_policies]
    for name, row in sorted(seen.schedules.items()):
        if isinstance(row, Unread):
            fix = f"correct that field: kubectl edit schedule.velero.io {name} -n {seen.namespace}"
            yield problem("schedules", f"Schedule {name} cannot be read: {row.problem}", fix)
            continue
        policy = policy_for(name, row.labels, policies)
        settings = settings_under(policy, Settings())
        view = ScheduleView(row, (), location_of(row.location, places), known, settings, policy=policy)
        verdict = judge(view, now)
        because = cannot_run(view, verdict)
        if verdict.starts is not None:
            minutes_of_starts.setdefault(verdict.starts.replace(second=0), []).append(name)
        if because is not None:
            reasons.setdefault(because.reason.value, []).append((name, because.message))
    for reason, cases in reasons.items():
        name, message = cases[0]
        says = f"{some([name for name, _ in cases])} can never run ({reason}): {message}"
        yield problem("schedules", says, f"foresail schedule explain {name} -n {seen.namespace}")
    yield from _piled_up(minutes_of_starts)


def _piled_up(starts: dict[datetime, list[str]]) -> Iterator[Finding]:
    """Report the minute in which most Schedules start next, if they are many."""
    at, names = max(starts.items(), key=lambda item: (len(item[1]), -item[0].timestamp()), default=(None, []))
    if at is None or len(names) < _PILE_UP:
        return
    says = f"{len(names)} Schedules start in the same minute, {at:%Y-%m-%d %H:%M} UTC: {some(names)}"
    fix = "set spread in a SchedulePolicy, or choose other minutes: foresail schedule spread"
    yield warning("schedules", says, fix)


def objectives(seen: Evidence) -> Iterator[Finding]:
    """Report the Schedules whose runs are further apart than their objective allows."""
    known = identify_server(seen.servers, "", None)
    now = seen.server_time or seen.instant
    policies = [policy_row(schedule_policy) for schedule_policy in seen.schedule_policies]
    missed = []
    for name, row in sorted(seen.schedules.items()):
        policy = policy_for(name, row.labels, policies) if not isinstance(row, Unread) else None
        rpo = rpo_of(policy)
        if isinstance(row, Unread) or rpo is None:
            continue
        cron = parse_expression(row.text, settings_under(policy, Settings()).zone, known.dialect, now)
        gap = longest_gap(cron, now) if not isinstance(cron, Because) else None
        if gap is not None and gap > rpo:
            missed.append((name, f"runs are up to {compact(gap)} apart, and the objective is {compact(rpo)}"))
    if missed:
        says = f"{some([name for name, _ in missed])} cannot meet the objective: {missed[0][1]}"
        yield warning("objectives", says, "run them more often, or raise objective.rpo of their SchedulePolicy")


def served(seen: Evidence) -> Iterator[Finding]:
    """Report whether the operator of self-service runs, if it should."""
    does, lacks = "serves the requests of teams", "no request of a team is served"
    yield from _led(seen, SELF_SERVICE_LEASE, seen.holder(seen.self_service_lease), "self-service", does, lacks)


def primed(seen: Evidence) -> Iterator[Finding]:
    """Report whether the operator of primers runs, if it should."""
    does, lacks = "holds capacity for them", "no capacity is held for CronJobs"
    yield from _led(seen, PRIMERS_LEASE, seen.holder(seen.primers_lease), "primers", does, lacks)


def _led(seen: Evidence, lease: str, holder: str, about: str, does: str, lacks: str) -> Iterator[Finding]:
    """Report what the leader of an operator does, or what is missing without one; nothing if it is not installed."""
    apart = next((operator for operator in seen.operators if operator.lease == lease), None)
    if apart is not None:
        yield good(about, f"{holder} {does}") if holder else without_leader(seen, apart, about, lacks)


def locations(seen: Evidence) -> Iterator[Finding]:
    """Report whether Velero can reach its buckets; those of tenants are theirs to repair."""
    if not seen.servers:
        return
    own = [location for location in seen.locations if _tenant_of(location) is None]
    if not own:
        yield problem("locations", "there is no BackupStorageLocation", "velero backup-location create default …")
    now = seen.server_time or seen.instant
    for place in own:
        name = place.metadata.name
        late = not_validated_for(place, seen.validates_every, now)
        if place.status.phase != velero.AVAILABLE:
            cause = cause_of(place.status.message) or "Velero has not validated it yet"
            fix = f"velero backup-location get, kubectl describe backupstoragelocation {name} -n {seen.namespace}"
            yield problem("locations", f"{name} is {place.status.phase or 'not validated'}: {cause}", fix)
        elif late is not None:
            says = f"{name} was available {minutes(late)} ago, and Velero has not validated it since"
            yield warning("locations", says, f"see why: {_log(seen)}")
        else:
            yield good("locations", f"{name} is available")
    if own and not any(place.spec.default for place in own):
        fix = f"velero backup-location set {own[0].metadata.name} --default"
        yield warning("locations", "none is the default, so Backups must name one", fix)
    yield from _locations_of_tenants(seen)


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


def stuck(seen: Evidence) -> Iterator[Finding]:
    """Say which Backups Velero does not begin, and which it will never finish by its known bugs."""
    now = seen.server_time or seen.instant
    running = [backup for backup in seen.backups if backup.status.phase == "InProgress"]
    ready = [backup for backup in seen.backups if backup.status.phase == "ReadyToStart"]
    forgotten = [backup for backup in ready if _still(backup, now) > _STARTS_WITHIN]
    for backup in forgotten:
        name = backup.metadata.name
        yield problem(
            "stuck",
            f"Backup {name} has been ReadyToStart for {minutes(_still(backup, now))}: Velero loses these on restart",
            f"wake it: kubectl annotate backup {name} -n {seen.namespace} foresail.dev/woken=true",
        )
    if not running and not forgotten:
        yield from _idle_queue(seen, now)
    for backup in running:
        if _age(backup, now) > _RUNS_AT_MOST:
            name = backup.metadata.name
            fix = f"velero backup describe {name} --details; velero backup delete {name} if nothing moves"
            yield warning("stuck", f"Backup {name} has been running for {minutes(_age(backup, now))}", fix)


def _idle_queue(seen: Evidence, now: datetime) -> Iterator[Finding]:
    """Report that Backups wait while Velero, which runs none, has begun none for a while."""
    still = now - max(filter(None, (_last_step(backup, now) for backup in seen.backups)), default=now)
    pending = [backup for backup in seen.backups if backup.status.phase in velero.WAITING]
    waiting = [backup for backup in pending if _age(backup, now) > _STARTS_WITHIN]
    queued = [backup for backup in waiting if backup.status.phase == "Queued"]
    if still <= _STARTS_WITHIN:
        return
    if queued:
        yield problem(
            "stuck",
            f"{len(queued)} Backups are Queued and none has run for {minutes(still)}: Velero's queue is stuck"
            " (1.18.1 to 1.18.3)",
            _restart(seen),
        )
    elif waiting:
        server = f"deployment/{_server(seen)} -n {seen.namespace}"
        yield problem(
            "stuck",
            f"{len(waiting)} Backups are New, and Velero has begun none for {minutes(still)}: it does not run",
            f"see why: kubectl get {server}; {_log(seen)}",
        )


def unfinished(seen: Evidence) -> Iterator[Finding]:
    """Say which Restores do not end: Velero ends one after the other, and waits in each for its volume claims."""
    now = seen.server_time or seen.instant
    finalizing = [each for each in seen.restores if each.status.phase in velero.FINALIZING]
    late = sorted(each.metadata.name for each in finalizing if _still(each, now) > _ENDS_WITHIN)
    if late:
        longest = max(_still(each, now) for each in finalizing)
        says = f"Restores have been Finalizing for up to {minutes(longest)}: {some(late)}"
        yield warning(
            "stuck",
            f"{says}: Velero waits for volume claims of one that are missing or not bound, and the others wait for it",
            f"{_log(seen)} names the claims; --resource-timeout=1m of Velero shortens the wait",
        )


def undeletable(seen: Evidence) -> Iterator[Finding]:
    """Say which Backups Velero will not delete before it is restarted, by a known bug."""
    phases = {backup.metadata.name: backup.status.phase for backup in seen.backups}
    asked = ((deletion.spec.backup_name, deletion.status.errors) for deletion in seen.deletions)
    held = {name for name, errors in asked if velero.is_taken_for_running(phases.get(name, ""), errors)}
    if held:
        yield problem(
            "stuck",
            f"Velero treats finished Backups as running and refuses to delete them: {some(sorted(held))}",
            f"{_restart(seen)}, then delete them again; self-service retries deletions of tenants automatically",
        )


def _restart(seen: Evidence) -> str:
    return f"kubectl rollout restart deployment {_server(seen)} -n {seen.namespace}"


def _log(seen: Evidence) -> str:
    return f"kubectl logs deployment/{_server(seen)} -n {seen.namespace}"


def _server(seen: Evidence) -> str:
    return seen.servers[0].key.name if seen.servers else "velero"


def _age(backup: Backup, now: datetime) -> timedelta:
    since = backup.status.start_timestamp or backup.metadata.creation_timestamp or now
    return now - since


def _still(stored: Backup | Restore, now: datetime) -> timedelta:
    """Return how long ago an object was last written: it has been in its phase at least that long."""
    return now - (stored.metadata.last_write or now)


def _last_step(backup: Backup, now: datetime) -> datetime | None:
    """Return when this Backup last showed that Velero's queue moves; None if it does not tell.

    Velero writes their new positions to those that wait whenever it takes one from the queue. One that has just come
    was written to as well, and one that was read from storage may have ended in another cluster.
    """
    ended = backup.status.completion_timestamp
    created = backup.metadata.creation_timestamp
    if backup.status.phase in velero.TERMINAL:
        return ended if ended is not None and created is not None and ended >= created else None
    if backup.status.phase in velero.WAITING and _age(backup, now) <= _STARTS_WITHIN:
        return None
    return backup.metadata.last_write


def _ahead(span: timedelta) -> str:
    seconds = abs(span.total_seconds())
    return f"{seconds:.0f} s {'ahead of' if span > timedelta() else 'behind'}"
