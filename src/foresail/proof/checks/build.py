"""The objects of a run: the fenced sandboxes, the Velero Restore into them, its modifiers, and the evidence."""

import json
from collections.abc import Collection, Iterable, Mapping, Sequence
from datetime import datetime
from hashlib import sha256

import msgspec

from foresail.api import core, velero
from foresail.api.marks import CHECK, CHECK_NAMESPACE, CHECK_RUN, CHECK_SOURCE, POD_VOLUME_TIMEOUT
from foresail.api.pods import RESOURCE_QUOTA
from foresail.api.restore_check import SANDBOX_PREFIX, CheckRun
from foresail.plan import Claim, Create, Delete, Key, Kind
from foresail.proof.checks import data_build
from foresail.proof.checks.kinds import included_resources, left_out
from foresail.proof.checks.kinds import restored as restored_kinds
from foresail.proof.checks.rows import EXCLUDED, CheckRow, OwnedObject, labels_in_sandbox, own_labels
from foresail.proof.checks.view import DataSettings

FENCE = "foresail-fence"
CONTENTS, RESTORED, RESULTS, VOLUMES = "contents", "restored", "results", "volumes"
EVIDENCE, START = "-evidence", "-start"
_OPERATION_TIMEOUT = "10m0s"
_CLUSTERS_OWN = 100
"""Room for what controllers add: some clusters create two Secrets for each ServiceAccount."""


def run_id(check: CheckRow, backup_uid: str) -> str:
    """Return the ID of a run, derived from the check as it was before: recording the run changes its version.

    So a start that a crash kept from being recorded gets the same ID again, and any other one never does.
    """
    return sha256(f"{check.uid} {backup_uid} {check.version}".encode()).hexdigest()[:10]


def sandbox_name(run: str, source: str) -> str:
    """Return the name of the sandbox for a namespace of the backup."""
    return f"{SANDBOX_PREFIX}{run}-{sha256(source.encode()).hexdigest()[:6]}"


def restore_key(check: CheckRow, run: str) -> Key:
    """Return the key of the Velero Restore."""
    return Key(check.velero_namespace, f"check-{run}")


def marks(check: CheckRow, run: str) -> dict[str, str]:
    """Return the annotations by which an object is recognised as one of this run."""
    whose = {CHECK_NAMESPACE: check.key.namespace} if check.is_tenants else {}
    return {CHECK: check.key.name, **whose, CHECK_RUN: run}


# The sandbox


def sandbox(
    check: CheckRow,
    run: str,
    source: str,
    objects: int,
    data: DataSettings | None = None,
    free_classes: Collection[str] = (),
) -> tuple[Create, ...]:
    """Return a namespace for so many objects from which nothing is reached; nothing starts in it, unless for data.

    The quota comes last: the restore waits for it, and then the rest of the fence exists too.
    """
    name = sandbox_name(run, source)
    mark = marks(check, run)
    labels = {**own_labels(check), "pod-security.kubernetes.io/enforce": "restricted"}
    fence = fence_key(run, source)
    source_mark = {**mark, CHECK_SOURCE: source}
    if data is not None:
        labels |= data_build.namespace_labels()
        made = Create(core.NAMESPACE, Key("", name), {"metadata": {"labels": labels}}, source_mark)
        return (made, *data_build.fence(check, data, fence, data_build.Bounds(quota(objects), free_classes), mark))
    bounds = {"metadata": {"labels": labels_in_sandbox(check)}, "spec": {"hard": quota(objects)}}
    deny_all = {
        "metadata": {"labels": labels_in_sandbox(check)},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }
    return (
        Create(core.NAMESPACE, Key("", name), {"metadata": {"labels": labels}}, source_mark),
        Create(core.NETWORK_POLICY, fence, deny_all, mark),
        Create(RESOURCE_QUOTA, fence, bounds, mark),
    )


def fence_key(run: str, source: str) -> Key:
    """Return the key of the quota and the NetworkPolicy of a sandbox; no object of the backup has this name."""
    return Key(sandbox_name(run, source), f"{FENCE}-{run}")


