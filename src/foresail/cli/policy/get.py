"""`foresail policy get` and `describe`: policies of both kinds, where each applies, and the use of quotas."""

import argparse
import sys
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, get_args

import msgspec

from foresail.api import velero
from foresail.api.core import NAMESPACE
from foresail.api.instants import instant
from foresail.api.marks import NAMESPACE_UID
from foresail.api.policy import SELF_SERVICE_POLICY, ExistingResourcePolicy, Quotas, SelfServicePolicy
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.api.selectors import precedence
from foresail.cli.access.cluster import Cluster, may, on_cluster
from foresail.cli.access.operators import operator_namespaces
from foresail.cli.access.together import together
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.options.selectors import shown_selector
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import aligned, fitted, table, terminal_width
from foresail.cli.output.words import short
from foresail.cli.policy.schedule_policies import (
    AppliedSchedulePolicy,
    read_with_schedules,
    rules_text,
    schedule_policy_described,
    schedule_policy_table,
)
from foresail.kube.clock import now
from foresail.plan import Key, Kind
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.quotas import counted
from foresail.selfservice.reasons import Refused
from foresail.selfservice.specs.build import restore_spec
from foresail.tenancy.policies import policy_for, policy_row

Shares = dict[str, tuple[int | None, int | None]]
"""Each quota by its field in the policy: the use (None: unknown) and the limit (None: no limit)."""


class Use(msgspec.Struct, frozen=True):
    """How many requests of a kind a namespace has, and how many of them Velero has not finished."""

    stored: int = 0
    active: int = 0
    expired: int = 0  # of those that have ended
    oldest: datetime | None = None  # when Velero started the first and the last of those that it has
    newest: datetime | None = None
    is_by_requests: bool = False  # counted from the tenant's requests, not from Velero's objects


Uses = Mapping[str, Use]
"""The use of each namespace, by its name."""


class _Metadata(msgspec.Struct, frozen=True):
    name: str = ""
    annotations: dict[str, str] | None = None


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    start_timestamp: datetime | None = None
    expiration: datetime | None = None


class VeleroObject(msgspec.Struct, frozen=True):
    """A Velero Backup or Restore of a tenant."""

    metadata: _Metadata = _Metadata()
    status: _Status = _Status()


def mirrored(family: Family, requests: Iterable[Mapping[str, Any]]) -> list[VeleroObject]:
    """Return Velero's objects as the status of a tenant's requests mirrors them."""
    velero_objects = []
    for request in requests:
        mirror = (request.get("status") or {}).get(family.reference) or {}
        if mirror.get("name"):
            content = {"metadata": {"name": mirror["name"]}, "status": mirror.get("status") or {}}
            velero_objects.append(msgspec.convert(content, VeleroObject))
    return velero_objects


def use_by_namespace(
    family: Family,
    made: Iterable[VeleroObject],
    requests: Iterable[Mapping[str, Any]],
    uids: Mapping[str, str],
    at: datetime,
) -> dict[str, Use]:
    """Return the use of each namespace; by its UID, for an earlier one of the same name had its own quota."""
    made_by_uid: dict[str, list[VeleroObject]] = {}
    for velero_object in made:
        made_by_uid.setdefault((velero_object.metadata.annotations or {}).get(NAMESPACE_UID, ""), []).append(
            velero_object
        )
    requests_by_name: dict[str, list[Mapping[str, Any]]] = {}
    for request in requests:
        requests_by_name.setdefault(request["metadata"]["namespace"], []).append(request)
    return {
        name: use_of(family, made_by_uid.get(uid, ()), requests_by_name.get(name, ()), at) for name, uid in uids.items()
    }


def use_of(family: Family, made: Iterable[VeleroObject], requests: Iterable[Mapping[str, Any]], at: datetime) -> Use:
    """Return the use of one namespace: what Velero has, and what was accepted and Velero does not have yet."""
    objects = {velero_object.metadata.name: velero_object.status for velero_object in made}
    is_active = {name: backup.phase not in velero.TERMINAL for name, backup in objects.items()}
    for request in requests:
        reference = (request.get("status") or {}).get(family.reference) or {}
        if reference.get("nacuuid") and not reference.get("name"):
            is_active.setdefault(reference["nacuuid"], True)
    expirations = (backup.expiration for name, backup in objects.items() if not is_active[name])
    started = [status.start_timestamp for status in objects.values() if status.start_timestamp is not None]
    return Use(
        len(is_active),
        sum(is_active.values()),
        sum(expiration is not None and expiration <= at for expiration in expirations),
        min(started, default=None),
        max(started, default=None),
    )


