"""Requests wait in our queue: Velero gets few at a time, in a fair order, and positions count on without a jump."""

import asyncio
from collections.abc import Iterable
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.kube.failures import WRITE_REFUSED, failure
from foresail.plan import Key, Kind
from foresail.selfservice.queue.window import Limits
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.process import Moment
from tests.worlds.streams import Frozen
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_queue import Watcher
from tests.worlds.world import Answer, done


class SerialVelero:
    """Runs one object of a kind at a time, in the order of their creation."""

    def __init__(self, tenancy: Tenancy, kind: Kind = velero.BACKUP, seconds: float = 10.0) -> None:
        self.tenancy, self.kind, self.seconds = tenancy, kind, seconds
        self.order: list[str] = []  # in which they began
        self.began: dict[str, datetime] = {}
        self.most = 0
        self._line: list[str] = []
        tenancy.world.history.listeners.append(self._heard)

    def _heard(self, happening: Happening) -> None:
        if happening.kind == self.kind and happening.before is None:
            self._line.append(happening.key.name)
            self.most = max(self.most, len(self._line))

    async def work(self) -> None:
        while True:
            if not self._line:
                await asyncio.sleep(0.05)
                continue
            name, began = self._line[0], self.tenancy.clock()
            self.order.append(name)
            self.began[name] = began
            self._say(name, phase="InProgress", startTimestamp=stamp(began))
            await asyncio.sleep(self.seconds)
            self._say(name, phase="Completed", completionTimestamp=stamp(self.tenancy.clock()))
            self._line.pop(0)

    def _say(self, name: str, **status: object) -> None:
        self.tenancy.world.merge(self.kind, Key(VELERO, name), {"status": status}, "velero")

    def of(self, namespace: str) -> list[int]:
        """Return the places in the order that a namespace got."""
        return [place for place, name in enumerate(self.order) if name.startswith(f"{namespace}-")]


async def ended(tenancy: Tenancy, count: int, kind: Kind = velero.BACKUP) -> None:
    for _ in range(100_000):
        phases = [each.get("status", {}).get("phase", "") for each in tenancy.velero_objects(kind).values()]
        if sum(phase in velero.TERMINAL for phase in phases) >= count:
            return
        await asyncio.sleep(1)
    raise AssertionError(f"not all {count} have ended")


async def end(tasks: Iterable[asyncio.Task[None]], tenancy: Tenancy) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    await tenancy.stop()


def test_velero_gets_a_window_and_a_late_namespace_its_share() -> None:
    async def live() -> None:
        tenancy = Tenancy(window=2)
        watcher, engine = Watcher(tenancy), SerialVelero(tenancy)
        working = asyncio.create_task(engine.work())
        tenancy.start()
        for number in range(30):
            tenancy.back_up(Key("red", f"r{number:02}"))
        await tenancy.settle(5)
        names = [f"r{number:02}" for number in range(30)]
        waiting = [name for name in names if not any(f"red-{name}-" in begun for begun in engine.order)]
        shown = sorted(tenancy.status(Key("red", name))["queueInfo"]["estimatedQueuePosition"] for name in waiting)
        assert len(set(shown)) == 29, "each shows its own position while it waits in New"
        assert all(place <= told <= place + 1 for place, told in enumerate(shown, 1)), "and changes are told later"
        for number in range(5):
            tenancy.back_up(Key("blue", f"b{number}"))
        await ended(tenancy, 35)
        await tenancy.settle(5)
        assert engine.most <= 2
        assert engine.of("blue")[-1] <= 14, "blue takes every second turn"
        for name, positions in watcher.shown.items():
            assert positions == sorted(positions, reverse=True), f"{name}: {positions}"
            assert positions[-2:] == [1, 0], f"{name}: {positions}"
        for number in range(10, 30):
            positions = watcher.shown[f"r{number:02}"]
            near = [each for each in positions if each <= 5]
            assert near == [5, 4, 3, 2, 1, 0], "without a jump at the hand-over"
        tenancy.check()
        await tenancy.check_silence()
        await end([working], tenancy)

    virtual_time.run(live())


