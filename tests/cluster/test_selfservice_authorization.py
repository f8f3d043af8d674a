"""Findings 1.2 and 1.3 on the real cluster: nothing comes back that the requester could not have created.

A tenant with the built-in role `edit` replays each attack with the operator under the chart's ServiceAccount.
"""

import json
import os
import random
import time
from collections.abc import Iterator
from functools import partial
from typing import Any

import pytest

from foresail.api.marks import REQUESTER
from testbed import Cluster
from tests.cluster.tenants import (
    VELERO,
    Eventually,
    Tenant,
    arrive,
    condition,
    install,
    of_namespace,
    operator,
)

GROUP = "policies.example.com"
RESTORES = int(os.environ.get("FORESAIL_RESTORES", "6"))
BINDING = "validatingadmissionpolicybinding"


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """A cluster with both charts and the operator, and a kind that `edit` does not include."""
    cluster = own_velero_cluster
    install(cluster)
    cluster.apply(exceptions())
    cluster.wait_for_kinds()
    cluster.restart_velero()  # it looks for new kinds every five minutes
    with operator(cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield cluster


@pytest.fixture(scope="module")
def rob(served: Cluster, eventually: Eventually) -> Tenant:
    """The tenant who tries, once the API server records who asks."""
    found = arrive(served, "authorised", eventually)
    body = {"apiVersion": "oadp.openshift.io/v1alpha1", "kind": "NonAdminBackup", "metadata": {"name": "canary"}}
    body["spec"] = {"backupSpec": {}}

    def stamped() -> bool:
        made = json.loads(found.kubectl("create", "--filename=-", "--dry-run=server", "--output=json", body=body))
        return REQUESTER in made["metadata"].get("annotations", {})

    eventually(stamped, 60)
    return found


def exceptions() -> dict[str, Any]:
    names = {"plural": "exceptions", "singular": "exception", "kind": "Exception", "listKind": "ExceptionList"}
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {"name": "v1", "served": True, "storage": True, "schema": {"openAPIV3Schema": schema}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"exceptions.{GROUP}"},
        "spec": {"group": GROUP, "scope": "Namespaced", "names": names, "versions": [version]},
    }


def backed_up(tenant: Tenant, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
    tenant.back_up(name, **spec)
    tenant.wait(f"nonadminbackup/{name}", "--for=condition=Succeeded", seconds=90)


def restored(cluster: Cluster, tenant: Tenant, name: str) -> dict[str, Any]:
    """Wait until a restore has ended, and return the Velero Restore."""
    tenant.wait(f"nonadminrestore/{name}", "--for=condition=Succeeded", seconds=90)
    made = tenant.status(f"nonadminrestore/{name}")["veleroRestore"]["name"]
    found: dict[str, Any] = cluster.get("restores.velero.io", made, f"--namespace={VELERO}")
    return found


def test_finding_1_2_a_retain_host_path_volume_is_refused_and_named(
    served: Cluster, rob: Tenant, eventually: Eventually
) -> None:
    claim = {"accessModes": ["ReadWriteOnce"], "storageClassName": "", "volumeName": "rob-host"}
    spec = {"capacity": {"storage": "1Mi"}, "accessModes": ["ReadWriteOnce"], "hostPath": {"path": "/etc"}}
    spec["persistentVolumeReclaimPolicy"] = "Retain"
    served.apply({"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": "rob-host"}, "spec": spec})
    body = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "host"}}
    rob.kubectl(
        "create", "--filename=-", body={**body, "spec": {**claim, "resources": {"requests": {"storage": "1Mi"}}}}
    )
    rob.wait("persistentvolumeclaim/host", "--for=jsonpath={.status.phase}=Bound")
    backed_up(rob, "volumes", includedResources=["persistentvolumeclaims"])
    rob.kubectl("delete", "persistentvolumeclaim", "host")
    served.kubectl("delete", "persistentvolume", "rob-host")
    rob.restore("volumes", "volumes")
    rob.wait("nonadminrestore/volumes", "--for=jsonpath={.status.phase}=BackingOff", seconds=90)
    status, reason, message = condition(rob.status("nonadminrestore/volumes"), "Accepted")
    assert (status, reason) == ("False", "VolumeNotBackedUp")
    assert "rob-host of claim host" in message
    assert not of_namespace(served, "restores", rob.namespace)
    assert not served.get("persistentvolumes")["items"]
    del eventually


