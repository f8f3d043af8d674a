"""`foresail policy test`: which namespaces a SelfServicePolicy would reach, before it is applied."""

import argparse
import sys
from collections.abc import Collection, Iterable, Iterator, Mapping
from typing import Any

import msgspec

from foresail.api.core import CONFIG_MAP, NAMESPACE, ConfigMap
from foresail.api.policy import SELF_SERVICE_POLICY, Bounds, SelfServicePolicy, SelfServicePolicySpec
from foresail.api.selectors import problem_of
from foresail.api.velero import LOCATION, VOLUME_SNAPSHOT_LOCATION
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.access.operators import operator_namespaces
from foresail.cli.errors import PROBLEM, CommandError, UnreachableError
from foresail.cli.options.unknown import refuse_unknown
from foresail.cli.options.values import documents, objects
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.policy.preview import preview_schedules
from foresail.cron.duration import nanoseconds
from foresail.plan import Key, Kind
from foresail.selfservice.specs.file_system import ALLOWED_MEANS, MISSING, gap_in
from foresail.tenancy.policies import is_out_of_reach, policy_for, policy_row


def problems(
    policy: SelfServicePolicy,
    locations: Collection[str] | None,
    snapshots: Collection[str] | None,
    gaps: Mapping[str, str],
) -> list[str]:
    """Return each problem with its field; locations that are not known (None) are not checked.

    `gaps` has how the resource policies leave room for file-system backup, by the names of their ConfigMaps.
    """
    problems = [*_empty_bounds(policy), *_deadlocks(policy), *_unknown_locations(policy, locations, snapshots)]
    return problems if policy.spec.backup.file_system == "Allowed" else [*problems, *_copied_files(policy, gaps)]


def resource_policies(policy: SelfServicePolicy) -> dict[str, str]:
    """Return the ConfigMaps that a policy names for backups, each with the field."""
    backup = policy.spec.backup
    named = dict.fromkeys(backup.allowed.resource_policies, "allowed.resourcePolicies")
    for field, values in (("defaults", backup.defaults), ("required", backup.required)):
        if values.resource_policy is not None:
            named[values.resource_policy.name] = f"{field}.resourcePolicy"
    return named


def _copied_files(policy: SelfServicePolicy, gaps: Mapping[str, str]) -> Iterator[str]:
    backup = policy.spec.backup
    for field, values in (("defaults", backup.defaults), ("required", backup.required)):
        if values.default_volumes_to_fs_backup:
            text = (
                f"spec.backup.{field}.defaultVolumesToFsBackup: fileSystem is Refused, so backups with it are refused"
            )
            yield f"{text}; remove it or set fileSystem: Allowed"
    for name, field in resource_policies(policy).items():
        if gaps.get(name):
            text = f"spec.backup.{field}: ConfigMap {name} {gaps[name]}, so backups with it are refused"
            yield f"{text}; correct it or set fileSystem: Allowed"


def _empty_bounds(policy: SelfServicePolicy) -> Iterator[str]:
    backup = policy.spec.backup
    restore = policy.spec.restore
    fields = {
        "backup.ttl": backup.ttl,
        "backup.csiSnapshotTimeout": backup.csi_snapshot_timeout,
        "backup.itemOperationTimeout": backup.item_operation_timeout,
        "backup.hooks.timeout": backup.hooks.timeout,
        "restore.itemOperationTimeout": restore.item_operation_timeout,
        "restore.hooks.timeout": restore.hooks.timeout,
    }
    for field, bounds in fields.items():
        if _is_empty(bounds):
            text = f"spec.{field}: the minimum {bounds.minimum} is longer than the maximum {bounds.maximum}"
            yield f"{text}, so every value is refused"


