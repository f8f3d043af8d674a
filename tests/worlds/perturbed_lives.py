"""The histories that perturbations are tried on: those of takeovers, and more, so that each capability acts in full."""

import asyncio
from datetime import datetime, timedelta
from typing import Any

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_LOCATION, NON_ADMIN_RESTORE, NON_ADMIN_SCHEDULE
from foresail.plan import Key
from tests.worlds.adoption_scene import approve, namespace_uid, of_other_controller, open_bucket, signed, sync
from tests.worlds.documents import Document
from tests.worlds.own_locations import OWN, SECOND, OwnLocations
from tests.worlds.primer_scene import PrimerScene
from tests.worlds.process import Moment, Process
from tests.worlds.protection_scene import ProtectionScene
from tests.worlds.schedule_scene import ScheduleScene
from tests.worlds.takeover import LIVES as TAKEN_OVER
from tests.worlds.takeover import (
    Life,
    primer_keys,
    request_keys,
    schedule_keys,
    why_no_primer,
    why_no_schedule,
    why_no_tenant_schedule,
)
from tests.worlds.tenancy import Tenancy
from tests.worlds.tenant_schedules import TenantScene
from tests.worlds.velero_stand_in import in_a_moment
from tests.worlds.virtual_time import BEGINNING
from tests.worlds.world import done

MINUTE = timedelta(minutes=1)


def begin(scene: Any, dies: Moment | None, workers: int, *, is_first: bool) -> list[Process]:  # noqa: ANN401 - any of them
    """Start the operator that is perturbed, and at first those beside it."""
    if not isinstance(scene, ProtectionScene):
        return [scene.start(dies, workers)]
    beside = [scene.start(workers=workers)] if is_first else []
    return [scene.keep(dies, workers), *beside]


async def under_policies(scene: ScheduleScene) -> None:
    """Keep some, ask for an approval, retry, wait for a group, pin, and edit the rules: an hour of it."""
    scene.rule("short", {"names": ["often", "pinned"]}, retention={"keepLast": 2, "gracePeriod": "0s"})
    scene.rule("slow", {"names": ["graced"]}, retention={"keepLast": 2, "gracePeriod": "12m"})
    scene.rule("stubborn", {"names": ["fails"]}, retry={"attempts": 2, "backoff": "2m"})
    scene.rule("turns", {"names": ["one", "two"]}, concurrency={"group": "disk", "max": 1})
    for name in ("often", "pinned", "graced", "fails", "one", "two"):
        scene.make(name, "*/10 * * * *")
    await scene.until(BEGINNING + 25.5 * MINUTE)
    mine = sorted(key.name for key in scene.world.history.present(velero.BACKUP) if key.name.startswith("pinned"))
    body = {"metadata": {"annotations": {"foresail.dev/pinned": "true"}}}
    done(scene.world.merge(velero.BACKUP, Key("velero", mine[0]), body, "user"))
    await scene.until(BEGINNING + 41.5 * MINUTE)
    scene.write("often", paused=True)
    await scene.until(BEGINNING + 62 * MINUTE)


def _policy_ending(backup: Document, made: datetime) -> tuple[datetime, str]:
    end, phase = in_a_moment(backup, made)
    name = backup["metadata"]["name"]
    if name.startswith("fails") and not name.endswith("-r1"):
        return end, "Failed"
    return (made + 3 * MINUTE if name.startswith(("one", "two")) else end), phase


async def kept(scene: TenantScene) -> None:
    """Keep the last of tenants' runs, by rules with and without a grace period, through failures and a pin."""
    work = asyncio.create_task(scene.velero_works())
    plain, other = Key("red", "plain"), Key("blue", "other")
    scene.schedule(plain, "*/5 * * * *")
    scene.schedule(other, "*/10 * * * *")
    await scene.until(BEGINNING + 13.5 * MINUTE)
    scene.outcome = {"phase": velero.FAILED}
    await scene.until(BEGINNING + 17.5 * MINUTE)
    scene.outcome = {"phase": velero.COMPLETED, "progress": {"totalItems": 2, "itemsBackedUp": 2}}
    await scene.until(BEGINNING + 31.5 * MINUTE)
    scene.delete(other, NON_ADMIN_SCHEDULE)
    await scene.until(BEGINNING + 41.5 * MINUTE)
    scene.edit(plain, NON_ADMIN_SCHEDULE, paused=True)
    await scene.until(BEGINNING + 46 * MINUTE)
    work.cancel()


