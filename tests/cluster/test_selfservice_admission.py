"""What the API server itself refuses to tenants and to the operator, by the admission policies of the chart.

No operator runs here: nothing but the API server decides.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import replace
from functools import partial
from typing import Any

import pytest

from foresail.api.core import NAMESPACE
from foresail.api.marks import REQUESTER, REQUESTER_GROUPS
from foresail.plan import Key
from testbed import Cluster
from testbed.build import program
from tests.cluster.tenants import (
    API,
    VELERO,
    Eventually,
    Tenant,
    arrive,
    as_velero,
    install,
    person,
    written_by_operator,
)
from tests.cluster.versions import sets_requester
from tests.redteam.oversized import cron_job, keys, padded_cron_job
from tests.stolen_token import bodies

ANNOTATIONS = "foresail-velero-annotations"
LABELS = ("foresail.dev/velero-annotations", "foresail.dev/file-system-backup")
FILES = "backup.velero.io/backup-volumes"
CHECKS = "apiserver_validating_admission_policy_check_total"
CONDITION_ERRORS = "apiserver_admission_match_condition_evaluation_errors_total"
NO_ERROR = 'error_type="no_error"'
REFUSED = 'enforcement_action="deny",error_type="invalid_error"'  # so the API server counts what a policy refuses
STAMP = "mutatingadmissionpolicybinding/foresail-requester"
RESTORED = "velero.io/restore-name"


@pytest.fixture(scope="module")
def guarded(velero_cluster: Cluster) -> Cluster:
    """Both charts with self-service on, and no operator."""
    install(velero_cluster)
    return velero_cluster


@pytest.fixture(scope="module")
def amy(guarded: Cluster, eventually: Eventually) -> Tenant:
    """A tenant, once the API server sets who asked, if it can, and refuses reserved keys."""
    found = arrive(guarded, "guarded", eventually)
    wanted = ("tenant-of-guarded", sets_requester(guarded))
    eventually(lambda: requester(found, backup("canary"), "--dry-run=server") == wanted, 60)
    canary = backup("canary", labels={"foresail.dev/canary": "x"})
    eventually(lambda: refusal(found, "create", "--dry-run=server", body=canary), 60)
    return found


@pytest.fixture(scope="module")
def eve(guarded: Cluster, amy: Tenant) -> Tenant:
    """Somebody else with `edit` in the same namespace."""
    where = f"--namespace={amy.namespace}"
    guarded.kubectl("create", "rolebinding", "eve", "--clusterrole=edit", "--user=eve", where)
    return Tenant(guarded.user_kubeconfig("eve"), amy.namespace)


@pytest.fixture
def unstamped(guarded: Cluster, amy: Tenant, eventually: Eventually) -> Iterator[None]:
    """An API server that does not set who asked, as those without MutatingAdmissionPolicies."""
    if not sets_requester(guarded):
        yield
        return
    binding = json.loads(guarded.kubectl("get", STAMP, "--output=json"))
    guarded.kubectl("delete", STAMP)
    try:
        eventually(lambda: refusal(amy, "create", "--dry-run=server", body=backup("canary")), 60)
        yield
    finally:
        meta = {"name": binding["metadata"]["name"]}
        guarded.apply(
            {"apiVersion": binding["apiVersion"], "kind": binding["kind"], "metadata": meta, "spec": binding["spec"]}
        )
        eventually(lambda: not refusal(amy, "create", "--dry-run=server", body=backup("canary")), 60)


def backup(name: str, **metadata: object) -> dict[str, Any]:
    """Return a NonAdminBackup."""
    return {
        "apiVersion": API,
        "kind": "NonAdminBackup",
        "metadata": {"name": name, **metadata},
        "spec": {"backupSpec": {}},
    }


def refusal(person: Tenant, *words: str, body: object = None) -> str:
    """Return why kubectl failed; empty if it did not."""
    try:
        person.kubectl(*words, *(() if body is None else ("--filename=-",)), body=body)
    except AssertionError as refused:
        return str(refused)
    return ""


def requester(person: Tenant, body: object, *words: str) -> tuple[str, bool]:
    """Create an object, and return its requester, and whether the group of all users is among the groups."""
    made = json.loads(person.kubectl("create", "--filename=-", "--output=json", *words, body=body))
    return stamp(made)


def stamp(made: dict[str, Any]) -> tuple[str, bool]:
    annotations = made["metadata"].get("annotations", {})
    groups = annotations.get(REQUESTER_GROUPS, "").split("\n")
    return annotations.get(REQUESTER, ""), "system:authenticated" in groups


def stored(person: Tenant, name: str) -> tuple[str, bool]:
    return stamp(json.loads(person.kubectl("get", "nonadminbackup", name, "--output=json")))


def change(what: object) -> tuple[str, ...]:
    return ("--type=merge", f"--patch={json.dumps(what)}")


def test_a_request_with_more_labels_than_admission_searches_is_refused(guarded: Cluster, amy: Tenant) -> None:
    """To search 15,000 of them took the API server a second for one write; what exists may stay."""
    many = {f"a{number}": "" for number in range(201)}
    for metadata in ({"labels": many}, {"annotations": many}):
        said = refusal(amy, "create", "--dry-run=server", body=backup("x", **metadata))
        assert "more than 200 labels or annotations" in said or "more than 200 annotations" in said
    few = dict(list(many.items())[:200])
    assert requester(amy, backup("x", labels=few), "--dry-run=server") == ("tenant-of-guarded", sets_requester(guarded))
    velero = as_velero(guarded, amy.namespace)
    velero.kubectl("create", "--filename=-", body=backup("many", labels={**many, RESTORED: "x"}))
    amy.kubectl("delete", "nonadminbackup", "many")


def test_the_requester_is_who_created_a_request_and_then_who_changed_its_spec(amy: Tenant, eve: Tenant) -> None:
    lie = backup("mine", annotations={REQUESTER: "system:admin", REQUESTER_GROUPS: "system:masters"})
    assert requester(amy, lie) == ("tenant-of-guarded", True)
    eve.kubectl("label", "nonadminbackup", "mine", "team=x")
    eve.kubectl("annotate", "nonadminbackup", "mine", f"{REQUESTER}=eve", "--overwrite")
    assert stored(amy, "mine") == ("tenant-of-guarded", True), "neither labels nor a lie change who asked"
    amy.kubectl("apply", "--server-side", "--filename=-", body=backup("mine"))
    amy.kubectl("replace", "--filename=-", body=backup("mine"))
    assert stored(amy, "mine") == ("tenant-of-guarded", True), "who leaves the annotations out keeps the requester"
    eve.kubectl("patch", "nonadminbackup", "mine", *change({"spec": {"backupSpec": {"ttl": "2h"}}}))
    assert stored(amy, "mine") == ("eve", True)


def test_who_releases_a_request_that_velero_restored_becomes_its_requester(
    guarded: Cluster, amy: Tenant, eve: Tenant
) -> None:
    velero = as_velero(guarded, amy.namespace)
    was = {REQUESTER: "system:admin", REQUESTER_GROUPS: "system:masters"}
    velero.kubectl("create", "--filename=-", body=backup("back", labels={RESTORED: "r"}, annotations=was))
    assert stored(amy, "back")[0] != "system:admin"
    eve.kubectl("label", "nonadminbackup", "back", f"{RESTORED}-")
    assert stored(amy, "back") == ("eve", True)


@pytest.mark.usefixtures("unstamped")
def test_without_mutating_policies_nobody_asks_in_anothers_name(guarded: Cluster, amy: Tenant, eve: Tenant) -> None:
    me, amy = "tenant-of-guarded", replace(amy, requester="")
    assert f'foresail.dev/requester must be \\"{me}\\"' in refusal(amy, "create", body=backup("plain")).replace(
        '"', '\\"'
    )
    assert "must be" in refusal(amy, "create", body=backup("lie", annotations={REQUESTER: "eve"}))
    groups = {REQUESTER: me, REQUESTER_GROUPS: "system:authenticated\nsystem:masters"}
    assert "a group that you are not in" in refusal(amy, "create", body=backup("lie", annotations=groups))
    amy.kubectl("create", "--filename=-", body=backup("honest", annotations={REQUESTER: me}))
    edit = {"spec": {"backupSpec": {"ttl": "2h"}}}
    assert "must be" in refusal(eve, "patch", "nonadminbackup", "honest", *change(edit))
    taken = {"metadata": {"annotations": {REQUESTER: "eve"}}}
    assert "change only with the spec" in refusal(eve, "patch", "nonadminbackup", "honest", *change(taken))
    eve.kubectl("patch", "nonadminbackup", "honest", *change({**edit, **taken}))
    assert stored(amy, "honest") == ("eve", False)

    velero = as_velero(guarded, amy.namespace)
    assert "must be" in refusal(velero, "create", body=backup("forged", annotations={REQUESTER: "system:admin"}))
    held = backup("held", labels={RESTORED: "r"}, annotations={REQUESTER: "system:admin"})
    velero.kubectl("create", "--filename=-", body=held)
    assert "must be" in refusal(amy, "label", "nonadminbackup", "held", f"{RESTORED}-")

    foresail(amy, "backup", "create", "by-command")
    assert stored(amy, "by-command") == (me, True)
    foresail(amy, "backup", "delete", "by-command", "--confirm")


def foresail(person: Tenant, *words: str) -> str:
    """Run our command line as somebody, and see that it succeeds."""
    command = [sys.executable, "-m", "foresail", *words, "-n", person.namespace]
    environment = {**os.environ, "KUBECONFIG": str(person.kubeconfig)}
    done = subprocess.run(
        command, env=environment, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stderr


# Finding 1.8: deletion


def test_finding_8_the_flags_that_delete_a_backup_need_the_verb_delete(
    guarded: Cluster, amy: Tenant, eventually: Eventually
) -> None:
    where = f"--namespace={amy.namespace}"
    resource = "--resource=nonadminbackups.oadp.openshift.io"
    guarded.kubectl("create", "role", "writer", "--verb=get,list,create,update,patch", resource, where)
    guarded.kubectl("create", "rolebinding", "dan", "--role=writer", "--user=dan", where)
    dan = person(guarded, "dan", amy.namespace)
    eventually(lambda: not refusal(dan, "get", "nonadminbackups"), 60)
    amy.kubectl("create", "--filename=-", body=backup("precious"))
    for flag in ("deleteBackup", "forceDeleteBackup"):
        words = change({"metadata": {"annotations": {REQUESTER: "dan"}}, "spec": {flag: True}})
        assert "precious: you may not delete it" in refusal(dan, "patch", "nonadminbackup", "precious", *words)
        born = backup("born")
        born["spec"][flag] = True
        assert "born: you may not delete it" in refusal(dan, "create", body=born)
        amy.kubectl("patch", "nonadminbackup", "precious", *change({"spec": {flag: True}}), "--dry-run=server")
    dan.wants("precious", backupSpec={"ttl": "2h"})
    amy.wants("precious", deleteBackup=True)
    dan.kubectl("label", "nonadminbackup", "precious", "noted=yes")
    both = {"metadata": {"annotations": {REQUESTER: "dan"}}, "spec": {"forceDeleteBackup": True}}
    assert "you may not delete it" in refusal(dan, "patch", "nonadminbackup", "precious", *change(both))


def test_a_plain_delete_warns_that_it_waits_for_a_decision(
    guarded: Cluster, amy: Tenant, eventually: Eventually
) -> None:
    amy.kubectl("create", "--filename=-", body=backup("kept"))
    assert "Warning" not in warnings(amy, "delete", "nonadminbackup", "kept", "--dry-run=server")
    held = {"metadata": {"finalizers": ["nonadminbackup.oadp.openshift.io/finalizer"]}}
    where = f"--namespace={amy.namespace}"
    guarded.kubectl("patch", "nonadminbackup", "kept", where, *change(held))
    words = ("delete", "nonadminbackup", "kept", "--dry-run=server")
    eventually(lambda: "Warning: " in warnings(amy, *words), 60)
    said = warnings(amy, *words)
    assert "NonAdminBackup kept is deleted once you decide about its data." in said
    assert f"foresail backup delete kept -n {amy.namespace}" in said
    amy.wants("kept", deleteBackup=True)
    assert "Warning" not in warnings(amy, *words)
    guarded.kubectl("patch", "nonadminbackup", "kept", where, *change({"metadata": {"finalizers": None}}))
    amy.kubectl("delete", "nonadminbackup", "kept")


def warnings(person: Tenant, *words: str) -> str:
    """Return what kubectl prints on standard error."""
    command = [str(program("kube", "kubectl")), f"--kubeconfig={person.kubeconfig}", f"--namespace={person.namespace}"]
    done = subprocess.run([*command, *words], capture_output=True, text=True, check=True)
    return done.stderr


# Finding 1.3: annotations that Velero acts on

COMMAND = "post.hook.restore.velero.io/command"
FOR_VELERO = (
    COMMAND,
    "post.hook.restore.velero.io/wait-timeout",
    "init.hook.restore.velero.io/command",
    "hook.backup.velero.io/command",
    "pre.hook.backup.velero.io/command",
    "post.hook.backup.velero.io/timeout",
    "velero.io/restore-status",
    "backup.velero.io/must-include-additional-items",
    "restore.velero.io/must-include-additional-items",
    "velero.io/csi-volumesnapshot-handle",
    "velero.io/csi-volumegroupsnapshot-handle",
    "velero.io/csi-driver-name",
    "velero.io/csi-vsc-deletion-policy",
    "velero.io/csi-volumesnapshot-class",
    "velero.io/csi-volume-group-snapshot-class",
    "velero.io/volume-snapshot-name",
    "velero.io/data-upload-name",
    "snapshot.velero.io/data",
)
ONLY = {"restartPolicy": "Never", "containers": [{"name": "only", "image": "only"}]}


def template(annotations: dict[str, str]) -> dict[str, Any]:
    return {"metadata": {"labels": {"app": "x"}, "annotations": annotations}, "spec": ONLY}


def config_map(name: str, annotations: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "annotations": annotations}}


def listed(items: list[dict[str, Any]]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "List", "items": items}


def carriers(annotations: dict[str, str]) -> list[dict[str, Any]]:
    """Return an object of every sort that takes annotations to a pod."""
    spec = template(annotations)
    always = {**spec, "spec": {**ONLY, "restartPolicy": "Always"}}
    apps = {"selector": {"matchLabels": {"app": "x"}}, "template": always}
    job = {"spec": {"template": spec}}
    every = {"schedule": "@yearly"}
    named = {"metadata": {"name": "carrier"}}
    return [
        {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "carrier", "annotations": annotations}, "spec": ONLY},
        {"apiVersion": "apps/v1", "kind": "Deployment", **named, "spec": apps},
        {"apiVersion": "apps/v1", "kind": "StatefulSet", **named, "spec": {**apps, "serviceName": "x"}},
        {"apiVersion": "apps/v1", "kind": "DaemonSet", **named, "spec": apps},
        {"apiVersion": "apps/v1", "kind": "ReplicaSet", **named, "spec": apps},
        {"apiVersion": "v1", "kind": "ReplicationController", **named, "spec": {**apps, "selector": {"app": "x"}}},
        {"apiVersion": "batch/v1", "kind": "Job", **named, **job},
        {"apiVersion": "batch/v1", "kind": "CronJob", **named, "spec": {**every, "jobTemplate": job}},
        {
            "apiVersion": "batch/v1",
            "kind": "CronJob",
            **named,
            "spec": {
                **every,
                "jobTemplate": {"metadata": {"annotations": annotations}, "spec": {"template": template({})}},
            },
        },
    ]


@pytest.fixture(scope="module")
def annotating(amy: Tenant, eventually: Eventually) -> Tenant:
    """A tenant, once the API server refuses Velero's annotations."""
    canary = config_map("canary", {COMMAND: "x"})
    eventually(lambda: refusal(amy, "create", "--dry-run=server", body=canary), 60)
    return amy


