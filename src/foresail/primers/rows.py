"""The rows of Primers, CronJobs, Jobs, pods, nodes, quotas and priority classes: only what decisions need."""

import re
import sys
from datetime import datetime, timedelta
from itertools import takewhile
from typing import TypedDict

import msgspec

from foresail.api import batch, pods
from foresail.api.instants import instant, utc
from foresail.api.marks import FIRE, PRIMER_UID, TARGET_UID, WARM_UP, WARM_UP_METHOD, WARM_UP_STATUS
from foresail.api.metadata import Metadata
from foresail.api.primer import AUTO, PRIMER, Primed, Primer, PrimerStatus
from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector
from foresail.cron.duration import length_of
from foresail.plan import Key, Keyed, Kind
from foresail.primers.reasons import Reason
from foresail.primers.shape import Shape, gke_mode, pool_of, shape_of, shape_of_template

DELAYS = 10
"""Of a CronJob, how many are kept."""

_COLD = 10
"""A run that started within so many seconds has waited for no node, wherever it was."""

_NOT_OURS_TO_WARM = (Reason.SUSPENDED.value, Reason.TAKEN.value)


class Owned(TypedDict):
    """What the rows of all objects that are made for a Primer have in common."""

    key: Key
    uid: str
    primer_uid: str
    target_uid: str
    is_terminating: bool


def owned(meta: Metadata) -> Owned:
    """Return which object it is, and for whom it says that it was made; anyone may have written that."""
    annotations = meta.annotations or {}
    return {
        "key": Key(sys.intern(meta.namespace), meta.name),
        "uid": sys.intern(meta.uid),
        "primer_uid": annotations.get(PRIMER_UID, ""),
        "target_uid": annotations.get(TARGET_UID, ""),
        "is_terminating": meta.deletion_timestamp is not None,
    }


def fire_of(meta: Metadata) -> datetime | None:
    """Return the fire that it says it was made for; None if it names none."""
    return instant((meta.annotations or {}).get(FIRE, ""))


def warm_up_of(value: int | str) -> timedelta:
    """Return a warm-up as a length of time; a number counts minutes."""
    return timedelta(minutes=value) if isinstance(value, int) else duration(value)


def duration(text: str) -> timedelta:
    """Return a duration; raise ValueError if it is none."""
    length = length_of(text)
    if length is None:
        raise ValueError(f"{text!r} is no duration")
    return length


def minutes(length: timedelta) -> str:
    """Return a length of time as people write it."""
    whole = length // timedelta(minutes=1)
    hours, left = divmod(whole, 60)
    return "".join((f"{hours}h" if hours else "", f"{left}m" if left or not hours else ""))


RELEASE_AFTER = timedelta(minutes=5)
LONGEST_SCHEDULE = 1_024
"""In characters: a tenant can write 1 MB into a CronJob, of which no more is kept than shows that it is too long."""

LONGEST_RECORD = 16_384
"""In characters: a tenant can write anything into the annotation that the operator records in."""

_LONGEST_VALUE = 60
_ANNOTATION_PREFIX = "cronjob/"  # no object's name has a slash


class PrimerRow(Keyed, frozen=True):
    """A Primer."""

    uid: str
    version: str
    generation: int
    created: datetime
    is_terminating: bool
    cron_job: str
    selector: LabelSelector | None
    warm_up: timedelta
    method: str
    requests: tuple[tuple[str, str], ...]  # instead of what the target's pods request
    replicas: int | None
    release_after: timedelta
    suspend: bool
    allow_standing: bool
    status: PrimerStatus
    kind: Kind = PRIMER  # or CronJob: one with annotations, read as if it were a Primer
    problem: str = ""  # what is wrong with those annotations
    is_withdrawn: bool = False  # they are deleted, or not allowed

    @property
    def queue_key(self) -> Key:
        """The key under which it is reconciled: no Primer has the name of an annotated CronJob's."""
        return self.key if self.kind == PRIMER else annotation_key(self.key)

    @property
    def warm_up_field(self) -> str:
        """Where its warm-up is set."""
        return "spec.warmUp" if self.kind == PRIMER else f"the annotation {WARM_UP}"

    def field(self, name: str) -> str:
        """Return where a field is set that annotations do not have."""
        return name if self.kind == PRIMER else f"{name} in a Primer"

    def matches(self, name: str, labels: dict[str, str]) -> bool:
        """Whether a CronJob of its namespace is one that it is for."""
        if self.selector is not None:
            return selects(self.selector, labels)
        return name == self.cron_job


