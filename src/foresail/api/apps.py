"""Wire types of Deployments and their pods: the fields that show which Velero runs and with which flags."""

import msgspec

from foresail.api.metadata import Metadata
from foresail.plan import Kind

DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment")
DAEMON_SET = Kind("apps", "v1", "daemonsets", "DaemonSet")


class Variable(msgspec.Struct, frozen=True):
    """A variable of the environment; without a value if it comes from elsewhere."""

    name: str = ""
    value: str = ""


class Container(msgspec.Struct, frozen=True):
    """What a container runs."""

    name: str = ""
    image: str = ""
    command: list[str] = []
    args: list[str] = []
    env: list[Variable] = []


def is_server(container: Container) -> bool:
    """Return whether a container runs a Velero server."""
    words = [*container.command, *container.args]
    is_velero = "velero" in container.image.rpartition("/")[2] or any(each.endswith("/velero") for each in words)
    return is_velero and "server" in words


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The containers of a pod and its ServiceAccount."""

    containers: list[Container] = []
    service_account_name: str = ""


class PodTemplate(msgspec.Struct, frozen=True):
    """A pod template."""

    spec: PodSpec = PodSpec()


class DeploymentSpec(msgspec.Struct, frozen=True):
    """The spec of a Deployment."""

    template: PodTemplate = PodTemplate()
    replicas: int = 1


class DeploymentStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a Deployment."""

    observed_generation: int = 0
    updated_replicas: int = 0
    available_replicas: int = 0
    replicas: int = 0


class DeploymentMetadata(Metadata, frozen=True, rename="camel"):
    """Metadata with the generation."""

    generation: int = 0


class Deployment(msgspec.Struct, frozen=True):
    """A Deployment."""

    metadata: DeploymentMetadata
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class DaemonSetSpec(msgspec.Struct, frozen=True):
    """The spec of a DaemonSet."""

    template: PodTemplate = PodTemplate()


class DaemonSet(msgspec.Struct, frozen=True):
    """A DaemonSet."""

    metadata: Metadata
    spec: DaemonSetSpec = DaemonSetSpec()


class Phase(msgspec.Struct, frozen=True):
    """How far a pod has come."""

    phase: str = ""


class StartedPod(msgspec.Struct, frozen=True):
    """A pod, with how its containers are started."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: Phase = Phase()
