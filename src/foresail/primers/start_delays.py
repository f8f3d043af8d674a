"""The start delays of a CronJob's runs, and why one was not warm."""

from datetime import datetime

from foresail.api.primer import StartDelay, Warming
from foresail.primers.reasons import Loss
from foresail.primers.rows import DELAYS, PodRow
from foresail.primers.rules import Verdict
from foresail.primers.steps import Steps, runs_of
from foresail.primers.view import PrimerView


def start_delays(before: tuple[StartDelay, ...], verdict: Verdict, steps: Steps) -> tuple[StartDelay, ...]:
    """Return the last ten, with those runs that have begun since; each is measured once."""
    last = before[-1].fire if before else None
    warm = dict(steps.warm_nodes)
    cold = dict(steps.cold_because)
    delays = list(before)
    for job, pods in runs_of(verdict.target):
        began = min((pod for pod in pods if pod.began), key=lambda pod: (pod.began, pod.key), default=None)
        if began is None or began.began is None or (last is not None and job.fire <= last):
            continue
        nodes = warm.get(job.fire)
        note = None
        if nodes is not None and began.node not in nodes:
            elsewhere = f"the pod ran on {began.node}, and capacity was held on {', '.join(nodes) or 'no node yet'}"
            note = cold.get(job.fire, elsewhere)
        seconds = max(int((began.began - job.fire).total_seconds()), 0)
        delays.append(StartDelay(job.fire, seconds, warm=nodes is not None and note is None, note=note))
    return tuple(delays[-DELAYS:])


def ran_warm(view: PrimerView, pod: PodRow, fire: datetime) -> bool:
    """Whether a pod ran on a node that was ready when the CronJob fired: a buffer does not name its nodes."""
    node = view.nodes.get(pod.node)
    return node is not None and node.ready is not None and node.ready <= fire


def why_cold(view: PrimerView, warming: Warming, pod: PodRow) -> tuple[Loss, str]:
    """Return why a run was not warm, as far as the nodes that are alike tell it."""
    node = view.nodes.get(pod.node)
    since = warming.since or warming.fire
    ready = node.ready if node is not None else None
    late = f", ready {int((ready - warming.fire).total_seconds())} s after the fire" if ready is not None else ""
    ran = f"the pod ran on {pod.node}{late}"
    alike = [row for row in view.nodes.values() if node is not None and node.pool and row.pool == node.pool]
    there = sorted(row.name for row in alike if row.ready is not None and since <= row.ready <= warming.fire)
    if there or warming.new_nodes is False:  # there was room on a new node, or from the beginning
        place = f"the place on {', '.join(there[:3])}" if there else "the place"
        return Loss.TAKEN, f"{ran}; other pods took {place}, which a CapacityBuffer does not reserve"
    return Loss.NEVER_SCHEDULED, f"{ran}; no node like it became ready during the warm-up: raise spec.warmUp"
