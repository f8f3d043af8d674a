"""NonAdminSchedules under the SchedulePolicy that their SelfServicePolicy names: zone, spread, windows, deadline."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.plan import Key
from foresail.slots.spread import stable_delay
from tests.worlds.process import Moment
from tests.worlds.tenant_schedules import NAS, TenantScene, tell
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import done

HOUR, DAY = 3600.0, 24 * 3600.0
NIGHT = {"allowed": [{"schedule": "0 22 * * *", "duration": "2h"}]}
EARLY = {"allowed": [{"schedule": "0 2 * * *", "duration": "1h"}]}
NAMED = "nights"


def rule(scene: TenantScene, **spec: Any) -> None:  # noqa: ANN401 - JSON
    """Create the SchedulePolicy, which selects no Schedule of Velero's."""
    body = {"metadata": {"name": NAMED}, "spec": {"selector": {"names": []}, **spec}}
    done(scene.world.create(SCHEDULE_POLICY, body, "admin"))


def reasons(scene: TenantScene) -> list[str]:
    return sorted({note.reason for note in scene.notes})


@pytest.mark.repeats
def test_expression_is_read_in_the_zone_of_the_policy_and_its_own_zone_comes_first() -> None:
    other = Key("red", "own-zone")

    async def story(scene: TenantScene) -> None:
        rule(scene, timeZone="Europe/Berlin")
        scene.schedule(NAS, "0 3 * * *")
        scene.schedule(other, "CRON_TZ=Asia/Tokyo 0 3 * * *")
        await scene.settle(1.1 * DAY)

    scene = tell(story, schedulePolicy=NAMED)
    assert {(key.name.rpartition("-")[0], slot.hour) for key, _, slot, _ in scene.runs} == {
        ("nightly", 2),
        ("own-zone", 18),
    }


def test_run_waits_for_the_opening_and_keeps_the_name_of_its_slot() -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, windows=NIGHT)
        scene.schedule(NAS, "0 12 * * *")
        await scene.settle(13 * HOUR)
        assert scene.runs == []
        assert scene.found()["status"]["nextRun"] == stamp(BEGINNING + timedelta(hours=22))
        await scene.settle(10 * HOUR)

    scene = tell(story, schedulePolicy=NAMED)
    ((key, _, slot, created),) = scene.runs
    assert key.name == "nightly-20260101120000"
    assert (slot, created.hour, created.minute) == (BEGINNING + timedelta(hours=12), 22, 0)
    assert scene.found()["status"]["nextRun"] == stamp(BEGINNING + timedelta(hours=46))


@pytest.mark.repeats
@pytest.mark.parametrize("text", ["0 1 * * *", "CRON_TZ=Asia/Tokyo 0 10 * * *", "* * * * *", "@every 1m"])
def test_no_expression_starts_a_run_outside_the_windows(text: str) -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, windows=EARLY)
        scene.schedule(NAS, text)
        await scene.settle(3.5 * HOUR)

    scene = tell(story, schedulePolicy=NAMED)
    assert scene.runs
    assert {created.hour for _, _, _, created in scene.runs} == {2}


def test_slots_outside_are_skipped_and_recorded() -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, windows={**NIGHT, "outside": "Skip"})
        scene.schedule(NAS, "0 */11 * * *")
        await scene.settle(23 * HOUR)

    scene = tell(story, schedulePolicy=NAMED)
    assert [slot.hour for slot in scene.slots()] == [22]
    assert [each[11:13] for each in scene.skips[NAS]] == ["11"]
    assert "OutsideWindow" in reasons(scene)


def test_run_that_could_not_start_in_time_is_recorded_and_never_run() -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, startingDeadline="30m")
        scene.schedule(NAS, "0 */2 * * *")
        await scene.settle(4.8 * HOUR)
        assert scene.says("Ready")[1] == "Scheduled", "the run of 4:00 was given up"
        scene.velero_says(scene.runs[0][0], velero.COMPLETED)
        await scene.settle(0.5 * HOUR)

    scene = tell(story, works=False, schedulePolicy=NAMED)
    assert [slot.hour for slot in scene.slots()] == [2]
    assert [each[11:13] for each in scene.skips[NAS]] == ["04"]
    assert "DeadlineExceeded" in reasons(scene)


