"""RestoreChecks of tenants: only their own backups, within the policy, whatever a tenant writes or deletes."""

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import pytest

from foresail.api import core, velero
from foresail.api.marks import NAMESPACE_UID, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.api.restore_check import RESTORE_CHECK
from foresail.plan import Key
from foresail.proof.checks.controller import RestoreChecks
from tests.worlds import virtual_time
from tests.worlds.check_queue import queued
from tests.worlds.check_scene import CHECK
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment
from tests.worlds.roles import VELERO
from tests.worlds.tenant_checks import BLUE, OWN, RED, TenantScene
from tests.worlds.world import done

Story = Callable[[TenantScene], Awaitable[None]]
HOUR = 3600


def lived(story: Story, dies: Sequence[Moment] = (), **rules: object) -> TenantScene:
    """Live through a story, maybe with deaths in it."""

    async def live() -> TenantScene:
        scene = TenantScene(**rules)
        await scene.live(story(scene), dies)
        assert scene.unfenced == []
        return scene

    return virtual_time.run(live())


def leftovers(scene: TenantScene) -> list[str]:
    """Return what checks have left beside evidence and counted starts."""
    return [each for each in scene.leftovers() if not each.endswith("-start")]


def starts(scene: TenantScene) -> list[str]:
    return [each for each in scene.named(core.CONFIG_MAP) if each.endswith("-start")]


async def passes(scene: TenantScene) -> None:
    scene.ask()
    scene.back_up_own("monday")
    await asyncio.sleep(60)


def test_a_tenant_s_own_backup_is_checked_and_only_the_tenant_s_check_says_so() -> None:
    async def story(scene: TenantScene) -> None:
        scene.ask()
        backup = scene.back_up_own("monday", lists={"v1/ConfigMap": ["red/settings", "red/gone", "blue/foreign"]})
        scene.lost = {"red/gone"}
        await asyncio.sleep(60)
        last = scene.status(OWN)["last"]
        assert (last["backup"], last["reason"], last["namespaces"]) == (backup, "ItemsMissing", 1)
        assert last["problems"] == [
            {"reason": "ItemsMissing", "message": "ConfigMap red/gone is in the backup and was not restored"}
        ]
        assert "foreign" not in str(scene.status(OWN)), "objects of another namespace are neither restored nor named"

    scene = lived(story)
    assert leftovers(scene) == []
    assert len(scene.evidence()) == 1


@pytest.mark.parametrize("story", [passes])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_leaves_nothing_behind(story: Story, after: bool) -> None:
    number = 0
    while True:
        scene = lived(story, [Moment(after=after, write=number + 1)])
        assert leftovers(scene) == []
        assert scene.result(OWN) == ("Pass", "Complete")
        if not scene.deaths:
            break
        number += 1
    assert number >= 10


def test_a_schedule_of_the_tenant_names_its_own_backups() -> None:
    async def story(scene: TenantScene) -> None:
        scene.schedule("nightly")
        run = scene.back_up_own("run", schedule="nightly")
        await asyncio.sleep(1)
        scene.back_up_own("by-hand")
        scene.back_up_own("of-another", schedule="weekly")
        scene.ask(backups={"nonAdminSchedule": "nightly"})
        await asyncio.sleep(60)
        assert scene.status(OWN)["last"]["backup"] == run
        await asyncio.sleep(2 * HOUR)

    scene = lived(story)
    assert (scene.result(OWN), scene.leftovers()) == (("Pass", "Complete"), [])


@pytest.mark.parametrize(
    "claims",
    [
        {REQUEST_UID: "of-another-request"},
        {NAMESPACE_UID: "of-another-namespace"},
        {"openshift.io/oadp-nab-origin-namespace": BLUE},
        {"openshift.io/oadp-nab-origin-name": "another"},
    ],
)
def test_a_backup_whose_record_does_not_match_is_nobody_s(claims: dict[str, str]) -> None:
    async def story(scene: TenantScene) -> None:
        scene.ask()
        scene.back_up_own("monday", claims=claims)
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.births, scene.ready()) == ([], "NoBackup")


def test_a_tenant_cannot_claim_another_s_backup_by_the_label_of_adoption() -> None:
    async def story(scene: TenantScene) -> None:
        scene.ask()
        backup = scene.back_up_own("monday", BLUE)
        labels = {"openshift.io/oadp-nab-synced-from-nacuuid": backup}
        scene.world.create(NON_ADMIN_BACKUP, {"metadata": {"name": "monday", "labels": labels}}, "tenant", RED)
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.births, scene.ready()) == ([], "NoBackup")


