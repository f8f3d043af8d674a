"""CronJobs whose nodes CapacityBuffers keep warm, beside one that nobody primes, on a cluster with real Karpenter."""

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from itertools import pairwise
from pathlib import Path
from typing import Any

from foresail.api.instants import stamp
from foresail.kube.clock import now
from testbed import Cluster
from tests.cluster import operators, primers
from tests.cluster.meanwhile import meanwhile
from tests.cluster.operators import Operator
from tests.cluster.schedules import FULL

NODES_TAKE = 60 if FULL else 20
FIRES = 5 if FULL else 1
EVERY = timedelta(minutes=4)
WARM_UP = timedelta(minutes=2) if FULL else timedelta(minutes=1)
COLD, BUFFERED, CONTESTED = ARMS = ("unheld", "buffered", "contested")
TAKEN_BEFORE = timedelta(seconds=10)
"""How long before each fire a stranger takes the place in the pool of the contested CronJob."""

_HOSTNAME = "kubernetes.io/hostname"
_API = "/apis/autoscaling.x-k8s.io/v1beta1/capacitybuffers"


@dataclass
class Sight:
    """What there has been, looked at twice a second."""

    starts: dict[str, dict[str, float]] = field(default_factory=dict)  # of a CronJob, by the fire
    placeholders: set[str] = field(default_factory=set)
    nodes: dict[str, list[tuple[datetime, int]]] = field(default_factory=dict)  # how many a pool had, and when
    buffers: set[str] = field(default_factory=set)


@dataclass(frozen=True)
class BufferScene:
    """The cluster with everything in it, and the fires that count."""

    cluster: Cluster
    operator: Operator
    fires: list[datetime]
    sight: Sight

    def took(self, name: str) -> list[float]:
        """Return how long the runs took to start, as far as they have."""
        found = self.sight.starts.get(name, {})
        return [found[at] for at in map(stamp, self.fires) if at in found]

    def delays(self, name: str) -> dict[str, dict[str, Any]]:
        """Return what the status of a Primer says of the starts, by the fire."""
        return {each["fire"]: each for each in primers.primed(self.cluster, name).get("startDelays", ())}

    def refilled(self, pool: str, fire: datetime) -> float:
        """Return for how many node-seconds a pool had more than one node from a fire until the next warm-up."""
        looks = [each for each in self.sight.nodes.get(pool, ()) if fire <= each[0] < fire + EVERY - WARM_UP]
        return sum(max(count - 1, 0) * (later - at).total_seconds() for (at, count), (later, _) in pairwise(looks))


def contest(cluster: Cluster) -> bool:
    """Let strangers' pods take the place that is kept for the contested CronJob; False if there is no node yet."""
    nodes = cluster.get("nodes", f"--selector=karpenter.sh/nodepool={CONTESTED}")["items"]
    strangers = [_stranger(number, node) for number, node in enumerate(nodes)]
    if strangers:
        cluster.apply(*strangers)
    return bool(strangers)


def _stranger(number: int, node: dict[str, Any]) -> dict[str, Any]:
    cpu = node["status"]["allocatable"]["cpu"]
    thousandths = int(cpu[:-1]) if cpu.endswith("m") else 1000 * int(cpu)
    requests = {"cpu": f"{thousandths - 1000}m"}  # so that a run has no room beside it
    spec = {
        "containers": [{"name": "stranger", "image": "any:1", "resources": {"requests": requests}}],
        "nodeSelector": {_HOSTNAME: node["metadata"]["labels"][_HOSTNAME]},
        "tolerations": [{"key": "only", "operator": "Equal", "value": CONTESTED}],
        "terminationGracePeriodSeconds": 0,
    }
    metadata = {"name": f"stranger-{number}", "namespace": "default", "labels": {"is": "stranger"}}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec}


def leave(cluster: Cluster) -> None:
    """Let the strangers go."""
    cluster.kubectl("delete", "pods", "--selector=is=stranger", "--namespace=default")


def left_behind(cluster: Cluster) -> list[str]:
    """Return the names of all buffers and PodTemplates."""
    found = [*cluster.listed(_API), *cluster.listed("/api/v1/podtemplates")]
    return [each["metadata"]["name"] for each in found]


@contextmanager
def playing(cluster: Cluster, folder: Path) -> Iterator[BufferScene]:
    """Set everything up and run the operator."""
    primers.install(cluster)
    cluster.apply(*[primers.node_pool(arm, NODES_TAKE, consolidateAfter="5s") for arm in ARMS])
    with operators.running(cluster, folder, *primers.FLAGS) as operator, _watching(cluster) as sight:
        first = primers.next_minute(WARM_UP.total_seconds() if FULL else 2 * NODES_TAKE)  # a warm-up may have begun
        fires = [first + number * EVERY for number in range(FIRES)]
        schedule = f"{','.join(str(fire.minute) for fire in fires)} * * * *"
        length = f"{WARM_UP // timedelta(minutes=1)}m"
        made = [primers.primer(BUFFERED, length), primers.primer(CONTESTED, length, method="CapacityBuffer")]
        cluster.apply(*[primers.cron_job(arm, schedule, arm) for arm in ARMS], *made)
        yield BufferScene(cluster, operator, fires, sight)


@contextmanager
def _watching(cluster: Cluster) -> Iterator[Sight]:
    sight = Sight()

    def look() -> None:
        at, counts = now(), dict.fromkeys(ARMS, 0)
        for claim in cluster.listed("/apis/karpenter.sh/v1/nodeclaims"):  # from when Karpenter asks for them
            pool = claim["metadata"]["labels"]["karpenter.sh/nodepool"]
            counts[pool] = counts.get(pool, 0) + 1
        for pool, count in counts.items():
            sight.nodes.setdefault(pool, []).append((at, count))
        for name, started in primers.delays_by_fire(cluster, ARMS).items():
            sight.starts.setdefault(name, {}).update(started)
        sight.placeholders |= {pod["metadata"]["name"] for pod in primers.placeholders(cluster)}
        sight.buffers |= {each["metadata"]["name"] for each in cluster.listed(_API)}

    with meanwhile(look, every=0.5):
        yield sight
