"""etcd is lost and the bucket is there: how long until every tenant has its backups back. `make disaster SIZE=0.1`.

A cluster makes one real backup for each of 100 tenants; their objects in the bucket are copied under other names, with
signatures that verify, until there are 10,000 (at a tenth 1,000). The cluster is destroyed, another one gets the
bucket, Velero syncs, an administrator adopts everything, and 20 at random are restored and compared.
30 planted backups without a valid signature are among them, and none may be adopted.

The last line that it prints is one JSON object.
"""

import argparse
import json
import random
import shutil
import subprocess
import sys
import tempfile
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import Any

from bench import MeasurementError
from bench.operator import operator
from foresail.api.core import NAMESPACE
from foresail.api.marks import NAMESPACE_UID, RECORD_SIGNATURE, REQUEST_UID
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE
from foresail.cli.recovery_key.keys import manifest
from foresail.selfservice.signatures import KEY_BYTES, NO_KEYS, Keyring, Record, sign
from testbed import Cluster, Options, TestbedError
from tests.cluster.buckets import ORIGIN_NAME, ORIGIN_NAMESPACE, annotations_in, copy_backup, move_bucket
from tests.cluster.tenants import API, VELERO, install

BACKUPS, TENANTS, PLANTED, RESTORED = 10_000, 100, 30, 20
BOUND_SECONDS = 120.0
STORAGE = "velero/"  # bucket and prefix of the testbed
SEED = 20261116
KEY = bytes(range(KEY_BYTES))
RING: Keyring = NO_KEYS.with_key(KEY, signs=True)
_SPACE = uuid.UUID("6b1d3c1e-5f0a-4d55-9b7b-0a4b8e1c2d3f")
_PATIENCE = 3600.0


def main() -> int:
    """Measure, print, and fail if a backup is missing or foreign."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0)
    parser.add_argument("--tenants", type=int, default=TENANTS)
    args = parser.parse_args()
    total = max(round(BACKUPS * args.size), args.tenants)
    with tempfile.TemporaryDirectory() as folder:
        figures = measure(Path(folder), total, args.tenants)
    print(json.dumps(figures))
    wrong = [name for name, holds in _bounds(total).items() if not holds(figures)]
    if wrong:
        print(f"missed: {', '.join(wrong)}", file=sys.stderr)
    return 1 if wrong else 0


def _bounds(total: int) -> dict[str, Callable[[dict[str, float]], bool]]:
    found: dict[str, Callable[[dict[str, float]], bool]] = {
        "every backup is adopted": lambda f: f["adopted"] == f["backups"] == total,
        "none is foreign": lambda f: f["foreign"] == 0,
        "no planted one is adopted": lambda f: f["planted_adopted"] == 0,
        "what is restored is what was backed up": lambda f: f["restored"] == min(RESTORED, total),
    }
    if total <= BACKUPS // 10:
        found["adopted within two minutes of the sync"] = lambda f: f["seconds"] <= BOUND_SECONDS
    return found


def measure(folder: Path, total: int, tenants: int) -> dict[str, float]:
    """Live, be lost, and recover."""
    names = [f"team-{number}" for number in range(tenants)]
    with Cluster.create("disaster-before", Options(velero="velero"), owned=True) as before:
        _prepare(before, names)
        with operator(before, "--schedules=false", "--self-service"):
            _back_up(before, names)
        shutil.copytree(before.site.bucket.parent.parent, folder / "s3")
    _say(f"{tenants} real backups; the cluster is destroyed")
    _fill(folder / "s3" / "data" / "velero", names, total)
    with Cluster.create("disaster-after", Options(velero="velero"), owned=True) as after:
        move_bucket(folder / "s3", after.site.folder / "s3")
        _prepare(after, names)
        with operator(after, "--schedules=false", "--self-service") as process:
            synced = _wait(lambda: _synced_count(after) >= total + PLANTED, "Velero's sync")
            _say(f"Velero has synced {total + PLANTED} Backups after {synced:.0f} s")
            began = time.monotonic()
            _adopt(after)
            _wait(lambda: _adopted_count(after) >= total, "the adoption")
            seconds = time.monotonic() - began
            adopted, foreign, planted = _owners(after, names)
            restored = _restore(after, names, total)
            rss = process.memory_mib()
    return {
        "backups": total,
        "tenants": tenants,
        "adopted": adopted,
        "foreign": foreign,
        "seconds": round(seconds, 1),
        "planted": PLANTED,
        "planted_adopted": planted,
        "restored": restored,
        "sync_seconds": round(synced, 1),
        "rss_mib": round(rss, 1),
    }


def _prepare(cluster: Cluster, names: list[str]) -> None:
    """Install both charts and the key, and create the tenants' namespaces."""
    install(cluster)
    spaces = [
        {"apiVersion": "v1", "kind": NAMESPACE.name, "metadata": {"name": name, "labels": {OPT_IN_LABEL: OPT_IN_VALUE}}}
        for name in names
    ]
    cluster.apply(manifest(VELERO, RING), *spaces)


def _back_up(cluster: Cluster, names: list[str]) -> None:
    maps = [
        {"apiVersion": "v1", "kind": "ConfigMap", "metadata": _at(name, "owner"), "data": {"name": name}}
        for name in names
    ]
    body = {"backupSpec": {"includedResources": ["configmaps"]}}
    backups: list[dict[str, Any]] = [
        {"apiVersion": API, "kind": "NonAdminBackup", "metadata": _at(name, "real"), "spec": body} for name in names
    ]
    cluster.apply(*maps)
    _wait(lambda: _is_applied(cluster, backups), "the admission policies")
    _wait(lambda: _succeeded(cluster, "nonadminbackups") >= len(names), "the real backups")


