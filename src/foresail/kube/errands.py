"""What takes longer than a look and writes nothing: it is done beside the work, and what it brings wakes the key.

A decision asks for it, and a later decision about the same key sees what came of it. Nothing of it is kept: whoever
leads next sends for it again.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import Any, Generic, Protocol, TypeVar, runtime_checkable

from foresail.plan import Brought, Key

Wish = TypeVar("Wish")
Found = TypeVar("Found")


def _never(_: object) -> bool:
    return False


class Errands(Generic[Wish, Found]):
    """Runs the errands of one controller while this process leads: one for a key at a time, a few at once in all.

    `run` brings something back whatever happens: a failure is something found too. Where some are quick, the others
    get half of the places only: they may hang, and the quick ones wait for each other at most.
    """

    def __init__(
        self,
        run: Callable[[Wish], Awaitable[Found]],
        *,
        at_once: int = 2,
        is_quick: Callable[[Wish], bool] = _never,
    ) -> None:
        self.wake: Callable[[Key], None] = lambda _: None
        self.clock: Callable[[], datetime] | None = None  # without it, an errand begins when it is sent
        self._run = run
        self._at_once = at_once
        self._is_quick = is_quick
        self._brought: dict[Key, Brought[Wish, Found]] = {}
        self._out: dict[Key, tuple[Wish, datetime]] = {}
        self._waiting: asyncio.Queue[tuple[Key, tuple[Wish, datetime]]] = asyncio.Queue()
        self._quick: asyncio.Queue[tuple[Key, tuple[Wish, datetime]]] = asyncio.Queue()

    def brought(self, key: Key) -> Brought[Wish, Found] | None:
        """Return what the last errand for a key has brought."""
        return self._brought.get(key)

    def send(self, key: Key, wish: Wish, now: datetime) -> None:
        """Send for something, unless somebody is on the way for this key."""
        if key not in self._out:
            errand = self._out[key] = wish, now
            (self._quick if self._is_quick(wish) else self._waiting).put_nowait((key, errand))

    def forget(self, key: Key) -> None:
        """Forget what was brought for a key; what is still on its way is not waited for."""
        self._brought.pop(key, None)
        self._out.pop(key, None)

    async def work(self) -> None:
        """Run errands until cancelled; those that are not done then are for the next leader, maybe us."""
        try:
            async with asyncio.TaskGroup() as group:
                quick = 0 if self._is_quick is _never else max(self._at_once // 2, 1)
                for number in range(self._at_once):
                    group.create_task(self._go(self._quick if number < quick else self._waiting))
        finally:
            left = list(self._out)
            self._out.clear()
            self._waiting, self._quick = asyncio.Queue(), asyncio.Queue()
            for key in left:
                self.wake(key)

    async def _go(self, waiting: asyncio.Queue[tuple[Key, tuple[Wish, datetime]]]) -> None:
        while True:
            key, errand = await waiting.get()
            if self._out.get(key) is not errand:
                continue  # forgotten before it began
            wish, sent = errand
            began = self.clock() if self.clock is not None else sent
            found = await self._run(wish)
            if self._out.get(key) is not errand:
                continue  # forgotten meanwhile
            del self._out[key]
            before = self._brought.get(key)
            tries = before.tries + 1 if before is not None and before.wish == wish else 1
            self._brought[key] = Brought(wish, found, began, tries)
            self.wake(key)


@runtime_checkable
class SendsErrands(Protocol):
    """A controller whose decisions need what only an errand can bring."""

    @property
    def errands(self) -> Errands[Any, Any]:
        """Its errands; whoever runs the controller runs them too."""
