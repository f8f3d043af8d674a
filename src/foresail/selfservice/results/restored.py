"""What a restore did to the objects of each namespace: from Velero's list of restored objects, and its results.

Velero's list calls an object `failed` that exists and differs; only the warning about it says so. Both files come
from a bucket, so they may hold anything.
"""

import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping

import msgspec

from foresail.api.nonadmin import RestoredGroup, RestoredItems
from foresail.api.velero_files import named_lists
from foresail.selfservice.results.file import Part, Results, parts

MOST_NAMES = 5
"""Names that the status keeps of each group."""

LEFT, CHANGE_BACK = "left as they are", "--existing-resource-policy update"
"""What a restore does with objects that exist and differ, and the option with which it changes them."""

_ENTRY = re.compile(r"(?:(?P<namespace>[-a-z0-9]{1,63})/)?(?P<name>[-a-zA-Z0-9.:_]{1,253})\((?P<action>[a-z]*)\)")
_KIND = re.compile(r"[A-Za-z][A-Za-z0-9]{0,62}")
_EXISTS = re.compile(r"could not restore, (?P<kind>\w+)(?::| \")(?P<name>[^\s\"]+)\"? already exists")
_CREATED, _UPDATED, _SKIPPED = "created", "updated", "skipped"

_OWNERS = {
    "Pod": ("ReplicaSet", "StatefulSet", "DaemonSet", "Job", "ReplicationController"),
    "ReplicaSet": ("Deployment",),
    "Job": ("CronJob",),
    "ControllerRevision": ("StatefulSet", "DaemonSet"),
    "Endpoints": ("Service",),
    "EndpointSlice": ("Service",),
}
"""Kinds whose objects Kubernetes makes for others, whose names theirs begin with."""

_OF_KUBERNETES = {("ConfigMap", "kube-root-ca.crt"), ("ConfigMap", "openshift-service-ca.crt")}


class Entry(msgspec.Struct, frozen=True):
    """An object that Velero looked at, and what it says that it did."""

    kind: str
    name: str
    action: str

    def __str__(self) -> str:
        return f"{self.kind} {self.name}"


def restored_items(namespace: str, listed: bytes, results: bytes = b"{}") -> RestoredItems | None:
    """Return what happened to the objects of a namespace; None if a file is not of Velero's shape."""
    lists = named_lists(listed)
    lines = parts(results)
    if lists is None or lines is None:
        return None
    return _items([entry for place, entry in _entries(lists) if place == namespace], _existing(namespace, lines))


def restored_everywhere(listed: bytes, results: bytes = b"{}") -> RestoredItems | None:
    """Return what happened in all namespaces, and to the objects of none; None if a file is not of Velero's shape.

    If there are several namespaces, each name has its own.
    """
    lists = named_lists(listed)
    lines = parts(results)
    if lists is None or lines is None:
        return None
    entries: dict[str, list[Entry]] = {}
    for namespace, entry in _entries(lists):
        entries.setdefault(namespace, []).append(entry)
    items = {place: _items(entries[place], _existing(place, lines)) for place in sorted(entries)}
    are_named = len(entries.keys() - {""}) > 1

    def merged(group: Callable[[RestoredItems], RestoredGroup]) -> RestoredGroup:
        named = [
            f"{name} in {place}" if place and are_named else name
            for place, restored_there in items.items()
            for name in group(restored_there).names
        ]
        return RestoredGroup(
            sum(group(restored_there).count for restored_there in items.values()), tuple(named[:MOST_NAMES])
        )

    return RestoredItems(
        created=merged(lambda restored: restored.created),
        changed_back=merged(lambda restored: restored.changed_back),
        left=merged(lambda restored: restored.left),
        failed=merged(lambda restored: restored.failed),
        unchanged=sum(restored.unchanged for restored in items.values()),
        following=sum(restored.following for restored in items.values()),
    )


