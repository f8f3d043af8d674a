"""Kills the operator while retention deletes, on a real cluster with a real Velero: `make retention-kills KILLS=200`.

Each life finds a new Schedule with a random history, and new Backups of earlier ones: Completed, Failed,
PartiallyFailed and unfinished ones, pinned ones, those of another cluster, and those made by hand. Half the lives kill
themselves before or after a write (`FORESAIL_TEST_KILL`). After each of them, what must not be deleted must exist. In
the end, exactly what no rule keeps must be deleted. The last line is one JSON object.
"""

import argparse
import json
import os
import random
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec

from bench.operator import NAMESPACE
from bench.schedules.world import schedule
from bench.writing import create_all
from foresail.api import velero
from foresail.api.instants import instant, stamp, whole
from foresail.api.marks import OBSERVED, PINNED, SCHEDULE_UID, SLOT
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicySpec
from foresail.kube.clock import now
from foresail.kube.crash_injection import VARIABLE
from foresail.plan import Body, Key
from foresail.retention import Copy, kept
from foresail.schedules.policies import retention_rules
from foresail.schedules.retention import digest_of
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow
from testbed import Cluster, Options
from tests.cluster import operators

CRD = Path(__file__).parents[1] / "charts" / "foresail-crds" / "templates" / "schedulepolicies.yaml"
OFF = ("schedule", "backup-queue", "backup", "backup-operations", "backup-finalizer", "backup-sync", "gc")
NEVER = "0 3 1 1 *"  # not while we kill
RULES: tuple[dict[str, Any], ...] = (
    {"keepLast": 1},
    {"keepLast": 1, "keepGood": 3},
    {"daily": 2, "keepGood": 2},
    {"hourly": 3, "weekly": 1},
    {"keepWithin": "1m", "keepGood": 2},  # before the newest one, by their creation
    {"monthly": 1, "yearly": 1},
)
KINDS = {"good": 8, "failed": 3, "partial": 3, "unfinished": 1, "pinned": 2, "synced": 2, "foreign": 2, "by-hand": 1}
PHASES = {"failed": "Failed", "partial": "PartiallyFailed", "unfinished": "InProgress"}
OURS = frozenset({"good", "failed", "partial", "unfinished", "pinned"})
GOOD = frozenset({"good", "pinned"})
STAY = frozenset({"unfinished", "pinned", "synced", "foreign", "by-hand"})
"""What is never deleted, whatever the rules are."""

LIFE_SECONDS, AIM_SECONDS, END_SECONDS = 3.0, 20.0, 600.0
MOST_AIMED = 6  # writes of a life after which it kills itself
LATER = 4  # earlier Schedules that get one more Backup before each life
_API = f"/apis/velero.io/v1/namespaces/{NAMESPACE}"


@dataclass(slots=True)
class Made:
    """A Backup that was made."""

    name: str
    slot: datetime
    kind: str
    created: datetime | None = None  # as the API server has it

    @property
    def order(self) -> tuple[datetime, str]:
        """What was made last is the newest one."""
        return self.created or self.slot, self.name


@dataclass(slots=True)
class History:
    """A Schedule, its rules, and every Backup that it ever had."""

    name: str
    uid: str
    rules: int
    last: datetime
    made: list[Made] = field(default_factory=list)

    @property
    def newest_good(self) -> set[str]:
        """The newest Completed runs, as many as keepGood says."""
        good = sorted((each for each in self.made if each.kind in GOOD), key=lambda each: each.order, reverse=True)
        return {each.name for each in good[: RULES[self.rules].get("keepGood", 1)]}

    @property
    def staying(self) -> set[str]:
        """What no rule may touch."""
        return {each.name for each in self.made if each.kind in STAY}

    @property
    def kept(self) -> set[str]:
        """What exists when nothing is left to delete."""
        copies = [
            Copy(
                each.name,
                each.slot,
                each.kind in GOOD,
                each.kind != "unfinished",
                each.kind == "pinned",
                is_partial=each.kind == "partial",
                created=each.created,
            )
            for each in self.made
            if each.kind in OURS
        ]
        rules = retention_rules(_row(self.rules), Settings().zone)
        assert rules is not None  # noqa: S101 - for the type checker
        return self.staying | {name for name, because in kept(copies, rules).items() if because}