def test_a_backup_in_a_tenant_s_own_bucket_is_never_restored() -> None:
    async def story(scene: TenantScene) -> None:
        scene.locate("of-red", tenant=RED)
        scene.ask()
        scene.back_up_own("monday", location="of-red")
        await asyncio.sleep(60)

    scene = lived(story)
    assert (scene.births, scene.ready()) == ([], "NoBackup")


@pytest.mark.parametrize(
    ("spec", "said"),
    [
        ({"backups": {"schedule": "nightly"}}, "spec.backups"),
        ({"backups": {"selector": {}}}, "spec.backups"),
        ({"namespaces": [BLUE]}, "spec.namespaces"),
        ({"namespaces": [RED, BLUE]}, "spec.namespaces"),
        ({"keepFailed": "168h"}, "spec.keepFailed"),
        ({"depth": "Data", "allowUnfenced": True}, "spec.depth"),
        ({"customResources": ["widgets.example.com"]}, "spec.customResources"),
        ({"customResources": [f"{number}.{'x' * 200}" for number in range(30)]}, "spec is larger than 4 KiB"),
        ({"customResources": ["ab"] * 300, "namespaces": ["ab"] * 300}, "spec is larger than 4 KiB"),
    ],
)
def test_what_is_not_for_tenants_is_refused_with_the_field(spec: dict[str, Any], said: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up("nightly-1")
        scene.back_up_own("monday")
        scene.ask(**spec)
        await asyncio.sleep(60)
        (ready,) = (each for each in scene.status(OWN)["conditions"] if each["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "NotAllowed")
        assert ready["message"].startswith(said)

    assert lived(story).births == []


def test_a_policy_may_allow_custom_resources_by_name() -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up_own("monday")
        scene.ask(customResources=["widgets.example.com"])
        await asyncio.sleep(60)

    assert lived(story, customResources=["widgets.example.com"]).result(OWN) == ("Pass", "Complete")


def test_without_a_policy_nothing_is_served_and_a_run_ends_when_the_policy_does() -> None:
    async def story(scene: TenantScene) -> None:
        scene.lasts = 100.0
        scene.set_policy(maximum=0)
        await passes(scene)
        assert (scene.births, scene.ready()) == ([], "NotAllowed")
        scene.set_policy(maximum=1)
        await asyncio.sleep(30)
        assert len(scene.births) == 1
        scene.set_policy(maximum=0)
        await asyncio.sleep(30)
        assert (scene.ready(), leftovers(scene), "run" in scene.status(OWN)) == ("NotAllowed", [], False)

    lived(story)


@pytest.mark.repeats
def test_a_large_backup_and_a_long_deadline_have_the_policy_s_bounds() -> None:
    async def story(scene: TenantScene) -> None:
        scene.ask(deadline="24h", evidence=100)
        scene.back_up_own("monday", lists={"v1/ConfigMap": [f"red/{number}" for number in range(11)]})
        await asyncio.sleep(60)
        assert scene.result(OWN) == ("Fail", "TooManyObjects")
        scene.lasts = 100 * HOUR
        scene.back_up_own("tuesday")
        await asyncio.sleep(HOUR + 20 * 60)
        assert scene.result(OWN) == ("Fail", "DeadlineExceeded"), "after 15 minutes"
        scene.lasts = 1.0
        for number in range(5):
            scene.back_up_own(f"more-{number}")
            await asyncio.sleep(HOUR + 60)

    scene = lived(story, maximumObjects=10)
    assert (leftovers(scene), len(scene.evidence())) == ([], 3)


@pytest.mark.repeats
def test_a_thousand_checks_of_one_tenant_are_served_in_a_stable_order_and_the_rest_say_why() -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up_own("monday")
        for number in range(1000):
            scene.ask(Key(RED, f"check-{number:04}"))
        await asyncio.sleep(3 * HOUR)
        states = [scene.ready(Key(RED, f"check-{number:04}")) for number in range(1000)]
        assert states == ["Waiting"] * 2 + ["QuotaExceeded"] * 998
        assert len(scene.births) == 2
        revision = scene.world.history.revision
        await asyncio.sleep(HOUR)
        assert scene.world.history.revision == revision, "an idle cluster sees no writes"
        scene.world.delete(RESTORE_CHECK, Key(RED, "check-0000"))
        await asyncio.sleep(2 * HOUR)
        assert scene.ready(Key(RED, "check-0002")) == "Waiting"

    assert len(lived(story).births) == 3


def test_one_check_at_a_time_runs_and_no_tenant_goes_before_another_twice() -> None:
    async def story(scene: TenantScene) -> None:
        await scene.stop()
        scene.at_once = 1
        scene.start(workers=16)
        scene.lasts = 30.0
        for name in ("a", "b", "c"):
            scene.ask(Key(RED, name))
        scene.ask(Key(BLUE, "d"))
        scene.back_up_own("monday")
        scene.back_up_own("monday", BLUE)
        order: list[str] = []
        for _ in range(200):
            await asyncio.sleep(1)
            running = [key.name for key, each in checks(scene).items() if each.get("status", {}).get("run")]
            assert len(running) <= 1
            order += [each for each in running if each not in order]
        assert len(order) == 4
        assert order.index("d") <= 1, "the other tenant comes after the first check at the latest"

    lived(story, maximum=3)


def checks(scene: TenantScene) -> dict[Key, dict[str, dict[str, object]]]:
    return scene.world.history.present(RESTORE_CHECK)


def test_an_administrator_s_check_does_not_wait_for_tenants() -> None:
    async def story(scene: TenantScene) -> None:
        scene.lasts = 600.0
        await passes(scene)
        scene.make_check()
        scene.back_up("nightly-1")
        await asyncio.sleep(30)
        assert len(scene.births) == 2

    lived(story)


def test_deleting_and_creating_a_check_again_gains_no_runs() -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up_own("monday")
        for _ in range(20):
            scene.ask()
            await asyncio.sleep(60)
            scene.world.delete(RESTORE_CHECK, OWN)
            await asyncio.sleep(1)
        assert len(scene.births) == 1, "one of this name in an hour"
        for number in range(20):
            scene.ask(Key(RED, f"other-{number}"))
            await asyncio.sleep(60)
            scene.world.delete(RESTORE_CHECK, Key(RED, f"other-{number}"))
        assert len(scene.births) == 2, "two of the namespace in an hour"
        assert len(starts(scene)) == 2
        await asyncio.sleep(HOUR)

    scene = lived(story)
    assert (scene.leftovers(), scene.evidence()) == ([], [])


@pytest.mark.parametrize("pause", [0.0, 0.01, 0.1, 1.0])
def test_a_start_counts_before_the_watch_has_shown_it(pause: float) -> None:
    async def story(scene: TenantScene) -> None:
        scene.weather.lags = {core.CONFIG_MAP: 30.0}
        scene.back_up_own("monday")
        await asyncio.sleep(60)
        for number in range(20):
            scene.ask(Key(RED, f"flood-{number}"))
            await asyncio.sleep(0.5 + pause)
            scene.world.delete(RESTORE_CHECK, Key(RED, f"flood-{number}"))
            await asyncio.sleep(pause)
        await asyncio.sleep(60)
        assert len(starts(scene)) == 2, "two of the namespace in an hour"
        await asyncio.sleep(HOUR)
        scene.ask()
        await asyncio.sleep(120)
        assert scene.status(OWN)["last"]["result"] == "Pass", "nothing is counted for ever"

    assert leftovers(lived(story)) == []


def test_asking_again_and_again_is_bounded_by_the_interval() -> None:
    async def story(scene: TenantScene) -> None:
        await passes(scene)
        for number in range(30):
            scene.check_now(f"now-{number}", OWN)
            scene.edit(OWN, schedule="* * * * *", deadline="1m")
            await asyncio.sleep(60)
        assert (len(scene.births), scene.ready()) == (1, "TooSoon")
        await asyncio.sleep(HOUR)

    assert len(lived(story).births) == 2


def test_a_run_that_a_tenant_makes_us_give_up_still_counts() -> None:
    async def story(scene: TenantScene) -> None:
        scene.lasts = 100.0
        scene.back_up_own("monday")
        scene.ask(backups={"nonAdminBackups": {"matchExpressions": [{"key": "hidden", "operator": "DoesNotExist"}]}})
        await asyncio.sleep(10)
        for hidden in ("yes", None) * 5:
            labels = {"metadata": {"labels": {"hidden": hidden}}}
            done(scene.world.merge(NON_ADMIN_BACKUP, Key(RED, "monday"), labels, "tenant"))
            await asyncio.sleep(10)
            assert "run" not in scene.status(OWN)
        assert (len(scene.births), scene.ready()) == (1, "TooSoon")

    assert leftovers(lived(story)) == []


def test_a_tenant_who_edits_all_the_time_does_not_keep_others_waiting() -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up_own("monday")
        scene.back_up_own("monday", BLUE)
        scene.ask()
        scene.ask(Key(BLUE, "patient"))
        for number in range(600):
            scene.edit(OWN, deadline=f"{60 + number}s", backups={"nonAdminBackups": {"matchLabels": {"a": "b"}}})
            await asyncio.sleep(0.05)
            scene.edit(OWN, backups={"nonAdminBackups": {"matchLabels": None}})
            await asyncio.sleep(0.05)
        assert scene.result(Key(BLUE, "patient")) == ("Pass", "Complete")

    assert leftovers(lived(story)) == []


@pytest.mark.parametrize("gone", ["check", "namespace", "backup", "request", "schedule"])
def test_whatever_is_deleted_during_a_run_takes_its_sandbox_with_it(gone: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.lasts = 100.0
        scene.schedule("nightly")
        scene.ask(backups={"nonAdminSchedule": "nightly"})
        backup = scene.back_up_own("run", schedule="nightly")
        await asyncio.sleep(10)
        assert len(scene.births) == 1
        kind, key = {
            "check": (RESTORE_CHECK, OWN),
            "namespace": (NAMESPACE, Key("", RED)),
            "backup": (velero.BACKUP, Key(VELERO, backup)),
            "request": (NON_ADMIN_BACKUP, Key(RED, "run")),
            "schedule": (NON_ADMIN_SCHEDULE, Key(RED, "nightly")),
        }[gone]
        scene.world.delete(kind, key)
        await asyncio.sleep(30)
        assert leftovers(scene) == []

    lived(story)


@pytest.mark.parametrize("way", ["a finalizer", "an edit that cannot be read"])
def test_a_check_that_a_tenant_keeps_in_the_way_loses_its_sandbox_and_its_turn(way: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.lasts = 100.0
        scene.ask()
        scene.back_up_own("monday")
        await asyncio.sleep(10)
        assert len(scene.births) == 1
        if way == "a finalizer":
            scene.world.merge(RESTORE_CHECK, OWN, {"metadata": {"finalizers": ["example.com/never"]}}, "tenant")
            scene.world.delete(RESTORE_CHECK, OWN)
        else:
            scene.edit(OWN, evidence="many")
        await asyncio.sleep(30)
        assert OWN in checks(scene)
        assert leftovers(scene) == []
        scene.lasts = 1.0
        scene.ask(Key(BLUE, "next"))
        scene.back_up_own("monday", BLUE)
        await asyncio.sleep(60)
        assert scene.result(Key(BLUE, "next")) == ("Pass", "Complete")

    lived(story)


def test_a_served_check_that_is_being_deleted_gives_its_place_to_the_next_at_once() -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up_own("monday")
        scene.ask()
        await asyncio.sleep(1)
        scene.ask(Key(RED, "next"))
        await asyncio.sleep(2 * HOUR)
        assert (scene.result(OWN), scene.ready(Key(RED, "next"))) == (("Pass", "Complete"), "QuotaExceeded")
        done(scene.world.merge(RESTORE_CHECK, OWN, {"metadata": {"finalizers": ["example.com/never"]}}, "tenant"))
        scene.world.delete(RESTORE_CHECK, OWN)
        await asyncio.sleep(60)
        assert OWN in checks(scene)
        assert scene.result(Key(RED, "next")) == ("Pass", "Complete")

    assert leftovers(lived(story, maximum=1)) == []


async def hold(scene: TenantScene) -> Key:
    """Put an object with a finalizer into the only sandbox, and return its key."""
    (sandbox,) = scene.named(NAMESPACE)
    body = {"metadata": {"name": "held", "finalizers": ["example.com/never"]}}
    done(scene.world.create(core.CONFIG_MAP, body, "mallory", sandbox))
    await asyncio.sleep(60)
    assert scene.named(NAMESPACE) == [sandbox]
    return Key(sandbox, "held")


def let_go(scene: TenantScene, held: Key) -> None:
    done(scene.world.merge(core.CONFIG_MAP, held, {"metadata": {"finalizers": None}}, "admin"))


@pytest.mark.parametrize("name", ["own", "again", "other"])
def test_a_sandbox_that_stays_blocks_the_next_run_of_its_namespace_only(name: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.ask()
        scene.back_up_own("monday")
        await asyncio.sleep(2)
        held = await hold(scene)
        assert scene.result(OWN) == ("Pass", "Complete")
        key = OWN if name != "other" else Key(RED, "other")
        if name != "own":
            scene.world.delete(RESTORE_CHECK, OWN)
            await asyncio.sleep(1)
            scene.ask(key)
        scene.back_up_own("tuesday")
        await asyncio.sleep(2 * HOUR)
        (ready,) = (each for each in scene.status(key)["conditions"] if each["type"] == "Ready")
        assert (ready["status"], ready["reason"]) == ("False", "SandboxTerminating")
        assert ready["message"].startswith(f"Namespace {held.namespace} of an earlier run")
        assert scene.named(NAMESPACE) == [held.namespace]
        scene.ask(Key(BLUE, "next"))
        scene.back_up_own("monday", BLUE)
        await asyncio.sleep(60)
        assert scene.result(Key(BLUE, "next")) == ("Pass", "Complete"), "it keeps no other tenant waiting"
        let_go(scene, held)
        await asyncio.sleep(60)
        assert scene.result(key) == ("Pass", "Complete")

    scene = lived(story)
    assert (len(scene.births), leftovers(scene)) == (3, [])


def test_an_administrator_s_check_that_a_sandbox_blocks_becomes_overdue() -> None:
    async def story(scene: TenantScene) -> None:
        scene.make_check(namespaces=[RED])
        scene.back_up("nightly-1")
        await asyncio.sleep(2)
        held = await hold(scene)
        scene.back_up("nightly-2")
        await asyncio.sleep(2 * HOUR)
        assert scene.condition("Ready") == ("False", "SandboxTerminating")
        controller = scene.process.loop.controller if scene.process is not None else None
        assert isinstance(controller, RestoreChecks)
        due = controller.state.pass_due[CHECK]
        assert due is not None
        assert due < scene.clock(), "so the alert fires"
        let_go(scene, held)
        await asyncio.sleep(60)
        assert (scene.status()["last"]["backup"], controller.state.pass_due[CHECK]) == ("nightly-2", None)

    assert leftovers(lived(story)) == []


def test_a_failed_sandbox_that_is_kept_blocks_no_run() -> None:
    async def story(scene: TenantScene) -> None:
        scene.lost = {"red/settings"}
        scene.make_check(namespaces=[RED], keepFailed="24h")
        scene.back_up("nightly-1")
        await asyncio.sleep(60)
        assert len(scene.named(NAMESPACE)) == 1
        scene.lost = set()
        scene.back_up("nightly-2")
        await asyncio.sleep(60)
        assert scene.result() == ("Pass", "Complete")

    assert leftovers(lived(story)) == []


def test_labels_and_names_that_a_tenant_chooses_reach_nothing() -> None:
    async def story(scene: TenantScene) -> None:
        name = "x" * 253
        scene.ask(Key(RED, name))
        scene.back_up_own("y" * 253)
        await asyncio.sleep(60)
        assert scene.result(Key(RED, name)) == ("Pass", "Complete")

    assert leftovers(lived(story)) == []


@pytest.mark.parametrize("cron", ["* * * * *", "@every 1s", "0 0 30 2 *", "TZ=../../etc/passwd 0 0 * * *", "9" * 1024])
def test_any_expression_ends_in_a_report(cron: str) -> None:
    async def story(scene: TenantScene) -> None:
        scene.back_up_own("monday")
        scene.ask(schedule=cron)
        await asyncio.sleep(HOUR)
        assert scene.ready() in ("InvalidSchedule", "TooSoon", "Waiting")
        assert len(scene.births) <= 1
        revision = scene.world.history.revision
        await asyncio.sleep(600)
        assert scene.world.history.revision - revision <= 30, "a tenant's expression makes no stream of writes"

    lived(story)


def test_a_dense_expression_without_a_backup_writes_nothing() -> None:
    async def story(scene: TenantScene) -> None:
        scene.ask(schedule="@every 1s")
        await asyncio.sleep(60)
        revision = scene.world.history.revision
        await asyncio.sleep(600)
        assert (scene.ready(), scene.world.history.revision) == ("NoBackup", revision)

    lived(story)


def test_a_check_of_a_tenant_is_not_served_where_self_service_is_off() -> None:
    async def story(scene: TenantScene) -> None:
        scene.never = None
        await scene.stop()
        scene.start()
        await passes(scene)

    scene = lived(story)
    assert (scene.births, scene.status(OWN)) == ([], {})


@pytest.mark.parametrize("at_once", [1, 4])
def test_so_many_checks_of_different_tenants_run_at_a_time(at_once: int) -> None:
    queue = queued(12, at_once, one_at_a_time=False)
    assert set(queue.results.values()) == {"Complete"}
    assert (queue.most, queue.most_of_one) == (at_once, 1)
    assert queue.seconds < 12 * 21 / at_once


def test_a_tenant_with_two_checks_waits_for_the_others_with_its_second() -> None:
    queue = queued(6, 4, each=2)
    assert (len(queue.results), set(queue.results.values())) == (12, {"Complete"})
    assert (queue.most, queue.most_of_one) == (4, 1)
    assert queue.out_of_turn == 0
