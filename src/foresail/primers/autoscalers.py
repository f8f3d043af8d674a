"""How a pod keeps its node, and which nodes are alike, by the autoscaler of the cluster.

On GKE Autopilot `safe-to-evict: "false"` means more than that: the pod gets a node of its own, larger minimum requests,
and may have no affinity to other pods. There a placeholder has no annotation, and is created again if it is lost.
"""

from collections.abc import Mapping

from foresail.primers.shape import Shape

AUTOPILOT, STANDARD = "Autopilot", "Standard"
_MODES = {"gk3-": AUTOPILOT, "gke-": STANDARD}
_COMPUTE_CLASS = "cloud.google.com/compute-class"
_AUTOPILOT_CLASSES = ("autopilot", "autopilot-spot")
_POOLS = (
    "karpenter.sh/nodepool",
    "cloud.google.com/gke-nodepool",
    "eks.amazonaws.com/nodegroup",
    "kubernetes.azure.com/agentpool",
)
# Each is without effect where the other autoscaler runs.
_KEEPS_NODE = {
    "karpenter.sh/do-not-disrupt": "true",
    "cluster-autoscaler.kubernetes.io/safe-to-evict": "false",
}


def gke_mode(node: str) -> str:
    """Return the GKE mode by the name of a node; empty elsewhere."""
    return _MODES.get(node[:4], "")


def pool_of(labels: Mapping[str, str]) -> str:
    """Return the pool of a node, from which its autoscaler makes nodes that are alike; empty if none is known."""
    return next((labels[each] for each in _POOLS if each in labels), "")


def keeps_node(shape: Shape, *, is_autopilot: bool) -> Mapping[str, str]:
    """Return the annotations of a pod whose node must stay, in an Autopilot cluster or another one."""
    if is_autopilot or dict(shape.node_selector).get(_COMPUTE_CLASS) in _AUTOPILOT_CLASSES:
        return {}
    return _KEEPS_NODE
