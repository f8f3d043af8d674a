import os
import subprocess
import sys
from datetime import UTC, datetime, timedelta
from itertools import islice
from time import thread_time

import pytest

from foresail.cron import Dialect, fires_after, parse

ROBFIG, GOCRON = Dialect.ROBFIG, Dialect.GOCRON


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@pytest.mark.parametrize(
    ("text", "zone", "start", "robfig", "gocron"),
    [
        # Berlin leaves out 02:00 to 03:00 on 29 March 2026.
        ("30 2 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-30T00:30Z", "2026-03-29T01:30Z"),
        ("0 3 * * *", "Europe/Berlin", "2026-03-28T12:00Z", "2026-03-29T01:00Z", "2026-03-29T01:00Z"),
        # Cairo has no midnight on Friday, 24 April 2026, and both libraries lose the whole day.
        ("0 8 * * 5", "Africa/Cairo", "2026-04-20T12:00Z", "2026-05-01T05:00Z", "2026-05-01T05:00Z"),
        ("0 8 * * 5", "Africa/Cairo", "2026-04-24T00:00Z", "2026-04-24T05:00Z", "2026-04-24T05:00Z"),
        ("0 8 24 4 *", "Africa/Cairo", "2026-04-20T12:00Z", "2027-04-24T06:00Z", "2027-04-24T06:00Z"),
        ("0 8 * * 0", "Asia/Beirut", "2026-03-28T12:00Z", "2026-04-05T05:00Z", "2026-04-05T05:00Z"),
        # Lord Howe moves by half an hour, so the search steps past the whole hour.
        ("0 3 * * *", "Australia/Lord_Howe", "2026-10-03T10:00Z", "2026-10-04T16:00Z", "2026-10-04T16:00Z"),
        # A minute is a minute in every zone.
        ("* * * * *", "Asia/Kathmandu", "2026-01-01T00:00:30Z", "2026-01-01T00:01Z", "2026-01-01T00:01Z"),
    ],
)  # fmt: skip
def test_next_is_what_the_library_says_near_a_change_of_clocks(
    text: str, zone: str, start: str, robfig: str, gocron: str
) -> None:
    assert parse(text, ROBFIG, zone).next(at(start)) == at(robfig)
    assert parse(text, GOCRON, zone).next(at(start)) == at(gocron)


@pytest.mark.parametrize("dialect", Dialect)
def test_an_hour_that_comes_twice_fires_twice(dialect: Dialect) -> None:
    schedule = parse("30 2 * * *", dialect, "Europe/Berlin")
    fires = list(islice(fires_after(schedule, at("2026-10-24T12:00Z")), 3))
    assert fires == [at("2026-10-25T00:30Z"), at("2026-10-25T01:30Z"), at("2026-10-26T01:30Z")]


@pytest.mark.parametrize(
    ("text", "start", "expected"),
    [
        ("0 0 29 2 *", "2096-02-28T12:00Z", "2096-02-29T00:00Z"),
        ("0 0 29 2 *", "2096-03-01T00:00Z", None),  # 2104 is more than five years ahead
        ("0 0 29 2 *", "2099-01-01T00:00Z", "2104-02-29T00:00Z"),
        ("0 0 1 1 *", "2026-12-31T23:59:59.999999Z", "2027-01-01T00:00Z"),
        ("0 0 1 1 *", "2027-01-01T00:00Z", "2028-01-01T00:00Z"),
        ("* * * * *", "9999-12-31T23:59:00Z", None),
        ("@every 1h", "2026-01-01T00:00:00.7Z", "2026-01-01T01:00Z"),
        ("@every 2562047h", "9900-01-01T00:00Z", None),
    ],
)
def test_next_is_later_and_within_five_years_or_none(text: str, start: str, expected: str | None) -> None:
    assert parse(text).next(at(start)) == (at(expected) if expected else None)


