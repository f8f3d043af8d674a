"""How long the commands take that people type often, beside kubectl: `make bench-hand`, also `ROUNDS=3`.

Each command and its counterpart run in turn against a real API server, as their own processes, 20 times. The figures
are medians. The last line is one JSON object. It fails if a command takes longer than its multiple of kubectl.
"""

import argparse
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any

import msgspec

from bench import MeasurementError
from bench.figures import Bounds, measured, verdict
from bench.selfservice.world import create_namespaces, install_policy, world
from bench.writing import create_all, write_all
from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.cli.output.table import table
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.plan import Body, Key, Kind
from testbed import Cluster
from testbed.build import program

ROUNDS = 20
_SHOP, _VELERO = "shop", "velero"
_BACKUPS, _SCHEDULES, _RUNS = 20, 20, 10


@dataclass(frozen=True, slots=True)
class Pair:
    """A command of ours, that of kubectl which shows the same object, and how many times as long ours may take."""

    name: str
    ours: str
    kubectl: str
    most: float | None = None


PAIRS = (
    Pair("backup_get", f"backup get -n {_SHOP}", f"get nab -n {_SHOP}", 2),
    Pair("backup_describe", f"backup describe own-0 -n {_SHOP}", f"describe nab own-0 -n {_SHOP}", 3),
    Pair("schedule_get", "schedule get", f"get schedules.velero.io -n {_VELERO}", 3),
    Pair("schedule_describe", "schedule describe nightly-0", f"describe schedules.velero.io nightly-0 -n {_VELERO}", 3),
    Pair("policy_get", "policy get", "get ssp,sp"),
    Pair("doctor", "doctor", f"get deployments,pods -n {_VELERO}"),
)
BOUNDS: Bounds = {
    f"{pair.name}_ratio is at most {pair.most:g}": partial(
        lambda pair, figures: figures[f"{pair.name}_ratio"] <= pair.most, pair
    )
    for pair in PAIRS
    if pair.most is not None
}


def populate(cluster: Cluster) -> None:
    """Create a namespace with backups of a team, and Schedules with their runs."""
    create_namespaces(cluster, [_SHOP])
    install_policy(cluster)
    started = now() - timedelta(hours=2)
    ended = {
        "phase": "Completed",
        "startTimestamp": stamp(started),
        "completionTimestamp": stamp(started),
        "expiration": stamp(started + timedelta(days=30)),
        "progress": {"totalItems": 40, "itemsBackedUp": 40},
    }
    own = [Key(_SHOP, f"own-{number}") for number in range(_BACKUPS)]
    create_all(cluster, NON_ADMIN_BACKUP, (_named(NON_ADMIN_BACKUP, key, spec={"backupSpec": {}}) for key in own))
    status = {"phase": "Created", "veleroBackup": {"name": "v", "status": ended}}
    write_all(cluster, (partial(_set_status, key=key, status=status) for key in own))
    names = [f"nightly-{number}" for number in range(_SCHEDULES)]
    spec = {"schedule": "0 3 * * *", "template": {"includedNamespaces": [_SHOP]}}
    create_all(cluster, velero.SCHEDULE, (_named(velero.SCHEDULE, Key(_VELERO, name), spec=spec) for name in names))
    runs = [(name, Key(_VELERO, f"{name}-{turn}")) for name in names for turn in range(_RUNS)]
    create_all(
        cluster,
        velero.BACKUP,
        (
            _named(velero.BACKUP, key, {velero.SCHEDULE_LABEL: name}, spec=spec["template"], status=ended)
            for name, key in runs
        ),
    )
    policy = {"selector": {}, "retention": {"keepLast": 3}}
    create_all(cluster, SCHEDULE_POLICY, [_named(SCHEDULE_POLICY, Key("", "nights"), spec=policy)])


async def _set_status(client: Client, *, key: Key, status: Mapping[str, Any]) -> object:
    return await client.merge(NON_ADMIN_BACKUP, key, {"status": status}, msgspec.Raw, "status")


def _named(kind: Kind, key: Key, labels: Mapping[str, str] | None = None, **rest: object) -> tuple[Key, Body]:
    place = {"namespace": key.namespace} if key.namespace else {}
    metadata = {"name": key.name, **place, "labels": labels or {}}
    return key, {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **rest}


def measure(cluster: Cluster, rounds: int, folder: Path) -> dict[str, Any]:
    """Run each pair in turn, and return the medians in milliseconds and their ratios."""
    kubectl = [str(program(cluster.site.options.kubernetes, "kubectl")), f"--cache-dir={folder}"]
    kubeconfig = folder / "config"  # as kubectl writes it
    kubeconfig.write_text(cluster.kubectl("config", "view", "--raw", "--flatten", "--output=yaml"))
    ours = [sys.executable, "-m", "foresail"]
    times: dict[str, list[float]] = {}
    for turn in range(rounds + 1):  # the first fills caches
        for pair in PAIRS:
            for side, command in (
                ("ours", [*ours, *pair.ours.split()]),
                ("kubectl", [*kubectl, *pair.kubectl.split()]),
            ):
                took = _timed(kubeconfig, command)
                if turn:
                    times.setdefault(f"{pair.name}/{side}", []).append(took)
    figures: dict[str, Any] = {"rounds": rounds, "load": round(os.getloadavg()[0], 1)}
    for pair in PAIRS:
        own, other = (1000 * median(times[f"{pair.name}/{side}"]) for side in ("ours", "kubectl"))
        figures |= {f"{pair.name}_ms": round(own), f"{pair.name}_kubectl_ms": round(other)}
        figures[f"{pair.name}_ratio"] = round(own / other, 2)
    return figures


def _timed(kubeconfig: Path, command: Sequence[str]) -> float:
    """Return how long a command takes; the doctor may find problems."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    environment["KUBECONFIG"] = str(kubeconfig)
    began = time.perf_counter()
    done = subprocess.run(command, capture_output=True, text=True, env=environment, check=False)
    took = time.perf_counter() - began
    if done.returncode and (done.returncode != 1 or command[-1] != "doctor"):
        raise MeasurementError(f"{' '.join(command)}: {done.stderr}")
    return took


def shown(figures: Mapping[str, Any]) -> str:
    """Return the figures as a table."""
    rows = [
        (
            f"foresail {pair.ours}",
            f"{figures[f'{pair.name}_ms']} ms",
            f"kubectl {pair.kubectl}",
            f"{figures[f'{pair.name}_kubectl_ms']} ms",
            f"{figures[f'{pair.name}_ratio']:.1f}",
            f"{pair.most:g}" if pair.most is not None else "-",
        )
        for pair in PAIRS
    ]
    return table(("COMMAND", "MEDIAN", "BESIDE", "MEDIAN", "RATIO", "BOUND"), rows)


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.hand", description=__doc__)
    parser.add_argument("--rounds", type=int, default=ROUNDS, help="how often each command runs")
    args = parser.parse_args()
    with world() as cluster, tempfile.TemporaryDirectory() as folder:
        populate(cluster)
        figures = measure(cluster, args.rounds, Path(folder))
    print(shown(figures))
    return verdict(figures, measured(BOUNDS, figures))


if __name__ == "__main__":
    sys.exit(main())
