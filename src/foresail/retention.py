"""Retention: which copies the rules of a policy keep, and which rule keeps each of them.

The rules are those of `restic forget` 0.18.1: `hourly: 24` keeps the newest copy of each of the last 24 hours that have
one, and so on for days, ISO weeks, months and years, all in the zone of the policy. While a rule has counts left, it
keeps the oldest copy too, so that the history is as long as it can be. `keep_good` comes on top of them and
outranks everything: the newest good copies stay, whatever the other rules say. A partial copy takes no place from a
good one: it is kept beside them, and in a period that has no good one.

A run belongs to the period of its slot. The newest one is that which was made last: its data are the newest, also if
the operator's clock was behind and took an earlier slot for due.
"""

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from enum import Enum

from foresail.cron.civil_time import unix_floor
from foresail.cron.zones import load_zone


class Rule(Enum):
    """Why a copy is kept."""

    LAST = "keepLast"
    HOURLY = "hourly"
    DAILY = "daily"
    WEEKLY = "weekly"
    MONTHLY = "monthly"
    YEARLY = "yearly"
    WITHIN = "keepWithin"
    GOOD = "keepGood"
    PINNED = "pinned"
    RESTORED = "a restore reads it"
    UNFINISHED = "unfinished"
    AFTER_GOOD = "newer than the newest good copy"
    NO_RULE = "no rule"


@dataclass(frozen=True, slots=True)
class Copy:
    """One backup, as far as retention is concerned."""

    name: str
    started: datetime
    is_good: bool  # as foresail.backups defines it
    is_finished: bool = True
    is_pinned: bool = False
    is_restored: bool = False  # a restore reads it
    is_partial: bool = False  # restorable, but not good
    created: datetime | None = None  # if it started for a slot: when it was made

    @property
    def made(self) -> datetime:
        """When it was made: a later one has newer data."""
        return self.created or self.started


@dataclass(frozen=True, slots=True)
class Rules:
    """How many copies to keep; with every number zero and no duration, all of them."""

    last: int = 0
    hourly: int = 0
    daily: int = 0
    weekly: int = 0
    monthly: int = 0
    yearly: int = 0
    within: timedelta | None = None
    good: int = 1
    time_zone: str = "UTC"

    @property
    def counts(self) -> Mapping[Rule, int]:
        """The number of each rule that counts periods."""
        return {
            Rule.LAST: self.last,
            Rule.HOURLY: self.hourly,
            Rule.DAILY: self.daily,
            Rule.WEEKLY: self.weekly,
            Rule.MONTHLY: self.monthly,
            Rule.YEARLY: self.yearly,
        }

    @property
    def is_empty(self) -> bool:
        """Whether nothing says which copies to keep, so that none is deleted."""
        counted = self.last or self.hourly or self.daily or self.weekly or self.monthly or self.yearly
        return not counted and self.within is None


_SHORTEST_HORIZON = timedelta(days=15)
_LONGEST_HORIZON = timedelta(hours=876_000)  # 100 years: Go cannot read a duration above 292

Period = Callable[[datetime], tuple[int, ...]]
_PERIODS: dict[Rule, Period] = {
    Rule.HOURLY: lambda wall: (wall.year, wall.month, wall.day, wall.hour),
    Rule.DAILY: lambda wall: (wall.year, wall.month, wall.day),
    Rule.WEEKLY: lambda wall: wall.isocalendar()[:2],
    Rule.MONTHLY: lambda wall: (wall.year, wall.month),
    Rule.YEARLY: lambda wall: (wall.year,),
}
_LENGTHS = {
    Rule.LAST: timedelta(),
    Rule.HOURLY: timedelta(hours=1),
    Rule.DAILY: timedelta(days=1),
    Rule.WEEKLY: timedelta(days=7),
    Rule.MONTHLY: timedelta(days=31),
    Rule.YEARLY: timedelta(days=366),
}


def kept(copies: Iterable[Copy], rules: Rules) -> dict[str, tuple[Rule, ...]]:
    """Return for each copy the rules that keep it; a copy that no rule keeps has none.

    The counting rules see finished, good copies only: a failed run takes no place from a good one. A finished copy
    that is not good stays until a good one is newer.
    """
    everything = sorted(copies, key=oldest_first, reverse=True)
    reasons: dict[str, list[Rule]] = {copy.name: [] for copy in everything}
    good = [copy for copy in everything if copy.is_finished and copy.is_good]
    if rules.is_empty:
        return dict.fromkeys(reasons, (Rule.NO_RULE,))
    for rule, names in (*_by_rule(good, rules), *_partial_by_rule(everything, rules)):
        for name in names:
            reasons[name].append(rule)
    newest_good = good[0].made if good else None
    for copy in everything:
        reasons[copy.name] += _regardless_of_counts(copy, newest_good)
    return {name: tuple(kept_by) for name, kept_by in reasons.items()}


def _regardless_of_counts(copy: Copy, newest_good: datetime | None) -> list[Rule]:
    rules = []
    if copy.is_pinned:
        rules.append(Rule.PINNED)
    if copy.is_restored:
        rules.append(Rule.RESTORED)
    if not copy.is_finished:
        rules.append(Rule.UNFINISHED)
    elif not copy.is_good and (newest_good is None or copy.made > newest_good):
        rules.append(Rule.AFTER_GOOD)
    return rules


