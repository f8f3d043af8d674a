"""Tenants in a world, the self-service controller, and a Velero whose every step the test takes itself."""

import asyncio
from collections.abc import Sequence
from datetime import timedelta
from typing import Any

from foresail.api import core, velero
from foresail.api.instants import stamp
from foresail.api.marks import REQUEST_UID, REQUESTER, REQUESTER_GROUPS
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.protection import PROTECTION_CLASS as CLASS
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.cli.recovery_key.keys import manifest
from foresail.kube.loop import LoopTiming
from foresail.plan import Key, Kind, Note
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.controller import SelfService
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.queue.window import Limits
from foresail.selfservice.results.file import Lines
from foresail.selfservice.results.view import Found, Wanted
from foresail.selfservice.signatures import NO_KEYS, SECRET
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import CALM, Moment, Process, Turnover
from tests.worlds.reviews import Reviewer, Reviews
from tests.worlds.roles import Role
from tests.worlds.streams import Weather
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

VELERO = "velero"
SETTLED = 90.0
STILL_RUNS = "backup deletion failed: backup is still in progress"
ORDER = ["", "New", "BackingOff", "Created", "Deleting"]
_MADE_FOR = {NON_ADMIN_BACKUP: BACKUPS, NON_ADMIN_RESTORE: RESTORES}
_VELEROS = (
    velero.BACKUP,
    velero.RESTORE,
    velero.DELETE_REQUEST,
    velero.DOWNLOAD_REQUEST,
    velero.DATA_UPLOAD,
    velero.DATA_DOWNLOAD,
    velero.POD_VOLUME_BACKUP,
    velero.POD_VOLUME_RESTORE,
    velero.LOCATION,
)


def asked_by_tenant(name: str) -> Document:
    """Return the metadata of a request as the API server stores it: admission has named the requester."""
    return {"name": name, "annotations": {REQUESTER: "tenant", REQUESTER_GROUPS: "system:authenticated"}}


