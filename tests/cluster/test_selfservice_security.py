# ruff: noqa: N802 - the rows have such names
"""Every known way to reach through self-service for what is not one's own, tried by a tenant on the real cluster.

The numbers are those of the list of attacks on the existing controller, and the tests are named after them.

| row | what is tried | expected |
|---|---|---|
| A1 | a label, a status, a download that name another's backup | refused at apply; else it comes to nothing |
| A3 | a restore of what has no namespace | BackingOff |
| A4 | a backup that was not made for the tenant; volumes of others | BackingOff; only the tenant's own are taken |
| A5 | roles, quotas and limits from a backup; overwriting | BackingOff; left out of a restore of everything |
| A6 | init containers; pods that the namespace does not allow | BackingOff; Pod Security refuses them to Velero too |
| A7 | commands in hooks, for long, elsewhere; in annotations | BackingOff; in annotations refused at apply |
| A8 | other namespaces, in whatever form | BackingOff |
| A9 | another namespace to restore into; a schedule | BackingOff |
| A10 | what has no namespace, by name or along with others | BackingOff; left out of the backup |
| A11 | another's storage location | BackingOff |
| A12 | snapshot locations | BackingOff |
| A13 | ConfigMaps of Velero's namespace | BackingOff |
| A14 | a status from a backup; forged requests from a backup | BackingOff; left out |
| A18 | a location that is edited later; a download of what was backed up | refused at apply; BackingOff |
| A20 | too long, too many, too deep | BackingOff; New until there is a place |
| A21 | self-service in Velero's namespace and the cluster's | New, NoPolicy |
| A22 | a status of the tenant's own writing | forbidden; not believed where it is allowed |
| A23 | a namespace that is made again | inherits nothing |
| A24 | a request that is made again | inherits nothing |

Not here: A2, A15, A16, A17 and A19, which need a storage location of the tenant's own, and so do the forged contents of
A3, A4 and A6.
"""

import json
import re
import tarfile
import time
from collections.abc import Iterator
from pathlib import Path, PurePosixPath
from typing import Any, get_args

import pytest

from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from foresail.api.requests import DownloadTarget
from foresail.plan import Key
from foresail.selfservice.downloads.targets import SERVED
from testbed import Cluster
from tests.cluster.tenants import (
    API,
    VELERO,
    Eventually,
    Tenant,
    arrive,
    as_velero,
    condition,
    install,
    of_namespace,
    operator,
    written_by_operator,
)

ADMINS = "nightly"
NAB, NAR = "NonAdminBackup", "NonAdminRestore"
SYNCED_FROM = "openshift.io/oadp-nab-synced-from-nacuuid"
FINALIZERS = '{"metadata":{"finalizers":null}}'


