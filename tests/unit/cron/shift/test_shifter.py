"""Schedules some minutes earlier, as tables to be read."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from bench.shift_cases import Case
from bench.shift_check import wrong
from foresail.cron import CronError, Dialect, parse
from foresail.cron.shift import InexactCause, Shifted, ZonedExpression, shift
from foresail.cron.shift.expression_choice import ExpressionSet, ShiftRequest, express_in_own_zone

SINCE = datetime(2026, 11, 15, tzinfo=UTC)


def shifted(text: str, lead: int, zone: str = "UTC", dialect: Dialect = Dialect.ROBFIG) -> Shifted:
    return shift(parse(text, dialect, zone), lead, SINCE)


def lines(answer: Shifted) -> list[str]:
    """Write an answer as it is listed: the expression, then the zone."""
    return [f"{each.schedule} {each.time_zone}" for each in answer.schedules]


# The examples that the primer seed lists, with its own answers (none where it gives up) and ours.
SEED = [
    # the job's schedule, minutes, what the seed makes of it, our answer
    ("30 * * 10 *", 5, "25 * * 10 *", ["25 * * 10 * UTC"]),
    ("0 0 * * *", 10, "50 23 * * *", ["50 23 * * * UTC"]),
    ("0/15 * 1 * *", 10, "50,5,20,35 * 1 * *", ["5,20,35 * 1 * * UTC", "50 * 1 * * Etc/GMT-1"]),
    ("30 14-16 * * *", 10, "20 14-16 * * *", ["20 14-16 * * * UTC"]),
    ("*/30 * 1 * *", 10, "50,20 * 1 * *", ["20 * 1 * * UTC", "50 * 1 * * Etc/GMT-1"]),
    ("5 * */12 * 1,2", 5, "0 * */12 * 1,2", ["0 * */12 * 1,2 UTC"]),
    ("15/30 5 * * *", 5, "10,40 5 * * *", ["10,40 5 * * * UTC"]),
    ("15-20 12 * * 5", 5, "10,11,12,13,14,15 12 * * 5", ["10-15 12 * * 5 UTC"]),
    ("5,12,48,56 * * * 5", 10, "55,2,38,46 * * * 5", ["2,38,46 * * * 5 UTC", "55 * * * 5 Etc/GMT-1"]),
    ("* 0 * * *", 5, "", ["0-54 0 * * * UTC", "55-59 23 * * * UTC"]),
    ("15-17,0/30 * * * *", 5, "", ["10-12,25,55 * * * * UTC"]),
    ("0 14-16 * * *", 10, "", ["50 13-15 * * * UTC"]),
    ("0-15 0 * * *", 10, "", ["50-59 23 * * * UTC", "0-5 0 * * * UTC"]),
    ("0 0 * * 5", 10, "", ["50 23 * * 4 UTC"]),
    ("0 * * * 5", 10, "", ["50 0-22 * * 5 UTC", "50 23 * * 4 UTC"]),
]
WRONG_IN_THE_SEED = {"0/15 * 1 * *", "*/30 * 1 * *", "5,12,48,56 * * * 5"}


@pytest.mark.parametrize(("text", "lead", "_seed", "ours"), SEED)
def test_every_example_of_the_seed_has_an_exact_answer(text: str, lead: int, _seed: str, ours: list[str]) -> None:
    answer = shifted(text, lead)
    assert answer.exact
    assert lines(answer) == ours
    assert wrong(Case(text, "robfig", "UTC", lead), answer) is None


def test_the_example_of_the_seed_with_six_fields_is_refused() -> None:
    with pytest.raises(CronError, match="6 fields"):
        shifted("* 0 * * * *", 5)


@pytest.mark.parametrize(("text", "lead", "seed", "_ours"), [row for row in SEED if row[2]])
def test_brute_force_finds_the_three_answers_of_the_seed_that_are_wrong(
    text: str, lead: int, seed: str, _ours: list[str]
) -> None:
    answer = Shifted(exact=True, schedules=(ZonedExpression(seed, "UTC"),))
    found = wrong(Case(text, "robfig", "UTC", lead), answer)
    assert (found is not None) == (text in WRONG_IN_THE_SEED)


@pytest.mark.parametrize(
    ("issue", "text", "ours"),
    [
        ("special characters in the hour", "0 14-16 * * *", ["50 13-15 * * * UTC"]),
        ("a range of minutes that borrows", "0-15 0 * * *", ["50-59 23 * * * UTC", "0-5 0 * * * UTC"]),
        ("a borrow that changes the day", "0 0 * * 5", ["50 23 * * 4 UTC"]),
    ],
)
def test_the_known_issues_of_the_seed_are_gone(issue: str, text: str, ours: list[str]) -> None:
    assert lines(shifted(text, 10)) == ours, issue


@pytest.mark.parametrize(
    ("pitfall", "text", "lead", "zone", "ours"),
    [
        ("the last day of the year", "0 0 1 1 *", 10, "UTC", ["50 23 31 12 * UTC"]),
        ("only months that have a 31st", "0 0 31 * *", 10, "UTC", ["50 23 30 1,3,5,7,8,10,12 * UTC"]),
        ("30 April must not come from 31 April", "0 0 31 4,5 *", 10, "UTC", ["50 23 30 5 * UTC"]),
        ("the leap year is left to the zone", "0 0 1 3 *", 10, "UTC", ["50 0 1 3 * Etc/GMT-1"]),
        ("month ends are left to the zone", "0 0 1 * *", 10, "UTC", ["50 0 1 * * Etc/GMT-1"]),
        ("weekdays of one month", "0 0 * 3 1", 10, "UTC", ["50 0 * 3 1 Etc/GMT-1"]),
        ("dates or weekdays stay 'or'", "0 0 1 * MON", 10, "UTC", ["50 0 1 * MON Etc/GMT-1"]),
        ("dates or weekdays, both moved", "0 0 15 * MON", 10, "UTC", ["50 23 14 * SUN UTC"]),
        ("the star is kept out of 'or'", "0 0 */2 * 1", 10, "UTC", ["50 0 */2 * 1 Etc/GMT-1"]),
        ("1-31 or Monday is every day", "0 0 1-31 * 1", 10, "UTC", ["50 23 1-31 * 1 UTC"]),
        ("Sunday is 0", "0 0 * * 1", 10, "UTC", ["50 23 * * 0 UTC"]),
        ("weekdays go round", "0 0 * * SUN", 10, "UTC", ["50 23 * * SAT UTC"]),
        ("more than a day", "15 10 * * 1-5", 10_000, "UTC", ["35 11 * * 1-5 UTC"]),
        ("a day and an hour: days and zone together", "0 * 2 * *", 1500, "UTC", ["0 * 1 * * Etc/GMT-1"]),
        ("just within 14 hours", "0 0 1 * *", 840, "UTC", ["0 0 1 * * Etc/GMT-14"]),
        ("beyond, yet no day is borrowed there", "0 1,20 1 * *", 900, "UTC", ["0 0,19 1 * * Etc/GMT-14"]),
        ("half an hour off", "0 0 1 * *", 10, "Asia/Kolkata", ["20 0 1 * * Etc/GMT-6"]),
        ("three quarters off", "0 0 1 * *", 10, "Asia/Kathmandu", ["5 0 1 * * Etc/GMT-6"]),
        ("west of Greenwich", "0 0 1 * *", 10, "America/Phoenix", ["50 0 1 * * Etc/GMT+6"]),
        ("the zone between is Greenwich itself", "0 0 1 * *", 420, "America/Phoenix", ["0 0 1 * * UTC"]),
        ("a macro has no words to keep", "@monthly", 10, "UTC", ["50 0 1 * * Etc/GMT-1"]),
        ("a zone in front", "TZ=Asia/Tokyo 0 9 * * *", 10, "UTC", ["50 8 * * * Asia/Tokyo"]),
        ("nothing to shift", "5 4 * * sun", 0, "UTC", ["5 4 * * sun UTC"]),
        ("every minute", "* * * * *", 7, "UTC", ["* * * * * UTC"]),
        ("dates that would be rewritten stay", "0 * 31 * *", 10, "UTC", ["50 * 31 * * Etc/GMT-1"]),
        ("minutes keep a pattern", "2-59/5 * * * *", 1, "UTC", ["1-56/5 * * * * UTC"]),
    ],
)
def test_each_pitfall_of_shifting_is_avoided(pitfall: str, text: str, lead: int, zone: str, ours: list[str]) -> None:
    answer = shifted(text, lead, zone)
    assert (answer.exact, lines(answer)) == (True, ours), pitfall
    assert answer.until is None


@pytest.mark.parametrize(
    ("text", "lead", "ours"),
    [
        ("0 0 1-7 * 1", 10, ["50 0 1-7 * 1 Etc/GMT-1"]),
        ("0 0 8-14 * 1", 10, ["50 23 7-13 * 0 UTC"]),
        ("0 0 * 5 FRI-MON", 10, ["50 0 * 5 FRI-MON Etc/GMT-1"]),
        ("0 0 * 5 7", 900, ["0 9 1-30 5 6 UTC", "0 9 30 4 6 UTC"]),
    ],
)
def test_go_cron_joins_dates_and_weekdays_by_and(text: str, lead: int, ours: list[str]) -> None:
    answer = shifted(text, lead, dialect=Dialect.GOCRON)
    assert (answer.exact, lines(answer)) == (True, ours)


def test_velero_gets_the_zone_in_front_of_the_expression() -> None:
    [expression] = shifted("0 0 1 * *", 10, dialect=Dialect.GOCRON).schedules
    assert expression.with_prefix == "CRON_TZ=Etc/GMT-1 50 0 1 * *"


def test_a_date_that_depends_on_the_leap_year_loses_nothing_and_says_what_is_in_vain() -> None:
    answer = shifted("0 0 1 * *", 900)
    assert not answer.exact
    assert answer.cause is InexactCause.LEAP_YEAR
    assert lines(answer) == ["0 9 31 * * UTC", "0 9 30 4,6,9,11 * UTC", "0 9 28,29 2 * UTC"]
    assert answer.lost == ()
    assert answer.spurious == (datetime(2028, 2, 28, 9, tzinfo=UTC),)
    assert answer.inexact_dates == (date(2028, 2, 28),)
    assert answer.reason is not None
    assert "leap year" in answer.reason
    assert answer.advice is not None
    assert "instants" in answer.advice


def test_weekdays_of_one_month_beyond_fourteen_hours_cannot_be_expressed_in_robfig() -> None:
    answer = shifted("0 0 * 5 1", 900)
    assert answer.cause is InexactCause.WEEKDAYS_OF_MONTHS
    assert answer.lost == ()
    assert wrong(Case("0 0 * 5 1", "robfig", "UTC", 900), answer) is None


def test_an_interval_is_refused_because_it_has_no_place_in_the_calendar() -> None:
    answer = shifted("@every 90m", 10)
    assert (answer.exact, answer.schedules, answer.cause) == (False, (), InexactCause.INTERVAL)


@pytest.mark.parametrize("text", ["0 0 31 2 *", ", * * * *"])
def test_a_schedule_that_never_fires_needs_no_expression(text: str) -> None:
    answer = shifted(text, 10)
    assert (answer.exact, answer.schedules) == (True, ())
    assert answer.reason is not None
    assert "never fires" in answer.reason


def test_a_schedule_that_is_started_by_hand_needs_no_expression() -> None:
    answer = shifted("@manual", 10, dialect=Dialect.GOCRON)
    assert (answer.exact, answer.schedules) == (True, ())


@pytest.mark.parametrize("lead", [-1, 527_041])
def test_a_shift_into_the_future_or_beyond_a_year_is_an_error_that_says_what_is_allowed(lead: int) -> None:
    with pytest.raises(ValueError, match="allowed are 0 to 527040"):
        shifted("0 0 * * *", lead)


def test_instants_are_listed_from_the_moment_asked_for_to_the_second() -> None:
    schedule = parse("0 0 1 3 *", Dialect.ROBFIG, "UTC")
    in_vain = datetime(2028, 2, 28, 9, tzinfo=UTC)
    assert shift(schedule, 900, in_vain).spurious[0] == in_vain
    assert in_vain not in shift(schedule, 900, in_vain + timedelta(seconds=1)).spurious


def test_a_moment_without_a_zone_is_an_error() -> None:
    with pytest.raises(TypeError):
        shift(parse("0 0 * * *", Dialect.ROBFIG, "UTC"), 10, datetime(2026, 1, 1))  # noqa: DTZ001


def test_what_is_not_proved_is_not_returned(monkeypatch: pytest.MonkeyPatch) -> None:
    def an_hour_off(request: ShiftRequest) -> ExpressionSet:
        right = express_in_own_zone(request)
        return replace(right, drafts=tuple(replace(draft, hours=draft.hours >> 1) for draft in right.drafts))

    monkeypatch.setattr("foresail.cron.shift.shifter.express_in_own_zone", an_hour_off)
    with pytest.raises(AssertionError, match=r"'0 5 \* \* \*' shifted by 10"):
        shifted("0 5 * * *", 10)
