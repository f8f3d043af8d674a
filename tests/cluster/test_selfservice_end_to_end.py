"""Self-service from end to end with kubectl alone: several tenants at once, and what goes on behind their backs."""

import json
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager

import pytest

from testbed import Cluster
from tests.cluster.history import recorded
from tests.cluster.tenants import (
    VELERO,
    Eventually,
    Tenant,
    arrive,
    condition,
    create,
    in_bucket,
    install,
    of_namespace,
    operator,
    quotas,
)

NAMESPACE_SECONDS = 60
SYNC_SECONDS = 10
LATE_SECONDS = 5


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(own_velero_cluster)
    quotas("forgetful", own_velero_cluster, stored=1)
    quotas("crowded", own_velero_cluster, stored=100, active=100)
    with operator(own_velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield own_velero_cluster


def completed(tenant: Tenant, name: str) -> str:
    """Back up, and return the name of the Velero Backup when it is complete."""
    tenant.back_up(name)
    tenant.wait(f"nonadminbackup/{name}", "--for=condition=Succeeded")
    found: str = tenant.status(f"nonadminbackup/{name}")["veleroBackup"]["name"]
    return found


def test_three_tenants_at_once_back_up_damage_restore_and_delete(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    tenants = [arrive(served, name, eventually) for name in ("red", "green", "blue")]

    def live(tenant: Tenant) -> str:
        tenant.kubectl("create", "configmap", "owner", f"--from-literal=name={tenant.namespace}")
        made = completed(tenant, "daily")  # the same name in each namespace
        assert in_bucket(served, made)
        tenant.kubectl("delete", "configmap", "settings", "owner")
        tenant.restore("back", "daily")
        tenant.wait("nonadminrestore/back", "--for=condition=Succeeded")
        assert tenant.kubectl("get", "configmap", "owner", "--output=jsonpath={.data.name}") == tenant.namespace
        assert tenant.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
        tenant.wants("daily", deleteBackup=True)
        tenant.wait("nonadminbackup/daily", "--for=delete")
        return made

    began = time.monotonic()
    with ThreadPoolExecutor(len(tenants)) as pool:
        made = list(pool.map(live, tenants))
    assert len(set(made)) == len(tenants)
    for tenant, name in zip(tenants, made, strict=True):
        assert not in_bucket(served, name)
        assert not of_namespace(served, "backups", tenant.namespace)
    figure(f"self-service: three tenants back up, damage, restore and delete: {time.monotonic() - began:.1f} s")
    names = [tenant.namespace for tenant in tenants]
    served.kubectl("delete", "namespace", *names, f"--timeout={NAMESPACE_SECONDS}s")


def test_a_velero_backup_deleted_by_others_is_reported_and_cannot_be_restored(
    served: Cluster, eventually: Eventually
) -> None:
    dan = arrive(served, "robbed", eventually)
    made = completed(dan, "daily")
    served.fault.restart("velero")  # now and then it takes an ended backup for one that runs until then
    served.velero("backup", "delete", made, "--confirm")
    dan.wait("nonadminbackup/daily", "--for=condition=Accepted=false")
    status = dan.status("nonadminbackup/daily")
    assert status["phase"] == "Created"
    assert condition(status, "Accepted")[1] == "VeleroBackupNotFound"
    assert condition(status, "Succeeded")[:2] == ("True", "Completed"), "finding of part 5: it did succeed"
    dan.restore("back", "daily")
    dan.wait("nonadminrestore/back", "--for=jsonpath={.status.phase}=BackingOff")
    assert "does not exist" in condition(dan.status("nonadminrestore/back"), "Accepted")[2]
    time.sleep(2)
    assert not of_namespace(served, "backups", "robbed"), "it is not made a second time"
    dan.wants("daily", deleteBackup=True)
    dan.wait("nonadminbackup/daily", "--for=delete")


def test_a_backup_waits_while_its_location_takes_none_and_then_goes_ahead(
    served: Cluster, eventually: Eventually
) -> None:
    ivy = arrive(served, "held", eventually)
    location = ("patch", "backupstoragelocation", "default", f"--namespace={VELERO}", "--type=merge")
    served.kubectl(*location, '--patch={"spec":{"accessMode":"ReadOnly"}}')
    try:
        time.sleep(2)  # for the operator's watch to show it; nothing tells when it has
        ivy.back_up("daily")
        ivy.wait("nonadminbackup/daily", "--for=condition=Accepted=false")
        status = ivy.status("nonadminbackup/daily")
        assert status["phase"] == "New"
        reason, message = condition(status, "Accepted")[1:]
        assert reason == "LocationUnavailable"
        assert message.startswith("Storage location default is read-only; the backup starts automatically when")
        assert not of_namespace(served, "backups", "held"), "Velero would refuse it for good"
    finally:
        served.kubectl(*location, '--patch={"spec":{"accessMode":"ReadWrite"}}')
    ivy.wait("nonadminbackup/daily", "--for=condition=Succeeded")


def test_a_backup_is_deleted_when_velero_is_back(served: Cluster, eventually: Eventually) -> None:
    eve = arrive(served, "patient", eventually)
    made = completed(eve, "daily")
    served.fault.kill("velero")
    try:
        eve.wants("daily", deleteBackup=True)
        eve.wait("nonadminbackup/daily", "--for=condition=Deleting")
        time.sleep(2)
        assert eve.names("nonadminbackups")
        assert in_bucket(served, made)
    finally:
        served.fault.start("velero")
    eve.wait("nonadminbackup/daily", "--for=delete")
    assert not in_bucket(served, made)


def test_a_backup_that_velero_takes_for_running_though_it_has_ended_is_deleted_all_the_same(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    # Velero ends a backup in another thread than the one that runs it. If the API server's answer to the write between
    # the two is late, the first thread puts the backup back on the list of those that run, where it stays.
    amy = arrive(served, "undeletable", eventually)
    with served.proxy() as proxy, served.velero_behind(proxy):
        proxy.delay('"phase":"Finalizing"', LATE_SECONDS)
        made = completed(amy, "daily")
        proxy.wait_delayed()
        time.sleep(LATE_SECONDS + 1)  # Velero has the answer
        with recorded(served, f"/apis/velero.io/v1/namespaces/{VELERO}/deletebackuprequests") as requests:
            began = time.monotonic()
            amy.wants("daily", deleteBackup=True)
            amy.wait("nonadminbackup/daily", "--for=delete")
            took = time.monotonic() - began
        refusals = {error for each in requests for error in each.get("status", {}).get("errors", [])}
        assert refusals == {"backup deletion failed: backup is still in progress"}, "else this test shows nothing"
        assert not in_bucket(served, made)
        assert not of_namespace(served, "backups", "undeletable")
        assert not of_namespace(served, "deletebackuprequests", "undeletable")
    figure(f"self-service: a backup that Velero takes for running though it has ended is deleted after {took:.1f} s")


def test_a_backup_that_velero_did_not_live_to_finish_has_failed_and_the_next_one_works(
    served: Cluster, eventually: Eventually
) -> None:
    hal = arrive(served, "interrupted", eventually)
    served.fault.stop("s3")  # so that Velero comes to no end
    try:
        hal.back_up("torn")
        in_progress = "--for=jsonpath={.status.veleroBackup.status.phase}=InProgress"
        hal.wait("nonadminbackup/torn", in_progress)
    finally:
        served.fault.kill("velero")
        served.fault.cont("s3")
        served.fault.start("velero")
    hal.wait("nonadminbackup/torn", "--for=condition=Succeeded=false")
    status = hal.status("nonadminbackup/torn")
    assert status["veleroBackup"]["status"]["phase"] == "Failed"
    assert (status["phase"], status["queueInfo"]) == ("Created", {"estimatedQueuePosition": 0})
    reason, message = condition(status, "Succeeded")[1:]
    assert reason == "Failed"
    assert message == "Backup failed: Velero was restarted while it ran; create it again"

    def said() -> list[str]:
        events = json.loads(hal.kubectl("get", "events", "--field-selector=reason=Failed", "--output=json"))["items"]
        return [each["message"] for each in events]

    eventually(said, 60)
    assert said() == [message]
    completed(hal, "whole")
    hal.wants("torn", deleteBackup=True)
    hal.wait("nonadminbackup/torn", "--for=delete")
    assert len(of_namespace(served, "backups", "interrupted")) == 1


def test_finding_1_7_what_is_forced_counts_is_seen_and_can_be_deleted(served: Cluster, eventually: Eventually) -> None:
    """With `stored: 1`, create and force in a loop stores one backup, and its tenant can delete it."""
    fay = arrive(served, "forgetful", eventually)
    made = completed(fay, "daily")
    fay.wants("daily", forceDeleteBackup=True)
    eventually(lambda: not of_namespace(served, "backups", "forgetful"), 60)
    assert in_bucket(served, made)
    for number in range(5):
        fay.back_up(f"more-{number}")
        fay.wait(f"nonadminbackup/more-{number}", "--for=condition=Accepted=false")
        assert condition(fay.status(f"nonadminbackup/more-{number}"), "Accepted")[1] == "QuotaExceeded"
        fay.wants(f"more-{number}", forceDeleteBackup=True)
        fay.wait(f"nonadminbackup/more-{number}", "--for=delete")
    with velero_arguments(served, f"--backup-sync-period={SYNC_SECONDS}s"):
        sync(served, eventually)
        synced = of_namespace(served, "backups", "forgetful")[0]["metadata"]
        assert synced["name"] == made
        told = "Data is still in storage location default and counts until"
        eventually(lambda: condition(fay.status("nonadminbackup/daily"), "Deleting")[2].startswith(told), 30)
        for _ in range(2):
            sync(served, eventually)
            assert [each["metadata"]["uid"] for each in of_namespace(served, "backups", "forgetful")] == [synced["uid"]]
        fay.wants("daily", deleteBackup=True)
        fay.wait("nonadminbackup/daily", "--for=delete")
        assert not in_bucket(served, made)
        fay.back_up("daily")  # the place is free
        fay.wait("nonadminbackup/daily", "--for=condition=Succeeded")
        assert fay.status("nonadminbackup/daily")["veleroBackup"]["name"] != made


@contextmanager
def velero_arguments(cluster: Cluster, *more: str) -> Iterator[None]:
    """Let Velero's Deployment have further arguments; they count from Velero's next start."""
    where = ("deployment", "velero", f"--namespace={VELERO}")
    before = cluster.get(*where)["spec"]["template"]["spec"]["containers"][0]["args"]

    def have(arguments: list[str]) -> None:
        patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": arguments}]
        cluster.kubectl("patch", *where, "--type=json", f"--patch={json.dumps(patch)}")

    have([*before, *more])
    try:
        yield
    finally:
        have(before)
        cluster.fault.restart("velero")


def sync(cluster: Cluster, eventually: Eventually) -> None:
    """Let a period pass, and Velero look into the bucket: it does so when it starts, and then but once a minute."""

    def last() -> str:
        location = cluster.get("backupstoragelocations.velero.io", "default", f"--namespace={VELERO}")
        found: str = location["status"].get("lastSyncedTime", "")
        return found

    before = last()
    time.sleep(SYNC_SECONDS + 1)
    cluster.fault.restart("velero")
    eventually(lambda: last() != before, 240)


def test_a_namespace_with_50_requests_is_deleted_while_velero_is_down_and_its_backups_can_be_restored(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    gus = arrive(served, "crowded", eventually)
    done = [f"done-{number}" for number in range(4)]
    create(gus, done, {})
    gus.kubectl("wait", *(f"nonadminbackup/{name}" for name in done), "--for=condition=Succeeded", "--timeout=300s")
    kept = [gus.status(f"nonadminbackup/{name}")["veleroBackup"]["name"] for name in done]
    served.fault.kill("velero")
    try:
        waiting = [f"waiting-{number}" for number in range(36)]
        create(gus, waiting, {})
        create(gus, [f"refused-{number}" for number in range(10)], {"includedNamespaces": ["default"]})
        gus.kubectl("delete", "nonadminbackup", done[0], waiting[0], "--wait=false")
        gus.wants(done[1], deleteBackup=True)
        gus.wants(waiting[1], deleteBackup=True)
        # Velero gets one of the 36, the last turn is for others; what waits and is unwanted is deleted at once.
        eventually(lambda: phases(gus).get("BackingOff") == 10 and phases(gus).get("New", 0) in range(33, 36), 240)
        eventually(lambda: phases(gus).get("Created", 0) + phases(gus).get("Deleting", 0) == 5, 60)
        assert len(of_namespace(served, "backups", "crowded")) <= len(done) + 1
        began = time.monotonic()
        served.kubectl("delete", "namespace", "crowded", f"--timeout={NAMESPACE_SECONDS}s")
        took = time.monotonic() - began
        figure(f"self-service: a namespace with 50 backups in three phases, Velero down: gone after {took:.1f} s")
        left = of_namespace(served, "backups", "crowded")
        assert {each["metadata"]["name"] for each in left} == set(kept), "what Velero had not begun is deleted"
        assert all("foresail.dev/orphaned" in each["metadata"]["annotations"] for each in left)
        mine = of_namespace(served, "deletebackuprequests", "crowded")
        assert not mine, "Velero, once it is back, would delete what has to stay"
    finally:
        served.fault.start("velero")
    for number, name in enumerate(kept):
        assert in_bucket(served, name)
        mapping = f"--namespace-mappings=crowded:again-{number}"
        served.velero("restore", "create", f"again-{number}", f"--from-backup={name}", mapping, "--wait")
        found = served.get("configmap", "settings", f"--namespace=again-{number}")
        assert found["data"] == {"currency": "EUR"}


def phases(tenant: Tenant) -> dict[str, int]:
    """Return how many requests are in which phase."""
    found: dict[str, int] = {}
    for each in json.loads(tenant.kubectl("get", "nonadminbackups", "--output=json"))["items"]:
        phase = each.get("status", {}).get("phase", "")
        found[phase] = found.get(phase, 0) + 1
    return found