@dataclass(slots=True)
class Report:
    """What was done, and what was found."""

    kills: Counter[str] = field(default_factory=Counter)
    amid_deletions: int = 0  # kills after which a DeleteBackupRequest was open
    made: Counter[str] = field(default_factory=Counter)
    deleted: int = 0
    lost_good: list[str] = field(default_factory=list)
    lost_others: list[str] = field(default_factory=list)
    left: list[str] = field(default_factory=list)  # should have been deleted in the end
    missing: list[str] = field(default_factory=list)  # should exist in the end

    @property
    def is_right(self) -> bool:
        """Whether everything that must stay stayed, and everything else went."""
        return self.deleted > 0 and not (self.lost_good or self.lost_others or self.left or self.missing)

    def figures(self) -> dict[str, object]:
        """Return what is printed as the last line."""
        return {
            "kills": self.kills.total(),
            **{f"kills_{how}": count for how, count in sorted(self.kills.items())},
            "kills_amid_deletions": self.amid_deletions,
            "histories": self.kills.total(),
            "backups": self.made.total(),
            "by_kind": dict(sorted(self.made.items())),
            "deleted": self.deleted,
            "lost_good": len(self.lost_good),
            "lost_others": len(self.lost_others),
            "left": len(self.left),
            "missing": len(self.missing),
        }


class Series:
    """One series of kills on one cluster."""

    def __init__(self, cluster: Cluster, folder: Path, seed: int = 19) -> None:
        self.report = Report()
        self._cluster = cluster
        self._operator = operators.Operator(cluster, folder)
        self._chance = random.Random(seed)  # noqa: S311 - chance, not secrecy
        self._histories: list[History] = []

    def run(self, kills: int, say: Callable[[str], None]) -> Report:
        """Kill so often, let the last life finish the work, and return what was found."""
        create_all(self._cluster, SCHEDULE_POLICY, (_policy(number) for number in range(len(RULES))))
        try:
            for number in range(kills):
                self._begin(number)
                self._go_on()
                self.report.kills[self._life(is_aimed=number % 2 == 0)] += 1
                self._check()
                if number % 10 == 9:
                    say(f"{number + 1} of {kills} kills, {self.report.amid_deletions} of them amid deletions")
            self._finish()
        finally:
            self._operator.kill()
        return self.report

    def _begin(self, number: int) -> None:
        """Create a Schedule, whose rules are in effect, with a random history."""
        rules = number % len(RULES)
        found = retention_rules(_row(rules), Settings().zone)
        assert found is not None  # noqa: S101 - for the type checker
        body = schedule(f"h-{number:03}", NEVER)
        body["metadata"]["labels"]["rules"] = f"r{rules}"
        observed = {"schedule": NEVER, "retention": digest_of(found)}
        body["metadata"]["annotations"] = {OBSERVED: json.dumps(observed)}
        self._cluster.apply(body)
        name = body["metadata"]["name"]
        uid = self._cluster.get("schedules.velero.io", name, f"--namespace={NAMESPACE}")["metadata"]["uid"]
        history = History(name, uid, rules, whole(now()) - timedelta(days=60))
        self._histories.append(history)
        self._back_up([history] * self._chance.randint(6, 14))

    def _go_on(self) -> None:
        """Give some earlier Schedules one more Backup each."""
        self._back_up(self._chance.sample(self._histories, min(LATER, len(self._histories))))

    def _back_up(self, histories: list[History]) -> None:
        bodies = []
        for each in histories:
            (kind,) = self._chance.choices(list(KINDS), list(KINDS.values()))
            each.last += timedelta(hours=self._chance.choice((1, 1, 6, 24, 50)))
            bodies.append(_backup(each, kind, each.last))
            each.made.append(Made(bodies[-1][0].name, each.last, kind))
            self.report.made[kind] += 1
        create_all(self._cluster, velero.BACKUP, bodies)
        items = {each["metadata"]["name"]: each["metadata"] for each in self._cluster.listed(f"{_API}/backups")}
        for made in (made for each in histories for made in each.made if made.created is None):
            made.created = instant(items[made.name]["creationTimestamp"])

    def _life(self, *, is_aimed: bool) -> str:
        """Let the operator live until it is killed, by itself or from outside, and return how it was killed."""
        side = self._chance.choice(("before", "after"))
        variables = {VARIABLE: f"{side}:{self._chance.randint(1, MOST_AIMED)}"} if is_aimed else {}
        process = self._operator.begin(**variables)
        deadline = time.monotonic() + AIM_SECONDS
        while process.poll() is None and time.monotonic() < deadline:
            if not is_aimed and self._operator.said("became leader"):
                time.sleep(self._chance.uniform(0.0, LIFE_SECONDS))
                break
            time.sleep(0.05)
        met = process.poll() is not None
        self._operator.kill()
        if any(_is_open(each) for each in self._cluster.listed(f"{_API}/deletebackuprequests")):
            self.report.amid_deletions += 1
        return f"{side}_a_write" if met else "at_random"

    def _check(self) -> None:
        existing = self._existing()
        for each in self._histories:
            self.report.lost_good += sorted(each.newest_good - existing)
            self.report.lost_others += sorted(each.staying - existing)

    def _finish(self) -> None:
        """Let it live until nothing is left to delete, and compare what exists with the rules."""
        self._operator.start()
        expected = {name for each in self._histories for name in each.kept}
        deadline = time.monotonic() + END_SECONDS
        while self._existing() - expected and time.monotonic() < deadline:
            time.sleep(1)
        existing = self._existing()
        self._check()
        self.report.left = sorted(existing - expected)
        self.report.missing = sorted(expected - existing)
        self.report.deleted = self.report.made.total() - len(existing)

    def _existing(self) -> set[str]:
        return {each["metadata"]["name"] for each in self._cluster.listed(f"{_API}/backups")}


