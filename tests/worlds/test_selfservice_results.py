"""Why it failed: the results are read once, stand in the condition, and nothing is left; a death at every write."""

from collections.abc import Awaitable, Callable

import pytest

from foresail.api import velero
from foresail.api.marks import NAMESPACE_UID, REQUEST_UID
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE, RestoredGroup, RestoredItems
from foresail.plan import Key, Kind
from foresail.selfservice.results.file import Lines
from foresail.selfservice.results.view import Found
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Moment
from tests.worlds.tenancy import VELERO, Tenancy
from tests.worlds.test_selfservice_crashes import deaths
from tests.worlds.test_selfservice_paths import NAB, NAR, backed_up, tell
from tests.worlds.world import done

Story = Callable[[Tenancy], Awaitable[None]]
GONE = Found(problem="the bucket answers 404")
WHY = "Velero reports: pods web: it is not to be had"
_LOGS = "Read the log with foresail backup logs shop"
COULD_NOT = f"Velero's results could not be read (the bucket answers 404). {_LOGS}"


def asked(tenancy: Tenancy) -> list[str]:
    made = tenancy.velero_objects(velero.DOWNLOAD_REQUEST)
    return sorted(each for each in made if not each.startswith(("contents-", "volumes-")))


def message(tenancy: Tenancy, kind: Kind = NON_ADMIN_BACKUP) -> str:
    return tenancy.condition(NAB if kind is NON_ADMIN_BACKUP else NAR, "Succeeded", kind)[2]


async def failed(tenancy: Tenancy, phase: str = "PartiallyFailed") -> str:
    uid = tenancy.back_up(NAB)
    await tenancy.settle(15)
    tenancy.velero_says(NAB, phase, errors=2)
    await tenancy.settle(1)
    return uid


@pytest.mark.parametrize(("phase", "word"), [("PartiallyFailed", "partially failed"), ("Failed", "failed")])
def test_a_backup_that_failed_says_why(phase: str, word: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = await failed(tenancy, phase)
        assert tenancy.condition(NAB, "Succeeded") == ("False", phase, f"Backup {word}: 2 errors")
        assert asked(tenancy) == [f"results-{uid}"]
        made = tenancy.velero_objects(velero.DOWNLOAD_REQUEST)[f"results-{uid}"]
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        assert made["spec"] == {"target": {"kind": "BackupResults", "name": name}}
        assert made["metadata"]["annotations"][REQUEST_UID] == uid
        since = tenancy.status(NAB)["conditions"][-1]["lastTransitionTime"]
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert tenancy.condition(NAB, "Succeeded") == ("False", phase, f"Backup {word}: 2 errors. {WHY}")
        assert tenancy.status(NAB)["conditions"][-1]["lastTransitionTime"] == since
        assert asked(tenancy) == []
        assert [each.url for each in tenancy.read] == [f"https://bucket/{name}/BackupResults"]
        assert {each.namespace for each in tenancy.read} == {"red"}

    tell(story)


def test_a_restore_that_failed_says_why() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.restore(NAR, NAB.name)
        await tenancy.settle()
        tenancy.velero_says(NAR, "PartiallyFailed", NON_ADMIN_RESTORE, errors=1)
        await tenancy.settle(1)
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert message(tenancy, NON_ADMIN_RESTORE) == f"Restore partially failed: 1 error. {WHY}"
        assert tenancy.read[0].url.endswith("/RestoreResults")
        assert asked(tenancy) == []

    tell(story)


RESTORED = RestoredItems(created=RestoredGroup(1, ("ConfigMap gone",)), left=RestoredGroup(2, ("ConfigMap settings",)))
TOLD = "Restore completed. Created 1 (ConfigMap gone); left 2 as they are (ConfigMap settings and 1 more)"


async def restored(tenancy: Tenancy, phase: str = "Completed", **status: object) -> str:
    await backed_up(tenancy)
    uid = tenancy.restore(NAR, NAB.name)
    await tenancy.settle()
    tenancy.results = Found(Lines(("it exists",)), restored=RESTORED)
    tenancy.velero_says(NAR, phase, NON_ADMIN_RESTORE, **{"completionTimestamp": tenancy.now(), **status})
    await tenancy.settle(1)
    return uid


def test_a_complete_restore_says_what_it_did() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = await restored(tenancy, warnings=2)
        assert asked(tenancy) == [f"results-{uid}", f"results-list-{uid}"]
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE) == ("True", "Completed", TOLD)
        status = tenancy.status(NAR, NON_ADMIN_RESTORE)["restoredItems"]
        assert status == {
            "created": {"count": 1, "names": ["ConfigMap gone"]},
            "left": {"count": 2, "names": ["ConfigMap settings"]},
        }
        assert asked(tenancy) == []
        await tenancy.stop()
        tenancy.start()
        await tenancy.settle(30)
        assert message(tenancy, NON_ADMIN_RESTORE) == TOLD
        assert len(tenancy.read) == 1

    tell(story)


