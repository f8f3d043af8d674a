"""Compares the archives of real Velero with what the docs of protection by label say: `make protection-oracle`.

Random worlds of namespaces, labels and classes, one after another in one cluster, with both operators. In each of them
labels, exemptions and classes change, and every Schedule runs, as `foresail schedule run` runs it or when it is due.
The last line is JSON: `worlds` and `differences`, with the archives and namespaces that were compared.
"""

import json
import os
import re
import shutil
import subprocess
import sys
import tarfile
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from random import Random
from typing import Any

from bench.protection_kills import PROTECTION, prepare
from bench.protection_model import EXCLUDE, LABEL, REASON, UNTIL, Namespace, Protected, now
from bench.seeds import read_seeds, seed_parser
from testbed import Cluster, Options
from testbed.api import request
from testbed.errors import TestbedError
from tests.cluster.operators import running

WORLDS = 200
DUE_EVERY = 20
"""Every so many worlds, the Schedules run because they are due, which takes a minute."""

SETTLES_WITHIN = 20.0
_AT_ONCE = 4
_NEVER, _NOW = "0 0 29 2 *", "* * * * *"
_CLASSES = "/apis/foresail.dev/v1alpha1/protectionclasses"
_NAMESPACES = "/api/v1/namespaces"
_VELERO = "/apis/velero.io/v1/namespaces/velero"
_ITEM = re.compile(r"resources/[^/]+/namespaces/(?P<namespace>[^/]+)/[^/]+\.json")
_MARK, _UIDS, _SLOT = (f"foresail.dev/{each}" for each in ("protection-class", "namespace-uids", "slot"))
_TEMPLATES: tuple[dict[str, Any], ...] = (
    {},
    {"includedResources": ["configmaps"]},
    {"excludedResources": ["secrets", "events"]},
    {"includeClusterResources": False},
    {"labelSelector": {"matchLabels": {"kept": "yes"}}},
)
_HOUR = timedelta(hours=1)
Step = Callable[[], None]
"""What somebody does."""


@dataclass
class Score:
    """What the comparison has found so far."""

    worlds: int = 0
    archives: int = 0
    namespaces: int = 0
    moves: int = 0
    differences: list[str] = field(default_factory=list)

    def differ(self, text: str) -> None:
        """Note a difference, and say it at once."""
        self.differences.append(text)
        print(f"DIFFERS {text}", file=sys.stderr, flush=True)


class Server:
    """The API server and the bucket of a cluster."""

    def __init__(self, cluster: Cluster, folder: Path) -> None:
        self.cluster = cluster
        self._kubeconfig = folder / "admin.kubeconfig"
        self._kubeconfig.write_text(Path(cluster.kubeconfig).read_text())

    def ask(self, method: str, path: str, body: object = None) -> dict[str, Any]:
        """Send a request, and raise if it fails."""
        answer = request(method, self.cluster.server + path, self.cluster.site.admin_trust, body)
        if answer.code >= 300 and (method, answer.code) != ("DELETE", 404):
            raise RuntimeError(f"{method} {path}: {answer.text[:500]}")
        found: dict[str, Any] = answer.json()
        return found

    def patch(self, path: str, body: object) -> None:
        """Change an object by a merge patch."""
        kind, name = path.removeprefix(_NAMESPACES + "/"), ""
        if path.startswith(_CLASSES):
            kind, name = "protectionclass", path.rpartition("/")[2]
        else:
            kind, name = "namespace", kind
        self.cluster.kubectl("patch", kind, name, "--type=merge", f"--patch={json.dumps(body)}")

    def schedules(self, prefix: str) -> dict[str, list[str]]:
        """Return the members of the Schedules of a world's classes."""
        found = self.ask("GET", f"{_VELERO}/schedules")["items"]
        return {
            each["metadata"]["name"]: each["spec"]["template"].get("includedNamespaces", [])
            for each in found
            if each["metadata"].get("annotations", {}).get(_MARK, "").startswith(prefix)
        }

    def backups(self, prefix: str) -> dict[str, dict[str, Any]]:
        """Return the Backups of a world's classes by name."""
        found = self.ask("GET", f"{_VELERO}/backups")["items"]
        return {
            each["metadata"]["name"]: each
            for each in found
            if each["metadata"].get("annotations", {}).get(_MARK, "").startswith(prefix)
        }

    def run(self, schedule: str) -> None:
        """Run a Schedule as an administrator does, and wait for its end."""
        command = [sys.executable, "-m", "foresail", "schedule", "run", schedule, "--wait", "--namespace=velero"]
        done = subprocess.run(
            [*command, f"--kubeconfig={self._kubeconfig}"], capture_output=True, text=True, check=False, timeout=300
        )
        if done.returncode:
            raise RuntimeError(f"{schedule} did not run: {done.stderr}")

    def archived(self, backup: str) -> set[str]:
        """Return the namespaces with an object in the archive of a Backup."""
        path = self.cluster.site.bucket / "backups" / backup / f"{backup}.tar.gz"
        with tarfile.open(path) as archive:
            found = (_ITEM.fullmatch(name) for name in archive.getnames())
            return {each["namespace"] for each in found if each}


