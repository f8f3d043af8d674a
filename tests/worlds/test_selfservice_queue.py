"""The queue as tenants see it: numbers only fall, near ones at once, far ones in their own time, and no storm."""

import asyncio
from collections import Counter
from itertools import pairwise

import pytest

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.kube.failures import failure
from foresail.plan import Key, Kind
from foresail.selfservice.queue.positions import NEAR, PER_SECOND
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.world import Answer, done


class Watcher:
    """Records every number that was ever shown, and when."""

    def __init__(self, tenancy: Tenancy) -> None:
        self.shown: dict[str, list[int]] = {}
        self.at: list[tuple[float, int]] = []  # when a number other than the first was written, and which
        tenancy.world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.kind != NON_ADMIN_BACKUP or happening.after is None:
            return
        position = happening.after.get("status", {}).get("queueInfo", {}).get("estimatedQueuePosition")
        seen = self.shown.setdefault(happening.key.name, [])
        if position is not None and (not seen or seen[-1] != position):
            if seen:
                self.at.append((asyncio.get_running_loop().time(), position))
            seen.append(position)


def waiting(tenancy: Tenancy) -> list[Document]:
    """Return the Backups that wait, as Velero orders them."""
    found = [each for each in tenancy.velero_objects().values() if _phase(each) in velero.WAITING]
    return sorted(found, key=lambda each: (each.get("status", {}).get("queuePosition", 0), each["metadata"]["uid"]))


def set_status(tenancy: Tenancy, backup: Document, **status: object) -> None:
    at = Key(VELERO, backup["metadata"]["name"])
    done(tenancy.world.merge(velero.BACKUP, at, {"status": status}, "velero"))


def _phase(backup: Document) -> str:
    return str(backup.get("status", {}).get("phase", ""))


@pytest.mark.parametrize("numbers", [True, False], ids=["Velero numbers them", "Velero does not"])
def test_numbers_only_fall_to_one_and_then_to_zero(numbers: bool) -> None:
    async def live() -> None:
        tenancy = Tenancy()
        watcher = Watcher(tenancy)
        tenancy.start()
        for number in range(20):
            tenancy.back_up(Key("red" if number % 2 else "blue", f"b{number:02}"))
        await tenancy.settle(5)
        if numbers:
            for place, each in enumerate(waiting(tenancy), 1):
                set_status(tenancy, each, phase="Queued", queuePosition=place)
            await tenancy.settle(2)
        while line := waiting(tenancy):
            first = line[0]
            set_status(tenancy, first, phase="ReadyToStart", queuePosition=None)
            if numbers:
                for place, each in enumerate(line[1:], 1):
                    set_status(tenancy, each, queuePosition=place)
                    await asyncio.sleep(0.01)
            set_status(tenancy, first, phase="InProgress")
            await tenancy.settle(3)
            set_status(tenancy, first, phase="Completed")
            await tenancy.settle(1)
        assert len(watcher.shown) == 20
        for name, shown in watcher.shown.items():
            assert shown == sorted(shown, reverse=True), f"{name}: {shown}"
            assert shown[-2:] == [1, 0], f"{name}: {shown}"
        await tenancy.check_silence()
        await tenancy.stop()

    virtual_time.run(live())


def test_with_a_long_queue_progress_costs_one_write_and_a_move_no_storm() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        watcher = Watcher(tenancy)
        process = tenancy.start()
        for number in range(400):
            tenancy.back_up(Key("red", f"b{number:03}"))
        await tenancy.settle(60)
        line = waiting(tenancy)
        set_status(tenancy, line[0], phase="InProgress")
        await tenancy.settle(120)
        before = len(process.visitor.writes)
        set_status(tenancy, line[0], progress={"totalItems": 10, "itemsBackedUp": 5})
        await tenancy.settle(120)
        assert len(process.visitor.writes) - before == 1

        watcher.at.clear()
        before = len(process.visitor.writes)
        for first, following in pairwise(line[:11]):
            set_status(tenancy, first, phase="Completed")
            set_status(tenancy, following, phase="InProgress")
            await tenancy.settle(1)
        far = Counter(int(when) for when, position in watcher.at if position > NEAR)
        assert max(far.values(), default=0) <= PER_SECOND + 1, "the seconds of two clocks are cut at different instants"
        near = sum(position <= NEAR for _, position in watcher.at)
        assert near <= 10 * (NEAR + 2)
        # When the queue stands still, everybody learns where they are: a slot each, twenty in a second.
        await tenancy.settle(400 / PER_SECOND + 45)
        shown = sorted(each[-1] for each in watcher.shown.values())
        assert shown == sorted([0] * 10 + list(range(1, 391)))
        assert all(
            each["refused"] is None for each in ({"refused": one.refused} for one in process.visitor.writes[before:])
        )
        await tenancy.check_silence()
        await tenancy.stop()

    virtual_time.run(live())


@pytest.mark.parametrize("ends", ["deleted", "refused after all"])
@pytest.mark.parametrize("asked", [NON_ADMIN_BACKUP, NON_ADMIN_RESTORE], ids=lambda kind: kind.name)
def test_what_never_came_to_velero_keeps_no_place_in_its_queue(asked: Kind, ends: str) -> None:
    async def live() -> None:
        tenancy = Tenancy()
        create, refused = tenancy.world.create, list[str]()

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind in (velero.BACKUP, velero.RESTORE) and body["metadata"]["name"].startswith("red-never"):
                refused.append(body["metadata"]["name"])
                return failure(403, "Forbidden", "a webhook says no")
            return create(kind, body, by, namespace)

        def ask(key: Key) -> None:
            _ = tenancy.back_up(key) if asked == NON_ADMIN_BACKUP else tenancy.restore(key, "source")

        tenancy.world.create = refusing  # type: ignore[method-assign]
        tenancy.start()
        never, after = Key("red", "never"), Key("blue", "after")
        for key in (Key("red", "source"), Key("blue", "source")):
            tenancy.back_up(key)
            await tenancy.settle(2)
            tenancy.velero_says(key, "Completed")
        ask(never)
        await tenancy.settle(2)
        assert refused
        if ends == "deleted":
            tenancy.delete(never, asked)
        else:
            closed = {"metadata": {"labels": {"foresail.dev/self-service": None}}}
            done(tenancy.world.merge(NAMESPACE, Key("", "red"), closed, "admin"))
        await tenancy.settle(120)
        if ends == "deleted":
            assert tenancy.request(never, asked) is None
        else:
            assert tenancy.condition(never, "Accepted", asked)[1] == "NoPolicy"
        ask(after)
        await tenancy.settle(2)
        assert tenancy.status(after, asked)["queueInfo"] == {"estimatedQueuePosition": 1}
        await tenancy.stop()

    virtual_time.run(live())
