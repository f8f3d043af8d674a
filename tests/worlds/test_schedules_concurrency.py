"""Limited groups in a world: never more Backups at once than allowed, all get their turn in the order of slots."""

from collections import Counter
from datetime import datetime, timedelta
from itertools import pairwise

import pytest

from foresail.api import velero
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.plan import Key, Plan
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import ScheduleView
from foresail.schedules.velero_server import VeleroView
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.process import CALM, Moment, Process, Turnover
from tests.worlds.roles import Role
from tests.worlds.schedule_scene import HOME, ScheduleScene
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.visitor import Visitor
from tests.worlds.world import done

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
DAILY = "0 1 * * *"


def takes_five_minutes(_: Document, made: datetime) -> tuple[datetime, str]:
    return made + 5 * MINUTE, "Completed"


class Count:
    """The most Backups of some Schedules that were unfinished at once."""

    def __init__(self, scene: ScheduleScene, prefix: str = "") -> None:
        self.most, self._scene, self._prefix = 0, scene, prefix
        scene.world.history.listeners.append(self)

    def __call__(self, _: object) -> None:
        found = self._scene.world.history.present(velero.BACKUP).items()
        phases = [each.get("status", {}).get("phase", "") for key, each in found if key.name.startswith(self._prefix)]
        self.most = max(self.most, sum(each not in velero.TERMINAL for each in phases))


def live(dies: Moment | None = None, schedules: int = 12, most: int = 3) -> tuple[ScheduleScene, Count]:
    async def story() -> tuple[ScheduleScene, Count]:
        scene = ScheduleScene(ending=takes_five_minutes)
        count = Count(scene)
        scene.rule("few", {}, concurrency={"max": most})
        for number in range(schedules):
            scene.make(f"s{number:03}", DAILY)
        process = scene.start(dies, workers=4)
        while scene.clock() < BEGINNING + 2 * HOUR:
            await scene.until(scene.clock() + MINUTE)
            if process.died:
                await scene.stop()
                process = scene.start(workers=4)
        await scene.stop()
        return scene, count

    return virtual_time.run(story())


def all_ran_once(scene: ScheduleScene, schedules: int = 12) -> None:
    assert sorted(run.schedule for run in scene.record.runs) == [f"s{number:03}" for number in range(schedules)]


def test_only_so_many_run_at_once_and_the_others_follow_in_their_order_without_a_gap() -> None:
    scene, count = live()
    all_ran_once(scene)
    assert count.most == 3
    starts = [run.at - BEGINNING for run in scene.record.runs]
    assert [int(each / MINUTE) for each in starts] == [60] * 3 + [65] * 3 + [70] * 3 + [75] * 3
    waited = [run.schedule for run in scene.record.runs[3:]]
    assert waited == sorted(waited)
    (reason,) = {note.reason for note in scene.notes if note.reason != "Skipped"}
    assert reason == "ConcurrencyLimit"
    assert all("s0" in note.message and len(note.message.split()) <= 30 for note in scene.notes)


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_death_at_any_write_starts_no_more_than_allowed_and_loses_no_run(after: bool) -> None:
    writes = len(live(schedules=6, most=2)[0].writes)
    assert writes >= 12
    for number in range(1, writes + 1):
        scene, count = live(Moment(after=after, write=number), schedules=6, most=2)
        all_ran_once(scene, 6)
        assert count.most == 2, f"death at write {number}"


@pytest.mark.parametrize("seconds", [0, 1, 60, 299, 300, 301, 600])
def test_replica_that_takes_over_starts_no_more_than_allowed(seconds: int) -> None:
    async def story() -> tuple[ScheduleScene, Count]:
        scene = ScheduleScene(ending=takes_five_minutes)
        count = Count(scene)
        scene.rule("few", {}, concurrency={"max": 2})
        for number in range(6):
            scene.make(f"s{number:03}", DAILY)
        first, second = Turnover(is_leader=True), Turnover()
        replicas = [scene.follow(first, workers=4), scene.follow(second, workers=4)]
        await scene.until(BEGINNING + HOUR + timedelta(seconds=seconds, milliseconds=50))
        first.follow()
        second.lead()
        await scene.until(BEGINNING + 2 * HOUR)
        for replica in replicas:
            await replica.kill()
        return scene, count

    scene, count = virtual_time.run(story())
    all_ran_once(scene, 6)
    assert count.most == 2


