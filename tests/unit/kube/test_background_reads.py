"""Background reads: one per key at a time, a few at once; a result wakes the key, and none outlives leadership."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta

import pytest

from foresail.kube.background_reads import BackgroundReads
from foresail.plan import Key, ReadResult
from tests.worlds import virtual_time

NOW = datetime(2026, 1, 1, tzinfo=UTC)
ONE, TWO, THREE = (Key("red", name) for name in ("one", "two", "three"))


class Source:
    """What is read: each read waits until the test lets it return."""

    def __init__(self, is_quick: Callable[[str], bool] | None = None, quick: int = 1) -> None:
        self.gates: dict[str, asyncio.Event] = {}
        self.there: list[str] = []
        self.woken: list[Key] = []
        if is_quick is None:
            self.background_reads = BackgroundReads[str, str](self._read, concurrency=2)
        else:
            self.background_reads = BackgroundReads[str, str](self._read, concurrency=1, is_quick=is_quick, quick=quick)
        self.background_reads.wake = self.woken.append

    async def _read(self, query: str) -> str:
        self.there.append(query)
        await self.gates.setdefault(query, asyncio.Event()).wait()
        return query.upper()

    def open(self, query: str) -> None:
        self.gates.setdefault(query, asyncio.Event()).set()


async def a_moment() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def test_what_is_brought_wakes_its_key_and_only_a_few_are_out_at_once() -> None:
    async def story() -> None:
        source = Source()
        working = asyncio.create_task(source.background_reads.work())
        for key in (ONE, TWO, THREE, ONE):
            source.background_reads.request(key, key.name, NOW)
        await a_moment()
        assert source.there == ["one", "two"]
        source.open("two")
        await a_moment()
        assert source.woken == [TWO]
        assert source.background_reads.result(TWO) == ReadResult("two", "TWO", NOW, 1)
        assert source.there == ["one", "two", "three"]
        source.background_reads.request(TWO, "two", NOW)
        source.open("one")
        source.open("three")
        await a_moment()
        again = source.background_reads.result(TWO)
        assert again is not None
        assert again.attempts == 2
        source.background_reads.request(TWO, "one", NOW)
        await a_moment()
        assert source.background_reads.result(TWO) == ReadResult("one", "ONE", NOW, 1), "another query is counted anew"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_what_is_forgotten_on_its_way_is_not_brought() -> None:
    async def story() -> None:
        source = Source()
        working = asyncio.create_task(source.background_reads.work())
        source.background_reads.request(ONE, "one", NOW)
        await a_moment()
        source.background_reads.forget(ONE)
        source.open("one")
        await a_moment()
        assert source.background_reads.result(ONE) is None
        assert source.woken == []
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_losing_leadership_requeues_whoever_waited_for_a_read() -> None:
    async def story() -> None:
        source = Source()
        working = asyncio.create_task(source.background_reads.work())
        for key in (ONE, TWO, THREE):
            source.background_reads.request(key, key.name, NOW)
        await a_moment()
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        assert source.woken == [ONE, TWO, THREE]
        for name in ("one", "two", "three"):
            source.open(name)
        await a_moment()
        assert source.background_reads.result(ONE) is None
        again = asyncio.create_task(source.background_reads.work())
        source.background_reads.request(ONE, "one", NOW)
        await a_moment()
        assert source.background_reads.result(ONE) is not None
        again.cancel()
        await asyncio.gather(again, return_exceptions=True)

    asyncio.run(story())


def test_what_waited_for_a_place_is_as_old_as_its_run() -> None:
    async def story() -> None:
        source, late = Source(), NOW + timedelta(minutes=5)
        source.background_reads.clock = lambda: late if "one" in source.gates and source.gates["one"].is_set() else NOW
        working = asyncio.create_task(source.background_reads.work())
        for key in (ONE, TWO, THREE):
            source.background_reads.request(key, key.name, NOW)
        await a_moment()
        for name in ("one", "three"):
            source.open(name)
        await a_moment()
        assert source.background_reads.result(ONE) == ReadResult("one", "ONE", NOW, 1, late - NOW)
        assert source.background_reads.result(THREE) == ReadResult("three", "THREE", late, 1)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_what_hangs_leaves_places_to_what_is_quick() -> None:
    async def story() -> None:
        source = Source(is_quick=lambda query: query == "three")
        working = asyncio.create_task(source.background_reads.work())
        for key in (ONE, TWO, THREE):
            source.background_reads.request(key, key.name, NOW)
        source.open("three")
        await a_moment()
        assert source.there.count("three") == 1
        assert source.woken == [THREE]
        assert "two" not in source.there, "the others have a worker of their own"
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_what_is_forgotten_and_sent_again_goes_once_and_in_its_own_place() -> None:
    async def story() -> None:
        source = Source(is_quick=lambda query: query == "two")
        source.background_reads.request(ONE, "two", NOW)
        source.background_reads.forget(ONE)
        source.background_reads.request(ONE, "one", NOW)
        working = asyncio.create_task(source.background_reads.work())
        await a_moment()
        source.background_reads.request(TWO, "two", NOW)
        await a_moment()
        assert source.there == ["one", "two"]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_a_crowd_of_one_namespace_does_not_delay_the_read_of_another() -> None:
    async def story() -> None:
        read: list[str] = []
        all_read = asyncio.Event()

        async def reading(query: str) -> str:
            read.append(query)
            if len(read) == 51:
                all_read.set()
            return query

        reads = BackgroundReads[str, str](reading, concurrency=1)
        for number in range(50):
            reads.request(Key("crowd", f"{number}"), f"crowd {number}", NOW)
        reads.request(Key("blue", "only"), "blue", NOW)
        working = asyncio.create_task(reads.work())
        await all_read.wait()
        working.cancel()
        assert read[:3] == ["crowd 0", "blue", "crowd 1"]
        assert read[-1] == "crowd 49"

    asyncio.run(story())


def test_quick_reads_that_wait_with_the_same_query_share_one_read() -> None:
    async def story() -> None:
        source = Source(is_quick=lambda _: True)
        working = asyncio.create_task(source.background_reads.work())
        source.background_reads.request(Key("red", "before"), "other", NOW)
        await a_moment()
        for key in (ONE, TWO, THREE):
            source.background_reads.request(key, "same", NOW)
        source.background_reads.forget(ONE)
        for query in ("other", "same"):
            source.open(query)
        await a_moment()
        assert source.there == ["other", "same"]
        assert source.woken == [Key("red", "before"), TWO, THREE]
        assert source.background_reads.result(THREE) == ReadResult("same", "SAME", NOW, 1)
        assert source.background_reads.result(ONE) is None, "it was forgotten while it waited"
        assert source.background_reads.requested == []
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_a_read_that_began_before_the_request_is_never_its_answer() -> None:
    async def story() -> None:
        source = Source(is_quick=lambda _: True, quick=3)
        working = asyncio.create_task(source.background_reads.work())
        source.background_reads.request(ONE, "same", NOW)
        await a_moment()
        for key in (TWO, THREE):  # what they ask about may have changed since the read began
            source.background_reads.request(key, "same", NOW)
        await a_moment()
        assert source.there == ["same"], "one read of a query at a time"
        source.background_reads.clock = lambda: NOW + timedelta(seconds=1)
        source.open("same")
        await a_moment()
        assert source.there == ["same", "same"]
        assert source.woken == [ONE, TWO, THREE]
        results = [source.background_reads.result(key) for key in (ONE, TWO, THREE)]
        later = NOW + timedelta(seconds=1)
        assert [each and each.started for each in results] == [NOW, later, later]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_a_request_that_was_forgotten_and_repeated_during_a_shared_read_waits_for_the_next() -> None:
    async def story() -> None:
        source = Source(is_quick=lambda _: True)
        working = asyncio.create_task(source.background_reads.work())
        for key in (ONE, TWO):
            source.background_reads.request(key, "same", NOW)
        await a_moment()
        assert source.there == ["same"]
        source.background_reads.forget(TWO)
        source.background_reads.request(TWO, "same", NOW)
        source.open("same")
        await a_moment()
        assert source.there == ["same", "same"]
        assert source.woken == [ONE, TWO]
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_slow_reads_are_not_shared() -> None:
    async def story() -> None:
        source = Source()
        for key in (ONE, TWO, THREE):
            source.background_reads.request(key, "same", NOW)
        source.open("same")
        working = asyncio.create_task(source.background_reads.work())
        await a_moment()
        assert source.there == ["same"] * 3
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)

    asyncio.run(story())


def test_a_crowd_with_queries_of_its_own_is_not_searched_for_each_read() -> None:
    """Each query is compared with its equals alone: whoever varies the queries must not make each read cost more."""

    class Query:
        compared = 0

        def __init__(self, number: int) -> None:
            self.number = number

        def __hash__(self) -> int:
            return self.number

        def __eq__(self, other: object) -> bool:
            Query.compared += 1
            return isinstance(other, Query) and other.number == self.number

    async def story() -> None:
        last = asyncio.Event()

        async def reading(query: Query) -> int:
            if query.number == 999:
                last.set()
            return query.number

        reads = BackgroundReads[Query, int](reading, concurrency=1, is_quick=lambda _: True, quick=1)
        for number in range(1000):
            reads.request(Key("crowd", f"{number}"), Query(number), NOW)
        working = asyncio.create_task(reads.work())
        await last.wait()
        working.cancel()
        assert Query.compared < 10_000

    asyncio.run(story())


def test_a_read_that_raises_ends_no_other_and_is_counted_and_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    async def story() -> list[int]:
        attempts: list[str] = []

        async def read(query: str) -> str:
            attempts.append(query)
            if attempts.count(query) < 3 and query == "one":
                raise RecursionError("too deep")
            return query.upper()

        reads, woken = BackgroundReads[str, str](read, concurrency=1), list[Key]()
        reads.wake = woken.append
        working = asyncio.create_task(reads.work())
        reads.request(ONE, "one", NOW)
        reads.request(TWO, "two", NOW)
        await asyncio.sleep(1)
        assert (woken, reads.requested) == ([TWO], [ONE])
        assert reads.age(NOW + timedelta(seconds=90)) == 90
        found = [reads.failures]
        await asyncio.sleep(3 * 60)
        found.append(reads.failures)
        assert reads.result(ONE) == ReadResult("one", "ONE", NOW, 1)
        assert attempts == ["one", "two", "one", "one"]
        assert reads.age(NOW) == 0
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return found

    assert virtual_time.run(story()) == [1, 2]
    assert "the background read for red/one failed" in caplog.text


def test_a_read_that_raised_is_not_tried_again_if_it_is_forgotten() -> None:
    async def story() -> int:
        attempts: list[str] = []

        async def read(query: str) -> str:
            attempts.append(query)
            raise ValueError(query)

        reads = BackgroundReads[str, str](read)
        working = asyncio.create_task(reads.work())
        reads.request(ONE, "one", NOW)
        await asyncio.sleep(1)
        reads.forget(ONE)
        await asyncio.sleep(3 * 60)
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
        return len(attempts)

    assert virtual_time.run(story()) == 1
