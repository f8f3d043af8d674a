"""The three kinds of schedule, how each finds its fires, and how controllers follow one from fire to fire.

Instants are passed as any aware datetime and returned in UTC, to the second.
"""

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import lru_cache
from itertools import islice

from foresail.cron.civil_time import EPOCH, from_unix, unix_ceiling, unix_floor
from foresail.cron.describe import describe_calendar, describe_period
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.search import FireSearch
from foresail.cron.zones import load_zone

_MINUTE, _DAY = timedelta(minutes=1), timedelta(days=1)
_CHUNK = 256  # days; a schedule that fires at most this often in them is searched once for all of them


@dataclass(frozen=True, slots=True)
class CalendarSchedule:
    """Five cron fields in a time zone: fires at the instants at which the dialect's library fires."""

    text: str
    dialect: Dialect
    zone: str
    fields: Fields
    _search: FireSearch = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_search", FireSearch(self.fields, self.dialect, load_zone(self.zone)))

    @property
    def never_fires(self) -> str | None:
        """Why no date ever matches, or None if some do."""
        return self.fields.never_fires(self.dialect)

    def next(self, after: datetime) -> datetime | None:
        """Return exactly what the library's `Next` returns: a later instant, or None where it gives up.

        It gives up at the end of the fifth year after `after`; we also return None beyond the year 9999.
        Near a clock change the result depends on the starting instant. To predict a controller, follow
        `foresail.cron.fires_after` from the instant that the controller counts from.
        """
        fire = self._search.next_fire(unix_floor(after))
        return None if fire is None else from_unix(fire)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire before an instant, None if there is none within 45 years.

        It is the last one that repeated calls of `next` reach before that instant. Where the starting
        instant matters, they start at the nearest earlier fire that every sequence reaches: one with another
        matching day before it and no clock change near the two or between them. A schedule too rare to
        have such fires is followed from 1, 5, 10, ... 45 years back: the first of these that gives two days
        of fires, or one, and does not give up on the way. So fires that a clock change hides from `next`
        are left out, and those that it adds are included.
        """
        fire = self._search.previous_fire(unix_ceiling(before))
        return None if fire is None else from_unix(fire)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the fires from `start` on and before `end`, consistent with `previous`."""
        search = self._search
        first = unix_ceiling(start)
        last = unix_ceiling(end)
        earlier = search.previous_fire(first)
        fire = search.next_fire_until(first - 1 if earlier is None else earlier, last)
        while fire is not None and fire < last:
            if fire >= first:
                instant = from_unix(fire)
                if instant is None:
                    return
                yield instant
            fire = search.next_fire_until(fire, last)

    def minutes_on(self, day: int) -> int:
        """Return the fires in a day of UTC, counted from 1970, as bits: one for each minute, the first is lowest.

        They are the same as those of `between`, without a search on most days.
        """
        minutes = self._search.regular_minutes(day)
        if minutes is None:
            rare = _rare_minutes(self, day // _CHUNK)
            start = EPOCH + day * _DAY
            fires = _minutes(self.between(start, start + _DAY)) if rare is None else rare
            minutes = fires.get(day, 0)
        return minutes

    def last_fire(self, anchor: datetime, until: datetime) -> datetime | None:
        """Return the last fire counted from `anchor`: after `anchor` and not after `until`."""
        fire = self._search.previous_fire(unix_floor(until) + 1, unix_floor(anchor))
        return None if fire is None else from_unix(fire)

    def describe(self) -> str:
        """Describe in plain words when it fires."""
        return describe_calendar(self.fields, self.dialect, self.zone)


def _minutes(fires: Iterable[datetime]) -> dict[int, int]:
    """Return fires as bits, one for each minute, by their days since 1970."""
    minutes: dict[int, int] = {}
    for fire in fires:
        day, within = divmod(fire - EPOCH, _DAY)
        minutes[day] = minutes.get(day, 0) | 1 << within // _MINUTE
    return minutes


@lru_cache(1_000)
def _rare_minutes(schedule: CalendarSchedule, chunk: int) -> dict[int, int] | None:
    """Return the fires of many days of a schedule that fires rarely, for each search takes long; None for others."""
    start = EPOCH + chunk * _CHUNK * _DAY
    fires = list(islice(schedule.between(start, start + _CHUNK * _DAY), _CHUNK + 1))
    return _minutes(fires) if len(fires) <= _CHUNK else None


@dataclass(frozen=True, slots=True)
class IntervalSchedule:
    """`@every PERIOD`: fires a whole number of periods after the instant that it is counted from."""

    text: str
    dialect: Dialect
    zone: str
    period: timedelta

    @property
    def never_fires(self) -> str | None:
        """None: it always fires."""
        return None

    def next(self, after: datetime) -> datetime | None:
        """Return the instant one period after the second that contains `after`."""
        return from_unix(unix_floor(after) + self._seconds)

    def previous(self, before: datetime) -> datetime | None:
        """Return the instant one period before `before` (rounded up to a second)."""
        return from_unix(unix_ceiling(before) - self._seconds)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the fires before `end`, counted from `start`, which is not itself a fire."""
        first = unix_floor(start) + self._seconds
        for fire in range(first, unix_ceiling(end), self._seconds):
            instant = from_unix(fire)
            if instant is None:
                return
            yield instant

    def last_fire(self, anchor: datetime, until: datetime) -> datetime | None:
        """Return the last fire counted from `anchor`: after `anchor` and not after `until`."""
        start = unix_floor(anchor)
        periods = (unix_floor(until) - start) // self._seconds
        return from_unix(start + periods * self._seconds) if periods > 0 else None

    def describe(self) -> str:
        """Describe in plain words when it fires."""
        return describe_period(self._seconds)

    @property
    def _seconds(self) -> int:
        return self.period.days * 86400 + self.period.seconds


@dataclass(frozen=True, slots=True)
class ManualSchedule:
    """A go-cron schedule such as `@manual`, which fires only when someone triggers it."""

    text: str
    dialect: Dialect
    zone: str

    @property
    def never_fires(self) -> str | None:
        """Why it never fires."""
        return f"{self.text} runs only when triggered by hand"

    def next(self, after: datetime) -> datetime | None:
        """Return None: it never fires."""
        return _no_fire(after)

    def previous(self, before: datetime) -> datetime | None:
        """Return None: it never fires."""
        return _no_fire(before)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield nothing."""
        _no_fire(start, end)
        return iter(())

    def last_fire(self, anchor: datetime, until: datetime) -> datetime | None:
        """Return None: it never fires."""
        return _no_fire(anchor, until)

    def describe(self) -> str:
        """Describe in plain words that it never fires by itself."""
        return "never by itself: only when triggered by hand"


def _no_fire(*instants: datetime) -> datetime | None:
    for instant in instants:
        unix_floor(instant)  # a naive instant is an error here as elsewhere
    return None


Schedule = CalendarSchedule | IntervalSchedule | ManualSchedule


_MAX_STEPS = 64


@dataclass(frozen=True, slots=True)
class Outlook:
    """The last fire up to an instant and the first one after it."""

    due: datetime | None
    upcoming: datetime | None


def fires_after(schedule: Schedule, anchor: datetime) -> Iterator[datetime]:
    """Yield the fires after `anchor`, each found from the one before it, until the library gives up."""
    fire = schedule.next(anchor)
    while fire is not None:
        yield fire
        fire = schedule.next(fire)


def outlook(schedule: Schedule, anchor: datetime, now: datetime) -> Outlook:
    """Return the last fire after `anchor` that is not after `now`, and the one that follows.

    The anchor is what the controller counts from: the last scheduled time, or the creation. The cost does not
    grow with its age: after a few steps `last_fire` skips to a later fire that every sequence reaches.
    """
    due: datetime | None = None
    last = anchor
    for _ in range(_MAX_STEPS):
        fire = schedule.next(last)
        if fire is None or fire > now:
            return Outlook(due, fire)
        due = last = fire
    due = schedule.last_fire(last, now) or last
    return Outlook(due, schedule.next(due))
