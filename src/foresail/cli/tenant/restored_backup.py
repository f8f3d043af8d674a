"""Whether the backup of a new restore exists: the operator would let the restore wait for it."""

from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family

_MOST_NAMED = 5
_any = msgspec.json.Decoder(dict[str, Any])


async def check_backup(cluster: Cluster, family: Family, body: dict[str, Any], namespace: str) -> None:
    """Refuse a restore from a backup that does not exist, and name those that do."""
    if family is not RESTORES:
        return
    name = body["spec"]["restoreSpec"]["backupName"]
    try:
        if await cluster.if_there(BACKUPS.kind, Key(namespace, name), msgspec.Raw) is not None:
            return
        listed = await cluster.listed(BACKUPS.kind, namespace)
    except CommandError:  # without the right to read backups, the operator alone checks it
        return
    metadata = [_any.decode(raw)["metadata"] for raw in listed]
    newest = sorted(metadata, key=lambda item: str(item.get("creationTimestamp") or ""), reverse=True)
    problem = f"{BACKUPS.kind.name} {name} does not exist in namespace {namespace}"
    raise CommandError(problem, _what_exists([str(item["name"]) for item in newest], namespace))


def _what_exists(names: list[str], namespace: str) -> str:
    if not names:
        create = "name another with -n, or create one with foresail backup create NAME"
        return f"namespace {namespace} has no backups; {create}"
    more = f" and {len(names) - _MOST_NAMED} more" if len(names) > _MOST_NAMED else ""
    shown = f"{', '.join(names[:_MOST_NAMED])}{more}"
    return f"namespace {namespace} has {shown}; foresail backup get -n {namespace} shows them"
