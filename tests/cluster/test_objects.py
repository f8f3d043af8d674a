"""The testbed's own `get` and `apply`, beside kubectl's."""

import json
from typing import Any

import pytest

from foresail.plan import Kind
from testbed import Cluster, TestbedError
from tests.cluster.kinds import schemaless


@pytest.fixture(scope="module")
def marked(cluster: Cluster) -> Cluster:
    """The cluster with a few objects of our own, in two namespaces."""
    labels = {"of": "objects"}
    bodies: list[dict[str, Any]] = [
        {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "looked-at", "labels": labels}},
        *(
            {
                "apiVersion": "v1",
                "kind": kind,
                "metadata": {"name": name, "namespace": where, "labels": labels},
            }
            for kind in ("ConfigMap", "ServiceAccount")
            for where, name in (("looked-at", "a"), ("looked-at", "b"), ("default", "looked-at"))
        ),
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": "seen", "namespace": "looked-at"},
            "involvedObject": {"kind": "ConfigMap", "name": "a", "namespace": "looked-at"},
            "reason": "Seen",
        },
    ]
    cluster.apply(*bodies)
    return cluster


@pytest.mark.parametrize(
    "words",
    [
        ("configmap", "a", "--namespace=looked-at"),
        ("--namespace", "looked-at", "cm", "a"),
        ("configmap", "looked-at"),
        ("configmaps", "--selector=of=objects"),
        ("configmaps,serviceaccounts", "-n", "looked-at", "-l", "of=objects"),
        ("ConfigMap", "--all-namespaces", "-l", "of=objects", "--field-selector=metadata.name!=a"),
        ("configmaps", "-A", "-l", "of=nothing"),
        ("namespace", "looked-at"),
        ("ns", "-l", "of=objects"),
        ("clusterroles.rbac.authorization.k8s.io", "--field-selector=metadata.name=edit"),
        ("events", "-n", "looked-at"),
        ("events.events.k8s.io", "-n", "looked-at"),
    ],
    ids=" ".join,
)
def test_it_returns_what_kubectl_prints(marked: Cluster, words: tuple[str, ...]) -> None:
    printed = json.loads(marked.kubectl("get", "--output=json", *words))
    assert marked.get(*words) == printed


def test_it_finds_a_kind_that_is_defined_after_it_was_asked_for(cluster: Cluster) -> None:
    with pytest.raises(TestbedError, match='resource type "latecomers"'):
        cluster.get("latecomers")
    cluster.apply(schemaless(Kind("objects.test", "v1", "latecomers", "Latecomer")))
    cluster.wait_for_kinds()
    assert cluster.get("latecomers.objects.test")["items"] == []


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (("configmap", "absent"), 'configmaps "absent" not found'),
        (("configmap", "a", "b"), "ask for one object"),
        (("configmaps", "--watch"), r"unrecognized arguments: --watch"),
    ],
)
def test_what_it_cannot_return_is_an_error_that_names_it(cluster: Cluster, words: tuple[str, ...], said: str) -> None:
    with pytest.raises(TestbedError, match=said.replace('"', '.?"')):
        cluster.get(*words)


def test_what_it_applies_kubectl_finds_unchanged(cluster: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "applied"}, "data": {"of": "objects"}}
    cluster.apply(body)
    diff = ("diff", "--server-side", "--filename=-")
    assert cluster.kubectl(*diff, text=json.dumps(body)) == ""
    with pytest.raises(TestbedError, match="code 1:"):
        cluster.kubectl(*diff, text=json.dumps({**body, "data": {"of": "nobody"}}))


def test_a_field_that_the_kind_does_not_have_is_not_applied(cluster: Cluster) -> None:
    body = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "misspelt"}, "dataa": {}}
    with pytest.raises(TestbedError, match="dataa"):
        cluster.apply(body)
