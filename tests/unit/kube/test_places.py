"""How many requests are under way at once, and what a refusal changes about it."""

import asyncio

from foresail.kube.places import Places


def test_no_more_are_under_way_than_there_are_places_and_they_come_in_order() -> None:
    async def test() -> None:
        places, gate, begun = Places(2), asyncio.Event(), list[int]()

        async def request(number: int) -> None:
            async with places:
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


def test_each_refusal_takes_half_of_the_places_and_leaves_one() -> None:
    places = Places(16)
    numbers = []
    for _ in range(6):
        places.refused()
        numbers.append(places.number)
    assert numbers == [8, 4, 2, 1, 1, 1]


def test_those_that_are_let_through_give_the_places_back_and_no_more() -> None:
    places = Places(8)
    for _ in range(10):
        places.refused()
    numbers = []
    for _ in range(60):
        places.admitted()
        numbers.append(places.number)
    assert numbers == sorted(numbers)
    assert set(numbers) == {2, 3, 4, 5, 6, 7, 8}


def test_after_a_refusal_nobody_begins_until_there_are_few_enough() -> None:
    async def test() -> None:
        places, ends, begun = Places(4), [asyncio.Event() for _ in range(6)], list[int]()

        async def request(number: int) -> None:
            async with places:
                begun.append(number)
                await ends[number].wait()

        async with asyncio.TaskGroup() as group:
            for number in range(6):
                group.create_task(request(number))
            await asyncio.sleep(0)
            places.refused()
            for number, known in ((0, 4), (1, 4), (2, 5), (3, 6)):
                ends[number].set()
                for _ in range(3):
                    await asyncio.sleep(0)
                assert len(begun) == known, f"after the end of {number}"
            for end in ends:
                end.set()

    asyncio.run(test())


def test_whoever_gives_up_waiting_leaves_the_place_to_the_next() -> None:
    async def test(turns: int) -> None:
        places, gate, begun = Places(1), asyncio.Event(), list[str]()

        async def request(name: str) -> None:
            async with places:
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
