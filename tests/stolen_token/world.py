"""The cluster in which tokens are stolen: the chart with everything on, and objects of everybody."""

import json
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

from testbed import Cluster, Options
from testbed.build import program
from testbed.charts import CHARTS
from tests.cluster.schedules import velero_at_rest
from tests.stolen_token import bodies as b
from tests.stolen_token import rollbacks

VALUES = {
    "image.repository": "foresail",
    "image.tag": "test",
    "replicas": 0,
    "schedules.withHooks[0]": b.HOOKED,
    "selfService.enabled": True,
    "selfService.requesterStamp": "Always",
    "selfService.locations.enabled": True,
    "primers.enabled": True,
    "primers.pauseImage": b.PAUSE,
    "primers.annotations": True,
    "proof.restoreChecks": True,
    "proof.data.enabled": True,
    "protection.enabled": True,
    "selfService.fromProtection": True,
    "selfService.updateExisting": True,
    "rollback.enabled": True,
    "rollback.volumes": True,
    "console.enabled": True,
    "console.publicUrl": "https://console.example.com",
}


def _rendered(chart: str, values: dict[str, object]) -> str:
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero"]
    words = [
        f"--set={name}={json.dumps(value) if isinstance(value, bool) else value}" for name, value in values.items()
    ]
    return subprocess.run([*command, *words], capture_output=True, text=True, check=True).stdout


@contextmanager
def robbed(name: str) -> Iterator[Cluster]:
    """Bring up a cluster with everything on, in which Velero has stopped, and everybody's objects are there."""
    with Cluster.create(name, Options(velero="velero"), owned=True) as cluster, velero_at_rest(cluster):
        apply = ("apply", "--server-side", "--force-conflicts", "--filename=-")
        cluster.kubectl(*apply, text=_rendered("foresail-crds", {}))
        cluster.wait_for_kinds()
        cluster.kubectl(*apply, text=_rendered("foresail", VALUES))
        for each in (_buffers(), *rollbacks.definitions()):
            cluster.kubectl(*apply, text=json.dumps(each))
        cluster.wait_for_kinds()
        for each in _objects():
            cluster.kubectl(*apply, text=json.dumps(each))
        cluster.kubectl(*apply, text=json.dumps(copied_credentials(cluster)))
        yield cluster


def _buffers() -> b.Json:
    """Return a definition of CapacityBuffers, which an autoscaler would bring."""
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    version = {"name": "v1beta1", "served": True, "storage": True, "schema": schema}
    names = {"plural": "capacitybuffers", "singular": "capacitybuffer", "kind": "CapacityBuffer"}
    spec = {"group": "autoscaling.x-k8s.io", "scope": "Namespaced", "names": names, "versions": [version]}
    approved = {"api-approved.kubernetes.io": "unapproved, for a test"}
    name = "capacitybuffers.autoscaling.x-k8s.io"
    return b.made("CustomResourceDefinition", name, "apiextensions.k8s.io/v1", spec, annotations=approved)


def copied_credentials(cluster: Cluster) -> b.Json:
    """Return the copy of a tenant's credentials, which its location owns: without it, Kubernetes would delete it."""
    body = b.secret()
    owner = cluster.get("backupstoragelocations.velero.io", b.LOCATION, f"--namespace={b.VELERO}")
    body["metadata"]["ownerReferences"][0]["uid"] = owner["metadata"]["uid"]
    return _placed(body, b.VELERO)


def _namespaces() -> Iterator[b.Json]:
    for name in (b.SHOP, b.OTHER, b.SYSTEM):
        yield b.made("Namespace", name, "v1", labels={"foresail.dev/self-service": "enabled"})


def _placed(body: b.Json, namespace: str, name: str = "") -> b.Json:
    metadata = {**body["metadata"], "namespace": namespace, **({"name": name} if name else {})}
    return {**body, "metadata": metadata}


def _objects() -> Iterator[b.Json]:
    yield from _namespaces()
    for name, hooks in ((b.NIGHTLY, {}), (b.HOOKED, {"hooks": b.HOOKS}), (b.UNLISTED, {"hooks": b.HOOKS})):
        spec = {"schedule": "0 1 * * *", "template": {"includedNamespaces": ["*"], **hooks}, "paused": True}
        yield _placed(b.made("Schedule", name, "velero.io/v1", spec), b.VELERO)
    yield _placed(b.run_of(b.NIGHTLY), b.VELERO, b.OLD_RUN)
    failed = {"status": {"phase": "Failed"}}
    yield {**_placed(b.run_of(b.NIGHTLY), b.VELERO, b.FAILED_RUN), **failed}
    yield {**_placed(b.made("Backup", b.ADMINISTRATORS, "velero.io/v1", {}), b.VELERO), **failed}
    request = b.retention(b.OLD_RUN)
    del request["metadata"]["ownerReferences"]  # its UID is none, so Kubernetes would delete the request
    yield _placed(request, b.VELERO)
    yield _placed(b.tenants_backup(), b.VELERO)
    restore = b.tenants_restore(b.TENANTS)
    yield _placed(restore, b.VELERO)
    yield _placed({**restore, "metadata": {"name": b.ADMINISTRATORS}}, b.VELERO)
    for body in (b.deletion(), b.download()):
        yield _placed(body, b.VELERO, b.TENANTS)
        yield _placed({**body, "metadata": {"name": b.ADMINISTRATORS}}, b.VELERO)
    yield _placed(b.location(), b.VELERO)
    yield _placed(b.approval(), b.VELERO)
    yield _placed({**b.approval(), "metadata": {"name": b.ADMINISTRATORS}}, b.VELERO)
    yield from _classes()
    yield from _requests()
    yield from _held()
    yield from _checked()
    yield from rollbacks.objects()


