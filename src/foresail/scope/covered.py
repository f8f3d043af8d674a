"""Which objects a Velero Backup covers, item by item."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Self

from foresail.api.selectors import selects
from foresail.api.specs import BackupSpec, LabelSelector
from foresail.scope.discovery import CLAIMS, DEFINITIONS, NAMESPACES, SHARED_KINDS, Discovery, ResourceKind
from foresail.scope.kinds import KindFilter, global_kinds, scoped_kinds, uses_old_lists
from foresail.scope.labels import selector_problem
from foresail.scope.namespaces import NamespaceFilter, namespace_filter
from foresail.scope.releases import LATEST, Release
from foresail.scope.resource_policies import ObjectFilters, Policies, ResourceFilter, combined
from foresail.scope.validation import crash, problems
from foresail.scope.volumes import is_unjudged
from foresail.scope.world import Item, ItemKey, World

EXCLUDE_LABEL = "velero.io/exclude-from-backup"


def is_excluded(labels: Mapping[str, str]) -> bool:
    """Whether an object has the label that excludes it from every backup."""
    return labels.get(EXCLUDE_LABEL) == "true"


@dataclass(frozen=True, slots=True)
class Scope:
    """What a spec covers in a cluster with these kinds and namespaces."""

    spec: BackupSpec
    discovery: Discovery
    namespaces: NamespaceFilter
    kinds: KindFilter
    filters: ObjectFilters
    refused: tuple[str, ...] = ()
    """Why Velero refuses the spec or crashes on it, if it does."""

    release: Release = LATEST

    def takes(self, item: Item) -> bool:
        """Whether Velero backs up an object that it has collected or that a backed up object refers to."""
        kind = self.discovery.resolve(item.key.kind)
        if is_excluded(item.labels) or item.is_terminating or kind is None:
            return False
        key = item.key
        if not key.namespace:
            named = (self.filters.cluster or {}).get(key.kind)
            return (key.kind == NAMESPACES or not self.kinds.excludes(kind)) and (
                named is None or named.has_name(key.name)
            )
        filters = self.filters.of_namespace(key.namespace) or {}
        named = filters.get(key.kind) or filters.get("*")
        return (
            self.namespaces.includes_name(key.namespace)
            and self.kinds.includes(kind)
            and (named is None or named.has_name(key.name))
        )

    def collects(self, item: Item) -> bool:
        """Whether Velero finds an object when it lists its kind."""
        kind = self.discovery.resolve(item.key.kind)
        return kind is not None and self.kinds.includes(kind) and _is_listed(self, kind, item)


@dataclass(frozen=True, slots=True)
class Namespaces:
    """The names of a cluster's namespaces, and of those with the label that excludes them: read once for all specs."""

    names: frozenset[str]
    labelled: tuple[str, ...]

    @classmethod
    def of(cls, items: Iterable[Item]) -> Self:
        """Return those of the Namespace objects."""
        return cls.named((item.key.name, item.labels) for item in items)

    @classmethod
    def named(cls, labels: Iterable[tuple[str, Mapping[str, str]]]) -> Self:
        """Return those with these names and labels."""
        rows = list(labels)
        return cls(frozenset(name for name, _ in rows), tuple(name for name, own in rows if is_excluded(own)))

    def chosen_by(self, spec: BackupSpec, release: Release = LATEST) -> NamespaceFilter:
        """Return the filter of a spec among them."""
        excluded = (*(spec.excluded_namespaces or ()), *self.labelled)
        return namespace_filter(spec.included_namespaces or (), excluded, self.names, release)


def scope_of(
    spec: BackupSpec,
    discovery: Discovery,
    namespaces: Namespaces,
    policies: Policies | None = None,
    release: Release = LATEST,
) -> Scope:
    """Return what a spec covers in a cluster with these kinds and namespaces."""
    names = namespaces.chosen_by(spec, release)
    kinds = _kinds(spec, discovery, names, policies)
    refused = [*problems(spec, namespaces.labelled, policies, release), *_crashes(spec, discovery, kinds)]
    return Scope(spec, discovery, names, kinds, ObjectFilters(policies, discovery), tuple(refused), release)


def _crashes(spec: BackupSpec, discovery: Discovery, kinds: KindFilter) -> Iterable[str]:
    namespaces = discovery.resolve(NAMESPACES)
    text = crash(spec)
    if text and namespaces is not None and kinds.includes(namespaces):
        yield text


def includes_namespaced_kinds(spec: BackupSpec, discovery: Discovery, policies: Policies | None = None) -> bool:
    """Whether a spec includes a kind whose objects are in namespaces."""
    kinds = _kinds(spec, discovery, namespace_filter((), (), ()), policies)
    return any(kind.namespaced and kinds.includes(kind) for kind in discovery.kinds)


def _kinds(spec: BackupSpec, discovery: Discovery, names: NamespaceFilter, policies: Policies | None) -> KindFilter:
    if uses_old_lists(spec):
        return global_kinds(spec, discovery, names)
    lists = policies.include_exclude_policy if policies else None
    return combined(scoped_kinds(spec, discovery, names), lists, discovery)


def covered(
    spec: BackupSpec, world: World, policies: Policies | None = None, release: Release = LATEST
) -> frozenset[ItemKey]:
    """Return the objects that a Backup with this spec has in its archive."""
    scope = scope_of(spec, world.discovery, Namespaces.of(world.namespaces), policies, release)
    if scope.refused:
        return frozenset()
    collected = _collected(scope, world)
    claims = scope.discovery.resolve(CLAIMS)
    judges_claims = claims is not None and scope.kinds.includes(claims)
    taken: set[ItemKey] = set()
    seen: set[ItemKey] = set()
    waiting = [item for item in collected if scope.takes(item)]
    while waiting:
        item = waiting.pop()
        if item.key in seen:
            continue
        seen.add(item.key)
        if not (judges_claims and is_unjudged(item, policies, release)):
            taken.add(item.key)
        related = (world.by_key.get(key) for key in item.related)
        waiting += [item for item in related if item is not None and scope.takes(item)]
    return frozenset(taken | _definitions(scope, world, taken))


