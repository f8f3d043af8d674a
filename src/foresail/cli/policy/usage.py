"""`foresail policy usage`: per namespace the policy that applies, and the use of each quota; the fullest first."""

import argparse
import sys
from collections import Counter
from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any, TypedDict

import msgspec

from foresail.api.apps import DEPLOYMENT
from foresail.api.core import NAMESPACE
from foresail.api.instants import stamp
from foresail.api.policy import SELF_SERVICE_POLICY, Quotas, SelfServicePolicy
from foresail.api.velero import WAITING
from foresail.cli.access.cluster import Cluster, may, on_cluster, settle_namespace
from foresail.cli.access.operators import operator_namespaces
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.output.table import fitted, table, terminal_width
from foresail.cli.output.words import ago
from foresail.cli.policy.get import (
    Shares,
    Use,
    applied_policies,
    decode_policy,
    namespaces_by_policy,
    read_own_use,
    read_use,
    share,
    shares_of,
    use_in,
)
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES

_any = msgspec.json.Decoder(dict[str, Any])


class _Metadata(TypedDict, total=False):
    name: str
    uid: str
    labels: dict[str, str] | None


class _Namespace(TypedDict):
    metadata: _Metadata


_namespace = msgspec.json.Decoder(_Namespace)
_SHORT = ("NAMESPACE", "POLICY", "USED", "BACKUPS", "ACTIVE", "RESTORES", "NEWEST")


class Usage(msgspec.Struct, frozen=True):
    """A namespace, the policy that applies in it, and what it uses."""

    namespace: str
    policy: str  # empty if none applies
    quotas: Quotas
    backups: Use | None  # None if unknown
    restores: Use | None
    weight: int = 1  # its share of Velero's time beside other namespaces that wait
    unknown: str = ""  # why the policy is unknown; empty if it is known

    @property
    def shares(self) -> Shares:
        """The use of each quota."""
        return shares_of(self.quotas, self.backups, self.restores)

    @property
    def left_out(self) -> str:
        """What the operator counts and this does not."""
        forced = "backups deleted by force that Velero may bring back"
        is_by_requests = self.backups is not None and self.backups.is_by_requests
        without = "what Velero has without a request in this namespace, and " if is_by_requests else ""
        return f"{without}{forced}"

    @property
    def has_limit(self) -> bool:
        """Whether one of the quotas has a limit, and its use is known."""
        return any(used is not None and most is not None for used, most in self.shares.values())

    @property
    def fullest(self) -> float:
        """The use of the quota that is closest to its limit, as a share of 1; 0 without a limit."""
        return max(
            (
                (used / most if most else 1.0)
                for used, most in self.shares.values()
                if used is not None and most is not None
            ),
            default=0.0,
        )


def usage(args: argparse.Namespace) -> int:
    """Print the use of the quotas of one namespace, or of all."""
    if args.all_namespaces and args.namespace is not None:
        raise UsageError("-n and -A exclude each other", "specify one namespace, or all")
    is_named = args.namespace is not None
    if not args.all_namespaces:
        settle_namespace(args)
    usages = sorted(
        on_cluster(args, lambda cluster: _read(cluster, args)), key=lambda usage: (-usage.fullest, usage.namespace)
    )
    for usage in usages:
        if usage.unknown:
            hint(f"the quotas of namespace {usage.namespace} are unknown: {usage.unknown}")
        if usage.backups is not None and usage.backups.is_by_requests:
            hint(f"not counted in namespace {usage.namespace}: {usage.left_out}")
    if args.output not in ("table", "wide"):
        print(document([as_data(usage) for usage in usages], args.output))
        return 0
    shown = usages[: args.limit] if args.limit else usages
    if shown:
        print(usage_table(shown, now(), wide=args.output == "wide", width=terminal_width(sys.stdout)))
    else:
        print("No SelfServicePolicy applies in any namespace", file=sys.stderr)
    if not (args.all_namespaces or is_named):
        hint(f"only namespace {args.namespace}, that of your kube context, is shown; -A shows all with a policy")
    if len(shown) < len(usages):
        print(f"{len(usages) - len(shown)} more namespaces; list all with --limit 0", file=sys.stderr)
    return 0


async def _read(cluster: Cluster, args: argparse.Namespace) -> list[Usage]:
    return await read_usage(cluster, args) if args.all_namespaces else [await read_own_usage(cluster, args)]


async def read_usage(cluster: Cluster, args: argparse.Namespace, names: Collection[str] | None = None) -> list[Usage]:
    """Read the use of the quotas of all namespaces, or of these, in which a policy applies."""
    policies = await _policies(cluster)
    namespaces = [
        namespace
        for namespace in map(_namespace.decode, await cluster.listed(NAMESPACE, ""))
        if names is None or namespace["metadata"]["name"] in names
    ]
    by_policy = await namespaces_by_policy(cluster, policies, namespaces, args)
    policy_of = {namespace: name for name, namespaces in by_policy.items() for namespace in namespaces}
    by_name = {policy.metadata.name: policy for policy in policies}
    backups, restores = [await read_use(cluster, family, namespaces, args) for family in (BACKUPS, RESTORES)]
    return [
        _usage(name, by_name[policy_of[name]], use_in(backups, name), use_in(restores, name))
        for name in sorted(policy_of)
    ]


