"""Nothing here is faked: Velero backs up to a real S3 server, and everything comes back from there."""

import time
from collections.abc import Callable
from typing import Any

from testbed import Cluster

NAMESPACE = "shop"
OBJECTS: list[dict[str, Any]] = [
    {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {"name": "settings", "namespace": NAMESPACE, "labels": {"app": "shop"}},
        "data": {"currency": "EUR", "limits": "orders: 100\nitems: 7\n"},
        "binaryData": {"logo": "AAECAwT/"},
    },
    {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "password", "namespace": NAMESPACE, "annotations": {"owner": "team-shop"}},
        "type": "Opaque",
        "stringData": {"password": "correct horse"},
    },
    {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": NAMESPACE},
        "spec": {
            "replicas": 2,
            "selector": {"matchLabels": {"app": "web"}},
            "template": {
                "metadata": {"labels": {"app": "web"}},
                "spec": {
                    "containers": [{"name": "web", "image": "shop/web:1", "resources": {"requests": {"cpu": "1"}}}]
                },
            },
        },
    },
]


def what_a_user_wrote(cluster: Cluster, kind: str, name: str) -> dict[str, Any]:
    """Return an object without what the API server, its controllers and Velero's restore write into it."""
    found: dict[str, Any] = cluster.get(kind, name, "--namespace", NAMESPACE)
    found.pop("status", None)
    metadata = found["metadata"]
    for key in ("uid", "resourceVersion", "creationTimestamp", "managedFields", "generation"):
        metadata.pop(key, None)
    labels = metadata.get("labels", {})
    for key in ("velero.io/backup-name", "velero.io/restore-name"):
        labels.pop(key, None)
    if not labels:
        metadata.pop("labels", None)
    return found


def test_a_deleted_namespace_comes_back_as_it_was_and_a_deleted_backup_leaves_nothing_in_the_bucket(
    velero_cluster: Cluster, eventually: Callable[[Callable[[], object], float], None], figure: Callable[[str], None]
) -> None:
    cluster = velero_cluster
    began = time.monotonic()
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}})
    cluster.apply(*OBJECTS)
    available = ("wait", "--for=condition=Available", "--timeout=240s", "deployment/web", "--namespace", NAMESPACE)
    cluster.kubectl(*available)
    names = [(item["kind"], item["metadata"]["name"]) for item in OBJECTS]
    before = {name: what_a_user_wrote(cluster, *name) for name in names}

    cluster.velero("backup", "create", "shop-1", "--include-namespaces", NAMESPACE, "--wait")
    assert cluster.get("backup.velero.io", "shop-1", "--namespace=velero")["status"]["phase"] == "Completed"
    assert "backups/shop-1/shop-1.tar.gz" in cluster.bucket_objects()

    cluster.kubectl("delete", "namespace", NAMESPACE)
    cluster.velero("restore", "create", "shop-back", "--from-backup", "shop-1", "--wait")
    assert cluster.get("restore.velero.io", "shop-back", "--namespace=velero")["status"]["phase"] == "Completed"
    assert before == {name: what_a_user_wrote(cluster, *name) for name in names}
    cluster.kubectl(*available)

    cluster.fault.restart("velero")  # now and then it takes an ended backup for one that runs until then
    cluster.apply(
        {
            "apiVersion": "velero.io/v1",
            "kind": "DeleteBackupRequest",
            "metadata": {"name": "shop-1-goes", "namespace": "velero"},
            "spec": {"backupName": "shop-1"},
        }
    )
    eventually(lambda: not [path for path in cluster.bucket_objects() if "shop-" in path], 120)
    cluster.kubectl("wait", "--for=delete", "backup.velero.io/shop-1", "--namespace=velero", "--timeout=120s")
    figure(f"backup, delete, restore, compare, delete the backup: {time.monotonic() - began:.1f} s")