def _is_applied(cluster: Cluster, objects: list[dict[str, Any]]) -> bool:
    """Apply objects, unless the API server's admission does not know their kind yet."""
    try:
        cluster.apply(*objects)
    except TestbedError as error:
        if "not found" not in str(error):
            raise
        return False
    return True


def _at(namespace: str, name: str) -> dict[str, str]:
    return {"namespace": namespace, "name": name}


def _fill(bucket: Path, names: list[str], total: int) -> None:
    """Copy each tenant's backup until there are enough, each with its own signed record; and plant some."""
    real = {name: next(bucket.glob(f"backups/{name}-real-*")) for name in names}
    notes = {name: annotations_in(path) for name, path in real.items()}
    for number in range(total - len(names)):
        tenant = names[number % len(names)]
        request, uid = f"copy-{number}", str(uuid.uuid5(_SPACE, f"request-{number}"))
        name = f"{tenant}-{request}-{uuid.uuid5(_SPACE, str(number))}"
        record = Record(name, STORAGE, tenant, notes[tenant][NAMESPACE_UID], request, uid)
        signed = {ORIGIN_NAME: request, REQUEST_UID: uid, RECORD_SIGNATURE: sign(record, RING)}
        copy_backup(real[tenant], name, {**notes[tenant], **signed})
    for number in range(PLANTED):
        victim, thief = names[number % len(names)], names[(number + 1) % len(names)]
        name = f"{victim}-planted-{uuid.uuid5(_SPACE, f'planted-{number}')}"
        copy_backup(real[thief], name, {**notes[thief], ORIGIN_NAMESPACE: victim, ORIGIN_NAME: f"planted-{number}"})


def _adopt(cluster: Cluster) -> None:
    command = [sys.executable, "-m", "foresail", "backup", "adopt", "-A", f"--kubeconfig={cluster.kubeconfig}"]
    listed = subprocess.run([*command, "-o", "json"], capture_output=True, text=True, check=True)
    digest = listed.stderr.partition("--approve ")[2].split()[0]
    done = subprocess.run([*command, "--approve", digest, "-o", "json"], capture_output=True, text=True, check=False)
    if done.returncode:
        raise MeasurementError(f"foresail backup adopt: {done.stderr}")
    _say(done.stderr.strip().splitlines()[0])


def _owners(cluster: Cluster, names: list[str]) -> tuple[int, int, int]:
    """Return how many are adopted, how many by another namespace than their own, and how many of them were planted."""
    adopted = foreign = planted = 0
    for each in cluster.listed(f"/apis/{API}/nonadminbackups"):
        if not _condition(each, "Adopted"):
            continue
        adopted += 1
        meta, backup = each["metadata"], each["status"]["veleroBackup"]["name"]
        foreign += not backup.startswith(f"{meta['namespace']}-") or meta["namespace"] not in names
        planted += meta["name"].startswith("planted")
    return adopted, foreign, planted


def _restore(cluster: Cluster, names: list[str], total: int) -> int:
    """Restore some at random, each into the tenant's namespace, and return how many brought back what they had."""
    chosen = random.Random(SEED).sample(range(total - len(names)), min(RESTORED, total - len(names)))  # noqa: S311
    right = 0
    for number in chosen:
        tenant, name = names[number % len(names)], f"back-{number}"
        cluster.kubectl("delete", "configmap", "owner", f"--namespace={tenant}", "--ignore-not-found")
        spec = {"restoreSpec": {"backupName": f"copy-{number}"}}
        cluster.apply({"apiVersion": API, "kind": "NonAdminRestore", "metadata": _at(tenant, name), "spec": spec})
        cluster.kubectl(
            "wait", f"nonadminrestore/{name}", f"--namespace={tenant}", "--for=condition=Succeeded", "--timeout=300s"
        )
        found = cluster.kubectl("get", "configmap", "owner", f"--namespace={tenant}", "--output=jsonpath={.data.name}")
        right += found == tenant
    return right


def _succeeded(cluster: Cluster, plural: str) -> int:
    return sum(_condition(each, "Succeeded") for each in cluster.listed(f"/apis/{API}/{plural}"))


def _adopted_count(cluster: Cluster) -> int:
    return sum(_condition(each, "Adopted") for each in cluster.listed(f"/apis/{API}/nonadminbackups"))


def _condition(each: dict[str, object], name: str) -> bool:
    status = each.get("status")
    found = status.get("conditions", []) if isinstance(status, dict) else []
    return any(one["type"] == name and one["status"] == "True" for one in found)


def _synced_count(cluster: Cluster) -> int:
    return len(cluster.listed(f"/apis/velero.io/v1/namespaces/{VELERO}/backups"))


def _wait(holds: Callable[[], bool], what: str) -> float:
    """Wait until something holds, and return how long that took."""
    began = time.monotonic()
    while not holds():
        if time.monotonic() - began > _PATIENCE:
            raise MeasurementError(f"{what} did not end within {_PATIENCE:.0f} s")
        time.sleep(1)
    return time.monotonic() - began


def _say(text: str) -> None:
    print(text, flush=True)


if __name__ == "__main__":
    sys.exit(main())
