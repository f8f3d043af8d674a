"""CronJobs of the namespace reports, as the canned API server answers about them."""

from dataclasses import dataclass, field
from datetime import timedelta
from typing import Any

from foresail.api.instants import stamp
from foresail.kube.clock import now

METADATA = {"namespace": "reports", "creationTimestamp": "2026-01-01T00:00:00Z"}
PRIMERS = "/apis/foresail.dev/v1alpha1/namespaces/reports/primers"


@dataclass(frozen=True)
class CronJob:
    """A CronJob, and how many seconds the pod of its last run waited for a node."""

    name: str
    schedule: str = "0 * * * *"
    requests: dict[str, str] = field(default_factory=lambda: {"cpu": "2"})
    waited: int | None = None
    suspend: bool = False

    @property
    def container(self) -> dict[str, Any]:
        """The only container of its pods."""
        return {"name": "work", "image": "work:1", "resources": {"requests": self.requests}}

    @property
    def body(self) -> dict[str, Any]:
        """The object."""
        template = {"spec": {"template": {"spec": {"containers": [self.container]}}}}
        metadata = {**METADATA, "name": self.name, "uid": self.name, "labels": {"tier": self.name}}
        spec = {"schedule": self.schedule, "suspend": self.suspend, "jobTemplate": template}
        return {"metadata": metadata, "spec": spec}


def answers(*cron_jobs: CronJob, primers: tuple[dict[str, Any], ...] = ()) -> dict[str, Any]:
    """Return what an API server answers that has these objects, and nothing else."""
    ran = [each for each in cron_jobs if each.waited is not None]
    fire = now().replace(minute=0, second=0, microsecond=0)
    return {
        "/apis/batch/v1/namespaces/reports/cronjobs": _list(*(each.body for each in cron_jobs)),
        "/apis/batch/v1/namespaces/reports/jobs": _list(*(_job(each, stamp(fire)) for each in ran)),
        "/api/v1/namespaces/reports/pods": _list(
            *(_pod(each, stamp(fire + timedelta(seconds=each.waited or 0))) for each in ran)
        ),
        "/api/v1/namespaces/reports/events": _list(),
        PRIMERS: _list(*primers),
    }


def _list(*items: dict[str, Any]) -> dict[str, Any]:
    return {"metadata": {"resourceVersion": "1"}, "items": list(items)}


def _job(cron: CronJob, fire: str) -> dict[str, Any]:
    name = f"{cron.name}-1"
    owner = {"kind": "CronJob", "uid": cron.name, "name": cron.name, "controller": True, "apiVersion": "batch/v1"}
    annotations = {"batch.kubernetes.io/cronjob-scheduled-timestamp": fire}
    metadata = {**METADATA, "name": name, "uid": name, "ownerReferences": [owner], "annotations": annotations}
    return {"metadata": metadata, "spec": {}, "status": {}}


def _pod(cron: CronJob, began: str) -> dict[str, Any]:
    job, name = f"{cron.name}-1", f"{cron.name}-1-x"
    labels = {"batch.kubernetes.io/controller-uid": job, "batch.kubernetes.io/job-name": job}
    state = {"name": "work", "state": {"running": {"startedAt": began}}}
    return {
        "metadata": {**METADATA, "name": name, "uid": name, "labels": labels},
        "spec": {"containers": [cron.container], "nodeName": "node-1"},
        "status": {"phase": "Running", "containerStatuses": [state]},
    }
