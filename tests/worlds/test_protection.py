"""Protection by label: namespaces come into Schedules, change class, are exempt, and are never without one."""

import asyncio
import random
from collections import Counter
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.protection import PROTECTION
from foresail.api.protection import PROTECTION_CLASS as CLASS
from foresail.kube.failures import failure
from foresail.plan import Key, Kind
from tests.worlds import virtual_time
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment, Turnover
from tests.worlds.protection_scene import EXCLUDE, LABEL, LATE, ProtectionScene
from tests.worlds.schedule_scene import HOME
from tests.worlds.velero_stand_in import Ending, in_a_moment
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import Answer, done

MINUTE, HOUR, DAY = timedelta(minutes=1), timedelta(hours=1), timedelta(days=1)
FAR = "2027-01-01T00:00:00Z"
OPEN = {"byTenants": True}
Story = Callable[[ProtectionScene], Awaitable[None]]


def live(story: Story, ending: Ending = in_a_moment, version: str = "v1.18.3") -> ProtectionScene:
    """Live through a story with both operators, and see that nobody was ever without a Schedule."""

    async def life() -> ProtectionScene:
        scene = ProtectionScene(ending, version=version)
        scene.start()
        scene.keep()
        await scene.until(BEGINNING + timedelta(seconds=2.5))
        await story(scene)
        await scene.end()
        return scene

    scene = virtual_time.run(life())
    assert scene.judge.unprotected == []
    assert scene.judge.doubled == []
    return scene


def at(minutes: float, seconds: float = 0) -> datetime:
    return BEGINNING + minutes * MINUTE + timedelta(seconds=seconds)


def test_a_labelled_namespace_is_backed_up_and_its_protection_says_so() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.rule("nights", {"names": ["nobody"]}, timeZone="Europe/Berlin")
        scene.classify("gold", schedulePolicy="nights", template={"ttl": "720h"}, restore=OPEN)
        scene.ask("shop", "gold")
        await scene.until(at(1))
        assert scene.groups == {"gold-1": ["shop"]}
        schedule = scene.read("gold-1")
        assert schedule["spec"]["template"] == {"ttl": "720h", "includedNamespaces": ["shop"]}
        assert schedule["metadata"]["labels"]["foresail.dev/schedule-policy"] == "nights"
        before = scene.protection("shop")
        assert before["conditions"][0]["reason"] == "NoBackupYet"
        assert before["nextRun"] == stamp(at(10))
        await scene.until(at(11))
        (backup,) = scene.backups
        uid = done(scene.world.get(NAMESPACE, Key("", "shop")))["metadata"]["uid"]
        assert scene.uids_of(backup) == {"shop": uid}
        after = scene.protection("shop")
        assert after["class"] == "gold"
        assert after["schedules"] == ["gold-1"]
        assert after["newestGood"]["backup"] == backup
        assert [each["backup"] for each in after["points"]] == [backup]
        assert after["nextRun"] == stamp(at(20))
        assert after["conditions"][0]["status"] == "True"
        assert scene.class_status("gold")["namespaces"] == 1
        assert scene.class_status("gold")["conditions"][0]["status"] == "True"

    live(story)


def test_a_namespace_that_says_nothing_gets_the_default_class_and_the_system_does_not() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.ask("shop")
        await scene.until(at(1))
        assert scene.protection("shop") is None
        scene.classify("all", default=True)
        scene.ask("later")
        await scene.until(at(2))
        assert scene.groups == {"all-1": ["default", "later", "shop"]}

    live(story)


def test_a_change_of_class_waits_for_a_good_backup_of_the_new_one() -> None:
    def silver_fails_at_first(backup: Document, made: datetime) -> tuple[datetime, str]:
        fails = "silver" in str(backup["metadata"]["name"]) and made < at(31)
        return made + timedelta(seconds=20), "PartiallyFailed" if fails else "Completed"

    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "5 * * * *", restore=OPEN)
        scene.classify("silver", "*/15 * * * *", restore=OPEN)
        scene.ask("shop", "gold")
        await scene.until(at(7))
        scene.ask("shop", "silver")
        await scene.until(at(8))
        assert scene.place("shop") == ["gold-1", "silver-1"]
        await scene.until(at(31))
        assert scene.place("shop") == ["gold-1", "silver-1"]
        assert scene.gaps("shop") == ["LastRunFailed"]
        await scene.until(at(46))
        assert scene.place("shop") == ["silver-1"]
        assert scene.gaps("shop") == []
        assert scene.groups == {"silver-1": ["shop"]}
        assert len(scene.protection("shop")["points"]) == 4, "those of the old class can be restored too"

    live(story, silver_fails_at_first)