@pytest.fixture(scope="module")
def served(own_velero_cluster: Cluster, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Velero with both charts, the operator at work, and a backup that the administrator made of everything."""
    cluster = own_velero_cluster  # of one's own: what others leave in a shared one makes a backup of everything partial
    install(cluster)
    policy("hooked", {"backup": {"hooks": _HOOKS}, "restore": {"hooks": _HOOKS}}, cluster)
    policy("scarce", {"quotas": {"stored": 1}}, cluster)
    cluster.velero("backup", "create", ADMINS, "--wait")
    with operator(cluster, tmp_path_factory.mktemp("operator") / "log"):
        yield cluster
    assert phase_of_admins(cluster) == "Completed", "whatever was tried, the administrator's backup is as it was"


_HOOKS = {"allowed": True, "timeout": {"maximum": "2m"}}


def policy(name: str, spec: dict[str, Any], cluster: Cluster) -> None:
    """Let other rules hold in the namespace of that name."""
    selector = {"matchLabels": {"kubernetes.io/metadata.name": name}}
    meta = {"name": name}
    body = {"apiVersion": "foresail.dev/v1alpha1", "kind": "SelfServicePolicy", "metadata": meta}
    cluster.apply({**body, "spec": {"namespaceSelector": selector, **spec}})


def phase_of_admins(cluster: Cluster) -> str:
    found: str = cluster.get("backups.velero.io", ADMINS, f"--namespace={VELERO}")["status"]["phase"]
    return found


@pytest.fixture(scope="module")
def ann(served: Cluster, eventually: Eventually) -> Tenant:
    """The one who tries, once the API server has the admission policy in force."""
    found = arrive(served, "attacker", eventually)
    canary = manifest(NAB, "canary", {"backupSpec": {}}, labels={"foresail.dev/canary": "x"})
    eventually(lambda: refusal(found, canary, "--dry-run=server"), 60)
    return found


@pytest.fixture(scope="module")
def hooked(served: Cluster, eventually: Eventually) -> Tenant:
    """A tenant to whom the policy gives hooks of two minutes."""
    return arrive(served, "hooked", eventually)


@pytest.fixture(scope="module")
def whole(served: Cluster, ann: Tenant) -> str:
    """A backup of all that is in the namespace, rights and other requests among it; the Velero Backup's name."""
    served.kubectl("create", "rolebinding", "boss", "--clusterrole=admin", "--user=boss", "--namespace=attacker")
    served.kubectl("create", "quota", "tight", "--hard=pods=1", "--namespace=attacker")
    served.kubectl("create", "clusterrolebinding", "robot", "--clusterrole=view", "--serviceaccount=attacker:robot")
    ann.kubectl("create", "serviceaccount", "robot")
    ann.back_up("whole")
    ann.wait("nonadminbackup/whole", "--for=condition=Succeeded")
    name: str = ann.status("nonadminbackup/whole")["veleroBackup"]["name"]
    return name


def manifest(kind: str, name: str, spec: object, **metadata: object) -> dict[str, Any]:
    return {"apiVersion": API, "kind": kind, "metadata": {"name": name, **metadata}, "spec": spec}


def refusal(tenant: Tenant, body: object, *words: str) -> str:
    """Return the words with which the API server refuses an object; none if it takes it."""
    try:
        tenant.kubectl("create", "--filename=-", *words, body=body)
    except AssertionError as refused:
        return str(refused)
    return ""


def invalid(cluster: Cluster, tenant: Tenant, kind: str, **attempts: tuple[dict[str, Any], str]) -> None:
    """Try several specs that are refused under any policy."""
    backing_off(cluster, tenant, kind, "InvalidBackupSpec" if kind == NAB else "InvalidRestoreSpec", attempts)


def forbidden(cluster: Cluster, tenant: Tenant, kind: str, **attempts: tuple[dict[str, Any], str]) -> None:
    """Try several specs that the policy forbids."""
    backing_off(cluster, tenant, kind, "PolicyViolation", attempts)


def backing_off(
    cluster: Cluster, tenant: Tenant, kind: str, reason: str, attempts: dict[str, tuple[dict[str, Any], str]]
) -> None:
    """Try several specs at once, each with words of the reason why it is refused: none may come to a Velero object."""
    field = "backupSpec" if kind == NAB else "restoreSpec"
    bodies = [manifest(kind, name, {field: spec}) for name, (spec, _) in attempts.items()]
    tenant.kubectl("create", "--filename=-", body={"apiVersion": "v1", "kind": "List", "items": bodies})
    targets = [f"{kind.lower()}/{name}" for name in attempts]
    tenant.kubectl("wait", *targets, "--for=jsonpath={.status.phase}=BackingOff", "--timeout=120s")
    found = json.loads(tenant.kubectl("get", *targets, "--output=json"))
    for each in found["items"] if len(targets) > 1 else [found]:
        name, words = each["metadata"]["name"], attempts[each["metadata"]["name"]][1]
        status, given, message = condition(each["status"], "Accepted")
        assert (status, given) == ("False", reason), name
        assert words in message, name
    assert not made_for(cluster, tenant, kind) & set(attempts)
    tenant.kubectl("delete", *targets)


def waits_for_a_backup(cluster: Cluster, tenant: Tenant, backup: str) -> None:
    """Restore from a backup that the tenant does not have: it waits for a NonAdminBackup of the tenant's own."""
    tenant.restore("back", backup)
    tenant.wait("nonadminrestore/back", "--for=condition=Accepted=false")
    said = condition(tenant.status("nonadminrestore/back"), "Accepted")
    assert said[1] == "BackupNotReady"
    assert f"NonAdminBackup {backup} does not exist in namespace {tenant.namespace}" in said[2]
    assert "back" not in made_for(cluster, tenant, NAR)
    tenant.kubectl("delete", "nonadminrestore", "back")


def made_for(cluster: Cluster, tenant: Tenant, kind: str) -> set[str]:
    """Return the names of the requests of a tenant for which there is a Velero object."""
    plural, short = ("backups", "nab") if kind == NAB else ("restores", "nar")
    key = f"openshift.io/oadp-{short}-origin-name"
    return {each["metadata"]["annotations"][key] for each in of_namespace(cluster, plural, tenant.namespace)}


def velero_names(cluster: Cluster, namespace: str) -> set[str]:
    return {each["metadata"]["name"] for each in of_namespace(cluster, "backups", namespace)}


def contents(cluster: Cluster, name: str) -> dict[str, set[str]]:
    """Return what a Velero Backup holds: the names of objects by their kind."""
    held: dict[str, set[str]] = {}
    with tarfile.open(cluster.site.bucket / "backups" / name / f"{name}.tar.gz") as tarball:
        for path in tarball.getnames():
            if path.startswith("resources/") and path.endswith(".json"):
                held.setdefault(path.split("/")[1], set()).add(PurePosixPath(path).stem)
    return held


def downloads_of(cluster: Cluster, name: str) -> list[str]:
    """Return what Velero was asked to hand out of one of its objects."""
    items = cluster.get("downloadrequests.velero.io", f"--namespace={VELERO}")["items"]
    return [each["spec"]["target"]["kind"] for each in items if each["spec"]["target"]["name"] == name]


def volume(name: str, namespace: str, of: str) -> dict[str, Any]:
    """Return a volume on a node that is kept for a claim."""
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "storageClassName": "",
        "hostPath": {"path": f"/volumes/{name}"},
        "claimRef": {"namespace": namespace, "name": of},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolume", "metadata": {"name": name}, "spec": spec}


def claim(name: str, of: str) -> dict[str, Any]:
    """Return a claim to a certain volume."""
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "storageClassName": "",
        "volumeName": of,
        "resources": {"requests": {"storage": "1Gi"}},
    }
    return {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": name}, "spec": spec}


def pod(name: str, annotations: dict[str, str], **spec: object) -> dict[str, Any]:
    """Return a pod with one container."""
    spec["containers"] = [{"name": "only", "image": "only"}]
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name, "annotations": annotations}, "spec": spec}


