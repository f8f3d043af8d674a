"""Velero's schedule controller off, then the operator: whoever fails in between gives the Schedules back to Velero."""

import asyncio
import sys
from collections.abc import Sequence
from datetime import timedelta

from foresail.api.marks import OPERATORS_LEASE
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.manifests import InstallOptions, Piece
from foresail.cli.install.objects import applied, leading
from foresail.cli.install.patience import Patience
from foresail.cli.install.rollout import is_rolled_out, pods_problem
from foresail.cli.install.velero import Server, switch, velero_server
from foresail.kube.clock import now
from foresail.plan import Key

_TO_GIVE_BACK = timedelta(minutes=2)
_LEADER_PATIENCE = timedelta(minutes=2)
_NOBODY = "no Schedule runs"
_WAY_BACK = "`foresail uninstall` gives the Schedules back to Velero"


async def start(
    cluster: Cluster,
    server: Server,
    options: InstallOptions,
    running: Sequence[Piece],
    patience: Patience,
    *,
    dry_run: bool,
) -> None:
    """Have the operators run, after Velero has left the Schedules to them; after a failure Velero has them again."""
    if "schedules" not in options.capabilities:
        await _run(cluster, options, running, patience, dry_run=dry_run)
        return
    try:
        await switch(cluster, server, patience, off=True, dry_run=dry_run)
        await _run(cluster, options, running, patience, dry_run=dry_run)
    except CommandError as error:
        if dry_run:
            raise
        raise await _reported(cluster, server, error) from error
    except asyncio.CancelledError:  # Ctrl-C; a second one ends this too
        if not dry_run and not server.is_off:
            print((await _given_back(cluster, server, CommandError("interrupted"))).problem, file=sys.stderr)
        raise


async def _run(
    cluster: Cluster, options: InstallOptions, running: Sequence[Piece], patience: Patience, *, dry_run: bool
) -> None:
    for piece in running:
        await applied(cluster, piece, dry_run=dry_run)
    if not dry_run:
        for piece in running:
            await _wait_for_leader(cluster, options, piece.key, patience.at_least(_LEADER_PATIENCE))


async def _wait_for_leader(cluster: Cluster, options: InstallOptions, key: Key, patience: Patience) -> None:
    """Wait until a Deployment is rolled out and its operator leads, by the Lease of the same name."""

    async def has_leader() -> bool:
        return await is_rolled_out(cluster, key) and bool(await leading(cluster, key))

    pods = f"kubectl describe pods -n {key.namespace} -l app.kubernetes.io/name={key.name}"
    late = CommandError(f"Deployment {key} is not rolled out", f"{pods}; can nodes pull {options.image}?")
    try:
        await patience.wait(f"Deployment {key} is rolled out and a replica holds the Lease", has_leader, late)
    except CommandError as error:
        cause = await pods_problem(cluster, key) or "no replica of the operator holds the Lease"
        raise CommandError(f"{error.problem}: {cause}", error.hint) from error
    print(
        f"{await leading(cluster, key)} holds the Lease. Check the installation with foresail doctor", file=sys.stderr
    )


async def _reported(cluster: Cluster, before: Server, error: CommandError) -> CommandError:
    """Return the error, with who runs the Schedules now if that has changed or no controller does."""
    if not before.is_off:
        return await _given_back(cluster, before, error)
    if await leading(cluster, Key(before.key.namespace, OPERATORS_LEASE)):
        return error
    return _with(error, _NOBODY, _WAY_BACK)


async def _given_back(cluster: Cluster, before: Server, error: CommandError) -> CommandError:
    """Switch Velero's schedule controller on again, which was on before; return what to report."""
    try:
        server = await velero_server(cluster, before.key.namespace)
    except CommandError as second:
        return _with(error, f"Velero's schedule controller may be off: {second.problem}", _WAY_BACK)
    if server is not None and not server.is_off:
        return error
    if server is None or server.managed_by is not None:
        return _with(error, _NOBODY, _WAY_BACK)
    try:
        await switch(cluster, server, Patience(now() + _TO_GIVE_BACK), off=False, dry_run=False)
    except CommandError as second:
        return _with(error, f"{_NOBODY}: {second.problem}", _WAY_BACK)
    return _with(error, "Velero runs the Schedules again")


def _with(error: CommandError, problem: str, hint: str = "") -> CommandError:
    """Return an error of the same exit code, with a second problem and what to do about it."""
    hints = "; ".join(each for each in (error.hint, hint) if each)
    return type(error)(f"{error.problem}; {problem}", hints or None)
