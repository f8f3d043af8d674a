"""`foresail backup wait` and `foresail restore wait`: show the queue position and the progress until it has ended."""

import argparse
import asyncio
import sys
from datetime import UTC, datetime, timedelta

import msgspec

from foresail.api.instants import instant
from foresail.api.nonadmin import Condition, RestoredItems
from foresail.api.velero import WAITING
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.output.progress import Bar, Progress, Status
from foresail.cli.output.words import in_words
from foresail.cli.tenant.advice import (
    PATIENCE,
    UNSEEN,
    UNSERVED,
    advice_for,
    next_step,
    sentence,
    unserved,
    warnings_step,
)
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.cli.tenant.stalled import why_nothing_starts
from foresail.cli.tenant.tenant_request import TenantRequest, VeleroStatus, decode_request
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import RESTORES, Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.outcome import has_files, kept, outcome
from foresail.selfservice.requests.status import ACCEPTED, FALSE, IN_DELETION, SUCCEEDED

_PAUSE = 0.5
FAIL_ON_INCOMPLETE = "incomplete"
"""The value of --fail-on with which a backup that lacks data is a failure."""

_FOR_THE_CAUSE = timedelta(seconds=10)
_JUST = timedelta(minutes=1)
_NOT_BY_ITSELF = (Reason.NO_POLICY, Reason.RESTORED_FROM_BACKUP)  # someone has to act first


def wait(args: argparse.Namespace) -> int:
    """Wait for each of the named requests."""
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _wait(cluster, family, args)))


