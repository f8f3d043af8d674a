"""Keys in order of arrival, with namespaces taking turns: a crowd in one namespace does not delay another."""

from collections import OrderedDict
from collections.abc import Iterator
from typing import Generic, TypeVar

from foresail.plan import Key

Value = TypeVar("Value")


class Turns(Generic[Value]):
    """Waiting keys, each once and with a value."""

    __slots__ = ("_by_namespace", "_length")

    def __init__(self) -> None:
        self._by_namespace: OrderedDict[str, OrderedDict[Key, Value]] = OrderedDict()
        self._length = 0

    def __len__(self) -> int:
        return self._length

    def __contains__(self, key: Key) -> bool:
        return key in self._by_namespace.get(key.namespace, ())

    def push(self, key: Key, value: Value) -> None:
        """Add a key; one that waits already keeps its value."""
        keys = self._by_namespace.get(key.namespace)
        if keys is None:
            keys = self._by_namespace[key.namespace] = OrderedDict()
        if key not in keys:
            keys[key] = value
            self._length += 1

    def pop(self) -> tuple[Key, Value]:
        """Remove and return the next key and its value; there must be one."""
        namespace, keys = self._by_namespace.popitem(last=False)
        found = keys.popitem(last=False)
        self._length -= 1
        if keys:
            self._by_namespace[namespace] = keys  # this namespace is now last
        return found

    def drop(self, key: Key) -> None:
        """Remove a key, if it waits."""
        keys = self._by_namespace.get(key.namespace)
        if keys is not None and keys.pop(key, None) is not None:
            self._length -= 1
            if not keys:
                del self._by_namespace[key.namespace]

    def firsts(self) -> Iterator[tuple[Key, Value]]:
        """Return the first key of each namespace and its value."""
        return (next(iter(keys.items())) for keys in self._by_namespace.values())
