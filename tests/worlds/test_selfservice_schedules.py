"""NonAdminSchedules: one NonAdminBackup for each slot, by the same rules as Velero's Schedules."""

import asyncio
import itertools
import time
from collections import Counter
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import REQUESTER, REQUESTER_GROUPS, SCHEDULE_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from foresail.selfservice.schedules.view import ScheduleView
from tests.schedules_table import ROWS, Row
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.tenant_schedules import NAS, TenantScene, tell
from tests.worlds.world import done

PERIOD = timedelta(minutes=10)
HOUR = 3600.0
FLOOD = 10_000
TENANTS_ROWS = [row for row in ROWS if not row.default]  # the operator's default is for Velero's Schedules alone


def played(row: Row) -> TenantScene:
    """Live through a row of the design document's table."""

    async def live() -> TenantScene:
        scene = TenantScene()
        works = asyncio.create_task(scene.velero_works())
        began = scene.clock() + timedelta(seconds=5.3)
        if not row.first_seen:
            scene.start()
        await scene.until(began)
        scene.schedule(NAS, "@every 10m", **row.spec)
        if row.first_seen:
            await scene.until(began + row.first_seen * PERIOD)
            scene.start()
        for step in row.steps:
            await scene.until(began + step.at * PERIOD)
            scene.edit(NAS, NON_ADMIN_SCHEDULE, **step.spec)
        await scene.until(began + row.until * PERIOD)
        works.cancel()
        await scene.stop()
        return scene

    return virtual_time.run(live())


@pytest.mark.repeats
@pytest.mark.parametrize("row", TENANTS_ROWS, ids=lambda row: row.says)
def test_the_table_of_skip_immediately_holds_for_tenants_too(row: Row) -> None:
    scene = played(row)
    schedule, skips = scene.found(), scene.skips.get(NAS, [])
    created = datetime.fromisoformat(schedule["metadata"]["creationTimestamp"])
    assert len(skips) == row.skips
    assert schedule["spec"].get("skipImmediately") is row.left
    last = datetime.fromisoformat(skips[-1]) if skips else None
    assert scene.slots() == row.slots(PERIOD, created, last)


# Runs


def test_each_slot_has_one_backup_in_the_name_of_who_last_changed_the_schedule() -> None:
    async def story(scene: TenantScene) -> None:
        uid = scene.schedule(NAS, "0 * * * *", backupSpec={"ttl": "24h"})
        await scene.settle(3.2 * HOUR)
        first = scene.runs[0]
        found = scene.request(first[0])
        assert found is not None
        assert found["metadata"]["name"] == f"nightly-{first[2]:%Y%m%d%H%M%S}"
        assert found["metadata"]["annotations"][SCHEDULE_UID] == uid
        assert found["metadata"]["annotations"][REQUESTER] == "tenant"
        assert found["metadata"]["annotations"][REQUESTER_GROUPS] == "system:authenticated"
        assert "ownerReferences" not in found["metadata"]
        assert found["spec"] == {"backupSpec": {"ttl": "24h"}}
        made = scene.made_for(first[0])
        assert made is not None
        assert made["metadata"]["annotations"][REQUESTER] == "tenant"

    scene = tell(story)
    assert [slot.minute for slot in scene.slots()] == [0, 0, 0]
    status = scene.found()["status"]
    assert status["phase"] == "Created"
    assert status["lastBackup"] == stamp(scene.slots()[-1])
    assert status["nextRun"] == stamp(scene.slots()[-1] + timedelta(hours=1))
    assert [each["phase"] for each in status["recentBackups"]] == ["Completed"] * 3
    assert "veleroSchedule" not in status


def test_an_idle_schedule_is_not_written() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0 3 * * *")
        await scene.settle()
        await scene.check_silence()

    tell(story)


def test_a_run_that_is_due_waits_for_the_one_before_it_and_missed_slots_collapse() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1h")
        await scene.settle(3.5 * HOUR)
        assert len(scene.runs) == 1
        ready = scene.says("Ready")
        assert ready[:2] == ("False", "Busy")
        assert scene.runs[0][0].name in ready[2]
        scene.velero_says(scene.runs[0][0], velero.COMPLETED)
        await scene.settle(10)
        assert len(scene.runs) == 2
        assert scene.slots()[1] - scene.slots()[0] == timedelta(hours=2), "of two slots that passed, the last runs"
        assert any(note.reason == "Missed" for note in scene.notes)

    tell(story, works=False)


def dropped(scene: TenantScene) -> list[str]:
    return [note.message for note in scene.notes if note.reason == "Skipped"]


