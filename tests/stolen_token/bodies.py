"""What each of our tokens writes, in the shapes that the operator gives it: the controls, which must pass."""

from dataclasses import dataclass, field
from typing import Any

from foresail.api import nonadmin
from foresail.proof.checks.contents import left_out
from foresail.selfservice.specs.annotations import MODIFIER
from foresail.selfservice.specs.kinds import CLUSTER_SCOPED_LEFT_OUT, NEVER_RESTORED

Json = dict[str, Any]
VELERO, SHOP, OTHER = "velero", "shop", "other"
SYSTEM = "argocd"
"""A namespace that the default values exclude."""

SCHEDULES, SELF_SERVICE, PRIMERS, CHECKS, CONSOLE = (
    f"foresail-{each}" for each in ("schedules", "self-service", "primers", "checks", "console")
)
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
    verb: str  # create, patch or delete
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


_V1, _OADP, _OURS = "velero.io/v1", "oadp.openshift.io/v1alpha1", "foresail.dev/v1alpha1"


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
        "excludedNamespaceScopedResources": ["*.oadp.openshift.io"],
        "excludedClusterScopedResources": [*CLUSTER_SCOPED_LEFT_OUT],
        "ttl": "720h0m0s",
        "csiSnapshotTimeout": "1h0m0s",
        "itemOperationTimeout": "8h0m0s",
    }
    return made("Backup", name, _V1, spec, labels=labels, annotations=annotations)


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
    return made("Restore", name, _V1, spec, labels=labels, annotations=record("nar", namespace))


def run_of(schedule: str, spec: Json | None = None) -> Json:
    """Return the Backup of a slot."""
    name = f"{schedule}-20260101000000-{UID[:8]}"
    marks = {"foresail.dev/schedule-uid": UID, "foresail.dev/slot": "2026-01-01T00:00:00Z", "team": "a"}
    labels = {"velero.io/schedule-name": schedule, "example.com/copied": "x"}
    return made(
        "Backup", name, _V1, spec or {"includedNamespaces": ["*"], "ttl": "24h0m0s"}, labels=labels, annotations=marks
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
        "regarding": {"apiVersion": _V1, "kind": "Schedule", "name": NIGHTLY, "namespace": namespace},
    }


def lease(name: str) -> Json:
    """Return the Lease of a Deployment."""
    return made("Lease", name, "coordination.k8s.io/v1", {"holderIdentity": "stolen", "leaseDurationSeconds": 15})


def status_request() -> Json:
    """Return the request for Velero's version."""
    return made("ServerStatusRequest", "foresail-x", _V1, {}, annotations={"foresail.dev/asks-about": "x"})


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
    return made("BackupStorageLocation", name, _V1, spec, labels=labels, annotations=annotations)


def secret(name: str = LOCATION, namespace: str = SHOP) -> Json:
    """Return the copy of a tenant's credentials."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nabsl-origin-nacuuid": name}
    owner = {"apiVersion": _V1, "kind": "BackupStorageLocation", "name": name, "uid": UID}
    metadata = {"labels": labels, "annotations": record("nabsl", namespace, "mine"), "ownerReferences": [owner]}
    return {**made("Secret", name, "v1", **metadata), "type": "Opaque", "data": {"cloud": "eA=="}}


def approval(name: str = LOCATION) -> Json:
    """Return the request to approve a location."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nabsl-origin-nacuuid": name}
    annotations = {**record("nabsl", SHOP, "mine"), "foresail.dev/requester": "anna"}
    spec = {"approvalDecision": "pending"}
    return made("NonAdminBackupStorageLocationRequest", name, _OADP, spec, labels=labels, annotations=annotations)


