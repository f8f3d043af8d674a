"""Acto's transitions: valid and nearly valid states of each kind, one after the other, back again, and junk between.

After each step the object is ready or says why not, no reconcile has crashed, and no key is stuck. The same spec gives
the same conditions whatever came before it, and going back to the first spec undoes what came between.
`python -m tests.worlds.transitions` takes 5,000 steps, the tests a sample; the last line is JSON.
"""

import argparse
import asyncio
import json
import random
import sys
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from foresail.api import marks
from foresail.api.nonadmin import (
    NON_ADMIN_BACKUP,
    NON_ADMIN_DOWNLOAD_REQUEST,
    NON_ADMIN_LOCATION,
    NON_ADMIN_LOCATION_REQUEST,
    NON_ADMIN_RESTORE,
    NON_ADMIN_SCHEDULE,
)
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.primer import PRIMER
from foresail.api.protection import PROTECTION, PROTECTION_CLASS, PROTECTION_NAME
from foresail.api.restore_check import RESTORE_CHECK
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.kube.failures import Failure
from foresail.plan import Key, Kind
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.own_locations import OWN, OwnLocations
from tests.worlds.perturbed_lives import begin
from tests.worlds.primer_scene import HOME, PrimerScene
from tests.worlds.process import Process
from tests.worlds.protection_scene import ProtectionScene
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.schema_states import nearly_valid, problems, schema_of, stored, valid
from tests.worlds.takeover import (
    Life,
    primer_keys,
    request_keys,
    schedule_keys,
    why_no_primer,
    why_no_schedule,
    why_no_tenant_schedule,
)
from tests.worlds.takeover import stuck as stuck_keys
from tests.worlds.tenancy import VELERO, asked_by_tenant
from tests.worlds.tenant_checks import TenantScene as CheckedScene
from tests.worlds.tenant_schedules import TenantScene
from tests.worlds.world import World, done

STEPS = 450  # of each kind
_CHAIN = 15  # steps in one world
_SETTLED = 20.0  # seconds after each step
_MOST_WRITES = 60  # of the operator in one step; more are a loop
_STAYS = ("DeletionProtected", "DeletionPending")  # why an object that is deleted may stay
_LASTING = ("Ready", "Accepted", "Exact")  # the others say what has happened, or happens now
_MARKS = sorted(
    value for name, value in vars(marks).items() if name.isupper() and isinstance(value, str) and "/" in value
)
Scene = Any


@dataclass(frozen=True)
class Course:
    """How the states of a kind are tried: in which world, on which object, from which spec."""

    kind: Kind
    make: Callable[[], Scene]
    key: Key
    base: Document
    prepare: Callable[[Scene], object] = lambda _: None
    keys: Callable[[Any], Iterable[Key]] = lambda _: ()
    reason: Callable[[Any, Any], str] = lambda *_: "not asked"
    is_new: bool = False  # whether each state is a new object: the spec of an accepted request is fixed
    find: Callable[[Scene], Key] | None = None  # of an object that the operator has made
    says: bool = True  # whether its status says what is wrong


@dataclass
class Report:
    """What was tried and found."""

    steps: int = 0
    refused: int = 0  # by the schema, so nothing was applied
    unreadable: int = 0  # taken by the schema, and not decoded
    failures: list[str] = field(default_factory=list)


