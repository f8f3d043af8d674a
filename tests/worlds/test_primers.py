"""Primers in a world: what is held, from when until when, and when the runs begin."""

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import pods
from foresail.api.core import CLAIM, VOLUME
from foresail.api.primer import PRIMER
from foresail.kube.failures import failure
from foresail.plan import Key, Kind
from foresail.primers.controller import Primers
from foresail.primers.reads import Volumes
from foresail.primers.shape import Shape
from foresail.primers.view import DryRunRequest, VolumeLookup
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.history import Happening
from tests.worlds.primer_scene import HOME, SETTINGS, PrimerScene
from tests.worlds.process import Moment
from tests.worlds.world import Answer, done

BEGINNING = virtual_time.BEGINNING
EVERY_TEN = "*/10 * * * *"
Story = Callable[[PrimerScene], Coroutine[Any, Any, None]]


def at(minutes: float, seconds: float = 0.0) -> datetime:
    return BEGINNING + timedelta(minutes=minutes, seconds=seconds)


def live(story: Story, **cluster: Any) -> PrimerScene:  # noqa: ANN401 - the stand-in's
    async def told() -> PrimerScene:
        scene = PrimerScene(**cluster)
        await story(scene)
        await scene.stop()
        return scene

    return virtual_time.run(told())


def hour(schedule: str = EVERY_TEN, *, primed: bool, minutes: float = 61, **spec: Any) -> PrimerScene:  # noqa: ANN401 - JSON
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", schedule)
        if primed:
            scene.prime("daily", **spec)
        scene.start()
        await scene.until(at(minutes))

    return live(story)


def test_a_primed_run_starts_in_a_second_and_an_unprimed_one_waits_for_a_node() -> None:
    cold, warm = hour(primed=False, minutes=62), hour(primed=True, minutes=62)
    assert all(delay >= 60 for delay in cold.record.delays_in_order)
    assert all(delay <= 2 for delay in warm.record.delays_in_order)
    assert len(warm.record.delays_in_order) == len(cold.record.delays_in_order) == 6


def test_a_placeholder_is_there_from_the_fire_minus_the_warm_up_until_the_run_has_come() -> None:
    scene = hour(primed=True)
    for number, held in enumerate(scene.record.held, start=1):
        assert held.fire == at(10 * number)
        assert timedelta(0) <= held.since - (held.fire - timedelta(minutes=2)) <= timedelta(seconds=1)
        assert held.until is not None
        assert timedelta(0) <= held.until - held.fire <= timedelta(seconds=1)
    assert len(scene.record.held) == 6
    assert scene.most == 1


def test_the_status_says_what_is_next_and_how_long_the_last_runs_took_to_start() -> None:
    scene = hour(primed=True)
    assert scene.condition("daily", "Ready") == ("True", "Ready")
    assert scene.condition("daily", "Exact") == ("True", "Instants")
    assert scene.condition("daily", "Warming") == ("False", "Waiting")
    status, primed = scene.status("daily"), scene.primed("daily")
    assert (status["nextFire"], status["nextWarmUp"]) == ("2026-01-01T01:10:00Z", "2026-01-01T01:08:00Z")
    assert primed["dutyCyclePercent"] == 20
    assert [each["warm"] for each in primed["startDelays"]] == [True] * 6
    assert all(each["seconds"] <= 2 for each in primed["startDelays"])


def test_a_warm_up_longer_than_the_period_is_one_standing_reservation_and_never_a_second_node() -> None:
    scene = hour("*/5 * * * *", primed=True, warm_up="20m", allowStanding=True, minutes=61)
    assert scene.most == 1
    assert scene.cluster.made == 1
    assert all(delay <= 2 for delay in scene.record.delays_in_order[1:])


def test_a_standing_reservation_must_be_allowed() -> None:
    scene = hour("*/5 * * * *", primed=True, warm_up="20m")
    assert scene.record.held == []
    assert scene.condition("daily", "Ready") == ("False", "NeedsAllowStanding")


def test_a_run_that_takes_three_of_its_five_minutes_holds_its_place_itself() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.cluster.runs = 180.0
        scene.make_cron_job("daily", "*/5 * * * *")
        scene.prime("daily", "20m", allowStanding=True)
        scene.start()
        await scene.until(at(61))

    scene = live(story)
    assert scene.cluster.made == 1
    for held in scene.record.held[1:]:
        assert held.since >= held.fire - timedelta(minutes=2, seconds=1), "while the run holds it, nothing is made"


