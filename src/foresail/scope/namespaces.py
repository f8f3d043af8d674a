"""Which namespaces a spec covers."""

import re
from collections.abc import Collection
from dataclasses import dataclass

from foresail.scope.globs import compiled, has_wildcard, is_plain, matches
from foresail.scope.releases import LATEST, Release

_LABEL = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
_LONGEST_NAME = 63
_NOT_IN_PATTERNS = frozenset("|()!{},")


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
    def _is_plain(self) -> bool:
        """Whether each name matches itself only."""
        return all(map(is_plain, self.includes | self.excludes))

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
        if self.expanded or self._is_plain:
            return (self.includes - self.excludes) & existing
        if self.lists_all:
            return existing - _expanded(self.excludes, existing)
        return frozenset(name for name in self.includes & existing if self.includes_name(name))


def namespace_filter(
    included: Collection[str], excluded: Collection[str], existing: Collection[str], release: Release = LATEST
) -> NamespaceFilter:
    """Return the filter of a spec in a cluster with these namespaces; `excluded` has those with the label too."""
    includes = frozenset(included) or frozenset({"*"})
    excludes = frozenset(excluded)
    expanded = release.expands_patterns and "*" not in includes and any(map(has_wildcard, (*includes, *excludes)))
    if expanded:
        includes = _expanded(includes, existing)
        excludes = _expanded(excludes, existing)
    whole = [frozenset(), frozenset({"*"}), *([frozenset(existing)] if release.expands_patterns else [])]
    everything = not excludes and includes in whole
    return NamespaceFilter(includes, excludes, everything, expanded)


def is_pattern(name: str, release: Release = LATEST) -> bool:
    """Whether a name in a list of namespaces is a valid name or pattern."""
    if not name:
        return True
    if not release.expands_patterns:
        plain = name.replace("*", "x")
        return len(plain) <= _LONGEST_NAME and _LABEL.fullmatch(plain) is not None
    plain = re.sub(r"[*?\[\]]", "x", name)
    return is_glob(name) and len(plain) <= _LONGEST_NAME and _LABEL.fullmatch(plain) is not None


def is_glob(name: str) -> bool:
    """Whether Velero can use a name as a pattern of namespaces."""
    without_classes = re.sub(r"\[[^\]]+\]", "x", name)
    is_closed = "[" not in without_classes and "]" not in without_classes
    return _NOT_IN_PATTERNS.isdisjoint(name) and "**" not in name and is_closed


def _expanded(patterns: frozenset[str], existing: Collection[str]) -> frozenset[str]:
    names: set[str] = set()
    for pattern in patterns:
        is_match = compiled(pattern)
        if not has_wildcard(pattern):
            names.add(pattern)
        elif is_match is not None:
            names.update(filter(is_match, existing))
    return frozenset(names)
