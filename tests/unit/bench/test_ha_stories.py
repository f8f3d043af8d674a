"""How the objects of a life on a highly available control plane are named, and what the judge makes of them."""

from typing import Any
from unittest.mock import Mock

import pytest

from foresail.api.marks import SCHEDULE_UID, SLOT
from tests.cluster.ha_lives import Event
from tests.cluster.ha_stories import Scheduled, Served
from tests.worlds.perturb_judge import wrong


def event(kind: str, name: str, type_: str = "ADDED", **content: Any) -> Event:  # noqa: ANN401 - JSON
    meta = {"name": name, "uid": f"{kind}-{name}", "creationTimestamp": "2026-11-19T17:00:00Z"}
    meta |= content.pop("metadata", {})
    return Event(kind, type_, {"metadata": meta, **content})


def run(number: int, type_: str = "ADDED", uid: str = "", mark: str = "sc0") -> Event:
    marks = {SCHEDULE_UID: f"Schedule-{mark}-plain", SLOT: f"2026-11-19T17:00:{number * 8:02}Z"}
    labels = {"velero.io/schedule-name": f"{mark}-plain"}
    name = f"{mark}-plain-{number}"
    meta = {"annotations": marks, "labels": labels, "uid": uid or name}
    return event("Backup", name, type_, metadata=meta, status={"phase": "Completed"})


def life(*events: Event, mark: str = "sc0") -> Scheduled:
    story = Scheduled(Mock(), mark)
    for each in (event("Schedule", f"{mark}-plain"), *events):
        assert story.owns(each)
        story.hear(each)
    return story


def test_runs_are_named_by_their_number_so_that_lives_can_be_compared() -> None:
    asked = event(
        "DeleteBackupRequest",
        "asked",
        spec={"backupName": "sc0-plain-1"},
        metadata={"annotations": {SCHEDULE_UID: "Schedule-sc0-plain"}},
    )
    first = life(run(1), run(2), asked, run(1, "DELETED")).lived()
    assert first.born.pop("DeleteBackupRequest of plain #1") == 1
    assert first.state.pop("DeleteBackupRequest of plain #1")
    later = life(run(1, mark="sc7"), run(2, mark="sc7"), run(1, "DELETED", mark="sc7"), mark="sc7").lived()
    assert first.born == {"Schedule plain": 1, "Backup plain #1": 1, "Backup plain #2": 1}
    assert first.gone == {"Backup plain #1": 1}
    assert list(first.state) == ["Schedule plain", "Backup plain #2"]
    assert list(wrong(later, first)) == []


@pytest.mark.parametrize(
    ("events", "found"),
    [
        ([run(1), run(2), run(2, uid="twice")], "a run is doubled: plain #2"),
        ([run(1)], "a run is missing: plain #2"),
        ([run(1), run(2), run(2, "DELETED")], "deleted, and not in the reference: Backup plain #2, 1 times more"),
    ],
)
def test_the_judge_sees_what_is_wrong(events: list[Event], found: str) -> None:
    whole = life(run(1), run(2)).lived()
    assert found in list(wrong(life(*events).lived(), whole))


def test_a_run_that_comes_late_is_seen() -> None:
    late = run(2)
    late.item["metadata"]["creationTimestamp"] = "2026-11-19T17:00:50Z"
    (found,) = life(run(1), late).lived().stuck
    assert found.startswith("plain: the run for 2026-11-19 17:00:16+00:00 came 34 s late")
    (found,) = life(run(1), run(7)).lived().stuck
    assert "48 s after the one before" in found


def test_what_velero_has_for_a_tenant_is_named_by_the_request() -> None:
    story = Served(Mock(), "te3")
    uid = "0b0b0b0b-0000-4000-8000-00000000cafe"
    marks = {"openshift.io/oadp-nab-origin-namespace": "te3", "openshift.io/oadp-nab-origin-name": "kept"}
    backup = event("Backup", f"te3-kept-{uid}", metadata={"annotations": marks})
    asked = event("DeleteBackupRequest", "anything", spec={"backupName": f"te3-kept-{uid}"})
    assert story.owns(backup)
    assert story.owns(asked)
    assert (story.named(backup), story.named(asked)) == ("kept", "of kept")
    marks = {"openshift.io/oadp-nab-origin-namespace": "te33"}
    assert not story.owns(event("Backup", "te33-kept", metadata={"annotations": marks}))
