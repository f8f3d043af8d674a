"""What a restore did, for the one who asked for it: a row for each outcome, and the option that would change more."""

import asyncio
from collections.abc import Iterable
from datetime import timedelta
from typing import Any

import msgspec

from foresail.api.nonadmin import RestoredGroup, RestoredItems
from foresail.bucket import trusting
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.table import aligned
from foresail.cli.tenant.contents import compare, read_contents
from foresail.cli.tenant.files import Access
from foresail.cli.tenant.held import NEW, Change, HeldKind
from foresail.cli.tenant.selection import read_request
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.results.restored import CHANGE_BACK, LEFT, MOST_NAMES, Entry, follows, names_of

_IN_COMMAND = frozenset({"backupName", "namespaceMapping", "existingResourcePolicy"})
_PATIENCE = timedelta(seconds=5)
_NOT_COUNTED = ("oadp.openshift.io", "velero.io", "foresail.dev", "coordination.k8s.io", "metrics.k8s.io")
_spec = msgspec.json.Decoder(dict[str, Any])


def restored_text(items: RestoredItems, new: RestoredGroup | None = None) -> str:
    """Return a row for each outcome: how many objects, and the first of them."""
    groups = [
        ("created", items.created),
        ("changed back", items.changed_back),
        (LEFT, items.left),
        ("failed", items.failed),
        ("unchanged since the backup", RestoredGroup(items.unchanged)),
    ]
    if new is not None:
        groups.append(("not in the backup", new))
    rows = [f"  {words}\t{group.count}\t{names_of(group)}" for words, group in groups]
    if items.following:
        rows.append(f"  follow automatically\t{items.following}\tPods, ReplicaSets and the like")
    return "\n".join(line.rstrip() for line in aligned(rows).splitlines())


def follow_up(request: TenantRequest) -> str:
    """Return how to change back what a restore left as it is; empty if it left nothing."""
    items = request.restored
    source = f"--from-protection {request.point}" if request.point else f"--from-backup {request.source or 'BACKUP'}"
    namespace = request.key.namespace
    if items is None or not items.left.count or request.spec.get("existingResourcePolicy") == "update":
        return ""
    target = request.target
    where = "" if target == namespace else f" --to {target}"
    command = f"foresail restore create NAME {source}{where} {CHANGE_BACK} -n {namespace}"
    if request.spec.keys() - _IN_COMMAND:  # without its other options, the command would change more than was asked for
        command = f"another restore with the same options and {CHANGE_BACK}"
    return left_text(items.left.count, command, ", if the policy allows it")


def left_text(number: int, command: str, condition: str = "") -> str:
    """Return how many objects a restore left as they are, and the command that changes them back."""
    what, them = ("object exists and differs", "it") if number == 1 else ("objects exist and differ", "them")
    return f"{number} {what} from the backup. To change {them} back{condition}: {command}"


async def new_objects(cluster: Cluster, request: TenantRequest) -> RestoredGroup | None:
    """Return what is not in the backup where it was restored to; None if that cannot be told within seconds."""
    if request.point:
        return None
    target = request.target
    about = Key(request.key.namespace, str(request.spec.get("backupName") or ""))
    try:
        async with asyncio.timeout(_PATIENCE.total_seconds()):
            backup = await read_request(cluster, BACKUPS, about)
            held = await read_contents(cluster, about, Access(trusting(""), now() + _PATIENCE, is_quiet=True))
            difference = await compare(cluster, target, held, _spec.decode(backup.made.spec))
    except (CommandError, TimeoutError):
        return None
    return new_among(difference.changes, held)


def new_among(changes: Iterable[Change], held: Iterable[HeldKind]) -> RestoredGroup:
    """Return the new objects, without requests like this one and without what Kubernetes makes for others."""
    new = own_changes([change for change in changes if change.change == NEW], held)
    own = [f"{change.kind.partition('.')[0]} {change.name}" for change in new]
    return RestoredGroup(len(own), tuple(own[:MOST_NAMES]))


def own_changes(changes: Iterable[Change], held: Iterable[HeldKind]) -> list[Change]:
    """Return the changes of what people make: without requests like this one, and what Kubernetes makes for others."""
    counted = [change for change in changes if change.kind.partition(".")[2] not in _NOT_COUNTED]
    entries = [Entry(change.kind.partition(".")[0], change.name, change.change) for change in counted]
    names = {kind.kind: set(kind.names) for kind in held}
    for entry in entries:
        names.setdefault(entry.kind, set()).add(entry.name)
    return [change for change, entry in zip(counted, entries, strict=True) if not follows(entry, names)]
