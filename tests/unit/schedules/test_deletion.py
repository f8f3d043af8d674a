"""Backups that must not be deleted: each test is a way in which one was."""

from datetime import timedelta
from typing import Any

import msgspec
import pytest

from foresail.api import velero
from foresail.api.instants import stamp
from foresail.api.marks import DELETE_AFTER, DELETE_REASON, RETENTION_APPROVED
from foresail.deletion import approval
from foresail.plan import Create, Delete, Key, Patch
from foresail.schedules.decide import decide
from foresail.schedules.observe import BackupRow, DeletionRow, ScheduleRow, ScheduleView
from foresail.schedules.policies import retention_rules, settings_under
from foresail.schedules.reasons import Reason
from foresail.schedules.retention import Retained, asked_for, digest_of, why_not_counted
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from tests.unit.schedules.rows import AVAILABLE, DAY, HOUR, MINUTE, NOON, backup, schedule, view, watched
from tests.unit.schedules.test_policies import policy

Rules = dict[str, Any]


def good(slot: Any, **changed: Any) -> BackupRow:  # noqa: ANN401 - any column
    """Return a Completed run of a slot."""
    name = f"{slot:%d%H%M%S}"
    return backup(slot=slot, **{"completed": slot + MINUTE, "location": "default", "uid": f"u{name}", **changed})


def velero_made(moment: Any, **changed: Any) -> BackupRow:  # noqa: ANN401 - any column
    """Return a Backup with a name by Velero's pattern."""
    ends = {"created": moment, "completed": moment + MINUTE, "location": "default", "uid": "v"}
    return backup(key=Key("velero", f"daily-{moment:%Y%m%d%H%M%S}"), **{**ends, **changed})


def under(rules: Rules, *backups: BackupRow, in_effect: Rules | None = None, **changed: Any) -> ScheduleView:  # noqa: ANN401
    """Return a Schedule under rules, which were in effect before unless others were."""
    row = policy(retention={"gracePeriod": "0s", **rules})
    before = retention_rules(policy(retention=in_effect or rules), "UTC")
    assert before is not None
    found = watched(schedule(text="0 12 * * *", last_backup=NOON), retention=digest_of(before))
    return view(found, *backups, **{"policy": row, "locations": (AVAILABLE,), **changed})


def retained(seen: ScheduleView, now: Any = NOON + 2 * MINUTE) -> Retained:  # noqa: ANN401 - an instant
    """Return what the rules say."""
    found = judge(seen, now).retained
    assert found is not None
    return found


def requests(seen: ScheduleView, now: Any = NOON + 2 * MINUTE) -> list[str]:  # noqa: ANN401 - an instant
    """Return the Backups whose deletion is requested."""
    made = [write for write in decide(seen, now).actions if isinstance(write, Create)]
    return [str(write.body["spec"]["backupName"]) for write in made if write.kind == velero.DELETE_REQUEST]  # type: ignore[index]


# Approval


def test_new_rules_do_not_take_effect_while_a_restore_reads_the_schedule() -> None:
    rows = [good(NOON - n * HOUR) for n in range(1, 51)]
    read = frozenset(row.name for row in rows)
    reading = under({"keepLast": 1}, *rows, in_effect={"keepLast": 100}, restored=read)
    assert judge(reading, NOON).changes.observed.retention == ""
    ended = msgspec.structs.replace(reading, restored=frozenset())
    assert retained(ended).blocked_by is not None
    assert len(retained(ended).decision.asks) == 49
    assert not requests(ended)


@pytest.mark.parametrize("state", ["unavailable", "unfinished", "clock"])
def test_new_rules_do_not_take_effect_in_doubt(state: str) -> None:
    rows = [good(NOON - n * HOUR, **({"phase": "Failed"} if state == "unfinished" else {})) for n in range(1, 51)]
    doubts: dict[str, Any] = {
        "unavailable": {"locations": (msgspec.structs.replace(AVAILABLE, phase="Unavailable"),)},
        "unfinished": {},
        "clock": {"skew": HOUR},
    }
    seen = under({"keepLast": 1}, *rows, in_effect={"keepLast": 100}, **doubts[state])
    assert judge(seen, NOON).changes.observed.retention == ""


