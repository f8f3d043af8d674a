"""Puts the operator together: one connection, one controller for each capability, one Lease."""

from foresail.api.marks import OPERATORS_LEASE
from foresail.kube import dry_run, replica
from foresail.kube.client import Client
from foresail.kube.connect import Connection, connect
from foresail.operator.settings import Settings
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.rehearsal import rehearsing
from foresail.primers.search import locating
from foresail.schedules.controller import Schedules
from foresail.selfservice.controller import SelfService


async def run(settings: Settings) -> None:
    """Run this replica until SIGTERM."""
    connection = await connect(settings.kubeconfig, settings.context)
    async with Client(connection) as apart:
        await _run(settings, connection, controllers(settings, apart))


async def _run(settings: Settings, connection: Connection, chosen: list[Schedules | SelfService | Primers]) -> None:
    if settings.dry_run:
        await dry_run.run(connection, chosen, lambda line: print(line, flush=True))
        return
    place = replica.Place(
        name="foresail",
        identity=settings.identity,
        lease=Key(settings.lease_namespace, OPERATORS_LEASE),
        host=settings.host,
        port=settings.port,
    )
    await replica.run(connection, chosen, place, figures=[each.metrics for each in chosen])


def controllers(settings: Settings, client: Client) -> list[Schedules | SelfService | Primers]:
    """Return a controller for each capability that is switched on."""
    found: list[Schedules | SelfService | Primers] = []
    if settings.runs_schedules:
        found.append(Schedules(settings.velero_namespace, settings.schedules, settings.velero_dialect))
    if settings.runs_self_service:
        found.append(SelfService(settings.velero_namespace, never=(settings.lease_namespace,)))
    if settings.runs_primers:
        found.append(Primers(settings.primers, rehearsing(client), locating(client)))
    return found
