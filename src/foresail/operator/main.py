"""Puts the operator together: one connection, one controller for each capability, one Lease."""

from foresail.kube import replica
from foresail.kube.connect import connect
from foresail.operator.settings import Settings
from foresail.plan import Key
from foresail.schedules.controller import Schedules

LEASE = "foresail"


async def run(settings: Settings) -> None:
    """Run this replica until SIGTERM."""
    schedules = Schedules(settings.velero_namespace, settings.schedules, settings.velero_dialect)
    place = replica.Place(
        name="foresail",
        identity=settings.identity,
        lease=Key(settings.lease_namespace, LEASE),
        host=settings.host,
        port=settings.port,
    )
    connection = await connect(settings.kubeconfig, settings.context)
    await replica.run(connection, [schedules], place, figures=[schedules.metrics])
