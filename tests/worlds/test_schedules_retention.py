"""Retention in a world: the oldest Backup goes when a newer one is Completed, whenever the operator dies."""

from datetime import datetime, timedelta

import pytest

from foresail.api import velero
from foresail.api.marks import PINNED
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.kube.store import STALE_SECONDS
from foresail.plan import Key, Kind
from foresail.schedules.controller import Schedules
from foresail.schedules.retention import MOST_OPEN_DELETIONS
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.process import Moment, Process
from tests.worlds.schedule_scene import HOME, ScheduleScene
from tests.worlds.velero_stand_in import in_a_moment
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import done

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
EVERY_TEN = "*/10 * * * *"
SAY_WHAT_STAYS = [velero.SCHEDULE, velero.BACKUP, velero.RESTORE, velero.LOCATION, SCHEDULE_POLICY]


def backups(scene: ScheduleScene) -> list[str]:
    return sorted(key.name for key in scene.world.history.present(velero.BACKUP))


def slots_left(scene: ScheduleScene) -> list[int]:
    """Return the slots that still have a Backup, in minutes."""
    stamps = [datetime.strptime(f"{name.split('-')[1]}+0000", "%Y%m%d%H%M%S%z") for name in backups(scene)]
    return [int((each - BEGINNING) / MINUTE) for each in stamps]


def failing(process: Process) -> float:
    """Return how many Schedules have a deletion that failed, as a scrape shows it."""
    controller = process.loop.controller
    assert isinstance(controller, Schedules)
    families = {each.name: each for each in controller.metrics.collect()}
    (sample,) = families["foresail_schedules_retention_failed"].samples
    return sample.value


