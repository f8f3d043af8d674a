"""Rollbacks of a shop: back and forth, with faults at each step, deaths at each write, and a judge of its own."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest

from foresail.api import core
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.rollback import ROLLBACK
from foresail.plan import Key, Plan
from foresail.rollback import build, rules, steps
from foresail.rollback.decide import STEPS
from foresail.rollback.kinds import ACCOUNT, APPLICATION, KUSTOMIZATION, STATEFUL_SET
from foresail.rollback.reads import SurveyReader
from foresail.rollback.status import moved, report
from foresail.rollback.view import Findings
from foresail.tenancy.policies import ChartLimits
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment
from tests.worlds.rollback_histories import (
    STORIES,
    Case,
    Lived,
    bucket_away,
    ends_halfway,
    every_case,
    flux_resumed,
    lived,
    policy_gone,
    quota_full,
    some_cases,
)
from tests.worlds.rollback_scene import GOOD, KEY, SHOP, WIDGET, RollbackScene

LAST_WRITES = 5.0
"""Seconds after a story's end: a Rollback that has ended lets go of its finalizer in the write that follows."""

PLAIN, PRUNED, SOME_KINDS, UNDONE, PRUNED_AND_UNDONE, DRY = STORIES
SECOND = Key(SHOP, "second")
Story = Callable[[RollbackScene], Awaitable[None]]


def live(story: Story, *, prunes: bool = False) -> RollbackScene:
    """Live through a story with the operator, Velero and Flux, and judge it."""

    async def life() -> RollbackScene:
        scene = RollbackScene(prunes=prunes)
        others = [asyncio.create_task(scene.line.work()), asyncio.create_task(scene.flux())]
        scene.start()
        await story(scene)
        await asyncio.sleep(LAST_WRITES)
        judged = scene.judge.end()
        await scene.end()
        for task in others:
            task.cancel()
        assert list(judged) == []
        return scene

    return virtual_time.run(life())


async def until(scene: RollbackScene, *phases: str) -> None:
    async with asyncio.timeout(900):
        while scene.phase not in phases:  # noqa: ASYNC110 - what it waits for is the operator's business
            await asyncio.sleep(0.2)


def test_a_namespace_goes_back_and_forth() -> None:
    async def story(scene: RollbackScene) -> None:
        before = scene.state()
        scene.ask()
        await until(scene, "Completed")
        good = scene.line.bucket[GOOD]
        assert {name: what for name, what in scene.judge.restored.items() if name in good} == good
        assert scene.reason == "Completed"
        assert scene.suspended() == scene.formerly
        assert scene.status["plan"]["created"] == {"count": 1, "names": ["configmaps/removed"]}
        assert scene.status["plan"]["extra"]["names"] == ["configmaps/added", "deployments.apps/canary"]
        assert ("ConfigMap", "added") in scene.state(), "extra objects stay without prune"
        assert [each["name"] for each in scene.status["steps"]] == [
            *("Planning", "SafetyBackup", "Suspending", "Restoring", "Comparing", "Resuming")
        ]
        scene.undo()
        await until(scene, "Undone")
        assert scene.state() == before
        assert (scene.reason, scene.suspended()) == ("Undone", scene.formerly)

    live(story)


def test_extras_are_deleted_only_with_prune_and_come_back_with_the_undo() -> None:
    async def story(scene: RollbackScene) -> None:
        before = scene.state()
        scene.ask()
        await until(scene, "Completed")
        assert scene.judge.restored == scene.line.bucket[GOOD]
        scene.undo()
        await until(scene, "Undone")
        assert scene.state() == before

    live(story, prunes=True)


def test_an_undo_deletes_what_the_restore_created_of_kinds_that_are_not_listed() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        await until(scene, "Completed")
        assert {("Secret", "password"), ("Widget", "wheel")} <= scene.state().keys()
        scene.undo()
        await until(scene, "Undone")
        assert not {("Secret", "password"), ("Widget", "wheel")} & scene.state().keys()
        assert scene.state()["Secret", "token"] == {"data": {"key": "changed"}}
        assert scene.message.endswith("everything is as it was before")
        unread = [write for write in scene.writes if write.verb == "deletecollection"]
        assert {write.kind for write in unread} == {core.SECRET, WIDGET}

    live(story)


