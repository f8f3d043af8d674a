"""Wire types of Deployments and their pods: the fields that show which Velero runs and with which flags."""

import shlex
from datetime import datetime
from itertools import pairwise, takewhile
from typing import Any

import msgspec

from foresail.api.metadata import Metadata
from foresail.plan import Kind

DEPLOYMENT = Kind("apps", "v1", "deployments", "Deployment")
DAEMON_SET = Kind("apps", "v1", "daemonsets", "DaemonSet")

_VELERO, _SERVER = "velero", "server"
_SHELLS = frozenset({"sh", "ash", "bash", "dash", "busybox"})
_SEPARATORS = frozenset(";&|()<>")  # of the commands of a shell


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
    return server_words(container) is not None


def server_words(container: Container) -> list[str] | None:
    """Return the command line of the Velero server that a container runs; None if it runs none that is recognised."""
    words = [*container.command, *container.args]
    if is_wrapped(container):
        return next(filter(None, map(_server_in_script, words[1:])), None)
    is_velero = "velero" in container.image.rpartition("/")[2] or any(_base(word) == _VELERO for word in words)
    return words if is_velero and _SERVER in words else None


def is_wrapped(container: Container) -> bool:
    """Return whether a shell starts what the container runs, so that its flags are in a script."""
    words = [*container.command, *container.args]
    return bool(words) and _base(words[0]) in _SHELLS


def _server_in_script(script: str) -> list[str] | None:
    """Return the command line of a Velero server in the script of a shell, up to the end of that command."""
    lines = script.replace("\\\n", " ").replace("\n", " ; ")
    lexer = shlex.shlex(lines, posix=True, punctuation_chars=True)
    lexer.whitespace_split = True
    try:
        words = list(lexer)
    except ValueError:  # a quote without its end
        words = lines.split()
    for start, (word, following) in enumerate(pairwise(words)):
        if _base(word) == _VELERO and following == _SERVER:
            return list(takewhile(lambda word: not set(word) <= _SEPARATORS, words[start:]))
    return None


def _base(word: str) -> str:
    return word.rpartition("/")[2]


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
    ready_replicas: int = 0
    replicas: int = 0


class OwnedSpec(msgspec.Struct, frozen=True):
    """The fields of the spec that a writer owns, as far as they matter: the number of pods."""

    replicas: dict[str, object] | None = msgspec.field(default=None, name="f:replicas")


class OwnedFields(msgspec.Struct, frozen=True):
    """The fields that a writer owns."""

    spec: OwnedSpec | None = msgspec.field(default=None, name="f:spec")


class FieldsWrite(msgspec.Struct, frozen=True):
    """When a writer last wrote its fields, and which they are."""

    time: datetime | None = None
    fields: OwnedFields | None = msgspec.field(default=None, name="fieldsV1")
    subresource: str = ""

    @property
    def is_of_replicas(self) -> bool:
        """Whether the writer owns the number of pods, or their count: a second `kubectl scale` changes no time."""
        is_owner = self.fields is not None and self.fields.spec is not None and self.fields.spec.replicas is not None
        return is_owner or self.subresource == "status"


class DeploymentMetadata(Metadata, frozen=True, rename="camel"):
    """Metadata with the generation, and who wrote what."""

    generation: int = 0
    managed_fields: tuple[FieldsWrite, ...] = ()

    @property
    def scaled(self) -> datetime | None:
        """When whoever sets the number of pods last wrote to it; None if the API server does not tell."""
        writes = (write.time for write in self.managed_fields if write.is_of_replicas)
        return max((time for time in writes if time is not None), default=None)


class Deployment(msgspec.Struct, frozen=True):
    """A Deployment."""

    metadata: DeploymentMetadata
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class WorkloadCondition(msgspec.Struct, frozen=True):
    """A condition of a Deployment."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""


class ObservedSpec(DeploymentSpec, frozen=True):
    """The spec of a Deployment with the selector of its pods."""

    selector: dict[str, Any] = {}  # of its pods


class ObservedStatus(DeploymentStatus, frozen=True, rename="camel"):
    """The status of a Deployment with its conditions."""

    conditions: list[WorkloadCondition] | None = None


class ObservedDeployment(Deployment, frozen=True):
    """A Deployment with what tells whether it runs."""

    spec: ObservedSpec = ObservedSpec()
    status: ObservedStatus = ObservedStatus()


class DaemonSetSpec(msgspec.Struct, frozen=True):
    """The spec of a DaemonSet."""

    template: PodTemplate = PodTemplate()
    selector: dict[str, Any] = {}  # of its pods


class DaemonSetStatus(msgspec.Struct, frozen=True, rename="camel"):
    """How many pods of a DaemonSet there should be, and how many are ready."""

    desired_number_scheduled: int = 0
    number_ready: int = 0


class DaemonSet(msgspec.Struct, frozen=True):
    """A DaemonSet."""

    metadata: Metadata
    spec: DaemonSetSpec = DaemonSetSpec()
    status: DaemonSetStatus = DaemonSetStatus()


class Phase(msgspec.Struct, frozen=True):
    """How far a pod has come."""

    phase: str = ""


class StartedPod(msgspec.Struct, frozen=True):
    """A pod, with how its containers are started."""

    metadata: Metadata
    spec: PodSpec = PodSpec()
    status: Phase = Phase()


NODE_AGENT = "node-agent"
"""The word in the arguments of Velero's node agent."""


def is_node_agent(wire: DaemonSet) -> bool:
    """Return whether a DaemonSet runs Velero's node agent."""
    return any(NODE_AGENT in (*container.command, *container.args) for container in wire.spec.template.spec.containers)
