"""Finding 1.7: what is deleted by force counts until Velero has really lost it, and its tenant sees it."""

from datetime import timedelta
from typing import Any

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP as BACKUP
from foresail.plan import Key
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, backed_up, tell
from tests.worlds.world import done

SECOND = Key("red", "second")


def sync(tenancy: Tenancy, *kept: dict[str, Any]) -> None:
    """Let Velero compare its Backups with the bucket, in which these are."""
    there = tenancy.velero_objects()
    for each in kept:
        meta = each["metadata"]
        if meta["name"] not in there:
            body = {"metadata": {key: meta[key] for key in ("name", "labels", "annotations")}}
            body |= {"spec": each["spec"], "status": each["status"]}
            tenancy.births.clear()
            done(tenancy.world.create(velero.BACKUP, body, "velero", VELERO))
    status = {"lastSyncedTime": stamp(tenancy.clock())}
    done(tenancy.world.merge(velero.LOCATION, Key(VELERO, "default"), {"status": status}, "velero"))


async def force(tenancy: Tenancy) -> dict[str, Any]:
    """Force the deletion of a complete backup, and return its Velero Backup as it was."""
    tenancy.make_location("default", default=True)
    await backed_up(tenancy)
    made = tenancy.made_for(NAB)
    assert made is not None
    tenancy.edit(NAB, forceDeleteBackup=True)
    await tenancy.settle()
    assert tenancy.velero_objects() == {}
    return made


def test_a_forced_backup_counts_until_a_sync_does_not_find_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        await force(tenancy)
        assert tenancy.status(NAB)["phase"] == "Deleting"
        assert tenancy.condition(NAB, "Deleting")[:2] == ("True", "ForceDeleted")
        tenancy.back_up(SECOND)
        await tenancy.settle()
        assert tenancy.condition(SECOND, "Accepted")[:2] == ("False", "QuotaExceeded")
        await tenancy.check_silence()
        sync(tenancy)
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.status(SECOND)["phase"] == "Created"

    tell(story, {"stored": 1})


def test_a_sync_right_after_the_deletion_does_not_count() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("default", default=True)
        await backed_up(tenancy)
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle(5)
        sync(tenancy)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Deleting")[:2] == ("True", "ForceDeleted")

    tell(story)


def test_a_forced_backup_that_comes_back_is_seen_and_can_be_deleted() -> None:
    async def story(tenancy: Tenancy) -> None:
        made = await force(tenancy)
        sync(tenancy, made)
        await tenancy.settle()
        message = tenancy.condition(NAB, "Deleting")[2]
        assert message.startswith("Data is still in storage location default and counts until 2026-")
        assert message.endswith("set spec.deleteBackup to true to delete it")
        back = tenancy.velero_objects()
        sync(tenancy, made)
        await tenancy.settle()
        assert tenancy.velero_objects() == back, "it is not deleted again"
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        sync(tenancy)
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.velero_objects() == {}

    tell(story)


def test_create_and_force_in_a_loop_never_stores_more_than_the_quota() -> None:
    async def story(tenancy: Tenancy) -> None:
        made = await force(tenancy)
        for number in range(5):
            key = Key("red", f"more-{number}")
            tenancy.back_up(key)
            await tenancy.settle(5)
            tenancy.edit(key, forceDeleteBackup=True)
            await tenancy.settle(5)
        assert tenancy.velero_objects() == {}
        sync(tenancy, made)
        await tenancy.settle()
        assert list(tenancy.velero_objects()) == [made["metadata"]["name"]]

    tell(story, {"stored": 1})


def test_a_forced_backup_counts_although_the_tenant_takes_the_finalizer_off() -> None:
    async def story(tenancy: Tenancy) -> None:
        await force(tenancy)
        done(tenancy.world.merge(BACKUP, NAB, {"metadata": {"finalizers": None}}, "tenant"))
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        tenancy.back_up(SECOND)
        await tenancy.settle()
        assert tenancy.condition(SECOND, "Accepted")[:2] == ("False", "QuotaExceeded")
        sync(tenancy)
        await tenancy.settle()
        assert tenancy.status(SECOND)["phase"] == "Created"

    tell(story, {"stored": 1})


