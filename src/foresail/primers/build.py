"""What is created for a Primer: placeholders, CapacityBuffers, and primer CronJobs with their Jobs."""

import hashlib
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import batch, pods
from foresail.api.capacity_buffers import POD_TEMPLATE
from foresail.api.instants import stamp
from foresail.api.marks import FIRE, JOB_VARIABLE, NOT_BACKED_UP, PRIMER_LABEL, PRIMER_UID, RELEASED, TARGET_UID
from foresail.cron.shift import ZonedExpression
from foresail.plan import Create, Delete, Key, Kind, Patch
from foresail.primers.buffer_rows import BufferRow, TemplateRow
from foresail.primers.rows import CronJobRow, PlaceholderRow, PrimerRow
from foresail.primers.shape import Shape, keeps_node, shares
from foresail.primers.view import PrimerView, Settings

LONGEST_CRON_JOB_NAME = 52
_LONGEST_POD_NAME = 63  # it becomes a host name
_LONGEST_LABEL = 63
# Seconds before the fire: when a primer pod ends, and when it is killed. An idle kubelet takes three seconds to report
# the end of a container. Without that report the deadline fails a Job whose pod succeeded, so a busy one gets ten.
_ENDS_BEFORE, _KILLED_BEFORE = 11, 1
_KEPT_AFTER = 600  # seconds for which the Job of a primer CronJob remains readable
_NO_SIDECARS = {"sidecar.istio.io/inject": "false", "linkerd.io/inject": "disabled"}
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "readOnlyRootFilesystem": True,
}
# With labels of the target's a Service may select it: one that is not ready gets no traffic.
_NEVER_READY = [{"conditionType": "foresail.dev/serves-traffic"}]
# No user: the images have a numeric one, and OpenShift assigns each namespace its own.
_NON_ROOT = {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}}


def placeholder_name(cron: CronJobRow, fire: datetime, index: int, attempt: int) -> str:
    """Return the name of a placeholder: the same for the same target, fire, index and attempt."""
    tail = f"-warm-{cron.uid[:8]}-{int(fire.timestamp()) // 60}-{index}-{attempt}"
    return cron.key.name[: _LONGEST_POD_NAME - len(tail)].rstrip("-.") + tail


def attempt_of(name: str) -> int:
    """Return the attempt in the name of a placeholder."""
    attempt = name.rpartition("-")[2]
    return int(attempt) if attempt.isdecimal() and len(attempt) == 1 else 1


def create_placeholder(
    view: PrimerView, cron: CronJobRow, shape: Shape, fire: datetime, number: tuple[int, int], lasts: timedelta
) -> Create:
    """Return the creation of a placeholder, recognisable by its marks; `number` is its index and the attempt.

    On its node it ends by itself after `lasts`, if no operator releases it.
    """
    primer = view.primer
    settings = view.settings
    key = Key(cron.key.namespace, placeholder_name(cron, fire, *number))
    spec = {
        **_placement(shape, settings),
        "containers": _containers("hold-place", settings.pause_image, shape),
        "activeDeadlineSeconds": max(int(lasts.total_seconds()), 1),
        "terminationGracePeriodSeconds": 0,
        "restartPolicy": "Always",
    }
    if settings.image_volumes:
        spec["volumes"] = [_image(index, image) for index, image in enumerate(shape.images)]
    keeps = keeps_node(shape, is_autopilot=view.is_autopilot)
    body = {"metadata": _metadata(primer, settings, shape.labels, owned=True, annotations=keeps), "spec": spec}
    return Create(pods.POD, key, body, {PRIMER_UID: primer.uid, TARGET_UID: cron.uid, FIRE: stamp(fire)})


def delete_placeholder(row: PlaceholderRow) -> Delete:
    """Return the deletion of a placeholder."""
    return Delete(pods.POD, row.key, row.uid)