def download(target: str = "BackupLog", name: str = TENANTS) -> Json:
    """Return a DownloadRequest for a tenant."""
    labels = {**nonadmin.LABELS, "openshift.io/oadp-nadr-origin-nacuuid": f"nadr-{UID}"}
    spec = {"target": {"kind": target, "name": name}}
    return made("DownloadRequest", f"nadr-{UID}", _V1, spec, labels=labels, annotations=record("nadr"))


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
    return made("DeleteBackupRequest", name, _V1, {"backupName": name}, labels=labels, annotations=annotations)


def retention(backup: str = f"{NIGHTLY}-20260101000000-{UID[:8]}-r1") -> Json:
    """Return the request to delete a run of a Schedule."""
    annotations = {"foresail.dev/schedule-uid": UID, "foresail.dev/retention": "no rule keeps it"}
    metadata = {
        "labels": {"velero.io/backup-name": backup, "velero.io/backup-uid": UID},
        "annotations": annotations,
        "ownerReferences": [{"apiVersion": _V1, "kind": "Backup", "name": backup, "uid": UID}],
    }
    return made("DeleteBackupRequest", f"{backup}-retention", _V1, {"backupName": backup}, **metadata)


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
    return made("NonAdminBackup", "nightly-20260101000000", _OADP, {"backupSpec": {}}, annotations=annotations)


def adopted() -> Json:
    """Return the NonAdminBackup of a backup that is adopted."""
    metadata = {
        "labels": {"openshift.io/oadp-nab-synced-from-nacuuid": TENANTS},
        "annotations": {"foresail.dev/adopted": UID},
        "finalizers": ["nonadminbackup.oadp.openshift.io/finalizer"],
    }
    return made("NonAdminBackup", "adopted", _OADP, {"backupSpec": {}}, **metadata)


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
        "ownerReferences": [{"apiVersion": _OURS, "kind": "Primer", "name": "warm", "uid": UID, "controller": True}],
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
    return made("Restore", f"check-{RUN}", _V1, spec, labels=_OF_CHECK, annotations=annotations)


def check_download() -> Json:
    """Return a DownloadRequest of a check."""
    spec = {"target": {"kind": "BackupResourceList", "name": "nightly-20260101000000"}}
    return made("DownloadRequest", f"check-{RUN}-contents", _V1, spec, labels=_OF_CHECK, annotations=_MARKS)


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


def _create(token: str, resource: str, namespace: str, body: Json) -> Write:
    return Write(token, "create", body["apiVersion"], resource, namespace, body["metadata"]["name"], body)


def _patch(token: str, version: str, resource: str, where: tuple[str, str], body: Json) -> Write:
    return Write(token, "patch", version, resource, *where, body)


