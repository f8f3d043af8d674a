"""RestoreChecks of tenants on real Velero: with a tenant's token, of the tenant's own backups only."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench.restore_checks import FLAGS
from bench.restore_drill import API, Drill, usual, wait
from testbed import Cluster
from tests.cluster.operators import running
from tests.cluster.tenants import Tenant, arrive, condition, install, operator

Eventually = Callable[[Callable[[], object], float], None]
CHECK = "restorecheck.foresail.dev/own"


@pytest.fixture(scope="module")
def drill(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Drill]:
    """Velero with both charts, the operator of self-service and the one of restore checks."""
    folder = tmp_path_factory.mktemp("operators")
    install(own_velero_cluster, checks=True)
    with (
        operator(own_velero_cluster, folder / "log"),
        running(own_velero_cluster, folder, *FLAGS, "--tenant-checks"),
    ):
        yield Drill(own_velero_cluster)


def allow(drill: Drill, namespace: str, **rules: object) -> None:
    """Let a namespace have RestoreChecks."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    spec = {"namespaceSelector": selector, "restoreChecks": {"maximum": 1, "minimumInterval": "1m", **rules}}
    drill.cluster.apply(
        {"apiVersion": API, "kind": "SelfServicePolicy", "metadata": {"name": f"of-{namespace}"}, "spec": spec}
    )


def check(**spec: object) -> dict[str, Any]:
    body = {"backups": {"nonAdminBackups": {}}, **spec}
    return {"apiVersion": API, "kind": "RestoreCheck", "metadata": {"name": "own"}, "spec": body}


def backed_up(drill: Drill, namespace: str, eventually: Eventually) -> Tenant:
    """Return a tenant with a backup of some objects."""
    tenant = arrive(drill.cluster, namespace, eventually)
    allow(drill, namespace)
    drill.make(namespace, *usual())
    tenant.back_up("monday", snapshotVolumes=False)
    tenant.wait("nonadminbackup/monday", "--for=jsonpath={.status.veleroBackup.status.phase}=Completed")
    return tenant


def leftovers(drill: Drill) -> list[str]:
    """Return what checks have left beside evidence and counted starts."""
    return [each for each in drill.leftovers() if not each.endswith("-start")]


def foresail(tenant: Tenant, *words: str) -> str:
    """Run the command line with the tenant's kubeconfig."""
    environment = {**os.environ, "KUBECONFIG": str(tenant.kubeconfig)}
    command = [sys.executable, "-m", "foresail", *words, f"--namespace={tenant.namespace}"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def test_a_tenant_checks_its_own_backup_and_reads_the_result_with_its_own_token(
    drill: Drill, eventually: Eventually
) -> None:
    tenant = backed_up(drill, "red", eventually)
    drill.add_to_list(tenant.status("nonadminbackup/monday")["veleroBackup"]["name"], "v1/ConfigMap", "red/ghost")
    tenant.kubectl("create", "--filename=-", body=check())
    tenant.wait(CHECK, "--for=jsonpath={.status.last.result}=Fail")
    last = tenant.status(CHECK)["last"]
    assert (last["reason"], last["namespaces"]) == ("ItemsMissing", 1)
    assert [each["message"] for each in last["problems"]] == [
        "ConfigMap red/ghost is in the backup and was not restored"
    ]
    assert "ItemsMissing" in foresail(tenant, "check", "get")
    assert "ConfigMap red/ghost is in the backup" in foresail(tenant, "check", "explain", "own")
    drill.cluster.get("configmap", last["evidence"], "--namespace=velero")
    wait(lambda: not leftovers(drill), "the removal of the sandbox")
    tenant.back_up("tuesday", snapshotVolumes=False)
    tenant.wait(CHECK, "--for=jsonpath={.status.last.result}=Pass")
    last = tenant.status(CHECK)["last"]
    assert last["itemsFound"] == last["itemsExpected"] >= len(usual())
    wait(lambda: not leftovers(drill), "the removal of the sandbox")


def test_the_api_server_refuses_what_is_not_for_tenants(drill: Drill, eventually: Eventually) -> None:
    tenant = arrive(drill.cluster, "green", eventually)
    refused: tuple[dict[str, object], ...] = ({"schedule": "nightly"}, {"selector": {}})
    for chosen in refused:
        with pytest.raises(AssertionError, match="others nonAdminSchedule or nonAdminBackups"):
            tenant.kubectl("create", "--filename=-", body=check(backups=chosen))
    with pytest.raises(AssertionError, match=r"set one field of spec\.backups"):
        tenant.kubectl("create", "--filename=-", body=check(backups={"nonAdminBackups": {}, "schedule": "nightly"}))
    tenant.kubectl("create", "--filename=-", body=check())
    patch = json.dumps({"status": {"last": None}})
    with pytest.raises(AssertionError, match="forbidden"):
        tenant.kubectl("patch", CHECK, "--subresource=status", "--type=merge", f"--patch={patch}")
    edit = json.dumps({"spec": {"backups": {"nonAdminBackups": None, "schedule": "nightly"}}})
    with pytest.raises(AssertionError, match="others nonAdminSchedule or nonAdminBackups"):
        tenant.kubectl("patch", CHECK, "--type=merge", f"--patch={edit}")
    eventually(lambda: condition(tenant.status(CHECK), "Ready")[1] == "NotAllowed", 60)


def test_a_namespace_that_is_deleted_during_its_check_is_gone_and_so_is_the_sandbox(
    drill: Drill, eventually: Eventually
) -> None:
    tenant = backed_up(drill, "blue", eventually)
    drill.cluster.fault.stop("velero")
    try:
        tenant.kubectl("create", "--filename=-", body=check())
        eventually(lambda: tenant.status(CHECK).get("run"), 60)
    finally:
        drill.cluster.fault.cont("velero")
    drill.cluster.kubectl("delete", "namespace", "blue", "--wait", "--timeout=120s")
    wait(lambda: not leftovers(drill), "the removal of the sandbox")
