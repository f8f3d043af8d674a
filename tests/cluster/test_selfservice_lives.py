"""A path with one write in each life of the operator: every choice of the flowchart is made anew from the cluster."""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import pytest

from foresail.selfservice.families import BACKUPS
from testbed import Cluster
from tests.cluster.operators import Operator, running
from tests.cluster.tenants import Eventually, Tenant, arrive, condition, install, of_namespace, phases_in_order
from tests.flowchart import Arrow, walks

pytestmark = pytest.mark.full

LIFE_SECONDS = 120.0


@dataclass(frozen=True)
class Lives:
    """One tenant, and an operator that lives only as long as a test wants."""

    cluster: Cluster
    operator: Operator
    tenant: Tenant

    def life(self, writes: int = 1) -> None:
        """Let the operator come, do so many writes, and die."""
        process = self.operator.begin(FORESAIL_TEST_KILL=f"after:{writes}")
        deadline = time.monotonic() + LIFE_SECONDS
        while process.poll() is None:
            assert time.monotonic() < deadline, f"it has nothing to write:\n{self.operator.log.read_text()}"
            time.sleep(0.05)
        self.operator.kill()

    def complete(self, name: str) -> None:
        """Back up in one life."""
        self.operator.start()
        self.tenant.back_up(name)
        self.tenant.wait(f"nonadminbackup/{name}", "--for=condition=Succeeded", seconds=300)
        before = ""
        while (version := self.request(name)["metadata"]["resourceVersion"]) != before:
            before = version
            time.sleep(1)  # until there is nothing more to write: else the next life would begin with that
        self.operator.kill()

    def request(self, name: str) -> dict[str, Any]:
        found: dict[str, Any] = json.loads(self.tenant.kubectl("get", "nonadminbackup", name, "--output=json"))
        return found

    def made(self, kind: str, name: str) -> list[str]:
        """Return the UIDs of what there is of a kind of Velero's for a request."""
        found = (each["metadata"] for each in of_namespace(self.cluster, kind, self.tenant.namespace))
        return [each["uid"] for each in found if each["annotations"][BACKUPS.origin_name] == name]

    def stands(self, name: str) -> tuple[str, bool, bool, bool, bool]:
        """Return the phase; whether it is marked as going; whether nacuuid, finalizer and Velero Backup are there."""
        request = self.request(name)
        status = request.get("status", {})
        return (
            status.get("phase", ""),
            "deletionTimestamp" in request["metadata"],
            "nacuuid" in status.get("veleroBackup", {}),
            BACKUPS.finalizer in request["metadata"].get("finalizers", []),
            bool(self.made("backups", name)),
        )


@pytest.fixture(scope="module")
def lives(
    own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory, eventually: Eventually
) -> Iterator[Lives]:
    """A cluster of its own: what others leave behind would be written about too."""
    install(own_velero_cluster)
    ida = arrive(own_velero_cluster, "lives", eventually)
    folder = tmp_path_factory.mktemp("operator")
    with (
        running(own_velero_cluster, folder, "--schedules=false", "--self-service") as operator,
        phases_in_order(own_velero_cluster),
    ):
        operator.kill()
        yield Lives(own_velero_cluster, operator, ida)


@walks(Arrow.PHASE_EMPTY, Arrow.PHASE_SET, Arrow.NACUUID, Arrow.NO_FINALIZER, Arrow.FINALIZER, Arrow.VELERO_BACKUP)
def test_a_backup_is_made_in_four_lives(lives: Lives) -> None:
    lives.tenant.back_up("made")
    lives.life()
    assert lives.stands("made") == ("New", False, True, False, False)
    lives.life()
    assert lives.stands("made") == ("New", False, True, True, False)
    lives.life(writes=2)  # the finalizer is written again, as the test that nothing has changed
    assert lives.stands("made") == ("New", False, True, True, True)
    once = lives.made("backups", "made")
    lives.life()
    assert lives.stands("made") == ("Created", False, True, True, True)
    assert lives.made("backups", "made") == once
    assert condition(lives.request("made")["status"], "Queued")[:2] == ("True", "BackupScheduled")


