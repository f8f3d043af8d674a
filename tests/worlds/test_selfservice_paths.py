"""The flowchart, arrow by arrow: what each path does to a request, and what stands in Velero's namespace after it.

The arrows have their names in `tests/flowchart.py`.
"""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import timedelta
from typing import Any

import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import ORPHANED
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS
from tests.flowchart import Arrow, walks
from tests.worlds import virtual_time
from tests.worlds.garbage import NAMESPACE
from tests.worlds.process import Process
from tests.worlds.tenancy import STILL_RUNS, VELERO, Tenancy
from tests.worlds.visitor import Write
from tests.worlds.world import done

NAB = Key("red", "shop")
NAR = Key("red", "shop-back")
Story = Callable[[Tenancy], Awaitable[None]]


def tell(story: Story, quotas: dict[str, int] | None = None) -> Tenancy:
    """Live through a story with the controller running, and check what must always be so."""

    async def live() -> Tenancy:
        tenancy = Tenancy(quotas)
        tenancy.start()
        await story(tenancy)
        tenancy.check()
        await tenancy.check_silence()
        await tenancy.stop()
        return tenancy

    return virtual_time.run(live())


def of_requests(process: Process) -> list[Write]:
    """Return what was written but for the labels of namespaces, which are set once."""
    return [write for write in process.visitor.writes if write.kind != NAMESPACE]


async def backed_up(tenancy: Tenancy) -> None:
    tenancy.back_up(NAB)
    await tenancy.settle()
    expires = stamp(tenancy.clock() + timedelta(hours=1))
    tenancy.velero_says(NAB, "Completed", expiration=expires, progress={"totalItems": 3, "itemsBackedUp": 3})
    await tenancy.settle()


# Create and update


@walks(Arrow.CREATE_OR_UPDATE, Arrow.VALID, Arrow.NO_NACUUID, Arrow.NO_VELERO_BACKUP)
def test_a_valid_request_goes_from_new_to_created_in_four_writes() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = tenancy.back_up(NAB)
        await tenancy.settle()
        assert tenancy.phases[NON_ADMIN_BACKUP, uid] == ["", "New", "Created"]
        assert tenancy.condition(NAB, "Accepted") == ("True", "BackupAccepted", "backup accepted")
        assert tenancy.condition(NAB, "Queued") == ("True", "BackupScheduled", "Created Velero Backup object")
        assert tenancy.condition(NAB, "Succeeded")[:2] == ("Unknown", "Waiting")
        status, request = tenancy.status(NAB), tenancy.request(NAB)
        assert request is not None
        assert request["metadata"]["finalizers"] == ["nonadminbackup.oadp.openshift.io/finalizer"]
        made = tenancy.made_for(NAB)
        assert made is not None
        name = made["metadata"]["name"]
        assert name.startswith("red-shop-")
        copy = {"nacuuid": name, "name": name, "namespace": VELERO, "spec": made["spec"], "status": {}}
        assert status["veleroBackup"] == copy
        assert status["queueInfo"] == {"estimatedQueuePosition": 1}
        assert made["spec"]["includedNamespaces"] == ["red"]
        assert made["metadata"]["labels"] == {
            "openshift.io/oadp": "True",
            "app.kubernetes.io/managed-by": "oadp-nac-controller",
            "openshift.io/oadp-nab-origin-nacuuid": name,
        }
        assert made["metadata"]["annotations"]["openshift.io/oadp-nab-origin-name"] == "shop"
        assert made["metadata"]["annotations"]["openshift.io/oadp-nab-origin-namespace"] == "red"
        assert tenancy.process is not None
        writes = of_requests(tenancy.process)
        assert [(each.verb, each.kind, each.refused) for each in writes] == [
            ("merge status", NON_ADMIN_BACKUP, None),
            ("patch", NON_ADMIN_BACKUP, None),
            ("create", velero.BACKUP, None),
            ("merge status", NON_ADMIN_BACKUP, None),
        ]

    tell(story)