def test_earlier_slot_starts_before_a_later_one_whatever_the_name() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=takes_five_minutes)
        scene.rule("few", {}, concurrency={"max": 1})
        for name, text in (("z", "0 1 * * *"), ("y", "1 1 * * *"), ("b", "2 1 * * *"), ("a", "3 1 * * *")):
            scene.make(name, text)
        scene.start()
        await scene.until(BEGINNING + 2 * HOUR)
        await scene.stop()
        return scene

    assert [run.schedule for run in virtual_time.run(story()).record.runs] == ["z", "y", "b", "a"]


def test_group_is_shared_by_policies_and_other_schedules_do_not_wait() -> None:
    async def story() -> tuple[ScheduleScene, Count, Count]:
        scene = ScheduleScene(ending=takes_five_minutes)
        grouped, free = Count(scene, "g"), Count(scene, "f")
        for number in range(4):
            scene.rule(f"p{number}", {"names": [f"g{number}"]}, concurrency={"max": 1, "group": "slow"})
            scene.make(f"g{number}", DAILY)
            scene.make(f"f{number}", DAILY)
        scene.start()
        await scene.until(BEGINNING + 2 * HOUR)
        await scene.stop()
        return scene, grouped, free

    scene, grouped, free = virtual_time.run(story())
    assert len(scene.record.runs) == 8
    assert (grouped.most, free.most) == (1, 4)


def test_run_that_cannot_start_any_more_leaves_its_turn_to_the_next() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=takes_five_minutes)
        scene.rule("few", {}, concurrency={"max": 1})
        for name in ("a", "b", "c", "d"):
            scene.make(name, DAILY)
        scene.start()
        await scene.until(BEGINNING + HOUR + MINUTE)
        started = scene.record.runs[0].schedule
        waiting = [each for each in ("a", "b", "c", "d") if each != started]
        scene.write(waiting[0], paused=True)
        done(scene.world.delete(velero.SCHEDULE, Key(HOME, waiting[1])))
        await scene.until(BEGINNING + HOUR + 8 * MINUTE)
        assert [run.schedule for run in scene.record.runs] == [started, waiting[2]]
        await scene.stop()
        return scene

    virtual_time.run(story())


def test_higher_limit_and_a_deleted_policy_take_effect_at_once() -> None:
    async def story() -> None:
        scene = ScheduleScene(ending=takes_five_minutes)
        scene.rule("few", {}, concurrency={"max": 1})
        for number in range(6):
            scene.make(f"s{number}", DAILY)
        scene.start()
        await scene.until(BEGINNING + HOUR + MINUTE)
        assert len(scene.record.runs) == 1
        body = {"spec": {"concurrency": {"max": 3}}}
        done(scene.world.merge(SCHEDULE_POLICY, Key("", "few"), body, "admin"))
        await scene.until(BEGINNING + HOUR + 2 * MINUTE)
        assert len(scene.record.runs) == 3
        done(scene.world.delete(SCHEDULE_POLICY, Key("", "few")))
        await scene.until(BEGINNING + HOUR + 3 * MINUTE)
        assert len(scene.record.runs) == 6
        await scene.stop()

    virtual_time.run(story())


def test_backup_that_is_deleted_while_it_runs_frees_its_place() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=lambda _, made: (made + 10 * DAY, "Completed"))
        scene.rule("few", {}, concurrency={"max": 1})
        for name in ("a", "b"):
            scene.make(name, DAILY)
        scene.start()
        await scene.until(BEGINNING + HOUR + MINUTE)
        (key,) = scene.world.history.present(velero.BACKUP)
        done(scene.world.delete(velero.BACKUP, key))
        await scene.until(BEGINNING + HOUR + 2 * MINUTE)
        await scene.stop()
        return scene

    assert len(virtual_time.run(story()).record.runs) == 2


