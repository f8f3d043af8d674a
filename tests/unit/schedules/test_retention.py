"""Retention of a Schedule's Backups: what is deleted, one at a time, and what keeps it from deleting anything."""

from datetime import UTC, datetime, timedelta
from itertools import islice
from typing import Any

import msgspec
import pytest
from hypothesis import assume, example, given, settings
from hypothesis import strategies as st

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import RETENTION, RETENTION_APPROVED, SCHEDULE_UID
from foresail.api.schedule_policy import MOST_KEPT
from foresail.cron import Dialect, fires_after, parse
from foresail.cron.duration import length_of
from foresail.deletion import approval
from foresail.plan import Create, Key
from foresail.retention import Copy, Rule, kept
from foresail.schedules.decide import decide
from foresail.schedules.observe import (
    BackupRow,
    DeletionRow,
    LocationRow,
    ScheduleRow,
    ScheduleView,
    Unread,
    deletion_row,
)
from foresail.schedules.policies import retention_rules, settings_under
from foresail.schedules.reasons import Reason
from foresail.schedules.retention import MOST_OPEN_DELETIONS, Retained, asked_for, digest_of, retain
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.slots.observed import Observed
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules.rows import AVAILABLE, DAY, HOUR, MINUTE, NOON, UID, backup, schedule, view, watched
from tests.unit.schedules.test_policies import policy

KEEP_TWO = policy(retention={"keepLast": 2, "gracePeriod": "0s"})
RULES = retention_rules(KEEP_TWO, "UTC")
assert RULES is not None
DIGEST = digest_of(RULES)


def copies(count: int, **changed: Any) -> list[BackupRow]:  # noqa: ANN401 - any column
    """Return Completed Backups of the last hours, the newest first."""
    ends = {"completed": NOON, "location": "default"}
    return [backup(slot=NOON - (number + 1) * HOUR, **{**ends, **changed}) for number in range(count)]


def seen(*backups: BackupRow, row: ScheduleRow | None = None, **changed: Any) -> ScheduleView:  # noqa: ANN401 - any part
    """Return a Schedule that keeps its last two Backups, by rules that were in effect before."""
    found = row or watched(schedule(last_backup=NOON), retention=DIGEST)
    return view(found, *backups, **{"policy": KEEP_TWO, "locations": (AVAILABLE,), **changed})


def retained(view: ScheduleView, observed: str = DIGEST) -> Retained:
    """Return what the rules say, which they do here."""
    found = retain(view, Observed("", retention=observed), NOON)
    assert found is not None
    return found


def deletions(view: ScheduleView) -> list[Create]:
    """Return the deletions of a Plan."""
    return [
        each for each in decide(view, NOON).actions if isinstance(each, Create) and each.kind == velero.DELETE_REQUEST
    ]


def test_oldest_backup_is_deleted_first_and_says_why() -> None:
    rows = copies(4, uid="u")
    (deletion,) = deletions(seen(*rows))
    oldest = rows[-1].key.name
    assert deletion.key == Key("velero", f"{oldest}-retention")
    assert deletion.mark == {SCHEDULE_UID: UID}
    assert deletion.body["spec"] == {"backupName": oldest}
    assert deletion.body["metadata"] == {
        "labels": {velero.BACKUP_NAME_LABEL: oldest, velero.BACKUP_UID_LABEL: "u"},
        "annotations": {RETENTION: "keepLast 2 keeps newer ones"},
        "ownerReferences": [{"apiVersion": "velero.io/v1", "kind": "Backup", "name": oldest, "uid": "u"}],
    }
    notes = decide(seen(*rows), NOON).notes
    assert [each.reason for each in notes] == [Reason.RETENTION_DELETED.value]
    assert notes[0].message == f"deleted Backup {oldest}: keepLast 2 keeps newer ones."


def test_without_retention_nothing_is_deleted() -> None:
    assert retain(seen(*copies(9), policy=None), None, NOON) is None
    assert not deletions(seen(*copies(9), policy=policy(timeZone="UTC")))


def test_next_one_waits_for_the_deletion_before_it() -> None:
    rows = copies(4)
    open_one = DeletionRow(Key("velero", "x"), rows[-1].key.name, is_open=True, is_ours=True)
    assert not deletions(seen(*rows, deletions=(open_one,)))


