"""etcd is lost and the bucket is there: `docs/how-to/disaster-recovery.md` on two clusters with one bucket."""

import json
import os
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest

from foresail.api.marks import RECORD_SIGNATURE
from testbed import Cluster, Options
from tests.cluster.buckets import ORIGIN_NAME, ORIGIN_NAMESPACE, annotations_in, copy_backup, move_bucket
from tests.cluster.pages import reading
from tests.cluster.tenants import Eventually, Tenant, arrive, condition, install, of_namespace, operator

pytestmark = pytest.mark.full

PAGE = "how-to/disaster-recovery.md"
SYNC_SECONDS = 180
TENANTS = ("shop", "forge", "legacy")
OTHERS = "legacy-old-0c1d2e3f-1111-4222-8333-444455556666"  # a UUID of version 4, as the existing controller has them


@pytest.fixture(scope="module")
def lost(tmp_path_factory: pytest.TempPathFactory, eventually: Eventually) -> Path:
    """Return a folder with the bucket and the exported key of a cluster that no longer exists."""
    folder = tmp_path_factory.mktemp("lost")
    options = Options(velero="velero", nodes=1)
    with Cluster.create(f"pytest-{os.getpid()}-lost", options, owned=True) as cluster:
        install(cluster)
        with reading(cluster, folder / "administrator") as administrator:
            administrator.follow(PAGE, "Before: keep the recovery key")
            administrator.type(f"cp recovery-key.yaml {folder}")
        with operator(cluster, folder / "operator.log"):
            for name in TENANTS:
                tenant = arrive(cluster, name, eventually)
                tenant.kubectl("create", "configmap", "owner", f"--from-literal=name={name}")
                tenant.back_up("daily")
                tenant.wait("nonadminbackup/daily", "--for=condition=Succeeded")
        shutil.copytree(cluster.site.bucket.parent.parent, folder / "s3")
    return folder


def forge(bucket: Path) -> None:
    """Let a hostile party and the existing controller have written to the bucket, too."""
    [shop] = bucket.glob("backups/shop-daily-*")
    [legacy] = bucket.glob("backups/legacy-daily-*")
    stolen = {**annotations_in(shop), ORIGIN_NAMESPACE: "forge", ORIGIN_NAME: "planted"}
    assert RECORD_SIGNATURE in stolen
    copy_backup(shop, "forge-planted-0c1d2e3f-1111-5222-8333-444455556666", stolen)
    copy_backup(legacy, OTHERS, {ORIGIN_NAMESPACE: "legacy", ORIGIN_NAME: "old"})


def test_a_rebuilt_cluster_gets_its_tenants_backups_back(
    lost: Path, own_velero_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = own_velero_cluster
    move_bucket(lost / "s3", cluster.site.folder / "s3")
    forge(cluster.site.bucket)
    install(cluster)
    with operator(cluster, tmp_path / "operator.log"), reading(cluster, tmp_path / "administrator") as administrator:
        tenants = {name: arrive(cluster, name, eventually) for name in TENANTS}
        eventually(lambda: len(of_namespace(cluster, "backups", "legacy")) == 2, SYNC_SECONDS)
        assert all(tenant.names("nonadminbackups") == [] for tenant in tenants.values())
        administrator.type(f"cp {lost}/recovery-key.yaml .")
        administrator.type("foresail recovery-key import -f recovery-key.yaml")
        listed = json.loads(administrator.type("foresail backup adopt -A -o json 2>/dev/null"))
        records = {(each["namespace"], each["name"]): each["record"] for each in listed}
        assert records == {
            ("shop", "daily"): "verified",
            ("forge", "daily"): "verified",
            ("forge", "planted"): "unverified",
            ("legacy", "daily"): "verified",
            ("legacy", "old"): "unverified",
        }
        tenants["shop"].kubectl("delete", "configmap", "settings")
        administrator.follow(PAGE, "Give the backups back")
        shop = tenants["shop"]
        assert shop.kubectl("get", "configmap", "owner", "--output=jsonpath={.data.name}") == "shop"
        assert shop.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
        assert tenants["forge"].names("nonadminbackups") == ["nonadminbackup.oadp.openshift.io/daily"]
        status = shop.status("nonadminbackup/daily")
        assert condition(status, "Adopted")[:2] == ("True", "BackupAdopted")
        assert status["phase"] == "Created"
        migrated(administrator.type, tenants["legacy"])
        shop.wants("daily", deleteBackup=True)
        shop.wait("nonadminbackup/daily", "--for=delete")
        assert not list(cluster.site.bucket.glob("backups/shop-daily-*"))


def migrated(type_in: Callable[[str], str], legacy: Tenant) -> None:
    """A backup of the existing controller is adopted by name, restored and deleted."""
    type_in("foresail backup adopt old -n legacy --wait --timeout 2m")
    legacy.restore("back", "old")
    legacy.wait("nonadminrestore/back", "--for=condition=Succeeded")
    assert legacy.kubectl("get", "configmap", "owner", "--output=jsonpath={.data.name}") == "legacy"
    legacy.wants("old", deleteBackup=True)
    legacy.wait("nonadminbackup/old", "--for=delete")


def test_the_tenant_cannot_claim_a_backup_with_a_label(own_velero_cluster: Cluster) -> None:
    """The key that ties a NonAdminBackup to an existing Velero Backup is the operator's alone."""
    mallory = Tenant(own_velero_cluster.user_kubeconfig("tenant-of-forge"), "forge")
    labels = {"openshift.io/oadp-nab-synced-from-nacuuid": OTHERS}
    body = {
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "NonAdminBackup",
        "metadata": {"name": "mine", "labels": labels},
        "spec": {"backupSpec": {}},
    }
    with pytest.raises(AssertionError, match="written by Foresail alone"):
        mallory.kubectl("create", "--filename=-", body=body)
