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
    assert grades(found, "velero") == grades(found, "permissions") == {"good"}
    eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "clock") == {"good"}, 60)  # a busy machine asks it late
    operator = Operator(cluster, tmp_path)
    operator.start()
    try:
        eventually(lambda: grades(doctor(cluster.kubeconfig)[1], "schedules") == {"good"}, 120)
    finally:
        operator.stop()


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


def test_without_permissions_the_doctor_names_what_it_could_not_read(schedule_cluster: Cluster) -> None:
    code, found, _ = doctor(schedule_cluster.user_kubeconfig("stranger"))
    assert code == 1
    assert len(found["access"]) > 5
    assert all(each["fix"] for each in found["access"])
    assert "permissions" not in found
