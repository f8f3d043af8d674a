"""`foresail doctor` about real pods: Velero scaled away or with an image that does not exist, and a failed rollout."""

import io
import json
from collections.abc import Iterator
from contextlib import contextmanager, redirect_stderr, redirect_stdout

from foresail.cli.main import main
from testbed import Cluster
from tests.node.nodes import eventually

VELERO = ("deployment/velero", "--namespace=velero")
SELF_SERVICE = ("deployment/foresail-self-service", "--namespace=velero")


def found(cluster: Cluster, about: str) -> list[tuple[str, str]]:
    """Return grade and text of the doctor's findings about one thing."""
    out = io.StringIO()
    with redirect_stdout(out), redirect_stderr(io.StringIO()):
        main(["doctor", f"--kubeconfig={cluster.kubeconfig}", "-o", "json"])
    return [(each["grade"], each["says"]) for each in json.loads(out.getvalue()) if each["about"] == about]


def is_problem(cluster: Cluster, about: str, *words: str) -> bool:
    return any(grade == "problem" and all(word in says for word in words) for grade, says in found(cluster, about))


@contextmanager
def repaired(cluster: Cluster, workload: tuple[str, str], *repair: str) -> Iterator[None]:
    """Repair the Deployment after the block, and wait until it runs."""
    try:
        yield
    finally:
        cluster.kubectl(*repair)
        cluster.kubectl("rollout", "status", *workload, "--timeout=120s")


def test_velero_without_pods_or_image_is_a_problem_at_once(node_cluster: Cluster) -> None:
    cluster = node_cluster
    eventually(lambda: [grade for grade, _ in found(cluster, "velero")] == ["good"], 60, "Velero runs")
    with repaired(cluster, VELERO, "scale", *VELERO, "--replicas=1"):
        cluster.kubectl("scale", *VELERO, "--replicas=0")
        assert is_problem(cluster, "velero", "scaled to 0 replicas"), found(cluster, "velero")
    with repaired(cluster, VELERO, "rollout", "undo", *VELERO):
        cluster.kubectl("set", "image", *VELERO, "velero=velero/velero:v9.9.9")
        eventually(lambda: is_problem(cluster, "velero", "Image", "velero/velero:v9.9.9"), 30, "the image is named")
        assert is_problem(cluster, "velero", "previous pods still run"), found(cluster, "velero")
    eventually(lambda: [grade for grade, _ in found(cluster, "velero")] == ["good"], 60, "Velero runs again")


def test_a_failed_rollout_of_the_operator_is_a_problem_while_the_previous_pods_run(installed: Cluster) -> None:
    cluster = installed
    assert [grade for grade, _ in found(cluster, "pods")] == ["good"]
    with repaired(cluster, SELF_SERVICE, "rollout", "undo", *SELF_SERVICE):
        cluster.kubectl("set", "image", *SELF_SERVICE, "*=example.com/foresail:none")
        words = ("foresail-self-service", "example.com/foresail:none", "previous pods still run")
        eventually(lambda: is_problem(cluster, "pods", *words), 30, "the rollout has failed")
        assert [grade for grade, _ in found(cluster, "self-service")] == ["good"], "the previous pods serve requests"
    eventually(lambda: [grade for grade, _ in found(cluster, "pods")] == ["good"], 60, "all pods are ready again")