def test_a_newcomer_waits_for_one_backup_of_a_crowded_namespace_not_for_two() -> None:
    async def live() -> None:
        tenancy = Tenancy(window=2)
        engine = SerialVelero(tenancy)
        working = asyncio.create_task(engine.work())
        tenancy.start()
        for number in range(10):
            tenancy.back_up(Key("red", f"r{number:02}"))
        await tenancy.settle(3)
        assert (len(engine.order), engine.most) == (1, 1), "one namespace leaves the last turn to others"
        tenancy.back_up(Key("blue", "b"))
        await tenancy.settle(1)
        assert engine.most == 2
        await ended(tenancy, 11)
        assert engine.of("blue") == [1]
        await end([working], tenancy)

    virtual_time.run(live())


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "across a restart"])
def test_a_namespace_whose_backups_velero_does_not_survive_waits_and_others_do_not(*, restarts: bool) -> None:
    async def live() -> None:
        tenancy = Tenancy(window=2)
        tenancy.start()

        async def killing(name: str) -> None:
            key = Key("red", name)
            tenancy.back_up(key)
            await tenancy.settle(5)
            assert tenancy.made_for(key) is not None, f"{name} is handed over at once"
            reason = 'found a backup with status "InProgress" during the server starting, mark it as "Failed"'
            tenancy.velero_says(key, "InProgress", startTimestamp=tenancy.now())
            tenancy.velero_says(key, velero.FAILED, failureReason=reason, completionTimestamp=tenancy.now())
            await tenancy.settle(5)

        await killing("first")  # Velero may have been restarted for any reason
        await killing("second")
        if restarts:
            await tenancy.stop()
            tenancy.start()
        for number in range(3):
            tenancy.back_up(Key("red", f"r{number}"))
        tenancy.back_up(Key("blue", "b"))
        await tenancy.settle(60)
        assert tenancy.made_for(Key("red", "r0")) is None
        status, reason, message = tenancy.condition(Key("red", "r0"), "Queued")
        assert (status, reason) == ("False", "WaitingForTurn")
        assert "Velero ended while it ran backups of this namespace" in message
        assert tenancy.made_for(Key("blue", "b")) is not None
        tenancy.velero_says(Key("blue", "b"), velero.COMPLETED)
        await tenancy.settle(3400)
        assert tenancy.made_for(Key("red", "r0")) is None
        await tenancy.settle(200)
        assert tenancy.made_for(Key("red", "r0")) is not None, "after an hour it goes on"
        await tenancy.stop()

    virtual_time.run(live())


def test_a_request_whose_object_cannot_be_created_blocks_nobody() -> None:
    async def live() -> None:
        tenancy = Tenancy(window=1)
        engine = SerialVelero(tenancy, seconds=2)
        create = tenancy.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == velero.BACKUP and body["metadata"]["name"].startswith("red"):
                return failure(403, "Forbidden", "a webhook says no")
            return create(kind, body, by, namespace)

        tenancy.world.create = refusing  # type: ignore[method-assign]
        working = asyncio.create_task(engine.work())
        tenancy.start()
        for number in range(5):
            tenancy.back_up(Key("red", f"r{number}"))
        await tenancy.settle(1)
        for number in range(5):
            tenancy.back_up(Key("blue", f"b{number}"))
        await tenancy.settle(30)
        assert len(engine.order) == 5
        said = [note for note in tenancy.notes if note.reason == WRITE_REFUSED]
        assert all("a webhook says no" in note.message for note in said)
        assert {note.key for note in said} == {Key("red", f"r{number}") for number in range(5)}, (
            "an Event on each request"
        )
        tenancy.world.create = create  # type: ignore[method-assign]
        await ended(tenancy, 10)
        await tenancy.settle(10)
        await tenancy.check_silence()
        await end([working], tenancy)

    virtual_time.run(live())


