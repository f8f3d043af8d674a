"""What the token of rollbacks writes, and the Rollbacks in progress without which it may write hardly anything."""

import copy
import http.client
import json
import time
from collections.abc import Iterator
from dataclasses import replace
from random import Random

from bench.plan_objects import BUILDERS
from foresail.api.marks import (
    KEPT_VOLUME,
    REQUESTER,
    REQUESTER_GROUPS,
    ROLLBACK_FINALIZER,
    ROLLBACK_IN_PROGRESS,
    ROLLBACK_UID,
)
from foresail.rollback.kinds import LISTED, PAUSED, STOPPED, SUSPENDED, full_name
from foresail.rollback.rows import RESTORED_BY
from testbed import Cluster
from testbed.api import Answer
from tests.redteam.world import Caller
from tests.stolen_token.bodies import (
    HOOKS,
    OADP,
    OTHER,
    OURS,
    ROLLBACK,
    SHOP,
    UID,
    VELERO,
    Json,
    Write,
    created,
    event,
    lease,
    made,
    patched,
)

ROLLED = "rolled"
"""A namespace whose Rollback replaces volumes; that of the shop is undone, and in the other one none is in progress."""

NAMESPACES = (SHOP, OTHER, ROLLED)
BACK = "back"
EXTRA, MINE, RESTORED = "extra", "mine", "restored"
"""Objects of each kind: what the Rollback has recorded, what it has not, and what its restores have created."""

KEPT, OLD, DATA = "kept", "old", "data"
"""A volume that the Rollback keeps, one that it is about to keep, and the claim that gets the kept one back."""

_BACK_UID = "11111111-1111-4111-8111-111111111111"
_OLD_CLAIM_UID = "22222222-2222-4222-8222-222222222222"
_REQUESTER, _GROUPS = "the-requester", "the-groups"
"""Stand for what the API server gives the Rollback of the shop."""

_RESTORE, _CLAIMS_RESTORE = "velero-restore", "velero-claims-restore"
_CLAIMS = "persistentvolumeclaims"
_OWN_RESTORE, _OWN_LIST = (f"own-{each}-{_BACK_UID[:8]}" for each in ("restore", "list"))
"""Requests that the operator has made before."""

_AS_REQUESTER = {ROLLBACK_UID: _BACK_UID, REQUESTER: _REQUESTER, REQUESTER_GROUPS: _GROUPS}
_RECORD = json.dumps({"reclaim_policy": "Delete", "rollback": f"{SHOP}/{BACK}", "until": ""}, separators=(",", ":"))
_FLAG = {ROLLBACK_IN_PROGRESS: "true"}
_MARK = {"metadata": {"annotations": {ROLLBACK_UID: _BACK_UID}}}
_KINDS = (*LISTED, *SUSPENDED)


def _request(kind: str, name: str, spec: Json, **metadata: object) -> Json:
    return made(kind, f"{BACK}-{name}-{_BACK_UID[:8]}", OADP, spec, **{"annotations": _AS_REQUESTER, **metadata})


def _restore(name: str, **spec: object) -> Json:
    return _request("NonAdminRestore", name, {"restoreSpec": {"backupName": "daily", **spec}})


def _restore_of_objects() -> Json:
    return _restore("restore", excludedResources=["pods"], existingResourcePolicy="update", restorePVs=False)


def _list_request(name: str = "list") -> Json:
    target = {"target": {"kind": "BackupResourceList", "name": "daily"}}
    return _request("NonAdminDownloadRequest", name, target, annotations={ROLLBACK_UID: _BACK_UID})


def _claim() -> Json:
    spec = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": "1Gi"}},
        "storageClassName": "x",
        "volumeName": KEPT,
    }
    return made("PersistentVolumeClaim", DATA, "v1", spec, annotations={ROLLBACK_UID: _BACK_UID})


def _changed(resource: str, version: str, body: Json, name: str = EXTRA) -> Write:
    return patched(ROLLBACK, version, resource, (SHOP, name), body)


def _deleted(resource: str, version: str, name: str = EXTRA) -> Write:
    return Write(ROLLBACK, "delete", version, resource, SHOP, name)


def _keeps() -> Json:
    record = _RECORD.replace("Delete", "Retain")
    metadata = {"labels": {ROLLBACK_UID: _BACK_UID}, "annotations": {KEPT_VOLUME: record}}
    return {"metadata": metadata, "spec": {"persistentVolumeReclaimPolicy": "Retain"}}


