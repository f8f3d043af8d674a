"""`foresail protection preview`: what a class does with the namespaces of a cluster, by the operator's own rules."""

import argparse
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta
from typing import Any, TypeVar

import msgspec

from foresail.api import core, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.instants import stamp
from foresail.api.marks import PROTECTION_CLASS as CLASS_MARK
from foresail.api.metadata import Named
from foresail.api.protection import PROTECTION_CLASS, ProtectionClass
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.api.specs import StoredBackupSpec
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.access.operators import OPERATORS, operator_of
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.values import documents, objects
from foresail.cli.output.words import compact, counted
from foresail.cli.schedule.lifetimes import LONGER, expires_first
from foresail.cron import Dialect
from foresail.kube.clock import now
from foresail.plan import Create, Delete, Key, Kind, Patch
from foresail.protection.build import create_schedule
from foresail.protection.decide import decide_assignment
from foresail.protection.rows import ClassRow, NamespaceRow, ScheduleRow, class_row, namespace_row, schedule_row
from foresail.protection.rules import choice, invalid_expression
from foresail.protection.view import AssignmentView, Classes
from foresail.reporting import some
from foresail.schedules.lifetimes import short_life
from foresail.schedules.velero_server import deployment_row, identify_server
from foresail.scope.covered import Namespaces
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.policy_timing import PolicyRow, policy_for, policy_row, timing_under
from foresail.slots.starts import first_start

T = TypeVar("T")
_LOOKED_BACK = timedelta(days=7)


@dataclass(frozen=True)
class Past:
    """What past backups took: their number, and the time for one namespace; None if there is none to tell."""

    backups: int
    per_namespace: timedelta | None


@dataclass(frozen=True)
class Snapshot:
    """What a preview is made from."""

    namespaces: dict[str, NamespaceRow]
    classes: Classes
    schedules: tuple[ScheduleRow, ...]
    covered: frozenset[str]
    """The namespaces that a Schedule takes now."""

    policies: tuple[PolicyRow, ...]
    past: Past
    concurrency: int
    default_ttl: timedelta | None = None
    velero_namespace: str = "velero"

    def with_class(self, given: ProtectionClass) -> "Snapshot":
        """Return the same cluster as if a class were in it, instead of the one of that name."""
        rows = {**self.classes.rows, given.metadata.name: class_row(given)}
        return replace(self, classes=msgspec.structs.replace(self.classes, rows=rows))


def preview(args: argparse.Namespace) -> int:
    """Print what a class would do."""
    if bool(args.name) == bool(args.file):
        raise UsageError("specify a ProtectionClass of the cluster, or -f FILE", "foresail protection preview -f FILE")
    given = _from_file(args.file) if args.file else None
    instant = now()
    snapshot = on_cluster(args, lambda cluster: read_snapshot(cluster, args.velero_namespace, instant))
    if given is not None:
        snapshot = snapshot.with_class(given)
    name = given.metadata.name if given is not None else args.name
    _check_known(snapshot, name)
    print("\n".join(previewed(snapshot, name, instant)))
    return 0


def _check_known(snapshot: Snapshot, name: str) -> None:
    if name not in snapshot.classes.rows:
        raise CommandError(f"ProtectionClass {name} does not exist", "list them: kubectl get protectionclasses")


def _from_file(path: str) -> ProtectionClass:
    items = list(objects(documents(path), PROTECTION_CLASS.name))
    if len(items) != 1:
        raise CommandError(f"{path} contains {counted(len(items), 'ProtectionClass', 'ProtectionClasses')}", "name one")
    try:
        return msgspec.convert(items[0], ProtectionClass)
    except msgspec.ValidationError as error:
        hint = "correct it; kubectl apply --dry-run=server shows the field"
        raise CommandError(f"the ProtectionClass in {path} cannot be decoded: {error}", hint) from error


def needed(where: str) -> list[tuple[Kind, str]]:
    """Return what a caller must be allowed to list for a preview, with Velero's namespace."""
    everywhere = (PROTECTION_CLASS, core.NAMESPACE, SCHEDULE_POLICY, DEPLOYMENT)
    return [*((kind, "") for kind in everywhere), (velero.SCHEDULE, where), (velero.BACKUP, where)]


async def read_snapshot(cluster: Cluster, where: str, at: datetime) -> Snapshot:
    """Return what a preview is made from, with Velero's namespace."""
    try:
        return await _read(cluster, where, at)
    except msgspec.DecodeError as error:
        raise CommandError(f"an object of the cluster cannot be read: {error}", "see foresail doctor") from error


