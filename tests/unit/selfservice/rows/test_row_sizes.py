"""What the operator keeps of a request, however large a tenant makes it."""

import gc
import tracemalloc
from typing import Any

import msgspec
import pytest

from foresail.api import nonadmin
from foresail.api.marks import REQUESTER, REQUESTER_GROUPS
from foresail.selfservice.downloads.view import download_row
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.rows.requests import LARGEST_SPEC, RequestRow, request_row

MEGABYTE = 1_000_000
KEPT = 20_000  # bytes that may stay of one request


def row(**parts: Any) -> RequestRow:  # noqa: ANN401 - JSON
    """Return what is kept of a NonAdminBackup with these parts beside the usual ones."""
    metadata = {
        "name": "shop",
        "namespace": "red",
        "uid": "uid",
        "resourceVersion": "7",
        "creationTimestamp": "2026-01-01T00:00:00Z",
        **parts.pop("metadata", {}),
    }
    wire = {"metadata": metadata, "spec": {"backupSpec": {}}, **parts}
    return request_row(msgspec.json.decode(msgspec.json.encode(wire), type=nonadmin.Request), BACKUPS)


def many_finalizers(turn: int) -> dict[str, Any]:
    return {"metadata": {"finalizers": [f"example.com/{turn}-{number:060}" for number in range(MEGABYTE // 75)]}}


def large_spec(turn: int) -> dict[str, Any]:
    return {"spec": {"backupSpec": {"includedResources": [f"{turn}-{number:060}" for number in range(MEGABYTE // 65)]}}}


def long_requester(turn: int) -> dict[str, Any]:
    return {"metadata": {"annotations": {REQUESTER: f"{turn}" * MEGABYTE, REQUESTER_GROUPS: f"{turn}\n" * MEGABYTE}}}


@pytest.mark.repeats
@pytest.mark.parametrize("parts", [many_finalizers, large_spec, long_requester])
def test_nothing_large_stays_of_a_request_that_is_patched_again_and_again(parts: Any) -> None:  # noqa: ANN401
    row(**parts(0))
    gc.collect()
    tracemalloc.start()
    rows = [row(**parts(turn)) for turn in range(1, 11)]
    gc.collect()
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held < len(rows) * KEPT


def test_our_finalizer_is_known_by_its_index() -> None:
    ours = BACKUPS.finalizer
    found = [row(metadata={"finalizers": each}) for each in ([], [ours], ["example.com/a"], ["example.com/a", ours])]
    assert [(each.finalizer_index, each.has_others_finalizers, each.has_finalizer) for each in found] == [
        (-1, False, False),
        (0, False, True),
        (-1, True, False),
        (1, True, True),
    ]


def test_a_spec_is_kept_up_to_the_bound_and_not_in_part() -> None:
    frame = len(msgspec.json.encode({"storageLocation": ""}))
    for size, is_oversized in ((LARGEST_SPEC, False), (LARGEST_SPEC + 1, True)):
        found = row(spec={"backupSpec": {"storageLocation": "x" * (size - frame)}})
        assert (found.is_oversized, len(found.spec)) == (is_oversized, 0 if is_oversized else size)


def test_a_requester_that_is_too_long_is_unknown_and_not_cut_to_someone_else() -> None:
    found = row(metadata={"annotations": {REQUESTER: "a" * 1025, REQUESTER_GROUPS: "b\n" * 8193}})
    assert (found.requester, found.requester_groups) == ("", ())
    found = row(metadata={"annotations": {REQUESTER: "a" * 1024, REQUESTER_GROUPS: "b\nc"}})
    assert (found.requester, found.requester_groups) == ("a" * 1024, ("b", "c"))


def test_no_name_is_kept_that_is_longer_than_names_are() -> None:
    metadata = {"name": "x", "namespace": "red", "creationTimestamp": "2026-01-01T00:00:00Z"}
    for length, kept in ((253, 253), (254, 0)):
        target = {"kind": "BackupLog", "name": "n" * length}
        wire = msgspec.json.encode({"metadata": metadata, "spec": {"target": target}})
        assert len(download_row(msgspec.json.decode(wire, type=nonadmin.Download)).target.name) == kept
        asked = msgspec.json.encode({"metadata": metadata, "spec": {"restoreSpec": {"backupName": "n" * length}}})
        assert len(request_row(msgspec.json.decode(asked, type=nonadmin.Request), RESTORES).source) == kept
