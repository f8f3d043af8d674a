"""Method CapacityBuffer in a world: from when until when a buffer is there, whom it warms, and what takes its place."""

from collections.abc import Callable
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import pytest

from foresail.api import batch, pods
from foresail.api.capacity_buffers import POD_TEMPLATE
from foresail.api.instants import stamp
from foresail.api.primer import PRIMER
from foresail.kube.failures import Cause, Failure, failure
from foresail.plan import Key
from foresail.primers.buffer_rows import BUFFER_RETRY
from foresail.primers.method_buffer import ANSWERED_WITHIN
from foresail.primers.shape import Shape
from foresail.primers.view import DryRunRequest
from tests.worlds.buffer_stand_in import BUFFER
from tests.worlds.primer_scene import HOME, PrimerScene
from tests.worlds.test_primers import EVERY_TEN, at, deaths, live
from tests.worlds.world import done

TOO_LARGE = 'pods "foresail-dry-run" is forbidden: maximum cpu usage per Container is 1, but limit is 2'


def buffers(scene: PrimerScene) -> list[str]:
    return [key.name for key in scene.world.history.present(BUFFER)]


def left(scene: PrimerScene) -> list[str]:
    return [*buffers(scene), *(key.name for key in scene.world.history.present(POD_TEMPLATE)), *scene.placeholders]


def hour(minutes: float = 62, **spec: Any) -> PrimerScene:  # noqa: ANN401 - JSON
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", **spec)
        scene.start()
        await scene.until(at(minutes))

    return live(story, buffers=True)


def test_auto_takes_a_buffer_where_one_is_served_and_runs_are_warm_without_any_pod_of_ours() -> None:
    scene = hour()
    assert all(delay <= 2 for delay in scene.record.delays_in_order)
    assert len(scene.record.delays_in_order) == 6
    assert (scene.most, left(scene)) == (0, [])
    primed = scene.primed("daily")
    assert primed["method"] == "CapacityBuffer"
    assert [each["warm"] for each in primed["startDelays"]] == [True] * 6
    assert primed["warming"]["provisioned"] == 60
    assert scene.buffering is not None
    assert scene.buffering.refilled == 0
    assert scene.condition("daily", "Exact") == ("True", "Instants")


def test_a_buffer_holds_from_the_fire_minus_the_warm_up_until_the_fire() -> None:
    held: list[tuple[str, int]] = []

    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", method="CapacityBuffer")
        scene.start()
        for second in range(7 * 60, 11 * 60):
            await scene.until(at(0, second + 0.05))
            there = scene.world.history.present(BUFFER).values()
            held.extend((each["metadata"]["name"], second) for each in there if each["spec"]["replicas"])
        await scene.until(at(12))
        assert left(scene) == []

    live(story, buffers=True)
    assert len({name for name, _ in held}) == 1
    assert [second for _, second in held] == list(range(8 * 60, 10 * 60))


def test_where_buffers_are_not_served_auto_holds_by_placeholders_and_says_why() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.make_cron_job("other", EVERY_TEN)
        scene.prime("other", method="CapacityBuffer")
        scene.start()
        await scene.until(at(9))
        assert len(scene.placeholders) == 1

    scene = live(story)
    primed = scene.primed("daily")
    assert (primed["method"], primed["methodBecause"]) == (
        "Placeholder",
        "the API server does not serve CapacityBuffer.",
    )
    assert scene.primed("other")["reason"] == "BufferNotServed"


def test_where_nobody_answers_a_buffer_auto_holds_by_a_placeholder_for_the_same_fire_and_asks_again_hours_later() -> (
    None
):
    tried: list[float] = []

    async def story(scene: PrimerScene) -> None:
        scene.world.history.listeners.append(
            lambda each: (
                tried.append((scene.clock() - at(0)).total_seconds() / 60)
                if each.kind == BUFFER and each.before is None
                else None
            )
        )
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(8) + ANSWERED_WITHIN + timedelta(seconds=1))
        assert len(scene.placeholders) == 1
        assert buffers(scene) == []
        primed = scene.primed("daily")
        assert primed["method"] == "Placeholder"
        assert "no autoscaler had answered a CapacityBuffer" in primed["methodBecause"]
        assert scene.condition("daily", "Ready") == ("True", "Ready")
        (event,) = [each.message for each in scene.events if each.reason == "BufferNotReady"]
        assert event.endswith("Placeholders hold the capacity instead.")
        await scene.until(at(25))
        await scene.stop()
        scene.start()  # what it has learned is in the status
        await scene.until(at(32) + BUFFER_RETRY)
        assert "methodBecause" in scene.primed("daily")

    scene = live(story, buffers=False)
    assert all(delay <= 2 for delay in scene.record.delays_in_order)
    assert len(tried) == 2
    assert tried[1] - tried[0] >= BUFFER_RETRY.total_seconds() / 60


