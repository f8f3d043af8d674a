from dataclasses import dataclass, replace

from hypothesis import given
from hypothesis import strategies as st

from foresail.kube.store import Store
from foresail.plan import Key


@dataclass(frozen=True)
class Child:
    key: Key
    owner: str
    labels: tuple[str, ...]


def new_store() -> Store[Child]:
    return Store({"owner": lambda row: [row.owner] if row.owner else [], "label": lambda row: row.labels})


KEYS = st.builds(Key, st.sampled_from(["a", "b"]), st.sampled_from("xyz"))
ROWS = st.builds(Child, KEYS, st.sampled_from(["", "o1", "o2"]), st.lists(st.sampled_from("pqr")).map(tuple))


@given(st.lists(st.one_of(ROWS, KEYS)))
def test_indexes_say_what_a_walk_through_all_rows_would_say(steps: list[Child | Key]) -> None:
    store = new_store()
    model: dict[Key, Child] = {}
    for step in steps:
        if isinstance(step, Child):
            assert store.put(step.key, step) == model.get(step.key)
            model[step.key] = step
        else:
            assert store.remove(step) == model.pop(step, None)
        assert set(store) == set(model)
        assert len(store) == len(model)
        for owner in ("o1", "o2"):
            expected = sorted((r for r in model.values() if r.owner == owner), key=lambda r: r.key)
            assert store.by("owner", owner) == expected
        for label in "pqr":
            expected = sorted((r for r in model.values() if label in r.labels), key=lambda r: r.key)
            assert store.by("label", label) == expected


def test_a_value_under_which_nothing_is_found_costs_nothing() -> None:
    store = new_store()
    row = Child(Key("a", "x"), "o1", ())
    store.put(row.key, row)
    store.remove(row.key)
    assert store.by("owner", "o1") == []
    assert store._found == {"owner": {}, "label": {}}  # noqa: SLF001 - memory is what this is about


def test_a_row_that_is_equal_does_not_take_the_place_of_the_one_there() -> None:
    store = new_store()
    first, other = Child(Key("a", "x"), "o1", ("p",)), Child(Key("a", "x"), "o1", ("q",))
    store.put(first.key, first)
    assert store.put(Key("a", "x"), replace(first)) is first
    assert store.get(first.key) is first
    assert store.put(other.key, other) is first
    assert store.get(first.key) is other


def test_a_row_of_nothing_keeps_its_key() -> None:
    store = Store[Child | None]()
    key = Key("a", "x")
    assert store.put(key, None) is None
    assert store.put(key, None) is None
    assert list(store) == [key]


@given(st.permutations(range(40)), st.permutations(range(40)))
def test_an_index_has_any_number_of_rows_under_a_value(coming: list[int], going: list[int]) -> None:
    store = new_store()
    keys = [Key("a", f"{number:02}") for number in range(40)]
    there: set[Key] = set()
    for number in coming:
        store.put(keys[number], Child(keys[number], "o1", ()))
        there.add(keys[number])
        assert [row.key for row in store.by("owner", "o1")] == sorted(there)
        assert store.count("owner", "o1") == len(there)
    for number in going:
        store.remove(keys[number])
        there.remove(keys[number])
        assert [row.key for row in store.by("owner", "o1")] == sorted(there)
        assert store.count("owner", "o1") == len(there)
