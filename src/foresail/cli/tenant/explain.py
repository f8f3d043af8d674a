"""`foresail backup explain` and `foresail restore explain`: the steps of a request, and which one holds it."""

import argparse
from collections.abc import Iterator
from typing import Any

from foresail.api.nonadmin import Condition
from foresail.cli.chain import NO, STOPS, UNASKED, WAITS, YES, Step, lines
from foresail.cli.tenant.advice import advice_for, sentence
from foresail.cli.tenant.asked import Asked
from foresail.cli.tenant.place import looked_at
from foresail.cli.words import document
from foresail.selfservice.reasons import Reason
from foresail.selfservice.status import ACCEPTED, FALSE, IN_DELETION, NOTABLE, QUEUED, SUCCEEDED, TRUE, UNKNOWN


def explain(chosen: argparse.Namespace) -> int:
    """Print the steps of each chosen request."""
    found = looked_at(chosen)
    if chosen.output != "table":
        print(document([as_data(each) for each in found], chosen.output))
    elif found:
        print("\n\n".join(explained(each) for each in found))
    return 0


def explained(each: Asked) -> str:
    """Return the steps as lines, with an arrow before the one that holds the request, and what to do next below."""
    first = f"{each.family.kind.name} {each.key}: {summary(each)}"
    return "\n".join([first, *lines(steps_of(each)), f"Next: {advised(each)}"])


def summary(each: Asked) -> str:
    """Return in a word or two what becomes of it."""
    reason = reason_of(each)
    if each.done and not each.is_going:
        return reason
    return f"held by {reason}" if reason else "not seen by the operator"


def reason_of(each: Asked) -> str:
    """Return the reason that counts now; empty if the operator has given none."""
    if each.is_going and each.condition(IN_DELETION) is None:
        return Reason.DELETION_PENDING.value
    notable = each.condition(NOTABLE)
    counts = each.holding or notable or each.done
    return counts.reason if counts else ""


def advised(each: Asked) -> str:
    """Return the cause and the next step in one sentence."""
    return sentence(advice_for(reason_of(each)), each.family, each.key)


def steps_of(each: Asked) -> list[Step]:
    """Return every step with how it stands; behind the first that holds the request, none was taken."""
    found: list[Step] = []
    for step in _steps(each):
        is_held = bool(found) and found[-1].answer in (*STOPS, UNASKED)
        found.append(Step(step.rule, UNASKED) if is_held else step)
    return found


def _steps(each: Asked) -> Iterator[Step]:
    word = each.family.word
    accepted, queued, succeeded = (each.condition(kind) for kind in (ACCEPTED, QUEUED, SUCCEEDED))
    going, notable = each.condition(IN_DELETION), each.condition(NOTABLE)
    yield Step("it is not being deleted", NO if each.is_going else YES, going.message if going else "")
    yield Step("the operator has looked at it", YES if each.phase else WAITS)
    yield _said("it is accepted", accepted)
    asked = _said(f"Velero was asked for the {word}", queued)
    is_in_line = queued is not None and queued.reason == Reason.WAITING_FOR_TURN
    yield Step(asked.rule, WAITS, asked.because) if is_in_line else asked
    waits = succeeded is not None and succeeded.status == UNKNOWN and succeeded.reason == Reason.WAITING
    place = f"position {each.position} in the queue" if each.position else ""
    yield Step("its turn has come", WAITS if waits or succeeded is None else YES, place)
    yield _said("it is complete", succeeded)
    if notable is not None:
        is_empty = notable.reason == Reason.NOTHING_BACKED_UP
        yield Step("there is something in it" if is_empty else "all volumes are in it", NO, notable.message)


def _said(rule: str, condition: Condition | None) -> Step:
    if condition is None:
        return Step(rule, WAITS)
    answer = {TRUE: YES, FALSE: NO}.get(condition.status, WAITS)
    return Step(rule, answer, condition.message)


def as_data(each: Asked) -> dict[str, Any]:
    """Return the steps and what follows from them, for programs."""
    holding = each.holding
    return {
        "namespace": each.key.namespace,
        "name": each.key.name,
        "phase": each.phase or "New",
        "veleroPhase": each.velero.phase or None,
        "queuePosition": each.position,
        "reason": reason_of(each) or None,
        "message": holding.message if holding else None,
        "next": advised(each),
        "steps": [{"step": step.rule, "answer": step.answer, "because": step.because} for step in steps_of(each)],
    }