def test_across_a_change_of_clocks_each_warm_up_is_at_its_fire_minus_the_warm_up() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", "30 3 * * *", timeZone="Europe/Berlin")
        scene.prime("daily", "45m")
        scene.start()
        await scene.until(datetime(2026, 3, 31, tzinfo=UTC))

    scene = live(story, beginning=datetime(2026, 3, 27, tzinfo=UTC))
    fires = [held.fire for held in scene.record.held]
    assert fires == [datetime(2026, 3, day, hour, 30, tzinfo=UTC) for day, hour in ((27, 2), (28, 2), (29, 1), (30, 1))]
    assert all(held.fire - held.since <= timedelta(minutes=45) for held in scene.record.held)
    assert all(held.fire - held.since > timedelta(minutes=44, seconds=59) for held in scene.record.held)


def test_an_interval_is_primed_along_the_chain_of_the_controller() -> None:
    scene = hour("@every 17m", primed=True)
    assert [held.fire for held in scene.record.held] == [at(17), at(34), at(51)]
    assert all(delay <= 2 for delay in scene.record.delays_in_order)


@pytest.mark.parametrize("who", ["CronJob", "Primer"])
def test_a_suspension_in_the_middle_of_a_warm_up_lets_go_at_once(who: str) -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        assert len(scene.placeholders) == 1
        (scene.change_cron_job if who == "CronJob" else scene.change_primer)("daily", suspend=True)
        await scene.until(at(9, 5))
        assert scene.placeholders == []
        assert scene.primed("daily")["reason"] == "Suspended"

    live(story)


def test_capacity_for_a_fire_that_does_not_come_is_released_and_reported() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.cluster.runs = 15 * 60.0
        scene.make_cron_job("daily", EVERY_TEN, concurrencyPolicy="Forbid")
        scene.prime("daily", releaseAfter="1m")
        scene.start()
        await scene.until(at(30))

    scene = live(story)
    assert [each.fire for each in scene.record.held] == [at(10), at(30)], "the second fire finds the first run still on"


def test_a_lost_placeholder_is_made_again_if_there_is_time() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(7))
        scene.cluster.lose_node("node-1")
        await scene.until(at(11))

    scene = live(story)
    first, second = scene.record.held
    assert (first.fire, second.fire) == (at(10), at(10))
    assert first.name != second.name
    assert scene.record.delays_in_order == [pytest.approx(1, abs=1)]
    assert scene.primed("daily")["warming"]["lost"] == "Disrupted"
    assert scene.primed("daily")["warming"]["attempt"] == 2


def test_a_placeholder_lost_too_late_is_recorded_and_not_made_again() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(9, 30))
        scene.cluster.lose_node("node-1")
        await scene.until(at(9, 50))
        assert scene.placeholders == []
        assert scene.primed("daily")["warming"]["lost"] == "Disrupted"

    live(story)


def test_a_placeholder_leaves_a_node_that_is_being_drained() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(7))
        (name,) = scene.placeholders
        taint = {"spec": {"taints": [{"key": "karpenter.sh/disrupted", "effect": "NoSchedule"}]}}
        done(scene.world.merge(pods.NODE, Key("", "node-1"), taint, "karpenter"))
        await scene.until(at(7, 3))
        assert name not in scene.placeholders

    live(story)


def test_a_target_that_may_not_preempt_finds_the_place_free_two_seconds_before_its_fire() -> None:
    async def story(scene: PrimerScene) -> None:
        low = {"metadata": {"name": "low"}, "value": -1000}
        done(scene.world.create(pods.PRIORITY_CLASS, low, "admin"))
        scene.make_cron_job("daily", EVERY_TEN, pod={"priorityClassName": "low"})
        scene.prime("daily")
        scene.start()
        await scene.until(at(11))

    scene = live(story, preempts=False)
    (held,) = scene.record.held
    assert held.until is not None
    assert timedelta(seconds=1.5) <= held.fire - held.until <= timedelta(seconds=2)
    assert all(delay <= 2 for delay in scene.record.delays_in_order)
    assert "preempt a placeholder" in scene.primed("daily")["early"]


def quota(scene: PrimerScene, hard: str, used: str = "0") -> None:
    body = {"metadata": {"name": "small"}, "spec": {}}
    done(scene.world.create(pods.RESOURCE_QUOTA, body, "admin", HOME))
    status = {"status": {"hard": {"requests.cpu": hard}}}
    done(scene.world.merge(pods.RESOURCE_QUOTA, Key(HOME, "small"), status, "kube", "status"))
    count(scene, used)


