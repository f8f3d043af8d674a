"""The items that an item brings along: Velero restores them before it, past some or all filters."""

from collections.abc import Callable
from dataclasses import dataclass

from foresail.proof.restore_plan.items import MUST_INCLUDE, Item, ItemKey, at, mapping, sequence

SNAPSHOTS = "volumesnapshots.snapshot.storage.k8s.io"
SNAPSHOT_CONTENTS = "volumesnapshotcontents.snapshot.storage.k8s.io"
SNAPSHOT_CLASSES = "volumesnapshotclasses.snapshot.storage.k8s.io"

_SNAPSHOT_NAME = "velero.io/volume-snapshot-name"
_CONTENTS_SECRET = "csi.storage.k8s.io/snapshotter-secret"  # noqa: S105 - the beginning of two annotations
_CLASS_SECRET = "csi.storage.k8s.io/snapshotter-list-secret"  # noqa: S105


@dataclass(frozen=True, slots=True)
class Dependency:
    """An item that another one brings along; a forced one passes every filter."""

    key: ItemKey
    is_forced: bool = False


def dependencies(item: Item) -> list[Dependency]:
    """Return the items that Velero restores before an item, if the backup has them."""
    find = _FINDERS.get(item.key.resource)
    return find(item) if find is not None else []


def _of_claim(item: Item) -> list[Dependency]:
    needed = []
    if at(item.body, "status", "phase") == "Bound" and at(item.body, "spec", "volumeName"):
        needed.append(Dependency(ItemKey("persistentvolumes", "", str(at(item.body, "spec", "volumeName")))))
    snapshot = item.annotations.get(_SNAPSHOT_NAME)
    if snapshot:
        needed.append(Dependency(ItemKey(SNAPSHOTS, item.key.namespace, snapshot), is_forced=True))
    return needed


def _of_pod(item: Item) -> list[Dependency]:
    needed = []
    for volume in sequence(at(item.body, "spec", "volumes")):
        claim = at(mapping(volume), "persistentVolumeClaim", "claimName")
        if claim:
            key = ItemKey("persistentvolumeclaims", item.key.namespace, str(claim))
            needed.append(Dependency(key, is_forced=_must_include(item)))
    priority = at(item.body, "spec", "priorityClassName")
    if priority:
        needed.append(Dependency(ItemKey("priorityclasses.scheduling.k8s.io", "", str(priority))))
    return needed


def _of_snapshot(item: Item) -> list[Dependency]:
    contents = at(item.body, "status", "boundVolumeSnapshotContentName")
    return [Dependency(ItemKey(SNAPSHOT_CONTENTS, "", str(contents)), is_forced=True)] if contents else []


def _secret(item: Item, annotation: str) -> list[Dependency]:
    name = item.annotations.get(f"{annotation}-name")
    namespace = item.annotations.get(f"{annotation}-namespace")
    if not (name and namespace):
        return []
    return [Dependency(ItemKey("secrets", namespace, name), is_forced=_must_include(item))]


def _must_include(item: Item) -> bool:
    """Whether an annotation forces what the first action brings along: Velero removes it before the others.

    For a claim that is velero.io/change-storage-class, which brings nothing along.
    """
    return item.annotations.get(MUST_INCLUDE) == "true"


_FINDERS: dict[str, Callable[[Item], list[Dependency]]] = {
    "persistentvolumeclaims": _of_claim,
    "pods": _of_pod,
    SNAPSHOTS: _of_snapshot,
    SNAPSHOT_CONTENTS: lambda item: _secret(item, _CONTENTS_SECRET),
    SNAPSHOT_CLASSES: lambda item: _secret(item, _CLASS_SECRET),
}
