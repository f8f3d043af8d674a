"""`foresail policy get` and `describe`: where each policy applies, and how much of its quotas is used."""

import argparse
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.core import NAMESPACE
from foresail.api.instants import instant
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.output import is_table
from foresail.cli.options.selectors import shown_selector
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text, document
from foresail.cli.output.table import aligned, fitted, table, terminal_width
from foresail.cli.output.times import short
from foresail.cli.policy.use import Use, VeleroObject, use_by_namespace
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.observe import policy_row
from foresail.selfservice.policy.rules import policy_for

_any = msgspec.json.Decoder(dict[str, Any])
_SHORT = ("NAME", "PRIORITY", "NAMESPACES", "STORED", "ACTIVE", "RESTORES", "AGE")


@dataclass(frozen=True, slots=True)
class Applied:
    """A policy, the namespaces in which it applies, and the use of each."""

    content: dict[str, Any]
    policy: SelfServicePolicy
    namespaces: tuple[str, ...]
    backups: dict[str, Use]
    restores: dict[str, Use]


def get(args: argparse.Namespace) -> int:
    """Print the selected policies."""
    found = _read_policies(args)
    if not is_table(args.output):
        print(as_text([each.content for each in found], args.output))
    elif found:
        print(policy_table(found, now(), wide=args.output == "wide", width=terminal_width(sys.stdout)))
    return 0


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected policies, with the use of each namespace."""
    found = _read_policies(args)
    if found:
        print("\n\n\n".join(described(each) for each in found))
    return 0


def policy_table(found: Sequence[Applied], at: datetime, *, wide: bool, width: int | None) -> str:
    """Return a row for each policy: its priority, how many namespaces it applies in, and its quotas."""
    rows = [(*policy_cells(each, at), *((selector_text(each),) if wide else ())) for each in found]
    header = (*_SHORT, "SELECTOR") if wide else _SHORT
    return table(header, rows) if wide else fitted(header, rows, width, ("NAME",))


def policy_cells(each: Applied, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    spec = each.policy.spec
    quotas = (spec.quotas.stored, spec.quotas.active, spec.quotas.restores.stored)
    created = instant(str(each.content["metadata"].get("creationTimestamp") or ""))
    return (
        each.policy.metadata.name,
        str(spec.priority),
        str(len(each.namespaces)),
        *("-" if quota is None else str(quota) for quota in quotas),
        short(at - created) if created else "n/a",
    )


def described(each: Applied) -> str:
    """Return a policy with its spec, and the namespaces in which it applies with their use against the quotas."""
    spec = each.policy.spec
    lines = [
        f"Name:\t{each.policy.metadata.name}",
        f"Priority:\t{spec.priority}",
        f"Selector:\t{selector_text(each)}",
        f"Weight:\t{spec.weight}",
        "",
    ]
    rules = {name: value for name, value in (each.content.get("spec") or {}).items() if name not in _SHOWN}
    shown = "\n".join(f"  {line}" for line in document(rules, "yaml").splitlines()) if rules else "  {}"
    return f"{aligned(lines)}\nRules:\n{shown}\n\n{_namespaces(each)}"


_SHOWN = ("namespaceSelector", "priority", "weight")


def _namespaces(each: Applied) -> str:
    if not each.namespaces:
        return "Namespaces:  <none>"
    quotas = each.policy.spec.quotas
    rows = []
    for namespace in each.namespaces:
        backups, restores = each.backups.get(namespace, Use()), each.restores.get(namespace, Use())
        rows.append(
            (
                f"  {namespace}",
                share(backups.stored, quotas.stored),
                share(backups.active, quotas.active),
                share(restores.stored, quotas.restores.stored),
                share(restores.active, quotas.restores.active),
            )
        )
    header = ("  NAMESPACE", "BACKUPS", "ACTIVE", "RESTORES", "ACTIVE RESTORES")
    return "Namespaces:\n" + table(header, rows)


def share(used: int, quota: int | None) -> str:
    """Return the use of a quota."""
    return str(used) if quota is None else f"{used} of {quota}"


def selector_text(each: Applied) -> str:
    """Return which namespaces a policy selects."""
    selector = shown_selector((each.content.get("spec") or {}).get("namespaceSelector"))
    return "every namespace" if selector == "<none>" else selector


def _read_policies(args: argparse.Namespace) -> list[Applied]:
    if args.names and args.selector:
        problem = f"SelfServicePolicy {args.names[0]} cannot be combined with -l"
        raise CommandError(problem, "specify either names or -l")
    found = on_cluster(args, lambda cluster: read_applied(cluster, args))
    if not found:
        print("No SelfServicePolicies found", file=sys.stderr)
    return found


async def read_applied(cluster: Cluster, args: argparse.Namespace) -> list[Applied]:
    """Read the policies that names or a selector match, or all, with where each applies and what is used."""
    every = [decode_policy(_any.decode(each)) for each in await cluster.listed(SELF_SERVICE_POLICY, "")]
    if args.names:
        wanted = [await cluster.read(SELF_SERVICE_POLICY, Key("", name), msgspec.Raw) for name in args.names]
        picked = [decode_policy(_any.decode(each)) for each in wanted]
    elif args.selector:
        selected = await cluster.listed(SELF_SERVICE_POLICY, "", args.selector)
        picked = [decode_policy(_any.decode(each)) for each in selected]
    else:
        picked = sorted(every, key=lambda pair: (-pair[1].spec.priority, pair[1].metadata.name))
    holders = await namespaces_by_policy(cluster, [policy for _, policy in every], args)
    backups, restores = await read_use(cluster, BACKUPS, args), await read_use(cluster, RESTORES, args)
    return [
        Applied(content, policy, tuple(holders.get(policy.metadata.name, ())), backups, restores)
        for content, policy in picked
    ]


async def namespaces_by_policy(
    cluster: Cluster, policies: Sequence[SelfServicePolicy], args: argparse.Namespace
) -> dict[str, list[str]]:
    """Return the namespaces in which each policy applies, by the name of the policy."""
    rows, never = [policy_row(each) for each in policies], {args.velero_namespace, args.operator_namespace}
    found: dict[str, list[str]] = {}
    for raw in await cluster.listed(NAMESPACE, ""):
        metadata = _any.decode(raw)["metadata"]
        applies = policy_for(metadata["name"], metadata.get("labels") or {}, rows, never)
        if applies is not None:
            found.setdefault(applies.name, []).append(metadata["name"])
    return {name: sorted(each) for name, each in found.items()}


async def read_use(cluster: Cluster, family: Family, args: argparse.Namespace) -> dict[str, Use]:
    """Count what the namespaces have; empty, with a hint, if that cannot be read."""
    try:
        made = await cluster.listed(family.velero, args.velero_namespace, family.nacuuid_label)
        requests = await cluster.listed_if_known(family.kind)
    except CommandError as error:
        hint(f"the use of {family.word}s is unknown: {error.problem}")
        return {}
    objects = [msgspec.json.decode(each, type=VeleroObject) for each in made]
    return use_by_namespace(family, objects, [_any.decode(each) for each in requests])


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