# Identity


def test_A1_a_label_that_names_anothers_backup_is_refused_at_apply(ann: Tenant) -> None:
    for where in ("labels", "annotations"):
        body = manifest(NAB, "thief", {"backupSpec": {}}, **{where: {SYNCED_FROM: ADMINS}})
        assert f"leave {SYNCED_FROM} as it was, or out" in refusal(ann, body)
    assert "nonadminbackup.oadp.openshift.io/thief" not in ann.names("nonadminbackups")


def test_A1_even_where_such_a_label_stands_it_comes_to_nothing(served: Cluster, ann: Tenant) -> None:
    """The label is put there by the one identity that may, as a mistake of ours would."""
    ours, thief = served.service_account_kubeconfig(VELERO, "foresail-self-service"), Key(ann.namespace, "thief")
    ann.kubectl("create", "--filename=-", body=manifest(NAB, "thief", {"backupSpec": {"includedNamespaces": ["x"]}}))
    label = {"metadata": {"labels": {SYNCED_FROM: ADMINS}}}
    assert written_by_operator(ours, NON_ADMIN_BACKUP, thief, label) is None
    ann.wants("thief", backupSpec={"includedNamespaces": [ann.namespace]})
    reason = "{.status.conditions[?(@.type=='Accepted')].reason}"
    ann.wait("nonadminbackup/thief", f"--for=jsonpath={reason}=VeleroBackupNotFound")
    assert "veleroBackup" not in ann.status("nonadminbackup/thief")
    ann.wants("thief", deleteBackup=True)
    ann.wait("nonadminbackup/thief", "--for=delete")
    assert phase_of_admins(served) == "Completed"


def test_A1_a_status_that_names_anothers_backup_leads_to_no_download(served: Cluster, ann: Tenant) -> None:
    """The status is written by the administrator, as a mistake of ours would; only the record on the backup counts."""
    ann.kubectl("create", "--filename=-", body=manifest(NAB, "posing", {"backupSpec": {"includedNamespaces": ["x"]}}))
    ann.wait("nonadminbackup/posing", "--for=jsonpath={.status.phase}=BackingOff")
    copy = {"nacuuid": ADMINS, "name": ADMINS, "namespace": VELERO, "status": {"phase": "Completed"}}
    lie = json.dumps({"status": {"phase": "Created", "veleroBackup": copy}})
    where = ("nonadminbackup", "posing", f"--namespace={ann.namespace}")
    served.kubectl("patch", *where, "--subresource=status", "--type=merge", f"--patch={lie}")
    for wish, target in (("by-status", "posing"), ("by-name", ADMINS)):
        ann.download(wish, "BackupLog", target)
        ann.wait(f"nonadmindownloadrequest/{wish}", "--for=condition=NonAdminBackupNotAvailable")
        assert "velero" not in ann.status(f"nonadmindownloadrequest/{wish}")
    assert not downloads_of(served, ADMINS)
    ann.kubectl("delete", "nonadmindownloadrequest/by-status", "nonadmindownloadrequest/by-name")
    ann.kubectl("delete", "nonadminbackup", "posing")


