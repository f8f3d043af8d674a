"""Puts the operator together: one connection, one controller for each capability, one Lease."""

from foresail.kube import dry_run, replica
from foresail.kube.connect import connect
from foresail.operator.settings import Settings
from foresail.plan import Key
from foresail.schedules.controller import Schedules

LEASE = "foresail"


async def run(settings: Settings) -> None:
    """Run this replica until SIGTERM."""
    schedules = Schedules(settings.velero_namespace, settings.schedules, settings.velero_dialect)
    connection = await connect(settings.kubeconfig, settings.context)
    if settings.dry_run:
        await dry_run.run(connection, [schedules], lambda line: print(line, flush=True))
        return
    place = replica.Place(
        name="foresail",
        identity=settings.identity,
        lease=Key(settings.lease_namespace, LEASE),
        host=settings.host,
        port=settings.port,
    )
    await replica.run(connection, [schedules], place, figures=[schedules.metrics])