def crowd(schedules: int, text: str, takes: timedelta, most: int, span: timedelta) -> ScheduleScene:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=lambda _, made: (made + takes, "Completed"))
        scene.rule("few", {}, concurrency={"max": most})
        for number in range(schedules):
            scene.make(f"s{number:03}", text)
        scene.start(workers=4)
        await scene.until(BEGINNING + span)
        await scene.stop()
        return scene

    return virtual_time.run(story())


@pytest.mark.repeats
@pytest.mark.parametrize(
    ("schedules", "text", "takes", "most", "span"),
    [
        pytest.param(60, DAILY, HOUR, 2, 10 * DAY, marks=pytest.mark.full),
        (5, "0 * * * *", 20 * MINUTE, 1, 3 * DAY),
        (2, "0 * * * *", 61 * MINUTE, 1, DAY),
    ],
)
def test_group_that_is_too_small_for_all_runs_shares_its_places_equally(
    schedules: int, text: str, takes: timedelta, most: int, span: timedelta
) -> None:
    scene = crowd(schedules, text, takes, most, span)
    fair = max(takes * schedules / most, DAY if text == DAILY else HOUR)  # between two runs of each
    counts = []
    for number in range(schedules):
        starts = [run.at for run in scene.record.runs if run.schedule == f"s{number:03}"]
        pauses = [later - earlier for earlier, later in pairwise([BEGINNING, *starts, BEGINNING + span])]
        assert max(pauses) <= 2 * fair, f"s{number:03}"
        counts.append(len(starts))
    assert max(counts) - min(counts) <= 2


@pytest.mark.repeats
def test_stuck_backup_stops_the_other_schedules_of_its_group_for_a_day_at_most() -> None:
    def ending(document: Document, made: datetime) -> tuple[datetime, str]:
        is_stuck = document["metadata"]["labels"][velero.SCHEDULE_LABEL] == "s003"
        return made + (9999 * DAY if is_stuck else 5 * MINUTE), "Completed"

    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=ending)
        scene.rule("few", {}, concurrency={"max": 1})
        for number in range(20):
            scene.make(f"s{number:03}", DAILY)
        scene.start(workers=4)
        await scene.until(BEGINNING + 10 * DAY)
        await scene.stop()
        return scene

    scene = virtual_time.run(story())
    runs = Counter(run.schedule for run in scene.record.runs)
    assert runs.pop("s003") == 1
    assert len(runs) == 19
    assert min(runs.values()) >= 9
    assert {note.key.name for note in scene.notes if note.reason == "BackupStuck"} == {"s003"}


class RaisesOnce(Schedules):
    """Raises when a run that waits is reconciled, as a defect in a rule would."""

    def decide(self, view: ScheduleView | VeleroView, now: datetime) -> Plan:
        if isinstance(view, ScheduleView) and view.schedule.key.name == "b" and view.group and view.group.turn:
            raise RecursionError("too deep")
        return super().decide(view, now)


def test_run_whose_reconcile_raises_blocks_no_other() -> None:
    async def story() -> ScheduleScene:
        scene = ScheduleScene(ending=takes_five_minutes)
        scene.rule("few", {}, concurrency={"max": 1})
        for name, text in (("a", "0 1 * * *"), ("b", "1 1 * * *"), ("c", "2 1 * * *")):
            scene.make(name, text)
        visitor = Visitor(scene.world, weather=scene.weather, role=Role("schedules"))
        process = Process(visitor, RaisesOnce(HOME, scene.settings), timing=CALM)
        await scene.until(BEGINNING + HOUR + 12 * MINUTE)
        await process.kill()
        return scene

    assert [run.schedule for run in virtual_time.run(story()).record.runs][:2] == ["a", "c"]