@pytest.mark.parametrize(
    ("asked", "gap"), [("glod", "UnknownClass"), ("none", "ExemptionIncomplete"), (None, "NoClass")]
)
def test_a_mistake_in_the_label_is_a_gap_and_takes_no_backup_away(asked: str | None, gap: str) -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        scene.ask("shop", asked)
        await scene.until(at(12))
        assert scene.gaps("shop") == [gap]
        assert scene.protection("shop")["conditions"][0]["status"] == "False"
        await scene.until(at(21))
        assert len(scene.backups) == 2
        assert [note.reason for note in scene.notes if note.kind == PROTECTION] == [gap]

    live(story)


def test_an_exemption_ends_by_itself() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", default=True)
        scene.ask("shop", "gold")
        await scene.until(at(1))
        scene.ask("shop", "none", "being rebuilt", stamp(at(30)))
        await scene.until(at(2))
        assert scene.place("shop") == []
        assert scene.protection("shop")["conditions"][0]["reason"] == "Exempt"
        assert scene.protection("shop")["exemptUntil"] == stamp(at(30))
        await scene.until(at(31))
        assert scene.place("shop") == ["gold-1"]
        assert scene.gaps("shop") == ["ExemptionExpired"]

    live(story)


def test_a_namespace_that_velero_refuses_leaves_its_group_for_the_sake_of_the_others() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        for name in ("shop", "blog"):
            scene.ask(name, "gold")
        await scene.until(at(1))
        scene.label("shop", **{EXCLUDE: "true"})
        await scene.until(at(2))
        assert scene.groups == {"gold-1": ["blog"]}
        assert scene.gaps("shop") == ["Excluded"]

    live(story)


def test_who_creates_a_name_again_gets_nothing_of_the_former_owner() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", restore=OPEN)
        scene.ask("shop", "gold")
        await scene.until(at(11))
        scene.drop("shop")
        await scene.until(at(12))
        assert scene.groups == {}
        scene.ask("shop", "gold")
        await scene.until(at(13))
        assert "points" not in scene.protection("shop")
        assert scene.protection("shop")["conditions"][0]["reason"] == "NoBackupYet"
        await scene.until(at(21))
        old, new = scene.backups
        assert scene.uids_of(old) != scene.uids_of(new)
        assert [each["backup"] for each in scene.protection("shop")["points"]] == [new]

    live(story)


def test_points_are_what_teams_may_restore_and_nothing_else() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", template={"ttl": "25m0s"})
        scene.ask("shop", "gold")
        await scene.until(at(21))
        first, second = scene.backups
        assert "points" not in scene.protection("shop"), "the class does not let teams restore"
        scene.classify("gold", template={"ttl": "25m0s"}, restore=OPEN)
        await scene.until(at(22))
        assert [each["backup"] for each in scene.protection("shop")["points"]] == [second, first]
        done(scene.world.merge(velero.BACKUP, Key(HOME, first), {"status": {"expiration": stamp(at(23))}}, "velero"))
        await scene.until(at(24))
        assert [each["backup"] for each in scene.protection("shop")["points"]] == [second], "it has expired"
        scene.classify("silver")
        scene.ask("shop", "silver")
        await scene.until(at(25))
        assert [each["backup"] for each in scene.protection("shop")["points"]] == [second], "the class of the backup"
        scene.remove_class("gold")
        await scene.until(at(26))
        assert "points" not in scene.protection("shop")

    live(story)


def test_a_class_that_cannot_run_is_a_gap_of_its_namespaces_and_keeps_its_schedules() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        scene.classify("gold", "no expression")
        await scene.until(at(12))
        assert scene.gaps("shop") == ["ClassInvalid"]
        assert scene.class_status("gold")["conditions"][0]["reason"] == "ClassInvalid"
        assert scene.read("gold-1")["spec"]["schedule"] == "*/10 * * * *"
        scene.classify("gold", schedulePolicy="nights")
        await scene.until(at(13))
        assert scene.gaps("shop") == ["PolicyMissing"]
        scene.rule("nights", {"names": []})
        await scene.until(at(14))
        assert scene.gaps("shop") == []
        scene.write("gold-1", paused=True)
        await scene.until(at(15))
        assert scene.gaps("shop") == ["SchedulePaused"]
        assert scene.read("gold-1")["spec"]["paused"] is True

    live(story)


