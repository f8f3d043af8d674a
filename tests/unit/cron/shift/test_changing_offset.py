"""Shifts in zones whose clocks change: exact where the fires say so, and honest about the dates where not."""

from datetime import UTC, date, datetime, timedelta

import pytest

from foresail.cron import Dialect, parse
from foresail.cron.shift import AHEAD, InexactCause, Shifted, shift
from foresail.cron.shift.candidate_zones import OffsetZone, fixed_offset_zone, parallel_zones_east

SINCE = datetime(2026, 11, 15, tzinfo=UTC)


def shifted(text: str, lead: int, zone: str, dialect: Dialect = Dialect.ROBFIG) -> Shifted:
    return shift(parse(text, dialect, zone), lead, SINCE)


def lines(answer: Shifted) -> list[str]:
    return [f"{each.schedule} {each.time_zone}" for each in answer.schedules]


@pytest.mark.parametrize(
    ("why", "text", "lead", "zone", "ours"),
    [
        ("far from the change", "30 12 * * *", 45, "Europe/Berlin", ["45 11 * * * Europe/Berlin"]),
        ("each real hour", "0 * * * *", 10, "Europe/Berlin", ["50 * * * * Europe/Berlin"]),
        ("Athens keeps an hour ahead", "0 0 1 * *", 10, "Europe/Berlin", ["50 0 1 * * Europe/Athens"]),
        ("New York keeps an hour ahead", "0 0 1 * *", 10, "America/Chicago", ["50 0 1 * * America/New_York"]),
    ],
)
def test_an_exact_answer_holds_for_the_five_years_that_were_judged(
    why: str, text: str, lead: int, zone: str, ours: list[str]
) -> None:
    answer = shifted(text, lead, zone)
    assert (answer.exact, lines(answer)) == (True, ours), why
    assert answer.until == SINCE + AHEAD


def test_a_warm_up_that_the_spring_skips_and_the_autumn_repeats_is_named_by_date() -> None:
    answer = shifted("0 3 * * *", 30, "Europe/Berlin")
    assert (answer.exact, answer.cause) == (False, InexactCause.CHANGING_OFFSET)
    assert lines(answer) == ["30 2 * * * Europe/Berlin"]
    assert answer.lost[0] == datetime(2027, 3, 28, 0, 30, tzinfo=UTC)
    assert answer.spurious[0] == datetime(2027, 10, 31, 0, 30, tzinfo=UTC)
    assert answer.inexact_dates[:2] == (date(2027, 3, 28), date(2027, 10, 31))
    assert (len(answer.lost), len(answer.spurious)) == (5, 5)


def test_go_cron_runs_late_in_the_gap_and_so_warms_up_at_another_time() -> None:
    answer = shifted("0 3 * * *", 30, "Europe/Berlin", Dialect.GOCRON)
    assert not answer.exact
    assert datetime(2027, 3, 28, 1, 30, tzinfo=UTC) in answer.spurious


@pytest.mark.parametrize("dialect", Dialect)
@pytest.mark.parametrize(
    ("text", "lead", "zone", "since"),
    [
        ("*/20 1-4 * * *", 50, "Europe/Berlin", SINCE),
        ("15 0 * * 5", 40, "Africa/Cairo", SINCE),
        ("0 3 * * *", 95, "Australia/Lord_Howe", SINCE),
        ("0 8 * * 0", 1500, "Asia/Beirut", SINCE),
        # The years to judge begin, and in the other row end, within hours of a change.
        ("*/30 1,23 * * *", 45, "America/New_York", datetime(2027, 11, 7, 5, 10, tzinfo=UTC)),
        ("*/30 1,23 * * *", 45, "America/New_York", datetime(2032, 3, 13, 20, tzinfo=UTC) - AHEAD),
    ],
)
def test_the_lists_are_the_difference_of_the_fires_followed_one_by_one(
    text: str, lead: int, zone: str, since: datetime, dialect: Dialect
) -> None:
    answer = shift(parse(text, dialect, zone), lead, since)
    until, ahead = since + AHEAD, timedelta(minutes=lead)
    wanted = {fire - ahead for fire in parse(text, dialect, zone).between(since + ahead, until + ahead)}
    fired = {
        fire
        for each in answer.schedules
        for fire in parse(each.schedule, dialect, each.time_zone).between(since, until)
    }
    assert (set(answer.lost), set(answer.spurious)) == (wanted - fired, fired - wanted)
    assert answer.exact == (wanted == fired)


def test_inexpressible_days_in_a_changing_zone_lose_no_fire() -> None:
    answer = shifted("0 6 1 3 *", 720, "Africa/Cairo")
    assert (answer.exact, answer.cause) == (False, InexactCause.CHANGING_OFFSET)
    assert answer.lost == ()
    assert answer.inexact_dates == (date(2028, 2, 28),)
    assert answer.reason is not None
    assert "leap year" in answer.reason


def test_a_zone_is_fixed_from_the_instant_of_its_last_change() -> None:
    last_summer_ended = datetime(2019, 2, 17, 2, tzinfo=UTC)
    assert fixed_offset_zone("America/Sao_Paulo", last_summer_ended) == OffsetZone("America/Sao_Paulo", -180)
    assert fixed_offset_zone("America/Sao_Paulo", last_summer_ended - timedelta(seconds=1)) is None
    assert fixed_offset_zone("Europe/Berlin", SINCE) is None
    assert fixed_offset_zone("Asia/Kathmandu", SINCE) == OffsetZone("Asia/Kathmandu", 345)


def test_only_zones_that_keep_their_distance_the_whole_year_are_ahead() -> None:
    span = (SINCE.date(), (SINCE + AHEAD).date())
    assert parallel_zones_east("Europe/Lisbon", *span) == (
        OffsetZone("Europe/Berlin", 60),
        OffsetZone("Europe/Athens", 120),
    )
    assert parallel_zones_east("America/New_York", *span) == (OffsetZone("America/Halifax", 60),)
    assert parallel_zones_east("Africa/Cairo", *span) == ()
