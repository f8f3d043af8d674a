"""Objects about as large as the API server accepts, made so that admission has as much as possible to search."""

import os
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from testbed import Cluster, control_plane, processes

Json = dict[str, Any]

HOOK = {"pre.hook.backup.velero.io/command": '["/bin/sh", "-c", "sleep 36000"]'}
_LARGEST = 1_300_000  # bytes of an object; a request has at most 3 MiB, and etcd takes at most 1.5 MiB
_LONGEST_KEY = 317
_MOST = 200  # annotations that admission searches


_TICKS = os.sysconf("SC_CLK_TCK")


def processor_seconds(cluster: Cluster) -> float:
    """Return the processor time that the API server has used."""
    (server,) = processes.running(cluster.folder, control_plane.APISERVER)
    fields = Path(f"/proc/{server.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / _TICKS


def keys(count: int, length: int = _LONGEST_KEY) -> dict[str, str]:
    """Return so many annotations with valid keys: a prefix of at most 253 characters, and a name of at most 63."""
    name = min(63, length // 2)
    prefix = ".".join(["a" * 62] * 4)[: length - name - 1].rstrip(".")
    return {f"{prefix}/{number:0{name}d}": "" for number in range(count)}


def free_keys(count: int, length: int) -> dict[str, str]:
    """Return annotations whose keys no validation would accept; the metadata of a jobTemplate is not validated."""
    return {f"{number:06d}{'hook.backup.velero.io' * (length // 21)}"[:length]: "" for number in range(count)}


def cron_job(
    name: str, job: Mapping[str, str], pod: Mapping[str, str], own: Mapping[str, str], env: int = 0, **metadata: object
) -> Json:
    """Return a CronJob with annotations on itself, its Jobs and its pods, and so many variables."""
    variables = [{"name": f"V{number}", "value": "x" * 60} for number in range(env)]
    container = {"name": "only", "image": "only", **({"env": variables} if env else {})}
    template = {"metadata": {"annotations": dict(pod)}, "spec": {"restartPolicy": "Never", "containers": [container]}}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "annotations": dict(own), **metadata},
        "spec": {
            "schedule": "0 0 1 1 *",
            "suspend": True,
            "jobTemplate": {"metadata": {"annotations": dict(job)}, "spec": {"template": template}},
        },
    }


def padded_cron_job(name: str, count: int = 1000, length: int = 1000) -> Json:
    """Return a CronJob with hooks for its pods, padded beyond the cost that a search without bounds may have."""
    own, pod = keys(780), {**keys(780), **HOOK}
    return cron_job(name, free_keys(count, length), pod, own, managedFields=[{}])


def pod(name: str, annotations: Mapping[str, str], **metadata: object) -> Json:
    """Return a pod."""
    meta = {"name": name, "annotations": dict(annotations), **metadata}
    spec = {"containers": [{"name": "only", "image": "only"}]}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def _managed_fields() -> list[Json]:
    fields: Json = {f"f:{number:05d}{'x' * 50}": {} for number in range(_LARGEST // 70)}
    entry = {"manager": "m", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": fields}
    return [{**entry, "time": "2026-01-01T00:00:00Z"}]


def worst_objects() -> dict[str, Json]:
    """Return the largest objects of each sort, by what is large in them; none has an annotation for Velero."""
    full = keys(_MOST)
    meta = {"apiVersion": "v1", "kind": "ConfigMap"}
    return {
        "annotations": {**meta, "metadata": {"name": "many", "annotations": keys(11_000, 20)}},
        "labels": {**meta, "metadata": {"name": "labels", "labels": keys(20_000, 40)}},
        "data": {**meta, "metadata": {"name": "data", "annotations": full}, "data": {"x": "y" * 1_000_000}},
        "finalizers": pod("finalizers", full, finalizers=list(keys(_LARGEST // (_LONGEST_KEY + 3)))),
        "managed_fields": {**pod("fields", full), "metadata": {"name": "fields", "managedFields": _managed_fields()}},
        "job_keys": padded_cron_job("keys"),
        "job_many": cron_job("many", free_keys(20_000, 12), full, full),
        "job_one_key": cron_job("one", free_keys(1, 1_200_000), full, full),
        "job_values": cron_job("values", dict.fromkeys(full, "v" * 6000), full, full),
        "deep": cron_job("deep", full, full, full, env=12_000),
        "deep_job_keys": cron_job("deep-keys", free_keys(600, 1000), full, full, env=6_000),
    }


def request_with_labels() -> Json:
    """Return a NonAdminBackup with as many labels and annotations as it can have."""
    meta = {"name": "labels", "labels": keys(15_000, 40), "annotations": keys(10_000, 20)}
    return {
        "apiVersion": "oadp.openshift.io/v1alpha1",
        "kind": "NonAdminBackup",
        "metadata": meta,
        "spec": {"backupSpec": {}},
    }