def controls() -> list[Write]:
    """Return every write of the token, as the operator makes it."""
    released = {"metadata": {"labels": {ROLLBACK_UID: None}, "annotations": {KEPT_VOLUME: None}}}
    begun = {"metadata": {"labels": _FLAG, "finalizers": [ROLLBACK_FINALIZER]}}
    safety, with_data = {"snapshotVolumes": False}, {"snapshotVolumes": True, "snapshotMoveData": True}
    return [
        created(ROLLBACK, "nonadminbackups", SHOP, _request("NonAdminBackup", "before", {"backupSpec": safety})),
        created(ROLLBACK, "nonadminbackups", SHOP, _request("NonAdminBackup", "before", {"backupSpec": with_data})),
        created(ROLLBACK, "nonadminrestores", SHOP, _restore_of_objects()),
        created(ROLLBACK, "nonadminrestores", SHOP, _restore("claims", includedResources=[_CLAIMS], restorePVs=True)),
        created(ROLLBACK, "nonadmindownloadrequests", SHOP, _list_request()),
        _deleted("nonadminrestores", OADP, _OWN_RESTORE),
        _deleted("nonadmindownloadrequests", OADP, _OWN_LIST),
        patched(ROLLBACK, OURS, "rollbacks", (OTHER, BACK), begun),
        patched(ROLLBACK, OURS, "rollbacks/status", (SHOP, BACK), {"status": {"phase": "Undoing"}}),
        patched(ROLLBACK, "v1", "namespaces", ("", SHOP), {"metadata": {"labels": _FLAG}}),
        *(_changed(kind.plural, kind.api_version, _suspension(kind.plural)) for kind in SUSPENDED),
        *(_deleted(kind.plural, kind.api_version) for kind in LISTED),
        _changed("serviceaccounts", "v1", {"imagePullSecrets": []}),
        Write(ROLLBACK, "deletecollection", "v1", "secrets", SHOP, _RESTORE),
        *(_changed(kind.plural, kind.api_version, _stop(kind.plural)) for kind in STOPPED.values()),
        patched(ROLLBACK, "v1", "persistentvolumes", ("", OLD), _keeps()),
        patched(ROLLBACK, "v1", "persistentvolumes", ("", KEPT), {"spec": {"claimRef": {"uid": UID}}}),
        patched(
            ROLLBACK,
            "v1",
            "persistentvolumes",
            ("", KEPT),
            {**released, "spec": {"persistentVolumeReclaimPolicy": "Delete"}},
        ),
        created(ROLLBACK, _CLAIMS, SHOP, _claim()),
        _deleted(_CLAIMS, "v1"),
        created(ROLLBACK, "events", SHOP, event(SHOP)),
        created(ROLLBACK, "leases", VELERO, lease(ROLLBACK)),
    ]


def _suspension(plural: str) -> Json:
    if plural == "scaledobjects":
        return {"metadata": {"annotations": {PAUSED: "true"}}}
    return {"spec": {"suspend": True}}


def _stop(plural: str) -> Json:
    return {**_MARK, "spec": {"suspend": True} if plural == "cronjobs" else {"replicas": 0}}


# What a thief would write instead


_UNGATED = ("events", "leases", "rollbacks", "rollbacks/status")
_ELSEWHERE: Json = {"includedNamespaces": [OTHER]}
_BACKUP_FIELDS: tuple[Json, ...] = (
    {"hooks": HOOKS},
    {"ttl": "1h0m0s"},
    {"storageLocation": "default"},
    {"includedResources": ["secrets"]},
    {"snapshotVolumes": True, "snapshotMoveData": None},
    _ELSEWHERE,
)
_RESTORE_FIELDS: tuple[Json, ...] = (
    {"hooks": HOOKS},
    {"namespaceMapping": {SHOP: OTHER}},
    {"existingResourcePolicy": "none"},
    {"restorePVs": None},
    {"backupName": "other"},
    {"includedResources": ["secrets"]},
    {"includeClusterResources": True},
    {"resourceModifier": {"kind": "configmap", "name": "x"}},
    {"restoreStatus": {"includedResources": ["*"]}},
    _ELSEWHERE,
)