def test_finding_1_2_a_custom_resource_that_the_tenant_may_not_create_is_left_out_and_named(
    served: Cluster, rob: Tenant
) -> None:
    meta = {"name": "exempt", "namespace": rob.namespace}
    served.apply({"apiVersion": f"{GROUP}/v1", "kind": "Exception", "metadata": meta, "spec": {"of": "everything"}})
    backed_up(rob, "custom", includedResources=[f"exceptions.{GROUP}", "configmaps"])
    served.kubectl("delete", f"exceptions.{GROUP}", "exempt", f"--namespace={rob.namespace}")
    rob.kubectl("delete", "configmap", "settings")
    rob.restore("custom", "custom")
    made = restored(served, rob, "custom")
    assert made["spec"]["includedResources"] == ["configmaps"]
    assert made["status"]["phase"] == "Completed"
    assert made["metadata"]["annotations"][REQUESTER] == f"tenant-of-{rob.namespace}"
    status, reason, message = condition(rob.status("nonadminrestore/custom"), "Authorized")
    assert (status, reason) == ("True", "KindsLeftOut")
    assert f"exceptions.{GROUP}" in message
    assert rob.names("configmap/settings") == ["configmap/settings"]
    assert not served.get(f"exceptions.{GROUP}", f"--namespace={rob.namespace}")["items"]
    events = rob.kubectl("get", "events", "--field-selector=reason=RestoreScheduled", "--output=json")
    assert f"requested by tenant-of-{rob.namespace}" in events


def test_finding_1_2_and_1_3_velero_s_annotations_in_an_old_backup_come_to_nothing(
    served: Cluster, rob: Tenant, eventually: Eventually
) -> None:
    """The objects are from before the admission policy: an administrator's restore is not frozen, no status returns."""
    bindings = served.get(BINDING)["items"]
    taken = [each for each in bindings if "annotations" in each["metadata"]["name"]]
    for each in taken:
        served.kubectl("delete", BINDING, each["metadata"]["name"])
    service = {"type": "LoadBalancer", "ports": [{"port": 80}], "selector": {"app": "web"}}
    meta = {"name": "web", "annotations": {"velero.io/restore-status": "true", "kept": "yes"}}
    body = {"apiVersion": "v1", "kind": "Service", "metadata": meta, "spec": service}
    eventually(lambda: created(rob, body), 60)
    address = {"status": {"loadBalancer": {"ingress": [{"ip": "192.0.2.1"}]}}}
    at = ("service", "web", f"--namespace={rob.namespace}", "--subresource=status", "--type=merge")
    served.kubectl("patch", *at, f"--patch={json.dumps(address)}")
    hook = {
        "post.hook.restore.velero.io/command": '["/bin/true"]',
        "post.hook.restore.velero.io/wait-timeout": "9999h",
        "post.hook.restore.velero.io/container": "web",
    }
    pod = {"nodeSelector": {"no": "where"}, "containers": [{"name": "web", "image": "web"}]}
    frozen = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "frozen", "annotations": hook}, "spec": pod}
    assert created(rob, frozen)
    rob.kubectl("create", "configmap", "plain", "--from-literal=a=b")
    backed_up(rob, "annotated", includedResources=["services", "pods", "configmaps"])
    rob.kubectl("delete", "service/web", "pod/frozen", "--force", "--grace-period=0")
    for each in taken:
        meta = {"name": each["metadata"]["name"]}
        served.apply({"apiVersion": each["apiVersion"], "kind": each["kind"], "metadata": meta, "spec": each["spec"]})
    rob.restore("annotated", "annotated")
    made = restored(served, rob, "annotated")
    assert made["status"]["phase"] == "Completed", made["status"]
    assert not made["status"].get("warnings"), "an object that is there already and has no annotations is the same"
    found = json.loads(rob.kubectl("get", "service", "web", "--output=json"))
    assert found["metadata"]["annotations"] == {"kept": "yes"}
    assert found["status"] == {"loadBalancer": {}}
    annotations = json.loads(rob.kubectl("get", "pod", "frozen", "--output=json"))["metadata"].get("annotations", {})
    assert not any("hook" in each for each in annotations)


def created(tenant: Tenant, body: dict[str, Any]) -> bool:
    try:
        tenant.kubectl("create", "--filename=-", body=body)
    except AssertionError:
        return False
    return True


def test_finding_1_3_a_pod_from_before_the_policy_with_a_backup_hook_is_refused(
    served: Cluster, rob: Tenant, eventually: Eventually
) -> None:
    taken = [each for each in served.get(BINDING)["items"] if "annotations" in each["metadata"]["name"]]
    for each in taken:
        served.kubectl("delete", BINDING, each["metadata"]["name"])
    hook = {"pre.hook.backup.velero.io/command": '["/bin/sleep","9999"]', "pre.hook.backup.velero.io/timeout": "9999h"}
    pod = {"containers": [{"name": "web", "image": "web"}]}
    body = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "slow", "annotations": hook}, "spec": pod}
    eventually(lambda: created(rob, body), 60)
    rob.back_up("slow")
    rob.wait("nonadminbackup/slow", "--for=jsonpath={.status.phase}=BackingOff", seconds=90)
    status, reason, message = condition(rob.status("nonadminbackup/slow"), "Accepted")
    assert (status, reason) == ("False", "PolicyViolation")
    assert "Pod slow has annotation pre.hook.backup.velero.io/command" in message
    rob.kubectl("delete", "pod", "slow", "--force", "--grace-period=0")
    for each in taken:
        meta = {"name": each["metadata"]["name"]}
        served.apply({"apiVersion": each["apiVersion"], "kind": each["kind"], "metadata": meta, "spec": each["spec"]})


