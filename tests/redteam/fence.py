"""Attacks with a stolen token of the operator: what it may not do, however it was taken."""

import http.client
from typing import Any

from foresail.api import marks, nonadmin
from foresail.selfservice.downloads.targets import SERVED, TARGETS
from tests.redteam.attack import attack
from tests.redteam.world import (
    HOSTILE,
    LOCATED,
    NIGHTLY,
    VELERO,
    VICTIM,
    Caller,
    Json,
    World,
    account,
    body_of,
    path,
)

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


_UUID = "0123abcd-0123-5123-8123-0123456789ab"
_RUN = "20260101000000-0123abcd"
_COMMAND = {"exec": {"command": ["/bin/sh", "-c", "cat /var/run/secrets/kubernetes.io/serviceaccount/token"]}}
_OF_SCHEDULE = {
    "foresail.dev/schedule-uid": "0123abcd-0123-4123-8123-0123456789ab",
    "foresail.dev/slot": "2026-01-01T00:00:00Z",
}
_PLUGIN = {"velero.io/plugin-config": "", "velero.io/change-image-name": "RestoreItemAction"}


def _tried(thief: Caller, plural: str, bodies: dict[str, Json]) -> list[str]:
    """Return which bodies the API server takes from a thief in Velero's namespace; nothing is stored."""
    answers = {name: thief.create(f"{path(plural, VELERO)}?dryRun=All", body) for name, body in bodies.items()}
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code < http.client.BAD_REQUEST]


def _of_tenant(plural: str, short: str, namespace: str, spec: Json) -> Json:
    """Return a Velero object with everything that the operator gives it, for a namespace."""
    name = f"{namespace}-x-{_UUID}"
    labels = {**nonadmin.LABELS, f"openshift.io/oadp-{short}-origin-nacuuid": name}
    record = {
        key: value.replace(HOSTILE, namespace)
        for key, value in _RECORD.items()
        if f"-{short}-" in key or "/oadp" not in key
    }
    return body_of(plural, name, {"includedNamespaces": [namespace], **spec}, labels=labels, annotations=record)


@attack
def execute_in_pods_of_the_system_as_the_operator(world: World) -> list[str]:
    """Finding 3: Backups with hooks of namespaces that no policy selects, which ran commands in every pod there."""
    hooks = {"resources": [{"name": "x", "pre": [_COMMAND]}]}
    bodies = {
        name: _of_tenant("backups", "nab", name, {"hooks": hooks}) for name in ("argocd", "cert-manager", "openshift-x")
    }
    elsewhere = {"resources": [{"name": "x", "includedNamespaces": [VICTIM], "pre": [_COMMAND]}]}
    bodies["in another namespace"] = _of_tenant("backups", "nab", HOSTILE, {"hooks": elsewhere})
    return _tried(_operator(world), "backups", bodies)


@attack
def restore_with_containers_as_the_operator(world: World) -> list[str]:
    """Finding 3: Restores with init containers and another modifier, which changed what exists in such namespaces."""
    container = {"init": {"initContainers": [{"name": "x", "image": "x", "securityContext": {"privileged": True}}]}}
    init = {"resources": [{"name": "x", "includedNamespaces": [HOSTILE], "postHooks": [container]}]}
    base = {"backupName": f"{HOSTILE}-x-{_UUID}"}
    specs: dict[str, Json] = {
        "init containers": {"hooks": init},
        "update": {"existingResourcePolicy": "update"},
        "modifier": {"resourceModifier": {"kind": "configmap", "name": "thief"}},
        "policy": {"resourcePolicy": {"kind": "configmap", "name": "thief"}},
    }
    bodies = {name: _of_tenant("restores", "nar", HOSTILE, {**base, **spec}) for name, spec in specs.items()}
    bodies["argocd"] = _of_tenant("restores", "nar", "argocd", base)
    return _tried(_operator(world), "restores", bodies)


@attack
def rewrite_a_schedule_as_the_operator(world: World) -> list[str]:
    """Finding 4: a Schedule of the administrator with hooks, of everything and every minute."""
    thief = account(world.cluster, VELERO, "foresail-schedules")
    hooks = {"resources": [{"name": "x", "pre": [_COMMAND]}]}
    changes: dict[str, Json] = {
        "hooks": {"spec": {"template": {"hooks": hooks}}},
        "everything": {"spec": {"template": {"includedNamespaces": ["*"]}}},
        "each minute": {"spec": {"schedule": "* * * * *"}},
        "label": {"metadata": {"labels": {"x": "y"}}},
    }
    target = f"/apis/velero.io/v1/namespaces/{VELERO}/schedules/weekly"
    world.admin.create(target.rpartition("/")[0], _schedule("weekly"))
    answers = {name: thief.patch(f"{target}?dryRun=All", body) for name, body in changes.items()}
    world.admin.delete(target)
    return [f"{name}: {each.code}" for name, each in answers.items() if each.code != http.client.FORBIDDEN]


