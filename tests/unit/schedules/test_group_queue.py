"""Runs that wait for a place in a group: every place that becomes free goes to the first of them."""

import sys
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.schedule_policy import Concurrency, SchedulePolicySpec, ScheduleSelector
from foresail.cron import Dialect
from foresail.kube.controller import LowPriority
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import Cause, Failure
from foresail.kube.reflector import Change
from foresail.plan import Key, Plan
from foresail.schedules.controller import Schedules
from foresail.schedules.groups import RECHECK
from foresail.schedules.observe import BackupRow, ScheduleRow
from foresail.schedules.rules import Verdict
from foresail.schedules.settings import Settings
from foresail.schedules.slots import backup_name
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules.rows import AVAILABLE, DAY, HOUR, MINUTE, NOON, backup, schedule, watched

DONE = Result(Outcome.DONE)
SECOND = timedelta(seconds=1)


def daily(name: str, **changed: Any) -> ScheduleRow:  # noqa: ANN401 - any column
    key, uid = Key("velero", name), f"{name:0>8}-uid"
    return watched(schedule(key=key, uid=uid, text="0 12 * * *", last_backup=NOON - DAY, created=NOON - DAY, **changed))


def run_of(name: str, phase: str, **changed: Any) -> BackupRow:  # noqa: ANN401 - any column
    row = daily(name)
    key = Key("velero", backup_name(row, NOON))
    return backup(phase, NOON, **{"key": key, "schedule": name, "schedule_uid": row.uid, **changed})


def limited(name: str, most: int = 1, group: str | None = None, **selector: Any) -> PolicyRow:  # noqa: ANN401 - any field
    spec = SchedulePolicySpec(ScheduleSelector(**selector), concurrency=Concurrency(most, group))
    return PolicyRow(Key("", name), spec)


class Operator:
    """The controller, with the changes that a watch would deliver and the queue of a loop."""

    def __init__(self, *rows: ScheduleRow | PolicyRow) -> None:
        self.controller = Schedules("velero", Settings(velero_schedules_off=True), Dialect.GOCRON)
        self.controller.locations.put(AVAILABLE.key, AVAILABLE)
        self.plans: dict[str, Plan] = {}
        self.made: list[str] = []
        for each in rows:
            self.change("Schedule" if isinstance(each, ScheduleRow) else "SchedulePolicy", each.key, each)

    def change(self, kind: str, key: Key, new: object) -> set[Key]:
        """Store a change and return the keys that it maps to."""
        (informer,) = (each for each in self.controller.informers if each.spec.kind.name == kind)
        old = informer.store.get(key)
        if new is None:
            informer.store.remove(key)
        else:
            informer.store.put(key, new)
        change = Change(key, old, new, initial=False)
        found = (*informer.learn(change), *informer.keys(change))
        return {each.key if isinstance(each, LowPriority) else each for each in found}

    def reconcile(self, key: Key, now: datetime, outcome: Callable[[Plan], Result] = lambda _: DONE) -> list[Key]:
        """Reconcile one key and return the keys that follow."""
        view = self.controller.observe(key, now)
        if view is None:
            return list(self.controller.settled(key, None, Plan(), DONE, now))
        plan = self.plans[key.name] = self.controller.decide(view, now)
        self.controller.begin(key, view, plan, now)
        self.made += [each.key.name.partition("-")[0] for each in plan.actions]
        return list(self.controller.settled(key, view, plan, outcome(plan), now))

    def work(self, keys: set[Key], now: datetime) -> None:
        """Reconcile keys, and those that follow from them; not again before the watch delivers what was written."""
        todo, wrote = sorted(each for each in keys if each.namespace), set[Key]()
        while todo:
            key = todo.pop(0)
            if key not in wrote:
                made = len(self.made)
                todo += self.reconcile(key, now)
                wrote |= {key} if len(self.made) > made else set()

    def run(self, row: BackupRow, now: datetime) -> None:
        """Store a Backup and reconcile what follows."""
        self.work(self.change("Backup", row.key, row), now)


def waiting(*rows: ScheduleRow | PolicyRow) -> Operator:
    """Return the operator while `a` has taken the only place of a group, and `b` waits for it."""
    operator = Operator(daily("a"), daily("b"), *rows)
    operator.work({Key("velero", "a")}, NOON)
    operator.run(run_of("a", "InProgress"), NOON + SECOND)
    operator.work({Key("velero", "b")}, NOON + SECOND)
    assert operator.made == ["a"]
    return operator


SHARED = limited("p1", group="g", names=("a",)), limited("p2", group="g", names=("b",))


