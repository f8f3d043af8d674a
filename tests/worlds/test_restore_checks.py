"""RestoreChecks from beginning to end, with a death before and after every write."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from datetime import datetime

import pytest

from foresail.api import core, velero
from foresail.api.marks import NOT_BACKED_UP
from foresail.api.pods import RESOURCE_QUOTA
from foresail.api.restore_check import MOST_OBJECTS
from foresail.plan import Key
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.kinds import RESTORED
from tests.worlds import virtual_time
from tests.worlds.check_scene import CHECK, USUAL, CheckScene, false_alarms_of_a_month
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment
from tests.worlds.world import done

CIRCUMSTANCES = {
    "kubernetes": "v1.36.0",
    "backupKubernetes": "v1.35.2",
    "veleroImage": "example.com/velero:v1.18.0",
    "location": "default",
    "bucket": "default-bucket",
    "prefix": "cluster-1",
}
Story = Callable[[CheckScene], Awaitable[None]]


def lived(story: Story, dies: Sequence[Moment] = ()) -> CheckScene:
    """Live through a story, maybe with deaths in it."""

    async def live() -> CheckScene:
        scene = CheckScene()
        await scene.live(story(scene), dies)
        return scene

    return virtual_time.run(live())


async def passes(scene: CheckScene) -> None:
    """Check a backup that has no fault."""
    scene.make_check()
    scene.back_up("nightly-1")
    await asyncio.sleep(60)


async def fails(scene: CheckScene) -> None:
    """Check a backup of which an object does not come back, and keep the sandbox for a minute."""
    scene.lost = {"red/settings"}
    scene.make_check(keepFailed="1m")
    scene.back_up("nightly-1")
    await asyncio.sleep(30)
    assert len(scene.named(NAMESPACE)) == 2, "the sandboxes of a failed check stay for a while"
    await asyncio.sleep(90)


async def is_deleted_meanwhile(scene: CheckScene) -> None:
    """Delete the check while Velero restores."""
    scene.lasts = 20.0
    scene.make_check()
    scene.back_up("nightly-1")
    await asyncio.sleep(5)
    scene.delete_check()
    await asyncio.sleep(60)


async def takes_too_long(scene: CheckScene) -> None:
    """Have a Velero that does not end the restore."""
    scene.lasts = 10_000.0
    scene.make_check(deadline="2m")
    scene.back_up("nightly-1")
    await asyncio.sleep(200)


def test_a_check_passes_while_the_watch_of_namespaces_lags() -> None:
    """Its sandboxes were not seen yet when the restore had ended, and everything in them counted as missing."""

    async def story(scene: CheckScene) -> None:
        scene.weather.lags = {NAMESPACE: 30.0}
        scene.make_check()
        scene.back_up("nightly-1")
        await asyncio.sleep(60)

    scene = lived(story)
    assert scene.result() == ("Pass", "Complete")
    (evidence,) = scene.evidence()
    assert sorted(evidence["sandboxes"]) == ["blue", "red"]
    assert scene.status()["last"]["namespaces"] == 2


@pytest.mark.parametrize("location", ["of-red", "unknown"])
def test_a_backup_in_a_bucket_that_is_not_the_administrators_is_never_restored(location: str) -> None:
    async def story(scene: CheckScene) -> None:
        scene.locate("of-red", tenant="red")
        scene.make_check()
        scene.back_up("nightly-1", location=location)
        scene.check_now("once")
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.births, scene.leftovers()) == ([], [])
    assert "last" not in scene.status()


def test_a_list_with_a_pattern_for_a_namespace_restores_nothing() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check()
        scene.back_up("nightly-1", lists={"v1/ConfigMap": ["*/settings"]})
        await asyncio.sleep(60)

    scene = lived(story)
    last = scene.status()["last"]
    assert (scene.births, last["result"], last["reason"]) == ([], "Fail", "ContentsUnreadable")
    assert scene.leftovers() == []


def test_a_check_passes_with_its_evidence_and_leaves_nothing() -> None:
    scene = lived(passes)
    last = scene.status()["last"]
    assert (last["result"], last["reason"], last["backup"]) == ("Pass", "Complete", "nightly-1")
    assert (last["itemsExpected"], last["itemsFound"], last["namespaces"], last["restoreSeconds"]) == (4, 4, 2, 3)
    assert scene.condition("Passed") == ("True", "Complete")
    assert "run" not in scene.status()
    (record,) = scene.evidence()
    assert {name: record[name] for name in CIRCUMSTANCES} == CIRCUMSTANCES
    assert (record["result"], record["backup"], record["restorePhase"]) == ("Pass", "nightly-1", "Completed")
    assert set(record["digests"]) == {"contents", "restored", "results"}
    assert scene.leftovers() == []
    assert scene.unfenced == []


def test_a_check_fails_if_an_object_does_not_arrive() -> None:
    scene = lived(fails)
    assert scene.result() == ("Fail", "ItemsMissing")
    assert scene.condition("Passed") == ("False", "ItemsMissing")
    assert scene.leftovers() == []


def test_a_check_that_is_deleted_takes_its_sandbox_and_its_evidence_with_it() -> None:
    scene = lived(is_deleted_meanwhile)
    assert scene.births
    assert scene.leftovers() == []
    assert scene.evidence() == []


def test_a_check_beyond_its_deadline_has_failed_and_leaves_nothing() -> None:
    scene = lived(takes_too_long)
    assert scene.result() == ("Fail", "DeadlineExceeded")
    assert scene.leftovers() == []


@pytest.mark.parametrize(
    ("phase", "because"),
    [
        ("Finalizing", "Velero has restored, but keeps the restore Finalizing, where each waits for volume claims"),
        ("New", "Velero has not begun its restore, because it runs one after the other. It says nothing about"),
        ("InProgress", "Velero's restore is InProgress"),
    ],
)
def test_a_check_that_velero_keeps_waiting_says_so_at_its_deadline(phase: str, because: str) -> None:
    async def story(scene: CheckScene) -> None:
        scene.lasts, scene.phase = 5.0, phase
        scene.make_check(deadline="2m")
        scene.back_up("nightly-1")
        await asyncio.sleep(200)

    scene = lived(story)
    assert scene.result() == ("Fail", "DeadlineExceeded")
    assert f"did not end within 2m: {because}" in scene.status()["last"]["message"]
    assert scene.leftovers() == []


@pytest.mark.repeats
@pytest.mark.parametrize("story", [passes, fails, is_deleted_meanwhile, takes_too_long])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_leaves_nothing_behind(story: Story, after: bool, figure: Callable[[str], None]) -> None:
    expected, number = lived(story).world.history.present(core.CONFIG_MAP), 0
    while True:
        scene = lived(story, [Moment(after=after, write=number + 1)])
        assert scene.leftovers() == []
        assert scene.unfenced == [], "nothing is restored into a namespace without its fence"
        assert len(set(scene.births)) == len(scene.births) == 1
        assert len(scene.world.history.present(core.CONFIG_MAP)) == len(expected)
        if not scene.deaths:
            break
        number += 1
    assert number >= 10
    figure(f"restore checks, {story.__name__}: {number} deaths {'after' if after else 'before'} a write")


def test_a_process_that_dies_at_its_first_write_every_time_still_comes_to_an_end() -> None:
    scene = lived(passes, [Moment(after=True, write=1)] * 30)
    assert scene.deaths >= 10
    assert (scene.result(), scene.leftovers()) == (("Pass", "Complete"), [])


def test_a_failed_restore_is_a_failure_with_its_reasons() -> None:
    async def story(scene: CheckScene) -> None:
        scene.phase, scene.errors = velero.PARTIALLY_FAILED, ["a plugin crashed"]
        await passes(scene)

    scene = lived(story)
    assert scene.result() == ("Fail", "RestorePartiallyFailed")
    assert "a plugin crashed" in scene.status()["last"]["message"]


def test_an_empty_backup_fails_without_a_restore() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check()
        scene.back_up("nightly-1", lists={"v1/Pod": ["red/a"]})
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.result(), scene.births, scene.leftovers()) == (("Fail", "BackupEmpty"), [], [])


def test_a_backup_with_more_objects_than_a_check_takes_fails_before_anything_is_made() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check()
        scene.back_up("nightly-1", lists={"v1/ConfigMap": [f"red/{number}" for number in range(MOST_OBJECTS + 1)]})
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.result(), scene.births, scene.leftovers()) == (("Fail", "TooManyObjects"), [], [])


def test_a_sandbox_bounds_how_many_objects_of_each_kind_it_takes() -> None:
    async def story(scene: CheckScene) -> None:
        scene.lasts = 20.0
        scene.make_check()
        scene.back_up("nightly-1", lists={"v1/ConfigMap": ["red/a", "red/b"], "v1/Secret": ["red/c"]})
        await asyncio.sleep(5)
        (quota,) = scene.world.history.present(RESOURCE_QUOTA).values()
        hard = quota["spec"]["hard"]
        assert (hard["pods"], hard["persistentvolumeclaims"]) == ("0", "0")
        bounds = {hard[f"count/{each}"] for each in RESTORED.values()}
        assert bounds == {"106"}, "twice what the backup has, and 100 that controllers may add"

    lived(story)


def test_other_backups_keep_cluster_scoped_objects_and_have_nothing_of_a_sandbox() -> None:
    """Velero excludes a namespace with the label, and with any excluded namespace every cluster-scoped kind."""

    async def story(scene: CheckScene) -> None:
        scene.lasts = 20.0
        scene.make_check()
        scene.back_up("nightly-1")
        await asyncio.sleep(5)
        present = scene.world.history.present
        sandboxes = [each for key, each in present(NAMESPACE).items() if key.name.startswith("foresail-check-")]
        assert len(sandboxes) == 2
        assert not any(NOT_BACKED_UP in each["metadata"]["labels"] for each in sandboxes)
        for kind in (core.NETWORK_POLICY, RESOURCE_QUOTA):
            assert [each["metadata"]["labels"][NOT_BACKED_UP] for each in present(kind).values()] == ["true", "true"]

    lived(story)


def test_nothing_is_restored_before_every_quota_counts() -> None:
    """The API server refuses whatever a quota bounds until its controller has counted once."""

    async def story(scene: CheckScene) -> None:
        scene.counts = False
        scene.make_check(deadline="10m")
        scene.back_up("nightly-1")
        await asyncio.sleep(300)
        assert scene.births == []
        scene.count_quotas()
        await asyncio.sleep(60)

    assert lived(story).result() == ("Pass", "Complete")


def test_only_the_newest_completed_backup_is_checked_and_each_once() -> None:
    async def story(scene: CheckScene) -> None:
        scene.back_up("nightly-1")
        await asyncio.sleep(5)
        scene.back_up("nightly-2")
        scene.back_up("nightly-3", velero.PARTIALLY_FAILED)
        scene.make_check()
        await asyncio.sleep(600)
        assert scene.status()["last"]["backup"] == "nightly-2"
        assert len(scene.births) == 1
        scene.back_up("nightly-4")
        await asyncio.sleep(600)
        assert scene.status()["last"]["backup"] == "nightly-4"

    assert len(lived(story).births) == 2


def test_a_check_waits_for_a_backup_and_says_so() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check()
        await asyncio.sleep(60)
        assert scene.condition("Ready") == ("False", "NoBackup")

    assert lived(story).births == []


def test_an_administrator_starts_a_check_and_a_suspended_one_does_not_start() -> None:
    async def story(scene: CheckScene) -> None:
        await passes(scene)
        scene.check_now("once")
        await asyncio.sleep(60)
        assert len(scene.births) == 2
        scene.edit(suspend=True)
        scene.check_now("twice")
        await asyncio.sleep(60)
        assert scene.condition("Ready") == ("True", "Suspended")

    assert len(lived(story).births) == 2


@pytest.mark.repeats
def test_a_check_with_a_schedule_runs_at_its_slots_only() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check(schedule="0 * * * *")
        scene.back_up("nightly-1")
        await asyncio.sleep(3 * 3600 + 120)

    assert len(lived(story).births) == 3


def test_an_expression_that_cannot_be_read_is_reported() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check(schedule="every day")
        scene.back_up("nightly-1")
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.condition("Ready"), scene.births) == (("False", "InvalidSchedule"), [])


def test_a_backup_that_is_deleted_meanwhile_is_no_failure() -> None:
    async def story(scene: CheckScene) -> None:
        scene.lasts = 20.0
        scene.make_check()
        scene.back_up("nightly-1")
        await asyncio.sleep(5)
        scene.world.delete(velero.BACKUP, Key(CHECK.namespace, "nightly-1"))
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.result(), scene.leftovers()) == (("", ""), [])


def test_the_clock_of_an_overdue_check_stands_when_its_backup_goes_and_the_operator_starts_again() -> None:
    def pass_due(scene: CheckScene) -> datetime | None:
        controller = scene.process.loop.controller if scene.process is not None else None
        assert isinstance(controller, RestoreChecks)
        return controller.state.pass_due[CHECK]

    async def live() -> None:
        scene = CheckScene()
        scene.lost = {"red/settings"}
        scene.make_check(deadline="30m")
        scene.start()
        scene.back_up("nightly-1")
        await asyncio.sleep(600)
        due = pass_due(scene)
        assert due is not None
        for number in (2, 3):
            scene.back_up(f"nightly-{number}")
            done(scene.world.delete(velero.BACKUP, Key(CHECK.namespace, f"nightly-{number - 1}")))
            await asyncio.sleep(600)
            assert (scene.result()[0], pass_due(scene)) == ("Fail", due)
            await scene.stop()
            scene.start()
            await asyncio.sleep(1)
            assert pass_due(scene) == due
        scene.lost = set()
        scene.back_up("nightly-4")
        await asyncio.sleep(60)
        assert (scene.result()[0], pass_due(scene)) == ("Pass", None)
        assert "waitingSince" not in scene.status()
        await scene.stop()

    virtual_time.run(live())


def test_a_storage_class_that_the_cluster_lacks_fails_the_check_until_it_exists() -> None:
    async def story(scene: CheckScene) -> None:
        lists = {**USUAL, "v1/PersistentVolumeClaim": ["red/data"], "storage.k8s.io/v1/StorageClass": ["fast"]}
        scene.make_check()
        scene.back_up("nightly-1", lists=lists)
        await asyncio.sleep(60)
        assert scene.result() == ("Fail", "StorageClassMissing")
        scene.world.create(core.STORAGE_CLASS, {"metadata": {"name": "fast"}}, "admin")
        scene.back_up("nightly-2", lists=lists)
        await asyncio.sleep(60)

    assert lived(story).result() == ("Pass", "Complete")


def test_a_bucket_that_cannot_be_reached_for_a_while_is_only_a_delay() -> None:
    async def story(scene: CheckScene) -> None:
        scene.unreadable = 3
        scene.make_check()
        scene.back_up("nightly-1")
        await asyncio.sleep(300)

    assert lived(story).result() == ("Pass", "Complete")


def test_a_velero_that_is_down_for_a_while_is_only_a_delay() -> None:
    async def story(scene: CheckScene) -> None:
        scene.works = False
        scene.make_check()
        scene.back_up("nightly-1")
        await asyncio.sleep(400)
        scene.works = True
        await asyncio.sleep(400)

    assert lived(story).result() == ("Pass", "Complete")


def test_old_evidence_goes_and_nothing_is_written_when_nothing_happens() -> None:
    async def story(scene: CheckScene) -> None:
        scene.make_check(evidence=2)
        for number in range(4):
            scene.back_up(f"nightly-{number}")
            await asyncio.sleep(120)
        assert len(scene.evidence()) == 2
        revision = scene.world.history.revision
        await asyncio.sleep(3600)
        assert scene.world.history.revision == revision

    lived(story)


def test_a_namespace_that_only_has_the_label_is_left_alone() -> None:
    async def story(scene: CheckScene) -> None:
        labels, annotations = {"foresail.dev/restore-check": "forged"}, {"foresail.dev/check": CHECK.name}
        body = {"metadata": {"name": "production", "labels": labels, "annotations": annotations}}
        scene.world.create(NAMESPACE, body, "mallory")
        await passes(scene)

    scene = lived(story)
    assert scene.named(NAMESPACE) == ["production"]


@pytest.mark.full
@pytest.mark.repeats
def test_a_month_without_a_fault_has_no_false_alarm() -> None:
    assert false_alarms_of_a_month() == 0
