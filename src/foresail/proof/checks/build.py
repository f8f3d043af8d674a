"""The objects of a run: the fenced sandboxes, the Velero Restore into them, its modifiers, and the evidence."""

import json
from collections.abc import Iterable, Mapping, Sequence
from hashlib import sha256

from foresail.api import core, velero
from foresail.api.marks import CHECK, CHECK_LABEL, CHECK_RUN, CHECK_SOURCE, NOT_BACKED_UP
from foresail.api.pods import RESOURCE_QUOTA
from foresail.api.restore_check import CheckRun
from foresail.plan import Create, Delete, Key, Kind
from foresail.proof.checks.contents import included_resources
from foresail.proof.checks.kinds import LEFT_OUT
from foresail.proof.checks.kinds import RESTORED as RESTORED_KINDS
from foresail.proof.checks.observe import CheckRow, DownloadTarget, Piece

NETWORK_POLICY = Kind("networking.k8s.io", "v1", "networkpolicies", "NetworkPolicy")
PREFIX = "foresail-check-"
"""The names of sandboxes begin with it; the chart reserves it."""

FENCE = "foresail-fence"
CONTENTS, RESTORED, RESULTS = "contents", "restored", "results"
_EVIDENCE = "-evidence"
_OPERATION_TIMEOUT = "10m0s"


def run_id(check_uid: str, backup_uid: str, started: str) -> str:
    """Return the ID of a run, derived from what it is."""
    return sha256(f"{check_uid} {backup_uid} {started}".encode()).hexdigest()[:10]


def sandbox_name(run: str, source: str) -> str:
    """Return the name of the sandbox for a namespace of the backup."""
    return f"{PREFIX}{run}-{sha256(source.encode()).hexdigest()[:6]}"


def restore_key(check: CheckRow, run: str) -> Key:
    """Return the key of the Velero Restore."""
    return Key(check.key.namespace, f"check-{run}")


def marks(check: CheckRow, run: str) -> dict[str, str]:
    """Return the annotations by which an object is recognised as one of this run."""
    return {CHECK: check.key.name, CHECK_RUN: run}


def _labels(check: CheckRow) -> dict[str, str]:
    return {CHECK_LABEL: check.uid}


# The sandbox


def sandbox(check: CheckRow, run: str, source: str) -> tuple[Create, ...]:
    """Return a namespace in which nothing starts and from which nothing is reached, with its fence."""
    name, mark = sandbox_name(run, source), marks(check, run)
    labels = {**_labels(check), NOT_BACKED_UP: "true", "pod-security.kubernetes.io/enforce": "restricted"}
    fence = f"{FENCE}-{run}"  # no object of the backup has this name
    no_pods = {"metadata": {"labels": _labels(check)}, "spec": {"hard": {"pods": "0"}}}
    deny_all = {
        "metadata": {"labels": _labels(check)},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]},
    }
    return (
        Create(core.NAMESPACE, Key("", name), {"metadata": {"labels": labels}}, {**mark, CHECK_SOURCE: source}),
        Create(RESOURCE_QUOTA, Key(name, fence), no_pods, mark),
        Create(NETWORK_POLICY, Key(name, fence), deny_all, mark),
    )


# The restore


def modifiers(check: CheckRow, run: str) -> Create:
    """Return the ConfigMap with the resource modifiers."""
    rules = {"version": "v1", "resourceModifierRules": [*_rules()]}
    body = {"metadata": {"labels": _labels(check)}, "data": {"modifiers.yaml": json.dumps(rules, indent=1)}}
    return Create(core.CONFIG_MAP, Key(check.key.namespace, f"check-{run}-modifiers"), body, marks(check, run))


def restore(check: CheckRow, run: CheckRun, sources: Iterable[str], custom: Sequence[str]) -> Create:
    """Return the Velero Restore: only into the sandboxes, only listed kinds, no volumes."""
    mapping = {each: sandbox_name(run.id, each) for each in sources}
    spec = {
        "backupName": run.backup,
        "includedNamespaces": sorted(mapping),
        "namespaceMapping": mapping,
        "includedResources": included_resources(custom),
        "excludedResources": [*LEFT_OUT],
        "includeClusterResources": False,
        "restorePVs": False,
        "preserveNodePorts": False,
        "itemOperationTimeout": _OPERATION_TIMEOUT,
        "resourceModifier": {"kind": "ConfigMap", "name": f"check-{run.id}-modifiers"},
    }
    body = {"metadata": {"labels": _labels(check)}, "spec": spec}
    return Create(velero.RESTORE, restore_key(check, run.id), body, marks(check, run.id))


