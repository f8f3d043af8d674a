"""Primers and CronJobs in a world with a stand-in for the cluster, and a record of what was held and of every start."""

import asyncio
import json
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from foresail.api import batch, pods
from foresail.api.capacity_buffers import POD_TEMPLATE
from foresail.api.core import CLAIM, VOLUME
from foresail.api.instants import instant
from foresail.api.marks import FIRE, PRIMER_LABEL, WARM_UP, WARM_UP_STATUS
from foresail.api.primer import PRIMER
from foresail.plan import Key, Note
from foresail.primers.controller import Primers
from foresail.primers.reads import DryRun, LocateVolumes, locate_volumes_with, no_dry_run
from foresail.primers.view import Settings
from tests.worlds.buffer_stand_in import BUFFER, Buffering
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.history import Happening
from tests.worlds.kubernetes_stand_in import Kubernetes
from tests.worlds.process import CALM, Moment, Process, Turnover
from tests.worlds.roles import Grant, Role
from tests.worlds.streams import Weather
from tests.worlds.virtual_time import WallClock
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, World, done

HOME = "reports"
SETTINGS = Settings(pause_image="pause@sha256:1", hold_image="foresail")
_WHOLE = (pods.NODE, pods.PRIORITY_CLASS, CLAIM, VOLUME, POD_TEMPLATE)


@dataclass
class Held:
    """A placeholder: for which fire, and from when until when."""

    name: str
    fire: datetime
    since: datetime
    until: datetime | None = None


@dataclass
class Record:
    """What happened, as the objects tell it."""

    held: list[Held] = field(default_factory=list)
    delays: dict[tuple[str, datetime], float] = field(default_factory=dict)  # of a CronJob's fire, in seconds

    @property
    def delays_in_order(self) -> list[float]:
        """The start delays in the order of their fires."""
        return [self.delays[each] for each in sorted(self.delays, key=lambda each: (each[1], each[0]))]


