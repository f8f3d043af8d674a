"""What each of our tokens writes, in the shapes that the operator gives it."""

from dataclasses import dataclass, field
from typing import Any

from foresail.api import nonadmin
from foresail.proof.checks.kinds import left_out
from foresail.selfservice.specs.annotations import MODIFIER
from foresail.selfservice.specs.kinds import CLUSTER_SCOPED_LEFT_OUT
from foresail.tenancy.restored_kinds import NEVER_RESTORED

Json = dict[str, Any]
VELERO, SHOP, OTHER = "velero", "shop", "other"
SYSTEM = "argocd"
"""A namespace that the default values exclude."""

SCHEDULES, SELF_SERVICE, PRIMERS, CHECKS, PROTECTION, ROLLBACK, CONSOLE = (
    f"foresail-{each}"
    for each in ("schedules", "self-service", "primers", "checks", "protection", "rollback", "console")
)
GOLD = "gold"
GROUP = f"{GOLD}-1"
"""A class, and the Schedule of its first group."""

POINT = f"{GROUP}-20260101000000-0123abcd"
"""A backup of that class."""

NIGHTLY, HOOKED, UNLISTED = "nightly", "hooked", "unlisted"
OLD_RUN = "nightly-20250101000000-0123abcd"
"""A run of the administrator's Schedule that exists."""

FAILED_RUN = "nightly-20250102000000-0123abcd"
"""A failed run of it."""

ADMINISTRATORS = "administrators"
"""What an administrator made by hand; the Backup of this name has failed."""

UID = "0123abcd-0123-4123-8123-0123456789ab"
UUID = "0123abcd-0123-5123-8123-0123456789ab"
RUN = "0123456789"
SANDBOX = f"foresail-check-{RUN}-0123ab"
IMAGE, PAUSE = "foresail:test", "pause:test"
TENANTS = f"{SHOP}-daily-{UUID}"
OTHERS_LOCATION, LOCATION = f"{OTHER}-mine-{UUID}", f"{SHOP}-mine-{UUID}"
HOOKS: Json = {"resources": [{"name": "x", "pre": [{"exec": {"container": "x", "command": ["/bin/sh", "-c", "id"]}}]}]}


@dataclass(frozen=True)
class Write:
    """One request of a token; `shape` says in what it differs from what the operator writes."""

    token: str
    verb: str  # create, patch, delete or deletecollection
    version: str
    resource: str  # with its subresource
    namespace: str
    name: str
    body: Json = field(default_factory=dict)
    shape: str = ""

    @property
    def title(self) -> str:
        """What it is, for a report."""
        return f"{self.token} {self.verb} {self.resource}: {self.shape or 'as the operator writes it'}"


def made(kind: str, name: str, version: str, spec: object = None, **metadata: object) -> Json:
    """Return an object as it is sent."""
    found: Json = {"apiVersion": version, "kind": kind, "metadata": {"name": name, **metadata}}
    return found if spec is None else {**found, "spec": spec}


V1, OADP, OURS = "velero.io/v1", "oadp.openshift.io/v1alpha1", "foresail.dev/v1alpha1"


def record(short: str, namespace: str = SHOP, name: str = "daily") -> dict[str, str]:
    """Return the record of whose an object is."""
    return {
        f"openshift.io/oadp-{short}-origin-namespace": namespace,
        f"openshift.io/oadp-{short}-origin-name": name,
        "foresail.dev/request-uid": UID,
        "foresail.dev/namespace-uid": UID,
    }


