"""`foresail cron calendar`: weeks or months of fires as a picture."""

import argparse
import sys
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import date, datetime, time, timedelta
from pathlib import Path

from foresail.cli.cron.svg import months_picture, weeks_picture
from foresail.cli.cron.words import instant_of, schedule_of
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.output.messages import BOLD, painted
from foresail.cron import Schedule
from foresail.cron.clock_changes import ClockJump, clock_jumps
from foresail.cron.zone_names import validate_zone_name
from foresail.cron.zones import load_zoneinfo
from foresail.kube.clock import now

_LETTERS = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
_SLOTS = 48  # half hours of a day
_WEEKS = 2


@dataclass(frozen=True, slots=True)
class Sheet:
    """The days of a picture and, for each schedule, its fires as wall times in the picture's zone."""

    zone: str
    days: tuple[date, ...]
    schedules: tuple[Schedule, ...]
    fires: tuple[tuple[datetime, ...], ...]
    jumps: tuple[ClockJump, ...]
    today: date


def calendar(args: argparse.Namespace) -> int:
    """Draw the fires of one or more schedules."""
    if len(args.expressions) > len(_LETTERS):
        raise UsageError(f"{len(args.expressions)} schedules do not fit into one picture", "specify at most 26")
    schedules = tuple(schedule_of(args, text) for text in args.expressions)
    first = instant_of(args.start, args.zone).astimezone(load_zoneinfo(validate_zone_name(args.zone))).date()
    days = _months(first, args.months) if args.months else _weeks(first, args.weeks or _WEEKS)
    sheet = _sheet(schedules, args.zone, days)
    if args.svg is None:
        print(_legend(sheet))
        print("\n".join(_month_lines(sheet) if args.months else _week_lines(sheet)))
        return 0
    names = [schedule.text for schedule in schedules]
    if args.months:
        picture = months_picture(sheet.zone, sheet.days, names, sheet.fires)
    else:
        picture = weeks_picture(sheet.zone, sheet.days, names, sheet.fires, sheet.jumps, sheet.today)
    write_picture(args.svg, picture)
    return 0


def write_picture(file: str, picture: str) -> None:
    """Write a picture to a file, or to standard output for `-`."""
    if file == "-":
        sys.stdout.write(picture)
        return
    try:
        Path(file).write_text(picture)
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error}") from None


def _weeks(first: date, count: int) -> tuple[date, ...]:
    return tuple(first + timedelta(days=number) for number in range(7 * count))


def _months(first: date, count: int) -> tuple[date, ...]:
    begin = first.replace(day=1)
    last = begin.year * 12 + begin.month - 1 + count
    end = date(last // 12, last % 12 + 1, 1)
    return tuple(begin + timedelta(days=number) for number in range((end - begin).days))


def _sheet(schedules: tuple[Schedule, ...], zone: str, days: tuple[date, ...]) -> Sheet:
    wall = load_zoneinfo(zone)
    start, end = (datetime.combine(day, time(), wall) for day in (days[0], days[-1] + timedelta(days=1)))
    fires = tuple(tuple(fire.astimezone(wall) for fire in schedule.between(start, end)) for schedule in schedules)
    return Sheet(zone, days, schedules, fires, tuple(clock_jumps(zone, start, end)), now().astimezone(wall).date())


def _legend(sheet: Sheet) -> str:
    named = zip(_LETTERS, sheet.schedules, sheet.fires, strict=False)
    lines = [f"{letter}  {schedule.text}   {len(fires)} fires" for letter, schedule, fires in named]
    return "\n".join([*lines, f"wall times in {sheet.zone}", ""])


def _week_lines(sheet: Sheet) -> list[str]:
    letters: dict[tuple[date, int], str] = {}
    for letter, fires in zip(_LETTERS, sheet.fires, strict=False):
        for fire in fires:
            slot = (fire.date(), (fire.hour * 60 + fire.minute) // 30)
            letters[slot] = letter if letters.get(slot, letter) == letter else "#"
    lines = [" " * 12 + "".join(f"{hour:<6}" for hour in range(0, 24, 3)).rstrip()]
    for day in sheet.days:
        cells = [letters.get((day, slot)) or _empty(sheet, day, slot) for slot in range(_SLOTS)]
        name = painted(f"{day:%a %d %b}", BOLD if day == sheet.today else "", sys.stdout)
        lines.append(f"{name}  {''.join(cells)}".rstrip())
    if "#" in letters.values():
        lines.append("# several schedules in the same half hour")
    return lines


def _empty(sheet: Sheet, day: date, slot: int) -> str:
    """Return a dot, or nothing where the clock jumps over that half hour."""
    skipped = any(jump.day == day and not jump.repeated and jump.begin <= slot * 30 < jump.end for jump in sheet.jumps)
    return " " if skipped else "·"


def _month_lines(sheet: Sheet) -> list[str]:
    counts = Counter(fire.date() for fires in sheet.fires for fire in fires)
    widest = max([len(str(count)) for count in counts.values()], default=1)
    lines: list[str] = []
    for first in (day for day in sheet.days if day.day == 1):
        days = [day for day in sheet.days if (day.year, day.month) == (first.year, first.month)]
        lines += [f"{first:%B %Y}", _week(["Mo", "Tu", "We", "Th", "Fr", "Sa", "Su"], widest)]
        cells = [""] * first.weekday() + [f"{day.day:>2}:{counts[day] or '·'}" for day in days]
        lines += [_week(cells[at : at + 7], widest) for at in range(0, len(cells), 7)]
        lines.append("")
    return [*lines, "day:fires"]


def _week(cells: Sequence[str], widest: int) -> str:
    return "  ".join(cell.ljust(3 + widest) for cell in cells).rstrip()
