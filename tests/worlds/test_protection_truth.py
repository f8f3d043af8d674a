"""What a Protection says is true: of backups that fail, expire, are late or of others, and of Schedules that go."""

from datetime import datetime, timedelta

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import NAMESPACE_UIDS, SCHEDULE_UID, SLOT
from foresail.kube.failures import failure
from foresail.plan import Key, Kind
from tests.worlds.documents import Document
from tests.worlds.protection_scene import EXCLUDE, ProtectionScene
from tests.worlds.schedule_scene import HOME
from tests.worlds.test_protection import DAY, FAR, at, live
from tests.worlds.velero_stand_in import Ending
from tests.worlds.world import Answer, done


def fails_after(last_good: float) -> Ending:
    """Return how backups end that fail from some minute on."""

    def ending(_: Document, made: datetime) -> tuple[datetime, str]:
        return made + timedelta(seconds=20), "Completed" if made < at(last_good) else "PartiallyFailed"

    return ending


def expire(scene: ProtectionScene, minutes: float) -> None:
    """Let every Backup expire at a minute."""
    for name in scene.backups:
        status = {"status": {"expiration": stamp(at(minutes))}}
        done(scene.world.merge(velero.BACKUP, Key(HOME, name), status, "velero"))


def test_a_namespace_whose_first_backups_all_fail_is_a_gap() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(1))
        assert scene.gaps("shop") == []
        await scene.until(at(11))
        assert scene.verdict("shop") == ("False", "LastRunFailed")
        assert scene.gaps("shop") == ["LastRunFailed"]

    live(story, fails_after(0))


def test_runs_that_fail_stay_a_gap_when_the_last_good_backup_expires() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        expire(scene, 25)
        await scene.until(at(21))
        assert scene.gaps("shop") == ["LastRunFailed"]
        await scene.until(at(26))
        assert scene.gaps("shop") == ["LastRunFailed"]
        assert "newestGood" not in scene.protection("shop")

    live(story, fails_after(15))


def test_missed_runs_stay_a_gap_when_the_last_good_backup_expires() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 * * * *")
        scene.ask("shop", "gold")
        await scene.until(at(61))
        await scene.stop()  # nobody runs the Schedules any more
        expire(scene, 400)
        await scene.until(at(242))
        assert scene.gaps("shop") == ["RunsMissed"]
        await scene.until(at(401))
        assert scene.gaps("shop") == ["RunsMissed"]

    live(story)


def test_a_schedule_that_nobody_runs_is_a_gap_before_its_first_backup_too() -> None:
    async def story(scene: ProtectionScene) -> None:
        await scene.stop()
        scene.classify("gold", "0 * * * *")
        scene.ask("shop", "gold")
        await scene.until(at(179))
        assert scene.verdict("shop") == ("False", "NoBackupYet")
        assert scene.gaps("shop") == []
        await scene.until(at(182))
        assert scene.verdict("shop") == ("False", "RunsMissed")

    live(story)


def test_a_namespace_that_misses_the_objective_of_its_policy_is_not_protected() -> None:
    async def story(scene: ProtectionScene) -> None:
        windows = {"allowed": [{"schedule": "0 * * * *", "duration": "1h"}]}
        scene.rule("nights", {"names": ["nobody"]}, objective={"rpo": "90m"}, windows=windows)
        scene.classify("gold", "0 * * * *", schedulePolicy="nights")
        scene.ask("shop", "gold")
        await scene.until(at(61))
        await scene.stop()
        await scene.until(at(149))
        assert scene.verdict("shop") == ("True", "Protected")
        await scene.until(at(152))
        assert scene.verdict("shop") == ("False", "ObjectiveMissed")
        assert scene.gaps("shop") == ["ObjectiveMissed"]

    live(story)


def test_a_namespace_that_is_in_no_schedule_any_more_is_not_protected() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        for name in ("shop", "blog"):
            scene.ask(name, "gold")
        await scene.until(at(11))
        scene.ask("shop", "none", "a copy", FAR)
        await scene.until(at(12))
        scene.ask("shop", "")
        scene.label("blog", **{EXCLUDE: "true", "foresail.dev/protection": None})
        await scene.until(at(13))
        assert scene.groups == {}
        assert scene.verdict("shop") == ("False", "NoClass")
        assert scene.verdict("blog") == ("False", "Excluded")

    live(story)


