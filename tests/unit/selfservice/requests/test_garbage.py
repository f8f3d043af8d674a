"""Objects without an owner: which of them are ours, when they are removed, and that a Backup never is."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api import mirrored, velero
from foresail.api.marks import BACKUP_UID, NAMESPACE_UID, REQUEST_UID
from foresail.plan import Delete, Key
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.garbage.decide import (
    CYCLE,
    GRACE,
    KINDS,
    GarbageView,
    decide,
    deletion_view,
    file_view,
    restore_view,
    turns,
)
from foresail.selfservice.rows.velero import (
    DeletionRow,
    DownloadRequestRow,
    VeleroRow,
    deletion_row,
    download_request_row,
    velero_row,
)
from foresail.tenancy.records import nacuuid_of

NOW = datetime(2026, 1, 1, tzinfo=UTC)
NAME = nacuuid_of("red", "undo", "u1")
RECORD = {
    RESTORES.origin_namespace: "red",
    RESTORES.origin_name: "undo",
    REQUEST_UID: "u1",
    NAMESPACE_UID: "n1",
}
VIEW = GarbageView(velero.RESTORE, Key("velero", NAME), "r1", NOW, "NonAdminRestore red/undo")
spans = st.integers(0, 10**6).map(lambda each: timedelta(seconds=each))


def document(name: str, annotations: dict[str, str], **more: Any) -> bytes:  # noqa: ANN401 - JSON
    meta = {"name": name, "namespace": "velero", "uid": "r1", "creationTimestamp": "2026-01-01T00:00:00Z"}
    return msgspec.json.encode({"metadata": {**meta, "annotations": annotations}, **more})


def restore(name: str = NAME, phase: str = "Completed", lacks: str = "", uid: str = "u1") -> VeleroRow:
    record = {key: value for key, value in {**RECORD, REQUEST_UID: uid}.items() if key != lacks}
    status = {"phase": phase, "completionTimestamp": "2026-01-01T02:00:00Z"}
    return velero_row(msgspec.json.decode(document(name, record, status=status), type=mirrored.Mirrored), RESTORES)


def deletion(name: str, phase: str = "Processed", uid: str = "u1") -> DeletionRow:
    record = {BACKUPS.origin_namespace: "red", BACKUPS.origin_name: "undo", REQUEST_UID: uid}
    wire = msgspec.json.decode(document(name, record, status={"phase": phase}), type=mirrored.MirroredDeletion)
    return deletion_row(wire)


def file(name: str, uid: str = "b1") -> DownloadRequestRow:
    spec = {"target": {"kind": "BackupResourceList", "name": "backup"}}
    return download_request_row(
        msgspec.json.decode(document(name, {BACKUP_UID: uid} if uid else {}, spec=spec), type=mirrored.Download)
    )


def test_a_backup_is_never_garbage() -> None:
    assert velero.BACKUP not in KINDS


def test_a_finished_restore_with_our_record_counts_from_its_end() -> None:
    view = restore_view(restore())
    assert view is not None
    assert view.since == NOW + timedelta(hours=2)
    assert view.owner == "NonAdminRestore red/undo"


@pytest.mark.parametrize(
    "row",
    [
        restore(phase="InProgress"),
        restore(phase="NeverHeardOf"),
        restore(lacks=REQUEST_UID),
        restore(lacks=NAMESPACE_UID),
        restore(lacks=RESTORES.origin_name),
        restore(uid="u2"),
        restore(name="by-hand"),
    ],
)
def test_a_restore_that_runs_or_has_not_our_whole_record_is_left_alone(row: VeleroRow) -> None:
    assert restore_view(row) is None


def test_deletions_and_files_are_known_by_their_names_and_uids() -> None:
    assert deletion_view(deletion(NAME)) is not None
    assert deletion_view(deletion(NAME, phase="InProgress")) is None
    assert deletion_view(deletion(NAME, uid="")) is None
    assert deletion_view(deletion("nightly")) is None
    assert file_view(file("contents-b1"), "contents-") is not None
    assert file_view(file("contents-b2"), "contents-") is None
    assert file_view(file("contents-", uid=""), "contents-") is None


@given(since=spans, later=spans, uid=st.text(max_size=36))
def test_nothing_is_removed_within_an_hour_and_every_object_has_a_turn_within_two(
    since: timedelta, later: timedelta, uid: str
) -> None:
    view = msgspec.structs.replace(VIEW, since=NOW + since, uid=uid)
    now = view.since + later
    plan = decide(view, now)
    assert plan.wake_at is not None
    assert now < plan.wake_at <= max(now, view.since + GRACE) + CYCLE
    if later < GRACE:
        assert plan.actions == ()
    assert decide(view, plan.wake_at).actions == (Delete(view.kind, view.key, view.uid),)


def test_a_thousand_objects_of_one_moment_take_an_hour() -> None:
    views = [msgspec.structs.replace(VIEW, uid=f"uid-{number}") for number in range(1000)]
    first = [turns(view, NOW)[1] for view in views]
    assert max(first) - min(first) > timedelta(minutes=55)
    busiest = max(first.count(each) for each in set(first))
    assert busiest <= 8
    late = NOW + timedelta(days=3)  # as after a long absence of every operator
    assert sum(bool(decide(view, late).actions) for view in views) < 60