def controls() -> list[Write]:
    """Return every write of every token, as the operator makes it."""
    tenants = (VELERO, TENANTS)
    return [
        # Schedules
        _create(SCHEDULES, "backups", VELERO, run_of(NIGHTLY)),
        _create(SCHEDULES, "backups", VELERO, run_of(HOOKED, {"hooks": HOOKS})),
        _patch(SCHEDULES, _V1, "backups", (VELERO, OLD_RUN), mark()),
        Write(SCHEDULES, "delete", _V1, "backups", VELERO, FAILED_RUN),
        _create(SCHEDULES, "deletebackuprequests", VELERO, retention()),
        Write(SCHEDULES, "delete", _V1, "deletebackuprequests", VELERO, f"{OLD_RUN}-retention"),
        _create(SCHEDULES, "serverstatusrequests", VELERO, status_request()),
        _create(SCHEDULES, "events", VELERO, event(VELERO)),
        _create(SCHEDULES, "leases", VELERO, lease(SCHEDULES)),
        _patch(
            SCHEDULES,
            _V1,
            "schedules",
            (VELERO, NIGHTLY),
            {"metadata": {"annotations": {"foresail.dev/observed": "{}"}}, "status": {"phase": "Enabled"}},
        ),
        # Self-service
        _create(SELF_SERVICE, "backups", VELERO, tenants_backup(f"{SHOP}-new-{UUID}")),
        _patch(SELF_SERVICE, _V1, "backups", tenants, {"metadata": {"annotations": {"foresail.dev/orphaned": "x"}}}),
        Write(SELF_SERVICE, "delete", _V1, "backups", *tenants),
        _create(SELF_SERVICE, "restores", VELERO, tenants_restore(f"{SHOP}-new-{UUID}")),
        Write(SELF_SERVICE, "delete", _V1, "restores", *tenants),
        _create(SELF_SERVICE, "deletebackuprequests", VELERO, deletion(f"{SHOP}-new-{UUID}")),
        Write(SELF_SERVICE, "delete", _V1, "deletebackuprequests", *tenants),
        _create(SELF_SERVICE, "downloadrequests", VELERO, download()),
        Write(SELF_SERVICE, "delete", _V1, "downloadrequests", *tenants),
        _create(SELF_SERVICE, "serverstatusrequests", VELERO, status_request()),
        _patch(SELF_SERVICE, "v1", "namespaces", ("", SHOP), {"metadata": {"labels": admission("refused")}}),
        _create(SELF_SERVICE, "nonadminbackups", SHOP, run_of_tenant()),
        _create(SELF_SERVICE, "nonadminbackups", SHOP, adopted()),
        _patch(SELF_SERVICE, _OADP, "nonadminbackups", (SHOP, "daily"), {"spec": {"deleteBackup": True}}),
        Write(SELF_SERVICE, "delete", _OADP, "nonadminbackups", SHOP, "daily"),
        _patch(SELF_SERVICE, _OADP, "nonadminbackups/status", (SHOP, "daily"), {"status": {"phase": "Created"}}),
        _patch(
            SELF_SERVICE,
            _OADP,
            "nonadminrestores",
            (SHOP, "back"),
            {"metadata": {"finalizers": ["nonadminrestore.oadp.openshift.io/finalizer"]}},
        ),
        Write(SELF_SERVICE, "delete", _OADP, "nonadminrestores", SHOP, "back"),
        _patch(SELF_SERVICE, _OADP, "nonadminrestores/status", (SHOP, "back"), {"status": {"phase": "Created"}}),
        _patch(SELF_SERVICE, _OADP, "nonadminschedules", (SHOP, "nightly"), {"spec": {"skipImmediately": None}}),
        _patch(SELF_SERVICE, _OADP, "nonadminschedules/status", (SHOP, "nightly"), {"status": {"phase": "Created"}}),
        Write(SELF_SERVICE, "delete", _OADP, "nonadmindownloadrequests", SHOP, "log"),
        _patch(SELF_SERVICE, _OADP, "nonadmindownloadrequests/status", (SHOP, "log"), {"status": {"phase": "Created"}}),
        _create(SELF_SERVICE, "backupstoragelocations", VELERO, location(f"{SHOP}-new-{UUID}")),
        _patch(SELF_SERVICE, _V1, "backupstoragelocations", (VELERO, LOCATION), {"spec": {"accessMode": "ReadWrite"}}),
        Write(SELF_SERVICE, "delete", _V1, "backupstoragelocations", VELERO, LOCATION),
        _create(SELF_SERVICE, "secrets", VELERO, secret(f"{SHOP}-new-{UUID}")),
        _patch(SELF_SERVICE, "v1", "secrets", (VELERO, LOCATION), {"data": {"cloud": "eQ=="}}),
        _create(SELF_SERVICE, "nonadminbackupstoragelocationrequests", VELERO, approval(f"{SHOP}-new-{UUID}")),
        Write(SELF_SERVICE, "delete", _OADP, "nonadminbackupstoragelocationrequests", VELERO, LOCATION),
        _patch(
            SELF_SERVICE,
            _OADP,
            "nonadminbackupstoragelocationrequests/status",
            (VELERO, LOCATION),
            {"status": {"phase": "Approved"}},
        ),
        _patch(
            SELF_SERVICE,
            _OADP,
            "nonadminbackupstoragelocations",
            (SHOP, "mine"),
            {"metadata": {"finalizers": ["nonadminbackupstoragelocation.oadp.openshift.io/finalizer"]}},
        ),
        _patch(
            SELF_SERVICE,
            _OADP,
            "nonadminbackupstoragelocations/status",
            (SHOP, "mine"),
            {"status": {"phase": "Created"}},
        ),
        _create(SELF_SERVICE, "events", SHOP, event(SHOP)),
        _create(SELF_SERVICE, "leases", VELERO, lease(SELF_SERVICE)),
        # Primers
        _create(PRIMERS, "pods", SHOP, placeholder()),
        Write(PRIMERS, "delete", "v1", "pods", SHOP, "held"),
        _create(PRIMERS, "cronjobs", SHOP, primer_cron_job()),
        _patch(
            PRIMERS,
            "batch/v1",
            "cronjobs",
            (SHOP, "report"),
            {"metadata": {"annotations": {"foresail.dev/warm-up-status": "{}"}}},
        ),
        Write(PRIMERS, "delete", "batch/v1", "cronjobs", SHOP, "held"),
        _create(PRIMERS, "podtemplates", SHOP, pod_template()),
        Write(PRIMERS, "delete", "v1", "podtemplates", SHOP, "held"),
        _create(PRIMERS, "capacitybuffers", SHOP, buffer()),
        _patch(PRIMERS, "autoscaling.x-k8s.io/v1beta1", "capacitybuffers", (SHOP, "held"), {"spec": {"replicas": 0}}),
        Write(PRIMERS, "delete", "autoscaling.x-k8s.io/v1beta1", "capacitybuffers", SHOP, "held"),
        _patch(PRIMERS, _OURS, "primers/status", (SHOP, "warm"), {"status": {"observedGeneration": 1}}),
        _create(PRIMERS, "events", SHOP, event(SHOP)),
        _create(PRIMERS, "leases", VELERO, lease(PRIMERS)),
        # Restore checks
        _create(CHECKS, "namespaces", "", sandbox()),
        Write(CHECKS, "delete", "v1", "namespaces", "", f"foresail-check-{RUN}-ffffff"),
        _create(CHECKS, "configmaps", VELERO, config_map("modifiers", {"modifiers.yaml": "x"})),
        _create(CHECKS, "configmaps", VELERO, config_map("evidence", {"record.json": "{}", "sha256": "x"})),
        Write(CHECKS, "delete", "v1", "configmaps", VELERO, f"check-{RUN}-start"),
        _create(CHECKS, "restores", VELERO, check_restore()),
        Write(CHECKS, "delete", _V1, "restores", VELERO, "check-ffffffffff"),
        _create(CHECKS, "downloadrequests", VELERO, check_download()),
        Write(CHECKS, "delete", _V1, "downloadrequests", VELERO, "check-ffffffffff-contents"),
        _create(CHECKS, "networkpolicies", f"foresail-check-{RUN}-ffffff", network_policy()),
        _create(CHECKS, "resourcequotas", f"foresail-check-{RUN}-ffffff", quota()),
        _create(CHECKS, "rolebindings", f"foresail-check-{RUN}-ffffff", role_binding()),
        _create(CHECKS, "pods", f"foresail-check-{RUN}-ffffff", canary()),
        _patch(
            CHECKS,
            "v1",
            "persistentvolumes",
            ("", f"pvc-{UID}"),
            {
                "metadata": {"labels": {"velero.io/exclude-from-backup": "true"}},
                "spec": {"persistentVolumeReclaimPolicy": "Delete"},
            },
        ),
        _patch(CHECKS, _OURS, "restorechecks/status", (VELERO, "weekly"), {"status": {"phase": "Idle"}}),
        _create(CHECKS, "events", VELERO, event(VELERO)),
        _create(CHECKS, "leases", VELERO, lease(CHECKS)),
    ]