async def _wait(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    until = deadline(args.timeout)
    problems = 0
    for name in args.names:
        try:
            await wait_for(cluster, family, Key(args.namespace, name), until, args.fail_on)
        except CommandError as error:
            if len(args.names) == 1:
                raise
            print(error, file=sys.stderr)
            problems += 1
    return 1 if problems else 0


async def wait_for(cluster: Cluster, family: Family, key: Key, until: datetime | None, fail_on: str = "") -> int:
    """Show the progress of a request until it has ended; return 0 if it is complete, raise its problem if not.

    With `fail_on`, a complete backup that lacks data or kinds is a problem.
    """
    progress = Bar()
    began = now()
    shown = ""
    over: datetime | None = None
    asks = began + PATIENCE
    try:
        while True:
            request = await read_request(cluster, family, key)
            progress.show(progress_of(request), request.transfer)
            ended = verdict(request, fail_on)
            if ended is not None:
                over = over or min(now() + _FOR_THE_CAUSE, until or datetime.max.replace(tzinfo=UTC))
                if is_explained(request) or now() >= over:
                    break
                await asyncio.sleep(_PAUSE)
                continue
            news = remark(request, now() - began, is_bounded=until is not None)
            if not news and now() >= asks:
                news = await why_nothing_starts(cluster, request, now())
                asks = now() + PATIENCE
            if news and news != shown:
                progress.close()
                hint(news)
                shown = news
            await _pause(request, until)
    finally:
        progress.close()
    if isinstance(ended, CommandError):
        raise ended
    if request.restored is not None:
        await _tell_what_it_did(cluster, request, request.restored)
        return 0
    print(f"{family.kind.name} {key}: {ended}", file=sys.stderr)
    incomplete = request.incomplete
    if incomplete is not None:
        hint(sentence(advice_for(incomplete.reason), family, key))
    if request.velero.warnings:
        hint(warnings_step(family, key))
    return 0


async def _tell_what_it_did(cluster: Cluster, request: TenantRequest, items: RestoredItems) -> None:
    """Print what a complete restore did, and what would change more."""
    from foresail.cli.tenant.restored import follow_up, new_objects, restored_text  # noqa: PLC0415 - it reads files

    print(f"{request.family.kind.name} {request.key}: Restore completed", file=sys.stderr)
    new = await new_objects(cluster, request)
    print(restored_text(items, new), file=sys.stderr)
    further = follow_up(request)
    if further:
        hint(further)
    if new is None and not request.point and request.target == request.key.namespace:  # --diff compares with that
        backup = request.spec.get("backupName")
        namespace = request.key.namespace
        hint(f"see what is not in the backup with foresail backup contents {backup} --diff -n {namespace}")


async def wait_until_deleted(cluster: Cluster, request: TenantRequest, until: datetime | None) -> None:
    """Wait until a request is deleted and print what blocks that; a new one of the same name does not count."""
    family = request.family
    key = request.key
    shown = ""
    while (raw := await cluster.if_there(family.kind, key, msgspec.Raw)) is not None:
        latest = decode_request(family, raw)
        if latest.request.metadata.uid != request.request.metadata.uid:
            return
        deletion = latest.condition(IN_DELETION)
        if deletion is not None and deletion.message != shown:
            shown = deletion.message
            print(f"{family.kind.name} {key}: {shown}", file=sys.stderr)
        await _pause(latest, until)


def verdict(request: TenantRequest, fail_on: str = "") -> CommandError | str | None:
    """Return the outcome: a text if the request is complete, an error if it never will be, None if it continues."""
    name = f"{request.family.kind.name} {request.key}"
    if request.is_terminating:
        return CommandError(f"{name} is being deleted", _next(request, request.condition(IN_DELETION)))
    incomplete = request.incomplete
    if incomplete is not None and (fail_on == FAIL_ON_INCOMPLETE or incomplete.reason == Reason.NOTHING_BACKED_UP):
        return CommandError(f"{name}: {incomplete.message}", _next(request, incomplete))
    if request.done:
        return request.done.message
    blocking = request.blocking
    verb = _verb(request, blocking) if blocking is not None else None
    if blocking is None or verb is None:
        return None
    return CommandError(f"{name}{verb}: {blocking.message}", _next(request, blocking))


def _verb(request: TenantRequest, blocking: Condition) -> str | None:
    """Return what to say of a request before the message about its end; None if it continues."""
    if blocking.type == SUCCEEDED and blocking.status == FALSE:
        return ""  # the message begins with it
    if blocking.reason in _NOT_BY_ITSELF:
        return " does not start"
    return " was refused" if request.is_refused else None


def is_explained(request: TenantRequest) -> bool:
    """Whether the outcome is fully reported: the cause of a failure follows a moment later."""
    succeeded = request.condition(SUCCEEDED)
    if succeeded is None or request.is_terminating:
        return True
    if succeeded.reason not in (Reason.FAILED, Reason.PARTIALLY_FAILED) and not _is_just_restored(request):
        return True
    reported = outcome(request.family, bytes(request.made.status).decode())
    return reported is None or not has_files(reported) or kept(succeeded, reported) is not reported


def _is_just_restored(request: TenantRequest) -> bool:
    """Whether a restore has completed a moment ago, so that the operator reads what it did."""
    ended = instant(request.velero.completion_timestamp or "")
    return request.family is RESTORES and ended is not None and now() - ended < _JUST


def remark(request: TenantRequest, waited: timedelta, *, is_bounded: bool = False) -> str:
    """Return a hint for someone who waits; empty if there is none. Raise that nobody serves the request.

    Whoever has said how long to wait waits that long.
    """
    if not request.phase and not is_bounded and waited >= UNSERVED:
        key = request.key
        delete = f"foresail {request.family.word} delete {key.name} -n {key.namespace}"
        raise unserved(f"{request.family.kind.name} {key}", delete)
    if not request.phase and waited > PATIENCE:
        return sentence(UNSEEN, request.family, request.key)
    blocking = request.blocking
    return blocking.message if blocking is not None and blocking.status == FALSE else ""


def progress_of(request: TenantRequest) -> Status:
    """Return the progress of a request for the bar."""
    velero = request.velero
    blocking = request.blocking
    is_refused = blocking is not None and blocking.type == ACCEPTED and blocking.status == FALSE
    if is_refused or not request.made.name:
        reason = f", {in_words(blocking.reason)}" if blocking is not None else ""
        return Status(phase=f"{request.phase or 'New'}{reason}")
    if request.position > 1 or (request.position and velero.phase in WAITING):
        return Status(phase="Queued", queue_position=request.position)
    return progress_in_velero(velero)


def progress_in_velero(reported: VeleroStatus) -> Status:
    """Return the progress of Velero's own object for the bar."""
    done = reported.progress
    items = Progress(done.total_items, done.items_backed_up or done.items_restored) if done else None
    return Status(phase=reported.phase, progress=items)


def _next(request: TenantRequest, blocking: Condition | None) -> str:
    reason, message = (blocking.reason, blocking.message) if blocking else (Reason.DELETION_PENDING.value, "")
    return next_step(advice_for(reason, message), request.family, request.key)


async def _pause(request: TenantRequest, until: datetime | None) -> None:
    if until is not None and now() >= until:
        problem = f"{request.family.kind.name} {request.key}: timed out; it is {request.phase or 'New'}"
        word = request.family.word
        key = request.key
        raise CommandError(problem, f"see what blocks it with foresail {word} explain {key.name} -n {key.namespace}")
    await asyncio.sleep(_PAUSE)