def test_an_undo_takes_away_what_velero_has_added_to_a_service_account() -> None:
    async def story(scene: RollbackScene) -> None:
        def runner() -> dict[str, Any]:
            return scene.world.history.present(ACCOUNT)[Key(SHOP, "runner")]

        scene.ask()
        await until(scene, "Completed")
        assert runner()["imagePullSecrets"] == [{"name": "old"}]
        assert "cloud.example/role" in runner()["metadata"]["annotations"]
        scene.undo()
        await until(scene, "Undone")
        assert runner()["imagePullSecrets"] == []
        assert not runner()["metadata"].get("annotations")

    live(story)


@pytest.mark.parametrize("who", ["the operator", "the requester"])
def test_an_undo_names_what_it_may_not_delete_of_what_the_restore_created(who: str) -> None:
    async def story(scene: RollbackScene) -> None:
        if who == "the operator":
            scene.beyond_the_operator = {("deletecollection", "widgets.shop.example")}
        else:
            scene.forbidden = {("delete", "widgets.shop.example")}
        scene.judge.touched.add(("Widget", "wheel"))
        scene.ask()
        await until(scene, "Completed")
        scene.undo()
        await until(scene, "Undone")
        assert {("Widget", "wheel")} == {("Widget", "wheel"), ("Secret", "password")} & scene.state().keys()
        restore = scene.status["veleroRestore"]
        assert f"kubectl delete widgets.shop.example -n shop -l velero.io/restore-name={restore}" in scene.message
        assert scene.status["notDeleted"] == ["widgets.shop.example"]
        assert scene.suspended() == scene.formerly

    live(story)


def test_an_undo_ends_and_names_what_admission_lets_nobody_delete() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.judge.touched.add(("Secret", "password"))
        scene.denies = lambda verb, kind, _: verb == "delete" and kind == core.SECRET
        scene.ask()
        await until(scene, "Completed")
        scene.undo()
        async with asyncio.timeout(1200):
            await until(scene, "Undone")
        await asyncio.sleep(10)
        assert "kubectl delete secrets" in scene.message
        assert scene.suspended() == scene.formerly

    live(story)


@pytest.mark.parametrize("prunes", [False, True])
def test_kinds_that_the_backup_does_not_have_are_pruned_and_come_back(prunes: bool) -> None:
    async def story(scene: RollbackScene) -> None:
        scene.configure("sealed", {"by": "nobody"})
        scene.world.create(STATEFUL_SET, {"metadata": {"name": "added"}, "spec": {"replicas": 1}}, "team", SHOP)
        before = scene.state()
        scene.only, scene.spec["only"] = ("statefulsets.apps",), ["statefulsets.apps"]
        scene.ask()
        await until(scene, "Completed")
        assert (("StatefulSet", "added") in scene.state()) == (not prunes)
        scene.undo()
        await until(scene, "Undone")
        assert scene.state() == before

    live(story, prunes=prunes)


def test_flux_applies_nothing_between_and_is_resumed() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        await until(scene, "Restoring")
        flux_resumed(scene)  # somebody resumes it in the middle: it is suspended again
        await until(scene, "Completed")
        await asyncio.sleep(10)
        assert scene.state()["ConfigMap", "settings"]["data"]["colour"] == "blue", "Flux applies again afterwards"

    live(story)


def test_a_plan_that_changed_changes_nothing() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask(dryRun=True)
        await until(scene, "Planned")
        digest = scene.status["plan"]["digest"]
        scene.world.delete(ROLLBACK, KEY)
        scene.configure("later", {"new": "yes"})
        scene.judge.touched.add(("ConfigMap", "later"))
        scene.ask(planDigest=digest)
        await until(scene, "Refused")
        assert scene.reason == "PlanChanged"
        again = scene.status["plan"]["digest"]
        scene.world.delete(ROLLBACK, KEY)
        scene.ask(planDigest=again)
        await until(scene, "Completed")

    live(story)