def create_buffer(
    view: PrimerView, cron: CronJobRow, shape: Shape, fire: datetime, count: int
) -> tuple[Create, Create]:
    """Return the creations of a PodTemplate and of the CapacityBuffer that names it; both have the same name."""
    primer = view.primer
    settings = view.settings
    tail = f"-warm-{cron.uid[:8]}-{int(fire.timestamp()) // 60}"
    key = Key(cron.key.namespace, cron.key.name[: _LONGEST_POD_NAME - len(tail)].rstrip("-.") + tail)
    place = {name: value for name, value in _placement(shape, settings).items() if name != "priorityClassName"}
    pod = {**place, "containers": _containers("hold-place", settings.pause_image, shape)}
    mark = {PRIMER_UID: primer.uid, TARGET_UID: cron.uid, FIRE: stamp(fire)}
    owned = _metadata(primer, settings, (), owned=True, annotations={})
    template = {"metadata": {"labels": dict(shape.labels)}, "spec": {**pod, "restartPolicy": "Always"}}
    spec = {"podTemplateRef": {"name": key.name}, "replicas": count}
    return (
        Create(POD_TEMPLATE, key, {"metadata": owned, "template": template}, mark),
        Create(view.buffers.kind, key, {"metadata": owned, "spec": spec}, mark),
    )


def scale_buffer(kind: Kind, row: BufferRow, count: int) -> Patch:
    """Return the change by which a buffer holds room for so many pods; another one of that name is left alone."""
    return Patch(kind, row.key, {"metadata": {"uid": row.uid}, "spec": {"replicas": count}})


def release_buffer(kind: Kind, row: BufferRow, now: datetime) -> Patch:
    """Return the change by which a buffer holds nothing any more; another one of that name is left alone."""
    body = {"metadata": {"uid": row.uid, "annotations": {RELEASED: stamp(now)}}, "spec": {"replicas": 0}}
    return Patch(kind, row.key, body)


def delete_buffer(kind: Kind, row: BufferRow) -> Delete:
    """Return the deletion of a CapacityBuffer."""
    return Delete(kind, row.key, row.uid)


def delete_template(row: TemplateRow) -> Delete:
    """Return the deletion of the PodTemplate of a buffer."""
    return Delete(POD_TEMPLATE, row.key, row.uid)


def create_primer_cron_job(
    view: PrimerView, cron: CronJobRow, shape: Shape, when: ZonedExpression, count: int
) -> Create:
    """Return the creation of a primer CronJob; its name contains a hash of its content, so it is never updated."""
    primer = view.primer
    spec = _primer_cron_job_spec(view, shape, when, count)
    body = {"metadata": _metadata(primer, view.settings, (), owned=True, annotations={}), "spec": spec}
    content = msgspec.json.encode([cron.uid, primer.uid, body], order="deterministic")
    tail = f"-primer-{hashlib.sha256(content).hexdigest()[:8]}"
    name = cron.key.name[: LONGEST_CRON_JOB_NAME - len(tail)].rstrip("-.") + tail
    return Create(batch.CRON_JOB, Key(cron.key.namespace, name), body, {PRIMER_UID: primer.uid, TARGET_UID: cron.uid})


def delete_primer_cron_job(row: CronJobRow) -> Delete:
    """Return the deletion of a primer CronJob."""
    return Delete(batch.CRON_JOB, row.key, row.uid)


