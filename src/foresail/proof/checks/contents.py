"""What a backup has, by the lists that Velero stores beside it, and what of that a sandbox must take.

No object itself is read. The files come from a bucket and may hold anything.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from hashlib import sha256

import msgspec

from foresail.api.restore_check import SANDBOX_NAME
from foresail.api.velero_files import named_lists, volume_infos
from foresail.proof.checks.kinds import COMPLETED_ARE_SKIPPED, Kinds, Served, Wanted, kind_of
from foresail.proof.checks.reasons import Problem, Reason
from foresail.reporting import some

_CLAIMS = "v1/PersistentVolumeClaim"
_VOLUMES = "v1/PersistentVolume"
_STORAGE_CLASS = ("storage.k8s.io", "StorageClass")
_LONGEST_NAME = 253
_SHOWN = 3
_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # Velero reads `*` as all

Lists = dict[str, list[str]]


class Item(msgspec.Struct, frozen=True, order=True):
    """An object of a backup."""

    gvk: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.gvk.rpartition('/')[2]} {self.namespace}/{self.name}"


class Contents(msgspec.Struct, frozen=True):
    """What the sandbox must take of a backup."""

    expected: tuple[Item, ...] = ()
    optional: tuple[Item, ...] = ()
    """Objects that Velero restores only in some states, which the list does not have."""
    not_checked: int = 0
    not_served: int = 0
    problems: tuple[Problem, ...] = ()
    digest: str = ""
    custom: tuple[str, ...] = ()
    """The listed custom resources that it has and this cluster serves: Velero hangs on others that it has cached."""
    has_volumes: bool = True
    """Whether it has PersistentVolumes."""

    @property
    def namespaces(self) -> tuple[str, ...]:
        """The namespaces with something to restore."""
        return tuple(sorted(self.objects))

    @property
    def objects(self) -> Counter[str]:
        """How many objects to restore each of these namespaces has."""
        return Counter(item.namespace for item in (*self.expected, *self.optional))


def lists_of(file: bytes) -> Lists | None:
    """Return names by kind; None if the file is not of Velero's shape."""
    lists = named_lists(file)
    if lists is None:
        return None
    too_long = any(len(name) > 2 * _LONGEST_NAME + 20 for names in lists.values() for name in names)
    return None if too_long or any(len(kind) > 2 * _LONGEST_NAME for kind in lists) else lists


def contents_of(file: bytes, wanted: Wanted, served: Served, classes: Sequence[str] = ()) -> Contents | None:
    """Return what the sandbox must take of a backup; None if the list is not of Velero's shape."""
    lists = lists_of(file)
    if lists is None:
        return None
    if not _has_valid_namespaces(lists):
        return None
    expected: list[Item] = []
    optional: list[Item] = []
    problems: list[Problem] = []
    not_checked = not_served = 0
    custom: set[str] = set()
    kinds = Kinds(lists, wanted, served)
    for gvk, names in sorted(_in_one_version(lists, served).items()):
        own = _own_items(gvk, names)
        not_checked += len(names) - len(own)
        items = [item for item in own if not wanted.namespaces or item.namespace in wanted.namespaces]
        if items and kinds.is_unserved(gvk):
            problems.append(_not_served(gvk, items))
            not_served += len(items)
        elif kinds.is_restored(gvk):
            (optional if kind_of(gvk) in COMPLETED_ARE_SKIPPED else expected).extend(items)
            custom |= kinds.listed(gvk)
        else:
            not_checked += len(items)
    problems += _missing_classes(lists, wanted, classes)
    problems += _missing_namespaces(wanted, {item.namespace for item in (*expected, *optional)})
    return Contents(
        tuple(expected),
        tuple(optional),
        not_checked,
        not_served,
        tuple(problems),
        sha256(file).hexdigest(),
        tuple(sorted(custom)),
        has_volumes=bool(lists.get(_VOLUMES)),
    )


def _has_valid_namespaces(lists: Lists) -> bool:
    places = (place for names in lists.values() for place in names if "/" in place)
    return all(_NAMESPACE.fullmatch(place.partition("/")[0]) for place in places)


