"""What goes because something else went: children whose owners are gone, and the content of deleted namespaces.

Only what the runtime relies on: an object goes once all its owners are gone, in the background. Owners that block,
orphans on request and the tidying of lists with one owner left are beyond this world.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from foresail.plan import Key, Kind
from tests.worlds.documents import Document
from tests.worlds.history import Happening

if TYPE_CHECKING:
    from tests.worlds.world import World

NAMESPACE = Kind("", "v1", "namespaces", "Namespace", namespaced=False)
DELAY = 0.5  # the real collector works behind a queue of its own


def collect(world: "World") -> None:
    """Keep a world tidy from now on."""
    _Collector(world)


class _Collector:
    """Knows whose children each owner has, so that nothing is searched for."""

    def __init__(self, world: "World") -> None:
        self._world = world
        self._uids: set[str] = set()
        self._children: dict[str, set[tuple[Kind, Key]]] = {}
        world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        at = happening.kind, happening.key
        if happening.after is None:
            self._gone(happening.gone["metadata"])
        else:
            metadata = happening.after["metadata"]
            self._uids.add(metadata["uid"])
            for owner in _owners(happening.after):
                self._children.setdefault(owner, set()).add(at)
            if happening.before is None and _owners(happening.after):
                _later(partial(self._judge, *at))
            if happening.kind == NAMESPACE and metadata.get("deletionTimestamp"):
                _later(partial(self._empty, happening.key))
        if happening.kind.namespaced and happening.after is None:
            namespace = Key("", happening.key.namespace)
            if self._is_going(namespace):
                _later(partial(self._empty, namespace))

    def _gone(self, metadata: Document) -> None:
        self._uids.discard(metadata["uid"])
        for child in self._children.pop(metadata["uid"], ()):
            _later(partial(self._judge, *child))

    def _judge(self, kind: Kind, key: Key) -> None:
        """Delete an object if it had owners and none is left; looked at now, not when the question arose."""
        document = self._world.history.present(kind).get(key)
        if document is not None and _owners(document) and self._uids.isdisjoint(_owners(document)):
            self._world.delete(kind, key, document["metadata"]["uid"])

    def _is_going(self, namespace: Key) -> bool:
        found = self._world.history.present(NAMESPACE).get(namespace)
        return found is not None and "deletionTimestamp" in found["metadata"]

    def _empty(self, namespace: Key) -> None:
        if not self._is_going(namespace):
            return
        left = [
            (kind, key)
            for kind in self._world.kinds
            if kind.namespaced
            for key in self._world.history.present(kind)
            if key.namespace == namespace.name
        ]
        for kind, key in left:
            self._world.delete(kind, key)
        if not left:
            self._world.finish(namespace)


def _owners(document: Document) -> list[str]:
    return [owner["uid"] for owner in document["metadata"].get("ownerReferences") or ()]


def _later(work: Callable[[], None]) -> None:
    asyncio.get_running_loop().call_later(DELAY, work)
