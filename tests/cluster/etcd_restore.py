"""etcd is restored to an earlier state again and again: `make etcd-restore ROUNDS=20`.

Each round copies etcd, lets Schedules run and retention delete, and restores the copy at a random moment. The operator
runs on, or starts before, with or after Velero, as docs/how-to/disaster-recovery.md says. The last line is JSON.
"""

import argparse
import json
import os
import random
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from foresail.api.instants import instant
from foresail.kube.clock import now
from testbed import Cluster, Options
from testbed.replicas import CONTROLLER_MANAGER
from testbed.velero import VELERO

CRDS = Path(__file__).parents[2] / "charts" / "foresail-crds" / "templates"
ORDERS = ("running", "before", "with", "after")
KEEP_LAST = 3
_STUCK_SECONDS = 360.0
_ABSENT_SECONDS = 60.0


def main(rounds: int, seed: int, *, ha: bool) -> int:
    """Live through the rounds; the exit code is 1 if a copy was lost, an absent Schedule ran, or something is stuck."""
    chance = random.Random(seed)  # noqa: S311 - no secret
    total = {"good_copies_lost": 0, "runs_of_absent_schedules": 0, "stuck": 0}
    with Cluster.create(f"etcd-restore-{os.getpid()}", Options(velero="velero", ha=ha), owned=True) as cluster:
        for each in sorted(CRDS.glob("*.yaml")):
            cluster.kubectl("apply", "--server-side", f"--filename={each}")
        cluster.kubectl("create", "configmap", "data", "--namespace=default", "--from-literal=a=b")
        cluster.apply(policy())
        for number in range(rounds):
            order = ORDERS[number % len(ORDERS)]
            found = Round(cluster, number, order, chance).play()
            print(f"round {number + 1} of {rounds}, operator {order} Velero: {found}", flush=True)
            for name, count in found.items():
                total[name] += count
    print(json.dumps({"rounds": rounds, "seed": seed, **total}))
    return 1 if any(total.values()) else 0


def policy() -> dict[str, Any]:
    """Return the SchedulePolicy of all Schedules."""
    spec = {"selector": {}, "retention": {"keepLast": KEEP_LAST}}
    return {"apiVersion": "foresail.dev/v1alpha1", "kind": "SchedulePolicy", "metadata": {"name": "keep"}, "spec": spec}


def schedule(name: str) -> dict[str, Any]:
    """Return a Schedule that runs every minute."""
    template = {"includedNamespaces": ["default"], "includedResources": ["configmaps"], "ttl": "720h0m0s"}
    spec = {"schedule": "* * * * *", "skipImmediately": True, "template": template}
    metadata = {"name": name, "namespace": "velero"}
    return {"apiVersion": "velero.io/v1", "kind": "Schedule", "metadata": metadata, "spec": spec}


