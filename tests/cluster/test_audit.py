import subprocess
from collections.abc import Callable

import pytest

from testbed import Cluster, TestbedError


def test_the_audit_log_tells_what_one_user_asked_in_order_and_no_one_else(
    cluster: Cluster, kubectl_as: Callable[..., subprocess.CompletedProcess[str]]
) -> None:
    cluster.kubectl("create", "serviceaccount", "asker")
    kubeconfig = cluster.service_account_kubeconfig("default", "asker")
    paths = [
        "/api/v1/namespaces/default/configmaps/kube-root-ca.crt",
        "/apis/apps/v1/namespaces/kube-system/deployments?limit=5",
        "/version",
    ]
    for path in paths:
        kubectl_as(kubeconfig, "get", "--raw", path)
    found = cluster.audit("system:serviceaccount:default:asker")
    assert [(r.verb, r.resource, r.namespace, r.name, r.uri, r.code, r.ended) for r in found] == [
        ("get", "configmaps", "default", "kube-root-ca.crt", paths[0], 403, True),
        ("list", "deployments.apps", "kube-system", "", paths[1], 403, True),
        ("get", "", "", "", paths[2], 200, True),
    ]
    assert cluster.audit("nobody") == []


def test_without_an_audit_log_the_answer_says_how_to_get_one(velero_cluster: Cluster) -> None:
    with pytest.raises(TestbedError, match="--audit"):
        velero_cluster.audit("admin")
