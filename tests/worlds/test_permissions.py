"""Every verb of every Role is needed: with its own Role alone a capability works, and without a verb a story fails.

Every other test of this folder runs with these Roles too. What no world has is left to the audit log of a cluster, in
`tests/cluster/test_install.py`: Events, and the Lease.
"""

import asyncio
from collections.abc import Callable

import pytest

from foresail.api.batch import CRON_JOB
from foresail.api.marks import PRIMER_LABEL
from tests.worlds import test_facts as facts
from tests.worlds import test_primers as primers
from tests.worlds import test_primers_buffer as buffers
from tests.worlds import test_restore_checks as restore_checks
from tests.worlds import test_schedules as schedules
from tests.worlds import test_schedules_retention as retention
from tests.worlds import test_selfservice_adoption as adoption
from tests.worlds import test_selfservice_downloads as downloads
from tests.worlds import test_selfservice_file_system as files
from tests.worlds import test_selfservice_paths as paths
from tests.worlds import test_selfservice_schedules as tenant_schedules
from tests.worlds import test_selfservice_turns as turns
from tests.worlds import test_tenant_checks as tenant_checks
from tests.worlds import virtual_time
from tests.worlds.primer_scene import PrimerScene
from tests.worlds.protection_scene import ProtectionScene
from tests.worlds.roles import Grant, circumstances, granted

Story = Callable[[], object]


def primer_cron_jobs_come_and_go() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", primers.EVERY_TEN)
        scene.prime("daily", method="CronJob")
        scene.start()
        await scene.until(primers.at(2))
        assert shifted(scene)
        scene.change_primer("daily", method="Placeholder")
        await scene.until(primers.at(3))
        assert not shifted(scene)

    primers.live(story)


def shifted(scene: PrimerScene) -> list[str]:
    found = scene.world.history.present(CRON_JOB)
    return [key.name for key, each in found.items() if PRIMER_LABEL in each["metadata"].get("labels", {})]


def a_schedule_skips_and_runs() -> None:
    row = next(each for each in tenant_schedules.TENANTS_ROWS if each.skips)
    scene = tenant_schedules.played(row)
    assert scene.runs
    assert "skipImmediately" not in scene.found()["spec"]


def labels_come_and_go() -> None:
    async def life() -> None:
        scene = ProtectionScene()
        scene.keep()
        scene.rule("nights", {"names": []})
        scene.classify("gold", schedulePolicy="nights")
        for name in ("shop", "blog"):
            scene.ask(name, "gold")
            await asyncio.sleep(30)
        assert scene.groups == {"gold-1": ["blog", "shop"]}
        assert scene.class_status("gold")["conditions"][0]["status"] == "True"
        assert not scene.gaps("shop")
        scene.ask("shop", "glod")
        await asyncio.sleep(30)
        assert scene.gaps("shop") == ["UnknownClass"]
        for name in ("shop", "blog"):
            scene.drop(name)
            await asyncio.sleep(30)
        assert scene.groups == {}
        await scene.end()

    virtual_time.run(life())