class Annotated(msgspec.Struct, frozen=True):
    """The annotations of a CronJob by which it is primed, as they are written."""

    warm_up: str | None
    method: str
    record: str  # what the operator wrote
    version: str  # of the CronJob


class CronJobRow(Keyed, frozen=True):
    """A CronJob of a user, or a primer CronJob."""

    uid: str
    created: datetime
    is_terminating: bool
    labels: dict[str, str]
    text: str
    zone: str  # empty: that of kube-controller-manager
    suspend: bool
    policy: str
    deadline: timedelta | None
    last: datetime | None
    parallelism: int
    shape: Shape | None  # None if its template cannot be read
    primer_uid: str = ""
    target_uid: str = ""
    annotated: Annotated | None = None
    generation: int = 0


class JobRow(Keyed, frozen=True):
    """A run of a CronJob."""

    uid: str
    cron_job_uid: str
    fire: datetime
    started: datetime | None
    ended: datetime | None
    is_over: bool


class PodRow(Keyed, frozen=True):
    """A pod of a Job."""

    job_uid: str
    created: datetime
    node: str
    phase: str
    is_terminating: bool
    began: datetime | None  # when its first container ran
    shape: Shape | None

    @property
    def is_over(self) -> bool:
        """Whether it holds nothing any more."""
        return self.phase in (pods.SUCCEEDED, pods.FAILED)


class PlaceholderRow(Keyed, frozen=True):
    """A pod that holds capacity for a pod of a run."""

    uid: str
    primer_uid: str
    target_uid: str
    fire: datetime | None
    created: datetime
    scheduled: datetime | None
    node: str
    phase: str
    is_terminating: bool
    disrupted: str  # the reason that a DisruptionTarget condition gives
    requests: tuple[tuple[str, str], ...]

    @property
    def holds(self) -> bool:
        """Whether it holds capacity, or waits for a node."""
        return not self.is_terminating and self.phase not in (pods.SUCCEEDED, pods.FAILED)


def primer_row(wire: Primer) -> PrimerRow:
    """Return the row of a Primer."""
    meta = wire.metadata
    spec = wire.spec
    template = wire.spec.template
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    requests = template.resources.requests if template and template.resources else {}
    return PrimerRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=meta.uid,
        version=meta.resource_version,
        generation=meta.generation,
        created=utc(meta.creation_timestamp),
        is_terminating=meta.deletion_timestamp is not None,
        cron_job=spec.cron_job or "",
        selector=spec.selector,
        warm_up=warm_up_of(spec.warm_up),
        method=spec.method or AUTO,
        requests=tuple(sorted((name, str(amount)) for name, amount in requests.items())),
        replicas=template.replicas if template else None,
        release_after=duration(spec.release_after) if spec.release_after else RELEASE_AFTER,
        suspend=bool(spec.suspend),
        allow_standing=bool(spec.allow_standing),
        status=wire.status or PrimerStatus(),
    )


def annotation_key(cron_job: Key) -> Key:
    """Return the key under which the annotations of a CronJob are reconciled."""
    return Key(cron_job.namespace, _ANNOTATION_PREFIX + cron_job.name)


def annotated_cron_job(key: Key) -> Key | None:
    """Return the CronJob whose annotations a key is for; None if it is a Primer's."""
    name = key.name.removeprefix(_ANNOTATION_PREFIX)
    return Key(key.namespace, name) if name != key.name else None


