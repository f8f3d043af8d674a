"""What is measured of self-service, after stories of tenants."""

from foresail.api.marks import REFRESH
from foresail.api.nonadmin import NON_ADMIN_LOCATION, NON_ADMIN_RESTORE
from foresail.plan import Key
from tests.worlds import virtual_time
from tests.worlds.own_locations import OWN, SECOND, OwnLocations, live
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

Figures = dict[tuple[str, ...], float]
BACKUP, RESTORE = "NonAdminBackup", "NonAdminRestore"


def figures(tenancy: Tenancy) -> Figures:
    """Return each figure by its short name and the values of its labels."""
    assert tenancy.process is not None
    metrics = tenancy.process.loop.controller.metrics  # type: ignore[attr-defined]
    metrics.now = tenancy.clock
    return {
        (sample.name.removeprefix("foresail_selfservice_"), *sample.labels.values()): sample.value
        for family in metrics.collect()
        for sample in family.samples
        if "le" not in sample.labels and not sample.name.endswith("_created")
    }


def test_what_was_made_refused_and_ended_is_counted_by_namespace() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.back_up(Key("red", "wrong"), includedNamespaces=["blue"])
        tenancy.back_up(Key("blue", "empty"))
        tenancy.restore(NAR, "shop")
        await tenancy.settle()
        tenancy.velero_says(NAR, "PartiallyFailed", NON_ADMIN_RESTORE, errors=1)
        tenancy.velero_says(Key("blue", "empty"), "Completed", progress={"totalItems": 0})
        await tenancy.settle()
        found = figures(tenancy)
        counted = {key: value for key, value in found.items() if key[0].endswith("_total") and value}
        assert counted == {
            ("created_total", "red", BACKUP): 1,
            ("created_total", "blue", BACKUP): 1,
            ("created_total", "red", RESTORE): 1,
            ("refused_total", "red", BACKUP, "InvalidBackupSpec"): 1,
            ("ended_total", "red", BACKUP, "Completed"): 1,
            ("ended_total", "blue", BACKUP, "Completed"): 1,
            ("ended_total", "red", RESTORE, "PartiallyFailed"): 1,
            ("data_incomplete_total", "blue", BACKUP, "NothingBackedUp"): 1,
        }
        assert [found["backups", "red", each] for each in ("stored", "active")] == [1, 0]
        assert found["quota", "red", "stored"] == 9

    tell(story, {"stored": 9})


def test_a_request_over_its_quota_is_counted_once_however_often_it_is_reconciled() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.back_up(Key("red", "more"))
        await tenancy.settle()
        assert ("quota", "red", "active") not in figures(tenancy)
        tenancy.set_quotas(stored=1, active=5)
        await tenancy.settle()
        found = figures(tenancy)
        assert found["quota", "red", "active"] == 5
        assert found["refused_total", "red", BACKUP, "QuotaExceeded"] == 1
        assert (found["backups", "red", "stored"], found["quota", "red", "stored"]) == (1, 1)

    tell(story, {"stored": 1})


def test_who_waits_for_velero_is_shown_and_how_long_is_measured() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        tenancy.back_up(Key("red", "second"))
        await tenancy.settle(60)
        assert figures(tenancy)["waiting", "red", BACKUP] == 2
        assert figures(tenancy)["queue_wait_seconds_count", BACKUP] == 0
        tenancy.velero_says(NAB, "InProgress")
        await tenancy.settle()
        found = figures(tenancy)
        assert found["waiting", "red", BACKUP] == 1
        assert found["queue_wait_seconds_count", BACKUP] == found["waited_seconds_count", "red", BACKUP] == 1
        assert found["queue_wait_seconds_sum", BACKUP] == found["waited_seconds_sum", "red", BACKUP] > 0
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle()
        assert figures(tenancy)["waiting", "red", BACKUP] == 1, "it is read again at the start"
        tenancy.edit(Key("red", "second"), forceDeleteBackup=True)
        await tenancy.settle()
        assert ("waiting", "red", BACKUP) not in figures(tenancy)

    tell(story)


