"""Method CapacityBuffer: the autoscaler itself keeps room for the run, from its fire minus the warm-up until the fire.

No pod is made, so nothing needs a quota, a priority or a preemption. A buffer refills what others take, the run itself
included, so at the fire it is scaled to 0, and it is deleted once the autoscaler has taken that in: Karpenter keeps the
nodes of a buffer that is just deleted until it next looks for room.

```
   fire - warmUp          fire
        │── make, keep ────│ scale to 0, delete
```
"""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from foresail.api.instants import stamp, whole
from foresail.api.primer import AUTO, Warming
from foresail.plan import Action, Create, Level
from foresail.primers.buffer_rows import BufferRow, TemplateRow, promised_pods
from foresail.primers.build import create_buffer, delete_buffer, delete_template, release_buffer
from foresail.primers.fires import Fires
from foresail.primers.limits import SETTLES, USEFUL, too_many
from foresail.primers.observe import PodRow, Seen, Target
from foresail.primers.reasons import Because, Loss, Reason
from foresail.primers.rules import (
    REHEARSED_BEFORE,
    Verdict,
    has_arrived,
    is_admission_known,
    is_covered,
    is_located,
    run_of,
)
from foresail.primers.shape import Shape
from foresail.primers.steps import Steps, remembered

ANSWERED_WITHIN = timedelta(seconds=20)
"""For so long an autoscaler may take to say what it makes of a buffer; Karpenter takes a second."""

RELEASED_WITHIN = timedelta(seconds=30)
"""For so long a buffer that holds nothing may stay until the autoscaler has taken that in."""


def release(seen: Seen, target: Target, now: datetime) -> Steps:
    """Let go of everything that is held."""
    known = remembered(seen, target.cron.uid)
    steps = let_go(seen, target.buffers, target.templates, now)
    return msgspec.structs.replace(steps, warming=known.warming if known else None)


def let_go(seen: Seen, buffers: Iterable[BufferRow], templates: Iterable[TemplateRow], now: datetime) -> Steps:
    """Scale buffers to 0, delete those that have been long enough, and delete the PodTemplates of none."""
    actions: list[Action] = []
    wakes: list[datetime] = []
    there = {each.key for each in buffers}
    for each in buffers:
        latest = each.released + RELEASED_WITHIN if each.released is not None else now
        if each.is_going:
            continue
        if each.is_live and each.ready:
            actions.append(release_buffer(seen.buffers.kind, each, now))
        elif each.is_released or not each.ready or latest <= now:
            actions.append(delete_buffer(seen.buffers.kind, each))
        else:
            wakes.append(latest)
    actions += [delete_template(each) for each in templates if each.key not in there and not each.is_going]
    return Steps(tuple(actions), tuple(wakes))


def plan(seen: Seen, verdict: Verdict, now: datetime) -> Steps:
    """Return what to create, keep and release for a CronJob now."""
    target, fires, shape = verdict.target, verdict.fires, verdict.shape
    if fires is None or shape is None:
        return release(seen, target, now)
    opens = fires.upcoming - seen.primer.warm_up
    is_open = opens <= now < fires.upcoming and not is_covered(target, fires.upcoming, verdict.count)
    kept = [each for each in target.buffers if is_open and each.fire == fires.upcoming and each.is_live]
    steps = _let_go_but(seen, target, kept, now)
    memory, said = _measured(seen, target, now)
    wakes = [*steps.wakes, opens, opens - REHEARSED_BEFORE, fires.upcoming]
    steps = msgspec.structs.replace(steps, wakes=tuple(wakes), warming=memory, said=said, **_record(seen, target))
    if kept:
        if not any(each.key == kept[0].key for each in target.templates):  # somebody has deleted it
            template, _ = create_buffer(seen, target.cron, shape, fires.upcoming, verdict.count)
            steps = msgspec.structs.replace(steps, actions=(*steps.actions, template))
        return _kept(seen, steps, kept[0], now)
    return _made(seen, verdict, fires, shape, steps, now) if is_open else steps


