"""Parents in a world, the example controller that gives each one child, and what must be so when all is quiet."""

import asyncio
from collections.abc import Callable
from datetime import timedelta
from typing import TYPE_CHECKING

from one_child_each import CHILD, OWNER, PARENT, OneChildEach

from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import Moment, Process
from tests.worlds.streams import Weather
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor, Write
from tests.worlds.world import Definition, World, done

if TYPE_CHECKING:
    from tests.worlds.documents import Document

SETTLED = 200.0  # seconds: more than the longest back-off, the longest pause and the stall of a watch together
SILENCE = 300.0


class Scene:
    """One world with its people: the controller, and whoever makes parents or takes names."""

    def __init__(self) -> None:
        self.clock = WallClock()
        self.world = World(self.clock, Definition(PARENT), Definition(CHILD, status=False, generation=False))
        self.weather = Weather()
        self.foreign: dict[Key, Document] = {}
        self.births: list[Happening] = []
        self.untrue: list[Happening] = []  # a status that spoke of a child which that parent never had
        self.process: Process | None = None
        for name in ("red", "blue"):
            self.world.create(NAMESPACE, {"metadata": {"name": name}}, "admin")
        self.world.history.listeners.append(self._heard)

    # What people do

    def make_parent(self, key: Key) -> None:
        done(self.world.create(PARENT, {"metadata": {"name": key.name}}, "tenant", key.namespace))

    def delete_parent(self, key: Key) -> None:
        done(self.world.delete(PARENT, key))

    def edit_parent(self, key: Key, colour: int) -> None:
        done(self.world.merge(PARENT, key, {"spec": {"colour": colour}}, "tenant"))

    def take_name(self, key: Key) -> None:
        """Put an object of someone else where a child would be, if the name is free."""
        body = {"metadata": {"name": key.name, "labels": {"whose": "somebody"}}}
        made = self.world.create(CHILD, body, "somebody", key.namespace)
        if not isinstance(made, Failure):
            self.foreign[key] = made

    def free_name(self, key: Key) -> None:
        del self.foreign[key]
        done(self.world.delete(CHILD, key))

    def delete_child(self, key: Key) -> None:
        done(self.world.delete(CHILD, key))

    def step_clock(self, by: timedelta) -> None:
        self.clock.step(by)

    # The controller

    @property
    def visitor(self) -> Visitor:
        assert self.process is not None
        return self.process.visitor

    def start(self, dies: Moment | None = None, workers: int = 16) -> Process:
        visitor = Visitor(self.world, weather=self.weather)
        self.process = Process(visitor, OneChildEach(), dies=dies, workers=workers)
        return self.process

    async def restart(self, dies: Moment | None = None) -> Process:
        if self.process is not None:
            await self.process.kill()
        return self.start(dies)

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.kill()
            self.process = None

    # What must be so

    async def settle(self, seconds: float = SETTLED) -> None:
        await asyncio.sleep(seconds)

    def check(self) -> None:
        """Every parent has one child with its mark, nothing is left over, and what is someone else's is untouched."""
        assert self.untrue == []
        parents, maps = self.world.history.present(PARENT), self.world.history.present(CHILD)
        children = {key: document for key, document in maps.items() if key not in self.foreign}
        assert {key: maps.get(key) for key in self.foreign} == self.foreign
        expected = {key: parent["metadata"]["uid"] for key, parent in parents.items() if key not in self.foreign}
        assert {key: child["metadata"]["annotations"][OWNER] for key, child in children.items()} == expected
        assert expected.keys() <= {key for key, parent in parents.items() if parent.get("status")}

    async def check_silence(self) -> None:
        """Nothing is written any more; only a name that someone else has may be asked for again, in vain."""
        revision, before = self.world.history.revision, len(self.visitor.writes)
        await asyncio.sleep(SILENCE)
        assert self.world.history.revision == revision
        assert [write for write in self.visitor.writes[before:] if not self._in_vain(write)] == []

    def births_by_owner(self) -> dict[str, int]:
        """Return how many children were ever made with the mark of each parent."""
        marks = [birth.after["metadata"]["annotations"][OWNER] for birth in self.births if birth.after]
        return {mark: marks.count(mark) for mark in marks}

    def _in_vain(self, write: Write) -> bool:
        return write.kind == CHILD and write.key in self.foreign and write.refused is Cause.ALREADY_EXISTS

    def _heard(self, happening: Happening) -> None:
        if happening.after is None:
            return
        metadata = happening.after["metadata"]
        if happening.kind == CHILD and happening.before is None and OWNER in metadata.get("annotations", {}):
            self.births.append(happening)
        if happening.kind == PARENT and happening.after.get("status") and metadata["uid"] not in self.births_by_owner():
            self.untrue.append(happening)


async def eventually(holds: Callable[[], object], seconds: float = SETTLED) -> None:
    async with asyncio.timeout(seconds):
        while not holds():  # noqa: ASYNC110 - what it waits for is somebody else's business
            await asyncio.sleep(0.05)