def tenants_backup(name: str = TENANTS, namespace: str = SHOP) -> Json:
    """Return the Velero Backup of a tenant's request."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nab-origin-nacuuid": name}
    annotations = {**record("nab", namespace), "foresail.dev/requester": "anna", "velero.io/pod-volume-timeout": "4h"}
    spec = {
        "includedNamespaces": [namespace],
        "excludedNamespaceScopedResources": [*nonadmin.NEVER_BACKED_UP],
        "excludedClusterScopedResources": [*CLUSTER_SCOPED_LEFT_OUT],
        "ttl": "720h0m0s",
        "csiSnapshotTimeout": "1h0m0s",
        "itemOperationTimeout": "8h0m0s",
    }
    return made("Backup", name, V1, spec, labels=labels, annotations=annotations)


def tenants_restore(name: str, namespace: str = SHOP) -> Json:
    """Return the Velero Restore of a tenant's request."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nar-origin-nacuuid": name}
    spec = {
        "backupName": TENANTS,
        "includedNamespaces": [namespace],
        "excludedResources": [*NEVER_RESTORED, "rolebindings.rbac.authorization.k8s.io"],
        "itemOperationTimeout": "8h0m0s",
        "resourceModifier": {"kind": "configmap", "name": MODIFIER},
    }
    return made("Restore", name, V1, spec, labels=labels, annotations=record("nar", namespace))


def restore_from_class(name: str) -> Json:
    """Return the Velero Restore of a tenant's request that names the backup of a class."""
    found = tenants_restore(name)
    found["metadata"]["annotations"]["foresail.dev/protection-class"] = GOLD
    found["spec"] |= {"backupName": POINT, "excludedResources": [*found["spec"]["excludedResources"], "pods"]}
    return found


def contents_of_class(kind: str = "BackupResourceList") -> Json:
    """Return the DownloadRequest by which the operator reads which objects the backup of a class has."""
    spec = {"target": {"kind": kind, "name": POINT}}
    return made("DownloadRequest", f"contents-{UID}", V1, spec, annotations={"foresail.dev/backup-uid": UID})


def group(name: str = f"{GOLD}-2", of: str = GOLD) -> Json:
    """Return the Schedule of a group of a class."""
    spec = {"schedule": "0 1 * * *", "template": {"ttl": "720h", "includedNamespaces": [SHOP, OTHER]}}
    mark = {"foresail.dev/protection-class": of}
    return made("Schedule", name, V1, spec, labels=mark, annotations=mark)


def protection() -> Json:
    """Return the Protection of a namespace."""
    metadata = {
        "labels": {"velero.io/exclude-from-backup": "true"},
        "annotations": {"foresail.dev/namespace-uid": UID},
    }
    return {**made("Protection", "protection", OURS, **metadata), "status": {"class": GOLD}}


def run_of(schedule: str, spec: Json | None = None) -> Json:
    """Return the Backup of a slot."""
    name = f"{schedule}-20260101000000-{UID[:8]}"
    marks = {"foresail.dev/schedule-uid": UID, "foresail.dev/slot": "2026-01-01T00:00:00Z", "team": "a"}
    labels = {"velero.io/schedule-name": schedule, "example.com/copied": "x"}
    return made(
        "Backup", name, V1, spec or {"includedNamespaces": ["*"], "ttl": "24h0m0s"}, labels=labels, annotations=marks
    )


def event(namespace: str) -> Json:
    """Return an Event about an object."""
    return {
        "apiVersion": "events.k8s.io/v1",
        "kind": "Event",
        "metadata": {"name": "stolen.0123456789abcdef", "namespace": namespace},
        "eventTime": "2026-01-01T00:00:00.000000Z",
        "reportingController": "foresail",
        "reportingInstance": "stolen",
        "action": "Busy",
        "reason": "Busy",
        "type": "Normal",
        "note": "text",
        "regarding": {"apiVersion": V1, "kind": "Schedule", "name": NIGHTLY, "namespace": namespace},
    }


def lease(name: str) -> Json:
    """Return the Lease of a Deployment."""
    return made("Lease", name, "coordination.k8s.io/v1", {"holderIdentity": "stolen", "leaseDurationSeconds": 15})


def status_request() -> Json:
    """Return the request for Velero's version."""
    return made("ServerStatusRequest", "foresail-x", V1, {}, annotations={"foresail.dev/asks-about": "x"})