def test_velero_gets_a_bounded_number_of_deletions() -> None:
    assert not deletions(seen(*copies(4), open_deletions=MOST_OPEN_DELETIONS))
    assert deletions(seen(*copies(4), open_deletions=MOST_OPEN_DELETIONS - 1))


def test_deletion_that_velero_refused_is_reported_and_the_next_backup_goes() -> None:
    rows = copies(4)
    failed = DeletionRow(Key("velero", "x"), rows[-1].key.name, is_open=False, is_ours=True, errors=("no such bucket",))
    plan = decide(seen(*rows, deletions=(failed,)), NOON)
    assert Reason.RETENTION_FAILED.value in [each.reason for each in plan.notes]
    (deletion,) = deletions(seen(*rows, deletions=(failed,)))
    assert deletion.body["spec"] == {"backupName": rows[-2].key.name}


LONG_AGO = NOON - DAY


def stuck(rows: list[BackupRow], **changed: Any) -> tuple[list[BackupRow], str]:  # noqa: ANN401 - any column
    """Return the Backups with the newest one amid a deletion, and its name."""
    first = msgspec.structs.replace(rows[0], phase="Deleting", **changed)
    return [first, *rows[1:]], first.key.name


def test_deletion_that_failed_after_it_had_begun_is_reported_with_veleros_error() -> None:
    rows, name = stuck(copies(3))
    failed = DeletionRow(Key("velero", "x"), name, is_open=False, is_ours=True, errors=("snapshot is locked",))
    plan = decide(seen(*rows, deletions=(failed,)), NOON)
    (note,) = plan.notes
    assert note.reason == Reason.RETENTION_FAILED.value
    assert f"could not delete Backup {name}: snapshot is locked." in note.message
    assert not plan.actions


def test_deletion_that_failed_is_requested_again_when_velero_has_removed_the_request() -> None:
    rows, name = stuck(copies(3))
    (deletion,) = deletions(seen(*rows, unrequested={name: LONG_AGO}))
    assert deletion.body["spec"] == {"backupName": name}
    (note,) = decide(seen(*rows, unrequested={name: LONG_AGO}), NOON).notes
    assert note.message == f"deleted Backup {name}: an earlier deletion did not finish."


def test_backup_whose_request_was_removed_just_now_may_be_deleted_already() -> None:
    rows, name = stuck(copies(3))
    plan = decide(seen(*rows, unrequested={name: NOON}), NOON)
    assert not plan.actions
    assert plan.wake_at is not None
    assert NOON < plan.wake_at <= NOON + 2 * MINUTE
    assert deletions(seen(*rows, unrequested={name: NOON - 2 * MINUTE}))


def test_backup_amid_a_deletion_counts_for_no_rule_and_no_approval() -> None:
    rows, name = stuck(copies(3))
    found = retained(seen(*rows, row=watched(schedule(last_backup=NOON)), unrequested={name: LONG_AGO}), "")
    assert found.again == (name,)
    assert set(found.kept) == {each.key.name for each in rows[1:]}
    assert not found.goes
    assert found.is_in_effect


@pytest.mark.parametrize(
    ("changed", "seen_as"),
    [
        ({"is_pinned": True}, {}),
        ({"schedule_uid": "another"}, {}),
        ({"completed": NOON - 99 * DAY}, {}),
        ({"expires": NOON - HOUR}, {}),
        ({"location": "gone"}, {}),
        ({}, {"locations": (msgspec.structs.replace(AVAILABLE, phase="Unavailable"),)}),
        ({}, {"restored": frozenset({copies(1)[0].key.name})}),
    ],
)
def test_unfinished_deletion_of_a_protected_backup_is_not_requested_again(
    changed: dict[str, Any], seen_as: dict[str, Any]
) -> None:
    rows, name = stuck(copies(3), **changed)
    assert not deletions(seen(*rows, unrequested={name: LONG_AGO}, **seen_as))


