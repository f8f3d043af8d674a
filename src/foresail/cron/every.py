"""Schedules without a calendar: at a fixed period, and never by themselves."""

from collections.abc import Iterator
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.cron.describe import describe_period
from foresail.cron.dialect import Dialect
from foresail.cron.instant import from_unix, unix_ceiling, unix_floor


@dataclass(frozen=True, slots=True)
class Every:
    """`@every PERIOD`: fires a whole number of seconds after whatever instant it is asked from.

    It has no phase of its own: its fires are those of the chain from an anchor.
    """

    text: str
    dialect: Dialect
    zone: str
    period: timedelta

    @property
    def never_fires(self) -> str | None:
        """None: it always fires."""
        return None

    def next(self, after: datetime) -> datetime | None:
        """Return the instant one period after the second that `after` lies in."""
        return from_unix(unix_floor(after) + self._seconds)

    def previous(self, before: datetime) -> datetime | None:
        """Return the instant from which the chain would fire at `before` (rounded up to a second)."""
        return from_unix(unix_ceiling(before) - self._seconds)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the fires before `end` of the chain from `start`, which is itself the anchor and no fire."""
        first = unix_floor(start) + self._seconds
        for fire in range(first, unix_ceiling(end), self._seconds):
            found = from_unix(fire)
            if found is None:
                return
            yield found

    def last_in_chain(self, anchor: datetime, until: datetime) -> datetime | None:
        """Return the last fire after `anchor` and not after `until` in the chain from `anchor`."""
        start = unix_floor(anchor)
        periods = (unix_floor(until) - start) // self._seconds
        return from_unix(start + periods * self._seconds) if periods > 0 else None

    def describe(self) -> str:
        """Say in plain words when it fires."""
        return describe_period(self._seconds)

    @property
    def _seconds(self) -> int:
        return self.period.days * 86400 + self.period.seconds


@dataclass(frozen=True, slots=True)
class Never:
    """A go-cron schedule such as `@manual`, which only fires when someone triggers it."""

    text: str
    dialect: Dialect
    zone: str

    @property
    def never_fires(self) -> str | None:
        """Why it never fires."""
        return f"{self.text} waits to be triggered by hand"

    def next(self, after: datetime) -> datetime | None:
        """Return None, which is the answer to every instant."""
        return _nothing(after)

    def previous(self, before: datetime) -> datetime | None:
        """Return None, which is the answer to every instant."""
        return _nothing(before)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield nothing."""
        _nothing(start, end)
        return iter(())

    def last_in_chain(self, anchor: datetime, until: datetime) -> datetime | None:
        """Return None, which is the answer to every anchor."""
        return _nothing(anchor, until)

    def describe(self) -> str:
        """Say in plain words that it never fires by itself."""
        return "never by itself: only when triggered by hand"


def _nothing(*instants: datetime) -> datetime | None:
    for instant in instants:
        unix_floor(instant)  # naive instants are as wrong here as elsewhere
    return None
