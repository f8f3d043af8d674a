"""Makes random worlds in a cluster, lets them change, and deletes them."""

import json
import time
from collections.abc import Callable
from typing import Any

from bench.plan_objects import RESOURCES
from bench.plan_worlds import RandomWorld
from testbed import Cluster

_SCALER_SYNC = 15.0  # seconds between two looks of Kubernetes at a HorizontalPodAutoscaler, the first one included


def wait(holds: Callable[[], Any], seconds: float = 60) -> None:
    """Wait until it holds."""
    until = time.monotonic() + seconds
    while not holds():
        if time.monotonic() > until:
            raise TimeoutError("the cluster does not settle")
        time.sleep(0.2)


def make(cluster: Cluster, world: RandomWorld) -> str:
    """Make a world, back it up, let its changes happen, and return the backup."""
    cluster.apply(namespace_object(world.namespace, world.labels))
    if "pod-security.kubernetes.io/enforce" in world.labels:  # what is there already stays
        cluster.kubectl("label", "namespace", world.namespace, "pod-security.kubernetes.io/enforce-")
    wait(lambda: _has_account(cluster, world.namespace))
    if world.priority_class:
        cluster.apply(world.priority_class)
    if world.objects:
        cluster.apply(*world.objects)
    if world.labels:
        cluster.apply(namespace_object(world.namespace, world.labels))
    time.sleep(1.5)  # controllers finish what they make of it
    if world.is_settled_before:
        _wait_for_scalers(cluster, world)
    backup = f"backup-{world.namespace}"
    cluster.velero(
        "backup", "create", backup, f"--include-namespaces={world.namespace}", "--snapshot-volumes=false", "--wait"
    )
    _change(cluster, world)
    if world.modifiers:
        rules = json.dumps({"version": "v1", "resourceModifierRules": world.modifiers})
        about = {"name": world.modifier_name, "namespace": "velero"}
        cluster.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": about, "data": {"rules": rules}})
    time.sleep(1.0)
    if not world.is_namespace_deleted:
        _wait_for_scalers(cluster, world)
    return backup


def _change(cluster: Cluster, world: RandomWorld) -> None:
    """Let everything happen that happens between the backup and its restore."""
    if world.is_namespace_deleted:
        cluster.kubectl("delete", "namespace", world.namespace)
    else:
        for each in world.removed:
            name = f"{RESOURCES[each['kind']]}/{each['metadata']['name']}"
            cluster.kubectl("delete", name, f"--namespace={world.namespace}", "--grace-period=0", "--force")
        kept = [each for each in world.changed if each["metadata"]["name"] not in _names(world.removed)]
        if kept:
            cluster.apply(*kept)
    if world.target_exists:
        cluster.apply(namespace_object(world.target, world.target_labels))
        wait(lambda: _has_account(cluster, world.target))
    if world.target_objects:
        cluster.apply(*world.target_objects)
    _delete_priority_class(cluster, world)
    if world.quota:
        _limit(cluster, world.target or world.namespace, world.quota)


def _delete_priority_class(cluster: Cluster, world: RandomWorld) -> None:
    if world.priority_class:
        cluster.kubectl("delete", "priorityclass", world.priority_class["metadata"]["name"], "--ignore-not-found")


def _wait_for_scalers(cluster: Cluster, world: RandomWorld) -> None:
    """Wait until the status of each HorizontalPodAutoscaler is written.

    Velero takes an object for different once a controller has written its status. A write between the plan and the
    restore would make the plan wrong for a reason that is none of its own.
    """

    def scalers() -> list[dict[str, Any]]:
        items: list[dict[str, Any]] = cluster.get("horizontalpodautoscalers", f"--namespace={world.namespace}")["items"]
        return items

    if not world.target and scalers():
        wait(lambda: all(each.get("status", {}).get("conditions") for each in scalers()))
        time.sleep(_SCALER_SYNC + 1)  # a Deployment that is deleted since shows in the status of the next look


def _names(objects: list[dict[str, Any]]) -> set[str]:
    return {each["metadata"]["name"] for each in objects}


def namespace_object(name: str, labels: dict[str, str]) -> dict[str, Any]:
    """Return a Namespace."""
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _has_account(cluster: Cluster, namespace: str) -> bool:
    accounts = cluster.get("serviceaccounts,configmaps", f"--namespace={namespace}")["items"]
    return {"default", "kube-root-ca.crt"} <= _names(accounts)


def _limit(cluster: Cluster, namespace: str, hard: dict[str, str]) -> None:
    about = {"name": "few", "namespace": namespace}
    cluster.apply({"apiVersion": "v1", "kind": "ResourceQuota", "metadata": about, "spec": {"hard": hard}})
    wait(lambda: cluster.get("resourcequota", "few", f"--namespace={namespace}").get("status", {}).get("used"))


def delete(cluster: Cluster, world: RandomWorld) -> None:
    """Delete a world, and do not wait for its namespaces."""
    _delete_priority_class(cluster, world)
    cluster.kubectl("delete", "configmap", world.modifier_name, "--namespace=velero", "--ignore-not-found")
    for name in filter(None, (world.namespace, world.target)):
        cluster.kubectl("delete", "namespace", name, "--ignore-not-found", "--wait=false")
