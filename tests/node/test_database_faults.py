"""A database is backed up while a part fails: the backup is good, or its failure is explained and a retry works."""

import time
from collections.abc import Callable

import pytest

from testbed import Cluster
from tests.node.data_paths import FILES, PATHS
from tests.node.nodes import eventually, is_identical
from tests.node.tenant_database import Database, finish

OUTAGE_SECONDS = 60


def delete_leader(cluster: Cluster) -> None:
    """Delete the operator's pod that holds the Lease, without a grace period."""
    lease = cluster.get("lease", "foresail-self-service", "--namespace=velero")
    cluster.kubectl("delete", "pod", lease["spec"]["holderIdentity"].split("_")[0], *_AT_ONCE)


def kill_node_agent(cluster: Cluster) -> None:
    """Delete the pod of Velero's node agent, without a grace period."""
    cluster.kubectl("delete", "pod", "--selector=name=node-agent", *_AT_ONCE)
    cluster.kubectl("rollout", "status", "daemonset/node-agent", "--namespace=velero", "--timeout=120s")


def restart_velero(cluster: Cluster) -> None:
    """Delete Velero's pod, without a grace period."""
    cluster.kubectl("delete", "pod", "--selector=deploy=velero", *_AT_ONCE)
    cluster.kubectl("rollout", "status", "deployment/velero", "--namespace=velero", "--timeout=120s")


def stop_bucket(cluster: Cluster) -> None:
    """Take the S3 server away for a minute."""
    cluster.fault.kill("s3")
    time.sleep(OUTAGE_SECONDS)
    cluster.fault.start("s3")


_AT_ONCE = ("--namespace=velero", "--grace-period=0", "--force", "--wait=true")


FAULTS = {"leader": delete_leader, "node-agent": kill_node_agent, "velero": restart_velero, "bucket": stop_bucket}
SAMPLED = (FILES, kill_node_agent)


@pytest.mark.parametrize(
    ("database", "fault"),
    [
        pytest.param(
            path, fault, id=f"{path.name}-{name}", marks=[pytest.mark.sample] if (path, fault) == SAMPLED else []
        )
        for path in PATHS
        for name, fault in FAULTS.items()
    ],
    indirect=["database"],
)
def test_a_backup_during_a_fault_is_good_or_explained_and_then_repeated(
    database: Database, fault: Callable[[Cluster], None]
) -> None:
    before, name = database.checksum(), fault.__name__.replace("_", "-")
    waiting = database.begin_backup(name)
    eventually(lambda: database.path.is_moving(database.cluster), 120, "the data of the volume is on its way")
    fault(database.cluster)
    backup = finish(waiting)
    print(f"{name}: code {backup.code}: {backup.reported.strip().splitlines()[-1]}")
    if backup.code != 0:
        assert_explained(database, name)
        name = f"{name}-again"
        backup = database.back_up(name)
        assert backup.code == 0, backup.reported
    database.destroy_contents()
    restore = database.restore(name)
    assert restore.code == 0, restore.reported
    database.wait_ready()
    assert is_identical(before, database.checksum())


def assert_explained(database: Database, name: str) -> None:
    """See that the command line names the step that failed and what to do."""
    explained = database.foresail("backup", "explain", name)
    print(explained.reported)
    assert explained.code == 0, explained.reported
    assert "→" in explained.reported
    assert "Next: " in explained.reported
    assert "ailed" in explained.reported
    if "PartiallyFailed" in explained.reported:
        results = database.foresail("backup", "logs", name, "--results")
        print(results.reported)
        assert results.code == 0, results.reported
        assert "error" in results.reported