class Round:
    """One restore, and what became of the copies, the runs and the Schedules."""

    def __init__(self, cluster: Cluster, number: int, order: str, chance: random.Random) -> None:
        self.cluster, self.order, self.chance = cluster, order, chance
        self.kept, self.ghost = f"kept{number}", f"ghost{number}"
        self.log = cluster.folder / "operator.log"
        self.operator: subprocess.Popen[bytes] | None = None

    def play(self) -> dict[str, int]:
        """Play the round and return what went wrong, counted."""
        try:
            return self._play()
        finally:
            self._stop_operator()
            self.cluster.kubectl("delete", "schedules.velero.io", "--all", "--namespace=velero")

    def _play(self) -> dict[str, int]:
        self.cluster.apply(schedule(self.kept))
        self._start_operator()
        self._wait(lambda: self._good(self.kept), "the first run")
        saved = self.cluster.fault.save_etcd()
        self.cluster.apply(schedule(self.ghost))
        self._wait(lambda: self._good(self.ghost), "the run of a Schedule that the copy does not have")
        time.sleep(self.chance.uniform(0, 90))
        good, known = self._good(self.kept), {*self._backups(self.kept), *self._backups(self.ghost)}
        self._restore(saved)
        restored = now().timestamp()
        stuck = not self._wait_quietly(lambda: self._good(self.kept) - good, _STUCK_SECONDS)
        time.sleep(max(restored + 2.5 * _ABSENT_SECONDS - now().timestamp(), 30))
        after = self._good(self.kept)
        stored = {each.split("/")[-2] for each in self.cluster.bucket_objects() if each.endswith("velero-backup.json")}
        newest = sorted(good | after)[-KEEP_LAST:]  # the names have the slots
        runs = {
            name: made for name, made in self._backups(self.ghost).items() if name not in known and name not in good
        }
        return {
            "good_copies_lost": sum(name not in stored for name in newest),
            "runs_of_absent_schedules": sum(made > restored + _ABSENT_SECONDS for made in runs.values()),
            "stuck": int(stuck),
        }

    def _restore(self, saved: Path) -> None:
        """Restore the copy, with the operator in the order of this round."""
        fault = self.cluster.fault
        if self.order != "running":
            self._stop_operator()
        for each in (VELERO, CONTROLLER_MANAGER):
            fault.kill(each)
        fault.restore_etcd(saved)
        fault.start(CONTROLLER_MANAGER)
        if self.order in ("before", "with"):
            self._start_operator()
        if self.order == "before":
            time.sleep(15)
        fault.start(VELERO)
        if self.order == "after":
            began = now().timestamp()
            self._wait(lambda: self._synced() > began, "Velero's sync")
            self._start_operator()

    def _synced(self) -> float:
        """Return when Velero last compared its Backups with the bucket."""
        found = self.cluster.get("backupstoragelocation", "default", "--namespace=velero")
        at = instant(found.get("status", {}).get("lastSyncedTime", ""))
        return at.timestamp() if at is not None else 0.0

    def _backups(self, name: str) -> dict[str, float]:
        """Return the Backups of a Schedule and when their objects were created."""
        label = f"--selector=velero.io/schedule-name={name}"
        items = self.cluster.get("backups.velero.io", "--namespace=velero", label)["items"]
        times = ((each["metadata"]["name"], instant(each["metadata"]["creationTimestamp"])) for each in items)
        return {found: at.timestamp() for found, at in times if at is not None}

    def _good(self, name: str) -> set[str]:
        label = f"--selector=velero.io/schedule-name={name}"
        items = self.cluster.get("backups.velero.io", "--namespace=velero", label)["items"]
        return {each["metadata"]["name"] for each in items if each.get("status", {}).get("phase") == "Completed"}

    # Processes

    def _start_operator(self) -> None:
        where = [f"--kubeconfig={self.cluster.kubeconfig}", "--identity=operator", "--host=127.0.0.1", "--port=0"]
        with self.log.open("ab") as log:
            command = [sys.executable, "-m", "foresail", "operator", "run", *where]
            self.operator = subprocess.Popen(command, stdout=log, stderr=log)

    def _stop_operator(self) -> None:
        if self.operator is not None:
            self.operator.kill()
            self.operator.wait()
            self.operator = None

    # Waiting

    def _wait(self, condition: Callable[[], object], what: str) -> None:
        if not self._wait_quietly(condition, _STUCK_SECONDS):
            raise SystemExit(f"{what} did not come within {_STUCK_SECONDS:g} s:\n{self.log.read_text()[-4000:]}")

    def _wait_quietly(self, condition: Callable[[], object], seconds: float) -> bool:
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            if condition():
                return True
            time.sleep(2)
        return False


if __name__ == "__main__":
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--rounds", type=int, default=20, help="how often etcd is restored (%(default)s)")
    options.add_argument("--seed", type=int, default=1, help="of all chance (%(default)s)")
    options.add_argument("--ha", action="store_true", help="with three members of etcd and three API servers")
    chosen = options.parse_args()
    sys.exit(main(chosen.rounds, chosen.seed, ha=chosen.ha))
