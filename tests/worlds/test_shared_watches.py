"""Schedules and self-service in one process: what both watch is streamed once, and each knows what it needs."""

import asyncio
from collections import Counter
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.plan import Key
from foresail.schedules.controller import Schedules
from foresail.schedules.settings import Settings
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.controller import SelfService
from tests.worlds import virtual_time
from tests.worlds.reviews import Reviewer
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.visitor import Visitor
from tests.worlds.world import Definition, done

SCHEDULES = tuple(Definition(kind, status=False) for kind in (velero.SCHEDULE, velero.STATUS_REQUEST))
BOTH = {"Backup", "BackupStorageLocation", "DeleteBackupRequest", "Restore", "SchedulePolicy"}
RED = Key("red", "mine")


def test_backups_and_locations_are_streamed_once_for_both() -> None:
    async def live() -> None:
        tenancy = Tenancy(also=(*SCHEDULES, Definition(DEPLOYMENT)))
        visitor = Visitor(tenancy.world, weather=tenancy.weather)
        reader = AccessReader(Reviewer(visitor, tenancy.reviews), tenancy.reviews.contents)
        schedules, service = Schedules(VELERO, Settings(velero_schedules_off=True)), SelfService(VELERO, access=reader)
        executor, clock = Executor(visitor), tenancy.clock
        first: Loop[Any] = Loop(visitor, schedules, executor, clock)
        second: Loop[Any] = Loop(visitor, service, executor, clock, siblings=[first])
        running = [asyncio.create_task(each) for each in (first.run(), second.run(), tenancy.velero_works())]
        tenancy.make_location("default", default=True)
        body = {"metadata": {"name": "often"}, "spec": {"schedule": "*/5 * * * *", "template": {}}}
        done(tenancy.world.create(velero.SCHEDULE, body, "admin", VELERO))
        tenancy.back_up(RED)
        await tenancy.settle(400)
        streams = Counter(stream.kind.name for stream in visitor.streams)
        assert set(streams.values()) == {1}
        assert len(streams) == len(first.watches) + len(second.watches) - len(BOTH)
        assert set(streams) >= BOTH
        check(tenancy, schedules, service)
        for stream in list(visitor.streams):
            stream.end()
        done(tenancy.world.delete(velero.BACKUP, next(iter(schedules.backups))))
        tenancy.world.history.compact()  # everything is read anew
        await tenancy.settle(60)
        assert len(schedules.backups) == 0
        assert len(service.cluster.backups.velero) == 1
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    virtual_time.run(live())


def check(tenancy: Tenancy, schedules: Schedules, service: SelfService) -> None:
    """Each has what it selects: the tenant's Backup is none of a Schedule."""
    assert tenancy.condition(RED, "Succeeded")[0] == "True"
    assert [row.schedule for row in schedules.backups.rows()] == ["often"]
    assert len(service.cluster.backups.velero) == 2
    assert len(schedules.locations) == len(service.cluster.locations) == 1


@pytest.mark.parametrize("schedules_first", [True, False])
def test_an_unfiltered_watch_serves_one_with_a_selector_whichever_comes_first(schedules_first: bool) -> None:
    async def live() -> None:
        visitor = Visitor(Tenancy().world)
        controllers: list[Any] = [Schedules(VELERO, Settings(velero_schedules_off=True)), SelfService(VELERO)]
        one, other = controllers if schedules_first else reversed(controllers)
        first = Loop(visitor, one, Executor(visitor), visitor.world.clock)
        second = Loop(visitor, other, Executor(visitor), visitor.world.clock, siblings=[first])
        all_of_them = [watch.reflector for watch in (*first.watches, *second.watches)]
        backups = [each for each in all_of_them if each.spec.kind == velero.BACKUP]
        assert [each.filters for each in backups] == [True, True]
        assert all("labelSelector" not in each.parameters for each in backups)

    virtual_time.run(live())