def test_a_hundred_requests_at_once_take_four_writes_each_and_none_is_refused() -> None:
    async def story(tenancy: Tenancy) -> None:
        for number in range(100):
            tenancy.back_up(Key("red" if number % 2 else "blue", f"b{number}"))
        await tenancy.settle(20)
        assert tenancy.process is not None
        assert len(of_requests(tenancy.process)) == 400
        assert all(each.refused is None for each in tenancy.process.visitor.writes)
        shown = [
            each["status"]["queueInfo"]["estimatedQueuePosition"]
            for each in tenancy.world.history.present(NON_ADMIN_BACKUP).values()
        ]
        assert sorted(shown) == list(range(1, 101))

    tell(story)


@walks(Arrow.INVALID)
def test_an_invalid_spec_leads_to_backing_off_without_a_nacuuid_and_an_edit_leads_on_to_created() -> None:
    async def story(tenancy: Tenancy) -> None:
        uid = tenancy.back_up(NAB, includedNamespaces=["blue"])
        await tenancy.settle()
        text = "NonAdminBackup spec.backupSpec.includedNamespaces is restricted, can not contain namespaces other than"
        assert tenancy.condition(NAB, "Accepted") == ("False", "InvalidBackupSpec", f"{text}: red")
        assert "veleroBackup" not in tenancy.status(NAB)
        assert tenancy.velero_objects() == {}
        tenancy.edit(NAB, backupSpec={"includedNamespaces": ["red"]})
        await tenancy.settle()
        assert tenancy.phases[NON_ADMIN_BACKUP, uid] == ["", "BackingOff", "Created"]
        assert tenancy.condition(NAB, "Accepted")[0] == "True"

    tell(story)


@walks(Arrow.VELERO_BACKUP)
def test_velero_s_status_is_mirrored_to_the_last_unknown_field() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        tenancy.velero_says(NAB, "Queued", queuePosition=1)
        await tenancy.settle(5)
        assert tenancy.status(NAB)["veleroBackup"]["status"] == {"phase": "Queued"}
        tenancy.velero_says(NAB, "InProgress", queuePosition=None, startTimestamp=tenancy.now(), brandNew={"deep": [1]})
        await tenancy.settle(5)
        assert tenancy.condition(NAB, "Succeeded") == ("Unknown", "Running", "Backup is InProgress")
        assert tenancy.status(NAB)["queueInfo"] == {"estimatedQueuePosition": 1}
        assert tenancy.status(NAB)["veleroBackup"]["status"]["brandNew"] == {"deep": [1]}
        tenancy.velero_says(NAB, "AWordOfALaterVelero", brandNew=None)
        await tenancy.settle(5)
        assert "brandNew" not in tenancy.status(NAB)["veleroBackup"]["status"]
        tenancy.velero_says(NAB, "Completed", warnings=2, progress={"totalItems": 3})
        await tenancy.settle(5)
        assert tenancy.condition(NAB, "Succeeded") == ("True", "Completed", "Backup completed: 2 warnings")
        assert tenancy.status(NAB)["queueInfo"] == {"estimatedQueuePosition": 0}

    tell(story)


def test_a_backup_that_failed_says_why() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        tenancy.velero_says(NAB, "FailedValidation", validationErrors=["no such location"])
        await tenancy.settle()
        said = ("False", "FailedValidation", "Backup rejected by Velero: no such location")
        assert tenancy.condition(NAB, "Succeeded") == said
        assert tenancy.status(NAB)["phase"] == "Created"

    tell(story)


def test_a_complete_backup_with_nothing_in_it_says_so() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 0})
        await tenancy.settle()
        assert tenancy.condition(NAB, "DataIncomplete")[:2] == ("True", "NothingBackedUp")

    tell(story)


@pytest.mark.parametrize(
    ("spec", "items", "is_empty"),
    [
        ({"labelSelector": {"matchLabels": {"app": "nope"}}}, 1, True),  # the Namespace alone
        ({"labelSelector": {"matchLabels": {"app": "web"}}}, 2, False),
        ({"includeClusterResources": False}, 1, False),  # then Velero leaves the Namespace out
        ({"includeClusterResources": False}, 0, True),
        ({"excludedClusterScopedResources": ["ns"]}, 1, False),
    ],
)
def test_a_backup_with_only_the_namespace_is_empty(spec: dict[str, Any], items: int, is_empty: bool) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, **spec)
        await tenancy.settle()
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": items})
        await tenancy.settle()
        assert tenancy.condition(NAB, "DataIncomplete")[1] == ("NothingBackedUp" if is_empty else "")

    tell(story)


