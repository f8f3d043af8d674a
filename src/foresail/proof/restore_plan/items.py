"""The items of a backup, and the kinds that the cluster serves: what a restore plan starts from."""

import copy
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

MUST_INCLUDE = "restore.velero.io/must-include-additional-items"
"""The annotation that lets what an item brings along pass every filter."""

Document = dict[str, Any]


@dataclass(frozen=True, slots=True, order=True)
class ItemKey:
    """An item by its resource as Velero writes it, such as `deployments.apps`, its namespace and its name."""

    resource: str
    namespace: str
    name: str

    def __str__(self) -> str:
        return f"{self.resource}/{self.namespace}/{self.name}" if self.namespace else f"{self.resource}/{self.name}"


@dataclass(frozen=True, slots=True)
class Item:
    """An item of a backup; `problem` is set instead of a body if its file cannot be read."""

    key: ItemKey
    body: Document = field(default_factory=dict, hash=False, compare=False)
    problem: str = ""

    @property
    def labels(self) -> Mapping[str, str]:
        """Its labels."""
        return texts(metadata(self.body).get("labels"))

    @property
    def annotations(self) -> Mapping[str, str]:
        """Its annotations."""
        return texts(metadata(self.body).get("annotations"))

    def copied(self) -> Document:
        """Return its body, free to be changed."""
        return copy.deepcopy(self.body)


@dataclass(frozen=True, slots=True)
class ServedKind:
    """A resource that the API server serves, with its versions and its other names."""

    group: str
    plural: str
    kind: str
    is_namespaced: bool
    versions: tuple[str, ...] = ("v1",)
    aliases: tuple[str, ...] = ()

    @property
    def resource(self) -> str:
        """Its name as Velero writes it."""
        return f"{self.plural}.{self.group}" if self.group else self.plural


class Served:
    """Every resource of the cluster, found by any of its names as Velero's discovery finds it."""

    def __init__(self, kinds: Iterable[ServedKind]) -> None:
        self._kinds = {kind.resource: kind for kind in kinds}
        self._by_word: dict[str, list[ServedKind]] = {}
        for kind in self._kinds.values():
            for word in {kind.plural, kind.kind.lower(), *kind.aliases}:
                self._by_word.setdefault(word, []).append(kind)

    def kind(self, resource: str) -> ServedKind | None:
        """Return a resource by its full name."""
        return self._kinds.get(resource)

    def full_name(self, name: str) -> str:
        """Return the full name of the resource that a name means, or the name itself if it means none."""
        first, _, group = name.lower().partition(".")
        kinds = [kind for kind in self._by_word.get(first, ()) if kind.group.startswith(group)]
        core = [kind for kind in kinds if not kind.group]
        return (core or kinds)[0].resource if kinds else name


def metadata(body: Document) -> Document:
    """Return the metadata of an object, empty if it has none."""
    meta = body.get("metadata")
    return meta if isinstance(meta, dict) else {}


def at(body: Document, *path: str) -> Any:  # noqa: ANN401 - a field of any type
    """Return a nested field; None if it is absent or its parents are no objects."""
    value: Any = body
    for name in path:
        value = value.get(name) if isinstance(value, dict) else None
    return value


def mapping(value: object) -> Document:
    """Return an object, and an empty one for anything else that a field may hold."""
    return value if isinstance(value, dict) else {}


def sequence(value: object) -> list[Any]:
    """Return a list, and an empty one for anything else that a field may hold."""
    return value if isinstance(value, list) else []


def texts(value: object) -> dict[str, str]:
    """Return the entries of an object whose values are text."""
    return {name: text for name, text in mapping(value).items() if isinstance(text, str)}
