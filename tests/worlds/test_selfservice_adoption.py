"""A Velero Backup without a NonAdminBackup gets one if it is trusted, and never one of another tenant."""

from datetime import timedelta

import pytest

from foresail.api import velero
from foresail.api.core import NAMESPACE
from foresail.api.marks import ADOPT, ADOPTED, NAMESPACE_UID, RECORD_SIGNATURE, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.plan import Key
from foresail.selfservice.reasons import Reason
from foresail.selfservice.signatures import Record, verify
from tests.worlds import virtual_time
from tests.worlds.adoption_scene import (
    OLD_UID,
    RING,
    approve,
    namespace_uid,
    of_other_controller,
    offers,
    open_bucket,
    set_adoption,
    signed,
    sync,
)
from tests.worlds.process import Moment
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, tell
from tests.worlds.world import done

NAME = "red-shop-6f1f0f0e-aaaa-5bbb-8ccc-000000000001"
NAR = Key("red", "back")


def assert_adopted(tenancy: Tenancy, key: Key = NAB, name: str = NAME) -> None:
    """The NonAdminBackup is there and owns the Velero Backup, whose record is new and signed."""
    request, backup = tenancy.request(key), tenancy.velero_objects()[name]
    assert request is not None
    uid, notes = request["metadata"]["uid"], backup["metadata"]["annotations"]
    assert notes[REQUEST_UID] == uid
    assert notes[NAMESPACE_UID] == namespace_uid(tenancy, key.namespace)
    assert ADOPT not in notes
    assert tenancy.status(key)["phase"] == "Created"
    assert tenancy.status(key)["veleroBackup"]["name"] == name
    assert tenancy.condition(key, "Adopted")[:2] == ("True", "BackupAdopted")
    assert tenancy.condition(key, "Succeeded")[0] == "True"
    assert request["metadata"]["finalizers"] == ["nonadminbackup.oadp.openshift.io/finalizer"]
    assert name not in offers(tenancy)


def test_after_a_disaster_an_administrator_gives_a_backup_back_and_it_is_restored() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        sync(tenancy, signed(NAME, NAB, OLD_UID))
        await tenancy.settle()
        assert tenancy.request(NAB) is None, "the namespace was created again: an administrator decides"
        assert offers(tenancy) == {NAME: True}
        await tenancy.check_silence()
        approve(tenancy, NAME)
        await tenancy.settle()
        assert_adopted(tenancy)
        notes = tenancy.velero_objects()[NAME]["metadata"]["annotations"]
        record = Record(NAME, "b/p", "red", namespace_uid(tenancy), "shop", notes[REQUEST_UID])
        assert verify(record, notes[RECORD_SIGNATURE], RING)
        tenancy.restore(NAR, "shop")
        await tenancy.settle()
        made = tenancy.made_for(NAR, NON_ADMIN_RESTORE)
        assert made is not None
        assert made["spec"]["backupName"] == NAME

    tell(story)


def test_a_verified_backup_of_the_same_namespace_is_adopted_automatically() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        sync(tenancy, signed(NAME, NAB, namespace_uid(tenancy)))
        await tenancy.settle()
        assert_adopted(tenancy)

    tell(story)


def test_the_team_of_a_namespace_that_was_created_again_hears_that_its_backups_wait() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        tenancy.delete_namespace("red")
        sync(tenancy, signed(NAME, NAB, OLD_UID))
        await tenancy.settle(timedelta(hours=3).total_seconds())
        assert [note for note in tenancy.notes if note.reason == Reason.BACKUPS_ADOPTABLE] == []
        labels = {"foresail.dev/self-service": "enabled"}
        done(tenancy.world.create(NAMESPACE, {"metadata": {"name": "red", "labels": labels}}, "admin"))
        await tenancy.settle()
        (note,) = [note for note in tenancy.notes if note.reason == Reason.BACKUPS_ADOPTABLE]
        assert note.key == Key("red", "red"), "an Event in the namespace itself, where the team may list it"
        assert "foresail backup adopt -n red" in note.message

    tell(story)


def test_what_its_tenant_gave_up_does_not_come_back_by_itself() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic")
        sync(tenancy, signed(NAME, NAB, namespace_uid(tenancy)))
        await tenancy.settle()
        tenancy.delete(NAB)
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": []}}, "tenant"))
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert offers(tenancy) == {NAME: True}
        approve(tenancy, NAME)
        await tenancy.settle()
        assert_adopted(tenancy)

    tell(story)


def test_a_key_that_is_imported_later_verifies() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Automatic", has_key=False)
        sync(tenancy, signed(NAME, NAB, namespace_uid(tenancy)))
        await tenancy.settle()
        assert offers(tenancy) == {NAME: False}
        tenancy.make_key(RING.keys[0][1])
        await tenancy.settle()
        assert_adopted(tenancy)

    tell(story)