def approve(seen: ScheduleView) -> ScheduleRow:
    """Return the Schedule with an approval of the list that waits for it."""
    listed = approval(asked_for(seen.backups, retained(seen)), retained(seen).digest)
    annotations = {**seen.schedule.annotations, RETENTION_APPROVED: listed}
    return msgspec.structs.replace(seen.schedule, annotations=annotations)


def test_approval_is_of_the_list_that_was_seen_and_of_nothing_else() -> None:
    rows = [good(NOON - n * DAY) for n in range(40)]
    seen = under({"keepLast": 1}, *rows, in_effect={"keepLast": 100})
    approved = under({"keepLast": 1}, *rows, in_effect={"keepLast": 100}, schedule=approve(seen))
    assert requests(approved) == [rows[-1].name]
    assert judge(approved, NOON).changes.observed.retention == retained(seen).digest
    others = [good(NOON - n * DAY) for n in range(40, 80)]
    more = msgspec.structs.replace(approved, backups=(*rows, *others))
    assert set(retained(more).decision.asks) == {row.name for row in others}
    replaced = [msgspec.structs.replace(row, uid=f"later {row.uid}") for row in rows]
    assert len(retained(msgspec.structs.replace(approved, backups=tuple(replaced))).decision.asks) == 39


def test_successive_edits_of_few_backups_each_ask_within_a_day() -> None:
    rows = [good(NOON - n * DAY) for n in range(60)]
    now, row, deleted = NOON + 2 * MINUTE, None, 0
    seen = under({"keepLast": 60}, *rows)
    for kept in range(59, 40, -1):  # one Backup fewer with each edit
        seen = under({"keepLast": kept}, *rows, in_effect={"keepLast": kept + 1})
        annotations = (row or seen.schedule).annotations
        seen = msgspec.structs.replace(seen, schedule=msgspec.structs.replace(seen.schedule, annotations=annotations))
        made = decide(seen, now)
        for write in made.writes:
            if isinstance(write, Patch) and write.kind == velero.SCHEDULE:
                annotations = {**annotations, **write.body["metadata"]["annotations"]}  # type: ignore[index]
                row = msgspec.structs.replace(seen.schedule, annotations=annotations)
        for name in requests(seen, now):
            rows = [each for each in rows if each.name != name]
            deleted += 1
    assert deleted == 10
    assert retained(seen, now).blocked_by is not None


def test_list_is_the_same_in_the_operators_zone_whatever_the_commands_zone() -> None:
    row = policy(retention={"daily": 7})
    rows = [good(NOON - n * DAY) for n in range(1, 51)]
    berlin = settings_under(row, Settings(zone="Europe/Berlin"))
    asking = view(watched(schedule(last_backup=NOON)), *rows, policy=row, locations=(AVAILABLE,), settings=berlin)
    approved = msgspec.structs.replace(asking, schedule=approve(asking))
    assert retained(approved).blocked_by is None
    assert judge(approved, NOON).changes.observed.retention


# Never the last one


def test_one_completed_run_does_not_delete_every_partially_failed_one() -> None:
    partial = [good(NOON - n * DAY, phase="PartiallyFailed") for n in range(1, 61)]
    seen = under({"daily": 30, "monthly": 12}, good(NOON), *partial)
    kept = retained(seen).kept
    assert sum(bool(kept[row.name]) for row in partial[:29]) == 29, "each day without a good copy keeps a partial one"
    assert retained(seen).blocked_by is not None, "the others are many"
    assert not requests(seen)


def test_partially_failed_copies_take_no_place_from_good_ones() -> None:
    rows = [good(NOON - n * DAY, **({} if n % 10 == 0 else {"phase": "PartiallyFailed"})) for n in range(60)]
    kept = retained(under({"daily": 30}, *rows)).kept
    assert sum(bool(kept[row.name]) for row in rows) == 30 + 3, "30 days, and the good copies of older ones"


@pytest.mark.parametrize("items", [0, 5])
def test_empty_or_shrunken_copy_pushes_nothing_out(items: int) -> None:
    rows = [good(NOON, items=items), good(NOON - DAY, items=1000), good(NOON - 2 * DAY, items=1000)]
    seen = under({"keepLast": 1}, *rows)
    assert requests(seen) == [rows[2].name]
    assert retained(seen).kept[rows[1].name]