def _let_go_but(seen: Seen, target: Target, kept: Sequence[BufferRow], now: datetime) -> Steps:
    named = {each.key for each in kept}
    others = [each for each in target.buffers if each.key not in named]
    return let_go(seen, others, [each for each in target.templates if each.key not in named], now)


def _kept(seen: Seen, steps: Steps, row: BufferRow, now: datetime) -> Steps:
    """Keep what is there, note how far it is, and tell if no autoscaler takes care of it."""
    assert row.fire is not None  # noqa: S101 - for the type checker: it is kept for its fire
    memory = steps.warming
    if memory is None or memory.fire != row.fire or memory.buffer != row.key.name:
        memory = Warming(fire=row.fire, made=row.replicas, since=whole(row.created), buffer=row.key.name)
    if memory.new_nodes is None and (row.needs_nodes or row.provisioned is not None):
        memory = msgspec.structs.replace(memory, new_nodes=row.needs_nodes)
    if memory.provisioned is None and row.provisioned is not None:
        seconds = max(int((row.provisioned - row.created).total_seconds()), 0)
        memory = msgspec.structs.replace(memory, provisioned=seconds)
    steps = msgspec.structs.replace(steps, warming=memory, is_warming=True)
    answer_by = row.created + ANSWERED_WITHIN
    if row.ready == "True":
        return steps
    if now < answer_by:
        return msgspec.structs.replace(steps, wakes=(*steps.wakes, answer_by))
    if row.ready:  # it concerns this CronJob alone: others may ask for what the autoscaler can make
        what, advice = f"the autoscaler cannot use it ({row.said})", "correct the CronJob"
        found: dict[str, datetime] = {"refused": answer_by}
    else:
        what, advice = "no autoscaler has answered it", "switch the feature on there"
        found = {"unanswered": answer_by}
    problem = f"CapacityBuffer {row.key.name}: {what}: {advice}"
    if seen.primer.method == AUTO:  # with the next look, which the status brings about, placeholders are made
        said = Because(Reason.BUFFER_NOT_READY, f"{problem}. Placeholders hold the capacity instead.", Level.NORMAL)
        return msgspec.structs.replace(steps, said=(*steps.said, said), **found)
    because = Because(Reason.BUFFER_NOT_READY, f"{problem}, or use method Auto.")
    return msgspec.structs.replace(steps, because=because, **found)


def _made(seen: Seen, verdict: Verdict, fires: Fires, shape: Shape, steps: Steps, now: datetime) -> Steps:
    """Make a buffer for the next fire, once the run of the last one has come."""
    target, fire = verdict.target, fires.upcoming
    waits = _awaits(seen, verdict, fires.last, now)
    if waits is not None:
        return msgspec.structs.replace(steps, wakes=(*steps.wakes, waits))
    if fire - now < USEFUL or not (is_admission_known(target) and is_located(target, shape, fire)):
        return steps
    template, buffer = create_buffer(seen, target.cron, shape, fire, verdict.count)
    if any(each.key == buffer.key for each in target.buffers):
        return steps  # it was released within its own warm-up: when it is gone, another can have its name
    refused = seen.refused.get(buffer.key.name)
    because = Because(Reason.REFUSED, refused) if refused is not None else too_many(seen, target.cron, verdict.count)
    if because is not None:
        return msgspec.structs.replace(steps, because=because)
    has_template = any(each.key == template.key and not each.is_going for each in target.templates)
    kept = [each for each in steps.actions if each != _deletion(target, template.key.name)]
    makes = (buffer,) if has_template else (template, buffer)
    return msgspec.structs.replace(steps, actions=(*kept, *makes), is_warming=True)


def with_promised(seen: Seen, steps: Steps) -> Seen:
    """Return what is seen once the buffers of some steps count in the quotas of the namespace."""
    creates = [each for each in steps.actions if isinstance(each, Create)] if seen.quotas else []
    made = tuple(promised_pods(each, creates) for each in creates if each.kind == seen.buffers.kind)
    return msgspec.structs.replace(seen, buffered=(*seen.buffered, *made)) if made else seen


