"""How far a Deployment is rolled out, and why its pods do not run."""

from collections.abc import Iterable

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.pods import POD, PodStatus
from foresail.cli.access.cluster import Cluster
from foresail.plan import Key

_STARTING = ("", "ContainerCreating", "PodInitializing")


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class _Image(msgspec.Struct, frozen=True):
    image: str = ""


class _PodSpec(msgspec.Struct, frozen=True):
    containers: tuple[_Image, ...] = ()


class PodOnTheWire(msgspec.Struct, frozen=True):
    """As much of a pod as tells what it runs, and why it does not run."""

    metadata: _Name
    spec: _PodSpec = _PodSpec()
    status: PodStatus = PodStatus()


async def is_rolled_out(cluster: Cluster, key: Key) -> bool:
    """Return whether every replica of a Deployment is of its newest template, and available."""
    found = await cluster.if_there(DEPLOYMENT, key, Deployment)
    if found is None:
        return False
    status, replicas = found.status, found.spec.replicas
    return (
        status.observed_generation >= found.metadata.generation
        and status.updated_replicas == status.replicas == replicas
        and status.available_replicas >= replicas
    )


async def pods_of(cluster: Cluster, key: Key) -> list[PodOnTheWire]:
    """Return the pods of a Deployment of ours."""
    raw = await cluster.listed(POD, key.namespace, f"app.kubernetes.io/name={key.name}")
    return [msgspec.json.decode(each, type=PodOnTheWire) for each in raw]


def first_problem(pods: Iterable[PodOnTheWire]) -> str:
    """Return why one of the pods does not run, with its name; empty if nothing tells."""
    return next((problem for each in pods if (problem := pod_problem(each))), "")


def previous_image(pods: Iterable[PodOnTheWire], image: str) -> str:
    """Return the image of a Ready pod that has another one than this; empty if there is no such pod."""
    ready = (
        each
        for each in pods
        if any(one.type == "Ready" and one.status == "True" for one in each.status.conditions or ())
    )
    return next((one.image for each in ready for one in each.spec.containers[:1] if one.image != image), "")


def pod_problem(pod: PodOnTheWire) -> str:
    """Return why a pod does not run, in the words of the kubelet or the scheduler; empty if it runs or starts."""
    for container in pod.status.container_statuses or ():
        for each in (container.state.waiting, container.state.terminated):
            if each is not None and each.reason not in _STARTING:
                return f"pod {pod.metadata.name}: {_joined(each.reason, each.message)}"
    for condition in pod.status.conditions or ():
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"pod {pod.metadata.name}: {_joined(condition.reason, condition.message)}"
    return ""


def _joined(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason
