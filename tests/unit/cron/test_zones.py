from datetime import UTC, datetime, timedelta
from importlib.resources import files
from random import Random
from zoneinfo import ZoneInfo

import pytest

from foresail.cron.zones import DAY, PosixRule, load_zone, parse_posix_rule, zone_names

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@pytest.mark.repeats
def test_every_zone_of_the_wheel_has_the_offsets_that_zoneinfo_reads_from_it() -> None:
    random = Random(1)  # noqa: S311  a reproducible sample
    wheel = files("tzdata").joinpath("zoneinfo")
    compared = 0
    for name in sorted(zone_names()):
        with wheel.joinpath(name).open("rb") as file:
            reference = ZoneInfo.from_file(file)
        changes = [start for start in load_zone(name).near.starts if start > -(10**10)] or [0]
        for _ in range(40):
            near = random.choice(changes) + random.randint(-4000, 4000)
            instant = random.choice((near, random.randint(-3_000_000_000, 60_000_000_000)))
            table, shift = load_zone(name).table_for(instant)
            offset = (EPOCH + timedelta(seconds=instant)).astimezone(reference).utcoffset()
            assert offset == timedelta(seconds=table.offset(instant + shift)), (name, instant)
            compared += 1
    assert compared == 40 * 598


def test_the_days_without_a_midnight_are_those_whose_midnight_shows_another_time() -> None:
    for name in (
        "Africa/Cairo",
        "America/Havana",
        "America/Nuuk",
        "Asia/Beirut",
        "America/Asuncion",
        "Europe/Berlin",
    ):
        table = load_zone(name).near
        found = []
        for day in range(12_000, 25_000):
            instant = table.instant_at(day * DAY)
            if instant + table.offset(instant) != day * DAY:
                found.append(day)
        assert found == [day for day in table.midnight_gaps if 12_000 <= day < 25_000]


@pytest.mark.parametrize(
    ("text", "posix_rule"),
    [
        ("UTC0", PosixRule(0, 0)),
        ("<+0545>-5:45", PosixRule(20700, 20700)),
        ("CET-1CEST,M3.5.0,M10.5.0/3", PosixRule(3600, 7200, "M3.5.0", 7200, "M10.5.0", 10800)),
        ("<-02>2<-01>,M3.5.0/-1,M10.5.0/0", PosixRule(-7200, -3600, "M3.5.0", -3600, "M10.5.0", 0)),
        ("IST-1GMT0,M10.5.0,M3.5.0/1", PosixRule(3600, 0, "M10.5.0", 7200, "M3.5.0", 3600)),
    ],
)
def test_a_posix_rule_is_read(text: str, posix_rule: PosixRule) -> None:
    assert parse_posix_rule(text) == posix_rule


def test_a_posix_rule_may_count_days_of_the_year() -> None:
    by_day = PosixRule(0, 3600, "J60", 0, "59", 0)
    for year, expected in (
        (2023, ("2023-03-01", "2023-02-28T23:00")),
        (2024, ("2024-03-01", "2024-02-28T23:00")),
    ):
        moments = sorted(when for when, _ in by_day.changes(year))
        wanted = sorted(int(datetime.fromisoformat(text).replace(tzinfo=UTC).timestamp()) for text in expected)
        assert moments == wanted


def test_an_unknown_posix_rule_is_none() -> None:
    assert parse_posix_rule("") is None
    assert parse_posix_rule("nonsense!") is None
