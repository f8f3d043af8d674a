"""Recurring windows, against a list of every minute."""

from datetime import UTC, datetime, timedelta
from random import Random

import pytest

from foresail.cron import CalendarSchedule, Dialect, fires_after, parse
from foresail.slots.windows import SECOND, Window, Windows, is_open_since, last_inside, next_opening

START = datetime(2026, 3, 27, tzinfo=UTC)  # two days before clocks change in Berlin
DAYS = 4
MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EXPRESSIONS = ("0 22 * * *", "30 2 * * *", "0 0 * * 6,0", "15 */6 * * *", "0 9-17 * * 1-5")


def window(text: str, length: timedelta, zone: str = "UTC") -> Window:
    """Return a window that opens at the fires of an expression."""
    cron = parse(text, Dialect.ROBFIG, zone)
    assert isinstance(cron, CalendarSchedule)
    return Window(cron, length)


def minutes_of(each: Window) -> set[datetime]:
    """Return every minute that is in a window, one fire after the other."""
    found: set[datetime] = set()
    for fire in fires_after(each.cron, START - timedelta(days=20)):
        if fire > START + timedelta(days=DAYS + 1):
            return found
        found |= {fire + number * MINUTE for number in range(each.length // MINUTE)}
    return found


@pytest.mark.parametrize("seed", range(20))
def test_searches_agree_with_a_list_of_every_minute(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - not for secrets

    def some(most: int) -> tuple[Window, ...]:
        zones = ("UTC", "Europe/Berlin", "America/New_York")
        lengths = (30 * MINUTE, 3 * HOUR, 13 * HOUR)
        number = random.randrange(most + 1)
        return tuple(
            window(random.choice(EXPRESSIONS), random.choice(lengths), random.choice(zones)) for _ in range(number)
        )

    windows = Windows(some(2), some(2))
    allowed = set().union(*map(minutes_of, windows.allowed))
    excluded = set().union(*map(minutes_of, windows.excluded))
    every = [START + number * MINUTE for number in range(DAYS * 24 * 60)]
    is_open = {at: at not in excluded and (not windows.allowed or at in allowed) for at in every}
    for at in random.sample(every, 20):
        assert windows.is_open(at) is is_open[at]
        later = next((each for each in every if each >= at and is_open[each]), None)
        found = next_opening(windows, at)
        assert later == (found if found is not None and found <= every[-1] else None)
        earlier = next((each for each in reversed(every) if each <= at and is_open[each]), None)
        last = last_inside(windows, at, START - SECOND)
        assert (earlier is None) is (last is None)
        if last is not None and earlier is not None:
            assert earlier <= last < earlier + MINUTE
        since = random.choice([each for each in every if each <= at])
        assert is_open_since(windows, since, at) is all(is_open[each] for each in every if since <= each <= at)


ODD_ZONES = ("UTC", "Europe/Berlin", "America/Santiago", "Australia/Lord_Howe", "Asia/Kathmandu", "Asia/Beirut")


@pytest.mark.parametrize("zone", ODD_ZONES)
@pytest.mark.parametrize(
    "text", ["*/20 1-2 * * *", "30 2 * * *", "*/7 0-3 * * 0", "15 23 1,31 * *", "0 0 29 2 *", "5 0 * 4 6"]
)
def test_minutes_of_every_day_of_two_years_are_those_of_the_fires(zone: str, text: str) -> None:
    cron = window(text, HOUR, zone).cron
    epoch = datetime(1970, 1, 1, tzinfo=UTC)
    first = (datetime(2027, 3, 1, tzinfo=UTC) - epoch).days
    fires: dict[int, int] = {}
    for fire in cron.between(epoch + timedelta(first), epoch + timedelta(first + 731)):
        day, within = divmod(fire - epoch, timedelta(1))
        fires[day] = fires.get(day, 0) | 1 << within // MINUTE
    for day in range(first, first + 731):
        assert cron.minutes_on(day) == fires.get(day, 0), epoch + timedelta(day)


def test_windows_that_never_open_end_the_search() -> None:
    always = window("* * * * *", HOUR)
    for closed in (Windows(excluded=(always,)), Windows((window("0 0 * * *", HOUR),), (always,))):
        assert next_opening(closed, START) is None
        assert last_inside(closed, START, START - timedelta(days=3_000)) is None


def test_windows_that_never_close_end_the_search() -> None:
    assert is_open_since(Windows((window("* * * * *", HOUR),)), START - timedelta(days=3_000), START)