def location(name: str = LOCATION, namespace: str = SHOP) -> Json:
    """Return the Velero location of a tenant."""
    labels = {
        **nonadmin.LABELS,
        "openshift.io/oadp-nabsl-origin-nacuuid": name,
        "openshift.io/oadp-registry": "False",
    }
    spec = {
        "provider": "aws",
        "objectStorage": {"bucket": "mine", "prefix": namespace},
        "config": {"checksumAlgorithm": "", "s3Url": "https://s3.example.com"},
        "credential": {"name": name, "key": "cloud"},
        "accessMode": "ReadOnly",
        "backupSyncPeriod": "0s",
    }
    annotations = {**record("nabsl", namespace, "mine"), "foresail.dev/credentials": "keys"}
    return made("BackupStorageLocation", name, V1, spec, labels=labels, annotations=annotations)


def secret(name: str = LOCATION, namespace: str = SHOP) -> Json:
    """Return the copy of a tenant's credentials."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nabsl-origin-nacuuid": name}
    owner = {"apiVersion": V1, "kind": "BackupStorageLocation", "name": name, "uid": UID}
    metadata = {"labels": labels, "annotations": record("nabsl", namespace, "mine"), "ownerReferences": [owner]}
    return {**made("Secret", name, "v1", **metadata), "type": "Opaque", "data": {"cloud": "eA=="}}


def approval(name: str = LOCATION) -> Json:
    """Return the request to approve a location."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nabsl-origin-nacuuid": name}
    annotations = {**record("nabsl", SHOP, "mine"), "foresail.dev/requester": "anna"}
    spec = {"approvalDecision": "pending"}
    return made("NonAdminBackupStorageLocationRequest", name, OADP, spec, labels=labels, annotations=annotations)


def download(target: str = "BackupLog", name: str = TENANTS) -> Json:
    """Return a DownloadRequest for a tenant."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nadr-origin-nacuuid": f"nadr-{UID}"}
    spec = {"target": {"kind": target, "name": name}}
    return made("DownloadRequest", f"nadr-{UID}", V1, spec, labels=labels, annotations=record("nadr"))


def deletion(name: str = TENANTS) -> Json:
    """Return the request to delete a tenant's backup."""
    labels = {
        **nonadmin.LABELS,
        "openshift.io/oadp-nab-origin-nacuuid": name,
        "velero.io/backup-name": name,
        "velero.io/backup-uid": UID,
    }
    annotations = {**record("nab"), "foresail.dev/attempt": "1"}
    del annotations["foresail.dev/namespace-uid"]
    return made("DeleteBackupRequest", name, V1, {"backupName": name}, labels=labels, annotations=annotations)


def retention(backup: str = f"{NIGHTLY}-20260101000000-{UID[:8]}-r1") -> Json:
    """Return the request to delete a run of a Schedule."""
    annotations = {"foresail.dev/schedule-uid": UID, "foresail.dev/retention": "no rule keeps it"}
    metadata = {
        "labels": {"velero.io/backup-name": backup, "velero.io/backup-uid": UID},
        "annotations": annotations,
        "ownerReferences": [{"apiVersion": V1, "kind": "Backup", "name": backup, "uid": UID}],
    }
    return made("DeleteBackupRequest", f"{backup}-retention", V1, {"backupName": backup}, **metadata)


def mark() -> Json:
    """Return the change of a Backup that no rule keeps."""
    return {
        "metadata": {
            "annotations": {
                "foresail.dev/delete-after": "2026-01-02T00:00:00Z",
                "foresail.dev/delete-reason": "no rule keeps it",
            }
        }
    }


def admission(value: str) -> dict[str, str]:
    """Return the labels by which admission policies select a namespace."""
    return {"foresail.dev/velero-annotations": value, "foresail.dev/file-system-backup": value}


def run_of_tenant() -> Json:
    """Return the NonAdminBackup of a slot of a NonAdminSchedule."""
    annotations = {
        "foresail.dev/requester": "anna",
        "foresail.dev/schedule-uid": UID,
        "foresail.dev/slot": "2026-01-01T00:00:00Z",
    }
    return made("NonAdminBackup", "nightly-20260101000000", OADP, {"backupSpec": {}}, annotations=annotations)


