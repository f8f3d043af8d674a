"""Permissions can be tested: anyone can be played, and nobody gets more than their Roles say."""

import subprocess
from collections.abc import Callable

import pytest

from testbed import Cluster, TestbedError

KubectlAs = Callable[..., subprocess.CompletedProcess[str]]


def test_a_user_with_a_certificate_has_its_name_its_groups_and_no_right(
    cluster: Cluster, kubectl_as: KubectlAs
) -> None:
    kubeconfig = cluster.user_kubeconfig("ann/of+shop", ["team:shop", "team:web"])
    output = "--output=jsonpath={.status.userInfo.username} {.status.userInfo.groups}"
    who = kubectl_as(kubeconfig, "auth", "whoami", output)
    assert who.stdout == 'ann/of+shop ["team:shop","team:web","system:authenticated"]'
    denied = kubectl_as(kubeconfig, "get", "secrets")
    assert 'User "ann/of+shop" cannot list resource "secrets"' in denied.stderr


def test_a_service_account_may_do_what_its_role_says_and_nothing_else(
    cluster: Cluster, kubectl_as: KubectlAs, eventually: Callable[[Callable[[], object], float], None]
) -> None:
    cluster.kubectl("create", "serviceaccount", "reader")
    cluster.kubectl("create", "role", "reader", "--verb=get,list", "--resource=configmaps")
    cluster.kubectl("create", "rolebinding", "reader", "--role=reader", "--serviceaccount=default:reader")
    kubeconfig = cluster.service_account_kubeconfig("default", "reader")
    listed = ("get", "configmaps", "--output=name")  # the API server takes note of a new right a moment later
    eventually(lambda: "kube-root-ca.crt" in kubectl_as(kubeconfig, *listed).stdout, 60)
    for denied in (["get", "secrets"], ["get", "configmaps", "--namespace=kube-system"], ["delete", "configmap", "x"]):
        assert "Forbidden" in kubectl_as(kubeconfig, *denied).stderr


def test_a_service_account_that_does_not_exist_gets_no_token(cluster: Cluster) -> None:
    with pytest.raises(TestbedError, match=r"no token for ServiceAccount default/nobody: 404"):
        cluster.service_account_token("default", "nobody")
