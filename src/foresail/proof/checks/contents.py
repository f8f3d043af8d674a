"""What a backup has: read from the list of names that Velero stores beside it; no object itself is read.

The file comes from a bucket and may hold anything.
"""

import re
from collections import Counter, defaultdict
from collections.abc import Container, Iterable, Sequence
from hashlib import sha256

import msgspec

from foresail.api.restore_check import SANDBOX_NAME
from foresail.api.velero_files import named_lists
from foresail.proof.checks.kinds import (
    COMPLETED_ARE_SKIPPED,
    NETWORK_GROUPS,
    Served,
    group_of,
    kind_of,
    left_out,
    restored,
)
from foresail.proof.checks.reasons import Problem, Reason

_DEFINITIONS = "apiextensions.k8s.io/v1/CustomResourceDefinition"
_CLAIMS = "v1/PersistentVolumeClaim"
_VOLUMES = "v1/PersistentVolume"
_STORAGE_CLASS = ("storage.k8s.io", "StorageClass")
_LONGEST_NAME = 253
_SHOWN = 3
_LONGEST_ENDING = 3
"""Letters after the stem of a plural, such as `ies`: more would take `certificaterequests` for Certificate."""

_NAMESPACE = re.compile(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?")  # Velero reads `*` as all

Lists = dict[str, list[str]]


class Item(msgspec.Struct, frozen=True, order=True):
    """An object of a backup."""

    gvk: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.gvk.rpartition('/')[2]} {self.namespace}/{self.name}"


class Wanted(msgspec.Struct, frozen=True):
    """What a check is to look at: all namespaces if none are named, and these custom resources."""

    namespaces: tuple[str, ...] = ()
    custom: tuple[str, ...] = ()
    has_data: bool = False


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
        return Counter(each.namespace for each in (*self.expected, *self.optional))


def lists_of(file: bytes) -> Lists | None:
    """Return names by kind; None if the file is not of Velero's shape."""
    found = named_lists(file)
    if found is None:
        return None
    too_long = any(len(name) > 2 * _LONGEST_NAME + 20 for names in found.values() for name in names)
    return None if too_long or any(len(kind) > 2 * _LONGEST_NAME for kind in found) else found


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
    kinds = _Kinds(lists, wanted, served)
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


class _Kinds:
    """What a check does with the kinds of a backup, by what this cluster serves."""

    def __init__(self, lists: Lists, wanted: Wanted, served: Served) -> None:
        self._wanted = wanted
        self._served = served
        self._restored = restored(has_data=wanted.has_data)
        self._left_out = left_out(has_data=wanted.has_data)
        self._resources = {kind_of(gvk): resource for gvk, resource in served.resources.items()}
        stems = {_stem(gvk) for gvk in lists if gvk not in served.resources}
        self._guessed = _by_stem(stems, set(wanted.custom).difference(served.resources.values()))
        self._defined = _by_stem(stems, lists.get(_DEFINITIONS, ()))

    def listed(self, gvk: str) -> set[str]:
        """Return the custom resources of the check that a kind is, or may be if it is not served."""
        if self._wanted.has_data and group_of(gvk) in NETWORK_GROUPS:
            return set()
        resource = self._resource(gvk)
        return {resource}.intersection(self._wanted.custom) if resource else self._guessed.get(_stem(gvk), set())

    def is_unserved(self, gvk: str) -> bool:
        """Whether objects of a kind cannot be restored, because this cluster does not serve it."""
        return not self._served.has(gvk) and (bool(self.listed(gvk)) or _stem(gvk) not in self._defined)

    def is_restored(self, gvk: str) -> bool:
        """Whether the sandbox takes objects of a kind."""
        is_chosen = kind_of(gvk) in self._restored or bool(self.listed(gvk))
        return is_chosen and self._resource(gvk) not in self._left_out

    def _resource(self, gvk: str) -> str:
        kind = kind_of(gvk)
        return self._restored.get(kind) or self._served.resources.get(gvk) or self._resources.get(kind, "")


def _in_one_version(lists: Lists, served: Served) -> Lists:
    """Return each object once: Velero may list it in every version of its kind, and restores it in one.

    A version that this cluster serves comes first.
    """
    versions = Counter(map(kind_of, lists))
    taken: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    found: Lists = {}
    for gvk in sorted(lists, key=lambda each: (not served.has(each), each)):
        kind = kind_of(gvk)
        names = lists[gvk]
        if versions[kind] > 1:
            names = [name for name in names if name not in taken[kind]]
            taken[kind].update(names)
        if names:
            found[gvk] = names
    return found


def included_resources(custom: Sequence[str], *, has_data: bool) -> list[str]:
    """Return what the restore includes: nothing beyond this list reaches the sandbox."""
    excluded = left_out(has_data=has_data)
    return sorted({*restored(has_data=has_data).values(), *(each for each in custom if each not in excluded)})


def _item(gvk: str, place: str) -> Item:
    namespace, _, name = place.partition("/")
    return Item(gvk, namespace, name)


def _by_stem(stems: Container[tuple[str, str]], names: Iterable[str]) -> dict[tuple[str, str], set[str]]:
    """Return names, given as plural.group, by those of the stems that they may have."""
    found: defaultdict[tuple[str, str], set[str]] = defaultdict(set)
    for name in names:
        plural, _, group = name.partition(".")
        plural = plural.replace("-", "")
        for ending in range(min(_LONGEST_ENDING, len(plural)) + 1):
            stem = (group, plural[: len(plural) - ending])
            if stem in stems:
                found[stem].add(name)
    return found


def _stem(gvk: str) -> tuple[str, str]:
    """Return the group and the stem of a kind whose plural the cluster does not report: `polic` of Policy."""
    group, kind = kind_of(gvk)
    return group, kind.lower()[:-1]


def _missing_classes(lists: Lists, wanted: Wanted, classes: Sequence[str]) -> list[Problem]:
    """Return the problem of a backup with claims if the cluster has none of the storage classes that it lists.

    The list does not say which class a claim uses: while one of them exists, it may be that one.
    """
    claims = [_item(_CLAIMS, each) for each in lists.get(_CLAIMS, ())]
    if not any(not wanted.namespaces or claim.namespace in wanted.namespaces for claim in claims):
        return []
    listed = {name for gvk, names in lists.items() if kind_of(gvk) == _STORAGE_CLASS for name in names}
    if not listed or listed.intersection(classes):
        return []
    shown = ", ".join(sorted(listed)[:_SHOWN])
    return [Problem(Reason.STORAGE_CLASS_MISSING, f"this cluster has no StorageClass {shown}, which the backup lists")]


def _not_served(gvk: str, items: Sequence[Item]) -> Problem:
    shown = ", ".join(f"{item.namespace}/{item.name}" for item in items[:_SHOWN])
    more = f" and {len(items) - _SHOWN} more" if len(items) > _SHOWN else ""
    return Problem(Reason.KIND_NOT_SERVED, f"this cluster does not serve {gvk}, which the backup has: {shown}{more}")
