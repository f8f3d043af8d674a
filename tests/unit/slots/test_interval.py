"""How close together fires are, by how much schedules are delayed, and how their runs are named."""

from collections.abc import Iterator
from datetime import UTC, datetime, timedelta

import pytest

from foresail.cron import Dialect, Schedule, fires_after, parse
from foresail.selfservice.rows.schedules import run_name, stem, stem_of_run
from foresail.slots import interval
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.interval import longest_gap, shortest_gap
from foresail.slots.spread import stable_delay

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("* * * * *", 1),
        ("0 * * * *", 60),
        ("0,59 * * * *", 1),
        ("30 23,0 * * *", 60),
        ("59 23 31 * *", 31 * 1440),
        ("0 0 1,31 * *", 1440),
        ("@every 90s", 1.5),
        ("@yearly", 365 * 1440),
        ("CRON_TZ=Europe/Berlin 30 1,3 * * *", 60),
    ],
)
def test_the_shortest_gap_is_that_of_the_year_ahead(text: str, minutes: float) -> None:
    found = shortest_gap(parse(text, Dialect.ROBFIG, "UTC"), NOW)
    assert found == (timedelta(minutes=minutes) if text != "@yearly" else None)


@pytest.mark.parametrize(
    ("text", "minutes"),
    [
        ("* * * * *", 1),
        ("* 0-19 * * *", 4 * 60 + 1),
        ("* 8-17 * * 1-5", (2 * 24 + 14) * 60 + 1),
        ("* * 1 * *", 30 * 1440 + 1),
        ("0 0 1 1,2 *", 335 * 1440),  # in a leap year
        ("@every 90m", 90),
    ],
)
def test_the_longest_gap_includes_days_without_a_fire(text: str, minutes: float) -> None:
    assert longest_gap(parse(text, Dialect.GOCRON, "UTC"), NOW.replace(month=1, day=1)) == timedelta(minutes=minutes)


@pytest.mark.parametrize(("text", "most"), [("@yearly", 3), ("0 0 29 2 *", 2), ("@monthly", 16), ("* * * * *", 1_000)])
def test_no_fire_is_asked_for_beyond_the_time_ahead(monkeypatch: pytest.MonkeyPatch, text: str, most: int) -> None:
    asked: list[datetime] = []

    def counted(schedule: Schedule, anchor: datetime) -> Iterator[datetime]:
        for each in fires_after(schedule, anchor):
            asked.append(each)
            yield each

    monkeypatch.setattr(interval, "fires_after", counted)
    shortest_gap(parse(text, Dialect.ROBFIG, "UTC"), datetime(2031, 3, 4, tzinfo=UTC))
    assert 0 < len(asked) <= most


def test_a_delay_is_the_same_each_time_and_no_longer_than_the_policy_says() -> None:
    longest = timedelta(minutes=30)
    found = {uid: stable_delay(uid, longest) for uid in map(str, range(500))}
    assert all(stable_delay(uid, longest) == delay for uid, delay in found.items())
    assert timedelta() <= min(found.values()) < timedelta(minutes=3)
    assert timedelta(minutes=27) < max(found.values()) <= longest
    assert stable_delay("x", timedelta()) == timedelta()


def test_runs_are_named_after_their_slot_and_a_long_name_is_cut_with_a_digest() -> None:
    assert run_name("nightly", NOW) == "nightly-20261116120000"
    assert stem_of_run("nightly-20261116120000") == "nightly"
    assert stem_of_run("by-hand") is None
    long, other = "x" * 200, "x" * 201
    assert len(run_name(long, NOW)) == 63
    assert run_name(long, NOW) != run_name(other, NOW)
    assert stem_of_run(run_name(long, NOW)) == stem(long)


def test_an_expression_is_refused_with_a_sentence() -> None:
    for text in ("61 * * * *", "0 0 30 2 *", "0," * 600 + "0 * * * *"):
        found = read_expression(text, "UTC", Dialect.ROBFIG)
        assert isinstance(found, Unusable)
        assert found.never_fires == ("30 2" in text)
