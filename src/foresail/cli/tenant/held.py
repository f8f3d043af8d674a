"""What is in a backup by Velero's list, and how that differs from what is in the namespace now: pure."""

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector
from foresail.api.velero_files import MOST_KINDS, named_lists
from foresail.selfservice.access.discovery import ApiResource, is_name_of

_INCLUDED = ("includedResources", "includedNamespaceScopedResources")
_EXCLUDED = ("excludedResources", "excludedNamespaceScopedResources")
_NOT_COMPARED = frozenset({("", "Event"), ("events.k8s.io", "Event")})  # they come and go by themselves


class HeldKind(msgspec.Struct, frozen=True, order=True):
    """A kind of object in a backup, with the names of the objects."""

    kind: str
    group: str
    version: str
    names: tuple[str, ...]
    is_namespaced: bool = True

    @property
    def title(self) -> str:
        """The kind as people write it."""
        return f"{self.kind}.{self.group}" if self.group else self.kind

    @property
    def api_version(self) -> str:
        """The value of `apiVersion` in its objects."""
        return f"{self.group}/{self.version}" if self.group else self.version


class LiveObject(msgspec.Struct, frozen=True):
    """An object that is in the namespace now."""

    name: str
    labels: Mapping[str, str] = {}
    is_recreated: bool = False  # created since a given moment; only if it was asked for
    is_written: bool = False  # written since then
    fields: tuple[str, ...] = ()  # the fields of those who wrote it


class Change(msgspec.Struct, frozen=True, order=True):
    """An object that is only in the backup, only in the namespace, or in both and not the same."""

    change: str
    kind: str
    name: str
    fields: tuple[str, ...] = ()  # those that differ, by name


GONE, NEW = "gone", "new"


def held_kinds(namespace: str, resources: bytes) -> list[HeldKind] | None:
    """Return the kinds of a backup of one namespace with their objects; None if the list is not of Velero's shape."""
    lists = named_lists(resources)
    if lists is None or len(lists) > MOST_KINDS:
        return None
    kinds = (_held(namespace, title, names) for title, names in lists.items())
    return sorted(kind for kind in kinds if kind.names)


def _held(namespace: str, title: str, names: list[str]) -> HeldKind:
    """Return a kind that Velero writes as `apps/v1/Deployment` or `v1/Pod`; a namespaced object as namespace/name."""
    group, _, rest = title.rpartition("/")[0].rpartition("/")
    is_namespaced = any("/" in name for name in names)
    own = [name.removeprefix(f"{namespace}/") for name in names if name.startswith(f"{namespace}/")]
    shown = tuple(sorted(own if is_namespaced else names))
    return HeldKind(title.rpartition("/")[2], group, rest, shown, is_namespaced)


def is_compared(resource: ApiResource, held: Iterable[HeldKind], spec: Mapping[str, Any]) -> bool:
    """Whether objects of a resource would be in a backup with this spec that is made now."""
    if (resource.group, resource.kind) in _NOT_COMPARED or not resource.is_namespaced:
        return False
    if any((kind.group, kind.kind) == (resource.group, resource.kind) for kind in held):
        return True
    included = [name for field in _INCLUDED for name in spec.get(field) or ()]
    excluded = [name for field in _EXCLUDED for name in spec.get(field) or ()]
    is_included = not included or any(is_name_of(name.lower(), resource) for name in included)
    return is_included and not any(is_name_of(name.lower(), resource) for name in excluded)


def is_selected(labels: Mapping[str, str], spec: Mapping[str, Any]) -> bool:
    """Whether a backup with this spec takes an object with these labels."""
    one = spec.get("labelSelector")
    several = spec.get("orLabelSelectors")
    selectors = [one] if one else several or []
    return not selectors or any(selects(msgspec.convert(selector, LabelSelector), labels) for selector in selectors)


def changes(
    held: Iterable[HeldKind], live: Mapping[ApiResource, Iterable[LiveObject]], spec: Mapping[str, Any]
) -> list[Change]:
    """Return what is gone since the backup, and what is new; only kinds that could be listed are compared."""
    names = {(kind.group, kind.kind): (kind.title, set(kind.names)) for kind in held if kind.is_namespaced}
    changes: list[Change] = []
    for resource, objects in live.items():
        rest = tuple(objects)
        title = f"{resource.kind}.{resource.group}" if resource.group else resource.kind
        _, before = names.get((resource.group, resource.kind), (title, set()))
        now = {live_object.name for live_object in rest}
        changes += [Change(GONE, title, name) for name in before - now]
        changes += [
            Change(NEW, title, live_object.name)
            for live_object in rest
            if live_object.name not in before and is_selected(live_object.labels, spec)
        ]
    return sorted(changes)
