"""`foresail schedule` as its own process on a real cluster, beside Velero's own command line on the same objects.

It runs as somebody who may do in Velero's namespace what docs/reference/schedule.md says, and nothing else.
"""

import json
import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest

from testbed import Cluster
from testbed.build import program
from tests.cluster.kinds import rule

ROOT = Path(__file__).parents[2]
RBAC = "rbac.authorization.k8s.io"
HOUR_AGO = "2026-01-01T00:00:00Z"
OPTIONS = [
    [],
    ["--ttl", "72h", "--labels", "team=web,tier=1", "--selector", "app=web,tier in (b,a),!old"],
    ["--paused", "--skip-immediately=true", "--use-owner-references-in-backup"],
    ["--include-namespaces", "a,b", "--exclude-namespaces", "c", "--or-selector", "app=web or app=shop"],
    ["--include-resources", "pods,deployments.apps", "--exclude-resources", "secrets", "--include-cluster-resources"],
    ["--include-cluster-scoped-resources", "storageclasses", "--exclude-namespace-scoped-resources", "secrets"],
    ["--exclude-cluster-scoped-resources", "*", "--include-namespace-scoped-resources", "pods"],
    ["--snapshot-volumes=false", "--snapshot-move-data", "--default-volumes-to-fs-backup", "--data-mover", "velero"],
    ["--storage-location", "default", "--volume-snapshot-locations", "there", "--parallel-files-upload", "4"],
    ["--csi-snapshot-timeout", "90s", "--item-operation-timeout", "1h30m", "--resource-policies-configmap", "rules"],
    ["--ordered-resources", "pods=n/a,n/b;persistentvolumeclaims=n/c"],
]


@dataclass(frozen=True)
class Said:
    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:  # noqa: ANN401 - JSON is any
        return json.loads(self.out)


class Foresail:
    def __init__(self, kubeconfig: Path) -> None:
        self.kubeconfig = kubeconfig

    def __call__(self, *words: str) -> Said:
        command = [sys.executable, "-m", "foresail", "schedule", *words]
        # As installed: with bytecode, which a developer's environment may forbid.
        environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
        environment["KUBECONFIG"] = str(self.kubeconfig)
        done = subprocess.run(
            command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
        )
        return Said(done.returncode, done.stdout, done.stderr)

    def done(self, *words: str) -> Said:
        """Run a command that must succeed."""
        said = self(*words)
        assert said.code == 0, said.err
        return said


def namespaced_admin(cluster: Cluster, user: str, *rules: dict[str, Any]) -> Path:
    """Return the kubeconfig of a user who may do in Velero's namespace what the rules say."""
    metadata = {"name": f"cli-{user}", "namespace": "velero"}
    cluster.apply(
        {"apiVersion": f"{RBAC}/v1", "kind": "Role", "metadata": metadata, "rules": list(rules)},
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "Role", "name": f"cli-{user}"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": user}],
        },
    )
    return cluster.user_kubeconfig(user)


@pytest.fixture(scope="module")
def foresail(velero_cluster: Cluster) -> Foresail:
    rules = [
        rule("velero.io", ["schedules"], "get", "list", "create", "patch", "delete"),
        rule("velero.io", ["backups"], "get", "list", "create"),
        rule("velero.io", ["backupstoragelocations"], "list"),
        rule("velero.io", ["volumesnapshotlocations"], "get"),
        rule("apps", ["deployments"], "list"),
        {**rule("coordination.k8s.io", ["leases"], "get"), "resourceNames": ["foresail-schedules"]},
    ]
    return Foresail(namespaced_admin(velero_cluster, "ann", *rules))


@pytest.fixture(scope="module", autouse=True)
def policy_reader(velero_cluster: Cluster) -> None:
    """Let ann list SchedulePolicies, which have no namespace; the cluster does not serve the kind."""
    metadata = {"name": "cli-ann"}
    velero_cluster.apply(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": metadata,
            "rules": [rule("foresail.dev", ["schedulepolicies"], "list")],
        },
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": "cli-ann"},
            "subjects": [{"apiGroup": RBAC, "kind": "User", "name": "ann"}],
        },
    )