@walks(Arrow.FORCE_TO_SAY, Arrow.FORCE_SAID, Arrow.FORCE_TO_MARK, Arrow.FORCE_MARKED)
@walks(Arrow.FORCE_OBJECTS, Arrow.FORCE_NO_OBJECTS)
def test_a_backup_is_force_deleted_in_four_lives(lives: Lives) -> None:
    lives.complete("forced")
    lives.tenant.wants("forced", forceDeleteBackup=True)
    lives.life()
    assert lives.stands("forced") == ("Deleting", False, True, True, True)
    lives.life()
    assert lives.stands("forced") == ("Deleting", True, True, True, True)
    once = lives.made("backups", "forced")
    lives.life()
    assert lives.stands("forced")[:4] == ("Deleting", True, True, True)
    assert not set(once) & set(lives.made("backups", "forced")), "Velero may have read another from the bucket since"
    for _ in range(5):  # as often as Velero reads it from the bucket again, it goes again
        lives.life()
        if condition(lives.request("forced")["status"], "Deleting")[:2] == ("True", "ForceDeleted"):
            return
    raise AssertionError(f"not said: {lives.request('forced')['status']}")


@walks(Arrow.DELETE_TO_SAY, Arrow.DELETE_SAID, Arrow.DELETE_TO_MARK, Arrow.DELETE_MARKED, Arrow.DELETE_FINALIZER)
@walks(Arrow.DELETE_NO_REQUEST, Arrow.DELETE_REQUEST, Arrow.DELETE_WAITS, Arrow.DELETE_DONE)
def test_a_backup_is_deleted_in_five_lives(lives: Lives) -> None:
    lives.complete("deleted")
    lives.tenant.wants("deleted", deleteBackup=True)
    lives.cluster.fault.stop("velero")  # so that it does not answer before the operator has looked
    try:
        lives.life()
        assert lives.stands("deleted") == ("Deleting", False, True, True, True)
        lives.life()
        assert lives.stands("deleted") == ("Deleting", True, True, True, True)
        assert not lives.made("deletebackuprequests", "deleted")
        lives.life()
        once = lives.made("deletebackuprequests", "deleted")
        assert once
        assert "veleroDeleteBackupRequest" not in lives.request("deleted")["status"]
        lives.life()
        assert "veleroDeleteBackupRequest" in lives.request("deleted")["status"]
        assert lives.made("deletebackuprequests", "deleted") == once
        assert lives.stands("deleted") == ("Deleting", True, True, True, True)
    finally:
        lives.cluster.fault.cont("velero")
    lives.operator.start()
    lives.tenant.wait("nonadminbackup/deleted", "--for=delete", seconds=120)
    lives.operator.kill()


@walks(Arrow.DELETE_NO_BACKUP)
def test_a_deletion_of_what_was_removed_behind_our_back_is_done(lives: Lives) -> None:
    lives.complete("removed")
    name = lives.request("removed")["status"]["veleroBackup"]["name"]
    lives.cluster.kubectl("delete", "backups.velero.io", name, "--namespace=velero")
    lives.tenant.wants("removed", deleteBackup=True)
    lives.operator.start()
    lives.tenant.wait("nonadminbackup/removed", "--for=delete", seconds=120)
    assert not lives.made("deletebackuprequests", "removed")
    lives.operator.kill()


@walks(Arrow.DELETE_NO_FINALIZER)
def test_a_deletion_of_what_does_not_have_our_finalizer_is_left_to_whose_finalizer_it_has(lives: Lives) -> None:
    lives.tenant.back_up("kept", includedNamespaces=["default"])
    keep = ("patch", "nonadminbackup", "kept", "--type=merge")
    lives.tenant.kubectl(*keep, '--patch={"metadata":{"finalizers":["example.com/keep"]}}')
    lives.tenant.wants("kept", deleteBackup=True)
    lives.operator.start()
    lives.tenant.wait("nonadminbackup/kept", "--for=jsonpath={.metadata.deletionTimestamp}")
    lives.tenant.wait("nonadminbackup/kept", "--for=jsonpath={.status.phase}=Deleting")
    assert lives.request("kept")["metadata"]["finalizers"] == ["example.com/keep"]
    assert not lives.made("deletebackuprequests", "kept")
    lives.tenant.kubectl(*keep, '--patch={"metadata":{"finalizers":null}}')
    lives.tenant.wait("nonadminbackup/kept", "--for=delete")
    lives.operator.kill()
