"""From the README alone: installed, used by all, and removed; without preparation; and where Helm keeps Velero."""

import io
import json
import os
import signal
import subprocess
import textwrap
import time
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout
from datetime import timedelta
from http import HTTPStatus
from pathlib import Path
from typing import Any, NamedTuple

import pytest
import yaml

from foresail.api.marks import OBSERVED, WARM_UP_STATUS
from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster, Options
from testbed.prometheus import promtool
from tests.cluster import monitoring
from tests.cluster.kubelet import kubelet
from tests.cluster.operators import PRIMERS_USER, USER
from tests.cluster.pages import README, Reader, reading, steps
from tests.cluster.schedules import Eventually, Figure, backups, put_status, schedule, show
from tests.cluster.tenants import Tenant
from tests.cluster.velero_release import Release, helm
from tests.cluster.versions import in_matrix

PAGE = "how-to/install.md"
REMOVAL = "how-to/uninstall.md"
OFF = "--disable-controllers=schedule"
IMAGE = "--image=example.com/foresail:0.1.0"
BROKEN = "--image=example.com/foresail:broken"
KINDS = (
    "deployments,services,serviceaccounts,roles,rolebindings,networkpolicies,poddisruptionbudgets,leases,pods,cronjobs"
)
KINDS_OF_OURS = ("foresail.dev", "oadp.openshift.io")
EVERYWHERE = (
    "clusterroles,clusterrolebindings,priorityclasses,validatingadmissionpolicies,validatingadmissionpolicybindings"
)


@pytest.fixture(scope="module")
def cluster() -> Iterator[Cluster]:
    """A cluster with a Velero that runs its Schedules itself, and that has never seen Foresail."""
    options = in_matrix(Options(velero="velero", audit=True))
    with Cluster.create(f"pytest-{os.getpid()}-install", options, owned=True) as found:
        found.restart_velero()
        found.apply(*monitoring.definitions())
        found.wait_for_kinds()
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
        code = main([words[0], f"--kubeconfig={cluster.kubeconfig}", *words[1:]])
    return Done(code, out.getvalue(), err.getvalue())


def arguments(cluster: Cluster) -> list[str]:
    found = cluster.get("deployment", "velero", "--namespace=velero")
    words: list[str] = found["spec"]["template"]["spec"]["containers"][0]["args"]
    return words


def crds(cluster: Cluster) -> str:
    return cluster.kubectl("get", "crd", "--output=name")


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


def test_a_first_install_that_does_not_run_leaves_the_schedules_to_velero_and_names_the_reason(
    cluster: Cluster, tmp_path: Path
) -> None:
    with kubelet(cluster, tmp_path):
        done = foresail(cluster, "install", BROKEN, "--timeout=30s")
        assert done.returncode == 1
        assert "Deployment velero/foresail-schedules is not rolled out: pod foresail-" in done.stderr
        assert ": ErrImagePull" in done.stderr
        assert ": no such image; Velero still runs the Schedules" in done.stderr, done.stderr
        assert OFF not in arguments(cluster)
        assert foresail(cluster, "uninstall", "--crds", "--confirm").returncode == 0
    assert left(cluster) == []


