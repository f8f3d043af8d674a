"""How many requests are in flight, and how a 429 changes that."""

import asyncio

from foresail.kube.requests import RequestLimiter


def test_no_more_are_in_flight_than_the_limit_and_they_enter_in_order() -> None:
    async def test() -> None:
        limiter, gate, begun = RequestLimiter(2), asyncio.Event(), list[int]()

        async def request(number: int) -> None:
            async with limiter:
                begun.append(number)
                await gate.wait()

        async with asyncio.TaskGroup() as group:
            for number in range(5):
                group.create_task(request(number))
            await asyncio.sleep(0)
            assert begun == [0, 1]
            gate.set()
        assert begun == [0, 1, 2, 3, 4]

    asyncio.run(test())


def test_each_429_halves_the_limit_down_to_one() -> None:
    limiter = RequestLimiter(16)
    numbers = []
    for _ in range(6):
        limiter.throttle()
        numbers.append(limiter.limit)
    assert numbers == [8, 4, 2, 1, 1, 1]


def test_other_answers_raise_the_limit_up_to_the_maximum() -> None:
    limiter = RequestLimiter(8)
    for _ in range(10):
        limiter.throttle()
    numbers = []
    for _ in range(60):
        limiter.recover()
        numbers.append(limiter.limit)
    assert numbers == sorted(numbers)
    assert set(numbers) == {2, 3, 4, 5, 6, 7, 8}


def test_after_a_429_no_request_starts_until_few_enough_are_in_flight() -> None:
    async def test() -> None:
        limiter, ends, begun = RequestLimiter(4), [asyncio.Event() for _ in range(6)], list[int]()

        async def request(number: int) -> None:
            async with limiter:
                begun.append(number)
                await ends[number].wait()

        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(request(number))
            await asyncio.sleep(0)
            limiter.throttle()
            for number, known in ((0, 4), (1, 4), (2, 5), (3, 6)):
                ends[number].set()
                for _ in range(3):
                    await asyncio.sleep(0)
                assert len(begun) == known, f"after the end of {number}"
            for end in ends:
                end.set()

    asyncio.run(test())


def test_a_cancelled_waiter_lets_the_next_one_in() -> None:
    async def test(turns: int) -> None:
        limiter, gate, begun = RequestLimiter(1), asyncio.Event(), list[str]()

        async def request(name: str) -> None:
            async with limiter:
                begun.append(name)
                await gate.wait()

        first, second, third = (asyncio.create_task(request(name)) for name in ("first", "second", "third"))
        await asyncio.sleep(0)
        gate.set()
        for _ in range(turns):
            await asyncio.sleep(0)
        second.cancel()
        await asyncio.gather(first, second, third, return_exceptions=True)
        assert begun[0] == "first"
        assert begun[-1] == "third"

    for turns in range(5):
        asyncio.run(test(turns))
