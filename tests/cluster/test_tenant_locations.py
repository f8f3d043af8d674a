"""Tenants with buckets of their own on the real S3 server: approval, isolation, planted backups, revocation, deletion.

Each tenant owns a bucket and may write anything into it. What reaches Velero's namespace, and what Velero writes, is
compared with the objects in the buckets.
"""

import json
import os
import shutil
import time
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.api.core import SECRET
from foresail.api.instants import instant
from foresail.api.velero import LOCATION
from foresail.kube.clock import now
from foresail.kube.failures import Cause
from foresail.plan import Key
from testbed import Cluster
from tests.cluster.tenants import (
    VELERO,
    Eventually,
    Tenant,
    arrive,
    condition,
    install,
    of_namespace,
    operator,
    written_by_operator,
)
from tests.cluster.test_tenant_cli import Foresail

PLANTED = 10_000 if os.environ.get("FORESAIL_FULL") else 300
FORGED = {
    "velero.io/schedule-name": "nightly",
    "openshift.io/oadp": "True",
    "app.kubernetes.io/managed-by": "oadp-nac-controller",
}
_TRIED = {"provider": "aws", "objectStorage": {"bucket": "tried"}}


class Owner(Tenant):
    """A tenant who owns a bucket: a folder of the S3 server."""

    bucket: Path

    def objects(self) -> set[str]:
        return {str(file.relative_to(self.bucket)) for file in self.bucket.rglob("*") if file.is_file()}

    def ask(self, name: str, s3: str, **changes: Any) -> None:  # noqa: ANN401 - JSON
        spec = {
            "provider": "aws",
            "objectStorage": {"bucket": self.bucket.name, "prefix": "velero"},
            "credential": {"name": "keys", "key": "cloud"},
            "config": {"region": "us-east-1", "s3ForcePathStyle": "true", "s3Url": s3},
            **changes,
        }
        self._create("NonAdminBackupStorageLocation", name, {"backupStorageLocationSpec": spec})


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, a policy that allows locations, and the operator at work."""
    cluster = own_velero_cluster
    install(cluster, locations=True)
    rules = {
        "allowed": True,
        "restores": "Limited",
        "endpoints": [endpoint(cluster)],
        "buckets": ["bucket-of-*"],
    }
    spec = {"namespaceSelector": {"matchLabels": {"foresail.dev/self-service": "enabled"}}, "locations": rules}
    meta = {"name": "own-buckets"}
    cluster.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})
    every = '--patch={"spec":{"backupSyncPeriod":"3s","validationFrequency":"5s"}}'
    cluster.kubectl("patch", "backupstoragelocation", "default", f"--namespace={VELERO}", "--type=merge", every)
    with operator(cluster, tmp_path_factory.mktemp("operator") / "log", 0, "--tenant-locations"):
        yield cluster


@pytest.fixture(scope="module")
def owners(served: Cluster) -> tuple[Owner, Owner]:
    return owner(served, "red"), owner(served, "blue")


def endpoint(cluster: Cluster) -> str:
    """Return the S3 server by a name, for an address is refused."""
    spec = cluster.get("backupstoragelocation", "default", f"--namespace={VELERO}")["spec"]
    url: str = spec["config"]["s3Url"]
    return url.replace("127.0.0.1", "localhost")


def owner(cluster: Cluster, namespace: str) -> Owner:
    """Return a tenant with a bucket and its keys, once the tenant may ask for a location."""

    def eventually(done: Callable[[], object], seconds: float) -> None:
        until = time.monotonic() + seconds
        while not done():
            assert time.monotonic() < until
            time.sleep(0.2)

    tenant = arrive(cluster, namespace, eventually)
    found = Owner(tenant.kubeconfig, namespace)
    object.__setattr__(found, "bucket", cluster.site.bucket.parent / f"bucket-of-{namespace}")
    found.bucket.mkdir()
    keys = cluster.site.folder / "s3" / "credentials"
    found.kubectl("create", "secret", "generic", "keys", f"--from-file=cloud={keys}")
    may = ("auth", "can-i", "create", "nonadminbackupstoragelocations.oadp.openshift.io")

    def allowed() -> bool:
        try:
            return found.kubectl(*may).strip() == "yes"
        except AssertionError:
            return False

    eventually(allowed, 60)
    return found


def grant(cluster: Cluster, namespace: str) -> None:
    """Let the operator read the one Secret, as an administrator of the namespace would."""
    where = f"--namespace={namespace}"
    cluster.kubectl(
        "create", "role", "location-mine", "--verb=get", "--resource=secrets", "--resource-name=keys", where
    )
    to = f"--serviceaccount={VELERO}:foresail-self-service"
    cluster.kubectl("create", "rolebinding", "location-mine", "--role=location-mine", to, where)


def decide(cluster: Cluster, owner: Owner, decision: str) -> None:
    name = owner.status("nabsl/mine")["veleroBackupStorageLocation"]["name"]
    patch = json.dumps({"spec": {"approvalDecision": decision}})
    cluster.kubectl("patch", "nabslrequest", name, f"--namespace={VELERO}", "--type=merge", f"--patch={patch}")


def backups(cluster: Cluster) -> set[str]:
    items = cluster.get("backups.velero.io", f"--namespace={VELERO}")["items"]
    return {each["metadata"]["name"] for each in items}


def test_two_tenants_get_locations_that_an_administrator_approves(
    served: Cluster, owners: tuple[Owner, Owner], figure: Callable[[str], None]
) -> None:
    began = time.monotonic()
    for each in owners:
        each.ask("mine", endpoint(served))
    red, blue = owners
    red.wait("nabsl/mine", "--for=condition=SecretSynced=false")
    assert "operator may not read Secret keys" in condition(red.status("nabsl/mine"), "SecretSynced")[2]
    for each in owners:
        grant(served, each.namespace)
        each.wait("nabsl/mine", "--for=jsonpath={.status.conditions[?(@.type=='ClusterAdminApproved')].status}=False")
        decide(served, each, "approve")
    for each in owners:
        each.wait("nabsl/mine", "--for=jsonpath={.status.veleroBackupStorageLocation.status.phase}=Available")
        assert each.status("nabsl/mine")["phase"] == "Created"
    figure(f"locations: two locations asked for, approved and available after {time.monotonic() - began:.1f} s")
    for each in owners:
        each.back_up("daily", storageLocation="mine")
    for each in owners:
        each.wait("nonadminbackup/daily", "--for=condition=Succeeded")
        name = each.status("nonadminbackup/daily")["veleroBackup"]["name"]
        assert {path for path in each.objects() if path.startswith(f"{each.namespace}/velero/backups/{name}/")}
        assert all(path.startswith(f"{each.namespace}/velero/") for path in each.objects())
    assert not served.bucket_objects(), "nothing of tenants is in the administrator's bucket"
    assert blue.objects().isdisjoint(red.objects())


def test_neither_tenant_lists_reads_or_restores_what_is_the_others(
    served: Cluster, owners: tuple[Owner, Owner]
) -> None:
    red, blue = owners
    foreign = red.status("nabsl/mine")["veleroBackupStorageLocation"]["name"]
    backup = red.status("nonadminbackup/daily")["veleroBackup"]["name"]
    before = red.objects()
    blue.back_up("into-red", storageLocation=foreign)
    blue.restore("steal", backup)
    blue.download("read", "BackupLog", backup)
    blue.wait("nonadminbackup/into-red", "--for=condition=Accepted=false")
    blue.wait("nonadminrestore/steal", "--for=condition=Accepted=false")
    blue.wait("nonadmindownloadrequest/read", "--for=condition=NonAdminBackupNotAvailable")
    assert not of_namespace(served, "restores", "blue")
    assert len(of_namespace(served, "backups", "blue")) == 1
    assert red.objects() == before


def test_a_tenant_restores_from_the_own_bucket(owners: tuple[Owner, Owner]) -> None:
    red, _ = owners
    red.kubectl("delete", "configmap", "settings")
    red.restore("back", "daily")
    red.wait("nonadminrestore/back", "--for=condition=Succeeded")
    assert red.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"


def test_planted_backups_never_come_into_velero_s_namespace(
    served: Cluster, owners: tuple[Owner, Owner], eventually: Eventually, figure: Callable[[str], None]
) -> None:
    _, blue = owners
    name = blue.status("nonadminbackup/daily")["veleroBackup"]["name"]
    folder = blue.bucket / "blue" / "velero" / "backups"
    metadata = json.loads((folder / name / "velero-backup.json").read_text())
    metadata["metadata"]["labels"] = {**metadata["metadata"].get("labels", {}), **FORGED}
    metadata["metadata"]["annotations"]["openshift.io/oadp-nab-origin-namespace"] = "red"
    for number in range(PLANTED):
        planted = f"planted-{number}"
        metadata["metadata"]["name"] = planted
        (folder / planted).mkdir()
        (folder / planted / "velero-backup.json").write_text(json.dumps(metadata))
        if number < 3:
            for file in (folder / name).glob(f"{name}*"):
                shutil.copy(file, folder / planted / file.name.replace(name, planted))
    before, since = backups(served), now()

    def synced() -> bool:
        found = served.get("backupstoragelocation", "default", f"--namespace={VELERO}")["status"]["lastSyncedTime"]
        at = instant(found)
        return at is not None and at > since + timedelta(seconds=5)

    eventually(synced, 150)  # Velero syncs each minute, and later beside other work
    assert backups(served) == before
    assert "lastSyncedTime" not in served.get(
        "backupstoragelocation",
        blue.status("nabsl/mine")["veleroBackupStorageLocation"]["name"],
        f"--namespace={VELERO}",
    ).get("status", {})
    figure(f"locations: {PLANTED} planted backups in a tenant's bucket, 0 came into Velero's namespace")


def test_the_command_line_takes_a_location_from_the_request_to_its_end(served: Cluster, eventually: Eventually) -> None:
    green = owner(served, "green")
    tenant, administrator = Foresail(green), Foresail(Tenant(served.kubeconfig, VELERO))
    here = ("-n", "green")
    asked = ("--bucket", green.bucket.name, "--credential", "keys=cloud", "--region", "us-east-1")
    config = ("--config", "s3ForcePathStyle=true", "--config", f"s3Url={endpoint(served)}")
    made = tenant.done("location", "create", "mine", *asked, *config, *here)
    assert "NonAdminBackupStorageLocation green/mine created." in made.err
    assert "run foresail location grant mine -n green" in made.err, "the role edit may not grant"
    assert tenant("location", "request", "approve", "mine", *here).code != 0
    early = administrator("location", "request", "approve", "mine", *here)
    assert "has not asked for approval yet" in early.err
    eventually(lambda: "not requested" in administrator.done("location", "request", "get", *here).out, 60)
    administrator.done("location", "grant", "mine", *here)
    eventually(lambda: "pending" in administrator.done("location", "request", "get").out, 60)
    header, row = administrator.done("location", "request", "get", *here).out.splitlines()
    assert header.split()[:5] == ["NAMESPACE", "NAME", "PHASE", "DECISION", "BUCKET"]
    assert row.split()[:5] == ["green", "mine", "Pending", "pending", green.bucket.name]

    approved = administrator.done("location", "request", "approve", "mine", *here)
    assert f"green/mine approved: bucket {green.bucket.name}" in approved.err
    eventually(lambda: "Available" in tenant.done("location", "get", *here).out, 60)
    assert tenant.done("location", "get", *here).out.splitlines()[1].split()[:4] == [
        "mine",
        "True",
        "Created",
        "Available",
    ]
    tenant.done("backup", "create", "daily", "--storage-location", "mine", "--wait", "--timeout", "300s", *here)
    assert green.objects()

    administrator.done("location", "request", "reject", "mine", "--reason", "no budget", *here)
    eventually(lambda: "BslSpecRejected" in tenant.done("location", "get", *here).out, 60)
    name = green.status("nabsl/mine")["veleroBackupStorageLocation"]["name"]
    notes = served.get("nabslrequest", name, f"--namespace={VELERO}")["metadata"]["annotations"]
    assert notes["openshift.io/oadp-rejection-reason"] == "no budget"
    before = green.objects()
    tenant.done("location", "delete", "mine", "--confirm", *here)
    green.wait("nabsl/mine", "--for=delete")
    assert tenant.done("location", "get", *here).out == ""
    assert green.objects() == before


def test_the_spec_of_an_accepted_location_does_not_change_and_none_is_the_default(
    served: Cluster, owners: tuple[Owner, Owner]
) -> None:
    red, _ = owners
    patch = json.dumps({"spec": {"backupStorageLocationSpec": {"config": {"s3Url": "https://169.254.169.254"}}}})
    with pytest.raises(AssertionError, match="cannot change any more"):
        red.kubectl("patch", "nabsl", "mine", "--type=merge", f"--patch={patch}")
    red.ask("takeover", endpoint(served), default=True)
    red.ask("inside", "http://169.254.169.254")
    for name, word in (("takeover", "default is restricted"), ("inside", "not an endpoint")):
        red.wait(f"nabsl/{name}", "--for=condition=Accepted=false")
        assert word in condition(red.status(f"nabsl/{name}"), "Accepted")[2]
        red.kubectl("delete", "nabsl", name)
    with pytest.raises(AssertionError, match="written by Foresail alone"):
        red.kubectl("annotate", "nabsl", "mine", "foresail.dev/request-hash=forged")


def test_the_operator_s_token_reads_and_writes_no_other_secret_and_no_other_location(served: Cluster) -> None:
    kubeconfig = served.service_account_kubeconfig(VELERO, "foresail-self-service")
    token = Tenant(kubeconfig, VELERO)
    with pytest.raises(AssertionError, match="cannot get resource"):
        token.kubectl("get", "secret", "cloud-credentials")
    with pytest.raises(AssertionError, match="cannot list resource"):
        token.kubectl("get", "secrets", "--all-namespaces")
    secret = written_by_operator(kubeconfig, SECRET, Key(VELERO, "cloud-credentials"), {"data": {"cloud": "AAAA"}})
    assert secret is not None
    assert secret.cause is Cause.FORBIDDEN
    mine = written_by_operator(kubeconfig, LOCATION, Key(VELERO, "default"), {"spec": {"accessMode": "ReadOnly"}})
    assert mine is not None
    assert "only what it made for a tenant" in mine.message
    body = {"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation", "metadata": {"name": "x"}, "spec": _TRIED}
    with pytest.raises(AssertionError, match="recorded as a request of a tenant"):
        token.kubectl("create", "--filename=-", body=body)


def test_a_revoked_location_takes_nothing_new_and_the_administrator_can_restore(
    served: Cluster, owners: tuple[Owner, Owner], eventually: Eventually
) -> None:
    red, _ = owners
    name = red.status("nabsl/mine")["veleroBackupStorageLocation"]["name"]
    decide(served, red, "reject")

    def is_read_only() -> bool:
        spec = served.get("backupstoragelocation", name, f"--namespace={VELERO}")["spec"]
        return bool(spec["accessMode"] == "ReadOnly")

    eventually(is_read_only, 30)
    before = red.objects()
    red.back_up("late", storageLocation="mine")
    red.restore("late", "daily")
    for target in ("nonadminbackup/late", "nonadminrestore/late"):
        red.wait(target, "--for=condition=Accepted=false")
        assert "not approved any more" in condition(red.status(target), "Accepted")[2]
    assert red.objects() == before
    red.kubectl("delete", "configmap", "settings")
    backup = red.status("nonadminbackup/daily")["veleroBackup"]["name"]
    served.velero("restore", "create", "by-the-administrator", f"--from-backup={backup}", "--wait")
    assert red.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"


def test_whoever_may_not_delete_backups_does_not_delete_a_location_with_them(
    served: Cluster, owners: tuple[Owner, Owner]
) -> None:
    _, blue = owners
    where = "--namespace=blue"
    served.kubectl("create", "serviceaccount", "cleaner", where)
    kind = "--resource=nonadminbackupstoragelocations.oadp.openshift.io"
    served.kubectl("create", "role", "cleaner", "--verb=get,list,watch,delete", kind, where)
    served.kubectl("create", "rolebinding", "cleaner", "--role=cleaner", "--serviceaccount=blue:cleaner", where)
    cleaner = Tenant(served.service_account_kubeconfig("blue", "cleaner"), "blue")
    with pytest.raises(AssertionError, match="you may not delete the NonAdminBackups in it"):
        cleaner.kubectl("delete", "nabsl", "mine", "--wait=false")
    assert "deletionTimestamp" not in served.get("nabsl", "mine", where)["metadata"]
    assert blue.status("nonadminbackup/daily")["phase"] == "Created"


def test_a_deleted_backup_leaves_every_byte_in_the_bucket_and_velero_is_not_asked(
    served: Cluster, owners: tuple[Owner, Owner]
) -> None:
    _, blue = owners
    blue.back_up("spare", storageLocation="mine")
    blue.wait("nonadminbackup/spare", "--for=condition=Succeeded")
    name, before = blue.status("nonadminbackup/spare")["veleroBackup"]["name"], blue.objects()
    made = served.get("backups.velero.io", name, f"--namespace={VELERO}")
    expiration = instant(made["status"]["expiration"])
    assert expiration is not None
    assert expiration > now() + timedelta(days=99 * 365), "Velero would delete the data when it expires"
    blue.kubectl("patch", "nonadminbackup", "spare", "--type=merge", '--patch={"spec":{"deleteBackup":true}}')
    blue.wait("nonadminbackup/spare", "--for=delete")
    assert name not in backups(served)
    assert blue.objects() == before
    assert not served.get("deletebackuprequests.velero.io", f"--namespace={VELERO}")["items"]


def test_a_deleted_location_leaves_every_byte_in_the_bucket(
    served: Cluster, owners: tuple[Owner, Owner], eventually: Eventually
) -> None:
    _, blue = owners
    name, before = blue.status("nabsl/mine")["veleroBackupStorageLocation"]["name"], blue.objects()
    blue.kubectl("delete", "nabsl", "mine", "--timeout=60s")
    assert not of_namespace(served, "backups", "blue")
    assert "daily" not in " ".join(blue.names("nonadminbackups"))
    assert blue.objects() == before
    where = f"--namespace={VELERO}"

    def is_gone() -> bool:
        return not served.kubectl(
            "get", f"secret/{name}", f"bsl/{name}", where, "--ignore-not-found", "-o=name"
        ).strip()

    eventually(is_gone, 30)
    assert served.kubectl("get", "secret", "cloud-credentials", where, "--output=name").strip()
