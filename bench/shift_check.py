"""Judges one shift by brute force, and counts what came out of many."""

from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

from bench.shift_brute import AFTER_LAST, FIRST, inexpressible, minutes_of, read
from bench.shift_cases import CHANGING_ZONES, FIXED_ZONES, Case
from foresail.cron.dialect import Dialect
from foresail.cron.parser import parse
from foresail.cron.shift import InexactCause, Shifted, shift

SINCE: Final = datetime(2026, 11, 15, tzinfo=UTC)
FURTHEST_EAST: Final = 14 * 60
PAIR: Final = 2


@dataclass(frozen=True, slots=True)
class Judged:
    """The class that a case belongs to, and what is wrong with its shift, if anything."""

    kind: str
    wrong: str | None
    shifted: Shifted


def judge(case: Case) -> Judged:
    """Shift one case and compare each minute of eight years."""
    shifted = shift(parse(case.text, Dialect(case.dialect), case.zone), case.lead, SINCE)
    return Judged(kind(case, shifted), wrong(case, shifted), shifted)


def kind(case: Case, shifted: Shifted) -> str:
    """Name the class of an answer."""
    if not shifted.exact:
        return f"not exact: {shifted.cause.value if shifted.cause else 'no cause'}"
    number = {0: "never fires", 1: "one", 2: "two"}.get(len(shifted.schedules), "three or more")
    foreign = {each.time_zone for each in shifted.schedules} - {case.zone}
    summer = ", a summer-time zone" if case.zone in CHANGING_ZONES else ""
    return f"exact: {number}{' with other zones' if foreign else ''}{summer}"


def wrong(case: Case, shifted: Shifted) -> str | None:
    """Say what is wrong with an answer, if anything."""
    if case.text.startswith("@every"):
        return None if shifted.cause is InexactCause.INTERVAL else "an interval must be refused"
    if case.zone in CHANGING_ZONES:  # its fires are for Go to judge
        named = shifted.exact or shifted.cause is InexactCause.CHANGING_OFFSET
        return None if named else f"{shifted.cause} is no cause for a summer-time zone"
    if shifted.exact:
        return _wrong_fires(case, shifted)
    if FIXED_ZONES[case.zone] + case.lead <= FURTHEST_EAST:
        return "within 14 hours every schedule has an exact answer"
    if not inexpressible(case.text, case.dialect, FIXED_ZONES[case.zone], case.lead):
        return "the days can be said, yet it is called not exact"
    return _wrong_list(case, shifted)


def _wrong_fires(case: Case, shifted: Shifted) -> str | None:
    east = FIXED_ZONES[case.zone]
    if east + case.lead <= FURTHEST_EAST and len(shifted.schedules) > PAIR:
        return f"within 14 hours two CronJobs are enough, not {len(shifted.schedules)}"
    fired = 0
    for each in shifted.schedules:
        more = minutes_of(each.schedule, case.dialect, zone_east(each.time_zone))
        if fired & more:
            return "two expressions fire at one instant"
        fired |= more
    wanted = minutes_of(case.text, case.dialect, east, case.lead)
    if fired != wanted:
        return f"{(wanted & ~fired).bit_count()} lost and {(fired & ~wanted).bit_count()} spurious minutes"
    return None if shifted.schedules or not _ever(case) else "no expression for a schedule that fires"


def _wrong_list(case: Case, shifted: Shifted) -> str | None:
    """Hold an inexact answer to its word: it lists each instant in vain, and never misses a fire."""
    fired = 0
    for each in shifted.schedules:
        fired |= minutes_of(each.schedule, case.dialect, zone_east(each.time_zone))
    wanted = minutes_of(case.text, case.dialect, FIXED_ZONES[case.zone], case.lead)
    if wanted & ~fired:
        return "the closest expressions lose a fire"
    origin, end = (datetime(day.year, 1, 1, tzinfo=UTC) for day in (FIRST, AFTER_LAST))
    listed = bytearray((end - SINCE) // timedelta(minutes=8) + 1)
    for at in shifted.spurious:
        if at < end:
            minute = (at - SINCE) // timedelta(minutes=1)
            listed[minute // 8] |= 1 << minute % 8
    in_vain = (fired & ~wanted) >> ((SINCE - origin) // timedelta(minutes=1))
    if int.from_bytes(listed, "little") != in_vain or shifted.lost:
        return "the list of spurious instants is wrong"
    return None


def _ever(case: Case) -> bool:
    brute = read(case.text, case.dialect)
    longest = (31, 29, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)
    return brute.either or any(day <= longest[month - 1] for month in brute.months for day in brute.days)


def zone_east(name: str) -> int:
    """Give the offset of a zone by its name alone: Etc/GMT-1 is one hour east."""
    return -60 * int(name.removeprefix("Etc/GMT")) if name not in FIXED_ZONES else FIXED_ZONES[name]
