"""Rollbacks with volumes: old data or restored data is complete and reachable at each instant, whatever happens."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import datetime

import msgspec
import pytest

from foresail.api import core
from foresail.api.apps import DAEMON_SET
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.pods import POD
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.rollback import ROLLBACK, KeptVolume
from foresail.plan import Key, Patch
from foresail.rollback import kept, volumes
from foresail.rollback.kinds import STATEFUL_SET
from foresail.rollback.view import Findings, RollbackRow
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.rollback_histories import (
    VOLUME_STORIES,
    Case,
    Lived,
    Story,
    every_volume_case,
    lived,
    some_cases,
)
from tests.worlds.rollback_scene import GOOD, HOME, KEY, SHOP
from tests.worlds.rollback_storage import OLD, STRANGER, StorageScene, claim_deleted
from tests.worlds.test_rollback import LAST_WRITES

ALL, ALL_UNDONE, DATA, DATA_UNDONE, SOME_KINDS, PRUNED = VOLUME_STORIES


def check(case: Case, result: Lived) -> None:
    assert list(result.judged) == [], f"{case}: {result}"


@pytest.mark.parametrize("story", VOLUME_STORIES, ids=lambda story: story.name)
def test_volumes_go_back_and_forth(story: Story) -> None:
    result = lived(Case(story))
    check(Case(story), result)
    assert result.phase == ("Undone" if story.undo_after else "Completed")


@pytest.mark.parametrize("case", [case for case in every_volume_case() if case.fault is not None][::47], ids=str)
def test_a_fault_at_a_step_loses_no_data(case: Case) -> None:
    check(case, lived(case))


@pytest.mark.parametrize(
    "case", [Case(ALL, claim_deleted, "Restoring"), Case(DATA, claim_deleted, "Resuming")], ids=str
)
def test_a_restored_claim_that_is_deleted_turns_the_rollback_back(case: Case) -> None:
    result = lived(case)
    check(case, result)
    assert result.phase == "Undone"


@pytest.mark.repeats
def test_a_death_at_each_write_loses_no_data(figure: Callable[[str], None]) -> None:
    whole = lived(Case(ALL_UNDONE))
    died = 0
    for write in range(1, whole.writes + 1):
        case = Case(ALL_UNDONE, deaths=(Moment(after=write % 2 == 0, write=write),))
        result = lived(case)
        died += result.deaths
        check(case, result)
    assert died > whole.writes // 2
    figure(f"rollback with volumes: {died} deaths at {whole.writes} writes, nothing lost")


@pytest.mark.repeats
def test_random_faults_and_deaths_lose_no_data(figure: Callable[[str], None]) -> None:
    cases = list(some_cases(40, seed=36, cases=tuple(every_volume_case())))
    for case in cases:
        check(case, lived(case))
    figure(f"rollback with volumes: {len(cases)} lives with a fault and deaths, nothing lost")


# The plan, and what keeps it from beginning

Tale = Callable[[StorageScene], Awaitable[None]]


def live(tale: Tale, arrange: Callable[[StorageScene], object] = lambda _: None, **spec: object) -> StorageScene:
    """Live through a tale with the operator, Velero, Flux and Kubernetes, and judge it."""

    async def life() -> StorageScene:
        scene = StorageScene()
        arrange(scene)
        others = [asyncio.create_task(each) for each in (scene.line.work(), scene.flux(), scene.kubernetes())]
        scene.start()
        scene.ask(**spec)  # type: ignore[arg-type]
        await tale(scene)
        await asyncio.sleep(LAST_WRITES)
        judged = scene.judge.end()
        await scene.end()
        for each in others:
            each.cancel()
        assert list(judged) == []
        return scene

    return virtual_time.run(life())


async def until(scene: StorageScene, *phases: str) -> None:
    async with asyncio.timeout(1800):
        while scene.phase not in phases:  # noqa: ASYNC110 - what it waits for is the operator's business
            await asyncio.sleep(0.2)


async def until_ended(scene: StorageScene) -> None:
    await until(scene, "Completed", "Undone", "Refused", "Planned")


def test_the_plan_has_the_claims_and_what_is_stopped() -> None:
    scene = live(until_ended, dryRun=True)
    plan = scene.status["plan"]
    assert plan["replaced"] == {
        "count": 2,
        "names": ["persistentvolumeclaims/data", "persistentvolumeclaims/store-cache-0"],
    }
    assert plan["stopped"] == {"count": 2, "names": ["deployments.apps/db", "statefulsets.apps/cache"]}
    assert "inTheWay" not in plan


def no_policy(scene: StorageScene) -> None:
    scene.world.merge(SELF_SERVICE_POLICY, Key("", "all"), {"spec": {"rollback": {"volumes": "None"}}}, "admin")


def by_files(scene: StorageScene) -> None:
    status = {"status": {"fileSystemPodVolumeBackups": {"total": 1, "completed": 1}, "dataMoverDataUploads": None}}
    scene.world.merge(NON_ADMIN_BACKUP, Key(SHOP, GOOD), status, "self-service", "status")


def without_data(scene: StorageScene) -> None:
    status = {"status": {"dataMoverDataUploads": {"total": 1, "completed": 1}}}
    scene.world.merge(NON_ADMIN_BACKUP, Key(SHOP, GOOD), status, "self-service", "status")


def of_an_operator(scene: StorageScene) -> None:
    owners = [{"kind": "Cluster", "name": "main", "uid": "x", "controller": True}]
    scene.world.merge(STATEFUL_SET, Key(SHOP, "cache"), {"metadata": {"ownerReferences": owners}}, "admin")


def deletes_claims(scene: StorageScene) -> None:
    policy = {"spec": {"persistentVolumeClaimRetentionPolicy": {"whenScaled": "Delete"}}}
    scene.world.merge(STATEFUL_SET, Key(SHOP, "cache"), policy, "admin")


def bare_pod(scene: StorageScene) -> None:
    mounts = [{"name": "data", "persistentVolumeClaim": {"claimName": "data"}}]
    scene.world.create(POD, {"metadata": {"name": "bare"}, "spec": {"volumes": mounts}}, "team", SHOP)


def has_finalizer(scene: StorageScene) -> None:
    finalizers = ["kubernetes.io/pvc-protection", "example.com/mine"]
    scene.world.merge(core.CLAIM, Key(SHOP, "data"), {"metadata": {"finalizers": finalizers}}, "team")


def no_class(scene: StorageScene) -> None:
    scene.world.delete(core.STORAGE_CLASS, Key("", "fast"))


def late_class(scene: StorageScene) -> None:
    late = {"volumeBindingMode": "WaitForFirstConsumer"}
    scene.world.merge(core.STORAGE_CLASS, Key("", "fast"), late, "admin")


def binding_itself(scene: StorageScene) -> None:
    late_class(scene)
    args = ["node-agent", "server", "--node-agent-configmap=agent"]
    pod = {"spec": {"containers": [{"name": "node-agent", "args": args}]}}
    agents = {"metadata": {"name": "node-agent"}, "spec": {"template": pod}}
    config = {"metadata": {"name": "agent"}, "data": {"config.json": '{"restorePVC": {"ignoreDelayBinding": true}}'}}
    for kind, body in ((DAEMON_SET, agents), (core.CONFIG_MAP, config)):
        scene.world.create(kind, body, "admin", HOME)


def test_claims_of_a_class_that_waits_are_replaced_where_velero_binds_them_itself() -> None:
    assert live(until_ended, binding_itself).phase == "Completed"


def of_others(scene: StorageScene) -> None:
    """A claim names the volume of another team, as if it were bound to it."""
    scene.world.merge(core.CLAIM, Key(SHOP, "data"), {"spec": {"volumeName": STRANGER}}, "team")
    scene.judge.excused = True  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("arrange", "says"),
    [
        (by_files, "the backup has the files of 1 volumes"),
        (without_data, "the backup has 2 claims and the moved data of 1"),
        (of_an_operator, "statefulsets.apps/cache is controlled by Cluster main"),
        (deletes_claims, "statefulsets.apps/cache deletes its claims"),
        (bare_pod, "pod bare uses a claim to be replaced"),
        (has_finalizer, "claim data has finalizer example.com/mine"),
        (no_class, "claim data has StorageClass fast, which does not exist"),
        (late_class, "whose volumes wait for a pod"),
        (of_others, "claim data is not bound to a volume of its own"),
    ],
)
def test_what_cannot_be_replaced_is_named_and_nothing_begins(
    arrange: Callable[[StorageScene], object], says: str
) -> None:
    scene = live(until_ended, arrange)
    assert (scene.phase, scene.reason) == ("Refused", "InTheWay")
    assert any(says in each for each in scene.status["plan"]["inTheWay"]), scene.status["plan"]["inTheWay"]


def test_volumes_need_a_policy_that_allows_them() -> None:
    scene = live(until_ended, no_policy)
    assert (scene.phase, scene.reason) == ("Refused", "RollbackDisabled")


def test_old_volumes_are_released_at_the_deadline_with_their_former_policy() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        await asyncio.sleep(3500)
        assert set(OLD.values()) <= {key.name for key in scene.world.history.present(core.VOLUME)}
        await asyncio.sleep(400)
        assert set(OLD.values()).isdisjoint(key.name for key in scene.world.history.present(core.VOLUME))

    scene = live(tale, keepOldVolumes="1h")
    assert [each["claim"] for each in scene.status["volumes"]] == sorted(OLD)


def test_a_second_rollback_waits_for_the_old_volumes_of_the_first() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        scene.ask("second")
        await asyncio.sleep(60)
        second = scene.world.history.present(ROLLBACK)[Key(SHOP, "second")]["status"]
        assert second["phase"] == "Refused"
        assert "is still kept" in second["plan"]["inTheWay"][0]

    live(tale)


def test_a_deleted_rollback_that_was_complete_releases_its_volumes() -> None:
    async def tale(scene: StorageScene) -> None:
        await until(scene, "Completed")
        await asyncio.sleep(10)
        scene.judge.excused = True  # type: ignore[attr-defined]
        scene.judge.before = {}
        scene.world.delete(ROLLBACK, KEY)
        await asyncio.sleep(60)
        assert set(OLD.values()).isdisjoint(key.name for key in scene.world.history.present(core.VOLUME))

    live(tale)


def test_a_forged_status_reaches_no_volume_of_others() -> None:
    """Whoever could write the status would still not reach a volume whose claimRef names another namespace."""

    async def tale(scene: StorageScene) -> None:
        await until(scene, "Stopping")
        uid = scene.world.history.present(core.VOLUME)[Key("", STRANGER)]["metadata"]["uid"]
        forged = [{"claim": "data", "volume": STRANGER, "claimUid": "other", "volumeUid": uid}]
        scene.world.merge(ROLLBACK, KEY, {"status": {"volumes": forged}}, "tenant", "status")
        scene.judge.excused = True  # type: ignore[attr-defined]
        await asyncio.sleep(300)
        body = scene.world.history.present(core.VOLUME)[Key("", STRANGER)]
        assert body["spec"]["persistentVolumeReclaimPolicy"] == "Delete"
        assert not body["metadata"].get("labels")
        assert body["spec"]["claimRef"]["namespace"] == "default"

    live(tale)


# The judge


def test_the_judge_sees_a_volume_that_is_not_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    real = volumes._keep  # noqa: SLF001 - the fault is planted there

    def hasty(*arguments: object) -> Patch:
        patch: Patch = real(*arguments)  # type: ignore[arg-type]
        return msgspec.structs.replace(patch, body={"metadata": patch.body["metadata"]})

    monkeypatch.setattr(volumes, "_keep", hasty)
    monkeypatch.setattr(volumes, "RETAIN", "Delete")
    assert lived(Case(ALL)).judged.lost_volumes


def test_the_judge_sees_an_early_release(monkeypatch: pytest.MonkeyPatch) -> None:
    def at_once(uid: str, record: volumes.Record, row: RollbackRow | None) -> datetime | None:
        is_complete = row is not None and row.status.phase == "Completed"
        return kept._AT_ONCE if is_complete else real(uid, record, row)  # noqa: SLF001

    real = kept.released_at
    monkeypatch.setattr(kept, "released_at", at_once)
    assert lived(Case(ALL)).judged.lost_volumes


def test_the_judge_sees_what_is_not_started(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(volumes, "to_start", lambda *_: ())
    assert lived(Case(DATA)).judged.worse


def test_the_judge_sees_old_volumes_that_do_not_come_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def nothing(_row: RollbackRow, _findings: Findings) -> tuple[()]:
        return ()

    monkeypatch.setattr(volumes, "swap", nothing)
    assert lived(Case(ALL_UNDONE)).judged.lost_volumes


def test_the_judge_sees_claims_taken_for_restored(monkeypatch: pytest.MonkeyPatch) -> None:
    def gone(row: RollbackRow, _findings: Findings) -> tuple[KeptVolume, ...]:
        return row.status.volumes[:0]

    monkeypatch.setattr(volumes, "old_claims", gone)
    monkeypatch.setattr(volumes, "_without", lambda *_: "")
    assert lived(Case(ALL)).judged.lost_volumes
