"""A second attack on `keepLast`: deletions that are held, expired copies, policies in doubt and tight quotas."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import ATTEMPT, KEPT, PINNED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.deletion_writes import mark_annotations
from foresail.kube.store import STALE_SECONDS
from foresail.plan import Key, Kind
from tests.worlds.tenancy import VELERO
from tests.worlds.tenant_schedules import NAS, TenantScene, tell
from tests.worlds.world import done

MINUTE = 60.0
AT_ONCE: dict[str, Any] = {"gracePeriod": "0s"}


def change(scene: TenantScene, spec: dict[str, Any]) -> None:
    done(scene.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": spec}, "admin"))


def select(scene: TenantScene) -> None:
    """Let the next runs cover a part of the namespace only, so that none replaces those before."""
    template = {"backupSpec": {"labelSelector": {"matchLabels": {"app": "db"}}}}
    done(scene.world.merge(NON_ADMIN_SCHEDULE, NAS, {"spec": {"template": template}}, "tenant"))


def is_held(scene: TenantScene, key: Key) -> bool:
    return scene.condition(key, "Deleting")[:2] == ("False", "DeletionProtected")


def test_a_deletion_that_is_held_does_not_stop_the_schedule_at_its_quota() -> None:
    async def story(scene: TenantScene) -> None:
        change(scene, {"deletion": {"keepLastGood": 1}})
        scene.set_quotas(stored=4)
        scene.schedule(NAS, "@every 1m", template={"backupSpec": {}})
        await scene.settle(3.5 * MINUTE)
        whole = scene.runs[-1][0]
        done(scene.world.merge(NON_ADMIN_BACKUP, whole, {"spec": {"deleteBackup": True}}, "tenant"))
        select(scene)
        await scene.settle(10 * MINUTE)
        assert len(scene.runs) == 13
        assert is_held(scene, whole)
        assert len(scene.velero_objects()) == 4

    tell(story, keepLast=3, maximum=1, **AT_ONCE)


def test_an_expired_backup_is_not_the_newest_good_one() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 20m")
        items = {"totalItems": 100, "itemsBackedUp": 100}
        scene.outcome = {"phase": velero.COMPLETED, "progress": items}
        await scene.settle(21 * MINUTE)
        first = scene.runs[0][0]
        scene.outcome = {**scene.outcome, "expiration": stamp(scene.clock() + timedelta(minutes=34))}
        await scene.settle(20 * MINUTE)
        scene.outcome = {"phase": velero.FAILED}
        await scene.settle(25 * MINUTE)
        assert scene.made_for(first) is not None, "the only one that can be restored: the second has expired"

    tell(story, keepLast=1, gracePeriod="17m")


def test_nothing_goes_while_a_policy_cannot_be_read() -> None:
    async def story(scene: TenantScene) -> None:
        schedules = {"keepLast": 30, "minimumInterval": "1s", **AT_ONCE}
        selector = {"matchLabels": {"foresail.dev/self-service": "enabled"}}
        spec = {"namespaceSelector": selector, "priority": 9, "schedules": schedules}
        done(scene.world.create(SELF_SERVICE_POLICY, {"metadata": {"name": "gold"}, "spec": spec}, "admin"))
        scene.schedule(NAS, "@every 1m")
        await scene.settle(8.5 * MINUTE)
        done(scene.world.merge(SELF_SERVICE_POLICY, Key("", "gold"), {"spec": {"priority": "high"}}, "admin"))
        await scene.settle(2 * MINUTE)
        assert len(scene.velero_objects()) == 10
        status, reason, message = scene.says("RetentionReady")
        assert (status, reason) == ("False", "RetentionInDoubt")
        assert "SelfServicePolicy gold cannot be read" in message
        done(scene.world.merge(SELF_SERVICE_POLICY, Key("", "gold"), {"spec": {"priority": 9}}, "admin"))
        await scene.settle(2 * MINUTE)
        assert len(scene.velero_objects()) == 12
        assert scene.says("RetentionReady")[:2] == ("True", "RetentionApplies")

    tell(story, keepLast=2, **AT_ONCE)


@pytest.mark.parametrize("kind", [NON_ADMIN_RESTORE, velero.RESTORE], ids=["NonAdminRestore", "Restore"])
def test_nothing_goes_while_a_restore_cannot_be_read(kind: Kind) -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule(NAS, "@every 1m")
        await scene.settle(2.5 * MINUTE)
        namespace = "red" if kind == NON_ADMIN_RESTORE else VELERO
        spec = {"restoreSpec": {"backupName": 3}} if kind == NON_ADMIN_RESTORE else {"backupName": 3}
        done(scene.world.create(kind, {"metadata": {"name": "odd"}, "spec": spec}, "admin", namespace))
        await scene.settle(4 * MINUTE)
        assert len(scene.velero_objects()) == 6
        assert scene.says("RetentionReady")[1] == "RetentionInDoubt"
        scene.world.delete(kind, Key(namespace, "odd"))
        await scene.settle(6 * MINUTE)
        assert len(scene.velero_objects()) <= 3

    tell(story, keepLast=2, **AT_ONCE)


def test_what_keep_last_good_holds_is_not_given_up() -> None:
    async def story(scene: TenantScene) -> None:
        change(scene, {"deletion": {"keepLastGood": 1}})
        scene.schedule(NAS, "@every 10m", template={"backupSpec": {}})
        await scene.settle(11 * MINUTE)
        whole = scene.runs[0][0]
        select(scene)
        await scene.settle(20 * MINUTE)
        found = scene.request(whole)
        assert found is not None
        assert not found["spec"].get("deleteBackup"), "its deletion could not be taken back"
        assert len(scene.velero_objects()) == 2, "the whole one, and the newest"
        done(scene.world.merge(NON_ADMIN_BACKUP, whole, {"metadata": {"annotations": KEPT}}, "tenant"))
        change(scene, {"deletion": {"keepLastGood": 0}})
        await scene.settle(11 * MINUTE)
        assert scene.made_for(whole) is not None
        done(scene.world.merge(NON_ADMIN_BACKUP, whole, {"metadata": {"annotations": {PINNED: None}}}, "tenant"))
        await scene.settle(MINUTE)
        assert scene.request(whole) is None

    tell(story, keepLast=1, maximum=1, **AT_ONCE)


async def held(scene: TenantScene) -> Key:
    """Return the only run, whose deletion waits."""
    change(scene, {"deletion": {"keepLastGood": 1}})
    scene.schedule(NAS, "@every 10h")
    await scene.settle(601 * MINUTE)
    run = scene.runs[0][0]
    done(scene.world.merge(NON_ADMIN_BACKUP, run, {"spec": {"deleteBackup": True}}, "operator"))
    await scene.settle(MINUTE)
    assert is_held(scene, run)
    return run


def test_a_run_that_is_kept_stays_although_its_deletion_was_requested() -> None:
    async def story(scene: TenantScene) -> None:
        run = await held(scene)
        done(scene.world.merge(NON_ADMIN_BACKUP, run, {"metadata": {"annotations": KEPT}}, "tenant"))
        change(scene, {"deletion": {"keepLastGood": 0}})
        await scene.settle(10 * MINUTE)
        assert is_held(scene, run)
        assert "is kept from deletion" in scene.condition(run, "Deleting")[2]
        done(scene.world.merge(NON_ADMIN_BACKUP, run, {"metadata": {"annotations": {PINNED: None}}}, "tenant"))
        await scene.settle(MINUTE)
        assert scene.request(run) is None

    tell(story, keepLast=1)


def test_a_run_that_a_restore_reads_stays_although_its_deletion_was_requested() -> None:
    async def story(scene: TenantScene) -> None:
        run = await held(scene)
        good = scene.outcome
        scene.outcome = {"phase": "InProgress"}
        scene.restore(Key("red", "back"), run.name)
        await scene.settle(MINUTE)
        scene.outcome = good
        change(scene, {"deletion": {"keepLastGood": 0}})
        await scene.settle(30 * MINUTE)
        assert is_held(scene, run)
        assert "A restore reads" in scene.condition(run, "Deleting")[2]
        scene.velero_says(Key("red", "back"), velero.COMPLETED, NON_ADMIN_RESTORE)
        await scene.settle(6 * MINUTE)
        assert scene.request(run) is None

    tell(story, keepLast=1)


async def held_by_gold(scene: TenantScene) -> Key:
    """Return the only run, which a rule gives up, and which another policy protects."""
    selector = {"matchLabels": {"foresail.dev/self-service": "enabled"}}
    schedules = {"keepLast": 1, "minimumInterval": "1s", **AT_ONCE}
    spec = {"namespaceSelector": selector, "priority": 9, "schedules": schedules, "deletion": {"keepLastGood": 1}}
    done(scene.world.create(SELF_SERVICE_POLICY, {"metadata": {"name": "gold"}, "spec": spec}, "admin"))
    scene.schedule(NAS, "@every 10h")
    await scene.settle(601 * MINUTE)
    run = scene.runs[0][0]
    mark = {"annotations": mark_annotations(scene.clock(), "keepLast 1 keeps newer ones")}
    done(scene.world.merge(NON_ADMIN_BACKUP, run, {"metadata": mark, "spec": {"deleteBackup": True}}, "operator"))
    await scene.settle(MINUTE)
    assert is_held(scene, run)
    return run


def test_a_run_stays_although_its_deletion_was_requested_while_a_policy_cannot_be_read() -> None:
    async def story(scene: TenantScene) -> None:
        run = await held_by_gold(scene)
        done(scene.world.merge(SELF_SERVICE_POLICY, Key("", "gold"), {"spec": {"priority": "high"}}, "admin"))
        await scene.settle(10 * MINUTE)
        assert is_held(scene, run), "the policy that cannot be read protects it"
        assert "SelfServicePolicy gold cannot be read" in scene.condition(run, "Deleting")[2]
        scene.world.delete(SELF_SERVICE_POLICY, Key("", "gold"))
        await scene.settle(6 * MINUTE)
        assert scene.request(run) is None

    tell(story, keepLast=1)


def test_a_run_stays_although_its_deletion_was_requested_while_the_clock_is_wrong() -> None:
    async def story(scene: TenantScene) -> None:
        run = await held_by_gold(scene)
        assert scene.controller is not None
        scene.controller.cluster.skew = lambda: timedelta(hours=1)
        scene.world.delete(SELF_SERVICE_POLICY, Key("", "gold"))
        await scene.settle(10 * MINUTE)
        assert is_held(scene, run)
        assert "60 minutes ahead of" in scene.condition(run, "Deleting")[2]
        scene.controller.cluster.skew = timedelta
        await scene.settle(6 * MINUTE)
        assert scene.request(run) is None

    tell(story, keepLast=1)


def test_a_run_stays_although_its_deletion_was_requested_while_restores_may_be_unknown() -> None:
    async def story(scene: TenantScene) -> None:
        run = await held_by_gold(scene)
        assert scene.controller is not None
        scene.controller.cluster.restores.velero.age = lambda: STALE_SECONDS + 1
        scene.world.delete(SELF_SERVICE_POLICY, Key("", "gold"))
        await scene.settle(10 * MINUTE)
        assert is_held(scene, run)
        assert "nothing new of Restore" in scene.condition(run, "Deleting")[2]
        scene.controller.cluster.restores.velero.age = lambda: 0.0
        await scene.settle(6 * MINUTE)
        assert scene.request(run) is None

    tell(story, keepLast=1)


def test_a_rejected_deletion_is_not_sent_again_while_a_restore_reads_the_backup() -> None:
    async def story(scene: TenantScene) -> None:
        backup = Key("red", "shop")
        scene.back_up(backup)
        await scene.settle()
        scene.velero_says(backup, velero.COMPLETED)
        scene.edit(backup, deleteBackup=True)
        await scene.settle(5)
        (name,) = scene.velero_objects()
        (first,) = scene.velero_objects(velero.DELETE_REQUEST)
        rejected = {"status": {"phase": "Processed", "errors": ["no"]}}
        done(scene.world.merge(velero.DELETE_REQUEST, Key(VELERO, first), rejected, "velero"))
        restore = {"metadata": {"name": "by-hand"}, "spec": {"backupName": name}, "status": {"phase": "InProgress"}}
        done(scene.world.create(velero.RESTORE, restore, "admin", VELERO))
        await scene.settle(3600)
        (same,) = scene.velero_objects(velero.DELETE_REQUEST).values()
        assert same["metadata"]["annotations"][ATTEMPT] == "1"
        assert "A restore reads" in scene.condition(backup, "Deleting")[2]
        scene.world.delete(velero.RESTORE, Key(VELERO, "by-hand"))
        await scene.settle(360)
        (another,) = scene.velero_objects(velero.DELETE_REQUEST).values()
        assert another["metadata"]["annotations"][ATTEMPT] == "2"

    tell(story, works=False)


@pytest.mark.parametrize(("stored", "keep", "good"), [(3, 1, 1), (3, 3, 1), (10, 7, 6)])
def test_partial_copies_do_not_stop_a_schedule_at_its_quota(stored: int, keep: int, good: int) -> None:
    async def story(scene: TenantScene) -> None:
        scene.set_quotas(stored=stored)
        scene.schedule(NAS, "@every 1m")
        await scene.settle((keep + 3.5) * MINUTE)
        complete = scene.outcome
        scene.outcome = {**complete, "phase": velero.PARTIALLY_FAILED}
        await scene.settle((stored + 5) * MINUTE)
        assert len(scene.runs) == keep + stored + 8
        phases = [document["status"]["phase"] for document in scene.velero_objects().values()]
        assert phases.count(velero.COMPLETED) == good
        scene.outcome = complete
        await scene.settle(2 * MINUTE)
        assert len(scene.runs) == keep + stored + 10

    tell(story, keepLast=keep, maximum=1, **AT_ONCE)


def test_one_schedule_makes_room_for_one_run_that_waits() -> None:
    async def story(scene: TenantScene) -> None:
        for number in range(6):
            scene.schedule(Key("red", f"s{number}"), "0 * * * *")
        await scene.settle(121 * MINUTE)
        assert len(scene.velero_objects()) == 12
        scene.set_quotas(stored=12)
        scene.schedule(Key("red", "one"), "10 * * * *")
        await scene.settle(12 * MINUTE)
        assert scene.runs[-1][0].name.startswith("one-")
        assert len(scene.velero_objects()) == 12, "one of six marked runs made room"

    tell(story, keepLast=1, gracePeriod="24h", maximum=10)
