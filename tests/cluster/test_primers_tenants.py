"""A tenant with `edit` in one strict namespace: what a Primer makes there is no more than the namespace could have."""

import json
from collections.abc import Callable
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

from testbed import Cluster
from tests.cluster import operators, primers
from tests.cluster.schedules import Eventually

HOME = "leased"
PODS = f"/api/v1/namespaces/{HOME}/pods?labelSelector=foresail.dev%2Fprimer"
UNSAFE = {
    "name": "work",
    "image": "work:1",
    "resources": {"requests": {"cpu": "2"}},
    "securityContext": {"runAsUser": 0, "allowPrivilegeEscalation": True},
}


def quota(name: str, hard: dict[str, str], **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    about = {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": {"name": name, "namespace": HOME}}
    return {**about, "spec": {"hard": hard, **spec}}


def placeholders_allowed(count: int) -> dict[str, Any]:
    """Return a quota of an administrator for pods of the placeholders' priority class alone."""
    of = {"scopeName": "PriorityClass", "operator": "In", "values": ["foresail-placeholder"]}
    return quota("placeholders", {"pods": str(count)}, scopeSelector={"matchExpressions": [of]})


def test_a_tenant_gets_by_a_primer_no_pod_that_the_namespace_could_not_have(
    cluster: Cluster,
    tmp_path: Path,
    eventually: Eventually,
    kubectl_as: Callable[..., CompletedProcess[str]],
) -> None:
    primers.install(cluster)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    cluster.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME, "labels": labels}},
        quota("all", {"requests.cpu": "8"}),
        placeholders_allowed(0),
        {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "tenant", "namespace": HOME},
            "roleRef": role,
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "lessee"}],
        },
    )
    tenant = cluster.user_kubeconfig("lessee")

    def asks(*objects: dict[str, Any]) -> CompletedProcess[str]:
        manifest = tmp_path / "asked.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        return kubectl_as(tenant, "apply", "--validate=strict", f"--filename={manifest}")

    fire = primers.next_minute(3600)
    when = f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"
    jobs = {
        name: primers.cron_job(name, when, "none", HOME, containers=[UNSAFE], hostNetwork=True)
        for name in ("modest", "greedy")
    }
    greedy = {"resources": {"requests": {"cpu": "4"}}, "replicas": 2}
    with operators.running(cluster, tmp_path, *primers.FLAGS):
        eventually(lambda: not asks(jobs["modest"], primers.primer("modest", "2h", HOME)).returncode, 60)  # aggregated
        eventually(lambda: primers.primed(cluster, "modest").get("reason") == "QuotaTooSmall", 60)
        assert "ResourceQuota placeholders allows 0 of pods" in primers.primed(cluster, "modest")["message"]
        assert cluster.listed(PODS) == []

        cluster.apply(placeholders_allowed(3))
        eventually(lambda: cluster.listed(PODS), 60)
        (pod,) = cluster.listed(PODS)
        (container,) = pod["spec"]["containers"]
        assert container["image"] == "pause", "nothing of the target's images runs"
        assert container["securityContext"]["allowPrivilegeEscalation"] is False
        assert pod["spec"]["securityContext"]["runAsNonRoot"] is True
        assert "hostNetwork" not in pod["spec"]
        assert pod["spec"]["priorityClassName"] == "foresail-placeholder"
        assert pod["spec"]["automountServiceAccountToken"] is False

        assert asks(jobs["greedy"], primers.primer("greedy", "2h", HOME, template=greedy)).returncode == 0
        eventually(lambda: primers.primed(cluster, "greedy").get("reason") == "QuotaTooSmall", 60)
        assert "ResourceQuota all allows 8 of requests.cpu" in primers.primed(cluster, "greedy")["message"]
        assert len(cluster.listed(PODS)) == 1

        for field in ("priorityClassName", "image", "nodeName"):
            more = asks(primers.primer("modest", "2h", HOME, template={field: "mine"}))
            assert "unknown field" in more.stderr, more.stderr
        elsewhere = asks(primers.primer("modest", "2h", "default"))
        assert "forbidden" in elsewhere.stderr
    cluster.kubectl("delete", "namespace", HOME, "--wait=false")