async def _read(cluster: Cluster, where: str, at: datetime) -> Snapshot:
    rows = {row.name: row for row in map(class_row, await _all(cluster, PROTECTION_CLASS, ProtectionClass))}
    namespaces = await _all(cluster, core.NAMESPACE, core.Namespace)
    schedules = await _all(cluster, velero.SCHEDULE, velero.Schedule, where)
    backups = await _all(cluster, velero.BACKUP, velero.Backup, where)
    servers = list(filter(None, map(deployment_row, await _all(cluster, DEPLOYMENT, Deployment, where))))
    operators = [msgspec.json.decode(raw, type=Deployment) for raw in await cluster.listed(DEPLOYMENT, "", OPERATORS)]
    labelled = Namespaces.named((namespace.metadata.name, namespace.metadata.labels or {}) for namespace in namespaces)
    return Snapshot(
        namespaces={row.name: row for row in map(namespace_row, namespaces)},
        classes=Classes(rows, never={where, *(operator_of(operator).key.namespace for operator in operators)}),
        schedules=tuple(map(schedule_row, schedules)),
        covered=frozenset().union(*(_covered(schedule, labelled) for schedule in schedules)),
        policies=tuple(map(policy_row, await _all(cluster, SCHEDULE_POLICY, SchedulePolicy))),
        past=past_of(backups, len(namespaces), at),
        concurrency=max((row.concurrency for row in servers), default=1),
        default_ttl=identify_server(servers, "", None).default_ttl,
        velero_namespace=where,
    )


async def _all(cluster: Cluster, kind: Kind, of: type[T], namespace: str = "") -> list[T]:
    return [_decoded(kind, raw, of) for raw in await cluster.listed_if_known(kind, namespace)]


def _decoded(kind: Kind, raw: bytes, of: type[T]) -> T:
    try:
        return msgspec.json.decode(raw, type=of)
    except msgspec.ValidationError as error:
        name = msgspec.json.decode(raw, type=Named).metadata.name
        raise CommandError(f"{kind.name} {name} cannot be read: {error}", "correct the object") from None


def _covered(wire: velero.Schedule, namespaces: Namespaces) -> frozenset[str]:
    try:
        spec = msgspec.json.decode(wire.spec.template, type=StoredBackupSpec)
    except msgspec.DecodeError:
        return frozenset()
    return frozenset() if wire.spec.paused else namespaces.chosen_by(spec).covered(namespaces.names)


def past_of(backups: Iterable[velero.Backup], every: int, at: datetime) -> Past:
    """Return what the completed backups of the last week took for one namespace."""
    seconds = 0.0
    namespaces = 0
    count = 0
    for backup in backups:
        begun, ended = backup.status.start_timestamp, backup.status.completion_timestamp
        if backup.status.phase != velero.COMPLETED or begun is None or ended is None or at - ended > _LOOKED_BACK:
            continue
        named = backup.spec.included_namespaces
        count += 1
        seconds += max((ended - begun).total_seconds(), 1.0)
        namespaces += len(named) if isinstance(named, list) and "*" not in named else max(every, 1)
    return Past(count, timedelta(seconds=seconds / namespaces) if namespaces else None)


def groups_of(snapshot: Snapshot, name: str, at: datetime) -> dict[str, tuple[str, ...]]:
    """Return the Schedules of a class and their namespaces, as the operator would write them."""
    view = AssignmentView(snapshot.velero_namespace, snapshot.namespaces, snapshot.classes, snapshot.schedules, {})
    groups = {row.name: row.members for row in snapshot.schedules if row.protection_class == name}
    for action in decide_assignment(view, at).actions:
        match action:
            case Create(body={"spec": dict(spec)}) if action.mark.get(CLASS_MARK) == name:
                groups[action.key.name] = tuple(spec["template"]["includedNamespaces"])
            case Patch(body={"spec": {"template": {"includedNamespaces": list(members)}}}) if action.key.name in groups:
                groups[action.key.name] = tuple(members)
            case Delete():
                groups.pop(action.key.name, None)
            case _:
                pass  # what changes nobody's group
    return {group: members for group, members in groups.items() if members}


async def schedule_with(
    cluster: Cluster, velero_namespace: str, name: str, namespace: str, at: datetime
) -> dict[str, Any]:
    """Return the Schedule that would take a namespace whose label names a class, as the operator would write it."""
    snapshot = await read_snapshot(cluster, velero_namespace, at)
    _check_known(snapshot, name)
    row = snapshot.namespaces.get(namespace)
    if row is None:
        raise CommandError(f"namespace {namespace} does not exist", "list them: kubectl get namespaces")
    named = msgspec.structs.replace(row, asked=name)
    snapshot = replace(snapshot, namespaces={**snapshot.namespaces, namespace: named})
    problem = choice(named, snapshot.classes, at).problem
    groups = groups_of(snapshot, name, at)
    group = next((group for group, members in groups.items() if namespace in members), "")
    if problem is not None or not group:
        raise CommandError(problem.message if problem is not None else "no Schedule of the class takes it")
    return schedule_of(snapshot, name, group, groups[group])