def test_finding_3_annotations_for_velero_are_refused_on_every_object_and_template(annotating: Tenant) -> None:
    marked = [config_map("x", {key: "true", "team": "x"}) for key in FOR_VELERO]
    said = refusal(annotating, "create", "--dry-run=server", body=listed(marked))
    for key in FOR_VELERO:
        assert f"refused in namespace guarded: leave out {key}, or ask" in said, key
    said = refusal(annotating, "create", "--dry-run=server", body=listed(carriers({COMMAND: "[]"})))
    assert said.count(f"leave out {COMMAND}, or ask") == len(carriers({})), said
    said = refusal(annotating, "create", "--dry-run=server", body=listed(carriers({FILES: "data"})))
    assert said.count(f"leave out {FILES}, or ask a cluster administrator for backup.fileSystem") == len(carriers({}))
    annotating.kubectl("create", "--dry-run=server", "--filename=-", body=listed(carriers({"team": "x"})))
    many = {f"a{number}": "" for number in range(201)}
    for annotations in (many, {**many, COMMAND: "x"}):
        said = refusal(annotating, "create", "--dry-run=server", body=config_map("x", annotations))
        assert "more than 200 annotations" in said


def test_finding_3_no_number_or_length_of_annotations_makes_the_check_fail(
    guarded: Cluster, annotating: Tenant
) -> None:
    """The policy fails closed, and a legitimate write must not exceed the cost that the API server allows."""
    many = {**{f"a{number}": "" for number in range(30_000)}, COMMAND: "x"}
    bodies = [config_map("x", many), padded_cron_job("x"), padded_cron_job("x", 1, 1_000_000)]
    for body in bodies:
        said = refusal(annotating, "create", "--dry-run=server", body=body)
        assert "more than 200 annotations, or one whose key is longer" in said, said[-2000:]
    most = keys(200)
    annotating.kubectl("create", "--dry-run=server", "--filename=-", body=cron_job("x", most, most, most))
    worst = {**keys(199), COMMAND: "x"}
    for body in (config_map("x", worst), cron_job("x", most, worst, most), cron_job("x", worst, most, most)):
        said = refusal(annotating, "create", "--dry-run=server", body=body)
        assert f"leave out {COMMAND}" in said, said[-2000:]
    assert failed_checks(guarded) == []


