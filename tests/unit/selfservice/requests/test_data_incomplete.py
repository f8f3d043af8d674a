"""Which claims a report about left-out volumes names: coverage reads it again."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from foresail.selfservice.requests.data_incomplete import claims_left_out, volumes_left_out
from foresail.selfservice.requests.status import set_condition
from foresail.selfservice.rows.claims import ClaimRow
from foresail.selfservice.rows.requests import Status

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


@pytest.mark.parametrize(
    ("message", "claims"),
    [
        ("Completed, but 1 of 1 volume was not backed up: data", {"data"}),
        ("Completed, but 2 of 3 volumes were not backed up: data, logs.old-1", {"data", "logs.old-1"}),
        ("Completed, but 1 of 2 volumes was not backed up: data; 1 kind is not served: widgets", {"data"}),
        ("Completed, but 6 of 6 volumes were not backed up: a, b, c, d, e and 1 more", None),
        ("Completed, but 1 of 2 volumes was not backed up", None),
    ],
)
def test_the_claims_of_a_report_are_read_again_if_it_names_all(message: str, claims: set[str] | None) -> None:
    assert claims_left_out(message) == (None if claims is None else frozenset(claims))


def reported(names: list[str], snapshots: int = 0, more: str = "") -> str:
    """Return the message in the status of a request whose backup has so many snapshots of these claims, or none."""
    claims = tuple(ClaimRow(name, "shop", name, NOW, is_bound=True) for name in names)
    view: Any = SimpleNamespace(claims=claims, saved=frozenset(), transfers=())
    report = volumes_left_out(view, json.dumps({"phase": "Completed", "volumeSnapshotsCompleted": snapshots}))
    assert report is not None
    wanted = type(report)(report.type, report.status, report.reason, f"{report.message}{more}")
    condition = set_condition(Status(), wanted, 1, NOW).condition(report.type)
    assert condition is not None
    return condition.message


@pytest.mark.parametrize("more", ["", "; Kinds that the cluster does not serve were left out: widgets"])
@pytest.mark.parametrize("number", range(1, 8))
def test_what_the_operator_writes_is_what_coverage_reads(number: int, more: str) -> None:
    """The sentence has no other form: a status field would be pruned by older definitions of the kind."""
    longest = [f"{chr(ord('a') + index)}{'.x' * 126}" for index in range(number)]
    for names in (longest, [name[:1] for name in longest]):
        read = claims_left_out(reported(names, more=more))
        assert read == (frozenset(names) if number <= 5 else None), "all of them, or none is trusted"
    if number > 1:
        assert claims_left_out(reported(longest, 1, more)) is None, "Velero does not tell whose snapshot it is"