def shares_of(quotas: Quotas, backups: Use | None, restores: Use | None) -> Shares:
    """Return the use of each quota as the operator counts it."""
    return {
        "stored": (
            None if backups is None else counted(backups.stored, backups.expired, quotas.stored),
            quotas.stored,
        ),
        "active": (None if backups is None else backups.active, quotas.active),
        "restores.stored": (None if restores is None else restores.stored, quotas.restores.stored),
        "restores.active": (None if restores is None else restores.active, quotas.restores.active),
    }


def share(used: int | None, quota: int | None) -> str:
    """Return the use of a quota in words."""
    shown = "unknown" if used is None else str(used)
    return shown if quota is None else f"{shown} of {quota}"


def existing_resource_policies(policy: SelfServicePolicy) -> tuple[str, ...]:
    """Return the values of `existingResourcePolicy` with which the policy does not refuse a restore."""
    row = policy_row(policy)

    def is_allowed(value: str) -> bool:
        asked = {"backupName": "any", "existingResourcePolicy": value}
        return not isinstance(restore_spec(asked, "any", "any", row), Refused)

    return tuple(value for value in get_args(ExistingResourcePolicy) if is_allowed(value))


SHORT_NAMES = {SELF_SERVICE_POLICY.name: "ssp", SCHEDULE_POLICY.name: "sp"}
_KINDS = (SELF_SERVICE_POLICY, SCHEDULE_POLICY)
_any = msgspec.json.Decoder(dict[str, Any])


class _Place(msgspec.Struct, frozen=True):
    namespace: str = ""


class _Placed(msgspec.Struct, frozen=True):
    metadata: _Place


_placed = msgspec.json.Decoder(_Placed)
_SHORT = ("NAME", "PRIORITY", "NAMESPACES", "STORED", "ACTIVE", "RESTORES", "AGE")


@dataclass(frozen=True, slots=True)
class Applied:
    """A policy, the namespaces in which it applies, and the use of each."""

    content: dict[str, Any]
    policy: SelfServicePolicy
    namespaces: tuple[str, ...]
    backups: Uses | None  # None if unknown
    restores: Uses | None

    @property
    def kind(self) -> str:
        """Its kind."""
        return SELF_SERVICE_POLICY.name

    @property
    def name(self) -> str:
        """Its name."""
        return self.policy.metadata.name


Policy = Applied | AppliedSchedulePolicy


@dataclass(frozen=True, slots=True)
class _Found:
    """All policies, and the selected ones."""

    every: Sequence[Policy]
    selected: Sequence[Policy]

    def tenants_of(self, policy: AppliedSchedulePolicy) -> list[str]:
        """Return the SelfServicePolicies that use a SchedulePolicy."""
        own = (one.policy for one in self.every if isinstance(one, Applied))
        return [one.metadata.name for one in own if one.spec.schedules.schedule_policy == policy.name]