def failed_checks(cluster: Cluster) -> list[str]:
    """Return how often the API server could not evaluate the policy, by its count."""
    lines = cluster.kubectl("get", "--raw", "/metrics").splitlines()
    checks = [each for each in lines if each.startswith(CHECKS) and f'policy="{ANNOTATIONS}"' in each]
    assert checks, "the API server counts its checks under another name"
    conditions = [each for each in lines if each.startswith(CONDITION_ERRORS) and ANNOTATIONS in each]
    return conditions + [each for each in checks if NO_ERROR not in each and REFUSED not in each]


def test_an_object_with_many_annotations_from_before_can_still_be_changed(guarded: Cluster, annotating: Tenant) -> None:
    velero = as_velero(guarded, annotating.namespace)
    velero.kubectl("create", "--filename=-", body=config_map("many", {f"a{number}": "" for number in range(1000)}))
    annotating.kubectl("label", "configmap", "many", "team=x")
    assert "more than 200 annotations" in refusal(annotating, "annotate", "configmap", "many", "b=x")
    annotating.kubectl("delete", "configmap", "many")


# A claim on which Velero crashes at the end of a restore

LEGACY = "volume.beta.kubernetes.io/storage-class"


def claim(name: str, storage_class: str | None = None, **annotations: str) -> dict[str, Any]:
    chosen = {} if storage_class is None else {"storageClassName": storage_class}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, **chosen}
    metadata = {"name": name, "annotations": annotations}
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": metadata, "spec": spec}


