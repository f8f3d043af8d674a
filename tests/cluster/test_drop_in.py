"""Manifests of the existing controller's kinds, in the form of its documentation, against the real API server.

Each is applied unchanged, is stored without losing a field, and does what it does there.
The fields are listed in `docs/contributing/drop-in.md`.
"""

import gzip
import json
import urllib.request
from collections.abc import Iterator
from typing import Any

import pytest
import yaml

from testbed import Cluster
from tests.cluster.tenants import VELERO, Eventually, condition, in_bucket, install, operator
from tests.cluster.test_tenant_locations import Owner, endpoint, grant, owner

NAMESPACE = "shop"
LOCATION = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackupStorageLocation
metadata:
  name: shop-location
  namespace: shop
spec:
  backupStorageLocationSpec:
    provider: aws
    accessMode: ReadWrite
    backupSyncPeriod: 2m0s
    validationFrequency: 1m0s
    default: false
    config:
      region: us-east-1
      s3ForcePathStyle: "true"
      s3Url: ENDPOINT
    credential:
      name: keys
      key: cloud
    objectStorage:
      bucket: bucket-of-shop
      prefix: velero
"""
APPROVAL = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackupStorageLocationRequest
metadata:
  name: NAME
  namespace: velero
spec:
  approvalDecision: approve
"""
BACKUP = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackup
metadata:
  name: shop-backup
  namespace: shop
  labels:
    team: shop
spec:
  backupSpec:
    includedNamespaces:
      - shop
    includedResources:
      - configmaps
    excludedResources:
      - events
    csiSnapshotTimeout: 10m0s
    itemOperationTimeout: 1h0m0s
    defaultVolumesToFsBackup: false
    snapshotMoveData: false
    snapshotVolumes: false
    hooks: {}
    metadata: {}
    labelSelector:
      matchLabels:
        app: web
    storageLocation: shop-location
    ttl: 72h0m0s
"""
WHOLE_BACKUP = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminBackup
metadata:
  name: whole
  namespace: shop
spec:
  backupSpec: {}
"""
RESTORE = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminRestore
metadata:
  name: shop-restore
  namespace: shop
spec:
  restoreSpec:
    backupName: shop-backup
    excludedResources:
      - nodes
      - events
    hooks: {}
    itemOperationTimeout: 1h0m0s
    restorePVs: false
    uploaderConfig: {}
"""
DOWNLOAD = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminDownloadRequest
metadata:
  name: shop-log
  namespace: shop
spec:
  target:
    kind: BackupLog
    name: shop-backup
"""
SCHEDULE = """
apiVersion: oadp.openshift.io/v1alpha1
kind: NonAdminSchedule
metadata:
  name: shop-schedule
  namespace: shop
spec:
  schedule: "* * * * *"
  paused: false
  skipImmediately: true
  template:
    backupSpec:
      includedResources:
        - configmaps
      snapshotVolumes: false
      ttl: 72h0m0s
"""
COLUMNS = {
    "nab": ["NAME", "REQUEST-PHASE", "VELERO-PHASE", "AGE"],
    "nar": ["NAME", "REQUEST-PHASE", "VELERO-PHASE", "AGE"],
    "nabsl": ["NAME", "REQUEST-APPROVED", "REQUEST-PHASE", "VELERO-PHASE", "AGE"],
    "nadr": ["NAME", "REQUEST-PHASE", "AGE"],
    "nas": ["NAME", "REQUEST-PHASE", "VELERO-PHASE", "NEXT-RUN", "PAUSED", "AGE"],
}


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Both charts with tenants' locations, a policy that allows what the existing controller does, and the operator."""
    cluster = own_velero_cluster
    install(cluster, locations=True)
    spec = {
        "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": NAMESPACE}},
        "locations": {"allowed": True, "restores": "Limited", "endpoints": [endpoint(cluster)]},
        "schedules": {"minimumInterval": "1m"},
    }
    meta = {"name": "drop-in"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})
    with operator(cluster, tmp_path_factory.mktemp("operator") / "log", 0, "--tenant-locations"):
        yield cluster


@pytest.fixture(scope="module")
def shop(served: Cluster) -> Owner:
    """A tenant who owns a bucket and has something to back up."""
    found = owner(served, NAMESPACE)
    grant(served, NAMESPACE)
    found.kubectl("create", "configmap", "web", "--from-literal=greeting=hello")
    found.kubectl("label", "configmap", "web", "app=web")
    return found


def apply(tenant: Owner, text: str) -> dict[str, Any]:
    """Apply a manifest, which the API server must know every field of, and return what it has stored."""
    manifest = yaml.safe_load(text)
    shown = tenant.kubectl("apply", "--validate=strict", "--output=json", "--filename=-", body=manifest)
    stored: dict[str, Any] = json.loads(shown)
    assert stored["spec"] == manifest["spec"], "every field is stored as it was written"
    return stored


