"""Groups of namespaces are stable: whoever comes or goes changes one Schedule."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from foresail.protection.groups import new_groups, order, regrouped

NAMES = st.sets(st.sampled_from([f"n{number}" for number in range(12)]))


Groups = dict[str, tuple[str, ...]]


def grouped(wanted: set[str], capacity: int, before: Groups | None = None) -> Groups:
    """Return the groups of a class after one decision."""
    groups, missing = regrouped(before or {}, wanted, (), capacity)
    kept = {name: members for name, members in groups.items() if members}
    return {**kept, **new_groups("gold", missing, before or {}, capacity)}


@pytest.mark.parametrize(("capacity", "expected"), [(20, 1), (2, 3), (1, 5)])
def test_a_group_has_at_most_as_many_namespaces_as_the_class_says(capacity: int, expected: int) -> None:
    found = grouped({"a", "b", "c", "d", "e"}, capacity)
    assert len(found) == expected
    assert list(found) == [f"gold-{number}" for number in range(1, expected + 1)]


def test_a_number_that_somebody_else_has_is_left_out() -> None:
    assert list(new_groups("gold", ("a", "b"), {"gold-1", "gold-3"}, 1)) == ["gold-2", "gold-4"]


def test_groups_are_filled_in_the_order_of_their_numbers() -> None:
    assert sorted(["gold-10", "gold-9", "gold-x"], key=order) == ["gold-x", "gold-9", "gold-10"]


def test_a_namespace_in_two_groups_stays_in_the_first() -> None:
    groups, missing = regrouped({"gold-2": ("a", "b"), "gold-1": ("a",)}, {"a", "b"}, (), 20)
    assert groups == {"gold-1": ("a",), "gold-2": ("b",)}
    assert missing == ()


def test_a_smaller_number_moves_nobody() -> None:
    before: Groups = {"gold-1": ("a", "b", "c")}
    assert grouped({"a", "b", "c", "d"}, 2, before) == {"gold-1": ("a", "b", "c"), "gold-2": ("d",)}


def test_a_group_that_nobody_is_in_any_more_is_not_filled_but_deleted() -> None:
    groups, missing = regrouped({"gold-1": ("a",)}, {"b"}, (), 20)
    assert groups == {"gold-1": ()}
    assert missing == ("b",)


@pytest.mark.repeats
@settings(max_examples=500)
@given(NAMES, NAMES, st.integers(1, 5))
def test_everybody_is_in_one_group_and_nobody_moves(before: set[str], after: set[str], capacity: int) -> None:
    first = grouped(before, capacity)
    second = grouped(after, capacity, first)
    members = [name for group in second.values() for name in group]
    assert sorted(members) == sorted(after)
    place = {name: group for group, names in first.items() for name in names}
    assert all(name in second[place[name]] for name in before & after)
    assert all(len(group) <= capacity for group in second.values())


@pytest.mark.repeats
@settings(max_examples=300)
@given(NAMES, st.sampled_from([f"n{number}" for number in range(12)]), st.integers(1, 5))
def test_one_that_comes_or_goes_changes_one_group(before: set[str], one: str, capacity: int) -> None:
    first = grouped(before, capacity)
    second = grouped(before ^ {one}, capacity, first)
    assert sum(first.get(name) != second.get(name) for name in first.keys() | second.keys()) == 1