def is_covered(scope: Scope, item: Item, referring: Iterable[Item]) -> bool:
    """Whether a Backup has an object, collected itself or for one of the objects that refer to it."""
    if scope.refused or not scope.takes(item):
        return False
    collected = (item for item in (item, *referring) if scope.takes(item) and scope.collects(item))
    return next(collected, None) is not None


def _collected(scope: Scope, world: World) -> list[Item]:
    listed_kinds = {resource_kind.full_name: resource_kind for resource_kind in _listed_kinds(scope)}
    items: list[Item] = []
    tracked: set[str] = set()
    for item in world.items:
        kind = listed_kinds.get(item.key.kind)
        if kind is None or kind.full_name == NAMESPACES:
            continue
        if not _is_listed(scope, kind, item):
            if kind.namespaced and _is_tracked_only(scope, item):
                tracked.add(item.key.namespace)
            continue
        items.append(item)
        if item.key.namespace:
            tracked.add(item.key.namespace)
    if NAMESPACES in listed_kinds:
        items += [
            namespace for namespace in world.namespaces if namespace.key.name in tracked or _is_named(scope, namespace)
        ]
    return items


def _is_tracked_only(scope: Scope, item: Item) -> bool:
    """Whether Velero finds an object of an excluded namespace, and takes the namespace for it."""
    return scope.release.takes_excluded_namespaces and scope.namespaces.lists_all and _is_selected(scope.spec, item)


def _listed_kinds(scope: Scope) -> Iterable[ResourceKind]:
    seen: set[str] = set()
    for kind in scope.discovery.kinds:
        if not scope.kinds.includes(kind):
            continue
        if any(kind.name == name and kind.group in groups for groups, name in SHARED_KINDS):
            if kind.name in seen:
                continue
            seen.add(kind.name)
        yield kind


def _is_listed(scope: Scope, kind: ResourceKind, item: Item) -> bool:
    """Whether Velero finds an object when it lists its kind."""
    if kind.namespaced and not scope.namespaces.listed(item.key.namespace):
        return False
    across = not kind.namespaced or scope.namespaces.lists_all or "" in scope.namespaces.includes
    place = "" if across else item.key.namespace
    filters = scope.filters.of_namespace(place)
    chosen = _filter_for(filters, kind) if filters is not None else None
    if filters is not None and chosen is None:
        return False
    if not kind.namespaced and scope.filters.cluster is not None:
        chosen = scope.filters.cluster.get(kind.full_name)
    is_selected = _is_selected_by(chosen, item) if chosen is not None else _is_selected(scope.spec, item)
    if not is_selected:
        return False
    return not across or not kind.namespaced or _meets_own_filter(scope, kind, item)


def _meets_own_filter(scope: Scope, kind: ResourceKind, item: Item) -> bool:
    """Whether an object of a list across namespaces meets the filter of its own namespace."""
    filters = scope.filters.of_namespace(item.key.namespace)
    if filters is None:
        return True
    chosen = _filter_for(filters, kind)
    return chosen is not None and _is_selected_by(chosen, item)


def _filter_for(filters: Mapping[str, ResourceFilter], kind: ResourceKind) -> ResourceFilter | None:
    return filters.get(kind.full_name) or filters.get("*")


def _is_selected_by(resource_filter: ResourceFilter, item: Item) -> bool:
    selectors = resource_filter.selectors()
    return not selectors or any(selects(selector, item.labels) for selector in selectors)


def _is_selected(spec: BackupSpec, item: Item) -> bool:
    """Whether the labels of an object meet the selectors; with an unusable one, Velero's lists fail."""
    selectors = _selectors(spec)
    if cannot_list(spec) or any(selector_problem(selector) is not None for selector in selectors):
        return False
    return not selectors or any(selects(selector, item.labels) for selector in selectors)


def cannot_list(spec: BackupSpec) -> bool:
    """Whether a selector is empty: Velero makes one of it that no API server understands, and gets no object."""
    return any(not (selector.match_labels or selector.match_expressions) for selector in _selectors(spec))


def _selectors(spec: BackupSpec) -> tuple[LabelSelector, ...]:
    return spec.or_label_selectors or (() if spec.label_selector is None else (spec.label_selector,))


def _is_named(scope: Scope, namespace: Item) -> bool:
    """Whether a namespace is in the backup on its own, not for the objects in it."""
    if not namespace.is_active:
        return False
    spec = scope.spec
    single = scope.spec.label_selector
    single = None if single is not None and selector_problem(single) else single
    alternatives = (single,) if single is not None else spec.or_label_selectors or ()
    if any(selects(alternative, namespace.labels) for alternative in alternatives):
        return True
    if scope.namespaces.everything and alternatives:
        return False
    return scope.namespaces.includes_name(namespace.key.name)


def _definitions(scope: Scope, world: World, taken: set[ItemKey]) -> set[ItemKey]:
    """Return the definitions that Velero adds for the custom resources in a backup."""
    kind = scope.discovery.resolve(DEFINITIONS)
    if kind is None or scope.kinds.excludes(kind) or scope.kinds.includes(kind):
        return set()
    keys = {ItemKey(DEFINITIONS, "", item_key.kind) for item_key in taken}
    return {key for key in keys if key in world.by_key and scope.takes(world.by_key[key])}
