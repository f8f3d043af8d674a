"""RestoreChecks in a world: backups that come each day, a Velero that restores, and the controller."""

import asyncio
import json
from collections.abc import Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from foresail.api import core, nonadmin, velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.instants import stamp
from foresail.api.marks import CHECK_LABEL, CHECK_NOW
from foresail.api.pods import RESOURCE_QUOTA
from foresail.api.restore_check import RESTORE_CHECK
from foresail.kube.loop import LoopTiming
from foresail.plan import Key, Kind
from foresail.proof.checks.build import NETWORK_POLICY
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.kinds import Served
from foresail.proof.checks.observe import Files, FilesFound
from foresail.proof.checks.reader import compared
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import Moment, Process
from tests.worlds.roles import RESTORE_CHECKS, VELERO, Role
from tests.worlds.streams import Weather
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

CHECK = Key(VELERO, "nightly")
CALM = LoopTiming(clock_check=6 * 3600.0, stall=2 * 86_400.0)
SIGNED, BEGUN, LASTS = 0.05, 0.2, 3.0  # seconds
SERVED = Served({"apps/v1/Deployment": "deployments.apps"})
USUAL = {
    "v1/Namespace": ["red", "blue"],
    "v1/ConfigMap": ["red/kube-root-ca.crt", "red/settings", "blue/settings"],
    "apps/v1/Deployment": ["red/web"],
    "v1/Pod": ["red/web-1"],
}


