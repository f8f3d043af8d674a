"""CronJobs that are primed by annotations in a world: what is held, recorded and told, and what is left in the end."""

from datetime import timedelta

import msgspec
import pytest

from foresail.api import batch, pods
from foresail.api.marks import WARM_UP, WARM_UP_STATUS
from foresail.api.primer import PRIMER
from foresail.plan import Key
from tests.worlds.primer_scene import HOME, SETTINGS, PrimerScene
from tests.worlds.test_primers import EVERY_TEN, Story, assert_each_placeholder_once, at, count, deaths, quota
from tests.worlds.test_primers import live as live_with
from tests.worlds.world import done

ON = msgspec.structs.replace(SETTINGS, annotated_cron_jobs=True)


NESTED = '{"x":' + "[" * 1_500 + "]" * 1_500 + "}"
COLD = '{"fire":"2025-12-31T00:00:00Z","seconds":9,"warm":false}'


def live(story: Story) -> PrimerScene:
    return live_with(story, settings=ON)


def annotated(scene: PrimerScene, **annotations: str) -> None:
    scene.make_cron_job("daily", EVERY_TEN)
    scene.annotate("daily", **annotations)


def told(scene: PrimerScene) -> list[tuple[str, str, str]]:
    return [(each.kind.name, each.key.name, each.reason) for each in scene.events]


def test_an_annotated_cron_job_is_primed_like_one_with_a_primer() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene)
        scene.start()
        await scene.until(at(61))

    scene = live(story)
    assert [held.fire for held in scene.record.held] == [at(10 * number) for number in range(1, 7)]
    assert all(held.fire - held.since <= timedelta(minutes=2) for held in scene.record.held)
    assert all(delay <= 2 for delay in scene.record.delays_in_order)
    assert scene.world.history.present(PRIMER) == {}
    recorded = scene.recorded("daily")
    assert [each["warm"] for each in recorded["startDelays"]] == [True] * 6
    assert recorded["nextFire"] == "2026-01-01T01:10:00Z"
    assert scene.events == []


def test_what_is_held_belongs_to_the_cron_job_and_goes_with_it() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene)
        scene.start()
        await scene.until(at(9))
        (pod,) = [pod for key, pod in scene.world.history.present(pods.POD).items() if key.name in scene.placeholders]
        (owner,) = pod["metadata"]["ownerReferences"]
        assert (owner["kind"], owner["name"]) == ("CronJob", "daily")
        done(scene.world.delete(batch.CRON_JOB, Key(HOME, "daily")))
        await scene.until(at(9, 5))
        assert scene.placeholders == []

    live(story)


@pytest.mark.parametrize("method", ["Placeholder", "CronJob"])
def test_without_its_annotation_everything_is_deleted_and_nothing_is_left_on_the_cron_job(method: str) -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene, method=method)
        scene.start()
        await scene.until(at(9))
        assert len(made(scene)) == 1
        scene.annotate("daily", None, method=None)
        await scene.until(at(9, 5))
        assert made(scene) == []
        assert scene.recorded("daily") == {}

    live(story)


def made(scene: PrimerScene) -> list[str]:
    """Return what is there for a CronJob: placeholders and primer CronJobs."""
    return [
        *scene.placeholders,
        *(key.name for key in scene.world.history.present(batch.CRON_JOB) if key.name != "daily"),
    ]


def test_an_annotation_that_went_while_nobody_was_there_leaves_nothing_behind() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene)
        scene.start()
        await scene.until(at(8, 1))
        await scene.stop()
        scene.annotate("daily", None, status=None)
        scene.start()
        await scene.until(at(8, 10))
        assert scene.placeholders == []

    live(story)


def test_a_primer_takes_precedence_over_an_annotation_and_that_is_reported_once() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene, method="CronJob")
        scene.start()
        await scene.until(at(1))
        assert len(made(scene)) == 1
        scene.prime("daily", "5m")
        await scene.until(at(21))
        assert scene.recorded("daily")["reason"] == "PrimedByAnother"
        assert made(scene) == [], "the primer CronJob of the annotation is gone"
        done(scene.world.delete(PRIMER, Key(HOME, "daily")))
        await scene.until(at(22))
        assert len(made(scene)) == 1
        assert "reason" not in scene.recorded("daily")

    scene = live(story)
    assert [held.fire - held.since <= timedelta(minutes=5) for held in scene.record.held] == [True, True]
    assert told(scene) == [("CronJob", "daily", "PrimedByAnother")]
    assert scene.events[0].message == (
        "Primer daily primes CronJob daily, so its annotation foresail.dev/warm-up is ignored: "
        "remove the annotation, or delete the Primer."
    )


@pytest.mark.parametrize("wrong", ["", "0m", "90s", "8d", "soon", "169h", "-5m", "10m ", "1" * 200_000])
def test_an_invalid_value_is_reported_with_what_to_write(wrong: str) -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN)
        scene.annotate("daily", wrong)
        scene.start()
        await scene.until(at(11))
        await scene.stop()
        scene.start()
        await scene.until(at(12))

    scene = live(story)
    assert scene.record.held == []
    assert told(scene) == [("CronJob", "daily", "InvalidAnnotation")], "once, also after a restart"
    message = scene.events[0].message
    assert message.startswith(f"CronJob reports/daily: annotation foresail.dev/warm-up is {wrong[:60]!r}: write 1m to")
    assert scene.recorded("daily")["message"] == message


