"""A key waits until the watches have observed what was written for it, for a moment at most."""

import asyncio

import pytest

from foresail.kube import expectations
from foresail.kube.expectations import Expectations, Written
from foresail.kube.reflector import WatchSpec
from foresail.plan import Key, Kind

PARENT, CHILD = Kind("", "v1", "parents", "Parent"), Kind("", "v1", "children", "Child")
UNWATCHED = Kind("", "v1", "strangers", "Stranger")
WATCHED = [WatchSpec(kind, bytes, bytes) for kind in (PARENT, CHILD)]
A, B = Key("ns", "a"), Key("ns", "b")


@pytest.fixture
def given() -> list[Key]:
    return []


def run(given: list[Key], *steps: tuple[Key, list[Written]] | Written) -> list[list[Key]]:
    """Expect writes and let watches reach versions, in turn; return the keys released after each step."""

    async def body() -> list[list[Key]]:
        tracker = Expectations(WATCHED, given.append)
        after = []
        for step in steps:
            if isinstance(step, Written):
                tracker.observed([PARENT, CHILD].index(step.kind), step.version)
            else:
                tracker.expect(*step)
            after.append(list(given))
        return after

    return asyncio.run(body())


def test_a_key_for_which_nothing_was_written_is_released_at_once(given: list[Key]) -> None:
    assert run(given, (A, [])) == [[A]]


def test_an_observed_write_delays_nothing(given: list[Key]) -> None:
    assert run(given, Written(PARENT, 7), (A, [Written(PARENT, 7)])) == [[], [A]]


def test_a_kind_that_is_not_watched_is_not_expected(given: list[Key]) -> None:
    assert run(given, (A, [Written(UNWATCHED, 7)])) == [[A]]


def test_a_key_waits_until_every_kind_has_reached_what_was_written(given: list[Key]) -> None:
    both = [Written(CHILD, 5), Written(PARENT, 6)]
    assert run(given, (A, both), Written(PARENT, 6), Written(CHILD, 4), Written(CHILD, 5)) == [[], [], [], [A]]


def test_a_later_version_confirms_all_before_it(given: list[Key]) -> None:
    assert run(given, (A, [Written(PARENT, 5)]), (B, [Written(PARENT, 6)]), Written(PARENT, 9)) == [[], [], [A, B]]


def test_two_keys_may_wait_for_the_same_version(given: list[Key]) -> None:
    assert run(given, (B, [Written(PARENT, 5)]), (A, [Written(PARENT, 5)]), Written(PARENT, 5))[-1] == [B, A]


def test_an_unobserved_write_delays_its_key_for_a_moment_and_a_late_event_does_not_count(
    given: list[Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(expectations, "_MAX_SECONDS", 0.01)

    async def body() -> None:
        tracker = Expectations(WATCHED, given.append)
        tracker.expect(A, [Written(PARENT, 5)])
        await asyncio.sleep(0.05)
        assert given == [A]
        tracker.expect(A, [Written(PARENT, 8)])
        tracker.observed(0, 5)
        assert given == [A]
        tracker.observed(0, 8)
        assert given == [A, A]

    asyncio.run(body())


def test_of_two_watches_of_one_kind_the_one_that_shows_the_write_is_waited_for(given: list[Key]) -> None:
    """The other one was ahead by an object of its own, and the key was looked at before its write was seen."""

    async def body() -> None:
        tracker = Expectations(
            [WatchSpec(CHILD, bytes, bytes, labels="job"), WatchSpec(CHILD, bytes, bytes, labels="ours,!job")],
            given.append,
        )
        tracker.expect(A, [Written(CHILD, 5, "ns", {"ours": "yes"})])
        tracker.observed(0, 9)
        assert given == []
        tracker.observed(1, 5)
        assert given == [A]

    asyncio.run(body())


def test_a_watch_of_another_namespace_is_not_waited_for(given: list[Key]) -> None:
    async def body() -> None:
        tracker = Expectations([WatchSpec(CHILD, bytes, bytes, "elsewhere")], given.append)
        tracker.expect(A, [Written(CHILD, 5, "ns")])
        assert given == [A]

    asyncio.run(body())
