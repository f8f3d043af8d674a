"""The cluster of the walk: Velero, both charts, the operator, a tenant with a bucket, and an administrator."""

import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from foresail.api.marks import CHECK_LABEL
from testbed import Cluster, Options
from tests.cluster.tenants import VELERO, install, operator
from tests.cluster.test_tenant_locations import Owner, endpoint, grant, owner

ADMINISTRATOR = "walking-administrator"
SHOP = "shop"
_OWN = "foresail.dev/v1alpha1"
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
        }
        cluster.apply(_object(_OWN, "SelfServicePolicy", "console-walk", "", spec=spec))
        binding = ("create", "clusterrolebinding", ADMINISTRATOR, "--clusterrole=cluster-admin")
        cluster.kubectl(*binding, f"--user={ADMINISTRATOR}")
        cluster.kubectl("create", "namespace", "bare")
        for name in ("velero-nightly", "velero-weekly"):
            template = {"includedNamespaces": ["bare-of-nothing"]}
            cluster.apply(
                _object("velero.io/v1", "Schedule", name, VELERO, spec={"schedule": "0 3 * * *", "template": template})
            )
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
        yield tenant


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
    cron = {"name": "report", "uid": "u", "dutyCyclePercent": 1, "startDelays": delays, "exact": True}
    _set_status(cluster, "primer/warm", SHOP, {"nextFire": "2026-11-18T03:00:00Z", "matched": 1, "cronJobs": [cron]})


def _set_status(cluster: Cluster, name: str, namespace: str, status: dict[str, Any]) -> None:
    patch = json.dumps({"status": status})
    cluster.kubectl(
        "patch", name, f"--namespace={namespace}", "--subresource=status", "--type=merge", f"--patch={patch}"
    )


def _object(version: str, kind: str, name: str, namespace: str, **content: Any) -> dict[str, Any]:  # noqa: ANN401
    metadata: dict[str, Any] = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, **content}
