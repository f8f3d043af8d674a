"""What a Rollback would take the way back from, or an undo would begin and could not end."""

import asyncio
from collections.abc import Callable
from datetime import datetime, timedelta

import pytest

from foresail.api import core
from foresail.api.apps import DEPLOYMENT
from foresail.api.instants import instant, stamp
from foresail.api.marks import NOT_BACKED_UP
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.pods import POD
from foresail.api.rollback import ROLLBACK
from foresail.plan import Key
from foresail.rollback.kinds import KUSTOMIZATION, STATEFUL_SET
from tests.worlds.rollback_scene import KEY, RESTORED_BY, SHOP, TEAM
from tests.worlds.rollback_storage import BAD_DATA, GOOD_DATA, MARK, OLD, StorageScene
from tests.worlds.test_rollback_attacks import as_soon_as, asked_by, is_as_before, sizes
from tests.worlds.test_rollback_volumes import live, until, until_ended

EXCLUDED = {"metadata": {"labels": {NOT_BACKED_UP: "true"}}}


def test_prune_leaves_what_no_backup_has() -> None:
    """An object with Velero's label is in no backup, so it is not deleted as one that came later."""

    def arrange(scene: StorageScene) -> None:
        scene.configure("private", {"key": "only here"})
        scene.world.merge(core.CONFIG_MAP, Key(SHOP, "private"), EXCLUDED, TEAM)
        scene.judge.touched.add(("ConfigMap", "private"))
        scene.prunes = True

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        assert scene.state()["ConfigMap", "private"] == {"data": {"key": "only here"}}

    live(tale, arrange, prune=True)


def test_what_the_safety_backup_would_not_have_is_named_and_nothing_begins() -> None:
    def arrange(scene: StorageScene) -> None:
        scene.world.merge(core.CONFIG_MAP, Key(SHOP, "settings"), EXCLUDED, TEAM)
        scene.judge.touched.add(("ConfigMap", "settings"))

    scene = live(until_ended, arrange)
    assert (scene.phase, scene.reason) == ("Refused", "InTheWay")
    assert any("configmaps/settings has the label" in way for way in scene.status["plan"]["inTheWay"])


def test_a_safety_backup_without_some_kinds_is_none() -> None:
    def arrange(scene: StorageScene) -> None:
        report = scene.line._report  # noqa: SLF001

        def leaving_out(kind: object, key: Key, status: dict[str, object]) -> None:
            left_out = {"type": "Accepted", "status": "True", "reason": "KindsLeftOut", "message": "without secrets"}
            more = {"conditions": [left_out]} if kind == NON_ADMIN_BACKUP else {}
            report(kind, key, {**status, **more})  # type: ignore[arg-type]

        scene.line._report = leaving_out  # type: ignore[method-assign]  # noqa: SLF001

    scene = live(until_ended, arrange)
    assert (scene.phase, scene.reason) == ("Refused", "SafetyBackupFailed")
    assert "without secrets" in scene.message


@pytest.mark.parametrize("kind", ["secrets", "configmaps"])
def test_an_undo_that_leaves_kinds_out_does_not_say_that_everything_is_as_before(kind: str) -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        before = scene.judge.before
        scene.line.leaves_out = {kind}
        scene.undo()
        await until(scene, "Undoing", "Undone")
        await asyncio.sleep(300)
        assert (scene.phase, scene.reason) == ("Undoing", "UndoWaits")
        assert kind in scene.message
        assert ("Secret", "token") in scene.state()
        scene.line.leaves_out = set()
        await until(scene, "Undone")
        assert scene.state() == before

    live(tale)


@pytest.mark.parametrize("is_deleted", [False, True], ids=["restore stays", "restore is deleted"])
def test_kinds_that_the_rollback_left_alone_keep_no_undo_waiting(is_deleted: bool) -> None:
    def arrange(scene: StorageScene) -> None:
        scene.line.leaves_out = {"secrets"}
        scene.judge.touched |= {("Secret", "token"), ("Secret", "password")}

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        if is_deleted:
            scene.world.delete(NON_ADMIN_RESTORE, Key(SHOP, scene.status["restore"]))
        scene.undo()
        await until(scene, "Undone")
        assert is_as_before(scene)

    live(tale, arrange)


def test_an_undo_waits_for_no_rights_over_what_was_never_restored() -> None:
    def arrange(scene: StorageScene) -> None:
        as_soon_as(scene, "Restoring", lambda _: scene.forbidden.add(("update", "configmaps")))
        scene.line.leaves_out = {"configmaps"}

    async def tale(scene: StorageScene) -> None:
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert is_as_before(scene)

    live(tale, arrange)