def _is_open(deletion: dict[str, Any]) -> bool:
    return bool(deletion.get("status", {}).get("phase") != velero.PROCESSED)


def _spec(number: int) -> dict[str, Any]:
    return {"selector": {"matchLabels": {"rules": f"r{number}"}}, "retention": {**RULES[number], "gracePeriod": "0s"}}


def _row(number: int) -> PolicyRow:
    return PolicyRow(Key("", f"r{number}"), msgspec.convert(_spec(number), SchedulePolicySpec))


def _policy(number: int) -> tuple[Key, Body]:
    kind = {"apiVersion": SCHEDULE_POLICY.api_version, "kind": SCHEDULE_POLICY.name}
    return Key("", f"r{number}"), {**kind, "metadata": {"name": f"r{number}"}, "spec": _spec(number)}


def _backup(history: History, kind: str, slot: datetime) -> tuple[Key, Body]:
    """Return a Backup as the operator made it, as Velero synced it, or as somebody made it by hand."""
    uid = "0f8fad5b-d9cb-469f-a165-70867728950e" if kind == "foreign" else history.uid
    name = f"{history.name}-{slot:%Y%m%d%H%M%S}-{uid[:8]}"
    annotations = {SCHEDULE_UID: uid, SLOT: stamp(slot)}
    if kind == "by-hand":
        name, annotations = f"{history.name}-by-hand-{slot:%d%H}-{len(history.made)}", {}
    if kind == "pinned":
        annotations[PINNED] = "true"
    # What ended before its object was created came from a bucket.
    ended = slot + timedelta(minutes=1) if kind == "synced" else now() + timedelta(minutes=1)
    status = {"phase": PHASES.get(kind, velero.COMPLETED), "startTimestamp": stamp(slot)}
    if kind != "unfinished":
        status["completionTimestamp"] = stamp(ended)
    metadata = {"name": name, "namespace": NAMESPACE, "annotations": annotations}
    body = {
        "apiVersion": velero.BACKUP.api_version,
        "kind": velero.BACKUP.name,
        "metadata": {**metadata, "labels": {velero.SCHEDULE_LABEL: history.name}},
        "spec": {"includedNamespaces": ["default"], "storageLocation": "default", "ttl": "8760h0m0s"},
        "status": status,
    }
    return Key(NAMESPACE, name), body


def prepare(cluster: Cluster) -> None:
    """Leave to Velero only what deletes Backups, and install what the operator needs."""
    cluster.restart_velero(*OFF)
    operators.install(cluster)
    cluster.kubectl("apply", "--server-side", f"--filename={CRD}")
    cluster.wait_for_kinds()


def main() -> int:
    """Bring up a cluster, kill so often on it, and print what was found; 0 if all is right."""
    parser = argparse.ArgumentParser(prog="python -m bench.retention_kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how often the operator is killed")
    args = parser.parse_args()
    began = time.monotonic()
    options = Options(velero="velero")
    with (
        tempfile.TemporaryDirectory() as folder,
        Cluster.create(f"retention-kills-{os.getpid()}", options, owned=True) as cluster,
    ):
        prepare(cluster)
        report = Series(cluster, Path(folder)).run(args.kills, print)
    for words in ("lost_good", "lost_others", "left", "missing"):
        for name in getattr(report, words)[:10]:
            print(f"{words}: {name}")
    print(json.dumps({**report.figures(), "seconds": round(time.monotonic() - began)}))
    return 0 if report.is_right else 1


if __name__ == "__main__":
    sys.exit(main())
