"""Refusals end when their cause ends: corrected requests, fixed policies, late backups, restored namespaces."""

from collections.abc import Callable
from datetime import timedelta

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import VELERO, Tenancy, asked_by_tenant
from tests.worlds.test_selfservice_metrics import figures
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

OPT_IN = "foresail.dev/self-service"


def label(tenancy: Tenancy, value: str | None) -> None:
    done(tenancy.world.merge(NAMESPACE, Key("", "red"), {"metadata": {"labels": {OPT_IN: value}}}, "admin"))


def full(tenancy: Tenancy) -> None:
    tenancy.set_quotas(stored=0)


def unavailable(tenancy: Tenancy) -> None:
    tenancy.make_location("default", "Unavailable", default=True)


def without_policy(tenancy: Tenancy) -> None:
    label(tenancy, None)


HINDERED: dict[str, tuple[Callable[[Tenancy], None], Callable[[Tenancy], None]]] = {
    "QuotaExceeded": (full, lambda tenancy: tenancy.set_quotas(stored=1)),
    "LocationUnavailable": (unavailable, lambda tenancy: tenancy.edit_location("default", velero.AVAILABLE)),
    "NoPolicy": (without_policy, lambda tenancy: label(tenancy, "enabled")),
}


@pytest.mark.parametrize("restarts", [False, True], ids=["in one life", "across a restart"])
@pytest.mark.parametrize("reason", HINDERED)
def test_a_corrected_backup_that_then_waits_goes_ahead(reason: str, *, restarts: bool) -> None:
    hinder, help_it = HINDERED[reason]

    async def story(tenancy: Tenancy) -> None:
        uid = tenancy.back_up(NAB, includedNamespaces=["blue"])
        await tenancy.settle()
        hinder(tenancy)
        tenancy.edit(NAB, backupSpec={"includedNamespaces": None})
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", reason)
        assert tenancy.phases[NON_ADMIN_BACKUP, uid] == ["", "BackingOff"]
        if restarts:
            await tenancy.stop()
            tenancy.start()
            await tenancy.settle()
        help_it(tenancy)
        await tenancy.settle()
        assert tenancy.phases[NON_ADMIN_BACKUP, uid] == ["", "BackingOff", "Created"]

    tell(story)


def test_a_corrected_restore_whose_backup_is_not_ready_goes_ahead() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = tenancy.restore(NAR, "shop", excludedNamespaces=["blue"])
        await tenancy.settle()
        tenancy.edit(NAR, NON_ADMIN_RESTORE, restoreSpec={"excludedNamespaces": None})
        await tenancy.settle()
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[:2] == ("False", "BackupNotReady")
        assert tenancy.phases[NON_ADMIN_RESTORE, uid] == ["", "BackingOff"]
        await backed_up(tenancy)
        assert tenancy.phases[NON_ADMIN_RESTORE, uid] == ["", "BackingOff", "Created"]

    tell(story)


def test_what_a_policy_forbids_goes_ahead_when_the_policy_allows_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("archive")
        tenancy.back_up(NAB, storageLocation="archive")
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "PolicyViolation")
        tenancy.allow_locations("archive")
        await tenancy.settle()
        assert tenancy.status(NAB)["phase"] == "Created"

    tell(story)


def test_a_restore_that_comes_before_its_backup_waits_for_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = tenancy.restore(NAR, "shop")
        await tenancy.settle()
        said = tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)
        assert said[:2] == ("False", "BackupNotReady")
        assert said[2].startswith("NonAdminBackup shop does not exist in namespace red")
        await backed_up(tenancy)
        assert tenancy.phases[NON_ADMIN_RESTORE, uid] == ["", "New", "Created"]

    tell(story)


@pytest.mark.parametrize("kind", [NON_ADMIN_BACKUP, NON_ADMIN_RESTORE], ids=["backup", "restore"])
def test_a_request_that_a_restore_brought_back_runs_only_when_somebody_asks(kind: object) -> None:
    is_backup = kind is NON_ADMIN_BACKUP
    key, of = (NAB, NON_ADMIN_BACKUP) if is_backup else (NAR, NON_ADMIN_RESTORE)

    async def story(tenancy: Tenancy) -> None:
        if not is_backup:
            await backed_up(tenancy)
        spec = {"backupSpec": {}} if is_backup else {"restoreSpec": {"backupName": "shop"}}
        labels = {velero.RESTORE_NAME_LABEL: "bring-back"}
        body = {"metadata": {"name": key.name, "labels": labels}, "spec": spec}
        done(tenancy.world.create(of, body, "velero", key.namespace))
        await tenancy.settle()
        status, reason, message = tenancy.condition(key, "Accepted", of)
        assert (status, reason) == ("False", "RestoredFromBackup")
        assert message.endswith(f"kubectl label {of.name.lower()} {key.name} --namespace red velero.io/restore-name-")
        assert tenancy.status(key, of)["phase"] == "New"
        assert tenancy.made_for(key, of) is None
        asked = {"labels": None, "annotations": asked_by_tenant(key.name)["annotations"]}  # as the API server does
        done(tenancy.world.merge(of, key, {"metadata": asked}, "tenant"))
        await tenancy.settle()
        assert tenancy.status(key, of)["phase"] == "Created"

    tell(story)


def remove_velero_backup(tenancy: Tenancy) -> None:
    for name in tenancy.velero_objects():
        done(tenancy.world.delete(velero.BACKUP, Key(VELERO, name)))


def test_a_clock_that_is_behind_does_not_keep_the_request_of_an_expired_backup() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        expires = tenancy.clock() + timedelta(minutes=5)  # by Velero's clock it is now
        tenancy.velero_says(NAB, "Completed", expiration=stamp(expires), progress={"totalItems": 3})
        await tenancy.settle(10)
        remove_velero_backup(tenancy)
        await tenancy.settle(30)
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "VeleroBackupNotFound")
        await tenancy.settle(300)
        assert tenancy.request(NAB) is None

    tell(story)


def totals(tenancy: Tenancy) -> dict[tuple[str, ...], float]:
    return {key: each for key, each in figures(tenancy).items() if key[0].endswith("_total")}


def test_a_velero_backup_that_an_administrator_deletes_counts_as_no_failure() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        before = totals(tenancy)
        remove_velero_backup(tenancy)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Succeeded")[:2] == ("True", "Completed")
        assert totals(tenancy) == before, "so no alert fires"

    tell(story)


def test_a_download_of_a_corrected_backup_waits_with_it() -> None:
    async def live() -> None:
        tenancy = Tenancy({"stored": 0})
        tenancy.start()
        tenancy.back_up(NAB, includedNamespaces=["blue"])
        await tenancy.settle()
        tenancy.edit(NAB, backupSpec={"includedNamespaces": None})
        await tenancy.settle()
        tenancy.download(Key("red", "why"), "BackupLog", "shop")
        await tenancy.settle()
        found = next(iter(tenancy.world.history.present(NON_ADMIN_DOWNLOAD_REQUEST).values()))
        assert [each["reason"] for each in found["status"]["conditions"]] == ["Waiting"]
        await tenancy.stop()

    virtual_time.run(live())