def quota(objects: int) -> dict[str, str]:
    """Return the bounds of a sandbox for so many objects: no pods and volumes, and of each kind not many more."""
    most = str(2 * objects + _CLUSTERS_OWN)
    return {
        "pods": "0",
        "persistentvolumeclaims": "0",
        **{f"count/{kind}": most for kind in restored_kinds(has_data=False).values()},
    }


# The restore


def modifiers(check: CheckRow, run: str, claims: Iterable[data_build.ClaimRule] | None = None) -> Create:
    """Return the ConfigMap with the resource modifiers; with depth Data, with those of claims."""
    rules = {"version": "v1", "resourceModifierRules": [*_rules(claims)]}
    body = {"metadata": {"labels": own_labels(check)}, "data": {"modifiers.yaml": json.dumps(rules, indent=1)}}
    return Create(core.CONFIG_MAP, Key(check.velero_namespace, f"check-{run}-modifiers"), body, marks(check, run))


def restore(
    check: CheckRow,
    run: CheckRun,
    sources: Iterable[str],
    custom: Sequence[str],
    seconds: int,
    *,
    has_moved: bool = False,
) -> Create:
    """Return the Velero Restore: only into the sandboxes, only listed kinds, no PersistentVolumes.

    Velero restores nothing else while it waits for volumes, so it waits so many seconds at most.
    If snapshot data was moved, restorePVs lets Velero fill new volumes with it, which it then gives to the claims.
    """
    has_data = run.depth == "Data"
    mapping = {source: sandbox_name(run.id, source) for source in sources}
    spec = {
        "backupName": run.backup,
        "includedNamespaces": sorted(mapping),
        "namespaceMapping": mapping,
        "includedResources": included_resources(custom, has_data=has_data),
        "excludedResources": [*left_out(has_data=has_data)],
        "includeClusterResources": False,
        "restorePVs": has_moved,
        "preserveNodePorts": False,
        "itemOperationTimeout": f"{seconds}s" if has_moved else _OPERATION_TIMEOUT,
        "resourceModifier": {"kind": "ConfigMap", "name": f"check-{run.id}-modifiers"},
    }
    annotations = {POD_VOLUME_TIMEOUT: f"{seconds}s"} if has_data else {}
    body = {"metadata": {"labels": own_labels(check), "annotations": annotations}, "spec": spec}
    return Create(velero.RESTORE, restore_key(check, run.id), body, marks(check, run.id))


def _rules(claims: Iterable[data_build.ClaimRule] | None) -> Iterable[dict[str, object]]:
    has_data = claims is not None
    labelled = {"metadata": {"labels": EXCLUDED}}  # controllers copy them to what they create from a template
    yield _rule("**", {"metadata": {"finalizers": None, "ownerReferences": None, "labels": EXCLUDED}})
    yield _rule("secrets", {"type": "Opaque"}, {"/type": _TOKEN})  # it would need an annotation, and get a token
    for kind in sorted(restored_kinds(has_data=has_data).values()):
        yield _rule(kind, {"metadata": {"annotations": None}})  # controllers of all namespaces act on annotations
    if claims is not None:
        yield from (_rule(*patch) for patch in data_build.patches())
        yield from (_rule("persistentvolumeclaims", claim.patch, on=claim.conditions) for claim in claims)
    else:
        for resource in ("deployments.apps", "statefulsets.apps", "replicasets.apps", "replicationcontrollers"):
            yield _rule(resource, {"spec": {"replicas": 0, "template": labelled}})
    for resource in ("cronjobs.batch", "jobs.batch"):
        yield _rule(resource, {"spec": {"suspend": True}})
    nowhere = {"nodeSelector": {"foresail.dev/no-such-node": "true"}}
    yield _rule("daemonsets.apps", {"spec": {"template": {**labelled, "spec": nowhere}}})
    yield _rule("rolebindings.rbac.authorization.k8s.io", {"subjects": None})
    yield _rule("services", {"spec": {"externalIPs": None, "externalTrafficPolicy": None}})
    for service_type in ("LoadBalancer", "NodePort"):
        yield _rule("services", {"spec": _INTERNAL}, {"/spec/type": service_type})


_TOKEN = "kubernetes.io/service-account-token"  # noqa: S105 - a type of Secret

