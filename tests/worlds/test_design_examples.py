"""Examples of the design documents, literally, and Velero in a namespace of another name."""

from collections.abc import Iterator
from datetime import datetime, timedelta

import pytest

from foresail.api import velero
from foresail.plan import Key
from tests.worlds import roles, schedule_scene, tenancy, virtual_time
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.tenancy import Tenancy

NAB = Key("red", "shop")
BEGINNING = virtual_time.BEGINNING


def minutes(count: int) -> datetime:
    return BEGINNING + timedelta(minutes=count)


def paused_from_43_to_50(*, skip: bool | None) -> ScheduleScene:
    """Let `45 * * * *` be paused at the 43rd minute and unpaused at the 50th, and live for two hours."""

    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.make("example", "45 * * * *")
        scene.start()
        await scene.until(minutes(43))
        scene.write("example", paused=True)
        await scene.until(minutes(50))
        scene.write("example", paused=False, **({} if skip is None else {"skipImmediately": skip}))
        await scene.until(minutes(120))
        await scene.stop()
        return scene

    return virtual_time.run(live())


@pytest.mark.parametrize("skip", [None, False])
def test_a_schedule_paused_at_43_and_unpaused_at_50_runs_at_once(skip: bool | None) -> None:
    runs = paused_from_43_to_50(skip=skip).record.runs
    assert [run.slot for run in runs] == [minutes(45), minutes(105)]
    assert [run.at.replace(second=0, microsecond=0) for run in runs] == [minutes(50), minutes(105)]


def test_with_skip_immediately_the_run_of_45_is_skipped_and_the_next_one_comes() -> None:
    scene = paused_from_43_to_50(skip=True)
    assert [run.slot for run in scene.record.runs] == [minutes(105)]
    assert [(name, at.replace(second=0)) for name, at in scene.record.skips] == [("example", minutes(50))]
    assert "skipImmediately" not in scene.read("example")["spec"]


# Velero in a namespace other than velero


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Let Velero live in namespace openshift-adp, with the Roles that the chart renders for it."""
    name = "openshift-adp"
    for module, constant in ((roles, "VELERO"), (schedule_scene, "HOME"), (tenancy, "VELERO")):
        monkeypatch.setattr(module, constant, name)
    roles.granted.cache_clear()
    yield name
    roles.granted.cache_clear()


def test_schedules_run_where_velero_is(elsewhere: str) -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.make("example", "45 * * * *")
        scene.start()
        await scene.until(minutes(60))
        await scene.stop()
        return scene

    scene = virtual_time.run(live())
    assert [run.slot for run in scene.record.runs] == [minutes(45)]
    assert {each.key.namespace for each in scene.writes} == {elsewhere}


def test_tenants_are_served_where_velero_is(elsewhere: str) -> None:
    async def live() -> Tenancy:
        found = Tenancy()
        found.start()
        found.back_up(NAB)
        await found.settle()
        found.velero_says(NAB, "Completed", progress={"totalItems": 3, "itemsBackedUp": 3})
        await found.settle()
        found.back_up(Key(elsewhere, "own"))
        await found.settle()
        await found.stop()
        return found

    found = virtual_time.run(live())
    made = found.made_for(NAB)
    assert made is not None
    assert made["metadata"]["namespace"] == elsewhere
    assert found.condition(NAB, "Succeeded")[:2] == ("True", "Completed")
    assert found.condition(Key(elsewhere, "own"), "Accepted")[:2] == ("False", "NoPolicy")
    assert len(found.velero_objects(velero.BACKUP)) == 1
