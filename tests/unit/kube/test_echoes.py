"""A key is held until the watches have brought what was written for it, and no longer than a moment."""

import asyncio

import pytest

from foresail.kube import echoes
from foresail.kube.echoes import Echoes, Written
from foresail.kube.reflector import Interest
from foresail.plan import Key, Kind

PARENT, CHILD = Kind("", "v1", "parents", "Parent"), Kind("", "v1", "children", "Child")
UNWATCHED = Kind("", "v1", "strangers", "Stranger")
WATCHED = [Interest(kind, bytes, bytes) for kind in (PARENT, CHILD)]
A, B = Key("ns", "a"), Key("ns", "b")


@pytest.fixture
def given() -> list[Key]:
    return []


def run(given: list[Key], *steps: tuple[Key, list[Written]] | Written) -> list[list[Key]]:
    """Hold keys and let watches reach versions, in turn; return what had been given back after each step."""

    async def body() -> list[list[Key]]:
        held = Echoes(WATCHED, given.append)
        after = []
        for step in steps:
            if isinstance(step, Written):
                held.reached([PARENT, CHILD].index(step.kind), step.version)
            else:
                held.hold(*step)
            after.append(list(given))
        return after

    return asyncio.run(body())


def test_a_key_for_which_nothing_was_written_is_given_back_at_once(given: list[Key]) -> None:
    assert run(given, (A, [])) == [[A]]


def test_what_the_watch_has_brought_already_holds_nothing(given: list[Key]) -> None:
    assert run(given, Written(PARENT, 7), (A, [Written(PARENT, 7)])) == [[], [A]]


def test_a_kind_that_is_not_watched_has_no_echo(given: list[Key]) -> None:
    assert run(given, (A, [Written(UNWATCHED, 7)])) == [[A]]


def test_a_key_is_held_until_every_kind_has_reached_what_was_written(given: list[Key]) -> None:
    both = [Written(CHILD, 5), Written(PARENT, 6)]
    assert run(given, (A, both), Written(PARENT, 6), Written(CHILD, 4), Written(CHILD, 5)) == [[], [], [], [A]]


def test_a_later_version_is_an_echo_of_all_before_it(given: list[Key]) -> None:
    assert run(given, (A, [Written(PARENT, 5)]), (B, [Written(PARENT, 6)]), Written(PARENT, 9)) == [[], [], [A, B]]


def test_two_keys_may_wait_for_the_same_version(given: list[Key]) -> None:
    assert run(given, (B, [Written(PARENT, 5)]), (A, [Written(PARENT, 5)]), Written(PARENT, 5))[-1] == [B, A]


def test_a_write_without_an_echo_holds_its_key_for_a_moment_and_a_late_echo_does_not_count(
    given: list[Key], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(echoes, "_LONGEST", 0.01)

    async def body() -> None:
        held = Echoes(WATCHED, given.append)
        held.hold(A, [Written(PARENT, 5)])
        await asyncio.sleep(0.05)
        assert given == [A]
        held.hold(A, [Written(PARENT, 8)])
        held.reached(0, 5)
        assert given == [A]
        held.reached(0, 8)
        assert given == [A, A]

    asyncio.run(body())


def test_of_two_watches_of_one_kind_the_one_that_shows_the_write_is_waited_for(given: list[Key]) -> None:
    """The other one was ahead by an object of its own, and the key was looked at before its write was seen."""

    async def body() -> None:
        held = Echoes(
            [Interest(CHILD, bytes, bytes, labels="job"), Interest(CHILD, bytes, bytes, labels="ours,!job")],
            given.append,
        )
        held.hold(A, [Written(CHILD, 5, "ns", {"ours": "yes"})])
        held.reached(0, 9)
        assert given == []
        held.reached(1, 5)
        assert given == [A]

    asyncio.run(body())


def test_a_watch_of_another_namespace_is_not_waited_for(given: list[Key]) -> None:
    async def body() -> None:
        held = Echoes([Interest(CHILD, bytes, bytes, "elsewhere")], given.append)
        held.hold(A, [Written(CHILD, 5, "ns")])
        assert given == [A]

    asyncio.run(body())
