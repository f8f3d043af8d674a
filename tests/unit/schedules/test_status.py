"""What is written into a Schedule, and what is made of whatever somebody else has written there."""

from datetime import UTC, datetime

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import instant, stamp
from foresail.api.marks import OBSERVED
from foresail.kube.reflector import Change, Reflector, WatchSpec
from foresail.kube.store import Store, Unreadable
from foresail.plan import Key
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, ScheduleRow, backup_row, schedule_row
from foresail.schedules.rules import judge
from foresail.schedules.status import Changes, last_observed, patch_body
from foresail.slots.observed import Observed
from tests.unit.schedules.rows import HOUR, MINUTE, NOON, read, schedule, view, watched, wire

SEEN = Observed("0 * * * *")


@pytest.mark.parametrize(
    ("row", "changes", "expected"),
    [
        (watched(schedule()), Changes(SEEN, "Enabled"), {}),
        (watched(schedule()), Changes(SEEN, "FailedValidation"), {"status": {"phase": "FailedValidation"}}),
        (
            watched(schedule()),
            Changes(SEEN, "Enabled", errors=("no",)),
            {"status": {"validationErrors": ["no"]}},
        ),
        (
            watched(schedule(errors=("no",))),
            Changes(SEEN, "Enabled"),
            {"status": {"validationErrors": None}},
        ),
        (
            watched(schedule(last_backup=NOON)),
            Changes(SEEN, "Enabled", last_backup=NOON),
            {},
        ),
        (
            watched(schedule()),
            Changes(SEEN, "Enabled", last_backup=NOON),
            {"status": {"lastBackup": "2026-03-10T12:00:00Z"}},
        ),
        (
            watched(schedule()),
            Changes(Observed("0 * * * *", consumed=True), "Enabled", last_skipped=NOON, clears_skip=True),
            {
                "metadata": {"annotations": {OBSERVED: '{"schedule":"0 * * * *","consumed":true}'}},
                "spec": {"skipImmediately": None},
                "status": {"lastSkipped": "2026-03-10T12:00:00Z"},
            },
        ),
    ],
)
def test_a_patch_has_what_changes_and_nothing_else(
    row: ScheduleRow, changes: Changes, expected: dict[str, object]
) -> None:
    assert patch_body(row, changes) == expected


@pytest.mark.parametrize(
    "written",
    [
        "",
        "null",
        "[]",
        '"text"',
        "{",
        "{}",
        '{"schedule": 1}',
        '{"schedule": null}',
        '{"schedule": "0 * * * *", "paused": true}',
        '{"schedule": "0 * * * *", "consumed": "yes"}',
        '{"schedule": "0 * * * *", "since": 1700000000}',
        '{"schedule": "\\ud800"}',
        '{"schedule": "0 * * * *", "more": ' + "[" * 100_000 + "]" * 100_000 + "}",
        "[" * 200_000,
        "\x00",
    ],
    ids=range(15),
)
def test_what_somebody_else_wrote_counts_as_nothing_and_is_put_right(written: str) -> None:
    row = schedule(phase="Enabled", last_backup=NOON - HOUR, annotations={OBSERVED: written})
    assert last_observed(row) is None
    plan = decide(view(row), NOON)
    assert plan.status is not None
    first = stamp(NOON - HOUR + MINUTE)
    assert plan.status.body["metadata"] == {"annotations": {OBSERVED: f'{{"schedule":"0 * * * *","first":"{first}"}}'}}
    assert len(plan.actions) == 1


@pytest.mark.parametrize(
    "written",
    [
        {"since": "0001-01-01T00:00:00+14:00"},
        {"since": "9999-12-31T23:59:59-14:00"},
        {"since": "2026-03-10T11:59:59"},
        {"since": "\u0000"},
        {"paused": "0001-01-01T00:00:00+14:00"},
        {"paused": "a while"},
        {"dialect": "cobol"},
        {"from a later version": {"of": ["ours"]}},
    ],
)
def test_words_that_mean_nothing_do_not_keep_a_schedule_from_its_run(written: dict[str, object]) -> None:
    row = watched(schedule(last_backup=NOON - HOUR), **written)
    verdict = judge(view(row), NOON)
    assert verdict.fires == NOON
    assert verdict.changes.observed.paused_since is None


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-03-10T12:00:00Z", NOON),
        ("2026-03-10T13:00:00+01:00", NOON),
        ("2026-03-10T12:00:00", None),
        ("0001-01-01T00:00:00+14:00", None),
        ("9999-12-31T23:59:59-14:00", None),
        ("0001-01-01T00:00:00Z", datetime(1, 1, 1, tzinfo=UTC)),
        ("soon", None),
        ("", None),
    ],
)
def test_an_instant_is_read_from_any_text(text: str, expected: datetime | None) -> None:
    assert instant(text) == expected


