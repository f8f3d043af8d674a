"""From the README alone: installed, used by everyone it is for, and removed; then removed without preparation."""

import io
import json
import os
import subprocess
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from foresail.api.marks import OBSERVED
from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster, Options
from testbed.build import program
from testbed.promtool import promtool
from tests.cluster.kubelet import kubelet
from tests.cluster.operators import CHART, USER
from tests.cluster.pages import Reader, reading, steps
from tests.cluster.schedules import Eventually, Figure, backups, put_status, schedule, show
from tests.cluster.tenants import Tenant

README = "../README.md"
OFF = "--disable-controllers=schedule"
KINDS = (
    "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,leases,pods,cronjobs"
)
EVERYWHERE = (
    "clusterroles,clusterrolebindings,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with a Velero that runs its Schedules itself, and that has never seen Foresail."""
    with Cluster.create(f"pytest-{os.getpid()}-install", Options(velero="velero", audit=True), owned=True) as found:
        found.restart_velero()
        yield found


@pytest.fixture
def reader(cluster: Cluster, tmp_path: Path) -> Iterator[Reader]:
    with reading(cluster, tmp_path) as found:
        yield found


class Done(NamedTuple):
    """What a command has come to."""

    returncode: int
    stdout: str
    stderr: str


def foresail(cluster: Cluster, *words: str) -> Done:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err):
        code = main([*words, f"--kubeconfig={cluster.kubeconfig}"])
    return Done(code, out.getvalue(), err.getvalue())


def arguments(cluster: Cluster) -> list[str]:
    found = cluster.get("deployment", "velero", "--namespace=velero")
    words: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return words


def left(cluster: Cluster) -> list[str]:
    """Return everything in the cluster that is called after Foresail, but its kinds."""
    own = cluster.kubectl("get", KINDS, "--all-namespaces", "--output=name").split()
    wide = cluster.kubectl("get", EVERYWHERE, "--output=name").split()
    return [each for each in [*own, *wide] if "foresail" in each]


def versions(cluster: Cluster) -> dict[str, str]:
    """Return the versions of everything that the command writes; the operator's Lease and what comes of it left out."""
    words = ("clusterroles", "roles", "deployments", "crd", "serviceaccounts", "rolebindings", "networkpolicies")
    found = [each for kind in words for each in cluster.get(kind, "--all-namespaces")["items"]]
    return {
        each["metadata"]["uid"]: json.dumps(each.get("spec", each["metadata"]["name"])) + _managed(each)
        for each in found
    }


def _managed(item: dict[str, Any]) -> str:
    return str([each for each in item["metadata"].get("managedFields", []) if each["manager"] == "foresail-cli"])


def shop(cluster: Cluster) -> Tenant:
    """Return a team with a namespace, a setting in it and a nightly CronJob."""
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "shop"}})
    cluster.kubectl("create", "rolebinding", "team", "--clusterrole=edit", "--user=team", "--namespace=shop")
    cluster.kubectl("create", "configmap", "settings", "--from-literal=currency=EUR", "--namespace=shop")
    soon = now() + timedelta(minutes=10)
    pod = {"restartPolicy": "Never", "containers": [{"name": "work", "image": "work:1"}]}
    pod["containers"][0]["resources"] = {"requests": {"cpu": "1"}}  # type: ignore[index]
    job = {"spec": {"template": {"spec": pod}}}
    spec = {"schedule": f"{soon.minute} {soon.hour} * * *", "timeZone": "Etc/UTC", "jobTemplate": job}
    cluster.apply(
        {"apiVersion": "batch/v1", "kind": "CronJob", "metadata": {"name": "report", "namespace": "shop"}, "spec": spec}
    )
    return Tenant(cluster.user_kubeconfig("team"), "shop")


def placeholders(cluster: Cluster) -> list[dict[str, Any]]:
    return cluster.listed("/api/v1/namespaces/shop/pods?labelSelector=foresail.dev%2Fprimer")