def _deletion(target: Target, name: str) -> Action | None:
    return next((delete_template(each) for each in target.templates if each.key.name == name), None)


def _awaits(seen: Seen, verdict: Verdict, last: datetime | None, now: datetime) -> datetime | None:
    """Return until when the run of the last fire is waited for: with both, the autoscaler would make two nodes."""
    memory = _memory(seen, verdict.target)
    if last is None or memory is None or memory.fire != last or has_arrived(verdict.target, last, verdict.count):
        return None
    is_there = run_of(verdict.target, last) is not None
    until = last + (seen.primer.release_after if is_there else min(SETTLES, seen.primer.release_after))
    return until if now < until else None


# What came of it


def _memory(seen: Seen, target: Target) -> Warming | None:
    known = remembered(seen, target.cron.uid)
    return known.warming if known else None


def _measured(seen: Seen, target: Target, now: datetime) -> tuple[Warming | None, tuple[Because, ...]]:
    """Return what is remembered once the run has begun, and what is to be said if it was not warm."""
    memory, began = _memory(seen, target), _first_pod(seen, target)
    if memory is None or began is None or memory.nodes or memory.lost or memory.fire > now:
        return memory, ()
    if _is_warm(seen, began, memory.fire):
        return msgspec.structs.replace(memory, nodes=(began.node,)), ()
    cause, why = _cold(seen, memory, began)
    text = f"CronJob {target.cron.key.name} was not warm at {stamp(memory.fire)}: {why}."
    return msgspec.structs.replace(memory, lost=cause.value), (Because(Reason.LOST, text),)


def _record(seen: Seen, target: Target) -> dict[str, tuple[tuple[datetime, object], ...]]:
    """Return for the fire of what was held where its run was warm, or why it was not."""
    memory, began = _memory(seen, target), _first_pod(seen, target)
    if memory is None:
        return {}
    if memory.buffer is None or began is None:  # by placeholders, before the method changed, or not yet
        return {"warm_nodes": ((memory.fire, memory.nodes),)}
    if _is_warm(seen, began, memory.fire):
        return {"warm_nodes": ((memory.fire, (began.node,)),)}
    return {"warm_nodes": ((memory.fire, ()),), "cold_because": ((memory.fire, _cold(seen, memory, began)[1]),)}


def _first_pod(seen: Seen, target: Target) -> PodRow | None:
    """Return the pod of a run by which its start is measured, if capacity was held for it by a buffer."""
    memory = _memory(seen, target)
    run = run_of(target, memory.fire) if memory is not None and memory.buffer is not None else None
    begun = [each for each in run[1] if each.began] if run is not None else []
    return min(begun, key=lambda each: (each.began, each.key), default=None)


def _is_warm(seen: Seen, pod: PodRow, fire: datetime) -> bool:
    """Whether a pod ran on a node that was ready when the CronJob fired: a buffer does not name its nodes."""
    node = seen.nodes.get(pod.node)
    return node is not None and node.ready is not None and node.ready <= fire


def _cold(seen: Seen, memory: Warming, pod: PodRow) -> tuple[Loss, str]:
    """Return why a run was not warm, as far as the nodes that are alike tell it."""
    node, since = seen.nodes.get(pod.node), memory.since or memory.fire
    ready = node.ready if node is not None else None
    late = f", ready {int((ready - memory.fire).total_seconds())} s after the fire" if ready is not None else ""
    ran = f"the pod ran on {pod.node}{late}"
    alike = [each for each in seen.nodes.values() if node is not None and node.pool and each.pool == node.pool]
    there = sorted(each.name for each in alike if each.ready is not None and since <= each.ready <= memory.fire)
    if there or memory.new_nodes is False:  # there was room on a new node, or from the beginning
        place = f"the place on {', '.join(there[:3])}" if there else "the place"
        return Loss.TAKEN, f"{ran}; other pods took {place}, which a CapacityBuffer does not reserve"
    return Loss.NEVER_SCHEDULED, f"{ran}; no node like it became ready during the warm-up: raise spec.warmUp"