@pytest.mark.parametrize("adoption", ["Automatic", "Approved"])
def test_an_unsigned_backup_needs_an_administrator(adoption: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, adoption)
        sync(tenancy, of_other_controller(NAME, NAB))
        await tenancy.settle()
        assert offers(tenancy) == {NAME: False}
        assert tenancy.request(NAB) is None
        approve(tenancy, NAME)
        await tenancy.settle()
        assert_adopted(tenancy)

    tell(story)


def test_never_adopts_nothing_not_even_what_is_approved() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy, "Never")
        sync(tenancy, signed(NAME, NAB, namespace_uid(tenancy)))
        approve(tenancy, NAME)
        await tenancy.settle()
        assert offers(tenancy) == {}
        assert tenancy.request(NAB) is None
        set_adoption(tenancy, "Approved")
        await tenancy.settle()
        assert_adopted(tenancy)

    tell(story)


def test_a_name_that_is_taken_is_never_overwritten() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy)
        uid = tenancy.back_up(NAB)
        await tenancy.settle()
        sync(tenancy, signed(NAME, NAB, OLD_UID))
        approve(tenancy, NAME)
        await tenancy.settle()
        request = tenancy.request(NAB)
        assert request is not None
        assert request["metadata"]["uid"] == uid
        assert ADOPTED not in request["metadata"]["annotations"]
        assert tenancy.velero_objects()[NAME]["metadata"]["annotations"][NAMESPACE_UID] == OLD_UID
        assert offers(tenancy) == {NAME: True}

    tell(story)


def test_a_backup_of_the_existing_controller_keeps_its_request() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy)
        sync(tenancy, of_other_controller(NAME, NAB))
        made = {"name": "shop", "finalizers": ["nonadminbackup.oadp.openshift.io/finalizer"]}
        body = {"metadata": made, "spec": {"backupSpec": {}}}
        uid = done(tenancy.world.create(NON_ADMIN_BACKUP, body, "tenant", "red"))["metadata"]["uid"]
        status = {"phase": "Created", "veleroBackup": {"nacuuid": NAME, "name": NAME, "namespace": VELERO}}
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"status": status}, "another", "status"))
        await tenancy.settle()
        assert "foresail backup adopt shop -n red" in tenancy.condition(NAB, "Accepted")[2]
        approve(tenancy, NAME)
        await tenancy.settle()
        assert_adopted(tenancy)
        request = tenancy.request(NAB)
        assert request is not None
        assert request["metadata"]["uid"] == uid
        tenancy.restore(NAR, "shop")
        await tenancy.settle()
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is not None

    tell(story)


def test_an_adopted_backup_is_deleted_with_its_data() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy)
        sync(tenancy, of_other_controller(NAME, NAB))
        approve(tenancy, NAME)
        await tenancy.settle()
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert list(tenancy.velero_objects(velero.DELETE_REQUEST)) == [NAME]
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.velero_objects() == {}

    tell(story)


def test_an_adopted_backup_counts_and_is_not_refused_by_the_quota() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy)
        for number in (1, 2):
            sync(tenancy, signed(f"{NAME}{number}", Key("red", f"shop{number}"), OLD_UID))
            approve(tenancy, f"{NAME}{number}")
        await tenancy.settle()
        for number in (1, 2):
            assert_adopted(tenancy, Key("red", f"shop{number}"), f"{NAME}{number}")
        tenancy.back_up(NAB)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "QuotaExceeded")

    tell(story, {"stored": 1})


def test_a_request_with_the_label_of_an_adopted_one_gets_nothing() -> None:
    async def story(tenancy: Tenancy) -> None:
        open_bucket(tenancy)
        sync(tenancy, signed(NAME, Key("blue", "theirs"), OLD_UID))
        labels = {"openshift.io/oadp-nab-synced-from-nacuuid": NAME}
        body = {"metadata": {"name": "shop", "labels": labels}, "spec": {"backupSpec": {}}}
        done(tenancy.world.create(NON_ADMIN_BACKUP, body, "tenant", "red"))
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "VeleroBackupNotFound")
        assert list(tenancy.velero_objects()) == [NAME]
        assert "veleroBackup" not in tenancy.status(NAB)

    tell(story)


@pytest.mark.parametrize("write", range(1, 5))
@pytest.mark.parametrize("after", [False, True])
def test_a_death_at_any_write_is_a_pause(write: int, after: bool) -> None:
    async def live() -> None:
        tenancy = Tenancy()
        open_bucket(tenancy)
        sync(tenancy, signed(NAME, NAB, OLD_UID))
        approve(tenancy, NAME)
        process = tenancy.start(Moment(after, write))
        await tenancy.settle()
        if process.died:
            await process.kill()
            tenancy.start()
            await tenancy.settle()
        assert_adopted(tenancy)
        assert len(tenancy.world.history.present(NON_ADMIN_BACKUP)) == 1
        tenancy.check()
        await tenancy.check_silence()
        await tenancy.stop()

    virtual_time.run(live())