def _deadlocks(policy: SelfServicePolicy) -> Iterator[str]:
    """Yield why no run could start at the quota: the newest good and partial backups stay."""
    stored = policy.spec.quotas.stored
    schedules = policy.spec.schedules
    if stored is None or schedules.keep_last is None or not schedules.maximum:
        return
    least = max(schedules.keep_last, policy.spec.deletion.keep_last_good + 2, 3)
    if stored < least:
        yield f"spec.quotas.stored: {stored} is too low: what keepLast keeps leaves no room for a run; set {least}"
    elif stored <= 2 * schedules.maximum:
        text = f"spec.quotas.stored: {stored} has no room if each schedule has a good and a newer partial backup"
        yield f"{text}; raise it above twice schedules.maximum ({schedules.maximum}), or lower that"
    yield from _too_old(policy, stored)


def _too_old(policy: SelfServicePolicy, stored: int) -> Iterator[str]:
    """Yield why a schedule that runs as often as it may stops at the quota: no run is old enough to be deleted."""
    age = nanoseconds(policy.spec.deletion.minimum_age or "") or 0
    interval = nanoseconds(policy.spec.schedules.minimum_interval or "") or 0
    young = age // interval if interval else 0
    if young >= stored:
        text = f"spec.deletion.minimumAge: {policy.spec.deletion.minimum_age} keeps {young:,} runs of a schedule that"
        most = f"runs every {policy.spec.schedules.minimum_interval}, and quotas.stored is {stored}"
        yield f"{text} {most}, so it waits until one is old enough; raise quotas.stored or minimumInterval"


def _is_empty(bounds: Bounds) -> bool:
    least = nanoseconds(bounds.minimum or "")
    most = nanoseconds(bounds.maximum or "")
    return least is not None and most is not None and least > most


def _unknown_locations(
    policy: SelfServicePolicy, locations: Collection[str] | None, snapshots: Collection[str] | None
) -> Iterator[str]:
    backup = policy.spec.backup
    stored = {
        "allowed.storageLocations": backup.allowed.storage_locations,
        "defaults.storageLocation": (backup.defaults.storage_location or "",),
        "required.storageLocation": (backup.required.storage_location or "",),
    }
    snapped = {
        "allowed.volumeSnapshotLocations": backup.allowed.volume_snapshot_locations,
        "defaults.volumeSnapshotLocations": backup.defaults.volume_snapshot_locations or (),
        "required.volumeSnapshotLocations": backup.required.volume_snapshot_locations or (),
    }
    kinds = (("BackupStorageLocation", stored, locations), ("VolumeSnapshotLocation", snapped, snapshots))
    for kind, fields, known in kinds:
        for field, names in fields.items():
            for name in names:
                if name and known is not None and name not in known:
                    there = ", ".join(sorted(known)) or "none"
                    yield f"spec.backup.{field}: {kind} {name} does not exist; existing: {there}"


_NONE = "-"

Policies = Iterable[SelfServicePolicy]
_Known = tuple[frozenset[str] | None, frozenset[str] | None, Mapping[str, str]]
"""Names of the storage locations and of the snapshot locations, None if not known; gaps of resource policies."""


class Namespace(msgspec.Struct, frozen=True):
    """A namespace, as a selector sees it."""

    name: str
    labels: dict[str, str] | None = None


class Outcome(msgspec.Struct, frozen=True):
    """What the file would change in a namespace."""

    namespace: str
    now: str | None  # the policy that holds in it
    then: str | None  # the one that would
    matching: tuple[str, ...]  # all that would match, the one that holds first
    is_out_of_reach: bool = False


class _Present(msgspec.Struct, frozen=True):
    """What the policies of a file are compared with, in a cluster or in files."""

    namespaces: list[Namespace]
    held: list[SelfServicePolicy]
    never: frozenset[str]  # namespaces without self-service
    known: _Known = (None, None, {})


