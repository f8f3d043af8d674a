"""`foresail policy usage`: per namespace the policy that applies, and the use of each quota; the fullest first."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import stamp
from foresail.api.policy import SELF_SERVICE_POLICY, Quotas
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import UsageError
from foresail.cli.output.objects import document
from foresail.cli.output.table import fitted, table, terminal_width
from foresail.cli.output.times import ago
from foresail.cli.policy.get import decode_policy, namespaces_by_policy, read_use, share
from foresail.cli.policy.use import Use
from foresail.kube.clock import now
from foresail.selfservice.families import BACKUPS, RESTORES

_any = msgspec.json.Decoder(dict[str, Any])
_SHORT = ("NAMESPACE", "POLICY", "USED", "BACKUPS", "ACTIVE", "RESTORES", "NEWEST")


class Usage(msgspec.Struct, frozen=True):
    """A namespace, the policy that applies in it, and what it uses."""

    namespace: str
    policy: str  # empty if none applies
    quotas: Quotas
    backups: Use
    restores: Use
    weight: int = 1  # its share of Velero's time beside other namespaces that wait

    @property
    def shares(self) -> dict[str, tuple[int, int | None]]:
        """Each quota by its field in the policy: the use and the limit."""
        quotas = self.quotas
        return {
            "stored": (self.backups.stored, quotas.stored),
            "active": (self.backups.active, quotas.active),
            "restores.stored": (self.restores.stored, quotas.restores.stored),
            "restores.active": (self.restores.active, quotas.restores.active),
        }

    @property
    def fullest(self) -> float:
        """The use of the quota that is closest to its limit, as a share of 1; 0 without a limit."""
        return max(
            ((used / most if most else 1.0) for used, most in self.shares.values() if most is not None), default=0.0
        )


def usage(args: argparse.Namespace) -> int:
    """Print the use of the quotas of one namespace, or of all."""
    if args.all_namespaces and args.namespace is not None:
        raise UsageError("-n and -A exclude each other", "specify one namespace, or all")
    if not args.all_namespaces:
        settle_namespace(args)
    found = sorted(
        on_cluster(args, lambda cluster: read_usage(cluster, args)), key=lambda each: (-each.fullest, each.namespace)
    )
    if args.output not in ("table", "wide"):
        print(document([as_data(each) for each in found], args.output))
        return 0
    shown = found[: args.limit] if args.limit else found
    if shown:
        print(usage_table(shown, now(), wide=args.output == "wide", width=terminal_width(sys.stdout)))
    else:
        print("No namespace has a SelfServicePolicy", file=sys.stderr)
    if len(shown) < len(found):
        print(f"{len(found) - len(shown)} more namespaces; list all with --limit 0", file=sys.stderr)
    return 0


async def read_usage(cluster: Cluster, args: argparse.Namespace) -> list[Usage]:
    """Read the use of the quotas of one namespace, or of all in which a policy applies."""
    policies = [decode_policy(_any.decode(each))[1] for each in await cluster.listed(SELF_SERVICE_POLICY, "")]
    quotas = {each.metadata.name: each.spec.quotas for each in policies}
    weights = {each.metadata.name: each.spec.weight for each in policies}
    by_policy = await namespaces_by_policy(cluster, policies, args)
    policy_of = {namespace: name for name, namespaces in by_policy.items() for namespace in namespaces}
    backups, restores = await read_use(cluster, BACKUPS, args), await read_use(cluster, RESTORES, args)
    chosen = sorted(policy_of) if args.all_namespaces else [args.namespace]
    return [
        Usage(
            name,
            policy_of.get(name, ""),
            quotas.get(policy_of.get(name, ""), Quotas()),
            backups.get(name, Use()),
            restores.get(name, Use()),
            weights.get(policy_of.get(name, ""), 1),
        )
        for name in chosen
    ]


def usage_table(found: Sequence[Usage], at: datetime, *, wide: bool, width: int | None) -> str:
    """Return a row for each namespace; the wide one has the active restores and the oldest backup too."""
    rows = [_row(each, at, wide=wide) for each in found]
    header = (*_SHORT, "ACTIVE RESTORES", "OLDEST") if wide else _SHORT
    return table(header, rows) if wide else fitted(header, rows, width, ("NAMESPACE", "POLICY"))


def _row(each: Usage, at: datetime, *, wide: bool) -> tuple[str, ...]:
    shown = {name: share(*pair) for name, pair in each.shares.items()}
    has_limit = any(most is not None for _, most in each.shares.values())
    row = (
        each.namespace,
        each.policy or "<none>",
        f"{each.fullest:.0%}" if has_limit else "-",
        shown["stored"],
        shown["active"],
        shown["restores.stored"],
        ago(each.backups.newest, at),
    )
    return (*row, shown["restores.active"], ago(each.backups.oldest, at)) if wide else row


def as_data(each: Usage) -> dict[str, Any]:
    """Return the same for programs."""
    times = {"oldestBackup": each.backups.oldest, "newestBackup": each.backups.newest}
    return {
        "namespace": each.namespace,
        "policy": each.policy or None,
        "fullest": round(each.fullest, 4),
        "quotas": {name: {"used": used, "limit": most} for name, (used, most) in each.shares.items()},
        **{name: stamp(at) if at is not None else None for name, at in times.items()},
    }