def test_A4_a_backup_that_was_not_made_for_the_tenants_request_is_not_restored(served: Cluster, ann: Tenant) -> None:
    """As a forged bucket would have it: Velero's sync copies annotations, so the names are right, the UIDs are not."""
    names = {"openshift.io/oadp-nab-origin-namespace": ann.namespace, "openshift.io/oadp-nab-origin-name": "forged"}
    meta = {"name": "forged", "namespace": VELERO, "annotations": names, "labels": {"velero.io/storage-location": "x"}}
    served.apply({"apiVersion": "velero.io/v1", "kind": "Backup", "metadata": meta, "spec": {"storageLocation": "x"}})
    try:
        for name in ("forged", ADMINS):
            waits_for_a_backup(served, ann, name)
    finally:
        served.kubectl("delete", "backups.velero.io", "forged", f"--namespace={VELERO}")


def test_A18_where_a_backup_lies_cannot_be_edited_once_it_was_made(ann: Tenant, whole: str) -> None:
    change = json.dumps({"spec": {"backupSpec": {"storageLocation": "elsewhere"}}})
    with pytest.raises(AssertionError, match=r"spec\.backupSpec was accepted and cannot change any more"):
        ann.kubectl("patch", "nonadminbackup", "whole", "--type=merge", f"--patch={change}")
    assert ann.status("nonadminbackup/whole")["veleroBackup"]["name"] == whole


def test_A18_nothing_that_holds_objects_is_handed_out(served: Cluster, ann: Tenant, whole: str) -> None:
    """Refused, for Secrets that the tenant may not read would be in it; logs, results and lists have none."""
    targets = [each for each in get_args(DownloadTarget) if each not in SERVED]
    assert len(targets) == 4
    for each in targets:
        ann.download(each.lower(), each, "whole")
    wishes = [f"nonadmindownloadrequest/{each.lower()}" for each in targets]
    ann.kubectl("wait", *wishes, "--for=jsonpath={.status.phase}=BackingOff", "--timeout=120s")
    for wish in wishes:
        assert condition(ann.status(wish), "Processed")[:2] == ("False", "TargetNotServed")
    assert not downloads_of(served, whole)
    ann.kubectl("delete", *wishes)


def test_A22_a_status_that_names_anothers_backup_is_not_believed(served: Cluster, ann: Tenant) -> None:
    """Refused to a tenant; neutralised where an administrator gave too many rights."""
    ann.kubectl("create", "--filename=-", body=manifest(NAB, "liar", {"backupSpec": {"includedNamespaces": ["x"]}}))
    ann.wait("nonadminbackup/liar", "--for=jsonpath={.status.phase}=BackingOff")
    copy = {"nacuuid": ADMINS, "name": ADMINS, "namespace": VELERO}
    lie = json.dumps({"status": {"phase": "Created", "veleroBackup": copy}})
    words = ("patch", "nonadminbackup", "liar", "--subresource=status", "--type=merge", f"--patch={lie}")
    with pytest.raises(AssertionError, match="forbidden"):
        ann.kubectl(*words)
    here = f"--namespace={ann.namespace}"
    served.kubectl("create", "role", "wide", "--verb=*", "--resource=nonadminbackups.oadp.openshift.io/status", here)
    served.kubectl("create", "rolebinding", "wide", "--role=wide", "--user=tenant-of-attacker", here)
    deadline = time.monotonic() + 60
    while True:
        try:
            ann.kubectl(*words)
            break
        except AssertionError:
            assert time.monotonic() < deadline
            time.sleep(0.2)
    served.kubectl("delete", "rolebinding", "wide", here)
    ann.wants("liar", deleteBackup=True)
    ann.wait("nonadminbackup/liar", "--for=delete")
    requests = served.get("deletebackuprequests.velero.io", f"--namespace={VELERO}")["items"]
    assert ADMINS not in {each["spec"]["backupName"] for each in requests}
    assert phase_of_admins(served) == "Completed"


