"""Spread, windows and the starting deadline of a SchedulePolicy: when a slot runs, and what is recorded if not."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from itertools import islice
from random import Random
from time import process_time
from typing import Any

import msgspec
import pytest

from foresail.api.instants import stamp
from foresail.api.schedule_policy import MOST_WINDOWS
from foresail.cron import Dialect, fires_after, parse
from foresail.kube.execute import Outcome, Result
from foresail.schedules.controller import Schedules
from foresail.schedules.decide import decide, reasons_to_report
from foresail.schedules.observe import ScheduleRow, ScheduleView
from foresail.schedules.policies import problem_with, settings_under
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import Verdict, judge, next_reconcile
from foresail.schedules.settings import Settings
from foresail.schedules.slots import backup_name
from foresail.slots.policy_timing import PolicyRow, timing_under
from foresail.slots.starts import starts_between
from tests.unit.schedules.rows import AVAILABLE, DAY, HOUR, MINUTE, NOON, backup, schedule, view, watched
from tests.unit.schedules.test_policies import policy

MIDNIGHT = NOON - 12 * HOUR
DOWN = msgspec.structs.replace(AVAILABLE, phase="Unavailable")
NIGHT = {"schedule": "0 22 * * *", "duration": "8h"}
WEEKEND = {"schedule": "0 0 * * 6", "duration": "48h"}


def daily(text: str = "0 0 * * *", last: datetime = MIDNIGHT - DAY) -> ScheduleRow:
    """Return a Schedule that ran at a slot."""
    return watched(schedule(text=text, last_backup=last, created=NOON - 30 * DAY))


def offset_of(rule: PolicyRow, name: str = "daily") -> timedelta:
    """Return the delay of a Schedule."""
    timing = timing_under(rule, f"velero/{name}", "UTC")
    assert timing is not None
    return timing.offset


def reasons(verdict: Verdict) -> list[str]:
    """Return the reasons of the Events."""
    return [because.reason for because in reasons_to_report(verdict)]


# Spread


def test_spread_run_starts_after_its_offset_and_keeps_the_name_of_its_slot() -> None:
    rule = policy(spread={"within": "2h"})
    starts = MIDNIGHT + offset_of(rule)
    before = judge(view(daily(), policy=rule), starts - timedelta(seconds=1))
    assert (before.fires, before.upcoming, before.next_run) == (None, MIDNIGHT, starts)
    assert next_reconcile(before, starts - timedelta(seconds=1)) == starts
    plan = decide(view(daily(), policy=rule), starts)
    assert [each.key.name for each in plan.actions] == [backup_name(daily(), MIDNIGHT)]


def test_spread_of_a_schedule_depends_on_its_name_alone() -> None:
    rule = policy(spread={"within": "2h"})
    offsets = [offset_of(rule, f"s{number}") for number in range(266)]
    assert offsets == [offset_of(policy("b", spread={"within": "2h"}), f"s{number}") for number in range(266)]
    assert all(timedelta() <= each <= 2 * HOUR for each in offsets)
    assert len(set(offsets)) > 250


def test_removing_the_spread_runs_no_slot_twice() -> None:
    done = daily(last=MIDNIGHT)
    assert judge(view(done), MIDNIGHT + HOUR).fires is None
    assert judge(view(done, policy=policy(spread={"within": "2h"})), MIDNIGHT + 2 * HOUR).fires is None


def edited(row: ScheduleRow, rule: PolicyRow, **changed: Any) -> ScheduleView:  # noqa: ANN401 - any part
    """Return what a decision sees after the zone of the policy was set."""
    return view(row, policy=rule, settings=settings_under(rule, Settings()), **changed)


def test_edit_keeps_a_slot_that_has_not_started() -> None:
    rule = policy(spread={"within": "24h"})
    starts = MIDNIGHT + offset_of(rule)
    row = msgspec.structs.replace(daily(), text="0 0 * * 0-6")
    verdict = judge(view(row, policy=rule), starts - MINUTE)
    assert (verdict.edited, verdict.upcoming, verdict.starts) == (True, MIDNIGHT, starts)
    assert reasons(verdict) == []
    late = judge(view(row, policy=rule), starts + MINUTE)
    assert (late.fires, late.dropped, reasons(late)) == (None, MIDNIGHT, [Reason.SKIPPED])


def test_another_name_of_the_zone_drops_nothing() -> None:
    row = daily()
    verdict = judge(edited(row, policy(timeZone="Etc/UTC"), location=DOWN), MIDNIGHT + HOUR)
    assert (verdict.edited, verdict.due) == (False, MIDNIGHT)
    assert verdict.changes.observed.zone == "Etc/UTC"


def test_zone_that_drops_a_blocked_run_reports_it() -> None:
    verdict = judge(edited(daily(), policy(timeZone="Asia/Tokyo"), location=DOWN), MIDNIGHT + HOUR)
    assert (verdict.edited, verdict.due, verdict.dropped) == (True, None, MIDNIGHT)
    (because,) = reasons_to_report(verdict)
    assert because.reason is Reason.SKIPPED
    assert stamp(MIDNIGHT) in because.message


# Deadline


def test_run_that_could_not_start_in_time_is_recorded_as_missed_and_never_run() -> None:
    rule = policy(startingDeadline="4h")
    blocked = view(daily(), policy=rule, location=DOWN)
    within, after = MIDNIGHT + 4 * HOUR, MIDNIGHT + 4 * HOUR + timedelta(seconds=1)
    verdict = judge(blocked, within)
    assert (verdict.due, verdict.fires, verdict.changes.last_skipped) == (MIDNIGHT, None, None)
    assert next_reconcile(verdict, within) == after
    late = judge(view(daily(), policy=rule), after)
    assert (late.fires, late.changes.last_skipped) == (None, MIDNIGHT)
    assert reasons(late) == [Reason.DEADLINE_EXCEEDED]
    recorded = watched(msgspec.structs.replace(daily(), last_skipped=MIDNIGHT))
    again = judge(view(recorded, policy=rule), after)
    assert (again.fires, again.not_run, again.next_run) == (None, None, MIDNIGHT + DAY)


@pytest.mark.parametrize("late", [2, 3_600])
def test_run_that_the_watch_has_not_observed_yet_is_not_recorded_as_missed(late: int) -> None:
    rule, row, at = policy(startingDeadline="1h"), daily(), MIDNIGHT + HOUR
    controller = Schedules("velero", Settings())
    controller.schedules.put(row.key, row)
    first = view(row, policy=rule)
    plan = controller.decide(first, at)
    assert [each.key.name for each in plan.actions] == [backup_name(row, MIDNIGHT)]
    controller.settled(row.key, first, plan, Result(Outcome.DONE), at)
    seen = controller.observe(row.key, at)
    assert isinstance(seen, ScheduleView)
    after = controller.decide(msgspec.structs.replace(first, unobserved=seen.unobserved), at + timedelta(seconds=late))
    assert (after.actions, after.notes) == ((), ())
    assert after.status is not None
    assert after.status.body == {"status": {"lastBackup": stamp(MIDNIGHT)}}


def test_run_that_was_refused_is_not_taken_for_a_run() -> None:
    row = daily()
    controller = Schedules("velero", Settings())
    controller.schedules.put(row.key, row)
    plan = controller.decide(view(row), MIDNIGHT)
    failed = Result(Outcome.FAILED, plan.actions[0])
    controller.settled(row.key, view(row), plan, failed, MIDNIGHT)
    seen = controller.observe(row.key, MIDNIGHT)
    assert isinstance(seen, ScheduleView)
    assert seen.unobserved is None


def test_deadline_counts_from_the_offset_of_the_spread() -> None:
    rule = policy(spread={"within": "2h"}, startingDeadline="1h")
    late = MIDNIGHT + offset_of(rule) + HOUR
    assert judge(view(daily(), policy=rule), late).fires == MIDNIGHT
    assert judge(view(daily(), policy=rule), late + timedelta(seconds=1)).fires is None


def test_after_a_long_downtime_the_slot_in_time_runs_and_the_others_are_recorded() -> None:
    rule = policy(startingDeadline="4h")
    row = daily(last=MIDNIGHT - 5 * DAY)
    verdict = judge(view(row, policy=rule), MIDNIGHT + HOUR)
    assert (verdict.due, verdict.missed, verdict.changes.last_skipped) == (MIDNIGHT, 0, MIDNIGHT - DAY)
    assert verdict.not_run is not None
    assert verdict.not_run.expired == 4
    assert reasons(verdict) == [Reason.DEADLINE_EXCEEDED]
    _assert_recorded_before_the_run(row, rule, MIDNIGHT + HOUR)


def _assert_recorded_before_the_run(row: ScheduleRow, rule: PolicyRow, now: datetime) -> None:
    """Slots are counted from the last Backup: made before the record, it would hide that others were not run."""
    plan, verdict = decide(view(row, policy=rule), now), judge(view(row, policy=rule), now)
    assert (verdict.fires, plan.actions) == (None, ())
    assert plan.status is not None
    recorded = msgspec.structs.replace(row, last_skipped=verdict.changes.last_skipped)
    after = judge(view(recorded, policy=rule), now)
    assert (after.fires, after.not_run, after.missed, reasons(after)) == (verdict.due, None, 0, [])


# Windows


def test_slot_outside_moves_to_the_opening_and_keeps_its_name() -> None:
    rule = policy(windows={"allowed": [NIGHT]})
    row = daily("0 12 * * *", NOON - DAY)
    verdict = judge(view(row, policy=rule), NOON)
    assert (verdict.fires, verdict.upcoming, verdict.next_run) == (None, NOON, NOON + 10 * HOUR)
    plan = decide(view(row, policy=rule), NOON + 10 * HOUR)
    assert [each.key.name for each in plan.actions] == [backup_name(row, NOON)]


def test_run_of_before_the_policy_does_not_delay_the_first_run_at_an_opening() -> None:
    ran = daily("0 12 * * *", last=MIDNIGHT + HOUR)  # whose slot would start at the same opening
    verdict = judge(view(ran, policy=policy(windows={"allowed": [NIGHT]})), NOON + 10 * HOUR)
    assert (verdict.is_settling, verdict.fires) == (False, NOON)


def test_slots_of_one_closed_stretch_start_once_and_the_others_are_recorded() -> None:
    rule = policy(windows={"allowed": [NIGHT]})
    row = daily("0 * * * *", NOON - 7 * HOUR)
    verdict = judge(view(row, policy=rule), NOON + 10 * HOUR)
    assert (verdict.due, verdict.missed) == (NOON + 10 * HOUR, 0)
    assert verdict.changes.last_skipped == NOON + 9 * HOUR
    assert verdict.not_run is not None
    assert verdict.not_run.outside == 16
    assert reasons(verdict) == [Reason.OUTSIDE_WINDOW]
    _assert_recorded_before_the_run(row, rule, NOON + 10 * HOUR)


def test_slot_outside_is_skipped_and_recorded_when_it_comes() -> None:
    rule = policy(windows={"allowed": [NIGHT], "outside": "Skip"})
    row = daily("0 12,23 * * *", NOON - 13 * HOUR)
    verdict = judge(view(row, policy=rule), NOON - MINUTE)
    assert (verdict.next_run, next_reconcile(verdict, NOON - MINUTE)) == (NOON + 11 * HOUR, NOON)
    skipped = judge(view(row, policy=rule), NOON)
    assert (skipped.fires, skipped.changes.last_skipped) == (None, NOON)
    assert reasons(skipped) == [Reason.OUTSIDE_WINDOW]


def test_blocked_run_waits_for_the_next_opening_or_is_skipped_when_the_window_closes() -> None:
    closed = NOON
    row = daily("0 5 * * *", NOON - 31 * HOUR)
    delays = judge(view(row, policy=policy(windows={"allowed": [NIGHT]})), closed)
    assert (delays.due, delays.fires) == (NOON - 7 * HOUR, None)
    assert delays.blocked_by is not None
    assert delays.blocked_by.reason is Reason.OUTSIDE_WINDOW
    assert next_reconcile(delays, closed) == NOON + 10 * HOUR
    skips = judge(view(row, policy=policy(windows={"allowed": [NIGHT], "outside": "Skip"})), closed)
    assert (skips.due, skips.changes.last_skipped) == (None, NOON - 7 * HOUR)


def test_run_held_until_its_window_closes_is_skipped_at_the_close() -> None:
    rule = policy(windows={"allowed": [NIGHT], "outside": "Skip"})
    row, closes = daily("0 5 * * *", NOON - 31 * HOUR), NOON - 6 * HOUR
    held = judge(view(row, location=DOWN, policy=rule), NOON - 7 * HOUR)
    assert (held.due, next_reconcile(held, NOON - 7 * HOUR)) == (NOON - 7 * HOUR, closes)
    assert judge(view(row, location=DOWN, policy=rule), closes).changes.last_skipped == NOON - 7 * HOUR


def test_slot_that_a_newer_one_supersedes_is_recorded_at_its_own_deadline() -> None:
    rule = policy(startingDeadline="40h")
    row = daily(last=MIDNIGHT - 2 * DAY)
    held = judge(view(row, location=DOWN, policy=rule), NOON)
    assert (held.due, held.not_run) == (MIDNIGHT, None)
    expires = MIDNIGHT + 16 * HOUR + timedelta(seconds=1)
    assert next_reconcile(held, NOON) == expires
    assert judge(view(row, location=DOWN, policy=rule), expires).changes.last_skipped == MIDNIGHT - DAY


def test_runs_that_wait_for_an_opening_start_after_it_each_with_its_delay() -> None:
    rule = policy(windows={"allowed": [NIGHT]}, spread={"within": "2h"})
    opening, delay = NOON + 10 * HOUR, offset_of(rule)
    assert timedelta() < delay < 2 * HOUR
    row = daily("0 12 * * *", NOON - DAY)
    waiting = judge(view(row, policy=rule), opening)
    assert (waiting.fires, waiting.next_run) == (None, opening + delay)
    assert next_reconcile(waiting, opening) == opening + delay
    assert judge(view(row, policy=rule), opening + delay - timedelta(seconds=1)).fires is None
    assert judge(view(row, policy=rule), opening + delay).fires == NOON


def test_a_blocked_run_that_waits_for_the_next_opening_is_spread_too() -> None:
    rule = policy(windows={"allowed": [NIGHT]}, spread={"within": "2h"})
    row, opening = daily("0 3 * * *", NOON - 33 * HOUR), NOON + 10 * HOUR
    for at in (NOON, opening):
        blocked = judge(view(row, policy=rule), at)
        assert (blocked.due, blocked.fires) == (NOON - 9 * HOUR, None)
        assert blocked.blocked_by is not None
        assert stamp(opening + offset_of(rule)) in blocked.blocked_by.message
        assert next_reconcile(blocked, at) == opening + offset_of(rule)
    assert judge(view(row, policy=rule), opening + offset_of(rule)).fires == NOON - 9 * HOUR


def test_a_delay_is_never_longer_than_the_window() -> None:
    rule = policy(windows={"allowed": [{"schedule": "0 22 * * *", "duration": "10m"}]}, spread={"within": "8h"})
    starts = set()
    for number in range(100):
        timing = timing_under(rule, f"velero/s{number}", "UTC")
        assert timing is not None
        start = timing.starts(NOON)
        assert start is not None
        assert timedelta() <= (start - NOON - 10 * HOUR) % DAY < 10 * MINUTE
        starts.add((start - NOON) % DAY)
    assert len(starts) > 80


@pytest.mark.parametrize("seed", range(100))
def test_the_order_of_starts_is_that_of_the_slots_and_each_is_listed(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - not for secrets
    length = random.choice(["1m", "10m", "3h", "23h"])
    windows = random.choice(
        [
            {"allowed": [{"schedule": "30 */5 * * *", "duration": length}]},
            {"excluded": [{"schedule": "0 7 * * *", "duration": length}]},
        ]
    )
    rule = policy(spread={"within": random.choice(["1s", "45m", "24h"])}, windows=windows)
    timing = timing_under(rule, f"velero/s{seed}", "UTC")
    assert timing is not None
    assert timing.windows is not None
    cron = parse(random.choice(["*/7 * * * *", "0 */3 * * *", "29 * * * *"]), Dialect.GOCRON, "UTC")
    slots = list(islice(fires_after(cron, NOON), 1_000))
    starts = [start for slot in slots if (start := timing.starts(slot)) is not None]
    assert starts == sorted(starts)
    assert all(timing.windows.is_open(start) and timing.opens(start) == start for start in starts)
    begin, end = NOON + random.randrange(2 * 86_400) * timedelta(seconds=1), slots[-1]
    expected = sorted({start for start in starts if begin <= start < end})
    assert list(starts_between(cron, NOON, timing, begin, end)) == expected


def test_deadline_counts_from_the_opening() -> None:
    rule = policy(windows={"allowed": [NIGHT]}, startingDeadline="1h")
    row = daily("0 12 * * *", NOON - DAY)
    assert judge(view(row, policy=rule), NOON + 11 * HOUR).fires == NOON
    assert judge(view(row, policy=rule), NOON + 11 * HOUR + timedelta(seconds=1)).fires is None


@pytest.mark.parametrize("outside", ["Delay", "Skip"])
def test_windows_that_never_open_are_a_reason_and_not_a_loop(outside: str) -> None:
    always = {"schedule": "* * * * *", "duration": "1h"}
    rule = policy(windows={"excluded": [always], "outside": outside})
    verdict = judge(view(daily(), policy=rule), NOON)
    assert verdict.refused is not None
    assert verdict.refused.reason is Reason.NEVER_IN_WINDOW


def test_schedule_whose_slots_are_never_inside_is_refused_if_they_are_skipped() -> None:
    rule = policy(windows={"allowed": [NIGHT], "outside": "Skip"})
    verdict = judge(view(daily("0 12 * * *", NOON - DAY), policy=rule), NOON - HOUR)
    assert verdict.refused is not None
    assert verdict.refused.reason is Reason.NEVER_IN_WINDOW


@pytest.mark.parametrize(
    "excluded",
    [
        [{"schedule": "* 8-17 * * 1-5", "duration": "1m"}],
        [{"schedule": f"{minutes} 8-17 * * 1-5", "duration": "1m"} for minutes in ("*/2", "1-59/2")],
        [{"schedule": "* * 1-20 * *", "duration": "1m"}],
    ],
)
@pytest.mark.parametrize("outside", ["Delay", "Skip"])
def test_windows_that_open_after_many_short_ones_are_found(excluded: list[dict[str, str]], outside: str) -> None:
    rule = policy(windows={"excluded": excluded, "outside": outside})
    at = NOON - 5 * HOUR + MINUTE
    verdict = judge(view(daily("0 * * * *", NOON - 5 * HOUR), policy=rule), at)
    opens = datetime(2026, 3, 21, tzinfo=UTC) if "1-20" in excluded[0]["schedule"] else NOON + 6 * HOUR
    assert (verdict.refused, verdict.next_run) == (None, opens)


def test_schedule_that_is_never_inside_is_evaluated_again_within_a_day() -> None:
    rule = policy(windows={"allowed": [NIGHT], "outside": "Skip"})
    verdict = judge(view(daily("0 12 * * *", NOON - DAY), policy=rule), NOON - HOUR)
    assert next_reconcile(verdict, NOON - HOUR) == NOON - HOUR + DAY


def test_long_search_for_a_slot_inside_refuses_no_schedule() -> None:
    odd = {"schedule": "1-59/2 * * * *", "duration": "1m"}
    rule = policy(windows={"allowed": [odd], "outside": "Skip"})
    verdict = judge(view(daily("*/2 * * * *", NOON), policy=rule), NOON + 2 * MINUTE)
    assert (verdict.refused, verdict.fires, verdict.changes.last_skipped) == (None, None, NOON + 2 * MINUTE)
    assert next_reconcile(verdict, NOON + 2 * MINUTE) == NOON + 4 * MINUTE
    assert reasons(verdict) == [Reason.OUTSIDE_WINDOW]


@pytest.mark.parametrize(
    ("spec", "problem"),
    [
        ({"spread": {"within": "30h"}}, "spec.spread.within"),
        ({"spread": {"within": "1ms"}}, "spec.spread.within"),
        ({"startingDeadline": "1ms"}, "spec.startingDeadline"),
        ({"startingDeadline": "59s"}, "from 1m to 8760h"),
        ({"startingDeadline": "8761h"}, "from 1m to 8760h"),
        ({"windows": {}}, "spec.windows has no window"),
        ({"windows": {"allowed": [{**NIGHT, "duration": "745h"}]}}, "from 1m to 744h"),
        ({"windows": {"allowed": [{"schedule": "@every 1h", "duration": "1h"}]}}, "spec.windows.allowed[0]: schedule"),
        ({"windows": {"allowed": [{"schedule": "0 0 31 2 *", "duration": "1h"}]}}, "never fires"),
        ({"windows": {"excluded": [NIGHT, {"schedule": "x", "duration": "1h"}]}}, "spec.windows.excluded[1]"),
        ({"windows": {"allowed": [{**NIGHT, "timeZone": "Mars/Base"}]}}, "timeZone 'Mars/Base'"),
        ({"windows": {"allowed": [{**NIGHT, "duration": "0s"}]}}, "duration '0s'"),
        ({"windows": {"allowed": [{**NIGHT, "duration": "90s"}]}}, "whole number of minutes"),
    ],
)
def test_unusable_times_are_named_and_block_the_schedule(spec: dict[str, Any], problem: str) -> None:
    rule = policy()
    rule = msgspec.structs.replace(rule, spec=msgspec.convert(_wire(spec), type(rule.spec), strict=False))
    found = problem_with(rule)
    assert found is not None
    assert problem in found
    refused = judge(view(daily(), policy=rule), NOON).refused
    assert refused is not None
    assert refused.reason is Reason.POLICY_INVALID


def _wire(spec: dict[str, Any]) -> dict[str, Any]:
    return {"selector": {}, **spec}


# The cost of the worst policy that is accepted

ZONES = ("Berlin", "Paris", "Rome", "Madrid", "Vienna", "Prague", "Warsaw", "Oslo")
DENSE = [
    {"schedule": f"{number}-59,0-{number} 0-7 * * *", "duration": "1m", "timeZone": f"Europe/{zone}"}
    for number, zone in enumerate(ZONES)
]
LONG = [
    {"schedule": f"{number} * * * *", "duration": "744h", "timeZone": f"Europe/{zone}"}
    for number, zone in enumerate(ZONES)
]
NEVER = [
    {"schedule": f"{number}-59/8 * * * *", "duration": "1m", "timeZone": f"Europe/{zone}"}
    for number, zone in enumerate(ZONES)
]
ODD = [{"schedule": "1-59/2 * * * *", "duration": "1m"}]
RARE = [
    {"schedule": f"{number} 0 29 2 *", "duration": "744h", "timeZone": "America/Santiago"}
    for number in range(MOST_WINDOWS)
]


@pytest.mark.timed
@pytest.mark.parametrize("outside", ["Delay", "Skip"])
@pytest.mark.parametrize(
    ("allowed", "excluded"), [(LONG, DENSE), (LONG, NEVER), (RARE, NEVER), (RARE, DENSE), (DENSE, RARE), (ODD, RARE)]
)
def test_no_policy_takes_long(allowed: list[dict[str, str]], excluded: list[dict[str, str]], outside: str) -> None:
    rule = policy(windows={"allowed": allowed, "excluded": excluded, "outside": outside}, startingDeadline="1m")
    assert problem_with(rule) is None
    spring = datetime(2026, 3, 29, 12, tzinfo=UTC)
    seen = view(daily("*/2 * * * *", spring - 13 * HOUR), policy=rule)
    took = [_cpu(partial(judge, seen, spring + minutes * MINUTE)) for minutes in range(3)]
    unit = min(_cpu(lambda: list(islice(fires_after(parse("* * * * *"), spring), 100_000))) for _ in range(3))
    assert took[0] < 5 * unit, "the first Schedule under the policy"
    assert min(took) < unit / 2, "every other one"


def _cpu(work: Callable[[], object]) -> float:
    begun = process_time()
    work()
    return process_time() - begun


# Every slot is run or recorded, whatever the policy


@pytest.mark.parametrize("seed", range(200))
def test_no_slot_is_both_run_and_skipped_and_none_is_lost(seed: int) -> None:
    random = Random(seed)  # noqa: S311 - not for secrets
    spec: dict[str, Any] = {}
    if random.random() < 0.6:
        spec["spread"] = {"within": random.choice(["10m", "2h", "23h"])}
    if random.random() < 0.6:
        spec["startingDeadline"] = random.choice(["5m", "4h", "40h"])
    if random.random() < 0.8:
        windows = random.choice(
            [{"allowed": [NIGHT]}, {"excluded": [WEEKEND]}, {"allowed": [NIGHT], "excluded": [WEEKEND]}]
        )
        spec["windows"] = {**windows, "outside": random.choice(["Delay", "Skip"])}
    text = random.choice(["0 */3 * * *", "30 23 * * *", "0 0,12 * * *", "17 5 * * 1-5"])
    _play(policy(timeZone=random.choice(["UTC", "Europe/Berlin"]), **spec), text, random)


def _play(rule: PolicyRow, text: str, random: Random) -> None:
    """Follow a Schedule for three weeks across a clock change, blocked at times and looked at late at times."""
    settings = msgspec.structs.replace(view().settings, zone=rule.spec.time_zone or "UTC")
    begins, ends = NOON, NOON + 21 * DAY
    row = watched(schedule(text=text, created=begins), zone=settings.zone)
    made: list[datetime] = []
    counted, at = 0, begins
    everything = _slots(msgspec.structs.replace(row), begins, ends, settings.zone)
    while at < ends:
        seen = view(row, *[backup(slot=each) for each in made[-1:]], settings=settings, policy=rule)
        seen = msgspec.structs.replace(seen, location=DOWN if random.random() < 0.2 else AVAILABLE)
        verdict = judge(seen, at)
        if verdict.refused is not None:
            assert verdict.refused.reason is Reason.NEVER_IN_WINDOW
            return
        left_out = verdict.not_run
        if left_out is not None:
            assert left_out.last not in made
            counted += left_out.outside + left_out.expired + left_out.superseded
            row = msgspec.structs.replace(row, last_skipped=verdict.changes.last_skipped)
            continue
        if verdict.fires is not None:
            assert verdict.fires not in made
            _assert_may_start(seen, verdict, at)
            counted += 1 + verdict.missed
            made.append(verdict.fires)
            row = msgspec.structs.replace(row, last_backup=verdict.fires)
        wake = next_reconcile(verdict, at) or at + HOUR
        at = max(wake, at + MINUTE) + random.choice([0, 0, 0, 7, 90, 2_000]) * MINUTE
    over = max([each for each in (row.last_backup, row.last_skipped) if each is not None], default=begins)
    assert counted == sum(each <= over for each in everything), stamp(over)


def _assert_may_start(seen: ScheduleView, verdict: Verdict, at: datetime) -> None:
    timing = timing_under(seen.policy, str(seen.schedule.key), seen.settings.zone)
    if timing is not None and verdict.due_since is not None:
        assert verdict.due_since <= at
        assert timing.deadline is None or at - verdict.due_since <= timing.deadline
        assert timing.windows is None or timing.windows.is_open(at)


def _slots(row: ScheduleRow, begins: datetime, ends: datetime, zone: str) -> list[datetime]:
    found: list[datetime] = []
    for fire in fires_after(parse(row.text, Dialect.GOCRON, zone), begins):
        if fire > ends + 3 * DAY:
            return found
        found.append(fire)
    return found
