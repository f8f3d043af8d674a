"""`foresail rollback undo`: everything as it was before a Rollback, by one field of its spec."""

import argparse
import sys
from datetime import datetime
from typing import Any

from foresail.api.rollback import ROLLBACK
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.errors import CommandError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import confirm, interruptible
from foresail.cli.output.objects import Request
from foresail.cli.rollback.advice import lost_by_undo, next_step
from foresail.cli.rollback.rollbacks import Seen, decode, read
from foresail.cli.rollback.steps import follow
from foresail.cli.tenant.new_request import stamped
from foresail.cli.verbs import are_shown, outcome, report
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.rollback.reasons import Reason

_NOTHING = "nothing was changed"


def undo(args: argparse.Namespace) -> int:
    """Ask the operator to undo a Rollback."""
    until = deadline(args.timeout)
    return interruptible(lambda: on_namespace(args, lambda cluster: _undo(cluster, args, until)))


async def _undo(cluster: Cluster, args: argparse.Namespace, until: datetime | None) -> int:
    seen = await read(cluster, Key(args.namespace, args.name))
    if seen.status.phase != "Undoing" or not seen.spec.undo:
        check(seen, now())
        requests = [Request("PATCH", ROLLBACK, seen.key, body) for body in _bodies(seen)]
        if are_shown(args, requests):
            return 0
        _ask(args, seen)
        made = seen
        for request in requests:
            made = await _patched(cluster, seen, request, dry_run=bool(args.dry_run))
        report(args, made.content, f"{seen}: {outcome(args, 'undone', 'undo started')}.")
        if args.dry_run:
            return 0
    if not args.wait:
        key = seen.key
        print(f"Follow it with foresail rollback describe {key.name} -n {key.namespace}", file=sys.stderr)
        return 0
    return judged(await follow(cluster, seen.key, until, is_over, seen))


def check(seen: Seen, at: datetime) -> None:
    """Raise why a Rollback cannot be undone."""
    status = seen.status
    if status.phase == "Completed" and status.undo_until is not None and at > status.undo_until:
        raise CommandError(f"{seen} could be undone until {status.undo_until:%Y-%m-%d %H:%M}", next_step(seen, at))
    if status.phase == "Completed" and status.undo_until is None:
        raise CommandError(f"{seen} can no longer be undone: {seen.message}", next_step(seen, at))
    if status.phase in ("Refused", "Planned"):
        raise CommandError(f"{seen} has changed nothing, so there is nothing to undo", next_step(seen, at))
    if status.phase == "Undone":
        raise CommandError(f"{seen} is undone already: {seen.message}", "see foresail rollback get")


def undo_body(seen: Seen, *, undo: bool = True) -> dict[str, Any]:
    """Return the edit of the Rollback that was read."""
    return {"metadata": {"uid": seen.uid}, "spec": {"undo": undo}}


def _bodies(seen: Seen) -> list[dict[str, Any]]:
    """Return the edits: what somebody asked for who may not is taken back first."""
    is_asked = seen.spec.undo and seen.status.phase == "Completed"
    return [undo_body(seen, undo=undo) for undo in ((False, True) if is_asked else (True,))]


async def _patched(cluster: Cluster, seen: Seen, request: Request, *, dry_run: bool) -> Seen:
    body = request.body or {} if seen.runs else await stamped(cluster, request.body or {})
    return decode(await cluster.merge(ROLLBACK, seen.key, body, dry_run=dry_run))


def _ask(args: argparse.Namespace, seen: Seen) -> None:
    print(lost_by_undo(seen), file=sys.stderr)
    if not (args.confirm or args.dry_run):
        question = f"Undo {seen}? Objects go back to how they were before it."
        confirm(question, f"undo {seen} without confirmation (no terminal)", _NOTHING)


def is_over(seen: Seen) -> bool:
    """Whether an undo that was asked for has ended, or never begins."""
    return seen.status.phase in ("Undone", "Refused") or _does_not_begin(seen)


def _does_not_begin(seen: Seen) -> bool:
    """Whether it is too late, or whoever asked may not undo all of it."""
    told = seen.succeeded
    is_of_this = told is not None and told.observed_generation == seen.rollback.metadata.generation
    is_not_allowed = is_of_this and seen.reason == Reason.UNDO_WAITS and seen.status.phase == "Completed"
    return is_not_allowed or seen.reason == Reason.UNDO_TOO_LATE


def judged(seen: Seen) -> int:
    """Report how an undo has ended: 0 if everything is as before."""
    if _does_not_begin(seen):
        raise CommandError(f"{seen}: {seen.message}", next_step(seen, now()))
    print(f"{seen}: {seen.message}", file=sys.stderr)
    return 0
