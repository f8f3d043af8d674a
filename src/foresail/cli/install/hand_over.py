"""The Schedules from Velero to the operator, or back: a change of Velero that fails or is ended is undone."""

import asyncio
import sys
from datetime import timedelta

from foresail.api.marks import SCHEDULES_LEASE
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.objects import Patience, leading
from foresail.cli.install.velero import Server, switch, velero_server
from foresail.kube.clock import now
from foresail.plan import Key

_TO_UNDO = timedelta(minutes=2)
_NOBODY = "maybe no Schedule runs"
_CHECK = "`foresail doctor` reports who runs the Schedules; run the same command again"


async def hand_over(cluster: Cluster, server: Server, patience: Patience, *, off: bool, dry_run: bool) -> None:
    """Have Velero's schedule controller off or on while an operator leads; after a failure, have it as it was."""
    try:
        await switch(cluster, server, patience, off=off, dry_run=dry_run)
    except CommandError as error:
        if dry_run:
            raise
        raise await _undone(cluster, server, error) from error
    except asyncio.CancelledError:  # Ctrl-C; a second one ends this too
        if not dry_run and server.is_off != off:
            print((await _undone(cluster, server, CommandError("interrupted"))).problem, file=sys.stderr)
        raise


async def _undone(cluster: Cluster, before: Server, error: CommandError) -> CommandError:
    """Switch Velero's schedule controller back to what it was; return what to report."""
    who = "the operator runs" if before.is_off else "Velero runs"
    try:
        server = await velero_server(cluster, before.key.namespace)
    except CommandError as second:
        return with_problem(error, f"{_NOBODY}: {second.problem}", _CHECK)
    if server is not None and server.is_off == before.is_off:
        return with_problem(error, f"{who} the Schedules")
    is_led = bool(await leading(cluster, Key(before.key.namespace, SCHEDULES_LEASE)))
    if server is None or server.managed_by is not None or (before.is_off and not is_led):
        return with_problem(error, f"{_NOBODY} until its rollout has finished", _CHECK)
    try:
        await switch(cluster, server, Patience(now() + _TO_UNDO), off=before.is_off, dry_run=False)
    except CommandError as second:
        return with_problem(error, f"{_NOBODY}: {second.problem}", _CHECK)
    return with_problem(error, f"{who} the Schedules again")


def with_problem(error: CommandError, problem: str, hint: str = "") -> CommandError:
    """Return an error of the same exit code, with a second problem and what to do about it."""
    hints = "; ".join(each for each in (error.hint, hint) if each)
    return type(error)(f"{error.problem}; {problem}", hints or None)
