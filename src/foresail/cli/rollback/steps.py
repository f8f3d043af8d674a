"""The steps of a Rollback with their times: in a table, and one after the other while it runs."""

import asyncio
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import TextIO

from foresail.api.rollback import RollbackStatus, RollbackStep
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import GREEN, RED, YELLOW, hint, painted
from foresail.cli.output.progress import Line
from foresail.cli.output.words import compact, in_words
from foresail.cli.rollback.rollbacks import Seen, read
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.rollback.reasons import Reason

_PAUSE = 0.5
_PATIENCE, _UNSERVED = timedelta(seconds=15), timedelta(minutes=2)
OK, FAILED, RUNS = "ok", "failed", "runs"
_COLOURS = {OK: GREEN, FAILED: RED, RUNS: YELLOW}
_WIDEST_NAME, _WIDEST_TIME, _WIDEST_STATE = 13, 7, 6


def state_of(status: RollbackStatus, number: int) -> str:
    """Return how a step went: it failed if the Rollback was refused, or turned back, at its end."""
    step = status.steps[number]
    if step.finished is None:
        return RUNS
    is_last = number == len(status.steps) - 1
    follows = "" if is_last else status.steps[number + 1].name
    turned_back = follows == "Undoing" and bool(status.failure)
    return FAILED if turned_back or (is_last and status.phase == "Refused") else OK


def took(step: RollbackStep, at: datetime) -> str:
    """Return how long a step took, or how long it has been running."""
    return compact((step.finished or at) - step.started)


def rows(status: RollbackStatus, at: datetime) -> Iterator[tuple[str, ...]]:
    """Yield a row for each step: how it went, its name, how long it took, and what it did or waits for."""
    for number, step in enumerate(status.steps):
        yield state_of(status, number), in_words(step.name), took(step, at), step.message


class Shown:
    """Shows the steps as they go: those that have ended stay, the one that runs is written over on a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream or sys.stderr
        self._line = Line(self._stream)
        self._ended = 0

    def show(self, status: RollbackStatus, at: datetime) -> None:
        """Show what is new."""
        lines = list(rows(status, at))
        for row in lines[self._ended :]:
            if row[0] == RUNS:
                break
            self._line.settle(self._text(row))
            self._ended += 1
        running = lines[self._ended :]
        if not running:
            return
        row = running[0]
        if not self._line.is_overwritten:
            row = (*row[:2], "", row[3])  # a line of its own for each second would say nothing
        self._line.show(self._text(row))

    def skip(self, status: RollbackStatus) -> None:
        """Leave out the steps that had ended before."""
        self._ended = sum(step.finished is not None for step in status.steps)

    def close(self) -> None:
        """Leave the line."""
        self._line.close()

    def _text(self, row: tuple[str, ...]) -> str:
        state, name, length, message = row
        coloured = painted(f"{state:<{_WIDEST_STATE}}", _COLOURS[state], self._stream)
        return f"{coloured}  {name:<{_WIDEST_NAME}}  {length:>{_WIDEST_TIME}}  {message}".rstrip()


async def follow(
    cluster: Cluster, key: Key, until: datetime | None, has_ended: Callable[[Seen], bool], before: Seen | None = None
) -> Seen:
    """Show the steps of a Rollback until it has ended, and return it; what it waits for is a hint."""
    shown = Shown()
    if before is not None:
        shown.skip(before.status)
    began = now()
    told = ""
    try:
        while True:
            seen = await read(cluster, key)
            shown.show(seen.status, now())
            if has_ended(seen):
                return seen
            news = remark(seen, now() - began)
            if news and news != told:
                shown.close()
                hint(news)
                told = news
            if until is not None and now() >= until:
                name = f"{key.name} -n {key.namespace}"
                raise CommandError(
                    f"{seen}: timed out; it is {seen.status.phase}", f"foresail rollback describe {name}"
                )
            await asyncio.sleep(_PAUSE)
    finally:
        shown.close()


def remark(seen: Seen, waited: timedelta) -> str:
    """Return a hint for someone who waits; empty if there is none. Raise that nobody serves the Rollback."""
    if not seen.status.conditions and seen.status.phase == "New":
        if waited >= _UNSERVED:
            problem = f"{seen}: no operator has seen it for {compact(_UNSERVED)}"
            raise CommandError(problem, "ask a cluster administrator whether Deployment foresail-rollback runs")
        is_late = waited >= _PATIENCE
        return "the operator has not seen it yet; it may not run, or not with rollback enabled" if is_late else ""
    return seen.message if seen.reason in (Reason.WAITING, Reason.UNDO_WAITS) else ""
