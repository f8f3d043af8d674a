"""Finds the fires of a calendar schedule: by sums on quiet days, by the literal search on the others."""

from bisect import bisect_right

from foresail.cron.civil import civil, month_length
from foresail.cron.dialect import Dialect
from foresail.cron.fields import Fields
from foresail.cron.literal import LiteralSearch, Sets
from foresail.cron.zone import DAY, Table, Zone

_YEARS_AHEAD = 5
_RAREST_DAYS = 45 * 366  # 29 February on a given weekday leaves gaps of forty years


class Search:
    """What the fields of a schedule in a zone come down to when its fires are looked for."""

    __slots__ = ("_days", "_first_second", "_hours", "_last_second", "_minutes", "_months", "_never", "_sets", "_zone")

    def __init__(self, fields: Fields, dialect: Dialect, zone: Zone) -> None:
        self._zone = zone
        self._never = fields.never_fires(dialect) is not None
        self._months = fields.months
        self._hours = fields.hours
        self._minutes = fields.minutes
        self._days = fields.days_by_first_weekday(dialect)
        self._sets = Sets(
            self._months, self._days, self._hours, self._minutes, dialect is Dialect.GOCRON
        )
        self._first_second = _lowest(fields.hours) * 3600 + _lowest(fields.minutes) * 60
        self._last_second = (fields.hours.bit_length() - 1) * 3600 + (fields.minutes.bit_length() - 1) * 60

    def after(self, instant: int) -> int | None:
        """Return what the dialect's `Next` returns for an instant: a later instant, or None."""
        start = instant + 1
        if self._never:
            return None
        if start >= self._zone.horizon:
            table, shift = self._zone.table_for(start)
            found = self._after(table, start + shift)
            return None if found is None else found - shift
        return self._after(self._zone.near, start)

    def _after(self, table: Table, start: int) -> int | None:
        segment = bisect_right(table.starts, start) - 1
        offset = table.offsets[segment]
        today, second = divmod(start + offset, DAY)
        year, month, day = civil(today)
        if not table.quiet_from[segment] <= today < table.quiet_until[segment]:
            if offset % 60 == 0 and self._months >> month & 1 and self._days[(today - day + 5) % 7] >> day & 1:
                found = self._within_the_hour(second, start)
                if found is not None and (segment + 1 == len(table.starts) or found < table.starts[segment + 1]):
                    return found
            return LiteralSearch(self._sets, table, start, moved=False).run(year + _YEARS_AHEAD)
        since = today
        later = 0
        if self._months >> month & 1:
            days = self._days[(today - day + 5) % 7]
            if days >> day & 1:
                at = self._second_from(second)
                if at is not None:
                    return today * DAY + at - offset
            later = days >> (day + 1)
        else:
            since = today - day  # the search first goes back to the first of the month
        found = self._day_after(today, year, month, day, later)
        if found is None and not table.has_gap(since, today + 366 * (_YEARS_AHEAD + 1)):
            return None
        if found is None or table.has_gap(since, found):
            return LiteralSearch(self._sets, table, start, moved=False).run(year + _YEARS_AHEAD)
        if not table.quiet_from[segment] <= found < table.quiet_until[segment]:
            segment = bisect_right(table.starts, found * DAY) - 1
            if not table.quiet_from[segment] <= found < table.quiet_until[segment]:
                midnight = table.at(found * DAY)
                return LiteralSearch(self._sets, table, midnight, moved=True).run(year + _YEARS_AHEAD)
        return found * DAY + self._first_second - table.offsets[segment]

    def _within_the_hour(self, second: int, instant: int) -> int | None:
        """Return the next instant that matches before the wall clock's hour is over."""
        hour, minute = second // 3600, (second % 3600 + 59) // 60
        later = self._minutes >> minute if self._hours >> hour & 1 else 0
        return instant - second % 3600 + (minute + _lowest(later)) * 60 if later else None

    def _second_from(self, second: int) -> int | None:
        """Return the first second of the day, not before the given one, at which the time matches."""
        hour, minute = divmod((second + 59) // 60, 60)
        if self._hours >> hour & 1:
            later = self._minutes >> minute
            if later:
                return hour * 3600 + (minute + _lowest(later)) * 60
        later = self._hours >> (hour + 1)
        if later:
            return (hour + 1 + _lowest(later)) * 3600 + _lowest(self._minutes) * 60
        return None

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
        fire = self._last_quiet_fire(table, today, second if quiet_today else -1)
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
        if self._second_until(second) is None:
            day -= 1
        for _ in range(_RAREST_DAYS // 28):
            length = month_length(year, month)
            days = self._days[(first + 4) % 7] & (2 << min(day, length)) - 1 if self._months >> month & 1 else 0
            while days:
                day = days.bit_length() - 1
                found = first + day - 1
                segment = bisect_right(table.starts, found * DAY) - 1
                if table.quiet_from[segment] <= found < table.quiet_until[segment]:
                    at = self._second_until(second) if found == today else self._last_second
                    return found * DAY + (self._last_second if at is None else at) - table.offsets[segment]
                days ^= 1 << day
            month -= 1
            if month == 0:
                month = 12
                year -= 1
            first -= month_length(year, month)
            day = 31
        return None

    def _second_until(self, second: int) -> int | None:
        """Return the last second of the day, not after the given one, at which the time matches."""
        hour, minute = divmod(second // 60, 60)
        if second < 0:
            return None
        if self._hours >> hour & 1:
            earlier = self._minutes & (2 << minute) - 1
            if earlier:
                return hour * 3600 + (earlier.bit_length() - 1) * 60
        earlier = self._hours & (1 << hour) - 1
        if earlier:
            return (earlier.bit_length() - 1) * 3600 + (self._minutes.bit_length() - 1) * 60
        return None

    def _day_after(self, today: int, year: int, month: int, day: int, later: int) -> int | None:
        """Return the next matching day by the calendar alone; `later` has this month's days beyond `day`."""
        length = month_length(year, month)
        if later:
            ahead = (later & -later).bit_length()
            if day + ahead <= length:
                return today + ahead
        first = today - day + 1
        last_year = year + _YEARS_AHEAD
        months = self._months
        while True:
            first += length
            month += 1
            if month > 12:  # noqa: PLR2004  months of a year
                month = 1
                year += 1
                if year > last_year:
                    return None
            length = month_length(year, month)
            if months >> month & 1:
                days = self._days[(first + 4) % 7]
                if days:
                    ahead = _lowest(days)
                    if ahead <= length:
                        return first + ahead - 1


def _lowest(bits: int) -> int:
    return (bits & -bits).bit_length() - 1
