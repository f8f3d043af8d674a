"""What the doctor says about Backups, Restores and deletions of Velero that do not move."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from foresail.api import velero
from foresail.cli.doctor.evidence import Backup, Evidence, Restore
from foresail.cli.doctor.finding import Finding, minutes, problem, warning
from foresail.cli.doctor.running import log_command, server_name
from foresail.reporting import some

_STARTS_WITHIN = timedelta(minutes=10)
_ENDS_WITHIN = timedelta(minutes=11)  # Velero waits 10 for the claims of one Restore
_RUNS_AT_MOST = timedelta(hours=24)


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
        server = f"deployment/{server_name(seen)} -n {seen.namespace}"
        yield problem(
            "stuck",
            f"{len(waiting)} Backups are New, and Velero has begun none for {minutes(still)}: it does not run",
            f"see why: kubectl get {server}; {log_command(seen)}",
        )


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


def _age(backup: Backup, now: datetime) -> timedelta:
    since = backup.status.start_timestamp or backup.metadata.creation_timestamp or now
    return now - since


def unfinished(seen: Evidence) -> Iterator[Finding]:
    """Say which Restores do not end: Velero ends one after the other, and waits in each for its volume claims."""
    now = seen.server_time or seen.instant
    finalizing = [restore for restore in seen.restores if restore.status.phase in velero.FINALIZING]
    late = sorted(restore.metadata.name for restore in finalizing if _still(restore, now) > _ENDS_WITHIN)
    if late:
        longest = max(_still(restore, now) for restore in finalizing)
        says = f"Restores have been Finalizing for up to {minutes(longest)}: {some(late)}"
        yield warning(
            "stuck",
            f"{says}: Velero waits for volume claims of one that are missing or not bound, and the others wait for it",
            f"{log_command(seen)} names the claims; --resource-timeout=1m of Velero shortens the wait",
        )


def _still(stored: Backup | Restore, now: datetime) -> timedelta:
    """Return how long ago an object was last written: it has been in its phase at least that long."""
    return now - (stored.metadata.last_write or now)


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
    return f"kubectl rollout restart deployment {server_name(seen)} -n {seen.namespace}"