def test_an_edit_reports_the_slot_that_it_drops() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(2.5 * HOUR)
        assert scene.says("Ready")[1] == "Busy", "the run of 2:00 waits for that of 1:00"
        scene.edit(NAS, NON_ADMIN_SCHEDULE, schedule="0 5 * * *")
        await scene.settle(60)

    (message,) = dropped(tell(story, works=False))
    assert "before slot 2026-01-01T02:00:00Z had run, so it is dropped" in message
    assert "the next run is at 2026-01-01T05:00:00Z" in message


def test_a_new_jitter_reports_the_slot_that_it_drops() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(2.9 * HOUR)
        assert scene.says("Ready")[1] == "Busy"
        scene.set_schedules(jitter="10m")
        await scene.settle(60)
        scene.set_schedules(jitter="5m")
        await scene.settle(60)

    (message,) = dropped(tell(story, works=False))
    assert "before slot 2026-01-01T02:" in message


def test_an_edit_without_a_slot_that_is_due_reports_none() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(2.5 * HOUR)
        scene.edit(NAS, NON_ADMIN_SCHEDULE, schedule="30 * * * *")
        await scene.settle(0.7 * HOUR)
        for text in ("0 0 30 2 *", "0 3 * * * +5s", "0 4 * * * +x", "0 */4 * * *"):
            scene.edit(NAS, NON_ADMIN_SCHEDULE, schedule=text)
            await scene.settle(HOUR)

    assert not dropped(tell(story))


def test_a_run_that_was_refused_does_not_block_the_next_and_does_not_pile_up() -> None:
    async def story(scene: TenantScene) -> None:
        hook = {"pre.hook.backup.velero.io/command": '["id"]'}
        pod = {"metadata": {"name": "web", "annotations": hook}}
        done(scene.world.create(POD, pod, "tenant", "red"))
        scene.schedule(NAS, "@every 1h")
        await scene.settle(4.5 * HOUR)
        assert len(scene.runs) == 4
        assert len(scene.backups()) == 1, "the newest says why"
        assert scene.condition(scene.runs[-1][0], "Accepted")[:2] == ("False", "PolicyViolation")

    tell(story)


@pytest.mark.parametrize("text", ["61 * * * *", "0 0 30 2 *", "x" * 2000, ""])
def test_an_expression_without_slots_is_refused_with_a_reason(text: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, text)
        await scene.settle()
        assert scene.says("Accepted")[:2] == ("False", "InvalidScheduleSpec")
        assert scene.found()["status"]["phase"] == "BackingOff"
        scene.edit(NAS, NON_ADMIN_SCHEDULE, schedule="0 * * * *")
        await scene.settle()
        assert scene.says("Accepted")[:2] == ("True", "ScheduleAccepted")
        await scene.settle(HOUR)
        assert len(scene.runs) == 1

    tell(story)


def test_a_template_that_every_run_would_be_refused_for_is_refused_at_once() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1h", backupSpec={"includedNamespaces": ["blue"]})
        await scene.settle(2.5 * HOUR)
        said = scene.says("Accepted")
        assert said[:2] == ("False", "InvalidScheduleSpec")
        assert "includedNamespaces" in said[2]
        assert scene.backups() == []

    tell(story)


def test_deleting_a_schedule_keeps_its_backups() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1h")
        await scene.settle(2.5 * HOUR)
        scene.delete(NAS, NON_ADMIN_SCHEDULE)
        await scene.settle(3 * HOUR)
        assert len(scene.backups()) == 2

    tell(story)


def test_nothing_is_remembered_of_runs_that_are_deleted_after_their_schedule() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1h")
        await scene.settle(2.5 * HOUR)
        scene.delete(NAS, NON_ADMIN_SCHEDULE)
        await scene.settle(5)
        for name in scene.backups():
            scene.edit(Key(NAS.namespace, name), deleteBackup=True)
        await scene.settle(60)
        scene.velero_deletes()
        await scene.settle(60)
        assert scene.backups() == []
        assert scene.controller is not None
        assert scene.controller.schedules._deleted == {}  # noqa: SLF001

    tell(story)


def test_a_schedule_made_again_under_its_old_name_does_not_count_the_old_runs() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(1.5 * HOUR)
        scene.delete(NAS, NON_ADMIN_SCHEDULE)
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(HOUR)
        assert len({uid for _, uid, _, _ in scene.runs}) == 2
        assert len(scene.found()["status"]["recentBackups"]) == 1

    tell(story)


# Policy


def test_a_schedule_that_runs_more_often_than_the_policy_allows_is_refused() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0,59 * * * *")
        await scene.settle(2 * HOUR)
        said = scene.says("Accepted")
        assert said[:2] == ("False", "PolicyViolation")
        assert "spec.schedule has runs only 1 minute apart, but SelfServicePolicy" in said[2]
        scene.set_schedules(minimumInterval="1m")
        await scene.settle(2 * HOUR)
        assert scene.says("Accepted")[0] == "True"
        assert scene.runs

    tell(story, minimumInterval="1h")