def test_kinds_that_the_cluster_does_not_serve_are_named_before_and_after_the_backup() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, includedResources=["deploymnts", "cm", "Deployments"])
        await tenancy.settle()
        status, reason, message = tenancy.condition(NAB, "DataIncomplete")
        assert (status, reason) == ("True", "KindsNotServed")
        assert "The cluster does not serve deploymnts, so" in message
        assert tenancy.status(NAB)["phase"] == "Created"
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 2})
        await tenancy.settle()
        assert tenancy.condition(NAB, "DataIncomplete") == (status, reason, message)

    async def empty(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, includedResources=["deploymnts"])
        await tenancy.settle()
        tenancy.velero_says(NAB, "Completed", progress={"totalItems": 1})
        await tenancy.settle()
        _, reason, message = tenancy.condition(NAB, "DataIncomplete")
        assert reason == "NothingBackedUp"
        assert "nothing was backed up" in message
        assert "does not serve deploymnts" in message

    tell(story)
    tell(empty)


@pytest.mark.parametrize("field", ["includedResources", "includedNamespaceScopedResources"])
def test_a_backup_of_cluster_scoped_kinds_alone_is_refused_for_velero_would_take_everything(field: str) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, **{field: ["clusterroles", "typo"]})
        await tenancy.settle()
        status, reason, message = tenancy.condition(NAB, "Accepted")
        assert (status, reason) == ("False", "InvalidBackupSpec")
        assert message.startswith("spec.backupSpec includes only cluster-scoped kinds: clusterroles")
        assert tenancy.velero_objects() == {}

    async def beside(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, **{field: ["clusterroles", "pods"]})
        await tenancy.settle()
        assert tenancy.status(NAB)["phase"] == "Created"

    tell(story)
    tell(beside)


def test_the_volumes_of_a_backup_are_counted() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        made = tenancy.made_for(NAB)
        assert made is not None
        labels = {velero.BACKUP_NAME_LABEL: made["metadata"]["name"]}
        for number, phase in enumerate(("Completed", "InProgress", "NeverHeardOf")):
            body = {"metadata": {"name": f"v{number}", "labels": labels}, "status": {"phase": phase}}
            done(tenancy.world.create(velero.DATA_UPLOAD, body, "velero", VELERO))
        await tenancy.settle()
        assert tenancy.status(NAB)["dataMoverDataUploads"] == {"total": 3, "completed": 1, "inProgress": 1}

    tell(story)


def test_a_backup_removed_behind_our_back_keeps_its_phase_and_is_shown_again_when_it_is_synced_back() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        made = tenancy.made_for(NAB)
        assert made is not None
        at = Key(VELERO, made["metadata"]["name"])
        done(tenancy.world.delete(velero.BACKUP, at))
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "VeleroBackupNotFound")
        assert tenancy.condition(NAB, "Succeeded")[:2] == ("True", "Completed"), "it did succeed"
        assert tenancy.status(NAB)["phase"] == "Created"
        tenancy.births.clear()
        done(
            tenancy.world.create(
                velero.BACKUP,
                {key: made[key] for key in ("spec", "status")}
                | {"metadata": {"name": at.name, **{key: made["metadata"][key] for key in ("labels", "annotations")}}},
                "velero",
                VELERO,
            )
        )
        await tenancy.settle()
        assert tenancy.condition(NAB, "Succeeded")[:2] == ("True", "Completed")
        assert tenancy.condition(NAB, "Accepted")[:2] == ("True", "BackupAccepted")

    tell(story)


def test_an_expired_backup_takes_its_request_with_it() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        await tenancy.settle(3600)
        made = tenancy.made_for(NAB)
        assert made is not None
        done(tenancy.world.delete(velero.BACKUP, Key(VELERO, made["metadata"]["name"])))
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_name_in_velero_s_namespace_that_is_someone_else_s_is_left_alone() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        uid = tenancy.back_up(NAB)
        tenancy.start()
        await tenancy.settle()
        made = tenancy.made_for(NAB)
        assert made is not None
        await tenancy.stop()
        # The same name, with a record that names another namespace's UID: an object that was synced from elsewhere.
        at = Key(VELERO, made["metadata"]["name"])
        done(tenancy.world.delete(velero.BACKUP, at))
        foreign = {
            "metadata": {
                "name": at.name,
                "annotations": {**made["metadata"]["annotations"], "foresail.dev/namespace-uid": "other"},
            },
            "status": {"phase": "Completed"},
        }
        found = done(tenancy.world.create(velero.BACKUP, foreign, "somebody", VELERO))
        tenancy.start()
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.world.history.present(velero.BACKUP)[at] == found
        assert tenancy.phases[NON_ADMIN_BACKUP, uid][-1] == "Deleting"
        await tenancy.stop()

    virtual_time.run(live())


