"""CronJobs, Primers and pools of slow nodes, for the tests and measurements of primers on a real cluster."""

import subprocess
from collections.abc import Iterable
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

from testbed import Cluster
from testbed.build import program
from testbed.nodes import END_SECONDS, READY_SECONDS, RUN_SECONDS

CHARTS = Path(__file__).parents[2] / "charts"
SCHEDULED_AT = "batch.kubernetes.io/cronjob-scheduled-timestamp"
FLAGS = (
    "--lease-name=foresail-primers",
    "--schedules=false",
    "--primers",
    "--primer-pause-image=pause",
    "--primer-hold-image=hold",
)
_HELD_UNTIL = timedelta(seconds=5)  # before the fire: KWOK may take a moment


def holding(warm_up: timedelta) -> str:
    """Return the flag by which KWOK ends Jobs of primer CronJobs shortly before a fire, as `foresail hold` does."""
    return f"--primer-annotation={END_SECONDS}={int((warm_up - _HELD_UNTIL).total_seconds())}"


def install(cluster: Cluster, *values: str) -> None:
    """Create the kind Primer and what the chart gives the operator, with further values."""
    helm = [str(program("helm", "helm")), "template", "foresail", "--namespace=velero"]
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "velero"}})
    images = "primers.pauseImage=pause,primers.flags={--primer-hold-image=hold}"
    switched_on = f"primers.enabled=true,{images},schedules.enabled=false"
    # No replica: the tests run the operator beside the cluster, and its pods would ask Karpenter for nodes.
    for chart, flags in (
        ("foresail-crds", ()),
        ("foresail", tuple(f"--set={each}" for each in (switched_on, "replicas=0", *values))),
    ):
        command = [*helm, str(CHARTS / chart), *flags]
        rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
        cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=rendered)
    cluster.wait_for_kinds()


def node_pool(name: str, ready_seconds: int, **disruption: str) -> dict[str, Any]:
    """Return a NodePool whose nodes take that long to become ready."""
    policy = {"consolidationPolicy": "WhenEmpty", "consolidateAfter": "10s", **disruption}
    return {
        "apiVersion": "karpenter.sh/v1",
        "kind": "NodePool",
        "metadata": {"name": name},
        "spec": {
            "template": {
                "metadata": {"annotations": {READY_SECONDS: str(ready_seconds)}},
                "spec": {
                    "nodeClassRef": {"group": "karpenter.kwok.sh", "kind": "KWOKNodeClass", "name": "testbed"},
                    "requirements": [{"key": "kubernetes.io/os", "operator": "In", "values": ["linux"]}],
                    "taints": [{"key": "only", "value": name, "effect": "NoSchedule"}],
                    "expireAfter": "Never",
                },
            },
            "disruption": policy,
        },
    }


def cron_job(
    name: str,
    schedule: str,
    pool: str,
    namespace: str = "default",
    *,
    runs: int = 5,
    **pod: Any,  # noqa: ANN401 - JSON
) -> dict[str, Any]:
    """Return a CronJob whose pods run for so many seconds on the nodes of one pool."""
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": "2"}}}
    spec = {
        "restartPolicy": "Never",
        "containers": [container],
        "nodeSelector": {"karpenter.sh/nodepool": pool},
        "tolerations": [{"key": "only", "operator": "Equal", "value": pool}],
        **pod,
    }
    template = {"metadata": {"annotations": {RUN_SECONDS: str(runs)}}, "spec": spec}
    when = {"schedule": schedule, "timeZone": "Etc/UTC", "successfulJobsHistoryLimit": 10}
    return {
        "apiVersion": "batch/v1",
        "kind": "CronJob",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {**when, "jobTemplate": {"spec": {"template": template}}},
    }


def primer(name: str, warm_up: str, namespace: str = "default", **spec: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    """Return a Primer for the CronJob of that name."""
    return {
        "apiVersion": "foresail.dev/v1alpha1",
        "kind": "Primer",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"cronJob": name, "warmUp": warm_up, **spec},
    }


def next_minute(least: float) -> datetime:
    """Return the first full minute that is at least so many seconds ahead."""
    ahead = datetime.now(UTC) + timedelta(seconds=least)  # noqa: TID251 - the clock of the real cluster
    return ahead.replace(second=0, microsecond=0) + timedelta(minutes=1)


def shown(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return the status of the Primer of that name, in whichever namespace."""
    found = cluster.listed("/apis/foresail.dev/v1alpha1/primers")
    status: dict[str, Any] = next(each for each in found if each["metadata"]["name"] == name).get("status", {})
    return status


def primed(cluster: Cluster, name: str) -> dict[str, Any]:
    """Return what the status of a Primer says about its only CronJob; empty before it says anything."""
    found: dict[str, Any] = next(iter(shown(cluster, name).get("cronJobs", ())), {})
    return found


def placeholders(cluster: Cluster) -> list[dict[str, Any]]:
    """Return the placeholders that there are."""
    labels = "labelSelector=foresail.dev%2Fprimer,%21batch.kubernetes.io%2Fjob-name"
    return cluster.listed(f"/api/v1/pods?{labels}")


def delays(cluster: Cluster, names: Iterable[str]) -> dict[str, list[float]]:
    """Return for each CronJob how long its runs took from the fire to the first running pod, as far as they have."""
    found = delays_by_fire(cluster, names)
    return {name: [by_fire[fire] for fire in sorted(by_fire)] for name, by_fire in found.items()}


def delays_by_fire(cluster: Cluster, names: Iterable[str]) -> dict[str, dict[str, float]]:
    """Return the same by the fire; of a run whose node has gone, and its pod with it, nothing is known any more."""
    jobs = {
        job["metadata"]["uid"]: job
        for job in cluster.listed("/apis/batch/v1/jobs")
        if SCHEDULED_AT in job["metadata"].get("annotations", {})
    }
    found: dict[str, dict[str, float]] = {name: {} for name in names}
    for pod in cluster.listed("/api/v1/pods?labelSelector=batch.kubernetes.io%2Fjob-name"):
        job = jobs.get(pod["metadata"]["labels"].get("batch.kubernetes.io/controller-uid", ""))
        began = pod.get("status", {}).get("startTime")
        if job is None or not began:
            continue
        fire = job["metadata"]["annotations"][SCHEDULED_AT]
        name = job["metadata"]["ownerReferences"][0]["name"]
        if name in found:
            seconds = (datetime.fromisoformat(began) - datetime.fromisoformat(fire)).total_seconds()
            found[name][fire] = min(seconds, found[name].get(fire, seconds))
    return found