@pytest.fixture(autouse=True)
def no_schedules_left(velero_cluster: Cluster) -> Iterator[None]:
    yield
    velero_cluster.kubectl("delete", "schedules.velero.io", "--all", "--namespace=velero")


def schedule(name: str, text: str = "0 3 * * *", **given: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a Schedule with what is given in `metadata`, `spec` and `status`."""
    return {
        "apiVersion": "velero.io/v1",
        "kind": "Schedule",
        "metadata": {"name": name, "namespace": "velero", **given.get("metadata", {})},
        "spec": {"schedule": text, "template": {"includedNamespaces": ["default"]}, **given.get("spec", {})},
        "status": given.get("status", {}),
    }


def stored(cluster: Cluster, name: str) -> dict[str, Any]:
    found: dict[str, Any] = cluster.get("schedule.velero.io", name, "--namespace=velero")
    return found


def sections(text: str) -> list[str]:
    """Return what `describe` says of each Schedule, without colours: Velero writes some even into a pipe.

    The kinds under OrderedResources are put in order: Velero takes them from a map, so in another order each time.
    """
    plain = re.sub(r"\033\[[0-9;]*m", "", text)
    plain = re.sub(
        r"(?<=OrderedResources:\n)(?: {4}.*\n)+",
        lambda kinds: "".join(sorted(kinds[0].splitlines(keepends=True))),
        plain,
    )
    return [each.rstrip("\n") for each in re.split(r"^(?=Name: )", plain, flags=re.MULTILINE) if each]


def cells(row: str) -> list[str]:
    """Return the cells of a row."""
    return [cell for cell in re.split(r" {3,}", row) if cell]


@pytest.mark.full
def test_create_makes_what_velero_makes_of_the_same_options_and_shows_it_as_velero_does(
    velero_cluster: Cluster, foresail: Foresail
) -> None:
    location = {"apiVersion": "velero.io/v1", "kind": "VolumeSnapshotLocation", "spec": {"provider": "aws"}}
    velero_cluster.apply({**location, "metadata": {"name": "there", "namespace": "velero"}})
    names = [f"daily-{number:02}" for number in range(len(OPTIONS))]
    for name, options in zip(names, OPTIONS, strict=True):
        words = ("create", name, "--schedule", "0 3 * * *", *options)
        veleros = json.loads(velero_cluster.velero("schedule", *words, "--output=json"))
        policy = veleros["spec"]["template"].get("resourcePolicy", {})
        policy.pop("apiGroup", None)  # null, which the API server drops
        said = foresail.done(*words)
        assert said.out == ""
        assert said.err.startswith(f'Schedule "{name}" created successfully.')
        made = stored(velero_cluster, name)
        assert made["spec"] == veleros["spec"]
        assert made["metadata"].get("labels") == veleros["metadata"].get("labels")

    theirs = sections(velero_cluster.velero("schedule", "describe", *names))
    ours = sections(foresail.done("describe", *names).out)
    assert len(ours) == len(theirs) == len(OPTIONS)
    for our, their in zip(ours, theirs, strict=True):
        assert our.startswith(their)
    header, *rows = velero_cluster.velero("schedule", "get").splitlines()
    our_header, *our_rows = foresail.done("get", "-o", "wide").out.splitlines()
    assert our_header.startswith(header)
    assert [cells(row)[:8] for row in our_rows] == [cells(row) for row in rows]


def test_create_can_show_a_schedule_as_velero_does_without_sending_it(
    velero_cluster: Cluster, foresail: Foresail
) -> None:
    words = ("create", "daily", "--schedule", "0 3 * * *", "--ttl", "72h", "--output=json")
    assert foresail.done(*words).json["spec"] == json.loads(velero_cluster.velero("schedule", *words))["spec"]
    assert velero_cluster.get("schedules.velero.io", "--namespace=velero")["items"] == []


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("0 3 * *", "there are 4 fields instead of five"),
        ("0 0 30 2 *", "never fires"),
        ("0 */24 * * *", "hour"),  # go-cron, so Velero 1.18.3, refuses it; releases before it did not
    ],
)
def test_an_expression_that_this_velero_would_not_run_is_not_sent(
    velero_cluster: Cluster, foresail: Foresail, text: str, problem: str
) -> None:
    said = foresail("create", "x", "--schedule", text)
    assert (said.code, said.out) == (1, "")
    assert problem in said.err
    assert "hint: " in said.err
    assert velero_cluster.get("schedules.velero.io", "--namespace=velero")["items"] == []


@pytest.mark.full
def test_create_refuses_what_does_not_exist_and_what_exists_already(foresail: Foresail) -> None:
    words = ("create", "daily", "--schedule", "0 3 * * *")
    said = foresail(*words, "--storage-location", "moon")
    assert said.err == "error: BackupStorageLocation velero/moon does not exist\nhint: existing: default\n"
    assert (
        "VolumeSnapshotLocation velero/moon does not exist"
        in foresail(*words, "--volume-snapshot-locations", "moon").err
    )
    foresail.done(*words)
    assert foresail(*words).err.startswith("error: Schedule velero/daily already exists\nhint: ")


@pytest.mark.full
def test_get_chooses_by_name_and_label_and_prints_in_every_form(velero_cluster: Cluster, foresail: Foresail) -> None:
    velero_cluster.apply(
        schedule("a", metadata={"labels": {"team": "web"}}),
        schedule("b", "@every 6h"),
        schedule("c", spec={"paused": True}),
    )
    assert foresail.done("get", "-o", "name").out.split() == [f"schedule.velero.io/{each}" for each in "abc"]
    assert foresail.done("get", "-l", "team=web", "-o", "name").out == "schedule.velero.io/a\n"
    said = foresail("get", "-l", "team in (")
    assert said.err.startswith("error: -l 'team in (': unable to parse requirement")
    one = foresail.done("get", "b", "-o", "json").json
    whole = stored(velero_cluster, "b")
    whole["metadata"].pop("managedFields", None)
    assert one == whole
    assert [each["metadata"]["name"] for each in foresail.done("get", "-o", "json").json["items"]] == ["a", "b", "c"]
    table = foresail.done("get").out.splitlines()
    assert table[0].split("   ")[0].strip() == "NAME"
    assert table[1].endswith("NobodyRuns"), "Velero's schedule controller is off, and there is no operator"
    assert table[3].endswith("Paused")
    assert "\033[" not in "".join(table)
    missing = foresail("get", "nope")
    assert (missing.code, missing.out) == (1, "")
    assert missing.err.startswith("error: Schedule velero/nope does not exist\nhint: ")


def test_all_namespaces_need_a_cluster_role_and_show_the_namespace(velero_cluster: Cluster, foresail: Foresail) -> None:
    said = foresail("get", "-A")
    assert said.code == 1
    assert "you may not list schedules.velero.io in all namespaces" in said.err
    assert (
        "hint: a ClusterRole must allow {apiGroups: ['velero.io'], resources: [schedules], verbs: [list]}" in said.err
    )
    velero_cluster.apply(schedule("a"))
    everywhere = Foresail(velero_cluster.kubeconfig).done("get", "-A").out.splitlines()
    assert everywhere[0].startswith("NAMESPACE   NAME")
    assert everywhere[1].startswith("velero      a ")


@pytest.mark.parametrize(
    ("resources", "permission"),
    [
        ({"velero.io": []}, "apiGroups: ['velero.io'], resources: [schedules], verbs: [list]"),
        ({"velero.io": ["schedules"]}, "apiGroups: ['velero.io'], resources: [backups], verbs: [list]"),
        (
            {"velero.io": ["schedules", "backups", "backupstoragelocations"]},
            "apiGroups: ['apps'], resources: [deployments], verbs: [list]",
        ),
    ],
)
def test_a_missing_permission_is_named(
    velero_cluster: Cluster, resources: dict[str, list[str]], permission: str
) -> None:
    velero_cluster.apply(schedule("a"))
    rules = [rule(group, names, "list") for group, names in resources.items() if names]
    said = Foresail(namespaced_admin(velero_cluster, "bob", *rules))("get")
    assert (said.code, said.out) == (1, "")
    assert f"hint: a Role in velero must allow {{{permission}}}" in said.err


def test_whoever_may_change_schedules_and_nothing_else_can_pause_them(velero_cluster: Cluster) -> None:
    velero_cluster.apply(schedule("a"))
    carol = Foresail(namespaced_admin(velero_cluster, "carol", rule("velero.io", ["schedules"], "get", "patch")))
    assert carol.done("pause", "a").err == "Schedule a paused successfully\n"
    said = carol.done("unpause", "a")
    assert said.err.startswith("Schedule a unpaused successfully\nhint: cannot find out what fires Schedules in velero")
    assert not stored(velero_cluster, "a")["spec"]["paused"]


def test_a_plain_unpause_keeps_the_stored_field_and_the_option_sets_it(
    velero_cluster: Cluster, foresail: Foresail
) -> None:
    velero_cluster.apply(schedule("a", spec={"paused": True, "skipImmediately": True}), schedule("b"))
    assert foresail.done("unpause", "a").err.startswith("Schedule a unpaused successfully\n")
    spec = stored(velero_cluster, "a")["spec"]
    assert (spec["paused"], spec["skipImmediately"]) == (False, True)

    assert "Schedule b is already unpaused, skip" in foresail.done("unpause", "a", "b").err
    assert foresail.done("pause", "--all", "-o", "name").out == "schedule.velero.io/a\nschedule.velero.io/b\n"
    foresail.done("unpause", "--skip-immediately=false", "a")
    foresail.done("unpause", "--skip-immediately", "b")  # what stands behind the option is the name
    assert [stored(velero_cluster, each)["spec"]["skipImmediately"] for each in "ab"] == [False, True]


def test_veleros_own_command_line_works_on_the_same_objects(velero_cluster: Cluster, foresail: Foresail) -> None:
    foresail.done("create", "a", "--schedule", "0 3 * * *", "--ttl", "72h")
    assert "72h0m0s" in velero_cluster.velero("schedule", "get", "a")
    velero_cluster.velero("schedule", "pause", "a")
    assert foresail.done("explain", "a", "-o", "json").json[0]["reason"] == "Paused"
    velero_cluster.velero("schedule", "unpause", "a")
    assert foresail.done("explain", "a", "-o", "json").json[0]["reason"] is None
    foresail.done("pause", "a")
    assert "true" in velero_cluster.velero("schedule", "get", "a")
    velero_cluster.velero("schedule", "delete", "a", "--confirm")
    assert foresail.done("get").err == "No schedules found in namespace velero\n"


def test_a_dry_run_says_what_would_be_sent_and_sends_nothing(velero_cluster: Cluster, foresail: Foresail) -> None:
    velero_cluster.apply(schedule("a"))
    before = stored(velero_cluster, "a")["metadata"]["resourceVersion"]
    path = "/apis/velero.io/v1/namespaces/velero"
    assert foresail.done("pause", "a", "--skip-immediately=true", "--dry-run", "-o", "json").json == [
        {
            "method": "PATCH",
            "path": f"{path}/schedules/a",
            "body": {"spec": {"paused": True, "skipImmediately": True}},
        }
    ]
    assert foresail.done("delete", "a", "--dry-run").out == f"- method: DELETE\n  path: {path}/schedules/a\n"
    made = foresail.done("run", "a", "--dry-run", "-o", "json").json[0]
    assert (made["method"], made["path"]) == ("POST", f"{path}/backups")
    assert foresail.done("create", "b", "--schedule", "@daily", "--dry-run").out.startswith("apiVersion: velero.io/v1")
    assert [each["metadata"]["name"] for each in velero_cluster.get("schedules", "-n", "velero")["items"]] == ["a"]
    assert stored(velero_cluster, "a")["metadata"]["resourceVersion"] == before
    backups = velero_cluster.get("backups.velero.io", "-n", "velero", "-l", "velero.io/schedule-name=a")
    assert backups["items"] == []


def test_a_run_makes_a_real_backup_of_a_paused_schedule_and_does_not_touch_it(
    velero_cluster: Cluster, foresail: Foresail
) -> None:
    velero_cluster.apply(schedule("a", spec={"paused": True}, metadata={"labels": {"team": "web"}}))
    before = stored(velero_cluster, "a")
    said = foresail.done("run", "a", "--wait", "-o", "name", "--annotations", "why=test")
    kind, _, name = said.out.strip().partition("/")
    assert kind == "backup.velero.io"
    assert re.search(r"100 %  \d+ of \d+ items  Completed\n", said.err)
    assert said.err.endswith(f"Backup velero/{name} has completed.\n")
    backup = velero_cluster.get("backup.velero.io", name, "--namespace=velero")
    assert backup["status"]["phase"] == "Completed"
    assert backup["metadata"]["labels"].items() >= {"team": "web", "velero.io/schedule-name": "a"}.items()
    assert backup["metadata"]["annotations"]["why"] == "test"
    assert f"backups/{name}/{name}.tar.gz" in velero_cluster.bucket_objects()
    assert stored(velero_cluster, "a") == before
    shown = foresail.done("describe", "a").out
    assert "Last Result:       Completed" in shown
    assert f"  {name}   Completed   <by hand>" in shown


def test_waiting_for_a_backup_that_cannot_be_made_ends_with_an_error(
    velero_cluster: Cluster, foresail: Foresail
) -> None:
    velero_cluster.apply(schedule("a", spec={"template": {"storageLocation": "moon"}}))
    said = foresail("run", "a", "--wait")
    assert said.code == 1
    assert re.search(r"error: Backup velero/a-\S+ is FailedValidation: .*moon", said.err)
    assert "hint: see velero backup logs a-" in said.err


def test_what_blocks_a_run_is_named_without_the_operator(velero_cluster: Cluster, foresail: Foresail) -> None:
    due = {"phase": "Enabled", "lastBackup": HOUR_AGO}
    running = {
        "apiVersion": "velero.io/v1",
        "kind": "Backup",
        "metadata": {"name": "stuck", "namespace": "velero", "labels": {"velero.io/schedule-name": "busy"}},
        "spec": {},
        "status": {"phase": "InProgress"},  # Velero itself leaves it alone: it works only on what it has started
    }
    velero_cluster.apply(
        running,
        schedule("busy", "* * * * *", status=due),
        schedule("lost", "* * * * *", status=due, spec={"template": {"storageLocation": "moon"}}),
        schedule("never", "0 0 30 2 *", status=due),
        schedule("free", "* * * * *", status=due),
    )
    try:
        found = {each["name"]: each for each in foresail.done("explain", "-o", "json").json}
        assert {name: each["reason"] for name, each in found.items()} == {
            "busy": "Busy",
            "free": None,
            "lost": "LocationUnavailable",
            "never": "NeverFires",
        }
        assert found["busy"]["message"].startswith("Backup velero/stuck is InProgress")
        assert found["free"]["due"]
        lines = foresail.done("explain", "free").out.splitlines()
        assert next(line for line in lines if line.startswith("→")).endswith("no replica holds its Lease")
        assert "nothing fires Schedules in velero" in foresail.done("get").err
        simulated = foresail.done("simulate", "lost", "-o", "json").json
        assert {each["outcome"] for each in simulated} == {"held"}
    finally:
        velero_cluster.kubectl("delete", "backup.velero.io", "stuck", "--namespace=velero")


def test_it_is_said_when_velero_itself_fires_and_when_another_manager_undoes_a_change(
    velero_cluster: Cluster, foresail: Foresail
) -> None:
    tracked = {"annotations": {"argocd.argoproj.io/tracking-id": "shop:velero.io/Schedule:velero/a"}}
    velero_cluster.apply(schedule("a", metadata=tracked))
    assert (
        "Schedule velero/a is managed by Argo CD (Application shop), which will undo" in foresail.done("pause", "a").err
    )
    arguments = "/spec/template/spec/containers/0/args"
    before = velero_cluster.get("deployment", "velero", "--namespace=velero")["spec"]["template"]["spec"]
    patch = ("patch", "deployment", "velero", "--namespace=velero", "--type=json", "--patch")
    try:
        change = [{"op": "replace", "path": arguments, "value": ["server"]}]
        velero_cluster.kubectl(*patch, json.dumps(change))
        said = foresail.done("unpause", "a")
        assert "Velero's own schedule controller is on: Velero fires these Schedules" in said.err
    finally:
        change = [{"op": "replace", "path": arguments, "value": before["containers"][0]["args"]}]
        velero_cluster.kubectl(*patch, json.dumps(change))


def test_a_schedule_is_deleted_only_if_somebody_confirms(velero_cluster: Cluster, foresail: Foresail) -> None:
    velero_cluster.apply(schedule("a"), schedule("b"))
    said = foresail("delete", "a")
    assert (said.code, said.err) == (
        2,
        "error: refusing to delete without confirmation (no terminal): Schedule velero/a\nhint: add --confirm\n",
    )
    assert "no Schedule is specified" in foresail("delete", "--confirm").err
    assert foresail.done("delete", "a", "--confirm").err == "Schedule deleted: a\n"
    assert foresail.done("delete", "--all", "--confirm", "-o", "name").out == "schedule.velero.io/b\n"
    assert velero_cluster.get("schedules.velero.io", "--namespace=velero")["items"] == []


def test_the_calendar_shows_the_pile_up_of_a_night(velero_cluster: Cluster, foresail: Foresail, tmp_path: Path) -> None:
    velero_cluster.apply(*(schedule(f"app-{number:02}", "0 0 * * *") for number in range(12)))
    velero_cluster.apply(schedule("off", spec={"paused": True}))
    said = foresail.done("calendar", "--from", "2027-03-01")
    assert "Mon 01 Mar  #·" in said.out
    assert "every day at 00:00: 12 (app-00, " in said.out
    assert said.err == "hint: 1 schedule is paused, so not drawn\n"
    file = tmp_path / "week.svg"
    foresail.done("calendar", "--from", "2027-03-01", "--svg", str(file))
    assert file.read_text().count("<title>12</title>") == 7


@pytest.fixture
def operator(velero_cluster: Cluster) -> Iterator[None]:
    """The operator as its own process, with the rights that its chart gives it."""
    helm = program("helm", "helm")
    chart = ROOT / "charts" / "foresail"
    rendered = subprocess.run(
        [helm, "template", "foresail", chart, "--namespace", "velero"], capture_output=True, text=True, check=True
    )
    velero_cluster.kubectl("apply", "--filename=-", text=rendered.stdout)
    kubeconfig = velero_cluster.service_account_kubeconfig("velero", "foresail-schedules")
    words = ["operator", "run", f"--kubeconfig={kubeconfig}", "--identity=tested", "--host=127.0.0.1", "--port=0"]
    with subprocess.Popen([sys.executable, "-m", "foresail", *words], stderr=subprocess.DEVNULL) as running:
        try:
            yield
        finally:
            running.terminate()
            running.wait(60)


@pytest.mark.usefixtures("operator")
def test_the_command_line_and_the_operator_agree(
    velero_cluster: Cluster, foresail: Foresail, eventually: Callable[[Callable[[], object], float], None]
) -> None:
    foresail.done("create", "a", "--schedule", "0 3 * * *")
    eventually(lambda: not foresail.done("get").err, 180)  # no hint that nobody fires
    due = {"phase": "Enabled", "lastBackup": HOUR_AGO}
    velero_cluster.apply(schedule("late", "0 3 1 1 *", spec={"paused": True}, status=due))
    eventually(lambda: "foresail.dev/observed" in stored(velero_cluster, "late")["metadata"].get("annotations", {}), 60)
    said = foresail.done("describe", "late").out
    assert "Waiting:           Paused: it is paused since 20" in said

    assert foresail.done("unpause", "late", "--skip-immediately").err == "Schedule late unpaused successfully\n"
    eventually(lambda: stored(velero_cluster, "late")["status"].get("lastSkipped"), 60)
    assert "skipImmediately" not in stored(velero_cluster, "late")["spec"]
    explained = foresail.done("explain", "late").out
    assert "→ waits        a run is due" in explained
    assert "ok           Foresail's operator runs                    tested" in explained
    backups = velero_cluster.get("backups.velero.io", "-n", "velero", "-l", "velero.io/schedule-name=late")
    assert backups["items"] == []