def test_a_location_is_approved_with_the_manifests_of_tenant_and_administrator(served: Cluster, shop: Owner) -> None:
    apply(shop, LOCATION.replace("ENDPOINT", endpoint(served)))
    pending = "--for=jsonpath={.status.conditions[?(@.type=='ClusterAdminApproved')].reason}=BslSpecApprovalPending"
    shop.wait("nabsl/shop-location", pending)
    name = shop.status("nabsl/shop-location")["veleroBackupStorageLocation"]["nacuuid"]
    asked = served.get("nabslrequest", name, f"--namespace={VELERO}")
    assert (asked["spec"], asked["status"]["phase"]) == ({"approvalDecision": "pending"}, "Pending")
    assert asked["status"]["nonAdminBackupStorageLocation"]["name"] == "shop-location"
    assert asked["status"]["nonAdminBackupStorageLocation"]["namespace"] == NAMESPACE
    served.apply(yaml.safe_load(APPROVAL.replace("NAME", name)))
    shop.wait("nabsl/shop-location", "--for=jsonpath={.status.veleroBackupStorageLocation.status.phase}=Available")
    status = shop.status("nabsl/shop-location")
    assert status["phase"] == "Created"
    assert condition(status, "ClusterAdminApproved")[:2] == ("True", "BslSpecApproved")
    asked = served.get("nabslrequest", name, f"--namespace={VELERO}")
    assert asked["status"]["phase"] == "Approved"


def test_a_backup_goes_to_the_named_location_with_what_the_manifest_selects(served: Cluster, shop: Owner) -> None:
    apply(shop, BACKUP)
    shop.wait("nab/shop-backup", "--for=jsonpath={.status.veleroBackup.status.phase}=Completed")
    status = shop.status("nab/shop-backup")
    assert status["phase"] == "Created"
    assert condition(status, "Accepted") == ("True", "BackupAccepted", "backup accepted")
    assert condition(status, "Queued")[:2] == ("True", "BackupScheduled")
    name = status["veleroBackup"]["nacuuid"]
    made = served.get("backups.velero.io", name, f"--namespace={VELERO}")
    assert made["spec"]["includedNamespaces"] == [NAMESPACE]
    assert made["spec"]["labelSelector"] == {"matchLabels": {"app": "web"}}
    assert made["metadata"]["labels"]["openshift.io/oadp-nab-origin-nacuuid"] == name
    assert any(path.startswith(f"{NAMESPACE}/velero/backups/{name}/") for path in shop.objects())


def test_a_restore_brings_back_what_was_deleted_and_nothing_else(shop: Owner) -> None:
    shop.kubectl("delete", "configmap", "web", "settings")
    apply(shop, RESTORE)
    shop.wait("nar/shop-restore", "--for=jsonpath={.status.veleroRestore.status.phase}=Completed")
    status = shop.status("nar/shop-restore")
    assert status["phase"] == "Created"
    assert condition(status, "Accepted") == ("True", "RestoreAccepted", "restore accepted")
    assert shop.kubectl("get", "configmap", "web", "--output=jsonpath={.data.greeting}") == "hello"
    assert "configmap/settings" not in shop.names("configmaps")


def test_a_download_request_gets_the_log_of_the_backup(shop: Owner) -> None:
    apply(shop, DOWNLOAD)
    shop.wait("nadr/shop-log", "--for=condition=Processed")
    status = shop.status("nadr/shop-log")
    assert status["phase"] == "Created"
    assert condition(status, "Processed")[:2] == ("True", "Success")
    with urllib.request.urlopen(status["velero"]["status"]["downloadURL"], timeout=30) as reply:  # noqa: S310 - signed
        assert "shop-backup" in gzip.decompress(reply.read()).decode()


def test_a_schedule_creates_backups_and_shows_them(shop: Owner, eventually: Eventually) -> None:
    apply(shop, SCHEDULE)

    def completed() -> bool:
        runs = shop.status("nas/shop-schedule").get("recentBackups", [])
        return any(each["phase"] == "Completed" for each in runs)

    eventually(completed, 180)
    status = shop.status("nas/shop-schedule")
    assert status["phase"] == "Created"
    assert condition(status, "Accepted")[:2] == ("True", "ScheduleAccepted")
    assert {"name", "veleroBackupName", "phase", "startTimestamp"} <= status["recentBackups"][0].keys()
    assert status["nextRun"]
    assert status["lastBackup"]


@pytest.mark.parametrize("kind", COLUMNS)
def test_kubectl_shows_the_columns_of_the_existing_controller(shop: Owner, kind: str) -> None:
    shown = shop.kubectl("get", kind).splitlines()[0].split()
    assert [each for each in shown if each in COLUMNS[kind]] == COLUMNS[kind], "others may stand between them"


def test_the_request_for_approval_is_shown_with_its_columns(served: Cluster) -> None:
    shown = served.kubectl("get", "nabslrequest", f"--namespace={VELERO}").splitlines()
    assert shown[0].split() == ["NAME", "REQUEST-PHASE", "REQUEST-NAMESPACE", "REQUEST-NAME", "AGE"]
    assert shown[1].split()[1:4] == ["Approved", NAMESPACE, "shop-location"]


def test_a_backup_without_a_location_is_deleted_with_its_data_when_the_manifest_says_so(
    served: Cluster, shop: Owner
) -> None:
    apply(shop, WHOLE_BACKUP)
    shop.wait("nab/whole", "--for=jsonpath={.status.veleroBackup.status.phase}=Completed")
    name = shop.status("nab/whole")["veleroBackup"]["nacuuid"]
    assert in_bucket(served, name)
    deleted = WHOLE_BACKUP + "  deleteBackup: true\n"
    shop.kubectl("apply", "--validate=strict", "--filename=-", body=yaml.safe_load(deleted))
    shop.wait("nab/whole", "--for=delete")
    assert not in_bucket(served, name)