def _rules() -> Iterable[dict[str, object]]:
    yield _rule("**", {"metadata": {"finalizers": None, "ownerReferences": None}})
    for each in sorted(set(RESTORED_KINDS.values()) - {"secrets"}):
        yield _rule(each, {"metadata": {"annotations": None}})  # controllers of all namespaces act on annotations
    for each in _PLAIN_SECRETS:
        yield _rule("secrets", {"metadata": {"annotations": None}}, {"/type": each})
    for each in ("deployments.apps", "statefulsets.apps", "replicasets.apps", "replicationcontrollers"):
        yield _rule(each, {"spec": {"replicas": 0}})
    for each in ("cronjobs.batch", "jobs.batch"):
        yield _rule(each, {"spec": {"suspend": True}})
    nowhere = {"nodeSelector": {"foresail.dev/no-such-node": "true"}}
    yield _rule("daemonsets.apps", {"spec": {"template": {"spec": nowhere}}})
    yield _rule("rolebindings.rbac.authorization.k8s.io", {"subjects": None})
    yield _rule("services", {"spec": {"externalIPs": None, "externalTrafficPolicy": None}})
    for each in ("LoadBalancer", "NodePort"):
        yield _rule("services", {"spec": _INTERNAL}, {"/spec/type": each})


_PLAIN_SECRETS = (
    "Opaque",
    "kubernetes.io/basic-auth",
    "kubernetes.io/dockercfg",
    "kubernetes.io/dockerconfigjson",
    "kubernetes.io/ssh-auth",
    "kubernetes.io/tls",
)
"""Types of Secrets whose validity does not depend on an annotation."""

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


def _rule(resource: str, patch: object, matches: Mapping[str, str] | None = None) -> dict[str, object]:
    found = [{"path": path, "value": value} for path, value in (matches or {}).items()]
    conditions = {"groupResource": resource, **({"matches": found} if found else {})}
    return {"conditions": conditions, "mergePatches": [{"patchData": json.dumps(patch)}]}


# Files and evidence


def target(run: CheckRun, file: str) -> DownloadTarget:
    """Return the file that Velero is asked for."""
    kinds = {CONTENTS: "BackupResourceList", RESTORED: "RestoreResourceList", RESULTS: "RestoreResults"}
    return DownloadTarget(kinds[file], run.backup if file == CONTENTS else f"check-{run.id}")


def download(check: CheckRow, run: CheckRun, file: str) -> Create:
    """Return the DownloadRequest for a file of a run."""
    wanted = target(run, file)
    spec = {"target": {"kind": wanted.kind, "name": wanted.name}}
    key = Key(check.key.namespace, f"check-{run.id}-{file}")
    return Create(
        velero.DOWNLOAD_REQUEST, key, {"metadata": {"labels": _labels(check)}, "spec": spec}, marks(check, run.id)
    )


def evidence_key(check: CheckRow, run: str) -> Key:
    """Return the key of the evidence of a run."""
    return Key(check.key.namespace, f"check-{run}{_EVIDENCE}")


def evidence(check: CheckRow, run: str, record: Mapping[str, object]) -> Create:
    """Return the ConfigMap with the record of a run, and its digest to sign."""
    text = json.dumps(record, indent=2, sort_keys=True)
    data = {"record.json": text, "sha256": sha256(text.encode()).hexdigest()}
    body = {"metadata": {"labels": _labels(check)}, "data": data, "immutable": True}
    return Create(core.CONFIG_MAP, evidence_key(check, run), body, marks(check, run))


def is_evidence(piece: Piece) -> bool:
    """Whether a ConfigMap is the evidence of a run."""
    return piece.key.name == f"check-{piece.run}{_EVIDENCE}"


def is_sandbox(piece: Piece) -> bool:
    """Whether a namespace is a sandbox by its name too, not only by a label that anyone may have written."""
    return bool(piece.run) and piece.key.name == sandbox_name(piece.run, piece.source)


def delete(kind: Kind, piece: Piece) -> Delete:
    """Return the deletion of an object of a run."""
    return Delete(kind, piece.key, piece.uid)
