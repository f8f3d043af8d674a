"""The queue, on an event loop whose real waits are short; instants come from a clock that a test sets."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta

import pytest

from foresail.kube.queue import Queue
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.virtual_time import WallClock

NOON = datetime(2026, 11, 15, 12, tzinfo=UTC)


class Clock:
    def __init__(self) -> None:
        self.now = NOON
        self.asked = 0  # by each worker that looks for a key, so also how often one did

    def __call__(self) -> datetime:
        self.asked += 1
        return self.now


def run(test: Callable[[Queue, Clock], Awaitable[None]]) -> None:
    async def body() -> None:
        clock = Clock()
        await asyncio.wait_for(test(Queue(clock, clock_check=0.01), clock), 60)

    asyncio.run(body())


async def take(queue: Queue, count: int) -> list[str]:
    found = []
    for _ in range(count):
        key = await queue.get()
        queue.done(key)
        found.append(str(key))
    return found


async def idle(queue: Queue, count: int) -> list[asyncio.Task[Key]]:
    workers = [asyncio.create_task(queue.get()) for _ in range(count)]
    await turns()
    return workers


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


async def is_empty(queue: Queue) -> bool:
    try:
        await asyncio.wait_for(queue.get(), 0.05)
    except TimeoutError:
        return True
    return False


def test_a_key_that_is_asked_for_often_comes_once() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        for _again in range(3):
            queue.add(Key("ns", "a"))
        assert len(queue) == 1
        assert await take(queue, 1) == ["ns/a"]
        assert await is_empty(queue)

    run(test)


def test_a_clock_that_is_set_back_brings_every_key_that_waits_for_an_instant() -> None:
    async def test(queue: Queue, clock: Clock) -> None:
        clock.now = NOON + timedelta(days=365)
        queue.add(Key("ns", "a"))
        assert await take(queue, 1) == ["ns/a"]
        queue.add_at(Key("ns", "a"), clock.now + timedelta(hours=1))
        queue.add_at(Key("ns", "b"), clock.now + timedelta(days=1))
        assert await is_empty(queue)
        clock.now = NOON
        assert sorted(await take(queue, 2)) == ["ns/a", "ns/b"]
        assert await is_empty(queue)

    run(test)


def test_the_first_of_one_tenant_does_not_wait_for_the_thousands_of_another() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        for number in range(10_000):
            queue.add(Key("big", f"{number:05}"))
        queue.add(Key("small", "a"))
        queue.add(Key("small", "b"))
        assert await take(queue, 4) == ["big/00000", "small/a", "big/00001", "small/b"]

    run(test)


def test_live_changes_come_before_what_was_there_at_the_start() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        for name in "abc":
            queue.add(Key("ns", name), initial=True)
        queue.add(Key("ns", "c"))
        queue.add(Key("ns", "d"))
        assert await take(queue, 4) == ["ns/c", "ns/d", "ns/a", "ns/b"]

    run(test)


@pytest.mark.parametrize("also_live", [False, True])
def test_a_key_that_changed_meanwhile_comes_again_with_the_higher_of_its_priorities(also_live: bool) -> None:
    async def test(queue: Queue, _: Clock) -> None:
        queue.add(Key("ns", "a"))
        key = await queue.get()
        queue.add(key, initial=True)
        if also_live:
            queue.add(key)
            queue.add(key, initial=True)
        queue.done(key)
        queue.add(Key("ns", "b"))
        assert await take(queue, 2) == (["ns/a", "ns/b"] if also_live else ["ns/b", "ns/a"])
        assert await is_empty(queue)

    run(test)


def test_a_key_is_worked_on_by_one_worker_and_comes_again_if_it_changed_meanwhile() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        queue.add(Key("ns", "a"))
        key = await queue.get()
        queue.add(key)
        queue.add(key, initial=True)
        assert await is_empty(queue)
        queue.done(key)
        assert await take(queue, 1) == ["ns/a"]
        assert await is_empty(queue)

    run(test)


def test_a_later_wake_up_replaces_an_earlier_one() -> None:
    async def test(queue: Queue, clock: Clock) -> None:
        queue.add_at(Key("ns", "a"), NOON + timedelta(hours=1))
        queue.add_at(Key("ns", "b"), NOON + timedelta(hours=2))
        queue.add_at(Key("ns", "a"), NOON + timedelta(hours=3))
        assert await is_empty(queue)
        clock.now = NOON + timedelta(hours=2)
        assert await take(queue, 1) == ["ns/b"]
        assert await is_empty(queue)
        queue.add_at(Key("ns", "a"), None)
        clock.now = NOON + timedelta(hours=4)
        assert await is_empty(queue)
        assert queue.delayed == 0

    run(test)


@pytest.mark.parametrize("step", [timedelta(hours=1), timedelta(seconds=-30)])
def test_a_clock_that_is_set_is_followed(step: timedelta) -> None:
    async def test(queue: Queue, clock: Clock) -> None:
        queue.add_at(Key("ns", "a"), NOON + timedelta(minutes=30))
        waiting = asyncio.create_task(queue.get())
        await asyncio.sleep(0.03)
        clock.now = NOON + step
        await asyncio.sleep(0.05)
        assert waiting.done() is (step > timedelta(0))
        clock.now = NOON + timedelta(minutes=30)
        assert await waiting == Key("ns", "a")

    run(test)


def test_keys_that_fail_together_come_back_spread_and_none_before_the_server_asked() -> None:
    async def test(_: Queue, clock: Clock) -> None:
        dice = iter((0.0, 0.5, 1.0, 1.0, 0.0))
        queue = Queue(clock, jitter=lambda: next(dice))
        assert [queue.retry(Key("ns", name)) for name in "abc"] == [0.2, pytest.approx(0.225), 0.25]
        assert [queue.retry(Key("ns", name), 8.0) for name in "de"] == [10.0, 8.0]

    run(test)


def test_live_changes_without_end_let_what_was_there_at_the_start_through_one_in_ten() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        for number in range(3):
            queue.add(Key("old", str(number)), initial=True)
        found = []
        for number in range(40):  # there is always another live change
            queue.add(Key("new", str(number)))
            queue.add(Key("new", f"{number}-too"))
            found += await take(queue, 1)
        assert [place for place, key in enumerate(found) if key.startswith("old/")] == [9, 19, 29]

    run(test)


def test_a_failure_waits_longer_each_time_and_a_success_forgets_it() -> None:
    async def test(_: Queue, clock: Clock) -> None:
        queue = Queue(clock, jitter=lambda: 0.0)
        key = Key("ns", "a")
        assert [queue.retry(key) for _ in range(10)] == [0.2, 0.4, 0.8, 1.6, 3.2, 6.4, 12.8, 25.6, 51.2, 60.0]
        queue.succeeded(key)
        assert queue.retry(key) == 0.2

    run(test)


def test_workers_share_ten_thousand_instants_of_one_second_and_handle_each_once() -> None:
    async def test(queue: Queue, clock: Clock) -> None:
        for number in range(10_000):
            queue.add_at(Key(f"ns-{number % 7}", str(number)), NOON + timedelta(microseconds=number * 100))
        handled: list[Key] = []
        finished = asyncio.Event()

        async def worker() -> None:
            while True:
                key = await queue.get()
                handled.append(key)
                if len(handled) == 10_000:
                    finished.set()
                await asyncio.sleep(0)
                queue.done(key)

        workers = [asyncio.create_task(worker()) for _ in range(8)]
        clock.now = NOON + timedelta(seconds=2)
        await finished.wait()
        for one in workers:
            one.cancel()
        assert len(set(handled)) == len(handled) == 10_000

    run(test)


def test_the_oldest_key_tells_how_long_the_queue_is() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        assert queue.age() == 0
        queue.add(Key("ns", "a"), initial=True)
        await asyncio.sleep(0.05)
        assert queue.age() >= 0.05

    run(test)


@pytest.mark.parametrize("turns", range(6))
def test_a_worker_that_is_cancelled_just_as_a_key_comes_takes_it_or_leaves_it_but_never_both(turns: int) -> None:
    async def test(queue: Queue, _: Clock) -> None:
        queue.add_at(Key("ns", "later"), NOON + timedelta(hours=1))
        worker = asyncio.create_task(queue.get())
        await asyncio.sleep(0.005)
        queue.add(Key("ns", "a"))
        for _turn in range(turns):
            await asyncio.sleep(0)
        was_done = worker.done()
        worker.cancel()
        await asyncio.wait([worker])
        assert worker.cancelled() is not was_done
        assert len(queue) == (0 if was_done else 1)

    run(test)


def test_a_key_that_comes_wakes_one_worker() -> None:
    async def test(queue: Queue, clock: Clock) -> None:
        workers = await idle(queue, 16)
        for number in range(16):
            clock.asked = 0
            queue.add(Key("ns", str(number)))
            await turns()
            assert (clock.asked, sum(worker.done() for worker in workers)) == (1, number + 1)
        assert {worker.result().name for worker in workers} == {str(number) for number in range(16)}

    run(test)


def test_who_is_cancelled_when_a_key_has_just_woken_it_leaves_it_to_another() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        first, second, third = await idle(queue, 3)
        queue.add(Key("ns", "a"))
        first.cancel()
        assert await second == Key("ns", "a")
        third.cancel()
        queue.add(Key("ns", "b"))
        await turns()
        assert first.cancelled()
        assert third.cancelled()
        assert await take(queue, 1) == ["ns/b"]

    run(test)


def test_instants_are_met_to_the_millisecond_however_many_workers_are_busy_or_idle() -> None:
    async def run() -> None:
        clock = WallClock()
        queue, noon = Queue(clock), clock()
        wanted = [noon + timedelta(seconds=second) for second in (0.25, 0.5, 3.7, 3600, 3600.1)]
        for number, instant in enumerate(wanted):
            queue.add_at(Key("ns", str(number)), instant)
        queue.add_after(Key("ns", "after"), 10)
        found = []

        async def worker() -> None:
            while True:
                key = await queue.get()
                found.append((key.name, clock()))
                await asyncio.sleep(1)  # so that the second instant finds one of two busy, and the last as well
                queue.done(key)

        workers = [asyncio.create_task(worker()) for _ in range(2)]
        await asyncio.sleep(4000)
        for one in workers:
            one.cancel()
        assert [name for name, _ in found] == ["0", "1", "2", "after", "3", "4"]
        late = [
            at - instant
            for (_, at), instant in zip(found, sorted([*wanted, noon + timedelta(seconds=10)]), strict=True)
        ]
        assert timedelta(0) <= min(late) <= max(late) < timedelta(milliseconds=1)

    virtual_time.run(run())


def test_one_worker_reads_the_clock_once_a_second_while_a_wake_up_is_pending() -> None:
    async def run() -> None:
        clock = Clock()
        queue = Queue(clock)
        queue.add_at(Key("ns", "a"), NOON + timedelta(days=1))
        workers = await idle(queue, 16)
        clock.asked = 0
        await asyncio.sleep(60)
        assert clock.asked <= 2 * 60
        for one in workers:
            one.cancel()
        await turns()
        clock.asked = 0
        await asyncio.sleep(60)
        assert clock.asked == 0

    virtual_time.run(run())


def test_wake_ups_set_at_every_reconcile_or_taken_back_need_no_more_memory() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        expiry = NOON + timedelta(days=30)
        tracemalloc.start()
        for look in range(5_000):
            queue.add_at(Key("ns", "stays"), expiry)
            queue.add_at(Key("ns", f"went-{look}"), expiry)
            queue.add_at(Key("ns", f"went-{look}"), None)
            queue.add_at(Key("ns", "moves"), expiry + timedelta(seconds=look))
        held, _peak = tracemalloc.get_traced_memory()
        tracemalloc.stop()
        assert queue.delayed == 2
        assert held < 100_000

    run(test)


def test_what_was_added_retried_and_how_long_it_waited_is_counted_once_for_each_reconcile() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        waits: list[float] = []
        queue.on_waited = waits.append
        for _again in range(2):
            queue.add(Key("ns", "a"), initial=True)
        queue.add(Key("ns", "a"))
        assert queue.adds == 1
        key = await queue.get()
        assert len(queue.unfinished()) == 1
        for _again in range(2):
            queue.add(key)  # it changes while it is worked on
        queue.done(key)
        assert queue.adds == 2
        assert queue.unfinished() == []
        assert await take(queue, 1) == ["ns/a"]
        queue.retry(key)
        assert (queue.retries, len(waits)) == (1, 2)
        assert await take(queue, 1) == ["ns/a"]
        assert queue.adds == 3

    run(test)


def test_a_key_that_waited_on_a_follower_is_measured_from_the_moment_that_it_leads() -> None:
    async def test(queue: Queue, _: Clock) -> None:
        waits: list[float] = []
        queue.on_waited = waits.append
        queue.add(Key("ns", "a"))
        await asyncio.sleep(0.2)
        queue.workers_since = asyncio.get_running_loop().time()
        await take(queue, 1)
        assert waits[0] < 0.2

    run(test)
