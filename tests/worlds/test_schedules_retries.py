"""Further attempts at a slot in a world: one good Backup for each slot, whenever the operator dies or is replaced."""

import asyncio
from datetime import datetime, timedelta

import pytest

from foresail.api import velero
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.process import Moment, Turnover
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.velero_stand_in import in_a_moment
from tests.worlds.virtual_time import BEGINNING

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
HOURLY = "0 * * * *"
RETRY = {"attempts": 3, "backoff": "2m"}


def fails_twice(backup: Document, made: datetime) -> tuple[datetime, str]:
    """End the first run of a slot and its first repetition as failed, and the next attempt as Completed."""
    end, phase = in_a_moment(backup, made)
    return end, phase if backup["metadata"]["name"].endswith("-r2") else "Failed"


def phases(scene: ScheduleScene) -> dict[str, str]:
    """Return the phases of all Backups, by slot and attempt."""
    found = scene.world.history.present(velero.BACKUP).items()
    return {key.name.removeprefix("often-"): each["status"]["phase"] for key, each in sorted(found)}


def live(dies: Moment | None = None, until: timedelta = 2 * HOUR + 30 * MINUTE) -> ScheduleScene:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=fails_twice)
        scene.rule("stubborn", {}, retry=RETRY)
        scene.make("often", HOURLY)
        process = scene.start(dies)
        while scene.clock() < BEGINNING + until:
            await scene.until(scene.clock() + MINUTE)
            if process.died:
                await scene.stop()
                process = scene.start()
        await scene.stop()
        return scene

    return virtual_time.run(story())


def one_good_backup_for_each_slot(scene: ScheduleScene) -> None:
    found = phases(scene)
    assert list(found.values()) == ["Failed", "Failed", "Completed"] * 2, found
    assert [name.rpartition("-")[2] for name in found][1::3] == ["r1", "r1"]


def test_slot_whose_run_fails_twice_gets_one_good_backup_and_the_next_slot_is_not_moved() -> None:
    scene = live()
    one_good_backup_for_each_slot(scene)
    slots = scene.record.slots_of("often")
    assert slots == [BEGINNING + HOUR] * 3 + [BEGINNING + 2 * HOUR] * 3
    starts = [run.at - run.slot for run in scene.record.runs]
    assert all(after >= pause for after, pause in zip(starts[:3], (0 * MINUTE, 2 * MINUTE, 6 * MINUTE), strict=True))
    assert max(starts) < 8 * MINUTE
    assert sum(note.reason == "Retrying" for note in scene.notes) == 4


@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_write_makes_the_same_attempts(after: bool) -> None:
    writes = len(live().writes)
    assert writes > 8
    for number in range(1, writes + 1):
        one_good_backup_for_each_slot(live(Moment(after=after, write=number)))


@pytest.mark.parametrize("minutes", [60, 61, 62, 63, 65, 67, 69])
def test_replica_that_takes_over_at_any_time_makes_no_second_good_backup(minutes: int) -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=fails_twice)
        scene.rule("stubborn", {}, retry=RETRY)
        scene.make("often", HOURLY)
        first, second = Turnover(), Turnover()
        replicas = [scene.follow(first), scene.follow(second)]
        first.lead()
        await scene.until(BEGINNING + minutes * MINUTE + timedelta(milliseconds=50))
        first.follow()
        second.lead()
        await scene.until(BEGINNING + 150 * MINUTE)
        for replica in replicas:
            await replica.kill()
        return scene

    one_good_backup_for_each_slot(virtual_time.run(story()))


def test_paused_schedule_is_not_repeated_even_after_it_is_unpaused() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=fails_twice)
        scene.rule("stubborn", {}, retry=RETRY)
        scene.make("often", HOURLY)
        scene.start()
        await scene.until(BEGINNING + 61 * MINUTE)
        scene.write("often", paused=True)
        await asyncio.sleep(120)
        scene.write("often", paused=None)
        await scene.until(BEGINNING + 110 * MINUTE)
        await scene.stop()
        return scene

    scene = virtual_time.run(story())
    assert list(phases(scene).values()) == ["Failed"]
    assert any(note.reason == "RetriesEnded" and "paused" in note.message for note in scene.notes)


def test_attempts_wait_for_the_location_and_nothing_is_written_once_they_have_ended() -> None:
    async def story() -> tuple[ScheduleScene, int]:
        scene = ScheduleScene(ending=lambda backup, made: (in_a_moment(backup, made)[0], "Failed"))
        scene.rule("stubborn", {}, retry=RETRY)
        scene.make("often", HOURLY)
        scene.start()
        await scene.until(BEGINNING + 61 * MINUTE)
        scene.locate("Unavailable")
        await scene.until(BEGINNING + 75 * MINUTE)
        assert len(phases(scene)) == 1
        scene.locate("Available")
        await scene.until(BEGINNING + 100 * MINUTE)
        writes = len(scene.writes)
        await scene.until(BEGINNING + 119 * MINUTE)
        await scene.stop()
        return scene, writes

    scene, writes = virtual_time.run(story())
    assert list(phases(scene).values()) == ["Failed"] * 4
    assert len(scene.writes) == writes
    assert any(note.reason == "RetriesEnded" and "used up" in note.message for note in scene.notes)


def test_failed_attempts_push_out_no_good_backup_and_go_when_a_good_one_is_newer() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=fails_twice)
        scene.rule("stubborn", {}, retry=RETRY, retention={"keepLast": 1, "gracePeriod": "0s"})
        scene.make("often", HOURLY)
        scene.start()
        await scene.until(BEGINNING + 2 * HOUR + 4 * MINUTE)
        assert "Completed" in phases(scene).values()
        await scene.until(BEGINNING + 2 * HOUR + 30 * MINUTE)
        await scene.stop()
        return scene

    found = phases(virtual_time.run(story()))
    assert [name for name, phase in found.items() if phase == "Completed"] == [
        next(name for name in found if name.endswith("-r2"))
    ]