def test_what_another_controller_has_backed_up_is_not_backed_up_again() -> None:
    async def live() -> None:
        tenancy = Tenancy()
        tenancy.back_up(NAB)
        status = {
            "phase": "Created",
            "veleroBackup": {"nacuuid": "red-shop-1", "name": "red-shop-1", "namespace": VELERO},
        }
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"status": status}, "another", "status"))
        body = {"metadata": {"name": "red-shop-1"}, "status": {"phase": "Completed"}}
        done(tenancy.world.create(velero.BACKUP, body, "another", VELERO))
        tenancy.start()
        await tenancy.settle()
        assert list(tenancy.velero_objects()) == ["red-shop-1"]
        assert tenancy.status(NAB)["veleroBackup"] == status["veleroBackup"]
        assert "Another controller created the Velero Backup" in tenancy.condition(NAB, "Succeeded")[2]
        await tenancy.check_silence()
        await tenancy.stop()

    virtual_time.run(live())


# API delete


@walks(Arrow.API_DELETE, Arrow.PLAIN_WAITS)
def test_a_plain_delete_waits_and_names_the_command_to_go_on_with() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.delete(NAB)
        await tenancy.settle()
        status, reason, message = tenancy.condition(NAB, "Deleting")
        assert (status, reason) == ("True", "DeletionPending")
        document = (
            "backup deletion requires setting spec.deleteBackup or spec.forceDeleteBackup to true or finalizer removal"
        )
        assert message == document
        notes = [each.message for each in tenancy.notes if each.reason == "DeletionPending"]
        assert notes == [f"{document}: foresail backup delete shop --namespace red"]
        assert tenancy.status(NAB)["phase"] == "Deleting"
        assert len(tenancy.velero_objects()) == 1
        assert tenancy.velero_objects(velero.DELETE_REQUEST) == {}

    tell(story)


def test_a_plain_delete_ends_when_the_velero_backup_is_deleted() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.delete(NAB)
        await tenancy.settle()
        for name in tenancy.velero_objects():
            done(tenancy.world.delete(velero.BACKUP, Key(VELERO, name)))
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_plain_delete_of_what_was_never_backed_up_is_done_at_once() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, includedNamespaces=["blue"])
        await tenancy.settle()
        tenancy.delete(NAB)
        assert tenancy.request(NAB) is None

    tell(story)


# Force delete


@walks(Arrow.FORCE_DELETE, Arrow.FORCE_OBJECTS)
def test_a_force_delete_takes_velero_s_objects_and_the_request_and_waits_for_nothing() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert len(tenancy.velero_objects(velero.DELETE_REQUEST)) == 1
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.velero_objects() == tenancy.velero_objects(velero.DELETE_REQUEST) == {}

    tell(story)


@walks(Arrow.FORCE_NO_OBJECTS)
def test_a_force_delete_of_what_has_no_velero_backup_is_done() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, includedNamespaces=["blue"])
        await tenancy.settle()
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_what_is_synced_back_after_a_force_delete_is_never_adopted() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        made = tenancy.made_for(NAB)
        assert made is not None
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle()
        metadata = {"name": made["metadata"]["name"], "annotations": made["metadata"]["annotations"]}
        body = {"metadata": metadata, "status": made["status"]}
        tenancy.births.clear()
        back = done(tenancy.world.create(velero.BACKUP, body, "velero", VELERO))
        tenancy.back_up(NAB)
        await tenancy.settle()
        status = tenancy.status(NAB)
        assert status["veleroBackup"]["name"] != metadata["name"]
        assert status["veleroBackup"]["status"] == {}
        assert tenancy.world.history.present(velero.BACKUP)[Key(VELERO, metadata["name"])] == back

    tell(story)


# Delete backup


