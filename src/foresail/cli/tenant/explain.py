"""`foresail backup explain` and `foresail restore explain`: the steps of a request, and which one blocks it."""

import argparse
from collections.abc import Iterator
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import instant
from foresail.api.nonadmin import Condition
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.refused_writes import RefusedWrite, refused_writes
from foresail.cli.output.objects import document
from foresail.cli.output.rule_chain import FAILED, NO, NOT_CHECKED, STOPS, WAITS, YES, Step, lines
from foresail.cli.output.words import in_words
from foresail.cli.tenant.advice import STALLED, advice_for, capital, sentence, warnings_step
from foresail.cli.tenant.selection import in_namespace, selected_requests
from foresail.cli.tenant.stalled import why_nothing_starts
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.kube.failures import WRITE_REFUSED
from foresail.selfservice.families import Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import (
    ACCEPTED,
    DATA_INCOMPLETE,
    FALSE,
    IN_DELETION,
    QUEUED,
    SUCCEEDED,
    TRUE,
    UNKNOWN,
)

_EXPECTED: dict[str, str] = {
    Reason.NOTHING_BACKED_UP: "it contains objects",
    Reason.VOLUMES_LEFT_OUT: "all volumes are backed up",
    Reason.KINDS_NOT_SERVED: "the cluster serves all its kinds",
}


def explain(args: argparse.Namespace) -> int:
    """Print the steps of each selected request."""
    requests = in_namespace(args, lambda cluster, family: _read(cluster, family, args))
    if args.output != "table":
        print(document([as_data(request) for request in requests], args.output))
    elif requests:
        print("\n\n".join(explained(request) for request in requests))
    return 0


async def _read(cluster: Cluster, family: Family, args: argparse.Namespace) -> list[TenantRequest]:
    requests = await selected_requests(cluster, family, args)
    refused = await refused_writes(cluster, family.kind, args.namespace, now()) if requests else {}
    told = [with_refusal(request, refused.get(request.request.metadata.uid)) for request in requests]
    return [
        msgspec.structs.replace(request, stalled=await why_nothing_starts(cluster, request, now())) for request in told
    ]


def with_refusal(request: TenantRequest, refused: RefusedWrite | None) -> TenantRequest:
    """Attach a refused write, unless a condition has changed since then."""
    if (
        refused is None
        or request.done
        or any(_after(every, refused.at) for every in request.request.status.conditions or ())
    ):
        return request
    return msgspec.structs.replace(request, refused=refused)


def _after(condition: Condition, at: datetime) -> bool:
    changed = condition.last_transition_time
    return bool(changed) and datetime.fromisoformat(changed) > at


def explained(request: TenantRequest) -> str:
    """Return the steps as lines, with an arrow before the one that blocks the request, and the next step below."""
    first = f"{request.family.kind.name} {request.key}: {summary(request)}"
    return "\n".join([first, *lines(steps_of(request)), f"Next: {advised(request)}"])


def summary(request: TenantRequest) -> str:
    """Return the outcome or what blocks the request, in a few words."""
    reason = reason_of(request)
    words = in_words(reason)
    if not reason:
        return "not processed by the operator yet"
    if request.is_terminating:
        return f"is being deleted: {words}"
    if request.done:
        return "complete" if reason == Reason.COMPLETED else f"complete, but {words}"
    return _what_it_waits_for(request, reason, words)


def _what_it_waits_for(request: TenantRequest, reason: str, words: str) -> str:
    if request.refused is not None:
        return f"blocked: {words}"
    if request.stalled:
        return "blocked: Velero starts nothing now"
    succeeded = request.condition(SUCCEEDED)
    if succeeded is not None and reason == succeeded.reason:
        return "waits for Velero" if reason == Reason.WAITING else words
    return f"refused: {words}" if request.is_refused else f"waits: {words}"


def reason_of(request: TenantRequest) -> str:
    """Return the reason that counts now; empty if the operator has given none."""
    if request.refused is not None:
        return WRITE_REFUSED
    if request.is_terminating and request.condition(IN_DELETION) is None:
        return Reason.DELETION_PENDING.value
    if has_expired(request, now()):
        return Reason.BACKUP_EXPIRED.value
    incomplete = request.condition(DATA_INCOMPLETE)
    counts = request.blocking or incomplete or request.done
    return counts.reason if counts else ""