def live(dies: Moment | None = None) -> ScheduleScene:
    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("short", {"names": ["often"]}, retention={"keepLast": 2, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        process = scene.start(dies)
        for minutes in range(5, 70, 5):
            await scene.until(BEGINNING + minutes * MINUTE)
            if process.died:
                await scene.stop()
                process = scene.start()
        await scene.until(BEGINNING + 69 * MINUTE)
        await scene.stop()
        return scene

    return virtual_time.run(story())


def test_oldest_backup_goes_when_a_newer_one_takes_its_place() -> None:
    scene = live()
    assert scene.record.slots_of("often") == [BEGINNING + number * 10 * MINUTE for number in range(1, 7)]
    assert slots_left(scene) == [50, 60]
    deleted = [note.message for note in scene.notes if note.reason == "RetentionDeleted"]
    assert len(deleted) == 4
    assert all("keepLast 2 keeps newer ones" in each for each in deleted)


@pytest.mark.parametrize(
    "kind",
    [velero.SCHEDULE, velero.BACKUP, velero.RESTORE, velero.LOCATION, SCHEDULE_POLICY],
    ids=lambda kind: kind.name,
)
def test_nothing_goes_while_the_watch_of_a_kind_that_says_what_must_stay_brings_nothing(kind: Kind) -> None:
    async def story() -> None:
        scene = ScheduleScene()
        scene.rule("short", {"names": ["often"]}, retention={"keepLast": 2, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        process = scene.start()
        await scene.until(BEGINNING + 15 * MINUTE)
        (store,) = (watch.reflector.store for watch in process.loop.watches if watch.reflector.spec.kind == kind)
        store.age = lambda: STALE_SECONDS + 1
        await scene.until(BEGINNING + 45 * MINUTE)
        assert slots_left(scene) == [10, 20, 30, 40]
        store.age = lambda: 0.0
        await scene.until(BEGINNING + 55 * MINUTE)
        assert slots_left(scene) == [40, 50]
        await scene.stop()

    virtual_time.run(story())


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_write_deletes_the_same_backups(after: bool) -> None:
    writes = len(live().writes)
    assert writes > 12
    for number in range(1, writes + 1):
        scene = live(Moment(after=after, write=number))
        assert slots_left(scene) == [50, 60], f"death at write {number}"


def test_failed_runs_never_push_out_the_last_good_backup() -> None:
    def fails_after_the_first(backup: Document, made: datetime) -> tuple[datetime, str]:
        end, phase = in_a_moment(backup, made)
        return end, phase if made < BEGINNING + 11 * MINUTE else "Failed"

    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=fails_after_the_first)
        scene.rule("short", {}, retention={"keepLast": 1, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        scene.start()
        await scene.until(BEGINNING + HOUR + MINUTE)
        await scene.stop()
        return scene

    assert slots_left(virtual_time.run(story())) == [10, 20, 30, 40, 50, 60]


def test_new_policy_waits_for_approval_and_a_removed_one_deletes_nothing() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.make("often", EVERY_TEN)
        scene.start()
        await scene.until(BEGINNING + 41 * MINUTE)
        scene.rule("short", {}, retention={"keepLast": 1, "gracePeriod": "0s"})
        await scene.until(BEGINNING + 43 * MINUTE)
        assert slots_left(scene) == [10, 20, 30, 40]
        assert "RetentionNotApproved" in {note.reason for note in scene.notes}
        done(scene.world.delete(SCHEDULE_POLICY, Key("", "short")))
        await scene.until(BEGINNING + 55 * MINUTE)
        await scene.stop()
        return scene

    assert slots_left(virtual_time.run(story())) == [10, 20, 30, 40, 50]


def test_policy_that_cannot_be_read_leaves_no_other_one_to_delete() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("gold", {}, priority=9, retention={"keepLast": 100, "gracePeriod": "0s"})
        scene.rule("short", {}, retention={"keepLast": 8, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        scene.start()
        await scene.until(BEGINNING + 85 * MINUTE)
        done(scene.world.merge(SCHEDULE_POLICY, Key("", "gold"), {"spec": {"priority": "high"}}, "an administrator"))
        await scene.until(BEGINNING + 105 * MINUTE)
        assert slots_left(scene) == [number * 10 for number in range(1, 11)]
        messages = [note.message for note in scene.notes if note.reason == "RetentionInDoubt"]
        assert messages
        assert all("Correct SchedulePolicy gold: it cannot be read" in each for each in messages)
        done(scene.world.delete(SCHEDULE_POLICY, Key("", "gold")))
        await scene.until(BEGINNING + 109 * MINUTE)
        await scene.stop()
        return scene

    assert slots_left(virtual_time.run(story())) == [number * 10 for number in range(3, 11)]


def test_many_schedules_delete_a_few_at_a_time_and_all_come_to_their_turn() -> None:
    most = 0

    async def story() -> ScheduleScene:
        nonlocal most
        scene = ScheduleScene()
        scene.rule("short", {}, retention={"keepLast": 1, "gracePeriod": "0s"})
        for number in range(3 * MOST_OPEN_DELETIONS):
            scene.make(f"s{number}", EVERY_TEN)

        def count(_: object) -> None:
            nonlocal most
            most = max(most, len(scene.world.history.present(velero.DELETE_REQUEST)))

        scene.world.history.listeners.append(count)
        scene.start()
        await scene.until(BEGINNING + 29 * MINUTE)
        await scene.stop()
        return scene

    scene = virtual_time.run(story())
    assert set(slots_left(scene)) == {20}
    assert len(backups(scene)) == 3 * MOST_OPEN_DELETIONS
    assert 1 < most <= MOST_OPEN_DELETIONS + 2  # two workers decide at the same time


@pytest.mark.parametrize("is_readable", [True, False])
def test_backup_that_a_restore_reads_stays_until_it_has_ended(*, is_readable: bool) -> None:
    """A Restore that cannot be decoded may read any Backup."""

    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("short", {}, retention={"keepLast": 1, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        scene.start()
        await scene.until(BEGINNING + 11 * MINUTE)
        name = backups(scene)[0] if is_readable else 3
        done(
            scene.world.create(velero.RESTORE, {"metadata": {"name": "back"}, "spec": {"backupName": name}}, "a", HOME)
        )
        await scene.until(BEGINNING + 32 * MINUTE)
        assert slots_left(scene) == ([10, 30] if is_readable else [10, 20, 30])
        if is_readable:
            done(scene.world.merge(velero.RESTORE, Key(HOME, "back"), {"status": {"phase": "Completed"}}, "velero"))
            await scene.until(BEGINNING + 33 * MINUTE)
            assert slots_left(scene) == [30]
        else:
            scene.world.delete(velero.RESTORE, Key(HOME, "back"))
        await scene.until(BEGINNING + 42 * MINUTE)
        await scene.stop()
        return scene

    assert slots_left(virtual_time.run(story())) == [40]


@pytest.mark.parametrize("is_restored", [False, True])
def test_rules_that_are_edited_during_a_restore_ask_when_it_has_ended(is_restored: bool) -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("p", {}, retention={"keepLast": 1000, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        scene.start()
        await scene.until(BEGINNING + 5 * HOUR + 5 * MINUTE)
        if is_restored:
            status = {"phase": "InProgress"}
            restore = {"metadata": {"name": "r"}, "spec": {"scheduleName": "often"}, "status": status}
            done(scene.world.create(velero.RESTORE, restore, "user", HOME))
        done(scene.world.merge(SCHEDULE_POLICY, Key("", "p"), {"spec": {"retention": {"keepLast": 1}}}, "admin"))
        await scene.until(scene.clock() + timedelta(seconds=30))
        if is_restored:
            done(scene.world.merge(velero.RESTORE, Key(HOME, "r"), {"status": {"phase": "Completed"}}, "velero"))
        await scene.until(scene.clock() + 3 * MINUTE)
        await scene.stop()
        return scene

    scene = virtual_time.run(story())
    assert len(backups(scene)) == 30
    assert "RetentionNotApproved" in {note.reason for note in scene.notes}


def test_backup_that_is_pinned_while_the_leader_is_paused_stays() -> None:
    """A write of the paused leader fails, for the Backup has changed since it was read."""

    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("short", {}, retention={"keepLast": 2, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        process = scene.start()
        first = ""

        def pause() -> None:
            nonlocal first
            names = backups(scene)
            if len(names) == 3 and not first and scene.clock() > BEGINNING + 30 * MINUTE + timedelta(seconds=1):
                first = names[0]
                pinned = {"metadata": {"annotations": {PINNED: "true"}}}
                done(scene.world.merge(velero.BACKUP, Key(HOME, first), pinned, "admin"))

        process.executor._before_write = pause  # noqa: SLF001 - what happens while the process stands still
        await scene.until(BEGINNING + 65 * MINUTE)
        assert first in backups(scene)
        await scene.stop()
        return scene

    assert slots_left(virtual_time.run(story())) == [10, 50, 60]


def fails_for_a_day(error: str | None) -> ScheduleScene:
    """Return a world where the first deletion fails or is abandoned, and is looked at again after more than a day."""

    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("short", {}, retention={"keepLast": 2, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        failures = {"often-" + f"{BEGINNING + 10 * MINUTE:%Y%m%d%H%M%S}": error}
        scene.velero.deleting = lambda name: next(
            (failures.pop(each) for each in failures if name.startswith(each)), ""
        )
        process = scene.start()
        await scene.until(BEGINNING + 23 * HOUR + 55 * MINUTE)
        first, *others = slots_left(scene)
        assert first == 10, "a deletion that failed is not requested again while the request exists"
        assert others == [23 * 60 + 40, 23 * 60 + 50], "it blocks no other deletion"
        assert failing(process) == 1
        scene.write("often", schedule="0 0 1 1 *")
        await scene.until(BEGINNING + 25 * HOUR)
        assert failing(process) == 0
        await scene.stop()
        return scene

    return virtual_time.run(story())


def test_deletion_that_fails_amid_it_is_reported_and_requested_again_after_a_day() -> None:
    scene = fails_for_a_day("a snapshot is locked")
    assert slots_left(scene) == [23 * 60 + 40, 23 * 60 + 50]
    (message,) = {note.message for note in scene.notes if note.reason == "RetentionFailed"}
    assert "a snapshot is locked" in message
    again = [note.message for note in scene.notes if "an earlier deletion did not finish" in note.message]
    assert len(again) == 1


def test_deletion_amid_which_velero_is_killed_is_reported_and_requested_again_after_a_day() -> None:
    scene = fails_for_a_day(None)
    assert slots_left(scene) == [23 * 60 + 40, 23 * 60 + 50]
    (message,) = {note.message for note in scene.notes if note.reason == "RetentionFailed"}
    assert "has not finished the deletion of Backup often-" in message


@pytest.mark.parametrize(
    ("odd", "words"),
    [
        ({"status": {"phase": "Processed", "errors": "none"}}, "cannot be read"),
        ({"spec": {"backupName": "another"}, "status": {"phase": "Processed"}}, "is for Backup another"),
    ],
    ids=["unreadable", "another"],
)
def test_odd_request_in_the_place_of_a_deletion_is_reported_and_blocks_no_other(
    odd: dict[str, object], words: str
) -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene()
        scene.rule("short", {}, retention={"keepLast": 2, "gracePeriod": "0s"})
        scene.make("often", EVERY_TEN)
        process = scene.start()
        await scene.until(BEGINNING + 15 * MINUTE)
        (first,) = backups(scene)
        scene.velero.is_running = False
        place = {"metadata": {"name": f"{first}-retention"}, "spec": {"backupName": first}, **odd}
        done(scene.world.create(velero.DELETE_REQUEST, place, "someone", HOME))
        scene.velero.is_running = True
        await scene.until(BEGINNING + 65 * MINUTE)
        assert slots_left(scene) == [10, 50, 60], "it blocks no other deletion"
        (message,) = {note.message for note in scene.notes if note.reason == "RetentionFailed"}
        assert message.startswith(f"DeleteBackupRequest {HOME}/{first}-retention {words}")
        assert failing(process) == 1
        assert not [note for note in scene.notes if note.reason == "NameTaken"]
        done(scene.world.delete(velero.DELETE_REQUEST, Key(HOME, f"{first}-retention")))
        await scene.until(BEGINNING + 66 * MINUTE)
        assert failing(process) == 0
        await scene.stop()
        return scene

    assert slots_left(virtual_time.run(story())) == [50, 60]