@pytest.mark.parametrize("code", [500, 409])
def test_a_restore_whose_authorization_cannot_be_written_blocks_nobody(code: int) -> None:
    async def live() -> None:
        tenancy = Tenancy(restore_window=1)
        tenancy.start()
        for namespace in ("red", "blue"):
            tenancy.back_up(Key(namespace, "source"))
            await tenancy.settle(2)
            tenancy.velero_says(Key(namespace, "source"), "Completed", progress={"totalItems": 3})
        engine = SerialVelero(tenancy, velero.RESTORE, seconds=2)
        merge = tenancy.world.merge

        def refusing(kind: Kind, key: Key, patch: Document, by: str, subresource: str = "") -> Answer:
            written = [each["type"] for each in patch.get("status", {}).get("conditions", ())]
            if kind == NON_ADMIN_RESTORE and key.namespace == "blue" and "Authorized" in written:
                return failure(code, "", "the write fails")
            return merge(kind, key, patch, by, subresource)

        tenancy.world.merge = refusing  # type: ignore[method-assign]
        working = asyncio.create_task(engine.work())
        tenancy.restore(Key("blue", "stuck"), "source")
        await tenancy.settle(1)
        for number in range(4):
            tenancy.restore(Key("red", f"r{number}"), "source")
        await tenancy.settle(30)
        assert len(engine.of("red")) == 4
        assert engine.most == 1
        tenancy.world.merge = merge  # type: ignore[method-assign]
        await ended(tenancy, 5, velero.RESTORE)
        await tenancy.settle(10)
        await tenancy.check_silence()
        await end([working], tenancy)

    virtual_time.run(live())


def test_requests_that_are_deleted_while_they_wait_leave_nothing() -> None:
    async def live() -> None:
        tenancy = Tenancy(window=1)
        tenancy.start()
        for number in range(6):
            tenancy.back_up(Key("red", f"r{number}"))
        await tenancy.settle(3)
        assert len(tenancy.velero_objects()) == 1
        running = next(iter(tenancy.velero_objects()))
        for number in range(6):
            if f"red-r{number}" not in running:
                tenancy.delete(Key("red", f"r{number}"))
        await tenancy.settle(60)
        assert list(tenancy.velero_objects()) == [running]
        assert len(tenancy.world.history.present(NON_ADMIN_BACKUP)) == 1
        await tenancy.check_silence()
        await tenancy.stop()

    virtual_time.run(live())


def test_requests_that_are_deleted_during_their_hand_over_do_not_exceed_the_window() -> None:
    async def live() -> None:
        tenancy = Tenancy(window=2)
        tenancy.weather.lag = 0.01
        tenancy.start()
        most = 0

        def heard(happening: Happening) -> None:
            nonlocal most
            most = max(most, len(tenancy.velero_objects()))
            before, after = happening.before or {}, happening.after
            if happening.kind != NON_ADMIN_BACKUP or after is None:
                return
            if after["metadata"].get("finalizers") and not before.get("metadata", {}).get("finalizers"):
                asyncio.get_running_loop().call_soon(tenancy.world.delete, NON_ADMIN_BACKUP, happening.key)

        tenancy.world.history.listeners.append(heard)
        for number in range(20):
            tenancy.back_up(Key(("red", "blue")[number % 2], f"r{number:02}"))
        await tenancy.settle(60)
        assert most == 2
        await tenancy.stop()

    virtual_time.run(live())


def test_a_request_that_is_deleted_and_created_again_unseen_leaves_the_queue() -> None:
    async def live() -> None:
        tenancy = Tenancy(window=1)
        process = tenancy.start()
        engine = SerialVelero(tenancy, seconds=20)
        working = asyncio.create_task(engine.work())
        tenancy.back_up(Key("red", "first"))
        await tenancy.settle(2)
        waiting = Key("blue", "waiting")
        tenancy.back_up(waiting)
        await tenancy.settle(2)
        assert tenancy.made_for(waiting) is None
        for stream in list(process.visitor.streams):
            stream.cut()
        tenancy.delete(waiting)
        tenancy.back_up(waiting, ttl="nonsense")
        tenancy.world.history.compact()  # everything is read anew
        await tenancy.settle(10)
        assert tenancy.condition(waiting, "Accepted")[0] == "False"
        for number in range(3):
            tenancy.back_up(Key("red", f"r{number}"))
        await tenancy.settle(120)
        assert len(engine.order) == 4
        await end([working], tenancy)

    virtual_time.run(live())