def run_test(args: argparse.Namespace) -> int:
    """Print where the policies of a file would hold."""
    read = documents(args.file)
    given = _policies(args.file, objects(read, "SelfServicePolicy"))
    if not given and any(objects(read, "SchedulePolicy")):
        return preview_schedules(args, read)
    if not given:
        raise CommandError(f"{args.file} has no SelfServicePolicy", "specify a file with at least one")
    if args.policies and not args.namespaces:
        raise CommandError("--policies works only without a cluster", "add --namespaces, or leave it out")
    present = _in_files(args) if args.namespaces else _in_cluster(args, given)
    missing = [item for item in args.namespace if item not in {one.name for one in present.namespaces}]
    if missing:
        raise CommandError(f"namespace {missing[0]} does not exist", "list them with kubectl get namespaces")
    ordered = sorted(present.namespaces, key=lambda one: one.name)
    every = [outcome(namespace, present.held, given, present.never) for namespace in ordered]
    _print_outcomes(args, every, {policy.metadata.name for policy in given})
    return _judged(given, present.known)


def _in_files(args: argparse.Namespace) -> _Present:
    """Return the namespaces and policies of the files that stand for a cluster."""
    namespaces = _namespaces(args.namespaces, objects(documents(args.namespaces), "Namespace"))
    policies = documents(args.policies) if args.policies else []
    held = _policies(args.policies, objects(policies, "SelfServicePolicy"))
    never = {args.velero_namespace, args.operator_namespace or args.velero_namespace}
    return _Present(namespaces, held, frozenset(never))


def _in_cluster(args: argparse.Namespace, given: list[SelfServicePolicy]) -> _Present:
    live, listed, known, operators = _of_cluster(args, given)
    namespaces = _namespaces("the cluster", live)
    held = _policies("the cluster", listed)
    return _Present(namespaces, held, frozenset({args.velero_namespace, *operators}), known)


def _print_outcomes(args: argparse.Namespace, every: Collection[Outcome], names: Collection[str]) -> None:
    """Print the namespaces that the policies with these names concern, and how many there are."""
    shown = [outcome for outcome in every if _is_shown(outcome, names, args.namespace)]
    if args.output != "table":
        print(document([_as_json(outcome) for outcome in shown], args.output))
    elif shown:
        print(table(("NAMESPACE", "NOW", "THEN", "ALSO MATCHING"), [_row(outcome) for outcome in shown]))
    held_by_them = sum(outcome.then in names for outcome in every)
    changed = sum(outcome.now != outcome.then for outcome in every)
    text = f"the file's policies would apply to {held_by_them} of {len(every)} namespaces"
    print(f"{text}; the policy would change in {changed}", file=sys.stderr)


def _judged(given: Policies, known: _Known) -> int:
    """Print what is wrong with policies, and what an administrator must know; return the exit code."""
    wrong = [
        f"SelfServicePolicy {self_service_policy.metadata.name}: {one}"
        for self_service_policy in given
        for one in problems(self_service_policy, *known)
    ]
    for line in wrong:
        print(f"error: {line}", file=sys.stderr)
    for policy in given:
        if policy.spec.backup.file_system == "Allowed":
            name = policy.metadata.name
            print(f"warning: SelfServicePolicy {name}: fileSystem is Allowed, so {ALLOWED_MEANS}", file=sys.stderr)
    return PROBLEM if wrong else 0


def outcome(namespace: Namespace, held: Policies, given: Policies, never: Collection[str]) -> Outcome:
    """Return what policies that are applied over those that are held would change in a namespace."""
    labels = namespace.labels or {}
    before = {policy.metadata.name: policy_row(policy) for policy in held}
    after = {**before, **{policy.metadata.name: policy_row(policy) for policy in given}}
    now = policy_for(namespace.name, labels, before.values(), never)
    matching: list[str] = []
    while (best := policy_for(namespace.name, labels, after.values(), never)) is not None:
        matching.append(best.name)
        del after[best.name]
    return Outcome(
        namespace.name,
        now.name if now else None,
        matching[0] if matching else None,
        tuple(matching),
        is_out_of_reach(namespace.name, never),
    )


def _is_shown(outcome: Outcome, names: Collection[str], asked: Collection[str]) -> bool:
    if asked:
        return outcome.namespace in asked
    return outcome.now != outcome.then or any(name in names for name in outcome.matching)


