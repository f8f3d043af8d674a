"""Findings about the life of requests, each reproduced by a tenant with the role `edit` on the real cluster."""

import json
import time
from collections.abc import Iterator

import pytest

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
    quotas,
)


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with Velero, both charts, and the operator at work."""
    install(velero_cluster)
    with operator(velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield velero_cluster


def queue_restore(cluster: Cluster, namespace: str, eventually: Eventually) -> Tenant:
    """Stop Velero while a restore of a complete backup waits for it."""
    team = arrive(cluster, namespace, eventually)
    team.back_up("done")
    team.wait("nonadminbackup/done", "--for=condition=Succeeded")
    team.restore("first", "done")  # so that the operator knows what the backup holds, which it reads through Velero
    team.wait("nonadminrestore/first", "--for=condition=Succeeded")
    team.kubectl("delete", "nonadminrestore", "first")
    eventually(lambda: not of_namespace(cluster, "restores", namespace), 60)
    cluster.fault.stop("velero")
    team.restore("back", "done")
    team.wait("nonadminrestore/back", "--for=jsonpath={.status.phase}=Created")
    assert len(of_namespace(cluster, "restores", namespace)) == 1
    return team


def run_velero_again(cluster: Cluster, namespace: str, eventually: Eventually) -> None:
    """Let Velero work on what waits, and return when it has caught up."""
    cluster.fault.cont("velero")
    marker = f"after-{namespace}"
    cluster.velero("backup", "create", marker, "--include-namespaces=kube-public", "--wait")
    eventually(lambda: not of_namespace(cluster, "restores", namespace), 60)


def test_finding_1_1_a_queued_restore_does_not_reach_the_next_team_of_that_namespace(
    served: Cluster, eventually: Eventually
) -> None:
    try:
        queue_restore(served, "handed-on", eventually)
        served.kubectl("delete", "namespace", "handed-on", "--timeout=90s")
        assert not of_namespace(served, "restores", "handed-on")
        served.kubectl("create", "namespace", "handed-on")
    finally:
        run_velero_again(served, "handed-on", eventually)
    left = served.kubectl("get", "configmaps", "--namespace=handed-on", "--output=name").split()
    assert "configmap/settings" not in left


def test_finding_1_1_a_queued_restore_does_not_resurrect_its_namespace(served: Cluster, eventually: Eventually) -> None:
    try:
        team = queue_restore(served, "buried", eventually)
        # Without its finalizer the request is deleted unseen: the sweep finds the Velero Restore by its record.
        team.kubectl("patch", "nonadminrestore", "back", "--type=merge", '--patch={"metadata":{"finalizers":null}}')
        team.kubectl("delete", "nonadminrestore", "back")
        served.kubectl("delete", "namespace", "buried", "--timeout=90s")
        eventually(lambda: not of_namespace(served, "restores", "buried"), 30)
    finally:
        run_velero_again(served, "buried", eventually)
    assert "buried" not in served.kubectl("get", "namespaces", "--output=jsonpath={.items[*].metadata.name}").split()
    said = ("get", "events", f"--namespace={VELERO}", "--output=jsonpath={.items[*].reason}")
    eventually(lambda: "NamespaceGone" in served.kubectl(*said).split(), 60)


@pytest.mark.parametrize("gone", ["access", "policy"])
def test_a_restore_that_velero_has_not_begun_is_withdrawn_with_its_requesters_access(
    served: Cluster, eventually: Eventually, gone: str
) -> None:
    name = f"withdrawn-{gone}"
    try:
        queue_restore(served, name, eventually)
        if gone == "policy":
            served.kubectl("label", "namespace", name, "foresail.dev/self-service-")
        else:
            served.kubectl("delete", "rolebindings", "--all", f"--namespace={name}")
        eventually(lambda: not of_namespace(served, "restores", name), 150)
        left = served.kubectl("get", "nonadminrestore", "back", f"--namespace={name}", "--output=json")
        assert condition(json.loads(left)["status"], "Succeeded")[:2] == ("False", "RestoreWithdrawn")
    finally:
        run_velero_again(served, name, eventually)


def reason(tenant: Tenant, target: str) -> str:
    return condition(tenant.status(target), "Accepted")[1]


def test_finding_5_a_corrected_request_that_then_waits_goes_ahead(served: Cluster, eventually: Eventually) -> None:
    quotas("corrected", served, stored=0)
    bea = arrive(served, "corrected", eventually)
    bea.back_up("mine", includedNamespaces=["velero"])
    bea.wait("nonadminbackup/mine", "--for=jsonpath={.status.phase}=BackingOff")
    bea.wants("mine", backupSpec={"includedNamespaces": None})
    eventually(lambda: reason(bea, "nonadminbackup/mine") == "QuotaExceeded", 30)
    assert bea.status("nonadminbackup/mine")["phase"] == "BackingOff", "a phase is never left for an earlier one"
    quotas("corrected", served, stored=1)
    bea.wait("nonadminbackup/mine", "--for=condition=Succeeded")


def test_finding_5_what_a_policy_refuses_goes_ahead_when_the_policy_allows_it(
    served: Cluster, eventually: Eventually
) -> None:
    cay = arrive(served, "allowed-later", eventually)
    cay.back_up("mine", storageLocation="default")
    cay.wait("nonadminbackup/mine", "--for=jsonpath={.status.phase}=BackingOff")
    assert reason(cay, "nonadminbackup/mine") == "PolicyViolation"
    selector = {"matchLabels": {"kubernetes.io/metadata.name": "allowed-later"}}
    spec = {"namespaceSelector": selector, "backup": {"allowed": {"storageLocations": ["default"]}}}
    meta = {"name": "allowed-later"}
    served.apply({"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta, "spec": spec})
    cay.wait("nonadminbackup/mine", "--for=condition=Succeeded")


def test_finding_5_a_restore_that_comes_before_its_backup_waits_for_it(served: Cluster, eventually: Eventually) -> None:
    dee = arrive(served, "reversed", eventually)
    dee.restore("back", "daily")
    eventually(lambda: reason(dee, "nonadminrestore/back") == "BackupNotReady", 30)
    assert dee.status("nonadminrestore/back")["phase"] == "New"
    dee.back_up("daily")
    dee.wait("nonadminrestore/back", "--for=condition=Succeeded")


def test_finding_5_an_administrators_restore_does_not_run_old_requests_again(
    served: Cluster, eventually: Eventually
) -> None:
    eli = arrive(served, "rebuilt", eventually)
    eli.back_up("daily")
    eli.wait("nonadminbackup/daily", "--for=condition=Succeeded")
    eli.restore("back", "daily")
    eli.wait("nonadminrestore/back", "--for=condition=Succeeded")
    served.fault.restart("velero")  # it reads once in five minutes which kinds there are, and ours are new
    served.velero("backup", "create", "all-of-rebuilt", "--include-namespaces=rebuilt", "--wait")
    served.kubectl("delete", "namespace", "rebuilt", "--timeout=90s")
    old = {each["metadata"]["name"] for each in of_namespace(served, "backups", "rebuilt")}
    served.velero("restore", "create", "bring-back", "--from-backup=all-of-rebuilt", "--wait")
    for target in ("nonadminbackup/daily", "nonadminrestore/back"):
        eventually(lambda target=target: reason(eli, target) == "RestoredFromBackup", 30)  # type: ignore[misc]
    assert {each["metadata"]["name"] for each in of_namespace(served, "backups", "rebuilt")} == old
    eli.kubectl("label", "nonadminbackup", "daily", "velero.io/restore-name-")
    eli.wait("nonadminbackup/daily", "--for=condition=Succeeded")
    new = {each["metadata"]["name"] for each in of_namespace(served, "backups", "rebuilt")}
    assert len(new - old) == 1
    assert len(of_namespace(served, "restores", "rebuilt")) <= 1, "the old one; nothing ran again"


@pytest.mark.parametrize("flag", ["deleteBackup", "forceDeleteBackup"])
def test_finding_1_8_a_policy_protects_the_last_good_backup(served: Cluster, eventually: Eventually, flag: str) -> None:
    name = f"guarded-{flag.lower()}"
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    spec = {"namespaceSelector": selector, "deletion": {"keepLastGood": 1}}
    policy = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": {"name": name}}
    served.apply({**policy, "spec": spec})
    gus = arrive(served, name, eventually)
    gus.back_up("first")
    gus.wait("nonadminbackup/first", "--for=condition=Succeeded")
    gus.wants("first", **{flag: True})
    gus.wait("nonadminbackup/first", "--for=condition=Deleting=false")
    assert condition(gus.status("nonadminbackup/first"), "Deleting")[1] == "DeletionProtected"
    assert len(of_namespace(served, "backups", name)) == 1
    time.sleep(1)  # Velero's times are in seconds, and of two in the same one neither is the newer
    gus.back_up("second")
    gus.wait("nonadminbackup/second", "--for=condition=Succeeded")
    if flag == "deleteBackup":
        gus.wait("nonadminbackup/first", "--for=delete", seconds=120)
    else:  # the data is still in the bucket, so its request stays and counts
        gus.wait("nonadminbackup/first", "--for=condition=Deleting", seconds=120)
        assert condition(gus.status("nonadminbackup/first"), "Deleting")[1] == "ForceDeleted"


def test_an_expired_backup_that_velero_has_not_deleted_neither_counts_nor_is_restored(
    served: Cluster, eventually: Eventually
) -> None:
    """Velero deletes what has expired once an hour."""
    quotas("brief", served, stored=1)  # a policy that has no shortest ttl
    kim = arrive(served, "brief", eventually)
    kim.back_up("first", ttl="60s")
    kim.wait("nonadminbackup/first", "--for=jsonpath={.status.phase}=Created", seconds=60)
    kim.back_up("second")
    kim.wait("nonadminbackup/second", "--for=condition=Accepted=false", seconds=60)
    assert condition(kim.status("nonadminbackup/second"), "Accepted")[1] == "QuotaExceeded"
    kim.wait("nonadminbackup/second", "--for=condition=Succeeded", seconds=240)
    assert len(of_namespace(served, "backups", "brief")) == 2
    kim.restore("back", "first")
    kim.wait("nonadminrestore/back", "--for=jsonpath={.status.phase}=BackingOff", seconds=60)
    assert condition(kim.status("nonadminrestore/back"), "Accepted")[1] == "BackupExpired"
    assert not of_namespace(served, "restores", "brief")
