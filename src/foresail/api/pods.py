"""Wire types of pods, nodes, quotas and priority classes."""

from datetime import datetime

import msgspec

from foresail.api.batch import OwnedMetadata
from foresail.api.metadata import Metadata
from foresail.plan import Kind

POD = Kind("", "v1", "pods", "Pod")
NODE = Kind("", "v1", "nodes", "Node", namespaced=False)
RESOURCE_QUOTA = Kind("", "v1", "resourcequotas", "ResourceQuota")
PRIORITY_CLASS = Kind("scheduling.k8s.io", "v1", "priorityclasses", "PriorityClass", namespaced=False)

PAUSE_IMAGE = "registry.k8s.io/pause:3.10.2"
"""The default image of placeholders: the pause image of Kubernetes."""

_NOTHING = msgspec.Raw(b"null")
PENDING, RUNNING, SUCCEEDED, FAILED = "Pending", "Running", "Succeeded", "Failed"


Amount = str | int | float
"""A quantity; from the API server it comes as text, in a manifest it may be a number."""


class Resources(msgspec.Struct, frozen=True):
    """Requests and limits."""

    requests: dict[str, Amount] | None = None
    limits: dict[str, Amount] | None = None


class Container(msgspec.Struct, frozen=True, rename="camel"):
    """A container: its image and resources."""

    image: str = ""
    resources: Resources = Resources()
    restart_policy: str = ""  # Always in an init container: a sidecar


class ClaimSource(msgspec.Struct, frozen=True, rename="camel"):
    """A claim whose volume a pod mounts."""

    claim_name: str = ""


class PodVolume(msgspec.Struct, frozen=True, rename="camel"):
    """A volume of a pod, if it is a claim."""

    persistent_volume_claim: ClaimSource | None = None


class PodSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a pod."""

    containers: list[Container] = []
    init_containers: list[Container] = []
    resources: Resources | None = None  # pod-level resources, if the cluster supports them
    node_name: str = ""
    node_selector: dict[str, str] | None = None
    affinity: msgspec.Raw = _NOTHING
    topology_spread_constraints: msgspec.Raw = _NOTHING
    tolerations: msgspec.Raw = _NOTHING
    scheduler_name: str = ""
    runtime_class_name: str = ""
    priority_class_name: str = ""
    priority: int | None = None
    preemption_policy: str = ""
    active_deadline_seconds: int | None = None
    image_pull_secrets: msgspec.Raw = _NOTHING
    volumes: list[PodVolume] | None = None


class TemplateMetadata(msgspec.Struct, frozen=True):
    """The labels of a pod template."""

    labels: dict[str, str] | None = None


class PodTemplate(msgspec.Struct, frozen=True):
    """A pod template."""

    metadata: TemplateMetadata | None = None
    spec: PodSpec = PodSpec()


class Running(msgspec.Struct, frozen=True, rename="camel"):
    """Since when a container runs."""

    started_at: datetime | None = None


class Waiting(msgspec.Struct, frozen=True):
    """Why a container does not run."""

    reason: str = ""
    message: str = ""


class Terminated(msgspec.Struct, frozen=True, rename="camel"):
    """How a container ended."""

    exit_code: int = 0
    reason: str = ""
    message: str = ""
    started_at: datetime | None = None
    finished_at: datetime | None = None


class ContainerState(msgspec.Struct, frozen=True):
    """The state of a container: one of these."""

    waiting: Waiting | None = None
    running: Running | None = None
    terminated: Terminated | None = None


class ContainerStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a container."""

    state: ContainerState = ContainerState()
    last_state: ContainerState = ContainerState()
    image: str = ""
    restart_count: int = 0


class PodCondition(msgspec.Struct, frozen=True, rename="camel"):
    """A condition of a pod or a node."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    last_transition_time: datetime | None = None


class PodStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a pod."""

    phase: str = ""
    reason: str = ""
    start_time: datetime | None = None
    conditions: list[PodCondition] | None = None
    init_container_statuses: list[ContainerStatus] | None = None
    container_statuses: list[ContainerStatus] | None = None


class Pod(msgspec.Struct, frozen=True):
    """A Pod."""

    metadata: OwnedMetadata
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()


class Taint(msgspec.Struct, frozen=True):
    """A taint."""

    key: str = ""


class NodeSpec(msgspec.Struct, frozen=True):
    """The spec of a node."""

    taints: list[Taint] | None = None


class NodeInfo(msgspec.Struct, frozen=True, rename="camel"):
    """Versions that a node reports."""

    kubelet_version: str = ""


class NodeStatus(msgspec.Struct, frozen=True, rename="camel"):
    """The status of a node."""

    conditions: list[PodCondition] | None = None
    node_info: NodeInfo = NodeInfo()


class Node(msgspec.Struct, frozen=True):
    """A Node."""

    metadata: Metadata
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


class ScopeRequirement(msgspec.Struct, frozen=True, rename="camel"):
    """One requirement of a quota's scope selector."""

    scope_name: str = ""
    operator: str = ""
    values: list[str] | None = None


class ScopeSelector(msgspec.Struct, frozen=True, rename="camel"):
    """The scope selector of a quota."""

    match_expressions: list[ScopeRequirement] | None = None


class QuotaSpec(msgspec.Struct, frozen=True, rename="camel"):
    """The spec of a quota: hard limits, and of which pods."""

    hard: dict[str, str] | None = None
    scopes: list[str] | None = None
    scope_selector: ScopeSelector = ScopeSelector()


class QuotaStatus(msgspec.Struct, frozen=True):
    """The status of a quota: hard limits and usage."""

    hard: dict[str, str] | None = None
    used: dict[str, str] | None = None


class ResourceQuota(msgspec.Struct, frozen=True):
    """A ResourceQuota."""

    metadata: Metadata
    spec: QuotaSpec = QuotaSpec()
    status: QuotaStatus = QuotaStatus()


class PriorityClass(msgspec.Struct, frozen=True, rename="camel"):
    """A PriorityClass."""

    metadata: Metadata
    value: int = 0
    global_default: bool = False
    preemption_policy: str = ""
