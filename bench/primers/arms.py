"""Start delays of four CronJobs side by side: unprimed, and primed by each method."""

import statistics
import tempfile
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from bench.primers.waiting import holds_within, until
from foresail.api.instants import stamp
from foresail.kube.clock import now
from testbed import Cluster, Options
from tests.cluster import operators, primers
from tests.cluster.buffer_scene import CONTESTED, TAKEN_BEFORE, contest, leave, left_behind

COLD, HELD, TIMED, BUFFERED = ARMS = ("cold", "held", "timed", "buffered")
_METHODS = {HELD: "Placeholder", TIMED: "CronJob", BUFFERED: "CapacityBuffer", CONTESTED: "CapacityBuffer"}
_ALL = (*ARMS, CONTESTED)  # of which the last is not compared: before each fire a stranger takes its place
_PERIOD, _WARM_UP = timedelta(minutes=4), timedelta(minutes=2)
_SLACK = timedelta(seconds=15)
_LOOK = 2.0  # seconds; a pod is there for longer than that
_RECORDED = 60.0  # seconds in which a Primer reports the start of a run
_FREED = 180.0  # seconds in which everything must be gone


@dataclass
class _Seen:
    """What there has been, looked at again and again: a pod goes with its node."""

    delays: dict[str, dict[str, float]] = field(default_factory=lambda: {arm: {} for arm in _ALL})
    late: dict[str, float] = field(default_factory=dict)  # by fire, how late kube-controller-manager made the last Job
    nodes: list[tuple[datetime, int]] = field(default_factory=list)  # of the pool of the buffer
    placeholders: set[str] = field(default_factory=set)  # of the Primer with the buffer
    contested: set[str] = field(default_factory=set)  # fires before which the place was taken
    is_stranger_there: bool = False

    def look(self, cluster: Cluster) -> None:
        """Look once, and let the stranger come and go."""
        for arm, by_fire in primers.delays_by_fire(cluster, _ALL).items():
            self.delays[arm] |= by_fire
        self._contest(cluster)
        for job in cluster.listed("/apis/batch/v1/namespaces/default/jobs"):
            metadata = job["metadata"]
            if metadata["ownerReferences"][0]["name"] in ARMS:
                fire = metadata["annotations"][primers.SCHEDULED_AT]
                late = _instant(metadata["creationTimestamp"]) - _instant(fire)
                self.late[fire] = max(late.total_seconds(), self.late.get(fire, 0.0))
        claims = cluster.listed(f"/apis/karpenter.sh/v1/nodeclaims?labelSelector=karpenter.sh%2Fnodepool%3D{BUFFERED}")
        self.nodes.append((now(), len(claims)))
        there = (pod["metadata"] for pod in primers.placeholders(cluster))
        self.placeholders |= {each["name"] for each in there if each["labels"]["foresail.dev/primer"] == BUFFERED}

    def _contest(self, cluster: Cluster) -> None:
        at, fire = now(), stamp(_next_fire())
        taken = max(self.contested, default="")
        if self.is_stranger_there and taken in self.delays[CONTESTED]:
            leave(cluster)
            self.is_stranger_there = False
        elif fire not in self.contested and _instant(fire) - at <= TAKEN_BEFORE and contest(cluster):
            self.contested.add(fire)
            self.is_stranger_there = True

    @property
    def common(self) -> list[str]:
        """The fires that all arms have had."""
        return sorted(set.intersection(*(set(each) for each in self.delays.values())))

    def refilled(self, fire: str) -> float:
        """Return for how many node-seconds there was more than one node from a fire until the next warm-up."""
        begins = _instant(fire)
        looks = [each for each in self.nodes if begins <= each[0] < begins + _PERIOD - _WARM_UP]
        return sum(max(count - 1, 0) * (later - at).total_seconds() for (at, count), (later, _) in pairwise(looks))