# An undo of what works begins only if it can end


def safety_gone(scene: StorageScene) -> None:
    scene.world.delete(NON_ADMIN_BACKUP, Key(SHOP, scene.status["safetyBackup"]))


def old_volume_gone(scene: StorageScene) -> None:
    scene.judge.excused = True  # type: ignore[attr-defined]
    scene.world.delete(core.VOLUME, Key("", "pv-data"))


def finished_pod(scene: StorageScene) -> None:
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    scene.world.create(POD, {"metadata": {"name": "bare"}, "spec": {"volumes": mounts}}, TEAM, SHOP)


def another_claim(scene: StorageScene) -> None:
    """A restore by hand has given the claim its own label."""
    scene.world.merge(core.CLAIM, Key(SHOP, "data"), {"metadata": {"labels": {RESTORED_BY: "another"}}}, "velero")


def may_not_change_secrets(scene: StorageScene) -> None:
    scene.forbidden |= {("update", "secrets")}


@pytest.mark.parametrize(
    ("change", "says"),
    [
        (safety_gone, "safety backup"),
        (old_volume_gone, "volume pv-data"),
        (finished_pod, "pod bare"),
        (another_claim, "claim data is neither the old nor the restored one"),
        (may_not_change_secrets, "update secrets"),
    ],
)
def test_an_undo_that_could_not_end_does_not_begin(change: Callable[[StorageScene], None], says: str) -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        restored = sizes(scene)
        change(scene)
        asked_by(scene, TEAM, undo=True)
        await asyncio.sleep(120)
        assert scene.phase == "Completed"
        assert says in scene.message
        assert sizes(scene) == restored
        assert set(scene.contents().values()) == {GOOD_DATA}

    live(tale)


def test_data_goes_back_without_a_safety_backup() -> None:
    """If only data was replaced, the old volumes are all that an undo needs."""

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        safety_gone(scene)
        scene.undo()
        await until(scene, "Undone")
        assert is_as_before(scene)

    def arrange(scene: StorageScene) -> None:
        scene.spec["volumes"] = "Data"

    live(tale, arrange)


def test_an_undo_that_does_not_begin_holds_nothing() -> None:
    """The operator dies once the Rollback is complete, and before it has let go of it."""

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Resuming")
        scene.denies = lambda verb, _kind, body: verb == "merge" and "finalizers" in (body or {}).get("metadata", {})
        await until(scene, "Completed")
        safety_gone(scene)
        scene.undo()
        scene.denies = lambda *_: False
        await asyncio.sleep(300)
        assert (scene.phase, scene.reason) == ("Completed", "UndoWaits")
        assert not scene.world.history.present(ROLLBACK)[KEY]["metadata"].get("finalizers")

    live(tale)


# An undo that waits


def test_what_the_team_suspends_while_an_undo_waits_stays_suspended() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        scene.line.is_away = True
        scene.undo()
        async with asyncio.timeout(1800):
            while scene.reason != "UndoWaits" or scene.suspended() != scene.formerly:  # noqa: ASYNC110
                await asyncio.sleep(0.2)
        await asyncio.sleep(20)
        scene.world.merge(KUSTOMIZATION, Key(SHOP, "apps"), {"spec": {"suspend": True}}, TEAM)
        scene.formerly = scene.suspended()
        await asyncio.sleep(30)
        assert scene.suspended() == scene.formerly
        scene.line.is_away = False
        await until(scene, "Undone")
        assert scene.suspended() == scene.formerly
        assert is_as_before(scene)

    live(tale)


def test_workloads_come_back_if_the_safety_backup_is_gone_for_good() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Comparing")
        scene.undo()
        await until(scene, "Undoing")
        safety_gone(scene)
        await until(scene, "Undone")
        assert scene.reason == "Failed"
        assert "is gone, so objects stay as the restore left them" in scene.message
        assert all(sizes(scene).values())
        assert scene.suspended() == scene.formerly
        assert set(scene.contents().values()) == {BAD_DATA}
        scene.judge.touched |= scene.state().keys() | scene.judge.before.keys()

    live(tale)


# Another Rollback


