"""Attacks with a stolen token of the operator: what it may not do, however it was taken."""

import http.client
from typing import Any

from foresail.api import marks
from foresail.selfservice.downloads.targets import SERVED, TARGETS
from tests.redteam.attack import attack
from tests.redteam.world import HOSTILE, NIGHTLY, VELERO, VICTIM, Caller, World, account, body_of, path

_RECORD = {
    "openshift.io/oadp-nab-origin-namespace": HOSTILE,
    "openshift.io/oadp-nab-origin-name": "x",
    "openshift.io/oadp-nar-origin-namespace": HOSTILE,
    "openshift.io/oadp-nar-origin-name": "x",
    marks.REQUEST_UID: "x",
    marks.NAMESPACE_UID: "x",
}


def _operator(world: World) -> Caller:
    return account(world.cluster, VELERO, "foresail-self-service")


def _made(world: World, plural: str, specs: dict[str, dict[str, Any]], **metadata: object) -> list[str]:
    """Return which specs the API server takes from the operator; nothing is stored."""
    thief, found = _operator(world), []
    for name, spec in specs.items():
        body = body_of(plural, f"stolen-{name}", spec, namespace=VELERO, **metadata)
        answer = thief.create(f"{path(plural, VELERO)}?dryRun=All", body)
        if answer.code < http.client.BAD_REQUEST:
            found.append(f"{name}: {answer.code}")
    return found


@attack
def back_up_everything_as_the_operator(world: World) -> list[str]:
    """Create Velero Backups of all namespaces, of several and of system namespaces with the operator's token."""
    specs: dict[str, dict[str, Any]] = {
        "all": {},
        "star": {"includedNamespaces": ["*"]},
        "two": {"includedNamespaces": [HOSTILE, VICTIM]},
        "system": {"includedNamespaces": ["kube-system"]},
        "veleros": {"includedNamespaces": [VELERO]},
        "cluster": {"includedNamespaces": [HOSTILE], "includeClusterResources": True},
        "scoped": {"includedNamespaces": [HOSTILE], "includedClusterScopedResources": ["*"]},
    }
    return _made(world, "backups", specs, annotations=_RECORD)


@attack
def restore_anything_as_the_operator(world: World) -> list[str]:
    """Create Velero Restores with a mapping, of cluster resources and into system namespaces."""
    base = {"backupName": NIGHTLY}
    specs: dict[str, dict[str, Any]] = {
        "all": base,
        "mapped": {**base, "includedNamespaces": [VICTIM], "namespaceMapping": {VICTIM: HOSTILE}},
        "system": {**base, "includedNamespaces": ["kube-system"]},
        "veleros": {**base, "includedNamespaces": [VELERO]},
        "cluster": {**base, "includedNamespaces": [HOSTILE], "includeClusterResources": True},
        "schedule": {"scheduleName": NIGHTLY, "includedNamespaces": [HOSTILE]},
    }
    return _made(world, "restores", specs, annotations=_RECORD)


@attack
def omit_the_record_as_the_operator(world: World) -> list[str]:
    """Create Velero objects that nobody can tell the owner of."""
    backups = _made(world, "backups", {"backup": {"includedNamespaces": [HOSTILE]}})
    restore = {"backupName": NIGHTLY, "includedNamespaces": [HOSTILE]}
    return backups + _made(world, "restores", {"restore": restore})


@attack
def download_contents_as_the_operator(world: World) -> list[str]:
    """Have Velero hand out the contents of the administrator's backup with the operator's token."""
    kinds = (*sorted(TARGETS.keys() - SERVED), "BackupItemSnapshots")
    specs = {kind.lower(): {"target": {"kind": kind, "name": NIGHTLY}} for kind in kinds}
    return _made(world, "downloadrequests", specs)


@attack
def run_pods_as_the_operator(world: World) -> list[str]:
    """Create pods, and read Secrets and ConfigMaps, with the operator's token."""
    thief = _operator(world)
    pod = body_of("Pod", "stolen", {"containers": [{"name": "x", "image": "x"}]})
    answers = {
        f"a pod in {name}": thief.create(f"{path('pods', name)}?dryRun=All", pod)
        for name in ("kube-system", VELERO, VICTIM)
    }
    for plural, where in (("secrets", VICTIM), ("secrets", VELERO), ("configmaps", VICTIM)):
        answers[f"{plural} of {where}"] = thief.send("GET", path(plural, where))
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < http.client.BAD_REQUEST]


@attack
def widen_policies_as_the_operator(world: World) -> list[str]:
    """Change policies, admission policies and namespaces with the operator's token."""
    thief, dry = _operator(world), "?dryRun=All"
    label = {"metadata": {"labels": {"x": "y"}}}
    targets = (
        path("selfservicepolicies", name="foresail-default"),
        path("validatingadmissionpolicies", name="foresail-reserved-keys"),
        path("namespaces", name=VICTIM),
        path("clusterroles", name="edit"),
        path("backupstoragelocations", VELERO, "default"),
    )
    answers = {each: thief.patch(each + dry, label) for each in targets}
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < http.client.BAD_REQUEST]