def test_without_a_policy_nothing_runs() -> None:
    async def story(scene: TenantScene) -> None:
        key = Key("velero", "nightly")
        scene.schedule(key, "@every 1h")
        await scene.settle(2 * HOUR)
        assert scene.says("Accepted", key)[:2] == ("False", "NoPolicy")
        assert scene.runs == []

    tell(story)


def test_of_too_many_schedules_the_oldest_run_and_the_next_one_follows_when_one_is_deleted() -> None:
    async def story(scene: TenantScene) -> None:
        keys = [Key("red", f"s{number}") for number in range(4)]
        for key in keys:
            scene.schedule(key, "@every 1h")
            await scene.settle(1)
        await scene.settle()
        assert [scene.says("Accepted", key)[1] for key in keys] == ["ScheduleAccepted"] * 2 + ["TooManySchedules"] * 2
        scene.delete(keys[0], NON_ADMIN_SCHEDULE)
        await scene.settle()
        assert [scene.says("Accepted", key)[1] for key in keys[1:]] == ["ScheduleAccepted"] * 2 + ["TooManySchedules"]
        scene.set_schedules(maximum=0)
        await scene.settle()
        assert {scene.says("Ready", key)[1] for key in keys[1:]} == {"TooManySchedules"}

    tell(story, maximum=2)


def test_keep_last_deletes_the_older_completed_runs_and_nothing_else() -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up(Key("red", "by-hand"))
        scene.schedule(NAS, "@every 1h")
        await scene.settle(5.5 * HOUR)
        await scene.settle()
        kept = [key.name for key, _, _, _ in scene.runs[-2:]]
        assert scene.backups() == sorted(["by-hand", *kept])

    assert len(tell(story, keepLast=2, gracePeriod="0s").runs) == 5


def test_keep_last_never_deletes_the_newest_good_run_and_waits_for_the_minimum_age() -> None:
    async def story(scene: TenantScene) -> None:
        done(
            scene.world.merge(
                SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"deletion": {"minimumAge": "3h"}}}, "admin"
            )
        )
        scene.schedule(NAS, "@every 1h")
        await scene.settle(2.5 * HOUR)
        assert len(scene.backups()) == 2, "the older one is too young to be deleted"
        scene.outcome = {"phase": velero.FAILED}
        await scene.settle(4 * HOUR)
        assert scene.runs[1][0].name in scene.backups(), "the newest good one"
        assert scene.runs[0][0].name not in scene.backups()

    tell(story, keepLast=1, gracePeriod="0s")


def test_jitter_delays_every_run_of_a_schedule_by_the_same_time() -> None:
    async def story(scene: TenantScene) -> None:
        for number in range(8):
            scene.schedule(Key("red", f"s{number}"), "0 * * * *")
        await scene.settle(3.2 * HOUR)

    scene = tell(story, jitter="30m", maximum=10)
    delays: dict[str, set[timedelta]] = {}
    for _, uid, slot, created in scene.runs:
        delays.setdefault(uid, set()).add(timedelta(minutes=slot.minute, seconds=slot.second))
        assert created - slot < timedelta(seconds=5)
    assert len(delays) == 8
    assert all(len(each) == 1 for each in delays.values())
    assert len(set.union(*delays.values())) > 4
    assert max(set.union(*delays.values())) <= timedelta(minutes=30)


# Attacks and accidents


def test_a_backup_by_hand_with_the_name_of_the_next_run_is_left_alone_and_reported() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(5)
        upcoming = datetime.fromisoformat(scene.found()["status"]["nextRun"])
        taken = Key("red", f"nightly-{upcoming:%Y%m%d%H%M%S}")
        scene.back_up(taken, ttl="2h")
        await scene.until(upcoming + timedelta(minutes=5))
        assert scene.says("Ready")[1] == "NameTaken"
        assert scene.runs == []
        found = scene.request(taken)
        assert found is not None
        assert found["spec"]["backupSpec"] == {"ttl": "2h"}
        await scene.settle(HOUR)
        assert len(scene.runs) == 1, "the next slot is not concerned"

    tell(story)


def test_marks_that_a_tenant_of_another_namespace_forges_concern_nobody() -> None:
    async def story(scene: TenantScene) -> None:
        uid = scene.schedule(NAS, "@every 1h")
        await scene.settle(5)
        forged = {SCHEDULE_UID: uid, "foresail.dev/slot": "2099-01-01T00:00:00Z"}
        body = {"metadata": {"name": "forged", "annotations": forged}, "spec": {"backupSpec": {}}}
        done(scene.world.create(NON_ADMIN_BACKUP, body, "tenant", "blue"))
        await scene.settle(2.2 * HOUR)
        assert [each["name"] for each in scene.found()["status"]["recentBackups"]] == [
            key.name for key, _, _, _ in reversed(scene.runs) if key.namespace == "red"
        ]

    tell(story)