def _by_rule(good: list[Copy], rules: Rules) -> Iterator[tuple[Rule, list[str]]]:
    """Yield the names that each rule keeps of good copies, the newest of which is the first."""
    yield Rule.LAST, [copy.name for copy in good[: rules.last]]
    walls = _wall_times(good, rules)
    for rule, count in rules.counts.items():
        if count and rule in _PERIODS:
            yield rule, _with_oldest(_of_periods(good, walls, _PERIODS[rule])[:count], good, count)
    if rules.within is not None and good:
        oldest = good[0].made - rules.within
        yield Rule.WITHIN, [copy.name for copy in good if copy.made > oldest]
    yield Rule.GOOD, [copy.name for copy in good[: rules.good]]


def _partial_by_rule(everything: list[Copy], rules: Rules) -> Iterator[tuple[Rule, list[str]]]:
    """Yield the names of partial copies that each rule keeps beside the good ones."""
    restorable = _restorable(everything)
    partial = {copy.name: copy for copy in restorable if not copy.is_good}
    if not partial:
        return
    good_first = sorted(restorable, key=lambda copy: not copy.is_good)  # stable: of a period, a good copy comes first
    walls = {copy.name: wall for copy, wall in zip(restorable, _wall_times(restorable, rules), strict=True)}
    yield Rule.LAST, [copy.name for copy in restorable[: rules.last] if copy.name in partial]
    for rule, count in rules.counts.items():
        if count and rule in _PERIODS:
            newest = _newest_of_periods(good_first, walls, _PERIODS[rule])[:count]
            yield rule, [name for name in _with_oldest(newest, restorable, count) if name in partial]
    if rules.within is not None:
        oldest = restorable[0].made - rules.within
        yield Rule.WITHIN, [copy.name for copy in partial.values() if copy.made > oldest]


def _restorable(copies: list[Copy]) -> list[Copy]:
    return [copy for copy in copies if copy.is_finished and (copy.is_good or copy.is_partial)]


def _newest_of_periods(good_first: list[Copy], walls: Mapping[str, datetime], period: Period) -> list[str]:
    """Return the first copy of each period that has one, the newest period first."""
    first: dict[tuple[int, ...], str] = {}
    for copy in good_first:
        first.setdefault(period(walls[copy.name]), copy.name)
    return [first[key] for key in sorted(first, reverse=True)]


def _with_oldest(names: list[str], copies: list[Copy], count: int) -> list[str]:
    """Return the names with that of the oldest copy, if the rule could keep more than these."""
    if len(names) >= count or not copies or copies[-1].name in names:
        return names
    return [*names, copies[-1].name]


def _of_periods(good: list[Copy], walls: list[datetime], period: Period) -> list[str]:
    """Return the newest copy of each period that has one, the newest period first."""
    newest: dict[tuple[int, ...], str] = {}
    for copy, wall in zip(good, walls, strict=True):
        newest.setdefault(period(wall), copy.name)
    return list(newest.values())


def _wall_times(copies: list[Copy], rules: Rules) -> list[datetime]:
    return [_wall_time(copy.started, rules.time_zone) for copy in copies]


def _wall_time(moment: datetime, zone: str) -> datetime:
    """Return the date and time that a clock in the zone shows."""
    instant = unix_floor(moment)
    table, shift = load_zone(zone).table_for(instant)
    return moment + timedelta(seconds=table.offset(instant + shift))


def oldest_first(copy: Copy) -> tuple[datetime, str]:
    """Sort copies by when they were made, and those of one second by the time or number in which their names end."""
    return copy.made, copy.name


def why_not_kept(copies: Iterable[Copy], rules: Rules) -> Callable[[Copy], str]:
    """Return what says of a copy that no rule keeps by which rule it was the next to keep; for people."""
    good = [copy for copy in sorted(copies, key=oldest_first, reverse=True) if copy.is_finished and copy.is_good]
    walls = _wall_times(good, rules)
    counted = [rule for rule in _PERIODS if rules.counts[rule]]
    newest = {rule: set(_of_periods(good, walls, _PERIODS[rule])) for rule in counted}

    def why(copy: Copy) -> str:
        if not (copy.is_finished and copy.is_good):
            return "it is not good, and a newer Backup is"
        beyond = [
            f"{rule.value} {rules.counts[rule]} keeps newer ones" for rule in counted if copy.name in newest[rule]
        ]
        if beyond:
            return ", ".join(beyond)
        if counted:
            return "newer Backups of the same periods are kept"
        if rules.last:
            return f"{Rule.LAST.value} {rules.last} keeps newer ones"
        return f"it is older than {Rule.WITHIN.value}"

    return why


def horizon(rules: Rules, interval: timedelta) -> timedelta:
    """Return how long the rules keep a copy if each run succeeds, doubled: runs may fail for as long again.

    The interval is the longest time between two runs. A period without a run does not count, so where runs are rarer
    than the periods of a rule, it keeps as many runs. At most 100 years: a ttl that Go cannot read, in one Backup,
    stops Velero from listing all of them.
    """
    spans = [count * max(_LENGTHS[rule], interval) for rule, count in rules.counts.items()]
    longest = max(*spans, rules.good * interval, rules.within or timedelta(), _SHORTEST_HORIZON)
    return min(2 * longest, _LONGEST_HORIZON)
