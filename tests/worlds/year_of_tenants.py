"""A year of random NonAdminSchedules, compared with the model that Velero's Schedules are compared with.

Tenants' expressions have one dialect, one zone and no default. A backup by hand and an unavailable location block no
run: the NonAdminBackup of a slot is created in any case, and waits itself.
"""

from dataclasses import replace
from datetime import datetime

from foresail.api.instants import instant
from foresail.api.marks import SLOT
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.schedules.rules import DIALECT, ZONE
from testbed.oracle import Oracle
from tests.worlds.documents import Document
from tests.worlds.process import CALM
from tests.worlds.schedule_scene import Record, Run
from tests.worlds.streams import Weather
from tests.worlds.tenant_schedules import TenantScene
from tests.worlds.velero_stand_in import StandIn
from tests.worlds.year_of_schedules import KEPT, Year, compared, ending, foretold, lived, run_key
from tests.worlds.year_stories import Story, Surroundings, surroundings

NAMESPACE = "red"


class TenantYear(TenantScene):
    """NonAdminSchedules of one namespace, and a Velero that works by itself for a year."""

    def __init__(self, most: int) -> None:
        super().__init__(CALM, maximum=most)
        self.weather = Weather(bookmark_every=86_400.0)
        self.velero = StandIn(self.world, ending=self._ending, ttl=KEPT)

    @property
    def record(self) -> Record:
        """Return the runs and the skips of all schedules."""
        names = {key: _schedule_of(key, slot) for key, _, slot, _ in self.runs}
        runs = [Run(names[key], slot, at) for key, _, slot, at in self.runs]
        return Record(runs, [(key.name, datetime.fromisoformat(at)) for key, all_ in self.skips.items() for at in all_])

    def make(self, name: str, schedule: object, **spec: object) -> str:
        """Create a NonAdminSchedule."""
        return self.schedule(Key(NAMESPACE, name), str(schedule), **spec)

    def write(self, name: str, **spec: object) -> None:
        """Change fields of the spec of a NonAdminSchedule."""
        self.edit(Key(NAMESPACE, name), NON_ADMIN_SCHEDULE, **spec)

    def by_hand(self, _: str, name: str) -> None:
        """Create a NonAdminBackup that belongs to no schedule."""
        self.back_up(Key(NAMESPACE, name))

    def locate(self, _: str) -> None:
        """Do nothing: which locations are available does not matter to a NonAdminSchedule."""

    def _ending(self, backup: Document, made: datetime) -> tuple[datetime, str]:
        key = Key(NAMESPACE, backup["metadata"]["annotations"][BACKUPS.origin_name])
        request = self.request(key)
        assert request is not None
        slot = instant(request["metadata"]["annotations"].get(SLOT, ""))
        return ending(key.name if slot is None else run_key(_schedule_of(key, slot), slot), made)


def _schedule_of(run: Key, slot: datetime) -> str:
    return run.name.removesuffix(f"-{slot:%Y%m%d%H%M%S}")


def tenants_surroundings(number: int, schedules: int, seed: int) -> Surroundings:
    """Return one cluster with its year, as tenants' schedules see it."""
    around = surroundings(number, schedules, seed)
    return replace(around, dialect=DIALECT, zone=ZONE, default=False, away=())


def live_and_compare(number: int, schedules: int, seed: int) -> Year:
    """Live through the year of one cluster, and compare it with the model."""
    around = tenants_surroundings(number, schedules, seed)
    record = lived(around, lambda _: TenantYear(schedules))
    blocking = replace(around, stories=tuple(map(_without_backups_by_hand, around.stories)))
    year = compared(around, record, foretold(blocking, Oracle()))
    year.zones = {word for story in around.stories for word in _zones(story)}
    return year


def _without_backups_by_hand(story: Story) -> Story:
    return replace(story, deeds=tuple(each for each in story.deeds if not each.by_hand))


def _zones(story: Story) -> set[str]:
    """Return the zones that the expressions of a story name."""
    texts = [str((spec or {}).get("schedule", "")) for spec in (story.spec, *(each.spec for each in story.deeds))]
    return {text.split()[0].partition("=")[2] for text in texts if "TZ=" in text}
