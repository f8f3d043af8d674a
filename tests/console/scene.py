"""The cluster of the walk: Velero, both charts, the operator, a tenant with a bucket, and an administrator.

What the pages must show is put here: a backup that failed, one that waits, one to adopt, a pile-up, a window.
"""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foresail.api.marks import CHECK_LABEL
from testbed import Cluster, Options
from tests.cluster.tenants import VELERO, install, operator, person
from tests.cluster.test_tenant_locations import Owner, endpoint, grant, owner

ADMINISTRATOR = "walking-administrator"
SHOP = "shop"
_OWN = "foresail.dev/v1alpha1"
_PHASE = "--for=jsonpath={{.status.veleroBackup.status.phase}}={}"
_RECORD = {"result": "Pass", "reason": "Complete", "started": "2026-11-16T06:00:00Z", "restoreSeconds": 7}


def eventually(done: Callable[[], object], seconds: float) -> None:
    """Wait until something holds."""
    until = time.monotonic() + seconds
    while not done():
        assert time.monotonic() < until, "it does not hold"
        time.sleep(0.5)


@contextmanager
def scene() -> Iterator[Cluster]:
    """Start a cluster with an audit log, and end it when the block ends."""
    with Cluster.create("console-walk", Options(velero="velero", audit=True), owned=True) as cluster:
        install(cluster, contents=True, locations=True)
        rules = {"allowed": True, "endpoints": [endpoint(cluster)], "buckets": ["bucket-of-*"]}
        selector = {"matchLabels": {"kubernetes.io/metadata.name": SHOP}}
        spec = {
            "namespaceSelector": selector,
            "priority": 10,
            "weight": 3,
            "locations": rules,
            "downloads": {"contents": "Allowed"},
            "quotas": {"stored": 20, "active": 9, "restores": {"stored": 10}},
        }
        cluster.apply(_object(_OWN, "SelfServicePolicy", "console-walk", "", spec=spec))
        binding = ("create", "clusterrolebinding", ADMINISTRATOR, "--clusterrole=cluster-admin")
        cluster.kubectl(*binding, f"--user={ADMINISTRATOR}")
        cluster.kubectl("create", "namespace", "bare")
        template = {"includedNamespaces": ["bare-of-nothing"]}
        for name, cron in (("velero-nightly", "0 3 * * *"), ("velero-weekly", "0 3 * * *"), ("at-noon", "0 12 * * *")):
            spec = {"schedule": cron, "template": template}
            cluster.apply(_object("velero.io/v1", "Schedule", name, VELERO, spec=spec))
        windows = {"allowed": [{"schedule": "0 22 * * *", "duration": "2h"}]}
        evenings = {"selector": {"names": ["at-noon"]}, "windows": windows}
        cluster.apply(_object(_OWN, "SchedulePolicy", "evenings", "", spec=evenings))
        yield cluster


@contextmanager
def served(cluster: Cluster, folder: Path) -> Iterator[Owner]:
    """Run the operator, and return the tenant once they may back up; they have a schedule and ask for a bucket."""
    with operator(cluster, folder / "operator.log", 0, "--tenant-locations"):
        tenant = owner(cluster, SHOP)
        spec = {"schedule": "0 4 * * *", "template": {"backupSpec": {}}}
        tenant.kubectl(
            "create",
            "--filename=-",
            body=_object("oadp.openshift.io/v1alpha1", "NonAdminSchedule", "nightly", SHOP, spec=spec),
        )
        grant(cluster, SHOP)
        tenant.ask("mine", endpoint(cluster))
        requests = "nonadminbackupstoragelocationrequests.oadp.openshift.io"
        eventually(lambda: cluster.get(requests, f"--namespace={VELERO}")["items"], 240)
        _prove(cluster)
        _prime(cluster)
        see = ("create", "clusterrole", "see-quotas", "--verb=get,list", "--resource=selfservicepolicies.foresail.dev")
        cluster.kubectl(*see)
        binding = ("create", "clusterrolebinding", "see-quotas", "--clusterrole=see-quotas")
        cluster.kubectl(*binding, f"--user=tenant-of-{SHOP}")
        for name in ("kept", "broken"):
            tenant.back_up(name)
            tenant.wait(f"nonadminbackup/{name}", _PHASE.format("Completed"))
            time.sleep(1)  # Velero's times are whole seconds, and the walk looks at the order of the copies
        _break(cluster, tenant, "broken")
        tenant.back_up("to-mine", storageLocation="mine")
        yield tenant


