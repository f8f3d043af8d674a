"""A volume's data, backed up from its files by the node agent, comes back byte for byte."""

import time
from collections.abc import Iterator

import pytest

from testbed import Cluster
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


@pytest.fixture
def shop(node_cluster: Cluster) -> Iterator[Cluster]:
    """A namespace with a volume, made on demand, and a pod that wrote to it."""
    mount = {
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
        "readinessProbe": {"exec": {"command": ["test", "-e", "/data/done"]}, "periodSeconds": 1},
    }
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
    node_cluster.apply(
        namespace("shop"), claim("data", "shop"), pod("store", "shop", WRITES, container=mount, volumes=[volume])
    )
    wait_ready(node_cluster, "pod/store", "shop")
    yield node_cluster
    node_cluster.kubectl("delete", "namespace", "shop", "--ignore-not-found", "--timeout=120s")


def contents(cluster: Cluster) -> str:
    """Return the checksum, mode, owner and size of every file and link in the volume."""
    return cluster.kubectl("exec", "store", "--namespace=shop", "--", "sh", "-c", SUMS)


def test_a_file_system_backup_of_a_volume_is_restored_byte_for_byte(shop: Cluster) -> None:
    before = contents(shop)
    assert len(before.splitlines()) > 400
    name = f"shop-{int(time.monotonic())}"
    shop.velero("backup", "create", name, "--include-namespaces=shop", "--default-volumes-to-fs-backup", "--wait")
    assert shop.get("backups.velero.io", name, "--namespace=velero")["status"]["phase"] == "Completed"
    shop.kubectl("delete", "namespace", "shop", "--timeout=120s")
    shop.velero("restore", "create", name, f"--from-backup={name}", "--wait")
    assert shop.get("restores.velero.io", name, "--namespace=velero")["status"]["phase"] == "Completed"
    wait_ready(shop, "pod/store", "shop")
    after = contents(shop)
    assert is_identical(before, after), set(before.splitlines()) ^ set(after.splitlines())