def test_a_backup_that_has_ended_before_it_is_seen_frees_its_turn() -> None:
    """The next request waited until anything else happened to be due."""

    async def story() -> None:
        tenancy = Tenancy(window=1)
        process = tenancy.start()
        first, second = Key("blue", "first"), Key("red", "second")
        tenancy.back_up(first)
        tenancy.back_up(second)
        await asyncio.sleep(0)
        history, weather = tenancy.world.history, tenancy.weather
        weather.frozen = Frozen(history.revision, velero.BACKUP)
        await tenancy.settle(5)
        tenancy.velero_says(first, velero.COMPLETED)
        weather.forgotten, weather.frozen = history.revision, None
        for stream in process.visitor.streams:
            stream.cut()
        await tenancy.settle(5)
        assert tenancy.made_for(second) is not None
        await tenancy.stop()

    virtual_time.run(story())


def test_a_hand_over_that_is_never_seen_frees_its_turn_though_nothing_happens() -> None:
    """The object is deleted before the watch brings it."""

    async def live() -> None:
        tenancy = Tenancy(window=1)
        process = tenancy.start()

        def lose(happening: Happening) -> None:
            if happening.kind == velero.BACKUP and happening.before is None and "first" in happening.key.name:
                for stream in list(process.visitor.streams):
                    stream.cut()
                tenancy.world.history.listeners.remove(lose)
                loop.call_soon(vanish, happening.key)

        def vanish(made: Key) -> None:
            done(tenancy.world.delete(velero.BACKUP, made))
            tenancy.world.history.compact()  # everything is read anew

        loop = asyncio.get_running_loop()
        tenancy.world.history.listeners.append(lose)
        tenancy.back_up(Key("red", "first"))
        await tenancy.settle(5)
        tenancy.back_up(Key("blue", "second"))
        await tenancy.settle(30)
        assert sum(tenancy.births.values()) == 1
        assert tenancy.made_for(Key("red", "first")) is None
        assert tenancy.made_for(Key("blue", "second")) is None
        await tenancy.settle(90)
        assert tenancy.made_for(Key("blue", "second")) is not None
        await tenancy.stop()

    virtual_time.run(live())


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_with_a_window_a_death_at_any_write_hands_over_each_request_once(after: bool) -> None:
    async def live(write: int) -> int:
        tenancy = Tenancy(window=2)
        engine = SerialVelero(tenancy, seconds=1)
        working = asyncio.create_task(engine.work())
        running = asyncio.create_task(tenancy.keep_running([Moment(after=after, write=write)], 16))
        for number in range(4):
            tenancy.back_up(Key("red", f"r{number}"))
            tenancy.back_up(Key("blue", f"b{number}"))
        await tenancy.settle(60)
        tenancy.check()
        assert len(engine.order) == len(tenancy.velero_objects()) == 8, "nothing lost"
        assert engine.most <= 2
        assert len(set(engine.order)) == 8, "nothing twice"
        deaths = tenancy.deaths
        await end([working, running], tenancy)
        return deaths

    write = 1
    while virtual_time.run(live(write)):
        write += 1
    assert write > 24