@contextmanager
def velero_busy(cluster: Cluster, tenant: Owner) -> Iterator[None]:
    """Let two backups queue before Velero until the block ends: `ahead`, then `behind`."""
    cluster.fault.stop("velero")
    try:
        for place, name in enumerate(("ahead", "behind"), 1):
            tenant.back_up(name)
            tenant.wait(
                f"nonadminbackup/{name}", f"--for=jsonpath={{.status.queueInfo.estimatedQueuePosition}}={place}"
            )
        yield
    finally:
        cluster.fault.cont("velero")
    for name in ("ahead", "behind"):
        tenant.wait(f"nonadminbackup/{name}", _PHASE.format("Completed"))


def without_operator(cluster: Cluster, tenant: Owner) -> None:
    """Let a backup lose its request, one wait, one run, and one wait in a namespace without a policy."""
    where, name = f"--namespace={SHOP}", "nonadminbackup/kept"
    cluster.kubectl("patch", name, where, "--type=merge", '--patch={"metadata":{"finalizers":null}}')
    cluster.kubectl("delete", name, where, "--wait=false")
    tenant.wait(name, "--for=delete")
    tenant.back_up("waits-here")
    tenant.back_up("runs-here")
    velero = {"nacuuid": "runs-here", "name": "runs-here", "status": {"phase": "InProgress"}}
    _set_status(cluster, "nonadminbackup/runs-here", SHOP, {"phase": "Created", "veleroBackup": velero})
    person(cluster, ADMINISTRATOR, "bare").back_up("unserved")


def _break(cluster: Cluster, tenant: Owner, name: str) -> None:
    """Let Velero have found errors in a backup."""
    made = tenant.status(f"nonadminbackup/{name}")["veleroBackup"]["name"]
    patch = json.dumps({"status": {"phase": "PartiallyFailed", "errors": 2}})
    cluster.kubectl("patch", "backups.velero.io", made, f"--namespace={VELERO}", "--type=merge", f"--patch={patch}")
    tenant.wait(f"nonadminbackup/{name}", _PHASE.format("PartiallyFailed"))


def _prove(cluster: Cluster) -> None:
    """Create a RestoreCheck with the result of an earlier run: none runs during the walk."""
    check = _object(_OWN, "RestoreCheck", "proven", VELERO, spec={"backups": {"schedule": "velero-nightly"}})
    cluster.apply(check)
    uid = cluster.get("restorecheck", "proven", f"--namespace={VELERO}")["metadata"]["uid"]
    evidence = _object("v1", "ConfigMap", "check-walk-evidence", VELERO, data={"record.json": json.dumps(_RECORD)})
    evidence["metadata"]["labels"] = {CHECK_LABEL: uid}
    cluster.apply(evidence)
    last = {
        **_RECORD,
        "id": "walk",
        "backup": "nightly-1",
        "backupUid": "u",
        "completed": "2026-11-16T06:01:00Z",
        "message": "all objects are there",
        "evidence": "check-walk-evidence",
    }
    _set_status(cluster, "restorecheck/proven", VELERO, {"last": last})


def _prime(cluster: Cluster) -> None:
    """Create a Primer with the start delays of earlier runs: the operator of the walk primes nothing."""
    cluster.apply(_object(_OWN, "Primer", "warm", SHOP, spec={"cronJob": "report", "warmUp": "10m"}))
    where = f"--namespace={SHOP}"
    cluster.kubectl("create", "role", "primers", "--verb=get,list", "--resource=primers.foresail.dev", where)
    cluster.kubectl("create", "rolebinding", "primers", "--role=primers", f"--user=tenant-of-{SHOP}", where)
    delays = [
        {"fire": "2026-11-15T03:00:00Z", "seconds": 41, "warm": False},
        {"fire": "2026-11-16T03:00:00Z", "seconds": 1, "warm": True},
    ]
    cron = {"name": "report", "uid": "u", "dutyCyclePercent": 7, "startDelays": delays, "exact": True}
    _set_status(cluster, "primer/warm", SHOP, {"nextFire": "2031-02-03T03:00:00Z", "matched": 1, "cronJobs": [cron]})


def _set_status(cluster: Cluster, name: str, namespace: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    cluster.kubectl(
        "patch", name, f"--namespace={namespace}", "--subresource=status", "--type=merge", f"--patch={patch}"
    )


def _object(version: str, kind: str, name: str, namespace: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
