"""Switches that are turned off amid a Rollback: it ends all the same, forwards or back."""

import asyncio

import pytest

from foresail.api import core
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key, Kind
from foresail.tenancy.policies import ChartLimits
from tests.worlds.documents import Document
from tests.worlds.rollback_storage import GOOD_DATA, MARK, OLD, StorageScene
from tests.worlds.test_rollback_attacks import as_soon_as, is_as_before
from tests.worlds.test_rollback_volumes import live, until, until_ended

HOURS = 7200.0


def begins(verb: str, kind: Kind, body: Document | None) -> bool:
    """What the fence refuses where the chart's rollback.volumes is false."""
    if verb == "create" and kind == NON_ADMIN_BACKUP:
        return bool((body or {})["spec"]["backupSpec"].get("snapshotMoveData"))
    if verb == "create" and kind == NON_ADMIN_RESTORE:
        return bool((body or {})["spec"]["restoreSpec"].get("includedResources") == ["persistentvolumeclaims"])
    return verb == "merge" and kind == core.VOLUME and bool((body or {})["metadata"].get("labels", {}).get(MARK))


async def restart(scene: StorageScene, chart: ChartLimits, off: float = 5.0) -> None:
    """End the operator, and start it again after a while with what the chart then allows."""
    assert scene.process is not None
    await scene.process.kill()
    await asyncio.sleep(off)
    scene.chart = chart
    scene.denies = (lambda *_: False) if chart.rollback_volumes else begins
    scene.start()


WITHOUT = ChartLimits(rollback_volumes=False)
ENDS = {
    "Planning": "Refused",
    "SafetyBackup": "Refused",
    "Suspending": "Undone",
    "Stopping": "Undone",
    "Replacing": "Undone",
    "Restoring": "Completed",
    "Comparing": "Completed",
    "Resuming": "Completed",
}


@pytest.mark.parametrize("phase", ENDS)
def test_without_the_switch_for_volumes_a_rollback_ends_at_once(phase: str) -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, phase)
        await restart(scene, WITHOUT)
        async with asyncio.timeout(120):
            await until_ended(scene)
        assert scene.phase == ENDS[phase]
        if scene.phase == "Undone":
            assert is_as_before(scene)

    live(tale)


def test_without_the_switch_for_volumes_a_rollback_can_be_undone() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        await restart(scene, WITHOUT)
        scene.undo()
        await until(scene, "Undone")
        assert is_as_before(scene)

    live(tale)


def test_without_the_switch_for_volumes_old_ones_are_released_at_the_deadline() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        await restart(scene, WITHOUT)
        await asyncio.sleep(4000)
        assert set(OLD.values()).isdisjoint(key.name for key in scene.world.history.present(core.VOLUME))

    live(tale, keepOldVolumes="1h")


@pytest.mark.parametrize("phase", ["Suspending", "Stopping", "Replacing"])
def test_a_policy_that_no_longer_allows_volumes_turns_a_rollback_back(phase: str) -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, phase)
        scene.world.merge(SELF_SERVICE_POLICY, Key("", "all"), {"spec": {"rollback": {"volumes": "None"}}}, "admin")
        await until_ended(scene)
        assert (scene.phase, scene.reason) == ("Undone", "Failed")
        assert is_as_before(scene)

    live(tale)


@pytest.mark.parametrize("phase", [*ENDS, "Undoing"])
def test_a_rollback_whose_operator_is_off_for_hours_ends_once_it_is_on(phase: str) -> None:
    async def tale(scene: StorageScene) -> None:
        if phase == "Undoing":
            await until(scene, "Completed")
            scene.undo()
        await until(scene, phase)
        await restart(scene, ChartLimits(), HOURS)
        await until_ended(scene)
        if scene.phase == "Completed":
            assert set(scene.contents().values()) == {GOOD_DATA}
        else:
            assert is_as_before(scene)

    live(tale)


@pytest.mark.parametrize("phase", ["SafetyBackup", "Suspending", "Stopping", "Restoring"])
def test_without_self_service_a_rollback_turns_back_before_long(phase: str) -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, phase)
        scene.line.is_off = True
        async with asyncio.timeout(HOURS):
            while scene.phase not in ("Refused", "Undone"):  # noqa: ASYNC110
                await asyncio.sleep(1)
        assert is_as_before(scene)

    live(tale, volumes="None" if phase == "Restoring" else "All")


def test_without_self_service_an_undo_resumes_what_is_suspended_and_ends_once_it_is_back() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        scene.line.is_off = True
        scene.undo()
        await until(scene, "Undoing")
        await asyncio.sleep(HOURS)
        assert (scene.phase, scene.reason) == ("Undoing", "UndoWaits")
        assert scene.suspended() == scene.formerly
        requests = [key.name for key in scene.world.history.present(NON_ADMIN_RESTORE) if "-undo-" in key.name]
        assert len(requests) <= 1, "an attempt that is over is not taken up later"
        scene.line.is_off = False
        await until(scene, "Undone")
        assert is_as_before(scene)

    def arrange(scene: StorageScene) -> None:
        scene.only = ("configmaps",)

    live(tale, arrange, only=["configmaps"])


def test_a_restore_that_is_taken_up_as_it_is_called_off_is_undone() -> None:
    """Self-service is back just when the Rollback gives up waiting for it."""

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Restoring")
        scene.line.is_off = True
        as_soon_as(scene, "Undoing", back_at_once)
        await asyncio.sleep(HOURS)
        await until(scene, "Undone")
        assert [key.name for key in scene.world.history.present(NON_ADMIN_RESTORE) if "-undo-" in key.name]

    def back_at_once(scene: StorageScene) -> None:
        scene.line.is_off = False
        scene.denies = lambda verb, kind, _: verb == "delete" and kind == NON_ADMIN_RESTORE

    live(tale, volumes="None")
