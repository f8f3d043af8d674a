"""The README's first commands, as they stand, on an operator and a Velero that run in pods."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster.pages import README, Reader, reading, steps
from tests.cluster.tenants import Tenant
from tests.node.nodes import INSTALL, eventually, namespace, pod

WARM = "foresail.dev/primer"


@pytest.fixture
def team(installed: Cluster) -> Iterator[Tenant]:
    """A team with the namespace of the README, a setting in it and a CronJob that is due in ten minutes."""
    installed.apply(namespace("shop"), _cron_job())
    installed.kubectl("create", "rolebinding", "team", "--clusterrole=edit", "--user=team", "--namespace=shop")
    installed.kubectl("create", "configmap", "settings", "--from-literal=currency=EUR", "--namespace=shop")
    yield Tenant(installed.user_kubeconfig("team"), "shop")
    installed.kubectl("delete", "namespace", "shop", "--timeout=120s")


@pytest.fixture
def reader(installed: Cluster, tmp_path: Path) -> Iterator[Reader]:
    """Someone who types the commands of the README."""
    with reading(installed, tmp_path / "clone") as found:
        yield found


def _cron_job() -> dict[str, Any]:
    soon = now() + timedelta(minutes=10)
    asks = {"resources": {"requests": {"cpu": "10m", "memory": "16Mi"}}}
    template = {"spec": {**pod("work", "shop", "true", container=asks)["spec"], "restartPolicy": "Never"}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": "report", "namespace": "shop"},
        "spec": {
            "schedule": f"{soon.minute} {soon.hour} * * *",
            "timeZone": "Etc/UTC",
            "jobTemplate": {"spec": {"template": template}},
        },
    }


@pytest.mark.sample
def test_the_first_commands_of_the_readme_work_on_pods(installed: Cluster, team: Tenant, reader: Reader) -> None:
    install, *rest = steps(README, "Install")
    assert install.command == INSTALL, "which the fixture has run"
    for step in rest:
        reader.type(step.command)
    eventually(lambda: "Running" in _placeholders(installed), 180, "a placeholder for the CronJob runs")
    reader.type(f"export KUBECONFIG={team.kubeconfig}")
    reader.type("kubectl config set-context --current --namespace=shop")
    reader.take_back_a_bad_change(team)


def _placeholders(cluster: Cluster) -> list[str]:
    found = cluster.get("pods", "--namespace=shop", f"--selector={WARM}")["items"]
    return [each["status"]["phase"] for each in found]