def test_what_cannot_be_stopped_is_named_and_nothing_begins() -> None:
    async def story(scene: RollbackScene) -> None:
        group = "kustomize.toolkit.fluxcd.io"
        labels = {f"{group}/name": "top", f"{group}/namespace": "flux"}
        scene.world.create(NAMESPACE, {"metadata": {"name": "flux"}}, "admin")
        scene.world.create(KUSTOMIZATION, {"metadata": {"name": "top"}, "spec": {}}, "admin", "flux")
        scene.world.merge(core.CONFIG_MAP, Key(SHOP, "settings"), {"metadata": {"labels": labels}}, "flux")
        spec = {"destination": {"namespace": SHOP}, "syncPolicy": {"automated": {}}}
        scene.world.create(APPLICATION, {"metadata": {"name": "argo"}, "spec": spec}, "admin", "flux")
        scene.forbidden.add(("patch", "scaledobjects.keda.sh"))
        scene.ask()
        await until(scene, "Refused")
        assert scene.reason == "InTheWay"
        command = "flux suspend kustomization top -n flux"
        assert scene.status["plan"]["inTheWay"] == [
            "Application flux/argo syncs into this namespace: have spec.syncPolicy.automated removed",
            f"Kustomization flux/top applies objects of this namespace: have it suspended with {command}",
            "scaledobjects.keda.sh/web is to be suspended, and the requester may not patch it",
        ]
        assert not scene.world.history.present(NON_ADMIN_RESTORE)

    live(story)


def test_what_the_requester_may_not_change_is_named_and_nothing_begins() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.forbidden |= {("update", "configmaps"), ("patch", "configmaps"), ("update", "services")}
        scene.ask()
        await until(scene, "Refused")
        text = "configmaps are to be changed back, and the requester may not update or patch them"
        assert scene.status["plan"]["inTheWay"] == [f"{text}: name other kinds in spec.only"]
        scene.world.delete(ROLLBACK, KEY)
        scene.only = ("deployments.apps",)
        scene.ask(only=["deployments.apps"])
        await until(scene, "Completed")

    live(story)


def test_what_the_requester_may_no_longer_change_is_not_left_out_in_silence() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        await until(scene, "SafetyBackup")
        scene.forbidden.add(("update", "configmaps"))
        await until(scene, "Undone")
        assert scene.message.startswith("the requester may no longer update configmaps")
        assert not scene.world.history.present(NON_ADMIN_RESTORE), "nothing was changed, so nothing is changed back"

    live(story)


@pytest.mark.parametrize(
    ("arrange", "reason"),
    [
        (policy_gone, "RollbackDisabled"),
        (lambda scene: scene.world.delete(NON_ADMIN_BACKUP, Key(SHOP, GOOD)), "BackupUnusable"),
        (bucket_away, "Completed"),  # the list is asked for until it can be read
    ],
)
def test_a_rollback_that_may_not_begin_is_refused(arrange: Callable[[RollbackScene], object], reason: str) -> None:
    async def story(scene: RollbackScene) -> None:
        arrange(scene)
        scene.ask()
        await until(scene, "Refused", "Completed")
        assert scene.reason == reason

    live(story)


@pytest.mark.parametrize("by", ["", "system:serviceaccount:velero:velero", "system:serviceaccount:kube-system:x"])
def test_a_rollback_without_a_requester_is_refused(by: str) -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask(by=by)
        await until(scene, "Refused")
        assert scene.reason == "RequesterUnknown"

    live(story)


def test_a_restore_that_is_refused_has_changed_nothing_so_nothing_waits_to_be_restored() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        while not scene.world.history.present(NON_ADMIN_RESTORE):  # noqa: ASYNC110
            await asyncio.sleep(0.2)
        scene.line.is_refused = True
        await until(scene, "Undone")
        assert scene.message.endswith("Everything is as it was before")
        assert len(scene.world.history.present(NON_ADMIN_RESTORE)) == 1

    live(story)