@pytest.mark.parametrize("text", ["0001-01-01T00:00:00Z", "0999-12-31T23:59:59Z", "2026-03-10T12:00:00Z"])
def test_an_instant_of_any_year_is_written_as_it_is_read(text: str) -> None:
    found = instant(text)
    assert found is not None
    assert stamp(found.replace(microsecond=999_999)) == text


# What the reflector makes of objects that are not as they should be


def reflected(data: bytes) -> tuple[list[ScheduleRow], list[Unreadable]]:
    """Feed one Schedule to a reflector as the API server would send it."""
    store, said = Store[ScheduleRow](), list[Unreadable]()
    spec = WatchSpec(velero.SCHEDULE, velero.Schedule, schedule_row)

    def ignore(_: Change[ScheduleRow]) -> None:
        pass

    reflector = Reflector(spec, store, ignore, said.append)
    assert reflector.feed_line(b'{"type": "ADDED", "object": ' + data + b"}") is None
    return [row for row in map(store.get, store) if row], said


@pytest.mark.parametrize(
    ("data", "problem"),
    [
        (wire({"schedule": 5}), "$.spec.schedule"),
        (wire({"paused": "yes"}), "$.spec.paused"),
        (wire({"template": []}), "Expected `object`, got `array`"),
        (wire({"template": None}), "Expected `object`, got `null`"),
        (wire({"template": {"metadata": "text"}}), "$.metadata"),
        (wire({"template": {"metadata": {"labels": {"a": 1}}}}), "$.metadata.labels"),
        (wire({"template": {"storageLocation": {}}}), "$.storageLocation"),
        (wire(status={"lastBackup": "yesterday"}), "$.status.lastBackup"),
        (wire(status={"lastBackup": "2026-03-10T12:00:00"}), "names no time zone"),
        (wire(status={"lastSkipped": "0001-01-01T00:00:00+14:00"}), "outside the years 1 to 9999"),
        (wire(creationTimestamp=None), "it has no creationTimestamp"),
    ],
)
def test_a_schedule_of_the_wrong_shape_is_unreadable_and_ends_nothing(data: bytes, problem: str) -> None:
    rows, (found,) = reflected(data)
    assert rows == []
    assert found.key == Key("velero", "daily")
    assert problem in found.problem


def test_a_schedule_with_nothing_in_it_can_be_read() -> None:
    assert reflected(wire())[0] == [read(wire())]
    assert read(wire({"skipImmediately": None, "paused": None})).skip is None


@pytest.mark.parametrize("slot", ["0001-01-01T00:00:00+14:00", "9999-12-31T23:59:59-14:00", "soon", "5"])
def test_a_backup_whose_slot_is_no_instant_has_none(slot: str) -> None:
    """One annotation on a Backup synced from elsewhere ended the watch, and with it the operator."""
    assert _backup({"foresail.dev/slot": slot}).slot is None


def test_times_of_a_backup_are_compared_in_utc() -> None:
    row = _backup({}, expiration="2026-03-10T13:00:00+01:00")
    assert row.expires == NOON
    with pytest.raises(ValueError, match="outside the years"):
        _backup({}, expiration="9999-12-31T23:59:59-14:00")


def _backup(annotations: dict[str, str], **status: str) -> BackupRow:
    metadata = {"name": "a", "creationTimestamp": "2026-03-10T12:00:00Z", "annotations": annotations}
    data = msgspec.json.encode({"metadata": metadata, "status": status})
    return backup_row(msgspec.json.decode(data, type=velero.Backup))