def count(scene: PrimerScene, used: str) -> None:
    status = {"status": {"used": {"requests.cpu": used}}}
    done(scene.world.merge(pods.RESOURCE_QUOTA, Key(HOME, "small"), status, "kube", "status"))


def counted(scene: PrimerScene) -> None:
    """Let the quota count the pods that there are, a moment after each change."""

    def recount() -> None:
        there = scene.world.history.present(pods.POD).values()
        live = [pod for pod in there if pod.get("status", {}).get("phase") not in ("Succeeded", "Failed")]
        count(scene, str(2 * len(live)))

    def heard(happening: Happening) -> None:
        if happening.kind == pods.POD:
            asyncio.get_running_loop().call_later(0.1, recount)

    scene.world.history.listeners.append(heard)


def test_a_quota_with_room_for_one_run_is_free_again_before_the_fire() -> None:
    async def story(scene: PrimerScene) -> None:
        quota(scene, "2")
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        count(scene, used="2")
        await scene.until(at(11))

    (held,) = live(story).record.held
    assert held.until is not None
    assert held.until <= held.fire - timedelta(seconds=1.5)


def test_a_quota_without_room_for_a_placeholder_is_left_alone() -> None:
    async def story(scene: PrimerScene) -> None:
        quota(scene, "3", used="2")
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        assert scene.primed("daily")["reason"] == "QuotaTooSmall"
        await scene.until(at(11))
        assert "reason" not in scene.primed("daily")

    assert live(story).record.held == []


def test_a_quota_that_gets_room_while_a_window_is_open_is_used_at_once() -> None:
    async def story(scene: PrimerScene) -> None:
        quota(scene, "3", used="2")
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(6))
        assert scene.primed("daily")["reason"] == "QuotaTooSmall"
        count(scene, used="1")
        await scene.until(at(6, 1))
        assert len(scene.placeholders) == 1

    live(story)


def test_a_standing_reservation_never_takes_the_quota_from_a_run_that_comes_late() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.cluster.late = 40.0
        quota(scene, "2")
        counted(scene)
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "30m", allowStanding=True)
        scene.start()
        await scene.until(at(51))

    scene = live(story)
    fires = [fire for _, fire in scene.cluster.fired]
    assert len(fires) == 5
    for held in scene.record.held:
        assert held.until is None or held.until <= held.fire - timedelta(seconds=1.5)
        assert not [fire for fire in fires if fire <= held.since < fire + timedelta(seconds=40)], "before the run"
    assert len(scene.record.held) == 5


def test_an_operator_that_comes_back_in_the_middle_of_a_warm_up_primes_at_once() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        await scene.until(at(7))
        scene.start()
        await scene.until(at(11))

    scene = live(story)
    assert [each.fire for each in scene.record.held] == [at(10)]
    assert scene.record.delays_in_order == [pytest.approx(1, abs=1)]


def test_a_deleted_primer_releases_its_capacity_and_its_metrics() -> None:
    async def story(scene: PrimerScene) -> None:
        key = Key(HOME, "daily")
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        process = scene.start()
        await scene.until(at(9))
        assert isinstance(process.loop.controller, Primers)
        assert process.loop.controller.background_reads.result(key) is not None
        done(scene.world.delete(PRIMER, key))
        await scene.until(at(9, 5))
        assert scene.placeholders == []
        assert process.loop.controller.background_reads.result(key) is None

    live(story)


def test_a_refusal_is_shown_word_for_word_and_not_tried_again_before_the_next_fire() -> None:
    asked: list[str] = []

    async def story(scene: PrimerScene) -> None:
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == pods.POD and by == "foresail":
                asked.append(body["metadata"]["name"])
                return failure(403, "Forbidden", 'pods "daily" is forbidden: violates PodSecurity')
            return create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", "5m")
        scene.start()
        await scene.until(at(9))
        assert scene.primed("daily")["reason"] == "Refused"
        assert scene.primed("daily")["message"] == 'pods "daily" is forbidden: violates PodSecurity'
        assert scene.condition("daily", "Ready") == ("False", "Refused")
        await scene.until(at(19))

    live(story)
    assert len(asked) == len(set(asked)) == 2, "once for each fire"


def with_a_new_kubelet(scene: PrimerScene) -> None:
    done(scene.world.create(pods.NODE, {"metadata": {"name": "new"}}, "kubelet"))
    status = {"status": {"nodeInfo": {"kubeletVersion": "v1.35.2"}}}
    done(scene.world.merge(pods.NODE, Key("", "new"), status, "kubelet", "status"))


def volumes_of(pod: Document) -> list[str]:
    return [each["image"]["reference"] for each in pod["spec"].get("volumes", ())]


