"""The hour itself: faults at their instants, and somebody who looks after the cluster between them."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta

from bench import MeasurementError
from bench.soak import evidence
from bench.soak.load import load
from bench.soak.program import LEADER, Blow, blows
from bench.soak.record import Record
from bench.soak.seen import Fault, Seen, Stuck
from bench.soak.world import Replicas
from foresail.api.instants import stamp
from foresail.kube.clock import now
from foresail.schedules.reasons import Reason
from testbed import Cluster, TestbedError
from testbed.control_plane import APISERVER
from testbed.velero import S3, VELERO

_SAMPLE, _PROGRESS, _DOCTOR = 10.0, 30.0, 300.0  # seconds
_TO_BE_SEEN = 90.0  # seconds after which a fault that nobody has seen counts as unseen
_LONGER = 120.0  # seconds that Velero stays away at most for somebody to want something of it


class Hour:
    """Kills and starts again, samples, says how it goes, and does what the doctor says."""

    def __init__(self, cluster: Cluster, replicas: Replicas, record: Record, seen: Seen) -> None:
        self._cluster, self._replicas, self._record, self._seen = cluster, replicas, record, seen
        self._loading = record.begin(load)
        self._away = ""
        self._due: dict[str, float] = {}

    def live(self) -> None:
        """Let the faults come, each a while after the one before, and then wait for the end."""
        self.wait(self._seen.begins)
        for blow in blows(self._seen.seed, self._seen.numbers.minutes):
            self.wait(now() + timedelta(seconds=blow.after))
            if now() + timedelta(seconds=blow.away) > self._seen.ends:
                break  # it takes longer than planned until faults are over
            self._strike(blow)
        self.wait(self._seen.ends)
        if not self._loading.done():
            raise MeasurementError("tenants are not done: writes take too long")

    def wait(self, until: datetime) -> None:
        """Look after everything until then."""
        while now() < until:
            self.tick()
            time.sleep(max(min(1.0, (until - now()).total_seconds()), 0.0))

    def tick(self) -> None:
        """Do what is due."""
        if self._loading.done():
            self._loading.result()  # what went wrong with it ends everything
        if self._is_due("sample", _SAMPLE):
            self._replicas.sample(time.monotonic(), self._seen.leaders[-1][1] if self._seen.leaders else "")
            self._keep_running()
        if self._is_due("progress", _PROGRESS):
            self._say_how_it_goes()
        if self._is_due("doctor", _DOCTOR):
            self.ask_the_doctor()

    def _is_due(self, what: str, every: float) -> bool:
        at = time.monotonic()
        if at < self._due.get(what, at):
            return False
        self._due[what] = at + every
        return True

    # Faults

    def _strike(self, blow: Blow) -> None:
        before = self._replicas.figures()
        self._away = blow.kind
        fault = Fault(blow.kind, now())
        self._seen.faults.append(fault)
        victim = self._seen.leaders[-1][1] if self._seen.leaders else ""
        if blow.kind == LEADER:
            self._replicas.kill(victim if victim in self._replicas.running else next(iter(self._replicas.running)))
        else:
            self._cluster.fault.kill(blow.kind)
        print(f"{stamp(fault.at)} killed: {victim if blow.kind == LEADER else blow.kind}", flush=True)
        self.wait(fault.at + timedelta(seconds=blow.away))
        self._look(fault, before, _LONGER if blow.kind == VELERO else 0.0)
        if blow.kind == LEADER:
            self._replicas.start()
        else:
            self._start(blow.kind)
        fault.back, self._away = now(), ""
        self._look(fault, before, _TO_BE_SEEN)
        took = (fault.back - fault.at).total_seconds()
        print(f"{stamp(now())} back after {took:.0f} s; seen: {'; '.join(fault.seen) or 'nowhere'}", flush=True)

    def _look(self, fault: Fault, before: evidence.Figures, seconds: float) -> None:
        """Look for signs of a fault until there are any."""
        until = now() + timedelta(seconds=seconds)
        while not fault.seen:
            fault.seen = list(_EVIDENCE[fault.kind](self._seen, fault, before, self._replicas.figures()))
            if now() >= until:
                return
            self.wait(now() + timedelta(seconds=2))

    def _start(self, component: str) -> None:
        """Start a component, and once more if it does not come up: a kubelet would not give up either."""
        try:
            self._cluster.fault.start(component)
        except TestbedError as problem:
            print(f"{stamp(now())} {problem}", flush=True)
            if self._cluster.status()[component]:
                self._cluster.fault.kill(component)
            self._cluster.fault.start(component)

    # Somebody who looks after it

    def _keep_running(self) -> None:
        """Start again what ended by itself, as a kubelet does."""
        for name in self._replicas.collect():
            print(f"{stamp(now())} {name} ended by itself", flush=True)
        for component, pids in self._cluster.status().items():
            if pids or self._away in (component, APISERVER):
                continue
            fault = Fault(f"{component} by itself", now(), seen=["it was found ended"])
            self._start(component)
            fault.back = now()
            self._seen.faults.append(fault)
            print(f"{stamp(fault.at)} {component} had ended by itself, and was started again", flush=True)

    def ask_the_doctor(self) -> None:
        """Ask the doctor for Backups that are stuck, and do what it says."""
        command = [sys.executable, "-m", "foresail", "doctor", "--output=json"]
        command.append(f"--kubeconfig={self._cluster.kubeconfig}")
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if self._away or not done.stdout:
            return
        for each in json.loads(done.stdout):
            if each["about"] == "stuck":
                mended = self._mend(each["fix"])
                self._seen.stuck.append(Stuck(now(), each["says"], mended))
                print(f"{stamp(now())} the doctor: {each['says']}; fix done: {mended}", flush=True)

    def _mend(self, fix: str) -> bool:
        words = fix.partition("kubectl ")[2].split()
        try:
            if words[:1] == ["annotate"]:
                self._cluster.kubectl(*words, "--overwrite")
            elif words[:2] == ["rollout", "restart"]:
                self._cluster.fault.restart(VELERO)
            else:
                return False
        except TestbedError as problem:
            print(f"{stamp(now())} {problem}", flush=True)
            return False
        return True

    def _say_how_it_goes(self) -> None:
        leader = evidence.leader(self._replicas.figures())  # and so metrics are read as often as a Prometheus does
        seen = self._record.copy()
        ours = [each for each in seen.made.values() if each.created >= seen.begins and not each.gone]
        phases = Counter(each.phases[-1][1] or "New" for each in ours)
        held = Counter("held" if each.gone is None else "let go" for each in seen.held.values())
        memory = ", ".join(
            f"{life.name} {life.samples[-1][1]:.0f}"
            for life in self._replicas.lives
            if life.name in self._replicas.running and life.samples
        )
        minutes = (now() - seen.begins).total_seconds() / 60
        print(
            f"{stamp(now())} {minutes:5.1f} min: {len(ours)} Backups {dict(phases)}, {dict(held)} placeholders,"
            f" {sum(each.live for each in seen.asked)} requests, {len(seen.faults)} faults,"
            f" {self._away or 'nothing'} away, {leader or 'nobody'} leads, MiB: {memory}",
            flush=True,
        )


def _of_apiserver(_seen: Seen, _fault: Fault, before: evidence.Figures, figures: evidence.Figures) -> Iterator[str]:
    yield from evidence.watches_restarted(before, figures)


def _of_leader(seen: Seen, fault: Fault, _before: evidence.Figures, figures: evidence.Figures) -> Iterator[str]:
    yield from evidence.lead_moved(seen, fault.at, figures)


def _of_velero(_seen: Seen, _fault: Fault, before: evidence.Figures, figures: evidence.Figures) -> Iterator[str]:
    yield from evidence.requests_wait(before, figures)


def _of_s3(seen: Seen, fault: Fault, _before: evidence.Figures, figures: evidence.Figures) -> Iterator[str]:
    yield from evidence.location_away(figures)
    yield from evidence.said_since(seen, fault.at, Reason.LOCATION_UNAVAILABLE)


_EVIDENCE: dict[str, Callable[[Seen, Fault, evidence.Figures, evidence.Figures], Iterator[str]]] = {
    APISERVER: _of_apiserver,
    LEADER: _of_leader,
    VELERO: _of_velero,
    S3: _of_s3,
}