def test_unfinished_deletion_in_a_location_that_is_gone_is_reported_and_blocks_no_other() -> None:
    rows, name = stuck(copies(5), location="gone")
    view = seen(*rows, unrequested={name: LONG_AGO})
    assert [each.body["spec"] for each in deletions(view)] == [{"backupName": rows[-1].key.name}]
    reported = next(each for each in decide(view, NOON).notes if each.reason == Reason.RETENTION_FAILED.value)
    assert "BackupStorageLocation gone" in reported.message
    assert f"the deletion of Backup {name}, which failed, is not repeated" in reported.message


@pytest.mark.parametrize("problem", ["cannot be read (Expected `array`)", "is for Backup other"])
def test_request_in_the_place_of_a_deletion_is_reported_and_blocks_no_other(problem: str) -> None:
    rows = copies(4)
    oldest = rows[-1].key.name
    view = seen(*rows, unusable={oldest: Unread(Key("velero", f"{oldest}-retention"), problem)})
    assert [each.body["spec"] for each in deletions(view)] == [{"backupName": rows[-2].key.name}]
    (reported,) = [each for each in decide(view, NOON).notes if each.reason == Reason.RETENTION_FAILED.value]
    expected = f"DeleteBackupRequest velero/{oldest}-retention {problem}, so Backup {oldest} is not deleted."
    assert reported.message == f"{expected} Delete that request."


def begun(name: str, at: datetime, created: datetime = LONG_AGO) -> DeletionRow:
    """Return a deletion that Velero has begun, as it is read from the API server."""
    writes = [{"manager": "foresail", "time": stamp(created)}, {"manager": "velero-server", "time": stamp(at)}]
    metadata = {"name": f"{name}-retention", "namespace": "velero", "creationTimestamp": stamp(created)}
    wire = {
        "metadata": {**metadata, "managedFields": writes},
        "spec": {"backupName": name},
        "status": {"phase": "InProgress"},
    }
    return deletion_row(msgspec.convert(wire, velero.DeleteBackupRequest))


def test_deletion_amid_which_velero_was_killed_is_reported_and_blocks_no_other() -> None:
    rows = copies(5)
    rows, name = [*rows[:4], msgspec.structs.replace(rows[4], phase="Deleting")], rows[4].key.name
    young = decide(seen(*rows, deletions=(begun(name, NOON - 20 * MINUTE),)), NOON)
    assert not young.actions
    assert not young.notes
    assert young.wake_at == NOON + 40 * MINUTE
    old = seen(*rows, deletions=(begun(name, NOON - 3 * HOUR),))
    assert [each.body["spec"] for each in deletions(old)] == [{"backupName": rows[3].key.name}]
    reported = next(each for each in decide(old, NOON).notes if each.reason == Reason.RETENTION_FAILED.value)
    assert f"Velero has not finished the deletion of Backup {name}" in reported.message
    assert len(reported.message.split()) <= 30


def test_schedule_that_waits_for_other_deletions_asks_again_within_an_hour() -> None:
    plan = decide(
        seen(
            *copies(4),
            row=watched(schedule(text="0 0 1 1 *", last_backup=NOON), retention=DIGEST),
            open_deletions=MOST_OPEN_DELETIONS,
        ),
        NOON,
    )
    assert plan.wake_at == NOON + HOUR


@pytest.mark.parametrize(
    "changed",
    [
        {"schedule_uid": "another"},  # of a Schedule that was deleted, or of another cluster
        {"completed": NOON - 99 * DAY},  # it ended before this cluster knew it: it came from a bucket
        {"expires": NOON - HOUR},
        {"phase": "Deleting"},
        {"phase": "FailedValidation"},
        {"schedule_uid": "", "key": Key("velero", "before-the-upgrade")},  # made by hand
    ],
)
def test_backup_that_is_no_copy_of_this_schedule_neither_counts_nor_goes(changed: dict[str, Any]) -> None:
    rows = copies(4)
    other = msgspec.structs.replace(rows[0], **changed)
    found = retained(seen(other, *rows[1:]))
    assert other.key.name not in found.kept
    assert list(found.goes) == [rows[3].key.name]


def test_runs_of_veleros_own_controller_count() -> None:
    before = backup(key=Key("velero", "daily-20260309030000"), created=NOON - DAY, completed=NOON, location="default")
    assert list(retained(seen(*copies(2), before)).goes) == [before.key.name]


