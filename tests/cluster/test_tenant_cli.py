"""`foresail backup` and `foresail restore` as their own processes, run by a tenant with `edit` in one namespace."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import pytest

from foresail.api.policy import OPT_IN_LABEL
from testbed import Cluster
from tests.cluster.tenants import (
    Eventually,
    Tenant,
    allow_annotations,
    arrive,
    as_velero,
    condition,
    in_bucket,
    install,
    of_namespace,
    operator,
)
from tests.cluster.test_schedule_cli import Said


@pytest.fixture(scope="module")
def served(velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator at work."""
    install(velero_cluster)
    with operator(velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield velero_cluster


@dataclass(frozen=True)
class Foresail:
    tenant: Tenant

    def __call__(self, *words: str) -> Said:
        command = [sys.executable, "-m", "foresail", *words]
        environment = {**os.environ, "KUBECONFIG": str(self.tenant.kubeconfig)}
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def done(self, *words: str) -> Said:
        """Run a command that must succeed."""
        said = self(*words)
        assert said.code == 0, said.err
        return said


def command_line(cluster: Cluster, namespace: str, eventually: Eventually) -> Foresail:
    """Return the command line of a new tenant, whose kube context is in the tenant's own namespace."""
    tenant = arrive(cluster, namespace, eventually)
    tenant.kubectl("config", "set-context", "--current", f"--namespace={namespace}")
    return Foresail(tenant)


def test_a_tenant_backs_up_restores_and_deletes_with_the_command_line_alone(
    served: Cluster, eventually: Eventually
) -> None:
    ann = command_line(served, "shop", eventually)
    said = ann.done("backup", "create", "first", "--labels", "by=ann", "--ttl", "24h", "--wait", "--timeout", "300s")
    assert said.out == ""
    assert "NonAdminBackup shop/first created.\n" in said.err
    assert "NonAdminBackup shop/first: Backup completed" in said.err

    one = ann.done("backup", "get", "first", "-o", "json").json
    assert one["spec"] == {"backupSpec": {"ttl": "24h0m0s"}}
    assert ann.done("backup", "get", "-l", "by=ann", "-o", "name").out == ("nonadminbackup.oadp.openshift.io/first\n")
    row = ann.done("backup", "get").out.splitlines()[1].split()
    assert row[:3] == ["first", "Completed", "in"], "no position in the queue"
    name = one["status"]["veleroBackup"]["name"]
    described = ann.done("backup", "describe", "first").out
    assert name in described
    assert "  ttl: 24h0m0s" in described
    explained = ann.done("backup", "explain", "first").out.splitlines()
    assert explained[0] == "NonAdminBackup shop/first: complete"
    assert "→" not in "".join(explained)
    assert explained[-1].endswith("foresail restore create NAME --from-backup first -n shop")

    ann.tenant.kubectl("delete", "configmap", "settings")
    said = ann.done("restore", "create", "back", "--from-backup", "first", "--wait", "--timeout", "300s")
    assert "NonAdminRestore shop/back: Restore completed" in said.err
    assert re.search(r"^  created +1  ConfigMap settings$", said.err, re.MULTILINE)
    assert re.search(r"^  left as they are +0$", said.err, re.MULTILINE)
    assert ann.tenant.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
    assert ann.done("restore", "get").out.splitlines()[1].split()[:2] == ["back", "Completed"]
    ann.done("restore", "wait", "back")
    ann.done("restore", "delete", "back", "--confirm", "--wait", "--timeout", "300s")
    assert ann.done("restore", "get").err == "No restores found in namespace shop\n"

    unconfirmed = ann("backup", "delete", "first")
    assert (unconfirmed.code, unconfirmed.out) == (2, "")
    assert "hint: add --confirm" in unconfirmed.err
    said = ann.done("backup", "delete", "first", "--confirm", "--wait", "--timeout", "300s")
    assert said.err.endswith("NonAdminBackup shop/first is deleted.\n")
    assert ann.tenant.names("nonadminbackup") == []
    assert in_bucket(served, name) == []


def test_a_bad_change_is_undone_and_each_restore_says_what_it_did(served: Cluster, eventually: Eventually) -> None:
    sue = command_line(served, "sorry", eventually)
    sue.done("backup", "create", "before", "--wait", "--timeout", "300s")
    sue.tenant.kubectl("patch", "configmap", "settings", "--type=merge", '--patch={"data":{"currency":"USD"}}')
    sue.tenant.kubectl("create", "configmap", "rogue")
    wait = ("--from-backup", "before", "--wait", "--timeout", "300s")
    said = sue.done("restore", "create", "gentle", *wait)
    assert re.search(r"^  left as they are +1  ConfigMap settings$", said.err, re.MULTILINE)
    assert re.search(r"^  not in the backup +1  ConfigMap rogue$", said.err, re.MULTILINE)
    assert "hint: 1 object exists and differs from the backup" in said.err
    assert sue.done("restore", "get", "gentle").out.endswith("1 left as they are\n")
    assert sue.tenant.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "USD"

    said = sue.done("restore", "create", "firm", *wait, "--existing-resource-policy", "update")
    assert re.search(r"^  changed back +[1-9]\d*  .*ConfigMap settings", said.err, re.MULTILINE)
    assert sue.tenant.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
    assert "configmap/rogue" in sue.tenant.names("configmap"), "what is new stays"


def test_a_tenant_reads_the_log_and_the_results_and_leaves_nothing_behind(
    served: Cluster, eventually: Eventually
) -> None:
    amy = command_line(served, "reader", eventually)
    allow_annotations("reader", served)
    containers = [{"name": "web", "image": "web"}]
    hook = {"pre.hook.backup.velero.io/command": '["/bin/false"]'}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "front", "annotations": hook}}
    as_velero(served, "reader").kubectl("create", "--filename=-", body={**pod, "spec": {"containers": containers}})
    amy.tenant.wait("pod/front", "--for=condition=Ready", seconds=120)

    said = amy("backup", "create", "partial", "--wait", "--timeout", "300s")
    assert said.code == 1
    cause = "partially failed: 1 error, 1 failed hook. 1 error without a namespace. Read all with foresail backup logs"
    assert f"{cause} partial -n reader --results" in said.err, "who waits hears the cause too"
    read = amy.done("backup", "logs", "partial", "--timeout", "300s")
    name = amy.done("backup", "get", "partial", "-o", "json").json["status"]["veleroBackup"]["name"]
    assert f"backup=velero/{name}" in read.out
    found = amy.done("backup", "logs", "partial", "--results", "--timeout", "300s").out.splitlines()
    assert found[0].split() == ["LEVEL", "WHERE", "WHAT"]
    assert found[1].startswith("error   velero   Error executing hook: ")

    kinds = amy.done("backup", "contents", "partial", "--timeout", "300s").out.splitlines()
    assert ["ConfigMap", "v1"] in [line.split()[:2] for line in kinds]
    names = amy.done("backup", "contents", "partial", "--names", "--timeout", "300s").out.splitlines()
    assert ["ConfigMap", "settings"] in [line.split() for line in names]
    amy.tenant.kubectl("create", "configmap", "fresh")
    amy.tenant.kubectl("delete", "configmap", "settings")
    diff = amy.done("backup", "contents", "partial", "--diff", "--timeout", "300s")
    rows = [line.split() for line in diff.out.splitlines()[1:]]
    assert [row for row in rows if row[1] == "ConfigMap"] == [
        ["gone", "ConfigMap", "settings"],
        ["new", "ConfigMap", "fresh"],
    ]
    assert "kinds were not compared" in diff.err, "the role edit does not list every kind"
    told = amy.done("backup", "contents", "partial", "--diff", "-o", "json", "--timeout", "300s").json
    assert {"change": "gone", "kind": "ConfigMap", "name": "settings"} in told["diff"]["changes"]
    assert "Volumes:" in amy.done("backup", "describe", "partial", "--details", "--timeout", "300s").out

    amy.tenant.kubectl("delete", "pod", "front", "--now")
    amy.done("restore", "create", "back", "--from-backup", "partial", "--wait", "--timeout", "300s")
    assert "Starting restore" in amy.done("restore", "logs", "back", "--timeout", "300s").out
    assert "Volumes:" in amy.done("restore", "describe", "back", "--details", "--timeout", "300s").out
    results = amy.done("restore", "logs", "back", "--results", "--timeout", "300s").out
    assert "error " not in results

    missing = amy("backup", "logs", "nope")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("error: NonAdminBackup reader/nope does not exist\nhint: ")
    assert amy.tenant.names("nonadmindownloadrequests") == []


