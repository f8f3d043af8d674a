"""Checks that every Parent has what it should have."""

import msgspec

from bench import MeasurementError
from bench.reading import everything
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.plan import Kind
from testbed import Cluster
from tests.cluster.parents import OWNER, PARENT

CHILD = Kind("", "v1", "configmaps", "ConfigMap")


class Metadata(msgspec.Struct):
    """Who an object is."""

    name: str
    uid: str
    version: str = msgspec.field(name="resourceVersion")
    namespace: str = ""
    annotations: dict[str, str] = {}


class Found(msgspec.Struct):
    """An object as it is now."""

    metadata: Metadata
    status: dict[str, str] = {}


async def check_converged(cluster: Cluster, count: int) -> None:
    """Fail unless there are so many Parents, each with a child of its own and a status that says so."""
    async with Client(await connect(str(cluster.kubeconfig))) as client:
        parents, _ = await everything(client, PARENT, Found)
        children, _ = await everything(client, CHILD, Found, OWNER)
    owners = {(each.metadata.namespace, each.metadata.name): each.metadata.annotations[OWNER] for each in children}
    wanted = {(each.metadata.namespace, each.metadata.name): each.metadata.uid for each in parents}
    unsaid = [each.metadata.name for each in parents if each.status.get("child") != each.metadata.name]
    if len(parents) != count or owners != wanted or unsaid:
        text = f"{len(parents)} of {count} Parents, {len(children)} children, {len(unsaid)} without their status"
        raise MeasurementError(f"not converged: {text}")