def test_pinned_running_and_restored_backups_stay() -> None:
    rows = copies(5)
    pinned = msgspec.structs.replace(rows[4], is_pinned=True)
    running = msgspec.structs.replace(rows[3], phase="InProgress", completed=None)
    found = retained(seen(*rows[:3], running, pinned, restored=frozenset({rows[2].key.name})))
    assert not found.goes
    assert found.kept[pinned.key.name] == (Rule.PINNED,)
    assert found.kept[running.key.name] == (Rule.UNFINISHED,)
    assert found.kept[rows[2].key.name] == (Rule.RESTORED,)


@pytest.mark.parametrize(
    ("changed", "words"),
    [
        ({"locations": ()}, "does not exist"),
        ({"locations": (msgspec.structs.replace(AVAILABLE, phase="Unavailable"),)}, "is Unavailable"),
        ({"locations": (msgspec.structs.replace(AVAILABLE, is_read_only=True),)}, "is read-only"),
        ({"unread": (Unread(Key("velero", "odd"), "no phase"),)}, "Backup velero/odd cannot be read"),
        (
            {"unread_policies": (Unread(Key("", "gold"), "odd"),)},
            "Correct SchedulePolicy gold: it cannot be read (odd)",
        ),
    ],
)
def test_nothing_is_deleted_in_doubt(changed: dict[str, Any], words: str) -> None:
    doubtful = seen(*copies(4), **changed)
    assert not deletions(doubtful)
    because = retained(doubtful).blocked_by
    assert because is not None
    assert because.reason is Reason.RETENTION_IN_DOUBT
    assert words in because.message


def test_nothing_is_deleted_while_a_backup_is_from_the_future() -> None:
    rows = copies(4)
    ahead = msgspec.structs.replace(rows[0], slot=NOON + DAY, completed=NOON + DAY)
    because = retained(seen(ahead, *rows[1:])).blocked_by
    assert because is not None
    assert "Check the clocks" in because.message


def test_new_rules_that_delete_much_wait_for_approval() -> None:
    row = watched(schedule(last_backup=NOON))
    unapproved = seen(*copies(4), row=row)
    because = retained(unapproved, "").blocked_by
    assert because is not None
    assert because.reason is Reason.RETENTION_NOT_APPROVED
    assert "would delete 2 of 4 Backups" in because.message
    assert not deletions(unapproved)
    assert judge(unapproved, NOON).changes.observed.retention == ""
    found = retained(unapproved, "")
    listed = approval(asked_for(unapproved.backups, found), found.digest)
    approved = msgspec.structs.replace(row, annotations={**row.annotations, RETENTION_APPROVED: listed})
    assert deletions(seen(*copies(4), row=approved))
    other = msgspec.structs.replace(row, annotations={**row.annotations, RETENTION_APPROVED: "of other Backups"})
    assert not deletions(seen(*copies(4), row=other))


def test_new_rules_that_delete_nothing_are_in_effect_from_then_on() -> None:
    row = watched(schedule(last_backup=NOON))
    observed = judge(seen(*copies(2), row=row), NOON).changes.observed
    assert observed.retention == DIGEST
    assert deletions(seen(*copies(4), row=watched(schedule(last_backup=NOON), retention=observed.retention)))


def test_few_of_many_go_without_approval() -> None:
    keep_nine = policy(retention={"keepLast": 9, "gracePeriod": "0s"})
    assert deletions(seen(*copies(11), row=watched(schedule(last_backup=NOON)), policy=keep_nine))
    assert not deletions(
        seen(*copies(60), row=watched(schedule(last_backup=NOON)), policy=policy(retention={"keepLast": 49}))
    )


def test_removed_policy_forgets_the_rules() -> None:
    assert judge(seen(*copies(2), policy=None), NOON).changes.observed.retention == ""