def test_three_tenants_at_once_back_up_damage_restore_and_delete_with_the_command_line(
    served: Cluster, eventually: Eventually, figure: Callable[[str], None]
) -> None:
    lines = [command_line(served, name, eventually) for name in ("north", "east", "south")]
    patience = ("--wait", "--timeout", "300s")

    def live(line: Foresail) -> str:
        tenant = line.tenant
        tenant.kubectl("create", "configmap", "owner", f"--from-literal=name={tenant.namespace}")
        line.done("backup", "create", "daily", *patience)  # the same name in each namespace
        made: str = line.done("backup", "get", "daily", "-o", "json").json["status"]["veleroBackup"]["name"]
        assert in_bucket(served, made)
        tenant.kubectl("delete", "configmap", "settings", "owner")
        line.done("restore", "create", "back", "--from-backup", "daily", *patience)
        assert tenant.kubectl("get", "configmap", "owner", "--output=jsonpath={.data.name}") == tenant.namespace
        assert tenant.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
        line.done("backup", "delete", "daily", "--confirm", *patience)
        line.done("restore", "delete", "back", "--confirm", *patience)
        return made

    began = time.monotonic()
    with ThreadPoolExecutor(len(lines)) as pool:
        made = list(pool.map(live, lines))
    took = time.monotonic() - began
    assert len(set(made)) == len(lines)
    for line, name in zip(lines, made, strict=True):
        assert not in_bucket(served, name)
        for kind in ("backups", "restores"):
            assert not of_namespace(served, kind, line.tenant.namespace)
    figure(f"self-service: three tenants back up, damage, restore and delete with the command line: {took:.1f} s")


