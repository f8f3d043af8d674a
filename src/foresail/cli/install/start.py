"""The operators first, then Velero without its schedule controller.

An operator that leads leaves the Schedules alone until Velero's last server with that controller has ended. Until then
Velero runs them, also if the operator never starts.
"""

import sys
from collections.abc import Sequence

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import RETIRED_LEASE, SCHEDULES_LEASE
from foresail.api.pod_problems import ObservedPod, first_problem, previous_image
from foresail.api.pods import POD
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.hand_over import Server, hand_over, with_problem
from foresail.cli.install.manifests import InstallOptions, Piece
from foresail.cli.install.objects import Patience, applied, leading
from foresail.plan import Key


async def is_rolled_out(cluster: Cluster, key: Key) -> bool:
    """Return whether every replica of a Deployment is of its newest template, and available."""
    deployment = await cluster.if_there(DEPLOYMENT, key, Deployment)
    if deployment is None:
        return False
    status = deployment.status
    replicas = deployment.spec.replicas
    return (
        status.observed_generation >= deployment.metadata.generation
        and status.updated_replicas == status.replicas == replicas
        and status.available_replicas >= replicas
    )


async def pods_of(cluster: Cluster, key: Key) -> list[ObservedPod]:
    """Return the pods of a Deployment of ours."""
    raw = await cluster.listed(POD, key.namespace, f"app.kubernetes.io/name={key.name}")
    return [msgspec.json.decode(item, type=ObservedPod) for item in raw]


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
    """Have the operators run; when they lead, have Velero leave the Schedules to them."""
    has_schedules = "schedules" in options.capabilities
    try:
        await _run(cluster, options, running, patience, dry_run=dry_run)
    except CommandError as error:
        if dry_run or not has_schedules:
            raise
        raise await _with_who_runs_them(cluster, server, error) from error
    if has_schedules:
        await hand_over(cluster, server, patience, off=True, dry_run=dry_run)


async def _run(
    cluster: Cluster, options: InstallOptions, running: Sequence[Piece], patience: Patience, *, dry_run: bool
) -> None:
    for piece in running:
        await applied(cluster, piece, dry_run=dry_run)
    if not dry_run:
        for piece in running:
            await _wait_for_leader(cluster, options, piece.key, patience)


async def _wait_for_leader(cluster: Cluster, options: InstallOptions, key: Key, patience: Patience) -> None:
    """Wait until a Deployment is rolled out and its operator leads, by the Lease of the same name."""

    async def has_leader() -> bool:
        return await is_rolled_out(cluster, key) and bool(await leading(cluster, key))

    pods = f"kubectl describe pods -n {key.namespace} -l app.kubernetes.io/name={key.name}"
    late = CommandError(f"Deployment {key}", f"{pods}; can nodes pull {options.image}?")
    try:
        await patience.wait(f"Deployment {key} is rolled out and a replica holds the Lease", has_leader, late)
    except CommandError as error:
        if error is not late:
            raise
        operator_pods = await pods_of(cluster, key)
        if await is_rolled_out(cluster, key):
            problem = "is rolled out, and no replica of the operator holds the Lease"
        else:
            problem = f"is not rolled out: {first_problem(operator_pods) or 'its new pods are not ready'}"
        back = way_back(options.namespace, previous_image(operator_pods, options.image))
        raise CommandError(f"{error.problem} {problem}", f"{error.hint}{back}") from error
    print(f"{await leading(cluster, key)} holds the Lease {key}", file=sys.stderr)


def way_back(namespace: str, image: str) -> str:
    """Return, as the end of a hint, the command that goes back to an image; empty without one."""
    return f"; to go back: foresail install -n {namespace} --image {image}" if image else ""


async def _with_who_runs_them(cluster: Cluster, server: Server, error: CommandError) -> CommandError:
    """Return what to report about an operator that does not start, with who runs the Schedules."""
    if not server.is_off:
        return with_problem(error, "Velero still runs the Schedules")
    leases = [Key(server.key.namespace, name) for name in (SCHEDULES_LEASE, RETIRED_LEASE)]
    if any([await leading(cluster, key) for key in leases]):
        return with_problem(error, "the previous operator still runs the Schedules")
    return with_problem(error, "no Schedule runs", _WAY_BACK)
