"""A volume's data, moved from a snapshot or copied from its files by the node agent, comes back byte for byte."""

import time
from collections.abc import Iterator
from dataclasses import dataclass

import pytest

from testbed import Cluster
from testbed.node.csi import WAITING_CLASS
from tests.node.data_paths import SNAPSHOTS, DataPath, on_both_paths
from tests.node.nodes import claim, is_identical, namespace, pod, wait_ready

WRITES = (
    "test -e /data/done || { mkdir -p /data/deep/er; dd if=/dev/urandom of=/data/random bs=1024 count=20480;"
    " for i in $(seq 200); do echo $i > /data/deep/er/$i; done; ln -s random /data/link; chmod 600 /data/deep/er/7;"
    " touch /data/done; }; sleep 3600"
)
# Velero leaves a folder of its own in a restored volume.
FOUND = "find . -name .velero -prune -o"
SUMS = (
    f"cd /data && {FOUND} -type f -print | sort | xargs sha256sum;"
    f" {FOUND} ! -type d -print | sort | xargs stat -c '%N %a %u %g %s'"
)


@dataclass(frozen=True)
class Shop:
    """A namespace with a volume, made when its pod needs it, and a pod that wrote to it."""

    cluster: Cluster
    path: DataPath

    def contents(self) -> str:
        """Return the checksum, mode, owner and size of every file and link in the volume."""
        return self.cluster.kubectl("exec", "store", "--namespace=shop", "--", "sh", "-c", SUMS)


@pytest.fixture
def shop(node_cluster: Cluster, request: pytest.FixtureRequest) -> Iterator[Shop]:
    """A namespace whose volume is backed up on one path."""
    path: DataPath = request.param
    mount = {
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/data/done"]}, "periodSeconds": 1},
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    node_cluster.apply(
        namespace("shop"),
        claim("data", "shop", WAITING_CLASS if path is SNAPSHOTS else None),
        pod("store", "shop", WRITES, container=mount, volumes=[volume]),
    )
    wait_ready(node_cluster, "pod/store", "shop")
    yield Shop(node_cluster, path)
    node_cluster.kubectl("delete", "namespace", "shop", "--ignore-not-found", "--timeout=120s")


@on_both_paths("shop")
def test_a_backup_of_a_volume_is_restored_byte_for_byte(shop: Shop) -> None:
    before, cluster = shop.contents(), shop.cluster
    assert len(before.splitlines()) > 400
    name = f"shop-{int(time.monotonic())}"
    cluster.velero("backup", "create", name, "--include-namespaces=shop", shop.path.option, "--wait")
    assert cluster.get("backups.velero.io", name, "--namespace=velero")["status"]["phase"] == "Completed"
    cluster.kubectl("delete", "namespace", "shop", "--timeout=120s")
    cluster.velero("restore", "create", name, f"--from-backup={name}", "--wait")
    assert cluster.get("restores.velero.io", name, "--namespace=velero")["status"]["phase"] == "Completed"
    wait_ready(cluster, "pod/store", "shop")
    after = shop.contents()
    assert is_identical(before, after), set(before.splitlines()) ^ set(after.splitlines())