class Trial:
    """One world in which one object goes from state to state."""

    def __init__(self, course: Course, seed: int, report: Report) -> None:
        self.course, self.report = course, report
        self.dice = random.Random(seed)  # noqa: S311 - to spread, not to hide
        self.seed = seed
        self.scene: Scene = course.make()
        self.schema = schema_of(course.kind)
        self.said: dict[str, Any] = {}  # by the spec
        self.tried: list[Document] = []
        self.number = 0
        self.key = course.key

    @property
    def world(self) -> World:
        found: World = self.scene.world
        return found

    async def live(self, steps: int) -> None:
        self.course.prepare(self.scene)
        self.processes = begin(self.scene, None, 4, is_first=True)
        for each in self.processes:
            each.loop.on_reconciled = self._reconciled
        await asyncio.sleep(_SETTLED)
        if self.course.find is None and not self.course.is_new:
            self._create(self.course.key, self.course.base)
            await asyncio.sleep(_SETTLED)
        self.key = self.course.find(self.scene) if self.course.find is not None else self.course.key
        await self._judge(self.course.base, "the first state")
        for _ in range(steps):
            await self._step()
        if not self.course.is_new:
            self._apply(self.course.base)
            await self._settle()
            await self._judge(self.course.base, "back at the first state")
        for each in self.processes:
            await self._end(each)

    async def _end(self, process: Process) -> None:
        try:
            await process.kill()
        except AssertionError as problem:
            self._fail(str(problem)[:300])

    # Steps

    async def _step(self) -> None:
        self.report.steps += 1
        self.number += 1
        what = self.dice.random()
        if what < 0.12 and self.tried:
            spec, how = self.dice.choice(self.tried), "a state again"
        elif what < 0.2:
            spec, how = self.course.base, "back"
        elif what < 0.3 and not self.course.is_new:
            self._junk()
            await self._settle()
            return
        else:
            make, how = (valid, "a valid state") if what < 0.65 else (nearly_valid, "a nearly valid state")
            spec = make(self.schema, self.dice)
        if list(problems(self.schema, spec)) or not isinstance(spec, dict):
            self.report.refused += 1
            return
        spec = stored(self.schema, spec)
        self._apply(spec)
        self.tried.append(spec)
        await self._settle()
        await self._judge(spec, how)
        if self.course.is_new:
            await self._remove(spec)

    async def _remove(self, spec: Document) -> None:
        """Delete a request: it goes, and its objects in Velero's namespace with it."""
        self.world.delete(self.course.kind, self._key)
        await self._settle()
        found = self.world.get(self.course.kind, self._key)
        if isinstance(found, Failure):
            return
        reasons = [each["reason"] for each in found.get("status", {}).get("conditions", ())]
        if not any(reason in _STAYS for reason in reasons):
            self._fail(f"it is not gone after its deletion, and says {reasons}", spec)

    async def _settle(self) -> None:
        before = self._writes()
        await asyncio.sleep(_SETTLED)
        if self._writes() - before > _MOST_WRITES:
            self._fail(f"{self._writes() - before} writes in {_SETTLED:g} s")

    def _apply(self, spec: Document) -> None:
        if self.course.is_new:
            self._create(self._key, spec)
            return
        operation = {"op": "add", "path": "/spec", "value": spec}
        done(self.world.json_patch(self.course.kind, self.key, [operation], "tenant"))

    @property
    def _key(self) -> Key:
        return Key(self.key.namespace, f"{self.key.name}-{self.number}") if self.course.is_new else self.key

    def _create(self, key: Key, spec: Document) -> None:
        body = {"metadata": asked_by_tenant(key.name), "spec": spec}
        done(self.world.create(self.course.kind, body, "tenant", key.namespace))

    def _junk(self) -> None:
        texts = ("", "x", "{", "[]", "null", "2026-13-01T00:00:00Z", "9" * 4000, "v1.a.b", "\u0000")
        mark, text = self.dice.choice(_MARKS), self.dice.choice(texts)
        where = self.dice.choice(("annotations", "labels")) if len(text) < 60 else "annotations"
        body = {"metadata": {where: {mark: text}}}
        self.world.merge(self.course.kind, self._key, body, "tenant")

    # Verdict

    def _reconciled(self, outcome: str, _: float) -> None:
        if outcome == "crashed":
            self._fail("a reconcile crashed")

    def _writes(self) -> int:
        return sum(len(each.visitor.writes) for each in self.processes)

    async def _judge(self, spec: Document, how: str) -> None:
        life = Life(self.course.kind.name, self.course.make, _nothing, self.course.keys, self.course.reason)
        for each in stuck_keys(self.processes[0].loop, life):
            self._fail(f"stuck after {how}: {each}", spec)
        found = self.world.get(self.course.kind, self._key)
        if isinstance(found, Failure) or not self.course.says:
            return
        conditions = found.get("status", {}).get("conditions", [])
        if self._is_unreadable():
            self.report.unreadable += 1
            return
        if not conditions:
            self._fail(f"nothing is said of {how}", spec)
        self._compare(spec, conditions, how)
        for each in conditions:
            if each["status"] != "True" and not (each.get("reason") and each.get("message")):
                self._fail(f"{each['type']} does not say why it is {each['status']} after {how}", spec)
            current = found["metadata"].get("generation")
            if each.get("observedGeneration", current) != current:
                self._fail(f"{each['type']} speaks of an earlier generation after {how}", spec)

    def _is_unreadable(self) -> bool:
        """Whether an Event says that the object cannot be decoded; rules in CEL refuse most of these."""
        watches = [watch for each in self.processes for watch in each.loop.watches]
        return any(self._key in watch.reflector.store.unread for watch in watches)

    def _compare(self, spec: Document, conditions: list[Document], how: str) -> None:
        """Compare with what was said of the same spec before."""
        lasting = [each for each in conditions if each["type"] in _LASTING]
        said = sorted((each["type"], each["status"], each.get("reason", "")) for each in lasting)
        before = self.said.setdefault(json.dumps(spec, sort_keys=True), said)
        if said != before:
            self._fail(f"{how} is {said}, and was {before}", spec)

    def _fail(self, text: str, spec: Document | None = None) -> None:
        at = f"{self.course.kind.name}, seed {self.seed}, step {self.number}"
        told = f": {json.dumps(spec, default=str)[:400]}" if spec is not None else ""
        self.report.failures.append(f"{at}: {text}{told}")


