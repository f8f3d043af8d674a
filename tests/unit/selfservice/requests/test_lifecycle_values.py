"""Names, phases, conditions and patches of a request, value by value."""

import re
from datetime import timedelta

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from foresail.api import mirrored, nonadmin
from foresail.api.metadata import Metadata
from foresail.plan import Key
from foresail.reporting import merge_patch
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import status
from foresail.selfservice.requests.outcome import outcome
from foresail.selfservice.requests.rules import next_attempt_at
from foresail.selfservice.requests.status import NewCondition, forward, patch_body, set_condition
from foresail.selfservice.rows.requests import Copy, RequestRow, Status, request_row
from foresail.selfservice.rows.velero import DeletionRow, velero_row
from foresail.tenancy.records import nacuuid
from tests.unit.selfservice.request_rows import NOW, new_request
from tests.worlds.documents import merged

_NAME = re.compile(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?")
NAMESPACES = st.from_regex(r"[a-z0-9]([-a-z0-9]{0,61}[a-z0-9])?", fullmatch=True)
NAMES = st.from_regex(r"[a-z0-9]([-a-z0-9.]{0,80}[a-z0-9])?", fullmatch=True)


def request(namespace: str, name: str, uid: str = "7b7c") -> RequestRow:
    return new_request(key=Key(namespace, name), uid=uid)


@given(NAMESPACES, NAMES)
def test_every_nacuuid_is_a_name_and_a_value_of_a_label(namespace: str, name: str) -> None:
    made = nacuuid(request(namespace, name))
    assert len(made) <= 63
    assert _NAME.fullmatch(made)
    assert made.startswith(namespace[:25])


def test_a_nacuuid_is_the_same_for_the_same_object_and_another_for_the_next_of_that_name() -> None:
    assert nacuuid(request("shop", "daily")) == nacuuid(request("shop", "daily"))
    assert nacuuid(request("shop", "daily")).startswith("shop-daily-")
    assert nacuuid(request("shop", "daily", "1")) != nacuuid(request("shop", "daily", "2"))


@pytest.mark.parametrize("before", ["", "New", "BackingOff", "Created", "Deleting"])
@pytest.mark.parametrize("after", ["", "New", "BackingOff", "Created", "Deleting"])
def test_no_phase_is_left_for_an_earlier_one(before: str, after: str) -> None:
    order = ["", "New", "BackingOff", "Created", "Deleting"]
    assert order.index(forward(before, after)) == max(order.index(before), order.index(after))


def test_the_time_of_a_condition_moves_only_with_its_status() -> None:
    first = set_condition(Status(), NewCondition("Accepted", "False", Reason.NO_POLICY, "no"), 1, NOW)
    second = set_condition(
        first, NewCondition("Accepted", "False", Reason.QUOTA_EXCEEDED, "full"), 2, NOW + timedelta(hours=1)
    )
    third = set_condition(
        second, NewCondition("Accepted", "True", Reason.BACKUP_ACCEPTED, "yes"), 3, NOW + timedelta(hours=2)
    )
    times = [each.conditions[0].last_transition_time for each in (first, second, third)]
    assert times == ["2026-01-01T00:00:00Z", "2026-01-01T00:00:00Z", "2026-01-01T02:00:00Z"]
    assert [each.conditions[0].observed_generation for each in (first, second, third)] == [1, 2, 3]
    assert [each.reason for each in status.changed(first, second)] == ["QuotaExceeded"]
    assert status.changed(second, second) == []


JSON = st.recursive(
    st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=2), inner, max_size=4),
    max_leaves=12,
)
OBJECTS = st.dictionaries(st.text(max_size=2), JSON, max_size=5)


@given(OBJECTS, OBJECTS)
def test_what_differs_merged_into_the_old_gives_the_new(before: dict[str, object], after: dict[str, object]) -> None:
    assert merged(before, merge_patch(before, after)) == after


def test_a_status_that_says_the_same_in_another_order_needs_no_patch() -> None:
    one = Status(velero=Copy("a", "a", "velero", '{"phase":"New","errors":1}'))
    other = Status(velero=Copy("a", "a", "velero", '{"errors":1,"phase":"New"}'))
    assert patch_body(BACKUPS, one, other) == {}


def test_what_velero_no_longer_reports_is_removed() -> None:
    one = Status(velero=Copy("a", "a", "velero", '{"phase":"New","hook":{"tried":1,"failed":1}}'))
    other = Status(velero=Copy("a", "a", "velero", '{"phase":"New","hook":{"tried":1}}'))
    assert patch_body(RESTORES, one, other) == {"veleroRestore": {"status": {"hook": {"failed": None}}}}


def test_velero_s_own_number_in_the_queue_is_not_mirrored() -> None:
    meta = Metadata(name="a", namespace="velero", creation_timestamp=NOW)
    raw = msgspec.Raw(b'{"phase":"Queued","queuePosition":17,"version":1}')
    row = velero_row(mirrored.Mirrored(meta, status=raw), BACKUPS)
    assert (row.queue_position, row.mirror) == (17, '{"phase":"Queued","version":1}')


def test_a_status_in_two_objects_is_stored_once() -> None:
    text = b'{"phase":"Completed","version":1}'
    meta = Metadata(name="a", namespace="velero", creation_timestamp=NOW)
    row = velero_row(mirrored.Mirrored(meta, status=msgspec.Raw(text)), BACKUPS)
    reference = nonadmin.Reference("a", "a", "velero", status=msgspec.Raw(bytes(text)))
    asked = nonadmin.Request(
        nonadmin.RequestMetadata(name="x", namespace="red", creation_timestamp=NOW),
        status=nonadmin.RequestStatus(phase="Created", velero_backup=reference),
    )
    assert request_row(asked, BACKUPS).status.velero.mirror is row.mirror


@pytest.mark.parametrize(
    ("said", "expected"),
    [
        ({}, ("Unknown", "Waiting", "Waiting for Velero to start the backup")),
        ({"phase": "InProgress"}, ("Unknown", "Running", "Backup is InProgress")),
        ({"phase": "SomethingNew"}, ("Unknown", "Running", "Backup is SomethingNew")),
        ({"phase": "Completed", "warnings": 1}, ("True", "Completed", "Backup completed: 1 warning")),
        (
            {"phase": "PartiallyFailed", "errors": 2, "warnings": 1},
            ("False", "PartiallyFailed", "Backup partially failed: 2 errors, 1 warning"),
        ),
        ({"phase": "Failed", "failureReason": "no disk"}, ("False", "Failed", "Backup failed: no disk")),
        (
            {"phase": "FailedValidation", "validationErrors": ["a", "b"]},
            ("False", "FailedValidation", "Backup rejected by Velero: a; b"),
        ),
    ],
)
def test_velero_s_status_comes_to_one_condition(said: dict[str, object], expected: tuple[str, str, str]) -> None:
    found = outcome(BACKUPS, msgspec.json.encode(said).decode())
    assert found is not None
    assert (found.status, found.reason.value, found.message) == expected


def test_a_backup_that_velero_deletes_keeps_its_reported_outcome() -> None:
    assert outcome(BACKUPS, '{"phase":"Deleting"}') is None


def test_a_deletion_is_tried_again_after_half_a_minute_then_later_and_at_last_each_hour() -> None:
    def pause(attempt: int) -> timedelta:
        row = DeletionRow(Key("velero", "a"), "u", NOW, None, "r", attempt, "Processed", ("no",), "{}")
        return next_attempt_at(row) - NOW

    assert [pause(attempt).total_seconds() for attempt in (1, 2, 3, 8, 50)] == [30, 60, 120, 3600, 3600]
