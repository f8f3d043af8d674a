"""RestoreChecks in a world: backups that come each day, a Velero that restores, and the controller."""

import asyncio
import json
from collections.abc import Awaitable, Sequence
from datetime import timedelta
from functools import partial
from typing import Any

import msgspec

from foresail.api import core, nonadmin, velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.instants import stamp
from foresail.api.marks import CANARY_CLOSED, CANARY_REACHED, CHECK_LABEL, CHECK_NOW
from foresail.api.pod_problems import ObservedPod
from foresail.api.pods import POD, RESOURCE_QUOTA
from foresail.api.restore_check import RESTORE_CHECK
from foresail.plan import Key, Kind
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.kinds import Served
from foresail.proof.checks.reads import compared, with_volumes
from foresail.proof.checks.rows import Pods, PodsFound, pod_row
from foresail.proof.checks.turns import AT_ONCE
from foresail.proof.checks.view import DataSettings, Files, FilesFound
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import CALM, Moment, Process, Turnover
from tests.worlds.roles import RESTORE_CHECKS, VELERO, Grant, Role
from tests.worlds.streams import Weather
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

CHECK = Key(VELERO, "nightly")
SIGNED, COUNTED, BEGUN, LASTS = 0.05, 0.1, 0.2, 3.0  # seconds
SERVED = Served({"apps/v1/Deployment": "deployments.apps"})
USUAL = {
    "v1/Namespace": ["red", "blue"],
    "v1/ConfigMap": ["red/kube-root-ca.crt", "red/settings", "blue/settings"],
    "apps/v1/Deployment": ["red/web"],
    "v1/Pod": ["red/web-1"],
}


DATA = DataSettings("example.com/foresail:1", Key(VELERO, "foresail-checks"), ("192.0.2.1:443",))
"""With which depth Data is on."""

IN_SANDBOXES = frozenset(
    {
        *(Grant("rolebindings.rbac.authorization.k8s.io", verb, everywhere=True) for verb in ("get", "create")),
        *(Grant("pods", verb, everywhere=True) for verb in ("get", "create")),
        *(Grant("persistentvolumes", verb, everywhere=True) for verb in ("list", "watch", "patch")),
    }
)
"""What `proof.data.enabled` adds; those about pods are granted in each sandbox by the RoleBinding there."""


FILES = {"backupMethod": "PodVolumeBackup"}