@walks(Arrow.DELETE_BACKUP, Arrow.DELETE_NO_REQUEST, Arrow.DELETE_REQUEST)
def test_velero_deletes_first_and_the_request_is_deleted_after_that() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Deleting") == ("True", "DeletionPending", "backup accepted for deletion")
        (name, found), *others = tenancy.velero_objects(velero.DELETE_REQUEST).items()
        assert others == []
        made = tenancy.made_for(NAB)
        assert made is not None
        assert found["spec"] == {"backupName": made["metadata"]["name"]}
        assert found["metadata"]["labels"]["velero.io/backup-uid"] == made["metadata"]["uid"]
        assert tenancy.status(NAB)["veleroDeleteBackupRequest"]["name"] == name
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def attempts(tenancy: Tenancy) -> list[str]:
    found = tenancy.velero_objects(velero.DELETE_REQUEST).values()
    return [each["metadata"]["annotations"]["foresail.dev/attempt"] for each in found]


def test_a_failed_deletion_is_reported_and_retried_with_a_growing_delay() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        first = tenancy.velero_objects(velero.DELETE_REQUEST)
        tenancy.velero_deletes("the bucket is read-only")
        await tenancy.settle(5)
        status, reason, message = tenancy.condition(NAB, "Deleting")
        assert (status, reason) == ("True", "DeletionFailed")
        assert message.startswith("Velero did not delete the backup: the bucket is read-only. Next attempt at 2026-")
        await tenancy.settle(30)
        second = tenancy.velero_objects(velero.DELETE_REQUEST)
        assert attempts(tenancy) == ["2"]
        assert [each["metadata"]["uid"] for each in first.values()] != [
            each["metadata"]["uid"] for each in second.values()
        ]
        tenancy.velero_deletes("the bucket is read-only")
        await tenancy.settle(40)
        assert tenancy.velero_objects(velero.DELETE_REQUEST).keys() == second.keys()
        await tenancy.settle(40)
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_deletion_amid_which_velero_was_killed_is_requested_again_after_an_hour() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        tenancy.velero_says(NAB, "Deleting")
        (name,) = tenancy.velero_objects(velero.DELETE_REQUEST)
        begun = {"status": {"phase": "InProgress"}}
        done(tenancy.world.merge(velero.DELETE_REQUEST, Key(VELERO, name), begun, "velero"))
        await tenancy.settle(3500)
        assert attempts(tenancy) == ["1"]
        await tenancy.settle(200)
        assert attempts(tenancy) == ["2"]
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


@pytest.mark.parametrize(("ended", "reopened"), velero.REOPENED.items())
def test_a_backup_that_velero_takes_for_running_though_it_has_ended_is_ended_once_more_and_deleted(
    ended: str, reopened: str
) -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.velero_says(NAB, ended)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        tenancy.velero_deletes(STILL_RUNS)
        await tenancy.settle(2)
        assert tenancy.phase_of_velero(NAB) == reopened
        assert attempts(tenancy) == ["1"], "while Velero ends it, it would only refuse again"
        assert tenancy.condition(NAB, "Deleting")[1:] == (
            "DeletionPending",
            f"backup accepted for deletion; it is {reopened} and is deleted when it finishes",
        )
        tenancy.velero_says(NAB, ended)
        await tenancy.settle(2)
        assert attempts(tenancy) == ["2"]
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_velero_that_refuses_again_and_again_is_asked_later_each_time() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        tenancy.velero_deletes(STILL_RUNS)
        await tenancy.settle(2)
        tenancy.velero_says(NAB, "Completed")
        await tenancy.settle(2)
        tenancy.velero_deletes(STILL_RUNS)
        await tenancy.settle(40)
        assert (attempts(tenancy), tenancy.phase_of_velero(NAB)) == (["2"], "Completed")
        assert tenancy.condition(NAB, "Deleting")[1] == "DeletionFailed"
        await tenancy.settle(40)
        assert (attempts(tenancy), tenancy.phase_of_velero(NAB)) == (["2"], "Finalizing")
        tenancy.velero_says(NAB, "Completed")
        await tenancy.settle(2)
        assert attempts(tenancy) == ["3"]

    tell(story)


def test_a_backup_that_ran_when_its_deletion_was_refused_is_left_alone() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle(5)
        tenancy.velero_says(NAB, "InProgress")
        tenancy.velero_deletes(STILL_RUNS)
        await tenancy.settle(20)
        assert (attempts(tenancy), tenancy.phase_of_velero(NAB)) == (["1"], "InProgress")
        await tenancy.settle(20)
        tenancy.velero_says(NAB, "Completed")
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


