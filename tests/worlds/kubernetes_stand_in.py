"""Stands in for kube-controller-manager, kube-scheduler, an autoscaler and kubelets, in virtual time.

Every pod fills a node. A pod without one gets a node that is free, else the place of a placeholder if it may push it
aside, else a new node, which takes a while. A node that nobody is on goes after a while.
"""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from foresail.api import batch, pods
from foresail.api.instants import instant, stamp
from foresail.api.marks import PRIMER_LABEL
from foresail.cron import Dialect, parse
from foresail.kube.failures import Failure
from foresail.plan import Key
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.world import World, done

ME = "kube"
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


class Kubernetes:
    """The parts of a cluster that primers live among."""

    def __init__(
        self, world: World, *, node_seconds: float = 60.0, idle_seconds: float = 30.0, preempts: bool = True
    ) -> None:
        self.world = world
        self.node_seconds, self.idle_seconds, self.preempts = node_seconds, idle_seconds, preempts
        self.runs = 30.0  # seconds that a pod of a Job runs
        self.late = 0.1  # seconds from a fire until its Job is made
        self.on: dict[str, Key | None] = {}  # which pod is on a node that is ready
        self.coming = 0
        self.made = 0  # nodes, ever
        self.kept: Callable[[], int] = lambda: 0  # how many free nodes stay
        self.fired: list[tuple[str, datetime]] = []
        self._timers: dict[Key, tuple[asyncio.TimerHandle, tuple[str, str, str]]] = {}
        world.history.listeners.append(self._heard)

    # What happens

    def _heard(self, happening: Happening) -> None:
        if happening.kind == batch.CRON_JOB:
            self.later(0.0, lambda: self._plan_fire(happening.key))
        elif happening.kind == pods.POD:
            if happening.after is None:
                self._free(happening.key)
            elif happening.before is None:
                self.later(0.1, self._schedule)

    def later(self, seconds: float, do: Callable[[], object]) -> asyncio.TimerHandle:
        """Do something after a while."""
        return asyncio.get_running_loop().call_later(seconds, do)

    # CronJobs

    def _plan_fire(self, key: Key) -> None:
        cron = self.world.history.present(batch.CRON_JOB).get(key)
        known = self._timers.get(key)
        if cron is None or cron["spec"].get("suspend"):
            if known:
                self._timers.pop(key)[0].cancel()
            return
        last = cron.get("status", {}).get("lastScheduleTime", "")
        about = (cron["spec"]["schedule"], cron["spec"].get("timeZone", "UTC"), last)
        if known is not None and known[1] == about:
            return
        if known is not None:
            known[0].cancel()
        now, schedule = self.world.clock(), parse(about[0], Dialect.ROBFIG, about[1])
        base = instant(last or cron["metadata"]["creationTimestamp"])
        assert base is not None
        fire = schedule.next(base)
        while fire is not None and fire <= now - timedelta(seconds=1):
            fire = schedule.next(fire)
        if fire is None:
            return
        due = fire
        wait = (due - now).total_seconds() + self.late
        self._timers[key] = self.later(max(wait, 0.0), lambda: self._fire(key, due)), about

    def _fire(self, key: Key, fire: datetime) -> None:
        cron = self.world.history.present(batch.CRON_JOB).get(key)
        self._timers.pop(key, None)
        if cron is None or cron["spec"].get("suspend"):
            return
        mine = [each for each in self._jobs(cron) if not each.get("status", {}).get("conditions")]
        if not (mine and cron["spec"].get("concurrencyPolicy") == "Forbid"):
            self.fired.append((key.name, fire))
            self._make_job(key, cron, fire)
        status = {"status": {"lastScheduleTime": stamp(fire)}}
        done(self.world.merge(batch.CRON_JOB, key, status, ME, "status"))

    def _jobs(self, cron: Document) -> list[Document]:
        uid = cron["metadata"]["uid"]
        jobs = self.world.history.present(batch.JOB).values()
        return [job for job in jobs if job["metadata"]["ownerReferences"][0]["uid"] == uid]

    def _make_job(self, key: Key, cron: Document, fire: datetime) -> None:
        name = f"{key.name}-{(fire - _EPOCH) // timedelta(minutes=1)}"
        owner = {"kind": "CronJob", "name": key.name, "uid": cron["metadata"]["uid"], "controller": True}
        metadata: dict[str, Any] = {"name": name, "ownerReferences": [owner]}
        metadata["annotations"] = {batch.SCHEDULED_AT: stamp(fire)}
        template = cron["spec"]["jobTemplate"]["spec"]
        job = self.world.create(batch.JOB, {"metadata": metadata, "spec": template}, ME, key.namespace)
        if isinstance(job, Failure):
            return
        at = {"status": {"startTime": stamp(self.world.clock())}}
        done(self.world.merge(batch.JOB, Key(key.namespace, name), at, ME, "status"))
        for index in range(template.get("parallelism", 1)):
            labels = {batch.JOB_NAME_LABEL: name, batch.JOB_UID_LABEL: job["metadata"]["uid"]}
            owners = [{"kind": "Job", "name": name, "uid": job["metadata"]["uid"], "controller": True}]
            extra = template["template"].get("metadata", {}).get("labels", {})
            meta = {"name": f"{name}-{index}", "labels": {**extra, **labels}, "ownerReferences": owners}
            body = {"metadata": meta, "spec": template["template"]["spec"]}
            done(self.world.create(pods.POD, body, ME, key.namespace))

    # Pods and nodes

    def _schedule(self) -> None:
        waiting = [
            (key, pod)
            for key, pod in self.world.history.present(pods.POD).items()
            if not pod["spec"].get("nodeName") and pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")
        ]
        waiting.sort(key=lambda each: (_is_placeholder(each[1]), each[1]["metadata"]["creationTimestamp"], each[0]))
        left = 0
        for key, pod in waiting:
            node = next((name for name, on in self.on.items() if on is None), None)
            if node is None and self.preempts and not _is_placeholder(pod):
                node = next((name for name, on in self.on.items() if on and self._is_placeholder_key(on)), None)
                victim = self.on.get(node) if node else None
                if victim is not None:
                    done(self.world.delete(pods.POD, victim))
            if node is not None:
                self._bind(key, node)
            else:
                left += 1
        self.make_nodes(left - self.coming)

    @property
    def free(self) -> list[str]:
        """The nodes that nobody is on."""
        return [name for name, on in self.on.items() if on is None]

    def make_nodes(self, count: int, there: Callable[[], object] = lambda: None) -> None:
        """Begin to make nodes, which takes a while; `there` is called when each is."""

        def comes() -> None:
            self._node_comes()
            there()

        for _ in range(count):
            self.coming += 1
            self.later(self.node_seconds, comes)

    def _bind(self, key: Key, node: str) -> None:
        self.on[node] = key
        done(self.world.merge(pods.POD, key, {"spec": {"nodeName": node}}, ME))
        scheduled = {"type": "PodScheduled", "status": "True", "lastTransitionTime": stamp(self.world.clock())}
        done(self.world.merge(pods.POD, key, {"status": {"phase": "Pending", "conditions": [scheduled]}}, ME, "status"))
        self.later(0.2, lambda: self._run(key, scheduled))

    def _run(self, key: Key, scheduled: dict[str, str]) -> None:
        pod = self.world.history.present(pods.POD).get(key)
        if pod is None:
            return
        running = {"state": {"running": {"startedAt": stamp(self.world.clock())}}}
        status = {"phase": "Running", "conditions": [scheduled], "containerStatuses": [running]}
        done(self.world.merge(pods.POD, key, {"status": status}, ME, "status"))
        if not _is_placeholder(pod):
            self.later(self.runs, lambda: self._succeed(key, running))

    def _succeed(self, key: Key, running: dict[str, Any]) -> None:
        pod = self.world.history.present(pods.POD).get(key)
        if pod is None:
            return
        ended = {"state": {"terminated": running["state"]["running"]}}
        done(
            self.world.merge(
                pods.POD, key, {"status": {"phase": "Succeeded", "containerStatuses": [ended]}}, ME, "status"
            )
        )
        self._free(key)
        job = Key(key.namespace, pod["metadata"]["labels"][batch.JOB_NAME_LABEL])
        complete = {"conditions": [{"type": "Complete", "status": "True"}], "completionTime": stamp(self.world.clock())}
        self.world.merge(batch.JOB, job, {"status": complete}, ME, "status")
        self.later(300.0, lambda: self.world.delete(batch.JOB, job))

    def _free(self, key: Key) -> None:
        for node, on in list(self.on.items()):
            if on == key:
                self.on[node] = None
                self.later(self.idle_seconds, lambda node=node: self._node_goes(node))  # type: ignore[misc]
        self.later(0.1, self._schedule)

    def _node_comes(self) -> None:
        self.coming -= 1
        self.made += 1
        name = f"node-{self.made}"
        ready = {"type": "Ready", "status": "True", "lastTransitionTime": stamp(self.world.clock())}
        metadata = {"name": name, "labels": {"karpenter.sh/nodepool": "all"}}
        done(self.world.create(pods.NODE, {"metadata": metadata}, ME))
        done(self.world.merge(pods.NODE, Key("", name), {"status": {"conditions": [ready]}}, ME, "status"))
        self.on[name] = None
        self._schedule()
        if self.on[name] is None:
            self.later(self.idle_seconds, lambda: self._node_goes(name))

    def _node_goes(self, name: str) -> None:
        if name not in self.on or self.on[name] is not None:
            return
        if len(self.free) <= self.kept():
            self.later(self.idle_seconds, lambda: self._node_goes(name))
        else:
            del self.on[name]
            done(self.world.delete(pods.NODE, Key("", name)))

    def lose_node(self, name: str) -> None:
        """Take a node away with what is on it."""
        on = self.on.pop(name)
        done(self.world.delete(pods.NODE, Key("", name)))
        if on is not None:
            done(self.world.delete(pods.POD, on))

    def _is_placeholder_key(self, key: Key) -> bool:
        pod = self.world.history.present(pods.POD).get(key)
        return pod is not None and _is_placeholder(pod)


def _is_placeholder(pod: Document) -> bool:
    labels = pod["metadata"].get("labels", {})
    return PRIMER_LABEL in labels and batch.JOB_NAME_LABEL not in labels