def test_each_deletion_that_velero_could_not_do_is_counted_and_is_shown_until_it_could() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(1)
        for attempt in (1, 2):
            tenancy.velero_deletes("the bucket does not answer")
            await tenancy.settle(1)
            assert figures(tenancy)["failed_deletions_total", "red"] == attempt
            assert figures(tenancy)["failing_deletions", "red"] == 1
            await tenancy.settle(30 * attempt)
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert ("failing_deletions", "red") not in figures(tenancy)
        assert figures(tenancy)["failed_deletions_total", "red"] == 2

    tell(story)


def test_the_figures_of_a_namespace_go_with_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        assert "red" in {label for key in figures(tenancy) for label in key}
        tenancy.delete_namespace("red")
        await tenancy.settle()
        assert "red" not in {label for key in figures(tenancy) for label in key}

    tell(story)


def waiting_requests(tenancy: Tenancy) -> Figures:
    return {key[1:]: value for key, value in figures(tenancy).items() if key[0] == "waiting_requests"}


def test_each_request_that_waits_is_shown_by_namespace_and_reason_and_no_other() -> None:
    async def live() -> None:
        tenancy = Tenancy({"stored": 2}, window=1)
        tenancy.start()
        await backed_up(tenancy)
        tenancy.back_up(Key("red", "second"))
        await tenancy.settle()
        tenancy.back_up(Key("red", "third"))
        tenancy.back_up(Key("blue", "one"))
        await tenancy.settle()
        assert waiting_requests(tenancy) == {
            ("red", BACKUP, "Waiting"): 1,
            ("red", BACKUP, "QuotaExceeded"): 1,
            ("blue", BACKUP, "WaitingForTurn"): 1,
        }
        tenancy.velero_says(Key("red", "second"), "Completed", progress={"totalItems": 1})
        await tenancy.settle()
        assert waiting_requests(tenancy) == {("red", BACKUP, "QuotaExceeded"): 1, ("blue", BACKUP, "Waiting"): 1}
        tenancy.velero_says(Key("blue", "one"), "InProgress")
        tenancy.delete(Key("red", "third"))
        await tenancy.settle()
        assert waiting_requests(tenancy) == {}
        await tenancy.stop()

    virtual_time.run(live())


def _locations(tenancy: Tenancy) -> dict[str, float]:
    return {key[1]: value for key, value in figures(tenancy).items() if key[0] == "locations" and value}


def test_own_locations_are_counted_by_state() -> None:
    async def story(tenancy: OwnLocations) -> None:
        assert _locations(tenancy) == {}
        tenancy.ask()
        await tenancy.settle(5)
        assert _locations(tenancy) == {"NoCredentials": 1}
        tenancy.write_secret()
        tenancy.ask(Key("red", "inside"), config={"s3Url": "http://169.254.169.254"})
        await tenancy.settle(60)
        assert _locations(tenancy) == {"WaitingForApproval": 1, "Refused": 1}
        tenancy.decide("approve")
        await tenancy.settle(5)
        assert _locations(tenancy) == {"Available": 1, "Refused": 1}
        tenancy.reachable = False
        made = tenancy.made()
        assert made is not None
        tenancy.validate(Key(VELERO, made["metadata"]["name"]))
        await tenancy.settle(5)
        assert _locations(tenancy) == {"Unavailable": 1, "Refused": 1}
        tenancy.write_secret(SECOND)
        refresh = {"metadata": {"annotations": {REFRESH: "now"}}}
        done(tenancy.world.merge(NON_ADMIN_LOCATION, OWN, refresh, "tenant"))
        await tenancy.settle(5)
        assert _locations(tenancy) == {"ChangeWaitsForApproval": 1, "Refused": 1}
        tenancy.decide("reject")
        await tenancy.settle(5)
        assert _locations(tenancy) == {"Rejected": 1, "Refused": 1}
        for key in (OWN, Key("red", "inside")):
            tenancy.delete(key, NON_ADMIN_LOCATION)
        await tenancy.settle(5)
        assert _locations(tenancy) == {}

    live(story)