@pytest.mark.timeout(1200)  # eight minutes on a machine that has much else to do
def test_from_the_readme_installed_used_by_all_three_and_removed_with_nothing_left(
    cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    team = shop(cluster)
    cluster.apply(schedule("nightly", "@every 20s"))
    assert_the_doctor_says_who_could_install_it(cluster)
    began = time.monotonic()
    with kubelet(cluster, tmp_path) as played:
        rehearsed = foresail(cluster, "install", IMAGE, "--dry-run", "--self-service", "--monitoring")
        assert rehearsed.returncode == 0, rehearsed.stderr
        assert "ServiceMonitor velero/foresail-schedules" in rehearsed.stdout
        assert "1 Schedule: each can run, and none changes meaning" in rehearsed.stderr
        assert_self_service_stays_off_beside_the_other_controller(cluster)
        assert left(cluster) == []
        assert OFF not in arguments(cluster)

        reader.follow(README, "Install")
        assert OFF in arguments(cluster)
        installed = time.monotonic() - began
        assert_a_second_install_writes_nothing(cluster)

        eventually(lambda: backups(cluster, "nightly"), 180)
        eventually(lambda: placeholders(cluster), 180)
        reader.follow(README, "The first minute: install nothing")
        reader.type(f"export ADMIN=$KUBECONFIG KUBECONFIG={team.kubeconfig}")
        reader.type("kubectl config set-context --current --namespace=shop")
        reader.take_back_a_bad_change(team)
        reader.type("foresail backup logs before-upgrade")
        reader.type("export KUBECONFIG=$ADMIN")

        assert_nothing_was_forbidden_and_what_no_world_has_was_used(cluster)
        assert_refused_while_somebody_else_keeps_velero(cluster)
        assert_schedules_go_back_to_velero_and_the_rest_stays(cluster)
        cluster.kubectl(
            "annotate", "cronjob", "report", "--namespace=shop", f"{WARM_UP_STATUS}={{}}"
        )  # as if annotated
        removed = foresail(cluster, "uninstall")
        assert removed.returncode == 0, removed.stderr
        took = time.monotonic() - began
        eventually(lambda: not played.runs_any, 60)  # the process outlives its Lease by a moment
        assert_nothing_is_left(cluster)
        cluster.kubectl("delete", "nonadminbackup/before-upgrade", "--namespace=shop", "--timeout=120s")  # it was kept
        assert cluster.listed("/apis/velero.io/v1/namespaces/velero/backups"), "and so do the Backups"
        assert foresail(cluster, "uninstall", "--crds").returncode == 2, "nobody confirms it"
        assert foresail(cluster, "uninstall", "--crds", "--confirm").returncode == 0
        eventually(lambda: not [each for each in KINDS_OF_OURS if each in crds(cluster)], 120)
    figure(f"from the README: installed in {installed:.0f} s, used by all three and removed in {took:.0f} s")


@pytest.mark.full
def test_the_script_for_kind_installs_backs_up_and_restores(
    cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    """Every step but those that need containers: kind itself, the image, and what the kubelet would start."""
    (step,) = steps(README, "Try it on kind")
    cluster.kubectl("delete", "namespace", "shop", "--ignore-not-found", "--timeout=120s")
    cluster.kubectl("delete", "schedules.velero.io", "--all", "--namespace=velero")
    reader.type('export OF_KIND="$KUBECONFIG"; kind() { cat "$OF_KIND"; }; export -f kind')  # it asks kind for this
    reader.type("kubectl apply -f hack/bucket.yaml && kubectl delete namespace bucket --wait=false")
    reader.type('velero() { command velero "$@" --dry-run -o yaml; }; export -f velero')
    manifests = reader.type(f"{step.command} velero")
    reader.type("unset -f velero")
    (tmp_path / "velero.yaml").write_text(manifests[manifests.index("apiVersion:") :])
    reader.type("kubectl apply --dry-run=server -f velero.yaml")
    began = time.monotonic()
    with kubelet(cluster, tmp_path) as played:
        printed = reader.type(f"{step.command} install tour")
        took = time.monotonic() - began
        assert "jsonpath={.data.tea}\n3" in printed
        assert "nightly" in printed.partition("$ foresail schedule get")[2]
        assert foresail(cluster, "uninstall", "--crds", "--confirm").returncode == 0
        eventually(lambda: not played.runs_any, 60)
    figure(f"the script for kind: installed, backed up and restored in {took:.0f} s")


def assert_the_doctor_says_who_could_install_it(cluster: Cluster) -> None:
    assert [each["grade"] for each in doctor(cluster, "permissions")] == ["good"]
    cluster.kubectl("create", "clusterrolebinding", "looker", "--clusterrole=view", "--user=looker")
    looker = cluster.user_kubeconfig("looker")
    deadline = time.monotonic() + 30
    while not (found := doctor(cluster, "permissions", looker)) and time.monotonic() < deadline:
        time.sleep(1)  # until the binding is in effect, the doctor takes them for a team
    (said,) = found
    assert said["grade"] == "warning"
    assert "you may not create leases.coordination.k8s.io" in said["says"]


def assert_self_service_stays_off_beside_the_other_controller(cluster: Cluster) -> None:
    words = ("deployment", "oadp-non-admin-controller", "--namespace=default")
    cluster.kubectl("create", *words, "--image=other", "--replicas=0")
    harmless = foresail(cluster, "install", IMAGE, "--dry-run", "--self-service")
    binding = ("clusterrolebinding", "rival")
    cluster.kubectl("create", *binding, "--clusterrole=cluster-admin", "--serviceaccount=default:default")
    rehearsed = foresail(cluster, "install", IMAGE, "--dry-run", "--self-service")
    cluster.kubectl("delete", *binding)
    cluster.kubectl("delete", *words)
    assert "self-service stays off" not in harmless.stderr, "any tenant can create such a Deployment"
    assert rehearsed.returncode == 0, rehearsed.stderr
    assert "self-service stays off: Deployment default/oadp-non-admin-controller" in rehearsed.stderr
    assert "SelfServicePolicy" not in rehearsed.stdout


def assert_a_second_install_writes_nothing(cluster: Cluster) -> None:
    before = versions(cluster)
    words = (
        "--self-service",
        "--rollback",
        "--primers",
        IMAGE,
        "--primer-pause-image=example.com/pause:3.10",
    )
    again = foresail(cluster, "install", *words)
    assert again.returncode == 0, again.stderr
    assert {line.split()[0] for line in again.stdout.splitlines()} == {"unchanged"}, again.stdout
    upgraded = foresail(cluster, "install")
    assert upgraded.returncode == 0, upgraded.stderr
    assert {line.split()[0] for line in upgraded.stdout.splitlines()} == {"unchanged"}, "what is not named stays"
    stuck = foresail(cluster, "install", BROKEN, "--timeout=40s")  # a busy node reports late
    assert stuck.returncode == 1, "an operator that leads is the old one"
    assert ": no such image" in stuck.stderr
    assert foresail(cluster, "install", IMAGE).returncode == 0
    refused = foresail(cluster, "install", "--self-service=false")
    assert refused.returncode == 2
    assert "refusing to delete without confirmation" in refused.stderr
    assert versions(cluster) == before


def assert_nothing_was_forbidden_and_what_no_world_has_was_used(cluster: Cluster) -> None:
    """Of the Roles' other verbs each is shown to be needed in tests/worlds/test_permissions.py."""
    leases = {("leases.coordination.k8s.io", verb) for verb in ("get", "create", "patch")}
    for user in (USER, PRIMERS_USER):
        asked = cluster.audit(user)
        assert [each for each in asked if each.code == HTTPStatus.FORBIDDEN] == []
        assert leases <= {(each.resource, each.verb) for each in asked}
    assert "events.events.k8s.io" in {each.resource for each in cluster.audit(USER)}
    assert "pods" in {each.resource for each in cluster.audit(PRIMERS_USER) if each.verb == "create"}


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
    assert cluster.get("deployment", "foresail-self-service", "--namespace=velero")


def assert_schedules_go_back_to_velero_and_the_rest_stays(cluster: Cluster) -> None:
    done = foresail(cluster, "install", "--schedules=false", "--confirm")
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    back = lines.index("changed     Deployment velero/velero: Velero's schedule controller is on")
    own = lines.index("deleted     Deployment velero/foresail-schedules")
    [other] = [line for line in lines if line.startswith("changed     Deployment velero/foresail-self-service: ")]
    assert "spec.template.spec.containers[0].args" in other, "the fields that changed: no Schedules to heed"
    assert back < own < lines.index("deleted     Role velero/foresail-schedules")
    assert OFF not in arguments(cluster)
    assert OBSERVED not in show(cluster, "nightly")["metadata"].get("annotations", {})
    assert "Off: schedules (--schedules)" in done.stderr, "and nothing else"
    again = foresail(cluster, "install", "--schedules=false")
    assert again.returncode == 0, again.stderr
    assert {line.split()[0] for line in again.stdout.splitlines()} == {"unchanged"}, again.stdout


def assert_nothing_is_left(cluster: Cluster) -> None:
    assert OFF not in arguments(cluster)
    assert left(cluster) == []
    assert OBSERVED not in show(cluster, "nightly")["metadata"].get("annotations", {})
    job = cluster.get("cronjob", "report", "--namespace=shop")
    assert WARM_UP_STATUS not in job["metadata"].get("annotations", {})
    assert placeholders(cluster) == []


UNATTENDED = "ForesailSchedulesUnattended"
NAMES = ("first", "second")


def alarms(rule: dict[str, Any], folder: Path, leader: str, minutes: int) -> bool:
    """Ask Prometheus' own tool whether the alert fires so many minutes after the leader showed these figures."""
    (folder / "rules.yaml").write_text(yaml.safe_dump({"groups": rule["spec"]["groups"]}))
    asked = {"eval_time": f"{minutes}m", "alertname": UNATTENDED, "exp_alerts": []}
    series = [{"series": 'leader_election_master_status{name="foresail-schedules"}', "values": leader}]
    case = {"interval": "1m", "input_series": series, "alert_rule_test": [asked]}
    cases = {"rule_files": ["rules.yaml"], "evaluation_interval": "1m", "tests": [case]}
    (folder / "cases.yaml").write_text(yaml.safe_dump(cases))
    done = subprocess.run([promtool(), "test", "rules", folder / "cases.yaml"], capture_output=True, check=False)
    return done.returncode != 0  # no alert was expected


def test_uninstalled_by_helm_without_preparation_it_is_missed_and_velero_makes_each_due_run_once(
    cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    cluster.restart_velero("schedule")
    with kubelet(cluster, tmp_path) as played:
        reader.follow(PAGE, "With Helm")
        reader.type("helm upgrade foresail charts/foresail -n velero --reuse-values --set monitoring.rules=true")
        eventually(lambda: played.operator is not None and played.operator.said("became leader"), 180)
        assert played.operator is not None
        operator = played.operator
        eventually(lambda: operator.figures()['leader_election_master_status{name="foresail-schedules"}'] == 1, 60)
        refused = foresail(cluster, "install", IMAGE)
        assert refused.returncode == 1
        assert "created by Helm (release foresail in namespace velero)" in refused.stderr
        helm(cluster, "uninstall", "foresail")
        eventually(lambda: played.operator is None, 180)

    rule = cluster.get("prometheusrule", "foresail-unattended", "--namespace=velero")
    assert not alarms(rule, tmp_path, "1x10", 10)
    assert alarms(rule, tmp_path, "1x2 _x20", 2 + 10)

    cluster.apply(*(schedule(name, "@daily") for name in NAMES))
    for name in NAMES:
        put_status(cluster, "schedules", name, lastBackup=f"{now() - timedelta(days=2):%Y-%m-%dT%H:%M:%SZ}")
    # The operator lost its permissions with the rest, so it could not release its Lease, which counts for a while.
    eventually(lambda: doctor(cluster)[0]["grade"] == "problem", 180)
    (said,) = doctor(cluster)
    assert "nothing runs" in said["says"]
    assert f"remove {OFF} from Deployment velero/velero" in said["fix"]

    began = time.monotonic()
    cluster.restart_velero()  # the fix
    eventually(lambda: all(made(cluster, name) for name in NAMES), 300)
    took = time.monotonic() - began
    well, left_behind = doctor(cluster)
    assert (well["grade"], left_behind["grade"]) == ("good", "warning")
    assert left_behind["fix"] == "kubectl delete prometheusrule foresail-unattended -n velero"
    assert {name: len(made(cluster, name)) for name in NAMES} == dict.fromkeys(NAMES, 1)
    figure(f"removed without preparation: {took:.0f} s after the fix Velero had made each due run once")


def doctor(cluster: Cluster, about: str = "schedules", kubeconfig: Path | None = None) -> list[dict[str, str]]:
    """Return what the doctor says about one thing."""
    words = [f"--kubeconfig={kubeconfig}"] if kubeconfig else []
    found: list[dict[str, str]] = json.loads(foresail(cluster, "doctor", "--output=json", *words).stdout)
    return [each for each in found if each["about"] == about]


def made(cluster: Cluster, name: str) -> list[dict[str, Any]]:
    label = f"velero.io%2Fschedule-name%3D{name}"
    return cluster.listed(f"/apis/velero.io/v1/namespaces/velero/backups?labelSelector={label}")


class Typed:
    """A command of the page that waits for somebody: typed as it stands, and read while it runs."""

    def __init__(self, reader: Reader, page: str, section: str, log: Path) -> None:
        (step,) = steps(page, section)
        self._log = log
        self.process = reader.begin(step.command, log)

    @property
    def said(self) -> str:
        return self._log.read_text()

    @property
    def asked_for(self) -> str:
        """The change that it asks for, as it is printed."""
        return textwrap.dedent("".join(line for line in self.said.splitlines(keepends=True) if line[:4] == "    "))

    def waits(self) -> bool:
        return "waiting until Helm (release velero in namespace velero) has switched" in self.said


def test_where_helm_manages_velero_the_change_is_shown_and_the_installation_continues_once_it_is_made(
    cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually
) -> None:
    release = Release(cluster, tmp_path)
    with kubelet(cluster, tmp_path) as played:
        assert_nobody_waits_for_ever(cluster, reader, tmp_path, eventually)

        typed = Typed(reader, PAGE, "With the command", tmp_path / "install.log")
        eventually(typed.waits, 180)
        assert "left alone  CustomResourceDefinition" in typed.said, "Helm has made them too"
        assert typed.asked_for == 'configuration:\n  disableControllers: "schedule"\n'
        release.change(typed.asked_for)
        assert typed.process.wait(300) == 0, typed.said
        assert OFF in arguments(cluster)
        assert played.operator is not None
        assert [each["grade"] for each in doctor(cluster)] == ["good"]

        stopped = foresail(cluster, "uninstall", "--dry-run", "--leave-schedules-stopped")
        assert stopped.returncode == 0, stopped.stderr
        assert "deleted     Deployment velero/foresail-schedules" in stopped.stdout
        assert "foresail-unattended" not in stopped.stdout, "it says that nobody runs the Schedules"

        typed = Typed(reader, REMOVAL, "Remove it", tmp_path / "uninstall.log")
        eventually(typed.waits, 180)
        release.change(typed.asked_for)
        assert typed.process.wait(300) == 0, typed.said
        assert OFF not in arguments(cluster)
        assert "deleted     PrometheusRule velero/foresail-unattended" in typed.said, "which Helm had left behind"
    assert left(cluster) == []
    assert [each["grade"] for each in doctor(cluster)] == ["good"]


def assert_nobody_waits_for_ever(cluster: Cluster, reader: Reader, tmp_path: Path, eventually: Eventually) -> None:
    """Neither the time-out nor Ctrl-C takes anything from Velero."""
    refused = foresail(cluster, "install", IMAGE, "--timeout=30s")
    assert refused.returncode == 1
    assert "has not switched Velero's schedule controller off" in refused.stderr
    assert "--timeout waits longer" in refused.stderr
    typed = Typed(reader, PAGE, "With the command", tmp_path / "stopped.log")
    eventually(typed.waits, 180)
    typed.process.send_signal(signal.SIGINT)
    assert typed.process.wait(60) == 130
    assert "run the same command to continue" in typed.said
    assert OFF not in arguments(cluster)
    assert doctor(cluster)[0]["says"] == "Velero's own schedule controller is on, so the operator fires nothing"