class CheckScene:
    """One world with Velero, an administrator and the controller."""

    def __init__(self) -> None:
        self.clock = WallClock()
        kinds = (velero.BACKUP, velero.RESTORE, velero.DOWNLOAD_REQUEST, velero.LOCATION)
        others = (core.CONFIG_MAP, RESOURCE_QUOTA, NETWORK_POLICY)
        definitions = [Definition(each, status=False) for each in kinds]
        definitions += [Definition(each, status=False, generation=False) for each in others]
        definitions.append(Definition(DEPLOYMENT))
        definitions.append(Definition(core.STORAGE_CLASS, status=False, generation=False))
        self.world = World(self.clock, Definition(RESTORE_CHECK), *definitions)
        self.weather = Weather()
        self.deaths = 0
        self.process: Process | None = None
        self.lists: dict[str, dict[str, list[str]]] = {}  # what each backup has
        self.lost: set[str] = set()  # objects that no restore brings back
        self.errors: list[str] = []
        self.phase = velero.COMPLETED
        self.works = True  # whether Velero does anything
        self.lasts = LASTS
        self.births: list[str] = []  # Restores
        self.unfenced: list[str] = []  # sandboxes into which Velero would have restored without a fence
        self.unreadable = 0  # how many of the next reads fail
        self.world.history.listeners.append(self._heard)
        self.world.create(NAMESPACE, {"metadata": {"name": VELERO}}, "admin")
        container = {"name": "velero", "image": "example.com/velero:v1.18.0", "args": ["velero", "server"]}
        velero_server = {"metadata": {"name": "velero"}, "spec": {"template": {"spec": {"containers": [container]}}}}
        done(self.world.create(DEPLOYMENT, velero_server, "admin", VELERO))
        self.locate("default", default=True)

    # The administrator

    def locate(self, name: str, *, default: bool = False, tenant: str = "") -> None:
        """Make a storage location, of a tenant's own bucket if one is named."""
        spec = {"default": default, "objectStorage": {"bucket": f"{name}-bucket", "prefix": "cluster-1"}}
        annotations = {nonadmin.LOCATION_ORIGIN: tenant} if tenant else {}
        body = {"metadata": {"name": name, "annotations": annotations}, "spec": spec}
        done(self.world.create(velero.LOCATION, body, "admin", VELERO))

    def make_check(self, key: Key = CHECK, **spec: Any) -> None:  # noqa: ANN401 - JSON
        body = {"metadata": {"name": key.name}, "spec": {"backups": {"schedule": "nightly"}, **spec}}
        done(self.world.create(RESTORE_CHECK, body, "admin", key.namespace))

    def edit(self, key: Key = CHECK, **spec: Any) -> None:  # noqa: ANN401 - JSON
        done(self.world.merge(RESTORE_CHECK, key, {"spec": spec}, "admin"))

    def check_now(self, value: str, key: Key = CHECK) -> None:
        done(self.world.merge(RESTORE_CHECK, key, {"metadata": {"annotations": {CHECK_NOW: value}}}, "admin"))

    def delete_check(self, key: Key = CHECK) -> None:
        done(self.world.delete(RESTORE_CHECK, key))

    def back_up(
        self, name: str, phase: str = velero.COMPLETED, lists: dict[str, list[str]] | None = None, location: str = ""
    ) -> None:
        """Complete a Backup of the Schedule now."""
        self.lists[name] = lists or USUAL
        status = {"phase": phase, "completionTimestamp": stamp(self.clock())}
        annotations = {"velero.io/source-cluster-k8s-gitversion": "v1.35.2"}
        metadata = {"name": name, "labels": {velero.SCHEDULE_LABEL: "nightly"}, "annotations": annotations}
        body = {"metadata": metadata, "spec": {"storageLocation": location}, "status": status}
        done(self.world.create(velero.BACKUP, body, "velero", VELERO))

    # The controller

    def start(self, dies: Moment | None = None, workers: int = 1) -> Process:
        visitor = Visitor(self.world, weather=self.weather, role=Role(RESTORE_CHECKS))
        controller = RestoreChecks(VELERO, self._read)
        self.process = Process(visitor, controller, dies=dies, workers=workers, timing=CALM)
        return self.process

    async def keep_running(self, dies: Sequence[Moment] = (), pause: float = 0.05) -> None:
        """Run the controller until cancelled; each time that it dies, the next one is there after a pause."""
        left = list(dies)
        process = self.start(left.pop(0) if left else None)
        while True:
            await asyncio.sleep(pause)
            if process.died:
                self.deaths += 1
                await process.kill()
                process = self.start(left.pop(0) if left else None)

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.kill()
            self.process = None

    # What is there

    def status(self, key: Key = CHECK) -> Document:
        found: Document = self.world.history.present(RESTORE_CHECK)[key].get("status", {})
        return found

    def result(self, key: Key = CHECK) -> tuple[str, str]:
        """Return the last result and its reason."""
        last = self.status(key).get("last") or {}
        return last.get("result", ""), last.get("reason", "")

    def condition(self, name: str, key: Key = CHECK) -> tuple[str, str]:
        for each in self.status(key).get("conditions", ()):
            if each["type"] == name:
                return each["status"], each["reason"]
        return "", ""

    def named(self, kind: Kind) -> list[str]:
        """Return the names of the objects of checks, evidence excepted."""
        present = self.world.history.present(kind)
        found = [key.name for key, each in present.items() if CHECK_LABEL in each["metadata"].get("labels", {})]
        return [each for each in found if not each.endswith("-evidence")]

    def evidence(self) -> list[Document]:
        """Return the records of the evidence."""
        found = self.world.history.present(core.CONFIG_MAP)
        names = sorted(key.name for key in found if key.name.endswith("-evidence"))
        return [json.loads(found[Key(VELERO, each)]["data"]["record.json"]) for each in names]

    def leftovers(self) -> list[str]:
        kinds = (NAMESPACE, velero.RESTORE, velero.DOWNLOAD_REQUEST, core.CONFIG_MAP)
        return [name for kind in kinds for name in self.named(kind)]

    # Velero

    def _heard(self, happening: Happening) -> None:
        if happening.before is not None or happening.after is None or not self.works:
            return
        if happening.kind == velero.DOWNLOAD_REQUEST:
            target = happening.after["spec"]["target"]
            url = f"bucket:{target['kind']}:{target['name']}:{happening.after['metadata']['uid']}"
            answer = {"downloadURL": url, "expiration": stamp(self.clock() + timedelta(minutes=10))}
            self._later(SIGNED, velero.DOWNLOAD_REQUEST, happening.key, answer)
        elif happening.kind == velero.RESTORE:
            self.births.append(happening.key.name)
            self._fenced(happening.after["spec"]["namespaceMapping"].values())
            began = {"phase": "InProgress", "startTimestamp": stamp(self.clock())}
            self._later(BEGUN, velero.RESTORE, happening.key, began)
            asyncio.get_running_loop().call_later(self.lasts, self._end, happening.key)

    def _end(self, key: Key) -> None:
        ended = {"phase": self.phase, "completionTimestamp": stamp(self.clock())}
        self.world.merge(velero.RESTORE, key, {"status": ended}, "velero")  # gone meanwhile: nothing to be done

    def _fenced(self, names: Any) -> None:  # noqa: ANN401 - JSON
        for each in names:
            fences = (RESOURCE_QUOTA, NETWORK_POLICY)
            has = [any(key.namespace == each for key in self.world.history.present(kind)) for kind in fences]
            if Key("", each) not in self.world.history.present(NAMESPACE) or not all(has):
                self.unfenced.append(each)

    def _later(self, seconds: float, kind: Kind, key: Key, status: Document) -> None:
        work = partial(self.world.merge, kind, key, {"status": status}, "velero")
        asyncio.get_running_loop().call_later(seconds, work)

    async def _read(self, query: Files) -> FilesFound:
        await asyncio.sleep(0.1)
        if self.unreadable:
            self.unreadable -= 1
            return FilesFound(problem="the bucket cannot be reached")
        lists = self.lists[query.contents.split(":")[2]]
        sandboxes = dict(query.sandboxes)
        restored = {
            gvk: [
                f"{sandboxes[place.partition('/')[0]]}/{place.partition('/')[2]}(created)"
                for place in places
                if "/" in place and place not in self.lost
            ]
            for gvk, places in lists.items()
            if query.phase
        }
        errors = {"namespaces": {"": self.errors}}
        files = (lists, restored, {"errors": errors, "warnings": {}})
        found = compared(query, SERVED, *(json.dumps(each).encode() for each in files))
        return msgspec.structs.replace(found, kubernetes="v1.36.0")


def false_alarms_of_a_month(days: int = 30) -> int:
    """Return how many checks fail in a month of daily backups without a fault, with a kill each day."""

    async def live() -> int:
        scene = CheckScene()
        dies = [Moment(after=day % 2 == 0, write=1 + day) for day in range(days)]
        running = asyncio.create_task(scene.keep_running(dies, pause=60.0))
        scene.make_check(schedule="0 6 * * *")
        alarms = passed = 0
        for day in range(days):
            scene.back_up(f"nightly-{day}")
            await asyncio.sleep(86_400)
            alarms += scene.result()[0] != "Pass"
            passed += scene.status()["last"]["backup"] == f"nightly-{day}"
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await scene.stop()
        return alarms + len(scene.leftovers()) + len(scene.unfenced) + days - passed

    return virtual_time.run(live())
