"""How far a Deployment is rolled out, and why its pods do not run."""

import msgspec

from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.pods import POD
from foresail.cli.access.cluster import Cluster
from foresail.plan import Key

_STARTING = ("", "ContainerCreating", "PodInitializing")


class _Waiting(msgspec.Struct, frozen=True):
    reason: str = ""
    message: str = ""


class _State(msgspec.Struct, frozen=True):
    waiting: _Waiting | None = None
    terminated: _Waiting | None = None


class _ContainerStatus(msgspec.Struct, frozen=True):
    state: _State = _State()


class _Condition(msgspec.Struct, frozen=True):
    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class _PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    phase: str = ""
    conditions: tuple[_Condition, ...] = ()
    container_statuses: tuple[_ContainerStatus, ...] = ()


class _Name(msgspec.Struct, frozen=True):
    name: str = ""


class PodOnTheWire(msgspec.Struct, frozen=True):
    """As much of a pod as tells why it does not run."""

    metadata: _Name
    status: _PodStatus = _PodStatus()


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


async def pods_problem(cluster: Cluster, key: Key) -> str:
    """Return why a pod of a Deployment does not run, with its name; empty if nothing tells."""
    raw = await cluster.listed(POD, key.namespace, f"app.kubernetes.io/name={key.name}")
    found = (pod_problem(msgspec.json.decode(each, type=PodOnTheWire)) for each in raw)
    return next((each for each in found if each), "")


def pod_problem(pod: PodOnTheWire) -> str:
    """Return why a pod does not run, in the words of the kubelet or the scheduler; empty if it runs or starts."""
    for container in pod.status.container_statuses:
        for each in (container.state.waiting, container.state.terminated):
            if each is not None and each.reason not in _STARTING:
                return f"pod {pod.metadata.name}: {_joined(each.reason, each.message)}"
    for condition in pod.status.conditions:
        if condition.type == "PodScheduled" and condition.status == "False":
            return f"pod {pod.metadata.name}: {_joined(condition.reason, condition.message)}"
    return ""


def _joined(reason: str, message: str) -> str:
    return f"{reason}: {message}" if message else reason