def _row(outcome: Outcome) -> tuple[str, str, str, str]:
    others = "(no policy applies)" if outcome.is_out_of_reach else ", ".join(outcome.matching[1:])
    return outcome.namespace, outcome.now or _NONE, outcome.then or _NONE, others


def _as_json(outcome: Outcome) -> dict[str, object]:
    return {
        "namespace": outcome.namespace,
        "now": outcome.now,
        "then": outcome.then,
        "matching": list(outcome.matching),
    }


def _policies(source: str, iterable: Iterable[Mapping[str, Any]]) -> list[SelfServicePolicy]:
    policies: dict[str, SelfServicePolicy] = {}
    for item in iterable:
        name = _name(item)
        try:
            policy = msgspec.convert(item, SelfServicePolicy)
        except msgspec.ValidationError as error:
            raise CommandError(f"SelfServicePolicy {name} in {source}: {error}", "correct that field") from None
        refuse_unknown(f"SelfServicePolicy {name} in {source}", SelfServicePolicySpec, item)
        problem = problem_of(policy.spec.namespace_selector)
        if problem is not None:
            text = f"SelfServicePolicy {name} in {source}: spec.namespaceSelector: {problem}"
            raise CommandError(text, "correct it; as written it matches no namespace")
        if name in policies:
            raise CommandError(f"{source} has SelfServicePolicy {name} twice", "remove one of them")
        policies[name] = policy
    return list(policies.values())


def _namespaces(source: str, iterable: Iterable[Mapping[str, Any]]) -> list[Namespace]:
    try:
        return [msgspec.convert(item.get("metadata"), Namespace) for item in iterable]
    except msgspec.ValidationError as error:
        raise CommandError(f"a Namespace in {source} cannot be read: {error}", "correct that field") from None


def _name(item: Mapping[str, Any]) -> str:
    metadata = item.get("metadata")
    return str(metadata.get("name", "?")) if isinstance(metadata, dict) else "?"


def _of_cluster(args: argparse.Namespace, given: Policies) -> tuple[list[Any], list[Any], _Known, set[str]]:
    names = [name for policy in given for name in resource_policies(policy)]
    try:
        namespaces, policies, known, operators = on_cluster(args, lambda cluster: _read(cluster, args, names))
    except CommandError as error:
        error.hint = f"{error.hint}; or read files: --namespaces, --policies"
        raise
    documents = [[msgspec.json.decode(raw) for raw in listed] for listed in (namespaces, policies)]
    return documents[0], documents[1], known, operators


async def _read(
    cluster: Cluster, args: argparse.Namespace, config_maps: Collection[str]
) -> tuple[list[msgspec.Raw], list[msgspec.Raw], _Known, set[str]]:
    velero = args.velero_namespace
    namespaces = await cluster.listed(NAMESPACE, "")
    policies = await cluster.listed_if_known(SELF_SERVICE_POLICY)
    stored, snapped = [await _names(cluster, kind, velero) for kind in (LOCATION, VOLUME_SNAPSHOT_LOCATION)]
    gaps = {name: await _gap(cluster, Key(velero, name)) for name in config_maps}
    return namespaces, policies, (stored, snapped, gaps), await operator_namespaces(cluster, args.operator_namespace)


async def _gap(cluster: Cluster, key: Key) -> str:
    """Return how a resource policy leaves room for file-system backup; empty, with a hint, if it cannot be read."""
    try:
        config_map = await cluster.if_there(CONFIG_MAP, key, ConfigMap)
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"cannot check resource policy {key.name}: {error.problem}")
        return ""
    return MISSING if config_map is None else gap_in(config_map.data)


async def _names(cluster: Cluster, kind: Kind, namespace: str) -> frozenset[str] | None:
    """Return the names of all objects of a kind; None, with a hint, if they cannot be listed."""
    try:
        listed = await cluster.listed(kind, namespace)
    except CommandError as error:
        hint(f"cannot check the {kind.plural} of the policies: {error.problem}")
        return None
    return frozenset(_name(msgspec.json.decode(raw)) for raw in listed)
