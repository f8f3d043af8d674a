"""Each Velero Backup of a tenant carries a signed record, if there is a key."""

from foresail.api.marks import NAMESPACE_UID, RECORD_SIGNATURE, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_LOCATION
from foresail.cli.recovery_key.keys import manifest
from foresail.plan import Key
from foresail.selfservice.signatures import KEY_BYTES, NO_KEYS, SECRET, Record, secret_key, verify
from tests.worlds.adoption_scene import approve, of_other_controller, offers, set_adoption, sync
from tests.worlds.documents import Document
from tests.worlds.own_locations import OWN, OwnLocations, live
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_locations import opened
from tests.worlds.test_selfservice_paths import NAB, tell
from tests.worlds.world import done

KEY, NEXT = b"k" * KEY_BYTES, b"n" * KEY_BYTES
RING = NO_KEYS.with_key(KEY, signs=True)


def record_of(backup: Document, storage: str) -> Record:
    meta, notes = backup["metadata"], backup["metadata"]["annotations"]
    return Record(
        meta["name"],
        storage,
        notes["openshift.io/oadp-nab-origin-namespace"],
        notes[NAMESPACE_UID],
        notes["openshift.io/oadp-nab-origin-name"],
        notes[REQUEST_UID],
    )


async def made(tenancy: Tenancy, key: Key = NAB) -> Document:
    tenancy.back_up(key)
    await tenancy.settle()
    found = tenancy.made_for(key)
    assert found is not None
    return found


def test_a_backup_is_signed_for_its_bucket() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("default", default=True, objectStorage={"bucket": "b", "prefix": "/p/"})
        tenancy.make_key(KEY)
        backup = await made(tenancy)
        signature = backup["metadata"]["annotations"][RECORD_SIGNATURE]
        assert verify(record_of(backup, "b/p"), signature, RING)
        assert not verify(record_of(backup, "c/p"), signature, RING)

    tell(story)


def test_without_a_key_nothing_is_signed() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("default", default=True, objectStorage={"bucket": "b"})
        backup = await made(tenancy)
        assert RECORD_SIGNATURE not in backup["metadata"]["annotations"]

    tell(story)


def test_the_newest_key_signs_from_when_it_is_rotated() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("default", default=True, objectStorage={"bucket": "b"})
        tenancy.make_key(KEY)
        await made(tenancy)
        ring = RING.with_key(NEXT, signs=True)
        body = {"data": manifest(VELERO, ring)["data"]}
        done(tenancy.world.merge(SECRET, secret_key(VELERO), body, "admin"))
        await tenancy.settle()
        backup = await made(tenancy, Key("red", "later"))
        signature = backup["metadata"]["annotations"][RECORD_SIGNATURE]
        assert verify(record_of(backup, "b/"), signature, ring)
        assert not verify(record_of(backup, "b/"), signature, RING)

    tell(story)


# A bucket of the tenant: whoever writes to it can put any archive behind a signature


async def own_backup(tenancy: OwnLocations) -> Document:
    """Let a tenant's backup be in the tenant's own bucket."""
    await opened(tenancy)
    tenancy.back_up(NAB, storageLocation=OWN.name)
    await tenancy.settle(5)
    found = tenancy.made_for(NAB)
    assert found is not None
    return found


def test_a_backup_in_a_tenant_s_own_bucket_is_not_signed() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.make_key(KEY)
        backup = await own_backup(tenancy)
        assert RECORD_SIGNATURE not in backup["metadata"]["annotations"]

    live(story)


def test_an_administrator_s_location_for_a_tenant_s_bucket_makes_nothing_verified() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.make_key(KEY)
        set_adoption(tenancy, "Automatic")
        backup = await own_backup(tenancy)
        location = tenancy.made()
        assert location is not None
        tenancy.delete(OWN, NON_ADMIN_LOCATION)
        await tenancy.settle(60)
        assert tenancy.request(NAB) is None
        assert not tenancy.velero_objects()
        stored = {each: backup["metadata"][each] for each in ("name", "labels", "annotations")}
        tenancy.make_location("plain", objectStorage=location["spec"]["objectStorage"])
        tenancy.births.clear()  # what Velero syncs is no second backup of the request
        sync(tenancy, stored, "plain")
        await tenancy.settle(60)
        assert tenancy.request(NAB) is None
        assert offers(tenancy) == {stored["name"]: False}

    live(story)


def test_a_backup_in_a_tenant_s_own_bucket_is_not_signed_when_it_is_adopted() -> None:
    async def story(tenancy: OwnLocations) -> None:
        tenancy.make_key(KEY)
        location = await opened(tenancy)
        sync(tenancy, of_other_controller("red-daily-x", NAB), location)
        await tenancy.settle(5)
        approve(tenancy, "red-daily-x")
        await tenancy.settle(5)
        adopted = tenancy.made_for(NAB)
        assert adopted is not None
        assert RECORD_SIGNATURE not in adopted["metadata"]["annotations"]

    live(story)