def schedule_of(snapshot: Snapshot, name: str, group: str, members: Sequence[str]) -> dict[str, Any]:
    """Return the Schedule of a group of a class, as the operator would write it."""
    key = Key(snapshot.velero_namespace, group)
    body: dict[str, Any] = dict(create_schedule(key, snapshot.classes.rows[name], members).body)
    return {**body, "metadata": {**body["metadata"], "name": group, "namespace": key.namespace}}


def previewed(snapshot: Snapshot, name: str, at: datetime) -> Iterator[str]:
    """Yield the lines about a class."""
    for title, text in effects(snapshot, name, at):
        yield f"{title + ':':<11}{text}" if title else text


def effects(snapshot: Snapshot, name: str, at: datetime) -> Iterator[tuple[str, str]]:
    """Yield what a class would do, each with its title; the first has none."""
    row = snapshot.classes.rows[name]
    problem = invalid_expression(row, "UTC")
    if problem is not None:
        raise CommandError(problem.message, "correct spec.schedule: foresail cron explain shows what it means")
    groups = groups_of(snapshot, name, at)
    members = sorted({member for group in groups.values() for member in group})
    if not members:
        yield "", f"ProtectionClass {name} has no namespaces: label some, or set spec.default"
        return
    asking = sum(snapshot.namespaces[member].asked == name for member in members if member in snapshot.namespaces)
    most = counted(row.spec.namespaces_per_backup, "namespace")
    yield "", f"ProtectionClass {name}: {counted(len(members), 'namespace')}, of which {asking} by their label"
    yield "backups", f"{len(groups)} at each run, of up to {most}"
    yield from _times(snapshot, row, list(groups), at)
    yield from _length(snapshot, len(members), len(groups))
    new = [member for member in members if member not in snapshot.covered]
    of_all = f"{len(new)} of {counted(len(members), 'namespace')} in no Schedule now"
    yield "closes", f"{of_all}: {some(new)}" if new else of_all
    yield from _problems(snapshot, name, at)


def _times(snapshot: Snapshot, row: ClassRow, groups: Sequence[str], at: datetime) -> Iterator[tuple[str, str]]:
    """Yield when the next backups start."""
    labels = {"foresail.dev/protection-class": row.name}
    if row.spec.schedule_policy is not None:
        labels["foresail.dev/schedule-policy"] = row.spec.schedule_policy
    starts = []
    life = None
    for group in groups:
        policy = policy_for(group, labels, snapshot.policies)
        zone = (policy.spec.time_zone if policy is not None else None) or "UTC"
        cron = read_expression(row.spec.schedule, zone, Dialect.ROBFIG)
        timing = timing_under(policy, str(Key(snapshot.velero_namespace, group)), zone)
        if isinstance(cron, Unusable):
            continue
        start = first_start(cron, at, at, timing)
        starts += [start] if start is not None else []
        template = msgspec.json.encode(row.template)
        life = life or short_life(template, snapshot.default_ttl, cron, at, timing, policy)
    if row.spec.schedule_policy is not None and row.spec.schedule_policy not in {
        policy.name for policy in snapshot.policies
    }:
        yield "policy", f"SchedulePolicy {row.spec.schedule_policy} does not exist"
    if starts:
        first, last = min(starts), max(starts)
        spread = "" if first == last else f", the last at {stamp(last)}"
        yield "next run", f"the first starts at {stamp(first)}{spread}"
    if life is not None:
        yield "lifetime", f"{expires_first(life)}; {LONGER}"


def _length(snapshot: Snapshot, namespaces: int, groups: int) -> Iterator[tuple[str, str]]:
    """Yield how long a run takes, by past ones."""
    average = snapshot.past.per_namespace
    if average is None:
        yield "length", "unknown, for no backup of the last 7 days has completed"
        return
    at_once = min(snapshot.concurrency, groups)
    whole = timedelta(seconds=round(average.total_seconds() * namespaces / at_once))
    per_namespace = compact(timedelta(seconds=max(round(average.total_seconds()), 1)))
    by = f"{per_namespace} for a namespace in {counted(snapshot.past.backups, 'backup')} of the last 7 days"
    yield "length", f"about {compact(whole)}, with {counted(at_once, 'backup')} at a time: {by}"


def _problems(snapshot: Snapshot, name: str, at: datetime) -> Iterator[tuple[str, str]]:
    """Yield the namespaces that do not get what they ask for."""
    for row in snapshot.namespaces.values():
        problem = choice(row, snapshot.classes, at).problem
        if problem is not None and row.asked == name:
            yield "gap", problem.message