def test_a_plan_that_cannot_be_made_ends_and_blocks_no_other_rollback(monkeypatch: pytest.MonkeyPatch) -> None:
    async def unanswered(*_: object) -> Findings:
        return Findings(problem="the API server did not answer (Invalid)")

    async def story(scene: RollbackScene) -> None:
        monkeypatch.setattr(SurveyReader, "_run", unanswered)
        scene.ask()
        await asyncio.sleep(3700)
        assert (scene.phase, scene.reason) == ("Refused", "BackupUnusable")

    live(story)


def test_one_rollback_of_a_namespace_runs_at_a_time() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        scene.ask("second")
        await until(scene, "Restoring")
        assert len(scene.world.history.present(NON_ADMIN_RESTORE)) <= 1
        second = scene.world.history.present(ROLLBACK)[Key(SHOP, "second")]
        assert second["status"]["conditions"][0]["reason"] == "Waiting"
        await until(scene, "Completed")
        await asyncio.sleep(90)
        assert scene.world.history.present(ROLLBACK)[Key(SHOP, "second")]["status"]["phase"] == "Completed"

    live(story)


async def second_is(scene: RollbackScene, *phases: str) -> None:
    async with asyncio.timeout(300):
        while scene.world.history.present(ROLLBACK)[SECOND].get("status", {}).get("phase") not in phases:  # noqa: ASYNC110
            await asyncio.sleep(0.2)


def test_an_undo_waits_for_another_rollback_that_runs_and_has_changed_nothing() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        await until(scene, "Completed")
        scene.ask("second")
        await second_is(scene, "SafetyBackup")
        scene.undo()
        await asyncio.sleep(2)
        assert (scene.phase, scene.reason) == ("Completed", "Waiting")
        scene.world.delete(ROLLBACK, SECOND)
        await until(scene, "Undone")

    live(story)


def test_a_rollback_cannot_be_undone_once_a_later_one_has_changed_the_namespace() -> None:
    """What it created has the label of the later restore, so the undo would leave it."""

    async def story(scene: RollbackScene) -> None:
        scene.ask()
        await until(scene, "Completed")
        scene.ask("second")
        await second_is(scene, "Completed")
        scene.world.delete(ROLLBACK, SECOND)
        scene.undo()
        await asyncio.sleep(30)
        assert (scene.phase, scene.reason) == ("Completed", "UndoTooLate")
        assert "undoUntil" not in scene.status

    live(story)

    live(story)


def test_a_rollback_is_refused_where_the_chart_lets_nothing_be_updated() -> None:
    async def story(scene: RollbackScene) -> None:
        assert scene.process is not None
        await scene.process.kill()
        scene.chart = ChartLimits(update_existing=False)
        scene.start()
        scene.ask()
        await until(scene, "Refused")
        assert scene.reason == "RollbackDisabled"

    live(story)


def test_a_rollback_that_is_created_with_our_finalizer_goes_as_any_other() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        scene.world.merge(ROLLBACK, KEY, {"metadata": {"finalizers": ["foresail.dev/rollback"]}}, "dora")
        await until(scene, "Suspending")
        meta = scene.world.history.present(ROLLBACK)[KEY]["metadata"]
        assert meta["labels"] == {"foresail.dev/rollback-in-progress": "true"}
        await until(scene, "Completed")
        await asyncio.sleep(5)

    live(story)


def test_an_undo_that_comes_too_late_changes_nothing() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask(keepOldVolumes="1h")
        await until(scene, "Completed")
        await asyncio.sleep(3700)
        writes = len(scene.world.history.present(NON_ADMIN_RESTORE))
        scene.undo()
        await asyncio.sleep(60)
        assert (scene.phase, scene.reason) == ("Completed", "UndoTooLate")
        assert len(scene.world.history.present(NON_ADMIN_RESTORE)) == writes

    live(story)


def test_a_rollback_at_rest_writes_nothing() -> None:
    async def story(scene: RollbackScene) -> None:
        scene.ask()
        await until(scene, "Completed")
        await asyncio.sleep(10)
        before = len(scene.writes)
        await asyncio.sleep(900)
        assert len(scene.writes) == before

    live(story)


# Faults and deaths


def check(case: Case, result: Lived) -> None:
    assert list(result.judged) == [], f"{case}: {result}"