def test_a_backup_that_expires_within_the_hour_is_no_reason_to_delete_another_one() -> None:
    """Runs by a template with a ttl of their own beside those that the rules gave one."""
    rows = [good(NOON, expires=NOON + 30 * MINUTE), good(NOON - DAY, expires=NOON + DAY), good(NOON - 2 * DAY)]
    assert list(retained(under({"keepLast": 1}, *rows)).goes) == [rows[2].name], "the newest one that lasts stays"
    lasts = msgspec.structs.replace(rows[0], expires=NOON + 2 * HOUR)
    assert requests(under({"keepLast": 1}, lasts, rows[1])) == [rows[1].name]


# In doubt


def test_clock_ahead_deletes_nothing() -> None:
    jump = 40 * DAY
    real = [good(NOON - n * DAY, expires=NOON - n * DAY + timedelta(hours=1440)) for n in range(1, 31)]
    new = good(NOON + jump, created=NOON, completed=NOON + MINUTE)
    seen = under({"keepWithin": "240h"}, new, *real)
    because = retained(seen, NOON + jump + 2 * MINUTE).blocked_by
    assert because is not None
    assert because.reason is Reason.RETENTION_IN_DOUBT
    assert "made before its slot" in because.message
    assert not requests(seen, NOON + jump + 2 * MINUTE)


def test_a_run_that_velero_refused_before_its_slot_is_in_doubt_until_it_is_deleted() -> None:
    rows = [good(NOON), good(NOON - DAY)]
    early = good(NOON - HOUR, created=NOON - 2 * DAY, completed=None, phase="FailedValidation", location="lost")
    refused = retained(under({"keepLast": 1}, *rows, early))
    assert refused.blocked_by is not None
    assert "made before its slot" in refused.blocked_by.message
    assert not requests(under({"keepLast": 1}, *rows, early))
    deleting = msgspec.structs.replace(early, phase="Deleting")
    assert requests(under({"keepLast": 1}, *rows, deleting)) == [rows[1].name]
    on_time = msgspec.structs.replace(early, created=NOON - HOUR)
    assert requests(under({"keepLast": 1}, *rows, on_time)) == [rows[1].name], "its location does not matter"


def test_copies_that_were_made_while_the_clock_was_behind_are_the_newest_ones() -> None:
    before = [good(NOON - n * DAY) for n in range(3, 6)]
    behind = [good(NOON - n * DAY, created=NOON - (n - 40) * DAY) for n in range(41, 43)]
    behind = [msgspec.structs.replace(row, completed=row.created + MINUTE) for row in behind]
    seen = under({"keepLast": 2}, *behind, *before)
    assert set(retained(seen).goes) == {row.name for row in before}


@pytest.mark.parametrize(
    ("skew", "words"),
    [(HOUR, "clock is 60 minutes ahead"), (-HOUR, "clock is 60 minutes behind"), (None, "time is unknown")],
)
def test_operators_clock_must_agree_with_the_api_servers(skew: timedelta | None, words: str) -> None:
    rows = [good(NOON - n * DAY) for n in range(3)]
    seen = under({"keepLast": 2}, *rows, skew=skew)
    because = retained(seen).blocked_by
    assert because is not None
    assert words in because.message
    assert not requests(seen)
    assert requests(msgspec.structs.replace(seen, skew=MINUTE))


def test_nothing_goes_while_the_operator_may_not_know_which_restores_run() -> None:
    rows = [good(NOON - n * DAY) for n in range(3)]
    seen = under({"keepLast": 2}, *rows, stale=("Restore", "Backup"))
    because = retained(seen).blocked_by
    assert because is not None
    assert "sent nothing new of Backup, Restore, so nothing is deleted." in because.message
    assert not requests(seen)
    assert requests(msgspec.structs.replace(seen, stale=()))


def test_runs_from_before_the_schedule_existed_neither_count_nor_go() -> None:
    old = [velero_made(NOON - 300 * DAY - n * DAY) for n in range(3)]
    assert not retained(under({"keepLast": 2}, good(NOON), *old)).goes


def test_runs_by_hand_push_out_no_scheduled_one() -> None:
    nightly = [good(NOON - n * DAY) for n in range(1, 8)]
    by_hand = [velero_made(NOON + n * MINUTE) for n in range(7)]
    found = retained(under({"keepLast": 7}, *by_hand, *nightly), NOON + HOUR)
    assert not found.goes
    assert not found.kept.keys() & {row.name for row in by_hand}