def cron_job_row(wire: batch.CronJob) -> CronJobRow:
    """Return the row of a CronJob."""
    meta = wire.metadata
    spec = wire.spec
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    annotations = meta.annotations or {}
    job = spec.job_template.spec
    last = wire.status.last_schedule_time
    at_once = 1 if job.parallelism is None else job.parallelism
    return CronJobRow(
        **owned(meta),
        created=utc(meta.creation_timestamp),
        labels=meta.labels or {},
        text=spec.schedule[: LONGEST_SCHEDULE + 1],
        zone=spec.time_zone or "",
        suspend=bool(spec.suspend),
        policy=spec.concurrency_policy,
        deadline=None if spec.starting_deadline_seconds is None else timedelta(seconds=spec.starting_deadline_seconds),
        last=utc(last) if last else None,
        parallelism=at_once if job.completions is None else min(at_once, job.completions),
        shape=_shape_or_none(bytes(job.template)),
        annotated=_annotated(annotations, meta.resource_version),
        generation=meta.generation,
    )


def _annotated(annotations: dict[str, str], version: str) -> Annotated | None:
    if PRIMER_UID in annotations or not (WARM_UP in annotations or WARM_UP_STATUS in annotations):
        return None
    warm_up = annotations.get(WARM_UP)
    method = annotations.get(WARM_UP_METHOD, "")
    record = annotations.get(WARM_UP_STATUS, "")[: LONGEST_RECORD + 1]
    return Annotated(warm_up and warm_up[:_LONGEST_VALUE], method[:_LONGEST_VALUE], record, version)


def job_row(wire: batch.Job) -> JobRow | None:
    """Return the row of a Job; None if no CronJob created it for one of its fires."""
    meta = wire.metadata
    status = wire.status
    owner = meta.controller
    fire = instant((meta.annotations or {}).get(batch.SCHEDULED_AT, ""))
    if owner is None or owner.kind != batch.CRON_JOB.name or fire is None:
        return None
    over = any(
        condition.type in ("Complete", "Failed") and condition.status == "True" for condition in status.conditions or ()
    )
    return JobRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        uid=sys.intern(meta.uid),
        cron_job_uid=sys.intern(owner.uid),
        fire=fire,
        started=utc(status.start_time) if status.start_time else None,
        ended=utc(status.completion_time) if status.completion_time else None,
        is_over=over or meta.deletion_timestamp is not None,
    )


def pod_row(wire: pods.Pod) -> PodRow:
    """Return the row of a pod of a Job."""
    meta = wire.metadata
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    return PodRow(
        key=Key(sys.intern(meta.namespace), meta.name),
        job_uid=sys.intern((meta.labels or {}).get(batch.JOB_UID_LABEL, "")),
        created=utc(meta.creation_timestamp),
        node=sys.intern(wire.spec.node_name),
        phase=sys.intern(status.phase),
        is_terminating=meta.deletion_timestamp is not None,
        began=_began(status),
        shape=_known_shape(wire.spec),
    )


def placeholder_row(wire: pods.Pod) -> PlaceholderRow:
    """Return the row of a placeholder."""
    meta = wire.metadata
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    conditions = {condition.type: condition for condition in status.conditions or () if condition.status == "True"}
    scheduled = conditions.get("PodScheduled")
    target = conditions.get("DisruptionTarget")
    shape = _known_shape(wire.spec)
    return PlaceholderRow(
        **owned(meta),
        fire=fire_of(meta),
        created=utc(meta.creation_timestamp),
        scheduled=utc(scheduled.last_transition_time) if scheduled and scheduled.last_transition_time else None,
        node=wire.spec.node_name,
        phase=status.phase,
        disrupted=target.reason if target else "",
        requests=shape.requests if shape else (),
    )


def _began(status: pods.PodStatus) -> datetime | None:
    states = [
        container_status.state.running or container_status.state.terminated
        for container_status in status.container_statuses or ()
    ]
    starts = [state.started_at for state in states if state is not None and state.started_at is not None]
    if starts:
        return utc(min(starts))
    return utc(status.start_time) if status.start_time and status.phase == pods.RUNNING else None


def _shape_or_none(template: bytes) -> Shape | None:
    try:
        return shape_of_template(template)
    except (msgspec.DecodeError, ValueError):
        return None


def _known_shape(spec: pods.PodSpec) -> Shape | None:
    try:
        return shape_of(spec)
    except ValueError:
        return None


