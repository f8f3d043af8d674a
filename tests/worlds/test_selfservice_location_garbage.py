"""What was made for a tenant's location that is gone: removed after an hour or two, never while a Backup needs it."""

from datetime import timedelta

from foresail.api import core, velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_LOCATION, NON_ADMIN_LOCATION_REQUEST, NON_ADMIN_RESTORE
from foresail.plan import Key
from tests.worlds.own_locations import OWN, OwnLocations, live
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_locations import NAB, NAR, opened, stored
from tests.worlds.world import done

TWO_HOURS = timedelta(hours=2, minutes=2).total_seconds()
THREE_HOURS = timedelta(hours=3, minutes=2).total_seconds()  # a request for approval goes after its location


async def lost(tenancy: OwnLocations) -> None:
    """Take the tenant's location away behind the operator's back, as removed finalizers do."""
    await tenancy.stop()
    done(tenancy.world.merge(NON_ADMIN_LOCATION, OWN, {"metadata": {"finalizers": None}}, "tenant"))
    tenancy.delete(OWN, NON_ADMIN_LOCATION)
    tenancy.start()
    await tenancy.settle(5)


def test_a_location_without_its_owner_is_removed_after_an_hour_with_its_credentials_and_its_request() -> None:
    async def story(tenancy: OwnLocations) -> None:
        name = await opened(tenancy)
        await lost(tenancy)
        await tenancy.settle(timedelta(minutes=50).total_seconds())
        assert name in tenancy.velero_objects(velero.LOCATION)
        await tenancy.settle(THREE_HOURS)
        assert name not in tenancy.velero_objects(velero.LOCATION)
        assert Key(VELERO, name) not in tenancy.world.history.present(core.SECRET)
        assert tenancy.approval() is None
        assert "OwnerGone" in {note.reason for note in tenancy.notes}

    live(story)


def test_a_location_that_has_a_backup_stays_until_the_backup_is_deleted() -> None:
    async def story(tenancy: OwnLocations) -> None:
        name = await stored(tenancy)
        await lost(tenancy)
        await tenancy.settle(TWO_HOURS)
        assert name in tenancy.velero_objects(velero.LOCATION), "the administrator restores from it"
        assert Key(VELERO, name) in tenancy.world.history.present(core.SECRET)
        made = tenancy.made_for(NAB)
        assert made is not None
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": None}}, "admin"))
        tenancy.delete(NAB, NON_ADMIN_BACKUP)
        done(tenancy.world.delete(velero.BACKUP, Key(VELERO, made["metadata"]["name"])))
        await tenancy.settle(TWO_HOURS)
        assert name not in tenancy.velero_objects(velero.LOCATION)

    live(story)


def test_a_location_without_its_owner_gets_no_backup_although_velero_could_write_there() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        await lost(tenancy)
        tenancy.back_up(NAB, storageLocation=OWN.name)
        await tenancy.settle(5)
        assert tenancy.made_for(NAB) is None
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "LocationUnavailable")

    live(story)


def test_a_location_without_its_owner_is_read_only_while_backups_are_in_it_and_its_request_stays() -> None:
    async def story(tenancy: OwnLocations) -> None:
        name = await stored(tenancy)
        await lost(tenancy)
        made = tenancy.velero_objects(velero.LOCATION)[name]
        assert made["spec"]["accessMode"] == "ReadOnly"
        assert made["metadata"]["annotations"]["foresail.dev/suspended"] == "OwnerGone"
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle(5)
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[:2] == ("False", "LocationUnavailable")
        await tenancy.settle(THREE_HOURS)
        assert Key(VELERO, name) in tenancy.world.history.present(NON_ADMIN_LOCATION_REQUEST)
        assert [note.reason for note in tenancy.notes].count("OwnerGone") == 1

    live(story)


def test_a_location_that_is_created_again_uses_neither_the_old_bucket_nor_the_old_approval() -> None:
    async def story(tenancy: OwnLocations) -> None:
        old = await stored(tenancy)
        await lost(tenancy)
        tenancy.ask(objectStorage={"bucket": "another"})
        await tenancy.settle(5)
        late = Key("red", "late")
        tenancy.back_up(late, storageLocation=OWN.name)
        await tenancy.settle(5)
        assert tenancy.made_for(late) is None, "the new location is not approved"
        asked = tenancy.world.history.present(NON_ADMIN_LOCATION_REQUEST)
        [new] = [key for key in asked if key.name != old]
        body = {"spec": {"approvalDecision": "approve"}}
        done(tenancy.world.merge(NON_ADMIN_LOCATION_REQUEST, new, body, "admin"))
        await tenancy.settle(5)
        made = tenancy.made_for(late)
        assert made is not None
        assert made["spec"]["storageLocation"] == new.name
        assert tenancy.velero_objects(velero.LOCATION)[old]["spec"]["accessMode"] == "ReadOnly"

    live(story)


def test_a_location_that_is_being_deleted_gets_no_backup() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        done(tenancy.world.merge(NON_ADMIN_LOCATION, OWN, {"metadata": {"finalizers": ["corp.example/x"]}}, "tenant"))
        tenancy.delete(OWN, NON_ADMIN_LOCATION)
        await tenancy.settle(5)
        tenancy.back_up(NAB, storageLocation=OWN.name)
        await tenancy.settle(5)
        assert tenancy.made_for(NAB) is None
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "LocationUnavailable")

    live(story)


def test_locations_with_an_owner_and_those_of_administrators_stay() -> None:
    async def story(tenancy: OwnLocations) -> None:
        await opened(tenancy)
        before = set(tenancy.velero_objects(velero.LOCATION))
        await tenancy.settle(TWO_HOURS)
        assert set(tenancy.velero_objects(velero.LOCATION)) == before
        assert tenancy.approval() is not None

    live(story)


def test_an_operator_that_does_not_watch_tenants_locations_removes_none() -> None:
    async def story(tenancy: OwnLocations) -> None:
        name = await opened(tenancy)
        await tenancy.stop()
        Tenancy.start(tenancy)
        await tenancy.settle(TWO_HOURS)
        assert name in tenancy.velero_objects(velero.LOCATION)

    live(story)
