"""Writes that a real API server refuses for what they are: Events, `explain`, and work that goes on by itself."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Iterator
from typing import Any

import pytest

from testbed import Cluster
from tests.cluster.operators import Operator, running
from tests.cluster.schedules import Eventually, backups, clear, reasons, schedule

ADMISSION = "admissionregistration.k8s.io/v1"
POLICY = "no-backups-today"
WORDS = "backups are closed today"


@pytest.fixture(scope="module")
def cluster(schedule_cluster: Cluster) -> Cluster:
    clear(schedule_cluster)
    return schedule_cluster


@pytest.fixture(scope="module")
def operator(cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Operator]:
    with running(cluster, tmp_path_factory.mktemp("operator")) as found:
        yield found
    clear(cluster)


@pytest.fixture
def refusing(cluster: Cluster, eventually: Eventually) -> Iterator[None]:
    """Let the API server refuse each Backup of the Schedule `refused`, until the test deletes the policy."""
    rule = {"apiGroups": ["velero.io"], "apiVersions": ["v1"], "operations": ["CREATE"], "resources": ["backups"]}
    spec = {
        "failurePolicy": "Fail",
        "matchConstraints": {"resourceRules": [rule]},
        "validations": [{"expression": "!object.metadata.name.startsWith('refused-')", "message": WORDS}],
    }
    cluster.apply(
        {"apiVersion": ADMISSION, "kind": "ValidatingAdmissionPolicy", "metadata": {"name": POLICY}, "spec": spec},
        {
            "apiVersion": ADMISSION,
            "kind": "ValidatingAdmissionPolicyBinding",
            "metadata": {"name": POLICY},
            "spec": {"policyName": POLICY, "validationActions": ["Deny"]},
        },
    )
    body = {"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": {"name": "refused-a", "namespace": "velero"}}

    def is_refused() -> bool:
        try:
            cluster.kubectl("create", "--dry-run=server", "--filename=-", text=json.dumps({**body, "spec": {}}))
        except Exception as refusal:  # noqa: BLE001 - whatever kubectl says of it
            return WORDS in str(refusal)
        return False

    eventually(is_refused, 60)
    yield
    _allow(cluster)


def _allow(cluster: Cluster) -> None:
    for kind in ("validatingadmissionpolicybinding", "validatingadmissionpolicy"):
        cluster.kubectl("delete", kind, POLICY, "--ignore-not-found")


def explained(cluster: Cluster, name: str) -> dict[str, Any]:
    command = [sys.executable, "-m", "foresail", "schedule", "explain", name, "-n", "velero", "-o", "json"]
    environment = {**os.environ, "KUBECONFIG": str(cluster.kubeconfig)}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    (found,) = json.loads(done.stdout)
    return dict(found)


def diagnosed(cluster: Cluster) -> list[dict[str, str]]:
    command = [sys.executable, "-m", "foresail", "doctor", f"--kubeconfig={cluster.kubeconfig}", "--output=json"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    found: list[dict[str, str]] = json.loads(done.stdout)
    return found


@pytest.mark.usefixtures("refusing")
def test_a_backup_that_is_refused_is_an_event_on_its_schedule_and_the_reason_in_explain(
    cluster: Cluster, operator: Operator, eventually: Eventually
) -> None:
    cluster.apply(schedule("refused", "@every 1m"), schedule("fine", "@every 1m"))
    eventually(lambda: "WriteRefused" in reasons(cluster, "refused"), 120)
    said = reasons(cluster, "refused")["WriteRefused"]
    assert said.startswith("The API server refused to create Backup velero/refused-")
    assert WORDS in said
    time.sleep(15)  # it is tried some more times
    assert len([line for line in operator.said("Forbidden") + operator.said("Invalid") if WORDS in line["message"]]) > 2
    events = cluster.listed("/apis/events.k8s.io/v1/namespaces/velero/events")
    assert len([each for each in events if each["reason"] == "WriteRefused"]) <= 2, "one for each slot, not each retry"

    found = explained(cluster, "refused")
    assert found["reason"] == "WriteRefused"
    assert WORDS in found["message"]
    assert [rule["rule"] for rule in found["rules"] if rule["answer"] == "blocks"] == [
        "the API server accepts its writes"
    ]
    counted = {name: value for name, value in operator.figures().items() if "foresail_refused_writes_total" in name}
    assert ['kind="Backup"' in name for name in counted] == [True]
    assert sum(counted.values()) > 2
    refusals = [each for each in diagnosed(cluster) if each["about"] == "refused"]
    assert [(each["grade"], WORDS in each["says"]) for each in refusals] == [("warning", True)]
    assert refusals[0]["says"].startswith("Schedule velero/refused: ")
    assert backups(cluster, "fine"), "no other Schedule is kept waiting"

    _allow(cluster)
    eventually(lambda: backups(cluster, "refused"), 120)
    assert explained(cluster, "refused")["reason"] in (None, "Busy")