async def read_own_usage(cluster: Cluster, args: argparse.Namespace) -> Usage:
    """Read the use of one namespace with the caller's rights: a tenant's from the tenant's own requests."""
    name = args.namespace
    backups, restores = [await read_own_use(cluster, family, args) for family in (BACKUPS, RESTORES)]
    try:
        return _usage(name, await own_policy(cluster, args), backups, restores)
    except CommandError as error:
        return Usage(name, "", Quotas(), backups, restores, unknown=error.problem)


async def own_policy(cluster: Cluster, args: argparse.Namespace) -> SelfServicePolicy | None:
    """Return the policy that applies in a namespace; raise an error if the caller may not read what decides it."""
    for verb, kind, name in (("list", SELF_SERVICE_POLICY, ""), ("get", NAMESPACE, args.namespace)):
        if not await may(cluster, verb, kind, name, name):
            raise CommandError(f"you may not {verb} {kind.plural}", "ask a cluster administrator")
    policies = await _policies(cluster)
    raw = await cluster.if_there(NAMESPACE, Key("", args.namespace), msgspec.Raw)
    ours = set[str]()
    if args.operator_namespace or await may(cluster, "list", DEPLOYMENT):  # a tenant's namespace is not ours
        ours = await operator_namespaces(cluster, args.operator_namespace)
    by_policy = applied_policies(policies, [_any.decode(raw)] if raw else [], {args.velero_namespace, *ours})
    return next((policy for policy in policies if policy.metadata.name in by_policy), None)


async def _policies(cluster: Cluster) -> list[SelfServicePolicy]:
    return [decode_policy(_any.decode(raw))[1] for raw in await cluster.listed(SELF_SERVICE_POLICY, "")]


def _usage(namespace: str, policy: SelfServicePolicy | None, backups: Use | None, restores: Use | None) -> Usage:
    if policy is None:
        return Usage(namespace, "", Quotas(), backups, restores)
    return Usage(namespace, policy.metadata.name, policy.spec.quotas, backups, restores, policy.spec.weight)


def usage_table(usages: Sequence[Usage], at: datetime, *, wide: bool, width: int | None) -> str:
    """Return a row for each namespace; the wide one has the active restores and the oldest backup too."""
    rows = [_row(usage, at, wide=wide) for usage in usages]
    header = (*_SHORT, "ACTIVE RESTORES", "OLDEST") if wide else _SHORT
    return table(header, rows) if wide else fitted(header, rows, width, ("NAMESPACE", "POLICY"))


def _row(usage: Usage, at: datetime, *, wide: bool) -> tuple[str, ...]:
    shown = {name: share(*pair) for name, pair in usage.shares.items()}
    backups = usage.backups or Use()
    row = (
        usage.namespace,
        usage.policy or ("<unknown>" if usage.unknown else "<none>"),
        f"{usage.fullest:.0%}" if usage.has_limit else "-",
        shown["stored"],
        shown["active"],
        shown["restores.stored"],
        ago(backups.newest, at),
    )
    return (*row, shown["restores.active"], ago(backups.oldest, at)) if wide else row


def as_data(usage: Usage) -> dict[str, Any]:
    """Return the same for programs."""
    backups = usage.backups or Use()
    times = {"oldestBackup": backups.oldest, "newestBackup": backups.newest}
    return {
        "namespace": usage.namespace,
        "policy": usage.policy or None,
        **({"unknown": usage.unknown} if usage.unknown else {}),
        "fullest": round(usage.fullest, 4),
        "quotas": {name: {"used": used, "limit": most} for name, (used, most) in usage.shares.items()},
        **{name: stamp(at) if at is not None else None for name, at in times.items()},
    }


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A namespace with open requests."""

    namespace: str
    policy: str  # empty if none applies
    weight: int
    share: float  # of Velero's time, while all of these namespaces wait
    running: int
    waiting: int
    stored: tuple[int | None, int | None]  # backups (None: unknown), and the quota


def is_running(request: TenantRequest) -> bool:
    """Whether Velero works on an open request; a Velero object that only waits in Velero's queue does not run."""
    return request.is_open and request.velero.phase not in WAITING


def in_order(requests: Iterable[TenantRequest]) -> list[TenantRequest]:
    """Return open requests as they are served: what runs, then by position in the queue, then by age."""
    return sorted(requests, key=_rank)


def _rank(request: TenantRequest) -> tuple[bool, bool, int, str, str]:
    created = request.request.metadata.creation_timestamp
    age = created.isoformat() if created else ""
    return not is_running(request), not request.position, request.position, age, str(request.key)


def tenant_shares(requests: Sequence[TenantRequest], usages: Iterable[Usage]) -> list[TenantShare]:
    """Return the share of each namespace that has open requests, the largest first."""
    known = {usage.namespace: usage for usage in usages}
    every = Counter(request.key.namespace for request in requests)
    running = Counter(request.key.namespace for request in requests if is_running(request))
    names = sorted(every)
    weights = {name: known[name].weight if name in known else 1 for name in names}
    total = sum(weights.values())
    shares = [
        TenantShare(
            name,
            known[name].policy if name in known else "",
            weights[name],
            weights[name] / total if total else 0.0,
            running[name],
            every[name] - running[name],
            known[name].shares["stored"] if name in known else (None, None),
        )
        for name in names
    ]
    return sorted(shares, key=lambda share: (-share.share, share.namespace))
