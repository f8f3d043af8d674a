"""Slots that a SchedulePolicy leaves out are recorded, whenever the operator dies, and their record delays no run."""

from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.kube.failures import failure
from foresail.plan import Kind
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.virtual_time import BEGINNING

SLOTS = {minute: BEGINNING + timedelta(minutes=minute) for minute in range(0, 60, 10)}
NAMES = ("a", "b")
WRITES = 9  # for each: what was observed, the skipped slots, the Backup, its record; and one that asks for the version


def lived(moments: Sequence[Moment]) -> tuple[ScheduleScene, int]:
    """Let two Schedules wait for a window, with these deaths, each made good within five seconds; return how many came.

    The slots of minutes 10 and 20 are outside; that of minute 30 starts, one Schedule after the other.
    """

    async def live() -> tuple[ScheduleScene, int]:
        scene = ScheduleScene()
        windows = {"allowed": [{"schedule": "30 * * * *", "duration": "10m"}]}
        scene.rule("half-past", {}, windows=windows, concurrency={"max": 1})
        for name in NAMES:
            scene.make(name, "*/10 * * * *")
        left, came = list(moments), 0
        process = scene.start(left[0] if left else None, workers=1)
        for second in range(5, 38 * 60, 5):
            await scene.until(BEGINNING + timedelta(seconds=second + 0.5))
            if process.died:
                await scene.stop()
                came, left = came + 1, left[1:]
                process = scene.start(left[0] if left else None, workers=1)
        await scene.stop()
        return scene, came

    return virtual_time.run(live())


def check(scene: ScheduleScene) -> None:
    """Each Schedule ran once, and recorded the last slot that it did not run."""
    for name in NAMES:
        assert (scene.record.slots_of(name), scene.record.skips_of(name)) == ([SLOTS[30]], [SLOTS[20]]), name
        status = scene.read(name)["status"]
        assert datetime.fromisoformat(status["lastBackup"]) == SLOTS[30]
        assert datetime.fromisoformat(status["lastSkipped"]) == SLOTS[20]


def test_record_of_skipped_slots_delays_no_run() -> None:
    scene, _ = lived([])
    check(scene)
    first, second = scene.record.runs
    assert first.at - SLOTS[30] < timedelta(seconds=0.5)
    assert second.at - SLOTS[30] < timedelta(minutes=2)  # after the Backup of the first
    assert sum(len(visitor.writes) for visitor in scene.visitors) == WRITES


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_write_loses_no_record_of_skipped_slots(after: bool, figure: Callable[[str], None]) -> None:
    came = 0
    for number in range(1, WRITES + 1):
        scene, died = lived([Moment(after=after, write=number)])
        check(scene)
        came += died
    assert came == WRITES
    figure(f"schedules under policies: {came} deaths {'after' if after else 'before'} a write, no skipped slot lost")


def test_refused_record_of_skipped_slots_costs_no_run() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("half-past", {}, windows={"allowed": [{"schedule": "30 * * * *", "duration": "10m"}]})
        scene.make("a", "*/10 * * * *")
        scene.start()
        await scene.until(SLOTS[20] + timedelta(minutes=5))
        merge = scene.world.merge

        def refused(kind: Kind, *others: Any) -> Any:  # noqa: ANN401 - as the world's own
            text = "admission webhook denied the request"
            return failure(403, "Forbidden", text) if kind == velero.SCHEDULE else merge(kind, *others)

        scene.world.merge = refused  # type: ignore[method-assign, assignment]
        await scene.until(SLOTS[30] + timedelta(minutes=2))
        await scene.stop()
        return scene

    assert virtual_time.run(live()).record.slots_of("a") == [SLOTS[30]]
