"""Finding 1.1: what waits in Velero for a namespace that was deleted is never run in the next one of that name."""

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

SECOND = Key("red", "second")


async def queued(tenancy: Tenancy) -> None:
    """Leave one complete backup, one waiting backup and one waiting restore of the old team."""
    await backed_up(tenancy)
    tenancy.restore(NAR, "shop")
    tenancy.back_up(SECOND)
    await tenancy.settle()
    assert len(tenancy.velero_objects(velero.RESTORE)) == 1
    assert len(tenancy.velero_objects()) == 2


def recreate(tenancy: Tenancy) -> None:
    labels = {"foresail.dev/self-service": "enabled"}
    done(tenancy.world.create(NAMESPACE, {"metadata": {"name": "red", "labels": labels}}, "admin"))


def check_gone(tenancy: Tenancy) -> None:
    assert not tenancy.velero_objects(velero.RESTORE)
    assert [each["status"]["phase"] for each in tenancy.velero_objects().values()] == ["Completed"]


def test_waiting_velero_objects_are_deleted_with_the_namespace_of_their_request() -> None:
    async def story(tenancy: Tenancy) -> None:
        await queued(tenancy)
        tenancy.delete_namespace("red")
        await tenancy.settle()
        check_gone(tenancy)

    tell(story)


def test_waiting_velero_objects_of_a_replaced_namespace_are_deleted_after_a_restart() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        tenancy.start()
        await queued(tenancy)
        await tenancy.stop()
        for kind, key in ((NON_ADMIN_BACKUP, NAB), (NON_ADMIN_BACKUP, SECOND), (NON_ADMIN_RESTORE, NAR)):
            done(tenancy.world.merge(kind, key, {"metadata": {"finalizers": None}}, "tenant"))
        tenancy.delete_namespace("red")
        await tenancy.settle()
        recreate(tenancy)
        assert len(tenancy.velero_objects(velero.RESTORE)) == 1
        tenancy.start()
        await tenancy.settle()
        check_gone(tenancy)
        await tenancy.check_silence()
        await tenancy.stop()

    virtual_time.run(live())


def test_waiting_velero_objects_whose_request_lost_its_finalizer_go_with_the_namespace() -> None:
    async def story(tenancy: Tenancy) -> None:
        await queued(tenancy)
        for kind, key in ((NON_ADMIN_BACKUP, SECOND), (NON_ADMIN_RESTORE, NAR)):
            done(tenancy.world.merge(kind, key, {"metadata": {"finalizers": None}}, "tenant"))
            tenancy.delete(key, kind)
        await tenancy.settle()
        tenancy.delete_namespace("red")
        await tenancy.settle()
        check_gone(tenancy)

    tell(story)