def _items(restored: Iterable[Entry], existing: Container[tuple[str, str]]) -> RestoredItems:
    """Return what happened to the objects of one namespace; `existing` exist and differ."""
    entries = sorted(restored, key=str)
    own = _own(entries)
    rest = [entry for entry in own if entry.action not in (_CREATED, _UPDATED, _SKIPPED)]
    return RestoredItems(
        created=_group(entry for entry in own if entry.action == _CREATED),
        changed_back=_group(entry for entry in own if entry.action == _UPDATED),
        left=_group(entry for entry in rest if (entry.kind, entry.name) in existing),
        failed=_group(entry for entry in rest if (entry.kind, entry.name) not in existing),
        unchanged=sum(entry.action == _SKIPPED for entry in own),
        following=len(entries) - len(own),
    )


def _own(entries: list[Entry]) -> list[Entry]:
    """Return the entries without those that Kubernetes makes for others."""
    names: dict[str, set[str]] = {}
    for entry in entries:
        names.setdefault(entry.kind, set()).add(entry.name)
    return [entry for entry in entries if not follows(entry, names)]


def _existing(namespace: str, results: Results) -> set[tuple[str, str]]:
    """Return the objects of which Velero warns that they exist, by kind and name; no namespace means the cluster's."""
    warnings = results.warnings or Part()
    lines = (warnings.namespaces or {}).get(namespace) if namespace else warnings.cluster
    matches = map(_EXISTS.search, lines or [])
    return {(match["kind"], match["name"]) for match in matches if match is not None}


def follows(entry: Entry, names: Mapping[str, set[str]]) -> bool:
    """Whether Kubernetes makes an object for another one of the restore, as a Pod for its ReplicaSet."""
    if (entry.kind, entry.name) in _OF_KUBERNETES:
        return True
    owners = set().union(*(names.get(kind, ()) for kind in _OWNERS.get(entry.kind, ())))
    places = [place for place, letter in enumerate(entry.name) if letter == "-"]
    return entry.name in owners or any(entry.name[:place] in owners for place in places)


def summary(items: RestoredItems) -> str:
    """Return what a restore did, in one sentence."""
    told = [
        f"{words} {group.count}{after}{_named(group)}"
        for words, group, after in (
            ("created", items.created, ""),
            ("changed back", items.changed_back, ""),
            ("left", items.left, " as they are"),
            ("failed to restore", items.failed, ""),
        )
        if group.count
    ]
    if items.unchanged:
        told.append(f"{items.unchanged} {'is' if items.unchanged == 1 else 'are'} unchanged since the backup")
    if items.following:
        told.append(f"{items.following} {'follows' if items.following == 1 else 'follow'} automatically")
    if not items.created.count and not items.changed_back.count:
        told.insert(0, "nothing was changed")
    text = "; ".join(told)
    return text[:1].upper() + text[1:]


def short_text(items: RestoredItems) -> str:
    """Return in a few words what a restore did not bring back; empty if nothing is left to do."""
    told = []
    if items.failed.count:
        told.append(f"{items.failed.count} failed")
    if items.left.count:
        told.append(f"{items.left.count} {LEFT}")
    return ", ".join(told)


def names_of(group: RestoredGroup) -> str:
    """Return the names of a group, and how many more there are."""
    more = group.count - len(group.names)
    return ", ".join(group.names) + (f" and {more} more" if more and group.names else "")


def _named(group: RestoredGroup) -> str:
    names = names_of(group)
    return f" ({names})" if names else ""


def _entries(lists: Mapping[str, list[str]]) -> Iterator[tuple[str, Entry]]:
    """Yield each object with its namespace, which is empty for an object of the cluster."""
    for gvk, texts in lists.items():
        kind = gvk.rpartition("/")[2]
        if not _KIND.fullmatch(kind):
            continue
        for match in map(_ENTRY.fullmatch, texts):
            if match is not None:
                yield match["namespace"] or "", Entry(kind, match["name"], match["action"])


def _group(entries: Iterable[Entry]) -> RestoredGroup:
    names = [str(entry) for entry in entries]
    return RestoredGroup(len(names), tuple(names[:MOST_NAMES]))