def test_from_the_readme_installed_used_by_all_three_and_removed_with_nothing_left(
    cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    team = shop(cluster)
    cluster.apply(schedule("nightly", "@every 5s"))
    began = time.monotonic()
    with kubelet(cluster, tmp_path) as played:
        rehearsed = foresail(cluster, "install", "--dry-run", "--self-service")
        assert rehearsed.returncode == 0, rehearsed.stderr
        assert left(cluster) == []
        assert OFF not in arguments(cluster)

        reader.follow(README, "Install")
        assert OFF in arguments(cluster)
        installed = time.monotonic() - began
        assert_a_second_install_writes_nothing(cluster)

        eventually(lambda: backups(cluster, "nightly"), 180)
        eventually(lambda: placeholders(cluster), 180)
        reader.type(f"export ADMIN=$KUBECONFIG KUBECONFIG={team.kubeconfig}")
        reader.type("kubectl config set-context --current --namespace=shop")
        back_up, restore = steps(README, "Back up what is yours")
        reader.type(back_up.command)
        team.kubectl("delete", "configmap", "settings")
        reader.type(restore.command)
        assert team.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
        reader.type("foresail backup logs before-upgrade")
        reader.type("export KUBECONFIG=$ADMIN")

        assert_nothing_was_forbidden_and_what_no_world_has_was_used(cluster)
        assert_refused_while_somebody_else_keeps_velero(cluster)
        removed = foresail(cluster, "uninstall")
        assert removed.returncode == 0, removed.stderr
        took = time.monotonic() - began
        eventually(lambda: played.operator is None, 60)  # the process outlives its Lease by a moment
        assert_nothing_is_left(cluster)
        cluster.kubectl("delete", "nonadminbackup/before-upgrade", "--namespace=shop", "--timeout=120s")  # it was kept
        assert cluster.listed("/apis/velero.io/v1/namespaces/velero/backups"), "and so do the Backups"
        assert foresail(cluster, "uninstall", "--crds").returncode == 0
        eventually(lambda: "foresail" not in cluster.kubectl("get", "crd", "--output=name"), 120)
    figure(f"from the README: installed in {installed:.0f} s, used by all three and removed in {took:.0f} s")


def assert_a_second_install_writes_nothing(cluster: Cluster) -> None:
    before = versions(cluster)
    words = (
        "--self-service",
        "--primers",
        "--image=example.com/foresail:0.1.0",
        "--primer-pause-image=example.com/pause:3.10",
    )
    again = foresail(cluster, "install", *words)
    assert again.returncode == 0, again.stderr
    assert {line.split()[0] for line in again.stdout.splitlines()} == {"unchanged"}
    assert versions(cluster) == before


def assert_nothing_was_forbidden_and_what_no_world_has_was_used(cluster: Cluster) -> None:
    """Of the Roles' other verbs each is shown to be needed in tests/worlds/test_permissions.py."""
    asked = cluster.audit(USER)
    assert [each for each in asked if each.code == HTTPStatus.FORBIDDEN] == []
    used = {(each.resource, each.verb) for each in asked}
    leases = {("leases.coordination.k8s.io", verb) for verb in ("get", "create", "patch")}
    assert {("events.events.k8s.io", "create"), *leases} <= used


def assert_refused_while_somebody_else_keeps_velero(cluster: Cluster) -> None:
    """Velero's Deployment is Helm's for a while: the change is shown, and nothing is removed without it."""
    mark = "meta.helm.sh/release-name"
    cluster.kubectl("annotate", "deployment", "velero", "--namespace=velero", f"{mark}=velero")
    refused = foresail(cluster, "uninstall", "--timeout=1s")
    cluster.kubectl("annotate", "deployment", "velero", "--namespace=velero", f"{mark}-")
    assert refused.returncode == 1
    assert 'configuration:\n      disableControllers: ""' in refused.stdout
    assert "nothing was removed" in refused.stderr
    assert "--leave-schedules-stopped" in refused.stderr
    assert cluster.get("deployment", "foresail", "--namespace=velero")


def assert_nothing_is_left(cluster: Cluster) -> None:
    assert OFF not in arguments(cluster)
    assert left(cluster) == []
    assert OBSERVED not in show(cluster, "nightly")["metadata"].get("annotations", {})
    assert placeholders(cluster) == []


UNATTENDED = "ForesailSchedulesUnattended"
NAMES = ("first", "second")


def monitoring_kind(plural: str, kind: str) -> dict[str, Any]:
    """Return a definition that takes anything, in the place of the Prometheus operator's."""
    group = "monitoring.coreos.com"
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1", "served": True, "storage": True, "schema": schema}
    names = {"plural": plural, "singular": kind.lower(), "kind": kind}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{group}"},
        "spec": {"group": group, "names": names, "scope": "Namespaced", "versions": [version]},
    }


