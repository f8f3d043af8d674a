"""Finds the fires of a calendar schedule in both directions."""

from bisect import bisect_right

from foresail.cron.civil import civil, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.forward import Forward
from foresail.cron.zone import DAY, Table, Zone

_RAREST_DAYS = 45 * 366  # 29 February on a given weekday leaves gaps of forty years
_SHORTEST_MONTH = 28


class Search(Forward):
    """Looks forward as the dialect does, and backward for what looking forward would have found."""

    __slots__ = ("_last_second", "_never")

    def __init__(self, fields: Fields, dialect: Dialect, zone: Zone) -> None:
        super().__init__(fields, dialect, zone)
        self._never = fields.never_fires(dialect) is not None
        self._last_second = (fields.hours.bit_length() - 1) * 3600 + (fields.minutes.bit_length() - 1) * 60

    def before(self, instant: int, anchor: int | None = None) -> int | None:
        """Return the last fire before an instant in the chain that comes from the last quiet fire before it.

        With an anchor, the chain starts there if there is no quiet fire between the two.
        """
        if self._never:
            return None
        table, shift = self._zone.table_for(instant)
        start = instant + shift - 1
        segment = bisect_right(table.starts, start) - 1
        today, second = divmod(start + table.offsets[segment], DAY)
        quiet_today = table.quiet_from[segment] <= today < table.quiet_until[segment]
        fire = self._last_quiet_fire(table, today, second)
        if fire is not None:
            undisturbed = quiet_today and fire >= table.starts[segment]
            fire -= shift
            if undisturbed:
                return fire if anchor is None or fire > anchor else None
        if anchor is not None and (fire is None or fire <= anchor):
            return self._last_of_chain(anchor, instant)
        if fire is not None:
            return self._last_of_chain(fire, instant) or fire
        return self._last_without_quiet_days(instant)

    def _last_of_chain(self, start: int, end: int) -> int | None:
        last = None
        fire = self.after(start)
        while fire is not None and fire < end:
            last = fire
            fire = self.after(fire)
        return last

    def _last_without_quiet_days(self, instant: int) -> int | None:
        # Clocks on local mean time are off by odd seconds, and no day is quiet for decades.
        for days in (1, 32, 400, _RAREST_DAYS):
            last = self._last_of_chain(instant - days * DAY, instant)
            if last is not None:
                return last
        return None

    def _last_quiet_fire(self, table: Table, today: int, second: int) -> int | None:
        """Return the last fire on a quiet day up to `today`, on which it is not after `second`."""
        year, month, day = civil(today)
        first = today - day + 1
        last_today = self._second_until(second)
        if last_today is None:
            day -= 1
        for _ in range(_RAREST_DAYS // _SHORTEST_MONTH):
            upto = min(day, month_length(year, month))
            days = self._days[(first + 4) % 7] & (2 << upto) - 1 if self._months >> month & 1 else 0
            while days:
                day = days.bit_length() - 1
                found = first + day - 1
                segment = bisect_right(table.starts, found * DAY) - 1
                if table.quiet_from[segment] <= found < table.quiet_until[segment]:
                    at = last_today if found == today and last_today is not None else self._last_second
                    return found * DAY + at - table.offsets[segment]
                days ^= 1 << day
            year, month = (year, month - 1) if month > 1 else (year - 1, 12)
            first -= month_length(year, month)
            day = 31
        return None

    def _second_until(self, second: int) -> int | None:
        """Return the last second of the day, not after the given one, at which the time matches."""
        hour, minute = divmod(second // 60, 60)
        if self._hours >> hour & 1:
            earlier = self._minutes & (2 << minute) - 1
            if earlier:
                return hour * 3600 + (earlier.bit_length() - 1) * 60
        earlier = self._hours & (1 << hour) - 1
        if earlier:
            return (earlier.bit_length() - 1) * 3600 + (self._minutes.bit_length() - 1) * 60
        return None
