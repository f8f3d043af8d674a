"""`foresail schedule spread`: proposes other minutes for Schedules that start together."""

import argparse
import json
import shlex
import sys
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from foresail.api import velero
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, terminal_width
from foresail.cli.schedule.calendar import fires_of
from foresail.cli.schedule.hints import hint_who_manages
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.cli.schedule.spreading import Candidate, Move, minute_of, spread

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