async def _nothing(_: Scene) -> None:
    pass


# The kinds


_working = set[asyncio.Task[None]]()  # referred to, so that none is collected while it works


def _with_velero(scene: TenantScene) -> None:
    _working.add(task := asyncio.create_task(scene.velero_works()))
    task.add_done_callback(_working.discard)


def _with_backup(scene: TenantScene) -> None:
    _with_velero(scene)
    scene.back_up(Key("red", "own"))


def _with_jobs(scene: PrimerScene) -> None:
    scene.make_cron_job("daily", "*/10 * * * *")
    scene.make_cron_job("red", "*/15 * * * *")


def _with_namespaces(scene: ProtectionScene) -> None:
    scene.classify("silver", "*/15 * * * *")
    for name, asked in (("shop", "gold"), ("mail", "silver"), ("red", None)):
        scene.ask(name, asked)


def _with_schedules(scene: ScheduleScene) -> None:
    for name in ("a", "b", "red", "daily"):
        scene.make(name, "*/5 * * * *")


def _with_checks(scene: CheckedScene) -> None:
    scene.back_up("nightly-1")


def _with_location(scene: OwnLocations) -> None:
    scene.write_secret()
    scene.ask()


def _approval_of(scene: OwnLocations) -> Key:
    found = scene.approval()
    assert found is not None
    return Key(VELERO, str(found["metadata"]["name"]))


def _with_secret(scene: OwnLocations) -> None:
    scene.write_secret()


