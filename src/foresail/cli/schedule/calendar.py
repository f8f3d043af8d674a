"""`foresail schedule calendar`: the week of all Schedules, so that pile-ups are seen before they happen."""

import argparse
from collections.abc import Iterable, Iterator
from datetime import date, datetime, timedelta
from functools import partial

from foresail.cli.cron.calendar import write_picture
from foresail.cli.cron.load import SHOWN, Load, Timetable, fires_between, load_of, pile_line, week_lines
from foresail.cli.cron.svg import load_picture
from foresail.cli.cron.words import instant_of
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.cron.zone_names import validate_zone_name
from foresail.cron.zones import load_zoneinfo
from foresail.reporting import Because
from foresail.schedules.expression import parse_expression
from foresail.schedules.slots import timing_of
from foresail.slots.starts import starts_between


def calendar(args: argparse.Namespace) -> int:
    """Draw how many runs start when."""
    days = days_of(args)
    evaluated, instant = read_selected(args)
    drawn = timetables(evaluated, instant)
    draw(args, load_of(drawn, days, args.zone, instant))
    hint_omitted(len(evaluated), len(drawn), sum(schedule.schedule.paused for schedule in evaluated))
    return 0


def days_of(args: argparse.Namespace) -> list[date]:
    """Return the days that the options select."""
    if args.weeks < 1:
        raise CommandError(f"--weeks {args.weeks} is too small", "specify 1 or more")
    first = instant_of(args.start, args.zone).astimezone(load_zoneinfo(validate_zone_name(args.zone))).date()
    return [first + timedelta(days=number) for number in range(7 * args.weeks)]


def timetables(evaluated: Iterable[EvaluatedSchedule], now: datetime) -> list[Timetable]:
    """Return when the Schedules run that are neither paused nor refused."""
    drawn = (schedule for schedule in evaluated if not schedule.schedule.paused and schedule.verdict.refused is None)
    return [timetable(evaluated_schedule, now) for evaluated_schedule in drawn]


def timetable(schedule: EvaluatedSchedule, now: datetime) -> Timetable:
    """Return when a Schedule runs."""
    return Timetable(schedule.schedule.key, partial(fires_of, schedule, now=now))


def fires_of(schedule: EvaluatedSchedule, start: datetime, end: datetime, now: datetime) -> Iterator[datetime]:
    """Yield when runs of a Schedule start; one that counts from its last run is followed from there."""
    cron = parse_expression(schedule.schedule.text, schedule.view.settings.zone, schedule.view.server.dialect, now)
    if not isinstance(cron, Because):
        timing = timing_of(schedule.view)
        base = schedule.verdict.base
        yield from (
            fires_between(cron, base, start, end) if timing is None else starts_between(cron, base, timing, start, end)
        )


def draw(args: argparse.Namespace, load: Load) -> None:
    """Print the week, or write it as a picture."""
    if args.svg is None:
        print("\n".join(week_lines(load)))
    else:
        write_picture(args.svg, load_picture(load, [pile_line(pile) for pile in load.piles[:SHOWN]]))


def hint_omitted(number: int, drawn: int, paused: int) -> None:
    """Say how many schedules are not in the picture, and why."""
    for count, why in ((paused, "paused"), (number - drawn - paused, "invalid or never due")):
        if count:
            hint(f"{count} {'schedule is' if count == 1 else 'schedules are'} {why}, so not drawn")
