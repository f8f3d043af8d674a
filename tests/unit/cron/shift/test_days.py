"""Sets of days over 400 years, against the calendar of the standard library."""

from datetime import date, timedelta
from random import Random

import pytest

from bench.shift_brute import Brute, expressible, read
from foresail.cron import CalendarSchedule, Dialect, parse
from foresail.cron.shift.days import (
    CYCLE,
    Box,
    DayRule,
    Inexpressible,
    day_bits,
    day_rule,
    day_set,
    existing_days,
    month_bits,
    shift_day_rule,
    shift_day_set,
    split_into_boxes,
    weekday_bits,
)

ALL = 0b1_1111_1111_1110


def mask(*values: int) -> int:
    return sum(1 << value for value in values)


def rule_of(text: str, dialect: Dialect) -> DayRule:
    schedule = parse(f"0 0 {text}", dialect, "UTC")
    assert isinstance(schedule, CalendarSchedule)
    rule = day_rule(schedule.fields, dialect)
    assert rule is not None
    return rule


def test_every_day_of_the_cycle_has_the_month_date_and_weekday_of_the_calendar() -> None:
    months, days, weekdays = ([bytes_of(bits) for bits in each] for each in (month_bits(), day_bits(), weekday_bits()))
    start = date(2000, 1, 1)
    for number in range(CYCLE):
        day = start + timedelta(days=number)
        assert months[day.month][number] == days[day.day][number] == weekdays[day.isoweekday() % 7][number] == "1"
    for bits in (month_bits(), day_bits(), weekday_bits()):
        assert sum(each.bit_count() for each in bits) == CYCLE


def bytes_of(bits: int) -> str:
    return f"{bits:0{CYCLE}b}"[::-1]


def test_the_cycle_closes_so_that_the_day_before_the_first_is_the_last() -> None:
    new_year = mask(0)
    assert shift_day_set(new_year, 1) == 1 << (CYCLE - 1)
    assert shift_day_set(shift_day_set(new_year, 1), -1) == new_year


@pytest.mark.parametrize("dialect", Dialect)
def test_random_day_fields_moved_earlier_are_expressed_exactly_or_called_inexpressible(dialect: Dialect) -> None:
    rng = Random(4)  # noqa: S311
    seen = set()
    for _ in range(60):
        text = " ".join(
            rng.choice(("*", str(rng.randint(low, high)), f"{rng.randint(low, middle)}-{rng.randint(middle, high)}"))
            for low, middle, high in ((1, 15, 31), (1, 6, 12), (0, 3, 6))
        )
        schedule = parse(f"0 0 {text}", dialect, "UTC")
        assert isinstance(schedule, CalendarSchedule)
        rule = day_rule(schedule.fields, dialect)
        if rule is None:
            continue
        by = rng.randint(1, 8)
        cover = shift_day_rule(rule, by, dialect)
        said = [day_set(each, dialect) for each in cover.rules]
        wanted = shift_day_set(day_set(rule, dialect), by)
        union = 0
        for days in said:
            assert not union & days, f"{text} by {by}: two rules share a day"
            union |= days
        assert not wanted & ~union, f"{text} by {by}: a day is lost"
        brute = read(f"0 0 {text}", dialect.value)
        only_days = Brute(frozenset(), frozenset(), brute.days, brute.months, brute.weekdays, brute.either)
        assert (union == wanted) == (cover.inexpressible is None) == expressible(only_days, dialect.value, by), (
            f"{text} by {by}"
        )
        seen.add(cover.inexpressible)
    assert {None, Inexpressible.LEAP_YEAR} <= seen


@pytest.mark.parametrize(
    ("text", "by", "inexpressible"),
    [
        ("1 3 *", 1, Inexpressible.LEAP_YEAR),
        ("29 2 *", 1, Inexpressible.LEAP_YEAR),
        ("1 * 1", 1, Inexpressible.LEAP_YEAR),
        ("* 3 1", 1, Inexpressible.WEEKDAYS_OF_MONTHS),
        ("5 3 1", 1, Inexpressible.WEEKDAYS_OF_MONTHS),
        ("1,29 2,3 *", 1, None),  # 29 February and 1 March together become the 28th and the 29th
        ("*/2 * *", 1, None),
        ("2 3 *", 1, None),
        ("* * 1", 5, None),
    ],
)
def test_what_robfig_cannot_express_is_named(text: str, by: int, inexpressible: Inexpressible | None) -> None:
    assert shift_day_rule(rule_of(text, Dialect.ROBFIG), by, Dialect.ROBFIG).inexpressible is inexpressible


def test_boxes_share_months_or_days_whichever_takes_fewer() -> None:
    by_month = {1: mask(5), 2: mask(5, 6), 3: mask(6)}
    assert len(split_into_boxes(by_month).boxes) == 2


def test_a_day_that_a_month_never_has_does_not_cost_a_box() -> None:
    every_31st = {month: mask(31) for month in (1, 3, 5, 7, 8, 10, 12)}
    assert split_into_boxes(every_31st).boxes == (Box(ALL, mask(31)),)


def test_boxes_hold_each_wanted_day_once_and_no_other() -> None:
    rng = Random(9)  # noqa: S311
    for _ in range(300):
        kinds = [sum(1 << day for day in range(1, 32) if rng.random() < 0.4) for _ in range(rng.randint(1, 3))]
        rows = {month: rng.choice([*kinds, 0]) & existing_days(month) for month in range(1, 13)}
        boxes = split_into_boxes(rows).boxes
        for month, days in rows.items():
            held = [box.days & existing_days(month) for box in boxes if box.months >> month & 1]
            assert sum(held) == days, "sums differ from unions where boxes overlap"


def test_the_fewest_boxes_are_found_where_neither_months_nor_days_alone_find_them() -> None:
    # Months 1 to 3 have the 10th, month 2 has the 9th and the 11th as well, and month 5 has only those.
    rows = {1: mask(10), 2: mask(9, 10, 11), 3: mask(10), 5: mask(9, 11)}
    found = split_into_boxes(rows)
    assert (len(found.boxes), found.is_minimal) == (2, True)


@pytest.mark.repeats
def test_no_split_into_fewer_boxes_exists_where_it_is_called_minimal() -> None:
    rng = Random(12)  # noqa: S311
    for _ in range(60):
        rows = {month: sum(1 << day for day in range(1, 5) if rng.random() < 0.5) for month in (1, 3, 5, 7)}
        found = split_into_boxes(rows)
        assert found.is_minimal
        assert len(found.boxes) == fewest_by_trying_all(rows)


def fewest_by_trying_all(rows: dict[int, int]) -> int:
    """Take each box that holds the first day left, in all its forms, and go on with what is left."""
    first = next((month for month, days in rows.items() if days), None)
    if first is None:
        return 0
    must = rows[first] & -rows[first]
    others = [month for month in rows if month != first]
    tries = []
    for days in range(32):
        if days & must and not days & ~rows[first]:
            fitting = [month for month in others if not days & ~rows[month]]
            for choice in range(1 << len(fitting)):
                chosen = {first, *(month for at, month in enumerate(fitting) if choice >> at & 1)}
                left = {month: kept & ~days if month in chosen else kept for month, kept in rows.items()}
                tries.append(1 + fewest_by_trying_all(left))
    return min(tries)