def test_a_class_that_is_deleted_leaves_its_schedules_and_backups() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        scene.remove_class("gold")
        await scene.until(at(21))
        assert scene.gaps("shop") == ["UnknownClass"]
        assert scene.groups == {"gold-1": ["shop"]}
        assert len(scene.backups) == 2

    live(story)


def test_a_protection_that_somebody_else_writes_is_put_right() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.ask("shop")
        forged = {"class": "gold", "conditions": []}
        done(scene.world.create(PROTECTION, {"metadata": {"name": "protection"}, "status": forged}, "tenant", "shop"))
        await scene.until(at(1))
        assert "class" not in scene.protection("shop")
        scene.world.merge(PROTECTION, Key("shop", "protection"), {"status": forged}, "tenant")
        await scene.until(at(2))
        assert "class" not in scene.protection("shop")

    live(story)


def test_a_class_whose_schedule_is_refused_stops_no_other_class() -> None:
    async def story(scene: ProtectionScene) -> None:
        create = scene.world.create

        def refusing(kind: Kind, body: Document, by: str, namespace: str = "") -> Answer:
            if kind == velero.SCHEDULE and body["metadata"]["name"].startswith("bad"):
                return failure(422, "Invalid", "spec.template.ttl: Invalid value")
            return create(kind, body, by, namespace)

        scene.world.create = refusing  # type: ignore[method-assign]
        for name in ("bad", "gold"):
            scene.classify(name)
            scene.ask(f"of-{name}", name)
        await scene.until(at(1))
        assert scene.groups == {"gold-1": ["of-gold"]}
        assert scene.class_status("bad")["conditions"][0]["reason"] == "WriteRefused"
        scene.world.create = create  # type: ignore[method-assign]
        await scene.until(at(2))
        assert scene.groups == {"bad-1": ["of-bad"], "gold-1": ["of-gold"]}
        assert scene.class_status("bad")["conditions"][0]["reason"] == "Ready"

    live(story)


def test_a_thousand_namespaces_are_in_fifty_schedules_and_nothing_is_written_afterwards() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 1 * * *")
        for number in range(1000):
            scene.ask(f"team-{number}", "gold")
        await scene.until(at(1))
        assert len(scene.groups) == 50
        assert {len(names) for names in scene.groups.values()} == {20}
        before = len(scene.kept)
        writes = Counter((write.verb, write.kind) for write in scene.kept)
        assert writes["create", velero.SCHEDULE] + writes["patch", velero.SCHEDULE] < 150
        await scene.until(at(40))
        assert len(scene.kept) == before

    live(story)


def test_thirty_nights_are_one_write_per_namespace_and_night() -> None:
    """The status of the class changes with none of them."""

    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 1 * * *")
        for number in range(60):
            scene.ask(f"team-{number}", "gold")
        await scene.until(at(30))
        for night in range(1, 31):
            before = len(scene.kept)
            await scene.until(BEGINNING + night * DAY)
            written = Counter(write.key.namespace for write in scene.kept[before:])
            assert set(written.values()) == {1}
            assert len(written) == 60

    live(story)


# The truth rule


def test_a_location_that_velero_does_not_reach_protects_nobody() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 1 * * *")
        scene.ask("shop", "gold")
        await scene.until(at(61))
        assert scene.verdict("shop") == ("True", "Protected")
        before = len(scene.kept)
        scene.locate("Unavailable")
        await scene.until(at(70))
        assert len(scene.kept) == before, "a moment is not worth a write for each namespace"
        await scene.until(at(72))
        assert scene.verdict("shop") == ("False", "LocationUnavailable")
        scene.locate("Available")
        await scene.until(at(73))
        assert scene.verdict("shop") == ("True", "Protected")
        assert len(scene.kept) == before + 2

    live(story)


def test_a_location_of_an_old_backup_that_is_unreachable_protects_nobody() -> None:
    async def story(scene: ProtectionScene) -> None:
        elsewhere = {"metadata": {"name": "far"}, "spec": {}, "status": {"phase": "Available"}}
        done(scene.world.create(velero.LOCATION, elsewhere, "admin", HOME))
        scene.classify("gold", "0 1 * * *", template={"storageLocation": "far"})
        scene.ask("shop", "gold")
        await scene.until(at(61))
        scene.classify("gold", "0 1 * * *", template={"storageLocation": "default"})
        done(scene.world.merge(velero.LOCATION, Key(HOME, "far"), {"status": {"phase": "Unavailable"}}, "velero"))
        await scene.until(at(72))
        assert scene.verdict("shop") == ("False", "LocationUnavailable")

    live(story)


