"""What a complete backup has left out: the volumes that the namespace had when it began, said once and for good."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import core, velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.plan import Key, Kind
from tests.worlds.history import Happening
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, tell
from tests.worlds.world import done


def claim(tenancy: Tenancy, name: str, namespace: str = "red", *, is_bound: bool = True) -> str:
    annotations = {core.BOUND: "yes"} if is_bound else {}
    body = {"metadata": {"name": name, "annotations": annotations}, "spec": {}}
    return str(done(tenancy.world.create(core.CLAIM, body, "tenant", namespace))["metadata"]["uid"])


def copied(tenancy: Tenancy, kind: Kind, uid: str) -> None:
    """Let Velero copy or move the data of a claim; of a volume that is none if there is no UID."""
    made = tenancy.made_for(NAB)
    assert made is not None
    labels = {velero.BACKUP_NAME_LABEL: made["metadata"]["name"], **({velero.CLAIM_UID_LABEL: uid} if uid else {})}
    body = {"metadata": {"name": f"move-{uid or 'cache'}", "labels": labels}, "status": {"phase": "Completed"}}
    done(tenancy.world.create(kind, body, "velero", VELERO))


async def begun(tenancy: Tenancy) -> str:
    tenancy.back_up(NAB)
    await tenancy.settle(15)
    return stamp(tenancy.clock())


async def completed(tenancy: Tenancy, began: str, **status: Any) -> None:  # noqa: ANN401 - JSON
    tenancy.velero_says(NAB, "Completed", startTimestamp=began, progress={"totalItems": 3}, **status)
    await tenancy.settle(1)


def incomplete(tenancy: Tenancy) -> tuple[str, str, str]:
    return tenancy.condition(NAB, "DataIncomplete")


def test_volumes_that_nobody_took_are_named() -> None:
    async def story(tenancy: Tenancy) -> None:
        saved = claim(tenancy, "saved")
        for name in ("data", "logs"):
            claim(tenancy, name)
        claim(tenancy, "pending", is_bound=False)
        claim(tenancy, "elsewhere", "blue")
        began = await begun(tenancy)
        await tenancy.settle(2)
        claim(tenancy, "later")
        copied(tenancy, velero.POD_VOLUME_BACKUP, saved)
        copied(tenancy, velero.POD_VOLUME_BACKUP, "")
        await completed(tenancy, began)
        text = "Completed, but 2 of 3 volumes were not backed up: data, logs"
        assert incomplete(tenancy) == ("True", "VolumesLeftOut", text)
        left_out = tenancy.status(NAB)["volumesLeftOut"]
        assert left_out == {"count": 2, "claims": ["data", "logs"]}
        assert tenancy.condition(NAB, "Succeeded")[:2] == ("True", "Completed")

    tell(story)


@pytest.mark.parametrize("kind", [velero.POD_VOLUME_BACKUP, velero.DATA_UPLOAD])
def test_a_backup_with_all_volumes_has_nothing_to_say(kind: Kind) -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = claim(tenancy, "data")
        began = await begun(tenancy)
        copied(tenancy, kind, uid)
        await completed(tenancy, began, csiVolumeSnapshotsCompleted=int(kind is velero.DATA_UPLOAD))
        assert incomplete(tenancy) == ("", "", "")

    tell(story)


@pytest.mark.parametrize("field", ["volumeSnapshotsCompleted", "csiVolumeSnapshotsCompleted"])
@pytest.mark.parametrize(("snapshots", "missing"), [(3, 0), (2, 1), (0, 3)])
def test_snapshots_are_counted(field: str, snapshots: int, missing: int) -> None:
    async def story(tenancy: Tenancy) -> None:
        for name in ("a", "b", "c"):
            claim(tenancy, name)
        began = await begun(tenancy)
        await completed(tenancy, began, **{field: snapshots})
        if not missing:
            assert incomplete(tenancy) == ("", "", "")
            return
        names = "" if snapshots else ": a, b, c"
        assert incomplete(tenancy)[2].endswith(
            f"{missing} of 3 volumes {'was' if missing == 1 else 'were'} not backed up{names}"
        )

    tell(story)


def test_recorded_skips_stay_and_none_is_recorded_later() -> None:
    async def story(tenancy: Tenancy) -> None:
        claim(tenancy, "data")
        began = await begun(tenancy)
        await completed(tenancy, began)
        text = "Completed, but 1 of 1 volume was not backed up: data"
        assert incomplete(tenancy)[2] == text
        done(tenancy.world.delete(core.CLAIM, Key("red", "data")))
        for _ in range(2):
            await tenancy.stop()
            tenancy.start()
            await tenancy.settle(20)
        tenancy.velero_says(NAB, "Completed", expiration=stamp(tenancy.clock() + timedelta(days=1)))
        await tenancy.settle(1)
        assert incomplete(tenancy)[2] == text

    async def other(tenancy: Tenancy) -> None:
        await completed(tenancy, await begun(tenancy))
        claim(tenancy, "data")
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(20)
        assert incomplete(tenancy) == ("", "", "")

    tell(story)
    tell(other)


def test_a_backup_with_nothing_in_it_says_that() -> None:
    async def story(tenancy: Tenancy) -> None:
        claim(tenancy, "data")
        await begun(tenancy)
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 0})
        await tenancy.settle(1)
        assert incomplete(tenancy)[1] == "NothingBackedUp"

    tell(story)


def test_claims_that_come_with_each_write_keep_no_turn_from_others() -> None:
    async def story(tenancy: Tenancy) -> None:
        for number in range(50):
            claim(tenancy, f"data-{number}")

        def heard(happening: Happening) -> None:
            if happening.kind == NON_ADMIN_BACKUP:
                claim(tenancy, f"more-{happening.revision}")

        tenancy.world.history.listeners.append(heard)
        tenancy.back_up(NAB, includedResources=["deploymnts", "pvc"])
        await tenancy.settle(5)
        assert tenancy.made_for(NAB) is not None
        assert tenancy.condition(NAB, "DataIncomplete")[1] == "KindsNotServed"
        assert tenancy.condition(NAB, "Authorized")[1] == "SnapshotTimeoutShortened"
        written = [happening for happening in tenancy.world.history.happenings if happening.kind == NON_ADMIN_BACKUP]
        assert len(written) <= 5

    tell(story)


def test_many_claims_share_the_time_for_snapshots() -> None:
    async def story(tenancy: Tenancy) -> None:
        for number in range(50):
            claim(tenancy, f"data-{number}")
        claim(tenancy, "data", "blue")
        tenancy.back_up(NAB, csiSnapshotTimeout="10m")
        await tenancy.settle(15)
        made = tenancy.made_for(NAB)
        assert made is not None
        assert made["spec"]["csiSnapshotTimeout"] == "72s"
        text = (
            "Velero waits at most 72s for each snapshot instead of 10m, because the 50 volume claims of the namespace"
        )
        said = ("True", "SnapshotTimeoutShortened", f"{text} get one hour together")
        assert tenancy.condition(NAB, "Authorized") == said
        assert tenancy.condition(NAB, "DataIncomplete") == ("", "", "")
        await completed(tenancy, stamp(tenancy.clock()), csiVolumeSnapshotsCompleted=50)
        assert tenancy.condition(NAB, "Authorized") == said

    tell(story)


def test_a_backup_of_too_many_claims_is_refused() -> None:
    async def story(tenancy: Tenancy) -> None:
        for number in range(121):
            claim(tenancy, f"data-{number}")
        tenancy.back_up(NAB)
        await tenancy.settle(30)
        assert tenancy.made_for(NAB) is None
        status, reason, message = tenancy.condition(NAB, "Accepted")
        assert (status, reason) == ("False", "PolicyViolation")
        assert "has 121 volume claims" in message
        revision = tenancy.world.history.revision
        await tenancy.settle(3600)
        assert tenancy.world.history.revision == revision, "a refused backup is not asked about again"
        tenancy.edit(NAB, backupSpec={"snapshotVolumes": False})
        await tenancy.settle(30)
        assert tenancy.made_for(NAB) is not None

    tell(story)
