"""`foresail primer` on a real API server: what it suggests is applied, and what it sends is accepted."""

import json
import subprocess
import sys
from collections.abc import Callable
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any

import pytest
import yaml

from foresail.api.instants import stamp
from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster
from testbed.api import request
from tests.cluster import operators, primers
from tests.cluster.schedules import Eventually

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


def test_create_refuses_what_the_operator_would_not_prime_and_asks_admission_first(
    home: Cluster, foresail: Foresail
) -> None:
    nothing = [{"name": "work", "image": "work:1"}]
    home.apply(primers.cron_job("idle", "0 3 * * *", "none", HOME, containers=nothing))
    home.apply(primers.cron_job("often", "*/5 * * * *", "none", HOME))
    for name, reason in (("missing", "NoCronJob"), ("idle", "NothingToReserve"), ("often", "NeedsAllowStanding")):
        code, _, said = foresail("create", name, "--warm-up=10m")
        assert (code, reason in said) == (1, True), said
    limits = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "100m"}}]}
    about = {"apiVersion": "v1", "kind": "LimitRange", "metadata": {"name": "defaults", "namespace": HOME}}
    home.apply({**about, "spec": limits})
    code, name, said = foresail("create", "idle", "--warm-up=10m", "--dry-run=server", "-o", "name")
    assert (code, name) == (0, "primer.foresail.dev/idle\n"), said
    assert home.listed(PRIMERS) == []
    assert foresail("create", "idle", "--warm-up=10m")[0] == 0
    assert foresail("create", "often", "--warm-up=10m", "--allow-standing")[0] == 0
    code, _, said = foresail("create", "second", "--cron-job=idle", "--warm-up=10m")
    assert (code, "PrimedByAnother" in said) == (1, True), said
    home.kubectl("label", "primer/often", "tier=batch", f"--namespace={HOME}")
    assert foresail("get", "-l", "tier=batch", "-o", "name")[1] == "primer.foresail.dev/often\n"
    assert foresail("delete", "-l", "tier=batch", "--dry-run=server")[0] == 0
    assert len(home.listed(PRIMERS)) == 2
    assert foresail("delete", "-l", "tier=batch", "--yes")[0] == 0
    assert [each["metadata"]["name"] for each in home.listed(PRIMERS)] == ["idle"]
    assert foresail("delete", "--all", "--yes", "-o", "name")[1] == "primer.foresail.dev/idle\n"
    home.kubectl("delete", "limitranges,cronjobs", "--all", f"--namespace={HOME}")


def on_node(cluster: Cluster, pod: str, node: str) -> bool:
    """Bind a pod to a node, as the scheduler would."""
    target = {"apiVersion": "v1", "kind": "Node", "name": node}
    body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": pod}, "target": target}
    path = f"{cluster.server}/api/v1/namespaces/{HOME}/pods/{pod}/binding"
    return request("POST", path, cluster.site.admin_trust, body).code == HTTPStatus.CREATED


def started(cluster: Cluster, pod: str) -> None:
    """Report a pod as running, as its kubelet would."""
    running = {"running": {"startedAt": stamp(now())}}
    state = {"name": "work", "image": "work:1", "imageID": "", "ready": True, "restartCount": 0, "state": running}
    status = json.dumps({"status": {"phase": "Running", "containerStatuses": [state]}})
    cluster.kubectl("patch", "pod", pod, f"--namespace={HOME}", "--subresource=status", "--type=merge", f"-p={status}")


def pods_with(cluster: Cluster, selector: str) -> list[str]:
    """Return the names of the pods that have no node yet."""
    found = cluster.listed(f"/api/v1/namespaces/{HOME}/pods?labelSelector={selector}")
    return [each["metadata"]["name"] for each in found if not each["spec"].get("nodeName")]


@pytest.mark.full
def test_wait_ends_when_it_is_warm_and_when_the_run_has_started(
    home: Cluster, tmp_path: Path, foresail: Foresail, eventually: Eventually
) -> None:
    home.apply({"apiVersion": "v1", "kind": "Node", "metadata": {"name": "by-hand"}})
    # A run that nobody has primed keeps its pod pending here, and counts as capacity for the next: prime the first.
    eventually(lambda: now().second < 10, 60)
    home.apply(primers.cron_job("minutely", "* * * * *", "none", HOME))
    with operators.running(home, tmp_path, *primers.FLAGS):
        assert foresail("create", "minutely", "--warm-up=1m", "--allow-standing")[0] == 0
        assert foresail("wait", "minutely", "--timeout=1s")[0] == 1, "it has no node yet"
        ours = "foresail.dev%2Fprimer%3Dminutely"
        eventually(lambda: any(on_node(home, each, "by-hand") for each in pods_with(home, ours)), 90)
        code, _, said = foresail("wait", "minutely", "--timeout=90s")
        assert (code, "warm for CronJob minutely at" in said) == (0, True), said

        where = [f"--kubeconfig={home.site.admin_kubeconfig}", f"--namespace={HOME}"]
        command = [sys.executable, "-m", "foresail", "primer", "wait", "minutely", "--for=fired", "--timeout=240s"]
        waiting = subprocess.Popen([*command, *where], stderr=subprocess.PIPE, text=True)
        try:

            def play() -> bool:
                for pod in pods_with(home, "batch.kubernetes.io%2Fjob-name"):
                    if on_node(home, pod, "by-hand"):
                        started(home, pod)
                return waiting.poll() is not None

            eventually(play, 250)
        finally:
            waiting.kill()
        said = waiting.communicate()[1]
        assert (waiting.returncode, "CronJob minutely fired at" in said) == (0, True), said
    home.kubectl("delete", "primers,cronjobs", "--all", f"--namespace={HOME}")
    home.kubectl("delete", "node", "by-hand")
