from bisect import bisect_left
from datetime import UTC, datetime, timedelta
from functools import cache
from itertools import takewhile
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from bench.cron_specs import SpecMaker, StartMaker
from foresail.cron import (
    CalendarSchedule,
    CronError,
    Dialect,
    IntervalSchedule,
    Outlook,
    Schedule,
    fires_after,
    outlook,
    parse,
)
from foresail.cron.zones import load_zone

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
SECOND = timedelta(seconds=1)
ZONES = (
    "UTC",
    "Africa/Cairo",
    "America/Havana",
    "America/Santiago",
    "Antarctica/Troll",
    "Asia/Beirut",
    "Atlantic/Azores",
    "Australia/Lord_Howe",
    "Europe/Berlin",
    "Europe/Dublin",
    "America/Nuuk",
)
SPECS = (
    "0 * * * *",
    "*/20 1-3 * * *",
    "30 2 * * *",
    "0 0 * * *",
    "15 1,23 * * 0,5",
    "0 8 * * 5",
    "45 23 */2 * *",
    "59 0 24-31 3,4,10 *",
    "0 0 1 * *",
    "30 2 29 3 *",
)


def at(text: str) -> datetime:
    return datetime.fromisoformat(text)


@cache
def fires_of(text: str, dialect: Dialect, name: str) -> list[datetime]:
    """All fires of 2024 to 2027 by walking forward from long before."""
    end = at("2028-01-01T00:00Z")
    return list(takewhile(lambda fire: fire < end, fires_after(parse(text, dialect, name), at("2023-01-01T00:00Z"))))


@pytest.mark.repeats
@pytest.mark.parametrize("name", ZONES)
@pytest.mark.parametrize("dialect", Dialect)
def test_previous_is_the_last_fire_of_a_chain_that_was_walked_in_full(dialect: Dialect, name: str) -> None:
    random = Random(f"{dialect} {name}")  # noqa: S311  a reproducible sample
    changes = [start for start in load_zone(name).near.starts if 1704067200 <= start < 1814400000] or [1774742400]
    for text in SPECS:
        schedule = parse(text, dialect, name)
        fires = fires_of(text, dialect, name)
        for _ in range(60):
            reach = random.choice((2, 4000, 86400, 5 * 86400, 90 * 86400))
            before = EPOCH + timedelta(seconds=random.choice(changes) + random.uniform(-reach, reach))
            expected = fires[bisect_left(fires, before) - 1]
            assert schedule.previous(before) == expected, (text, before)


@pytest.mark.repeats
def test_previous_and_outlook_agree_with_chains_of_random_schedules_walked_in_full() -> None:
    random = Random(2026)  # noqa: S311  a reproducible sample
    specs, starts = SpecMaker(random), StartMaker(random)
    compared = 0
    while compared < 1000:
        name, start, _ = starts.make()
        try:
            schedule = parse(specs.make().text, random.choice(list(Dialect)), name)
        except CronError:
            continue
        if not isinstance(schedule, CalendarSchedule) or schedule.never_fires:
            continue
        anchor = EPOCH + timedelta(seconds=max(start, 10**9))
        now = anchor + random.choice((9, 30, 400, 1500)) * timedelta(days=1) * random.uniform(0.95, 1)
        due = upcoming = first = None
        for steps, fire in enumerate(fires_after(schedule, anchor)):
            first = first or fire
            if steps == 2000:
                now = fire - SECOND
            if fire > now:
                upcoming = fire
                break
            due = fire
        assert outlook(schedule, anchor, now) == Outlook(due, upcoming), schedule
        # Chains from different anchors have met once they have passed a day of fires.
        if first and due and first < due - timedelta(days=1) and due < now:
            assert schedule.previous(now) == due, (schedule, now)
            compared += 1


def test_a_chain_out_of_step_loses_a_fire_a_week_after_the_clocks_changed() -> None:
    # On 7 April 2030 clocks on Lord Howe go back half an hour; robfig's and go-cron's searches that leave
    # that Sunday look at half past each midnight until the next Sunday has passed.
    for dialect in Dialect:
        schedule = parse("@weekly", dialect, "Australia/Lord_Howe")
        assert schedule.next(at("2030-04-07T00:00+11:00")) == at("2030-04-21T00:00+10:30")
        assert schedule.previous(at("2030-04-20T00:00Z")) == at("2030-04-07T00:00+11:00")


def schedules() -> st.SearchStrategy[Schedule]:
    def made(seed: int, dialect: Dialect, name: str) -> Schedule:
        maker = SpecMaker(Random(seed))  # noqa: S311  a reproducible sample
        while True:
            try:
                schedule = parse(maker.make().text, dialect, name)
            except CronError:
                continue
            if isinstance(schedule, CalendarSchedule) and schedule.never_fires is None:
                return schedule

    return st.builds(made, st.integers(0, 10**9), st.sampled_from(Dialect), st.sampled_from(ZONES))


def instants() -> st.SearchStrategy[datetime]:
    starts = StartMaker(Random(0)).changes  # noqa: S311  only its list of changes is used
    near = st.builds(
        lambda change, seconds: EPOCH + timedelta(seconds=change[1] + seconds),
        st.sampled_from(starts),
        st.integers(-200_000, 200_000),
    )
    anywhere = st.datetimes(datetime(1990, 1, 1), datetime(2300, 1, 1), timezones=st.just(UTC))  # noqa: DTZ001  the zone is given beside it
    return near | anywhere