async def located(scene: OwnLocations) -> None:
    """A tenant's own bucket: approved, used, renewed, refused, and given up."""
    work = asyncio.create_task(scene.velero_works())
    scene.write_secret()
    scene.ask()
    await scene.settle(45)
    scene.decide("approve")
    await scene.settle(45)
    scene.back_up(Key("red", "daily"), storageLocation=OWN.name)
    await scene.settle(45)
    scene.restore(Key("red", "back"), "daily")
    await scene.settle(45)
    scene.write_secret(SECOND)
    await scene.settle(45)
    theirs = Key("blue", "theirs")
    scene.write_secret(namespace="blue")
    scene.ask(theirs)
    await scene.settle(45)
    scene.decide("reject", theirs)
    await scene.settle(45)
    scene.delete(theirs, NON_ADMIN_LOCATION)
    await scene.settle(45)
    scene.delete(Key("red", "back"), NON_ADMIN_RESTORE)
    scene.edit(Key("red", "daily"), deleteBackup=True)
    await scene.settle(45)
    scene.delete(OWN, NON_ADMIN_LOCATION)
    await scene.settle(60)
    work.cancel()


async def adopted(scene: Tenancy) -> None:
    """Backups come from a bucket: trusted, approved, of another controller, and of nobody; one is deleted again."""
    work = asyncio.create_task(scene.velero_works())
    names = [f"red-{each}-6f1f0f0e-aaaa-5bbb-8ccc-00000000000{number}" for number, each in enumerate("abcd")]
    open_bucket(scene, "Automatic")
    sync(scene, signed(names[0], Key("red", "a"), namespace_uid(scene)))
    await scene.settle(30)
    sync(scene, signed(names[1], Key("red", "b"), "0b0b0b0b-0000-4000-8000-00000000cafe"))
    sync(scene, of_other_controller(names[2], Key("red", "c")))
    sync(scene, {"name": names[3]})
    await scene.settle(30)
    approve(scene, names[1])
    await scene.settle(30)
    scene.restore(Key("red", "back"), "a")
    await scene.settle(30)
    scene.edit(Key("red", "b"), deleteBackup=True)
    await scene.settle(60)
    scene.delete(Key("red", "a"))
    await scene.settle(60)
    work.cancel()


async def primed_by_each(scene: PrimerScene) -> None:
    """Prime one CronJob by each method, change the method of one, and remove another, through four fires."""
    for name, method in (("buffered", "CapacityBuffer"), ("held", "Placeholder"), ("earlier", "CronJob")):
        scene.make_cron_job(name, "*/10 * * * *")
        scene.prime(name, "3m", method=method)
    await scene.until(BEGINNING + 12.3 * MINUTE)
    scene.change_primer("earlier", method="Placeholder")
    await scene.until(BEGINNING + 22.3 * MINUTE)
    scene.change_primer("held", method="CronJob")
    await scene.until(BEGINNING + 32.3 * MINUTE)
    primers = next(each for each in scene.world.kinds if each.name == "Primer")
    scene.world.delete(primers, Key("reports", "buffered"))
    await scene.until(BEGINNING + 41 * MINUTE)


async def protected(scene: ProtectionScene) -> None:
    """Namespaces are labelled, change class, are exempt, come and go; a class is edited and removed."""
    scene.classify("gold", namespacesPerBackup=2)
    scene.classify("silver", "*/15 * * * *")
    for name in ("shop", "mail", "wiki"):
        scene.ask(name, "gold")
    scene.ask("lab", "silver")
    await scene.until(BEGINNING + 12.3 * MINUTE)
    scene.ask("mail", "silver")
    scene.ask("wiki", "none", "no data", "2027-01-01T00:00:00Z")
    await scene.until(BEGINNING + 18.3 * MINUTE)
    scene.ask("new", "gold")
    scene.drop("lab")
    await scene.until(BEGINNING + 24.3 * MINUTE)
    scene.classify("gold", "*/5 * * * *", namespacesPerBackup=2)
    scene.ask("wiki", "silver")
    await scene.until(BEGINNING + 38 * MINUTE)


def _no_keys(_: Any) -> list[Key]:  # noqa: ANN401 - of any controller
    return []


LIVES = (
    *TAKEN_OVER,
    Life("policies", lambda: ScheduleScene(ending=_policy_ending), under_policies, schedule_keys, why_no_schedule),
    Life(
        "keep last",
        lambda: TenantScene(keepLast=2, gracePeriod="3m"),
        kept,
        request_keys,
        why_no_tenant_schedule,
    ),
    Life("locations", OwnLocations, located, _no_keys, why_no_schedule),
    Life("adoption", Tenancy, adopted, _no_keys, why_no_schedule),
    Life("primer methods", lambda: PrimerScene(buffers=True), primed_by_each, primer_keys, why_no_primer),
    Life("protection", ProtectionScene, protected, _no_keys, why_no_schedule),
)
"""Every history, by its capability."""