def _own_items(gvk: str, names: Iterable[str]) -> list[Item]:
    """Return the objects in namespaces, except those in sandboxes of checks that ran during the backup."""
    items = (_item(gvk, name) for name in names if "/" in name)
    return [item for item in items if not SANDBOX_NAME.fullmatch(item.namespace)]


def _missing_namespaces(wanted: Wanted, namespaces: Container[str]) -> list[Problem]:
    return [
        Problem(Reason.NAMESPACE_MISSING, f"the backup has no object of namespace {name}")
        for name in wanted.namespaces
        if name not in namespaces
    ]


def _in_one_version(lists: Lists, served: Served) -> Lists:
    """Return each object once: Velero may list it in every version of its kind, and restores it in one.

    A version that this cluster serves comes first.
    """
    versions = Counter(map(kind_of, lists))
    taken: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    once: Lists = {}
    for gvk in sorted(lists, key=lambda gvk: (not served.has(gvk), gvk)):
        kind = kind_of(gvk)
        names = lists[gvk]
        if versions[kind] > 1:
            names = [name for name in names if name not in taken[kind]]
            taken[kind].update(names)
        if names:
            once[gvk] = names
    return once


def _item(gvk: str, place: str) -> Item:
    namespace, _, name = place.partition("/")
    return Item(gvk, namespace, name)


def _missing_classes(lists: Lists, wanted: Wanted, classes: Sequence[str]) -> list[Problem]:
    """Return the problem of a backup with claims if the cluster has none of the storage classes that it lists.

    The list does not say which class a claim uses: while one of them exists, it may be that one.
    """
    claims = [_item(_CLAIMS, name) for name in lists.get(_CLAIMS, ())]
    if not any(not wanted.namespaces or claim.namespace in wanted.namespaces for claim in claims):
        return []
    listed = {name for gvk, names in lists.items() if kind_of(gvk) == _STORAGE_CLASS for name in names}
    if not listed or listed.intersection(classes):
        return []
    shown = ", ".join(sorted(listed)[:_SHOWN])
    return [Problem(Reason.STORAGE_CLASS_MISSING, f"this cluster has no StorageClass {shown}, which the backup lists")]


def _not_served(gvk: str, items: Sequence[Item]) -> Problem:
    shown = some([f"{item.namespace}/{item.name}" for item in items], _SHOWN)
    return Problem(Reason.KIND_NOT_SERVED, f"this cluster does not serve {gvk}, which the backup has: {shown}")


_FILES, _SNAPSHOT = "PodVolumeBackup", "CSISnapshot"
_GOOD = ("", "succeeded")
Place = tuple[str, str]
"""Namespace and name of a claim."""


class _Info(msgspec.Struct, frozen=True):
    name: str = msgspec.field(default="", name="pvcName")
    namespace: str = msgspec.field(default="", name="pvcNamespace")
    method: str = msgspec.field(default="", name="backupMethod")
    is_moved: bool = msgspec.field(default=False, name="snapshotDataMoved")
    skipped: bool = False
    result: str = ""

    @property
    def place(self) -> Place:
        return self.namespace, self.name


class SavedClaims(msgspec.Struct, frozen=True):
    """The claims whose data is in the bucket: copied from files, or moved from snapshots."""

    files: tuple[Place, ...] = ()
    moved: tuple[Place, ...] = ()


_infos = msgspec.json.Decoder(list[_Info] | None)


def saved_claims(file: bytes) -> SavedClaims | None:
    """Return the claims whose data can be restored into a sandbox; None if the list is not of Velero's shape."""
    infos = volume_infos(file, _infos)
    if infos is None:
        return None
    good = [info for info in infos if not info.skipped and info.result in _GOOD]
    return SavedClaims(
        tuple(sorted(item.place for item in good if item.method == _FILES)),
        tuple(sorted(item.place for item in good if item.method == _SNAPSHOT and item.is_moved)),
    )
