"""`foresail doctor` on a real cluster, with and without the operator, and as somebody who may read little."""

import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from testbed import Cluster
from tests.cluster.operators import Operator, install
from tests.cluster.schedules import clear

Eventually = Callable[[Callable[[], object], float], None]


def doctor(kubeconfig: Path, *words: str) -> tuple[int, dict[str, list[dict[str, str]]], str]:
    """Return the exit code, the findings by what they are about, and what was said beside them."""
    done = subprocess.run(
        [sys.executable, "-m", "foresail", "doctor", f"--kubeconfig={kubeconfig}", "--output=json", *words],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "NO_COLOR": "1"},
    )
    found: dict[str, list[dict[str, str]]] = {}
    for each in json.loads(done.stdout):
        found.setdefault(each["about"], []).append(each)
    return done.returncode, found, done.stderr


def grades(found: dict[str, list[dict[str, str]]], about: str) -> set[str]:
    return {each["grade"] for each in found.get(about, [])}


def test_without_an_operator_it_says_that_nobody_runs_the_schedules_and_with_one_that_it_does(
    schedule_cluster: Cluster, tmp_path: Path, eventually: Eventually
) -> None:
    cluster = schedule_cluster
    clear(cluster)  # what other tests left may never run
    cluster.kubectl("delete", "lease", "foresail-schedules", "--namespace=velero", "--ignore-not-found")
    code, found, _ = doctor(cluster.kubeconfig)
    assert code == 1
    assert grades(found, "schedules") == {"problem"}
    assert grades(found, "permissions") == {"good"}
    (pods,) = found["pods"]
    assert "0 of 2 pods are ready" in pods["says"], "this cluster has no scheduler and no node"
    assert pods["grade"] != "good"
    eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "velero") == {"good"}, 120)  # the server validates again
    eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "clock") == {"good"}, 60)  # a busy machine asks it late
    operator = Operator(cluster, tmp_path)
    operator.start()
    try:
        eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "schedules") == {"good"}, 120)
        (said,) = doctor(cluster.kubeconfig)[1]["pods"]
        assert (said["grade"], "operator works in its place" in said["says"]) == ("warning", True)
    finally:
        operator.stop()


def test_a_velero_that_is_scaled_away_is_told_at_once_and_one_outside_its_deployment_by_its_validations(
    schedule_cluster: Cluster, eventually: Eventually
) -> None:
    cluster = schedule_cluster
    often = json.dumps({"spec": {"validationFrequency": "5s"}})
    location = ("backupstoragelocation", "default", "--namespace=velero", "--type=merge")
    cluster.kubectl("patch", *location, f"--patch={often}")
    try:
        cluster.kubectl("scale", "deployment", "velero", "--namespace=velero", "--replicas=1")
        said = velero(cluster)  # no scheduler gives it a node
        assert (said["grade"] != "good", "0 of 1 pods are ready" in said["says"]) == (True, True)
        cluster.kubectl("scale", "deployment", "velero", "--namespace=velero", "--replicas=0")
        eventually(lambda: "scaled to 0 replicas" in velero(cluster)["says"], 5)
        eventually(lambda: velero(cluster)["grade"] == "good", 60)  # the server of this cluster is a process
    finally:
        cluster.kubectl("patch", *location, f"--patch={json.dumps({'spec': {'validationFrequency': None}})}")


def velero(cluster: Cluster) -> dict[str, str]:
    (said,) = doctor(cluster.kubeconfig)[1]["velero"]
    return said


def test_with_the_role_in_the_docs_the_doctor_reads_everything(schedule_cluster: Cluster) -> None:
    text = (Path(__file__).parents[2] / "docs" / "operations.md").read_text().partition("name: foresail-doctor\n")
    role = text[0].rpartition("```yaml\n")[2] + text[1] + text[2].partition("```")[0]
    schedule_cluster.kubectl("apply", "--server-side", "--filename=-", text=role)
    binding = ("clusterrolebinding", "foresail-doctor")
    schedule_cluster.kubectl("create", *binding, "--clusterrole=foresail-doctor", "--user=hakim")
    try:
        code, found, beside = doctor(schedule_cluster.user_kubeconfig("hakim"))
        assert code == 1
        assert "access" not in found, found["access"]
        assert {"velero", "pods", "permissions", "locations"} <= found.keys()
        assert "this is about namespace" not in beside
    finally:
        schedule_cluster.kubectl("delete", *binding)


@pytest.mark.parametrize(
    ("role", "verb"), [("foresail-schedules", "patch"), ("foresail-schedules-leadership", "create")]
)
def test_a_verb_that_is_taken_from_the_role_is_missed(
    schedule_cluster: Cluster, eventually: Eventually, role: str, verb: str
) -> None:
    cluster = schedule_cluster
    rules = cluster.get("role", role, "--namespace=velero")["rules"]
    less = [{**rule, "verbs": [each for each in rule["verbs"] if each != verb] or ["list"]} for rule in rules]
    try:
        patch = json.dumps({"rules": less})
        cluster.kubectl("patch", "role", role, "--namespace=velero", "--type=merge", f"--patch={patch}")
        # The API server takes note of a change in its rules a moment later.
        eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "permissions") == {"problem"}, 60)
        (said,) = doctor(cluster.kubeconfig)[1]["permissions"]
        assert verb in said["says"]
    finally:
        install(cluster)
    eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "permissions") == {"good"}, 60)


def test_without_permissions_the_doctor_answers_about_one_namespace(schedule_cluster: Cluster) -> None:
    code, found, beside = doctor(schedule_cluster.user_kubeconfig("stranger"))
    assert code == 1
    assert list(found) == ["access"]
    (said,) = found["access"]
    assert said["says"].startswith(
        "namespace default is not checked: nonadminbackups in namespace default: you may not"
    )
    assert "this is about namespace default" in beside
