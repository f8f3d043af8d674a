"""Which objects differ from a backup, and in which fields by name: pure, and without any value."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any

import msgspec

from foresail.cli.tenant.held import Change, HeldKind, LiveObject
from foresail.proof.restore_plan.compare import changes, stripped
from foresail.proof.restore_plan.items import Document, Item, ItemKey
from foresail.selfservice.access.discovery import ApiResource

CHANGED, WRITTEN, RECREATED = "changed", "written", "created again"

_FIELD, _KEY, _VALUE = "f:", "k:", "v:"
_STATUS = "status"
_MOST_DEEP = 40  # levels of fields; deeper ones count as their parent


def changed_since(items: Iterable[Item], live: Mapping[ItemKey, Document]) -> list[Change]:
    """Return the objects of a backup that exist and are not the same, by their contents."""
    changed = []
    for item in items:
        now = live.get(item.key)
        fields = () if now is None or item.problem else changes(stripped(item.body), now)
        if fields:
            changed.append(Change(CHANGED, _title(item), item.key.name, tuple(field.path for field in fields)))
    return sorted(changed)


def written_since(held: Iterable[HeldKind], live: Mapping[ApiResource, Iterable[LiveObject]]) -> list[Change]:
    """Return the objects of a backup that somebody wrote since, with the fields of those who did."""
    kinds = {(kind.group, kind.kind): kind for kind in held if kind.is_namespaced}
    changed = []
    for resource, objects in live.items():
        kind = kinds.get((resource.group, resource.kind))
        names = set(kind.names) if kind is not None else set()
        for item in objects:
            if kind is not None and item.name in names and (item.is_recreated or item.is_written):
                change = RECREATED if item.is_recreated else WRITTEN
                changed.append(Change(change, kind.title, item.name, item.fields))
    return sorted(changed)


def fields_of(owned: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the paths of the fields in an entry of managedFields, such as `spec.replicas`, but for the status."""
    paths = {path for path in _paths(owned, "", _MOST_DEEP) if path.partition(".")[0] != _STATUS}
    return tuple(sorted(paths))


def _paths(owned: Mapping[str, Any], parent: str, levels: int) -> Iterator[str]:
    for name, inner in owned.items():
        path = _path(name, parent)
        if path is None:
            continue
        below = list(_paths(inner, path, levels - 1)) if isinstance(inner, Mapping) and levels else []
        yield from below or [path]


def _path(name: str, parent: str) -> str | None:
    """Return the path of one entry; None if it stands for no field of its own."""
    prefix = name[:2]
    rest = name[2:]
    if prefix == _FIELD:
        return f"{parent}.{rest}" if parent else rest
    if prefix not in (_KEY, _VALUE) or not parent:
        return None
    try:
        value = msgspec.json.decode(rest)
    except msgspec.DecodeError:
        return None
    if isinstance(value, dict):
        value = ",".join(f"{key}={text}" for key, text in value.items())
    return f"{parent}[{value}]"


def _title(item: Item) -> str:
    kind = str(item.body.get("kind") or item.key.resource.partition(".")[0])
    group = item.key.resource.partition(".")[2]
    return f"{kind}.{group}" if group else kind