def test_backups_of_another_cluster_that_were_synced_in_the_second_of_their_end_neither_count_nor_go() -> None:
    ends = [NOON - n * HOUR + 10 * MINUTE for n in range(1, 4)]
    others = [velero_made(end - 10 * MINUTE, created=end, completed=end) for end in ends]
    assert not retained(under({"keepLast": 1}, *others, good(NOON + HOUR)), NOON + 2 * HOUR).goes
    begun = [velero_made(end, created=end, completed=end + MINUTE, began=end - 10 * MINUTE) for end in ends]
    assert not retained(under({"keepLast": 1}, *begun, good(NOON + HOUR)), NOON + 2 * HOUR).goes


# Many at once


def test_first_run_after_a_long_pause_asks() -> None:
    history = [good(NOON - 31 * DAY - n * HOUR, expires=NOON + 20 * DAY) for n in range(700)]
    seen = under({"keepWithin": "720h"}, good(NOON), *history)
    assert len(retained(seen).decision.asks) == 700
    because = retained(seen).blocked_by
    assert because is not None
    assert because.reason is Reason.RETENTION_NOT_APPROVED
    assert len(because.message.split()) <= 30
    assert not requests(seen)


@pytest.mark.parametrize("grace", ["0s", "24h"])
def test_turnover_of_a_frequent_schedule_never_asks(grace: str) -> None:
    rows = [good(NOON - n * HOUR) for n in range(60)]
    seen = under({"keepLast": 24, "gracePeriod": grace}, *rows[:25])
    assert retained(seen).blocked_by is None


# Identity


def test_failed_run_whose_data_belongs_to_an_earlier_one_is_removed_as_an_object_only() -> None:
    shadow = good(NOON - DAY, phase="Failed", failure="backup already exists in object storage")
    seen = under({"keepLast": 5}, good(NOON), shadow)
    (action,) = decide(seen, NOON + 2 * MINUTE).actions
    assert action == Delete(velero.BACKUP, shadow.key, shadow.uid)
    assert shadow.name not in retained(seen).kept


INTERRUPTED = 'found a backup with status "InProgress" during the server starting, mark it as "Failed"'


@pytest.mark.parametrize(
    ("changed", "is_requested"),
    [
        ({"phase": "Failed", "failure": INTERRUPTED, "items": 7}, False),
        ({"phase": "Failed", "failure": "error getting backup store", "items": None}, False),
        ({"phase": "Failed", "failure": "error uploading", "items": 7}, True),
        ({"phase": "PartiallyFailed", "items": None}, True),
    ],
)
def test_failed_run_that_may_not_have_looked_into_the_bucket_is_removed_as_an_object_only(
    changed: dict[str, Any], is_requested: bool
) -> None:
    """An etcd restore may have brought the run back, and Velero deletes by its name."""
    row = good(NOON - DAY, version="3", **changed)
    seen = under({"keepLast": 1}, good(NOON), row)
    assert requests(seen) == ([row.name] if is_requested else [])
    record, mark, last = decide(seen, NOON + 2 * MINUTE).actions
    assert isinstance(record, Patch)
    assert isinstance(mark, Patch)
    assert mark.resource_version == "3"
    assert is_requested or last == Delete(velero.BACKUP, row.key, row.uid)


def test_a_run_that_velero_refused_is_left_alone() -> None:
    refused = good(NOON - DAY, phase="FailedValidation", items=None)
    assert not decide(under({"keepLast": 1}, good(NOON), refused), NOON + 2 * MINUTE).actions


def test_first_write_of_a_deletion_fails_if_the_backup_has_changed() -> None:
    rows = [good(NOON - n * DAY, version=f"{n}") for n in range(3)]
    record, mark, request = decide(under({"keepLast": 2}, *rows), NOON + 2 * MINUTE).actions
    assert isinstance(record, Patch)
    assert record.kind == velero.SCHEDULE
    assert isinstance(mark, Patch)
    assert (mark.kind, mark.key, mark.resource_version) == (velero.BACKUP, rows[2].key, "2")
    assert mark.body["metadata"]["uid"] == rows[2].uid  # type: ignore[index]
    assert isinstance(request, Create)