class World:
    """One world: what its people do, the model of the docs, and what the archives hold."""

    def __init__(self, server: Server, score: Score, seed: int) -> None:
        self.server, self.score, self.seed = server, score, seed
        self.chance = Random(seed)  # noqa: S311 - reproducible, not secret
        self.prefix = f"w{seed}-"
        self.model = Protected()
        self.sizes: dict[str, int] = {}
        self.uids: dict[str, str] = {}
        self.templates: dict[str, dict[str, Any]] = {}
        self.group: dict[tuple[str, str], str] = {}
        self.known: set[str] = set()

    # People

    def begin(self) -> None:
        """Create classes and namespaces in a random order; of every class the model knows what the operator knows."""
        chance = self.chance
        classes = [f"{self.prefix}{name}" for name in ("a", "b", "c", "d")[: chance.randrange(1, 5)]]
        steps: list[Step] = [lambda name=name: self.classify(name) for name in classes]  # type: ignore[misc]
        names = [f"{self.prefix}n{number}" for number in range(chance.randrange(3, 11))]
        names += [f"kube-{self.prefix}n"] if chance.random() < 0.2 else []
        steps += [lambda name=name: self.create(name) for name in names]  # type: ignore[misc]
        chance.shuffle(steps)
        for step in steps:
            known = len(self.model.classes)
            step()
            if len(self.model.classes) > known:
                self.settle()
        self.settle()

    def classify(self, name: str) -> None:
        """Create a class, or change who is in it by default and how many share a backup."""
        chance = self.chance
        is_default = chance.random() < 0.3
        self.sizes[name] = max(chance.randrange(1, 6), 1)
        template = self.templates.setdefault(name, chance.choice(_TEMPLATES))
        spec = {
            "schedule": _NEVER,
            "template": {"ttl": "24h", "snapshotVolumes": False, **template},
            "namespacesPerBackup": self.sizes[name],
            "default": is_default,
        }
        if name in self.model.classes:
            self.server.patch(f"{_CLASSES}/{name}", {"spec": spec})
        else:
            kind = {"apiVersion": "foresail.dev/v1alpha1", "kind": "ProtectionClass", "metadata": {"name": name}}
            self.server.ask("POST", _CLASSES, {**kind, "spec": spec})
        self.model.classes[name] = is_default

    def create(self, name: str) -> None:
        """Create a namespace that says something, with an object of its own."""
        says = self.saying()
        body = {"apiVersion": "v1", "kind": "Namespace"}
        metadata = {"name": name, "labels": dict(says.labels), "annotations": dict(says.annotations)}
        made = self.server.ask("POST", _NAMESPACES, {**body, "metadata": metadata})
        config = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "own", "labels": {"kept": "yes"}}}
        self.server.ask("POST", f"{_NAMESPACES}/{name}/configmaps", config)
        self.uids[name] = made["metadata"]["uid"]
        self.model.namespaces[name] = Namespace(name, says.labels, says.annotations)

    def saying(self) -> Namespace:
        """Return what a namespace may say of its protection."""
        chance = self.chance
        known = list(self.model.classes) or [f"{self.prefix}a"]
        named = chance.choice(
            [*known, *known, *known, f"{self.prefix}a", "glod", "None", "", None, None, "none", "none"]
        )
        labels = {} if named is None else {LABEL: named}
        if chance.random() < 0.1:
            labels[EXCLUDE] = chance.choice(("true", "true", "false"))
        annotations = {}
        if named == "none" or chance.random() < 0.1:
            annotations = {REASON: chance.choice(("a test", "a test", "a test", " ")), UNTIL: self.until()}
            for key in (REASON, UNTIL):
                if chance.random() < 0.1:
                    del annotations[key]
        return Namespace("", labels, annotations)

    def until(self) -> str:
        """Return a date until which an exemption may hold."""
        today = now()
        later = (today + self.chance.choice((-30, -1, 1, 30)) * 24 * _HOUR).replace(microsecond=0)
        forms = (f"{later:%Y-%m-%d}", f"{later:%Y-%m-%dT%H:%M:%SZ}", later.isoformat(), "soon", "2027-02-30")
        return self.chance.choice((*forms[:3], *forms))

    def change(self) -> None:
        """Change something."""
        chance = self.chance
        name = chance.choice(list(self.model.namespaces))
        match chance.choice(("say", "say", "say", "say", "class", "new", "drop", "again")):
            case "say":
                self.say(name)
            case "class":
                self.classify(chance.choice(list(self.model.classes)))
            case "new":
                self.create(f"{self.prefix}m{len(self.uids)}")
            case "drop" if len(self.model.namespaces) > 1:
                self.drop(name)
            case "again" if len(self.model.namespaces) > 1:
                self.drop(name)
                self.settle()
                self.create(name)
            case _:
                self.say(name)

    def say(self, name: str) -> None:
        """Let a namespace say something else."""
        says, known = self.saying(), self.model.namespaces[name]
        texts: dict[str, dict[str, str | None]] = {"labels": dict(says.labels), "annotations": dict(says.annotations)}
        for part, keys in (("labels", (LABEL, EXCLUDE)), ("annotations", (REASON, UNTIL))):
            for key in keys:
                texts[part].setdefault(key, None)
        self.server.patch(f"{_NAMESPACES}/{name}", {"metadata": texts})
        known.labels, known.annotations = says.labels, says.annotations

    def drop(self, name: str) -> None:
        """Delete a namespace, and wait until it is gone."""
        with suppress(TestbedError):
            self.server.cluster.kubectl("delete", "namespace", name, "--wait", "--timeout=120s")
        del self.model.namespaces[name]

    # The operator

    def settle(self) -> None:
        """Let the operator bring every namespace where the docs say, as far as it does so within some seconds."""
        self.model.settle(now())
        members = self.model.members()
        for of, name in [key for key in self.group if key[1] not in members.get(key[0], ())]:
            del self.group[of, name]
        deadline = time.monotonic() + SETTLES_WITHIN
        while self.members() != self.model.members() and time.monotonic() < deadline:
            time.sleep(0.1)
        time.sleep(0.3)

    def members(self) -> dict[str, set[str]]:
        """Return who is in the Schedules of each class."""
        found: dict[str, set[str]] = {}
        for schedule, names in self.server.schedules(self.prefix).items():
            found.setdefault(schedule.rpartition("-")[0], set()).update(names)
        return found

    # Velero

    def round(self, *, is_due: bool = False) -> None:
        """Run each Schedule once, and compare the archives with the model."""
        seen: Counter[tuple[str, str, str]] = Counter()
        self.settle()
        pending = set(self.server.schedules(self.prefix))
        if is_due:
            self.compare(self.due(pending), seen)
            pending = set()
        while pending:
            groups = self.server.schedules(self.prefix)
            wave: list[str] = []
            taken: set[str] = set()
            for name in sorted(pending):
                if name in groups and not taken & set(groups[name]) and len(wave) < _AT_ONCE:
                    wave.append(name)
                    taken |= set(groups[name])
            pending -= {*wave, *(pending - set(groups))}
            with ThreadPoolExecutor(_AT_ONCE) as pool:
                list(pool.map(self.server.run, wave))
            self.compare(self.new_backups(), seen)
            self.settle()
        for of, names in self.model.members().items():
            for name in names:
                counts = [number for (by, each, _), number in seen.items() if (by, each) == (of, name)]
                if set(counts) != {1}:
                    self.differ(f"{name} is in {counts} archives of {of} of this round")

    def due(self, schedules: set[str]) -> dict[str, dict[str, Any]]:
        """Let the Schedules of all classes be due once, and return their Backups."""
        for name in self.model.classes:
            self.server.patch(f"{_CLASSES}/{name}", {"spec": {"schedule": _NOW}})
        found: dict[str, dict[str, Any]] = {}
        deadline = time.monotonic() + 240
        is_over = False
        while time.monotonic() < deadline:
            time.sleep(0.5)
            found = self.new_backups(keep=True)
            ran = {each["metadata"]["labels"]["velero.io/schedule-name"] for each in found.values()}
            if ran >= schedules and not is_over:
                for name in self.model.classes:
                    self.server.patch(f"{_CLASSES}/{name}", {"spec": {"schedule": _NEVER}})
                is_over = True
            if is_over and all(_has_ended(each) for each in found.values()):
                break
        self.known |= found.keys()
        return found

    def new_backups(self, *, keep: bool = False) -> dict[str, dict[str, Any]]:
        """Return the Backups that were not seen yet."""
        found = {name: each for name, each in self.server.backups(self.prefix).items() if name not in self.known}
        if not keep:
            self.known |= found.keys()
        return found

    def compare(self, backups: dict[str, dict[str, Any]], seen: Counter[tuple[str, str, str]]) -> None:
        """Compare archives with the model, and let it know of them."""
        before = self.model.members()
        for name, backup in backups.items():
            of = backup["metadata"]["annotations"][_MARK]
            if backup.get("status", {}).get("phase") != "Completed":
                self.differ(f"{name} is {backup.get('status', {}).get('phase')}")
                continue
            found = self.server.archived(name)
            self.score.archives += 1
            self.score.namespaces += len(found)
            slot = backup["metadata"]["annotations"].get(_SLOT, "")
            for each in found:
                seen[of, each, slot] += 1
            self._judge(name, of, found, before.get(of, set()))
            uids = json.loads(backup["metadata"]["annotations"].get(_UIDS, "{}"))
            if uids != {each: self.uids.get(each) for each in found}:
                self.differ(f"{name} has the UIDs {uids}, and its archive holds {sorted(found)}")
        for backup in backups.values():
            self.model.backed_up(backup["metadata"]["annotations"][_MARK], set(backup["spec"]["includedNamespaces"]))
        self.model.settle(now())
        after = self.model.members()
        self.score.moves += sum(len(names - after.get(of, set())) for of, names in before.items())

    def _judge(self, name: str, of: str, found: set[str], allowed: set[str]) -> None:
        if found - allowed:
            self.differ(f"{name} holds {sorted(found - allowed)}, which are not in class {of}")
        schedule = name.removesuffix("-run").rpartition("-")[0].rpartition("-")[0]
        for each in found:
            if self.group.setdefault((of, each), schedule) != schedule:
                self.differ(f"{each} was in {self.group[of, each]} and is in {schedule}")

    def protections(self) -> None:
        """See that every Protection names a backup that holds its namespace, and the class, and is True in one only."""
        for name, each in self.model.namespaces.items():
            path = f"/apis/foresail.dev/v1alpha1/namespaces/{name}/protections"
            for found in self.server.ask("GET", path)["items"]:
                good = found.get("status", {}).get("newestGood", {}).get("backup")
                if good and name not in self.server.archived(good):
                    self.differ(f"the Protection of {name} names {good}, which does not hold it")
                of = found.get("status", {}).get("class", "")
                if each.taken_by and of not in each.taken_by:
                    self.differ(f"the Protection of {name} names class {of}, and it is in {sorted(each.taken_by)}")
                says = found.get("status", {}).get("conditions", [{}])[0].get("status", "")
                if says == "True" and not each.taken_by:
                    self.differ(f"the Protection of {name} is True, and no class takes it")

    def differ(self, text: str) -> None:
        """Note a difference, with what there is."""
        says = {name: {**each.labels, **each.annotations} for name, each in self.model.namespaces.items()}
        where = f"classes {self.model.classes}, {says}, Schedules {self.server.schedules(self.prefix)}"
        self.score.differ(f"world {self.seed}: {text}\n    {where}, model {self.model.members()}")

    # The end

    def end(self) -> None:
        """Delete what there was, without waiting for it: names are of this world only."""
        for name in self.model.classes:
            self.server.patch(f"{_CLASSES}/{name}", {"spec": {"default": False}})
        for name in self.model.namespaces:
            self.server.ask("DELETE", f"{_NAMESPACES}/{name}")
        for name in self.server.backups(self.prefix):
            shutil.rmtree(self.server.cluster.site.bucket / "backups" / name, ignore_errors=True)
            self.server.ask("DELETE", f"{_VELERO}/backups/{name}")

    def sweep(self) -> bool:
        """Delete the classes of a world that has ended, as far as nobody is in them; whether none is left."""
        for name in list(self.model.classes):
            with suppress(RuntimeError):
                self.server.ask("DELETE", f"{_CLASSES}/{name}")
                del self.model.classes[name]
        return not self.model.classes


