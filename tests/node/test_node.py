"""A real node: it is Ready, runs pods that can be read and entered, and stands beside another and beside KWOK's."""

import os

import pytest

from testbed import Cluster, Options
from testbed.site import NODE_NAME
from tests.node.nodes import Outside, namespace, pod, rules, touched, wait_ready

SLEEPS = "echo started; sleep 3600"


@pytest.mark.sample
def test_the_node_is_ready_and_reports_its_real_runtime(
    node_cluster: Cluster, measured: dict[str, float | bool | None]
) -> None:
    found = node_cluster.get("node", NODE_NAME)["status"]
    (ready,) = [each["status"] for each in found["conditions"] if each["type"] == "Ready"]
    assert ready == "True"
    assert found["nodeInfo"]["kubeletVersion"] == "v1.36.3"
    assert found["nodeInfo"]["containerRuntimeVersion"] == "containerd://2.4.2"
    took = measured["node_ready_s"]
    assert took is not None
    assert took <= 60, "a fourth of it on an idle machine"


@pytest.mark.sample
def test_a_pod_runs_and_its_logs_and_its_shell_are_reached_through_the_api_server(node_cluster: Cluster) -> None:
    node_cluster.apply(namespace("speaks"), pod("speaker", "speaks", "echo hello from $(hostname); sleep 3600"))
    wait_ready(node_cluster, "pod/speaker", "speaks")
    assert node_cluster.kubectl("logs", "speaker", "--namespace=speaks") == "hello from speaker\n"
    said = node_cluster.kubectl("exec", "speaker", "--namespace=speaks", "--", "sh", "-c", "echo $((6 * 7))")
    assert said == "42\n"


def test_a_pod_reaches_the_api_server_and_another_pod_through_their_services(node_cluster: Cluster) -> None:
    serve = pod("server", "reaches", "mkdir /www; echo served > /www/index.html; httpd -f -p 8080 -h /www")
    service = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "server", "namespace": "reaches"},
        "spec": {"selector": {"app": "server"}, "ports": [{"port": 80, "targetPort": 8080}]},
    }
    node_cluster.apply(namespace("reaches"), serve, service, pod("client", "reaches", SLEEPS))
    wait_ready(node_cluster, "pod/server", "reaches")
    wait_ready(node_cluster, "pod/client", "reaches")
    address = node_cluster.get("service", "server", "--namespace=reaches")["spec"]["clusterIP"]
    ask = f"for i in 1 2 3 4 5 6 7 8 9 10; do wget -q -O- http://{address}/ && break; sleep 1; done"
    said = node_cluster.kubectl("exec", "client", "--namespace=reaches", "--", "sh", "-c", ask)
    assert said == "served\n"
    words = ("sh", "-c", "nc -w 5 $KUBERNETES_SERVICE_HOST $KUBERNETES_SERVICE_PORT < /dev/null && echo open")
    assert node_cluster.kubectl("exec", "client", "--namespace=reaches", "--", *words) == "open\n"


@pytest.mark.sample
def test_a_second_node_beside_it_and_beside_nodes_of_kwok_leaves_nothing_on_the_machine(
    node_cluster: Cluster, measured: dict[str, float | bool | None]
) -> None:
    rules_before, touched_before = rules(), touched()
    with Cluster.create(f"pytest-{os.getpid()}-second", Options(node=True, nodes=1), owned=True) as cluster:
        selected = {"kubernetes.io/hostname": NODE_NAME}
        cluster.apply(pod("real", "default", SLEEPS, nodeSelector=selected))
        cluster.apply(pod("played", "default", SLEEPS, nodeName="node-0"))
        wait_ready(cluster, "pod/real", "default")
        wait_ready(cluster, "pod/played", "default")
        assert "started" in cluster.kubectl("logs", "real")
        outside = Outside(cluster)
        seen = outside.left()
        assert all(seen[kind] for kind in ("processes", "links", "groups", "files")), seen
    left = outside.left()
    measured["leftovers"] = sum(map(len, left.values()))
    assert measured["leftovers"] == 0, left
    assert (rules(), touched()) == (rules_before, touched_before)
    wait_ready(node_cluster, f"node/{NODE_NAME}", "default")