class Tenancy:
    """One world with its people: tenants in `red` and `blue`, an administrator, Velero, and the controller."""

    def __init__(
        self,
        quotas: dict[str, int] | None = None,
        window: int = 0,
        restore_window: int = 0,
        also: Sequence[Definition] = (),
        timing: LoopTiming = CALM,
    ) -> None:
        self.timing = timing
        self.limits = Limits(lambda: window, lambda: restore_window)
        self.clock = WallClock()
        definitions = [Definition(kind, status=False) for kind in _VELEROS]
        definitions += [Definition(core.CLAIM), Definition(POD), Definition(SECRET, status=False)]
        definitions += [Definition(core.CONFIG_MAP, status=False)]
        requests = [Definition(kind) for kind in (*_MADE_FOR, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_SCHEDULE)]
        policies = Definition(SELF_SERVICE_POLICY), Definition(SCHEDULE_POLICY, status=False), Definition(CLASS)
        self.world = World(self.clock, *requests, *policies, *definitions, *also)
        self.weather = Weather(bookmark_every=timing.stall / 2)
        self.phases: dict[tuple[Kind, str], list[str]] = {}  # of each request, by its UID, in their order
        self.births: dict[str, int] = {}  # how many Velero objects were ever made for each request
        self.deaths = 0
        self.results = Found(Lines(("pods web: it is not to be had",)))  # what the bucket says of all that has failed
        self.read: list[Wanted] = []
        self.notes: set[Note] = set()
        self.reviews = Reviews()
        self.signs_contents = True  # whether Velero answers at once where the contents of backups are
        self.outcome: Document = {"phase": velero.COMPLETED, "progress": {"totalItems": 2, "itemsBackedUp": 2}}
        self.taken_for_running: set[str] = set()  # Backups that Velero will not delete before it has ended them again
        self.process: Process | None = None
        self.controller: SelfService | None = None
        self.reader: AccessReader | None = None
        self.world.history.listeners.append(self._heard)
        for name in ("red", "blue", VELERO):
            labels = {} if name == VELERO else {"foresail.dev/self-service": "enabled"}
            self.world.create(NAMESPACE, {"metadata": {"name": name, "labels": labels}}, "admin")
        self.make_policy(quotas or {})

    # The administrator

    def make_policy(self, quotas: dict[str, int], name: str = "default") -> None:
        selector = {"matchLabels": {"foresail.dev/self-service": "enabled"}}
        spec = {"namespaceSelector": selector, "quotas": quotas}
        done(self.world.create(SELF_SERVICE_POLICY, {"metadata": {"name": name}, "spec": spec}, "admin"))

    def set_quotas(self, **quotas: Any) -> None:  # noqa: ANN401 - JSON
        done(self.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"quotas": quotas}}, "admin"))

    def allow_locations(self, *names: str) -> None:
        spec = {"backup": {"allowed": {"storageLocations": list(names)}}}
        done(self.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))

    def allow_contents(self) -> None:
        spec = {"downloads": {"contents": "Allowed"}}
        done(self.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))

    def make_location(self, name: str, phase: str = velero.AVAILABLE, **spec: Any) -> None:  # noqa: ANN401 - JSON
        body = {"metadata": {"name": name}, "spec": spec, "status": {"phase": phase}}
        done(self.world.create(velero.LOCATION, body, "admin", VELERO))

    def edit_location(self, name: str, phase: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        done(self.world.merge(velero.LOCATION, Key(VELERO, name), {"spec": spec, "status": {"phase": phase}}, "velero"))

    def make_key(self, key: bytes) -> None:
        """Create the Secret with the key that signs records."""
        done(self.world.create(SECRET, manifest(VELERO, NO_KEYS.with_key(key, signs=True)), "admin", VELERO))

    def delete_namespace(self, name: str) -> None:
        done(self.world.delete(NAMESPACE, Key("", name)))

    # Tenants

    def back_up(self, key: Key, **spec: Any) -> str:  # noqa: ANN401 - JSON
        body = {"metadata": asked_by_tenant(key.name), "spec": {"backupSpec": spec}}
        return str(done(self.world.create(NON_ADMIN_BACKUP, body, "tenant", key.namespace))["metadata"]["uid"])

    def restore(self, key: Key, backup: str, **spec: Any) -> str:  # noqa: ANN401 - JSON
        body = {"metadata": asked_by_tenant(key.name), "spec": {"restoreSpec": {"backupName": backup, **spec}}}
        return str(done(self.world.create(NON_ADMIN_RESTORE, body, "tenant", key.namespace))["metadata"]["uid"])

    def download(self, key: Key, target: str, name: str) -> str:
        body = {"metadata": asked_by_tenant(key.name), "spec": {"target": {"kind": target, "name": name}}}
        made = done(self.world.create(NON_ADMIN_DOWNLOAD_REQUEST, body, "tenant", key.namespace))
        return str(made["metadata"]["uid"])

    def schedule(self, key: Key, text: str, **spec: Any) -> str:  # noqa: ANN401 - JSON
        template = {"backupSpec": spec.pop("backupSpec", {})}
        body = {"metadata": asked_by_tenant(key.name), "spec": {"schedule": text, "template": template, **spec}}
        return str(done(self.world.create(NON_ADMIN_SCHEDULE, body, "tenant", key.namespace))["metadata"]["uid"])

    def edit(self, key: Key, kind: Kind = NON_ADMIN_BACKUP, **spec: Any) -> None:  # noqa: ANN401 - JSON
        wrote = {"time": self.now(), "fieldsV1": {"f:spec": {}}}  # as the API server records it
        done(self.world.merge(kind, key, {"metadata": {"managedFields": [wrote]}, "spec": spec}, "tenant"))

    def delete(self, key: Key, kind: Kind = NON_ADMIN_BACKUP) -> None:
        done(self.world.delete(kind, key))

    def request(self, key: Key, kind: Kind = NON_ADMIN_BACKUP) -> Document | None:
        return self.world.history.present(kind).get(key)

    def status(self, key: Key, kind: Kind = NON_ADMIN_BACKUP) -> Document:
        found = self.request(key, kind)
        assert found is not None, f"{kind.name} {key} is gone"
        status: Document = found.get("status", {})
        return status

    def condition(self, key: Key, name: str, kind: Kind = NON_ADMIN_BACKUP) -> tuple[str, str, str]:
        """Return the status, the reason and the message of a condition."""
        for each in self.status(key, kind).get("conditions", []):
            if each["type"] == name:
                return each["status"], each["reason"], each["message"]
        return "", "", ""

    # Velero

    def velero_objects(self, kind: Kind = velero.BACKUP) -> dict[str, Document]:
        return {key.name: document for key, document in self.world.history.present(kind).items()}

    def made_for(self, key: Key, kind: Kind = NON_ADMIN_BACKUP) -> Document | None:
        """Return the Velero object of a request."""
        family, request = _MADE_FOR[kind], self.request(key, kind)
        assert request is not None
        for found in self.velero_objects(family.velero).values():
            if found["metadata"].get("annotations", {}).get(REQUEST_UID) == request["metadata"]["uid"]:
                return found
        return None

    def velero_says(self, key: Key, phase: str, kind: Kind = NON_ADMIN_BACKUP, **status: Any) -> None:  # noqa: ANN401
        """Let Velero write the status of the object of a request."""
        found = self.made_for(key, kind)
        assert found is not None
        at = Key(VELERO, found["metadata"]["name"])
        done(self.world.merge(_MADE_FOR[kind].velero, at, {"status": {"phase": phase, **status}}, "velero"))

    def phase_of_velero(self, key: Key) -> str:
        """Return the phase of the Velero Backup of a request."""
        found = self.made_for(key)
        assert found is not None
        phase: str = found["status"]["phase"]
        return phase

    def velero_deletes(self, *errors: str) -> None:
        """Let Velero answer each request to delete: do it, or say why not."""
        for name, found in self.velero_objects(velero.DELETE_REQUEST).items():
            if found.get("status", {}).get("phase") == velero.PROCESSED:
                continue
            at, why = Key(VELERO, name), list(errors)
            if found["spec"]["backupName"] in self.taken_for_running:
                why.append(STILL_RUNS)
            if why:
                status = {"phase": velero.PROCESSED, "errors": why}
                done(self.world.merge(velero.DELETE_REQUEST, at, {"status": status}, "velero"))
            else:
                self.world.delete(velero.BACKUP, Key(VELERO, found["spec"]["backupName"]))
                done(self.world.delete(velero.DELETE_REQUEST, at))

    def velero_answers(self) -> None:
        """Let Velero sign a URL for each file that it is asked for; it is good for ten minutes."""
        for name, found in self.velero_objects(velero.DOWNLOAD_REQUEST).items():
            if "status" not in found:
                self._sign(Key(VELERO, name), found)

    def _sign(self, key: Key, found: Document) -> None:
        url = f"https://bucket/{found['spec']['target']['name']}/{found['spec']['target']['kind']}"
        expiration = stamp(self.clock() + timedelta(minutes=10))
        status = {"phase": velero.PROCESSED, "downloadURL": url, "expiration": expiration}
        done(self.world.merge(velero.DOWNLOAD_REQUEST, key, {"status": status}, "velero"))

    def _sign_contents(self, key: Key) -> None:
        found = self.world.history.present(velero.DOWNLOAD_REQUEST).get(key)
        if found is not None and "status" not in found and found["spec"]["target"]["kind"] in PREFIXES:
            self._sign(key, found)

    async def velero_works(self) -> None:
        """Let Velero do what it is asked for, at each full second after a change, until cancelled."""
        news, loop = asyncio.Event(), asyncio.get_running_loop()
        self.world.history.listeners.append(lambda happening: news.set() if happening.kind in _VELEROS else None)
        while True:
            news.clear()
            for kind in (velero.BACKUP, velero.RESTORE):
                for name, found in self.velero_objects(kind).items():
                    phase = found.get("status", {}).get("phase", "")
                    if phase in velero.WAITING or phase in velero.REOPENED.values():
                        self.taken_for_running.discard(name)
                        done(self.world.merge(kind, Key(VELERO, name), {"status": self.outcome}, "velero"))
            self.velero_deletes()
            self.velero_answers()
            await news.wait()
            await asyncio.sleep(1 - loop.time() % 1)

    def now(self) -> str:
        return stamp(self.clock())

    # The controller

    def start(self, dies: Moment | None = None, workers: int = 16) -> Process:
        visitor = Visitor(self.world, weather=self.weather, role=Role("self-service"))
        reader = self.reader = AccessReader(Reviewer(visitor, self.reviews), self.reviews.contents)
        self.controller = SelfService(VELERO, fetch=self._fetched, limits=self.limits, access=reader)
        self.controller.cluster.skew = timedelta
        self.process = Process(
            visitor,
            self.controller,
            dies=dies,
            workers=workers,
            timing=self.timing,
            emit=self.notes.add,
        )
        return self.process

    def follow(self, leads: Turnover, workers: int = 16) -> Process:
        """Start a replica that leads from when it is told to."""
        visitor = Visitor(self.world, weather=self.weather, role=Role("self-service"))
        reader = AccessReader(Reviewer(visitor, self.reviews), self.reviews.contents)
        controller = SelfService(VELERO, fetch=self._fetched, limits=self.limits, access=reader)
        controller.cluster.skew = timedelta
        return Process(visitor, controller, election=leads, may_write=lambda: leads.is_leader, workers=workers)

    async def _fetched(self, wanted: Wanted) -> Found:
        self.read.append(wanted)
        await asyncio.sleep(0.1)
        return self.results

    async def keep_running(self, dies: list[Moment], workers: int) -> None:
        """Run the controller; each time that it dies, the next one is there a moment later."""
        for moment in dies:
            died = asyncio.Event()
            process = self.start(moment, workers)
            process.on_death = died.set
            await died.wait()
            await asyncio.sleep(0.05)
            self.deaths += 1
            await process.kill()
        self.start(None, workers)

    async def stop(self) -> None:
        if self.process is not None:
            await self.process.kill()
            self.process = None

    async def settle(self, seconds: float = SETTLED) -> None:
        await asyncio.sleep(seconds)

    # What must be so

    def check(self) -> None:
        """Phases went one way; no request has two Velero objects, and no Velero object lost its request unmarked."""
        for phases in self.phases.values():
            assert phases == sorted(phases, key=ORDER.index), f"phases went back: {phases}"
        assert all(count == 1 for count in self.births.values()), self.births

    def orphans(self) -> list[str]:
        """Return the Velero objects whose request is gone."""
        found = []
        for kind, family in _MADE_FOR.items():
            uids = {each["metadata"]["uid"] for each in self.world.history.present(kind).values()}
            for name, each in self.velero_objects(family.velero).items():
                uid = each["metadata"].get("annotations", {}).get(REQUEST_UID)
                if uid is not None and uid not in uids:
                    found.append(name)
        return found

    async def check_silence(self) -> None:
        """Nothing is written any more."""
        assert self.process is not None
        revision, before = self.world.history.revision, len(self.process.visitor.writes)
        await asyncio.sleep(300)
        assert self.world.history.revision == revision
        assert self.process.visitor.writes[before:] == []

    def _heard(self, happening: Happening) -> None:
        after = happening.after
        if after is None:
            return
        if happening.kind == velero.DOWNLOAD_REQUEST and happening.before is None and self.signs_contents:
            asyncio.get_running_loop().call_later(0.05, self._sign_contents, happening.key)
        if happening.kind in (*_MADE_FOR, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_SCHEDULE):
            seen = self.phases.setdefault((happening.kind, after["metadata"]["uid"]), [""])
            phase = after.get("status", {}).get("phase", "")
            if seen[-1] != phase:
                seen.append(phase)
        if happening.kind in (velero.BACKUP, velero.RESTORE) and happening.before is None:
            uid = after["metadata"].get("annotations", {}).get(REQUEST_UID)
            if uid is not None:
                self.births[uid] = self.births.get(uid, 0) + 1