@pytest.mark.parametrize("outcome", [Outcome.DONE, Outcome.FAILED])
def test_run_that_records_other_slots_first_keeps_its_place_in_the_queue_if_it_could(outcome: Outcome) -> None:
    rule = limited("p")
    late = PolicyRow(rule.key, msgspec.structs.replace(rule.spec, starting_deadline="4h"))
    first, second = Key("velero", "a"), Key("velero", "b")
    row = daily("a")
    skips = msgspec.structs.replace(row, last_backup=NOON - 3 * DAY, created=NOON - 3 * DAY)
    operator = Operator(skips, daily("b"), late)
    operator.reconcile(first, NOON, lambda plan: Result(outcome, plan.status))
    operator.reconcile(second, NOON)
    assert operator.made == ([] if outcome is Outcome.DONE else ["b"])
    recorded = msgspec.structs.replace(skips, last_skipped=NOON - DAY)
    operator.work(operator.change("Schedule", first, recorded), NOON)
    assert operator.made == (["a"] if outcome is Outcome.DONE else ["b"])


def test_run_starts_when_the_backup_before_it_finishes() -> None:
    operator = waiting(limited("p"))
    operator.run(run_of("a", "Completed"), NOON + HOUR)
    assert operator.made == ["a", "b"]


def test_run_starts_when_the_schedule_of_a_running_backup_is_deleted() -> None:
    operator = waiting(limited("p"))
    operator.work(operator.change("Schedule", Key("velero", "a"), None), NOON + MINUTE)
    assert operator.made == ["a", "b"]


def test_run_starts_when_the_running_backup_leaves_the_group_with_its_policy() -> None:
    operator = waiting(*SHARED)
    operator.work(operator.change("SchedulePolicy", Key("", "p1"), None), NOON + MINUTE)
    assert operator.made == ["a", "b"]


def test_run_starts_when_the_running_backup_leaves_the_group_by_a_label() -> None:
    free = SchedulePolicySpec(ScheduleSelector(match_labels={"t": "x"}), priority=9)
    operator = waiting(*SHARED, PolicyRow(Key("", "p3"), free))
    operator.work(operator.change("Schedule", Key("velero", "a"), daily("a", labels={"t": "x"})), NOON + MINUTE)
    assert operator.made == ["a", "b"]


def test_run_starts_when_one_of_two_backups_of_a_schedule_finishes() -> None:
    operator = Operator(daily("a"), daily("b"), limited("p", most=2))
    by_hand = Key("velero", "by-hand")
    for row in (run_of("a", "InProgress"), run_of("a", "InProgress", key=by_hand)):
        operator.run(row, NOON)
    operator.work({Key("velero", "b")}, NOON)
    assert operator.made == []
    operator.run(run_of("a", "Completed", key=by_hand), NOON + MINUTE)
    assert operator.made == ["b"]


@pytest.mark.parametrize("name", ["b", "c", "d"])
def test_run_that_waits_is_reconciled_within_minutes_and_reports_once(name: str) -> None:
    operator, key = waiting(limited("p"), *map(daily, ("c", "d"))), Key("velero", name)
    operator.work({key}, NOON + SECOND)
    at = operator.plans[name].wake_at
    assert at is not None
    assert RECHECK <= at - NOON - SECOND <= 2 * RECHECK
    operator.work({key}, at)
    again = operator.plans[name]
    assert again.wake_at == at + (at - NOON - SECOND), "the delay of a Schedule is always the same"
    assert (again.writes, again.notes) == ((), ())


def test_runs_that_wait_are_not_all_reconciled_at_the_same_time() -> None:
    names = [f"s{number}" for number in range(20)]
    operator = waiting(limited("p"), *map(daily, names))
    operator.work({Key("velero", each) for each in names}, NOON + SECOND)
    assert len({operator.plans[each].wake_at for each in names}) > 10


def test_run_starts_after_the_running_backup_expired() -> None:
    operator = Operator(daily("a"), daily("b"), limited("p"))
    operator.run(run_of("a", "InProgress", expires=NOON + MINUTE), NOON)
    operator.work({Key("velero", "b")}, NOON)
    at = operator.plans["b"].wake_at
    assert at is not None
    operator.work({Key("velero", "b")}, at)
    assert operator.made == ["b"]


def ended(outcome: Outcome, cause: Cause, write: int | None) -> Callable[[Plan], Result]:
    """Return the result of a Plan that failed at a write; None if it was cut off at an unknown one."""
    return lambda plan: Result(outcome, plan.writes[write] if write is not None else None, Failure(cause, ""))


