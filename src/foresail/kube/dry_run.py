"""Shows Plans instead of executing them: the same watches and decisions, but no writes."""

import asyncio
from collections.abc import Callable, Sequence
from typing import Any, assert_never

import msgspec

from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import Connection
from foresail.kube.controller import Controller
from foresail.kube.execute import Outcome, Result
from foresail.kube.loop import Loop
from foresail.plan import Action, Apply, Create, Delete, DeleteLabelled, JsonPatch, Patch, Plan

_encoder = msgspec.json.Encoder(order="sorted")


class DryRun:
    """Replaces the executor."""

    def __init__(self, show: Callable[[str], None]) -> None:
        self._show = show

    async def execute(self, plan: Plan) -> Result:
        """Show the writes and Events of a Plan."""
        for line in lines(plan):
            self._show(line)
        return Result(Outcome.DONE)


def lines(plan: Plan) -> list[str]:
    """Return each write and each Event of a Plan as a line, and then the next wake-up."""
    lines = [_line(action) for action in plan.writes]
    lines += [f"emit {note.reason} for {note.kind.name} {note.key}: {note.message}" for note in plan.notes]
    if lines and plan.wake_at is not None:
        lines.append(f"reconcile again at {plan.wake_at.isoformat()}")
    return lines


async def run(connection: Connection, controllers: Sequence[Controller[Any]], show: Callable[[str], None]) -> None:
    """Show what the controllers would do until cancelled; needs no Lease, because it writes nothing."""
    async with Client(connection) as client, asyncio.TaskGroup() as group:
        loops: list[Loop[Any]] = []
        for controller in controllers:
            loops.append(Loop(client, controller, DryRun(show), now, siblings=tuple(loops)))
        for loop in loops:
            group.create_task(loop.run())


def _line(action: Action) -> str:
    match action:
        case Create() | Apply() if action.kind.name == "Secret":
            verb = type(action).__name__.lower()
            rest = "(not shown)"
        case Create() | Apply():
            verb = type(action).__name__.lower()
            rest = _encoder.encode(action.body).decode()
        case Patch():
            at = f"patch {action.subresource} of" if action.subresource else "patch"
            return f"{at} {action.kind.name} {action.key}: {_encoder.encode(action.body).decode()}"
        case JsonPatch():
            verb = "patch"
            rest = _encoder.encode(action.operations).decode()
        case Delete():
            verb = "delete"
            rest = f"uid {action.uid}"
        case DeleteLabelled():
            verb = "delete all"
            rest = action.selector
        case _:
            assert_never(action)
    return f"{verb} {action.kind.name} {action.key}: {rest}"
