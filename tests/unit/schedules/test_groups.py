"""Limited groups: when a run waits, who is named, and what a snapshot of a namespace shows."""

from datetime import timedelta

import msgspec
import pytest

from foresail.api.schedule_policy import Concurrency, SchedulePolicySpec, ScheduleSelector
from foresail.plan import Key
from foresail.schedules.decide import decide
from foresail.schedules.groups import RECHECK, RESERVED_FOR, STUCK_AFTER, Groups, unfinished_of_groups, view_of
from foresail.schedules.observe import GroupView, Turn
from foresail.schedules.policies import group_of
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import concurrency_limit, judge
from foresail.slots.policy_timing import PolicyRow
from foresail.slots.spread import stable_delay
from tests.unit.schedules.rows import DAY, HOUR, NOON, backup, schedule, view, watched

LAST = NOON - DAY  # when the last run of every Schedule started
OTHERS = tuple((Turn(NOON, LAST), Key("velero", name)) for name in ("a", "b", "c"))


def limited(most: int, group: str | None = None, name: str = "gold") -> PolicyRow:
    return PolicyRow(Key("", name), SchedulePolicySpec(ScheduleSelector(), concurrency=Concurrency(most, group)))


@pytest.mark.parametrize(
    ("group", "waits"),
    [
        (None, False),
        (GroupView("group slow", 2), False),
        (GroupView("group slow", 2, ("x",)), False),
        (GroupView("group slow", 2, ("x", "y")), True),
        (GroupView("group slow", 2, ("x", "y", "z")), True),
        (GroupView("group slow", 2, ("x",), waiting=OTHERS[:1]), True),  # `a` is before `daily`
        (GroupView("group slow", 2, (), waiting=OTHERS[:1]), False),
        (GroupView("group slow", 2, (), waiting=OTHERS[:2]), True),
        (GroupView("group slow", 2, ("x",), waiting=((Turn(NOON, LAST), Key("velero", "z")),)), False),  # after `daily`
        (
            GroupView("group slow", 2, ("x",), waiting=((Turn(NOON, LAST - HOUR), Key("velero", "z")),)),
            True,
        ),  # ran earlier
        (
            GroupView("group slow", 2, ("x",), waiting=((Turn(NOON - HOUR, LAST), Key("velero", "z")),)),
            True,
        ),  # an earlier slot
        (GroupView("group slow", 2, ("x",), waiting=((Turn(NOON + HOUR, LAST), Key("velero", "a")),)), False),
    ],
)
def test_run_waits_while_the_group_is_full_or_earlier_ones_take_its_free_places(
    group: GroupView | None, waits: bool
) -> None:
    found = concurrency_limit(view(schedule(), group=group), Turn(NOON, LAST))
    assert (found is not None) is waits


def test_run_that_waits_names_who_runs_and_creates_nothing() -> None:
    row = watched(schedule(last_backup=NOON - HOUR))
    full = GroupView("SchedulePolicy gold", 3, ("one", "three", "two"))
    found = view(row, group=full)
    verdict = judge(found, NOON)
    assert (verdict.due, verdict.fires, verdict.turn) == (NOON, None, Turn(NOON, NOON - HOUR))
    assert verdict.blocked_by is not None
    assert verdict.blocked_by.reason is Reason.CONCURRENCY_LIMIT
    assert verdict.blocked_by.message == (
        "Limit of 3 concurrent Backups of SchedulePolicy gold reached: one, three and 1 more."
        " The run starts when one finishes."
    )
    plan = decide(found, NOON)
    assert plan.actions == ()
    assert plan.wake_at == NOON + RECHECK + stable_delay("velero/daily", RECHECK)
    reserving = msgspec.structs.replace(found, group=msgspec.structs.replace(full, is_reserving=True))
    assert decide(reserving, NOON).wake_at == NOON + RESERVED_FOR


def test_group_is_the_policy_unless_it_names_one() -> None:
    assert group_of(None) is None
    assert group_of(limited(1)) == "SchedulePolicy gold"
    assert group_of(limited(1, "gold")) == "group gold"
    assert group_of(PolicyRow(Key("", "none"), SchedulePolicySpec(ScheduleSelector()))) is None


def test_reservation_counts_until_its_backup_is_seen_it_is_released_or_too_old() -> None:
    groups, key, made = Groups(), Key("velero", "daily"), Key("velero", "daily-1")
    groups.reserve(key, "g", made, NOON)
    assert groups.reserved("g", NOON, 2) == (1, ("daily-1",))
    assert groups.reserved("g", NOON, 2, without=key) == (0, ())
    groups.release_seen(Key("velero", "other"), key)
    assert groups.reserved("g", NOON, 2) == (1, ("daily-1",))
    assert groups.reserved("g", NOON + RESERVED_FOR, 2) == (0, ())
    assert groups.reserved("g", NOON + RESERVED_FOR, 2, without=key) == (0, ())
    groups.release_seen(made, key)
    assert groups.reserved("g", NOON, 2) == (0, ())


