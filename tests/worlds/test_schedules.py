"""Schedules through deaths, bad weather, GitOps tools and holds: no slot twice, and none lost."""

import asyncio
from collections import Counter
from collections.abc import Callable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.instants import stamp
from foresail.api.marks import OBSERVED, SCHEDULE_UID, SLOT
from foresail.api.pods import POD
from foresail.kube.failures import WRITE_REFUSED, failure
from foresail.kube.loop import LoopTiming
from foresail.plan import Key, Kind
from foresail.schedules.controller import Schedules
from foresail.schedules.settings import Settings
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.process import Moment, Turnover
from tests.worlds.schedule_scene import HOME, ScheduleScene
from tests.worlds.streams import Weather
from tests.worlds.world import Answer, done

MINUTE, HOUR = timedelta(minutes=1), timedelta(hours=1)
BEGINNING = virtual_time.BEGINNING


def slots(*minutes: float) -> list[datetime]:
    return [BEGINNING + minute * MINUTE for minute in minutes]


# Deaths


def deaths(moments: Sequence[Moment]) -> tuple[ScheduleScene, int]:
    """Live for 25 minutes with these deaths, each made good within five seconds; return how many of them came."""

    async def live() -> tuple[ScheduleScene, int]:
        scene = ScheduleScene()
        scene.make("plain", "*/10 * * * *")
        scene.make("skips", "*/10 * * * *", skipImmediately=True)
        scene.make("edited", "5 * * * *")
        process = scene.start(moments[0] if moments else None, workers=1)
        came, left = 0, list(moments)
        edits: list[tuple[int, Callable[[], object]]] = [
            (60, lambda: scene.write("plain", paused=True)),
            (720, lambda: scene.write("plain", paused=False)),  # a slot has passed: it is run late
            (780, lambda: scene.write("edited", schedule="*/10 * * * *")),
        ]
        for second in range(5, 25 * 60, 5):
            await scene.until(BEGINNING + timedelta(seconds=second + 0.5))
            if process.died:
                await scene.stop()
                came += 1
                left = left[1:]
                process = scene.start(left[0] if left else None, workers=1)
            while edits and second >= edits[0][0]:
                edits.pop(0)[1]()
        await scene.stop()
        return scene, came

    return virtual_time.run(live())


EXPECTED = {"plain": slots(10, 20), "skips": slots(10, 20), "edited": slots(5, 20)}


def check(scene: ScheduleScene) -> None:
    """Every slot has one Backup, none has two, and the status says so."""
    assert {name: scene.record.slots_of(name) for name in EXPECTED} == EXPECTED
    assert len(scene.record.skips_of("skips")) == 1
    for name, expected in EXPECTED.items():
        schedule = scene.read(name)
        assert datetime.fromisoformat(schedule["status"]["lastBackup"]) == expected[-1]
        assert schedule["spec"].get("skipImmediately") is None


WRITES = 18  # with the one that asks Velero for its version


def test_a_life_without_a_death_has_a_known_number_of_writes() -> None:
    scene, _ = deaths([])
    check(scene)
    assert sum(len(visitor.writes) for visitor in scene.visitors) == WRITES


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_loses_no_slot_and_repeats_none(after: bool, figure: Callable[[str], None]) -> None:
    came = 0
    for number in range(1, WRITES + 1):
        scene, died = deaths([Moment(after=after, write=number)])
        check(scene)
        came += died
    assert came == WRITES
    figure(f"schedules: {came} deaths {'after' if after else 'before'} a write, no slot lost or repeated")


@pytest.mark.repeats
def test_two_deaths_at_any_two_writes_lose_no_slot_and_repeat_none(figure: Callable[[str], None]) -> None:
    came = 0
    for first in range(1, WRITES):
        for second in range(1, WRITES + 1 - first):
            after = (first + second) % 2 == 0
            scene, died = deaths([Moment(after=not after, write=first), Moment(after=after, write=second)])
            check(scene)
            came += died
    assert came == WRITES * (WRITES - 1)
    figure(f"schedules: {came} deaths in pairs, no slot lost or repeated")


