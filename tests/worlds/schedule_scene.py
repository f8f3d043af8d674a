"""Schedules in a world with a stand-in for Velero, the real controller on them, and a record of every run."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.marks import SCHEDULE_UID, SLOT
from foresail.api.pods import POD
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.kube.loop import LoopTiming
from foresail.plan import Key, Note
from foresail.schedules.controller import Schedules
from foresail.schedules.settings import Settings
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.process import CALM, Moment, Process, Turnover
from tests.worlds.roles import Role
from tests.worlds.streams import Weather
from tests.worlds.velero_stand_in import Ending, StandIn, in_a_moment
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor, Write
from tests.worlds.world import Definition, World, done

HOME = "velero"
# Nobody sets the clock here and no stream falls silent, so neither has to be looked for each second.


@dataclass(frozen=True, slots=True)
class Run:
    """A Backup of a slot: for which, and when it was made."""

    schedule: str
    slot: datetime
    at: datetime


@dataclass
class Record:
    """What happened to the Schedules of a world, as their objects tell it."""

    runs: list[Run] = field(default_factory=list)
    skips: list[tuple[str, datetime]] = field(default_factory=list)  # each value that lastSkipped took

    def slots_of(self, name: str) -> list[datetime]:
        """Return the slots of one Schedule in the order of their Backups."""
        return [run.slot for run in self.runs if run.schedule == name]

    def skips_of(self, name: str) -> list[datetime]:
        """Return the values that lastSkipped of one Schedule took."""
        return [at for of, at in self.skips if of == name]


class ScheduleScene:
    """One world with its people: the operator, Velero, and whoever writes Schedules."""

    def __init__(
        self,
        settings: Settings | None = None,
        *,
        version: str = "v1.18.3",
        ending: Ending = in_a_moment,
        ttl: timedelta | None = None,
        image: str = "",
        more: Sequence[Definition] = (),
    ) -> None:
        self.clock = WallClock()
        whole = (
            velero.SCHEDULE,
            velero.BACKUP,
            velero.LOCATION,
            velero.STATUS_REQUEST,
            velero.DELETE_REQUEST,
            velero.RESTORE,
        )
        kinds = (
            *(Definition(kind, status=False) for kind in whole),
            Definition(DEPLOYMENT),
            Definition(POD),
            Definition(SCHEDULE_POLICY, status=False),
            *more,
        )
        self.world = World(self.clock, *kinds)
        self.settings = settings or Settings()
        self.weather = Weather(bookmark_every=86_400.0)
        self.record = Record()
        self.process: Process | None = None
        self.visitors: list[Visitor] = []
        self.notes: list[Note] = []
        self.world.create(NAMESPACE, {"metadata": {"name": HOME}}, "admin")
        self.velero = StandIn(self.world, version=version, ending=ending, ttl=ttl)
        self._install(image or f"velero/velero:{version}")
        self.world.history.listeners.append(self._heard)

    def _install(self, image: str) -> None:
        args = ["server", "--disable-controllers=schedule"]
        container = {"image": image, "command": ["/velero"], "args": args}
        spec = {"template": {"spec": {"containers": [container]}}}
        done(self.world.create(DEPLOYMENT, {"metadata": {"name": "velero"}, "spec": spec}, "admin", HOME))
        rolled_out = {"observedGeneration": 1, "replicas": 1, "updatedReplicas": 1, "readyReplicas": 1}
        done(self.world.merge(DEPLOYMENT, Key(HOME, "velero"), {"status": rolled_out}, "kube", "status"))
        location = {"metadata": {"name": "default"}, "spec": {"default": True}, "status": {"phase": "Available"}}
        done(self.world.create(velero.LOCATION, location, "admin", HOME))

    # What people do

    def make(self, name: str, schedule: object, **spec: object) -> Document:
        """Create a Schedule with that expression."""
        body = {"metadata": {"name": name}, "spec": {"schedule": schedule, "template": {}, **spec}}
        return done(self.world.create(velero.SCHEDULE, body, "user", HOME))

    def write(self, name: str, **spec: object) -> Document:
        """Change fields of the spec of a Schedule; None takes one away."""
        return done(self.world.merge(velero.SCHEDULE, Key(HOME, name), {"spec": spec}, "user"))

    def rule(self, name: str, selector: dict[str, object], **spec: object) -> Document:
        """Create a SchedulePolicy."""
        body = {"metadata": {"name": name}, "spec": {"selector": selector, **spec}}
        return done(self.world.create(SCHEDULE_POLICY, body, "admin"))

    def by_hand(self, schedule: str, name: str) -> None:
        """Make a Backup as `velero backup create --from-schedule` does."""
        body = {"metadata": {"name": name, "labels": {velero.SCHEDULE_LABEL: schedule}}, "spec": {}}
        done(self.world.create(velero.BACKUP, body, "user", HOME))

    def locate(self, phase: str) -> None:
        """Let the storage location be available, or not."""
        done(self.world.merge(velero.LOCATION, Key(HOME, "default"), {"status": {"phase": phase}}, "velero"))

    def run_pods(self, ready: int) -> None:
        """Let so many pods of Velero be ready."""
        done(self.world.merge(DEPLOYMENT, Key(HOME, "velero"), {"status": {"readyReplicas": ready}}, "kube", "status"))

    def read(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return a Schedule as it is."""
        return done(self.world.get(velero.SCHEDULE, Key(HOME, name)))

    # The operator

    def start(self, dies: Moment | None = None, workers: int = 2, timing: LoopTiming = CALM) -> Process:
        """Start the operator; it may be told to die at one of its writes."""
        visitor = Visitor(self.world, weather=self.weather, role=Role("schedules"))
        self.visitors.append(visitor)
        controller = Schedules(HOME, self.settings, skew=timedelta)
        self.process = Process(visitor, controller, dies=dies, workers=workers, timing=timing, emit=self.notes.append)
        return self.process

    def follow(self, leads: Turnover, workers: int = 2, timing: LoopTiming = CALM) -> Process:
        """Start a replica that leads from when it is told to."""
        visitor = Visitor(self.world, weather=self.weather, role=Role("schedules"))
        self.visitors.append(visitor)
        return Process(
            visitor,
            Schedules(HOME, self.settings, skew=timedelta),
            election=leads,
            may_write=lambda: leads.is_leader,
            workers=workers,
            timing=timing,
        )

    async def stop(self) -> None:
        """End the operator where it stands."""
        if self.process is not None:
            await self.process.kill()
            self.process = None

    @property
    def writes(self) -> list[Write]:
        """Everything that the operator, over all its lives, has written to Schedules and Backups."""
        ours = (velero.SCHEDULE, velero.BACKUP, velero.DELETE_REQUEST)
        return [write for visitor in self.visitors for write in visitor.writes if write.kind in ours]

    async def until(self, instant: datetime) -> None:
        """Let time pass up to an instant."""
        await asyncio.sleep((instant - self.clock()).total_seconds())

    # What is recorded

    def _heard(self, happening: Happening) -> None:
        after = happening.after
        if after is None:
            return
        if happening.kind == velero.BACKUP and happening.before is None:
            annotations = after["metadata"].get("annotations", {})
            if SCHEDULE_UID in annotations:
                name = after["metadata"]["labels"][velero.SCHEDULE_LABEL]
                self.record.runs.append(Run(name, datetime.fromisoformat(annotations[SLOT]), self.clock()))
        elif happening.kind == velero.SCHEDULE:
            skipped = after.get("status", {}).get("lastSkipped")
            if skipped and skipped != ((happening.before or {}).get("status") or {}).get("lastSkipped"):
                self.record.skips.append((happening.key.name, datetime.fromisoformat(skipped)))