def test_nobody_is_protected_while_velero_does_not_run_and_a_restart_of_its_pod_writes_nothing() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 1 * * *")
        scene.ask("shop", "gold")
        await scene.until(at(61))
        before = len(scene.kept)
        scene.run_pods(0)
        await scene.until(at(65))
        scene.run_pods(1)
        await scene.until(at(80))
        assert len(scene.kept) == before
        scene.run_pods(0)
        await scene.until(at(91))
        assert scene.verdict("shop") == ("False", "VeleroNotReady")
        assert scene.gaps("shop") == ["VeleroNotReady"]
        scene.run_pods(1)
        await scene.until(at(92))
        assert scene.verdict("shop") == ("True", "Protected")

    live(story)


def test_what_was_wrong_before_the_operator_started_counts_at_once() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 1 * * *")
        scene.ask("shop", "gold")
        await scene.until(at(61))
        scene.run_pods(0)
        await scene.until(at(72))
        assert scene.keeper is not None
        await scene.keeper.kill()
        before = len(scene.kept)
        scene.keep()
        await scene.until(at(75))
        assert scene.verdict("shop") == ("False", "VeleroNotReady")
        assert len(scene.kept) == before

    live(story)


def test_volumes_without_snapshots_are_reported() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "*/10 * * * *", namespacesPerBackup=2)
        for name in ("shop", "blog"):
            scene.ask(name, "gold")
        scene.claim("shop", "data")
        scene.claim("shop", "waits", volume="")
        scene.claim("blog", "data")
        await scene.until(at(11))
        assert scene.verdict("shop") == ("Unknown", "VolumesUnproven")
        message = scene.protection("shop")["conditions"][0]["message"]
        assert "the data of 1 volume is not proven: it has fewer snapshots" in message, "the others' are not counted"
        assert scene.gaps("shop") == []
        await scene.until(at(20, 5))
        scene.snapshot(scene.backups[-1], 2)
        await scene.until(at(21))
        assert scene.verdict("shop") == scene.verdict("blog") == ("True", "Protected")
        scene.claim("shop", "new")
        await scene.until(at(22))
        assert scene.verdict("shop") == ("True", "Protected"), "no backup since then could have it"

    live(story)


def test_a_backup_that_is_older_than_three_runs_protects_nobody() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold", "0 * * * *")
        scene.ask("shop", "gold")
        await scene.until(at(61))
        await scene.stop()  # nobody runs the Schedules any more
        await scene.until(at(239))
        assert scene.verdict("shop") == ("True", "Protected")
        await scene.until(at(242))
        assert scene.verdict("shop") == ("False", "RunsMissed")

    live(story)


# Takeovers and kills


def test_a_follower_takes_over_and_nothing_is_written_twice() -> None:
    async def life() -> ProtectionScene:
        scene = ProtectionScene()
        scene.start()
        first, second = Turnover(is_leader=True), Turnover()
        scene.keep(leads=first)
        old = scene.keeper
        assert old is not None
        scene.keep(leads=second)
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(12))
        first.follow()
        second.lead()
        before = len(scene.kept)
        await scene.until(at(13))
        assert len(scene.kept) == before
        scene.ask("blog", "gold")
        await scene.until(at(14))
        assert scene.groups == {"gold-1": ["blog", "shop"]}
        await old.kill()
        await scene.end()
        return scene

    assert virtual_time.run(life()).judge.unprotected == []


CHANGES = ("ask", "ask", "ask", "exempt", "drop", "class", "exclude", "pause")


def change(scene: ProtectionScene, dice: random.Random) -> None:
    """Change something, as people and tools do."""
    name = f"team-{dice.randrange(9)}"
    match dice.choice(CHANGES):
        case "ask":
            scene.ask(name, dice.choice(("gold", "silver", "gold", "silver", "glod", "none", None)))
        case "exempt":
            scene.ask(name, "none", "a test", stamp(scene.clock() + timedelta(seconds=dice.randrange(1, 900))))
        case "drop":
            scene.drop(name)
        case "class":
            change_class(scene, dice)
        case "exclude":
            if Key("", name) in scene.world.history.present(NAMESPACE):
                scene.label(name, **{EXCLUDE: dice.choice(("true", None))})
        case _:
            rows = list(scene.groups)
            if rows:
                scene.write(dice.choice(rows), paused=dice.choice((True, None)))


def change_class(scene: ProtectionScene, dice: random.Random) -> None:
    name = dice.choice(("gold", "silver"))
    match dice.randrange(5):
        case 0:
            scene.remove_class(name)
        case 1:
            scene.classify(name, "no expression")
        case 2:
            scene.classify(name, "*/10 * * * *", default=True, namespacesPerBackup=dice.randrange(1, 5))
        case _:
            scene.classify(name, "*/10 * * * *", namespacesPerBackup=dice.randrange(1, 5))