def test_a_restore_without_warnings_needs_the_list_alone() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = await restored(tenancy)
        assert asked(tenancy) == [f"results-list-{uid}"]
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert [(query.url, query.list_url.rpartition("/")[2]) for query in tenancy.read] == [
            ("", "RestoreResourceList")
        ]
        assert message(tenancy, NON_ADMIN_RESTORE) == TOLD

    tell(story)


def test_a_restore_that_failed_says_what_it_did_before_the_cause() -> None:
    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy, "PartiallyFailed", errors=1)
        tenancy.velero_answers()
        await tenancy.settle(1)
        begin, _, end = TOLD.partition(". ")
        assert message(tenancy, NON_ADMIN_RESTORE) == (
            f"{begin.replace('completed', 'partially failed: 1 error')}. {end}. Velero reports: it exists"
        )

    tell(story)


def test_a_restore_whose_list_cannot_be_read_says_so_and_is_not_asked_again() -> None:
    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy, warnings=1)
        tenancy.results = Found(Lines(("it exists",)), "the bucket answers 404")
        tenancy.velero_answers()
        await tenancy.settle(120)
        assert len(tenancy.read) == 4
        assert "could not be read (the bucket answers 404)" in message(tenancy, NON_ADMIN_RESTORE)
        await tenancy.settle(3600)
        assert len(tenancy.read) == 4
        assert asked(tenancy) == []

    tell(story)


def test_restores_that_ended_before_an_upgrade_are_left_alone() -> None:
    async def story(tenancy: Tenancy) -> None:
        await restored(tenancy, completionTimestamp="2020-01-01T00:00:00Z")
        assert asked(tenancy) == []

    tell(story)