@pytest.mark.repeats
@settings(max_examples=600, deadline=None, derandomize=True)
@given(schedules(), instants())
def test_nothing_fires_between_previous_and_the_instant(schedule: Schedule, before: datetime) -> None:
    fire = schedule.previous(before)
    if fire is None:
        # Some never fire by the clock though they do by the calendar: 30 March is a Sunday only in years in
        # which Beirut has no midnight on that day. Searches ahead from every fifth year must agree.
        starts = [before - timedelta(days=366 * years) for years in range(5, 46, 5)]
        assert all((found := schedule.next(start)) is None or found >= before for start in starts)
        return
    assert fire < before
    following = schedule.next(fire)
    assert following is None or following >= before


def test_previous_skips_the_month_that_next_steps_over() -> None:
    # Havana had no midnight on 1 April 2001: from January the search steps over April and reaches 2 July.
    schedule = parse("*/5 17 * */3 *", Dialect.ROBFIG, "America/Havana")
    january, july = at("2001-01-31T22:55Z"), at("2001-07-02T21:00Z")
    assert schedule.next(january) == july
    assert schedule.previous(july) == january


@pytest.mark.repeats
@settings(max_examples=600, deadline=None, derandomize=True)
@given(schedules(), instants())
def test_previous_undoes_next_within_a_chain(schedule: Schedule, start: datetime) -> None:
    anchor = schedule.previous(start)
    assert anchor is not None
    fire = schedule.next(anchor)
    if fire is not None:
        assert schedule.previous(fire) == anchor
        assert schedule.previous(fire + SECOND) == fire


@pytest.mark.repeats
@settings(max_examples=300, deadline=None, derandomize=True)
@given(schedules(), instants(), st.integers(1, 40 * 86400))
def test_between_is_the_part_of_the_chain_that_lies_between(schedule: Schedule, start: datetime, length: int) -> None:
    end = start + timedelta(seconds=length)
    fires = []
    for fire in schedule.between(start, end):
        fires.append(fire)
        if len(fires) == 300:
            end = fire + SECOND
            break
    backward = []
    fire_before = schedule.previous(end)
    while fire_before is not None and fire_before >= start:
        backward.append(fire_before)
        fire_before = schedule.previous(fire_before)
    assert fires == backward[::-1]


@pytest.mark.repeats
@settings(max_examples=300, deadline=None, derandomize=True)
@given(schedules(), instants(), st.integers(0, 4 * 366 * 86400))
def test_an_outlook_is_the_chain_from_the_anchor_walked_in_full(
    schedule: Schedule, anchor: datetime, length: int
) -> None:
    now = anchor + timedelta(seconds=length)
    due = None
    upcoming = None
    for steps, fire in enumerate(fires_after(schedule, anchor)):
        if steps > 4000:
            now = fire - SECOND
        if fire > now:
            upcoming = fire
            break
        due = fire
    assert outlook(schedule, anchor, now) == Outlook(due, upcoming)


def test_the_chain_of_a_fixed_period_keeps_the_phase_of_its_anchor() -> None:
    schedule = parse("@every 1h30m")
    assert isinstance(schedule, IntervalSchedule)
    anchor = at("2020-01-01T00:10:20.5Z")
    expected = Outlook(at("2026-03-28T22:40:20Z"), at("2026-03-29T00:10:20Z"))
    assert outlook(schedule, anchor, at("2026-03-29T00:10:19Z")) == expected
    assert schedule.previous(at("2026-01-01T00:00Z")) == at("2025-12-31T22:30Z")
    assert list(schedule.between(at("2026-01-01T00:00Z"), at("2026-01-01T04:30Z"))) == [
        at("2026-01-01T01:30Z"),
        at("2026-01-01T03:00Z"),
    ]


def test_an_outlook_of_a_schedule_that_gave_up_has_nothing_upcoming() -> None:
    leap_day = parse("0 0 29 2 *")
    assert outlook(leap_day, at("2090-01-01T00:00Z"), at("2110-01-01T00:00Z")) == Outlook(at("2096-02-29T00:00Z"), None)
    assert outlook(parse("@none", Dialect.GOCRON), EPOCH, EPOCH) == Outlook(None, None)
    assert parse("0 0 31 2 *").previous(EPOCH) is None


def test_between_takes_its_start_and_leaves_its_end() -> None:
    midnights = parse("0 0 * * *")
    start, end = at("2026-01-01T00:00Z"), at("2026-01-03T00:00Z")
    assert list(midnights.between(start, end)) == [start, at("2026-01-02T00:00Z")]


@pytest.mark.parametrize("name", ["America/New_York", "Africa/Monrovia", "Asia/Kathmandu"])
def test_local_mean_time_has_fires_before_it_too(name: str) -> None:
    schedule = parse("0 12 * * *", zone=name)
    before = at("1860-05-05T00:00Z")
    fire = schedule.previous(before)
    assert fire is not None
    assert before - timedelta(days=2) < fire < before


def test_between_goes_on_where_the_library_gives_up() -> None:
    # 31 October is a Sunday in 2021 and in 2027: more than the five years that a search looks ahead.
    schedule = parse("0 22 31 10 0", Dialect.GOCRON)
    both = [at("2021-10-31T22:00Z"), at("2027-10-31T22:00Z")]
    assert list(schedule.between(at("2021-01-01T00:00Z"), at("2028-01-01T00:00Z"))) == both
    assert list(schedule.between(at("2027-10-31T01:00Z"), at("2027-11-01T00:00Z"))) == both[1:]
    assert schedule.next(both[0]) is None
