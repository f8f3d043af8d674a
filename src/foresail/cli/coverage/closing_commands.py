"""The command that closes a gap, or shows its cause, ready to be copied into a shell; a comment if nothing does."""

import json
from datetime import datetime
from functools import lru_cache
from hashlib import sha256
from shlex import join, quote

from foresail.proof.reasons import Gap, Reason, Remedy

_NIGHT = 6 * 60  # minutes after midnight UTC among which runs are spread
_ASK = (
    "ask a cluster administrator for snapshots of the storage of its volumes, or for backup.fileSystem: Allowed in the"
    " SelfServicePolicy"
)
_OF_THE_CLUSTER = (Reason.NOBODY_RUNS, Reason.RUNNER_UNKNOWN, Reason.VELERO_NOT_READY, Reason.AGENT_NOT_READY)
_REMEMBERED = 1000  # a schedule that does not run is a gap of each of its namespaces


def closing_command(namespace: str, gap: Gap, velero_namespace: str, now: datetime, *, is_tenant: bool) -> str:
    """Return what to run, or a comment that names whom to ask; a tenant's commands need no rights elsewhere."""
    if not is_tenant and gap.reason is Reason.LOCATION_UNAVAILABLE:
        return join(["velero", "backup-location", "get", "-n", velero_namespace])
    if not is_tenant and gap.reason in _OF_THE_CLUSTER:
        return join(["foresail", "doctor", "-n", velero_namespace])
    if gap.reason is Reason.LOCATION_UNAVAILABLE and not gap.schedule:  # no new schedule would close it
        backup = f"backup {gap.backup}" if gap.backup else f"the newest backup of namespace {namespace}"
        return f"# ask a cluster administrator why the storage location of {backup} is not available"
    if not gap.schedule:
        return _create(namespace, velero_namespace, is_tenant=is_tenant)
    owner, slash, name = gap.schedule.partition("/")
    return _of_tenant(owner, name, gap, now) if slash else _of_schedule(gap.schedule, gap, velero_namespace)


def _create(namespace: str, velero_namespace: str, *, is_tenant: bool) -> str:
    if is_tenant:
        return f"foresail backup schedule create daily --schedule {quote(nightly(namespace))} -n {quote(namespace)}"
    words = ["foresail", "schedule", "create", daily_name(namespace), "--schedule", nightly(namespace)]
    return join([*words, "--include-namespaces", namespace, "-n", velero_namespace])


def daily_name(namespace: str) -> str:
    """Return the name of the Schedule that closes the gap of a namespace without one."""
    return f"{namespace}-daily"[:63]


def nightly(namespace: str) -> str:
    """Return an expression that runs once a night, for each namespace at a minute of its own."""
    minute = int.from_bytes(sha256(namespace.encode()).digest()[:4]) % _NIGHT
    return f"{minute % 60} {minute // 60} * * *"


def _include_data(plural: str, name: str, remedy: Remedy, *fields: str) -> list[str]:
    """Return the words that include the data of volumes in the runs of a schedule, or open its template."""
    if remedy not in (Remedy.SNAPSHOTS, Remedy.FILE_SYSTEM):
        return ["kubectl", "edit", plural, name]
    value: object = True
    for field in reversed(("spec", "template", *fields, remedy.value)):
        value = {field: value}
    return ["kubectl", "patch", plural, name, "--type", "merge", "-p", json.dumps(value, separators=(",", ":"))]


@lru_cache(_REMEMBERED)
def _of_schedule(name: str, gap: Gap, velero_namespace: str) -> str:
    match gap.reason:
        case Reason.PAUSED:
            words = ["foresail", "schedule", "unpause", name]
        case Reason.OBJECTIVE_MISSED | Reason.RUNS_MISSED | Reason.NO_GOOD_BACKUP:
            words = ["foresail", "schedule", "run", name]
        case Reason.NOT_RUNNING:
            words = ["foresail", "schedule", "explain", name]
        case Reason.ORIGIN_UNKNOWN:
            words = ["foresail", "schedule", "run", name]
        case Reason.PARTIAL_RUNS | Reason.EMPTY | Reason.SHRUNK:
            words = ["velero", "backup", "describe", gap.backup, "--details"]
        case Reason.VOLUME_LEFT_OUT if gap.remedy is Remedy.ADMINISTRATOR:
            words = ["foresail", "doctor"]
        case Reason.VOLUME_LEFT_OUT:
            words = _include_data("schedules.velero.io", name, gap.remedy)
        case _:
            words = ["kubectl", "edit", "schedules.velero.io", name]
    return join([*words, "-n", velero_namespace])


def _of_tenant(namespace: str, name: str, gap: Gap, now: datetime) -> str:
    match gap.reason:
        case Reason.PAUSED:
            words = ["foresail", "backup", "schedule", "unpause", name]
        case Reason.OBJECTIVE_MISSED | Reason.ORIGIN_UNKNOWN | Reason.RUNS_MISSED | Reason.NO_GOOD_BACKUP:
            words = ["foresail", "backup", "create", f"catch-up-{now:%Y%m%d-%H%M}", "--wait"]
        case (
            Reason.NOT_RUNNING
            | Reason.NOBODY_RUNS
            | Reason.RUNNER_UNKNOWN
            | Reason.VELERO_NOT_READY
            | Reason.AGENT_NOT_READY
            | Reason.LOCATION_UNAVAILABLE
        ):
            words = ["foresail", "backup", "schedule", "explain", name]
        case Reason.PARTIAL_RUNS | Reason.EMPTY | Reason.SHRUNK:
            words = ["foresail", "backup", "explain", gap.backup]
        case Reason.VOLUME_LEFT_OUT if gap.remedy is Remedy.ADMINISTRATOR:
            return f"# NonAdminSchedule {namespace}/{name}: {_ASK}"
        case Reason.VOLUME_LEFT_OUT:
            words = _include_data("nonadminschedules", name, gap.remedy, "backupSpec")
        case _:
            words = ["kubectl", "edit", "nonadminschedules", name]
    return join([*words, "-n", namespace])
