"""A path with one write in each life: every choice of the flowchart is made by a process that knows only the world."""

from collections.abc import Awaitable, Callable

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.selfservice.families import BACKUPS
from tests.flowchart import Arrow, walks
from tests.worlds import virtual_time
from tests.worlds.process import Moment
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import NAB, backed_up


async def life(tenancy: Tenancy, writes: int = 1) -> None:
    """Let a process come, do so many writes, and die."""
    process = tenancy.start(Moment(after=True, write=writes), workers=1)
    await tenancy.settle()
    assert process.died, "it has nothing to write"
    await tenancy.stop()


def tell(story: Callable[[Tenancy], Awaitable[None]], *phases: str) -> None:
    """Live through a story in which processes come and go, to the end of what the last one has to do."""

    async def live() -> None:
        tenancy = Tenancy()
        tenancy.start()
        await tenancy.settle()  # the namespaces get their labels, before the first life
        await tenancy.stop()
        await story(tenancy)
        tenancy.check()
        await tenancy.stop()
        (seen,) = (found for (kind, _), found in tenancy.phases.items() if kind == NON_ADMIN_BACKUP)
        assert seen == ["", *phases]

    virtual_time.run(live())


def stands(tenancy: Tenancy) -> tuple[str, bool, bool, bool, bool]:
    """Return the phase; whether it is marked as going; whether nacuuid, finalizer and Velero Backup are there."""
    request = tenancy.request(NAB)
    assert request is not None
    status = request.get("status", {})
    return (
        status.get("phase", ""),
        "deletionTimestamp" in request["metadata"],
        "nacuuid" in status.get("veleroBackup", {}),
        BACKUPS.finalizer in request["metadata"].get("finalizers", []),
        bool(tenancy.velero_objects()),
    )


@walks(Arrow.PHASE_EMPTY, Arrow.PHASE_SET, Arrow.NACUUID, Arrow.NO_FINALIZER, Arrow.FINALIZER, Arrow.VELERO_BACKUP)
def test_a_backup_is_made_in_four_lives() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await life(tenancy)
        assert stands(tenancy) == ("New", False, True, False, False)
        await life(tenancy)
        assert stands(tenancy) == ("New", False, True, True, False)
        await life(tenancy, writes=2)  # the finalizer is written again, as the test that nothing has changed
        assert stands(tenancy) == ("New", False, True, True, True)
        await life(tenancy)
        assert stands(tenancy) == ("Created", False, True, True, True)
        assert tenancy.condition(NAB, "Queued")[:2] == ("True", "BackupScheduled")

    tell(story, "New", "Created")


@walks(Arrow.FORCE_TO_SAY, Arrow.FORCE_SAID, Arrow.FORCE_TO_MARK, Arrow.FORCE_MARKED)
@walks(Arrow.FORCE_OBJECTS, Arrow.FORCE_NO_OBJECTS)
def test_a_backup_is_force_deleted_in_four_lives() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.start()
        await backed_up(tenancy)
        await tenancy.stop()
        tenancy.edit(NAB, forceDeleteBackup=True)
        await life(tenancy)
        assert stands(tenancy) == ("Deleting", False, True, True, True)
        await life(tenancy)
        assert stands(tenancy) == ("Deleting", True, True, True, True)
        await life(tenancy)
        assert stands(tenancy) == ("Deleting", True, True, True, False)
        await life(tenancy)
        assert tenancy.request(NAB) is None

    tell(story, "New", "Created", "Deleting")


@walks(Arrow.DELETE_TO_SAY, Arrow.DELETE_SAID, Arrow.DELETE_TO_MARK, Arrow.DELETE_MARKED, Arrow.DELETE_FINALIZER)
@walks(Arrow.DELETE_NO_REQUEST, Arrow.DELETE_REQUEST, Arrow.DELETE_WAITS, Arrow.DELETE_DONE)
def test_a_backup_is_deleted_in_five_lives() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.start()
        await backed_up(tenancy)
        await tenancy.stop()
        tenancy.edit(NAB, deleteBackup=True)
        await life(tenancy)
        assert stands(tenancy) == ("Deleting", False, True, True, True)
        await life(tenancy)
        assert stands(tenancy) == ("Deleting", True, True, True, True)
        assert not tenancy.velero_objects(velero.DELETE_REQUEST)
        await life(tenancy)
        assert tenancy.velero_objects(velero.DELETE_REQUEST)
        assert "veleroDeleteBackupRequest" not in tenancy.status(NAB)
        await life(tenancy)
        assert tenancy.status(NAB)["veleroDeleteBackupRequest"]["name"] in tenancy.velero_objects(velero.DELETE_REQUEST)
        assert stands(tenancy) == ("Deleting", True, True, True, True)
        tenancy.velero_deletes()
        await life(tenancy)
        assert tenancy.request(NAB) is None

    tell(story, "New", "Created", "Deleting")