def test_deletion_that_is_refused_for_ever_is_recorded_once() -> None:
    rows = [good(NOON - n * DAY) for n in range(3)]
    seen = under({"keepLast": 2}, *rows)
    record = decide(seen, NOON + 2 * MINUTE).actions[0]
    assert isinstance(record, Patch)
    annotations = {**seen.schedule.annotations, **record.body["metadata"]["annotations"]}  # type: ignore[index]
    again = msgspec.structs.replace(seen, schedule=msgspec.structs.replace(seen.schedule, annotations=annotations))
    assert [each.kind for each in decide(again, NOON + 3 * MINUTE).writes] == [velero.BACKUP, velero.DELETE_REQUEST]


@pytest.mark.parametrize("changed", [{"is_pinned": True}, {"uid": "later"}])
def test_request_that_velero_has_not_begun_is_withdrawn(changed: dict[str, Any]) -> None:
    rows = [good(NOON - n * DAY) for n in range(3)]
    request = DeletionRow(Key("velero", "x"), rows[2].name, is_open=True, is_ours=True, uid="r", backup_uid=rows[2].uid)
    rows[2] = msgspec.structs.replace(rows[2], **changed)
    seen = under({"keepLast": 2}, *rows, deletions=(request,))
    assert decide(seen, NOON + 2 * MINUTE).actions == (Delete(velero.DELETE_REQUEST, request.key, "r"),)
    begun = msgspec.structs.replace(request, is_begun=True)
    assert not decide(msgspec.structs.replace(seen, deletions=(begun,)), NOON + 2 * MINUTE).actions


# It ends, or is reported


def test_request_that_velero_never_begins_is_reported_after_an_hour_and_blocks_no_other() -> None:
    rows = [good(NOON - n * DAY) for n in range(4)]
    waiting = DeletionRow(Key("velero", "x"), rows[3].name, is_open=True, is_ours=True, stalls_at=NOON + HOUR)
    seen = under({"keepLast": 2}, *rows, deletions=(waiting,), open_deletions=1)
    assert retained(seen).failed is None
    assert decide(seen, NOON + 2 * MINUTE).wake_at == NOON + HOUR
    late = retained(seen, NOON + HOUR).failed
    assert late is not None
    assert "has not begun" in late.message
    assert len(late.message.split()) <= 30
    assert requests(seen, NOON + HOUR) == [rows[2].name]


# The grace period


def test_backup_is_marked_first_and_deleted_after_the_grace_period() -> None:
    rows = [good(NOON - n * DAY, version=f"{n}") for n in range(3)]
    seen = under({"keepLast": 2, "gracePeriod": "24h"}, *rows)
    (mark,) = decide(seen, NOON + 2 * MINUTE).actions
    assert isinstance(mark, Patch)
    at = NOON + 2 * MINUTE + DAY
    annotations = {DELETE_AFTER: stamp(at), DELETE_REASON: "keepLast 2 keeps newer ones"}
    assert mark.body == {"metadata": {"uid": rows[2].uid, "annotations": annotations}}
    rows[2] = msgspec.structs.replace(rows[2], delete_after=at)
    marked = msgspec.structs.replace(seen, backups=tuple(rows))
    plan = decide(marked, NOON + HOUR)
    assert not plan.actions
    assert plan.wake_at == NOON + DAY, "the next slot comes first"
    assert requests(marked, at) == []  # a run is due, and comes first
    later = msgspec.structs.replace(marked, schedule=msgspec.structs.replace(marked.schedule, last_backup=NOON + DAY))
    assert requests(later, at) == [rows[2].name]


@pytest.mark.parametrize("changed", [{"is_pinned": True}, {}])
def test_mark_of_a_backup_that_is_kept_by_now_is_removed(changed: dict[str, Any]) -> None:
    rows = [good(NOON - n * DAY) for n in range(3)]
    rows[2] = msgspec.structs.replace(rows[2], delete_after=NOON, **changed)
    keeps = {"keepLast": 2 if changed else 3, "gracePeriod": "24h"}
    (unmark,) = decide(under(keeps, *rows), NOON + 2 * MINUTE).actions
    assert isinstance(unmark, Patch)
    assert unmark.body["metadata"]["annotations"] == {DELETE_AFTER: None, DELETE_REASON: None}  # type: ignore[index]


