"""What a plan of a restore does not say: objects that are new since the backup, and those that follow by themselves."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster, may
from foresail.cli.access.together import in_thread
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.planning import Inputs, backup_of
from foresail.cli.tenant.contents import kinds_served, list_objects, listable
from foresail.cli.tenant.held import NEW, HeldKind, changes, is_compared
from foresail.cli.tenant.restored import own_changes
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.plan import Kind
from foresail.proof.restore_plan.items import Item, ItemKey
from foresail.selfservice.access.discovery import ApiResource
from foresail.selfservice.results.restored import Entry, follows

_AT_ONCE = 8
_spec = msgspec.json.Decoder(dict[str, Any])


@dataclass(frozen=True, slots=True)
class Since:
    """What changed beside the items of a backup."""

    new: Sequence[tuple[str, str]] = ()  # kind and name
    following: frozenset[ItemKey] = frozenset()  # items that Kubernetes makes for others, as a Pod for its ReplicaSet
    unknown: str = ""  # why what is new is not known


async def read_since(cluster: Cluster, backup: TenantRequest, inputs: Inputs) -> Since:
    """Return what is new since a backup; a kind that the caller may not list is not asked for."""
    held, following = await in_thread(lambda: _contents(inputs, backup.key.namespace))
    try:
        spec = _spec.decode(backup.made.spec)
        kinds = listable(await kinds_served(cluster))
        wanted = [(resource, kind) for resource, kind in kinds.items() if is_compared(resource, held, spec)]
        allowed = await _allowed(cluster, wanted, backup.key.namespace)
        live, refused = await list_objects(cluster, backup.key.namespace, allowed)
    except UnreachableError:
        raise
    except (CommandError, msgspec.DecodeError) as error:
        return Since((), following, str(getattr(error, "problem", error)))
    new = own_changes([change for change in changes(held, live, spec) if change.change == NEW], held)
    left_out = len(wanted) - len(allowed) + len(refused)
    unknown = f"{counted(left_out, 'kind')} could not be listed" if left_out else ""
    return Since([(change.kind, change.name) for change in new], following, unknown)


async def _allowed(
    cluster: Cluster, wanted: Sequence[tuple[ApiResource, Kind]], namespace: str
) -> list[tuple[ApiResource, Kind]]:
    """Return the kinds that the caller may list."""
    limit = asyncio.Semaphore(_AT_ONCE)

    async def asked(kind: Kind) -> bool:
        async with limit:
            return await may(cluster, "list", kind, namespace)

    answers = await asyncio.gather(*(asked(kind) for _, kind in wanted))
    return [pair for pair, is_allowed in zip(wanted, answers, strict=True) if is_allowed]


def _contents(inputs: Inputs, namespace: str) -> tuple[list[HeldKind], frozenset[ItemKey]]:
    """Return the kinds of an archive with their names, and the items that Kubernetes makes for others."""
    items = [item for item in backup_of(inputs).items if item.key.namespace == namespace]
    by_kind: dict[tuple[str, str, str], list[str]] = {}
    for item in items:
        by_kind.setdefault(_kind(item), []).append(item.key.name)
    held = [HeldKind(kind, group, version, tuple(names)) for (group, version, kind), names in by_kind.items()]
    names: dict[str, set[str]] = {}
    for held_kind in held:
        names.setdefault(held_kind.kind, set()).update(held_kind.names)
    following = (item.key for item in items if follows(Entry(_kind(item)[2], item.key.name, ""), names))
    return held, frozenset(following)


def _kind(item: Item) -> tuple[str, str, str]:
    group, _, version = str(item.body.get("apiVersion", "")).rpartition("/")
    return group, version, str(item.body.get("kind", ""))