def test_another_wrong_value_is_reported_again_and_a_right_one_primes() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene, method="Magic")
        scene.start()
        await scene.until(at(1))
        scene.annotate("daily", "later")
        await scene.until(at(2))
        scene.annotate("daily", "5", method="Placeholder")
        await scene.until(at(11))

    scene = live(story)
    assert [each.message.partition(" is ")[2].partition(":")[0] for each in scene.events] == ["'Magic'", "'later'"]
    (held,) = scene.record.held
    assert timedelta(minutes=4, seconds=58) <= held.fire - held.since <= timedelta(minutes=5)


def test_limits_of_an_annotation_are_those_of_a_primer() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("long", EVERY_TEN)
        scene.annotate("long", "7h")
        scene.make_cron_job("standing", EVERY_TEN)
        scene.annotate("standing", "6m")
        for number in range(4):
            scene.make_cron_job(f"daily-{number}", EVERY_TEN)
            if number % 2:
                scene.prime(f"daily-{number}")
            else:
                scene.annotate(f"daily-{number}")
        scene.start()
        await scene.until(at(9))
        assert len(scene.placeholders) == 2
        assert scene.recorded("long")["reason"] == "WarmUpTooLong"
        assert scene.recorded("standing")["reason"] == "NeedsAllowStanding"
        assert "set spec.allowStanding in a Primer" in scene.recorded("standing")["message"]

    live_with(story, settings=msgspec.structs.replace(ON, max_per_namespace=2))


def test_a_quota_that_gets_room_is_used_at_once() -> None:
    async def story(scene: PrimerScene) -> None:
        quota(scene, "3", used="2")
        scene.make_cron_job("daily", EVERY_TEN)
        scene.annotate("daily", "5m")
        scene.start()
        await scene.until(at(6))
        assert scene.recorded("daily")["reason"] == "QuotaTooSmall"
        count(scene, used="1")
        await scene.until(at(6, 1))
        assert len(scene.placeholders) == 1

    live(story)


def test_annotations_that_are_not_allowed_hold_no_capacity_and_that_is_reported_once() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene)
        scene.start()
        await scene.until(at(31))

    scene = live_with(story)
    assert scene.record.held == []
    assert told(scene) == [("CronJob", "daily", "AnnotationsOff")]
    assert scene.visitors[0].writes == []


def test_annotations_hold_no_capacity_in_a_namespace_that_is_not_allowed() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene)
        scene.start()
        await scene.until(at(31))

    scene = live_with(story, settings=msgspec.structs.replace(ON, namespaces=frozenset({"elsewhere"})))
    assert scene.record.held == []
    assert told(scene) == [("CronJob", "daily", "NamespaceNotAllowed")]
    assert scene.visitors[0].writes == [], "the operator may not record anything there"


def test_capacity_is_released_when_annotations_are_no_longer_allowed() -> None:
    async def story(scene: PrimerScene) -> None:
        annotated(scene)
        scene.start()
        await scene.until(at(9))
        await scene.stop()
        scene.settings = SETTINGS
        scene.start()
        await scene.until(at(9, 10))
        assert scene.placeholders == []

    live(story)


def test_a_quiet_annotated_cron_job_writes_nothing() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", "0 12 * * *")
        scene.annotate("daily")
        scene.start()
        await scene.until(at(1))
        before = len(scene.visitors[0].writes)
        await scene.until(at(11 * 60))
        assert len(scene.visitors[0].writes) == before

    live(story)


@pytest.mark.parametrize(
    "forged",
    [
        "{",
        '{"name":"daily","uid":"another","reason":"Suspended"}',
        '{"name":"daily","uid":"UID","warming":{"fire":"2026-01-01T00:10:00","made":3}}',
        '{"name":"daily","uid":"UID","warming":{"fire":"2026-01-01T00:10:00Z","made":1,"attempt":-99999}}',
        '{"name":"daily","uid":"UID","startDelays":[{"fire":"2026-01-01T00:10:00Z","seconds":-1,"warm":true}]}',
        '{"name":"daily","uid":"UID","startDelays":[' + ",".join([COLD] * 11) + "]}",
        "x" * 250_000,
        NESTED,
    ],
)
def test_a_forged_record_changes_nothing(forged: str) -> None:
    async def story(scene: PrimerScene) -> None:
        made = scene.make_cron_job("daily", EVERY_TEN)
        scene.annotate("daily", status=forged.replace("UID", made["metadata"]["uid"]))
        scene.start()
        await scene.until(at(11))

    scene = live(story)
    assert [held.fire for held in scene.record.held] == [at(10)]
    assert [each["warm"] for each in scene.recorded("daily")["startDelays"]] == [True]


def test_a_forged_record_ends_no_operator_that_allows_no_annotations() -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("forged", EVERY_TEN)
        scene.annotate("forged", status=NESTED)
        scene.make_cron_job("daily", EVERY_TEN)
        scene.prime("daily")
        scene.start()
        await scene.until(at(11))
        scene.annotate("forged", status=NESTED.replace("x", "y"))
        await scene.until(at(21))

    scene = live_with(story)
    assert [held.fire for held in scene.record.held] == [at(10), at(20)]


@pytest.mark.repeats
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_neither_doubles_nor_orphans_a_placeholder(after: bool) -> None:
    def begin(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", EVERY_TEN, job={"parallelism": 2})
        scene.annotate("daily", "4m")

    for number, scene in deaths(begin, at(21), after=after, settings=ON):
        assert_each_placeholder_once(scene, number)


def test_the_annotations_are_named_as_documented() -> None:
    assert (WARM_UP, WARM_UP_STATUS) == ("foresail.dev/warm-up", "foresail.dev/warm-up-status")
