"""NonAdminSchedules as coverage sees them: with the spec that the operator gives to their Backups."""

from collections.abc import Container, Iterable, Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import nonadmin
from foresail.api.instants import instant
from foresail.api.marks import FILE_SYSTEM_LABEL
from foresail.api.policy import SELF_SERVICE_POLICY, BackupPolicy, SelfServicePolicy
from foresail.api.specs import BackupSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.messages import hint
from foresail.proof.reasons import Remedy
from foresail.proof.view import NamespaceRow, ScheduleRow
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.schedules.rules import DIALECT, ZONE
from foresail.selfservice.specs.file_system import left_out
from foresail.selfservice.specs.kinds import backed_up
from foresail.selfservice.specs.values import Refusal
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.interval import third_last_fire
from foresail.tenancy.policies import ALLOWED, PolicyRow, policy_for, policy_row

_DECIDING_DATA = ("snapshot_volumes", "default_volumes_to_fs_backup", "resource_policy")
_UNKNOWN = BackupPolicy(file_system="Allowed")
"""The rules where no policy can be read: the spec of the tenant as it is."""

_any = msgspec.json.Decoder(dict[str, Any])
_tenant = msgspec.json.Decoder(nonadmin.Schedule)
_policy = msgspec.json.Decoder(SelfServicePolicy)


async def read_rules(
    cluster: Cluster, namespaces: Iterable[NamespaceRow], unknown: list[str]
) -> dict[str, BackupPolicy]:
    """Return what the SelfServicePolicies have for the backups of each namespace; say if they are not considered."""
    try:
        listed = await cluster.listed_if_known(SELF_SERVICE_POLICY)
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"SelfServicePolicies, which may set defaults for the volumes of tenants, are not judged: {error}")
        unknown.append(f"which defaults SelfServicePolicies set for volumes: {error.problem}")
        return {}
    policies = list(_policies(listed))
    applied = ((namespace.name, policy_for(namespace.name, namespace.labels, policies, ())) for namespace in namespaces)
    return {name: policy.spec.backup for name, policy in applied if policy is not None}


def _policies(raws: Iterable[msgspec.Raw]) -> Iterator[PolicyRow]:
    for raw in raws:
        try:
            yield policy_row(_policy.decode(raw))
        except msgspec.DecodeError as error:
            name = (_any.decode(raw).get("metadata") or {}).get("name")
            hint(f"SelfServicePolicy {name} cannot be decoded and is not considered: {error}")


def allows_files(labels: Mapping[str, str]) -> bool:
    """Whether Velero may copy files from the pods of a namespace, by the label that the operator sets there."""
    return labels.get(FILE_SYSTEM_LABEL) == ALLOWED


def tenant_schedules(
    raws: Iterable[msgspec.Raw], rules: Mapping[str, BackupPolicy], with_files: Container[str], now: datetime
) -> Iterator[tuple[nonadmin.Schedule, ScheduleRow]]:
    """Yield the NonAdminSchedules with their rows; one that cannot be decoded covers nothing, and hides no other.

    `with_files` are the namespaces that are known to allow file-system backup.
    """
    for raw in raws:
        try:
            schedule = _tenant.decode(raw)
            namespace = schedule.metadata.namespace
            policy = rules.get(namespace, _UNKNOWN)
            refused = frozenset(_refused(policy, allows_files=namespace in with_files))
            yield schedule, replace(tenant_row(schedule, policy, now), refused=refused)
        except (msgspec.DecodeError, CommandError) as error:
            metadata = _any.decode(raw).get("metadata") or {}
            name = f"{metadata.get('namespace')}/{metadata.get('name')}"
            hint(f"NonAdminSchedule {name} cannot be decoded and is not considered: {error}")