def test_a_claim_without_a_class_is_refused_whoever_creates_it(guarded: Cluster, annotating: Tenant) -> None:
    velero = as_velero(guarded, annotating.namespace)
    for who in (annotating, velero, Tenant(guarded.kubeconfig, annotating.namespace)):
        for body in (claim("data"), claim("data", **{LEGACY: "none"})):
            said = refusal(who, "create", "--dry-run=server", body=body)
            assert "claim data has no StorageClass, with which Velero cannot end a restore: set spec.storage" in said
        for chosen in ("", "none"):
            who.kubectl("create", "--dry-run=server", "--filename=-", body=claim("data", chosen))
    said = refusal(annotating, "create", "--dry-run=server", body=claim("data", "", **{LEGACY: "none"}))
    assert "claim data names its StorageClass where Velero does not read it" in said
    velero.kubectl("create", "--dry-run=server", "--filename=-", body=claim("data", "", **{LEGACY: "none"}))


def test_the_old_annotation_of_a_class_is_not_added_and_may_stay(guarded: Cluster, annotating: Tenant) -> None:
    as_velero(guarded, annotating.namespace).kubectl("create", "--filename=-", body=claim("old", "", **{LEGACY: "x"}))
    annotating.kubectl("create", "--filename=-", body=claim("new", ""))
    said = refusal(annotating, "annotate", "persistentvolumeclaim", "new", f"{LEGACY}=none")
    assert f"{LEGACY}: Invalid value" in said, "Kubernetes itself refuses it"
    annotating.kubectl("label", "persistentvolumeclaim", "old", "new", "team=x")
    annotating.kubectl("delete", "persistentvolumeclaim", "old", "new", "--wait=false")


