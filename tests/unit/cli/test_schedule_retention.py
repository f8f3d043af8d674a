"""What `foresail schedule retention` and `describe` show of Backups that Velero has begun to delete."""

from dataclasses import replace
from datetime import timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.marks import KEPT, RETENTION_APPROVED
from foresail.cli.schedule.get import described
from foresail.cli.schedule.retention import as_data, listed, undoing
from foresail.cli.schedule.snapshot import EvaluatedSchedule, evaluate
from foresail.plan import Key
from foresail.schedules.observe import BackupRow, DeletionRow, Unread
from tests.unit.cli.made_up import NOW, at, backup, schedule_wire, seen
from tests.unit.schedules.test_policies import policy

KEEP_TWO = policy(retention={"keepLast": 2})


def run(hour: int, phase: str = "Completed", **given: object) -> BackupRow:
    slot = at(f"{hour:02}:00:00")
    fields = {"slot": slot, "created": slot, "completed": slot + timedelta(minutes=1), "location": "default"}
    return backup(f"daily-{hour}", phase, **{**fields, **given})


def shown(
    *rows: BackupRow, deletions: tuple[DeletionRow, ...] = (), unread: tuple[Unread, ...] = ()
) -> EvaluatedSchedule:
    found = seen(schedule_wire(), rows, policies=(KEEP_TWO,))
    assert found.known is not None
    known = replace(found.known, deletions=deletions, unread_deletions=unread)
    return evaluate(found.schedule, found.content, known, NOW)


def fates(each: EvaluatedSchedule) -> dict[str, str]:
    lines = listed(each, NOW).splitlines()
    start = lines[1].index("RETENTION")
    return {line.split()[0]: line[start:] for line in lines[2:] if line.startswith("daily-")}


def test_each_backup_that_does_not_count_says_why() -> None:
    found = shown(
        run(1, schedule_uid="another"),
        run(2, expires=NOW),
        run(3, "FailedValidation"),
        run(4, completed=at("00:00:00")),
        run(5, "Deleting"),
        run(6),
    )
    assert fates(found) == {
        "daily-1": "not counted: not a run of this Schedule",
        "daily-2": "not counted: it has expired, and Velero deletes it",
        "daily-3": "not counted: Velero refused it",
        "daily-4": "not counted: it came from a bucket",
        "daily-5": "deleted: an earlier deletion did not finish",
        "daily-6": "kept: keepLast, keepGood",
    }
    assert "keeps 1 and deletes 1 Backups" in listed(found, NOW)
    (again,) = [each for each in as_data(found)["backups"] if each["name"] == "daily-5"]
    assert (again["deletedBecause"], again["counts"]) == ("an earlier deletion did not finish", False)


def test_failed_deletion_is_shown_with_veleros_error() -> None:
    failed = DeletionRow(Key("velero", "x"), "daily-5", is_open=False, is_ours=True, errors=("a snapshot is locked",))
    found = shown(run(5, "Deleting"), run(6), deletions=(failed,))
    assert fates(found)["daily-5"] == "not counted: Velero has begun to delete it"
    said = "Velero could not delete Backup daily-5: a snapshot is locked."
    assert f"RetentionFailed: {said}" in listed(found, NOW)
    assert said in as_data(found)["failed"]["message"]
    assert said in described(found, NOW)


def test_request_that_cannot_be_read_is_shown_and_no_deletion_is_announced_again() -> None:
    odd = Unread(Key("velero", "daily-5-retention"), "Expected `array`")
    found = shown(run(5, "Deleting"), run(6), unread=(odd,))
    assert fates(found)["daily-5"] == "not counted: Velero has begun to delete it"
    said = "DeleteBackupRequest velero/daily-5-retention cannot be read (Expected `array`)"
    assert f"RetentionFailed: {said}" in listed(found, NOW)


def test_ttl_of_each_kept_backup_is_compared_with_the_rules() -> None:
    monthly = policy(retention={"monthly": 12})
    rows = []
    for number in range(3):
        slot = NOW - timedelta(days=30 * number)
        times: dict[str, Any] = {"slot": slot, "created": slot, "completed": slot + timedelta(minutes=1)}
        rows.append(run(6, key=Key("velero", f"daily-{number}"), expires=slot + timedelta(days=90), **times))
    found = seen(schedule_wire("0 12 1 * *"), rows, policies=(monthly,))
    said = fates(found)
    assert all("; but Velero deletes it on " in text for text in said.values()), said
    assert listed(found, NOW).endswith("foresail schedule retention daily -n velero --extend")
    assert all(each["expiresBeforeRules"] for each in as_data(found)["backups"])
    lasting = seen(schedule_wire("0 12 1 * *"), [run(6, expires=NOW + timedelta(days=4000))], policies=(monthly,))
    assert fates(lasting) == {"daily-6": "kept: monthly, keepGood"}


def test_undo_pins_what_is_marked_and_removes_the_approval() -> None:
    found = shown(run(1, delete_after=NOW), run(2), run(3, "Deleting", delete_after=NOW))
    (pin,) = undoing([found])
    assert (pin.kind, pin.key.name) == (velero.BACKUP, "daily-1")
    assert pin.body == {"metadata": {"annotations": KEPT}}
    schedule = msgspec.structs.replace(found.schedule, annotations={RETENTION_APPROVED: "rules=1 2"})
    removal, _ = undoing([replace(found, view=msgspec.structs.replace(found.view, schedule=schedule))])
    assert (removal.kind, removal.key) == (velero.SCHEDULE, schedule.key)
    assert removal.body == {"metadata": {"annotations": {RETENTION_APPROVED: None}}}
