"""Self-service end to end: real Velero, a real bucket, the operator with the chart's rights, tenants with `edit`."""

import json
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from testbed import Cluster
from testbed.build import program
from tests.cluster.tenants import Tenant, condition, install, of_namespace, operator, tenant

Eventually = Callable[[Callable[[], object], float], None]
_MAY_BACK_UP = ("auth", "can-i", "create", "nonadminbackups.oadp.openshift.io")


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(velero_cluster)
    log = tmp_path_factory.mktemp("operator") / "log"
    with operator(velero_cluster, log):
        yield velero_cluster


def arrive(cluster: Cluster, namespace: str, eventually: Eventually) -> Tenant:
    """Return a tenant, once the built-in role has our rules."""
    found = tenant(cluster, namespace)

    def may() -> bool:
        try:
            return found.kubectl(*_MAY_BACK_UP).strip() == "yes"
        except AssertionError:
            return False

    eventually(may, 30)
    return found


def in_bucket(cluster: Cluster, name: str) -> list[str]:
    return [path for path in cluster.bucket_objects() if path.startswith(f"backups/{name}/")]


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

    ann.wants("first", deleteBackup=True)
    ann.wait("nonadminbackup/first", "--for=delete")
    assert not of_namespace(served, "backups", "paint")
    assert not in_bucket(served, name)
    figure(f"self-service: backup, damage, restore and delete with the bucket empty: {time.monotonic() - began:.1f} s")
    reasons = ann.kubectl("get", "events", "--output=jsonpath={.items[*].reason}").split()
    assert {"BackupScheduled", "Completed", "DeletionPending"} <= set(reasons)


def test_a_plain_delete_waits_and_its_own_words_lead_on(served: Cluster, eventually: Eventually) -> None:
    bob = arrive(served, "plain", eventually)
    bob.back_up("kept")
    bob.wait("nonadminbackup/kept", "--for=condition=Succeeded")
    bob.kubectl("delete", "nonadminbackup", "kept", "--wait=false")
    bob.wait("nonadminbackup/kept", "--for=condition=Deleting")
    time.sleep(3)
    status = bob.status("nonadminbackup/kept")
    assert status["phase"] == "Deleting"
    command = condition(status, "Deleting")[2].partition("removal: ")[2]
    assert command.startswith("kubectl patch nonadminbackup kept --namespace plain --type=merge --patch '")
    bob.kubectl("patch", "nonadminbackup", "kept", "--type=merge", "--patch", command.split("'")[1])
    bob.wait("nonadminbackup/kept", "--for=delete")
    eventually(lambda: not of_namespace(served, "backups", "plain"), 20)


def test_a_force_delete_does_not_wait_for_velero(served: Cluster, eventually: Eventually) -> None:
    cat = arrive(served, "forced", eventually)
    cat.back_up("gone")
    cat.wait("nonadminbackup/gone", "--for=condition=Succeeded")
    name = cat.status("nonadminbackup/gone")["veleroBackup"]["name"]
    served.fault.stop("velero")
    try:
        cat.wants("gone", forceDeleteBackup=True)
        cat.wait("nonadminbackup/gone", "--for=delete", seconds=20)
        assert not of_namespace(served, "backups", "forced")
        assert in_bucket(served, name), "a force delete leaves the bucket alone"
    finally:
        served.fault.cont("velero")


def test_an_invalid_spec_is_refused_and_an_edit_makes_it_good(served: Cluster, eventually: Eventually) -> None:
    dan = arrive(served, "edited", eventually)
    dan.back_up("mine", includedNamespaces=["kube-system"])
    dan.wait("nonadminbackup/mine", "--for=jsonpath={.status.phase}=BackingOff")
    assert condition(dan.status("nonadminbackup/mine"), "Accepted")[:2] == ("False", "InvalidBackupSpec")
    assert not of_namespace(served, "backups", "edited")
    dan.wants("mine", backupSpec={"includedNamespaces": ["edited"]})
    dan.wait("nonadminbackup/mine", "--for=condition=Succeeded")


def documents(text: str) -> Iterator[dict[str, Any]]:
    """Read the objects that a watch has printed one after the other; the last may be cut off."""
    decoder, place = json.JSONDecoder(), 0
    while place < len(text):
        try:
            found, place = decoder.raw_decode(text, place)
        except json.JSONDecodeError:
            return
        yield found
        while place < len(text) and text[place].isspace():
            place += 1


def test_twenty_backups_of_five_tenants_only_move_forward(
    served: Cluster, eventually: Eventually, tmp_path: Path, figure: Callable[[str], None]
) -> None:
    tenants = [arrive(served, f"queue-{number}", eventually) for number in range(5)]
    history = tmp_path / "history"
    kubectl = [str(program("kube", "kubectl")), f"--kubeconfig={served.kubeconfig}", "--cache-dir=/dev/null"]
    watch = [*kubectl, "get", "nonadminbackups", "--all-namespaces", "--watch", "--output=json"]
    with history.open("w") as file, subprocess.Popen(watch, stdout=file) as watching:
        try:
            began = time.monotonic()
            for number in range(4):
                for each in tenants:
                    each.back_up(f"b{number}")
            for each in tenants:
                each.wait("nonadminbackup", "--all", "--for=condition=Succeeded", seconds=300)
            took = time.monotonic() - began
            time.sleep(2)
        finally:
            watching.kill()
    phases: dict[str, list[str]] = {}
    positions: dict[str, list[int]] = {}
    for found in documents(history.read_text()):
        if not found["metadata"]["namespace"].startswith("queue-"):
            continue
        uid, status = found["metadata"]["uid"], found.get("status", {})
        phases.setdefault(uid, []).append(status.get("phase", ""))
        if "queueInfo" in status:
            positions.setdefault(uid, []).append(status["queueInfo"]["estimatedQueuePosition"])
    assert len(positions) == 20
    for seen in phases.values():
        assert seen == sorted(seen, key=["", "New", "BackingOff", "Created", "Deleting"].index)
    for shown in positions.values():
        assert shown == sorted(shown, reverse=True), positions
        assert 1 in shown
        assert shown[-1] == 0
    longest = max(max(shown) for shown in positions.values())
    assert longest > 1
    figure(
        f"self-service: 20 backups of 5 tenants done after {took:.1f} s; the farthest place in the queue was {longest}"
    )


def test_a_namespace_goes_with_requests_in_every_phase_while_velero_is_down(
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
        assert len(left) == 3
        assert all("foresail.dev/orphaned" in each["metadata"]["annotations"] for each in left)
        assert all(in_bucket(served, name) for name in kept)
        said = served.kubectl("get", "events", "--namespace=velero", "--output=jsonpath={.items[*].reason}").split()
        assert said.count("BackupOrphaned") >= 3
    finally:
        served.fault.cont("velero")
