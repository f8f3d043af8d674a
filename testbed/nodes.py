"""Nodes without machines: KWOK plays their kubelets, and Karpenter makes them when pods need them."""

from typing import Any

from testbed.api import is_ok
from testbed.build import cached_folder, component_named, program
from testbed.components import Component
from testbed.kubectl import apply, kubectl, wait_for_kinds
from testbed.places import MANIFESTS
from testbed.ports import Port
from testbed.processes import Program
from testbed.site import Site

KWOK, KARPENTER = "kwok", "karpenter"
READY_SECONDS = "testbed.foresail.dev/ready-seconds"  # on a Node; manifests/stages.yaml reads it
RUN_SECONDS = "testbed.foresail.dev/run-seconds"  # on the Pod of a Job; manifests/stages.yaml reads it
END_SECONDS = "testbed.foresail.dev/end-seconds"  # the same


def kwok(site: Site) -> Program:
    """Return KWOK with our stages: a Job's pod runs for as long as its annotation says, and then succeeds."""
    return Program(
        KWOK,
        [
            str(program("kwok", "kwok")),
            f"--kubeconfig={site.admin_kubeconfig}",
            *_managed(site),
            "--node-lease-duration-seconds=40",
            f"--server-address=127.0.0.1:{site.port(Port.KWOK)}",
            f"--config={MANIFESTS / 'stages.yaml'}",
        ],
        {},
        lambda: is_ok(f"{site.url(Port.KWOK, 'http')}/healthz"),
    )


def _managed(site: Site) -> list[str]:
    """Return which nodes KWOK plays: all of them, or those that say so where a real one stands beside them."""
    if not site.options.node:
        return ["--manage-all-nodes=true"]
    return ["--manage-all-nodes=false", "--manage-nodes-with-annotation-selector=kwok.x-k8s.io/node=fake"]


def create_nodes(site: Site) -> None:
    """Create as many nodes as the cluster was asked for, and return when they are ready."""
    names = [f"node-{number}" for number in range(site.options.nodes)]
    metadata: dict[str, Any] = {"annotations": {"kwok.x-k8s.io/node": "fake"}}
    apply(site, [{"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, **metadata}} for name in names])
    kubectl(site, "wait", "--for=condition=Ready", "--timeout=60s", *(f"node/{name}" for name in names))


def prepare_karpenter(site: Site) -> None:
    """Create Karpenter's own kinds, from the module it was built from, and a pool for it to fill."""
    for file in sorted(cached_folder(_component(site)).glob("*.yaml")):
        kubectl(site, "apply", "--server-side", f"--filename={file}")
    wait_for_kinds(site)
    apply(site, [_node_class(), _node_pool(site.options.node_seconds)])


def karpenter(site: Site) -> Program:
    """Return Karpenter with its kwok provider."""
    return Program(
        KARPENTER,
        [str(program(_component(site).name, KARPENTER))],
        {
            "KUBECONFIG": str(site.admin_kubeconfig),
            "SYSTEM_NAMESPACE": "kube-system",
            "DISABLE_LEADER_ELECTION": "true",
            "METRICS_PORT": str(site.port(Port.KARPENTER_METRICS)),
            "HEALTH_PROBE_PORT": str(site.port(Port.KARPENTER_HEALTH)),
            "FEATURE_GATES": f"CapacityBuffer={str(site.options.capacity_buffers).lower()}",
        },
        lambda: is_ok(f"{site.url(Port.KARPENTER_HEALTH, 'http')}/readyz"),
    )


def _component(site: Site) -> Component:
    if site.options.karpenter is None:
        raise ValueError(f"{site} has no Karpenter")
    return component_named(site.options.karpenter)


def _node_class() -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.kwok.sh/v1alpha1",
        "kind": "KWOKNodeClass",
        "metadata": {"name": "testbed"},
    }


def _node_pool(ready_seconds: int) -> dict[str, Any]:
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": "testbed"},
        "spec": {
            "template": {
                # Karpenter hands annotations on to the node, where KWOK reads how long it takes to become ready.
                "metadata": {"annotations": {READY_SECONDS: str(ready_seconds)}},
                "spec": {
                    "nodeClassRef": {
                        "group": "karpenter.kwok.sh",
                        "kind": "KWOKNodeClass",
                        "name": "testbed",
                    },
                    "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
                    "expireAfter": "Never",
                },
            },
            "disruption": {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "30s"},
        },
    }
