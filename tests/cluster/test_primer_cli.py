"""`foresail primer` on a real API server: what it suggests is applied, and what it sends is accepted."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any

import pytest
import yaml

from foresail.api.instants import stamp
from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import primers

HOME = "primed"
PRIMERS = f"/apis/foresail.dev/v1alpha1/namespaces/{HOME}/primers"
WAITED = 90

Foresail = Callable[..., tuple[int, str, str]]


@pytest.fixture(scope="module")
def home(cluster: Cluster) -> Cluster:
    """A namespace with CronJobs that never fire while the tests run."""
    primers.install(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    return cluster


@pytest.fixture
def foresail(home: Cluster, capsys: pytest.CaptureFixture[str]) -> Foresail:
    """Run `foresail primer` in that namespace; return the exit code and both outputs."""

    def run(*arguments: str) -> tuple[int, str, str]:
        capsys.readouterr()
        code = main(["primer", *arguments, f"--kubeconfig={home.site.admin_kubeconfig}", f"--namespace={HOME}"])
        said = capsys.readouterr()
        return code, said.out, said.err

    return run


def late(cluster: Cluster, name: str, schedule: str) -> None:
    """Create a CronJob with one run whose pod waited for its node, as Events report it."""
    cluster.apply(primers.cron_job(name, schedule, "none", HOME))
    uid = cluster.get("cronjob", name, f"--namespace={HOME}")["metadata"]["uid"]
    fire = now().replace(second=0, microsecond=0) - timedelta(hours=1)
    owner = {"apiVersion": "batch/v1", "kind": "CronJob", "name": name, "uid": uid, "controller": True}
    run = {
        "name": f"{name}-1",
        "namespace": HOME,
        "ownerReferences": [owner],
        "annotations": {primers.SCHEDULED_AT: stamp(fire)},
    }
    pod = {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
    job: dict[str, Any] = {"apiVersion": "batch/v1", "kind": "Job", "metadata": run}
    cluster.apply({**job, "spec": {"suspend": True, "template": {"spec": pod}}})
    began = stamp(fire + timedelta(seconds=WAITED))
    about = {"kind": "Pod", "namespace": HOME, "name": f"{name}-1-x7k2p"}
    event = {"apiVersion": "v1", "kind": "Event", "metadata": {"name": f"{name}-started", "namespace": HOME}}
    seen = {"reason": "Started", "type": "Normal", "firstTimestamp": began, "lastTimestamp": began}
    cluster.apply({**event, "involvedObject": about, **seen})


def test_what_is_suggested_can_be_applied_as_it_is(home: Cluster, foresail: Foresail) -> None:
    late(home, "calm", "0 3 * * *")
    late(home, "busy", "*/4 * * * *")
    code, table, advice = foresail("suggest", "--price-cpu-hour=0.04")
    assert code == 0
    assert [line.split()[0] for line in table.splitlines()] == ["CRONJOB", "busy", "calm"], "the most worth first"
    assert "CronJob primed/busy: capacity would be held for 75 % of the time" in advice
    _, manifest, _ = foresail("suggest", "-o", "yaml")
    assert [each["metadata"]["name"] for each in yaml.safe_load_all(manifest)] == ["calm"]
    _, manifest, _ = foresail("suggest", "-o", "yaml", "--allow-standing")
    home.kubectl("apply", "--filename=-", text=manifest)
    assert {each["metadata"]["name"]: each["spec"] for each in home.listed(PRIMERS)} == {
        "busy": {"cronJob": "busy", "warmUp": "3m", "allowStanding": True},
        "calm": {"cronJob": "calm", "warmUp": "3m"},
    }
    assert foresail("suggest", "-o", "name")[1] == "\n", "nothing is left to suggest"
    home.kubectl("delete", "primers,cronjobs", "--all", f"--namespace={HOME}")
