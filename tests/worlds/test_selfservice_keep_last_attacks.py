"""A second attack on `keepLast`: deletions that are held, expired copies, policies in doubt and tight quotas."""

from datetime import timedelta
from typing import Any

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.plan import Key
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