def test_unfinished_backups_count_in_their_group_until_they_expire_or_are_stuck() -> None:
    groups, (a, b), later = Groups(), (Key("velero", each) for each in "ab"), NOON + DAY
    assert groups.place(a, "g", {"a-1": later, "a-2": NOON}) is None
    assert groups.place(b, "g", {"b-1": later}) is None
    assert groups.unfinished("g", NOON - HOUR, 2) == (3, ("a-1", "a-2"))
    assert groups.unfinished("g", NOON, 2) == (2, ("a-1", "b-1"))
    assert groups.place(a, "g", {"a-2": NOON}) == "g"
    assert groups.unfinished("g", NOON, 2) == (1, ("b-1",))
    assert groups.place(b, "h", {"b-1": later}) == "g"
    assert groups.unfinished("h", NOON, 2) == (1, ("b-1",))
    assert groups.place(b, None, {}) == "h"
    assert groups.unfinished("h", NOON, 2) == (0, ())
    assert groups.with_unfinished() == (a,)


def test_queue_is_in_the_order_of_slots_then_names_and_a_run_is_in_it_once() -> None:
    groups, (a, b, c) = Groups(), (Key("velero", each) for each in "abc")
    groups.wait(c, "g", Turn(NOON, LAST))
    groups.wait(b, "g", Turn(NOON, LAST))
    groups.wait(a, "g", Turn(NOON + HOUR, LAST))
    assert [key for _, key in groups.first("g", 9)] == [b, c, a]
    groups.wait(a, "g", Turn(NOON - HOUR, LAST))
    assert [key for _, key in groups.first("g", 2)] == [a, b]
    assert [key for _, key in groups.first("g", 2, without=a)] == [b, c]
    groups.wait(b, "h", Turn(NOON, LAST))
    groups.reserve(a, "g", a, NOON)
    assert [key for _, key in groups.first("g", 9)] == [c]
    groups.forget(c)
    assert groups.first("g", 9) == ()
    assert groups.group_waited_for(b) == "h"


def test_turn_counts_from_the_first_slot_since_the_last_run_that_may_start() -> None:
    row = watched(schedule(last_backup=NOON - 5 * HOUR, last_skipped=NOON - HOUR))
    group = GroupView("SchedulePolicy gold", 1)
    assert judge(view(row, group=group), NOON).turn == Turn(NOON - 4 * HOUR, NOON - 5 * HOUR)
    assert judge(view(row), NOON).turn == Turn(NOON, NOON - 5 * HOUR)  # nobody waits without a group
    made = backup("Completed", NOON - 5 * HOUR, created=NOON - 2 * HOUR)
    assert judge(view(row, made, group=group), NOON).turn == Turn(NOON - 4 * HOUR, NOON - 2 * HOUR)


def test_backup_that_is_unfinished_for_a_day_is_reported_and_counts_for_its_own_schedule_only() -> None:
    row, made = watched(schedule(text="0 12 1 * *", last_backup=NOON)), backup("ReadyToStart", NOON)
    found = view(row, made, policy=limited(1), group=GroupView("SchedulePolicy gold", 1))
    assert judge(found, NOON + HOUR).stuck is None
    assert decide(found, NOON + HOUR).wake_at == NOON + STUCK_AFTER
    (note,) = decide(found, NOON + STUCK_AFTER).notes
    assert note.reason == "BackupStuck"
    assert made.key.name in note.message
    assert len(note.message.split()) <= 30
    assert unfinished_of_groups([row], [made], (limited(1),), NOON + HOUR) == {"SchedulePolicy gold": [made.key.name]}
    assert unfinished_of_groups([row], [made], (limited(1),), NOON + STUCK_AFTER) == {}


def test_snapshot_counts_the_unfinished_backups_of_the_group_only() -> None:
    policies = (limited(2),)
    rows = (
        backup("InProgress", NOON),
        backup("Completed", NOON - HOUR),
        backup("", key=Key("velero", "by-hand")),
        backup("New", NOON - 2 * HOUR, expires=NOON - timedelta(minutes=1)),
        backup("New", NOON - 3 * HOUR, schedule="gone"),
    )
    found = unfinished_of_groups([schedule()], rows, policies, NOON)
    assert found == {"SchedulePolicy gold": ["daily-20260310120000-0f8fad5b", "by-hand"]}
    shown = view_of(policies[0], policies, found)
    assert shown is not None
    assert shown.free == 0
    assert view_of(None, policies, found) is None


def test_snapshot_shows_the_smallest_max_of_the_group_and_whose_it_is() -> None:
    small, large, other = limited(1, "g", "a"), limited(5, "g", "b"), limited(1, "h", "c")
    policies = large, other, small
    assert [view_of(each, policies, {"group g": ("x",)}) for each in (small, large)] == [
        GroupView("group g", 1, ("x",)),
        GroupView("group g", 1, ("x",), limited_by="a"),
    ]
    same = limited(5, "g", "a")
    assert view_of(large, (same, large), {}) == GroupView("group g", 5)