def test_new_backup_outlives_what_the_rules_keep() -> None:
    due = watched(schedule(template=b'{"ttl": "24h0m0s"}', last_backup=NOON - HOUR), retention=DIGEST)
    monthly = policy(retention={"monthly": 12})
    (made,) = decide(view(due, policy=monthly, locations=(AVAILABLE,)), NOON).actions
    assert isinstance(made, Create)
    assert made.body["spec"] == {"ttl": f"{2 * 12 * 31 * 24}h0m0s"}
    (plain,) = decide(view(due), NOON).actions
    assert isinstance(plain, Create)
    assert plain.body["spec"] == {"ttl": "24h0m0s"}


@pytest.mark.parametrize(
    "rules",
    [
        *({field: MOST_KEPT} for field in ("keepLast", "hourly", "daily", "weekly", "monthly", "yearly", "keepGood")),
        {"keepWithin": "999999h"},
    ],
)
@pytest.mark.parametrize("text", ["* * * * *", "0 12 * * *", "0 12 10 3 *", "0 0 29 2 *"])
def test_go_can_read_the_ttl_of_the_largest_numbers(rules: dict[str, Any], text: str) -> None:
    """One ttl that Go cannot read, in one Backup, stops Velero from listing all of them."""
    due = watched(schedule(text=text, created=NOON - 3000 * DAY, last_backup=NOON - 3000 * DAY))
    row = policy(retention={"keepLast": 1, **rules})
    (made,) = decide(view(due, policy=row, locations=(AVAILABLE,)), NOON).actions
    assert isinstance(made, Create)
    length = length_of(made.body["spec"]["ttl"])  # type: ignore[index]
    assert length is not None
    assert length <= timedelta(hours=876_000)


def ttl_of(text: str, slot: datetime, row: PolicyRow) -> timedelta:
    """Return the ttl of the Backup of a slot."""
    due = watched(schedule(text=text, created=slot - timedelta(seconds=1)), zone=row.spec.time_zone or "")
    seen = view(due, policy=row, locations=(AVAILABLE,), settings=settings_under(row, Settings()))
    (made,) = decide(seen, slot).actions
    assert isinstance(made, Create)
    length = length_of(made.body["spec"]["ttl"])  # type: ignore[index]
    assert length is not None
    return length


@pytest.mark.parametrize(
    ("text", "rules", "days"),
    [
        ("0 0 * * 0", {"daily": 30}, 210),
        ("0 0 * * *", {"hourly": 168}, 168),
        ("0 0,1 * * *", {"keepLast": 1000}, 500),
        ("0 0 1 * *", {"weekly": 12}, 365),
        ("* * 1 * *", {"daily": 12}, 365),
        ("0 0 1 1 *", {"monthly": 5}, 5 * 365),
    ],
)
def test_runs_that_are_rarer_than_the_periods_of_a_rule_count_as_many(
    text: str, rules: dict[str, int], days: int
) -> None:
    slot = parse(text, Dialect.GOCRON, "UTC").next(NOON)
    assert slot is not None
    assert ttl_of(text, slot, policy(retention=rules)) >= days * DAY


@pytest.mark.parametrize("outside", ["Delay", "Skip"])
def test_ttl_counts_the_runs_that_windows_leave(outside: str) -> None:
    saturdays = {"allowed": [{"schedule": "0 0 * * 6", "duration": "24h"}], "outside": outside}
    row = policy(retention={"daily": 30}, windows=saturdays)
    assert ttl_of("0 12 * * *", datetime(2026, 3, 14, 12, tzinfo=UTC), row) >= 30 * 7 * DAY


EXPRESSIONS = st.builds(
    "{} {} {} {} {}".format,
    st.sampled_from(["0", "30", "0,45"]),
    st.sampled_from(["0", "3", "0,1", "*/6", "8-17", "*"]),
    st.sampled_from(["*", "*", "*", "1", "1,2", "*/10"]),
    st.sampled_from(["*", "*", "*", "1", "1,7"]),
    st.sampled_from(["*", "*", "0", "1-5"]),
)
FIELDS = ("keepLast", "hourly", "daily", "weekly", "monthly", "yearly")
COUNTS = st.dictionaries(st.sampled_from(FIELDS), st.integers(1, 40), min_size=1)