_VERSION = re.compile(r"v?(\d{1,4})\.(\d{1,4})")
_PULLS_IMAGES = (1, 35)  # the first release in which image volumes are on by default
_TERMINATION_TAINTS = ("karpenter.sh/disrupted", "ToBeDeletedByClusterAutoscaler", "node.kubernetes.io/out-of-service")
UNWARMABLE = {"eks.amazonaws.com/compute-type": "fargate", "type": "virtual-kubelet", "kubernetes.io/os": "windows"}
"""Labels of nodes that come with the pod, or that no placeholder can run on."""


class NodeRow(msgspec.Struct, frozen=True):
    """A node: since when it is ready, whether it is terminating, and whether a placeholder can warm it."""

    is_terminating: bool
    is_unwarmable: bool
    gke_mode: str = ""
    name: str = ""
    pool: str = ""  # from which the autoscaler makes others like it
    ready: datetime | None = None  # since when pods can run there
    pulls_images: bool = False  # of volumes that nothing mounts


class QuotaRow(Keyed, frozen=True):
    """A ResourceQuota."""

    scopes: tuple[tuple[str, str, tuple[str, ...]], ...]  # name, operator, values
    hard: tuple[tuple[str, str], ...]
    used: tuple[tuple[str, str], ...]


class PriorityRow(msgspec.Struct, frozen=True):
    """A PriorityClass."""

    name: str
    value: int
    is_default: bool
    preemption: str


def node_row(wire: pods.Node) -> NodeRow:
    """Return the row of a node."""
    labels = wire.metadata.labels or {}
    taints = {taint.key for taint in wire.spec.taints or ()}
    return NodeRow(
        is_terminating=wire.metadata.deletion_timestamp is not None or not taints.isdisjoint(_TERMINATION_TAINTS),
        is_unwarmable=any(labels.get(name) == value for name, value in UNWARMABLE.items()),
        gke_mode=gke_mode(wire.metadata.name),
        name=wire.metadata.name,
        pool=pool_of(labels),
        ready=_ready_since(wire.status),
        pulls_images=pulls_images(wire.status.node_info.kubelet_version),
    )


def _ready_since(status: pods.NodeStatus) -> datetime | None:
    ready = (
        condition for condition in status.conditions or () if condition.type == "Ready" and condition.status == "True"
    )
    since = next((pod_condition.last_transition_time for pod_condition in ready), None)
    return utc(since) if since else None


def quota_row(wire: pods.ResourceQuota) -> QuotaRow:
    """Return the row of a quota."""
    spec = wire.spec
    status = wire.status
    scopes = [(name, "Exists", ()) for name in spec.scopes or ()]
    selected = [
        (expression.scope_name, expression.operator, tuple(expression.values or ()))
        for expression in spec.scope_selector.match_expressions or ()
    ]
    return QuotaRow(
        key=Key(wire.metadata.namespace, wire.metadata.name),
        scopes=(*scopes, *selected),
        hard=tuple(sorted((status.hard or {}).items())),
        used=tuple(sorted((status.used or {}).items())),
    )


def priority_row(wire: pods.PriorityClass) -> PriorityRow:
    """Return the row of a priority class."""
    return PriorityRow(wire.metadata.name, wire.value, wire.global_default, wire.preemption_policy)


def pulls_images(kubelet: str) -> bool:
    """Whether a kubelet of this version pulls the images of volumes."""
    match = _VERSION.match(kubelet)
    return match is not None and (int(match[1]), int(match[2])) >= _PULLS_IMAGES


def cold_fires(primer: PrimerRow) -> int:
    """Return how many fires in a row, up to the last, started cold since the Primer could warm them; of the worst."""
    return max((_cold(primer, job) for job in primer.status.cron_jobs), default=0)


def _cold(primer: PrimerRow, primed: Primed) -> int:
    if primed.reason in _NOT_OURS_TO_WARM:
        return 0
    since = primer.created + primer.warm_up
    is_cold = (
        not delay.warm and delay.seconds >= _COLD and delay.fire >= since for delay in reversed(primed.start_delays)
    )
    return sum(1 for _ in takewhile(bool, is_cold))