def test_a_forged_run_that_is_deleted_in_another_namespace_takes_no_slot() -> None:
    async def story(scene: TenantScene) -> None:
        uid = scene.schedule(NAS, "@every 1h")
        await scene.settle(5)
        forged = {SCHEDULE_UID: uid, "foresail.dev/slot": stamp(scene.clock())}
        refused = {"backupSpec": {"includedNamespaces": ["red"]}}
        body = {"metadata": {"name": "forged", "annotations": forged}, "spec": refused}
        done(scene.world.create(NON_ADMIN_BACKUP, body, "tenant", "blue"))
        await scene.settle(5)
        done(scene.world.delete(NON_ADMIN_BACKUP, Key("blue", "forged")))
        await scene.settle(5)
        assert scene.controller is not None
        view = scene.controller.observe(scene.controller.schedules.key(NAS), scene.clock())
        assert isinstance(view, ScheduleView)
        assert view.deleted is None

    tell(story)


@pytest.mark.repeats
def test_a_flood_of_schedules_of_one_tenant_runs_no_more_than_the_policy_allows(figure: Callable[[str], None]) -> None:
    async def story(scene: TenantScene) -> None:
        assert scene.process is not None
        writes, blue = scene.process.visitor.writes, Key("blue", "nightly")
        await scene.settle(5)
        namespaces = len(writes)  # their labels
        began = time.process_time()
        for number in range(FLOOD):
            scene.schedule(Key("red", f"s{number:05}"), "*/10 * * * *")
        scene.schedule(blue, "*/10 * * * *")
        await scene.settle(60)
        assert scene.says("Accepted", blue)[0] == "True"
        reasons = Counter(scene.says("Accepted", Key("red", f"s{number:05}"))[1] for number in range(FLOOD))
        assert reasons == {"ScheduleAccepted": 10, "TooManySchedules": FLOOD - 10}
        assert len(writes) == namespaces + FLOOD + 1, "one status each"
        arrival, began = time.process_time() - began, time.process_time()
        await scene.settle(HOUR)
        assert Counter(key.namespace for key, _, _, _ in scene.runs) == {"red": 60, "blue": 6}
        assert max(at - slot for _, _, slot, at in scene.runs) < timedelta(seconds=1)
        later = [each for each in writes[namespaces + FLOOD + 1 :] if each.kind == NON_ADMIN_SCHEDULE]
        assert not [each for each in later if each.key.name > "s00010"]
        hour, before = time.process_time() - began, len(writes)
        scene.delete(Key("red", "s00000"), NON_ADMIN_SCHEDULE)
        await scene.settle(5)
        assert len(writes) > before
        assert all("s00010" in each.key.name for each in writes[before:]), (
            "the next one runs, the others are not written"
        )
        figure(f"{FLOOD} NonAdminSchedules of one tenant: 10 run; {arrival:.1f} s of CPU, then {hour:.1f} s an hour")

    tell(story, maximum=10)


def test_flapping_of_skip_immediately_and_edits_never_run_a_slot_twice() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "*/10 * * * *")
        for number in range(60):
            await scene.settle(97)
            scene.edit(NAS, NON_ADMIN_SCHEDULE, skipImmediately=bool(number % 2), paused=number % 7 == 0)
            if number % 11 == 0:
                scene.edit(NAS, NON_ADMIN_SCHEDULE, schedule=f"*/{10 + number % 3} * * * *")
        await scene.settle(600)

    scene = tell(story)
    assert len(set(scene.slots())) == len(scene.slots())
    assert scene.slots()


@pytest.mark.repeats
@pytest.mark.parametrize("is_before", [True, False], ids=["before a write", "after a write"])
def test_no_slot_is_lost_or_run_twice_whenever_the_operator_dies(is_before: bool) -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1h", skipImmediately=True)
        await scene.settle(4.5 * HOUR)

    for number in range(40):
        scene = tell(story, dies=[Moment(not is_before, number)], keepLast=2, gracePeriod="0s")
        slots = scene.slots()
        assert len(slots) == 4, f"death {number}"
        assert [later - earlier for earlier, later in itertools.pairwise(slots)] == [timedelta(hours=1)] * 3
        assert "skipImmediately" not in scene.found()["spec"]
        if not scene.deaths:
            return
    pytest.fail("it never stopped dying")