def test_a_deletion_after_a_long_wait_and_a_death_at_the_hand_over_leaves_no_backup() -> None:
    """The old leader created the object and died; the next one does not see it yet and must not let the request go."""

    async def live() -> None:
        tenancy = Tenancy(window=1)
        first, second = Key("red", "first"), Key("red", "second")
        process = tenancy.start()
        tenancy.back_up(first)
        await tenancy.settle(2)
        tenancy.back_up(second)
        await tenancy.settle(600)
        assert tenancy.made_for(second) is None
        tenancy.velero_says(first, "Completed")
        while tenancy.made_for(second) is None:  # noqa: ASYNC110 - the world has no event for it
            await asyncio.sleep(0.0001)
        await process.kill()
        tenancy.weather.lag = 5.0
        tenancy.start()
        tenancy.edit(second, forceDeleteBackup=True)
        await tenancy.settle(120)
        assert tenancy.request(second) is None
        assert len(tenancy.velero_objects()) == 1
        tenancy.check()
        await tenancy.stop()

    virtual_time.run(live())


def scheduled(tenancy: Tenancy, name: str) -> None:
    body = {"metadata": {"name": name, "labels": {velero.SCHEDULE_LABEL: "nightly"}}, "spec": {}}
    done(tenancy.world.create(velero.BACKUP, body, "admin", VELERO))


def test_no_tenant_is_handed_over_just_before_a_slot_and_one_goes_after_it() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        slots = [tenancy.clock() + timedelta(seconds=400 + 30 * number) for number in range(20)]

        def next_slot(after: datetime) -> datetime | None:
            return next((each for each in slots if each > after), None)

        tenancy.limits = Limits(lambda: 2, next_slot=next_slot)
        engine = SerialVelero(tenancy, seconds=20)
        working = asyncio.create_task(engine.work())
        tenancy.start()
        tenancy.back_up(Key("red", "r00"))
        await tenancy.settle(60)
        for number in range(1, 40):
            tenancy.back_up(Key("red", f"r{number:02}"))
        await asyncio.sleep((slots[0] - tenancy.clock()).total_seconds() - 1)
        held = [key for key in (Key("red", f"r{number:02}") for number in range(40)) if not tenancy.made_for(key)]
        assert held
        messages = {tenancy.condition(key, "Queued")[2] for key in held}
        assert any("would delay the scheduled backup" in each for each in messages), messages
        assert all(each in engine.began for each in tenancy.velero_objects()), "none waits in Velero at the slot"
        before = len(engine.order)
        await asyncio.sleep(1)
        for number in range(20):
            scheduled(tenancy, f"nightly-{number}")
            await asyncio.sleep(30)
        runs = [place for place, name in enumerate(engine.order) if name.startswith("nightly")]
        assert runs[0] == before, "the first run waits for nobody that came later"
        between = [second - first - 1 for first, second in pairwise(runs)]
        assert max(between) <= 1, "a slot is delayed by one backup at most"
        assert sum(between) >= 10, "and nobody starves"
        await end([working], tenancy)

    virtual_time.run(live())


def test_a_backup_is_expected_to_take_as_long_as_it_is_in_the_queue_not_until_its_data_is_moved() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        slot = tenancy.clock() + timedelta(hours=2, minutes=10)
        tenancy.limits = Limits(lambda: 1, next_slot=lambda after: slot if slot > after else None)
        tenancy.start()
        first, second = Key("red", "first"), Key("red", "second")
        tenancy.back_up(first)
        await tenancy.settle(5)
        tenancy.velero_says(first, "InProgress", startTimestamp=stamp(tenancy.clock()))
        await asyncio.sleep(60)
        tenancy.velero_says(first, "WaitingForPluginOperations")
        await asyncio.sleep(7200)
        tenancy.velero_says(first, "Finalizing")
        await asyncio.sleep(5)
        tenancy.velero_says(first, "Completed", completionTimestamp=stamp(tenancy.clock()))
        await tenancy.settle(5)
        tenancy.back_up(second)
        await tenancy.settle(5)
        assert tenancy.made_for(second) is not None, "it will be out of the queue before the slot"
        await end([], tenancy)

    virtual_time.run(live())


