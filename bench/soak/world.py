"""The one cluster of the soak: Velero, S3, nodes, both charts, and replicas of the operator that come and go."""

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from bench import MeasurementError
from bench.operator import Operator
from bench.soak.program import Numbers
from bench.soak.seen import Life
from foresail.api.marks import LEASES, SELF_SERVICE_LEASE
from foresail.api.policy import OPT_IN_LABEL, OPT_IN_VALUE, SELF_SERVICE_POLICY
from testbed import Cluster, Options
from testbed.build import program
from testbed.charts import CHARTS

FLAGS = (f"--lease-name={SELF_SERVICE_LEASE}", "--self-service", "--primers", "--primer-pause-image=pause")
_SWITCHES = (
    "selfService.enabled=true,selfService.requesterStamp=Always,"
    "primers.enabled=true,primers.pauseImage=pause,replicas=0"
)
# In a cluster each capability runs apart, behind a fence. Here one process has everything, so that what it holds and
# does is seen in one place; so it has all roles, and the fences of single capabilities are away.
_ROLES = (("ClusterRole", "foresail-primers"), ("ClusterRole", "foresail-schedules"), ("Role", "foresail-schedules"))
_FENCES = tuple(f"{name}-fence" for name in LEASES)


def _too(kind: str, role: str) -> dict[str, object]:
    """Return the binding by which the one process has another role too."""
    api = "rbac.authorization.k8s.io"
    place = {"namespace": "velero"} if kind == "Role" else {}
    return {
        "apiVersion": f"{api}/v1",
        "kind": f"{kind}Binding",
        "metadata": {"name": f"soak-{role}", **place},
        "roleRef": {"apiGroup": api, "kind": kind, "name": role},
        "subjects": [{"kind": "ServiceAccount", "name": SELF_SERVICE_LEASE, "namespace": "velero"}],
    }


@contextmanager
def world(numbers: Numbers) -> Iterator[Cluster]:
    """Bring up the cluster with all three capabilities installed, and tenants without quotas."""
    options = Options(velero="velero", nodes=numbers.nodes)
    with Cluster.create(f"soak-{os.getpid()}", options, owned=True) as cluster:
        _install(cluster, "foresail-crds")
        cluster.wait_for_kinds()
        _install(cluster, "foresail", f"--set={_SWITCHES}")
        for kind_of_role, role in _ROLES:
            cluster.apply(_too(kind_of_role, role))
        cluster.kubectl("delete", "validatingadmissionpolicybindings", "--ignore-not-found", *_FENCES)
        spec = {"namespaceSelector": {"matchLabels": {OPT_IN_LABEL: OPT_IN_VALUE}}}
        policy = {"apiVersion": SELF_SERVICE_POLICY.api_version, "kind": SELF_SERVICE_POLICY.name}
        cluster.apply({**policy, "metadata": {"name": "soak"}, "spec": spec})
        yield cluster


def _install(cluster: Cluster, chart: str, *words: str) -> None:
    command = [str(program("helm", "helm")), "template", "foresail", str(CHARTS / chart), "--namespace=velero", *words]
    rendered = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    cluster.kubectl("apply", "--server-side", "--force-conflicts", "--filename=-", text=rendered)


class Replicas:
    """The processes of the operator, two at a time; one that was killed is followed by another of a new name."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.lives: list[Life] = []
        self.running: dict[str, Operator] = {}
        self._cluster, self._folder = cluster, folder

    def start(self) -> Operator:
        """Start one more."""
        name = f"replica-{len(self.lives) + 1}"
        self.lives.append(Life(name))
        one = Operator(self._cluster, *FLAGS, identity=name, log=self._folder / f"{name}.log")
        self.running[name] = one
        return one

    def kill(self, name: str) -> None:
        """End one with SIGKILL."""
        self._end(name, "killed")

    def end(self) -> None:
        """End all of them."""
        for name in list(self.running):
            self._end(name, "")

    def collect(self) -> list[str]:
        """Put another in the place of each that ended by itself; return their names."""
        dead = [name for name, one in self.running.items() if one.ended is not None]
        for name in dead:
            self._end(name, f"ended by itself with {self.running[name].ended}")
            self.start()
        return dead

    def sample(self, seconds_of: float, leader: str) -> None:
        """Note what each holds now, and who leads."""
        for life in self.lives:
            one = self.running.get(life.name)
            if one is not None:
                with suppress(MeasurementError, FileNotFoundError):
                    held = one.memory_mib()
                    life.samples.append((round(seconds_of - one.began, 1), round(held, 2)))
                    life.peak = max(life.peak, one.memory_mib("VmHWM"))
                if life.name == leader and life.led is None:
                    life.led = round(seconds_of - one.began, 1)

    def figures(self) -> dict[str, dict[str, float]]:
        """Return the metrics of each."""
        return {name: one.figures() for name, one in self.running.items()}

    def _end(self, name: str, how: str) -> None:
        one = self.running.pop(name)
        one.__exit__(None, None, None)
        next(each for each in self.lives if each.name == name).end = how
