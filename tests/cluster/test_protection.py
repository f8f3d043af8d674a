"""Protection by label on a real cluster with Velero: as an administrator and a team use it, and who may choose."""

import json
import subprocess
import time
from collections.abc import Iterator
from contextlib import ExitStack
from typing import Any

import pytest

from testbed import Cluster
from testbed.build import program
from testbed.errors import TestbedError
from tests.cluster import operators
from tests.cluster.tenants import CHARTS, Eventually

PROTECTION = ("--schedules=false", "--protection", "--lease-name=foresail-protection")
CLASS = {"schedule": "0 1 * * *", "template": {"ttl": "720h", "snapshotVolumes": False}}


@pytest.fixture(scope="module")
def protected(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with the operators of Schedules and of protection beside it."""
    cluster, folder = own_velero_cluster, tmp_path_factory.mktemp("operators")
    apply(cluster, render("foresail-crds"))
    cluster.kubectl("wait", "--for=condition=Established", "crd/protectionclasses.foresail.dev", "--timeout=60s")
    apply(cluster, render("foresail", "--set=protection.enabled=true"))
    with ExitStack() as stack:
        stack.enter_context(operators.running(cluster, folder, "--record-namespaces"))
        stack.enter_context(operators.running(cluster, folder, *PROTECTION))
        yield cluster


def render(chart: str, *words: str) -> str:
    """Return what Helm makes of a chart."""
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero", *words]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout


def apply(cluster: Cluster, text: str) -> None:
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=text)


def classify(cluster: Cluster, name: str, **spec: object) -> None:
    body = {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "ProtectionClass",
        "metadata": {"name": name},
        "spec": {**CLASS, **spec},
    }
    cluster.kubectl("apply", "--filename=-", text=json.dumps(body))


def arrive(cluster: Cluster, name: str, protection: str = "") -> None:
    labels = {"foresail.dev/protection": protection} if protection else {}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}
    cluster.kubectl("apply", "--filename=-", text=json.dumps(body))
    config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "settings"}, "data": {"of": name}}
    cluster.kubectl("apply", f"--namespace={name}", "--filename=-", text=json.dumps(config))


def status(cluster: Cluster, namespace: str) -> Any:  # noqa: ANN401 - JSON
    """Return the status of the Protection of a namespace; nothing while there is none."""
    try:
        found: Any = json.loads(cluster.kubectl("get", "protection", "protection", f"-n={namespace}", "-o=json"))
    except TestbedError:
        return {}
    return found["status"]


def condition(cluster: Cluster, namespace: str) -> str:
    conditions = status(cluster, namespace).get("conditions") or [{"reason": ""}]
    return str(conditions[0]["reason"])


def groups(cluster: Cluster) -> dict[str, list[str]]:
    found = json.loads(cluster.kubectl("get", "schedules.velero.io", "-n=velero", "-o=json"))["items"]
    return {each["metadata"]["name"]: each["spec"]["template"]["includedNamespaces"] for each in found}


def refused(cluster: Cluster, *words: str) -> str:
    """Return what the API server says to a command that it must refuse."""
    with pytest.raises(TestbedError) as caught:
        cluster.kubectl(*words)
    return str(caught.value)


def test_labelled_namespaces_are_backed_up_together_and_each_is_told(
    protected: Cluster, eventually: Eventually
) -> None:
    classify(protected, "gold")
    for name in ("shop", "blog"):
        arrive(protected, name, "gold")
    eventually(lambda: groups(protected) == {"gold-1": ["blog", "shop"]}, 30)
    eventually(lambda: condition(protected, "shop") == "NoBackupYet", 30)
    name = backed_up(protected, "gold-1")
    eventually(lambda: condition(protected, "shop") == "Protected", 60)
    found = status(protected, "shop")
    assert (found["class"], found["schedules"], found["newestGood"]["backup"]) == ("gold", ["gold-1"], name)
    assert protected.get("protectionclass", "gold")["status"]["namespaces"] == 2
    uid = protected.get("namespace", "shop")["metadata"]["uid"]
    annotations = protected.get("backups.velero.io", name, "--namespace=velero")["metadata"]["annotations"]
    assert json.loads(annotations["foresail.dev/namespace-uids"])["shop"] == uid


def backed_up(cluster: Cluster, schedule: str) -> str:
    """Let a Schedule run now, by an expression that is due within a minute, and return its Backup when it has ended."""
    of = schedule.rpartition("-")[0]
    known = backups(cluster, schedule).keys()
    classify(cluster, of, schedule="* * * * *")
    try:
        deadline = time.monotonic() + 180
        while time.monotonic() < deadline:
            done = [name for name, phase in backups(cluster, schedule).items() if phase == "Completed"]
            new = [name for name in done if name not in known]
            if new:
                return new[0]
            time.sleep(1)
        raise AssertionError(f"no Backup of {schedule}: {backups(cluster, schedule)}")
    finally:
        classify(cluster, of)


def backups(cluster: Cluster, schedule: str) -> dict[str, str]:
    label = f"--selector=velero.io/schedule-name={schedule}"
    found = json.loads(cluster.kubectl("get", "backups.velero.io", "-n=velero", label, "-o=json"))["items"]
    return {each["metadata"]["name"]: each.get("status", {}).get("phase", "") for each in found}


def test_a_class_that_is_in_use_cannot_be_deleted_and_a_wrong_label_takes_nothing_away(
    protected: Cluster, eventually: Eventually
) -> None:
    classify(protected, "bronze")
    arrive(protected, "shed", "bronze")
    eventually(lambda: protected.get("protectionclass", "bronze").get("status", {}).get("namespaces") == 1, 30)
    assert "1 namespaces are in class bronze" in refused(protected, "delete", "protectionclass", "bronze")
    protected.kubectl("label", "namespace", "shed", "foresail.dev/protection=bronce", "--overwrite")
    eventually(lambda: condition(protected, "shed") == "UnknownClass", 30)
    assert groups(protected)["bronze-1"] == ["shed"]
    protected.kubectl("delete", "namespace", "shed", "--wait", "--timeout=120s")
    eventually(lambda: "bronze-1" not in groups(protected), 30)
    eventually(lambda: protected.get("protectionclass", "bronze")["status"].get("namespaces", 0) == 0, 30)
    protected.kubectl("delete", "protectionclass", "bronze")


@pytest.fixture(scope="module")
def labeller(protected: Cluster) -> tuple[str, ...]:
    """Who may label every namespace and edit what is in it, and may use the class silver only."""
    classify(protected, "silver")
    arrive(protected, "field", "gold")
    arrive(protected, "meadow")
    group = {"apiGroups": ["foresail.dev"]}
    grant(protected, "labels", {"apiGroups": [""], "resources": ["namespaces"], "verbs": ["*"]}, "User", "labeller")
    grant(protected, "protections", {**group, "resources": ["protections"], "verbs": ["*"]}, "User", "labeller")
    grant(protected, "silver", use_of("silver"), "User", "labeller")
    return ("--as=labeller",)


def use_of(name: str) -> dict[str, object]:
    """Return the rule that allows the use of a class."""
    resources = {"apiGroups": ["foresail.dev"], "resources": ["protectionclasses"], "resourceNames": [name]}
    return {**resources, "verbs": ["use"]}


def grant(cluster: Cluster, name: str, rule: dict[str, object], kind: str, to: str) -> None:
    """Allow a user or a group something in the whole cluster."""
    meta, group = {"name": f"test-{name}"}, "rbac.authorization.k8s.io"
    role = {"kind": "ClusterRole", "rules": [rule]}
    ref = {"apiGroup": group, "kind": "ClusterRole", "name": meta["name"]}
    subjects = [{"apiGroup": group, "kind": kind, "name": to}]
    for body in (role, {"kind": "ClusterRoleBinding", "roleRef": ref, "subjects": subjects}):
        whole = {"apiVersion": f"{group}/v1", "metadata": meta, **body}
        cluster.kubectl("apply", "--filename=-", text=json.dumps(whole))


@pytest.mark.parametrize(
    ("words", "needed"),
    [
        (("label", "namespace", "field", "foresail.dev/protection-"), "gold"),
        (("label", "namespace", "field", "foresail.dev/protection=silver", "--overwrite"), "silver and gold"),
        (("label", "namespace", "field", "foresail.dev/protection=none", "--overwrite"), "gold and none"),
        (("label", "namespace", "field", "velero.io/exclude-from-backup=true"), "none and gold"),
        (("label", "namespace", "meadow", "foresail.dev/protection=gold"), "gold"),
        (("label", "namespace", "meadow", "foresail.dev/protection=none"), "none"),
        (("label", "namespace", "meadow", "velero.io/exclude-from-backup=true"), "none"),
    ],
)
def test_who_may_label_namespaces_may_not_lower_their_protection(
    protected: Cluster, labeller: tuple[str, ...], words: tuple[str, ...], needed: str
) -> None:
    said = refused(protected, *words, *labeller)
    assert f"needs the verb use on protectionclasses.foresail.dev {needed}" in said


def test_whoever_may_use_all_of_them_changes_class_and_exclusion_in_one_write(protected: Cluster) -> None:
    for name in ("gold", "silver"):
        classify(protected, name)
    exclusion = {"velero.io/exclude-from-backup": "true"}
    labels = {"foresail.dev/protection": "gold", **exclusion}
    body = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "barn", "labels": labels}}
    protected.kubectl("create", "--filename=-", text=json.dumps(body))
    protected.kubectl("label", "namespace", "barn", "velero.io/exclude-from-backup-")
    changes = ("foresail.dev/protection=silver", "velero.io/exclude-from-backup=true")
    protected.kubectl("label", "namespace", "barn", "--overwrite", *changes)
    protected.kubectl("delete", "namespace", "barn", "--wait=false")


def test_who_may_use_a_class_labels_a_namespace_with_it_and_nobody_forges_a_protection(
    protected: Cluster, labeller: tuple[str, ...], eventually: Eventually
) -> None:
    protected.kubectl("label", "namespace", "meadow", "foresail.dev/protection=silver", *labeller)
    protected.kubectl("label", "namespace", "meadow", "team=green", *labeller)
    eventually(lambda: groups(protected).get("silver-1") == ["meadow"], 30)
    patch = '--patch={"status":{"class":"gold"}}'
    forged = ("patch", "protection", "protection", "--namespace=meadow", "--type=merge", patch)
    eventually(lambda: status(protected, "meadow"), 30)
    assert "only the operator writes Protections" in refused(protected, *forged, *labeller)
    protected.kubectl("label", "namespace", "meadow", "foresail.dev/protection-", *labeller)
    eventually(lambda: condition(protected, "meadow") == "NoClass", 30)


def test_whoever_leaves_the_default_class_needs_its_use_too(
    protected: Cluster, labeller: tuple[str, ...], eventually: Eventually
) -> None:
    grant(protected, "none", use_of("none"), "Group", "exempting")
    exempting = (*labeller, "--as-group=exempting")
    classify(protected, "basic", default=True)
    arrive(protected, "heath")

    def said(change: str, *who: str) -> str:
        return attempted(protected, "label", "namespace", "heath", change, "--overwrite", *who)

    try:
        eventually(lambda: "basic" in said("foresail.dev/protection=silver", *labeller), 30)
        assert "basic" in said("foresail.dev/protection=none", *exempting)
        assert "basic" in said("velero.io/exclude-from-backup=true", *exempting)
        assert said("foresail.dev/protection=silver") == "", "an administrator may"
        protected.kubectl("label", "namespace", "heath", "foresail.dev/protection=none")
        assert "basic" in said("foresail.dev/protection=silver", *labeller), "without a date it is no exemption"
        assert said("foresail.dev/protection-", *labeller) == ""
    finally:
        classify(protected, "basic")
        protected.kubectl("delete", "namespace", "heath", "--wait", "--timeout=120s")


def attempted(cluster: Cluster, *words: str) -> str:
    """Return what the API server says to a command that changes nothing; empty if it admits it."""
    try:
        cluster.kubectl(*words, "--dry-run=server")
    except TestbedError as error:
        return str(error)
    return ""


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"template": {"includedNamespaces": ["a"]}}, "leave out namespaces"),
        ({"template": {"hooks": {"resources": []}}}, "leave out namespaces"),
        ({"namespacesPerBackup": 0}, "namespacesPerBackup"),
        ({"schedule": ""}, "schedule"),
    ],
)
def test_the_api_server_refuses_a_class_that_no_operator_could_serve(
    protected: Cluster, change: dict[str, object], said: str
) -> None:
    with pytest.raises(TestbedError, match=said):
        classify(protected, "wrong", **change)


def test_no_class_is_named_none(protected: Cluster) -> None:
    with pytest.raises(TestbedError, match="is not none"):
        classify(protected, "none")


def test_the_token_of_protection_writes_schedules_of_classes_only(protected: Cluster) -> None:
    thief = "--as=system:serviceaccount:velero:foresail-protection"
    api = "velero.io/v1"
    for name, spec in (
        ("gold-7", {"schedule": "* * * * *", "template": {"includedNamespaces": ["*"]}}),
        ("gold-7", {"schedule": "* * * * *", "template": {}}),
        ("other", {"schedule": "* * * * *", "template": {"includedNamespaces": ["shop"]}}),
        ("gold-7", {"schedule": "* * * * *", "template": {"includedNamespaces": ["shop"], "hooks": {"resources": []}}}),
    ):
        metadata = {"name": name, "namespace": "velero", "annotations": {"foresail.dev/protection-class": "gold"}}
        body = {"apiVersion": api, "kind": "Schedule", "metadata": metadata, "spec": spec}
        with pytest.raises(TestbedError, match="foresail-protection and schedules"):
            protected.kubectl("create", "--filename=-", thief, text=json.dumps(body))
    protected.kubectl("create", "namespace", "attic")
    spec = {"schedule": "0 0 1 1 *", "template": {"includedNamespaces": ["attic"]}}
    plain = {"apiVersion": api, "kind": "Schedule", "metadata": {"name": "mine", "namespace": "velero"}, "spec": spec}
    protected.kubectl("create", "--filename=-", text=json.dumps(plain))
    assert "it touches Schedules of classes only" in refused(
        protected, "delete", "schedules.velero.io", "mine", "--namespace=velero", thief
    )
    protected.kubectl("delete", "schedules.velero.io", "mine", "--namespace=velero")


def test_no_backup_is_deleted_with_the_schedule_of_a_class(protected: Cluster, eventually: Eventually) -> None:
    classify(protected, "owner")
    arrive(protected, "owned", "owner")
    eventually(lambda: groups(protected).get("owner-1"), 30)
    change = ("patch", "schedules.velero.io", "owner-1", "-n=velero", "--type=merge")
    protected.kubectl(*change, '--patch={"spec":{"useOwnerReferencesInBackup":true}}')
    shown = ("get", "schedules.velero.io", "owner-1", "-n=velero", "-o=jsonpath={.spec.useOwnerReferencesInBackup}")
    eventually(lambda: protected.kubectl(*shown) == "", 30)
    thief = "--as=system:serviceaccount:velero:foresail-protection"
    text = "it lets no Backups be deleted with their Schedule"
    assert text in refused(protected, *change, '--patch={"spec":{"useOwnerReferencesInBackup":true}}', thief)
    protected.kubectl(*change, '--patch={"spec":{"useOwnerReferencesInBackup":false}}', thief)


def test_the_files_of_the_docs_are_taken_by_the_api_server(protected: Cluster) -> None:
    text = (CHARTS.parent / "examples" / "manifests" / "protectionclass.yaml").read_text()
    protected.kubectl("apply", "--dry-run=server", "--filename=-", text=text)
