"""Masks written back as text mean the same masks again, in both dialects."""

from random import Random

import pytest

from foresail.cron import CalendarSchedule, Dialect, parse
from foresail.cron.shift.days import DayRule, day_rule
from foresail.cron.shift.expressions import ExpressionWriter


def calendar(text: str, dialect: Dialect = Dialect.ROBFIG) -> CalendarSchedule:
    schedule = parse(text, dialect, "UTC")
    assert isinstance(schedule, CalendarSchedule)
    return schedule


def writer(text: str, dialect: Dialect = Dialect.ROBFIG) -> ExpressionWriter:
    original = calendar(text, dialect)
    rule = day_rule(original.fields, dialect)
    assert rule is not None
    return ExpressionWriter(original, rule)


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize("original", ["0 0 1 1 0", "0 0 1 JAN SUN", "@daily"])
def test_any_masks_survive_writing_and_reading(original: str, dialect: Dialect) -> None:
    rng = Random(11)  # noqa: S311
    beside = writer(original, dialect)
    for _ in range(400):
        minutes, hours = some(rng, 0, 59), some(rng, 0, 23)
        rule = DayRule(
            some(rng, 1, 12),
            rng.choice((None, some(rng, 1, 31) & ~(1 << rng.randint(1, 31)) or 2)),
            rng.choice((None, some(rng, 0, 6) & ~(1 << rng.randint(0, 6)) or 1)),
        )
        fields = calendar(beside.write(minutes, hours, rule), dialect).fields
        assert (fields.minutes, fields.hours) == (minutes, hours)
        assert day_rule(fields, dialect) in (rule, None)
        assert (fields.any_day, fields.any_weekday) == (rule.days is None, rule.weekdays is None)


def some(rng: Random, low: int, high: int) -> int:
    """Draw a mask: a stepped range half of the time, else any values; never none."""
    if rng.random() < 0.5:
        first, step = rng.randint(low, high), rng.randint(1, 12)
        return sum(1 << value for value in range(first, rng.randint(first, high) + 1, step))
    return sum(1 << value for value in range(low, high + 1) if rng.random() < 0.5) or 1 << low


@pytest.mark.parametrize(
    ("minutes", "written"),
    [
        (range(60), "*"),
        (range(0, 60, 15), "*/15"),
        (range(5, 60, 15), "5,20,35,50"),
        (range(1, 60, 5), "1-56/5"),
        ((0, 30), "0,30"),
        ((1, 2), "1,2"),
        ((1, 2, 3), "1-3"),
        ((10, 11, 12, 25, 55), "10-12,25,55"),
    ],
)
def test_a_field_is_written_as_a_person_would(minutes: range | tuple[int, ...], written: str) -> None:
    text = writer("7 7 * * *").write(sum(1 << minute for minute in minutes), 1, DayRule(2, None, None))
    assert text.split()[0] == written


def test_a_field_that_means_the_same_keeps_the_words_of_the_user() -> None:
    beside = writer("CRON_TZ=UTC 0/20 8-10,+9 ? jan-mar mon")
    fields = calendar("0/20 8-10,+9 ? jan-mar mon").fields
    rule = day_rule(fields, Dialect.ROBFIG)
    assert rule is not None
    assert beside.write(fields.minutes, fields.hours, rule) == "0/20 8-10,+9 ? jan-mar mon"
    moved = DayRule(rule.months, None, 1 << 0)
    assert beside.write(fields.minutes, fields.hours, moved) == "0/20 8-10,+9 * jan-mar SUN"
