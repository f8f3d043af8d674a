"""What a capability leaves that is switched off: its operator ends, then goes what it holds, then its permissions."""

from collections.abc import Sequence
from dataclasses import replace
from functools import partial

from foresail.api.marks import LEASES, RETIRED_LEASE
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.installed import hook_bindings
from foresail.cli.install.manifests import CAPABILITIES, InstallOptions, Piece, operators, retired
from foresail.cli.install.objects import deleted, leading
from foresail.cli.install.patience import Patience
from foresail.cli.install.releases import Releases
from foresail.plan import Key


async def remove(
    cluster: Cluster,
    options: InstallOptions,
    wanted: Sequence[Piece],
    off: Sequence[str],
    patience: Patience,
    *,
    dry_run: bool,
) -> None:
    """Delete what is no longer wanted, and release what these capabilities hold; a second run finishes a first one."""
    bindings = await hook_bindings(cluster)
    gone = [*_no_longer(options, wanted, bindings), *reversed(retired(options.namespace))]
    await deleted(cluster, [piece for piece in gone if piece.is_operator], dry_run=dry_run)
    if off:
        if not dry_run:
            await _ended(cluster, options.namespace, wanted, patience)
        releases = Releases(cluster, options.namespace, dry_run=dry_run)
        for each in off:
            await releases.of(each)
    await deleted(cluster, reversed([piece for piece in gone if not piece.is_operator]), dry_run=dry_run)


def _no_longer(options: InstallOptions, wanted: Sequence[Piece], hooked: tuple[str, ...]) -> list[Piece]:
    """Return what an installation with everything switched on has and this one has not."""
    everything = replace(
        options, capabilities=CAPABILITIES, monitoring=True, tenant_locations=True, schedules_with_hooks=hooked
    )
    there = {(piece.kind, piece.key) for piece in wanted}
    return [operator for operator in operators(everything) if (operator.kind, operator.key) not in there]


async def _ended(cluster: Cluster, namespace: str, wanted: Sequence[Piece], patience: Patience) -> None:
    """Wait until no replica of a deleted Deployment leads: it would write again what is released here."""
    running = {piece.key for piece in wanted if piece.is_operator}
    for key in (Key(namespace, name) for name in (*LEASES, RETIRED_LEASE)):
        if key not in running:
            problem = f"Lease {key}: an operator still holds it"
            hint = "stop its holder (foresail doctor names it), then run the same command again"
            await patience.wait(
                "the operator has stopped", partial(_is_free, cluster, key), CommandError(problem, hint)
            )


async def _is_free(cluster: Cluster, key: Key) -> bool:
    return not await leading(cluster, key)