def _grant() -> Iterator[b.Json]:
    """Let self-service read the one Secret of a tenant, as `foresail location grant` does."""
    rbac = "rbac.authorization.k8s.io"
    rules = [{"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["keys"], "verbs": ["get"]}]
    yield _placed({**b.made("Role", "grant", f"{rbac}/v1"), "rules": rules}, b.SHOP)
    subjects = [{"kind": "ServiceAccount", "name": b.SELF_SERVICE, "namespace": b.VELERO}]
    ref = {"apiGroup": rbac, "kind": "Role", "name": "grant"}
    yield _placed({**b.made("RoleBinding", "grant", f"{rbac}/v1"), "roleRef": ref, "subjects": subjects}, b.SHOP)


def _classes() -> Iterator[b.Json]:
    spec = {"schedule": "0 1 * * *", "restore": {"byTenants": True}}
    yield b.made("ProtectionClass", b.GOLD, "foresail.dev/v1alpha1", spec)
    yield _placed(b.group(b.GROUP), b.VELERO)
    notes = {"foresail.dev/protection-class": b.GOLD, "foresail.dev/namespace-uids": json.dumps({b.SHOP: b.UID})}
    yield _placed(b.made("Backup", b.POINT, "velero.io/v1", {}, annotations=notes), b.VELERO)


def _requests() -> Iterator[b.Json]:
    yield from _grant()
    oadp = "oadp.openshift.io/v1alpha1"
    yield _placed(b.made("NonAdminBackup", "daily", oadp, {"backupSpec": {}}), b.SHOP)
    yield _placed(b.made("NonAdminRestore", "back", oadp, {"restoreSpec": {"backupName": "daily"}}), b.SHOP)
    spec: b.Json = {"schedule": "0 1 * * *", "template": {"backupSpec": {}}, "skipImmediately": True, "paused": True}
    yield _placed(b.made("NonAdminSchedule", "nightly", oadp, spec), b.SHOP)
    target = {"target": {"kind": "BackupLog", "name": "daily"}}
    yield _placed(b.made("NonAdminDownloadRequest", "log", oadp, target), b.SHOP)
    storage = {"provider": "aws", "objectStorage": {"bucket": "mine"}, "credential": {"name": "keys", "key": "cloud"}}
    wanted = {"backupStorageLocationSpec": storage}
    yield _placed(b.made("NonAdminBackupStorageLocation", "mine", oadp, wanted), b.SHOP)


def _held() -> Iterator[b.Json]:
    pod = b.placeholder()
    del pod["metadata"]["ownerReferences"]
    pod["spec"].pop("activeDeadlineSeconds")
    yield _placed(pod, b.SHOP, "held")
    foreign = {"containers": [{"name": "web", "image": "web"}], "automountServiceAccountToken": False}
    yield _placed(b.made("Pod", "web", "v1", foreign), b.SHOP)
    for body in (b.primer_cron_job(), b.pod_template(), b.buffer()):
        del body["metadata"]["ownerReferences"]
        yield _placed(body, b.SHOP, "held")
    job = {"template": {"spec": {"restartPolicy": "Never", "containers": [{"name": "x", "image": "x"}]}}}
    report = {"schedule": "0 2 * * *", "suspend": True, "jobTemplate": {"spec": job}}
    yield _placed(b.made("CronJob", "report", "batch/v1", report), b.SHOP)
    template = {"template": {"metadata": {}, "spec": {"containers": [{"name": "x", "image": "x"}]}}}
    yield _placed({**b.made("PodTemplate", "foreign", "v1"), **template}, b.SHOP)
    buffer = {"podTemplateRef": {"name": "foreign"}, "replicas": 1}
    yield _placed(b.made("CapacityBuffer", "foreign", "autoscaling.x-k8s.io/v1beta1", buffer), b.SHOP)
    primer = {"cronJob": "report", "warmUp": "5m"}
    yield _placed(b.made("Primer", "warm", "foresail.dev/v1alpha1", primer), b.SHOP)


def _checked() -> Iterator[b.Json]:
    yield _placed({**b.made("ConfigMap", b.ADMINISTRATORS, "v1"), "data": {"x": "y"}}, b.VELERO)
    yield _placed(b.config_map("start", {}), b.VELERO)
    restore, download = b.check_restore(), b.check_download()
    yield _placed(restore, b.VELERO, "check-ffffffffff")
    yield _placed(download, b.VELERO, "check-ffffffffff-contents")
    check = {"backups": {"schedule": b.NIGHTLY}, "schedule": "0 5 * * *"}
    yield _placed(b.made("RestoreCheck", "weekly", "foresail.dev/v1alpha1", check), b.VELERO)
    for name, claimant in ((f"pvc-{b.UID}", f"foresail-check-{b.RUN}-ffffff"), ("tenants", b.SHOP)):
        spec = {
            "capacity": {"storage": "1Gi"},
            "accessModes": ["ReadWriteOnce"],
            "persistentVolumeReclaimPolicy": "Retain",
            "csi": {"driver": "x", "volumeHandle": name},
            "storageClassName": "x",
            "claimRef": {"namespace": claimant, "name": "data", "uid": b.UID},
        }
        annotations = {"pv.kubernetes.io/provisioned-by": "x"}
        yield b.made("PersistentVolume", name, "v1", spec, annotations=annotations)