def test_a_backup_that_runs_is_deleted_when_it_has_ended() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        tenancy.velero_says(NAB, "InProgress")
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert tenancy.velero_objects(velero.DELETE_REQUEST) == {}
        assert "it is InProgress and is deleted when it finishes" in tenancy.condition(NAB, "Deleting")[2]
        tenancy.velero_says(NAB, "Completed")
        await tenancy.settle()
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


@walks(Arrow.DELETE_MARKED)
def test_a_plain_delete_continues_when_the_tenant_chooses_what_to_delete() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        tenancy.delete(NAB)
        await tenancy.settle()
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Deleting")[2] == "backup accepted for deletion"
        tenancy.velero_deletes()
        await tenancy.settle()
        assert tenancy.request(NAB) is None

    tell(story)


@walks(Arrow.DELETE_NO_BACKUP)
def test_a_deletion_of_what_was_removed_behind_our_back_is_done() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        for name in tenancy.velero_objects():
            done(tenancy.world.delete(velero.BACKUP, Key(VELERO, name)))
        await tenancy.settle()
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        assert tenancy.request(NAB) is None
        assert tenancy.velero_objects(velero.DELETE_REQUEST) == {}

    tell(story)


@walks(Arrow.DELETE_NO_FINALIZER)
def test_a_deletion_of_what_does_not_have_our_finalizer_is_left_to_whose_finalizer_it_has() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB, includedNamespaces=["blue"])
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": ["example.com/keep"]}}, "somebody"))
        await tenancy.settle()
        tenancy.edit(NAB, deleteBackup=True)
        await tenancy.settle()
        request = tenancy.request(NAB)
        assert request is not None
        assert request["metadata"]["finalizers"] == ["example.com/keep"]
        assert request["status"]["phase"] == "Deleting"
        assert tenancy.velero_objects(velero.DELETE_REQUEST) == {}
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": None}}, "somebody"))
        assert tenancy.request(NAB) is None

    tell(story)


# The namespace goes


def test_a_namespace_is_deleted_with_requests_in_every_phase_and_its_backups_stay_marked() -> None:
    async def story(tenancy: Tenancy) -> None:
        names = ["new", "refused", "created", "done", "waiting", "deleting"]
        for name in names:
            spec = {"includedNamespaces": ["blue"]} if name == "refused" else {}
            tenancy.back_up(Key("red", name), **spec)
        await tenancy.settle()
        for name in ("done", "waiting", "deleting"):
            tenancy.velero_says(Key("red", name), "Completed")
        await tenancy.settle()
        tenancy.restore(Key("red", "back"), "done")
        tenancy.delete(Key("red", "waiting"))
        tenancy.edit(Key("red", "deleting"), deleteBackup=True)
        await tenancy.settle()
        assert len(tenancy.world.history.present(velero.DELETE_REQUEST)) == 1
        tenancy.back_up(Key("red", "late"))
        tenancy.delete_namespace("red")
        await tenancy.settle()
        assert Key("", "red") not in tenancy.world.history.present(NAMESPACE)
        left = tenancy.velero_objects()
        assert {each["metadata"]["annotations"][BACKUPS.origin_name] for each in left.values()} == {
            "done",
            "waiting",
            "deleting",
        }, "what Velero has not begun is deleted"
        assert all(ORPHANED in each["metadata"]["annotations"] for each in left.values())
        assert not tenancy.world.history.present(velero.DELETE_REQUEST), "Velero would delete it, once it is back"

    tell(story)


# Restores


