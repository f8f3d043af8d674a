"""Sees to it that a controller's `observe`, `decide` and `keys` set nothing: its whole memory is compared around each.

What is only a shorter way to the same answer is no memory, and is left out by name.
"""

import asyncio
from collections import Counter, deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

import msgspec
from prometheus_client.metrics import MetricWrapperBase

from foresail.kube.controller import Controller, Informer
from foresail.kube.store import Store

_MEMOS = {("FairQueue", "_steps"), ("FairQueue", "_typical"), ("Turns", "_first"), ("Telling", "_beyond")}
_PLAIN = (str, int, float, bool, bytes, datetime, type(None))


def memory(controller: object) -> tuple[tuple[str, object], ...]:
    """Return everything that a controller holds, as one value that is equal only to that of an equal memory."""
    found: list[tuple[str, object]] = []
    known: set[int] = set()

    def walk(what: object, way: str) -> None:
        if isinstance(what, _PLAIN):
            found.append((way, what))
        elif isinstance(what, tuple) or (isinstance(what, msgspec.Struct) and type(what).__struct_config__.frozen):
            found.append((way, id(what)))  # it cannot change; it is kept alive by whoever compares
        else:
            found.append((way, id(what)))
            if id(what) not in known:
                known.add(id(what))
                for name, value in _parts(what):
                    walk(value, f"{way}.{name}")

    walk(controller, type(controller).__name__)
    return tuple(found)


def _parts(what: object) -> Iterator[tuple[object, object]]:
    if isinstance(what, (Store, asyncio.Queue, MetricWrapperBase)):
        yield "content", _content(what)
    elif isinstance(what, dict):
        yield from what.items()
    elif isinstance(what, (set, frozenset)):
        yield from ((each, None) for each in sorted(what, key=repr))
    elif isinstance(what, (list, deque)):
        yield from enumerate(what)
    elif isinstance(what, msgspec.Struct):
        yield from ((name, getattr(what, name)) for name in type(what).__struct_fields__)
    elif type(what).__module__.startswith("foresail."):
        slots = [name for each in type(what).__mro__ for name in getattr(each, "__slots__", ())]
        for name in (*getattr(what, "__dict__", {}), *slots):
            if (type(what).__name__, name) not in _MEMOS:
                yield name, getattr(what, name, None)


def _content(what: Store[Any] | asyncio.Queue[Any] | MetricWrapperBase) -> object:
    if isinstance(what, Store):
        return hash((tuple(map(id, what.rows())), tuple(what.unread)))
    return what.qsize() if isinstance(what, asyncio.Queue) else repr(list(what.collect()))


class Guard:
    """Compares the memory of the controllers that it guards; `calls` says how often it did."""

    def __init__(self) -> None:
        self.calls: Counter[str] = Counter()
        self.faults: set[str] = set()

    def __call__(self, controller: Controller[Any]) -> None:
        """Guard a controller from now on."""
        guard, known = self, type(controller)

        def guarded(name: str, call: Callable[..., Any]) -> Callable[..., Any]:
            def checked(*arguments: object) -> object:
                before = memory(controller)
                answer = call(*arguments)
                answer = list(answer) if name.startswith("keys") else answer
                guard.calls[name.partition(" ")[0]] += 1
                changed = set(before) ^ set(memory(controller))
                guard.faults |= {f"{known.__name__}: {name} changed {way}" for way, _ in changed}
                return answer

            return checked

        class Guarded(known):  # type: ignore[misc, valid-type]
            @property
            def informers(self) -> Iterable[Informer]:
                return tuple(
                    replace(each, keys=guarded(f"keys {each.spec.kind.name}", each.keys)) for each in super().informers
                )

        Guarded.__module__ = known.__module__
        controller.__class__ = Guarded
        for name in ("observe", "decide"):
            setattr(controller, name, guarded(name, getattr(controller, name)))