STORIES: dict[str, tuple[Story, ...]] = {
    "schedules": (
        schedules.test_a_life_without_a_death_has_a_known_number_of_writes,
        schedules.test_a_manual_backup_blocks_the_next_run,
        schedules.test_an_unavailable_location_blocks_a_slot_until_it_is_back,
        schedules.test_nothing_fires_while_veleros_own_controller_is_on,
        schedules.test_a_name_that_somebody_else_has_is_refused_and_taken_when_it_is_free,
        retention.test_oldest_backup_goes_when_a_newer_one_takes_its_place,
    ),
    "self-service": (
        paths.test_a_backup_removed_behind_our_back_keeps_its_phase_and_is_shown_again_when_it_is_synced_back,
        paths.test_a_backup_that_runs_is_deleted_when_it_has_ended,
        paths.test_a_failed_deletion_is_reported_and_retried_with_a_growing_delay,
        paths.test_a_force_delete_takes_velero_s_objects_and_the_request_and_waits_for_nothing,
        paths.test_a_namespace_is_deleted_with_requests_in_every_phase_and_its_backups_stay_marked,
        paths.test_a_restore_is_made_from_the_tenant_s_own_complete_backup,
        turns.test_finished_restores_beyond_the_history_go_with_their_velero_restores,
        adoption.test_a_verified_backup_of_the_same_namespace_is_adopted_automatically,
        downloads.test_a_download_request_is_deleted_with_veleros_when_its_url_expires,
        a_schedule_skips_and_runs,
        files.test_a_resource_policy_that_decides_about_every_volume_is_used,
        facts.test_the_facts_follow_the_cluster,
    ),
    "primers": (
        primers.test_the_status_says_what_is_next_and_how_long_the_last_runs_took_to_start,
        primers.test_a_placeholder_leaves_a_node_that_is_being_drained,
        primers.test_where_the_volume_of_a_run_is_is_asked_of_the_api_server,
        primer_cron_jobs_come_and_go,
        buffers.test_a_buffer_holds_from_the_fire_minus_the_warm_up_until_the_fire,
    ),
    "restore-checks": (restore_checks.test_a_check_passes_with_its_evidence_and_leaves_nothing,),
    "protection": (labels_come_and_go,),
    "tenant-checks": (tenant_checks.test_a_schedule_of_the_tenant_names_its_own_backups,),
}
AFTER_ACCIDENTS = {
    Grant("backups.velero.io", "delete", everywhere=False),
    Grant("deletebackuprequests.velero.io", "delete", everywhere=False),
}
"""What Schedules use after a restore of etcd, or to take a deletion back: tests/unit/schedules/test_deletion.py."""

ELSEWHERE = ("events.events.k8s.io", "leases.coordination.k8s.io")
capability = pytest.mark.parametrize("capability", STORIES)


def only_when_a_name_is_taken(name: str) -> set[Grant]:
    """Return what the executor asks about each kind that it creates, before a watch has shown whose that name is.

    What it is for is shown in tests/worlds/test_executor.py, by a name that is ours and one that is somebody else's.
    """
    created = {each for each in granted(name) if each.verb == "create" and each.resource not in ELSEWHERE}
    rehearsed = {Grant("cronjobs.batch", "get", everywhere=True)}  # a rehearsal reads the CronJob too
    return {each._replace(verb="get") for each in created} | (rehearsed if name == "primers" else set())


def uses(name: str, *, is_old: bool = False) -> dict[Grant, list[Story]]:
    """Return for each verb the stories that use it."""
    found: dict[Grant, list[Story]] = {}
    for story in STORIES[name]:
        with circumstances(is_old=is_old) as seen:
            story()
        for each in seen.used:
            found.setdefault(each, []).append(story)
    return found


@capability
def test_with_its_own_role_alone_a_capability_works_and_uses_each_verb_of_it(capability: str) -> None:
    used = uses(capability).keys() | uses(capability, is_old=True).keys()
    left = {each for each in granted(capability) - used if each.resource not in ELSEWHERE}
    rare = AFTER_ACCIDENTS if capability == "schedules" else set()
    assert left <= only_when_a_name_is_taken(capability) | rare


@pytest.mark.repeats
@capability
def test_without_a_verb_of_its_role_a_story_does_not_hold(capability: str) -> None:
    used = uses(capability)
    for grant in used.keys() - only_when_a_name_is_taken(capability):
        stories = used[grant]
        assert not all(holds(story, grant) for story in stories), f"every story holds without {grant}"


def holds(story: Story, without: Grant) -> bool:
    with circumstances(without) as seen:
        try:
            story()
        except Exception:  # noqa: BLE001 - however it fails, it does not hold
            assert seen.missed == {without}
            return False
    return True
