"""Logs and results for tenants: what is served, what is refused, when it is over, and a death at every write of it."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta

import pytest

from foresail.api import velero
from foresail.api.marks import NAMESPACE_UID, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_RESTORE
from foresail.plan import Key
from foresail.selfservice.downloads.decide import MOST_UNANSWERED
from foresail.selfservice.downloads.targets import SERVED, TARGETS
from tests.worlds.process import Moment
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_crashes import deaths
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

NADR = Key("red", "why")
NOT_AVAILABLE = "NonAdminBackupNotAvailable"
Story = Callable[[Tenancy], Awaitable[None]]


def phase(tenancy: Tenancy, key: Key = NADR) -> str:
    return str(tenancy.status(key, NON_ADMIN_DOWNLOAD_REQUEST).get("phase", ""))


def said(tenancy: Tenancy, condition: str, key: Key = NADR) -> tuple[str, str, str]:
    return tenancy.condition(key, condition, NON_ADMIN_DOWNLOAD_REQUEST)


def is_gone(tenancy: Tenancy, key: Key = NADR) -> bool:
    return tenancy.request(key, NON_ADMIN_DOWNLOAD_REQUEST) is None


def asked(tenancy: Tenancy) -> list[dict[str, str]]:
    """Return what Velero is asked for by tenants; what the operator asks for itself, it takes away itself."""
    made = tenancy.velero_objects(velero.DOWNLOAD_REQUEST)
    own = ("results-", "contents-", "volumes-")
    return [each["spec"]["target"] for name, each in made.items() if not name.startswith(own)]


async def restored(tenancy: Tenancy) -> None:
    await backed_up(tenancy)
    tenancy.restore(NAR, NAB.name)
    await tenancy.settle()
    tenancy.velero_says(NAR, "PartiallyFailed", NON_ADMIN_RESTORE, errors=1)
    await tenancy.settle()


# What is served


@pytest.mark.parametrize("target", sorted(each for each in SERVED if each.startswith("Backup")))
def test_a_tenant_gets_the_url_of_a_file_of_the_own_backup(target: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.signs_contents = False  # Velero answers below, whatever the file
        await backed_up(tenancy)
        uid = tenancy.download(NADR, target, NAB.name)
        await tenancy.settle(1)
        assert phase(tenancy) == "New"
        assert said(tenancy, "Processed")[:2] == ("False", "Waiting")
        made = tenancy.velero_objects(velero.DOWNLOAD_REQUEST)[f"nadr-{uid}"]
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        assert made["spec"] == {"target": {"kind": target, "name": name}}
        assert made["metadata"]["annotations"]["openshift.io/oadp-nadr-origin-name"] == NADR.name
        assert made["metadata"]["annotations"]["openshift.io/oadp-nadr-origin-namespace"] == NADR.namespace
        tenancy.velero_answers()
        await tenancy.settle(1)
        status = tenancy.status(NADR, NON_ADMIN_DOWNLOAD_REQUEST)
        assert status["velero"]["status"]["downloadURL"] == f"https://bucket/{name}/{target}"
        assert said(tenancy, "Processed")[:2] == ("True", "Success")
        assert tenancy.phases[NON_ADMIN_DOWNLOAD_REQUEST, uid] == ["", "New", "Created"]

    tell(story)


@pytest.mark.parametrize("target", sorted(each for each in SERVED if each.startswith("Restore")))
def test_a_tenant_gets_the_url_of_a_file_of_the_own_restore(target: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy)
        tenancy.download(NADR, target, NAR.name)
        await tenancy.settle(1)
        tenancy.velero_answers()
        await tenancy.settle(1)
        name = tenancy.status(NAR, NON_ADMIN_RESTORE)["veleroRestore"]["name"]
        assert asked(tenancy) == [{"kind": target, "name": name}]
        assert phase(tenancy) == "Created"

    tell(story)


def test_a_download_waits_for_a_backup_that_still_runs_and_asks_when_it_has_ended() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        tenancy.velero_says(NAB, "InProgress")
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle()
        assert phase(tenancy) == "New"
        assert said(tenancy, "Processed") == (
            "False",
            "Waiting",
            "NonAdminBackup shop is InProgress; the download starts when it finishes",
        )
        assert asked(tenancy) == []
        tenancy.velero_says(NAB, "Failed")
        await tenancy.settle(1)
        assert len(asked(tenancy)) == 1
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert phase(tenancy) == "Created"

    tell(story)


def test_a_download_that_was_there_before_its_backup_goes_ahead_when_that_comes() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle()
        assert phase(tenancy) == "BackingOff"
        await backed_up(tenancy)
        assert len(asked(tenancy)) == 1
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert phase(tenancy) == "Created"

    tell(story)


def test_a_velero_that_does_not_answer_is_no_silence() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle(55)
        assert said(tenancy, "Processed")[:2] == ("False", "Waiting")
        await tenancy.settle(10)
        assert said(tenancy, "Processed")[:2] == ("False", "VeleroSilent")

    tell(story)


# When it is over


def test_a_download_request_is_deleted_with_veleros_when_its_url_expires() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle(1)
        tenancy.velero_answers()
        expires = tenancy.clock() + timedelta(minutes=10)
        await tenancy.settle((expires - tenancy.clock()).total_seconds() - 2)
        assert phase(tenancy) == "Created"
        await tenancy.settle(4)
        assert is_gone(tenancy)
        assert asked(tenancy) == []

    tell(story)


def test_a_request_that_expired_without_an_operator_is_deleted_when_one_starts() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle(1)
        await tenancy.stop()
        tenancy.velero_answers()
        await tenancy.settle(3600)
        tenancy.start()
        await tenancy.settle(5)
        assert is_gone(tenancy)
        assert asked(tenancy) == []

    tell(story)


def test_a_request_that_the_tenant_deletes_takes_its_url_with_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle(1)
        assert len(asked(tenancy)) == 1
        tenancy.delete(NADR, NON_ADMIN_DOWNLOAD_REQUEST)
        await tenancy.settle(1)
        assert asked(tenancy) == []

    tell(story)


def test_a_request_that_cannot_be_read_any_more_takes_its_url_with_it_when_it_is_deleted() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle(1)
        done(tenancy.world.merge(NON_ADMIN_DOWNLOAD_REQUEST, NADR, {"status": {"conditions": 7}}, "tenant", "status"))
        await tenancy.settle(1)
        assert len(asked(tenancy)) == 1
        tenancy.delete(NADR, NON_ADMIN_DOWNLOAD_REQUEST)
        await tenancy.settle(1)
        assert asked(tenancy) == []

    tell(story)


def test_a_download_request_of_somebody_else_s_is_left_alone() -> None:
    async def story(tenancy: Tenancy) -> None:
        origin = {"openshift.io/oadp-nadr-origin-name": "why", "openshift.io/oadp-nadr-origin-namespace": "red"}
        for name, annotations in (("cli-1", {}), ("nadr-77", origin), ("cli-2", {**origin, REQUEST_UID: "77"})):
            body = {
                "metadata": {"name": name, "annotations": annotations},
                "spec": {"target": {"kind": "BackupContents", "name": "all"}},
            }
            done(tenancy.world.create(velero.DOWNLOAD_REQUEST, body, "admin", VELERO))
        await tenancy.settle()
        assert len(asked(tenancy)) == 3

    tell(story)


# What is refused


@pytest.mark.parametrize("target", [*sorted(TARGETS.keys() - SERVED), "Secrets", ""])
def test_any_other_target_is_refused_with_a_reason(target: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.download(NADR, target, NAB.name)
        await tenancy.settle()
        assert phase(tenancy) == "BackingOff"
        assert said(tenancy, "Processed")[:2] == ("False", "TargetNotServed")
        assert asked(tenancy) == []

    tell(story)


def may_not_read_secrets(_user: str, verb: str, resource: str, _namespace: str) -> bool:
    return (verb, resource) != ("get", "secrets")


def test_contents_are_handed_out_if_the_policy_allows_it_and_the_requester_may_read_secrets() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.allow_contents()
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupContents", NAB.name)
        await tenancy.settle()
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        assert asked(tenancy) == [{"kind": "BackupContents", "name": name}]
        assert ("get", "secrets", "red") in tenancy.reviews.asked
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert phase(tenancy) == "Created"

    tell(story)


def test_contents_are_denied_to_a_requester_who_may_not_read_secrets_and_asked_about_once() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.allow_contents()
        tenancy.reviews.may = may_not_read_secrets
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupContents", NAB.name)
        await tenancy.settle()
        assert (phase(tenancy), said(tenancy, "Processed")[:2]) == ("BackingOff", ("False", "ContentsDenied"))
        count = len(tenancy.reviews.asked)
        tenancy.velero_says(NAB, "Completed", warnings=1)
        await tenancy.settle()
        assert (asked(tenancy), len(tenancy.reviews.asked)) == ([], count)

    tell(story)


def test_a_requester_who_loses_access_before_velero_answers_sees_no_url() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.allow_contents()
        await backed_up(tenancy)
        tenancy.download(NADR, "BackupContents", NAB.name)
        await tenancy.settle()
        tenancy.reviews.may = may_not_read_secrets
        await tenancy.settle(120)
        tenancy.velero_answers()
        await tenancy.settle()
        assert said(tenancy, "Processed")[:2] == ("False", "ContentsDenied")
        assert "velero" not in tenancy.status(NADR, NON_ADMIN_DOWNLOAD_REQUEST)

    tell(story)


def test_a_download_that_nobody_is_recorded_for_gets_no_contents() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.allow_contents()
        await backed_up(tenancy)
        body = {"metadata": {"name": NADR.name}, "spec": {"target": {"kind": "BackupContents", "name": NAB.name}}}
        done(tenancy.world.create(NON_ADMIN_DOWNLOAD_REQUEST, body, "tenant", NADR.namespace))
        await tenancy.settle()
        assert said(tenancy, "Processed")[:2] == ("False", "ContentsDenied")
        assert asked(tenancy) == []

    tell(story)


def test_a_flood_of_downloads_leaves_velero_to_others_and_all_are_served_in_the_end() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        flood = [Key("red", f"log-{number:02}") for number in range(35)]
        for key in flood:
            tenancy.download(key, "BackupLog", NAB.name)
        await tenancy.settle()
        assert len(asked(tenancy)) == MOST_UNANSWERED
        waiting = [key for key in flood if said(tenancy, "Processed", key)[1] == "WaitingForTurn"]
        assert len(waiting) == len(flood) - MOST_UNANSWERED
        for _ in range(4):
            tenancy.velero_answers()
            await tenancy.settle(5)
        assert [phase(tenancy, key) for key in flood] == ["Created"] * len(flood)

    tell(story)


def test_a_download_that_is_deleted_makes_room_for_the_next() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        flood = [Key("red", f"log-{number:02}") for number in range(MOST_UNANSWERED + 1)]
        for key in flood:
            tenancy.download(key, "BackupLog", NAB.name)
        await tenancy.settle()
        (last,) = [key for key in flood if said(tenancy, "Processed", key)[1] == "WaitingForTurn"]
        tenancy.delete(next(key for key in flood if key != last), NON_ADMIN_DOWNLOAD_REQUEST)
        await tenancy.settle(5)
        assert said(tenancy, "Processed", last)[1] == "Waiting"
        assert len(asked(tenancy)) == MOST_UNANSWERED
        await tenancy.settle(120)  # until all of them say that Velero is silent

    tell(story)


def test_a_backup_in_another_namespace_is_not_available() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        velero_name = tenancy.status(NAB)["veleroBackup"]["name"]
        for name, target in (("one", NAB.name), ("two", velero_name), ("three", f"red/{NAB.name}")):
            key = Key("blue", name)
            tenancy.download(key, "BackupLog", target)
            await tenancy.settle()
            assert phase(tenancy, key) == "BackingOff"
            text = f"NonAdminBackup {target} does not exist in namespace blue"
            assert said(tenancy, NOT_AVAILABLE, key) == ("True", "Error", text)
        assert asked(tenancy) == []

    tell(story)


@pytest.mark.parametrize(
    ("mark", "value"),
    [
        (REQUEST_UID, "another"),
        (NAMESPACE_UID, "another"),
        ("openshift.io/oadp-nab-origin-namespace", "blue"),
        ("openshift.io/oadp-nab-origin-name", "another"),
    ],
)
def test_a_velero_backup_whose_record_names_another_is_not_shown(mark: str, value: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        body = {"metadata": {"annotations": {mark: value}}}
        done(tenancy.world.merge(velero.BACKUP, Key(VELERO, name), body, "admin"))
        tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle()
        assert phase(tenancy) == "BackingOff"
        assert said(tenancy, NOT_AVAILABLE)[:2] == ("True", "Error")
        assert asked(tenancy) == []

    tell(story)


def test_a_status_that_names_another_velero_backup_leads_nowhere() -> None:
    """Row A1: what stands in the status of a NonAdminBackup is not whose a Velero Backup is."""

    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        body = {"metadata": {"name": "nightly"}, "spec": {}, "status": {"phase": "Completed"}}
        done(tenancy.world.create(velero.BACKUP, body, "admin", VELERO))
        await tenancy.stop()
        forged = {"status": {"veleroBackup": {"nacuuid": "nightly", "name": "nightly"}}}
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, forged, "tenant", "status"))
        tenancy.download(NADR, "BackupLog", NAB.name)
        tenancy.start()
        await tenancy.settle()
        assert all(each["name"] != "nightly" for each in asked(tenancy))
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert phase(tenancy) == "Created"

    tell(story)


def test_a_restore_from_a_velero_backup_of_another_namespace_is_not_shown() -> None:
    """Row A18: where the file lies is read from Velero's objects, and must be this namespace's by their record."""

    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy)
        body = {"metadata": {"name": "nightly"}, "spec": {}, "status": {"phase": "Completed"}}
        done(tenancy.world.create(velero.BACKUP, body, "admin", VELERO))
        name = tenancy.status(NAR, NON_ADMIN_RESTORE)["veleroRestore"]["name"]
        done(tenancy.world.merge(velero.RESTORE, Key(VELERO, name), {"spec": {"backupName": "nightly"}}, "admin"))
        tenancy.download(NADR, "RestoreLog", NAR.name)
        await tenancy.settle()
        assert said(tenancy, NOT_AVAILABLE)[:2] == ("True", "Error")
        assert asked(tenancy) == []

    tell(story)


def test_an_answer_about_something_else_is_thrown_away_and_asked_for_anew() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        uid = tenancy.download(NADR, "BackupLog", NAB.name)
        await tenancy.settle(1)
        other = {"spec": {"target": {"kind": "BackupContents", "name": "nightly"}}}
        done(tenancy.world.merge(velero.DOWNLOAD_REQUEST, Key(VELERO, f"nadr-{uid}"), other, "admin"))
        tenancy.velero_answers()
        await tenancy.settle(2)
        tenancy.velero_answers()
        await tenancy.settle(1)
        url = tenancy.status(NADR, NON_ADMIN_DOWNLOAD_REQUEST)["velero"]["status"]["downloadURL"]
        assert url.endswith("/BackupLog")
        assert "nightly" not in url

    tell(story)


# A death at every write


async def served_and_expired(tenancy: Tenancy) -> None:
    tenancy.back_up(NAB)
    tenancy.download(NADR, "BackupLog", NAB.name)
    tenancy.download(Key("red", "refused"), "BackupContents", NAB.name)
    await tenancy.settle(60)
    assert phase(tenancy) == "Created"
    assert len(asked(tenancy)) == 1
    await tenancy.settle(620)
    assert is_gone(tenancy)
    assert asked(tenancy) == []
    assert phase(tenancy, Key("red", "refused")) == "BackingOff"


async def deleted_at_once(tenancy: Tenancy) -> None:
    tenancy.back_up(NAB)
    await tenancy.settle(30)
    tenancy.download(NADR, "BackupLog", NAB.name)
    await asyncio.sleep(0.012)
    tenancy.delete(NADR, NON_ADMIN_DOWNLOAD_REQUEST)
    await tenancy.settle(30)
    assert asked(tenancy) == []


@pytest.mark.repeats
@pytest.mark.parametrize("story", [served_and_expired, deleted_at_once])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_of_a_download_is_made_good(
    story: Story, after: bool, figure: Callable[[str], None]
) -> None:
    number = 0
    while deaths(story, [Moment(after=after, write=number + 1)]):
        number += 1
    assert number >= 5
    name = getattr(story, "__name__", "")
    figure(f"downloads, {name}: {number} deaths {'after' if after else 'before'} a write")