def test_the_runs_of_another_cluster_in_the_same_bucket_say_nothing_here() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        (own,) = scene.backups
        document = done(scene.world.get(velero.BACKUP, Key(HOME, own)))
        meta = {
            "name": "gold-1-20250101000000-0a1b2c3d",
            "labels": document["metadata"]["labels"],
            "annotations": {
                **document["metadata"]["annotations"],
                SCHEDULE_UID: "of-the-other-cluster",
                SLOT: stamp(at(5)),
                NAMESPACE_UIDS: msgspec.json.encode({"shop": "of-the-other-cluster"}).decode(),
            },
        }
        ended = {"startTimestamp": stamp(at(11)), "completionTimestamp": stamp(at(11, 20)), "phase": "Completed"}
        status = {**ended, "progress": {"itemsBackedUp": 1_000_000}}
        await scene.until(at(12))
        done(
            scene.world.create(
                velero.BACKUP, {"metadata": meta, "spec": document["spec"], "status": status}, "velero", HOME
            )
        )
        await scene.until(at(22))
        assert scene.gaps("shop") == []
        assert scene.verdict("shop") == ("True", "Protected")
        assert scene.protection("shop")["newestGood"]["backup"] == scene.backups[-1]

    live(story)


def test_what_the_api_server_refuses_is_told_to_administrators_only() -> None:
    async def story(scene: ProtectionScene) -> None:
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == velero.SCHEDULE:
                return failure(403, "Forbidden", "policy of-the-bank: namespace bank may not be backed up with shop")
            return create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        scene.classify("gold")
        for name in ("bank", "shop"):
            scene.ask(name, "gold")
        await scene.until(at(1))
        assert scene.gaps("shop") == ["WriteRefused"]
        assert "bank" not in str(scene.protection("shop"))
        assert "bank" in scene.class_status("gold")["conditions"][0]["message"]

    live(story)


def test_a_quota_on_schedules_keeps_nobody_in_a_group_that_should_leave() -> None:
    async def story(scene: ProtectionScene) -> None:
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == velero.SCHEDULE and len(scene.groups) >= 2:
                return failure(403, "Forbidden", "exceeded quota: schedules, limited: count/schedules.velero.io=2")
            return create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        scene.classify("gold", namespacesPerBackup=2)
        for name in ("a", "b", "c", "d", "e"):
            scene.ask(name, "gold")
        await scene.until(at(1))
        assert scene.groups == {"gold-1": ["a", "b"], "gold-2": ["c", "d"]}
        for name in ("a", "b"):
            scene.label(name, **{EXCLUDE: "true"})
        await scene.until(at(3))
        assert list(scene.groups.values()) == [["c", "d"], ["e"]]

    live(story)


def test_a_newest_good_backup_whose_location_is_deleted_protects_nobody() -> None:
    async def story(scene: ProtectionScene) -> None:
        elsewhere = {"metadata": {"name": "far"}, "spec": {}, "status": {"phase": "Available"}}
        done(scene.world.create(velero.LOCATION, elsewhere, "admin", HOME))
        scene.classify("gold", "0 1 * * *", template={"storageLocation": "far"})
        scene.ask("shop", "gold")
        await scene.until(at(61))
        scene.classify("gold", "0 1 * * *", template={"storageLocation": "default"})
        await scene.until(at(62))
        assert scene.verdict("shop") == ("True", "Protected")
        scene.world.delete(velero.LOCATION, Key(HOME, "far"))
        await scene.until(at(63))
        assert scene.verdict("shop") == ("False", "LocationUnavailable")

    live(story)


def test_a_class_is_not_ready_while_one_of_its_schedules_cannot_run() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", namespacesPerBackup=1)
        for name in ("blog", "shop"):
            scene.ask(name, "gold")
        await scene.until(at(11))
        scene.write("gold-2", paused=True)
        await scene.until(at(12))
        ready = scene.class_status("gold")["conditions"][0]
        assert (ready["status"], ready["reason"]) == ("False", "SchedulePaused")
        assert scene.verdict("blog") == ("True", "Protected"), "its own Schedule runs"
        scene.write("gold-2", paused=None)
        await scene.until(at(13))
        assert scene.class_status("gold")["conditions"][0]["reason"] == "Ready"

    live(story)


@pytest.mark.parametrize("spec", [{"schedule": "0 1 * * *", "template": {}}, {"schedule": 5, "template": {}}])
def test_a_schedule_by_hand_with_the_name_of_a_group_keeps_nobody_without(spec: Document) -> None:
    async def story(scene: ProtectionScene) -> None:
        done(scene.world.create(velero.SCHEDULE, {"metadata": {"name": "gold-1"}, "spec": spec}, "admin", HOME))
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(1))
        assert scene.place("shop") == ["gold-2"]

    live(story)


def test_a_class_is_not_ready_while_one_of_its_schedules_cannot_be_read() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        scene.write("gold-1", schedule=5)
        await scene.until(at(12))
        ready = scene.class_status("gold")["conditions"][0]
        assert (ready["status"], ready["reason"]) == ("False", "ScheduleInvalid")

    live(story)


@pytest.mark.parametrize(("version", "fire"), [("v1.18.2", at(0) + 2 * DAY), ("v1.18.3", at(0) + 4 * DAY)])
def test_the_next_run_is_read_in_the_dialect_of_the_installed_velero(version: str, fire: datetime) -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 0 */2 * 1")
        scene.ask("shop", "gold")
        await scene.until(at(1))
        assert scene.protection("shop")["nextRun"] == stamp(fire)

    live(story, version=version)
