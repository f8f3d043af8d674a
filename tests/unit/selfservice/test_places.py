"""A backup counts once, from the decision on, whoever speaks of it first."""

from foresail.selfservice.places import Places


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