def test_where_every_kubelet_can_a_placeholder_pulls_the_images_of_its_run() -> None:
    async def story(scene: PrimerScene) -> None:
        with_a_new_kubelet(scene)
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        (pod,) = [pod for key, pod in scene.world.history.present(pods.POD).items() if key.name in scene.placeholders]
        assert volumes_of(pod) == ["work:1"]

    live(story)


def test_where_image_volumes_are_refused_the_run_is_primed_without_them_and_that_is_reported_once() -> None:
    tried: list[list[str]] = []

    async def story(scene: PrimerScene) -> None:
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == pods.POD and by == "foresail":
                tried.append(volumes_of(body))
                if tried[-1]:
                    return failure(422, "Invalid", "spec.volumes[0]: Required value: must specify a volume type")
            return create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        with_a_new_kubelet(scene)
        for name in ("daily", "nightly"):
            scene.make_cron_job(name, EVERY_TEN)
            scene.prime(name)
        scene.start(workers=1)
        await scene.until(at(9))
        assert len(scene.placeholders) == 2
        await scene.until(at(19))

    scene = live(story)
    assert tried == [["work:1"], [], [], [], []]
    (event,) = scene.events
    assert event.reason == "ImagesNotPulled"
    assert event.message == (
        "namespace reports refuses image volumes, so no image is pulled ahead: "
        "spec.volumes[0]: Required value: must specify a volume type"
    )


def test_the_first_placeholder_has_the_size_that_admission_would_give_the_run() -> None:
    asked: list[DryRunRequest] = []

    async def story(scene: PrimerScene) -> None:
        async def dry_run(request: DryRunRequest) -> Shape:
            asked.append(request)
            return msgspec.structs.replace(request.template, requests=(("cpu", "3"),))

        scene.dry_run = dry_run
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        (pod,) = [pod for key, pod in scene.world.history.present(pods.POD).items() if key.name in scene.placeholders]
        assert pod["spec"]["containers"][0]["resources"] == {"requests": {"cpu": "3"}}
        await scene.until(at(29))

    live(story)
    assert [each.cron_job.name for each in asked] == ["daily"], "asked once; then the runs tell"


def test_each_placeholder_is_where_the_volumes_of_its_run_are_now_and_a_silent_server_changes_nothing() -> None:
    asked: list[VolumeLookup] = []
    zones: list[str | None] = ["a", "b", None]

    async def story(scene: PrimerScene) -> None:
        async def locate_volumes(lookup: VolumeLookup) -> Volumes | None:
            asked.append(lookup)
            zone = zones[len(asked) - 1]
            return None if zone is None else (msgspec.json.encode({"nodeSelectorTerms": [bound_to(zone)]}),)

        scene.locate_volumes = locate_volumes
        mounts = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        scene.make_cron_job("daily", EVERY_TEN, pod={"volumes": [mounts]})
        scene.prime("daily")
        scene.start()
        for minute, zone in ((9, "a"), (19, "b"), (29, "b")):
            await scene.until(at(minute))
            assert held_in(scene) == {"nodeSelectorTerms": [bound_to(zone)]}

    live(story)
    assert [each.fire for each in asked] == [at(10), at(20), at(30)], "once for each fire"


def test_where_the_volume_of_a_run_is_is_asked_of_the_api_server() -> None:
    async def story(scene: PrimerScene) -> None:
        body = {"metadata": {"name": "data"}, "spec": {"volumeName": "disk"}}
        claim = done(scene.world.create(CLAIM, body, "user", HOME))
        affinity = {"required": {"nodeSelectorTerms": [bound_to("a")]}}
        spec = {"claimRef": {"uid": claim["metadata"]["uid"]}, "nodeAffinity": affinity}
        done(scene.world.create(VOLUME, {"metadata": {"name": "disk"}, "spec": spec}, "admin"))
        mounts = {"name": "data", "persistentVolumeClaim": {"claimName": "data"}}
        scene.make_cron_job("daily", EVERY_TEN, pod={"volumes": [mounts]})
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        assert held_in(scene) == affinity["required"]

    live(story)


def held_in(scene: PrimerScene) -> Document:
    """Return which nodes the only placeholder takes."""
    found = scene.world.history.present(pods.POD).items()
    (pod,) = [pod for key, pod in found if key.name in scene.placeholders]
    required: Document = pod["spec"]["affinity"]["nodeAffinity"]["requiredDuringSchedulingIgnoredDuringExecution"]
    return required