def adopted() -> Json:
    """Return the NonAdminBackup of a backup that is adopted."""
    metadata = {
        "labels": {"openshift.io/oadp-nab-synced-from-nacuuid": TENANTS},
        "annotations": {"foresail.dev/adopted": UID},
        "finalizers": ["nonadminbackup.oadp.openshift.io/finalizer"],
    }
    return made("NonAdminBackup", "adopted", OADP, {"backupSpec": {}}, **metadata)


# Primers

_NON_ROOT = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}


def _placed(image: str, **more: object) -> Json:
    container = {
        "name": "hold",
        "image": image,
        "resources": {"requests": {"cpu": "1"}},
        "securityContext": _RESTRICTED,
    }
    return {
        "priorityClassName": "foresail-placeholder",
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _NON_ROOT,
        "tolerations": [{"key": "gpu", "operator": "Exists"}],
        "containers": [{**container, **more}],
    }


def _held(*, fire: bool = True) -> Json:
    marks = {"foresail.dev/primer-uid": UID, "foresail.dev/cronjob-uid": UID}
    return {
        "labels": {"foresail.dev/primer": "warm", "velero.io/exclude-from-backup": "true", "app": "report"},
        "annotations": {
            "sidecar.istio.io/inject": "false",
            "karpenter.sh/do-not-disrupt": "true",
            **marks,
            **({"foresail.dev/fire": "2026-01-01T00:00:00Z"} if fire else {}),
        },
        "ownerReferences": [{"apiVersion": OURS, "kind": "Primer", "name": "warm", "uid": UID, "controller": True}],
    }


def placeholder() -> Json:
    """Return a placeholder."""
    spec = {
        **_placed(PAUSE),
        "activeDeadlineSeconds": 60,
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Always",
        "volumes": [{"name": "image-0", "image": {"reference": "x", "pullPolicy": "IfNotPresent"}}],
    }
    return made("Pod", f"report-warm-{UID[:8]}-29000000-0-1", "v1", spec, **_held())


def primer_cron_job() -> Json:
    """Return a primer CronJob."""
    job_name = {
        "name": "FORESAIL_JOB",
        "valueFrom": {"fieldRef": {"fieldPath": "metadata.labels['batch.kubernetes.io/job-name']"}},
    }
    pod = {**_placed(IMAGE, command=["foresail", "hold", "289"], env=[job_name]), "restartPolicy": "Never"}
    job = {"parallelism": 1, "completions": 1, "backoffLimit": 0, "template": {"metadata": {}, "spec": pod}}
    spec = {"schedule": "55 1 * * *", "timeZone": "UTC", "concurrencyPolicy": "Forbid", "jobTemplate": {"spec": job}}
    return made("CronJob", f"report-primer-{UID[:8]}", "batch/v1", spec, **_held(fire=False))


def pod_template() -> Json:
    """Return the PodTemplate of a CapacityBuffer."""
    pod = {name: each for name, each in _placed(PAUSE).items() if name != "priorityClassName"}
    found = made("PodTemplate", f"report-warm-{UID[:8]}-29000000", "v1", **_held())
    return {**found, "template": {"metadata": {}, "spec": {**pod, "restartPolicy": "Always"}}}


def buffer() -> Json:
    """Return a CapacityBuffer."""
    name = f"report-warm-{UID[:8]}-29000000"
    spec = {"podTemplateRef": {"name": name}, "replicas": 2}
    return made("CapacityBuffer", name, "autoscaling.x-k8s.io/v1beta1", spec, **_held())


# Restore checks

_OF_CHECK = {"foresail.dev/restore-check": UID}
_MARKS = {"foresail.dev/check": "weekly", "foresail.dev/check-run": RUN}
_INSIDE = {**_OF_CHECK, "velero.io/exclude-from-backup": "true"}


