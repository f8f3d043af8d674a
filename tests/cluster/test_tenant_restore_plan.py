"""`foresail restore plan` with a tenant's token: beside the tenant's real restore, and without a trace."""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest

from bench import plan_oracle
from bench.plan_worlds import RandomWorld
from testbed import Cluster
from tests.cluster.tenants import Tenant, allow_contents, arrive, install, operator

Eventually = Callable[[Callable[[], object], float], None]
Item = tuple[str, str]
SHOP = "planned"
USER = f"system:serviceaccount:{SHOP}:dev"


@pytest.fixture(scope="module")
def served(audited_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, and the operator, which serves the contents of backups."""
    install(audited_velero_cluster, contents=True)
    with operator(audited_velero_cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield audited_velero_cluster


def token_holder(cluster: Cluster, eventually: Eventually) -> Tenant:
    """Return a ServiceAccount of the tenant's namespace, which may edit there and nothing else."""
    arrive(cluster, SHOP, eventually)
    cluster.kubectl("create", "serviceaccount", "dev", f"--namespace={SHOP}")
    binding = ("create", "rolebinding", "dev", "--clusterrole=edit", f"--serviceaccount={SHOP}:dev")
    cluster.kubectl(*binding, f"--namespace={SHOP}")
    return Tenant(cluster.service_account_kubeconfig(SHOP, "dev"), SHOP)


def run_plan(tenant: Tenant, *words: str) -> "subprocess.CompletedProcess[str]":
    """Run the command with the tenant's token."""
    command = [sys.executable, "-m", "foresail", "restore", "plan", *words, f"--namespace={SHOP}", "--output=json"]
    environment = {**os.environ, "KUBECONFIG": str(tenant.kubeconfig)}
    return subprocess.run(command, env=environment, capture_output=True, text=True, check=False, timeout=300)


def planned(tenant: Tenant, *words: str) -> dict[str, Any]:
    """Return the plan as the command prints it."""
    done = run_plan(tenant, *words)
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def outcomes(plan: dict[str, Any]) -> dict[Item, str]:
    return {(each["resource"], each["name"]): each["outcome"] for each in plan["items"]}


def objects() -> list[dict[str, Any]]:
    """Return what the namespace holds: some that a tenant may write, and some that only an administrator may."""
    about = {"name": "web", "namespace": SHOP, "labels": {"app": "web"}}
    pod = {"containers": [{"name": "main", "image": "shop/web:1"}]}
    template = {"metadata": {"labels": {"app": "web"}}, "spec": pod}
    web = {"replicas": 0, "selector": {"matchLabels": {"app": "web"}}, "template": template}
    rule = {"apiGroups": [""], "resources": ["pods"], "verbs": ["get"]}
    kinds: list[tuple[str, str, dict[str, Any]]] = [
        ("v1", "ConfigMap", {"data": {"colour": "blue"}}),
        ("v1", "Secret", {"stringData": {"password": "swordfish"}}),
        ("v1", "Service", {"spec": {"ports": [{"port": 80}], "selector": {"app": "web"}}}),
        ("apps/v1", "Deployment", {"spec": web}),
        ("v1", "ServiceAccount", {}),
        ("v1", "LimitRange", {"spec": {"limits": [{"type": "Container", "defaultRequest": {"cpu": "20m"}}]}}),
        ("v1", "ResourceQuota", {"spec": {"hard": {"secrets": "50"}}}),
        ("rbac.authorization.k8s.io/v1", "Role", {"rules": [rule]}),
        ("networking.k8s.io/v1", "NetworkPolicy", {"spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}),
    ]
    return [{"apiVersion": api, "kind": kind, "metadata": about, **more} for api, kind, more in kinds]


def test_a_tenants_plan_says_what_the_restore_then_does_and_writes_nothing(
    served: Cluster, eventually: Eventually
) -> None:
    dev = token_holder(served, eventually)
    served.apply(*objects())
    dev.back_up("before")
    dev.wait("nonadminbackup/before", "--for=condition=Succeeded")
    served.kubectl("delete", "deployment/web", "secret/web", "role/web", "resourcequota/web", f"--namespace={SHOP}")
    dev.kubectl("patch", "configmap", "web", '--patch={"data":{"colour":"red"}}')

    earlier = len(served.audit(USER))
    refused = run_plan(dev, "--from-backup", "before")
    assert refused.returncode == 1
    assert "ask a cluster administrator for downloads.contents: Allowed" in refused.stderr
    allow_contents(served, SHOP)
    plan = planned(dev, "--from-backup", "before")
    found = outcomes(plan)
    assert found["deployments.apps", "web"] == "create"
    assert found["secrets", "web"] == "create"
    assert found["configmaps", "web"] == "exists"
    assert found["serviceaccounts", "web"] == "unchanged"
    left_out = {each["resource"] for each in plan["leftOut"]}
    assert {"roles.rbac.authorization.k8s.io", "resourcequotas", "limitranges"} <= left_out
    assert "swordfish" not in json.dumps(plan)

    dev.restore("undo", "before")
    dev.wait("nonadminrestore/undo", "--for=condition=Succeeded")
    truth = plan_oracle.resource_list(served, dev.status("nonadminrestore/undo")["veleroRestore"]["name"])
    score = plan_oracle.Score()
    plan_oracle.compare(score, RandomWorld(SHOP, {}, []), plan, truth)
    assert score.mispredicted == []
    assert score.items > score.unpredictable

    dev.kubectl("delete", "deployment/web")
    by_name = planned(dev, "undo")
    assert outcomes(by_name)["deployments.apps", "web"] == "create"
    assert outcomes(by_name)["secrets", "web"] == "unchanged"
    assert by_name == planned(dev, "--from-backup", "before")

    writes = [each for each in served.audit(USER)[earlier:] if each.is_write]
    foresails = {f"{each.verb} {each.resource}" for each in writes}
    assert foresails == {
        "create nonadmindownloadrequests.oadp.openshift.io",
        "delete nonadmindownloadrequests.oadp.openshift.io",
        "create nonadminrestores.oadp.openshift.io",  # the test's own
        "delete deployments.apps",
    }
    assert dev.names("nonadmindownloadrequests") == []
