"""Lets the real controller live through a year of stories, and compares what it did with what it must do."""

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Protocol

from foresail.api.marks import SLOT
from foresail.cron import Dialect
from foresail.schedules.settings import Settings
from testbed.oracle import Oracle, Question
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.process import Process
from tests.worlds.schedule_scene import Record, ScheduleScene
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import World
from tests.worlds.year_model import Asking, Fate, fate
from tests.worlds.year_stories import DAYS, Surroundings, end_of, surroundings, with_policies

VERSIONS = {Dialect.ROBFIG: "v1.17.2", Dialect.GOCRON: "v1.18.3"}
KEPT = timedelta(days=2)  # how long a Backup is kept after its end
# Seconds from the instant at which nothing holds a run any more to its Backup. Here two workers serve fifty schedules
# whose requests take some milliseconds each way, and at midnight most of them are due at once.
PROMPT = 0.5
END = DAYS * 86_400.0 - 15
_START = int(BEGINNING.timestamp())


@dataclass
class Year:
    """What was compared, and where the two sides differ."""

    schedules: int = 0
    runs: int = 0
    late: int = 0  # runs that had been held, or were made good after downtime
    skips: int = 0
    restarts: int = 0
    zones: set[str] = field(default_factory=set)
    latest: float = 0.0  # seconds after its instant at which a run that nothing held was made
    differences: list[str] = field(default_factory=list)

    def add(self, other: "Year") -> None:
        """Take in what was compared elsewhere."""
        for name in ("schedules", "runs", "late", "skips", "restarts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.zones |= other.zones
        self.latest = max(self.latest, other.latest)
        self.differences += other.differences


class Scene(Protocol):
    """What a year is lived in: a world with Schedules of one kind, and the operator."""

    world: World

    @property
    def record(self) -> Record: ...
    def start(self) -> Process: ...
    async def stop(self) -> None: ...
    async def until(self, instant: datetime, /) -> None: ...
    def locate(self, phase: str, /) -> None: ...
    def make(self, name: str, schedule: object, **spec: object) -> object: ...
    def write(self, name: str, **spec: object) -> object: ...
    def by_hand(self, schedule: str, name: str, /) -> None: ...


def live_and_compare(number: int, schedules: int, seed: int, *, policies: bool = False) -> Year:
    """Live through the year of one cluster, and compare it with the model."""
    around = surroundings(number, schedules, seed)
    around = with_policies(around, seed) if policies else around
    record = lived(around, _scene)
    fates = foretold(around, Oracle())
    return compared(around, record, fates)


def lived(around: Surroundings, make: Callable[[Surroundings], Scene]) -> Record:
    """Return what the controller did."""
    return virtual_time.run(_live(around, make))


def foretold(around: Surroundings, oracle: Oracle) -> dict[str, Fate]:
    """Return what the model says, all questions of one round being asked together."""
    fates: dict[str, Fate] = {}
    asking: dict[str, tuple[Asking, Question]] = {}

    def go_on(name: str, model: Asking, answer: list[int] | None) -> None:
        try:
            asking[name] = model, (next(model) if answer is None else model.send(answer))
        except StopIteration as ended:
            asking.pop(name, None)
            fates[name] = ended.value

    for story in around.stories:
        go_on(story.name, fate(story, around, _START, _START + END), None)
    while asking:
        round_of = list(asking.items())
        answers = oracle.ask([question for _, (_, question) in round_of])
        for (name, (model, _)), answer in zip(round_of, answers, strict=True):
            go_on(name, model, answer.fires or [])
    return fates


def compared(around: Surroundings, record: Record, fates: dict[str, Fate]) -> Year:
    """Lay both side by side."""
    year = Year(len(around.stories), len(record.runs), skips=len(record.skips), zones={around.zone})
    year.restarts = len(around.down) + len(around.deaths)
    slots: dict[str, list[int]] = {}
    skips: dict[str, list[int]] = {}
    for run in record.runs:
        slots.setdefault(run.schedule, []).append(_second(run.slot))
    for name, instant in record.skips:
        skips.setdefault(name, []).append(_second(instant))
    made = {(run.schedule, _second(run.slot)): run.at.timestamp() for run in record.runs}
    for story in around.stories:
        told = fates[story.name]
        ours = slots.get(story.name, [])
        if len(set(ours)) != len(ours):
            year.differences.append(f"{story.name}: a slot has two Backups")
        if ours != told.slots:
            year.differences.append(f"{story}: {_first(ours, told.slots)}")
        if skips.get(story.name, []) != told.skips:
            year.differences.append(f"{story}: skips {_first(skips.get(story.name, []), told.skips)}")
        for slot, at in zip(told.slots, told.made, strict=True):
            year.late += at > told.starts.get(slot, slot) + 1
            if (story.name, slot) not in made or any(abs(at - _START - death) < 10 for death in around.deaths):
                continue  # told already, or killed at that very instant and made good some seconds later
            after = made[story.name, slot] - at
            year.latest = max(year.latest, after)
            if not -0.001 < after < PROMPT:
                year.differences.append(f"{story}: the run for {slot} came {after:.3f} s after its instant")
    return year


def _first(ours: Sequence[int], theirs: Sequence[int]) -> str:
    at = next((i for i, pair in enumerate(zip(ours, theirs, strict=False)) if pair[0] != pair[1]), None)
    at = min(len(ours), len(theirs)) if at is None else at
    shown = [[str(datetime.fromtimestamp(one, UTC)) for one in side[at : at + 2]] for side in (ours, theirs)]
    return f"after {at} ours goes on {shown[0]}, the model {shown[1]}"


def _second(instant: datetime) -> int:
    return int(instant.timestamp())


def _scene(around: Surroundings) -> ScheduleScene:
    settings = Settings(skip_immediately=around.default, zone=around.zone)
    scene = ScheduleScene(settings, version=VERSIONS[around.dialect], ending=_ending, ttl=KEPT)
    for story in around.stories:
        if story.policy is not None:
            scene.rule(story.name, {"names": [story.name]}, **story.policy)
    return scene


async def _live(around: Surroundings, make: Callable[[Surroundings], Scene]) -> Record:
    scene = make(around)
    for at, deed in _agenda(around, scene):
        await scene.until(BEGINNING + timedelta(seconds=at))
        done = deed()
        if asyncio.iscoroutine(done):
            await done
        scene.world.history.compact()  # a year of the past does not fit
    await scene.until(BEGINNING + timedelta(seconds=END))
    await scene.stop()
    return scene.record


def _agenda(around: Surroundings, scene: Scene) -> list[tuple[float, Callable[[], object]]]:
    agenda: list[tuple[float, Callable[[], object]]] = [(0.5, scene.start)]
    for start, end in around.down:
        agenda += [(start, scene.stop), (end, scene.start)]
    for death in around.deaths:
        agenda += [(death, scene.stop), (death // 60 * 60 + 8.75, scene.start)]
    for start, end in around.away:
        agenda += [(start, lambda: scene.locate("Unavailable")), (end, lambda: scene.locate("Available"))]
    for story in around.stories:
        agenda.append((story.created, partial(scene.make, story.name, **story.spec)))
        for deed in story.deeds:
            does = partial(scene.by_hand, story.name, deed.by_hand)
            agenda.append((deed.at, partial(scene.write, story.name, **deed.spec) if deed.spec else does))
    return sorted((one for one in agenda if one[0] < END), key=lambda one: one[0])


def _ending(backup: Document, made: datetime) -> tuple[datetime, str]:
    metadata = backup["metadata"]
    slot = (metadata.get("annotations") or {}).get(SLOT)
    key = metadata["name"]
    if slot is not None:
        name = metadata["labels"]["velero.io/schedule-name"]
        key = run_key(name, datetime.fromisoformat(slot))
    return ending(key, made)


def run_key(schedule: str, slot: datetime) -> str:
    """Return what decides for how long the run of a slot lasts."""
    return f"{schedule}/{_second(slot)}"


def ending(key: str, made: datetime) -> tuple[datetime, str]:
    """Return when and how a Backup ends that is made at that instant."""
    return BEGINNING + timedelta(seconds=end_of(key, (made - BEGINNING).total_seconds())), "Completed"
