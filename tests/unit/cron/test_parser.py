import pickle
from datetime import timedelta

import pytest

from foresail.cron import CalendarSchedule, CronError, Dialect, Fields, IntervalSchedule, ManualSchedule, parse

ROBFIG, GOCRON = Dialect.ROBFIG, Dialect.GOCRON
ALL = (1 << 60) - 1


def bits(*values: int) -> int:
    return sum(1 << value for value in values)


def minutes(text: str, dialect: Dialect = ROBFIG) -> int:
    schedule = parse(f"{text} * * * *", dialect)
    assert isinstance(schedule, CalendarSchedule)
    return schedule.fields.minutes


@pytest.mark.parametrize(
    ("field", "expected"),
    [
        ("*", ALL),
        ("?", ALL),
        ("5", bits(5)),
        ("+5", bits(5)),
        ("005", bits(5)),
        ("5,", bits(5)),
        (",5,,6", bits(5, 6)),
        (",", 0),
        ("5-7", bits(5, 6, 7)),
        ("50/5", bits(50, 55)),
        ("*/20", bits(0, 20, 40)),
        ("10-30/10", bits(10, 20, 30)),
        ("*-anything", ALL),
        ("*-1-2", ALL),
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
def test_both_dialects_read_a_field_alike(field: str, expected: int, dialect: Dialect) -> None:
    assert minutes(field, dialect) == expected


@pytest.mark.parametrize("field", ["60", "-1", "5-", "1-2-3", "1/2/3", "*/0", "/5", "5/", "a", "L", "H", "1.5", "*/-0"])
@pytest.mark.parametrize("dialect", Dialect)
def test_both_dialects_refuse_a_field(field: str, dialect: Dialect) -> None:
    with pytest.raises(CronError) as refused:
        minutes(field, dialect)
    assert (refused.value.field, refused.value.column) == ("minute", 1)


@pytest.mark.parametrize(
    ("text", "robfig", "gocron"),
    [
        ("*/61 * * * *", True, False),  # a step beyond the range
        ("22-2 * * * *", False, True),  # a range that wraps
        ("100-5 * * * *", False, True),  # go-cron does not bound the start of such a range
        ("* * * * 7", False, True),
        ("* * * * FRI-MON", False, True),
        ("* * *-L * *", True, False),
        ("* * * * *-#", True, False),
        ("@every 500ms", True, False),
        ("@every -1h", True, False),
        ("@manual", False, True),
        ("TZ= * * * * *", True, False),
        ("TZ='UTC' * * * * *", False, True),
        ("TZ=UTC", False, False),  # robfig panics
        ("TZ=utc * * * * *", False, False),
        ("TZ=Europe/../UTC * * * * *", False, False),
        ("TZ=Local @daily ", True, True),
        ("@daily ", False, False),
        (" @daily", False, False),
        ("@Daily", False, False),
        ("", False, False),
        ("* * * *", False, False),
        ("* * * * * *", False, False),
        ("* * * * FR\u0130", True, True),  # Go lowers the dotted I to i
        ("*\u3000*\u00a0* * *", True, True),
        ("*\x1c* * * * *", False, False),  # blank to Python, not to Go
        ("\u0665 * * * *", False, False),
        ("@every 9223372036854775808ns9223372036854775808ns", True, False),  # runs round to zero
        (" " * 1020 + "* * * * *", True, False),
    ],
)
def test_each_dialect_accepts_what_its_library_accepts(text: str, robfig: bool, gocron: bool) -> None:
    for dialect, accepted in ((ROBFIG, robfig), (GOCRON, gocron)):
        if accepted:
            assert parse(text, dialect).text == text
        else:
            with pytest.raises(CronError):
                parse(text, dialect)


@pytest.mark.parametrize(
    ("text", "field", "column", "words"),
    [
        ("61 * * * *", "minute", 1, "'61' is above 59"),
        ("50-61 * * * *", "minute", 1, "'50-61' ends above 59"),
        ("0 1,2,24 * * *", "hour", 7, "'24' is above 23"),
        ("0 0 0 * *", "day-of-month", 5, "'0' is below 1"),
        ("0 0 * FOO *", "month", 7, "'FOO' is not a value of this field"),
        ("TZ=UTC  0 0 * * 8", "day-of-week", 17, "allowed: 0-6 or SUN-SAT"),
        ("CRON_TZ=Mars/Base * * * * *", "time zone", 9, "'Mars/Base' is not a time zone"),
        ("@every 1d", None, 8, "'1d' is not a duration"),
        ("@dayly", None, 1, "'@dayly' is not a macro"),
        ("0 0 * *", None, 1, "there are 4 fields instead of five"),
        ("0", None, 1, "there is 1 field instead of five"),
    ],
)
def test_an_error_says_what_is_wrong_where_and_what_is_allowed(
    text: str, field: str | None, column: int, words: str
) -> None:
    with pytest.raises(CronError) as refused:
        parse(text)
    error = refused.value
    assert (error.field, error.column, error.text) == (field, column, text)
    assert words in str(error)
    assert "allowed: " in str(error)


def test_an_unknown_zone_of_the_controller_is_refused() -> None:
    for zone in ("Local", "", "Nowhere", "europe/berlin"):
        with pytest.raises(CronError, match="is not a time zone"):
            parse("* * * * *", ROBFIG, zone)


@pytest.mark.parametrize(
    ("text", "zone"),
    [
        ("* * * * *", "Asia/Tokyo"),
        ("TZ=Local * * * * *", "Asia/Tokyo"),
        ("TZ=Europe/Berlin * * * * *", "Europe/Berlin"),
        ("CRON_TZ=UTC * * * * *", "UTC"),
        ("TZ= * * * * *", "UTC"),
    ],
)
def test_the_prefix_decides_the_zone_before_the_controller_does(text: str, zone: str) -> None:
    assert parse(text, ROBFIG, "Asia/Tokyo").zone == zone


@pytest.mark.parametrize(
    ("macro", "fields"),
    [
        ("@yearly", "0 0 1 1 *"),
        ("@annually", "0 0 1 1 *"),
        ("@monthly", "0 0 1 * *"),
        ("@weekly", "0 0 * * 0"),
        ("@daily", "0 0 * * *"),
        ("@midnight", "0 0 * * *"),
        ("@hourly", "0 * * * *"),
    ],
)
@pytest.mark.parametrize("dialect", Dialect)
def test_a_macro_means_its_five_fields(macro: str, fields: str, dialect: Dialect) -> None:
    short, long = parse(macro, dialect), parse(fields, dialect)
    assert isinstance(short, CalendarSchedule)
    assert isinstance(long, CalendarSchedule)
    assert short.fields == long.fields


@pytest.mark.parametrize(
    ("duration", "seconds"),
    [
        ("1h30m", 5400),
        ("90s", 90),
        ("1.5h", 5400),
        ("1999ms", 1),
        ("1ns", 1),
        ("-5m", 1),
        ("0", 1),
        (".5m", 30),
    ],
)
def test_robfig_rounds_a_period_down_to_seconds_but_not_below_one(duration: str, seconds: int) -> None:
    expected = IntervalSchedule(f"@every {duration}", ROBFIG, "UTC", timedelta(seconds=seconds))
    assert parse(f"@every {duration}") == expected


def test_go_cron_knows_schedules_that_wait_to_be_triggered() -> None:
    for text in ("@triggered", "@manual", "@none"):
        schedule = parse(text, GOCRON)
        assert schedule == ManualSchedule(text, GOCRON, "UTC")
        assert schedule.never_fires == f"{text} runs only when triggered by hand"


@pytest.mark.parametrize(
    ("days", "weekdays", "any_day", "any_weekday"),
    [
        ("*", "*", True, True),
        ("*/1", "?", True, True),
        ("*/2", "1-5", False, False),
        ("*,5", "1", True, False),
        ("1-31", "0-6", False, False),
    ],
)
def test_a_star_without_a_step_is_remembered(days: str, weekdays: str, any_day: bool, any_weekday: bool) -> None:
    schedule = parse(f"0 0 {days} * {weekdays}")
    assert isinstance(schedule, CalendarSchedule)
    assert (schedule.fields.any_day, schedule.fields.any_weekday) == (any_day, any_weekday)


@pytest.mark.parametrize(
    ("text", "day", "weekday", "robfig", "gocron"),
    [
        ("0 0 13 * 5", 13, 5, True, True),
        ("0 0 13 * 5", 13, 4, True, False),
        ("0 0 13 * 5", 12, 5, True, False),
        ("0 0 13 * 5", 12, 4, False, False),
        ("0 0 13 * *", 12, 4, False, False),
        ("0 0 * * 5", 12, 4, False, False),
        ("0 0 * 2 *", 12, 4, False, False),
    ],
)
def test_the_dialects_join_the_two_day_fields_differently(
    text: str,
    day: int,
    weekday: int,
    robfig: bool,
    gocron: bool,
) -> None:
    for dialect, expected in ((ROBFIG, robfig), (GOCRON, gocron)):
        schedule = parse(text, dialect)
        assert isinstance(schedule, CalendarSchedule)
        assert schedule.fields.day_matches(3, day, weekday, dialect) == expected


@pytest.mark.parametrize(
    ("text", "robfig", "gocron"),
    [
        ("0 0 31 2 *", "none of its months has such a day", "none of its months has such a day"),
        ("0 0 31 2,4,6,9,11 ?", "none of its months has such a day", "none of its months has such a day"),
        ("0 0 29 2 *", None, None),
        ("0 0 31 2 1", None, "none of its months has such a day"),
        (", * * * *", "the minute field is an empty list", "the minute field is an empty list"),
        ("* * , * 1", None, "the day-of-month field is an empty list"),
        ("* * , * *", "the day-of-month field is an empty list", "the day-of-month field is an empty list"),
        ("* * * * ,", "the day-of-week field is an empty list", "the day-of-week field is an empty list"),
    ],
)
def test_a_schedule_says_why_it_never_fires(text: str, robfig: str | None, gocron: str | None) -> None:
    assert parse(text, ROBFIG).never_fires == robfig
    assert parse(text, GOCRON).never_fires == gocron


def test_schedules_are_values() -> None:
    one, other = (parse("0 3 * * 1", ROBFIG, "Europe/Berlin") for _ in range(2))
    assert one == other
    assert hash(one) == hash(other)
    assert pickle.loads(pickle.dumps(one)) == one  # noqa: S301  our own bytes
    assert isinstance(one, CalendarSchedule)
    assert one.fields == Fields(1, 1 << 3, (1 << 32) - 2, (1 << 13) - 2, 1 << 1, any_day=True, any_weekday=False)
