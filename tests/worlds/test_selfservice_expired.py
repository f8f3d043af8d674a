"""Backups that have expired and that Velero has not collected yet: nobody counts them, nobody restores from them."""

from datetime import timedelta

from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.plan import Key
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_metrics import figures
from tests.worlds.test_selfservice_paths import NAB, NAR, tell
from tests.worlds.world import done

HOUR = timedelta(hours=1)


async def complete(tenancy: Tenancy, key: Key, lives: timedelta) -> None:
    tenancy.back_up(key)
    await tenancy.settle()
    expires = stamp(tenancy.clock() + lives)
    tenancy.velero_says(key, "Completed", expiration=expires, progress={"totalItems": 3, "itemsBackedUp": 3})
    await tenancy.settle(5)


def test_an_expired_backup_makes_room_at_the_moment_it_expires() -> None:
    async def story(tenancy: Tenancy) -> None:
        await complete(tenancy, NAB, HOUR)
        second = Key("red", "second")
        tenancy.back_up(second)
        await tenancy.settle(3000)
        assert tenancy.condition(second, "Accepted")[:2] == ("False", "QuotaExceeded")
        await tenancy.settle(700)
        assert tenancy.made_for(NAB) is not None, "Velero has not collected it"
        assert tenancy.status(second)["phase"] == "Created"

    tell(story, {"stored": 1})


def test_short_lived_backups_take_no_more_than_twice_the_quota() -> None:
    async def story(tenancy: Tenancy) -> None:
        for number in range(2):
            await complete(tenancy, Key("red", f"brief-{number}"), timedelta(minutes=1))
            await tenancy.settle(60)
        third = Key("red", "brief-2")
        tenancy.back_up(third)
        await tenancy.settle(3600)
        assert tenancy.condition(third, "Accepted")[:2] == ("False", "QuotaExceeded")
        assert len(tenancy.velero_objects()) == 2

    tell(story, {"stored": 1})


def test_the_metric_counts_what_the_quota_counts() -> None:
    async def story(tenancy: Tenancy) -> None:
        await complete(tenancy, NAB, HOUR)
        assert figures(tenancy)["backups", "red", "stored"] == 1
        await tenancy.settle(3700)
        assert tenancy.made_for(NAB) is not None, "Velero has not collected it"
        assert figures(tenancy)["backups", "red", "stored"] == 0, "else ForesailTenantQuotaFull would fire"
        second = Key("red", "second")
        await complete(tenancy, second, HOUR)
        assert figures(tenancy)["backups", "red", "stored"] == 1
        await tenancy.settle(3700)
        assert figures(tenancy)["backups", "red", "stored"] == 1, "of two expired, as many as the quota do not count"

    tell(story, {"stored": 1})


def test_nobody_restores_from_an_expired_backup() -> None:
    async def story(tenancy: Tenancy) -> None:
        await complete(tenancy, NAB, HOUR)
        await tenancy.settle(3700)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle()
        status, reason, message = tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)
        assert (status, reason) == ("False", "BackupExpired")
        assert message.startswith(f"NonAdminBackup {NAB.name} expired at ")
        assert tenancy.made_for(NAR, NON_ADMIN_RESTORE) is None

    tell(story)


def test_an_expired_backup_is_not_the_last_good_one() -> None:
    async def story(tenancy: Tenancy) -> None:
        rules = {"spec": {"deletion": {"keepLastGood": 1}}}
        done(tenancy.world.merge(SELF_SERVICE_POLICY, Key("", "default"), rules, "admin"))
        await complete(tenancy, NAB, timedelta(days=30))
        await complete(tenancy, Key("red", "brief"), timedelta(minutes=1))
        await tenancy.settle(120)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Deleting")[:2] == ("False", "DeletionProtected")

    tell(story)
