"""266 Schedules at midnight under one policy: four run at once, none is missed, and a new one moves no other."""

from datetime import datetime, timedelta

import pytest

from docs.draw_midnight import MOST, NAMES, TAKES, offsets, starts
from foresail.api import velero
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.virtual_time import BEGINNING

DEADLINE = timedelta(minutes=30)
MIDNIGHT = BEGINNING.replace(hour=0, minute=0, second=0, microsecond=0) + timedelta(days=1)
POLICY = {"spread": {"within": "2h"}, "concurrency": {"max": MOST}, "startingDeadline": "30m"}


def takes(_: Document, made: datetime) -> tuple[datetime, str]:
    return made + TAKES, "Completed"


def night(names: tuple[str, ...]) -> tuple[ScheduleScene, int]:
    most = 0

    async def story() -> ScheduleScene:
        nonlocal most
        scene = ScheduleScene(ending=takes)
        scene.rule("night", {}, **POLICY)
        for name in names:
            scene.make(name, "0 0 * * *")
        running: set[object] = set()

        def count(happening: object) -> None:
            nonlocal most
            kind, key, after = (getattr(happening, each) for each in ("kind", "key", "after"))
            if kind == velero.BACKUP:
                is_over = after is None or after.get("status", {}).get("phase") in velero.TERMINAL
                (running.discard if is_over else running.add)(key)
                most = max(most, len(running))

        scene.world.history.listeners.append(count)
        scene.start(workers=4)
        await scene.until(MIDNIGHT + timedelta(hours=3))
        await scene.stop()
        return scene

    return virtual_time.run(story()), most


@pytest.mark.repeats
@pytest.mark.timeout(600)
def test_midnight_is_spread_over_two_hours_with_four_at_once_and_a_new_schedule_moves_no_other() -> None:
    scene, most = night(NAMES)
    assert most == MOST
    begun = {run.schedule: run.at - MIDNIGHT for run in scene.record.runs}
    assert set(begun) == set(NAMES)
    assert len(scene.record.runs) == len(NAMES)
    late = {name: begun[name] - offset for name, offset in offsets().items()}
    assert timedelta() <= min(late.values())
    assert max(late.values()) < DEADLINE
    assert "Missed" not in {note.reason for note in scene.notes}
    drawn = starts()
    differences = [abs(begun[name] - drawn[name]) for name in NAMES]
    assert sorted(differences)[len(NAMES) // 2] < timedelta(minutes=1)
    more = offsets((*NAMES, "new"))
    assert [name for name in NAMES if more[name] != offsets()[name]] == []
    again, most = night((*NAMES, "new"))
    assert most == MOST
    assert {run.slot for run in again.record.runs} == {MIDNIGHT}
    assert all(run.at - MIDNIGHT >= more[run.schedule] for run in again.record.runs)
    assert max(run.at - MIDNIGHT - more[run.schedule] for run in again.record.runs) < DEADLINE


def test_runs_that_come_due_a_second_later_do_not_wait_until_earlier_ones_are_recorded() -> None:
    async def story() -> tuple[ScheduleScene, list[str]]:
        scene = ScheduleScene(ending=takes)
        scene.rule("night", {}, spread={"within": "1s"})
        for number in range(400):
            scene.make(f"s{number:03}", "0 0 * * *")
        scene.start(workers=1)
        await scene.until(MIDNIGHT - timedelta(minutes=1))
        before = len(scene.writes)
        await scene.until(MIDNIGHT + timedelta(minutes=1))
        await scene.stop()
        return scene, [write.verb for write in scene.writes[before:]]

    scene, verbs = virtual_time.run(story())
    assert (verbs.count("create"), verbs.count("merge")) == (400, 400)
    last = len(verbs) - verbs[::-1].index("create")
    assert {run.at.second for run in scene.record.runs} >= {0, 1}, "both halves of the spread"
    assert verbs[:last].count("merge") <= 80, "one of ten keys, and those that nothing else waited with"
