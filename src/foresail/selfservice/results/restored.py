"""What a restore did to the objects of a namespace: from Velero's list of restored objects, and its results.

Velero's list calls an object `failed` that exists and differs; only the warning about it says so. Both files come
from a bucket, so they may hold anything.
"""

import re
from collections.abc import Iterable, Iterator, Mapping

import msgspec

from foresail.api.nonadmin import RestoredGroup, RestoredItems
from foresail.api.velero_files import named_lists
from foresail.selfservice.results.file import Results, parts

MOST_NAMES = 5
"""Names that the status keeps of each group."""

LEFT, CHANGE_BACK = "left as they are", "--existing-resource-policy update"
"""What a restore does with objects that exist and differ, and the option with which it changes them."""

_ENTRY = re.compile(r"(?P<namespace>[-a-z0-9]{1,63})/(?P<name>[-a-zA-Z0-9.:_]{1,253})\((?P<action>[a-z]*)\)")
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
    entries = sorted(_entries(namespace, lists), key=str)
    existing = _existing(namespace, lines)
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
    """Return the objects of which Velero warns that they exist, by kind and name."""
    by_namespace = (results.warnings.namespaces if results.warnings else None) or {}
    matches = map(_EXISTS.search, by_namespace.get(namespace) or [])
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


def _entries(namespace: str, lists: Mapping[str, list[str]]) -> Iterator[Entry]:
    for gvk, texts in lists.items():
        kind = gvk.rpartition("/")[2]
        if not _KIND.fullmatch(kind):
            continue
        for match in map(_ENTRY.fullmatch, texts):
            if match is not None and match["namespace"] == namespace:
                yield Entry(kind, match["name"], match["action"])


def _group(entries: Iterable[Entry]) -> RestoredGroup:
    names = [str(entry) for entry in entries]
    return RestoredGroup(len(names), tuple(names[:MOST_NAMES]))
