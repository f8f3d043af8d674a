"""The objects of a cluster, with only what decides whether a backup covers them."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from foresail.scope.discovery import (
    CLAIMS,
    CLUSTER_ROLE_BINDINGS,
    CLUSTER_ROLES,
    NAMESPACES,
    PODS,
    PRIORITY_CLASSES,
    SERVICE_ACCOUNTS,
    VOLUMES,
    Discovery,
)


class ItemKey(NamedTuple):
    """An object: the full name of its kind, its namespace and its name."""

    kind: str
    namespace: str
    name: str


@dataclass(frozen=True, slots=True)
class Item:
    """An object that may be backed up."""

    key: ItemKey
    labels: Mapping[str, str]
    is_terminating: bool = False
    is_active: bool = True
    """Of a namespace: whether its phase is Active."""

    related: tuple[ItemKey, ...] = ()
    """The objects that Velero adds when it backs up this one."""

    unbound: tuple[Mapping[str, Any], ...] = ()
    """Of a pod: the claims that it mounts and that have no volume, empty if they do not exist. Of a claim: itself."""


@dataclass(frozen=True, slots=True)
class World:
    """All objects of a cluster and the kinds that it serves."""

    discovery: Discovery
    items: tuple[Item, ...]
    by_key: Mapping[ItemKey, Item] = field(repr=False, compare=False)

    @property
    def namespaces(self) -> list[Item]:
        """The namespaces."""
        return [item for item in self.items if item.key.kind == NAMESPACES]


def world_of(discovery: Discovery, objects: Iterable[tuple[str, Mapping[str, Any]]]) -> World:
    """Return the world of these objects: pairs of the full name of a kind and an object as JSON has it."""
    pairs = [(kind, body) for kind, body in objects]
    links = _Links(pairs)
    items = tuple(_item(kind, body, links) for kind, body in pairs)
    return World(discovery, items, {item.key: item for item in items})


def _item(kind: str, body: Mapping[str, Any], links: "_Links") -> Item:
    metadata = body["metadata"]
    key = ItemKey(kind, metadata.get("namespace", ""), metadata["name"])
    return Item(
        key,
        metadata.get("labels") or {},
        is_terminating=_is_terminating(body),
        is_active=kind != NAMESPACES or (body.get("status") or {}).get("phase") == "Active",
        related=tuple(links.related(key, body)),
        unbound=tuple(links.unbound(key, body)),
    )


class _Links:
    """Which object refers to which."""

    def __init__(self, objects: Iterable[tuple[str, Mapping[str, Any]]]) -> None:
        self.bindings: dict[tuple[str, str], list[ItemKey]] = defaultdict(list)
        self.running_pods: dict[tuple[str, str], list[ItemKey]] = defaultdict(list)
        self.groups: dict[tuple[str, str], list[ItemKey]] = defaultdict(list)
        self.claims: dict[tuple[str, str], Mapping[str, Any]] = {}
        self.volumes: set[str] = set()
        for kind, body in objects:
            namespace = body["metadata"].get("namespace", "")
            name = body["metadata"]["name"]
            if kind == CLUSTER_ROLE_BINDINGS:
                self._bind(name, body)
            elif kind == PODS and is_running(body):
                for claim in claims_of(body):
                    self.running_pods[namespace, claim].append(ItemKey(PODS, namespace, name))
            elif kind == VOLUMES:
                self.volumes.add(name)
            elif kind == CLAIMS:
                self.claims[namespace, name] = body
                if _group(body):
                    self.groups[namespace, _group(body)].append(ItemKey(CLAIMS, namespace, name))

    def _bind(self, name: str, body: Mapping[str, Any]) -> None:
        for subject in body.get("subjects") or ():
            if subject.get("kind") == "ServiceAccount":
                self.bindings[subject.get("namespace", ""), subject.get("name", "")] += [
                    ItemKey(CLUSTER_ROLE_BINDINGS, "", name),
                    ItemKey(CLUSTER_ROLES, "", body["roleRef"]["name"]),
                ]

    def related(self, key: ItemKey, body: Mapping[str, Any]) -> Iterable[ItemKey]:
        """Return what Velero's own plugins add to an object."""
        if key.kind == PODS:
            if priority := body["spec"].get("priorityClassName"):
                yield ItemKey(PRIORITY_CLASSES, "", priority)
            yield from (ItemKey(CLAIMS, key.namespace, claim) for claim in claims_of(body))
        elif key.kind == CLAIMS and is_bound(body):
            yield ItemKey(VOLUMES, "", body["spec"]["volumeName"])
            yield from self.running_pods[key.namespace, key.name]
            yield from (item_key for item_key in self.groups[key.namespace, _group(body)] if item_key != key)
        elif key.kind == SERVICE_ACCOUNTS:
            yield from self.bindings[key.namespace, key.name]

    def unbound(self, key: ItemKey, body: Mapping[str, Any]) -> Iterable[Mapping[str, Any]]:
        """Return the claims without volumes that an object needs."""
        if key.kind == CLAIMS and (body.get("spec") or {}).get("volumeName", "") not in self.volumes:
            yield body
        for name in claims_of(body) if key.kind == PODS else ():
            claim = self.claims.get((key.namespace, name), {})
            if not claim or not is_bound(claim) or claim["spec"]["volumeName"] not in self.volumes:
                yield claim


def claims_of(pod: Mapping[str, Any]) -> list[str]:
    """Return the names of the claims that a pod mounts."""
    volumes = pod["spec"].get("volumes") or ()
    names = [(volume.get("persistentVolumeClaim") or {}).get("claimName") for volume in volumes]
    return [name for name in names if name]


def is_running(pod: Mapping[str, Any]) -> bool:
    """Whether a pod runs on a node and is not being deleted."""
    is_scheduled = bool(pod["spec"].get("nodeName"))
    return is_scheduled and (pod.get("status") or {}).get("phase") == "Running" and not _is_terminating(pod)


def _is_terminating(body: Mapping[str, Any]) -> bool:
    return "deletionTimestamp" in body["metadata"]


def is_bound(claim: Mapping[str, Any]) -> bool:
    """Whether a claim has its volume."""
    phase = (claim.get("status") or {}).get("phase")
    return phase == "Bound" and bool((claim.get("spec") or {}).get("volumeName"))


def _group(claim: Mapping[str, Any]) -> str:
    return str((claim["metadata"].get("labels") or {}).get("velero.io/volume-group", ""))