def _schedule(name: str) -> Json:
    spec = {"schedule": "0 3 * * 0", "paused": True, "template": {"includedNamespaces": [HOSTILE]}}
    return {"apiVersion": "velero.io/v1", "kind": "Schedule", "metadata": {"name": name}, "spec": spec}


@attack
def take_every_secret_away_as_the_operator(world: World) -> list[str]:
    """Finding 4: a Backup of everything, as the run of a Schedule, with hooks or into a tenant's bucket."""
    thief = account(world.cluster, VELERO, "foresail-schedules")
    hooks = {"resources": [{"name": "x", "pre": [_COMMAND]}]}
    metadata = {"labels": {"velero.io/schedule-name": NIGHTLY}, "annotations": _OF_SCHEDULE}
    name = f"{NIGHTLY}-{_RUN}"
    bodies = {
        "hooks": body_of("backups", name, {"includedNamespaces": ["kube-system", VELERO], "hooks": hooks}, **metadata),
        "bucket": body_of("backups", name, {"storageLocation": f"{LOCATED}-mine-{_UUID}"}, **metadata),
    }
    found = _tried(thief, "backups", bodies)
    run = body_of("backups", name, {"includedNamespaces": ["*"]}, **metadata)
    return found + [f"by self-service: {each}" for each in _tried(_operator(world), "backups", {"run": run})]


@attack
def make_a_location_of_the_system_as_the_operator(world: World) -> list[str]:
    """Finding 4: a bucket of the thief for a namespace that has no self-service, and a Secret with other keys."""
    thief = _operator(world)
    name = f"argocd-x-{_UUID}"
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nabsl-origin-nacuuid": name}
    record = {
        "openshift.io/oadp-nabsl-origin-namespace": "argocd",
        "openshift.io/oadp-nabsl-origin-name": "x",
        marks.REQUEST_UID: "x",
        marks.NAMESPACE_UID: "x",
    }
    spec = {
        "provider": "aws",
        "objectStorage": {"bucket": "thief", "prefix": "argocd"},
        "credential": {"name": name, "key": "cloud"},
        "backupSyncPeriod": "0s",
        "accessMode": "ReadWrite",
    }
    body = {"apiVersion": "velero.io/v1", "kind": "BackupStorageLocation"}
    metadata = {"name": name, "labels": labels, "annotations": record}
    found = _tried(thief, "backupstoragelocations", {"location": {**body, "metadata": metadata, "spec": spec}})
    secret = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque", "data": {"cloud": "eA=="}}
    return found + _tried(thief, "secrets", {"secret": secret})


@attack
def configure_veleros_plugins_as_restore_checks(world: World) -> list[str]:
    """Finding 5: a ConfigMap by which Velero's plugins changed the images of every restore."""
    thief = account(world.cluster, VELERO, "foresail-checks")
    own = {"foresail.dev/restore-check": "x"}
    run = {"name": "check-0123456789-modifiers", "annotations": {marks.CHECK: "x", marks.CHECK_RUN: "0123456789"}}
    bodies = {
        name: {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {
                **run,
                "labels": {**own, **labels},
            },
            "data": data,
        }
        for name, labels, data in (
            ("images", _PLUGIN, {"case1": "a,b"}),
            ("restore image", {"velero.io/plugin-config": "", "velero.io/pod-volume-restore": "RestoreItemAction"}, {}),
            ("other keys", {}, {"image": "thief"}),
        )
    }
    return _tried(thief, "configmaps", bodies)


@attack
def read_more_than_is_documented_as_the_operator(world: World) -> list[str]:
    """Finding 15: what a token reads is in the docs, and no other Secret is readable."""
    found = []
    for name in ("foresail-schedules", "foresail-self-service", "foresail-checks"):
        thief = account(world.cluster, VELERO, name)
        targets = {f"secrets of {where}": path("secrets", where) for where in (VELERO, VICTIM, "kube-system")}
        targets["Velero's keys"] = path("secrets", VELERO, "cloud-credentials")
        if name != "foresail-checks":
            targets["configmaps"] = path("configmaps", VELERO)
        if name == "foresail-schedules":
            targets["pods of a tenant"] = path("pods", VICTIM)
        answers = {what: thief.send("GET", target) for what, target in targets.items()}
        found += [f"{name}: {what}" for what, each in answers.items() if each.code < http.client.BAD_REQUEST]
    return found