class PrimerScene:
    """One world with its people: the operator, the rest of the cluster, and whoever writes CronJobs."""

    def __init__(self, settings: Settings = SETTINGS, *, beginning: datetime | None = None, **cluster: Any) -> None:  # noqa: ANN401 - the stand-in's
        self.clock = WallClock(beginning) if beginning else WallClock()
        buffers = cluster.pop("buffers", None)  # whether somebody answers them; None if they are not served
        served = () if buffers is None else (BUFFER,)
        kinds = (PRIMER, batch.CRON_JOB, batch.JOB, pods.POD, pods.RESOURCE_QUOTA, *served)
        whole = (Definition(kind, generation=False) for kind in _WHOLE)
        self.world = World(self.clock, *(Definition(kind) for kind in kinds), *whole)
        self.settings = settings
        self.dry_run: DryRun = no_dry_run
        self.locate_volumes: LocateVolumes | None = None  # as the operator does it
        self.record = Record()
        self.most = 0  # placeholders at once
        self._standing: dict[str, Held] = {}  # by name
        self.weather = Weather(bookmark_every=86_400.0)
        self.process: Process | None = None
        self.visitors: list[Visitor] = []
        self.events: list[Note] = []
        self.world.create(NAMESPACE, {"metadata": {"name": HOME}}, "admin")
        ours = {"metadata": {"name": "foresail-placeholder"}, "value": -5, "preemptionPolicy": "Never"}
        done(self.world.create(pods.PRIORITY_CLASS, ours, "admin"))
        self.world.history.listeners.append(self._heard)
        self.cluster = Kubernetes(self.world, **cluster)
        self.buffering = Buffering(self.cluster) if buffers else None

    # What people do

    def make_cron_job(self, name: str, schedule: str, **spec: Any) -> Document:  # noqa: ANN401 - JSON
        """Create a CronJob whose pods fill a node."""
        container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": "2"}}}
        template = {"spec": {"containers": [container], **spec.pop("pod", {})}}
        job = {"spec": {"template": template, **spec.pop("job", {})}}
        body = {"metadata": {"name": name}, "spec": {"schedule": schedule, "jobTemplate": job, **spec}}
        return done(self.world.create(batch.CRON_JOB, body, "user", HOME))

    def annotate(self, name: str, warm_up: str | None = "2m", **more: str | None) -> None:
        """Write annotations on a CronJob, or remove them."""
        annotations = {WARM_UP: warm_up, **{f"{WARM_UP}-{each}": value for each, value in more.items()}}
        body = {"metadata": {"annotations": annotations}}
        done(self.world.merge(batch.CRON_JOB, Key(HOME, name), body, "user"))

    def recorded(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return what is recorded on an annotated CronJob; nothing if there is no record."""
        annotations = done(self.world.get(batch.CRON_JOB, Key(HOME, name)))["metadata"].get("annotations", {})
        return json.loads(annotations.get(WARM_UP_STATUS, "{}"))

    def change_cron_job(self, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        """Change fields of the spec of a CronJob."""
        done(self.world.merge(batch.CRON_JOB, Key(HOME, name), {"spec": spec}, "user"))

    def prime(self, cron_job: str, warm_up: str = "2m", **spec: Any) -> Document:  # noqa: ANN401 - JSON
        """Create a Primer of the same name."""
        body = {"metadata": {"name": cron_job}, "spec": {"cronJob": cron_job, "warmUp": warm_up, **spec}}
        return done(self.world.create(PRIMER, body, "user", HOME))

    def change_primer(self, name: str, **spec: Any) -> None:  # noqa: ANN401 - JSON
        """Change fields of the spec of a Primer."""
        done(self.world.merge(PRIMER, Key(HOME, name), {"spec": spec}, "user"))

    def status(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return the status of a Primer."""
        return done(self.world.get(PRIMER, Key(HOME, name))).get("status", {})

    def primed(self, name: str) -> Any:  # noqa: ANN401 - JSON
        """Return what the status of a Primer says about its only CronJob."""
        (one,) = self.status(name)["cronJobs"]
        return one

    def condition(self, name: str, kind: str) -> tuple[str, str]:
        """Return the status and the reason of a condition."""
        found = next(each for each in self.status(name)["conditions"] if each["type"] == kind)
        return found["status"], found["reason"]

    @property
    def placeholders(self) -> list[str]:
        """The names of those that there are."""
        found = self.world.history.present(pods.POD).items()
        return [key.name for key, pod in found if _is_placeholder(pod)]

    # The operator

    @property
    def _role(self) -> Role:
        patches = Grant("cronjobs.batch", "patch", everywhere=True)
        return Role("primers", frozenset({patches}) if self.settings.annotated_cron_jobs else frozenset())

    def start(self, dies: Moment | None = None, workers: int = 2) -> Process:
        """Start the operator; it may be told to die at one of its writes."""
        visitor = Visitor(self.world, weather=self.weather, role=self._role)
        self.visitors.append(visitor)
        controller = Primers(self.settings, self.dry_run, self.locate_volumes or locate_volumes_with(visitor))
        self.process = Process(visitor, controller, dies=dies, workers=workers, timing=CALM, emit=self.events.append)
        return self.process

    def follow(self, leads: Turnover, workers: int = 2) -> Process:
        """Start a replica that leads from when it is told to."""
        visitor = Visitor(self.world, weather=self.weather, role=self._role)
        self.visitors.append(visitor)
        controller = Primers(self.settings, self.dry_run, self.locate_volumes or locate_volumes_with(visitor))
        return Process(
            visitor, controller, election=leads, may_write=lambda: leads.is_leader, workers=workers, timing=CALM
        )

    async def stop(self) -> None:
        """End the operator where it stands."""
        if self.process is not None:
            await self.process.kill()
            self.process = None

    async def until(self, at: datetime) -> None:
        """Let time pass up to an instant."""
        await asyncio.sleep((at - self.clock()).total_seconds())

    # What is recorded

    def _heard(self, happening: Happening) -> None:
        if happening.kind != pods.POD:
            return
        name, after = happening.key.name, happening.after
        pod = after or happening.gone
        if _is_placeholder(pod):
            self._hold(name, pod, is_new=happening.before is None, is_gone=after is None)
        elif after is not None and after.get("status", {}).get("phase") == "Running":
            job = self.world.history.present(batch.JOB)[Key(HOME, after["metadata"]["labels"][batch.JOB_NAME_LABEL])]
            fire = instant(job["metadata"]["annotations"][batch.SCHEDULED_AT])
            assert fire is not None
            cron = job["metadata"]["ownerReferences"][0]["name"]
            self.record.delays.setdefault((cron, fire), (self.clock() - fire).total_seconds())

    def _hold(self, name: str, pod: Document, *, is_new: bool, is_gone: bool) -> None:
        if is_new:
            fire = instant(pod["metadata"]["annotations"][FIRE])
            assert fire is not None
            self._standing[name] = Held(name, fire, self.clock())
            self.record.held.append(self._standing[name])
        if is_gone:
            self._standing.pop(name).until = self.clock()
        self.most = max(self.most, len(self._standing))


def _is_placeholder(pod: Document) -> bool:
    labels = pod["metadata"].get("labels", {})
    return PRIMER_LABEL in labels and batch.JOB_NAME_LABEL not in labels
