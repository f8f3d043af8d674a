"""The rows of CapacityBuffers and of their PodTemplates, and whether the cluster acts on them."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.capacity_buffers import (
    POD_TEMPLATE,
    PROVISIONING,
    READY,
    CapacityBuffer,
    StoredTemplate,
    capacity_buffer,
)
from foresail.api.instants import instant, utc
from foresail.api.marks import RELEASED
from foresail.plan import Create, Keyed, Kind
from foresail.primers.rows import fire_of, owned
from foresail.primers.shape import shape_of, shape_of_template

BUFFER_RETRY = timedelta(hours=6)
"""How long after a buffer that no autoscaler answered or could use `Auto` creates no other one."""


def is_recent(failed: datetime, now: datetime) -> bool:
    """Whether a buffer failed so recently that `Auto` creates no other one."""
    return abs(now - failed) < BUFFER_RETRY


class BufferRow(Keyed, frozen=True):
    """A CapacityBuffer of a Primer."""

    uid: str
    primer_uid: str
    target_uid: str
    fire: datetime | None
    created: datetime
    is_terminating: bool
    replicas: int
    released: datetime | None  # since when it is to hold nothing
    is_released: bool  # whether the autoscaler has observed that
    ready: str  # "True" or "False" once an autoscaler has answered
    message: str
    provisioned: datetime | None  # since when there is room for all its pods
    needs_nodes: bool = False  # whether the autoscaler has found no room, and creates nodes

    @property
    def is_live(self) -> bool:
        """Whether it is to hold capacity."""
        return not self.is_terminating and self.replicas > 0


class TemplateRow(Keyed, frozen=True):
    """The PodTemplate of a CapacityBuffer, which has the same name."""

    uid: str
    primer_uid: str
    target_uid: str
    is_terminating: bool
    requests: tuple[tuple[str, str], ...]
    limits: tuple[tuple[str, str], ...] = ()


class BufferedPods(Keyed, frozen=True):
    """For how many pods of which size a buffer holds room, or is about to; the key is that of the buffer."""

    count: int
    requests: tuple[tuple[str, str], ...] | None  # None: its PodTemplate is not known yet
    limits: tuple[tuple[str, str], ...] = ()


class BufferSupport(msgspec.Struct, frozen=True):
    """Whether the cluster has CapacityBuffers, and when an autoscaler last answered one, or did not."""

    kind: Kind = capacity_buffer()
    is_served: bool = False
    answered: datetime | None = None
    unanswered: datetime | None = None

    def is_unanswered(self, now: datetime) -> bool:
        """Whether the last buffer was not answered, and not long ago; an instant far in the future is forged."""
        if self.unanswered is None or (self.answered is not None and self.answered >= self.unanswered):
            return False
        return is_recent(self.unanswered, now)


def buffer_row(wire: CapacityBuffer) -> BufferRow:
    """Return the row of a CapacityBuffer."""
    meta = wire.metadata
    status = wire.status
    if meta.creation_timestamp is None:
        raise ValueError("it has no creationTimestamp")
    conditions = {condition.type: condition for condition in status.conditions or ()}
    ready = conditions.get(READY)
    room = conditions.get(PROVISIONING)
    since = room.last_transition_time if room is not None and room.status == "True" else None
    return BufferRow(
        **owned(meta),
        fire=fire_of(meta),
        created=utc(meta.creation_timestamp),
        replicas=wire.spec.replicas or 0,
        released=instant((meta.annotations or {}).get(RELEASED, "")),
        is_released=status.replicas == 0,
        ready=ready.status if ready else "",
        message=f"{ready.reason}: {ready.message}" if ready and ready.status != "True" else "",
        provisioned=utc(since) if since else None,
        needs_nodes=ready is not None and ready.status == "True" and room is not None and room.status == "False",
    )


def template_row(wire: StoredTemplate) -> TemplateRow:
    """Return the row of a PodTemplate."""
    shape = shape_of(wire.template.spec)
    return TemplateRow(**owned(wire.metadata), requests=shape.requests, limits=shape.limits)


def expected_pods(action: Create, creations: Iterable[Create]) -> BufferedPods:
    """Return the pods for which a buffer is to hold room, by the PodTemplate that is created with it."""
    spec: Any = action.body["spec"]
    templates = (
        creation.body["template"]
        for creation in creations
        if creation.kind == POD_TEMPLATE and creation.key == action.key
    )
    template = next(templates, None)
    shape = shape_of_template(msgspec.json.encode(template)) if template is not None else None
    if shape is None:
        return BufferedPods(action.key, spec["replicas"], None)
    return BufferedPods(action.key, spec["replicas"], shape.requests, shape.limits)
