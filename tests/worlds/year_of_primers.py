"""A year of random CronJobs and Primers, with edits, suspensions and restarts: what must be held, and what was."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from itertools import pairwise

from foresail.primers.rows import RELEASE_AFTER
from tests.worlds import virtual_time
from tests.worlds.primer_scene import Held, PrimerScene
from tests.worlds.year_stories import ZONES

BEGINNING = datetime(2026, 1, 1, tzinfo=UTC)
_SCHEDULES = (
    "{m} {h} * * *",
    "{m} {h} * * 1-5",
    "{m} {h},{h2} * * *",
    "{m} {h} 1,15 * *",
    "{m} {h} * * 0",
    "30 2 * * *",
    "0 3 * * *",
    "@daily",
    "@every 17h",
    "@every 26h13m",
)
_WARM_UPS = (1, 5, 10, 30, 45, 90, 180)
_PUNCTUAL = timedelta(seconds=1)
_QUIET = timedelta(seconds=90)  # for the run before it to be over, and for a new operator to have read everything


@dataclass
class Year:
    """What came of it."""

    cron_jobs: int = 0
    fires: int = 0
    exactly: int = 0  # fires that nothing disturbed, each primed once, at the fire minus the warm-up
    disturbed: int = 0
    restarts: int = 0
    latest: float = 0.0
    differences: list[str] = field(default_factory=list)

    def add(self, other: "Year") -> None:
        """Take in another cluster."""
        for name in ("cron_jobs", "fires", "exactly", "disturbed", "restarts"):
            setattr(self, name, getattr(self, name) + getattr(other, name))
        self.latest = max(self.latest, other.latest)
        self.differences += other.differences


@dataclass
class _One:
    name: str
    warm_up: timedelta
    disturbed: list[tuple[datetime, datetime]] = field(default_factory=list)  # from when until when it was otherwise


def live_and_compare(number: int, count: int, seed: int, days: int = 365) -> Year:
    """Let one cluster, in one zone, live through the days."""
    return virtual_time.run(_Cluster(number, count, seed, days).live())


class _Cluster:
    def __init__(self, number: int, count: int, seed: int, days: int) -> None:
        self.zone = ZONES[number % len(ZONES)]
        self.dice = random.Random(f"{seed}-{number}")  # noqa: S311 - a story, not a secret
        self.count, self.end = count, BEGINNING + timedelta(days=days)
        self.ones: list[_One] = []
        self.restarts: list[tuple[datetime, datetime]] = []

    async def live(self) -> Year:
        scene = PrimerScene(beginning=BEGINNING, node_seconds=20.0)
        for index in range(self.count):
            warm_up = self.dice.choice(_WARM_UPS)
            one = _One(f"job-{index}", timedelta(minutes=warm_up))
            scene.make_cron_job(one.name, self._schedule(), timeZone=self.zone)
            scene.prime(one.name, f"{warm_up}m", allowStanding=True)
            self.ones.append(one)
        scene.start()
        while scene.clock() < self.end:
            await asyncio.sleep(self.dice.expovariate(1 / (86_400 * 4 / self.count)))
            await self._disturb(scene)
        await scene.stop()
        return self._compared(scene)

    def _schedule(self) -> str:
        hour = self.dice.randrange(24)
        text = self.dice.choice(_SCHEDULES)
        return text.format(m=self.dice.randrange(60), h=hour, h2=(hour + self.dice.randrange(6, 18)) % 24)

    async def _disturb(self, scene: PrimerScene) -> None:
        one, what, since = self.dice.choice(self.ones), self.dice.random(), scene.clock()
        if what < 0.3:
            await scene.stop()
            scene.world.history.compact()  # a year of the past does not fit
            await asyncio.sleep(self.dice.choice((0.0, 60.0, 3600.0)))
            scene.start()
            self.restarts.append((since, scene.clock()))
            return
        if what < 0.6:
            scene.change_cron_job(one.name, schedule=self._schedule())
        else:
            change = scene.change_cron_job if what < 0.8 else scene.change_primer
            change(one.name, suspend=True)
            await asyncio.sleep(self.dice.choice((30.0, 3600.0, 86_400.0)))
            change(one.name, suspend=False)
        one.disturbed.append((since, scene.clock()))

    # What must be so

    def _compared(self, scene: PrimerScene) -> Year:
        year = Year(cron_jobs=self.count, restarts=len(self.restarts))
        for one in self.ones:
            self._compare(scene, one, year)
        return year

    def _compare(self, scene: PrimerScene, one: _One, year: Year) -> None:
        held = [each for each in scene.record.held if each.name.startswith(f"{one.name}-warm-")]
        for each in held:
            ends = each.until or scene.clock()
            early, late = each.fire - one.warm_up - _PUNCTUAL, each.fire + RELEASE_AFTER + _PUNCTUAL
            if (each.since < early or ends > late) and not self._is_disturbed(one, early, ends):
                year.differences.append(f"{self.zone} {one.name}: held outside of its window: {each}")
        for each, other in pairwise(held):
            if each.until is None or each.until > other.since:
                year.differences.append(f"{self.zone} {one.name}: held twice: {each} and {other}")
        fires = sorted(fire for name, fire in scene.cluster.fired if name == one.name)
        for before, fire in zip([BEGINNING, *fires], fires, strict=False):
            year.fires += 1
            begins = fire - one.warm_up
            mine = [each for each in held if each.fire == fire]
            if before + _QUIET > begins or self._is_disturbed(one, begins - _QUIET, fire + _QUIET):
                year.disturbed += 1
            elif not self._is_exact(mine, begins):
                year.differences.append(f"{self.zone} {one.name}: {fire} was primed by {mine}")
            else:
                year.exactly += 1
                year.latest = max(year.latest, (mine[0].since - begins).total_seconds())

    def _is_exact(self, mine: list[Held], begins: datetime) -> bool:
        once = bool(mine) and len(mine) <= 1 + self._losses(mine)
        return once and timedelta(0) <= mine[0].since - begins <= _PUNCTUAL

    def _losses(self, mine: list[Held]) -> int:
        """Return how many of several were lost, so that the next was made: runs of other CronJobs may take a place."""
        return sum(one.until is not None and one.until <= other.since for one, other in pairwise(mine))

    def _is_disturbed(self, one: _One, since: datetime, until: datetime) -> bool:
        return any(began <= until and ended >= since for began, ended in (*one.disturbed, *self.restarts))