def get(args: argparse.Namespace) -> int:
    """Print the selected policies."""
    policies = _read_policies(args, with_use=False).selected
    if not is_table(args.output):
        print(as_text([policy.content for policy in policies], args.output))
    elif policies:
        print(tables(policies, now(), wide=args.output == "wide", width=terminal_width(sys.stdout)))
    return 0


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected policies, with the use of each namespace."""
    read = _read_policies(args, with_use=True)
    if read.selected:
        print(
            "\n\n\n".join(
                described(policy)
                if isinstance(policy, Applied)
                else schedule_policy_described(policy, read.tenants_of(policy))
                for policy in read.selected
            )
        )
    return 0


def tables(policies: Sequence[Policy], at: datetime, *, wide: bool, width: int | None) -> str:
    """Return a table for each kind; with both, names have their kind in front, as kubectl shows several kinds."""
    own = [policy for policy in policies if isinstance(policy, Applied)]
    schedules = [policy for policy in policies if isinstance(policy, AppliedSchedulePolicy)]
    of_own, of_schedules = (f"{kind.name.lower()}/" if own and schedules else "" for kind in _KINDS)
    parts = [policy_table(own, at, of_own, wide=wide, width=width)] if own else []
    parts += [schedule_policy_table(schedules, at, of_schedules, wide=wide, width=width)] if schedules else []
    return "\n\n".join(parts)


def policy_table(policies: Sequence[Applied], at: datetime, prefix: str, *, wide: bool, width: int | None) -> str:
    """Return a row for each policy: its priority, how many namespaces it applies in, and its quotas."""
    cells = [(*policy_cells(applied, at), *((selector_text(applied),) if wide else ())) for applied in policies]
    rows = [(prefix + cell[0], *cell[1:]) for cell in cells]
    header = (*_SHORT, "SELECTOR") if wide else _SHORT
    return table(header, rows) if wide else fitted(header, rows, width, ("NAME",))


def policy_cells(applied: Applied, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    spec = applied.policy.spec
    quotas = (spec.quotas.stored, spec.quotas.active, spec.quotas.restores.stored)
    created = instant(str(applied.content["metadata"].get("creationTimestamp") or ""))
    return (
        applied.name,
        str(spec.priority),
        str(len(applied.namespaces)),
        *("-" if quota is None else str(quota) for quota in quotas),
        short(at - created) if created else "n/a",
    )


def described(applied: Applied) -> str:
    """Return a policy with its spec, and the namespaces in which it applies with their use against the quotas."""
    spec = applied.policy.spec
    lines = [
        f"Name:\t{applied.name}",
        f"Kind:\t{applied.kind}",
        f"Priority:\t{spec.priority}",
        f"Selector:\t{selector_text(applied)}",
        f"Weight:\t{spec.weight}",
        "",
    ]
    return f"{aligned(lines)}\n{rules_text(applied.content, _SHOWN)}\n\n{_namespaces(applied)}"


_SHOWN = ("namespaceSelector", "priority", "weight")


def _namespaces(applied: Applied) -> str:
    if not applied.namespaces:
        return "Namespaces:  <none>"
    rows = []
    for namespace in applied.namespaces:
        backups = use_in(applied.backups, namespace)
        restores = use_in(applied.restores, namespace)
        shares = shares_of(applied.policy.spec.quotas, backups, restores)
        rows.append((f"  {namespace}", *(share(*pair) for pair in shares.values())))
    header = ("  NAMESPACE", "BACKUPS", "ACTIVE", "RESTORES", "ACTIVE RESTORES")
    return "Namespaces:\n" + table(header, rows)


def use_in(uses: Uses | None, namespace: str) -> Use | None:
    """Return the use of a namespace; None if it is unknown."""
    return None if uses is None else uses.get(namespace, Use())


def selector_text(applied: Applied) -> str:
    """Return which namespaces a policy selects."""
    selector = shown_selector((applied.content.get("spec") or {}).get("namespaceSelector"))
    return "every namespace" if selector == "<none>" else selector


def _read_policies(args: argparse.Namespace, *, with_use: bool) -> _Found:
    if args.names and args.selector:
        raise CommandError(f"policy {args.names[0]} cannot be combined with -l", "specify either names or -l")
    read = on_cluster(args, lambda cluster: _read_both(cluster, args, with_use=with_use))
    if not read.selected:
        print("No SelfServicePolicies or SchedulePolicies found", file=sys.stderr)
    for policy in read.selected:
        if isinstance(policy, AppliedSchedulePolicy) and policy.problem:
            hint(f"SchedulePolicy {policy.name} {policy.problem}")
    return read


async def _read_both(cluster: Cluster, args: argparse.Namespace, *, with_use: bool) -> _Found:
    async with together() as tasks:
        of_tenants = tasks.begin(read_applied(cluster, args, with_use=with_use))
        of_schedules = tasks.begin(read_with_schedules(cluster, args.velero_namespace))
    every: list[Policy] = [*of_tenants.result(), *of_schedules.result()]
    if args.names:
        return _Found(every, [policy for name in args.names for policy in _named(name, every)])
    return _Found(every, await _labelled(cluster, every, args.selector) if args.selector else every)


async def _labelled(cluster: Cluster, every: Sequence[Policy], labels: str) -> list[Policy]:
    """Return the policies that labels select."""
    kinds = [kind for kind in _KINDS if any(policy.kind == kind.name for policy in every)]
    listed = {kind.name: await cluster.listed(kind, "", labels) for kind in kinds}
    names = {(kind, _any.decode(raw)["metadata"]["name"]) for kind, raws in listed.items() for raw in raws}
    return [policy for policy in every if (policy.kind, policy.name) in names]


def _named(name: str, every: Sequence[Policy]) -> list[Policy]:
    """Return the policies of a name, or of KIND/NAME."""
    kind, _, bare = name.rpartition("/")
    kinds = {policy_kind.name for policy_kind in _KINDS if not kind or _means(kind, policy_kind)}
    named = [policy for policy in every if policy.name == bare and policy.kind in kinds]
    if not named:
        raise CommandError(f"policy {name} does not exist", "list what exists: foresail policy get")
    return named


def _means(word: str, kind: Kind) -> bool:
    """Whether a word means a kind, as kubectl reads it."""
    return word.lower().removesuffix(f".{kind.group}") in (kind.name.lower(), kind.plural, SHORT_NAMES[kind.name])


async def read_applied(cluster: Cluster, args: argparse.Namespace, *, with_use: bool = True) -> list[Applied]:
    """Read all SelfServicePolicies, the highest priority first, with where each applies and, on request, its use."""
    every = [decode_policy(_any.decode(raw)) for raw in await cluster.listed_if_known(SELF_SERVICE_POLICY)]
    if not every:
        return []
    ordered = sorted(every, key=lambda pair: precedence(pair[1].spec.priority, pair[1].metadata.name))
    async with together() as tasks:
        never = tasks.begin(operator_namespaces(cluster, args.operator_namespace))
        namespaces = [_any.decode(raw) for raw in await cluster.listed(NAMESPACE, "")]
        counted = (BACKUPS, RESTORES) if with_use else ()
        uses = [tasks.begin(read_use(cluster, family, namespaces, args)) for family in counted]
    own = {args.velero_namespace, *never.result()}
    holders = applied_policies([policy for _, policy in every], namespaces, own)
    backups, restores = [use.result() for use in uses] or (None, None)
    return [
        Applied(content, policy, tuple(holders.get(policy.metadata.name, ())), backups, restores)
        for content, policy in ordered
    ]


async def namespaces_by_policy(
    cluster: Cluster,
    policies: Sequence[SelfServicePolicy],
    namespaces: Iterable[Mapping[str, Any]],
    args: argparse.Namespace,
) -> dict[str, list[str]]:
    """Return in which of these namespaces each policy applies, by the name of the policy."""
    never = {args.velero_namespace, *await operator_namespaces(cluster, args.operator_namespace)}
    return applied_policies(policies, namespaces, never)


def applied_policies(
    policies: Sequence[SelfServicePolicy], namespaces: Iterable[Mapping[str, Any]], never: Collection[str]
) -> dict[str, list[str]]:
    """Return in which of these namespaces each policy applies, by the name of the policy; in some none ever does."""
    rows = [policy_row(policy) for policy in policies]
    applying: dict[str, list[str]] = {}
    for namespace in namespaces:
        metadata = namespace["metadata"]
        applies = policy_for(metadata["name"], metadata.get("labels") or {}, rows, never)
        if applies is not None:
            applying.setdefault(applies.name, []).append(metadata["name"])
    return {name: sorted(namespaces) for name, namespaces in applying.items()}


async def read_use(
    cluster: Cluster, family: Family, namespaces: Iterable[Mapping[str, Any]], args: argparse.Namespace, place: str = ""
) -> dict[str, Use] | None:
    """Count what these namespaces have, or the one in `place`; None, with a hint, if that cannot be read."""
    try:
        async with together() as tasks:
            made = tasks.begin(cluster.listed(family.velero, args.velero_namespace, family.nacuuid_label))
            requests = tasks.begin(cluster.listed_if_known(family.kind, place))
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"the use of {family.word}s is unknown: {error.problem}")
        return None
    objects = [msgspec.json.decode(raw, type=VeleroObject) for raw in made.result()]
    uids = {namespace["metadata"]["name"]: namespace["metadata"].get("uid", "") for namespace in namespaces}
    chosen = [_any.decode(raw) for raw in requests.result() if _placed.decode(raw).metadata.namespace in uids]
    return use_by_namespace(family, objects, chosen, uids, now())


async def read_own_use(cluster: Cluster, family: Family, args: argparse.Namespace) -> Use | None:
    """Count what one namespace has: by Velero's objects, or by its requests if the caller may not list those."""
    name = args.namespace
    if await may(cluster, "list", family.velero, args.velero_namespace) and await may(
        cluster, "get", NAMESPACE, name, name
    ):
        item = await cluster.if_there(NAMESPACE, Key("", name), msgspec.Raw)
        return use_in(await read_use(cluster, family, [_any.decode(item)] if item else [], args, name), name)
    requests = [_any.decode(raw) for raw in await cluster.listed_if_known(family.kind, name)]
    use = use_of(family, mirrored(family, requests), requests, now())
    return msgspec.structs.replace(use, is_by_requests=True)


def decode_policy(content: dict[str, Any]) -> tuple[dict[str, Any], SelfServicePolicy]:
    """Return a policy as it came, and decoded."""
    kind = {"apiVersion": SELF_SERVICE_POLICY.api_version, "kind": SELF_SERVICE_POLICY.name}
    try:
        return {**kind, **content}, msgspec.convert(content, SelfServicePolicy)
    except msgspec.ValidationError as error:
        name = (content.get("metadata") or {}).get("name")
        raise CommandError(
            f"SelfServicePolicy {name} cannot be read: {error}", "update foresail if it is older than the operator"
        ) from error
