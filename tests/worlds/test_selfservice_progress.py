"""The bytes of volumes whose data is moved: in the status while they move, seldom written, and gone in the end."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.plan import Key, Kind
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.queue.positions import BYTES_EVERY
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, tell
from tests.worlds.world import done

NAR = Key("red", "undo")
GIB = 1 << 30
EVERY = BYTES_EVERY.total_seconds()
COPIES, UPLOADS = "fileSystemPodVolumeBackups", "dataMoverDataUploads"


def move(tenancy: Tenancy, name: str, kind: Kind = velero.POD_VOLUME_BACKUP, key: Key = NAB, **status: Any) -> None:  # noqa: ANN401 - JSON
    """Let Velero begin to move the data of a volume, or report how far it is."""
    asked = NON_ADMIN_BACKUP if key is NAB else NON_ADMIN_RESTORE
    family = BACKUPS if key is NAB else RESTORES
    if name in tenancy.velero_objects(kind):
        done(tenancy.world.merge(kind, Key(VELERO, name), {"status": status}, "velero"))
        return
    made = tenancy.made_for(key, asked)
    assert made is not None
    labels = {family.movement_label: made["metadata"]["name"]}
    body = {"metadata": {"name": name, "labels": labels}, "status": status}
    done(tenancy.world.create(kind, body, "velero", VELERO))


def at(bytes_done: int, total_bytes: int = 2 * GIB) -> dict[str, Any]:
    return {"phase": "InProgress", "progress": {"bytesDone": bytes_done, "totalBytes": total_bytes}}


async def running(tenancy: Tenancy) -> None:
    tenancy.back_up(NAB)
    await tenancy.settle()
    tenancy.velero_says(NAB, "InProgress")
    await tenancy.settle(1)


def writes(tenancy: Tenancy) -> int:
    assert tenancy.process is not None
    return len(tenancy.process.visitor.writes)


@pytest.mark.parametrize(
    ("kind", "field"), [(velero.POD_VOLUME_BACKUP, COPIES), (velero.DATA_UPLOAD, UPLOADS)], ids=str
)
def test_the_bytes_of_a_running_backup_are_in_its_status(kind: Kind, field: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        move(tenancy, "data", kind, phase="Prepared")
        move(tenancy, "logs", kind, **at(GIB // 2, GIB))
        await tenancy.settle(EVERY)
        counts = {"total": 2, "prepared": 1, "inProgress": 1}
        assert tenancy.status(NAB)[field] == {**counts, "bytesDone": GIB // 2, "totalBytes": GIB}
        move(tenancy, "data", kind, **at(GIB))
        await tenancy.settle(EVERY)
        assert tenancy.status(NAB)[field] == {
            "total": 2,
            "inProgress": 2,
            "bytesDone": GIB + GIB // 2,
            "totalBytes": 3 * GIB,
        }
        await tenancy.check_silence()

    tell(story)


@pytest.mark.parametrize(
    ("kind", "field"),
    [(velero.POD_VOLUME_RESTORE, "fileSystemPodVolumeRestores"), (velero.DATA_DOWNLOAD, "dataMoverDataDownloads")],
    ids=str,
)
def test_the_bytes_of_a_running_restore_are_in_its_status(kind: Kind, field: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 3})
        await tenancy.settle()
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle()
        tenancy.velero_says(NAR, "InProgress", NON_ADMIN_RESTORE)
        move(tenancy, "data", kind, NAR, **at(GIB))
        await tenancy.settle(EVERY)
        found = tenancy.status(NAR, NON_ADMIN_RESTORE)[field]
        assert found == {"total": 1, "inProgress": 1, "bytesDone": GIB, "totalBytes": 2 * GIB}

    tell(story)


def test_a_volume_that_has_ended_counts_with_what_was_moved() -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        move(tenancy, "data", **at(2 * GIB))
        move(tenancy, "logs", **at(GIB))
        move(tenancy, "data", phase="Completed")
        move(tenancy, "logs", phase="Failed")
        await tenancy.settle(EVERY)
        found = tenancy.status(NAB)[COPIES]
        assert found == {"total": 2, "completed": 1, "failed": 1, "bytesDone": 3 * GIB, "totalBytes": 3 * GIB}

    tell(story)


def test_bytes_alone_are_written_once_in_a_while_and_the_last_of_them_is() -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        for name in ("data", "logs", "cache"):
            move(tenancy, name, **at(1))
        await tenancy.settle(2 * EVERY)
        before, seconds = writes(tenancy), 40
        for second in range(1, seconds + 1):
            for name in ("data", "logs", "cache"):
                move(tenancy, name, **at(second * GIB // 100))
            await tenancy.settle(1)
        assert 0 < writes(tenancy) - before <= seconds / EVERY + 1
        await tenancy.settle(EVERY)
        assert tenancy.status(NAB)[COPIES]["bytesDone"] == 3 * (seconds * GIB // 100)
        await tenancy.check_silence()

    tell(story)


def test_one_change_of_one_volume_costs_one_write_and_the_end_of_one_does_not_wait() -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        move(tenancy, "data", **at(1))
        await tenancy.settle(2 * EVERY)
        before = writes(tenancy)
        move(tenancy, "data", **at(GIB))
        await tenancy.settle(1)
        assert writes(tenancy) - before == 1
        move(tenancy, "data", phase="Completed")
        await tenancy.settle(0.5)
        assert writes(tenancy) - before == 2
        assert tenancy.status(NAB)[COPIES]["completed"] == 1

    assert timedelta(seconds=1) < BYTES_EVERY
    tell(story)


def test_a_backup_that_has_ended_keeps_counts_and_no_bytes() -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        move(tenancy, "data", **at(GIB))
        await tenancy.settle(EVERY)
        move(tenancy, "data", phase="Completed")
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 3})
        await tenancy.settle(1)
        assert tenancy.status(NAB)[COPIES] == {"total": 1, "completed": 1}
        await tenancy.check_silence()

    tell(story)


def test_bytes_that_cannot_be_are_bounded() -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        move(tenancy, "data", **at(3 * GIB))
        move(tenancy, "logs", **at(-5, -7))
        await tenancy.settle(EVERY)
        found = tenancy.status(NAB)[COPIES]
        assert found == {"total": 2, "inProgress": 2, "bytesDone": 3 * GIB, "totalBytes": 3 * GIB}

    tell(story)


def test_a_running_backup_whose_velero_object_is_deleted_shows_no_bytes() -> None:
    async def story(tenancy: Tenancy) -> None:
        await running(tenancy)
        move(tenancy, "data", **at(GIB))
        await tenancy.settle(EVERY)
        made = tenancy.made_for(NAB)
        assert made is not None
        done(tenancy.world.delete(velero.BACKUP, Key(VELERO, made["metadata"]["name"])))
        await tenancy.settle()
        assert tenancy.status(NAB)[COPIES] == {"total": 1, "inProgress": 1}

    tell(story)