def test_a_backup_by_hand_before_the_first_run_is_told_from_veleros_runs_by_their_last_one() -> None:
    made = velero_made(NOON - 5 * DAY)
    since = msgspec.structs.replace(under({"keepLast": 1}).schedule, created=NOON - 20 * DAY, last_backup=None)
    never_run = under({"keepLast": 1}, made, schedule=since)
    assert why_not_counted(made, never_run, NOON) == "not a run of this Schedule"
    run_before = msgspec.structs.replace(since, last_backup=NOON - 6 * DAY)
    assert why_not_counted(made, under({"keepLast": 1}, made, schedule=run_before), NOON)
    run_then = msgspec.structs.replace(since, last_backup=NOON - 5 * DAY)
    assert not why_not_counted(made, under({"keepLast": 1}, made, schedule=run_then), NOON)


@pytest.mark.parametrize("has_rules", [True, False])
def test_the_first_run_records_when_velero_ran_last(has_rules: bool) -> None:
    made = velero_made(NOON - 2 * DAY)
    row = msgspec.structs.replace(under({"keepLast": 1}).schedule, created=NOON - 20 * DAY, last_backup=made.created)
    seen = under({"keepLast": 1}, made, good(NOON), schedule=row)
    seen = seen if has_rules else msgspec.structs.replace(seen, policy=None)
    plan = decide(seen, NOON + 2 * MINUTE)
    record = plan.status or plan.actions[0]
    assert isinstance(record, Patch)
    assert f'"first":"{stamp(NOON - 2 * DAY + MINUTE)}"' in str(record.body)


def test_a_backup_by_hand_stays_when_the_runs_before_it_are_gone() -> None:
    by_hand = velero_made(NOON - 5 * DAY)
    rows = [good(NOON), good(NOON - DAY), by_hand]
    since = msgspec.structs.replace(under({"keepLast": 1}).schedule, created=NOON - 20 * DAY)
    before = under({"keepLast": 1}, *rows, schedule=since)
    assert by_hand.name in retained(before).goes, "it may be a run of Velero before Foresail"
    first = stamp(NOON - 10 * DAY)
    rules = retention_rules(policy(retention={"keepLast": 1}), "UTC")
    assert rules is not None
    row = watched(since, retention=digest_of(rules), first=first)
    seen = under({"keepLast": 1}, *rows, schedule=row)
    assert by_hand.name not in retained(seen).goes
    record = decide(seen, NOON + 2 * MINUTE).actions[0]
    assert isinstance(record, Patch)
    assert first in str(record.body), "it stays recorded"


def test_a_backup_by_hand_at_the_time_of_a_slot_is_no_sign_that_velero_ran_before() -> None:
    at_slot = velero_made(NOON)
    row = msgspec.structs.replace(under({"keepLast": 1}).schedule, created=NOON - 20 * DAY, last_backup=None)
    plan = decide(under({"keepLast": 1}, velero_made(NOON - MINUTE), at_slot, schedule=row), NOON + 2 * MINUTE)
    record = plan.status or plan.actions[0]
    assert isinstance(record, Patch)
    assert f'"first":"{stamp(NOON - 20 * DAY)}"' in str(record.body), "both stay, whoever made them"


def test_the_first_run_is_recorded_with_a_deletion() -> None:
    rows = [good(NOON), good(NOON - DAY), good(NOON - 2 * DAY)]
    record = decide(under({"keepLast": 1}, *rows), NOON + 2 * MINUTE).actions[0]
    assert isinstance(record, Patch)
    assert stamp(NOON - 2 * DAY) in str(record.body)


def test_a_request_that_velero_does_not_begin_is_reported_after_its_backup_has_expired() -> None:
    rows = [good(NOON), good(NOON - DAY, expires=NOON)]
    request = DeletionRow(
        Key("velero", f"{rows[1].name}-retention"),
        rows[1].name,
        is_open=True,
        is_ours=True,
        stalls_at=NOON,
        backup_uid=rows[1].uid,
    )
    failed = retained(under({"keepLast": 1}, *rows, deletions=(request,))).failed
    assert failed is not None
    assert "has not begun the deletion" in failed.message