def _primer_cron_job_spec(view: PrimerView, shape: Shape, when: ZonedExpression, count: int) -> dict[str, Any]:
    primer = view.primer
    settings = view.settings
    keeps = keeps_node(shape, is_autopilot=view.is_autopilot)
    seconds = int(primer.warm_up.total_seconds())
    runs = {
        "command": [*settings.hold_command, str(seconds - _ENDS_BEFORE)],
        "env": [{"name": JOB_VARIABLE, "valueFrom": {"fieldRef": {"fieldPath": _JOB_NAME}}}],
    }
    containers = [{**container, **runs} for container in _containers("hold", settings.hold_image, shape)]
    pod = {**_placement(shape, settings), "containers": containers, "restartPolicy": "Never"}
    disrupted = {"type": "DisruptionTarget", "status": "True"}
    job = {
        "parallelism": count,
        "completions": count,
        "backoffLimit": 0,
        # One that got its node too late to end by itself must not block the run.
        "activeDeadlineSeconds": seconds - _KILLED_BEFORE,
        # One that is disrupted before the fire is created again; that is no failure to alert on.
        "podFailurePolicy": {"rules": [{"action": "Ignore", "onPodConditions": [disrupted]}]},
        "ttlSecondsAfterFinished": _KEPT_AFTER,
        "template": {
            "metadata": _metadata(primer, settings, shape.labels, owned=False, annotations=keeps),
            "spec": {**pod, "terminationGracePeriodSeconds": 1},
        },
    }
    return {
        "schedule": when.schedule,
        "timeZone": when.time_zone,
        "concurrencyPolicy": "Forbid",
        "startingDeadlineSeconds": max(seconds - _ENDS_BEFORE, 10),  # later than that, the fire has passed
        "successfulJobsHistoryLimit": 1,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {"metadata": {"labels": {NOT_BACKED_UP: "true"}}, "spec": job},
    }


_JOB_NAME = f"metadata.labels['{batch.JOB_NAME_LABEL}']"


def _metadata(
    primer: PrimerRow,
    settings: Settings,
    labels: tuple[tuple[str, str], ...],
    *,
    owned: bool,
    annotations: Mapping[str, str],
) -> dict[str, Any]:
    """Return labels, annotations and owner; no other label of the target's: other tools would claim the object."""
    kind = primer.kind  # a CronJob with annotations owns what is made for it
    owner = {"apiVersion": kind.api_version, "kind": kind.name, "name": primer.key.name, "uid": primer.uid}
    document: dict[str, Any] = {
        "labels": {
            **dict(labels),
            **dict(settings.labels),
            PRIMER_LABEL: primer.key.name[:_LONGEST_LABEL].rstrip("-."),
            NOT_BACKED_UP: "true",  # restored without its owner, it would never be released
        },
        "annotations": {**_NO_SIDECARS, **dict(settings.annotations), **annotations},
    }
    return {**document, "ownerReferences": [{**owner, "controller": True}]} if owned else document


def _placement(shape: Shape, settings: Settings) -> dict[str, Any]:
    """Return the fields of a pod spec that place it where the target's pods may run."""
    optional = {
        "nodeSelector": dict(shape.node_selector),
        "affinity": _decoded(shape.affinity),
        "topologySpreadConstraints": _decoded(shape.spread),
        "tolerations": _decoded(shape.tolerations),
        "schedulerName": shape.scheduler,
        "runtimeClassName": shape.runtime_class,
        "imagePullSecrets": _decoded(shape.pull_secrets),
        "readinessGates": _NEVER_READY if shape.labels else None,
    }
    return {
        **{name: value for name, value in optional.items() if value},
        "priorityClassName": settings.priority_class,
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "securityContext": _NON_ROOT,
    }


def _containers(name: str, image: str, shape: Shape) -> list[dict[str, Any]]:
    """Return as many containers as run at once in the target's pods, which together need what those need."""
    return [
        {
            "name": f"{name}-{index}" if index else name,
            "image": image,
            "resources": {"requests": requests, "limits": limits} if limits else {"requests": requests},
            "securityContext": _RESTRICTED,
        }
        for index, (requests, limits) in enumerate(shares(shape))
    ]


def _image(index: int, image: str) -> dict[str, Any]:
    """Return a volume for which the kubelet pulls an image; nothing mounts it, and nothing of it runs."""
    return {"name": f"image-{index}", "image": {"reference": image, "pullPolicy": "IfNotPresent"}}


def _decoded(text: bytes) -> object:
    return msgspec.json.decode(text) if text else None
