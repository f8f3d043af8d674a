"""How far a Deployment is rolled out, and its pods."""

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.pod_problems import ObservedPod
from foresail.api.pods import POD
from foresail.cli.access.cluster import Cluster
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