def test_A23_a_namespace_made_again_inherits_no_backup(served: Cluster, eventually: Eventually) -> None:
    before = arrive(served, "moved", eventually)
    before.back_up("first")
    before.wait("nonadminbackup/first", "--for=condition=Succeeded")
    old = velero_names(served, "moved")
    served.kubectl("delete", "namespace", "moved", "--timeout=240s")
    after = arrive(served, "moved", eventually)
    assert not after.names("nonadminbackups"), "nothing plants requests in a namespace"
    waits_for_a_backup(served, after, "first")
    after.back_up("first")
    after.wait("nonadminbackup/first", "--for=condition=Succeeded")
    assert after.status("nonadminbackup/first")["veleroBackup"]["name"] not in old
    after.wants("first", deleteBackup=True)
    after.wait("nonadminbackup/first", "--for=delete")
    assert velero_names(served, "moved") == old


def test_A24_a_request_made_again_under_its_name_inherits_no_backup(served: Cluster, eventually: Eventually) -> None:
    """The tenant takes our finalizer off, which is allowed; what is left behind is nobody's, and takes a place."""
    cat = arrive(served, "scarce", eventually)
    cat.back_up("one")
    cat.wait("nonadminbackup/one", "--for=condition=Succeeded")
    old = velero_names(served, "scarce")
    cat.kubectl("delete", "nonadminbackup", "one", "--wait=false")
    cat.kubectl("patch", "nonadminbackup", "one", "--type=merge", f"--patch={FINALIZERS}")
    cat.wait("nonadminbackup/one", "--for=delete")
    cat.back_up("one")
    cat.wait("nonadminbackup/one", "--for=condition=Accepted=false")
    assert condition(cat.status("nonadminbackup/one"), "Accepted")[1] == "QuotaExceeded"
    cat.wants("one", deleteBackup=True)
    cat.wait("nonadminbackup/one", "--for=delete")
    assert velero_names(served, "scarce") == old
    served.kubectl("delete", "backups.velero.io", *old, f"--namespace={VELERO}")


# What a backup takes


def test_A8_another_namespace_is_refused_in_whatever_form(served: Cluster, ann: Tenant) -> None:
    other = "can not contain namespaces other than: attacker"
    invalid(
        served,
        ann,
        NAB,
        other=({"includedNamespaces": ["attacker", "kube-system"]}, other),
        star=({"includedNamespaces": ["*"]}, other),
        glob=({"includedNamespaces": ["attacke?"]}, other),
        empty=({"includedNamespaces": [""]}, other),
        excluded=({"excludedNamespaces": ["attacker"]}, "excludedNamespaces is restricted"),
        ordered=({"orderedResources": {"pods": "kube-system/etcd"}}, "write objects as attacker/NAME"),
    )


def test_A10_what_has_no_namespace_is_refused(served: Cluster, ann: Tenant) -> None:
    invalid(
        served,
        ann,
        NAB,
        every=({"includeClusterResources": True}, "includeClusterResources is restricted"),
        some=({"includedClusterScopedResources": ["clusterroles"]}, "must remain empty"),
        pattern=({"excludedResources": ["[", "secrets"]}, "which is not a resource name"),
    )


def test_A10_nothing_without_a_namespace_comes_along_with_a_service_account(served: Cluster, whole: str) -> None:
    """Neutralised: Velero adds the ClusterRoleBindings of a ServiceAccount by itself, unless they are left out."""
    kinds = contents(served, whole).keys()
    assert {"configmaps", "serviceaccounts"} <= kinds
    assert not {each for each in kinds if each.startswith(("clusterrole", "nonadmin"))}


def test_A4_of_volumes_only_those_of_the_tenants_claims_are_taken(served: Cluster, ann: Tenant) -> None:
    """Neutralised: a claim that names another's volume is not bound to it, and Velero takes what is bound."""
    served.apply(volume("anns", "attacker", "mine"), volume("victims", "victim", "data"))
    for name, of in (("mine", "anns"), ("theirs", "victims")):
        ann.kubectl("create", "--filename=-", body=claim(name, of))
    try:
        ann.wait("persistentvolumeclaim/mine", "--for=jsonpath={.status.phase}=Bound")
        ann.back_up("claims")
        ann.wait("nonadminbackup/claims", "--for=condition=Succeeded")
        held = contents(served, ann.status("nonadminbackup/claims")["veleroBackup"]["name"])
        assert held["persistentvolumeclaims"] == {"mine", "theirs"}
        assert held["persistentvolumes"] == {"anns"}
    finally:
        ann.kubectl("delete", "persistentvolumeclaim/mine", "persistentvolumeclaim/theirs", "--wait=false")
        served.kubectl("delete", "persistentvolume", "anns", "victims", "--wait=false")


