"""`foresail backup explain` and `foresail restore explain`: the steps of a request, and which one blocks it."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from foresail.api.instants import instant
from foresail.api.nonadmin import Condition
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.refused_writes import RefusedWrite, refused_writes
from foresail.cli.output.objects import document
from foresail.cli.output.rule_chain import FAILED, NO, NOT_CHECKED, STOPS, WAITS, YES, Step, lines
from foresail.cli.output.words import in_words
from foresail.cli.tenant.advice import advice_for, capital, sentence, warnings_step
from foresail.cli.tenant.selection import in_namespace, selected_requests
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.kube.refusals import WRITE_REFUSED
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
    found = in_namespace(args, lambda cluster, family: _read(cluster, family, args))
    if args.output != "table":
        print(document([as_data(each) for each in found], args.output))
    elif found:
        print("\n\n".join(explained(each) for each in found))
    return 0


async def _read(cluster: Cluster, family: Family, args: argparse.Namespace) -> list[TenantRequest]:
    found = await selected_requests(cluster, family, args)
    refused = await refused_writes(cluster, family.kind, args.namespace, now()) if found else {}
    return [with_refusal(each, refused.get(each.request.metadata.uid)) for each in found]


def with_refusal(each: TenantRequest, refused: RefusedWrite | None) -> TenantRequest:
    """Attach a refused write, unless a condition has changed since then."""
    if refused is None or each.done or any(_after(every, refused.at) for every in each.request.status.conditions or ()):
        return each
    return replace(each, refused=refused)


def _after(condition: Condition, at: datetime) -> bool:
    changed = condition.last_transition_time
    return bool(changed) and datetime.fromisoformat(changed) > at


def explained(each: TenantRequest) -> str:
    """Return the steps as lines, with an arrow before the one that blocks the request, and the next step below."""
    first = f"{each.family.kind.name} {each.key}: {summary(each)}"
    return "\n".join([first, *lines(steps_of(each)), f"Next: {advised(each)}"])


def summary(each: TenantRequest) -> str:
    """Return the outcome or what blocks the request, in a few words."""
    reason, succeeded = reason_of(each), each.condition(SUCCEEDED)
    words = in_words(reason)
    if not reason:
        return "not processed by the operator yet"
    if each.is_terminating:
        return f"is being deleted: {words}"
    if each.done:
        return "complete" if reason == Reason.COMPLETED else f"complete, but {words}"
    if each.refused is not None:
        return f"blocked: {words}"
    if succeeded is not None and reason == succeeded.reason:
        return "waits for Velero" if reason == Reason.WAITING else words
    return f"refused: {words}" if each.is_refused else f"waits: {words}"


def reason_of(each: TenantRequest) -> str:
    """Return the reason that counts now; empty if the operator has given none."""
    if each.refused is not None:
        return WRITE_REFUSED
    if each.is_terminating and each.condition(IN_DELETION) is None:
        return Reason.DELETION_PENDING.value
    if has_expired(each, now()):
        return Reason.BACKUP_EXPIRED.value
    incomplete = each.condition(DATA_INCOMPLETE)
    counts = each.blocking or incomplete or each.done
    return counts.reason if counts else ""


def has_expired(each: TenantRequest, at: datetime) -> bool:
    """Whether a complete backup is past its expiration, so that Velero may delete it at any moment."""
    expires = instant(each.velero.expiration) if each.velero.expiration else None
    return each.done is not None and each.blocking is None and expires is not None and expires <= at


def advised(each: TenantRequest) -> str:
    """Return the cause and the next step."""
    blocking = each.blocking
    text = sentence(advice_for(reason_of(each), blocking.message if blocking else ""), each.family, each.key)
    if each.done is not None and each.restored is not None:
        from foresail.cli.tenant.restored import follow_up  # noqa: PLC0415 - for restores alone

        return follow_up(each) or text
    has_warnings = each.done is not None and each.velero.warnings
    return f"{text}. {capital(warnings_step(each.family, each.key))}" if has_warnings else text


def steps_of(each: TenantRequest) -> list[Step]:
    """Return every step with its state; no step is taken after the first that blocks the request."""
    found: list[Step] = []
    for step in _steps(each):
        is_blocked = bool(found) and found[-1].answer in (*STOPS, NOT_CHECKED)
        found.append(Step(step.rule, NOT_CHECKED) if is_blocked else step)
    return found


def _steps(each: TenantRequest) -> Iterator[Step]:
    word = each.family.word
    accepted, queued, succeeded = (each.condition(kind) for kind in (ACCEPTED, QUEUED, SUCCEEDED))
    deletion, incomplete = each.condition(IN_DELETION), each.condition(DATA_INCOMPLETE)
    yield Step("it is not being deleted", NO if each.is_terminating else YES, deletion.message if deletion else "")
    if each.refused is not None:
        yield Step("the API server accepts its writes", NO, str(each.refused))
    yield Step("the operator has processed it", YES if each.phase else WAITS)
    yield _step("it is accepted", accepted)
    yield _created(word, queued)
    yield _started(each, succeeded)
    complete = _step("it is complete", succeeded)
    yield Step(complete.rule, FAILED, complete.because) if complete.answer == NO else complete
    if has_expired(each, now()):
        yield Step("it has not expired", NO, f"it expired at {each.velero.expiration}")
    if incomplete is not None:
        yield Step(_EXPECTED.get(incomplete.reason, "there is no other problem"), NO, incomplete.message)


def _created(word: str, queued: Condition | None) -> Step:
    created = _step(f"the Velero {word.capitalize()} is created", queued)
    is_queued = queued is not None and queued.reason == Reason.WAITING_FOR_TURN
    return Step(created.rule, WAITS, created.because) if is_queued else created


def _started(request: TenantRequest, succeeded: Condition | None) -> Step:
    waits = succeeded is None or (succeeded.status == UNKNOWN and succeeded.reason == Reason.WAITING)
    position = f"position {request.position} in the queue" if request.position else ""
    return Step("Velero has started it", WAITS if waits else YES, position)


def _step(rule: str, condition: Condition | None) -> Step:
    if condition is None:
        return Step(rule, WAITS)
    answer = {TRUE: YES, FALSE: NO}.get(condition.status, WAITS)
    return Step(rule, answer, condition.message)


def as_data(each: TenantRequest) -> dict[str, Any]:
    """Return the steps and the next step as data."""
    blocking = each.blocking
    return {
        "namespace": each.key.namespace,
        "name": each.key.name,
        "phase": each.phase or "New",
        "veleroPhase": each.velero.phase or None,
        "queuePosition": each.position,
        "reason": reason_of(each) or None,
        "message": each.refused.message if each.refused else blocking.message if blocking else None,
        "next": advised(each),
        "steps": [{"step": step.rule, "answer": step.answer, "because": step.because} for step in steps_of(each)],
    }