def test_a_default_class_is_the_class_of_claims_that_name_none(guarded: Cluster, annotating: Tenant) -> None:
    """Those of tenants, of StatefulSets and of Velero: the API server sets it before it asks the rule."""
    default = {"storageclass.kubernetes.io/is-default-class": "true"}
    meta = {"name": "usual", "annotations": default}
    guarded.apply(
        {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": meta, "provisioner": "example.com/none"}
    )
    try:
        for who in (annotating, as_velero(guarded, annotating.namespace)):
            made = who.kubectl("create", "--dry-run=server", "--filename=-", "--output=json", body=claim("data"))
            assert json.loads(made)["spec"]["storageClassName"] == "usual"
            assert refusal(who, "create", "--dry-run=server", body=claim("data", **{LEGACY: "none"}))
    finally:
        guarded.kubectl("delete", "storageclass", "usual")


def test_a_status_and_a_binding_bring_no_annotation_either(guarded: Cluster, annotating: Tenant) -> None:
    """The role `edit` has no rights on them; somebody else may have given them to a tenant."""
    admin = Tenant(guarded.kubeconfig, annotating.namespace)
    apps = carriers({})[1]
    admin.kubectl("create", "--filename=-", body={**apps, "spec": {**apps["spec"], "replicas": 0}})
    patch = json.dumps({"metadata": {"annotations": {COMMAND: "x"}}})
    said = refusal(admin, "patch", "deployment", "carrier", "--subresource=status", "--type=merge", f"--patch={patch}")
    assert f"leave out {COMMAND}" in said
    admin.kubectl("delete", "deployment", "carrier")


def test_no_policy_of_the_chart_depends_on_a_kind_that_can_be_deleted_or_ignores_errors(guarded: Cluster) -> None:
    """The only one that ignores errors gives a hint, and refuses nothing."""
    mutating = ("mutatingadmissionpolicies",) if sets_requester(guarded) else ()
    kinds = ("validatingadmissionpolicies", *mutating)
    for each in (policy for kind in kinds for policy in guarded.get(kind)["items"]):
        name, spec = each["metadata"]["name"], each["spec"]
        assert "paramKind" not in spec, name
        assert spec["failurePolicy"] == "Fail" or name == "foresail-backup-deletion-hint", name


def test_what_has_such_annotations_already_goes_on_and_velero_brings_it_back(
    guarded: Cluster, annotating: Tenant, eventually: Eventually
) -> None:
    """As before the chart was installed: the pods of an older Deployment, and changes of something else."""
    where = f"--namespace={annotating.namespace}"
    velero = as_velero(guarded, annotating.namespace)
    deployment = carriers({COMMAND: "[]"})[1]
    velero.kubectl("create", "--filename=-", body=deployment)
    velero.kubectl("create", "--filename=-", body=config_map("old", {COMMAND: "[]"}))
    annotating.kubectl("set", "image", "deployment/carrier", "only=other")
    eventually(lambda: len(guarded.get("pods", where, "--selector=app=x")["items"]) >= 1, 60)
    annotating.kubectl("label", "configmap", "old", "team=x")
    assert f"leave out {COMMAND}" in refusal(annotating, "annotate", "configmap", "old", f"{COMMAND}=x", "--overwrite")
    annotating.kubectl("annotate", "configmap", "old", f"{COMMAND}-")
    annotating.kubectl("delete", "deployment/carrier", "configmap/old")


def test_the_label_of_the_operator_refuses_or_allows_such_annotations(
    guarded: Cluster, annotating: Tenant, eventually: Eventually
) -> None:
    name = "hooks-allowed"
    labels = {"metadata": {"name": name, "labels": {"team": "x"}}}
    guarded.apply({"apiVersion": "v1", "kind": "Namespace", **labels})
    admin = Tenant(guarded.kubeconfig, name)
    body = config_map("x", {COMMAND: "x"})
    admin.kubectl("create", "--dry-run=server", "--filename=-", body=body)  # no policy selects the namespace

    def is_refused() -> bool:
        return bool(refusal(admin, "create", "--dry-run=server", body=body))

    for value, refused in (("refused", True), ("allowed", False), ("", True), ("refused", True)):
        guarded.kubectl("label", "namespace", name, "--overwrite", *(f"{label}={value}" for label in LABELS))
        eventually(partial(lambda wanted: is_refused() == wanted, refused), 30)
    guarded.kubectl("label", "namespace", name, *(f"{label}-" for label in LABELS))
    eventually(lambda: not is_refused(), 30)
    guarded.kubectl("delete", "namespace", name, "--wait=false")
    assert refusal(annotating, "create", "--dry-run=server", body=body), "others are as they were"


def test_the_operators_token_changes_two_labels_of_a_namespace_and_nothing_else(
    guarded: Cluster, thief: Tenant, annotating: Tenant
) -> None:
    def refused(**metadata: object) -> str:
        failure = written_by_operator(
            thief.kubeconfig, NAMESPACE, Key("", annotating.namespace), {"metadata": metadata}
        )
        return failure.message if failure is not None else ""

    assert "no labels but its own" in refused(labels={"pod-security.kubernetes.io/enforce": "privileged"})
    assert "no labels but its own" in refused(labels={"foresail.dev/self-service": None})
    assert "are refused or allowed" in refused(labels={LABELS[0]: "whatever"})
    assert "no annotations but its own" in refused(annotations={"x": "y"})
    assert "no finalizers but its own" in refused(finalizers=["example.com/x"])
    assert not refused(labels=dict.fromkeys(LABELS, "refused"))
    assert guarded.get("namespace", annotating.namespace)["metadata"]["labels"][LABELS[1]] == "refused"
    assert not refused(labels=dict.fromkeys(LABELS))


# Finding 1.9: the operator's own token

RECORD = {"foresail.dev/request-uid": "1", "foresail.dev/namespace-uid": "2"}
MADE = "guarded-b-5d1e9a43-8f5b-5d1e-9a43-6f1c8b3a7e21"
SCHEDULED = {"foresail.dev/schedule-uid": "1", "foresail.dev/slot": "2026-01-01T00:00:00Z"}


def velero_object(kind: str, spec: dict[str, Any], name: str = "tried", **metadata: Any) -> dict[str, Any]:  # noqa: ANN401
    meta = {"name": name, "namespace": VELERO, **metadata}
    return {"apiVersion": "velero.io/v1", "kind": kind, "metadata": meta, "spec": spec}


def of_tenant(kind: str, namespace: str = "guarded", **spec: Any) -> dict[str, Any]:  # noqa: ANN401
    """Return what the operator makes for a request of a namespace, or a variation of it."""
    short = "nab" if kind == "Backup" else "nar"
    whole = {"includedNamespaces": [namespace], **({} if kind == "Backup" else {"backupName": "b"}), **spec}
    annotations = {**RECORD, f"openshift.io/oadp-{short}-origin-namespace": namespace}
    return velero_object(kind, whole, annotations=annotations)


@pytest.fixture(scope="module")
def thief(guarded: Cluster, eventually: Eventually) -> Tenant:
    """Somebody with the operator's token, once the API server fences it."""
    found = Tenant(guarded.service_account_kubeconfig(VELERO, "foresail-self-service"), VELERO)
    eventually(lambda: refusal(found, "create", "--dry-run=server", body=velero_object("Backup", {})), 60)
    return found


@pytest.mark.parametrize(
    "body",
    [
        velero_object("Restore", {"backupName": "nightly"}),
        velero_object("Backup", {}),
        velero_object("Backup", {}, annotations=SCHEDULED, labels={"velero.io/schedule-name": "x"}),
        of_tenant("Restore", VELERO),
        of_tenant("Backup", VELERO),
        of_tenant("Backup", "kube-system"),
        of_tenant("Restore", "*"),
        of_tenant("Backup", "[k]ube-system"),
        of_tenant("Restore", includedNamespaces=["guarded", "other"]),
        of_tenant("Restore", includedNamespaces=["other"]),
        of_tenant("Restore", includedNamespaces=["*"]),
        of_tenant("Backup", includedNamespaces=[]),
        of_tenant("Restore", namespaceMapping={"guarded": "kube-system"}),
        of_tenant("Restore", namespaceMapping={"guarded": "other"}),
        of_tenant("Restore", includeClusterResources=True),
        of_tenant("Backup", includeClusterResources=True),
        of_tenant("Backup", includedClusterScopedResources=["*"]),
        of_tenant("Restore", scheduleName="nightly"),
        of_tenant("Restore", restoreStatus={"includedResources": ["*"]}),
        velero_object("DownloadRequest", {"target": {"kind": "BackupContents", "name": "b"}}),
        velero_object("DeleteBackupRequest", {"backupName": MADE}, name=MADE),
        velero_object("DeleteBackupRequest", {"backupName": "nightly"}, name="nightly", annotations=RECORD),
        velero_object("DeleteBackupRequest", {"backupName": "nightly"}, name=MADE, annotations=RECORD),
    ],
    ids=str,
)
def test_finding_9_the_operators_token_makes_nothing_but_what_a_tenant_may_have(
    thief: Tenant, body: dict[str, Any]
) -> None:
    assert "foresail-self-service and" in refusal(thief, "create", "--dry-run=server", body=body)


def test_finding_9_the_operators_token_makes_what_tenants_ask_for_and_changes_nothing_of_others(
    guarded: Cluster, thief: Tenant
) -> None:
    made = [bodies.tenants_restore(bodies.TENANTS), bodies.tenants_backup(), bodies.download(), bodies.deletion()]
    thief.kubectl("create", "--dry-run=server", "--filename=-", body=listed(made))

    guarded.apply(velero_object("Backup", {"storageLocation": "none"}, name="nightly"))
    stolen = change({"metadata": {"annotations": of_tenant("Backup")["metadata"]["annotations"]}})
    assert "nothing of a Backup but its own marks" in refusal(thief, "patch", "backups.velero.io", "nightly", *stolen)
    wider = change({"spec": {"includedNamespaces": ["other"]}})
    assert "changes no spec" in refusal(thief, "patch", "backups.velero.io", "nightly", *wider)
    marked = change({"metadata": {"annotations": {"foresail.dev/orphaned": "x"}}})
    assert "only backups of tenants" in refusal(thief, "patch", "backups.velero.io", "nightly", *marked)
    assert "only what it made for a tenant" in refusal(thief, "delete", "backups.velero.io", "nightly")
    guarded.kubectl("delete", "backups.velero.io", "nightly", f"--namespace={VELERO}")