def test_A11_a_location_that_the_policy_does_not_name_is_refused(served: Cluster, ann: Tenant) -> None:
    words = "is not allowed by SelfServicePolicy foresail-default"
    forbidden(
        served, ann, NAB, others=({"storageLocation": "victims"}, words), admins=({"storageLocation": "default"}, words)
    )


def test_A12_a_snapshot_location_is_refused(served: Cluster, ann: Tenant) -> None:
    forbidden(served, ann, NAB, one=({"volumeSnapshotLocations": ["default"]}, "volumeSnapshotLocations is restrict"))


def test_A13_a_config_map_of_veleros_namespace_is_refused(served: Cluster, ann: Tenant) -> None:
    reference = {"kind": "configmap", "name": "admins"}
    words = "admins is not allowed by SelfServicePolicy foresail-default"
    forbidden(served, ann, NAB, volumes=({"resourcePolicy": reference}, words))
    forbidden(
        served,
        ann,
        NAR,
        modifier=({"backupName": "whole", "resourceModifier": reference}, words),
        policy=({"backupName": "whole", "resourcePolicy": reference}, words),
    )


def test_A20_what_would_take_too_long_or_too_much_is_refused(served: Cluster, ann: Tenant) -> None:
    forbidden(
        served,
        ann,
        NAB,
        ttl=({"ttl": "87600h"}, "is too long; the maximum is 2160h"),
        snapshot=({"csiSnapshotTimeout": "100h"}, "is too long; the maximum is 10m"),
        operation=({"itemOperationTimeout": "100h"}, "is too long; the maximum is 8h"),
        mover=({"datamover": "nobody"}, "nobody is not allowed by SelfServicePolicy"),
        files=({"uploaderConfig": {"parallelFilesUpload": 5000}}, "the maximum is 10"),
    )


def test_A20_more_at_once_than_the_policy_gives_wait_for_their_turn(served: Cluster, eventually: Eventually) -> None:
    """Neutralised: with Velero stopped, one of five is with it and two wait in our queue; another follows one."""
    eve = arrive(served, "greedy", eventually)
    served.fault.stop("velero")
    try:
        bodies = [manifest(NAB, f"n{number}", {"backupSpec": {}}) for number in range(5)]
        eve.kubectl("create", "--filename=-", body={"apiVersion": "v1", "kind": "List", "items": bodies})

        def stands() -> list[str]:
            items = json.loads(eve.kubectl("get", "nonadminbackups", "--output=json"))["items"]
            said = [condition(each.get("status", {}), "Accepted")[1] for each in items]
            shown = [each.get("status", {}).get("phase", "") for each in items]
            return sorted(f"{phase}/{reason}" for phase, reason in zip(shown, said, strict=True))

        accepted = ["Created/BackupAccepted", "New/BackupAccepted", "New/BackupAccepted"]  # the last turn is for others
        eventually(lambda: stands() == [*accepted, "New/QuotaExceeded", "New/QuotaExceeded"], 120)
        assert len(of_namespace(served, "backups", "greedy")) == 1
        eve.wants(min(made_for(served, eve, NAB)), forceDeleteBackup=True)
        eventually(lambda: stands() == [*accepted, "New/QuotaExceeded"], 120)
        assert len(of_namespace(served, "backups", "greedy")) == 1
    finally:
        served.kubectl("delete", "namespace", "greedy", "--timeout=240s")
        served.fault.cont("velero")
    eventually(lambda: not velero_names(served, "greedy"), 30)  # what Velero had not begun is deleted