@settings(deadline=None, max_examples=30)
@given(EXPRESSIONS, COUNTS, st.none() | st.integers(1, 2_000), st.sampled_from(["UTC", "Europe/Berlin"]))
@example("0 0,1 1 1 1-5", {"keepLast": 1}, None, "UTC")  # two years without a run
@example("0 0 1,2 1,7 0", {"yearly": 8}, None, "UTC")  # seventeen years until eight have a run
def test_velero_deletes_no_backup_that_the_rules_keep(
    text: str, counts: dict[str, int], within: int | None, zone: str
) -> None:
    row = policy(timeZone=zone, retention={**counts, "keepGood": 2, **({"keepWithin": f"{within}h"} if within else {})})
    found = retention_rules(row, zone)
    assert found is not None
    fires = list(islice(fires_after(parse(text, Dialect.GOCRON, zone), NOON), 100))
    assume(len(fires) > 1)
    runs = [Copy(str(number), fire, is_good=True) for number, fire in enumerate(fires)]
    newer, most = 0, len(runs) - 1  # of the first run, how many newer ones it takes until it goes
    while newer < most:
        middle = (newer + most + 1) // 2
        newer, most = (middle, most) if kept(runs[: middle + 1], found)["0"] else (newer, middle - 1)
    last = runs[min(newer + 1, len(runs) - 1)].started  # at which it goes
    assert ttl_of(text, fires[0], row) >= min(last - fires[0], timedelta(hours=876_000))  # the longest there is


PHASES = ["Completed", "PartiallyFailed", "Failed", "FailedValidation", "InProgress", "Deleting"]
HISTORY = st.lists(
    st.tuples(st.sampled_from(PHASES), st.booleans(), st.sampled_from([UID, UID, "", "another"]), st.booleans()),
    max_size=25,
)


@given(HISTORY, st.integers(1, 3), st.integers(1, 3))
def test_last_good_copies_survive_every_history(
    history: list[tuple[str, bool, str, bool]], last: int, good: int
) -> None:
    rules = policy(retention={"keepLast": last, "keepGood": good})
    rows = []
    for number, (phase, is_pinned, uid, is_synced) in enumerate(history):
        slot = NOON - timedelta(hours=len(history) - number)
        completed = None if phase == "InProgress" else slot - DAY if is_synced else slot
        row = backup(phase, slot, schedule_uid=uid, is_pinned=is_pinned, completed=completed, location="default")
        rows.append(msgspec.structs.replace(row, key=Key("velero", f"b{number}")))
    mine = [
        each.key.name for each in rows if each.phase == "Completed" and not each.is_synced and each.schedule_uid == UID
    ]
    left = list(rows)
    for _ in rows:  # delete until nothing goes any more
        amid = {each.key.name: LONG_AGO for each in left if each.phase == "Deleting"}
        asking = seen(*left, policy=rules, row=watched(schedule(last_backup=NOON)), unrequested=amid)
        found = retained(asking, "")
        listed = approval(asked_for(asking.backups, found), found.digest)
        of = watched(schedule(last_backup=NOON, annotations={RETENTION_APPROVED: listed}))
        made = deletions(seen(*left, policy=rules, row=of, unrequested=amid))
        if not made:
            break
        spec = made[0].body["spec"]
        assert isinstance(spec, dict)
        left = [each for each in left if each.key.name != spec["backupName"]]
    names = [each.key.name for each in left]
    assert mine[len(mine) - good :] == [name for name in names if name in mine[len(mine) - good :]]
    assert all(each in left for each in rows if each.is_pinned or each.is_synced or each.schedule_uid != UID)
    assert all(each in left for each in rows if each.phase in ("InProgress", "FailedValidation"))
    ours = [each for each in rows if each.schedule_uid == UID and not (each.is_pinned or each.is_synced)]
    assert not any(each in left for each in ours if each.phase == "Deleting")


def test_location_row_of_a_kept_copy_counts_too() -> None:
    rows = copies(3)
    elsewhere = msgspec.structs.replace(rows[0], location="offsite")
    away = LocationRow(Key("velero", "offsite"), is_default=False, is_read_only=False, phase="Unavailable", message="")
    because = retained(seen(elsewhere, *rows[1:], locations=(AVAILABLE, away))).blocked_by
    assert because is not None
    assert "velero/offsite is Unavailable" in because.message
