"""Finding 1.8: a policy protects young backups and the last good ones from deletion by their tenants."""

from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.kube.failures import failure
from foresail.plan import Key, Kind
from tests.worlds.documents import Document
from tests.worlds.garbage import NAMESPACE
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import Answer, done

FLAGS = ["deleteBackup", "forceDeleteBackup"]


def protect(tenancy: Tenancy, **deletion: Any) -> None:  # noqa: ANN401 - JSON
    done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"deletion": deletion}}, "admin"))


async def complete(tenancy: Tenancy, name: str, days: float = 1, **spec: Any) -> Key:  # noqa: ANN401 - JSON
    key = Key("red", name)
    tenancy.back_up(key, **spec)
    await tenancy.settle(5)
    began, expires = stamp(tenancy.clock()), stamp(tenancy.clock() + timedelta(days=days))
    done_items = {"totalItems": 3, "itemsBackedUp": 3}
    tenancy.velero_says(key, "Completed", startTimestamp=began, expiration=expires, progress=done_items)
    await tenancy.settle(5)
    return key


def is_protected(tenancy: Tenancy, key: Key) -> bool:
    return tenancy.condition(key, "Deleting")[:2] == ("False", "DeletionProtected")


@pytest.mark.parametrize("flag", FLAGS)
def test_a_backup_younger_than_the_minimum_age_is_deleted_when_it_is_old_enough(flag: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, minimumAge="20m")
        await backed_up(tenancy)
        tenancy.edit(NAB, NON_ADMIN_BACKUP, **{flag: True})
        await tenancy.settle()
        assert is_protected(tenancy, NAB)
        assert "keeps backups for 20m; NonAdminBackup shop is deleted at 2026-" in tenancy.condition(NAB, "Deleting")[2]
        assert tenancy.status(NAB)["phase"] == "Created"
        assert len(tenancy.velero_objects()) == 1
        assert not tenancy.velero_objects(velero.DELETE_REQUEST)
        tenancy.restore(NAR, "shop")
        await tenancy.settle()
        assert tenancy.status(NAR, NON_ADMIN_RESTORE)["phase"] == "Created", "it can still be restored"
        await tenancy.settle(1200)
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


@pytest.mark.parametrize("flag", FLAGS)
def test_the_last_good_backups_are_deleted_only_after_newer_ones(flag: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, keepLastGood=1)
        old, new = await complete(tenancy, "old"), await complete(tenancy, "new")
        for key in (old, new):
            tenancy.edit(key, NON_ADMIN_BACKUP, **{flag: True})
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(old) is None
        assert is_protected(tenancy, new)
        newest = await complete(tenancy, "newest")
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(new) is None
        assert tenancy.status(newest)["phase"] == "Created"

    tell(story)


def test_a_policy_that_protects_no_longer_lets_the_deletion_go_ahead() -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, keepLastGood=1)
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert is_protected(tenancy, NAB)
        protect(tenancy, keepLastGood=0)
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_failed_or_waiting_backup_is_not_protected_and_neither_is_a_namespace() -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, minimumAge="20m", keepLastGood=1)
        failed, waiting = Key("red", "failed"), Key("red", "waiting")
        for key in (failed, waiting):
            tenancy.back_up(key)
        await tenancy.settle(5)
        tenancy.velero_says(failed, "Failed")
        await backed_up(tenancy)
        for key in (failed, waiting, NAB):
            tenancy.edit(key, deleteBackup=True)
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(failed) is None
        assert tenancy.request(waiting) is None
        assert is_protected(tenancy, NAB)
        tenancy.delete_namespace("red")
        await tenancy.settle()
        assert Key("", "red") not in tenancy.world.history.present(NAMESPACE)
        assert len(tenancy.velero_objects()) == 1

    tell(story)


def test_a_newer_backup_of_a_part_of_the_namespace_does_not_replace_a_whole_one() -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, keepLastGood=1)
        nothing = {"matchLabels": {"no": "such"}}
        whole = await complete(tenancy, "whole")
        part = await complete(tenancy, "part", labelSelector=nothing)
        await complete(tenancy, "part-again", labelSelector=nothing)
        for key in (whole, part):
            tenancy.edit(key, NON_ADMIN_BACKUP, deleteBackup=True)
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert is_protected(tenancy, whole)
        assert tenancy.request(part) is None, "the same part was backed up again"

    tell(story)