@walks(Arrow.RESTORE_MADE, Arrow.RESTORE_SHOWN, Arrow.RESTORE_DELETED)
def test_a_restore_is_made_from_the_tenant_s_own_complete_backup() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        uid = tenancy.restore(NAR, "shop")
        await tenancy.settle()
        assert tenancy.phases[NON_ADMIN_RESTORE, uid] == ["", "New", "Created"]
        made, backup = tenancy.made_for(NAR, NON_ADMIN_RESTORE), tenancy.made_for(NAB)
        assert made is not None
        assert backup is not None
        assert made["spec"]["backupName"] == backup["metadata"]["name"]
        assert made["spec"]["includedNamespaces"] == ["red"]
        tenancy.velero_says(NAR, "Completed", NON_ADMIN_RESTORE)
        await tenancy.settle()
        assert tenancy.condition(NAR, "Succeeded", NON_ADMIN_RESTORE)[:2] == ("True", "Completed")
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE) == ("True", "RestoreAccepted", "restore accepted")
        assert tenancy.condition(NAR, "Queued", NON_ADMIN_RESTORE)[1:] == (
            "RestoreScheduled",
            "Created Velero Restore object",
        )
        tenancy.delete(NAR, NON_ADMIN_RESTORE)
        await tenancy.settle()
        assert tenancy.request(NAR, NON_ADMIN_RESTORE) is None
        assert tenancy.velero_objects(velero.RESTORE) == {}

    tell(story)


def test_a_restore_waits_for_a_backup_that_runs() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        tenancy.velero_says(NAB, "InProgress")
        tenancy.restore(NAR, "shop")
        await tenancy.settle()
        assert tenancy.condition(NAR, "Accepted", NON_ADMIN_RESTORE)[:2] == ("False", "BackupNotReady")
        assert tenancy.status(NAR, NON_ADMIN_RESTORE)["phase"] == "New"
        tenancy.velero_says(NAB, "PartiallyFailed")
        await tenancy.settle()
        assert tenancy.status(NAR, NON_ADMIN_RESTORE)["phase"] == "Created"

    tell(story)


@walks(Arrow.RESTORE_INVALID)
def test_a_restore_of_what_is_not_the_tenant_s_or_failed_is_refused() -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        theirs, failed, failed_back = Key("blue", "theirs"), Key("red", "failed"), Key("red", "failed-back")
        tenancy.restore(theirs, "shop")
        tenancy.back_up(failed)
        await tenancy.settle()
        tenancy.velero_says(failed, "Failed", failureReason="disk full")
        await tenancy.settle()
        tenancy.restore(failed_back, "failed")
        await tenancy.settle()
        for key, phase, reason in (
            (theirs, "New", "BackupNotReady"),
            (failed_back, "BackingOff", "InvalidRestoreSpec"),
        ):
            assert tenancy.status(key, NON_ADMIN_RESTORE)["phase"] == phase
            assert tenancy.condition(key, "Accepted", NON_ADMIN_RESTORE)[:2] == ("False", reason)
        assert tenancy.velero_objects(velero.RESTORE) == {}

    tell(story)


# Policy and quotas


def test_without_a_policy_nothing_is_made_and_the_request_goes_ahead_when_there_is_one() -> None:
    async def story(tenancy: Tenancy) -> None:
        done(tenancy.world.merge(NAMESPACE, Key("", "red"), {"metadata": {"labels": None}}, "admin"))
        tenancy.back_up(NAB)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "NoPolicy")
        assert tenancy.velero_objects() == {}
        labels = {"foresail.dev/self-service": "enabled"}
        done(tenancy.world.merge(NAMESPACE, Key("", "red"), {"metadata": {"labels": labels}}, "admin"))
        await tenancy.settle()
        assert tenancy.status(NAB)["phase"] == "Created"

    tell(story)


def test_over_quota_a_request_waits_in_new_and_goes_ahead_when_a_place_frees() -> None:
    async def story(tenancy: Tenancy) -> None:
        keys = [Key("red", f"b{number}") for number in range(10)]
        for key in keys:
            tenancy.back_up(key)
        await tenancy.settle()
        assert len(tenancy.velero_objects()) == 3
        waiting = [key for key in keys if tenancy.status(key)["phase"] == "New"]
        assert len(waiting) == 7
        assert {tenancy.condition(key, "Accepted")[1] for key in waiting} == {"QuotaExceeded"}
        running = next(key for key in keys if key not in waiting)
        tenancy.edit(running, forceDeleteBackup=True)
        await tenancy.settle()
        assert len(tenancy.velero_objects()) == 3
        tenancy.set_quotas(stored=100)
        await tenancy.settle()
        assert len(tenancy.velero_objects()) == 9

    tell(story, {"stored": 3})


HELD = "the backup starts automatically when it is available. If this persists, ask a cluster administrator"


