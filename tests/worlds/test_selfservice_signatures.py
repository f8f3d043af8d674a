"""Each Velero Backup of a tenant carries a signed record, if there is a key."""

from foresail.api.marks import NAMESPACE_UID, RECORD_SIGNATURE, REQUEST_UID
from foresail.cli.recovery_key.keys import manifest
from foresail.plan import Key
from foresail.selfservice.records.keyring import KEY_BYTES, NO_KEYS, SECRET, secret_key
from foresail.selfservice.records.signature import Record, verify
from tests.worlds.documents import Document
from tests.worlds.tenancy import VELERO, Tenancy
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