def test_an_operator_that_finds_everything_done_writes_nothing() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        for number in range(20):
            scene.make(f"s{number}", f"{number} * * * *", paused=number % 3 == 0)
        scene.start()
        await scene.until(BEGINNING + 70.5 * MINUTE)
        await scene.stop()
        before = len(scene.writes)
        scene.start()
        await scene.until(BEGINNING + 79.5 * MINUTE)
        assert len(scene.writes) > before, "the slots of these minutes"
        assert Counter(write.verb for write in scene.writes[before:]) == {"create": 6, "merge": 6}
        await scene.stop()
        return scene

    virtual_time.run(live())


def test_a_new_leader_reads_what_the_dialects_differ_on_by_the_answer_that_it_saw_as_a_follower() -> None:
    """It held the Schedule as DialectUnknown, and nothing woke it: whatever it had seen change came before Velero."""

    async def live() -> ScheduleScene:
        scene = ScheduleScene(image="velero/velero@sha256:0123456789abcdef")
        scene.start()
        scene.make("differs", "*/10 * 1 * 4")
        leads = Turnover()
        follower = scene.follow(leads)
        await scene.until(BEGINNING + 15 * MINUTE)
        assert scene.record.slots_of("differs") == slots(10)
        await scene.stop()
        leads.lead()
        await scene.until(BEGINNING + 35 * MINUTE)
        await follower.kill()
        return scene

    assert virtual_time.run(live()).record.slots_of("differs") == slots(10, 20, 30)


