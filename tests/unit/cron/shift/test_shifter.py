"""Schedules some minutes earlier, as tables to be read."""

from dataclasses import replace
from datetime import UTC, date, datetime, timedelta

import pytest

from bench.shift_cases import Case
from bench.shift_check import wrong
from foresail.cron import CronError, Dialect, parse
from foresail.cron.shift import InexactCause, Shifted, ZonedExpression, shift
from foresail.cron.shift.expressions import ExpressionSet, ShiftRequest, express_in_own_zone
from tests.primer_scenarios import ALLOWED, Scenario

SINCE = datetime(2026, 11, 15, tzinfo=UTC)


def shifted(text: str, lead: int, zone: str = "UTC", dialect: Dialect = Dialect.ROBFIG) -> Shifted:
    return shift(parse(text, dialect, zone), lead, SINCE)


def lines(answer: Shifted) -> list[str]:
    """Write an answer as it is listed: the expression, then the zone."""
    return [f"{each.schedule} {each.time_zone}" for each in answer.schedules]


WRONG_IN_THE_ARCHIVE = {"0/15 * 1 * *", "*/30 * 1 * *", "5,12,48,56 * * * 5"}
"""What the archived implementation shifts to other instants; the design document itself says that it rejects them."""


@pytest.mark.parametrize("scenario", ALLOWED, ids=lambda each: each.name)
def test_every_allowed_scenario_has_an_exact_answer(scenario: Scenario) -> None:
    answer = shifted(scenario.cronjob, scenario.warmup)
    assert answer.exact
    assert [(each.schedule, each.time_zone) for each in answer.schedules] == scenario.schedules
    assert wrong(Case(scenario.cronjob, "robfig", "UTC", scenario.warmup), answer) is None


def test_the_scenario_with_six_fields_is_refused() -> None:
    with pytest.raises(CronError, match="6 fields"):
        shifted("* 0 * * * *", 5)


@pytest.mark.parametrize("scenario", [each for each in ALLOWED if each.archived], ids=lambda each: each.name)
def test_brute_force_finds_the_three_wrong_answers_of_the_archived_implementation(scenario: Scenario) -> None:
    answer = Shifted(exact=True, schedules=(ZonedExpression(scenario.archived or "", "UTC"),))
    found = wrong(Case(scenario.cronjob, "robfig", "UTC", scenario.warmup), answer)
    assert (found is not None) == (scenario.cronjob in WRONG_IN_THE_ARCHIVE)


@pytest.mark.parametrize("scenario", [each for each in ALLOWED if each.document == ""], ids=lambda each: each.name)
def test_the_known_issues_of_the_design_document_are_solved(scenario: Scenario) -> None:
    assert shifted(scenario.cronjob, scenario.warmup).exact


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