def test_what_blocks_a_backup_is_reported_with_what_to_do(served: Cluster, eventually: Eventually) -> None:
    bob = command_line(served, "held", eventually)
    said = bob("backup", "create", "odd", "--include-resources", "pods,pods[", "--wait", "--timeout", "300s")
    assert said.code == 1
    assert "error: NonAdminBackup held/odd was refused: spec.backupSpec.includedResources contains" in said.err
    assert "hint: correct the field that the message names, with kubectl edit nonadminbackup odd -n held" in said.err
    assert "→ blocks       it is accepted" in bob.done("backup", "explain", "odd").out

    said = bob("restore", "create", "back", "--from-backup", "none", "--wait", "--timeout", "10s")
    assert said.code == 1
    assert "NonAdminBackup none does not exist in namespace held" in said.err

    bob.done("backup", "create", "good", "--wait", "--timeout", "300s")
    served.fault.stop("velero")
    try:
        bob.done("backup", "create", "late")
        bob.tenant.wait("nonadminbackup/late", "--for=jsonpath={.status.phase}=Created")
        said = bob("backup", "wait", "late", "--timeout", "4s")
        assert said.code == 1
        assert "timed out; it is Created" in said.err
        assert "hint: see what blocks it with foresail backup explain late -n held" in said.err
        assert bob.done("backup", "explain", "late", "-o", "json").json[0]["reason"] == "Waiting"
        said = bob.done("backup", "delete", "good", "--force", "--confirm")
        assert said.err.startswith("warning: --force deletes the backup and leaves its data in the bucket")
        late = bob.done("backup", "get", "late", "-o", "json").json["status"]["veleroBackup"]["name"]
        eventually(lambda: [each["metadata"]["name"] for each in of_namespace(served, "backups", "held")] == [late], 60)
        assert "ForceDeleted" in bob.done("backup", "explain", "good", "-o", "json").out
    finally:
        served.fault.cont("velero")

    missing = bob("backup", "get", "nope")
    assert missing.err == (
        "error: NonAdminBackup held/nope does not exist\nhint: list what exists: foresail backup get -n held\n"
    )
    elsewhere = bob("backup", "get", "-n", "default")
    assert elsewhere.code == 1
    assert "you may not list nonadminbackups.oadp.openshift.io in namespace default" in elsewhere.err

    served.kubectl("label", "namespace", "held", f"{OPT_IN_LABEL}-")
    eventually(lambda: is_closed(bob), 60)
    said = bob("backup", "create", "closed", "--wait", "--timeout", "300s")
    assert said.code == 1
    assert "Self-service is not enabled in namespace held" in said.err
    assert "hint: ask a cluster administrator to enable it" in said.err


def is_closed(line: Foresail) -> bool:
    """Whether the operator knows that no policy is for the namespace: a backup that is refused anyway says why."""
    line.tenant.kubectl("delete", "nonadminbackup", "canary", "--ignore-not-found")
    line.tenant.back_up("canary", includedNamespaces=["default"])
    line.tenant.wait("nonadminbackup/canary", "--for=condition=Accepted=false")
    return condition(line.tenant.status("nonadminbackup/canary"), "Accepted")[1] == "NoPolicy"


def test_a_backup_without_any_requested_object_is_no_success(served: Cluster, eventually: Eventually) -> None:
    eve = command_line(served, "hollow", eventually)
    said = eve("backup", "create", "nothing", "-l", "app=nope", "--wait", "--timeout", "300s")
    assert said.code == 1, said.err
    assert "NonAdminBackup hollow/nothing: Completed, but nothing was backed" in said.err
    assert "hint: create another backup with a --selector" in said.err

    said = eve("backup", "create", "typo", "--include-resources", "deploymnts", "--wait", "--timeout", "300s")
    assert said.code == 1
    assert "serves none of the kinds to include: deploymnts (did you mean deployments.apps?)" in said.err
    assert eve.tenant.names("nonadminbackup") == ["nonadminbackup.oadp.openshift.io/nothing"]

    said = eve.done("backup", "create", "half", "--include-resources", "deploymnts,cm", "--wait", "--timeout", "300s")
    assert "hint: not in the backup (not served by the cluster): deploymnts (did you mean" in said.err
    said_of_it = condition(eve.tenant.status("nonadminbackup/half"), "DataIncomplete")
    assert said_of_it[:2] == ("True", "KindsNotServed")
    assert "does not serve deploymnts, so" in said_of_it[2]

    eve.tenant.back_up("applied", includedResources=["deploymnts"])  # as kubectl does, without a word of warning
    eve.tenant.wait("nonadminbackup/applied", "--for=condition=Succeeded", seconds=120)
    assert condition(eve.tenant.status("nonadminbackup/applied"), "DataIncomplete")[1] == "NothingBackedUp"

    eve.tenant.kubectl("label", "configmap", "settings", "app=yes")
    eve.done(
        *("backup", "create", "one", "-l", "app=yes", "--include-cluster-resources=false"), "--wait", "--timeout=300s"
    )
    assert condition(eve.tenant.status("nonadminbackup/one"), "DataIncomplete") == ("", "", "")