@pytest.mark.parametrize(
    ("outcome", "cause", "write", "is_kept"),
    [
        (Outcome.REQUEUE, Cause.CONFLICT, 1, True),  # the Backup was created, the status not written
        (Outcome.FAILED, Cause.UNREACHABLE, 0, True),  # a timeout: it may have been created
        (Outcome.FAILED, Cause.SERVER, 0, True),
        (Outcome.FAILED, Cause.UNREADABLE, 0, True),
        (Outcome.REQUEUE, Cause.NOT_LEADING, None, True),
        (Outcome.FAILED, Cause.FORBIDDEN, 0, False),
        (Outcome.FAILED, Cause.INVALID, 0, False),
        (Outcome.FAILED, Cause.TOO_MANY, 0, False),
        (Outcome.REQUEUE, Cause.NOT_FOUND, 0, False),
        (Outcome.REQUEUE, Cause.NOT_LEADING, 0, False),
        (Outcome.REFUSED, Cause.ALREADY_EXISTS, 0, False),
    ],
)
def test_place_is_released_only_if_the_backup_was_certainly_not_created(
    outcome: Outcome, cause: Cause, write: int | None, is_kept: bool
) -> None:
    first, second = Key("velero", "a"), Key("velero", "b")
    operator = Operator(msgspec.structs.replace(daily("a"), phase=""), daily("b"), limited("p"))
    operator.reconcile(first, NOON, ended(outcome, cause, write))
    operator.reconcile(second, NOON)
    assert operator.made == (["a"] if is_kept else ["a", "b"])
    if is_kept:
        operator.reconcile(first, NOON + SECOND)
        made = ["a"] if write == 1 else ["a", "a"]  # its own place does not block the next attempt, if one is needed
        assert operator.made == made
        operator.reconcile(second, NOON + 2 * MINUTE)
        assert operator.made == [*made, "b"], "the Backup never came"


def steps_of_a_reconcile(most: int, waits: int) -> int:
    """Return how many calls the reconcile of one more waiting run takes."""
    operator = Operator(*(daily(f"s{number:04}") for number in range(most + waits + 1)), limited("p", most=most))
    for number in range(most):
        row = run_of(f"s{number:04}", "InProgress")
        operator.change("Backup", row.key, row)
    for number in range(most, most + waits + 1):
        operator.reconcile(Key("velero", f"s{number:04}"), NOON)
    steps = 0

    def count(_: object, event: str, __: object) -> None:
        nonlocal steps
        steps += event in ("call", "c_call")

    sys.setprofile(count)
    try:
        operator.reconcile(Key("velero", f"s{most + waits:04}"), NOON)
    finally:
        sys.setprofile(None)
    assert operator.made == []
    return steps


def test_reconcile_takes_no_longer_in_a_large_group_with_a_long_queue() -> None:
    assert steps_of_a_reconcile(500, 500) <= steps_of_a_reconcile(5, 5) + 20


def test_smallest_max_of_the_policies_of_a_group_applies_to_all_of_them() -> None:
    small, large = limited("p1", 1, "g", names=("a", "c")), limited("p2", 5, "g", names=("b", "d"))
    operator = waiting(small, large)
    operator.work({Key("velero", "b")}, NOON + SECOND)
    (note,) = waiting_note(operator, "b")
    assert note == (
        "Limit of 1 concurrent Backups of group g (the smallest max, of SchedulePolicy p1) reached:"
        " a-20260310120000-0000000a. The run starts when one finishes."
    )
    operator.run(run_of("a", "Completed"), NOON + HOUR)
    assert operator.made == ["a", "b"]


def test_runs_start_when_a_policy_with_a_smaller_max_leaves_their_group() -> None:
    small, large = limited("p1", 1, "g", names=("z",)), limited("p2", 2, "g", names=("a", "b"))
    operator = waiting(small, large)
    raised = limited("p1", 2, "g", names=("z",))
    operator.work(operator.change("SchedulePolicy", raised.key, raised), NOON + MINUTE)
    assert operator.made == ["a", "b"]
    operator = waiting(small, large)
    operator.work(operator.change("SchedulePolicy", small.key, None), NOON + MINUTE)
    assert operator.made == ["a", "b"]


def waiting_note(operator: Operator, name: str) -> list[str]:
    """Return why the run of a Schedule waits."""
    verdict = operator.plans[name].claim(Verdict)
    assert isinstance(verdict, Verdict)
    return [verdict.blocked_by.message] if verdict.blocked_by is not None else []
