"""Self-service end to end: real Velero, a real bucket, the operator with the chart's rights, tenants with `edit`."""

import time
from collections.abc import Callable, Iterator

import pytest

from testbed import Cluster
from tests.cluster.tenants import Eventually, arrive, condition, in_bucket, install, of_namespace, operator
from tests.flowchart import Arrow, walks


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(velero_cluster)
    log = tmp_path_factory.mktemp("operator") / "log"
    with operator(velero_cluster, log):
        yield velero_cluster


@walks(Arrow.CREATE_OR_UPDATE, Arrow.VALID, Arrow.NO_NACUUID, Arrow.NO_VELERO_BACKUP, Arrow.VELERO_BACKUP)
@walks(
    Arrow.DELETE_BACKUP,
    Arrow.DELETE_NO_REQUEST,
    Arrow.DELETE_DONE,
    Arrow.RESTORE_MADE,
    Arrow.RESTORE_SHOWN,
    Arrow.RESTORE_DELETED,
)
def test_a_tenant_backs_up_damages_restores_and_deletes_until_the_bucket_is_empty(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    ann = arrive(served, "paint", eventually)
    began = time.monotonic()
    ann.back_up("first")
    ann.wait("nonadminbackup/first", "--for=jsonpath={.status.phase}=Created")
    ann.wait("nonadminbackup/first", "--for=condition=Succeeded")
    status = ann.status("nonadminbackup/first")
    assert status["veleroBackup"]["status"]["phase"] == "Completed"
    assert status["queueInfo"] == {"estimatedQueuePosition": 0}
    name = status["veleroBackup"]["name"]
    assert in_bucket(served, name)

    ann.kubectl("delete", "configmap", "settings")
    ann.restore("back", "first")
    ann.wait("nonadminrestore/back", "--for=condition=Succeeded")
    assert ann.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"

    ann.kubectl("delete", "nonadminrestore", "back", "--timeout=240s")
    eventually(lambda: not of_namespace(served, "restores", "paint"), 60)
    ann.wants("first", deleteBackup=True)
    ann.wait("nonadminbackup/first", "--for=delete")
    assert not of_namespace(served, "backups", "paint")
    assert not in_bucket(served, name)
    figure(f"self-service: backup, damage, restore and delete with the bucket empty: {time.monotonic() - began:.1f} s")

    def reasons() -> set[str]:
        return set(ann.kubectl("get", "events", "--output=jsonpath={.items[*].reason}").split())

    eventually(lambda: {"BackupScheduled", "Completed", "DeletionPending"} <= reasons(), 60)


@walks(Arrow.API_DELETE, Arrow.PLAIN_WAITS, Arrow.DELETE_MARKED)
def test_a_plain_delete_waits_and_its_message_has_the_next_command(served: Cluster, eventually: Eventually) -> None:
    bob = arrive(served, "plain", eventually)
    bob.back_up("kept")
    bob.wait("nonadminbackup/kept", "--for=condition=Succeeded")
    bob.kubectl("delete", "nonadminbackup", "kept", "--wait=false")
    bob.wait("nonadminbackup/kept", "--for=condition=Deleting")
    time.sleep(3)
    status = bob.status("nonadminbackup/kept")
    assert status["phase"] == "Deleting"
    assert condition(status, "Deleting")[2].endswith("to true or finalizer removal")
    bob.wants("kept", deleteBackup=True)
    bob.wait("nonadminbackup/kept", "--for=delete")
    eventually(lambda: not of_namespace(served, "backups", "plain"), 60)


@walks(Arrow.FORCE_DELETE, Arrow.FORCE_OBJECTS)
def test_a_force_delete_does_not_wait_for_velero_and_its_data_counts(served: Cluster, eventually: Eventually) -> None:
    cat = arrive(served, "forced", eventually)
    cat.back_up("gone")
    cat.wait("nonadminbackup/gone", "--for=condition=Succeeded")
    name = cat.status("nonadminbackup/gone")["veleroBackup"]["name"]
    served.fault.stop("velero")
    try:
        cat.wants("gone", forceDeleteBackup=True)
        eventually(lambda: not of_namespace(served, "backups", "forced"), 60)
        assert in_bucket(served, name), "a force delete leaves the bucket alone"
        eventually(lambda: condition(cat.status("nonadminbackup/gone"), "Deleting")[1] == "ForceDeleted", 30)
    finally:
        served.fault.cont("velero")


@walks(Arrow.INVALID, Arrow.RESTORE_INVALID)
def test_an_invalid_spec_is_refused_and_an_edit_makes_it_good(served: Cluster, eventually: Eventually) -> None:
    dan = arrive(served, "edited", eventually)
    dan.back_up("mine", includedNamespaces=["kube-system"])
    dan.wait("nonadminbackup/mine", "--for=jsonpath={.status.phase}=BackingOff")
    assert condition(dan.status("nonadminbackup/mine"), "Accepted")[:2] == ("False", "InvalidBackupSpec")
    assert not of_namespace(served, "backups", "edited")
    dan.restore("back", "")
    dan.wait("nonadminrestore/back", "--for=jsonpath={.status.phase}=BackingOff")
    assert condition(dan.status("nonadminrestore/back"), "Accepted")[:2] == ("False", "InvalidRestoreSpec")
    dan.wants("mine", backupSpec={"includedNamespaces": ["edited"]})
    dan.wait("nonadminbackup/mine", "--for=condition=Succeeded")


def test_a_namespace_is_deleted_with_requests_in_every_phase_while_velero_is_down(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    eve = arrive(served, "leaving", eventually)
    eve.back_up("done")
    eve.wait("nonadminbackup/done", "--for=condition=Succeeded")
    eve.back_up("left")
    eve.wait("nonadminbackup/left", "--for=condition=Succeeded")
    kept = [each["metadata"]["name"] for each in of_namespace(served, "backups", "leaving")]
    served.fault.stop("velero")
    try:
        eve.back_up("waiting")
        eve.wait("nonadminbackup/waiting", "--for=jsonpath={.status.phase}=Created")
        eve.back_up("refused", includedNamespaces=["default"])
        eve.restore("back", "done")
        eve.kubectl("delete", "nonadminbackup", "done", "--wait=false")
        eve.wants("left", deleteBackup=True)
        eve.wait("nonadminbackup/done", "--for=condition=Deleting")
        began = time.monotonic()
        served.kubectl("delete", "namespace", "leaving", "--timeout=60s")
        figure(f"self-service: a namespace with 4 backups and a restore gone after {time.monotonic() - began:.1f} s")
        left = of_namespace(served, "backups", "leaving")
        assert sorted(each["metadata"]["name"] for each in left) == sorted(kept), "what Velero has not begun is deleted"
        assert all("foresail.dev/orphaned" in each["metadata"]["annotations"] for each in left)
        assert all(in_bucket(served, name) for name in kept)
        said = ("get", "events", "--namespace=velero", "--output=jsonpath={.items[*].reason}")
        eventually(lambda: served.kubectl(*said).split().count("BackupOrphaned") >= 2, 60)
    finally:
        served.fault.cont("velero")
