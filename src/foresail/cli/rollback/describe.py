"""`foresail rollback describe`: the plan, the steps, what is suspended and kept, and what to do next."""

import argparse
import sys
from collections.abc import Iterator
from datetime import datetime

from foresail.cli.output.messages import BOLD, painted
from foresail.cli.output.table import aligned, table
from foresail.cli.output.words import counted, moment
from foresail.cli.rollback.advice import next_step
from foresail.cli.rollback.plan import plan_text, summary
from foresail.cli.rollback.rollbacks import Seen, read_selected
from foresail.cli.rollback.steps import rows
from foresail.kube.clock import now

_NONE = "<none>"


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected Rollbacks."""
    rollbacks = read_selected(args)
    if rollbacks:
        print("\n\n\n".join(described(seen, now()) for seen in rollbacks))
    return 0


def described(seen: Seen, at: datetime) -> str:
    """Return the text about a Rollback."""
    text = aligned(list(_lines(seen, at)))
    text = text.replace(seen.key.name, painted(seen.key.name, BOLD, sys.stdout), 1)
    parts = (text, _plan(seen), _steps(seen, at), _stopped(seen), _pruned(seen), _volumes(seen, at))
    return "\n\n".join(filter(None, (*parts, f"Next: {next_step(seen, at)}")))


def _lines(seen: Seen, at: datetime) -> Iterator[str]:
    spec, status = seen.spec, seen.status
    until = status.undo_until
    yield f"Name:\t{seen.key.name}"
    yield f"Namespace:\t{seen.key.namespace}"
    yield f"To:\t{spec.to}"
    yield f"Only:\t{', '.join(spec.only) if spec.only else '<all kinds>'}"
    yield f"Prune:\t{'true' if spec.prune else 'false'}"
    yield f"Volumes:\t{spec.volumes}"
    yield f"Phase:\t{status.phase}"
    yield f"Status:\t{f'{seen.reason}: {seen.message}' if seen.reason else 'no operator has seen it'}"
    yield f"Requester:\t{status.requester or _NONE}"
    yield f"Safety Backup:\t{status.safety_backup or _NONE}"
    yield f"Restore:\t{status.restore or _NONE}"
    yield f"Undo Until:\t{moment(until, at) if until is not None else 'n/a'}"


def _plan(seen: Seen) -> str:
    plan = seen.status.plan
    if plan is None:
        return f"Plan:  {_NONE}"
    text = "\n".join(f"  {line}" for line in plan_text(seen.spec, plan, None).splitlines())
    ways = "".join(f"\n  In the way: {obstacle}" for obstacle in plan.in_the_way)
    return f"Plan: {summary(seen.spec, plan)}\n{text}{ways}"


def _steps(seen: Seen, at: datetime) -> str:
    lines = [(f"  {state}", name, length, message) for state, name, length, message in rows(seen.status, at)]
    return "Steps:\n" + table(("  STATE", "STEP", "TOOK", "MESSAGE"), lines) if lines else f"Steps:  {_NONE}"


def _stopped(seen: Seen) -> str:
    """Return what was suspended or stopped, with the value or the size that it gets back."""
    lines = [
        (f"  {record.kind}/{record.name}", record.former or "<unset>", "yes" if record.resumed else "not yet")
        for record in seen.status.stopped
    ]
    return "Suspended:\n" + table(("  OBJECT", "BEFORE", "RESUMED"), lines) if lines else f"Suspended:  {_NONE}"


def _pruned(seen: Seen) -> str:
    names = "\n".join(f"  {pruned.kind}/{pruned.name}" for pruned in seen.status.pruned)
    return (
        f"Deleted: {counted(len(seen.status.pruned), 'object')}, which the safety backup has\n{names}" if names else ""
    )


def _volumes(seen: Seen, at: datetime) -> str:
    lines = [
        (f"  {volume.claim}", volume.volume, moment(volume.kept_until, at) if volume.kept_until is not None else "n/a")
        for volume in seen.status.volumes
    ]
    return "Old Volumes:\n" + table(("  CLAIM", "VOLUME", "KEPT UNTIL"), lines) if lines else ""