_INTERNAL = {
    "type": "ClusterIP",
    "ports": [{"name": "checked", "port": 1, "protocol": "TCP"}],  # node ports cannot be removed one by one
    "allocateLoadBalancerNodePorts": None,
    "externalTrafficPolicy": None,
    "healthCheckNodePort": None,
    "loadBalancerClass": None,
    "loadBalancerIP": None,
    "loadBalancerSourceRanges": None,
}


def _rule(
    resource: str, patch: object, matches: Mapping[str, str] | None = None, on: Mapping[str, object] | None = None
) -> dict[str, object]:
    equals = [{"path": path, "value": value} for path, value in (matches or {}).items()]
    conditions = {"groupResource": resource, **({"matches": equals} if equals else {}), **(on or {})}
    return {"conditions": conditions, "mergePatches": [{"patchData": json.dumps(patch)}]}


# Files and evidence


def target(run: CheckRun, file: str) -> velero.DownloadTarget:
    """Return the file that Velero is asked for."""
    kinds = {CONTENTS: "BackupResourceList", RESTORED: "RestoreResourceList", RESULTS: "RestoreResults"}
    kinds |= {VOLUMES: "BackupVolumeInfos"}
    return velero.DownloadTarget(kinds[file], run.backup if file in (CONTENTS, VOLUMES) else f"check-{run.id}")


def download(check: CheckRow, run: CheckRun, file: str) -> Create:
    """Return the DownloadRequest for a file of a run."""
    wanted = target(run, file)
    spec = {"target": {"kind": wanted.kind, "name": wanted.name}}
    key = Key(check.velero_namespace, f"check-{run.id}-{file}")
    return Create(
        velero.DOWNLOAD_REQUEST, key, {"metadata": {"labels": own_labels(check)}, "spec": spec}, marks(check, run.id)
    )


def evidence_key(check: CheckRow, run: str) -> Key:
    """Return the key of the evidence of a run."""
    return Key(check.velero_namespace, f"check-{run}{EVIDENCE}")


def evidence(check: CheckRow, run: str, record: Mapping[str, object]) -> Create:
    """Return the ConfigMap with the record of a run, and its digest to sign."""
    text = json.dumps(record, indent=2, sort_keys=True)
    data = {"record.json": text, "sha256": sha256(text.encode()).hexdigest()}
    body = {"metadata": {"labels": own_labels(check)}, "data": data, "immutable": True}
    return Create(core.CONFIG_MAP, evidence_key(check, run), body, marks(check, run))


class Start(Claim, msgspec.Struct, frozen=True):
    """The run that a tenant's check starts with."""

    run: str


def start(check: CheckRow, run: str) -> Create:
    """Return the ConfigMap by which a start of a tenant's check counts, even if the tenant deletes the check."""
    body = {"metadata": {"labels": own_labels(check)}}
    return Create(core.CONFIG_MAP, _start_key(check, run), body, marks(check, run))


def started(check: CheckRow, run: str, now: datetime) -> OwnedObject:
    """Return the start of a run as the store will have it."""
    whose = check.key
    key = _start_key(check, run)
    return OwnedObject(key, "", whose.name, check.uid, run, "", now, check_namespace=whose.namespace)


def _start_key(check: CheckRow, run: str) -> Key:
    return Key(check.velero_namespace, f"check-{run}{START}")


def is_start(owned: OwnedObject) -> bool:
    """Whether a ConfigMap is the start of a tenant's check."""
    return owned.key.name == f"check-{owned.run}{START}"


def outlives_its_run(owned: OwnedObject) -> bool:
    """Whether a ConfigMap stays after its run: evidence, and the start of a tenant's check."""
    return is_evidence(owned) or is_start(owned)


def is_evidence(owned: OwnedObject) -> bool:
    """Whether a ConfigMap is the evidence of a run."""
    return owned.key.name == f"check-{owned.run}{EVIDENCE}"


def is_sandbox(owned: OwnedObject) -> bool:
    """Whether a namespace is a sandbox by its name too, not only by a label that anyone may have written."""
    return bool(owned.run) and owned.key.name == sandbox_name(owned.run, owned.source)


def delete(kind: Kind, owned: OwnedObject) -> Delete:
    """Return the deletion of an object of a run."""
    return Delete(kind, owned.key, owned.uid)
