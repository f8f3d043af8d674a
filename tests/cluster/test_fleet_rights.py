"""The ServiceAccount of examples/fleet-cronjob.yaml may read what `foresail coverage` reads: nothing is refused."""

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from testbed import Cluster
from tests.cluster.schedules import TEMPLATE, schedule

Eventually = Callable[[Callable[[], object], float], None]
ROOT = Path(__file__).parents[2]
EXAMPLE = ROOT / "examples" / "fleet-cronjob.yaml"
CRD = ROOT / "charts" / "foresail-crds" / "templates" / "schedulepolicies.yaml"
USER = "system:serviceaccount:velero:foresail-coverage"
NAME = "fleet"
NEVER = "0 0 1 1 *"


def objects() -> list[dict[str, Any]]:
    """Return a Schedule with a resource policy, under a SchedulePolicy with retention: so all rights are used."""
    rules = {"version": "v1", "volumePolicies": []}
    return [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": NAME, "namespace": "velero"},
            "data": {"policy.yaml": json.dumps(rules)},
        },
        schedule(NAME, NEVER, {**TEMPLATE, "resourcePolicy": {"kind": "configmap", "name": NAME}}),
        {
            "apiVersion": "foresail.dev/v1alpha1",
            "kind": "SchedulePolicy",
            "metadata": {"name": NAME},
            "spec": {"selector": {"names": [NAME]}, "retention": {"keepLast": 2}},
        },
    ]


@pytest.fixture
def cluster(schedule_cluster: Cluster) -> Iterator[Cluster]:
    """A cluster with the rights of the example and without its CronJob, which the API server accepts."""
    schedule_cluster.kubectl("apply", "--server-side", f"--filename={CRD}")
    schedule_cluster.wait_for_kinds()
    schedule_cluster.kubectl("apply", "--dry-run=server", f"--filename={EXAMPLE}")
    granted = [each for each in yaml.safe_load_all(EXAMPLE.read_text()) if each["kind"] != "CronJob"]
    schedule_cluster.apply(*granted, *objects())
    yield schedule_cluster
    schedule_cluster.kubectl("delete", "schedulepolicies.foresail.dev", NAME)
    schedule_cluster.kubectl("delete", f"schedules.velero.io/{NAME}", f"configmap/{NAME}", "--namespace=velero")


def coverage(kubeconfig: Path) -> "subprocess.CompletedProcess[str]":
    """Run the command of the CronJob."""
    words = ("coverage", "-A", "--rpo", "26h", "-o", "metrics", f"--kubeconfig={kubeconfig}")
    command = [sys.executable, "-m", "foresail", *words]
    return subprocess.run(command, capture_output=True, text=True, check=False, timeout=300)


def test_the_rights_of_the_example_are_enough(cluster: Cluster, eventually: Eventually) -> None:
    kubeconfig = cluster.service_account_kubeconfig("velero", "foresail-coverage")
    # The API server takes note of new rights a moment later.
    eventually(lambda: coverage(kubeconfig).returncode == 0, 60)
    earlier = len(cluster.audit(USER))
    done = coverage(kubeconfig)
    assert done.returncode == 0, done.stderr
    assert "not considered" not in done.stderr
    assert "foresail_coverage_timestamp_seconds " in done.stdout
    assert 'foresail_namespace_good_backup_timestamp_seconds{namespace="default"}' in done.stdout
    found = cluster.audit(USER)[earlier:]
    assert [each for each in found if each.code == HTTPStatus.FORBIDDEN] == []
    assert {
        "configmaps",
        "deletebackuprequests.velero.io",
        "restores.velero.io",
        "schedulepolicies.foresail.dev",
    } <= {each.resource for each in found}