def test_A20_a_spec_that_is_nested_deeper_than_anyone_reads_is_refused_and_ends_nothing(
    hooked: Tenant, tmp_path: Path
) -> None:
    """The API server takes ten thousand levels below a field without a schema, and the operator sees them all."""
    root = {"name": "root", "image": "root", "deep": "%"}
    hooks = {"resources": [{"name": "hook", "postHooks": [{"init": {"initContainers": [root]}}]}]}
    body = json.dumps(manifest(NAR, "deep", {"restoreSpec": {"backupName": "any", "hooks": hooks}}))
    file = tmp_path / "deep.json"
    file.write_text(body.replace('"%"', '{"a":' * 5_000 + "1" + "}" * 5_000))
    hooked.kubectl("create", f"--filename={file}")
    hooked.wait("nonadminrestore/deep", "--for=jsonpath={.status.phase}=BackingOff")
    said = hooked.kubectl("get", "nonadminrestore/deep", "--output=jsonpath={.status.conditions[0].message}")
    assert "init containers are never allowed" in said
    hooked.kubectl("delete", "nonadminrestore/deep")


def test_A21_velero_s_namespace_and_the_clusters_own_have_no_self_service(served: Cluster) -> None:
    """Refused even there where the namespace was opened by its label; the phase stays New, for a policy may come."""
    for namespace in (VELERO, "kube-public"):
        served.kubectl("label", "namespace", namespace, f"{OPT_IN_LABEL}={OPT_IN_VALUE}")
        admin = Tenant(served.kubeconfig, namespace)
        try:
            admin.back_up("everything")
            admin.wait("nonadminbackup/everything", "--for=condition=Accepted=false")
            assert condition(admin.status("nonadminbackup/everything"), "Accepted")[1] == "NoPolicy"
            assert not of_namespace(served, "backups", namespace)
        finally:
            admin.kubectl("delete", "nonadminbackup", "everything")
            served.kubectl("label", "namespace", namespace, f"{OPT_IN_LABEL}-")


# What a restore brings


def test_A3_cluster_resources_are_refused_on_a_restore(served: Cluster, ann: Tenant, whole: str) -> None:
    assert whole
    every = {"backupName": "whole", "includeClusterResources": True}
    some = {"backupName": "whole", "includedResources": ["clusterroles"]}
    invalid(served, ann, NAR, every=(every, "can only be set to false"))
    forbidden(served, ann, NAR, some=(some, "does not allow to restore"))


def test_A5_rights_and_limits_are_refused_and_do_not_come_back(served: Cluster, ann: Tenant, whole: str) -> None:
    assert whole
    kinds = ("rolebindings", "roles.rbac.authorization.k8s.io", "resourcequotas", "limitranges", "networkpolicies")
    attempts = {
        f"k{number}": ({"backupName": "whole", "includedResources": [kind]}, f"contains {kind}, which")
        for number, kind in enumerate(kinds)
    }
    forbidden(served, ann, NAR, **attempts)

    served.kubectl("delete", "rolebinding/boss", "quota/tight", "--namespace=attacker")
    ann.kubectl("delete", "configmap", "settings")
    ann.restore("all", "whole")
    ann.wait("nonadminrestore/all", "--for=condition=Succeeded")
    assert ann.kubectl("get", "configmap", "settings", "--output=jsonpath={.data.currency}") == "EUR"
    left = served.kubectl("get", "rolebindings,quota", "--namespace=attacker", "--output=name").split()
    assert not {each for each in left if each.endswith(("/boss", "/tight"))}


def test_A6_an_init_container_is_refused_even_where_hooks_are_allowed(
    served: Cluster, ann: Tenant, hooked: Tenant
) -> None:
    root = {"name": "root", "image": "root", "securityContext": {"privileged": True}}
    hooks = {"resources": [{"name": "hook", "postHooks": [{"init": {"initContainers": [root]}}]}]}
    spec = {"backupName": "whole", "hooks": hooks}
    forbidden(served, ann, NAR, init=(spec, "hooks are not allowed by SelfServicePolicy foresail-default"))
    forbidden(served, hooked, NAR, init=(spec, "init containers are never allowed"))


def test_A6_a_pod_that_the_namespace_does_not_allow_does_not_come_back(served: Cluster, eventually: Eventually) -> None:
    """Neutralised by Pod Security, which goes by the namespace: it refuses the pod to Velero as well."""
    fay = arrive(served, "strict", eventually)
    fay.kubectl("create", "--filename=-", body=pod("host", {}, hostNetwork=True))
    fay.back_up("loose")
    fay.wait("nonadminbackup/loose", "--for=condition=Succeeded")
    fay.kubectl("delete", "pod/host", "configmap/settings", "--timeout=240s")
    served.kubectl("label", "namespace", "strict", "pod-security.kubernetes.io/enforce=restricted")
    fay.restore("back", "loose")
    fay.wait("nonadminrestore/back", "--for=condition=Succeeded=false")
    assert condition(fay.status("nonadminrestore/back"), "Succeeded")[1] == "PartiallyFailed"
    assert fay.names("configmap/settings") == ["configmap/settings"]
    assert not fay.names("pods")


