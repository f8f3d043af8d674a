"""Which kinds a spec covers, in both generations of Velero's filters."""

from collections.abc import Collection
from dataclasses import dataclass
from typing import Protocol

from foresail.api.specs import BackupSpec
from foresail.scope.discovery import NAMESPACES, Discovery, ResourceKind
from foresail.scope.globs import matches
from foresail.scope.namespaces import NamespaceFilter

SNAPSHOTS = "volumesnapshots.snapshot.storage.k8s.io"
SNAPSHOT_CONTENTS = "volumesnapshotcontents.snapshot.storage.k8s.io"
"""Velero excludes these two always: it backs up those that it makes itself."""


class KindFilter(Protocol):
    """Whether kinds are included, and whether they are excluded even as related items."""

    def includes(self, kind: ResourceKind) -> bool:
        """Whether objects of this kind are collected."""

    def excludes(self, kind: ResourceKind) -> bool:
        """Whether cluster-scoped objects of this kind are left out even if an included object refers to them."""


@dataclass(frozen=True, slots=True)
class Lists:
    """An included and an excluded list."""

    included: frozenset[str] = frozenset()
    excluded: frozenset[str] = frozenset()

    def includes(self, name: str) -> bool:
        """Whether a name is included: an empty list includes everything."""
        if matches(self.excluded, name):
            return False
        return not self.included or "*" in self.included or matches(self.included, name)

    @property
    def everything(self) -> bool:
        """Whether nothing is left out."""
        return not self.excluded and (not self.included or self.included == {"*"})


@dataclass(frozen=True, slots=True)
class GlobalKinds:
    """The old generation: includedResources, excludedResources and includeClusterResources."""

    lists: Lists
    cluster_resources: bool | None
    namespaces: NamespaceFilter

    def includes(self, kind: ResourceKind) -> bool:
        """Whether objects of this kind are collected."""
        if not kind.namespaced and self.cluster_resources is False:
            return False
        if kind.full_name != NAMESPACES and not kind.namespaced and self.cluster_resources is None:
            return self.namespaces.everything and self.lists.includes(kind.full_name)
        return self.lists.includes(kind.full_name)

    def excludes(self, kind: ResourceKind) -> bool:
        """Whether cluster-scoped objects of this kind are left out even as related items."""
        if matches(self.lists.excluded, kind.full_name):
            return True
        if kind.namespaced or self.cluster_resources is True:
            return False
        return self.cluster_resources is False or not self.lists.includes(kind.full_name)


@dataclass(frozen=True, slots=True)
class ScopedKinds:
    """The new generation: lists for namespaced and for cluster-scoped kinds."""

    namespaced: Lists
    cluster: Lists
    namespaces: NamespaceFilter

    def includes(self, kind: ResourceKind) -> bool:
        """Whether objects of this kind are collected."""
        if kind.namespaced:
            return self.namespaced.includes(kind.full_name)
        if matches(self.cluster.excluded, kind.full_name):
            return False
        if self.cluster == Lists() and self.namespaces.everything and self.namespaced.everything:
            return True
        return matches(self.cluster.included, kind.full_name) or kind.full_name == NAMESPACES

    def excludes(self, kind: ResourceKind) -> bool:
        """Whether cluster-scoped objects of this kind are left out even as related items."""
        return matches((self.namespaced if kind.namespaced else self.cluster).excluded, kind.full_name)


def uses_old_lists(spec: BackupSpec) -> bool:
    """Whether a spec uses the old generation of filters; one without filters uses the new one."""
    return spec.include_cluster_resources is not None or bool(spec.included_resources or spec.excluded_resources)


def uses_new_lists(spec: BackupSpec) -> bool:
    """Whether a spec uses the new generation of filters."""
    return bool(
        spec.included_cluster_scoped_resources
        or spec.excluded_cluster_scoped_resources
        or spec.included_namespace_scoped_resources
        or spec.excluded_namespace_scoped_resources
    )


def global_kinds(spec: BackupSpec, discovery: Discovery, namespaces: NamespaceFilter) -> GlobalKinds:
    """Return the filter of a spec with the old lists."""
    included, excluded = with_automatic(
        spec.included_resources, spec.excluded_resources, (SNAPSHOTS, SNAPSHOT_CONTENTS)
    )

    def full(names: Collection[str]) -> frozenset[str]:
        kinds = {name: name if name == "*" else discovery.resolve(name) for name in names}
        return frozenset(kind.full_name if isinstance(kind, ResourceKind) else name for name, kind in kinds.items())

    lists = Lists(full(included), full([name for name in excluded if name != "*"]))
    return GlobalKinds(lists, spec.include_cluster_resources, namespaces)


def scoped_kinds(spec: BackupSpec, discovery: Discovery, namespaces: NamespaceFilter) -> ScopedKinds:
    """Return the filter of a spec with the new lists."""
    namespaced = with_automatic(
        spec.included_namespace_scoped_resources, spec.excluded_namespace_scoped_resources, (SNAPSHOTS,)
    )
    cluster = with_automatic(
        spec.included_cluster_scoped_resources, spec.excluded_cluster_scoped_resources, (SNAPSHOT_CONTENTS,)
    )
    return ScopedKinds(
        Lists(*(scoped_names(names, discovery, namespaced=True) for names in namespaced)),
        Lists(*(scoped_names(names, discovery, namespaced=False) for names in cluster)),
        namespaces,
    )


def scoped_names(names: Collection[str], discovery: Discovery, *, namespaced: bool) -> frozenset[str]:
    """Return the full names of a scoped list; kinds of the other scope are dropped, unknown names stay."""
    full_names: set[str] = set()
    for name in names:
        kind = None if name == "*" else discovery.resolve(name)
        if kind is None:
            full_names.add(name)
        elif kind.namespaced == namespaced:
            full_names.add(kind.full_name)
    return frozenset(full_names)


def with_automatic(
    included: Collection[str] | None, excluded: Collection[str] | None, automatic: Collection[str]
) -> tuple[list[str], list[str]]:
    """Return both lists after Velero has added its automatic exclusions, which win over inclusions."""
    all_excluded = [*(excluded or ()), *(name for name in automatic if name not in (excluded or ()))]
    return [name for name in included or () if name not in all_excluded], all_excluded