def test_a_buffer_that_was_asked_for_and_is_not_answered_is_kept_and_reported() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", method="CapacityBuffer")
        scene.start()
        await scene.until(at(9))
        assert len(buffers(scene)) == 1
        assert scene.primed("daily")["reason"] == "BufferNotReady"
        assert scene.condition("daily", "Ready") == ("False", "BufferNotReady")
        await scene.until(at(11))
        assert left(scene) == []

    live(story, buffers=False)


def test_a_buffer_that_the_autoscaler_cannot_use_concerns_its_own_cron_job_alone() -> None:
    made: list[str] = []

    async def story(scene: PrimerScene) -> None:
        assert scene.buffering is not None
        scene.buffering.refuses = "refused"
        scene.world.history.listeners.append(
            lambda each: made.append(each.key.name) if each.kind == BUFFER and each.before is None else None
        )
        for name, schedule in (("refused", EVERY_TEN), ("other", "5-59/10 * * * *")):
            scene.make_cron_job(name, schedule)
            scene.prime(name)
        scene.start()
        await scene.until(at(9))
        primed = scene.primed("refused")
        assert (primed["method"], len(scene.placeholders)) == ("Placeholder", 1)
        assert "refused a CapacityBuffer of CronJob refused" in primed["methodBecause"]
        await scene.until(at(26))

    scene = live(story, buffers=True)
    assert sum(name.startswith("refused") for name in made) == 1, "it is not asked again for hours"
    assert sum(name.startswith("other") for name in made) == 3
    assert scene.primed("other")["method"] == "CapacityBuffer"
    assert "bufferUnanswered" not in scene.primed("refused")
    (event,) = [each.message for each in scene.events if each.key.name == "refused"]
    assert "the autoscaler cannot use it (Wrong: no such class)" in event


@pytest.mark.parametrize("before", [5.0, 45.0], ids=["just-before-the-fire", "early"])
def test_a_pod_that_takes_the_place_is_reported_and_the_run_is_recorded_as_not_warm(before: float) -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        for number in range(1, 4):
            await scene.until(at(10 * number, -before))
            name = f"stranger-{number}"
            done(scene.world.create(pods.POD, {"metadata": {"name": name}, "spec": {"containers": []}}, "user", HOME))
            await scene.until(at(10 * number + 3))
            done(scene.world.delete(pods.POD, Key(HOME, name)))
            delay = scene.primed("daily")["startDelays"][-1]
            assert delay["fire"] == stamp(at(10 * number))
            assert not delay["warm"]
            assert "other pods took the place on node-" in delay["note"]
            assert scene.primed("daily")["warming"]["lost"] == "Taken"
        await scene.until(at(39))

    scene = live(story, buffers=True)
    lost = [each.message for each in scene.events if each.reason == "Lost"]
    assert len(lost) == 3
    assert all("was not warm" in each for each in lost)
    assert left(scene)[1:] == left(scene)[:1], "of the next fire"


def test_a_place_that_was_free_from_the_beginning_and_is_taken_is_reported_too() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.cluster.idle_seconds = 900.0  # the node of a run is still there at the next warm-up
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(20, -5))
        done(scene.world.create(pods.POD, {"metadata": {"name": "other"}, "spec": {"containers": []}}, "user", HOME))
        await scene.until(at(23))

    delay = live(story, buffers=True).primed("daily")["startDelays"][-1]
    assert not delay["warm"]
    assert "; other pods took the place, which" in delay["note"]


def test_a_warm_up_that_is_shorter_than_a_node_takes_is_called_too_short() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "1m")
        scene.start()
        await scene.until(at(13))

    scene = live(story, buffers=True, node_seconds=90.0)
    delay = scene.primed("daily")["startDelays"][-1]
    assert not delay["warm"]
    assert "raise spec.warmUp" in delay["note"]
    assert scene.primed("daily")["warming"]["lost"] == "NeverScheduled"


def one_pod(scene: PrimerScene) -> None:
    scene.make_cron_job("daily", EVERY_TEN)
    scene.prime("daily", "5m")


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_neither_doubles_nor_leaves_a_buffer(after: bool) -> None:
    for number, scene in deaths(one_pod, at(22), after=after, buffers=True):
        made = [each for each in scene.world.history.happenings if each.kind == BUFFER and each.before is None]
        assert len(made) == len({each.key for each in made}) == 2, f"write {number}"
        assert left(scene) == [], f"write {number}"
        assert all(delay <= 3 for delay in scene.record.delays_in_order), f"write {number}"


