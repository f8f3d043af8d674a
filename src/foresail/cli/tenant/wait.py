"""`foresail backup wait` and `foresail restore wait`: a bar with the place in the queue, until it has ended."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime, timedelta

import msgspec

from foresail.api.nonadmin import Condition
from foresail.api.velero import WAITING
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.progress import Bar, Progress, Status
from foresail.cli.tenant.advice import UNSEEN, advice_for, next_step, sentence
from foresail.cli.tenant.asked import Asked, asked
from foresail.cli.tenant.place import in_namespace, one
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.outcome import kept, outcome
from foresail.selfservice.requests.status import ACCEPTED, DATA_INCOMPLETE, FALSE, IN_DELETION, SUCCEEDED

_PAUSE = 0.5
PATIENCE = timedelta(seconds=15)
"""How long to wait for the operator before the hint whom to ask."""

_FOR_THE_CAUSE = timedelta(seconds=10)
_NOT_BY_ITSELF = (Reason.NO_POLICY, Reason.RESTORED_FROM_BACKUP)  # somebody has to act first


def wait(args: argparse.Namespace) -> int:
    """Wait for each of the named requests."""
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _wait(cluster, family, args)))


async def _wait(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    until, problems = deadline(args.timeout), 0
    for name in args.names:
        try:
            await wait_for(cluster, family, Key(args.namespace, name), until)
        except CommandError as error:
            if len(args.names) == 1:
                raise
            print(error, file=sys.stderr)
            problems += 1
    return 1 if problems else 0


async def wait_for(cluster: Cluster, family: Family, key: Key, until: datetime | None) -> int:
    """Show how far a request is until it has ended; return 0 if it is complete, and raise what became of it if not."""
    progress, began, said = Bar(), now(), ""
    over: datetime | None = None
    try:
        while True:
            each = await one(cluster, family, key)
            progress.show(progress_of(each))
            ended = verdict(each)
            if ended is not None:
                over = over or min(now() + _FOR_THE_CAUSE, until or datetime.max.replace(tzinfo=UTC))
                if is_explained(each) or now() >= over:
                    break
                await asyncio.sleep(_PAUSE)
                continue
            news = remark(each, now() - began)
            if news != said:
                progress.close()
                hint(news)
                said = news
            await _pause(each, until)
    finally:
        progress.close()
    if isinstance(ended, CommandError):
        raise ended
    print(f"{family.kind.name} {key}: {ended}", file=sys.stderr)
    incomplete = each.condition(DATA_INCOMPLETE)
    if incomplete is not None:
        hint(sentence(advice_for(incomplete.reason), family, key))
    return 0


async def wait_until_gone(cluster: Cluster, each: Asked, until: datetime | None) -> None:
    """Wait until a request is gone, and say what holds it meanwhile; another one of its name does not count."""
    family, key, said = each.family, each.key, ""
    while (raw := await cluster.if_there(family.kind, key, msgspec.Raw)) is not None:
        latest = asked(family, raw)
        if latest.request.metadata.uid != each.request.metadata.uid:
            return
        going = latest.condition(IN_DELETION)
        if going is not None and going.message != said:
            said = going.message
            print(f"{family.kind.name} {key}: {said}", file=sys.stderr)
        await _pause(latest, until)


def verdict(each: Asked) -> CommandError | str | None:
    """Return how a request has ended: in words if it is complete, as an error if it will not be, None if it goes on."""
    name = f"{each.family.kind.name} {each.key}"
    if each.is_going:
        return CommandError(f"{name} is being deleted", _next(each, each.condition(IN_DELETION)))
    incomplete = each.condition(DATA_INCOMPLETE)
    if each.done and incomplete is not None and incomplete.reason == Reason.NOTHING_BACKED_UP:
        return CommandError(f"{name} is {incomplete.reason}: {incomplete.message}", _next(each, incomplete))
    if each.done:
        return each.done.message
    holding = each.holding
    if holding is None:
        return None
    is_over = holding.type == SUCCEEDED and holding.status == FALSE
    if is_over or each.is_refused or holding.reason in _NOT_BY_ITSELF:
        return CommandError(f"{name} is {holding.reason}: {holding.message}", _next(each, holding))
    return None


def is_explained(each: Asked) -> bool:
    """Whether nothing more is to be said of how a request ended: of what has failed, the cause comes a moment later."""
    stands = each.condition(SUCCEEDED)
    if stands is None or stands.reason not in (Reason.FAILED, Reason.PARTIALLY_FAILED) or each.is_going:
        return True
    said = outcome(each.family, bytes(each.made.status).decode())
    return said is None or kept(stands, said) is not said


def remark(each: Asked, waited: timedelta) -> str:
    """Return what somebody who waits should know; empty if there is nothing."""
    if not each.phase and waited > PATIENCE:
        return sentence(UNSEEN, each.family, each.key)
    holding = each.holding
    return holding.message if holding is not None and holding.status == FALSE else ""


def progress_of(each: Asked) -> Status:
    """Return how far a request is, as the bar shows it."""
    velero, holding = each.velero, each.holding
    is_refused = holding is not None and holding.type == ACCEPTED and holding.status == FALSE
    if is_refused or not each.made.name:
        reason = f", {holding.reason}" if holding is not None else ""
        return Status(phase=f"{each.phase or 'New'}{reason}")
    if each.position > 1 or (each.position and velero.phase in WAITING):
        return Status(phase="Queued", queue_position=each.position)
    done = velero.progress
    items = Progress(done.total_items, done.items_backed_up or done.items_restored) if done else None
    return Status(phase=velero.phase, progress=items)


def _next(each: Asked, holding: Condition | None) -> str:
    return next_step(advice_for(holding.reason if holding else Reason.DELETION_PENDING), each.family, each.key)


async def _pause(each: Asked, until: datetime | None) -> None:
    if until is not None and now() >= until:
        problem = f"{each.family.kind.name} {each.key}: timed out; it is {each.phase or 'New'}"
        word, key = each.family.word, each.key
        raise CommandError(problem, f"see what blocks it with foresail {word} explain {key.name} -n {key.namespace}")
    await asyncio.sleep(_PAUSE)
