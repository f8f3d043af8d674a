"""Kills the operator, self-service and Velero in Rollbacks, in simulated worlds and on a real cluster.

In worlds a death is at a write of the operator, with a fault at a step; on the cluster at any moment. The judges know
nothing of the operator's rules: they compare what is there with what was. The last line is one JSON object.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from testbed import Cluster, Options
from testbed.errors import TestbedError
from tests.cluster import tenants
from tests.cluster.operators import Operator
from tests.cluster.rollbacks import ENDED, FLAGS, Home, State, allow
from tests.worlds.rollback_histories import every_case, every_volume_case, lived, some_cases

POINTS, REAL = 10_000, 60
"""Deaths in worlds, and kills on the cluster."""

WRONG = ("lost_volumes", "not_resumed", "worse", "left_behind")
KUSTOMIZATION = "kustomizations.kustomize.toolkit.fluxcd.io"
_SELF_SERVICE = ("--schedules=false", "--self-service", "--lease-name=foresail-self-service")
_AT_A_TIME = 3  # namespaces that are rolled back together
_PART = 50
_LONGEST = 900.0
_IN_PROGRESS = "foresail.dev/rollback-in-progress"


@dataclass
class Found:
    """What was tried, and what was wrong."""

    points: int = 0
    lives: int = 0
    wrong: dict[str, list[str]] = field(default_factory=lambda: {name: [] for name in WRONG})
    ends: Counter[str] = field(default_factory=Counter)

    def add(self, other: "Found") -> None:
        """Take in what another part has found."""
        self.points += other.points
        self.lives += other.lives
        self.ends += other.ends
        for name in WRONG:
            self.wrong[name] += other.wrong[name]


# In worlds


def part(number: int, seed: int) -> Found:
    """Live through so many histories with faults and deaths."""
    found = Found()
    for case in some_cases(number, seed, (*every_case(), *every_volume_case())):
        result = lived(case)
        found.points += result.deaths
        found.lives += 1
        found.ends[result.phase] += 1
        for name in WRONG:
            found.wrong[name] += [f"{case}: {text}" for text in getattr(result.judged, name)]
    return found


def in_worlds(points: int, seed: int) -> Found:
    """Live through histories until there were so many deaths."""
    found = Found()
    with ProcessPoolExecutor() as pool:
        at_a_time = os.cpu_count() or 1
        while found.points < points:
            seeds = range(seed, seed + at_a_time)
            seed += at_a_time
            for one in pool.map(part, [_PART] * at_a_time, seeds):
                found.add(one)
            print(f"{found.points} deaths in {found.lives} worlds", flush=True)
    return found


# On the cluster


@dataclass
class Place:
    """A namespace that is spoilt and rolled back again and again, with a claim and something of Flux in it."""

    home: Home
    good: State
    volume: str
    spoilt: State = field(default_factory=dict)
    name: str = ""

    def begin(self, number: int) -> None:
        """Spoil the namespace, and ask for a Rollback."""
        self.home.spoil()
        self.spoilt, self.name = self.home.state(), f"back-{number}"
        self.home.ask(self.name, to="before", prune=True)

    @property
    def has_ended(self) -> bool:
        """Whether the Rollback has come to an end."""
        return self.home.phase(self.name) in ENDED

    def judged(self) -> Iterator[tuple[str, str]]:
        """Yield what is wrong."""
        where, status = f"{self.home.name}/{self.name}", self.home.status(self.name)
        phase = status.get("phase", "")
        wanted = self.good if phase == "Completed" else self.spoilt
        state = self.home.state()
        if phase not in ENDED:
            yield "left_behind", f"{where} is {phase}: {tenants.condition(status, 'Succeeded')}"
        for key in sorted({*state, *wanted}):
            if phase in ENDED and state.get(key) != wanted.get(key):
                yield "worse", f"{where} is {phase}, and {key} is {state.get(key)}, not {wanted.get(key)}"
        cluster, place = self.home.cluster, f"--namespace={self.home.name}"
        if cluster.get(KUSTOMIZATION, "apps", place)["spec"].get("suspend"):
            yield "not_resumed", f"{where}: Kustomization apps is suspended"
        if cluster.get("persistentvolumeclaims", "data", place)["metadata"]["uid"] != self.volume:
            yield "lost_volumes", f"{where}: claim data is another one"
        meta = cluster.get("rollbacks", self.name, place)["metadata"]
        labels = cluster.get("namespaces", self.home.name)["metadata"].get("labels", {})
        left = [*meta.get("finalizers", []), *({_IN_PROGRESS} & {*labels, *meta.get("labels", {})})]
        left += [each["metadata"]["name"] for each in cluster.get("nonadmindownloadrequests", place)["items"]]
        if left:
            yield "left_behind", f"{where} is {phase}, and has left {', '.join(left)}"

    def forget(self) -> None:
        """Delete the Rollback and its requests, so that no quota is reached."""
        self.home.team.kubectl("delete", "rollback", self.name, "--timeout=60s")
        self.home.team.kubectl("delete", "nonadminrestores", "--all", "--timeout=60s")


def flux() -> dict[str, Any]:
    """Return the definition of Kustomizations, as far as it matters here."""
    names = {"kind": "Kustomization", "listKind": "KustomizationList", "plural": "kustomizations"}
    schema = {"openAPIV3Schema": {"type": "object", "x-kubernetes-preserve-unknown-fields": True}}
    versions = [{"name": "v1", "served": True, "storage": True, "schema": schema}]
    spec = {"group": "kustomize.toolkit.fluxcd.io", "scope": "Namespaced", "names": names, "versions": versions}
    meta = {"name": KUSTOMIZATION}
    return {"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": meta, "spec": spec}


def places(cluster: Cluster, count: int) -> list[Place]:
    """Return namespaces, each with a backup."""
    binding = ("create", "clusterrole", "edits-flux", "--verb=*", f"--resource={KUSTOMIZATION}")
    cluster.kubectl(*binding)
    found = []
    for number in range(count):
        home = Home(cluster, tenants.tenant(cluster, f"shop-{number}"))
        user = ("--clusterrole=edits-flux", f"--user=tenant-of-{home.name}", f"--namespace={home.name}")
        cluster.kubectl("create", "rolebinding", "edits-flux", *user)
        group = "kustomize.toolkit.fluxcd.io/v1"
        apps = {"apiVersion": group, "kind": "Kustomization", "metadata": {"name": "apps"}, "spec": {"path": "./"}}
        storage = {"resources": {"requests": {"storage": "1Mi"}}, "storageClassName": "none"}
        spec = {"accessModes": ["ReadWriteOnce"], **storage}
        claim = {"apiVersion": "v1", "kind": "PersistentVolumeClaim", "metadata": {"name": "data"}, "spec": spec}
        for body in (apps, claim):
            cluster.kubectl("apply", f"--namespace={home.name}", "--filename=-", text=json.dumps(body))
        _soon(home.furnish)
        _soon(partial(home.back_up, "before"))
        uid = cluster.get("persistentvolumeclaims", "data", f"--namespace={home.name}")["metadata"]["uid"]
        found.append(Place(home, home.state(), uid))
    return found


def _soon(act: Callable[[], None]) -> None:
    """Do something as soon as the roles of a new user are known."""
    deadline = time.monotonic() + 120
    while True:
        try:
            act()
        except (AssertionError, TestbedError):
            if time.monotonic() > deadline:
                raise
            time.sleep(2)
        else:
            return


def on_cluster(kills: int, seed: int) -> Found:
    """Kill so often while Rollbacks run, and judge each of them."""
    chance = random.Random(seed)  # noqa: S311 - to spread, not to hide
    found = Found()
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create(f"rollback-kills-{os.getpid()}", Options(velero="velero"), owned=True) as cluster,
        ExitStack() as stack,
    ):
        cluster.apply(flux())
        tenants.install(cluster, rollback=True)
        allow(cluster)
        running = [Operator(cluster, Path(folder), *flags) for flags in (FLAGS, _SELF_SERVICE)]
        for each in running:
            stack.callback(each.kill)
            each.start()
        shops = places(cluster, _AT_A_TIME)
        number = 0
        while found.points < kills:
            number += 1
            for shop in shops:
                shop.begin(number)
            left = min(kills - found.points, 2 * _AT_A_TIME)
            found.points += _until_ended(cluster, running, shops, left, chance)
            for shop in shops:
                found.lives += 1
                found.ends[shop.home.phase(shop.name)] += 1
                for kind, text in shop.judged():
                    found.wrong[kind].append(text)
                shop.forget()
            print(f"{found.points} of {kills} kills in {found.lives} Rollbacks: {dict(found.ends)}", flush=True)
    return found


def _until_ended(
    cluster: Cluster, running: Sequence[Operator], shops: Sequence[Place], kills: int, chance: random.Random
) -> int:
    """Kill so often until all Rollbacks have ended; return how many kills there were."""
    done, deadline = 0, time.monotonic() + _LONGEST
    following = time.monotonic() + chance.uniform(0.5, 6.0)
    while not all(shop.has_ended for shop in shops) and time.monotonic() < deadline:
        time.sleep(0.2)
        if done < kills and time.monotonic() >= following:
            victim = chance.choice((*running, running[0], None))
            if victim is None:
                cluster.fault.kill("velero")
                cluster.fault.start("velero")
            else:
                victim.kill()
                victim.begin()
            done += 1
            following = time.monotonic() + chance.uniform(1.0, 12.0)
    time.sleep(10)  # for what the end leaves to do
    return done


def main() -> int:
    """Kill so often in worlds and on a cluster, and print what was found; 0 if nothing is wrong."""
    parser = argparse.ArgumentParser(prog="python -m bench.rollback_kills", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="part of the 10,000 and 60 deaths")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--part", choices=("worlds", "cluster"), help="only this part (default: both)")
    args = parser.parse_args()
    began = time.monotonic()
    worlds, real = Found(), Found()
    if args.part != "cluster":
        worlds = in_worlds(max(round(POINTS * args.size), 1), args.seed)
    if args.part != "worlds":
        real = on_cluster(max(round(REAL * args.size), 1), args.seed)
    for each in (worlds, real):
        for name, texts in each.wrong.items():
            print("".join(f"{name}: {text}\n" for text in texts[:20]), end="")
    wrong = {name: len(worlds.wrong[name]) + len(real.wrong[name]) for name in WRONG}
    counts = {"points": worlds.points + real.points, "worlds": worlds.lives, "real_points": real.points}
    ends = {"ends": {**worlds.ends}, "real_ends": {**real.ends}}
    print(json.dumps({**counts, **wrong, **ends, "seconds": round(time.monotonic() - began)}))
    return int(any(wrong.values()))


if __name__ == "__main__":
    sys.exit(main())