@pytest.mark.parametrize("change", [{"suspend": True}, {"method": "Placeholder"}], ids=["suspended", "other-method"])
def test_a_buffer_that_is_not_wanted_any_more_is_released_and_deleted(change: dict[str, Any]) -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(7))
        assert len(buffers(scene)) == 1
        scene.change_primer("daily", **change)
        await scene.until(at(8))
        assert left(scene) == scene.placeholders

    live(story, buffers=True)


def test_buffers_count_in_the_limit_of_a_namespace_and_keep_within_its_quota() -> None:
    async def story(scene: PrimerScene) -> None:
        for name, replicas in (("many", 30), ("more", 30)):
            scene.make_cron_job(name, EVERY_TEN)
            scene.prime(name, template={"replicas": replicas})
        scene.start()
        await scene.until(at(9))
        reasons = [scene.primed(name).get("reason") for name in ("many", "more")]
        assert sorted(map(str, reasons)) == ["None", "TooManyPlaceholders"]
        assert len(buffers(scene)) == 1
        quota = {
            "metadata": {"name": "small"},
            "status": {"hard": {"requests.cpu": "3"}, "used": {"requests.cpu": "0"}},
        }
        done(scene.world.create(pods.RESOURCE_QUOTA, quota, "admin", HOME))
        done(scene.world.merge(pods.RESOURCE_QUOTA, Key(HOME, "small"), quota, "admin", "status"))
        await scene.until(at(19))
        assert [scene.primed(name)["reason"] for name in ("many", "more")] == ["QuotaTooSmall"] * 2

    live(story, buffers=True)


def answering(scene: PrimerScene, *answers: Failure) -> list[datetime]:
    """Let the API server answer dry runs with these failures first; return when it was asked."""
    asked: list[datetime] = []
    left = list(answers)

    async def dry_run(request: DryRunRequest) -> Shape | Failure:
        asked.append(scene.clock())
        return left.pop(0) if left else request.template

    scene.dry_run = dry_run
    return asked


def refused(*, times: int = 1) -> list[Failure]:
    return [failure(403, "Forbidden", TOO_LARGE)] * times


def minutes_of(asked: list[datetime]) -> list[float]:
    return [round((each - at(0)).total_seconds() / 60, 1) for each in asked]


@pytest.mark.parametrize("answer", [(403, "Forbidden"), (422, "Invalid")], ids=["forbidden", "invalid"])
def test_for_pods_that_admission_refuses_no_buffer_is_made(answer: tuple[int, str]) -> None:
    async def story(scene: PrimerScene) -> None:
        asked = answering(scene, *[failure(*answer, TOO_LARGE)] * 3)
        scene.make_cron_job("daily", "0 * * * *")
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(59, 50))
        assert left(scene) == []
        primed = scene.primed("daily")
        assert (primed["reason"], primed["message"]) == (
            "Refused",
            f"the API server refuses the pods of CronJob daily: {TOO_LARGE}",
        )
        assert scene.condition("daily", "Ready") == ("False", "Refused")
        assert [each.reason for each in scene.events] == ["Refused"]
        assert minutes_of(asked) == [54.5], "once"

    live(story, buffers=True)


def test_a_long_refusal_is_cut() -> None:
    async def story(scene: PrimerScene) -> None:
        answering(scene, failure(403, "Forbidden", "no " * 5_000))
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        assert len(scene.primed("daily")["message"]) < 600

    live(story, buffers=True)


def test_after_a_refusal_the_api_server_is_asked_again_for_the_next_fire() -> None:
    async def story(scene: PrimerScene) -> None:
        asked = answering(scene, *refused(times=2))
        scene.make_cron_job("daily", "0 * * * *")
        scene.prime("daily", "5m")
        scene.cluster.late = 1e6  # no run tells what admission makes of it
        scene.start()
        await scene.until(at(119))
        assert buffers(scene) == []
        await scene.until(at(179))
        assert len(buffers(scene)) == 1
        assert "reason" not in scene.primed("daily")
        assert minutes_of(asked) == [54.5, 114.5, 174.5]

    live(story, buffers=True)


def raise_quota(scene: PrimerScene) -> None:
    body = {"metadata": {"name": "large"}, "status": {"hard": {"requests.cpu": "9"}, "used": {"requests.cpu": "0"}}}
    done(scene.world.create(pods.RESOURCE_QUOTA, body, "admin", HOME))
    done(scene.world.merge(pods.RESOURCE_QUOTA, Key(HOME, "large"), body, "admin", "status"))


def drop_privileges(scene: PrimerScene) -> None:
    context = {"spec": {"template": {"spec": {"securityContext": {"runAsNonRoot": True}}}}}
    scene.change_cron_job("daily", jobTemplate=context)