def arms(fires: int, node_seconds: int) -> dict[str, object]:
    """Measure so many fires of each, where nodes take that long."""
    options = Options(karpenter="karpenter", node_seconds=node_seconds, capacity_buffers=True)
    with (
        Cluster.create("bench-primers", options, owned=True) as cluster,
        tempfile.TemporaryDirectory() as folder,
    ):
        primers.install(cluster)
        cluster.apply(*[primers.node_pool(arm, node_seconds) for arm in _ALL])
        with operators.running(cluster, Path(folder), *primers.FLAGS, primers.holding(_WARM_UP)):
            jobs = [primers.cron_job(arm, f"*/{_PERIOD // timedelta(minutes=1)} * * * *", arm) for arm in _ALL]
            for job in jobs:
                job["spec"]["successfulJobsHistoryLimit"] = fires + 2
            # Half of the time is as much as one may have without asking; the first days may be more than that.
            made = [primers.primer(arm, "2m", method=method, allowStanding=True) for arm, method in _METHODS.items()]
            until(lambda: _next_fire() - now() > _WARM_UP + _SLACK, _PERIOD.total_seconds())  # all fires are primed
            cluster.apply(*jobs, *made)
            seen, wanted = _measured(cluster, fires)
            notes = {arm: _notes(cluster, arm) for arm in _METHODS}
            left = _left_behind(cluster)
    found = {arm: [seen.delays[arm][fire] for fire in wanted] for arm in ARMS}
    reported = [fire for fire, note in notes[CONTESTED] if "other pods took the place" in note]
    refill = [round(seen.refilled(fire)) for fire in wanted]
    print(f"start delays in seconds, nodes of {node_seconds} s: {found}", flush=True)
    print(f"why runs were not warm: {notes}; Jobs late by seconds: {seen.late}", flush=True)
    cold, held, timed, buffered = (statistics.median(found[arm]) for arm in ARMS)
    return {
        "cold_p50_s": cold,
        "warm_p50_s": held,
        "warm_cronjob_p50_s": timed,
        "warm_buffer_p50_s": buffered,
        "ratio": round(max(held, timed, buffered) / cold, 3),
        "node_seconds": node_seconds,
        "start_delays_s": found,
        "buffer_refill_node_s": refill,
        "buffer_placeholders": len(seen.placeholders),
        "contested": len(seen.contested.intersection(wanted)),
        "contested_reported": len(seen.contested.intersection(wanted, reported)),
        "job_late_max_s": max(seen.late[fire] for fire in wanted),
        "left_behind": left,
    }


def _measured(cluster: Cluster, fires: int) -> tuple[_Seen, list[str]]:
    """Return what was seen of so many fires that all have had, and those fires."""
    seen = _Seen()

    def is_enough() -> bool:
        seen.look(cluster)
        return len(seen.common) >= fires

    until(is_enough, (fires + 1) * _PERIOD.total_seconds() * 1.5, _LOOK)
    until(lambda: all(len(_delays(cluster, arm)) >= fires for arm in _METHODS), _RECORDED)
    return seen, seen.common[:fires]


def _notes(cluster: Cluster, arm: str) -> list[tuple[str, str]]:
    """Return why runs were not warm, as the status of the Primer has it."""
    delays = _delays(cluster, arm)
    return [(each["fire"], each.get("note", "nothing was held")) for each in delays if not each["warm"]]


def _delays(cluster: Cluster, arm: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = primers.primed(cluster, arm).get("startDelays", [])
    return found


def _left_behind(cluster: Cluster) -> int:
    """Delete the CronJobs and their Primers; return how much of what was made for them is not gone in time."""
    leave(cluster)
    cluster.kubectl("delete", "cronjobs", "--all", "--namespace=default")
    holds_within(lambda: not left_behind(cluster), _FREED)  # with its Primer a buffer would go unreleased
    cluster.kubectl("delete", "primers", "--all", "--namespace=default")

    def left() -> int:
        held = len(primers.placeholders(cluster)) + len(left_behind(cluster))
        return held + len(cluster.listed("/api/v1/nodes"))

    holds_within(lambda: left() == 0, _FREED)
    return left()


def _next_fire() -> datetime:
    at = now()
    return at - (at - datetime.min.replace(tzinfo=UTC)) % _PERIOD + _PERIOD


def _instant(text: str) -> datetime:
    return datetime.fromisoformat(text)
