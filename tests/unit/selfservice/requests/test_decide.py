"""What is to be done about a request, from what is seen: the order of paths and writes, and what proves nothing."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import Condition
from foresail.api.policy import SelfServicePolicySpec
from foresail.api.specs import LabelSelector
from foresail.plan import Create, Delete, JsonPatch, Key, Patch, Plan
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.queue.window import Position
from foresail.selfservice.requests import create, delete
from foresail.selfservice.requests.decide import decide, path_of
from foresail.selfservice.requests.rules import UNSEEN
from foresail.selfservice.requests.view import RequestView, Source
from foresail.selfservice.rows.requests import Copy, RequestRow, Status
from foresail.selfservice.rows.velero import DeletionRow, VeleroRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.records import nacuuid
from tests.unit.selfservice.request_rows import NOW, new_request

HERE = NamespaceRow("ns-uid", {}, is_terminating=False)
POLICY = PolicyRow(Key("", "all"), SelfServicePolicySpec(LabelSelector()))
replace = msgspec.structs.replace


def request(**changes: Any) -> RequestRow:  # noqa: ANN401 - any field
    return new_request(**{"uid": "uid", "version": "7", "generation": 2, "finalizer_index": 0, **changes})


def accepted(since: timedelta, phase: str = "New") -> Status:
    """Return the status of a request that was accepted some time ago."""
    name = nacuuid(request())
    said = Condition("Accepted", "True", "BackupAccepted", "backup accepted", stamp(NOW - since), 2)
    return Status(phase=phase, conditions=(said,), velero=Copy(name, name, "velero"))


def backup(**changes: Any) -> VeleroRow:  # noqa: ANN401 - any field
    row = VeleroRow(
        key=Key("velero", nacuuid(request())),
        uid="backup-uid",
        created=NOW,
        owner=Key("red", "shop"),
        request_uid="uid",
        namespace_uid="ns-uid",
        is_orphaned=False,
        is_terminating=False,
        phase="Completed",
        queue_position=0,
        expires=None,
        mirror='{"phase":"Completed"}',
        spec="{}",
    )
    return replace(row, **changes)


def view(row: RequestRow, **changes: Any) -> RequestView:  # noqa: ANN401 - any field
    found = RequestView(BACKUPS, row, "velero", HERE, POLICY, position=Position(4))
    return replace(found, **changes)


@pytest.mark.parametrize(
    ("row", "is_terminating", "path"),
    [
        (request(), False, create.create_or_update),
        (request(is_terminating=True), False, delete.api_delete),
        (request(is_terminating=True, is_to_be_deleted=True), False, delete.delete_backup),
        (request(is_terminating=True, is_to_be_deleted=True, is_to_be_forced=True), False, delete.force_delete),
        (request(is_terminating=True, is_to_be_deleted=True, is_to_be_forced=True), True, delete.namespace_deleted),
    ],
)
def test_of_several_reasons_the_strongest_counts(row: RequestRow, is_terminating: bool, path: object) -> None:
    namespace = replace(HERE, is_terminating=is_terminating)
    assert path_of(view(row, namespace=namespace), namespace) is path


DELETING = Status(
    "Deleting",
    (
        *accepted(timedelta(seconds=3)).conditions,
        Condition("Deleting", "True", "DeletionPending", "backup accepted for deletion", stamp(NOW), 2),
    ),
    accepted(timedelta()).velero,
)


@pytest.mark.parametrize(
    ("row", "is_terminating"),
    [
        pytest.param(request(is_terminating=True), False, id="deleted"),
        pytest.param(request(is_terminating=True, is_to_be_deleted=True), False, id="to be deleted"),
        pytest.param(request(is_terminating=True, is_to_be_forced=True), False, id="forced"),
        pytest.param(request(is_terminating=True), True, id="the namespace goes"),
    ],
)
def test_what_was_accepted_a_moment_ago_may_have_a_velero_object_that_is_not_to_be_seen_yet(
    row: RequestRow, is_terminating: bool
) -> None:
    found = view(replace(row, status=DELETING), namespace=replace(HERE, is_terminating=is_terminating))
    certain = NOW - timedelta(seconds=3) + UNSEEN
    assert decide(found, NOW) == Plan(wake_at=certain)
    (released,) = decide(found, certain).writes
    assert isinstance(released, JsonPatch)
    assert released.operations == ({"op": "remove", "path": "/metadata/finalizers/0"},)


def test_a_velero_object_is_made_after_the_finalizer_and_before_the_word_created() -> None:
    row = request(finalizer_index=-1, has_others_finalizers=True, status=accepted(timedelta(hours=1)))
    finalizer, made, status = decide(view(row), NOW).writes
    added = {"op": "add", "path": "/metadata/finalizers/-", "value": BACKUPS.finalizer}
    assert finalizer == JsonPatch(BACKUPS.kind, row.key, (added,), "7")
    assert isinstance(made, Create)
    assert made.key == Key("velero", nacuuid(row))
    assert isinstance(status, Patch)
    assert status.subresource == "status"
    body = status.body["status"]
    assert isinstance(body, dict)
    assert (body["phase"], body["queueInfo"]) == ("Created", {"estimatedQueuePosition": 4})
    assert status.body["metadata"] == {"uid": "uid"}


def test_the_nacuuid_is_written_into_the_version_that_was_validated() -> None:
    plan = decide(view(request(finalizer_index=-1)), NOW)
    assert plan.actions == ()
    assert plan.status is not None
    assert plan.status.resource_version == "7"


def test_a_nacuuid_written_by_someone_else_is_ignored() -> None:
    row = request(status=Status(velero=Copy("admin-backup", "admin-backup", "velero")))
    plan = decide(view(row, velero=None), NOW)
    assert plan.status is not None
    body: Any = plan.status.body["status"]
    assert body["veleroBackup"]["nacuuid"] == nacuuid(row)


@pytest.mark.parametrize(
    "foreign",
    [
        backup(request_uid="another"),
        backup(namespace_uid="another"),
        backup(owner=Key("blue", "shop")),
        backup(owner=None),
        backup(key=Key("velero", "admin-backup")),
    ],
)
def test_a_velero_backup_whose_record_differs_is_neither_shown_nor_deleted_nor_restored(foreign: VeleroRow) -> None:
    status = accepted(timedelta(hours=1), "Created")
    shown = decide(view(request(status=status), velero=foreign), NOW)
    assert shown.status is not None
    body: Any = shown.status.body["status"]
    assert "veleroBackup" not in body
    assert body["conditions"][-1]["reason"] == "VeleroBackupNotFound"

    forced = request(is_terminating=True, is_to_be_forced=True, status=DELETING)
    plan = decide(view(forced, velero=foreign), NOW + UNSEEN)
    assert not any(isinstance(each, Delete | Create) for each in plan.writes)

    own = request(status=status)
    asked = request(key=Key("red", "back"), uid="r", source="shop", spec='{"backupName":"shop"}')
    asked = replace(asked, requester="ann")
    refused = decide(view(asked, family=RESTORES, source=Source(own, foreign)), NOW)
    assert refused.status is not None
    said: Any = refused.status.body["status"]
    assert (said["phase"], said["conditions"][0]["reason"]) == ("BackingOff", "InvalidRestoreSpec")


def test_a_policy_that_changed_after_the_acceptance_takes_the_nacuuid_back() -> None:
    row = request(status=accepted(timedelta(hours=1)))
    plan = decide(view(row, policy=None), NOW)
    assert plan.actions == ()
    assert plan.status is not None
    body: Any = plan.status.body["status"]
    assert body["veleroBackup"] is None
    assert body["conditions"][0]["reason"] == "NoPolicy"


def test_nothing_is_decided_while_the_namespace_is_not_known() -> None:
    assert decide(view(request(), namespace=None), NOW) == Plan()


def test_a_request_to_velero_that_came_after_the_end_of_the_backup_goes_with_the_tenant_s() -> None:
    row = request(is_terminating=True, is_to_be_deleted=True, status=DELETING)
    late = DeletionRow(Key("velero", nacuuid(row)), "late", NOW, None, row.uid, 1, "Processed", ("not found",), "{}")
    gone, released = decide(view(row, deletion=late), NOW + UNSEEN).actions
    assert gone == Delete(velero.DELETE_REQUEST, late.key, late.uid)
    assert isinstance(released, JsonPatch)
    assert released.operations == ({"op": "remove", "path": "/metadata/finalizers/0"},)
    anothers = replace(late, request_uid="another")
    assert decide(view(row, deletion=anothers), NOW + UNSEEN).actions == (released,)


@pytest.mark.parametrize(("family", "reason"), [(BACKUPS, "InvalidBackupSpec"), (RESTORES, "InvalidRestoreSpec")])
def test_a_spec_that_is_too_large_is_refused_in_words(family: Family, reason: str) -> None:
    row = request(spec="", is_oversized=True, finalizer_index=-1)
    said = decide(view(row, family=family, source=Source(None, None)), NOW).status
    assert said is not None
    body: Any = said.body["status"]
    (accepted,) = body["conditions"]
    assert (body["phase"], accepted["status"], accepted["reason"]) == ("BackingOff", "False", reason)
    assert "is larger than 16 KiB of JSON; shorten it" in accepted["message"]


@pytest.mark.parametrize("levels", [300, 800, 900, 950, 2_000])
def test_a_spec_of_any_depth_is_refused_in_words(levels: int) -> None:
    deep = '{"init":' * levels + "{}" + "}" * levels
    row = request(spec=f'{{"backupName":"shop","hooks":{deep}}}', source="shop", finalizer_index=-1)
    said = decide(view(row, family=RESTORES, source=Source(None, None)), NOW).status
    assert said is not None
    body: Any = said.body["status"]
    assert (body["phase"], body["conditions"][0]["reason"]) == ("BackingOff", "InvalidRestoreSpec")