def has_expired(request: TenantRequest, at: datetime) -> bool:
    """Whether a complete backup is past its expiration, so that Velero may delete it at any moment."""
    expires = instant(request.velero.expiration) if request.velero.expiration else None
    return request.done is not None and request.blocking is None and expires is not None and expires <= at


def advised(request: TenantRequest) -> str:
    """Return the cause and the next step."""
    if request.stalled:
        return sentence(STALLED, request.family, request.key)
    blocking = request.blocking
    advice = advice_for(reason_of(request), blocking.message if blocking else "")
    text = sentence(advice, request.family, request.key, request.target)
    if request.done is not None and request.restored is not None:
        from foresail.cli.tenant.restored import follow_up  # noqa: PLC0415 - for restores alone

        return follow_up(request) or text
    has_warnings = request.done is not None and request.velero.warnings
    return f"{text}. {capital(warnings_step(request.family, request.key))}" if has_warnings else text


def steps_of(request: TenantRequest) -> list[Step]:
    """Return every step with its state; no step is taken after the first that blocks the request."""
    steps: list[Step] = []
    for step in _steps(request):
        is_blocked = bool(steps) and steps[-1].answer in (*STOPS, NOT_CHECKED)
        steps.append(Step(step.rule, NOT_CHECKED) if is_blocked else step)
    return steps


def _steps(request: TenantRequest) -> Iterator[Step]:
    word = request.family.word
    accepted, queued, succeeded = (request.condition(kind) for kind in (ACCEPTED, QUEUED, SUCCEEDED))
    deletion = request.condition(IN_DELETION)
    incomplete = request.condition(DATA_INCOMPLETE)
    yield Step("it is not being deleted", NO if request.is_terminating else YES, deletion.message if deletion else "")
    if request.refused is not None:
        yield Step("the API server accepts its writes", NO, str(request.refused))
    yield Step("the operator has processed it", YES if request.phase else WAITS)
    yield _step("it is accepted", accepted)
    yield _created(word, queued)
    yield _started(request, succeeded)
    complete = _step("it is complete", succeeded)
    yield Step(complete.rule, FAILED, complete.because) if complete.answer == NO else complete
    if has_expired(request, now()):
        yield Step("it has not expired", NO, f"it expired at {request.velero.expiration}")
    if incomplete is not None:
        yield Step(_EXPECTED.get(incomplete.reason, "there is no other problem"), NO, incomplete.message)


def _created(word: str, queued: Condition | None) -> Step:
    created = _step(f"the Velero {word.capitalize()} is created", queued)
    is_queued = queued is not None and queued.reason == Reason.WAITING_FOR_TURN
    return Step(created.rule, WAITS, created.because) if is_queued else created


def _started(request: TenantRequest, succeeded: Condition | None) -> Step:
    if request.stalled:
        return Step("Velero has started it", NO, request.stalled)
    waits = succeeded is None or (succeeded.status == UNKNOWN and succeeded.reason == Reason.WAITING)
    position = f"position {request.position} in the queue" if request.position else ""
    return Step("Velero has started it", WAITS if waits else YES, position)


def _step(rule: str, condition: Condition | None) -> Step:
    if condition is None:
        return Step(rule, WAITS)
    answer = {TRUE: YES, FALSE: NO}.get(condition.status, WAITS)
    return Step(rule, answer, condition.message)


def as_data(request: TenantRequest) -> dict[str, Any]:
    """Return the steps and the next step as data."""
    shown = request.refused or request.blocking
    return {
        "namespace": request.key.namespace,
        "name": request.key.name,
        "phase": request.phase or "New",
        "veleroPhase": request.velero.phase or None,
        "queuePosition": request.position,
        "reason": reason_of(request) or None,
        "message": shown.message if shown else None,
        "next": advised(request),
        "steps": [{"step": step.rule, "answer": step.answer, "because": step.because} for step in steps_of(request)],
    }