def mutations(control: Write) -> Iterator[Write]:
    """Return a control in every respect changed that only this token could try."""
    if control.namespace == SHOP and control.resource not in _UNGATED:
        yield replace(control, namespace=OTHER, shape="where no Rollback is in progress")
        yield replace(control, namespace=ROLLED, shape="where the Rollback of others is in progress")
    if control.verb != "create" and control.name in (EXTRA, _OWN_RESTORE, _OWN_LIST):
        yield replace(control, name=MINE, shape="that the Rollback has not recorded")
    if control.verb == "delete" and control.resource not in ("nonadminrestores", "nonadmindownloadrequests"):
        yield replace(control, name=RESTORED, shape="that the restore has created, in an undo")
        created_there = "that the restore has created, where nothing is undone"
        yield replace(control, namespace=ROLLED, name=RESTORED, shape=created_there)
    if control.verb == "deletecollection":
        yield replace(control, name="", shape="also those that the restore has not created")
    if control.verb == "create" and control.resource.startswith("nonadmin"):
        yield from _requests(control)
    if control.verb == "patch":
        for body, shape in _CHANGES.get(control.resource, ()):
            yield replace(control, body=body, shape=shape)
    yield from _others(control)


def _requests(control: Write) -> Iterator[Write]:
    for key, value, shape in (
        (ROLLBACK_UID, UID, "of another Rollback"),
        (REQUESTER, "thief", "in another's name"),
        (REQUESTER_GROUPS, "thieves", "with other groups"),
    ):
        body = copy.deepcopy(control.body)
        body["metadata"]["annotations"][key] = value
        yield replace(control, body=body, shape=shape)
    part, fields = {
        "nonadminbackups": ("backupSpec", _BACKUP_FIELDS),
        "nonadminrestores": ("restoreSpec", _RESTORE_FIELDS),
        "nonadmindownloadrequests": ("target", ({"kind": "BackupContents"}, {"kind": "BackupLog"}, {"name": "other"})),
    }[control.resource]
    for change in fields:
        body = copy.deepcopy(control.body)
        body["spec"][part] = {**body["spec"][part], **change}
        values = ", ".join(f"{key}={json.dumps(value)}" for key, value in change.items() if value is not None)
        yield replace(
            control, body=body, shape=f"with {part}: {values}" if values else f"without {part}.{next(iter(change))}"
        )


def _spec(**spec: object) -> Json:
    return {"spec": spec}


def _reference(**reference: object) -> Json:
    return {"spec": {"claimRef": reference}}


_THIEFS = {"template": {"spec": {"containers": [{"name": "main", "image": "thief"}]}}}
_CHANGES: dict[str, tuple[tuple[Json, str], ...]] = {
    "serviceaccounts": (
        ({"imagePullSecrets": [{"name": "thief"}]}, "with another name in imagePullSecrets"),
        ({"metadata": {"annotations": {"cloud.example/role": "admin"}}}, "with another role"),
        ({"automountServiceAccountToken": True}, "with its token in every pod"),
    ),
    "deployments": (
        (_spec(**_THIEFS), "with another image"),
        (_spec(replicas=100), "to 100 replicas"),
    ),
    "statefulsets": (
        (_spec(**_THIEFS), "with another image"),
        (_spec(replicas=100), "to 100 replicas"),
    ),
    "cronjobs": (
        (_spec(suspend=False), "to run again"),
        (_spec(schedule="* * * * *"), "to another schedule"),
    ),
    "kustomizations": (
        (_spec(suspend=False), "to go on"),
        (_spec(path="./thief"), "to another path"),
        (_spec(serviceAccountName="admin"), "to another ServiceAccount"),
    ),
    "helmreleases": (
        (_spec(suspend=False), "to go on"),
        (_spec(values={"image": "thief"}), "to other values"),
    ),
    "scaledobjects": (
        ({"metadata": {"annotations": {PAUSED: None}}}, "to go on"),
        (_spec(maxReplicaCount=100), "to 100 replicas"),
    ),
    "persistentvolumes": (
        (_reference(uid=UID), "for another claim UID"),
        (_reference(name="theirs"), "for another claim"),
        (_reference(namespace=OTHER), "for the claim of another namespace"),
        ({"spec": {"claimRef": None}}, "for no claim"),
        (_spec(persistentVolumeReclaimPolicy="Recycle"), "to Recycle"),
        (_spec(persistentVolumeReclaimPolicy="Delete"), "to Delete"),
        (_spec(csi={"volumeHandle": "theirs"}), "with the data of another volume"),
        ({"metadata": {"labels": {ROLLBACK_UID: UID}}}, "with the mark of another Rollback"),
        ({"metadata": {"annotations": {KEPT_VOLUME: _RECORD.replace("Delete", "Recycle")}}}, "with another record"),
    ),
    "rollbacks": (
        (_spec(undo=True), "to undo it"),
        (_spec(prune=True), "to prune"),
        ({"metadata": {"annotations": {REQUESTER: "thief"}}}, "for another requester"),
    ),
    "rollbacks/status": (
        (
            {"status": {"pruned": [{"kind": "configmaps", "name": MINE, "uid": UID}]}},
            "that lists other objects to delete",
        ),
        (
            {"status": {"stopped": [{"kind": "deployments.apps", "name": MINE, "uid": UID}]}},
            "that lists other objects to stop",
        ),
        ({"status": {"phase": "Completed"}}, "with another phase"),
    ),
    "namespaces": (
        ({"metadata": {"labels": {ROLLBACK_IN_PROGRESS: None}}}, "without the label"),
        ({"metadata": {"labels": {ROLLBACK_IN_PROGRESS: "other"}}}, "with another value of the label"),
        ({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}}, "without Pod Security"),
        ({"metadata": {"labels": {"foresail.dev/self-service": "disabled"}}}, "without self-service"),
    ),
}