@pytest.mark.parametrize(
    "change",
    [raise_quota, drop_privileges, lambda scene: scene.change_primer("daily", releaseAfter="3m")],
    ids=["quota", "template", "primer"],
)
def test_after_a_refusal_the_api_server_is_asked_again_when_something_changes(
    change: Callable[[PrimerScene], None],
) -> None:
    async def story(scene: PrimerScene) -> None:
        asked = answering(scene, *refused())
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "4m")
        scene.start()
        await scene.until(at(7))
        assert (buffers(scene), minutes_of(asked)) == ([], [5.5])
        change(scene)
        await scene.until(at(7, 5))
        assert len(buffers(scene)) == 1
        assert minutes_of(asked) == [5.5, 7.0]

    live(story, buffers=True)


@pytest.mark.parametrize("method", ["CapacityBuffer", "Placeholder"])
def test_while_the_api_server_does_not_answer_it_is_asked_again_and_nothing_is_held(method: str) -> None:
    async def story(scene: PrimerScene) -> None:
        unreachable = Failure(Cause.UNREACHABLE, "connection refused")
        asked = answering(
            scene, unreachable, failure(503, "", "busy"), failure(429, "TooManyRequests", "later"), *[unreachable] * 3
        )
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", method=method)
        scene.start()
        await scene.until(at(8, 28))
        assert left(scene) == []
        assert "reason" not in scene.primed("daily")
        await scene.until(at(8, 32))
        assert len(left(scene)) == (2 if method == "CapacityBuffer" else 1)
        gaps = [(later - before).total_seconds() for before, later in pairwise(asked)]
        assert [round(each) for each in gaps] == [10] * 6

    live(story, buffers=True)


def test_placeholders_for_pods_that_were_refused_are_left_to_admission_itself() -> None:
    async def story(scene: PrimerScene) -> None:
        answering(scene, *refused())
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", method="Placeholder")
        scene.start()
        await scene.until(at(9))
        assert len(scene.placeholders) == 1

    live(story, buffers=True)


def set_quota(scene: PrimerScene, hard: str, used: str) -> None:
    body = {"metadata": {"name": "cpu"}, "status": {"hard": {"requests.cpu": hard}, "used": {"requests.cpu": used}}}
    if Key(HOME, "cpu") not in scene.world.history.present(pods.RESOURCE_QUOTA):
        done(scene.world.create(pods.RESOURCE_QUOTA, body, "admin", HOME))
    done(scene.world.merge(pods.RESOURCE_QUOTA, Key(HOME, "cpu"), body, "admin", "status"))


FIVE = [f"c{number}" for number in range(5)]


def make_five(scene: PrimerScene, *, by_selector: bool) -> None:
    for name in FIVE:
        scene.make_cron_job(name, EVERY_TEN)
        labels = {"metadata": {"labels": {"team": "reports"}}}
        done(scene.world.merge(batch.CRON_JOB, Key(HOME, name), labels, "user"))
        if not by_selector:
            scene.prime(name)
    if by_selector:
        spec = {"selector": {"matchLabels": {"team": "reports"}}, "warmUp": "2m"}
        done(scene.world.create(PRIMER, {"metadata": {"name": "all"}, "spec": spec}, "user", HOME))


def reasons(scene: PrimerScene) -> list[str]:
    found = [each["status"]["cronJobs"] for each in scene.world.history.present(PRIMER).values()]
    return sorted(each.get("reason", "") for some in found for each in some)


@pytest.mark.parametrize("by_selector", [False, True], ids=["many-primers", "one-primer"])
def test_all_buffers_of_a_namespace_and_its_pods_keep_within_its_quota_together(by_selector: bool) -> None:
    async def story(scene: PrimerScene) -> None:
        set_quota(scene, "6", "1")
        make_five(scene, by_selector=by_selector)
        scene.start()
        await scene.until(at(9))
        assert len(buffers(scene)) == 2, "of 2 CPUs each, beside 1 CPU that is used"
        assert reasons(scene) == ["", "", *["QuotaTooSmall"] * 3]
        set_quota(scene, "6", "5")
        await scene.until(at(9, 10))
        assert len(buffers(scene)) == 2, "what is held stays"
        set_quota(scene, "9", "3")
        await scene.until(at(9, 20))
        assert len(buffers(scene)) == 3

    live(story, buffers=True)


def test_the_quota_that_a_released_buffer_leaves_is_used_by_another() -> None:
    async def story(scene: PrimerScene) -> None:
        set_quota(scene, "3", "0")
        make_five(scene, by_selector=False)
        scene.start()
        await scene.until(at(9))
        (held,) = {name.split("-")[0] for name in buffers(scene)}
        scene.change_cron_job(held, suspend=True)
        await scene.until(at(9, 10))
        live_ones = [each for each in scene.world.history.present(BUFFER).values() if each["spec"]["replicas"]]
        assert len(live_ones) == 1
        assert not live_ones[0]["metadata"]["name"].startswith(held)

    live(story, buffers=True)
