"""CronJobs primed by annotations on a real cluster, with `edit` in one namespace of those that the chart names."""

import json
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any

import pytest

from foresail.api.marks import FIRE
from foresail.cli.main import main
from testbed import Cluster, Options
from tests.cluster import operators, primers
from tests.cluster.schedules import Eventually

HOME, ELSEWHERE = "annotated", "unlisted"
FLAGS = (*primers.FLAGS, "--primer-annotations", f"--primer-namespace={HOME}")
RECORD = "foresail.dev/warm-up-status"


@pytest.fixture(scope="module")
def small_cluster() -> Iterator[Cluster]:
    """A cluster with one node, and primers that may hold capacity in one namespace."""
    with Cluster.create(f"pytest-{os.getpid()}-annotated", Options(nodes=1), owned=True) as cluster:
        for name in (HOME, ELSEWHERE):
            cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
        primers.install(cluster, f"primers.namespaces={{{HOME}}}", "primers.annotations=true")
        yield cluster


def cron_job(name: str, schedule: str, namespace: str = HOME, **annotations: str) -> dict[str, Any]:
    job = primers.cron_job(name, schedule, "any", namespace, runs=1, nodeSelector={}, tolerations=[])
    marks = {f"foresail.dev/{mark.replace('_', '-')}": value for mark, value in annotations.items()}
    return {**job, "metadata": {**job["metadata"], "annotations": marks}}


def placeholders(cluster: Cluster, namespace: str = HOME) -> list[dict[str, Any]]:
    return [each for each in primers.placeholders(cluster) if each["metadata"]["namespace"] == namespace]


def record(cluster: Cluster, name: str, namespace: str = HOME) -> dict[str, Any]:
    found = cluster.listed(f"/apis/batch/v1/namespaces/{namespace}/cronjobs")
    (job,) = (each for each in found if each["metadata"]["name"] == name)
    recorded: dict[str, Any] = json.loads(job["metadata"].get("annotations", {}).get(RECORD, "{}"))
    return recorded


def delays(cluster: Cluster, name: str) -> dict[str, dict[str, Any]]:
    return {each["fire"]: each for each in record(cluster, name).get("startDelays", ())}


def events(cluster: Cluster, name: str, reason: str, namespace: str = HOME) -> list[str]:
    found = cluster.listed(f"/api/v1/namespaces/{namespace}/events?fieldSelector=reason%3D{reason}")
    return [each["message"] for each in found if each["involvedObject"]["name"] == name]


def in_an_hour() -> str:
    fire = primers.next_minute(3600)
    return f"{fire.minute} {fire.hour} {fire.day} {fire.month} *"


def test_a_run_is_warm_by_an_annotation_alone_and_its_start_delay_is_recorded(
    small_cluster: Cluster, tmp_path: Path, eventually: Eventually, capsys: pytest.CaptureFixture[str]
) -> None:
    small_cluster.apply(cron_job("often", "*/2 * * * *", warm_up="1m"))
    with operators.running(small_cluster, tmp_path, *FLAGS) as operator:
        eventually(lambda: placeholders(small_cluster), 150)
        fire = placeholders(small_cluster)[0]["metadata"]["annotations"][FIRE]  # the first may be before the operator
        eventually(lambda: fire in delays(small_cluster, "often"), 150)
        delay = delays(small_cluster, "often")[fire]
        assert delay["warm"] is True, delay
        where = (f"--kubeconfig={small_cluster.site.admin_kubeconfig}", f"--namespace={HOME}")
        assert main(["primer", "get", *where]) == 0
        line = next(each for each in capsys.readouterr().out.splitlines() if "cronjob/often" in each).split()
        assert f"{delay['seconds']}s" in line, "the start delay that was measured"
        assert main(["primer", "explain", "cronjob/often", *where]) == 0
        assert "annotation foresail.dev/warm-up, CronJob often: warm" in capsys.readouterr().out
        assert operator.figures()['foresail_primer_start_delay_seconds_count{warm="true"}'] >= 1
        small_cluster.kubectl("delete", "cronjob", "often", f"--namespace={HOME}")


def test_what_a_tenant_gets_by_an_annotation_is_what_a_primer_would_give(
    small_cluster: Cluster,
    tmp_path: Path,
    eventually: Eventually,
    kubectl_as: Callable[..., CompletedProcess[str]],
) -> None:
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "edit"}
    for namespace in (HOME, ELSEWHERE):
        binding = {
            "apiVersion": "rbac.authorization.k8s.io/v1",
            "kind": "RoleBinding",
            "metadata": {"name": "tenant", "namespace": namespace},
            "roleRef": role,
            "subjects": [{"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": "lessee"}],
        }
        small_cluster.apply(binding)
    tenant = small_cluster.user_kubeconfig("lessee")

    def asks(*objects: dict[str, Any]) -> None:
        manifest = tmp_path / "asked.json"
        manifest.write_text(json.dumps({"apiVersion": "v1", "kind": "List", "items": list(objects)}))
        done = kubectl_as(tenant, "apply", f"--filename={manifest}")
        assert done.returncode == 0, done.stderr

    with operators.running(small_cluster, tmp_path, *FLAGS, "--primer-placeholders-per-namespace=1"):
        asks(cron_job("first", in_an_hour(), warm_up="2h"))
        eventually(lambda: placeholders(small_cluster), 60)
        (pod,) = placeholders(small_cluster)
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("CronJob", "first")

        asks(cron_job("second", in_an_hour(), warm_up="2h"), cron_job("long", in_an_hour(), warm_up="8h"))
        eventually(lambda: record(small_cluster, "second").get("reason") == "TooManyPlaceholders", 60)
        eventually(lambda: record(small_cluster, "long").get("reason") == "WarmUpTooLong", 60)

        asks(cron_job("wrong", in_an_hour(), warm_up="soon"))
        eventually(lambda: events(small_cluster, "wrong", "InvalidAnnotation"), 60)
        assert "is 'soon': write 1m to 7 days" in events(small_cluster, "wrong", "InvalidAnnotation")[0]

        asks(primers.primer("first", "90m", HOME))
        eventually(lambda: record(small_cluster, "first").get("reason") == "PrimedByAnother", 60)
        eventually(lambda: events(small_cluster, "first", "PrimedByAnother"), 60)
        small_cluster.kubectl("delete", "primer", "first", f"--namespace={HOME}")

        asks(
            cron_job("third", in_an_hour(), ELSEWHERE, warm_up="2h"),
            cron_job("fourth", in_an_hour(), ELSEWHERE),
            primers.primer("fourth", "2h", ELSEWHERE),
        )
        eventually(lambda: events(small_cluster, "third", "NamespaceNotAllowed", ELSEWHERE), 60)
        eventually(lambda: primers.primed(small_cluster, "fourth").get("reason") == "NamespaceNotAllowed", 60)
        assert placeholders(small_cluster, ELSEWHERE) == []
        assert record(small_cluster, "third", ELSEWHERE) == {}

        small_cluster.kubectl("delete", "cronjob", "--all", f"--namespace={HOME}")
        eventually(lambda: not placeholders(small_cluster), 60)
