"""`foresail schedule spread`: proposes other minutes for Schedules that start together."""

import argparse
import json
import shlex
import sys
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from foresail.api import velero
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, terminal_width
from foresail.cli.schedule.calendar import fires_of
from foresail.cli.schedule.hints import hint_who_manages
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.plan import Key

_DESCRIPTORS = {
    "@hourly": "0 * * * *",
    "@daily": "0 0 * * *",
    "@midnight": "0 0 * * *",
    "@weekly": "0 0 * * 0",
    "@monthly": "0 0 1 * *",
    "@yearly": "0 0 1 1 *",
    "@annually": "0 0 1 1 *",
}
_FIELDS, _MINUTES = 5, 60


@dataclass(frozen=True, slots=True)
class Candidate:
    """A Schedule, its expression and the minutes in which it fires in the observed time."""

    key: Key
    text: str
    fires: frozenset[datetime]


@dataclass(frozen=True, slots=True)
class Move:
    """A Schedule with another minute, and the most Schedules that start with it before and after."""

    key: Key
    before: str
    after: str
    together_before: int
    together_after: int


def spread(candidates: Sequence[Candidate], most: int) -> list[Move]:
    """Return moves after which no more than `most` Schedules start in a minute, as far as other minutes help.

    The Schedule that fires most often keeps its minute; the others move as little as possible.
    """
    load = Counter(fire for candidate in candidates for fire in candidate.fires)
    moves = []
    for candidate in sorted(candidates, key=lambda one: (len(one.fires), one.key)):
        minute = minute_of(candidate.text)
        together = _together(candidate.fires, load)
        if minute is None or together <= most:
            continue
        load.subtract(candidate.fires)
        distance = _best_distance(candidate.fires, minute, load, most)
        load.update(_shifted(candidate.fires, distance))
        if distance:
            after = _together(_shifted(candidate.fires, distance), load)
            moves.append(
                Move(candidate.key, candidate.text, with_minute(candidate.text, minute + distance), together, after)
            )
    return sorted(moves, key=lambda move: move.key)


def minute_of(text: str) -> int | None:
    """Return the minute of an expression that has just one; None if it has several or none."""
    fields = _fields(text)
    return int(fields[0]) if fields and fields[0].isdecimal() and int(fields[0]) < _MINUTES else None


def with_minute(text: str, minute: int) -> str:
    """Return the expression with another minute; a time zone in front of it stays."""
    zone = [field for field in text.split() if _is_zone(field)]
    return " ".join([*zone, str(minute), *_fields(text)[1:]])


def _fields(text: str) -> list[str]:
    fields = [field for field in text.split() if not _is_zone(field)]
    if len(fields) == 1:
        fields = _DESCRIPTORS.get(fields[0].lower(), "").split()
    return fields if len(fields) == _FIELDS else []


def _is_zone(word: str) -> bool:
    return word.startswith(("TZ=", "CRON_TZ="))


def _best_distance(fires: Iterable[datetime], minute: int, load: Mapping[datetime, int], most: int) -> int:
    """Return by how many minutes to move: to the fewest starts, and no further than needed."""

    def cost(distance: int) -> tuple[int, int, int]:
        starts = _together(_shifted(fires, distance), load) + 1
        return max(starts, most), abs(distance), -distance

    return min(range(-minute, _MINUTES - minute), key=cost)


def _shifted(fires: Iterable[datetime], minutes: int) -> set[datetime]:
    return {fire + timedelta(minutes=minutes) for fire in fires}


def _together(fires: Iterable[datetime], load: Mapping[datetime, int]) -> int:
    return max((load[fire] for fire in fires), default=0)


_HEADER = ("SCHEDULE", "NOW", "PROPOSED", "TOGETHER", "THEN")


def propose(args: argparse.Namespace) -> int:
    """Print other minutes for Schedules that start together; change nothing."""
    if args.most < 1 or args.days < 1:
        raise CommandError("--most and --days must be 1 or more", "leave them out for 1 start a minute and a week")
    evaluated, instant = read_selected(args)
    drawn = [schedule for schedule in evaluated if not schedule.schedule.paused and schedule.verdict.refused is None]
    end = instant + timedelta(days=args.days)
    candidates = [
        Candidate(
            schedule.schedule.key,
            schedule.schedule.text,
            frozenset(fire.replace(second=0, microsecond=0) for fire in fires_of(schedule, instant, end, instant)),
        )
        for schedule in drawn
    ]
    moves = spread(candidates, args.most)
    print_moves(moves, args.output)
    _print_hints(moves, drawn, candidates, args.most)
    return 0


def print_moves(moves: Sequence[Move], form: str) -> None:
    """Print the moves: for people, as partial Schedules, or as commands that make them."""
    if form == "patch":
        for move in moves:
            print(patch_command(move))
    elif form != "table":
        print(as_text([schedule_object(move) for move in moves], form))
    elif moves:
        rows = [
            (str(move.key), move.before, move.after, str(move.together_before), str(move.together_after))
            for move in moves
        ]
        print(fitted(_HEADER, rows, terminal_width(sys.stdout), ("SCHEDULE",)))


def schedule_object(move: Move) -> dict[str, Any]:
    """Return the fields of the Schedule that change, as an object."""
    return {
        "apiVersion": velero.SCHEDULE.api_version,
        "kind": velero.SCHEDULE.name,
        "metadata": {"name": move.key.name, "namespace": move.key.namespace},
        "spec": {"schedule": move.after},
    }


def patch_command(move: Move) -> str:
    """Return the command that makes a move."""
    patch = json.dumps({"spec": {"schedule": move.after}})
    words = ["kubectl", "patch", "schedules.velero.io", move.key.name, "-n", move.key.namespace, "--type=merge", "-p"]
    return shlex.join([*words, patch])


def _print_hints(
    moves: Sequence[Move], drawn: Sequence[EvaluatedSchedule], candidates: Sequence[Candidate], most: int
) -> None:
    moved = {move.key for move in moves}
    if not moves:
        print(f"Nothing to move: no other minute has fewer starts, or no minute has more than {most}", file=sys.stderr)
    fixed = sum(minute_of(candidate.text) is None for candidate in candidates)
    if fixed:
        hint(f"not moved, because they fire in several minutes of an hour: {fixed} of {len(candidates)} Schedules")
    hint_who_manages(schedule.schedule for schedule in drawn if schedule.schedule.key in moved)
    if moves:
        hint("nothing was changed; -o patch prints the commands that change them")