def test_delay_is_derived_from_the_uid_which_no_tenant_chooses() -> None:
    names = [Key("red", f"same-{number}") for number in range(8)]
    uids: dict[str, str] = {}

    async def story(scene: TenantScene) -> None:
        rule(scene, spread={"within": "2h"})
        uids.update({key.name: scene.schedule(key, "0 3 * * *") for key in names})
        await scene.settle(6 * HOUR)

    scene = tell(story, schedulePolicy=NAMED)
    assert len(scene.runs) == len(names)
    for key, uid, slot, created in scene.runs:
        assert uids[key.name.rpartition("-")[0]] == uid
        assert slot == BEGINNING + timedelta(hours=3)
        assert timedelta() <= created - slot - stable_delay(uid, timedelta(hours=2)) < timedelta(seconds=5)
    assert len({created for *_, created in scene.runs}) > len(names) // 2


@pytest.mark.parametrize(
    ("spec", "cause"),
    [(None, "does not exist"), ({"timeZone": "Mars/Phobos"}, "Mars/Phobos"), ({"spread": 1}, "spread")],
)
def test_policy_that_cannot_be_used_holds_the_schedules_until_it_is_corrected(
    spec: dict[str, Any] | None, cause: str
) -> None:
    async def story(scene: TenantScene) -> None:
        if spec is not None:
            rule(scene, **spec)
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(3.5 * HOUR)
        status, reason, message = scene.says("Accepted")
        assert (status, reason) == ("False", "PolicyInvalid")
        assert cause in message
        assert scene.runs == []
        if spec is not None:
            done(scene.world.delete(SCHEDULE_POLICY, Key("", NAMED)))
        rule(scene, startingDeadline="2h")
        await scene.settle(1 * HOUR)
        assert scene.says("Accepted")[0] == "True"

    scene = tell(story, schedulePolicy=NAMED)
    assert [slot.hour for slot in scene.slots()] == [3, 4]


def test_schedule_that_is_never_inside_is_refused_and_evaluated_again() -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, windows={**NIGHT, "outside": "Skip"})
        scene.schedule(NAS, "0 12 * * *")
        await scene.settle(1 * HOUR)
        assert scene.says("Accepted")[:2] == ("False", "NeverInWindow")
        await scene.check_silence()
        scene.edit(NAS, NON_ADMIN_SCHEDULE, schedule="0 23 * * *")
        await scene.settle(10)
        assert scene.says("Ready")[1] == "Scheduled"

    tell(story, schedulePolicy=NAMED)


@pytest.mark.repeats
def test_death_at_any_write_runs_and_records_the_same_slots() -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, windows=EARLY)
        scene.schedule(NAS, "*/50 * * * *")
        await scene.settle(2.2 * HOUR)

    expected = tell(story, schedulePolicy=NAMED)
    assert [stamp(slot)[11:16] for slot in expected.slots()] == ["02:00"]
    assert [each[11:16] for each in expected.skips[NAS]] == ["01:50"]
    for after in (False, True):
        for write in range(1, 8):
            scene = tell(story, dies=[Moment(after=after, write=write)], schedulePolicy=NAMED)
            assert (scene.slots(), scene.skips) == (expected.slots(), expected.skips), f"{after=} {write=}"


@pytest.mark.parametrize(("zone", "is_kept"), [("Etc/UTC", True), ("Asia/Kolkata", False)])
def test_another_zone_reports_the_slot_that_it_drops_and_another_name_of_it_keeps_it(zone: str, is_kept: bool) -> None:
    async def story(scene: TenantScene) -> None:
        rule(scene, timeZone="UTC")
        scene.schedule(NAS, "0 * * * *")
        await scene.settle(2.5 * HOUR)
        assert scene.says("Ready")[1] == "Busy"
        done(scene.world.merge(SCHEDULE_POLICY, Key("", NAMED), {"spec": {"timeZone": zone}}, "admin"))
        await scene.settle(60)
        scene.velero_says(scene.runs[0][0], velero.COMPLETED)
        await scene.settle(60)

    scene = tell(story, works=False, schedulePolicy=NAMED)
    assert [slot.hour for slot in scene.slots()] == [1, 2][: 1 + is_kept]
    messages = [note.message for note in scene.notes if note.reason == "Skipped"]
    assert len(messages) == (not is_kept)
    assert all("before slot 2026-01-01T02:00:00Z had run" in each for each in messages)
