"""Method CapacityBuffer: the autoscaler itself keeps room for the run, from its fire minus the warm-up until the fire.

No pod is created, so nothing needs a quota, a priority or a preemption. A buffer refills what others take, the run
itself included. So at the fire it is scaled to 0, and deleted once the autoscaler has observed that: Karpenter keeps
the nodes of a buffer that is just deleted until it next looks for room.

```
   fire - warmUp          fire
        │── create, keep ──│ scale to 0, delete
```
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import stamp, whole
from foresail.api.primer import AUTO, Warming
from foresail.plan import Action, Create, Level
from foresail.primers.buffer_rows import BufferRow, TemplateRow
from foresail.primers.build import create_buffer, delete_buffer, delete_template, release_buffer, scale_buffer
from foresail.primers.fires import Fires
from foresail.primers.reasons import Reason
from foresail.primers.rows import PodRow
from foresail.primers.rules import BACKGROUND_READ_LEAD, Verdict, are_volumes_located, is_admission_known
from foresail.primers.shape import Shape
from foresail.primers.start_delays import ran_warm, why_cold
from foresail.primers.steps import (
    MIN_LEAD,
    RUN_GRACE,
    Steps,
    has_arrived,
    is_covered,
    recorded_primed,
    run_of,
    too_many,
)
from foresail.primers.view import PrimerView, Target
from foresail.reporting import Because

ANSWERED_WITHIN = timedelta(seconds=20)
"""How long an autoscaler may take to answer a buffer; Karpenter takes a second."""

RELEASED_WITHIN = timedelta(seconds=30)
"""How long a buffer that holds nothing may stay until the autoscaler has observed that."""


def release(view: PrimerView, target: Target, now: datetime) -> Steps:
    """Release everything that is held."""
    known = recorded_primed(view, target.cron.uid)
    steps = release_buffers(view, target.buffers, target.templates, now)
    return msgspec.structs.replace(steps, warming=known.warming if known else None)


def release_buffers(
    view: PrimerView, buffers: Iterable[BufferRow], templates: Iterable[TemplateRow], now: datetime
) -> Steps:
    """Scale buffers to 0, delete those whose release was observed, and delete PodTemplates without a buffer."""
    actions: list[Action] = []
    wakes: list[datetime] = []
    there = {buffer.key for buffer in buffers}
    for buffer in buffers:
        latest = buffer.released + RELEASED_WITHIN if buffer.released is not None else now
        if buffer.is_terminating:
            continue
        if buffer.is_live and buffer.ready:
            actions.append(release_buffer(view.buffers.kind, buffer, now))
        elif buffer.is_released or not buffer.ready or latest <= now:
            actions.append(delete_buffer(view.buffers.kind, buffer))
        else:
            wakes.append(latest)
    actions += [
        delete_template(template) for template in templates if template.key not in there and not template.is_terminating
    ]
    return Steps(tuple(actions), tuple(wakes))


def plan(view: PrimerView, verdict: Verdict, now: datetime) -> Steps:
    """Return what to create, keep and release for a CronJob now."""
    target = verdict.target
    fires = verdict.fires
    shape = verdict.shape
    if fires is None or shape is None:
        return release(view, target, now)
    opens = fires.upcoming - view.primer.warm_up
    is_open = opens <= now < fires.upcoming and not is_covered(target, fires.upcoming, verdict.count)
    kept = [buffer for buffer in target.buffers if is_open and buffer.fire == fires.upcoming and buffer.is_live]
    steps = _release_other_buffers(view, target, kept, now)
    warming, events = _measured(view, target, now)
    wakes = [*steps.wakes, opens, opens - BACKGROUND_READ_LEAD, fires.upcoming]
    steps = msgspec.structs.replace(steps, wakes=tuple(wakes), warming=warming, events=events, **_record(view, target))
    if kept:
        if not any(row.key == kept[0].key for row in target.templates):  # it was deleted
            template, _ = create_buffer(view, target.cron, shape, fires.upcoming, verdict.count)
            steps = msgspec.structs.replace(steps, actions=(*steps.actions, template))
        return _plan_kept(view, _scaled(view, verdict, kept[0], steps), kept[0], now)
    return _plan_creation(view, verdict, fires, shape, steps, now) if is_open else steps


def _release_other_buffers(view: PrimerView, target: Target, kept: Sequence[BufferRow], now: datetime) -> Steps:
    named = {buffer.key for buffer in kept}
    others = [buffer for buffer in target.buffers if buffer.key not in named]
    return release_buffers(view, others, [template for template in target.templates if template.key not in named], now)


def _scaled(view: PrimerView, verdict: Verdict, row: BufferRow, steps: Steps) -> Steps:
    """Scale a buffer to another parallelism; it stays as it is where the limits leave no room for more."""
    if row.replicas == verdict.count:
        return steps
    because = too_many(view, verdict.target.cron, verdict.count - row.replicas)
    if because is not None:
        return msgspec.structs.replace(steps, because=because)
    scale = scale_buffer(view.buffers.kind, row, verdict.count)
    return msgspec.structs.replace(steps, actions=(*steps.actions, scale))


def _plan_kept(view: PrimerView, steps: Steps, row: BufferRow, now: datetime) -> Steps:
    """Keep the buffer, record its progress, and report if no autoscaler answers it."""
    assert row.fire is not None  # noqa: S101 - for the type checker: it is kept for its fire
    warming = steps.warming
    if warming is None or warming.fire != row.fire or warming.buffer != row.key.name:
        warming = Warming(fire=row.fire, made=row.replicas, since=whole(row.created), buffer=row.key.name)
    if warming.made != row.replicas:
        warming = msgspec.structs.replace(warming, made=row.replicas)
    if warming.new_nodes is None and (row.needs_nodes or row.provisioned is not None):
        warming = msgspec.structs.replace(warming, new_nodes=row.needs_nodes)
    if warming.provisioned is None and row.provisioned is not None:
        seconds = max(int((row.provisioned - row.created).total_seconds()), 0)
        warming = msgspec.structs.replace(warming, provisioned=seconds)
    steps = msgspec.structs.replace(steps, warming=warming, is_warming=True)
    answer_by = row.created + ANSWERED_WITHIN
    if row.ready == "True":
        return steps
    if now < answer_by:
        return msgspec.structs.replace(steps, wakes=(*steps.wakes, answer_by))
    if row.ready:  # it concerns this CronJob alone: the autoscaler may be able to use other buffers
        answer = f"the autoscaler cannot use it ({row.message}): correct the CronJob"
        found: dict[str, datetime] = {"refused": answer_by}
    else:
        answer = "no autoscaler has answered it: switch the feature on there"
        found = {"unanswered": answer_by}
    problem = f"CapacityBuffer {row.key.name}: {answer}"
    if view.primer.method == AUTO:  # the status brings about the next reconcile, which creates placeholders
        events = Because(Reason.BUFFER_NOT_READY, f"{problem}. Placeholders hold the capacity instead.", Level.NORMAL)
        return msgspec.structs.replace(steps, events=(*steps.events, events), **found)
    because = Because(Reason.BUFFER_NOT_READY, f"{problem}, or use method Auto.")
    return msgspec.structs.replace(steps, because=because, **found)


def _plan_creation(
    view: PrimerView, verdict: Verdict, fires: Fires, shape: Shape, steps: Steps, now: datetime
) -> Steps:
    """Create a buffer for the next fire, once the run of the last one has its nodes."""
    target = verdict.target
    fire = fires.upcoming
    waits = _awaits(view, verdict, fires.last, now)
    if waits is not None:
        return msgspec.structs.replace(steps, wakes=(*steps.wakes, waits))
    if fire - now < MIN_LEAD or not (is_admission_known(target) and are_volumes_located(target, shape, fire)):
        return steps
    template, buffer = create_buffer(view, target.cron, shape, fire, verdict.count)
    if any(row.key == buffer.key for row in target.buffers):
        return steps  # released within its own warm-up: once it is deleted, another can have its name
    refused = view.refused.get(buffer.key.name)
    if refused is not None and view.primer.method == AUTO:
        return _refused_by_api_server(steps, buffer.key.name, refused, now)
    because = Because(Reason.REFUSED, refused) if refused is not None else too_many(view, target.cron, verdict.count)
    if because is not None:
        return msgspec.structs.replace(steps, because=because)
    return _with_creation(steps, target, template, buffer)


def _with_creation(steps: Steps, target: Target, template: Create, buffer: Create) -> Steps:
    """Add the creation of a buffer, and of its PodTemplate unless that exists; it is then not deleted."""
    has_template = any(row.key == template.key and not row.is_terminating for row in target.templates)
    kept = [action for action in steps.actions if action != _deletion(target, template.key.name)]
    creations = (buffer,) if has_template else (template, buffer)
    return msgspec.structs.replace(steps, actions=(*kept, *creations), is_warming=True)


def _refused_by_api_server(steps: Steps, name: str, message: str, now: datetime) -> Steps:
    """Record and report the refusal: the status brings about the next reconcile, which creates placeholders."""
    text = f"the API server refused CapacityBuffer {name}: {message.rstrip('.')}"
    event = Because(Reason.REFUSED, f"{text}. Placeholders hold the capacity instead.", Level.NORMAL)
    return msgspec.structs.replace(steps, events=(*steps.events, event), refused=whole(now))


def _deletion(target: Target, name: str) -> Action | None:
    return next((delete_template(template) for template in target.templates if template.key.name == name), None)


def _awaits(view: PrimerView, verdict: Verdict, last: datetime | None, now: datetime) -> datetime | None:
    """Return until when to wait for the run of the last fire: with both, the autoscaler would create two nodes."""
    warming = _recorded_warming(view, verdict.target)
    if last is None or warming is None or warming.fire != last or has_arrived(verdict.target, last, verdict.count):
        return None
    is_there = run_of(verdict.target, last) is not None
    until = last + (view.primer.release_after if is_there else min(RUN_GRACE, view.primer.release_after))
    return until if now < until else None


# What came of it


def _recorded_warming(view: PrimerView, target: Target) -> Warming | None:
    known = recorded_primed(view, target.cron.uid)
    return known.warming if known else None


def _measured(view: PrimerView, target: Target, now: datetime) -> tuple[Warming | None, tuple[Because, ...]]:
    """Return what to record once the run has begun, and what to report if it was not warm."""
    warming = _recorded_warming(view, target)
    began = _first_pod(view, target)
    if warming is None or began is None or warming.nodes or warming.lost or warming.fire > now:
        return warming, ()
    if ran_warm(view, began, warming.fire):
        return msgspec.structs.replace(warming, nodes=(began.node,)), ()
    cause, why = why_cold(view, warming, began)
    text = f"CronJob {target.cron.key.name} was not warm at {stamp(warming.fire)}: {why}."
    return msgspec.structs.replace(warming, lost=cause.value), (Because(Reason.LOST, text),)


def _record(view: PrimerView, target: Target) -> dict[str, tuple[tuple[datetime, object], ...]]:
    """Return for the fire of what was held where its run was warm, or why it was not."""
    warming = _recorded_warming(view, target)
    began = _first_pod(view, target)
    if warming is None:
        return {}
    if warming.buffer is None or began is None:  # by placeholders, before the method changed, or not yet
        return {"warm_nodes": ((warming.fire, warming.nodes),)}
    if ran_warm(view, began, warming.fire):
        return {"warm_nodes": ((warming.fire, (began.node,)),)}
    return {"warm_nodes": ((warming.fire, ()),), "cold_because": ((warming.fire, why_cold(view, warming, began)[1]),)}


def _first_pod(view: PrimerView, target: Target) -> PodRow | None:
    """Return the pod of a run by which its start is measured, if capacity was held for it by a buffer."""
    warming = _recorded_warming(view, target)
    run = run_of(target, warming.fire) if warming is not None and warming.buffer is not None else None
    begun = [pod for pod in run[1] if pod.began] if run is not None else []
    return min(begun, key=lambda pod: (pod.began, pod.key), default=None)
