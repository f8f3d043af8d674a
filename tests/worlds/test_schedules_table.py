"""Every statement of the design document about skipImmediately, in a world."""

from datetime import datetime, timedelta

import pytest

from foresail.schedules.settings import Settings
from tests.schedules_table import ROWS, Row
from tests.worlds import virtual_time
from tests.worlds.schedule_scene import ScheduleScene

PERIOD = timedelta(minutes=10)
EVERY = "@every 10m"


def played(row: Row) -> ScheduleScene:
    """Live through a row."""

    async def live() -> ScheduleScene:
        scene = ScheduleScene(Settings(skip_immediately=row.default))
        began = scene.clock() + timedelta(seconds=5.3)
        if not row.first_seen:
            scene.start()
        await scene.until(began)
        scene.make("row", EVERY, **row.spec)
        if row.first_seen:
            await scene.until(began + row.first_seen * PERIOD)
            scene.start()
        for step in row.steps:
            await scene.until(began + step.at * PERIOD)
            scene.write("row", **step.spec)
        await scene.until(began + row.until * PERIOD)
        await scene.stop()
        return scene

    return virtual_time.run(live())


def test_every_statement_has_a_name_of_its_own() -> None:
    assert len({row.says for row in ROWS}) == len(ROWS) == 102


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.says)
def test_the_design_document_holds_in_a_world(row: Row) -> None:
    scene = played(row)
    schedule = scene.read("row")
    skips = scene.record.skips_of("row")
    created = datetime.fromisoformat(schedule["metadata"]["creationTimestamp"])
    assert len(skips) == row.skips
    assert schedule["spec"].get("skipImmediately") is row.left
    assert scene.record.slots_of("row") == row.slots(PERIOD, created, skips[-1] if skips else None)


def test_by_default_true_of_three_slots_one_is_skipped_two_are_run_and_nothing_is_written_between() -> None:
    (row,) = [row for row in ROWS if row.says.startswith("the default, three slots")]
    scene = played(row)
    assert [write.verb for write in scene.writes] == ["merge", *["create", "merge"] * 2]
    (skipped,) = scene.record.skips_of("row")
    assert [run.slot - skipped for run in scene.record.runs] == [PERIOD, 2 * PERIOD]
    assert all(run.at - run.slot < timedelta(seconds=0.1) for run in scene.record.runs)