def tenant_row(schedule: nonadmin.Schedule, rules: BackupPolicy, now: datetime) -> ScheduleRow:
    """Return a NonAdminSchedule as coverage sees it: its backups are of its own namespace, whatever its spec has."""
    namespace = schedule.metadata.namespace
    spec = spec_of(schedule.spec.template.backup_spec, f"NonAdminSchedule {namespace}/{schedule.metadata.name}")
    settled = {**lists_of_kinds(spec), **_settled(spec, rules)}
    own = msgspec.structs.replace(spec, included_namespaces=(namespace,), excluded_namespaces=None, **settled)
    upcoming = instant(schedule.status.next_run) if schedule.status.next_run else None
    return ScheduleRow(
        "NonAdminSchedule",
        namespace,
        schedule.metadata.name,
        own,
        bool(schedule.spec.paused),
        upcoming,
        not_running=_not_running(schedule.status),
        expected=_expected(schedule, now),
    )


def _refused(rules: BackupPolicy, *, allows_files: bool) -> Iterator[Remedy]:
    """Yield what the policy refuses to a tenant who sets it; a required value is refused as any other."""
    if rules.required.snapshot_volumes is False:
        yield Remedy.SNAPSHOTS
    is_other = rules.required.default_volumes_to_fs_backup is False
    if not allows_files or rules.file_system == "Refused" or is_other:
        yield Remedy.FILE_SYSTEM


def _expected(schedule: nonadmin.Schedule, now: datetime) -> datetime | None:
    """Return since when a good backup should have started; None if it is younger.

    Windows of a SchedulePolicy, which a tenant may not read, can leave runs out: the last run shows that they do.
    """
    cron = read_expression(schedule.spec.schedule, ZONE, DIALECT)
    since = third_last_fire(cron, now) if not isinstance(cron, Unusable) else None
    created = schedule.metadata.creation_timestamp
    last = schedule.status.last_backup
    is_due = since is not None and created is not None and created < since and last is not None and last >= since
    return since if is_due else None


def spec_of(raw: msgspec.Raw, owner: str, kind: type[BackupSpec] = BackupSpec) -> BackupSpec:
    """Return the spec of a template; report one that cannot be decoded."""
    try:
        return msgspec.json.decode(raw, type=kind)
    except msgspec.DecodeError as error:
        raise CommandError(f"{owner}: the template cannot be decoded: {error}", "correct the template") from error


def lists_of_kinds(spec: BackupSpec) -> dict[str, Any]:
    """Return the lists of kinds as the operator writes them into a tenant's Backup; none if it refuses them."""
    try:
        filters = backed_up(spec, "spec.template.backupSpec")
    except Refusal:
        return {}
    return {
        "included_resources": None,
        "excluded_resources": None,
        "include_cluster_resources": None,
        "included_namespace_scoped_resources": filters.included,
        "excluded_namespace_scoped_resources": filters.excluded,
        "excluded_cluster_scoped_resources": filters.cluster_scoped_excluded,
    }


def _settled(spec: BackupSpec, rules: BackupPolicy) -> dict[str, Any]:
    """Return what decides about volumes: what the policy requires, what the tenant wrote, or the policy's default."""
    policy = spec.resource_policy
    if policy is not None and policy.name not in rules.allowed.resource_policies:
        spec = msgspec.structs.replace(spec, resource_policy=None)  # the operator refuses it, so it is not read either
    values = {
        name: (getattr(rules.required, name), getattr(spec, name), getattr(rules.defaults, name))
        for name in _DECIDING_DATA
    }
    settled = {
        name: next((item for item in alternatives if item is not None), None) for name, alternatives in values.items()
    }
    return {**settled, **_without_files(settled, rules)}


def _without_files(settled: Mapping[str, Any], rules: BackupPolicy) -> dict[str, Any]:
    """Return what the operator writes so that Velero copies no files; none if the policy allows it or refuses all."""
    try:
        return left_out(settled, "") if rules.file_system == "Refused" else {}
    except Refusal:
        return {}


def _not_running(status: nonadmin.ScheduleStatus) -> str:
    """Return why the operator plans no run of a NonAdminSchedule; empty if it does."""
    accepted = next((condition for condition in status.conditions or () if condition.type == ACCEPTED), None)
    if accepted is None:
        return "" if status.next_run else "the operator has not processed it"
    return accepted.message if accepted.status == FALSE else ""