def _has_ended(backup: dict[str, Any]) -> bool:
    return backup.get("status", {}).get("phase") in ("Completed", "PartiallyFailed", "Failed", "FailedValidation")


def live(server: Server, score: Score, seed: int) -> World:
    """Live through one world."""
    world = World(server, score, seed)
    world.begin()
    is_due = seed % DUE_EVERY == 0
    for number in range(world.chance.randrange(2, 4)):
        for _ in range(world.chance.randrange(1, 6) if number else world.chance.randrange(3)):
            world.change()
            world.settle()  # so that the model knows what the operator has seen
        world.round(is_due=is_due and number == 0)
    world.protections()
    world.end()
    score.worlds += 1
    return world


def lives(cluster: Cluster, folder: Path, seeds: range) -> Score:
    """Live through the worlds of these seeds."""
    score, server = Score(), Server(cluster, folder)
    ended: list[World] = []
    with running(cluster, folder, "--record-namespaces"), running(cluster, folder, *PROTECTION):
        began = time.monotonic()
        for seed in seeds:
            ended.append(live(server, score, seed))
            ended = [world for world in ended if not world.sweep()]
            rate = (time.monotonic() - began) / score.worlds
            text = (
                f"{score.worlds} worlds, {score.archives} archives, {len(score.differences)} differ, {rate:.0f} s each"
            )
            print(text, file=sys.stderr, flush=True)
    return score


