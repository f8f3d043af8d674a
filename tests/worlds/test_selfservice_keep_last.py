"""`keepLast` of a SelfServicePolicy: what goes, what never does, and what a schedule at its quota gives up."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import instant
from foresail.api.marks import DELETE_AFTER, DELETE_REASON, KEPT, RETENTION_APPROVED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.backups import Quality
from foresail.deletion import Stored, approval
from foresail.plan import Key, Kind
from tests.worlds.tenant_schedules import NAS, TenantScene, tell
from tests.worlds.world import done

MINUTE = 60.0
AT_ONCE: dict[str, Any] = {"gracePeriod": "0s"}


def annotations(scene: TenantScene, name: str) -> dict[str, str]:
    document = scene.request(Key("red", name))
    assert document is not None
    values: dict[str, str] = document["metadata"].get("annotations", {})
    return values


def good(scene: TenantScene) -> list[str]:
    backups = scene.velero_objects().items()
    return [name for name, document in backups if document.get("status", {}).get("phase") == "Completed"]


def lose(scene: TenantScene, number: int) -> None:
    document = scene.made_for(scene.runs[number][0])
    assert document is not None
    metadata = document["metadata"]
    scene.world.delete(velero.BACKUP, Key(metadata["namespace"], metadata["name"]))


def change(scene: TenantScene, spec: dict[str, Any]) -> None:
    done(scene.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))


def test_a_run_whose_velero_backup_is_lost_does_not_count() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1m")
        await scene.settle(3.5 * MINUTE)
        lose(scene, -1)
        lose(scene, -2)
        await scene.settle(MINUTE)
        assert len(good(scene)) == 2, "the first run and the newest one"
        assert scene.runs[0][0].name in scene.backups()

    tell(story, keepLast=3, **AT_ONCE)


def test_the_last_good_backup_stays_if_the_newest_run_is_lost_and_later_ones_fail() -> None:
    async def story(scene: TenantScene) -> None:
        change(scene, {"deletion": {"minimumAge": "3m"}})
        scene.schedule(NAS, "@every 1m")
        await scene.settle(2.5 * MINUTE)
        scene.outcome = {"phase": velero.FAILED}
        lose(scene, 1)
        await scene.settle(5 * MINUTE)
        assert len(good(scene)) == 1

    tell(story, keepLast=1, **AT_ONCE)


@pytest.mark.parametrize("phase", ["PartiallyFailed", "Failed"])
def test_the_newest_good_and_the_newest_restorable_backup_stay(phase: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1m")
        await scene.settle(2.5 * MINUTE)
        scene.outcome = {"phase": phase}
        await scene.settle(3 * MINUTE)
        assert scene.runs[1][0].name in scene.backups(), "the newest good one"
        assert scene.runs[-1][0].name in scene.backups(), "it is newer than the newest good one"
        assert scene.runs[0][0].name not in scene.backups()

    tell(story, keepLast=1, **AT_ONCE)


def test_an_edit_that_would_delete_many_waits_for_an_approval_of_that_list() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1m")
        await scene.settle(14.5 * MINUTE)
        scene.set_schedules(keepLast=1)
        await scene.settle(2 * MINUTE)
        assert len(scene.velero_objects()) == 16
        status, reason, message = scene.says("RetentionReady")
        assert (status, reason) == ("False", "RetentionNotApproved")
        assert "would delete 15 of 16 backups" in message
        asked = [name for name in scene.backups() if DELETE_REASON in annotations(scene, name)]
        assert len(asked) == 15
        assert DELETE_AFTER not in annotations(scene, asked[0])
        listed = [approved(scene, name) for name in asked[:13]]
        stale = {"metadata": {"annotations": {RETENTION_APPROVED: approval(listed, "keepLast 14")}}}
        done(scene.world.merge(NON_ADMIN_SCHEDULE, NAS, stale, "tenant"))
        await scene.settle(0.05 * MINUTE)
        assert len(scene.velero_objects()) == 16, "an approval under other rules"
        change = {"metadata": {"annotations": {RETENTION_APPROVED: approval(listed, scene.asks())}}}
        done(scene.world.merge(NON_ADMIN_SCHEDULE, NAS, change, "tenant"))
        await scene.settle(0.9 * MINUTE)
        assert len(scene.velero_objects()) <= 4, "those that were approved, and few"
        assert scene.says("RetentionReady")[:2] == ("True", "RetentionApplies")

    tell(story, keepLast=14, **AT_ONCE)


def approved(scene: TenantScene, name: str) -> Stored:
    document = scene.request(Key("red", name))
    assert document is not None
    return Stored(name, document["metadata"]["uid"], scene.clock(), Quality.GOOD)


def test_a_backup_is_marked_for_the_grace_period_before_it_goes_and_can_be_kept() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 12m")
        await scene.settle(36.5 * MINUTE)
        first, second, _ = (key.name for key, *_ in scene.runs)
        marks = annotations(scene, first)
        assert marks[DELETE_REASON] == "keepLast 1 keeps newer ones"
        at = instant(marks[DELETE_AFTER])
        assert at is not None
        assert timedelta(minutes=23) < at - scene.runs[1][3] < timedelta(minutes=25)
        done(scene.world.merge(NON_ADMIN_BACKUP, Key("red", second), {"metadata": {"annotations": KEPT}}, "tenant"))
        await scene.settle(24 * MINUTE)
        assert first not in scene.backups()
        assert second in scene.backups()
        assert DELETE_AFTER not in annotations(scene, second)

    tell(story, keepLast=1, gracePeriod="24m")


def test_a_mark_is_removed_when_the_policy_keeps_more() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1m")
        await scene.settle(2.5 * MINUTE)
        assert DELETE_AFTER in annotations(scene, scene.runs[0][0].name)
        scene.set_schedules(keepLast=5)
        await scene.settle(60)
        assert DELETE_REASON not in annotations(scene, scene.runs[0][0].name)

    tell(story, keepLast=1)


def test_nothing_goes_while_the_location_is_unavailable() -> None:
    async def story(scene: TenantScene) -> None:
        scene.make_location("default")
        scene.allow_locations("default")
        scene.schedule(NAS, "@every 1m", template={"backupSpec": {"storageLocation": "default"}})
        await scene.settle(3.5 * MINUTE)
        scene.edit_location("default", "Unavailable")
        scene.set_schedules(keepLast=1)
        await scene.settle(2 * MINUTE)
        assert len(good(scene)) == 3
        assert scene.says("RetentionReady")[1] == "RetentionInDoubt"
        scene.edit_location("default", "Available")
        await scene.settle(6 * MINUTE)
        assert len(good(scene)) == 1
        assert scene.says("RetentionReady")[:2] == ("True", "RetentionApplies")

    tell(story, keepLast=3, **AT_ONCE)


def test_nothing_goes_while_the_clock_differs_from_the_api_servers() -> None:
    async def story(scene: TenantScene) -> None:
        skew = timedelta(days=40)
        assert scene.controller is not None
        scene.controller.cluster.skew = lambda: skew
        scene.schedule(NAS, "@every 1m")
        await scene.settle(4.5 * MINUTE)
        assert len(good(scene)) == 4
        assert scene.says("RetentionReady")[1] == "RetentionInDoubt"

    tell(story, keepLast=1, **AT_ONCE)


@pytest.mark.parametrize("grace", ["0s", "24m"])
def test_a_schedule_at_its_quota_first_gives_up_what_keep_last_deletes_after_the_run(grace: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.set_quotas(stored=3)
        scene.schedule(NAS, "@every 1m")
        await scene.settle(12.5 * MINUTE)
        assert len(scene.runs) == 12
        assert len(good(scene)) == 3

    tell(story, keepLast=3, maximum=1, gracePeriod=grace)


def test_failed_runs_make_room_before_good_ones() -> None:
    async def story(scene: TenantScene) -> None:
        scene.set_quotas(stored=4)
        scene.schedule(NAS, "@every 1m")
        await scene.settle(2.5 * MINUTE)
        scene.outcome = {"phase": velero.FAILED}
        await scene.settle(8 * MINUTE)
        assert len(scene.runs) == 10
        assert len(good(scene)) == 2

    tell(story, keepLast=3, maximum=1)


def test_the_documented_values_work_at_the_quota() -> None:
    async def story(scene: TenantScene) -> None:
        scene.set_quotas(stored=20)
        for number in range(3):
            scene.schedule(Key("red", f"s{number}"), "@every 1m")
        await scene.settle(11.5 * MINUTE)
        assert len(scene.runs) == 3 * 11
        newest = [max(name for name in scene.backups() if name.startswith(f"s{number}-")) for number in range(3)]
        assert {name.partition("-")[2] for name in newest} == {scene.runs[-1][0].name.partition("-")[2]}

    tell(story, keepLast=7, maximum=3)


def test_the_only_good_backup_stays_at_the_quota_and_the_run_waits() -> None:
    async def story(scene: TenantScene) -> None:
        scene.set_quotas(stored=1)
        scene.schedule(NAS, "@every 1m")
        await scene.settle(10.5 * MINUTE)
        assert len(good(scene)) == 1
        assert scene.runs[0][0].name in scene.backups()
        assert scene.condition(scene.runs[1][0], "Accepted")[:2] == ("False", "QuotaExceeded")

    tell(story, keepLast=1, **AT_ONCE)


def test_nothing_goes_that_a_restore_reads_or_is_about_to_read() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1m")
        await scene.settle(1.5 * MINUTE)
        first = scene.runs[0][0].name
        scene.outcome = {"phase": "InProgress"}
        scene.restore(Key("red", "back"), first)
        await scene.settle(5)
        scene.outcome = {"phase": velero.COMPLETED, "progress": {"totalItems": 2, "itemsBackedUp": 2}}
        await scene.settle(3 * MINUTE)
        assert first in scene.backups()
        scene.velero_says(Key("red", "back"), velero.COMPLETED, NON_ADMIN_RESTORE)
        await scene.settle(6 * MINUTE)
        assert first not in scene.backups()

    tell(story, keepLast=1, **AT_ONCE)


@pytest.mark.parametrize(
    ("phase", "reported"),
    [
        (velero.FAILED, {"failureReason": "backup already exists in object storage"}),
        (velero.FAILED, {"failureReason": "error getting backup store"}),
        (velero.FAILED, {"failureReason": 'found a backup with status "InProgress" during the server starting'}),
        (velero.FAILED_VALIDATION, {"validationErrors": ["BackupStorageLocation default is in Unavailable status."]}),
    ],
)
def test_a_backup_whose_data_may_be_an_earlier_ones_is_deleted_as_an_object_only(
    phase: str, reported: dict[str, Any]
) -> None:
    async def story(scene: TenantScene) -> None:
        key, kinds = Key("red", "again"), set[Kind]()
        scene.world.history.listeners.append(lambda happening: kinds.add(happening.kind))
        scene.back_up(key)
        await scene.settle()
        scene.velero_says(key, phase, **reported)
        await scene.settle()
        scene.edit(key, deleteBackup=True)
        await scene.settle()
        assert scene.request(key) is None
        assert not scene.velero_objects()
        assert velero.DELETE_REQUEST not in kinds, "Velero deletes by name, and the data of that name is another's"

    tell(story, works=False)


def test_a_deletion_that_velero_does_not_begin_is_reported_after_an_hour() -> None:
    async def story(scene: TenantScene) -> None:
        key = Key("red", "old")
        scene.back_up(key)
        await scene.settle()
        scene.velero_says(key, velero.COMPLETED)
        scene.edit(key, deleteBackup=True)
        await scene.settle(3500)
        assert scene.condition(key, "Deleting")[1] == "DeletionPending"
        await scene.settle(200)
        assert scene.condition(key, "Deleting")[1] == "DeletionFailed"

    tell(story, works=False)