@pytest.mark.parametrize("case", [case for case in every_case() if case.fault is not None][::23], ids=str)
def test_a_fault_at_a_step_leaves_nothing_worse(case: Case) -> None:
    check(case, lived(case))


@pytest.mark.repeats
def test_a_death_at_each_write_leaves_nothing_worse(figure: Callable[[str], None]) -> None:
    whole = lived(Case(PRUNED_AND_UNDONE))
    check(Case(PRUNED_AND_UNDONE), whole)
    died = 0
    for write in range(1, whole.writes + 1):
        case = Case(PRUNED_AND_UNDONE, deaths=(Moment(after=write % 2 == 0, write=write),))
        result = lived(case)
        died += result.deaths
        check(case, result)
    assert died > whole.writes // 2
    figure(f"rollback: {died} deaths at {whole.writes} writes, nothing worse")


@pytest.mark.repeats
def test_random_faults_and_deaths_leave_nothing_worse(figure: Callable[[str], None]) -> None:
    cases = list(some_cases(40, seed=36))
    for case in cases:
        check(case, lived(case))
    figure(f"rollback: {len(cases)} lives with a fault and deaths, nothing worse")


# The judge


def nothing(*_: object, **__: object) -> None:
    return None


def test_the_judge_sees_what_is_not_resumed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "resume", nothing)
    assert len(lived(Case(PLAIN)).judged.not_resumed) == 3


def test_the_judge_sees_a_change_before_there_is_a_way_back(monkeypatch: pytest.MonkeyPatch) -> None:
    def in_haste(step: steps.Step) -> Plan:
        return report(step.row, moved(step.status, "Suspending", step.now), step.now)

    monkeypatch.setitem(STEPS, "SafetyBackup", in_haste)
    monkeypatch.setattr(rules, "lost", lambda *_: "")  # it would turn the Rollback back
    assert lived(Case(PLAIN)).judged.worse


def test_the_judge_sees_flux_at_work(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "hold_still", nothing)
    assert any("Flux" in fault for fault in lived(Case(PLAIN)).judged.worse)


def test_the_judge_sees_what_an_undo_leaves(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "created_by_restore", lambda *_: ())
    assert any("removed" in fault for fault in lived(Case(UNDONE)).judged.worse)


def test_the_judge_sees_a_failure_that_is_taken_for_success(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(rules, "differences", lambda *_: "")
    assert lived(Case(PLAIN, quota_full, "Restoring")).judged.worse


def test_the_judge_sees_a_restore_that_ended_halfway(monkeypatch: pytest.MonkeyPatch) -> None:
    def taken_for_complete(step: steps.Step) -> Plan:
        seen = step.findings.restore
        is_partial = seen is not None and seen.velero_phase == "PartiallyFailed"
        on = moved(step.status, "Resuming", step.now)
        return report(step.row, on, step.now) if is_partial else steps.restoring(step)

    monkeypatch.setitem(STEPS, "Restoring", taken_for_complete)
    assert lived(Case(PLAIN, ends_halfway, "Suspending")).judged.worse


def test_the_judge_sees_a_list_request_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(steps, "leave_planning", lambda _, plan: plan)
    assert lived(Case(PLAIN)).judged.left_behind


def test_the_judge_sees_a_finalizer_that_stays(monkeypatch: pytest.MonkeyPatch) -> None:
    real = build.finalizer
    monkeypatch.setattr(build, "finalizer", lambda row, *, is_held: real(row, is_held=is_held) if is_held else None)
    assert any("finalizer" in fault for fault in lived(Case(PLAIN)).judged.left_behind)


def test_the_judge_sees_a_claim_that_is_deleted() -> None:
    def plant(scene: RollbackScene) -> None:
        scene.world.delete(core.CLAIM, Key(SHOP, "data"))

    assert lived(Case(PLAIN, plant, "Restoring")).judged.lost_volumes


def test_a_case_says_what_happens() -> None:
    case = replace(Case(PLAIN, quota_full, "Restoring"), deaths=(Moment(after=True, write=3),))
    assert str(case) == "plain, quota_full in Restoring, dies after write 3"