@pytest.mark.parametrize("phase", ["Completed", "FailedValidation", "InProgress"])
def test_only_these_reviews_are_sent(phase: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await failed(tenancy, phase)
        await tenancy.settle()
        assert asked(tenancy) == []
        assert tenancy.read == []

    tell(story)


def test_what_was_read_is_not_read_again_by_whoever_comes_next() -> None:
    async def story(tenancy: Tenancy) -> None:
        await failed(tenancy)
        tenancy.velero_answers()
        await tenancy.settle(1)
        for _ in range(3):
            await tenancy.stop()
            tenancy.start()
            await tenancy.settle(30)
        tenancy.velero_says(NAB, "PartiallyFailed", errors=2, expiration="2030-01-01T00:00:00Z")
        await tenancy.settle(1)
        assert message(tenancy).endswith(WHY)
        assert len(tenancy.read) == 1

    tell(story)


def test_what_cannot_be_read_is_tried_four_times_and_then_says_how_to_ask() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.results = GONE
        await failed(tenancy)
        tenancy.velero_answers()
        for seconds, tries in ((2, 1), (5, 2), (20, 3), (61, 4)):
            await tenancy.settle(seconds)
            assert len(tenancy.read) == tries
        await tenancy.settle(1)
        assert message(tenancy) == f"Backup partially failed: 2 errors. {COULD_NOT} -n red"
        assert asked(tenancy) == []
        await tenancy.settle(3600)
        assert len(tenancy.read) == 4

    tell(story)


def test_what_can_be_read_at_the_second_try_is() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.results = GONE
        await failed(tenancy)
        tenancy.velero_answers()
        await tenancy.settle(2)
        tenancy.results = Found(Lines(("it was late",)))
        await tenancy.settle(5)
        assert message(tenancy).endswith("Velero reports: it was late")
        assert len(tenancy.read) == 2

    tell(story)


def test_a_velero_that_does_not_answer_is_not_waited_for_for_ever() -> None:
    async def story(tenancy: Tenancy) -> None:
        await failed(tenancy)
        await tenancy.settle(590)
        assert len(asked(tenancy)) == 1
        await tenancy.settle(20)
        assert "Velero did not provide their download URL" in message(tenancy)
        assert asked(tenancy) == []
        assert tenancy.read == []

    tell(story)


def test_a_status_that_comes_to_another_outcome_is_explained_anew() -> None:
    async def story(tenancy: Tenancy) -> None:
        await failed(tenancy)
        tenancy.velero_answers()
        await tenancy.settle(1)
        tenancy.velero_says(NAB, "PartiallyFailed", errors=3)
        await tenancy.settle(1)
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert message(tenancy) == f"Backup partially failed: 3 errors. {WHY}"
        assert len(tenancy.read) == 2

    tell(story)


@pytest.mark.parametrize("how", ["deleted", "flagged", "forced", "namespace"])
def test_a_deleted_request_cancels_its_read(how: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        await failed(tenancy)
        assert len(asked(tenancy)) == 1
        if how == "namespace":
            tenancy.delete_namespace("red")
        elif how == "deleted":
            tenancy.delete(NAB)
        else:
            flag = "deleteBackup" if how == "flagged" else "forceDeleteBackup"
            tenancy.edit(NAB, NON_ADMIN_BACKUP, **{flag: True})
        await tenancy.settle(30)
        tenancy.velero_deletes()
        await tenancy.settle(30)
        assert asked(tenancy) == []
        assert tenancy.read == []

    tell(story)


def test_the_next_request_of_the_same_name_hears_nothing_of_the_one_before() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.results = Found(Lines(("of the first",)))
        first = await failed(tenancy)
        tenancy.velero_answers()
        await tenancy.stop()
        await tenancy.settle(1)
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": None}}, "tenant"))
        tenancy.delete(NAB)
        tenancy.results = Found(Lines(("of the second",)))
        second = tenancy.back_up(NAB)
        tenancy.start()
        await tenancy.settle(15)
        tenancy.velero_says(NAB, "Failed")
        await tenancy.settle(1)
        assert asked(tenancy) == [f"results-{second}"]
        assert first != second
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert message(tenancy) == "Backup failed. Velero reports: of the second"

    tell(story)


@pytest.mark.parametrize("mark", [REQUEST_UID, NAMESPACE_UID, "openshift.io/oadp-nab-origin-name"])
def test_of_a_velero_backup_whose_record_names_another_nothing_is_asked(mark: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle(15)
        await tenancy.stop()
        tenancy.velero_says(NAB, "Failed")
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        body = {"metadata": {"annotations": {mark: "another"}}}
        done(tenancy.world.merge(velero.BACKUP, Key(VELERO, name), body, "admin"))
        tenancy.start()
        await tenancy.settle()
        assert asked(tenancy) == []

    tell(story)


def test_an_answer_about_something_else_is_thrown_away_and_never_read() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = await failed(tenancy)
        other = {"spec": {"target": {"kind": "BackupContents", "name": "nightly"}}}
        done(tenancy.world.merge(velero.DOWNLOAD_REQUEST, Key(VELERO, f"results-{uid}"), other, "admin"))
        tenancy.velero_answers()
        await tenancy.settle(2)
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert all(each.url.endswith("/BackupResults") for each in tenancy.read)
        assert message(tenancy).endswith(WHY)

    tell(story)


def test_a_download_request_of_somebody_else_s_is_left_alone() -> None:
    async def story(tenancy: Tenancy) -> None:
        origin = {"openshift.io/oadp-nab-origin-name": "shop", "openshift.io/oadp-nab-origin-namespace": "red"}
        for name, annotations in (("cli-1", origin), ("results-7", {**origin, REQUEST_UID: "8"})):
            body = {"metadata": {"name": name, "annotations": annotations}, "spec": {"target": {"kind": "BackupLog"}}}
            done(tenancy.world.create(velero.DOWNLOAD_REQUEST, body, "admin", VELERO))
        await tenancy.settle()
        assert len(asked(tenancy)) == 2

    tell(story)


def test_the_authority_of_the_location_is_trusted() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("default", objectStorage={"caCert": "UEVN"})
        tenancy.back_up(NAB)
        await tenancy.settle(15)
        name = tenancy.status(NAB)["veleroBackup"]["name"]
        stored = {"spec": {"storageLocation": "default"}}
        done(tenancy.world.merge(velero.BACKUP, Key(VELERO, name), stored, "velero"))
        tenancy.velero_says(NAB, "Failed")
        await tenancy.settle(1)
        tenancy.velero_answers()
        await tenancy.settle(1)
        assert [each.authority for each in tenancy.read] == ["PEM"]

    tell(story)


# A death at every write


async def explained(tenancy: Tenancy) -> None:
    tenancy.outcome = {"phase": "PartiallyFailed", "errors": 1}
    tenancy.back_up(NAB)
    await tenancy.settle(60)
    assert message(tenancy) == f"Backup partially failed: 1 error. {WHY}"
    assert asked(tenancy) == []
    assert len(tenancy.read) <= 1 + tenancy.deaths


async def unexplained(tenancy: Tenancy) -> None:
    tenancy.outcome, tenancy.results = {"phase": "Failed"}, GONE
    tenancy.back_up(NAB)
    await tenancy.settle(240)
    assert message(tenancy) == f"Backup failed. {COULD_NOT} -n red"
    assert asked(tenancy) == []
    assert len(tenancy.read) <= 4 * (1 + tenancy.deaths)


async def left(tenancy: Tenancy) -> None:
    tenancy.outcome = {"phase": "Failed"}
    tenancy.back_up(NAB)
    await tenancy.settle(12)
    tenancy.edit(NAB, forceDeleteBackup=True)
    await tenancy.settle(60)
    assert tenancy.request(NAB) is None
    assert asked(tenancy) == []


async def told(tenancy: Tenancy) -> None:
    tenancy.outcome = {"phase": "Completed", "warnings": 1, "completionTimestamp": tenancy.now()}
    tenancy.results = Found(Lines(("it exists",)), restored=RESTORED)
    tenancy.back_up(NAB)
    await tenancy.settle(30)
    tenancy.restore(NAR, NAB.name)
    await tenancy.settle(60)
    assert message(tenancy, NON_ADMIN_RESTORE) == TOLD
    assert asked(tenancy) == []


@pytest.mark.repeats
@pytest.mark.parametrize("story", [explained, unexplained, left, told])
@pytest.mark.parametrize("after", [False, True], ids=["before", "after"])
def test_a_death_at_any_write_is_made_good(story: Story, after: bool, figure: Callable[[str], None]) -> None:
    number = 0
    while deaths(story, [Moment(after=after, write=number + 1)]):
        number += 1
    assert number >= 5
    name = getattr(story, "__name__", "")
    figure(f"results, {name}: {number} deaths {'after' if after else 'before'} a write")


def test_a_namespace_deleted_meanwhile_is_not_blocked() -> None:
    async def story(tenancy: Tenancy) -> None:
        await failed(tenancy)
        tenancy.velero_answers()
        tenancy.delete_namespace("red")
        await tenancy.settle(60)
        assert tenancy.world.history.present(NAMESPACE).get(Key("", "red")) is None
        assert asked(tenancy) == []

    tell(story)
