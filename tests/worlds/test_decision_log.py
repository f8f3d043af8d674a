"""The log of an operator: each decision once, whatever the number of reconciles."""

import logging
from datetime import timedelta

import pytest

from foresail.api import pods, velero
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.primer_scene import HOME as PRIMED
from tests.worlds.primer_scene import PrimerScene
from tests.worlds.schedule_scene import HOME, ScheduleScene
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_primers import at, live
from tests.worlds.test_selfservice_paths import NAB, backed_up, tell
from tests.worlds.world import done

MINUTE = timedelta(minutes=1)
BEGINNING = virtual_time.BEGINNING


def decisions(caplog: pytest.LogCaptureFixture) -> list[tuple[str, str]]:
    """Return what was decided about which object, in the order of the lines."""
    found = [record.__dict__["fields"] for record in caplog.records if "fields" in record.__dict__]
    return [(each["decision"], each["object"]) for each in found if "ServerStatusRequest" not in each["object"]]


def test_a_fire_a_wait_a_missed_slot_and_a_skip_are_one_line_each(caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> str:
        scene = ScheduleScene()
        uid: str = scene.make("often", "*/10 * * * *")["metadata"]["uid"]
        scene.start()
        await scene.until(BEGINNING + 15 * MINUTE)
        scene.locate("Unavailable")
        for minute in range(15, 45):  # each is a change of the Schedule, so a reconcile
            await scene.until(BEGINNING + minute * MINUTE)
            labels = {"metadata": {"labels": {"minute": str(minute)}}}
            done(scene.world.merge(velero.SCHEDULE, Key(HOME, "often"), labels, "user"))
        scene.locate("Available")
        await scene.until(BEGINNING + 45 * MINUTE)
        scene.write("often", skipImmediately=True)
        await scene.until(BEGINNING + 49 * MINUTE)
        await scene.stop()
        return uid[:8]

    caplog.set_level(logging.INFO)
    uid = virtual_time.run(live())
    schedule = "Schedule velero/often"
    assert decisions(caplog) == [
        ("Created", f"Backup velero/often-20260101001000-{uid}"),
        ("LocationUnavailable", schedule),
        ("Created", f"Backup velero/often-20260101004000-{uid}"),
        ("Missed", schedule),
        ("Skipped", schedule),
    ]
    assert {record.levelno for record in caplog.records if "fields" in record.__dict__} == {logging.INFO}


def test_a_hold_that_ends_and_begins_again_is_two_lines(caplog: pytest.LogCaptureFixture) -> None:
    async def live() -> None:
        scene = ScheduleScene()
        scene.make("often", "*/10 * * * *")
        scene.start()
        for minute in (5, 25):
            await scene.until(BEGINNING + minute * MINUTE)
            scene.locate("Unavailable")
            await scene.until(BEGINNING + (minute + 10) * MINUTE)
            scene.locate("Available")
        await scene.until(BEGINNING + 36 * MINUTE)
        await scene.stop()

    caplog.set_level(logging.INFO)
    virtual_time.run(live())
    assert [each for each, _ in decisions(caplog)].count("LocationUnavailable") == 2


def test_a_placeholder_made_and_lost_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(scene: PrimerScene) -> None:
        scene.make_cron_job("daily", "*/10 * * * *")
        scene.prime("daily")
        scene.start()
        await scene.until(at(9))
        for name in scene.placeholders:
            done(scene.world.delete(pods.POD, Key(PRIMED, name)))
        await scene.until(at(23))

    caplog.set_level(logging.INFO)
    live(story)
    first, second, third = (
        f"Pod reports/daily-warm-00000000-{each}" for each in ("29453770-0-1", "29453770-0-2", "29453780-0-1")
    )
    assert decisions(caplog) == [
        ("Created", first),
        ("Created", second),
        ("Lost", "Primer reports/daily"),
        ("Created", third),
    ]


def test_a_request_handed_over_and_a_request_refused_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.back_up(Key(NAB.namespace, "bad"), includedNamespaces=["other"])
        await tenancy.settle()

    caplog.set_level(logging.INFO)
    tell(story)
    found = [(decision, about.partition(" ")[0]) for decision, about in decisions(caplog)]
    assert found == [
        ("Created", "Backup"),
        ("BackupScheduled", "NonAdminBackup"),
        ("Completed", "NonAdminBackup"),
        ("InvalidBackupSpec", "NonAdminBackup"),
    ]
