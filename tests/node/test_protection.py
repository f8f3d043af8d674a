"""A team gets its PostgreSQL back from the backup of its class, row by row, and nobody else's namespace is touched."""

import json
import os
import subprocess
import sys
from typing import Any

import pytest

from testbed import Cluster
from tests.node.data_paths import SNAPSHOTS
from tests.node.nodes import eventually, is_identical
from tests.node.tenant_database import Database, create_database

GROUP = ("books", "shop", "plain")
LABEL = "foresail.dev/protection=gold"
_NEVER, _NOW = "0 0 29 2 *", "* * * * *"
_KINDS = "configmaps,secrets,deployments,persistentvolumeclaims,pods,rolebindings,serviceaccounts"


@pytest.fixture(scope="module")
def group(served: Cluster) -> dict[str, Database]:
    """Two teams with a database each, and a namespace without volumes, in one group of a class."""
    switches = ("--protection", "--self-service-from-protection", "--timeout=5m")
    subprocess.run(
        [sys.executable, "-m", "foresail", "install", *switches],
        env={**os.environ, "KUBECONFIG": str(served.kubeconfig)},
        check=True,
    )
    served.kubectl("rollout", "status", "deployment/foresail-protection", "--namespace=velero", "--timeout=180s")
    found = {name: create_database(served, name, SNAPSHOTS) for name in GROUP[:2]}
    served.kubectl("create", "namespace", GROUP[2])
    served.kubectl("create", "configmap", "own", "--from-literal=of=plain", f"--namespace={GROUP[2]}")
    classify(served, _NEVER)
    for name in GROUP:
        served.kubectl("label", "namespace", name, LABEL)
    eventually(lambda: members(served) == sorted(GROUP), 60, "the three are in one group")
    classify(served, _NOW)
    eventually(lambda: bool(backups(served)), 120, "the class runs")
    classify(served, _NEVER)
    eventually(lambda: "Completed" in backups(served).values(), 600, "the backup of the class completes")
    return found


def classify(cluster: Cluster, text: str) -> None:
    """Write the class of last night's backups."""
    template = {"ttl": "720h", **SNAPSHOTS.template}
    spec = {"schedule": text, "template": template, "restore": {"byTenants": True}}
    cluster.apply(
        {"apiVersion": "foresail.dev/v1alpha1", "kind": "ProtectionClass", "metadata": {"name": "gold"}, "spec": spec}
    )


def members(cluster: Cluster) -> list[str]:
    """Return who is in the group."""
    found = cluster.get("schedules.velero.io", "--namespace=velero")["items"]
    named = [each["spec"]["template"]["includedNamespaces"] for each in found if each["metadata"]["name"] == "gold-1"]
    return sorted(named[0]) if named else []


def backups(cluster: Cluster) -> dict[str, str]:
    """Return the Backups of the group with their phases."""
    selector = "--selector=velero.io/schedule-name=gold-1"
    found = cluster.get("backups.velero.io", "--namespace=velero", selector)["items"]
    return {each["metadata"]["name"]: each.get("status", {}).get("phase", "") for each in found}


def protection(database: Database) -> Any:  # noqa: ANN401 - JSON
    """Return the status of a team's Protection, as the team reads it."""
    found = json.loads(database.tenant.kubectl("get", "protection", "protection", "--output=json"))
    return found["status"]


def contents(cluster: Cluster, namespace: str) -> dict[str, str]:
    """Return all objects of a namespace as their owners wrote them: a kubelet writes the status of pods at will."""
    found = cluster.get(_KINDS, f"--namespace={namespace}")["items"]
    return {f"{each['kind']}/{each['metadata']['name']}": json.dumps(_written(each), sort_keys=True) for each in found}


def _written(found: dict[str, Any]) -> dict[str, Any]:
    kept = {key: each for key, each in found.items() if key not in ("metadata", "status")}
    counted = ("resourceVersion", "managedFields")
    return {**kept, "metadata": {key: each for key, each in found["metadata"].items() if key not in counted}}


@pytest.mark.sample
def test_a_team_gets_its_database_back_from_the_backup_of_its_class(group: dict[str, Database]) -> None:
    own, neighbour = group["books"], group["shop"]
    cluster = own.cluster
    eventually(lambda: "newestGood" in protection(own), 60, "the Protection names a point")
    status = protection(own)
    assert status["conditions"][0]["status"] == "True", status
    before, theirs = own.checksum(), neighbour.checksum()
    untouched = {name: contents(cluster, name) for name in GROUP[1:]}
    own.destroy_contents()
    point = status["points"][0]["backup"]
    restore = own.foresail("restore", "create", "back", f"--from-protection={point}", "--wait", "--timeout=10m")
    assert restore.code == 0, restore.reported
    own.wait_ready()
    assert is_identical(before, own.checksum())
    assert is_identical(theirs, neighbour.checksum())
    assert {name: contents(cluster, name) for name in GROUP[1:]} == untouched
    restored = cluster.get("restores.velero.io", "--namespace=velero")["items"]
    assert [each["spec"]["includedNamespaces"] for each in restored if each["spec"]["backupName"] == point] == [
        ["books"]
    ]
