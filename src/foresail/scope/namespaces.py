"""Which namespaces a spec covers."""

from collections.abc import Collection
from dataclasses import dataclass

from foresail.scope.globs import compiled, has_wildcard, matches


@dataclass(frozen=True, slots=True)
class NamespaceFilter:
    """Included and excluded namespaces, after Velero has expanded the patterns."""

    includes: frozenset[str]
    excludes: frozenset[str]
    everything: bool
    """Whether Velero counts the filter as the whole cluster."""

    expanded: bool = False

    def includes_name(self, name: str) -> bool:
        """Whether a namespace is covered; a pattern that matched no namespace covers none."""
        if self.expanded:
            return name in self.includes and name not in self.excludes
        if matches(self.excludes, name):
            return False
        return not self.includes or "*" in self.includes or matches(self.includes, name)

    @property
    def lists_all(self) -> bool:
        """Whether Velero lists objects across all namespaces and filters them itself."""
        return self.includes_name("*")

    def listed(self, name: str) -> bool:
        """Whether Velero collects the objects of a namespace."""
        if self.lists_all or "" in self.includes:
            return self.includes_name(name)
        return name in self.includes and self.includes_name(name)

    def covered(self, existing: frozenset[str]) -> frozenset[str]:
        """Return the namespaces of a cluster whose objects Velero collects."""
        if self.expanded:
            return (self.includes - self.excludes) & existing
        if self.lists_all:
            return existing - _expanded(self.excludes, existing)
        return frozenset(each for each in self.includes & existing if self.includes_name(each))


def namespace_filter(
    included: Collection[str], excluded: Collection[str], existing: Collection[str]
) -> NamespaceFilter:
    """Return the filter of a spec in a cluster with these namespaces; `excluded` has those with the label too."""
    includes, excludes = frozenset(included) or frozenset({"*"}), frozenset(excluded)
    expanded = "*" not in includes and any(map(has_wildcard, (*includes, *excludes)))
    if expanded:
        includes, excludes = _expanded(includes, existing), _expanded(excludes, existing)
    everything = not excludes and (not includes or includes in (frozenset({"*"}), frozenset(existing)))
    return NamespaceFilter(includes, excludes, everything, expanded)


def _expanded(patterns: frozenset[str], existing: Collection[str]) -> frozenset[str]:
    names: set[str] = set()
    for pattern in patterns:
        is_match = compiled(pattern)
        if not has_wildcard(pattern):
            names.add(pattern)
        elif is_match is not None:
            names.update(filter(is_match, existing))
    return frozenset(names)
