"""Parents and their children, the example controller's world, for the tests that run it as a process of its own."""

from typing import Any

from foresail.kube.client import address
from foresail.plan import Kind
from testbed import Cluster
from tests.cluster.kinds import rule, schemaless, service_account

PARENT = Kind("examples.foresail.dev", "v1", "parents", "Parent")
CHILD = Kind("", "v1", "configmaps", "ConfigMap")
OWNER = f"{PARENT.group}/parent-uid"


def install(cluster: Cluster, account: str, *rules: dict[str, list[str]]) -> None:
    """Create the kind, and a ServiceAccount that may do what the example needs, the further rules, and nothing else."""
    permitted = service_account(
        account,
        rule(PARENT.group, ["parents"], "list", "watch"),
        rule(PARENT.group, ["parents/status"], "patch"),
        rule("", ["configmaps"], "list", "watch", "get", "create"),
        *rules,
    )
    cluster.apply(schemaless(PARENT), *permitted)
    cluster.wait_for_kinds()


def parents(namespace: str, names: list[str]) -> list[dict[str, Any]]:
    metadata = [{"name": name, "namespace": namespace} for name in names]
    return [{"apiVersion": PARENT.api_version, "kind": PARENT.name, "metadata": each} for each in metadata]


def finished(cluster: Cluster, namespace: str) -> set[str]:
    statuses = {item["metadata"]["name"]: item.get("status") for item in cluster.listed(address(PARENT, namespace))}
    return {name for name, status in statuses.items() if isinstance(status, dict) and status.get("child")}


def owners(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return which parent each child says that it belongs to."""
    found = {item["metadata"]["name"]: item["metadata"] for item in cluster.listed(address(CHILD, namespace))}
    return {name: meta["annotations"][OWNER] for name, meta in found.items() if OWNER in meta.get("labels", {})}


def uids(cluster: Cluster, namespace: str) -> dict[str, str]:
    return {item["metadata"]["name"]: item["metadata"]["uid"] for item in cluster.listed(address(PARENT, namespace))}