def ends_somehow(dice: random.Random) -> Ending:
    def ending(_: Document, made: datetime) -> tuple[datetime, str]:
        phase = dice.choice(("Completed", "Completed", "Completed", "PartiallyFailed", "Failed"))
        return made + timedelta(seconds=dice.choice((1, 30, 400, 900))), phase

    return ending


def history(seed: int, changes: int = 60) -> tuple[ProtectionScene, int]:
    """Live through random changes with a death at a random write of each life; return how many deaths came."""
    dice = random.Random(seed)  # noqa: S311 - a story, not a secret

    def moment(most: int) -> Moment | None:
        return Moment(after=dice.random() < 0.5, write=dice.randrange(1, most)) if dice.random() < 0.8 else None

    async def life() -> tuple[ProtectionScene, int]:
        scene = ProtectionScene(ends_somehow(dice))
        scene.classify("gold", namespacesPerBackup=3)
        scene.classify("silver", namespacesPerBackup=2)
        scene.start(moment(40))
        scene.keep(moment(12))
        died = 0
        for _ in range(changes):
            for _ in range(dice.randrange(1, 4)):
                change(scene, dice)
            await asyncio.sleep(dice.choice((0.01, 0.05, 1.0, 20.0, 120.0, 400.0)))
            assert scene.process is not None
            assert scene.keeper is not None
            if scene.keeper.died:
                died += 1
                await scene.keeper.kill()
                scene.keep(moment(12))
            if scene.process.died:
                died += 1
                await scene.stop()
                scene.start(moment(40))
        for process in (scene.keeper, scene.process):
            assert process is not None
            await process.kill()
        scene.keep()
        scene.start()
        await asyncio.sleep(LATE.total_seconds())
        return scene, died

    async def ended() -> tuple[ProtectionScene, int]:
        scene, died = await life()
        await scene.end()
        return scene, died

    return virtual_time.run(ended())


def classes_of(scene: ProtectionScene) -> dict[str, Any]:
    return {key.name: row["spec"] for key, row in scene.world.history.present(CLASS).items()}


def settled(scene: ProtectionScene) -> list[str]:
    """Return the namespaces that are not in a Schedule of the class that they name, or are twice in one."""
    found = []
    usable = {name for name, spec in classes_of(scene).items() if spec["schedule"] != "no expression"}
    for key, row in scene.world.history.present(NAMESPACE).items():
        labels = row["metadata"].get("labels") or {}
        asked = labels.get(LABEL)
        own = [group for group in scene.place(key.name) if group.rpartition("-")[0] == asked]
        if asked in usable and labels.get(EXCLUDE) != "true" and len(own) != 1:
            found.append(f"{key.name} asks for {asked} and is in {scene.place(key.name)}")
    return found


@pytest.mark.repeats
@pytest.mark.parametrize("seed", range(12))
def test_no_random_history_with_deaths_leaves_anybody_without_a_schedule(
    seed: int, figure: Callable[[str], None]
) -> None:
    scene, died = history(seed)
    assert scene.judge.unprotected == []
    assert scene.judge.doubled == []
    assert settled(scene) == []
    figure(f"protection: {scene.judge.versions} versions judged, {died} deaths, nobody without a Schedule")


def test_the_judge_sees_a_namespace_that_is_without_a_schedule_for_one_version() -> None:
    async def life() -> ProtectionScene:
        scene = ProtectionScene()
        scene.keep()
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(2))
        scene.world.delete(velero.SCHEDULE, Key(HOME, "gold-1"))
        await scene.until(at(3))
        assert scene.place("shop") == ["gold-1"]
        await scene.end()
        return scene

    assert len(virtual_time.run(life()).judge.unprotected) == 1


def test_the_judge_sees_two_backups_of_one_slot() -> None:
    async def story(scene: ProtectionScene) -> None:
        scene.classify("gold")
        scene.ask("shop", "gold")
        await scene.until(at(11))
        (backup,) = scene.backups
        body = done(scene.world.get(velero.BACKUP, Key(HOME, backup)))
        known = body["metadata"]
        metadata = {"name": f"{backup}-r1", "annotations": known["annotations"], "labels": known["labels"]}
        done(scene.world.create(velero.BACKUP, {"metadata": metadata, "spec": body["spec"]}, "somebody", HOME))
        assert len(scene.judge.doubled) == 1
        scene.judge.doubled.clear()

    live(story)
