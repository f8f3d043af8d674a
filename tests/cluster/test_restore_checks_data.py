"""The fence of depth Data on a real API server: what the operator may start, and what a sandbox takes."""

import json
from typing import Any

import pytest

from bench.restore_checks import USER
from bench.restore_drill import Drill, install, wait
from foresail.api.marks import CHECK_DEPTH, CHECK_LABEL, SANDBOX_ROLE
from foresail.api.restore_check import Assertion
from foresail.plan import Key
from foresail.proof.checks.data_build import assertion, assertion_name, canary
from foresail.proof.checks.view import DataSettings
from foresail.proof.checks.volumes import FILLED, PROVISIONED_BY
from testbed import Cluster, TestbedError

DATA, OBJECTS = "foresail-check-0123456789-abcdef", "foresail-check-0123456789-fedcba"
LABELS = {CHECK_LABEL: "a", "pod-security.kubernetes.io/enforce": "restricted"}
SETTINGS = DataSettings("example.com/foresail:1", Key("velero", "foresail-checks"))
OURS = {"kind": "ServiceAccount", "name": "foresail-checks", "namespace": "velero"}
RESTRICTED = canary(SETTINGS, {}, Key(DATA, "canary"), "", {}).body
CLAIM = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}, "storageClassName": "disks"}
UID = "8c1f0000-0000-4000-8000-000000000001"
VOLUMES = {f"pvc-{UID}": DATA, "taken": DATA, f"no-provisioner-{UID}": DATA, f"of-others-{UID}": "velero", "free": ""}
"""The namespace of the claim of each volume."""

FOR_DATA = {FILLED: f"{DATA}.data.x7k2p"}
"""The label that Velero gives to a volume that it fills with moved data for a claim of the sandbox."""


@pytest.fixture(scope="module")
def drill(own_velero_cluster: Cluster) -> Drill:
    """A cluster with the chart and one sandbox of each depth, which the operator's token has made."""
    install(own_velero_cluster, "proof.data.enabled=true")
    found = Drill(own_velero_cluster)
    for name, labels in ((DATA, {**LABELS, CHECK_DEPTH: "Data"}), (OBJECTS, LABELS)):
        create(found, body("v1", "Namespace", name, "", labels=labels), USER)
    create(found, binding(DATA), USER)
    words = ("--verb=get", "--resource=persistentvolumes")  # kubectl reads what it patches
    found.cluster.kubectl("create", "clusterrole", "reads-volumes", *words)
    found.cluster.kubectl(
        "create", "clusterrolebinding", "reads-volumes", "--clusterrole=reads-volumes", f"--user={USER}"
    )
    volume = {"capacity": {"storage": "1Gi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/x"}}
    for name, namespace in VOLUMES.items():
        claim = {"claimRef": {"namespace": namespace, "name": "data", "uid": UID}} if namespace else {}
        spec = {**volume, **claim, "persistentVolumeReclaimPolicy": "Retain"}
        annotations = {} if name.startswith("no-") else {PROVISIONED_BY: "example.com/disks"}
        found.cluster.apply(body("v1", "PersistentVolume", name, "", annotations=annotations, spec=spec))
    spec = {**volume, "claimRef": {"namespace": DATA, "name": "data"}, "persistentVolumeReclaimPolicy": "Retain"}
    annotations = {PROVISIONED_BY: "example.com/disks"}
    found.cluster.apply(
        body("v1", "PersistentVolume", "filled", "", annotations=annotations, labels=FOR_DATA, spec=spec)
    )
    return found