def test_restores_have_their_own_window() -> None:
    async def live() -> None:
        tenancy = Tenancy(restore_window=1)
        tenancy.start()
        for namespace in ("red", "blue"):
            tenancy.back_up(Key(namespace, "source"))
            await tenancy.settle(2)
            tenancy.velero_says(Key(namespace, "source"), "Completed")
        engine = SerialVelero(tenancy, velero.RESTORE, seconds=3)
        working = asyncio.create_task(engine.work())
        for number in range(10):
            tenancy.restore(Key("red", f"r{number}"), "source")
        await tenancy.settle(4)
        done(tenancy.world.create(velero.RESTORE, {"metadata": {"name": "admins"}, "spec": {}}, "admin", VELERO))
        place = len(engine.order)
        tenancy.restore(Key("blue", "b"), "source")
        await ended(tenancy, 12, velero.RESTORE)
        assert engine.order.index("admins") <= place, "it waits for the one that runs"
        assert engine.of("blue")[0] <= place + 2
        assert tenancy.status(Key("red", "r9"), NON_ADMIN_RESTORE)["queueInfo"] == {"estimatedQueuePosition": 0}
        await end([working], tenancy)

    virtual_time.run(live())


async def with_source(tenancy: Tenancy) -> None:
    tenancy.start()
    tenancy.back_up(Key("red", "source"))
    await tenancy.settle(2)
    tenancy.velero_says(Key("red", "source"), "Completed")
    await tenancy.settle(2)


@pytest.mark.parametrize("quotas", [{"active": 0}, {"stored": 0}], ids=["active", "stored"])
def test_a_restore_quota_of_zero_means_none_until_it_is_raised(quotas: dict[str, int]) -> None:
    async def live() -> None:
        tenancy = Tenancy()
        await with_source(tenancy)
        tenancy.set_quotas(restores=quotas)
        one = Key("red", "one")
        tenancy.restore(one, "source")
        await tenancy.settle(30)
        assert tenancy.condition(one, "Accepted", NON_ADMIN_RESTORE)[:2] == ("False", "QuotaExceeded")
        assert tenancy.status(one, NON_ADMIN_RESTORE)["phase"] == "New"
        assert tenancy.velero_objects(velero.RESTORE) == {}
        tenancy.set_quotas(restores={"active": 1, "stored": 1})
        await tenancy.settle(5)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1
        await end([], tenancy)

    virtual_time.run(live())


def test_restores_start_one_after_the_other_within_their_quota() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        await with_source(tenancy)
        tenancy.set_quotas(restores={"active": 2, "stored": 5})
        engine = SerialVelero(tenancy, velero.RESTORE, seconds=5)
        working = asyncio.create_task(engine.work())
        for number in range(7):
            tenancy.restore(Key("red", f"r{number}"), "source")
        await tenancy.settle(120)
        assert engine.most <= 2
        assert len(engine.order) == 5, "no more than may be stored"
        held = [
            name for name in range(7) if tenancy.status(Key("red", f"r{name}"), NON_ADMIN_RESTORE)["phase"] == "New"
        ]
        assert len(held) == 2
        for name in range(7):
            if name not in held:
                tenancy.delete(Key("red", f"r{name}"), NON_ADMIN_RESTORE)
        await tenancy.settle(60)
        assert len(engine.order) == 7, "they go ahead by themselves when others are deleted"
        await end([working], tenancy)

    virtual_time.run(live())


def test_finished_restores_beyond_the_history_go_with_their_velero_restores() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        await with_source(tenancy)
        tenancy.set_quotas(restores={"history": 3})
        engine = SerialVelero(tenancy, velero.RESTORE, seconds=2)
        working = asyncio.create_task(engine.work())
        for number in range(6):
            tenancy.restore(Key("red", f"r{number}"), "source")
            await tenancy.settle(10)
        left = {key.name for key in tenancy.world.history.present(NON_ADMIN_RESTORE)}
        assert left == {"r3", "r4", "r5"}
        assert len(tenancy.velero_objects(velero.RESTORE)) == 3
        tenancy.set_quotas(restores={"history": 1})
        await tenancy.settle(30)
        assert {key.name for key in tenancy.world.history.present(NON_ADMIN_RESTORE)} == {"r5"}
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1
        await tenancy.check_silence()
        await end([working], tenancy)

    virtual_time.run(live())