OBJECTS: dict[str, tuple[str, str, dict[str, Any]]] = {
    "configmaps": ("v1", "ConfigMap", {"data": {"a": "b"}}),
    "secrets": ("v1", "Secret", {"stringData": {"a": "b"}}),
    "serviceaccounts": ("v1", "ServiceAccount", {}),
    "services": ("v1", "Service", {"spec": {"ports": [{"port": 80}]}}),
    f"exceptions.{GROUP}": (f"{GROUP}/v1", "Exception", {"spec": {}}),
    "ingresses.networking.k8s.io": (
        "networking.k8s.io/v1",
        "Ingress",
        {"spec": {"defaultBackend": {"service": {"name": "x", "port": {"number": 80}}}}},
    ),
    "leases.coordination.k8s.io": ("coordination.k8s.io/v1", "Lease", {"spec": {}}),
}


@pytest.mark.full
def test_restores_with_random_kinds_and_random_rights_bring_back_what_the_requester_may_create(
    served: Cluster, rob: Tenant, eventually: Eventually
) -> None:
    """`make restore-authorization` runs more of them: FORESAIL_RESTORES."""
    dice = random.Random(13)  # noqa: S311 - to choose, not to hide
    del rob
    owner = arrive(served, "random", eventually)
    here = f"--namespace={owner.namespace}"
    for api, kind, rest in OBJECTS.values():
        meta = {"name": "sample", "namespace": owner.namespace}
        served.apply({"apiVersion": api, "kind": kind, "metadata": meta, **rest})
    backed_up(owner, "all")
    for number in range(RESTORES):
        rights = [each for each in OBJECTS if dice.random() < 0.6]
        user, name = f"user-{number}", f"random-{number}"
        rules = [{"apiGroups": ["oadp.openshift.io"], "resources": ["*"], "verbs": ["*"]}]
        rules += [
            {
                "apiGroups": [each.partition(".")[2]],
                "resources": [each.partition(".")[0]],
                "verbs": ["create", "update"],
            }
            for each in rights
        ]
        meta = {"name": user, "namespace": owner.namespace}
        served.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": rules})
        served.kubectl("create", "rolebinding", user, f"--role={user}", f"--user={user}", here)
        for each in OBJECTS:
            served.kubectl("delete", each, "sample", here, "--ignore-not-found")
        requester = Tenant(served.user_kubeconfig(user), owner.namespace)
        eventually(partial(can_restore, requester), 30)
        requester.restore(name, "all")
        done = "--for=jsonpath={.status.phase}=BackingOff" if not rights else "--for=condition=Succeeded"
        owner.wait(f"nonadminrestore/{name}", done, seconds=90)
        back = {each for each in OBJECTS if served.kubectl("get", each, "sample", here, "--ignore-not-found")}
        assert back == set(rights), (number, owner.status(f"nonadminrestore/{name}"))


def test_a_denied_restore_starts_once_its_requester_has_access_and_asks_again(
    served: Cluster, eventually: Eventually
) -> None:
    owner = arrive(served, "granted", eventually)
    here = f"--namespace={owner.namespace}"
    backed_up(owner, "all", includedResources=["configmaps"])
    meta = {"name": "restorer", "namespace": owner.namespace}
    rules = [{"apiGroups": ["oadp.openshift.io"], "resources": ["*"], "verbs": ["*"]}]
    served.apply({"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": meta, "rules": rules})
    served.kubectl("create", "rolebinding", "restorer", "--role=restorer", "--user=restorer", here)
    requester = Tenant(served.user_kubeconfig("restorer"), owner.namespace)
    eventually(partial(can_restore, requester), 30)
    owner.kubectl("delete", "configmap", "settings")
    requester.restore("denied", "all")
    owner.wait("nonadminrestore/denied", "--for=jsonpath={.status.phase}=BackingOff", seconds=90)
    assert condition(owner.status("nonadminrestore/denied"), "Accepted")[:2] == ("False", "AccessDenied")
    served.kubectl("create", "rolebinding", "edits", "--clusterrole=edit", "--user=restorer", here)
    time.sleep(5)
    assert condition(owner.status("nonadminrestore/denied"), "Accepted")[:2] == ("False", "AccessDenied")
    again = json.dumps({"spec": {"retriedAt": "2026-01-01T00:00:00Z"}})  # as foresail restore retry does
    requester.kubectl("patch", "nonadminrestore", "denied", "--type=merge", f"-p={again}")
    owner.wait("nonadminrestore/denied", "--for=condition=Succeeded", seconds=240)
    assert owner.names("configmap/settings") == ["configmap/settings"]


def can_restore(tenant: Tenant) -> bool:
    try:
        return tenant.kubectl("auth", "can-i", "create", "nonadminrestores.oadp.openshift.io").strip() == "yes"
    except AssertionError:
        return False