@pytest.mark.parametrize(
    ("phase", "mode", "stands"),
    [("Unavailable", "ReadWrite", "not available"), ("", "", "not available"), ("Available", "ReadOnly", "read-only")],
)
def test_a_request_that_velero_would_refuse_waits_in_new_until_the_location_is_back(
    phase: str, mode: str, stands: str
) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("main", phase, default=True, accessMode=mode)
        tenancy.make_location("spare")
        tenancy.allow_locations("spare")
        keys = [Key(namespace, f"b{number}") for namespace in ("red", "blue") for number in range(20)]
        uids = [tenancy.back_up(key) for key in keys]
        other = Key("red", "elsewhere")
        tenancy.back_up(other, storageLocation="spare")
        await tenancy.settle()
        assert {tenancy.condition(key, "Accepted") for key in keys} == {
            ("False", "LocationUnavailable", f"Storage location main is {stands}; {HELD}")
        }
        assert all("veleroBackup" not in tenancy.status(key) for key in keys)
        assert tenancy.status(other)["phase"] == "Created"
        await tenancy.check_silence()
        tenancy.edit_location("main", "Available", accessMode="ReadWrite")
        await tenancy.settle()
        assert {tuple(tenancy.phases[NON_ADMIN_BACKUP, uid]) for uid in uids} == {("", "New", "Created")}
        tenancy.edit_location("main", "Unavailable")  # what Velero was asked for is Velero's
        await tenancy.settle()
        assert {tenancy.condition(key, "Accepted")[:2] for key in keys} == {("True", "BackupAccepted")}

    tell(story)


def test_a_location_that_is_not_there_is_left_to_velero_and_a_request_that_waits_can_name_another() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.make_location("main", "Unavailable", default=True)
        tenancy.allow_locations("spare", "typo")
        tenancy.back_up(NAB, storageLocation="typo")
        waiting = Key("blue", "b")
        tenancy.back_up(waiting)
        await tenancy.settle()
        assert tenancy.status(NAB)["phase"] == "Created"
        assert tenancy.condition(waiting, "Accepted")[1] == "LocationUnavailable"
        tenancy.make_location("spare")
        tenancy.edit(waiting, backupSpec={"storageLocation": "spare"})
        await tenancy.settle()
        assert tenancy.status(waiting)["phase"] == "Created"

    tell(story)


def test_one_at_a_time_means_that_the_next_starts_when_the_last_has_ended() -> None:
    async def story(tenancy: Tenancy) -> None:
        keys = [Key("red", f"b{number}") for number in range(5)]
        for key in keys:
            tenancy.back_up(key)
        await tenancy.settle()
        for _ in keys:
            active = [
                key
                for key in keys
                if tenancy.status(key)["phase"] == "Created" and tenancy.condition(key, "Succeeded")[0] == "Unknown"
            ]
            assert len(active) == 1
            tenancy.velero_says(active[0], "Completed", progress={"totalItems": 1})
            await tenancy.settle()
        assert all(tenancy.condition(key, "Succeeded")[0] == "True" for key in keys)

    tell(story, {"active": 1})


def test_quota_reserved_and_then_not_needed_goes_to_the_next_request() -> None:
    async def story(tenancy: Tenancy) -> None:
        first, second = Key("red", "a"), Key("red", "b")
        tenancy.back_up(first)
        await asyncio.sleep(0.004)  # while it is being accepted
        tenancy.edit(first, backupSpec={"includedNamespaces": ["blue"]})
        tenancy.back_up(second)
        await tenancy.settle()
        phases = sorted(tenancy.status(key)["phase"] for key in (first, second))
        assert phases == ["BackingOff", "Created"]

    tell(story, {"stored": 1})


def test_the_finalizer_of_somebody_else_stays() -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": ["example.com/keep"]}}, "somebody"))
        await tenancy.settle()
        request = tenancy.request(NAB)
        assert request is not None
        assert request["metadata"]["finalizers"] == ["example.com/keep", BACKUPS.finalizer]
        tenancy.edit(NAB, forceDeleteBackup=True)
        await tenancy.settle()
        request = tenancy.request(NAB)
        assert request is not None
        assert request["metadata"]["finalizers"] == ["example.com/keep"]
        done(tenancy.world.merge(NON_ADMIN_BACKUP, NAB, {"metadata": {"finalizers": None}}, "somebody"))

    tell(story)
