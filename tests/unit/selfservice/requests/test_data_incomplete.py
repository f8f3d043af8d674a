"""Which volumes a complete backup has left out: a sentence for people, and a field for programs."""

import json
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any

import pytest

from foresail.api.nonadmin import VolumesLeftOut
from foresail.selfservice.requests.outcome import MOST_NAMES, LeftOut, volumes_left_out
from foresail.selfservice.rows.velero import ClaimRow

NOW = datetime(2026, 11, 16, 12, tzinfo=UTC)


def reported(names: list[str], snapshots: int = 0) -> LeftOut:
    """Return what is reported of a backup with so many snapshots of these claims, or none."""
    claims = tuple(ClaimRow(name, "shop", name, NOW, is_bound=True) for name in names)
    view: Any = SimpleNamespace(claims=claims, saved=frozenset(), transfers=())
    found = volumes_left_out(view, json.dumps({"phase": "Completed", "volumeSnapshotsCompleted": snapshots}))
    assert found is not None
    return found


def test_the_field_names_more_claims_than_the_sentence() -> None:
    names = [f"claim-{number}" for number in range(9)]
    found = reported(names)
    assert found.volumes == VolumesLeftOut(9, tuple(names))
    assert found.volumes.all_claims == frozenset(names)
    assert found.condition.message.endswith("claim-4 and 4 more")


@pytest.mark.parametrize(("number", "snapshots"), [(MOST_NAMES + 1, 0), (2, 1)])
def test_all_claims_are_known_or_none(number: int, snapshots: int) -> None:
    """Velero's status has the number of snapshots, and not whose they are."""
    assert reported([f"claim-{each}" for each in range(number)], snapshots).volumes.all_claims is None
