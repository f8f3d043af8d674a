"""The rows of nodes, quotas and priority classes: where pods may run, and how many."""

from datetime import datetime

import msgspec

from foresail.api import pods
from foresail.api.instants import utc
from foresail.plan import Key, Keyed
from foresail.primers.autoscalers import gke_mode, pool_of
from foresail.primers.image_volumes import pulls_images

_TERMINATION_TAINTS = ("karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/out-of-service")
UNWARMABLE = {"eks.amazonaws.com/compute-type": "fargate", "type": "virtual-kubelet", "kubernetes.io/os": "windows"}
"""Labels of nodes that come with the pod, or that no placeholder can run on."""


class NodeRow(msgspec.Struct, frozen=True):
    """A node: since when it is ready, whether it is terminating, and whether a placeholder can warm it."""

    is_terminating: bool
    is_unwarmable: bool
    gke_mode: str = ""
    name: str = ""
    pool: str = ""  # from which the autoscaler makes others like it
    ready: datetime | None = None  # since when pods can run there
    pulls_images: bool = False  # of volumes that nothing mounts


class QuotaRow(Keyed, frozen=True):
    """A ResourceQuota."""

    scopes: tuple[tuple[str, str, tuple[str, ...]], ...]  # name, operator, values
    hard: tuple[tuple[str, str], ...]
    used: tuple[tuple[str, str], ...]


class PriorityRow(msgspec.Struct, frozen=True):
    """A PriorityClass."""

    name: str
    value: int
    is_default: bool
    preemption: str


def node_row(wire: pods.Node) -> NodeRow:
    """Return the row of a node."""
    labels = wire.metadata.labels or {}
    taints = {taint.key for taint in wire.spec.taints or ()}
    return NodeRow(
        is_terminating=wire.metadata.deletion_timestamp is not None or not taints.isdisjoint(_TERMINATION_TAINTS),
        is_unwarmable=any(labels.get(name) == value for name, value in UNWARMABLE.items()),
        gke_mode=gke_mode(wire.metadata.name),
        name=wire.metadata.name,
        pool=pool_of(labels),
        ready=_ready_since(wire.status),
        pulls_images=pulls_images(wire.status.node_info.kubelet_version),
    )


def _ready_since(status: pods.NodeStatus) -> datetime | None:
    ready = (
        condition for condition in status.conditions or () if condition.type == "Ready" and condition.status == "True"
    )
    since = next((pod_condition.last_transition_time for pod_condition in ready), None)
    return utc(since) if since else None


def quota_row(wire: pods.ResourceQuota) -> QuotaRow:
    """Return the row of a quota."""
    spec = wire.spec
    status = wire.status
    scopes = [(name, "Exists", ()) for name in spec.scopes or ()]
    selected = [
        (expression.scope_name, expression.operator, tuple(expression.values or ()))
        for expression in spec.scope_selector.match_expressions or ()
    ]
    return QuotaRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        scopes=(*scopes, *selected),
        hard=tuple(sorted((status.hard or {}).items())),
        used=tuple(sorted((status.used or {}).items())),
    )


def priority_row(wire: pods.PriorityClass) -> PriorityRow:
    """Return the row of a priority class."""
    return PriorityRow(wire.metadata.name, wire.value, wire.global_default, wire.preemption_policy)