def sandbox(name: str = SANDBOX) -> Json:
    """Return a sandbox."""
    labels = {
        **_OF_CHECK,
        "pod-security.kubernetes.io/enforce": "restricted",
        "foresail.dev/restore-check-depth": "Data",
    }
    return made("Namespace", name, "v1", labels=labels, annotations={**_MARKS, "foresail.dev/check-source": SHOP})


def config_map(suffix: str, data: dict[str, str]) -> Json:
    """Return a ConfigMap of a check."""
    return {**made("ConfigMap", f"check-{RUN}-{suffix}", "v1", labels=_OF_CHECK, annotations=_MARKS), "data": data}


def check_restore() -> Json:
    """Return the Restore of a check."""
    spec = {
        "backupName": "nightly-20260101000000",
        "includedNamespaces": [SHOP],
        "namespaceMapping": {SHOP: SANDBOX},
        "includedResources": ["configmaps", "secrets"],
        "excludedResources": [*left_out(has_data=False)],
        "includeClusterResources": False,
        "restorePVs": False,
        "preserveNodePorts": False,
        "itemOperationTimeout": "10m0s",
        "resourceModifier": {"kind": "ConfigMap", "name": f"check-{RUN}-modifiers"},
    }
    annotations = {**_MARKS, "velero.io/pod-volume-timeout": "60s"}
    return made("Restore", f"check-{RUN}", V1, spec, labels=_OF_CHECK, annotations=annotations)


def check_download() -> Json:
    """Return a DownloadRequest of a check."""
    spec = {"target": {"kind": "BackupResourceList", "name": "nightly-20260101000000"}}
    return made("DownloadRequest", f"check-{RUN}-contents", V1, spec, labels=_OF_CHECK, annotations=_MARKS)


def network_policy() -> Json:
    """Return the NetworkPolicy of a sandbox."""
    inside: list[Json] = [{"podSelector": {}}]
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress", "Egress"],
        "ingress": [{"from": inside}],
        "egress": [{"to": inside}],
    }
    return made(
        "NetworkPolicy", f"foresail-fence-{RUN}", "networking.k8s.io/v1", spec, labels=_INSIDE, annotations=_MARKS
    )


def quota() -> Json:
    """Return the quota of a sandbox."""
    return made(
        "ResourceQuota", f"foresail-fence-{RUN}", "v1", {"hard": {"pods": "0"}}, labels=_INSIDE, annotations=_MARKS
    )


def role_binding() -> Json:
    """Return the rights of restore checks in a sandbox."""
    rights = {
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "foresail-checks-sandbox"},
        "subjects": [{"kind": "ServiceAccount", "name": CHECKS, "namespace": VELERO}],
    }
    found = made(
        "RoleBinding", f"foresail-fence-{RUN}", "rbac.authorization.k8s.io/v1", labels=_INSIDE, annotations=_MARKS
    )
    return {**found, **rights}


def canary() -> Json:
    """Return the canary of a sandbox."""
    container = {
        "name": "canary",
        "image": IMAGE,
        "args": ["canary"],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
        "resources": {"requests": {"cpu": "10m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
        "terminationMessagePolicy": "FallbackToLogsOnError",
    }
    spec = {
        "restartPolicy": "Never",
        "automountServiceAccountToken": False,
        "activeDeadlineSeconds": 300,
        "terminationGracePeriodSeconds": 1,
        "securityContext": _NON_ROOT,
        "containers": [container],
    }
    return made("Pod", f"foresail-canary-{RUN}", "v1", spec, labels=_INSIDE, annotations=_MARKS)


def created(token: str, resource: str, namespace: str, body: Json) -> Write:
    """Return the creation of an object."""
    return Write(token, "create", body["apiVersion"], resource, namespace, body["metadata"]["name"], body)


def patched(token: str, version: str, resource: str, where: tuple[str, str], body: Json) -> Write:
    """Return a merge patch."""
    return Write(token, "patch", version, resource, *where, body)
