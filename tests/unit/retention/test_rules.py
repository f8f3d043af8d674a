"""What retention keeps, rule by rule, and what holds for every history."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from time import thread_time
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from foresail.retention import Copy, Rule, Rules, kept, why_not_kept

NOON = datetime(2026, 3, 29, 12, tzinfo=UTC)


def copy(hours_ago: float, *, good: bool = True, **other: Any) -> Copy:  # noqa: ANN401 - any column
    """Return a copy that was started so many hours before noon."""
    return Copy(f"{hours_ago:g}h", NOON - timedelta(hours=hours_ago), is_good=good, **other)


def kept_names(copies: list[Copy], rules: Rules) -> list[str]:
    """Return the names of the copies that some rule keeps."""
    return [name for name, reasons in kept(copies, rules).items() if reasons]


COPIES = st.lists(
    st.builds(
        copy,
        st.integers(0, 20_000),
        good=st.booleans(),
        is_finished=st.sampled_from([True, True, True, False]),
        is_pinned=st.sampled_from([False, False, False, True]),
    ),
    unique_by=lambda each: each.name,
    max_size=40,
)
COUNT = st.integers(0, 6)
RULES = st.builds(
    Rules,
    last=COUNT,
    hourly=COUNT,
    daily=COUNT,
    weekly=COUNT,
    monthly=COUNT,
    yearly=COUNT,
    within=st.none() | st.timedeltas(timedelta(hours=1), timedelta(days=90)),
    good=st.integers(0, 3),
    time_zone=st.sampled_from(["UTC", "Europe/Berlin", "Pacific/Apia"]),
)


def test_of_copies_of_one_second_the_last_by_name_is_the_newest() -> None:
    copies = [Copy(f"copy-{number}", NOON, is_good=True) for number in (2, 4, 1, 3)]
    assert kept_names(copies, Rules(last=2)) == ["copy-4", "copy-3"]


def test_each_rule_names_itself() -> None:
    found = kept([copy(1), copy(30), copy(24 * 40), copy(24 * 400)], Rules(last=1, daily=2, yearly=3))
    assert found == {
        "1h": (Rule.LAST, Rule.DAILY, Rule.YEARLY, Rule.GOOD),
        "30h": (Rule.DAILY,),
        "960h": (),
        "9600h": (Rule.YEARLY,),
    }


def test_without_rules_everything_is_kept() -> None:
    assert kept([copy(1), copy(2, good=False)], Rules()) == {"1h": (Rule.NO_RULE,), "2h": (Rule.NO_RULE,)}


def test_days_are_those_of_the_zone() -> None:
    before_midnight_in_berlin, after = copy(13.5), copy(12.5)  # 23:30 and 00:30 there
    assert kept_names([before_midnight_in_berlin, after], Rules(daily=9, time_zone="Europe/Berlin")) == [
        "12.5h",
        "13.5h",
    ]
    assert kept_names([before_midnight_in_berlin, after], Rules(daily=1)) == ["12.5h"]


def test_failed_copy_takes_no_place_and_stays_until_a_good_one_is_newer() -> None:
    assert kept_names([copy(1, good=False), copy(2), copy(3, good=False), copy(4)], Rules(last=1)) == ["1h", "2h"]


def test_unfinished_and_pinned_copies_stay() -> None:
    found = kept([copy(1), copy(2, is_pinned=True), copy(3, good=False, is_finished=False)], Rules(last=1))
    assert found["2h"] == (Rule.PINNED,)
    assert found["3h"] == (Rule.UNFINISHED,)


def test_within_counts_from_the_newest_good_copy() -> None:
    assert kept_names([copy(100), copy(110), copy(130)], Rules(within=timedelta(hours=24))) == ["100h", "110h"]


def test_reason_of_a_copy_that_goes_names_the_rule_that_would_have_kept_it_next() -> None:
    copies = [copy(1), copy(2), copy(30), copy(60), copy(61, good=False)]
    why = why_not_kept(copies, Rules(daily=2))
    assert why(copies[1]) == "newer Backups of the same periods are kept"
    assert why(copies[3]) == "daily 2 keeps newer ones"
    assert why(copies[4]) == "it is not good, and a newer Backup is"
    assert why_not_kept(copies, Rules(last=1))(copies[1]) == "keepLast 1 keeps newer ones"
    assert why_not_kept(copies, Rules(within=timedelta(hours=9)))(copies[3]) == "it is older than keepWithin"


def test_reasons_of_thousands_of_copies_take_one_pass() -> None:
    copies = [copy(hours) for hours in range(2_000)]
    before = thread_time()
    why = why_not_kept(copies, Rules(daily=7, weekly=4, monthly=6))
    assert all(map(why, copies))
    assert thread_time() - before < 2.0, "0.03 s; a pass for each copy takes 50 s"


@given(COPIES, RULES)
def test_newest_good_copies_survive(copies: list[Copy], rules: Rules) -> None:
    good = sorted((each for each in copies if each.is_good and each.is_finished), key=lambda each: each.started)
    survivors = kept_names(copies, rules)
    assert {each.name for each in good[len(good) - rules.good :]} <= set(survivors)
    assert {each.name for each in copies if each.is_pinned or not each.is_finished} <= set(survivors)


@given(COPIES, RULES)
def test_deleting_what_goes_changes_nothing_for_the_rest(copies: list[Copy], rules: Rules) -> None:
    first = kept(copies, rules)
    rest = [each for each in copies if first[each.name]]
    assert kept(rest, rules) == {name: reasons for name, reasons in first.items() if reasons}


@given(COPIES, RULES, st.sampled_from(["last", "hourly", "daily", "weekly", "monthly", "yearly", "good"]))
def test_higher_number_never_keeps_less(copies: list[Copy], rules: Rules, field: str) -> None:
    if rules.is_empty:
        return
    more = replace(rules, **{field: getattr(rules, field) + 1})
    assert set(kept_names(copies, rules)) <= set(kept_names(copies, more))


@given(COPIES, RULES)
def test_order_of_the_copies_does_not_matter(copies: list[Copy], rules: Rules) -> None:
    assert kept(copies, rules) == kept(copies[::-1], rules)


def test_the_newest_copy_is_the_one_that_was_made_last_whatever_its_slot() -> None:
    behind = copy(960, created=NOON)  # made now, by a clock that is 40 days behind
    copies = [behind, *(copy(24 * days) for days in range(2, 6))]
    assert set(kept_names(copies, Rules(last=2))) == {behind.name, copies[1].name}
    assert set(kept_names(copies, Rules(daily=2))) == {behind.name, copies[1].name}
    assert kept_names(copies, Rules(within=timedelta(hours=24))) == [behind.name]