def speed_up(cluster: Cluster) -> None:
    """Let Velero ask the API server as often as it likes and make some backups at once, and start it again."""
    container = cluster.get("deployment", "velero", "--namespace=velero")["spec"]["template"]["spec"]["containers"][0]
    flags = ("--client-qps=2000", "--client-burst=2000", "--backup-sync-period=24h", f"--concurrent-backups={_AT_ONCE}")
    patch = [{"op": "replace", "path": "/spec/template/spec/containers/0/args", "value": [*container["args"], *flags]}]
    where = ("deployment", "velero", "--namespace=velero", "--type=json")
    cluster.kubectl("patch", *where, f"--patch={json.dumps(patch)}")
    cluster.fault.restart("velero")


def main() -> int:
    """Live through the worlds, and print the figures as JSON on the last line."""
    seeds = read_seeds(WORLDS, seed_parser(__doc__)).seeds
    began = time.monotonic()
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create(f"protection-oracle-{os.getpid()}", Options(velero="velero"), owned=True) as cluster,
    ):
        prepare(cluster)
        speed_up(cluster)
        cluster.kubectl("label", "namespace", "default", f"{EXCLUDE}=true")
        score = lives(cluster, Path(folder), seeds)
    figures = {
        "worlds": score.worlds,
        "differences": len(score.differences),
        "archives": score.archives,
        "namespaces": score.namespaces,
        "moves": score.moves,
        "seconds": round(time.monotonic() - began),
    }
    print(json.dumps(figures))
    return 1 if score.differences else 0


if __name__ == "__main__":
    sys.exit(main())
