"""A second attack on `keepLast`: deletions that are held, expired copies, policies in doubt and tight quotas."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
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
