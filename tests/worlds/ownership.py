"""Whose each field is: what server-side apply asks before it changes one.

Maps are owned field by field and lists as a whole. That is how the API server treats kinds without a schema; the
lists that it merges by key in kinds with one are beyond this world.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from tests.worlds.documents import Document

Path = tuple[str, ...]
_OWNED_METADATA = ("labels", "annotations", "finalizers", "ownerReferences")
_ABSENT = object()


@dataclass(frozen=True, slots=True)
class Manager:
    """Who writes, and how: the same program applying and updating counts as two."""

    name: str
    operation: str
    subresource: str = ""


Owners = Mapping[Manager, frozenset[Path]]


@dataclass(frozen=True, slots=True)
class Taken:
    """The fields that cannot be applied, because someone else wants them otherwise."""

    fields: tuple[str, ...]


def fields(document: Document) -> dict[Path, object]:
    """Return every field that can have an owner, with its value."""
    metadata = {name: document["metadata"][name] for name in _OWNED_METADATA if name in document.get("metadata", {})}
    rest = {name: value for name, value in document.items() if name not in ("apiVersion", "kind", "metadata")}
    return dict(_leaves({"metadata": metadata, **rest} if metadata else rest, ()))


def _leaves(value: object, path: Path) -> Iterator[tuple[Path, object]]:
    if isinstance(value, dict) and (value or not path):
        for name, inner in value.items():
            yield from _leaves(inner, (*path, name))
    else:
        yield path, value


def updated(owners: Owners, manager: Manager, before: Document, after: Document) -> Owners:
    """Return who owns what after a plain write: whatever it changed is the writer's alone."""
    old, new = fields(_apart(before, after)), fields(_apart(after, before))
    changed = {path for path in old.keys() | new.keys() if old.get(path, _ABSENT) != new.get(path, _ABSENT)}
    left = {each: owned - changed for each, owned in owners.items()}
    left[manager] = left.get(manager, frozenset()) | frozenset(changed & new.keys())
    return {each: owned for each, owned in left.items() if owned}


def _apart(document: Document, other: Document) -> Document:
    """Return the parts of a document that it does not share with another: a write leaves the rest as it was."""
    return {name: value for name, value in document.items() if other.get(name, _ABSENT) is not value}


def applied(owners: Owners, manager: Manager, before: Document, declared: Document) -> tuple[Document, Owners] | Taken:
    """Return what applying makes of a document: the declared fields set, those no longer declared gone."""
    wanted, old = fields(declared), fields(before)
    others = [owned for each, owned in owners.items() if each != manager]
    taken = [
        path
        for path, value in wanted.items()
        if old.get(path, _ABSENT) != value and any(path in owned for owned in others)
    ]
    if taken:
        return Taken(tuple(".".join(path) for path in sorted(taken)))
    document = before
    for path in owners.get(manager, frozenset()) - wanted.keys():
        if path in old and not any(path in owned for owned in others):
            document = _without(document, path)
    for path, value in wanted.items():
        document = _with(document, path, value)
    left = {**owners, manager: frozenset(wanted)}
    return document, {each: owned for each, owned in left.items() if owned}


def _with(document: Document, path: Path, value: object) -> Document:
    name, *rest = path
    if not rest:
        # A map that is declared empty asks for a map, not for the loss of what others have put into it.
        return document if value == {} and isinstance(document.get(name), dict) else {**document, name: value}
    inner = document.get(name)
    return {**document, name: _with(inner if isinstance(inner, dict) else {}, tuple(rest), value)}


def _without(document: Document, path: Path) -> Document:
    name, *rest = path
    inner: Any = document.get(name)
    if rest and isinstance(inner, dict):
        left = _without(inner, tuple(rest))
        return {**document, name: left} if left else _without(document, (name,))
    return {known: value for known, value in document.items() if known != name}