class CheckScene:
    """One world with Velero, an administrator and the controller."""

    capability = RESTORE_CHECKS
    more: tuple[Definition, ...] = ()
    never: tuple[str, ...] | None = None

    def __init__(self) -> None:
        self.clock = WallClock()
        kinds = (velero.BACKUP, velero.RESTORE, velero.DOWNLOAD_REQUEST, velero.LOCATION)
        others = (core.CONFIG_MAP, RESOURCE_QUOTA, core.NETWORK_POLICY, core.ROLE_BINDING)
        definitions = [Definition(each, status=False) for each in kinds]
        definitions += [Definition(each, status=False, generation=False) for each in others]
        definitions += [Definition(DEPLOYMENT), Definition(POD, status=False, generation=False)]
        definitions.append(Definition(core.VOLUME, status=False, generation=False))
        definitions.append(Definition(core.STORAGE_CLASS, status=False, generation=False))
        self.world = World(self.clock, Definition(RESTORE_CHECK), *definitions, *self.more)
        self.weather = Weather()
        self.deaths = 0
        self.process: Process | None = None
        self.lists: dict[str, dict[str, list[str]]] = {}  # what each backup has
        self.lost: set[str] = set()  # objects that no restore brings back
        self.errors: list[str] = []
        self.phase = velero.COMPLETED
        self.at_once = AT_ONCE  # how many checks of tenants
        self.works = True  # whether Velero does anything
        self.counts = True  # whether the controller of quotas does
        self.lasts = LASTS
        self.one_at_a_time = False  # whether Velero restores one after the other, as it does
        self._free_at = 0.0
        self.births: list[str] = []  # Restores
        self.unfenced: list[str] = []  # sandboxes into which Velero would have restored without a fence
        self.unreadable = 0  # how many of the next reads fail
        self.data: DataSettings | None = None  # of depth Data, if it is on
        self.canary_code: int | None = CANARY_CLOSED  # how a canary ends; None: it does not
        self.assertion_code = 0
        self.moves = False  # whether the data of volumes was moved from snapshots
        self.become_ready = True  # the pods of the backup
        self.started: list[str] = []  # pods, in their order
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
        self.process = Process(self._visitor(), self._controller(), dies=dies, workers=workers, timing=CALM)
        return self.process

    def follow(self, leads: Turnover, workers: int = 1) -> Process:
        """Start a replica that leads from when it is told to."""
        visitor, controller = self._visitor(), self._controller()
        return Process(
            visitor, controller, election=leads, may_write=lambda: leads.is_leader, workers=workers, timing=CALM
        )

    def _visitor(self) -> Visitor:
        more = IN_SANDBOXES if self.data is not None else frozenset()
        return Visitor(self.world, weather=self.weather, role=Role(self.capability, more))

    def _controller(self) -> RestoreChecks:
        return RestoreChecks(VELERO, self._read, self.never, self._read_pods, self.data, self.at_once)

    async def keep_running(self, dies: Sequence[Moment] = (), pause: float = 0.05) -> None:
        """Run the controller until cancelled; each time that it dies, the next one is there after a pause."""
        for moment in dies:
            died = asyncio.Event()
            process = self.start(moment)
            process.on_death = died.set
            await died.wait()
            await asyncio.sleep(pause)
            self.deaths += 1
            await process.kill()
        self.start()
        await asyncio.Event().wait()

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.kill()
            self.process = None

    async def live(self, story: Awaitable[None], dies: Sequence[Moment]) -> None:
        """Run the controller during a story, with deaths in it, and stop it at the end."""
        running = asyncio.create_task(self.keep_running(dies))
        await story
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
        await self.stop()

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

    # The controller of quotas, and Velero

    def count_quotas(self) -> None:
        """Count everywhere, as after a pause."""
        for key, each in list(self.world.history.present(RESOURCE_QUOTA).items()):
            done(self.world.merge(RESOURCE_QUOTA, key, {"status": _counted(each)}, "quotas"))

    def _heard(self, happening: Happening) -> None:
        if happening.before is not None or happening.after is None:
            return
        if happening.kind == RESOURCE_QUOTA and self.counts:
            self._later(COUNTED, RESOURCE_QUOTA, happening.key, _counted(happening.after))
        if not self.works:
            return
        if happening.kind == POD:
            self._start(happening.key)
        if happening.kind == velero.DOWNLOAD_REQUEST:
            target = happening.after["spec"]["target"]
            url = f"bucket:{target['kind']}:{target['name']}:{happening.after['metadata']['uid']}"
            answer = {"downloadURL": url, "expiration": stamp(self.clock() + timedelta(minutes=10))}
            self._later(SIGNED, velero.DOWNLOAD_REQUEST, happening.key, answer)
        elif happening.kind == velero.RESTORE:
            self.births.append(happening.key.name)
            self._fenced(happening.after["spec"]["namespaceMapping"].values())
            began = {"phase": "InProgress", "startTimestamp": stamp(self.clock())}
            waits = self._waits()
            self._later(waits + BEGUN, velero.RESTORE, happening.key, began)
            asyncio.get_running_loop().call_later(waits + self.lasts, self._end, happening.key)

    def _waits(self) -> float:
        """Return the seconds until Velero begins a restore."""
        now = asyncio.get_running_loop().time()
        begins = max(now, self._free_at) if self.one_at_a_time else now
        self._free_at = begins + self.lasts
        return begins - now

    def _start(self, key: Key) -> None:
        """Be the kubelet."""
        self.started.append(key.name)
        container: Document | None = None
        if key.name.startswith("foresail-canary-"):
            said = "reached: API server, bucket" if self.canary_code == CANARY_REACHED else "closed"
            container = {"exitCode": self.canary_code, "message": said} if self.canary_code is not None else None
        elif key.name.startswith("foresail-assertion-"):
            container = {"exitCode": self.assertion_code, "message": f"{7 - self.assertion_code} rows"}
        elif self.become_ready:
            self._later(2.0, POD, key, {"phase": "Running", "conditions": [{"type": "Ready", "status": "True"}]})
        else:
            waits = [{"state": {"waiting": {"reason": "CrashLoopBackOff"}}}]
            self._later(2.0, POD, key, {"phase": "Running", "containerStatuses": waits})
        if container is not None:
            phase = "Failed" if container["exitCode"] else "Succeeded"
            self._later(1.0, POD, key, {"phase": phase, "containerStatuses": [{"state": {"terminated": container}}]})

    def _end(self, key: Key) -> None:
        restore = self.world.history.present(velero.RESTORE).get(key)
        if restore is not None and "pods" in restore["spec"]["includedResources"]:
            mapping = restore["spec"]["namespaceMapping"]
            for place in self.lists[restore["spec"]["backupName"]].get("v1/Pod", ()):
                source, _, name = place.partition("/")
                self.world.create(POD, {"metadata": {"name": name}}, "velero", mapping[source])
        ended = {"phase": self.phase, "completionTimestamp": stamp(self.clock())}
        self.world.merge(velero.RESTORE, key, {"status": ended}, "velero")  # gone meanwhile: nothing to be done

    def _fenced(self, names: Any) -> None:  # noqa: ANN401 - JSON
        for each in names:
            fences = (RESOURCE_QUOTA, core.NETWORK_POLICY)
            found = [self.world.history.present(kind) for kind in fences]
            has = [any(key.namespace == each for key in rows) for rows in found]
            counts = [row for key, row in found[0].items() if key.namespace == each and row.get("status")]
            if Key("", each) not in self.world.history.present(NAMESPACE) or not all(has) or not counts:
                self.unfenced.append(each)

    def _later(self, seconds: float, kind: Kind, key: Key, status: Document) -> None:
        work = partial(self.world.merge, kind, key, {"status": status}, "velero")
        asyncio.get_running_loop().call_later(seconds, work)

    async def _read_pods(self, query: Pods) -> PodsFound:
        await asyncio.sleep(0.1)
        sandboxes = [sandbox for _, sandbox in query.sandboxes]
        present = self.world.history.present(POD).items()
        found = [msgspec.convert(each, ObservedPod) for key, each in present if key.namespace in sandboxes]
        return PodsFound(tuple(pod_row(each) for each in found))

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
                if place.partition("/")[0] in sandboxes and place not in self.lost
            ]
            for gvk, places in lists.items()
            if query.phase
        }
        errors = {"namespaces": {"": self.errors}}
        files = (lists, restored, {"errors": errors, "warnings": {}})
        found = compared(query, SERVED, *(json.dumps(each).encode() for each in files))
        claims = [place.split("/") for place in lists.get("v1/PersistentVolumeClaim", ()) if place not in self.lost]
        how = {"backupMethod": "CSISnapshot", "snapshotDataMoved": True} if self.moves else FILES
        infos = [{"pvcNamespace": each, "pvcName": name, **how} for each, name in claims]
        found = with_volumes(found, json.dumps(infos).encode() if query.volumes else None)
        return msgspec.structs.replace(found, kubernetes="v1.36.0")


def _counted(quota: Document) -> Document:
    return {"used": dict.fromkeys(quota["spec"]["hard"], "0")}


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
