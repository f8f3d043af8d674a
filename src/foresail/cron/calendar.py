"""A schedule that fires at wall-clock times of certain days."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime

from foresail.cron.describe import describe_calendar
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.instant import from_unix, unix_ceiling, unix_floor
from foresail.cron.search import Search
from foresail.cron.zone import zone


@dataclass(frozen=True, slots=True)
class Calendar:
    """Five fields read in a zone: fires at each minute they allow, as the dialect's library does.

    Instants go in as any aware datetime and come out in UTC, to the second.
    """

    text: str
    dialect: Dialect
    zone: str
    fields: Fields
    _search: Search = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "_search", Search(self.fields, self.dialect, zone(self.zone)))

    @property
    def never_fires(self) -> str | None:
        """Why no date will ever match, or None if some do."""
        return self.fields.never_fires(self.dialect)

    def next(self, after: datetime) -> datetime | None:
        """Return exactly what the library's `Next` returns: a later instant, or None where it gives up.

        It gives up at the end of the fifth year after `after`; we also return None beyond the year 9999.
        What it finds near a change of clocks depends on where it starts: to predict a controller, follow
        the chain from that controller's anchor (`foresail.cron.chain`).
        """
        found = self._search.after(unix_floor(after))
        return None if found is None else from_unix(found)

    def previous(self, before: datetime) -> datetime | None:
        """Return the last fire before an instant, None if there is none within 45 years.

        It is the last one that the chain of `next` gives before that instant. Where it matters from where
        the chain comes, it comes from the nearest earlier fire on which all chains meet: one with another
        matching day before it and no change of clocks near the two or between them. A schedule too rare to
        have such fires is followed from 1, 5, 10, ... 45 years back: the first of these that gives two days
        of fires, or one, and does not give up on the way. Fires that a change of clocks hides from the
        chain are not returned, and those that it adds are.
        """
        found = self._search.before(unix_ceiling(before))
        return None if found is None else from_unix(found)

    def between(self, start: datetime, end: datetime) -> Iterator[datetime]:
        """Yield the fires from `start` on and before `end`, in the chain that `previous` comes from."""
        search = self._search
        first, last = unix_ceiling(start), unix_ceiling(end)
        earlier = search.before(first)
        fire = search.onward(first - 1 if earlier is None else earlier, last)
        while fire is not None and fire < last:
            if fire >= first:
                found = from_unix(fire)
                if found is None:
                    return
                yield found
            fire = search.onward(fire, last)

    def last_in_chain(self, anchor: datetime, until: datetime) -> datetime | None:
        """Return the last fire after `anchor` and not after `until` in the chain from `anchor`."""
        found = self._search.before(unix_floor(until) + 1, unix_floor(anchor))
        return None if found is None else from_unix(found)

    def describe(self) -> str:
        """Say in plain words when it fires."""
        return describe_calendar(self.fields, self.dialect, self.zone)