def body(api: str, kind: str, name: str, namespace: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    metadata |= {each: more.pop(each) for each in ("labels", "annotations", "finalizers") if each in more}
    return {"apiVersion": api, "kind": kind, "metadata": metadata, **more}


def binding(namespace: str, role: str = SANDBOX_ROLE, **subject: str) -> dict[str, Any]:
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": role}
    return body(
        "rbac.authorization.k8s.io/v1", "RoleBinding", "rights", namespace, roleRef=reference, subjects=[OURS | subject]
    )


def pod(namespace: str, metadata: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    spec = {**RESTRICTED["spec"], **changes}  # type: ignore[dict-item]
    return body("v1", "Pod", "tried", namespace, spec=spec, **(metadata or {}))


def create(drill: Drill, what: dict[str, Any], user: str = "", *words: str) -> None:
    drill.cluster.kubectl("create", *([f"--as={user}"] if user else []), "--filename=-", *words, text=json.dumps(what))


def claim(metadata: dict[str, Any] | None = None, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    return body("v1", "PersistentVolumeClaim", "data", DATA, spec={**CLAIM, **changes}, **(metadata or {}))


PRIVILEGED = [{"name": "x", "image": "x:1", "securityContext": {"capabilities": {"add": ["SYS_ADMIN"]}}}]


@pytest.mark.parametrize(
    ("what", "user", "said"),
    [
        (pod(DATA), USER, ""),
        (pod("default"), USER, 'cannot create resource "pods"'),
        (pod(OBJECTS), "", "depth Data only"),
        (pod(DATA), "", ""),
        (pod(DATA, automountServiceAccountToken=True), "", "automountServiceAccountToken: false"),
        (pod(DATA, nodeName="node-0"), "", "without nodeName"),
        (pod(DATA, containers=PRIVILEGED), "", "violates PodSecurity"),
        (pod(DATA, volumes=[{"name": "host", "hostPath": {"path": "/"}}]), "", "violates PodSecurity"),
        (pod(DATA, volumes=[{"name": "x", "csi": {"driver": "example.com"}}]), "", "without inline CSI volumes"),
        (pod(DATA, volumes=[{"name": "x", "emptyDir": {}}]), "", ""),
        (pod(DATA, {"finalizers": ["example.com/never"]}), "", "without finalizers"),
        (pod(DATA, {"finalizers": ["kubernetes.io/pvc-protection"]}), "", "without finalizers"),
        (claim({"finalizers": ["example.com/never"]}), "", "without finalizers"),
        (claim({"finalizers": ["kubernetes.io/pvc-protection"]}), "", ""),
        (claim(), "", ""),
        (claim(volumeName="of-others"), "", "new and empty volumes"),
        (claim(dataSource={"kind": "PersistentVolumeClaim", "name": "other"}), "", "new and empty volumes"),
        (claim(selector={"matchLabels": {"owner": "somebody"}}), "", "new and empty volumes"),
        (claim(selector={"matchLabels": {FILLED: f"{OBJECTS}.data.x7k2p"}}), "", "new and empty volumes"),
        (claim(selector={"matchLabels": {FILLED: f"{DATA}.data.x7k2p"}}), "", ""),
        (claim(storageClassName=""), "", "with a StorageClass"),
        (claim(storageClassName=None), "", "with a StorageClass"),
        (claim({"annotations": {"volume.beta.kubernetes.io/storage-class": ""}}), "", "with a StorageClass"),
        (binding("default"), USER, "in its sandboxes only"),
        (binding(DATA, name="default"), USER, "it gives only itself rights"),
        (binding(DATA, role="admin"), USER, "attempting to grant RBAC permissions not currently held"),
        (binding(DATA), "", "without subjects only"),
    ],
)  # fmt: skip
def test_the_fence_of_data(drill: Drill, what: dict[str, Any], user: str, said: str) -> None:
    what = {**what, "metadata": {**what["metadata"], "name": assertion_name("tried")}}
    if not said:
        create(drill, what, user, "--dry-run=server")
        return
    with pytest.raises(TestbedError, match=said):
        create(drill, what, user, "--dry-run=server")


def test_the_assertion_of_a_user_is_restricted_too(drill: Drill) -> None:
    made = assertion(Assertion("x:1", ("true",)), {}, Key(DATA, "asserted"), {}, 60)
    what = body("v1", "Pod", assertion_name("0123456789"), DATA, spec=made.body["spec"])
    create(drill, what, USER, "--dry-run=server")


@pytest.mark.parametrize(
    ("volume", "policy", "is_allowed"),
    [
        (f"pvc-{UID}", "Delete", True),
        (f"pvc-{UID}", "Recycle", False),
        (f"of-others-{UID}", "Delete", False),
        ("taken", "Delete", False),
        (f"no-provisioner-{UID}", "Delete", False),
        ("free", "Delete", False),
        ("filled", "Delete", True),
        ("filled", "Recycle", False),
    ],
)
def test_the_operator_changes_the_reclaim_policy_of_its_volumes_only(
    drill: Drill, volume: str, policy: str, is_allowed: bool
) -> None:
    patch = json.dumps({"spec": {"persistentVolumeReclaimPolicy": policy}})
    words = ("patch", "persistentvolume", volume, f"--as={USER}", f"--patch={patch}", "--dry-run=server")
    said = drill.problem(*words)
    refusals = ("it changes only volumes that were provisioned", "it changes only the reclaim policy of a volume")
    assert said == "" if is_allowed else any(text in said for text in refusals)


@pytest.mark.parametrize(
    ("volume", "namespace", "labels", "is_allowed"),
    [
        ("free", DATA, {}, False),
        ("free", DATA, FOR_DATA, False),
        ("free", "velero", {}, True),
        (f"pvc-{UID}", DATA, {}, True),
        (f"of-others-{UID}", DATA, {}, False),
        (f"of-others-{UID}", DATA, {FILLED: f"{OBJECTS}.data.x7k2p"}, False),
        (f"of-others-{UID}", DATA, FOR_DATA, True),
    ],
)
def test_no_volume_that_exists_is_bound_to_a_claim_of_a_sandbox_but_one_that_velero_has_filled_for_it(
    drill: Drill, volume: str, namespace: str, labels: dict[str, str], is_allowed: bool
) -> None:
    claim = {"namespace": namespace, "name": "data", "uid": UID, "resourceVersion": "1"}
    patch = json.dumps({"metadata": {"labels": labels}, "spec": {"claimRef": claim}})
    words = ("patch", "persistentvolume", volume, f"--patch={patch}", "--dry-run=server")
    said = drill.problem(*words)
    assert said == "" if is_allowed else "gets a new volume, never one that exists" in said


def test_nobody_opens_a_sandbox(drill: Drill) -> None:
    label = "pod-security.kubernetes.io/enforce=privileged"
    said = drill.problem("label", "namespace", DATA, label, "--overwrite", "--dry-run=server")
    assert "keeps the restricted Pod Security Standard" in said
    said = drill.problem("label", "namespace", OBJECTS, f"{CHECK_DEPTH}=Data", "--dry-run=server")
    assert "written by RestoreChecks alone" in said


def test_the_api_server_refuses_fields_of_data_with_another_depth(drill: Drill) -> None:
    spec = {"backups": {"schedule": "nightly"}, "allowUnfenced": True}
    what = body("foresail.dev/v1alpha1", "RestoreCheck", "wrong", "velero", spec=spec)
    with pytest.raises(TestbedError, match=r"need spec\.depth: Data"):
        create(drill, what, "", "--dry-run=server")
    what["spec"]["depth"] = "Data"
    create(drill, what, "", "--dry-run=server")


@pytest.mark.parametrize(
    ("depth", "custom", "said"),
    [
        ("Data", "ciliumnetworkpolicies.cilium.io", "could open the sandbox"),
        ("Data", "networkpolicies.crd.projectcalico.org", "could open the sandbox"),
        ("Objects", "ciliumnetworkpolicies.cilium.io", ""),
        ("Data", "widgets.example.com", ""),
    ],
)
def test_depth_data_takes_no_policies_of_network_plugins(drill: Drill, depth: str, custom: str, said: str) -> None:
    spec = {"backups": {"schedule": "nightly"}, "depth": depth, "customResources": [custom]}
    what = body("foresail.dev/v1alpha1", "RestoreCheck", "open", "velero", spec=spec)
    if not said:
        create(drill, what, "", "--dry-run=server")
        return
    with pytest.raises(TestbedError, match=said):
        create(drill, what, "", "--dry-run=server")


STUCK = {"finalizers": ["example.com/slow"]}
LOOSE = f"--patch={json.dumps({'metadata': {'finalizers': None}})}"


def test_what_is_in_a_sandbox_goes_after_data_is_switched_off(drill: Drill) -> None:
    labels, here = {"app": "a"}, f"--namespace={DATA}"
    runs = pod(DATA, restartPolicy="Always", activeDeadlineSeconds=None)["spec"]
    template = {"metadata": {"labels": labels}, "spec": runs}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    create(drill, body("apps/v1", "Deployment", "stays", DATA, spec=spec, **STUCK))
    create(drill, claim())
    stuck = json.dumps({"metadata": STUCK})
    drill.cluster.kubectl("patch", "persistentvolumeclaim", "data", here, "--type=merge", f"--patch={stuck}")
    install(drill.cluster, "proof.data.enabled=false")
    words = ("create", "--dry-run=server", "--filename=-")
    wait(lambda: drill.is_refused("depth Data only", *words, text=json.dumps(pod(DATA))), "the fence without data")
    for each in ("persistentvolumeclaim/data", "deployment/stays"):
        drill.cluster.kubectl("delete", each, here, "--wait=false")
        drill.cluster.kubectl("patch", each, here, "--type=merge", LOOSE)
    wait(lambda: not drill.cluster.get("persistentvolumeclaims", here)["items"], "the removal of the claim")


def test_a_check_of_a_tenant_that_is_served_no_more_can_be_deleted(drill: Drill) -> None:
    spec = {"backups": {"nonAdminSchedule": "nightly"}}
    what = body("foresail.dev/v1alpha1", "RestoreCheck", "old", "default", spec=spec, **STUCK)
    words, text, refusal = ("create", "--filename=-"), json.dumps(what), "served only if self-service is on"
    assert drill.is_refused(refusal, *words, text=text)
    drill.cluster.kubectl("delete", "validatingadmissionpolicybinding", "foresail-checks-place")
    wait(lambda: not drill.problem(*words, text=text), "a check from before")
    install(drill.cluster, "proof.data.enabled=false")
    what["metadata"]["name"] = "new"
    wait(lambda: drill.is_refused(refusal, *words, "--dry-run=server", text=json.dumps(what)), "the fence")
    patch = ("patch", "restorecheck", "old", "--namespace=default", "--type=merge")
    changed = json.dumps({"spec": {"backups": {"nonAdminSchedule": "hourly"}}})
    assert drill.is_refused(refusal, *patch, f"--patch={changed}")
    drill.cluster.kubectl("delete", "restorecheck", "old", "--namespace=default", "--wait=false")
    drill.cluster.kubectl(*patch, LOOSE)
    assert not drill.cluster.get("restorechecks", "--namespace=default")["items"]