def test_a_later_rollback_that_fails_deletes_no_old_volume() -> None:
    """The undo of the first is over, and its old volumes stay until the deadline that is shown."""

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        scene.line.fails_halfway = 1
        scene.ask("second", volumes="None")
        second = Key(SHOP, "second")
        async with asyncio.timeout(1800):
            while scene.world.history.present(ROLLBACK)[second].get("status", {}).get("phase") != "Undone":  # noqa: ASYNC110
                await asyncio.sleep(1)
        await asyncio.sleep(300)
        assert set(OLD.values()) <= {key.name for key in scene.world.history.present(core.VOLUME)}
        deadline = instant(scene.status["volumes"][0]["keptUntil"])
        assert deadline is not None
        scene.judge.deadline = scene.status["volumes"][0]["keptUntil"]  # type: ignore[attr-defined]
        await asyncio.sleep((deadline - scene.clock()).total_seconds() + 300)
        assert set(OLD.values()).isdisjoint(key.name for key in scene.world.history.present(core.VOLUME))

    live(tale, keepOldVolumes="2h")


def test_a_backup_of_stopped_workloads_stops_nothing() -> None:
    """It was taken while another Rollback ran, so it has a workload without pods, and the mark of that Rollback."""

    def stopped(scene: StorageScene) -> None:
        labels = {RESTORED_BY: scene.status["veleroRestore"]}
        body = {"metadata": {"annotations": {MARK: "of another"}, "labels": labels}, "spec": {"replicas": 0}}
        scene.world.merge(DEPLOYMENT, Key(SHOP, "db"), body, "velero")

    async def tale(scene: StorageScene) -> None:
        as_soon_as(scene, "Comparing", stopped)
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert "deployments.apps/db is stopped in the backup" in scene.message
        assert is_as_before(scene)

    live(tale)


# Clocks


def test_what_the_restore_creates_is_told_by_the_clock_that_dates_it() -> None:
    """The operator's clock is a minute ahead of that of the API server."""

    async def tale(scene: StorageScene) -> None:
        def behind() -> datetime:
            return scene.clock() - timedelta(minutes=1)

        def date_last_write() -> None:
            fields = [{"manager": "foresail", "time": stamp(behind())}]
            scene.world.merge(ROLLBACK, KEY, {"metadata": {"managedFields": fields}}, "kube")

        scene.world.clock = behind
        as_soon_as(scene, "Replacing", lambda _: date_last_write())
        await until(scene, "Completed")
        assert ("ConfigMap", "removed") in scene.state()
        scene.undo()
        await until(scene, "Undone")
        assert ("ConfigMap", "removed") not in scene.state()

    live(tale)


def test_an_empty_claim_of_a_stateful_set_in_place_of_the_restored_one_turns_the_rollback_back() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Resuming")
        scene.world.delete(core.CLAIM, Key(SHOP, "store-cache-0"))
        scene.world.merge(STATEFUL_SET, Key(SHOP, "cache"), {"spec": {"replicas": 3}}, TEAM)
        scene.judge.touched.add(("StatefulSet", "cache"))
        await until_ended(scene)
        assert scene.phase == "Undone"
        assert set(scene.contents().values()) == {BAD_DATA}

    live(tale)


# What is written between the safety backup and the restore


def edit(scene: StorageScene, name: str, manager: str, subresource: str = "") -> None:
    fields = [
        {"manager": manager, "time": stamp(scene.clock()), **({"subresource": subresource} if subresource else {})}
    ]
    scene.world.merge(core.CONFIG_MAP, Key(SHOP, name), {"metadata": {"managedFields": fields}}, TEAM)


def test_what_somebody_changes_after_the_safety_backup_is_neither_overwritten_nor_lost() -> None:
    def edited(scene: StorageScene) -> None:
        scene.configure("settings", {"colour": "green", "more": "yes"})
        edit(scene, "settings", "kubectl-edit")
        scene.judge.touched.add(("ConfigMap", "settings"))

    async def tale(scene: StorageScene) -> None:
        as_soon_as(scene, "Suspending", edited)
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert "configmaps/settings was changed after the safety backup" in scene.message
        assert scene.state()["ConfigMap", "settings"]["data"]["colour"] == "green"
        assert not scene.world.history.present(NON_ADMIN_RESTORE)

    live(tale, volumes="None")


@pytest.mark.parametrize(
    ("name", "manager", "subresource"),
    [("settings", "foresail", ""), ("settings", "kubectl", "status"), ("added", "kubectl", "")],
    ids=["by the operator", "of a status", "of what stays"],
)
def test_what_an_undo_does_not_lose_turns_no_rollback_back(name: str, manager: str, subresource: str) -> None:
    async def tale(scene: StorageScene) -> None:
        as_soon_as(scene, "Suspending", lambda scene: edit(scene, name, manager, subresource))
        await until_ended(scene)
        assert scene.phase == "Completed"
        scene.judge.excused = True  # type: ignore[attr-defined]  # no data was to come back

    live(tale, volumes="None")
