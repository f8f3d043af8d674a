"""The POSIX rule at the end of a zone's file: its clock changes in every year after the table."""

import re
from dataclasses import dataclass
from datetime import date

_EPOCH = date(1970, 1, 1).toordinal()
_DAY = 86400
_NAME = r"(?:<[^>]*>|[^\d,<+-]{3,})"
_TIME = r"[+-]?\d+(?::\d+){0,2}"
_RULE = (
    rf"{_NAME}(?P<standard>{_TIME})"
    rf"(?:{_NAME}(?P<summer>{_TIME})?,(?P<start>[^,/]+)(?:/(?P<start_time>{_TIME}))?"
    rf",(?P<end>[^,/]+)(?:/(?P<end_time>{_TIME}))?)?"
)


@dataclass(frozen=True, slots=True)
class PosixRule:
    """Two UTC offsets in seconds and the rules for the yearly changes between them."""

    standard: int
    summer: int
    start: str = ""
    start_time: int = 0
    end: str = ""
    end_time: int = 0

    @property
    def changes_each_year(self) -> bool:
        """Return whether the clocks change each year."""
        return bool(self.start)

    def changes(self, year: int) -> tuple[tuple[int, int], tuple[int, int]]:
        """Return the two changes of a year in order: the instant and the new offset."""
        start = _day(self.start, year) * _DAY + self.start_time - self.standard
        end = _day(self.end, year) * _DAY + self.end_time - self.summer
        if start <= end:
            return (start, self.summer), (end, self.standard)
        return (end, self.standard), (start, self.summer)


def parse_posix_rule(text: str) -> PosixRule | None:
    """Return the rule, or None if the text has none."""
    rule = re.fullmatch(_RULE, text, re.ASCII)  # compiled with the first zone, not with the import
    if rule is None:
        return None
    standard = -_seconds(rule["standard"])
    if rule["start"] is None:
        return PosixRule(standard, standard)
    summer = -_seconds(rule["summer"]) if rule["summer"] else standard + 3600
    return PosixRule(
        standard,
        summer,
        rule["start"],
        _seconds(rule["start_time"] or "2"),
        rule["end"],
        _seconds(rule["end_time"] or "2"),
    )


def _seconds(time: str) -> int:
    hours, minutes, seconds = (*map(int, time.strip("+-").split(":")), 0, 0)[:3]
    size = hours * 3600 + minutes * 60 + seconds
    return -size if time.startswith("-") else size


def _day(rule: str, year: int) -> int:
    """Return the date of a rule in `year`, in days since 1970."""
    new_year = date(year, 1, 1).toordinal() - _EPOCH
    if rule.startswith("J"):  # J60 is 1 March in every year
        day = int(rule[1:])
        leap = date(year, 12, 31).timetuple().tm_yday == 366  # noqa: PLR2004  days of a leap year
        return new_year + day - 1 + (leap and day >= 60)  # noqa: PLR2004  the day named above
    if not rule.startswith("M"):
        return new_year + int(rule)
    month, week, weekday = map(int, rule[1:].split("."))
    first = date(year, month, 1).toordinal() - _EPOCH
    after = date(year + month // 12, month % 12 + 1, 1).toordinal() - _EPOCH
    day = first + (weekday - first - 4) % 7 + 7 * (week - 1)  # 1970 began on a Thursday
    return day if day < after else day - 7