@pytest.mark.parametrize(
    ("days", "spec"),
    [
        (0.5, {}),
        (1, {"snapshotVolumes": False}),
        (1, {"defaultVolumesToFsBackup": False}),
        (1, {"snapshotMoveData": False}),
    ],
    ids=str,
)
def test_a_newer_backup_that_lives_shorter_or_saves_less_does_not_replace_a_good_one(
    days: float, spec: dict[str, Any]
) -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, keepLastGood=1)
        allowed = {"spec": {"backup": {"fileSystem": "Allowed"}}}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), allowed, "admin"))
        good = await complete(tenancy, "good")
        await complete(tenancy, "hollow", days, **spec)
        tenancy.edit(good, NON_ADMIN_BACKUP, deleteBackup=True)
        await tenancy.settle()
        assert is_protected(tenancy, good)
        await complete(tenancy, "better", defaultVolumesToFsBackup=True, snapshotMoveData=True)
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(good) is None

    tell(story)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_restore_refused_before_the_protection_is_reported_stays_refused(flag: str) -> None:
    """The backup counts as being deleted until its protection is written; a restore may be looked at before that."""

    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, minimumAge="20m")
        await backed_up(tenancy)
        merge = tenancy.world.merge
        is_slow = True

        def slow(kind: Kind, key: Key, patch: Document, by: str, subresource: str = "") -> Answer:
            if is_slow and kind == NON_ADMIN_BACKUP and by != "tenant":
                return failure(503, "ServiceUnavailable", "not now")
            return merge(kind, key, patch, by, subresource)

        tenancy.world.merge = slow  # type: ignore[method-assign]
        tenancy.edit(NAB, NON_ADMIN_BACKUP, **{flag: True})
        tenancy.restore(NAR, "shop")
        await tenancy.settle(5)
        assert "is being deleted" in tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[2]
        is_slow = False
        await tenancy.settle()
        assert is_protected(tenancy, NAB)
        assert tenancy.status(NAR, NON_ADMIN_RESTORE)["phase"] == "BackingOff"

    tell(story)


@pytest.mark.parametrize("flag", FLAGS)
def test_a_backup_stays_while_the_policy_that_may_protect_it_cannot_be_read(flag: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, keepLastGood=1)
        await backed_up(tenancy)
        failed = Key("red", "failed")
        tenancy.back_up(failed)
        await tenancy.settle(5)
        tenancy.velero_says(failed, "Failed")
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"priority": "high"}}, "admin"))
        for key in (NAB, failed):
            tenancy.edit(key, NON_ADMIN_BACKUP, **{flag: True})
        await tenancy.settle(600)
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(failed) is None, "no policy protects a failed backup"
        assert is_protected(tenancy, NAB)
        assert "SelfServicePolicy default cannot be read" in tenancy.condition(NAB, "Deleting")[2]
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), {"spec": {"priority": 0}}, "admin"))
        await tenancy.settle(600)
        assert "keeps the last 1 completed backups" in tenancy.condition(NAB, "Deleting")[2]
        protect(tenancy, keepLastGood=0)
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_clock_that_is_ahead_does_not_end_the_minimum_age() -> None:
    async def story(tenancy: Tenancy) -> None:
        protect(tenancy, minimumAge="20m")
        await backed_up(tenancy)
        assert tenancy.controller is not None
        tenancy.controller.cluster.skew = lambda: timedelta(hours=1)
        tenancy.edit(NAB, NON_ADMIN_BACKUP, deleteBackup=True)
        await tenancy.settle(1500)  # the operator's clock has passed it by then, in truth or not
        assert is_protected(tenancy, NAB)
        assert "60 minutes ahead of" in tenancy.condition(NAB, "Deleting")[2]
        tenancy.controller.cluster.skew = timedelta
        await tenancy.settle(600)
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)