_TARGET = {"target": {"kind": "BackupLog", "name": "own"}}
_BUCKET = {
    "backupStorageLocationSpec": {
        "provider": "aws",
        "objectStorage": {"bucket": "red-backups"},
        "credential": {"name": "keys", "key": "cloud"},
        "config": {"region": "eu-west-1"},
    }
}
COURSES = (
    Course(NON_ADMIN_BACKUP, TenantScene, Key("red", "b"), {"backupSpec": {}}, _with_velero, is_new=True),
    Course(
        NON_ADMIN_RESTORE,
        TenantScene,
        Key("red", "r"),
        {"restoreSpec": {"backupName": "own"}},
        _with_backup,
        is_new=True,
    ),
    Course(NON_ADMIN_DOWNLOAD_REQUEST, TenantScene, Key("red", "d"), _TARGET, _with_backup, is_new=True),
    Course(
        NON_ADMIN_SCHEDULE,
        lambda: TenantScene(maximum=4, keepLast=2, gracePeriod="0s"),
        Key("red", "nightly"),
        {"schedule": "*/5 * * * *", "template": {"backupSpec": {}}},
        _with_velero,
        keys=request_keys,
        reason=why_no_tenant_schedule,
    ),
    Course(NON_ADMIN_LOCATION, OwnLocations, OWN, _BUCKET, _with_secret, is_new=True),
    Course(
        NON_ADMIN_LOCATION_REQUEST,
        OwnLocations,
        Key("", ""),
        {"approvalDecision": "pending"},
        _with_location,
        find=_approval_of,
        says=False,
    ),
    Course(
        PROTECTION,
        ProtectionScene,
        Key("shop", PROTECTION_NAME),
        {},
        _with_namespaces,
        find=lambda _: Key("shop", PROTECTION_NAME),
    ),
    Course(
        SELF_SERVICE_POLICY,
        lambda: TenantScene(maximum=4),
        Key("", "other"),
        {"namespaceSelector": {"matchLabels": {"foresail.dev/self-service": "enabled"}}, "priority": 5},
        _with_backup,
        keys=request_keys,
        reason=why_no_tenant_schedule,
        says=False,
    ),
    Course(
        PRIMER,
        lambda: PrimerScene(buffers=True),
        Key(HOME, "daily"),
        {"cronJob": "daily", "warmUp": "5m"},
        _with_jobs,
        keys=primer_keys,
        reason=why_no_primer,
    ),
    Course(PROTECTION_CLASS, ProtectionScene, Key("", "gold"), {"schedule": "*/10 * * * *"}, _with_namespaces),
    Course(RESTORE_CHECK, CheckedScene, Key("velero", "nightly"), {"backups": {"schedule": "nightly"}}, _with_checks),
    Course(
        SCHEDULE_POLICY,
        ScheduleScene,
        Key("", "rules"),
        {"selector": {"names": ["a"]}, "timeZone": "UTC"},
        _with_schedules,
        keys=schedule_keys,
        reason=why_no_schedule,
        says=False,
    ),
)


def tried(course: Course, steps: int, first: int = 0) -> Report:
    """Take so many steps with a kind, in worlds of fifteen each."""
    report = Report()
    for seed in range(first, first + -(-steps // _CHAIN)):
        virtual_time.run(_live(course, seed, min(_CHAIN, steps - report.steps), report))
    return report


async def _live(course: Course, seed: int, steps: int, report: Report) -> None:
    await Trial(course, seed, report).live(steps)


def main() -> int:
    """Try every kind; the last line is one JSON object."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help=f"part of {STEPS} steps for each kind")
    parser.add_argument("--kind", default="", help="only this kind")
    parser.add_argument("--first", type=int, default=0, help="number of the first world")
    arguments = parser.parse_args()
    kinds, steps, failures = 0, 0, 0
    for course in COURSES:
        if arguments.kind in ("", course.kind.name):
            report = tried(course, max(1, round(STEPS * arguments.size)), arguments.first)
            kinds, steps, failures = kinds + 1, steps + report.steps, failures + len(report.failures)
            for each in report.failures:
                print(each)
            told = f"{report.steps} steps, {report.refused} refused by the schema, {len(report.failures)} failures"
            print(f"{course.kind.name}: {told}", flush=True)
    print(json.dumps({"kinds": kinds, "steps": steps, "failures": failures}))
    return int(failures > 0)


if __name__ == "__main__":
    sys.exit(main())