def test_A7_commands_are_refused_and_where_they_are_allowed_they_end(
    served: Cluster, ann: Tenant, hooked: Tenant
) -> None:
    def hooks(timeout: str, namespace: str) -> dict[str, Any]:
        command = {"command": ["sleep", "infinity"], "timeout": timeout}
        return {"resources": [{"name": "hook", "includedNamespaces": [namespace], "pre": [{"exec": command}]}]}

    short, long, elsewhere = hooks("30s", "attacker"), hooks("9999h", "hooked"), hooks("30s", "victim")
    forbidden(served, ann, NAB, command=({"hooks": short}, "hooks are not allowed by SelfServicePolicy"))
    forbidden(
        served,
        hooked,
        NAB,
        long=({"hooks": long}, "9999h is too long; the maximum is 2m"),
        elsewhere=({"hooks": elsewhere}, "can not contain namespaces other than: hooked"),
    )


def test_A7_commands_in_annotations_of_pods_are_refused_at_apply_and_with_pods_that_are_older(
    served: Cluster, eventually: Eventually
) -> None:
    """Refused: by the API server, and in a pod from before the policy by the operator."""
    gil = arrive(served, "annotated", eventually)
    hook = {"pre.hook.backup.velero.io/command": '["/bin/true"]', "pre.hook.backup.velero.io/timeout": "5s"}
    eventually(lambda: "are refused in namespace annotated" in refusal(gil, pod("noted", hook), "--dry-run=server"), 60)
    as_velero(served, "annotated").kubectl("create", "--filename=-", body=pod("noted", hook))
    gil.wait("pod/noted", "--for=jsonpath={.status.phase}=Running")
    gil.back_up("noted")
    gil.wait("nonadminbackup/noted", "--for=jsonpath={.status.phase}=BackingOff")
    assert condition(gil.status("nonadminbackup/noted"), "Accepted")[1] == "PolicyViolation"
    assert not of_namespace(served, "backups", "annotated")


def test_A9_a_restore_into_another_namespace_or_from_a_schedule_is_refused(served: Cluster, ann: Tenant) -> None:
    invalid(
        served,
        ann,
        NAR,
        mapping=({"backupName": "whole", "namespaceMapping": {"attacker": "victim"}}, "namespaceMapping is restricted"),
        included=({"backupName": "whole", "includedNamespaces": ["victim"]}, "includedNamespaces is restricted"),
        excluded=({"backupName": "whole", "excludedNamespaces": ["victim"]}, "excludedNamespaces is restricted"),
        schedule=({"scheduleName": "nightly"}, "scheduleName is restricted"),
    )


def test_A14_a_status_does_not_come_back_and_neither_do_requests(served: Cluster, ann: Tenant, whole: str) -> None:
    """Refused; a short name, whose group only Velero knows, comes to nothing, for what is left out counts more."""
    forbidden(
        served,
        ann,
        NAR,
        status=({"backupName": "whole", "restoreStatus": {"includedResources": ["*"]}}, "restoreStatus is restricted"),
        nabs=(
            {"backupName": "whole", "includedResources": ["nonadminbackups.oadp.openshift.io"]},
            "does not allow to restore",
        ),
    )
    forbidden(
        served,
        ann,
        NAB,
        own=({"includedResources": ["nonadminbackups.oadp.openshift.io"]}, "which self-service never backs up"),
    )
    spec = {"backupName": "whole", "includedResources": ["nonadminbackups"]}
    ann.kubectl("create", "--filename=-", body=manifest(NAR, "short", {"restoreSpec": spec}))
    ann.wait("nonadminrestore/short", "--for=jsonpath={.status.phase}=BackingOff")
    status = ann.status("nonadminrestore/short")
    assert condition(status, "Authorized")[:2] == ("False", "InvalidRestoreSpec")
    assert not status.get("veleroRestore", {}).get("name"), whole


def test_each_row_of_the_table_has_a_test_that_is_named_after_it() -> None:
    rows = re.findall(r"^\| (A\d+) \|", __doc__ or "", re.MULTILINE)
    named = re.findall(r"test_(A\d+)_", " ".join(globals()))
    assert rows == sorted(set(named), key=lambda row: int(row[1:]))
