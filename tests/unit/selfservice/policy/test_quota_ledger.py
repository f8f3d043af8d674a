"""A backup counts once, from the decision on, whoever speaks of it first."""

from hypothesis import given
from hypothesis import strategies as st

from foresail.selfservice.policy.quota_ledger import QuotaLedger


def test_a_promise_counts_until_velero_s_object_is_seen_and_then_that_counts() -> None:
    ledger = QuotaLedger()
    ledger.reserve("red", "a")
    assert (ledger.stored("uid", "red", ""), ledger.active("uid", "red", "")) == (1, 1)
    ledger.record("uid", "a", is_active=True)
    assert (ledger.stored("uid", "red", ""), ledger.active("uid", "red", "")) == (1, 1)
    ledger.release("red", "a")
    assert (ledger.stored("uid", "red", ""), ledger.active("uid", "red", "")) == (1, 1)
    assert ledger.record("uid", "a", is_active=False)
    assert (ledger.stored("uid", "red", ""), ledger.active("uid", "red", "")) == (1, 0)
    ledger.remove("uid", "a")
    assert (ledger.stored("uid", "red", ""), ledger.active("uid", "red", "")) == (0, 0)


def test_a_namespace_does_not_block_itself() -> None:
    ledger = QuotaLedger()
    ledger.reserve("red", "a")
    ledger.record("uid", "b", is_active=True)
    assert (ledger.stored("uid", "red", "a"), ledger.stored("uid", "red", "b")) == (1, 1)
    assert (ledger.active("uid", "red", "a"), ledger.active("uid", "red", "b")) == (1, 1)


def test_a_namespace_that_was_made_again_does_not_inherit() -> None:
    ledger = QuotaLedger()
    ledger.record("old", "a", is_active=False)
    assert ledger.stored("new", "red", "") == 0


def test_a_backup_deleted_before_its_request_records_it_counts_as_promised_again() -> None:
    ledger = QuotaLedger()
    ledger.record("uid", "a", is_active=True)
    ledger.reserve("red", "a")
    assert ledger.stored("uid", "red", "") == 1
    ledger.remove("uid", "a")
    assert (ledger.stored("uid", "red", ""), ledger.active("uid", "red", "")) == (1, 1)
    assert ledger.stored("uid", "red", "a") == 0
    ledger.release("red", "a")
    assert ledger.stored("uid", "red", "") == 0


@given(st.lists(st.tuples(st.sampled_from(["promise", "settle", "run", "end", "free"]), st.integers(0, 4))))
def test_places_say_what_counting_says(steps: list[tuple[str, int]]) -> None:
    ledger, promised, held = QuotaLedger(), set[str](), dict[str, bool]()
    for step, number in steps:
        name = str(number)
        match step:
            case "promise":
                ledger.reserve("red", name)
                promised.add(name)
            case "settle":
                ledger.release("red", name)
                promised.discard(name)
            case "free":
                ledger.remove("uid", name)
                held.pop(name, None)
            case _:
                was_active = held.get(name, False)
                assert ledger.record("uid", name, is_active=step == "run") == (was_active and step == "end")
                held[name] = step == "run"
        for but in ("", "0"):
            unseen = len(promised - held.keys() - {but})
            assert ledger.stored("uid", "red", but) == len(held.keys() - {but}) + unseen
            assert ledger.active("uid", "red", but) == sum(held[each] for each in held.keys() - {but}) + unseen
        assert ledger.usage("uid", "red") == (ledger.stored("uid", "red", ""), ledger.active("uid", "red", ""))
