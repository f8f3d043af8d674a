"""Every situation of primers that needs nodes, side by side on one cluster under one operator: one wait for all."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from typing import Any

from foresail.api.instants import stamp
from testbed import Cluster
from tests.cluster import operators, primers
from tests.cluster.meanwhile import meanwhile
from tests.cluster.operators import Operator
from tests.cluster.schedules import FULL

NODES_TAKE = 20
FIRES = 5 if FULL else 1
STANDING_FIRES = 5 if FULL else 2
EVERY = timedelta(minutes=5)
WARM_UP = timedelta(minutes=4) if FULL else timedelta(minutes=1)
STANDING_EVERY, STANDING_WARM_UP, STANDING_RUNS = (EVERY, "20m", 180) if FULL else (timedelta(minutes=1), "4m", 35)
ARMS = ("cold", "held", "timed")
TIGHT = ("unprimed", "tight", "low", "meek", "kept", "guarded", "ranged", "barred", "bound")
ARM_EVERY, ARM_TRIES = timedelta(minutes=2), 1 if FULL else 3
LOST = ("struck", "pushed")
STANDING = ("often", "lean", "spare")
ZONE = "test-zone-c"
_HOMES = ("tight", "guarded", "ranged", "barred", "often", "lean")
_RESTRICTED = {
    "allowPrivilegeEscalation": False,
    "capabilities": {"drop": ["ALL"]},
    "runAsNonRoot": True,
    "seccompProfile": {"type": "RuntimeDefault"},
}
_MOUNTED = [{"name": "data", "persistentVolumeClaim": {"claimName": "bound"}}]


@dataclass
class Sight:
    """What there has been, looked at again and again."""

    held: dict[str, int] = field(default_factory=dict)  # placeholders of a Primer, at once at most
    nodes: dict[str, int] = field(default_factory=dict)  # of a pool, at once at most
    ever: dict[str, set[str]] = field(default_factory=dict)  # the nodes that a pool has had
    specs: dict[str, dict[str, Any]] = field(default_factory=dict)  # of the last placeholder of a Primer
    starts: dict[str, dict[str, float]] = field(default_factory=dict)  # of a CronJob, as pods go with their nodes


@dataclass(frozen=True)
class Scene:
    """The cluster with everything in it, and the fires that count."""

    cluster: Cluster
    operator: Operator
    first: datetime
    sight: Sight

    def fires(self, name: str) -> list[datetime]:
        """Return the fires of a CronJob that count."""
        if name in STANDING:
            return [self.first + number * STANDING_EVERY for number in range(STANDING_FIRES)]
        if FULL and name not in LOST:
            return [self.first + number * EVERY for number in range(FIRES)]
        if name in ARMS:
            return [self.later + timedelta(minutes=1)]  # when next to nobody else fires: they are held to a tenth
        return [self.later] if name in LOST else [self.first]

    @property
    def tries(self) -> list[datetime]:
        """The fires at which the arms can be compared: the first, and should the machine be busy then, two more."""
        return [self.fires("cold")[0] + number * ARM_EVERY for number in range(ARM_TRIES)]

    @property
    def later(self) -> datetime:
        """The fire before which something is lost."""
        return self.first if FULL else self.first + timedelta(minutes=1)

    def took(self, names: Sequence[str]) -> dict[str, list[float]]:
        """Return how long the runs of those fires took to start, as far as they have."""
        found = {name: self.sight.starts.get(name, {}) for name in names}
        return {name: [found[name][at] for at in map(stamp, self.fires(name)) if at in found[name]] for name in names}

    def took_at(self, fire: datetime, names: Sequence[str]) -> dict[str, float]:
        """Return how long the runs of one fire took to start, as far as they have."""
        found = {name: self.sight.starts.get(name, {}).get(stamp(fire)) for name in names}
        return {name: seconds for name, seconds in found.items() if seconds is not None}

    def is_over(self, names: Sequence[str]) -> bool:
        """Whether all those runs have started."""
        return all(len(each) == len(self.fires(name)) for name, each in self.took(names).items())

    def is_warm(self, name: str) -> bool:
        """Whether the status of a Primer says of each of those runs that it was where capacity was held."""
        said = {each["fire"]: each["warm"] for each in primers.primed(self.cluster, name).get("startDelays", ())}
        return all(said.get(stamp(fire)) for fire in self.fires(name))

    def held(self, name: str) -> list[dict[str, Any]]:
        """Return the placeholders of a Primer."""
        there = primers.placeholders(self.cluster)
        return [pod for pod in there if pod["metadata"]["labels"]["foresail.dev/primer"] == name]


@contextmanager
def playing(cluster: Cluster, folder: Path) -> Iterator[Scene]:
    """Set everything up, run the operator, and let it all go in the end."""
    primers.install(cluster)
    cluster.apply(*_surroundings())
    flags = (*primers.FLAGS, primers.holding(WARM_UP))
    with operators.running(cluster, folder, *flags) as operator, _watching(cluster) as sight:
        scene = Scene(cluster, operator, primers.next_minute(WARM_UP.total_seconds() + 45), sight)
        jobs = _cron_jobs(scene)
        try:
            cluster.apply(*jobs, *_primers())
            yield scene
        finally:
            names = [job["metadata"]["name"] for job in jobs if job["metadata"]["namespace"] == "default"]
            for kind in ("cronjobs", "primers"):
                cluster.kubectl("delete", kind, *names, "--namespace=default", "--ignore-not-found", "--wait=false")
            cluster.kubectl("delete", "namespace", *_HOMES, "--wait=false")


def _surroundings() -> list[dict[str, Any]]:
    """Return the pools, namespaces, quotas and priorities."""
    at_once = {"consolidationPolicy": "WhenEmptyOrUnderutilized", "consolidateAfter": "0s"}
    special = {name: {"consolidateAfter": "30s"} for name in (*ARMS, "often")} | {"kept": at_once}
    pools = (*ARMS, *TIGHT, *LOST, *STANDING)
    restricted = {"pod-security.kubernetes.io/enforce": "restricted"}
    by_default = {"limits": [{"type": "Container", "defaultRequest": {"cpu": "3"}}]}
    return [
        *[primers.node_pool(name, NODES_TAKE, **special.get(name, {})) for name in pools],
        *[_namespace(name, restricted if name == "guarded" else {}) for name in _HOMES],
        _priority_class("low", -1000),
        _priority_class("meek", 1000, preemptionPolicy="Never"),
        *[_limits("ResourceQuota", "one-run", home, {"hard": {"requests.cpu": "2"}}) for home in ("tight", "lean")],
        _limits("LimitRange", "usual", "ranged", by_default),
        _limits("LimitRange", "small", "barred", {"limits": [{"type": "Pod", "max": {"cpu": "1"}}]}),
        *_volume("bound", ZONE),
    ]


def _cron_jobs(scene: Scene) -> list[dict[str, Any]]:
    when, later, often = (_schedule(scene.fires(name)) for name in ("unprimed", "struck", "often"))
    arms = _schedule(scene.fires("cold") if FULL else scene.tries)
    guarded = primers.cron_job("guarded", when, "guarded", "guarded")
    guarded["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["securityContext"] = _RESTRICTED
    ranged = primers.cron_job("ranged", when, "ranged", "ranged")
    del ranged["spec"]["jobTemplate"]["spec"]["template"]["spec"]["containers"][0]["resources"]
    asked = primers.cron_job("asked", "* * * * *", "none", "often")
    asked["spec"]["concurrencyPolicy"] = "Forbid"
    return [
        *[primers.cron_job(name, arms, name) for name in ARMS],
        *[primers.cron_job(name, when, name) for name in ("unprimed", "kept")],
        *[primers.cron_job(name, when, name, priorityClassName=name) for name in ("low", "meek")],
        *[primers.cron_job(name, when, name, name) for name in ("tight", "barred")],
        primers.cron_job("bound", when, "bound", volumes=_MOUNTED),
        guarded,
        ranged,
        *[primers.cron_job(name, later, name) for name in LOST],
        primers.cron_job("often", often, "often", "often", runs=STANDING_RUNS),
        primers.cron_job("lean", often, "lean", "lean"),
        primers.cron_job("spare", often, "spare", "often"),
        asked,
    ]


def _schedule(fires: Sequence[datetime]) -> str:
    """Return a schedule that has these fires, and none before."""
    return f"{','.join(str(fire.minute) for fire in fires)} * * * *"


def _primers() -> list[dict[str, Any]]:
    length, placeholder = f"{WARM_UP // timedelta(minutes=1)}m", partial(primers.primer, method="Placeholder")
    return [
        *[placeholder(name, length) for name in ("held", "low", "meek", "kept", "bound")],
        *[placeholder(name, length, name) for name in ("tight", "guarded", "ranged", "barred")],
        primers.primer("timed", length, method="CronJob"),
        *[placeholder(name, "4m") for name in LOST],
        placeholder("asked", "1m", "often"),
        placeholder("often", STANDING_WARM_UP, "often", allowStanding=True),
        placeholder("lean", STANDING_WARM_UP, "lean", allowStanding=True),
    ]


def in_zone(zone: str) -> dict[str, Any]:
    """Return a term of a node selector."""
    return {"matchExpressions": [{"key": "topology.kubernetes.io/zone", "operator": "In", "values": [zone]}]}


def _volume(name: str, zone: str) -> list[dict[str, Any]]:
    """Return a volume that can be reached from one zone alone, and the claim that has it."""
    size, owner = {"storage": "1Gi"}, {"namespace": "default", "name": name}
    spec = {"storageClassName": "", "accessModes": ["ReadWriteOnce"]}
    where = {"nodeAffinity": {"required": {"nodeSelectorTerms": [in_zone(zone)]}}}
    source = {"csi": {"driver": "disks.example.com", "volumeHandle": name}, "claimRef": owner, "capacity": size}
    wants = {"volumeName": name, "resources": {"requests": size}}
    return [
        {
            "apiVersion": "v1",
            "kind": "PersistentVolume",
            "metadata": {"name": name},
            "spec": {**spec, **source, **where},
        },
        {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": owner, "spec": {**spec, **wants}},
    ]


def _namespace(name: str, labels: dict[str, str]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def _priority_class(name: str, value: int, **fields: str) -> dict[str, Any]:
    kind = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    return {**kind, "metadata": {"name": name}, "value": value, **fields}


def _limits(kind: str, name: str, space: str, spec: dict[str, Any]) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": kind, "metadata": {"name": name, "namespace": space}, "spec": spec}


@contextmanager
def _watching(cluster: Cluster) -> Iterator[Sight]:
    sight = Sight()

    def look() -> None:
        held: dict[str, int] = {}
        nodes: dict[str, set[str]] = {}
        for pod in primers.placeholders(cluster):
            primer = pod["metadata"]["labels"]["foresail.dev/primer"]
            held[primer] = held.get(primer, 0) + 1
            sight.specs[primer] = pod["spec"]
        for node in cluster.listed("/apis/karpenter.sh/v1/nodeclaims"):  # from when Karpenter asks for them
            pool = node["metadata"]["labels"]["karpenter.sh/nodepool"]
            nodes.setdefault(pool, set()).add(node["metadata"]["name"])
        for name, started in primers.delays_by_fire(cluster, (*ARMS, *TIGHT, *LOST, *STANDING)).items():
            sight.starts.setdefault(name, {}).update(started)
        for primer, count in held.items():
            sight.held[primer] = max(count, sight.held.get(primer, 0))
        for pool, names in nodes.items():
            sight.nodes[pool] = max(len(names), sight.nodes.get(pool, 0))
            sight.ever.setdefault(pool, set()).update(names)

    with meanwhile(look, every=0.5):
        yield sight