def helm(cluster: Cluster, *words: str) -> None:
    command = [str(program("helm", "helm")), *words, "--namespace=velero", f"--kubeconfig={cluster.kubeconfig}"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def alarms(rule: dict[str, Any], folder: Path, leader: str, minutes: int) -> bool:
    """Ask Prometheus' own tool whether the alert fires so many minutes after the leader showed these figures."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": rule["spec"]["groups"]}))
    asked = {"eval_time": f"{minutes}m", "alertname": UNATTENDED, "exp_alerts": []}
    series = [{"series": "foresail_leader", "values": leader}]
    case = {"interval": "1m", "input_series": series, "alert_rule_test": [asked]}
    cases = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}
    (folder / "cases.yaml").write_text(yaml.safe_dump(cases))
    done = subprocess.run([promtool(), "test", "rules", folder / "cases.yaml"], capture_output=True, check=False)
    return done.returncode != 0  # no alert was expected


def test_uninstalled_by_helm_without_preparation_it_is_missed_and_velero_makes_each_due_run_once(
    cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster.restart_velero("schedule")
    cluster.apply(monitoring_kind("prometheusrules", "PrometheusRule"))
    cluster.kubectl(
        "wait", "--for=condition=Established", "crd/prometheusrules.monitoring.coreos.com", "--timeout=120s"
    )
    with kubelet(cluster, tmp_path) as played:
        helm(cluster, "install", "foresail", str(CHART), "--set=monitoring.rules=true")
        eventually(lambda: played.operator is not None and played.operator.said("leads now"), 180)
        assert played.operator is not None
        operator = played.operator
        eventually(lambda: operator.figures()["foresail_leader"] == 1, 60)
        refused = foresail(cluster, "install")
        assert refused.returncode == 1
        assert "Helm (release foresail in namespace velero) has made it" in refused.stderr
        helm(cluster, "uninstall", "foresail")
        eventually(lambda: played.operator is None, 180)

    rule = cluster.get("prometheusrule", "foresail-unattended", "--namespace=velero")
    assert not alarms(rule, tmp_path, "1x10", 10)
    assert alarms(rule, tmp_path, "1x2 _x20", 2 + 10)

    cluster.apply(*(schedule(name, "@daily") for name in NAMES))
    for name in NAMES:
        put_status(cluster, "schedules", name, lastBackup=f"{now() - timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}")
    # The operator lost its permissions with the rest, so it could not release its Lease, which counts for a while.
    eventually(lambda: doctor(cluster)["grade"] == "problem", 180)
    said = doctor(cluster)
    assert "nobody runs" in said["says"]
    assert f"remove {OFF} from Deployment velero/velero" in said["fix"]

    began = time.monotonic()
    cluster.restart_velero()  # the fix
    eventually(lambda: all(made(cluster, name) for name in NAMES), 300)
    took = time.monotonic() - began
    assert doctor(cluster)["grade"] == "good"
    assert {name: len(made(cluster, name)) for name in NAMES} == dict.fromkeys(NAMES, 1)
    figure(f"removed without preparation: {took:.0f} s after the fix Velero had made each due run once")


def doctor(cluster: Cluster) -> dict[str, str]:
    """Return what the doctor says about who runs the Schedules."""
    found: list[dict[str, str]] = json.loads(foresail(cluster, "doctor", "--output=json").stdout)
    (said,) = (each for each in found if each["about"] == "schedules")
    return said


def made(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    label = f"velero.io%2Fschedule-name%3D{name}"
    return cluster.listed(f"/apis/velero.io/v1/namespaces/velero/backups?labelSelector={label}")