async def force_while_it_runs(tenancy: Tenancy) -> None:
    """Delete a backup by force that Velero works on, and let Velero end it."""
    tenancy.make_location("default", default=True)
    tenancy.back_up(NAB)
    await tenancy.settle()
    tenancy.velero_says(NAB, "InProgress")
    tenancy.edit(NAB, forceDeleteBackup=True)
    await tenancy.settle()
    assert len(tenancy.velero_objects()) == 1
    tenancy.velero_says(NAB, "Completed", expiration=stamp(tenancy.clock() + timedelta(hours=1)))
    await tenancy.settle()


def test_a_forced_backup_that_runs_is_deleted_when_it_has_ended() -> None:
    async def story(tenancy: Tenancy) -> None:
        await force_while_it_runs(tenancy)
        assert tenancy.velero_objects() == {}
        assert tenancy.condition(NAB, "Deleting")[1] == "ForceDeleted"

    tell(story)


def test_a_forced_backup_ends_with_its_time_its_location_or_its_namespace() -> None:
    async def expires(tenancy: Tenancy) -> None:
        await force(tenancy)
        await tenancy.settle(3600)
        assert tenancy.request(NAB) is not None  # Velero's sync may bring it back until Velero has collected it
        await tenancy.settle(3600)
        assert tenancy.request(NAB) is None

    async def loses_its_location(tenancy: Tenancy) -> None:
        await force(tenancy)
        done(tenancy.world.delete(velero.LOCATION, Key(VELERO, "default")))
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    async def loses_its_namespace(tenancy: Tenancy) -> None:
        await force(tenancy)
        tenancy.delete_namespace("red")
        await tenancy.settle()
        assert Key("", "red") not in tenancy.world.history.present(NAMESPACE)

    for story in (expires, loses_its_location, loses_its_namespace):
        tell(story)


def test_backups_of_a_second_that_are_forced_count_until_velero_has_collected_them() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("default", default=True)
        tenancy.back_up(NAB, ttl="1s")
        await tenancy.settle()
        expires = stamp(tenancy.clock() + timedelta(seconds=1))
        tenancy.velero_says(NAB, "Completed", expiration=expires, progress={"totalItems": 3})
        await tenancy.settle(5)
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle(5)
        tenancy.back_up(SECOND, ttl="1s")
        await tenancy.settle(60)
        assert tenancy.condition(SECOND, "Accepted")[:2] == ("False", "QuotaExceeded")
        sync(tenancy)
        await tenancy.settle()
        assert tenancy.status(SECOND)["phase"] == "Created"

    tell(story, {"stored": 1})


def test_a_forced_backup_that_was_collected_does_not_count_where_velero_does_not_sync() -> None:
    async def story(tenancy: Tenancy) -> None:
        await force(tenancy)
        tenancy.back_up(SECOND)
        await tenancy.settle()
        assert tenancy.condition(SECOND, "Accepted")[:2] == ("False", "QuotaExceeded")
        await tenancy.settle(2 * 3600)
        assert tenancy.request(NAB) is None
        assert tenancy.status(SECOND)["phase"] == "Created"

    tell(story, {"stored": 1})


def test_a_backup_that_is_forced_as_soon_as_it_runs_counts_although_nothing_was_shown_of_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        await force_while_it_runs(tenancy)
        tenancy.back_up(SECOND)
        await tenancy.settle()
        assert tenancy.condition(SECOND, "Accepted")[:2] == ("False", "QuotaExceeded")
        sync(tenancy)
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.status(SECOND)["phase"] == "Created"

    tell(story, {"stored": 1})
