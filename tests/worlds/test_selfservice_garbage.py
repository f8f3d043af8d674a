"""Velero objects whose owner is gone: removed after an hour or two, Backups never, and nothing of anybody else's."""

from datetime import timedelta

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.plan import Key
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

TWO_HOURS = timedelta(hours=2, minutes=2).total_seconds()


def lose(tenancy: Tenancy) -> None:
    """Take away the requests behind the operator's back, as a restored etcd or removed finalizers do."""
    for kind, key in ((NON_ADMIN_RESTORE, NAR), (NON_ADMIN_BACKUP, NAB)):
        done(tenancy.world.merge(kind, key, {"metadata": {"finalizers": None}}, "tenant"))
        if tenancy.request(key, kind) is not None:
            tenancy.delete(key, kind)


async def restored(tenancy: Tenancy) -> None:
    await backed_up(tenancy)
    tenancy.restore(NAR, NAB.name)
    await tenancy.settle()
    tenancy.velero_says(NAR, "Completed", NON_ADMIN_RESTORE)
    await tenancy.settle()


async def lost(tenancy: Tenancy) -> None:
    await restored(tenancy)
    await tenancy.stop()
    lose(tenancy)
    tenancy.start()
    await tenancy.settle()


def test_a_restore_without_its_request_is_removed_after_an_hour_and_its_backup_stays() -> None:
    async def story(tenancy: Tenancy) -> None:
        await lost(tenancy)
        await tenancy.settle(timedelta(minutes=55).total_seconds())
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1
        await tenancy.settle(TWO_HOURS)
        assert not tenancy.velero_objects(velero.RESTORE)
        assert len(tenancy.velero_objects(velero.BACKUP)) == 1, "an orphaned Backup can be adopted"
        assert "OwnerGone" in {note.reason for note in tenancy.notes}

    tell(story)


def test_a_restore_with_its_request_stays() -> None:
    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy)
        await tenancy.settle(TWO_HOURS)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1

    tell(story)


def test_objects_of_others_and_of_the_existing_controller_stay() -> None:
    async def story(tenancy: Tenancy) -> None:
        names = {"openshift.io/oadp-nar-origin-namespace": "red", "openshift.io/oadp-nar-origin-name": "gone"}
        for name, annotations in (("by-hand", {}), ("red-gone-1", names)):
            body = {
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"backupName": "x"},
                "status": {"phase": "Completed"},
            }
            done(tenancy.world.create(velero.RESTORE, body, "admin", VELERO))
        await tenancy.settle(2 * TWO_HOURS)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 2

    tell(story)


def test_a_deletion_and_a_file_without_an_owner_are_removed() -> None:
    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy)
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        uid = tenancy.velero_objects()[name]["metadata"]["uid"]
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert len(tenancy.velero_objects(velero.DELETE_REQUEST)) == 1
        await tenancy.stop()
        lose(tenancy)
        done(tenancy.world.delete(velero.BACKUP, Key(VELERO, name)))
        files = [each for each in tenancy.velero_objects(velero.DOWNLOAD_REQUEST) if each.endswith(uid)]
        assert files
        tenancy.start()
        await tenancy.settle(TWO_HOURS)
        assert not tenancy.velero_objects(velero.DELETE_REQUEST)
        assert not tenancy.velero_objects(velero.DOWNLOAD_REQUEST)

    tell(story)