def bound_to(zone: str) -> Document:
    return {"matchExpressions": [{"key": "zone", "operator": "In", "values": [zone]}]}


def test_a_quiet_primer_writes_nothing() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", "0 12 * * *")
        scene.prime("daily")
        scene.start()
        await scene.until(at(1))
        before = len(scene.visitors[0].writes)
        await scene.until(at(11 * 60))
        assert len(scene.visitors[0].writes) == before

    live(story)


def deaths(
    begin: Callable[[PrimerScene], None],
    ends: datetime,
    *,
    after: bool,
    **cluster: Any,  # noqa: ANN401 - the stand-in's
) -> Iterator[tuple[int, PrimerScene]]:
    """Live once for each write of an operator that dies at it and is started again, and yield the write's number."""
    number, died = 1, True
    while died:
        died, scene = life_with_death(begin, ends, Moment(after=after, write=number), **cluster)
        yield number, scene
        number += 1
    assert number > 8, "there are writes to die at"


def life_with_death(
    begin: Callable[[PrimerScene], None],
    ends: datetime,
    dies: Moment,
    **cluster: Any,  # noqa: ANN401 - the stand-in's
) -> tuple[bool, PrimerScene]:
    died = False

    async def story(scene: PrimerScene) -> None:
        nonlocal died
        begin(scene)
        process = scene.start(dies)
        while scene.clock() < ends:
            await scene.until(scene.clock() + timedelta(seconds=1))
            if process.died:
                died = True
                await scene.stop()
                process = scene.start()

    scene = live(story, **cluster)
    return died, scene


def two_pods(scene: PrimerScene) -> None:
    scene.make_cron_job("daily", EVERY_TEN, job={"parallelism": 2})
    scene.prime("daily", "5m")


def assert_each_placeholder_once(scene: PrimerScene, number: int) -> None:
    names = [(each.fire, each.name) for each in scene.record.held]
    assert len(names) == len(set(names)) == 4, f"write {number}: {names}"
    assert scene.placeholders == [], f"write {number}"
    assert scene.most == 2


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_neither_doubles_nor_orphans_a_placeholder(after: bool) -> None:
    for number, scene in deaths(two_pods, at(21), after=after):
        assert_each_placeholder_once(scene, number)


@pytest.mark.parametrize("method", ["Placeholder", "CronJob"])
def test_a_primer_in_a_namespace_that_is_not_allowed_says_so_and_nothing_is_tried(method: str) -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily", method=method)
        scene.start()
        await scene.until(at(11))

    scene = live(story, settings=msgspec.structs.replace(SETTINGS, namespaces=frozenset({"elsewhere"})))
    assert scene.record.held == []
    assert scene.condition("daily", "Ready") == ("False", "NamespaceNotAllowed")
    assert scene.primed("daily")["message"] == (
        "the operator may not create pods in namespace reports: ask an administrator to add it to primers.namespaces "
        "in the chart's values."
    )
    assert [each.reason for each in scene.events] == ["NamespaceNotAllowed"]


def test_primer_cron_jobs_do_not_count_as_placeholders() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("by-itself", EVERY_TEN)
        scene.prime("by-itself", method="CronJob")
        scene.start()
        await scene.until(at(1))
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        await scene.until(at(9))
        assert scene.primed("daily").get("reason") is None
        assert len(scene.placeholders) == 1

    live(story, settings=msgspec.structs.replace(SETTINGS, max_in_cluster=1, hold_image="hold"))


def test_what_could_not_be_made_for_one_fire_does_not_count_at_the_next() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN, job={"parallelism": 3, "completions": 3})
        scene.prime("daily")
        process = scene.start()
        await scene.until(at(7))
        process.visitor.unsent_writes = 10_000
        await scene.until(at(11))
        process.visitor.unsent_writes = 0
        await scene.until(at(19))
        assert scene.primed("daily").get("reason") is None
        assert len(scene.placeholders) == 3

    live(story, settings=msgspec.structs.replace(SETTINGS, max_in_cluster=3))


def test_primers_that_are_due_together_stay_within_the_limit_of_their_namespace() -> None:
    async def story(scene: PrimerScene) -> None:
        for number in range(6):
            scene.make_cron_job(f"daily-{number}", EVERY_TEN)
            scene.prime(f"daily-{number}")
        scene.start()
        await scene.until(at(9))
        assert len(scene.placeholders) == 2
        reasons = [scene.primed(f"daily-{number}").get("reason") for number in range(6)]
        assert reasons.count("TooManyPlaceholders") == 4

    live(story, settings=msgspec.structs.replace(SETTINGS, max_per_namespace=2))