def _others(control: Write) -> Iterator[Write]:
    """Return what is done to other objects."""
    if control.resource == "namespaces":
        for name in (OTHER, "kube-system"):
            yield replace(control, name=name, shape=f"of namespace {name}, where no Rollback is in progress")
    if control.resource == "rollbacks":
        taken = {"metadata": {"labels": {ROLLBACK_IN_PROGRESS: None}}}
        yield replace(control, namespace=SHOP, body=taken, shape="without its label, while its namespace has one")
        yield replace(control, body={"metadata": {"finalizers": []}}, shape="without its finalizer")
    if control.verb == "create" and control.resource == _CLAIMS:
        for change, shape in (
            ({"volumeName": OLD}, "of another volume"),
            ({"volumeName": "tenants"}, "of the volume of a tenant"),
            ({"dataSource": {"kind": "PersistentVolumeClaim", "name": "theirs"}}, "with the data of another claim"),
        ):
            yield replace(control, body={**control.body, "spec": {**control.body["spec"], **change}}, shape=shape)


# The cluster


def definitions() -> Iterator[Json]:
    """Return the definitions of what Flux and KEDA would bring."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    for kind in SUSPENDED:
        version = {"name": kind.version, "served": True, "storage": True, "schema": schema}
        names = {"plural": kind.plural, "singular": kind.name.lower(), "kind": kind.name}
        spec = {"group": kind.group, "scope": "Namespaced", "names": names, "versions": [version]}
        yield made("CustomResourceDefinition", f"{kind.plural}.{kind.group}", "apiextensions.k8s.io/v1", spec)


def objects() -> Iterator[Json]:
    """Return what Rollbacks are about, in each namespace, and the Rollbacks."""
    yield made("Namespace", ROLLED, "v1", labels={"foresail.dev/self-service": "enabled"})
    for namespace in NAMESPACES:
        for name in (EXTRA, MINE, RESTORED):
            yield from _of_all_kinds(namespace, name)
        back = {"to": "daily", "volumes": "All", "prune": namespace == SHOP}
        yield _placed(made("Rollback", BACK, OURS, back), namespace)
    spec = {
        "capacity": {"storage": "1Gi"},
        "accessModes": ["ReadWriteOnce"],
        "persistentVolumeReclaimPolicy": "Retain",
        "csi": {"driver": "x", "volumeHandle": KEPT},
        "storageClassName": "x",
        "claimRef": {"namespace": SHOP, "name": DATA, "uid": _OLD_CLAIM_UID},
    }
    marks = {"labels": {ROLLBACK_UID: UID}, "annotations": {KEPT_VOLUME: _RECORD}}
    yield made("PersistentVolume", KEPT, "v1", spec, **marks)
    bound = {"namespace": SHOP, "name": EXTRA, "uid": _OLD_CLAIM_UID}
    yield made("PersistentVolume", OLD, "v1", {**spec, "csi": {"driver": "x", "volumeHandle": OLD}, "claimRef": bound})


def _of_all_kinds(namespace: str, name: str) -> Iterator[Json]:
    rng = Random(0)  # noqa: S311 - reproducible, not secret
    wanted = {kind.name for kind in LISTED} | {"PersistentVolumeClaim", "Secret"}
    made_up = [build(rng, namespace, name) for build in BUILDERS]
    by_kind = {each["kind"]: each for each in reversed(made_up) if each["kind"] in wanted}
    daemons = copy.deepcopy(by_kind["Deployment"]) | {"kind": "DaemonSet"}
    del daemons["spec"]["replicas"]
    suspended = [_placed(made(kind.name, name, kind.api_version, {}), namespace) for kind in SUSPENDED]
    for body in (*by_kind.values(), daemons, *suspended):
        restore = _CLAIMS_RESTORE if body["kind"] == "PersistentVolumeClaim" else _RESTORE
        labels = {RESTORED_BY: restore} if name == RESTORED else {}
        yield {**body, "metadata": {"name": name, "namespace": namespace, "labels": labels}}


def _placed(body: Json, namespace: str) -> Json:
    return {**body, "metadata": {**body["metadata"], "namespace": namespace}}


class Thief(Caller):
    """A thief with the token, who knows the Rollback of the shop: bodies have what the API server gave it."""

    def __init__(self, caller: Caller, rollback: Json) -> None:
        self.__dict__.update(caller.__dict__)
        notes = rollback["metadata"]["annotations"]
        self._words = {
            _BACK_UID: rollback["metadata"]["uid"],
            _REQUESTER: notes[REQUESTER],
            _GROUPS: notes[REQUESTER_GROUPS],
        }

    def send(
        self, method: str, target: str, body: object = None, sort: str = "application/json", **headers: str
    ) -> Answer:
        """Send a request, and return the answer in the words of the request."""
        text = None if body is None else json.dumps(body)
        for placeholder, word in self._words.items():
            text = text and text.replace(json.dumps(placeholder), json.dumps(word))
        answer = super().send(method, target, text, sort, **headers)
        found = answer.text
        for placeholder, word in self._words.items():
            found = found.replace(json.dumps(word), json.dumps(placeholder))
        return Answer(answer.code, found)


_PATIENCE = 60.0  # seconds until admission knows of a new Rollback


def _until_admitted(
    thief: Caller, method: str, target: str, body: object, sort: str = "application/merge-patch+json"
) -> None:
    until = time.monotonic() + _PATIENCE
    while (answer := thief.send(method, target, body, sort)).code >= http.client.BAD_REQUEST:
        assert time.monotonic() < until, answer.text
        time.sleep(0.5)


def begin(cluster: Cluster, caller: Caller) -> Thief:
    """Have Rollbacks in progress, as the operator would, and return the thief."""
    for namespace, status in ((SHOP, _undone(cluster)), (ROLLED, {"phase": "Replacing"})):
        rollback = f"/apis/{OURS}/namespaces/{namespace}/rollbacks/{BACK}"
        begun = {"metadata": {"labels": _FLAG, "finalizers": [ROLLBACK_FINALIZER]}}
        _until_admitted(caller, "PATCH", rollback, begun)
        _until_admitted(caller, "PATCH", f"/api/v1/namespaces/{namespace}", {"metadata": {"labels": _FLAG}})
        _until_admitted(caller, "PATCH", f"{rollback}/status", {"status": status})
    thief = Thief(caller, cluster.get("rollbacks.foresail.dev", BACK, f"--namespace={SHOP}"))
    rolled = Thief(caller, cluster.get("rollbacks.foresail.dev", BACK, f"--namespace={ROLLED}"))
    for plural, body, name in (
        ("nonadminrestores", _restore_of_objects(), _OWN_RESTORE),
        ("nonadmindownloadrequests", _list_request(), _OWN_LIST),
    ):
        for namespace, maker in ((SHOP, thief), (ROLLED, rolled)):
            own = {**body, "metadata": {**body["metadata"], "name": name}}
            _until_admitted(maker, "POST", f"/apis/{OADP}/namespaces/{namespace}/{plural}", own, "application/json")
        for namespace, each in ((SHOP, MINE), (OTHER, name)):
            cluster.apply(_placed(made(body["kind"], each, OADP, body["spec"]), namespace))
    _until_admitted(thief, "DELETE", f"/api/v1/namespaces/{SHOP}/configmaps/{EXTRA}?dryRun=All", None)
    return thief


def _undone(cluster: Cluster) -> Json:
    """Return the status of a Rollback that is undone."""
    names = ",".join((*map(full_name, _KINDS), _CLAIMS))
    items = [each for each in cluster.get(names, f"--namespace={SHOP}")["items"] if each["metadata"]["name"] == EXTRA]
    uids = {each["kind"]: each["metadata"]["uid"] for each in items}
    recorded = [{"kind": full_name(kind), "name": EXTRA, "uid": uids[kind.name]} for kind in _KINDS]
    claim = {"claim": EXTRA, "volume": OLD, "claimUid": uids["PersistentVolumeClaim"]}
    return {
        "phase": "Undoing",
        "stopped": recorded,
        "pruned": recorded,
        "accounts": [{"name": EXTRA, "uid": uids["ServiceAccount"]}],
        "volumes": [{"claim": DATA, "volume": KEPT}, claim],
        "veleroRestore": _RESTORE,
        "veleroClaimsRestore": _CLAIMS_RESTORE,
        "restoreStarted": "2020-01-01T00:00:00Z",
    }