def test_go_cron_needs_both_day_fields_and_may_find_no_such_day_in_five_years() -> None:
    first_of_year_on_a_monday = parse("0 0 1 jan mon", GOCRON)
    assert first_of_year_on_a_monday.next(at("2028-06-01T00:00Z")) == at("2029-01-01T00:00Z")
    assert first_of_year_on_a_monday.next(at("2029-06-01T00:00Z")) is None
    assert first_of_year_on_a_monday.never_fires is None


def test_a_naive_instant_is_a_programming_error() -> None:
    naive = datetime(2026, 1, 1)  # noqa: DTZ001  the error under test
    for text in ("* * * * *", "@every 1m", "@none"):
        schedule = parse(text, GOCRON)
        for ask in (schedule.next, schedule.previous):
            with pytest.raises(TypeError):
                ask(naive)


def test_a_day_that_a_zone_never_had_stops_the_search_instead_of_hanging_it() -> None:
    # Samoa went from 29 to 31 December 2011; both libraries search for ever.
    for dialect in Dialect:
        assert parse("0 0 15 1 *", dialect, "Pacific/Apia").next(at("2011-12-20T00:00Z")) == at(
            "2012-01-15T00:00+14:00"
        )
        assert parse("0 0 31 12 *", dialect, "Pacific/Apia").next(at("2011-12-20T00:00Z")) is None


@pytest.mark.parametrize("zone", ["Europe/Berlin", "America/Santiago", "Africa/Cairo", "Antarctica/Troll"])
def test_the_far_future_repeats_every_four_hundred_years(zone: str) -> None:
    cycle = timedelta(days=146097)
    for dialect in Dialect:
        for text in ("30 2 * * *", "0 8 * * 5", "0 0 1 */3 *"):
            schedule = parse(text, dialect, zone)
            start = at("2056-01-01T00:00Z")
            near = list(islice(fires_after(schedule, start), 500))
            far = list(islice(fires_after(schedule, start + 3 * cycle), 500))
            assert far == [fire + 3 * cycle for fire in near]


@pytest.mark.timed
@pytest.mark.parametrize("text", ["0 0 29 2 *", "0 0 31 2 *", ", * * * *", "0 0 29 2 1", "59 23 30 2,4 6"])
def test_the_rarest_dates_take_less_than_a_millisecond(text: str) -> None:
    for dialect in Dialect:
        for zone in ("UTC", "Europe/Berlin", "Africa/Cairo", "America/Santiago"):
            schedule = parse(text, dialect, zone)
            spent = []
            for _ in range(5):
                started = thread_time()
                schedule.next(at("2025-03-01T00:00Z"))
                spent.append(thread_time() - started)
            assert min(spent) < 0.001


def test_importing_the_engine_brings_in_nothing_heavy_and_no_zone_data_of_the_machine() -> None:
    program = """
import sys
opened = []
sys.addaudithook(lambda event, details: opened.append(str(details[0])) if event == "open" else None)
from datetime import UTC, datetime
from foresail.cron import parse
assert parse("30 2 * * *", zone="Europe/Berlin").next(datetime(2026, 3, 28, tzinfo=UTC)) is not None
heavy = {"asyncio", "logging", "zoneinfo", "importlib.resources", "pathlib", "typing_extensions", "urllib"}
print(sorted(heavy & set(sys.modules)))
print([name for name in opened if "zoneinfo" in name and "tzdata" not in name])
print(any(name.endswith("zoneinfo/Europe/Berlin") for name in opened))
"""
    environment = {**os.environ, "PYTHONTZPATH": ""}
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True, env=environment)
    assert done.stdout.split("\n")[:3] == ["[]", "[]", "True"]


def test_instants_come_out_in_utc() -> None:
    found = parse("0 0 * * *", ROBFIG, "Asia/Tokyo").next(at("2026-06-01T12:00+09:00"))
    assert found is not None
    assert found.tzinfo is UTC
    assert found == at("2026-06-02T00:00+09:00")