def test_a_replica_that_becomes_leader_again_shows_no_figures_of_its_last_term(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Another leader may have run since then; what nothing has changed is decided again all the same."""
    shown: list[tuple[datetime, set[str]]] = []
    observe = Schedules.observe

    def recording(self: Schedules, key: Key, now: datetime) -> Any:  # noqa: ANN401 - as observe returns it
        shown.append((now, _series(self)))
        return observe(self, key, now)

    monkeypatch.setattr(Schedules, "observe", recording)

    async def live() -> None:
        scene = ScheduleScene(Settings())
        scene.make("often", "*/10 * * * *")
        scene.make("yearly", "0 0 1 1 *")
        leads, others = Turnover(is_leader=True), Turnover()
        ours = scene.follow(leads)
        controller = ours.loop.controller
        assert isinstance(controller, Schedules)
        controller.metrics.shows_all = True
        await scene.until(BEGINNING + 12 * MINUTE)
        assert _series(controller) == {"often", "yearly"}
        theirs = scene.follow(others)
        leads.follow()
        others.lead()
        await scene.until(BEGINNING + 35 * MINUTE)
        others.follow()
        shown.clear()
        leads.lead()
        assert controller.next_slot(scene.clock()) is not None
        await scene.until(BEGINNING + 36 * MINUTE)
        assert shown[0][1] == set()
        assert _series(controller) == {"often", "yearly"}
        assert controller.next_slot(scene.clock()) == BEGINNING + 40 * MINUTE
        await asyncio.gather(ours.kill(), theirs.kill())

    virtual_time.run(live())


def _series(schedules: Schedules) -> set[str]:
    """Return the Schedules of which a scrape shows something."""
    samples = (each for family in schedules.metrics.collect() for each in family.samples)
    return {name for each in samples if (name := each.labels.get("schedule") or each.labels.get("name"))}


# Bad weather


@pytest.mark.parametrize(
    "weather",
    [
        Weather(lag=3.0, bookmark_every=86_400.0),
        Weather(held_back=2, bookmark_every=86_400.0),
        Weather(repeating=3, bookmark_every=86_400.0),
    ],
    ids=["late", "held back", "repeated"],
)
def test_news_that_come_late_or_twice_bring_no_slot_twice(weather: Weather) -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.weather = weather
        scene.start()
        scene.make("often", "* * * * *")
        scene.make("at-times", "*/7 * * * *")
        await scene.until(BEGINNING + 30.5 * MINUTE)
        await scene.stop()
        return scene

    scene = virtual_time.run(live())
    expected = {"often": slots(*range(1, 31)), "at-times": slots(7, 14, 21, 28)}
    for name, due in expected.items():
        found = scene.record.slots_of(name)
        assert found == sorted(set(found))
        assert set(found) <= set(due)
        if not weather.held_back:  # who is two events behind does not see that a Backup has ended until more happens
            assert found == due


@pytest.mark.parametrize("step", [HOUR, -HOUR])
def test_a_clock_that_is_set_brings_no_slot_twice(step: timedelta) -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.start(timing=LoopTiming())
        scene.make("often", "*/10 * * * *")
        await asyncio.sleep(45.5 * 60)
        scene.clock.step(step)
        await asyncio.sleep(100 * 60)
        await scene.stop()
        return scene

    found = virtual_time.run(live()).record.slots_of("often")
    assert len(found) == len(set(found))
    # Forward, the slots that were jumped over make one late run. Back, a slot that has its Backup gets no second one.
    later = range(100, 210, 10) if step > timedelta(0) else (-10, 0, *range(50, 90, 10))
    assert found == slots(*range(10, 50, 10), *later)


@pytest.mark.repeats
@pytest.mark.parametrize("restarts", [False, True], ids=["same process", "restarted"])
def test_a_clock_that_jumps_a_year_ahead_and_back_stops_no_schedule(restarts: bool) -> None:
    """The runs of the wrong year stand alone; before and after them each slot has one run, on time."""
    year = timedelta(days=365)

    async def live() -> ScheduleScene:
        scene = ScheduleScene(ttl=HOUR)
        scene.start(timing=LoopTiming())
        scene.make("often", "*/10 * * * *")
        scene.make("skips", "*/10 * * * *", paused=True, skipImmediately=True)
        scene.make("edited", "5 * * * *")
        scene.make("paused", "* * * * *")
        await asyncio.sleep(45.5 * 60)
        scene.clock.step(year)
        scene.write("skips", paused=False)
        scene.write("edited", schedule="*/10 * * * *")
        scene.write("paused", paused=True)
        scene.make("made-then", "*/10 * * * *")
        await asyncio.sleep(10)
        scene.clock.step(-year)
        if restarts:
            await scene.stop()
            scene.start(timing=LoopTiming())
        await asyncio.sleep(3 * 3600)
        await scene.stop()
        return scene

    scene = virtual_time.run(live())
    after = slots(*range(50, 230, 10))
    for name, before in {"often": slots(10, 20, 30, 40), "edited": slots(5), "skips": [], "made-then": []}.items():
        found = scene.record.slots_of(name)
        assert len(found) == len(set(found))
        assert [slot for slot in found if slot < BEGINNING + year / 2] == [*before, *after], name
        assert len(found) <= len(before) + len(after) + 1
        assert datetime.fromisoformat(scene.read(name)["status"]["lastBackup"]) == after[-1]
    memory = msgspec.json.decode(scene.read("paused")["metadata"]["annotations"][OBSERVED])
    assert datetime.fromisoformat(memory["paused"]) < BEGINNING + 2 * HOUR
    in_future = [note for note in scene.notes if note.reason == "TimeInFuture"]
    assert {note.key.name for note in in_future} == {"often", "skips", "edited", "made-then"}


@pytest.mark.repeats
def test_a_backup_that_is_deleted_the_moment_it_is_there_is_not_made_again() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.make("hasty", "* * * * *")

        async def tidy() -> None:
            while True:
                for key in list(scene.world.history.present(velero.BACKUP)):
                    scene.world.delete(velero.BACKUP, key)
                await asyncio.sleep(0.001)

        tidying = asyncio.create_task(tidy())
        scene.start()
        await scene.until(BEGINNING + 3.5 * MINUTE)
        tidying.cancel()
        await scene.stop()
        return scene

    scene = virtual_time.run(live())
    assert scene.record.slots_of("hasty") == slots(1, 2, 3)
    assert scene.read("hasty")["status"]["lastBackup"] == stamp(BEGINNING + 3 * MINUTE)


def test_a_backup_that_velero_syncs_from_a_bucket_is_not_measured_as_late() -> None:
    async def live() -> float:
        scene = ScheduleScene()
        uid = scene.make("often", "*/10 * * * *")["metadata"]["uid"]
        scene.start()
        await scene.until(BEGINNING + 15 * MINUTE)
        for number, owner in enumerate((uid, "of-another-cluster")):
            marks = {SCHEDULE_UID: owner, SLOT: stamp(BEGINNING - 300 * 24 * HOUR)}
            metadata = {"name": f"old-{number}", "labels": {velero.SCHEDULE_LABEL: "often"}, "annotations": marks}
            old = {"metadata": metadata, "spec": {}, "status": {"phase": "Completed"}}
            done(scene.world.create(velero.BACKUP, old, "velero", HOME))
        await scene.until(BEGINNING + 25 * MINUTE)
        assert scene.process is not None
        controller = scene.process.loop.controller
        assert isinstance(controller, Schedules)
        (measured,) = [
            sample.value
            for family in controller.metrics.collect()
            for sample in family.samples
            if sample.name == "foresail_schedule_lateness_seconds_count"
        ]
        await scene.stop()
        return measured

    assert virtual_time.run(live()) == 2


def test_a_backup_that_a_stopped_velero_does_not_begin_is_in_a_metric() -> None:
    async def live() -> list[float]:
        scene = ScheduleScene()
        scene.make("often", "*/10 * * * *")
        controller = scene.start().loop.controller
        assert isinstance(controller, Schedules)
        await scene.until(BEGINNING + 5 * MINUTE)
        found = [_waiting_backups(controller)]
        scene.velero.is_running = False
        await scene.until(BEGINNING + 11 * MINUTE)
        found.append(_waiting_backups(controller))
        (backup,) = controller.backups
        done(scene.world.merge(velero.BACKUP, backup, {"status": {"phase": "InProgress"}}, "velero"))
        await scene.until(BEGINNING + 12 * MINUTE)
        found.append(_waiting_backups(controller))
        await scene.stop()
        return found

    assert virtual_time.run(live()) == [0, 1, 0]


def _waiting_backups(schedules: Schedules) -> float:
    samples = [each for family in schedules.metrics.collect() for each in family.samples]
    return sum(each.value for each in samples if each.name == "foresail_schedules_waiting_backups")


# GitOps


@pytest.mark.parametrize("server_side", [False, True], ids=["client-side", "server-side"])
def test_a_manifest_with_true_that_is_applied_every_five_seconds_starves_nothing(server_side: bool) -> None:
    spec = {"schedule": "* * * * *", "template": {}, "skipImmediately": True}
    manifest = {"apiVersion": "velero.io/v1", "kind": "Schedule", "metadata": {"name": "synced"}, "spec": spec}

    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.start()
        key = Key(HOME, "synced")
        for second in range(0, 600, 5):
            await scene.until(BEGINNING + timedelta(seconds=second + 0.5))
            if server_side:
                done(scene.world.apply(velero.SCHEDULE, key, manifest, "flux"))
            elif second:
                done(scene.world.merge(velero.SCHEDULE, key, {"spec": spec}, "argocd"))
            else:
                done(scene.world.create(velero.SCHEDULE, manifest, "argocd", HOME))
        await scene.until(BEGINNING + timedelta(seconds=600.5))
        await scene.stop()
        return scene

    scene = virtual_time.run(live())
    assert scene.record.slots_of("synced") == slots(*range(1, 11))
    assert len(scene.record.skips_of("synced")) == 1
    assert scene.read("synced")["spec"]["skipImmediately"] is True
    fires = 2 * 10  # a Backup and the status that says so
    assert len(scene.writes) - fires <= 2
    assert all(write.refused is None for write in scene.writes)


def test_backups_carry_nothing_by_which_a_gitops_tool_would_prune_them() -> None:
    async def live() -> list[Document]:
        scene = ScheduleScene()
        tracked = {"argocd.argoproj.io/tracking-id": "app:velero.io/Schedule:velero/synced", OBSERVED: "{}"}
        last_applied = {"kubectl.kubernetes.io/last-applied-configuration": "{}", "example.com/kept": "yes"}
        labels = {"app.kubernetes.io/instance": "app", "kustomize.toolkit.fluxcd.io/name": "app"}
        metadata = {"name": "synced", "annotations": {**tracked, **last_applied}, "labels": labels}
        body = {"metadata": metadata, "spec": {"schedule": "* * * * *", "template": {}}}
        done(scene.world.create(velero.SCHEDULE, body, "argocd", HOME))
        scene.start()
        await scene.until(BEGINNING + 2.5 * MINUTE)
        await scene.stop()
        return list(scene.world.history.present(velero.BACKUP).values())

    for backup in virtual_time.run(live()):
        metadata = backup["metadata"]
        assert metadata["labels"] == {velero.SCHEDULE_LABEL: "synced"}
        assert sorted(metadata["annotations"]) == ["example.com/kept", "foresail.dev/schedule-uid", "foresail.dev/slot"]


# Holds


def test_runs_never_overlap_and_a_slow_one_costs_the_slots_it_covers() -> None:
    def slow(_: Document, made: datetime) -> tuple[datetime, str]:
        return made + 25 * MINUTE, "PartiallyFailed"

    async def live() -> ScheduleScene:
        scene = ScheduleScene(ending=slow)
        scene.start()
        scene.make("often", "*/10 * * * *")
        await scene.until(BEGINNING + 70 * MINUTE)
        await scene.stop()
        return scene

    runs = virtual_time.run(live()).record.runs
    assert [run.slot for run in runs] == slots(10, 30, 60)
    assert [round((run.at - BEGINNING) / MINUTE) for run in runs] == [10, 35, 60]


def test_a_backup_that_the_api_server_refuses_is_an_event_on_its_schedule_and_made_when_it_may_be() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == velero.BACKUP:
                return failure(422, "Invalid", "spec.ttl: Invalid value")
            return create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        scene.start()
        scene.make("often", "*/30 * * * *")
        await scene.until(BEGINNING + 40 * MINUTE)
        refused = [note for note in scene.notes if note.reason == WRITE_REFUSED]
        assert len(refused) > 3
        assert len(set(refused)) == 1
        assert (refused[0].kind, refused[0].key.name) == (velero.SCHEDULE, "often")
        assert "spec.ttl: Invalid value" in refused[0].message
        scene.world.create = create  # type: ignore[method-assign]
        await scene.until(BEGINNING + 50 * MINUTE)
        await scene.stop()
        return scene

    assert [run.slot for run in virtual_time.run(live()).record.runs] == [BEGINNING + 30 * MINUTE]


def test_an_unavailable_location_blocks_a_slot_until_it_is_back() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.start()
        scene.make("often", "*/30 * * * *")
        await scene.until(BEGINNING + 20 * MINUTE)
        scene.locate("Unavailable")
        await scene.until(BEGINNING + 40 * MINUTE)
        assert scene.record.runs == []
        scene.locate("Available")
        await scene.until(BEGINNING + 70 * MINUTE)
        await scene.stop()
        return scene

    scene = virtual_time.run(live())
    assert [(run.slot, round((run.at - BEGINNING) / MINUTE)) for run in scene.record.runs] == [
        (BEGINNING + 30 * MINUTE, 40),
        (BEGINNING + 60 * MINUTE, 60),
    ]


def test_a_bucket_that_answers_with_another_request_id_each_minute_is_reported_once() -> None:
    answer = "StatusCode: 404, RequestID: {}, HostID: , api error NoSuchBucket: The specified bucket does not exist"

    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        scene.start()
        for number in range(20):
            scene.make(f"hourly-{number}", "0 * * * *")
        for minute in range(50, 110):
            await scene.until(BEGINNING + minute * MINUTE)
            status = {"phase": "Unavailable", "message": answer.format(minute)}
            done(scene.world.merge(velero.LOCATION, Key(HOME, "default"), {"status": status}, "velero"))
        await scene.stop()
        return scene

    notes = virtual_time.run(live()).notes
    assert Counter(note.key.name for note in notes) == dict.fromkeys((f"hourly-{each}" for each in range(20)), 1)
    (message,) = {note.message for note in notes}
    assert "velero/default is Unavailable: NoSuchBucket: The specified bucket does not exist" in message


def test_a_manual_backup_blocks_the_next_run() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene(ending=lambda _, made: (made + 5 * MINUTE, "Completed"))
        scene.start()
        scene.make("often", "*/30 * * * *")
        await scene.until(BEGINNING + 28 * MINUTE)
        scene.by_hand("often", "manual")
        await scene.until(BEGINNING + 40 * MINUTE)
        await scene.stop()
        return scene

    (run,) = virtual_time.run(live()).record.runs
    assert (run.slot, round((run.at - BEGINNING) / MINUTE)) == (BEGINNING + 30 * MINUTE, 33)


def test_nothing_fires_while_veleros_own_controller_is_on() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        container = {"image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["server"]}
        on = {"spec": {"template": {"spec": {"containers": [container]}}}}
        done(scene.world.merge(DEPLOYMENT, Key(HOME, "velero"), on, "admin"))
        scene.start()
        scene.make("often", "*/10 * * * *")
        await scene.until(BEGINNING + 15 * MINUTE)
        assert scene.record.runs == []
        container = {**container, "args": ["server", "--disable-controllers=schedule"]}
        off = {"spec": {"template": {"spec": {"containers": [container]}}}}
        done(scene.world.merge(DEPLOYMENT, Key(HOME, "velero"), off, "admin"))
        await scene.until(BEGINNING + 16 * MINUTE)
        await scene.stop()
        return scene

    assert virtual_time.run(live()).record.slots_of("often") == slots(10)


def test_nothing_fires_until_the_last_pod_with_veleros_controller_has_ended() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        container = {"image": "velero/velero:v1.18.3", "command": ["/velero"], "args": ["server"]}
        old = {"metadata": {"name": "velero-old"}, "spec": {"containers": [container]}}
        done(scene.world.create(POD, old, "kube", HOME))
        agent = {"name": "agent", "labels": {"name": "node-agent"}}
        done(scene.world.create(POD, {**old, "metadata": agent}, "kube", HOME))
        scene.start()
        scene.make("often", "*/10 * * * *")
        await scene.until(BEGINNING + 15 * MINUTE)
        assert scene.record.runs == [], "the Deployment says that it is off, and the old server still works"
        (message,) = {note.message for note in scene.notes}
        assert "Pod velero/velero-old was started with Velero's own schedule controller" in message
        done(scene.world.delete(POD, Key(HOME, "velero-old")))
        await scene.until(BEGINNING + 16 * MINUTE)
        await scene.stop()
        return scene

    assert virtual_time.run(live()).record.slots_of("often") == slots(10)


UNREADABLE = "9999-12-31T23:59:59-14:00"  # the API server takes it, and it is no instant in UTC


@pytest.mark.parametrize("was_readable", [True, False])
def test_a_backup_that_cannot_be_read_blocks_the_next_run(was_readable: bool) -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene(ending=lambda _, made: (made + 5 * HOUR, "Completed"))
        scene.start()
        scene.make("often", "*/30 * * * *")
        scene.make("other", "*/30 * * * *")
        await scene.until(BEGINNING + 20 * MINUTE)
        expiry = {"status": {"expiration": UNREADABLE}}
        labels = {velero.SCHEDULE_LABEL: "often"}
        body = {"metadata": {"name": "manual", "labels": labels}, "spec": {}}
        done(scene.world.create(velero.BACKUP, {**body, **({} if was_readable else expiry)}, "user", HOME))
        await scene.until(BEGINNING + 25 * MINUTE)
        done(scene.world.merge(velero.BACKUP, Key(HOME, "manual"), expiry, "user"))
        await scene.until(BEGINNING + 40 * MINUTE)
        assert scene.record.slots_of("often") == []
        assert scene.record.slots_of("other") == slots(30)
        (held,) = {note.message for note in scene.notes if note.reason == "Busy" and note.key.name == "often"}
        assert "velero/manual cannot be read" in held
        done(scene.world.delete(velero.BACKUP, Key(HOME, "manual")))
        await scene.until(BEGINNING + 41 * MINUTE)
        await scene.stop()
        return scene

    (run,) = [run for run in virtual_time.run(live()).record.runs if run.schedule == "often"]
    assert (run.slot, round((run.at - BEGINNING) / MINUTE)) == (BEGINNING + 30 * MINUTE, 40)


@pytest.mark.parametrize("mended", [True, False], ids=["mended", "deleted"])
def test_nothing_fires_while_veleros_deployment_cannot_be_read(mended: bool) -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        server = Key(HOME, "velero")
        done(scene.world.merge(DEPLOYMENT, server, {"status": {"replicas": "one"}}, "admin", "status"))
        scene.start()
        scene.make("often", "*/10 * * * *")
        await scene.until(BEGINNING + 15 * MINUTE)
        assert scene.record.runs == []
        (held,) = {note.message for note in scene.notes if note.reason == "VeleroSchedules"}
        assert "velero/velero cannot be read" in held
        if mended:
            done(scene.world.merge(DEPLOYMENT, server, {"status": {"replicas": 1}}, "admin", "status"))
        else:
            done(scene.world.delete(DEPLOYMENT, server))
        await scene.until(BEGINNING + 16 * MINUTE)
        await scene.stop()
        return scene

    # Without a server that is recognised, Velero may still run the Schedules itself.
    assert virtual_time.run(live()).record.slots_of("often") == (slots(10) if mended else [])


def test_velero_without_a_deployment_or_pod_is_held_unless_an_administrator_vouches_for_it() -> None:
    async def live(*, vouched: bool) -> ScheduleScene:
        scene = ScheduleScene(Settings(velero_schedules_off=vouched))
        done(scene.world.delete(DEPLOYMENT, Key(HOME, "velero")))
        scene.start()
        scene.make("often", "*/10 * * * *")
        await scene.until(BEGINNING + 11 * MINUTE)
        await scene.stop()
        return scene

    held = virtual_time.run(live(vouched=False))
    assert held.record.runs == []
    assert {note.reason for note in held.notes} == {"VeleroSchedules"}
    assert virtual_time.run(live(vouched=True)).record.slots_of("often") == slots(10)


def test_a_name_that_somebody_else_has_is_refused_and_taken_when_it_is_free() -> None:
    async def live() -> ScheduleScene:
        scene = ScheduleScene()
        uid = scene.make("often", "*/10 * * * *")["metadata"]["uid"]
        name = f"often-20260101001000-{uid[:8]}"
        done(scene.world.create(velero.BACKUP, {"metadata": {"name": name}}, "somebody", HOME))
        scene.start()
        await scene.until(BEGINNING + 11 * MINUTE)
        assert scene.record.runs == []
        done(scene.world.delete(velero.BACKUP, Key(HOME, name)))
        await scene.until(BEGINNING + 13 * MINUTE)
        await scene.stop()
        return scene

    assert virtual_time.run(live()).record.slots_of("often") == slots(10)


def test_an_idle_operator_writes_nothing_for_a_week() -> None:
    """A day after it had asked Velero for its version, it looked again without a pause, for ever."""

    async def live() -> None:
        scene = ScheduleScene(Settings(skip_immediately=True))
        scene.start()
        scene.make("yearly", "@yearly")
        scene.make("paused", "* * * * *", paused=True)
        await scene.until(BEGINNING + HOUR)
        before = sum(len(visitor.writes) for visitor in scene.visitors)
        await scene.until(BEGINNING + 7 * 24 * HOUR)
        await scene.stop()
        assert sum(len(visitor.writes) for visitor in scene.visitors) == before

    virtual_time.run(live())
