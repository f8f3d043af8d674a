"""A backup counts once, from the decision on, whoever speaks of it first."""

from hypothesis import given
from hypothesis import strategies as st

from foresail.selfservice.policy.quota_ledger import Places


def test_a_promise_counts_until_velero_s_object_is_seen_and_then_that_counts() -> None:
    places = Places()
    places.promise("red", "a")
    assert (places.stored("uid", "red", ""), places.active("uid", "red", "")) == (1, 1)
    places.hold("uid", "a", is_active=True)
    assert (places.stored("uid", "red", ""), places.active("uid", "red", "")) == (1, 1)
    places.settle("red", "a")
    assert (places.stored("uid", "red", ""), places.active("uid", "red", "")) == (1, 1)
    assert places.hold("uid", "a", is_active=False)
    assert (places.stored("uid", "red", ""), places.active("uid", "red", "")) == (1, 0)
    places.free("uid", "a")
    assert (places.stored("uid", "red", ""), places.active("uid", "red", "")) == (0, 0)


def test_nobody_stands_in_their_own_way() -> None:
    places = Places()
    places.promise("red", "a")
    places.hold("uid", "b", is_active=True)
    assert (places.stored("uid", "red", "a"), places.stored("uid", "red", "b")) == (1, 1)
    assert (places.active("uid", "red", "a"), places.active("uid", "red", "b")) == (1, 1)


def test_a_namespace_that_was_made_again_does_not_inherit() -> None:
    places = Places()
    places.hold("old", "a", is_active=False)
    assert places.stored("new", "red", "") == 0


def test_a_backup_that_goes_before_its_request_says_that_it_was_made_is_a_promise_again() -> None:
    places = Places()
    places.hold("uid", "a", is_active=True)
    places.promise("red", "a")
    assert places.stored("uid", "red", "") == 1
    places.free("uid", "a")
    assert (places.stored("uid", "red", ""), places.active("uid", "red", "")) == (1, 1)
    assert places.stored("uid", "red", "a") == 0
    places.settle("red", "a")
    assert places.stored("uid", "red", "") == 0


@given(st.lists(st.tuples(st.sampled_from(["promise", "settle", "run", "end", "free"]), st.integers(0, 4))))
def test_places_say_what_counting_says(steps: list[tuple[str, int]]) -> None:
    places, promised, held = Places(), set[str](), dict[str, bool]()
    for step, number in steps:
        name = str(number)
        match step:
            case "promise":
                places.promise("red", name)
                promised.add(name)
            case "settle":
                places.settle("red", name)
                promised.discard(name)
            case "free":
                places.free("uid", name)
                held.pop(name, None)
            case _:
                was_active = held.get(name, False)
                assert places.hold("uid", name, is_active=step == "run") == (was_active and step == "end")
                held[name] = step == "run"
        for but in ("", "0"):
            unseen = len(promised - held.keys() - {but})
            assert places.stored("uid", "red", but) == len(held.keys() - {but}) + unseen
            assert places.active("uid", "red", but) == sum(held[each] for each in held.keys() - {but}) + unseen
        assert places.usage("uid", "red") == (places.stored("uid", "red", ""), places.active("uid", "red", ""))
