"""What becomes of slots, by the rules themselves."""

from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from foresail.cli.output.words import compact
from foresail.cli.schedule.simulate import fates_of, outcome, summary_rows
from foresail.cli.schedule.simulation import Fate, Outcome, Span, simulated
from foresail.cli.schedule.snapshot import EvaluatedSchedule
from foresail.plan import Key
from foresail.schedules.observe import GroupView, LocationRow
from tests.unit.cli.made_up import NOW, at, backup, schedule_wire, seen
from tests.unit.schedules.test_policies import policy

BROKEN = LocationRow(Key("velero", "default"), is_default=True, is_read_only=False, phase="Unavailable", message="403")
NOTHING = timedelta()
LONG_AGO = at("2026-01-01T00:00:00")


def fates(evaluated: EvaluatedSchedule, until: datetime, takes: timedelta = NOTHING) -> list[tuple[str, str]]:
    return [
        (f"{each.slot:%d %H:%M}", each.outcome.value)
        for each in simulated(evaluated.view, NOW, Span(LONG_AGO, until), takes)
    ]


def test_every_slot_runs_while_nothing_is_in_its_way() -> None:
    assert fates(seen(schedule_wire()), at("2026-11-18T00:00:00")) == [("16 03:00", "runs"), ("17 03:00", "runs")]


def test_of_several_slots_that_have_passed_the_last_runs_late_and_the_others_are_missed() -> None:
    hourly = seen(schedule_wire("0 */4 * * *"))
    assert fates(hourly, at("17:00:00")) == [
        ("15 04:00", "missed"),
        ("15 08:00", "missed"),
        ("15 12:00", "runs late"),
        ("15 16:00", "runs"),
    ]


@pytest.mark.parametrize(
    ("spec", "status"),
    [({"skipImmediately": True}, {}), ({"skipImmediately": True}, {"phase": "", "lastBackup": None})],
)
def test_what_is_due_when_skip_immediately_is_applied_is_skipped(spec: dict[str, Any], status: dict[str, Any]) -> None:
    found = fates(seen(schedule_wire("0 */4 * * *", spec=spec, status=status)), at("17:00:00"))
    assert set(found[:-1]) >= {("15 04:00", "skipped"), ("15 12:00", "skipped")}
    assert found[-1] == ("15 16:00", "runs")


def test_a_paused_schedule_runs_nothing() -> None:
    found = fates(seen(schedule_wire("0 */4 * * *", spec={"paused": True})), at("17:00:00"))
    assert {outcome for _, outcome in found} == {"paused"}
    assert found[-1] == ("15 16:00", "paused")


def test_an_unavailable_location_blocks_every_slot() -> None:
    found = list(
        simulated(
            seen(schedule_wire("0 16 * * *"), locations=[BROKEN]).view, NOW, Span(LONG_AGO, at("23:00:00")), NOTHING
        )
    )
    assert [(each.outcome.value, each.at) for each in found] == [("held", None)]
    assert found[0].because.startswith("LocationUnavailable: ")


def test_backups_that_take_longer_than_the_period_let_slots_pass() -> None:
    hourly = seen(schedule_wire("0 * * * *", status={"lastBackup": "2026-11-15T12:00:00Z"}))
    found = fates(hourly, at("18:00:00"), timedelta(minutes=90))
    assert found == [
        ("15 13:00", "runs"),
        ("15 14:00", "runs late"),
        ("15 15:00", "missed"),
        ("15 16:00", "runs"),
        ("15 17:00", "runs late"),
    ]


def test_a_slot_that_still_waits_at_the_end_is_blocked() -> None:
    hourly = seen(schedule_wire("0 * * * *", status={"lastBackup": "2026-11-15T12:00:00Z"}))
    found = fates(hourly, at("15:20:00"), timedelta(hours=4))
    assert found == [("15 13:00", "runs"), ("15 14:00", "missed"), ("15 15:00", "held")]


def test_a_backup_that_runs_now_ends_when_its_time_is_over() -> None:
    running = backup("b", "InProgress", slot=at("11:00:00"), created=at("11:00:00"))
    hourly = schedule_wire("0 * * * *", status={"lastBackup": "2026-11-15T11:00:00Z"})
    found = list(simulated(seen(hourly, [running]).view, NOW, Span(LONG_AGO, at("13:30:00")), timedelta(hours=2)))
    assert [(each.slot, each.outcome.value, each.at) for each in found] == [
        (at("12:00:00"), "missed", None),
        (at("13:00:00"), "runs", at("13:00:00")),
    ]


def in_full_group(evaluated: EvaluatedSchedule, until: datetime, takes: timedelta) -> list[tuple[str, str, str]]:
    """Return what becomes of the slots of a Schedule whose group is full now."""
    view = msgspec.structs.replace(evaluated.view, group=GroupView("group slow", 1, ("other",)))
    found = simulated(view, NOW, Span(LONG_AGO, until), takes)
    return [(f"{each.slot:%d %H:%M}", each.outcome.value, f"{each.at:%H:%M}" if each.at else "") for each in found]


def test_a_run_in_a_full_group_starts_when_the_backups_that_run_now_have_ended() -> None:
    hourly = seen(schedule_wire("0 * * * *", status={"lastBackup": "2026-11-15T11:00:00Z"}))
    ends = NOW + timedelta(minutes=20)
    assert in_full_group(hourly, at("14:30:00"), timedelta(minutes=20)) == [
        ("15 12:00", "runs late", f"{ends:%H:%M}"),
        ("15 13:00", "runs", "13:00"),
        ("15 14:00", "runs", "14:00"),
    ]
    assert [each[1] for each in in_full_group(hourly, at("14:30:00"), NOTHING)] == ["runs late", "runs", "runs"]


def test_a_run_that_waits_in_its_group_at_the_end_is_held_for_that_reason() -> None:
    hourly = seen(schedule_wire("0 * * * *", status={"lastBackup": "2026-11-15T12:00:00Z"}))
    view = msgspec.structs.replace(hourly.view, group=GroupView("group slow", 1, ("other",)))
    found = list(simulated(view, NOW, Span(LONG_AGO, at("14:20:00")), timedelta(hours=4)))
    assert [(f"{each.slot:%H:%M}", each.outcome.value, each.because) for each in found] == [
        ("13:00", "missed", ""),
        ("14:00", "held", "ConcurrencyLimit"),
    ]


NOON = at("12:00:00")


def in_group(minutes: list[int], most: int, running: int = 0) -> list[EvaluatedSchedule]:
    """Return daily Schedules of one group, each so many minutes after noon, the first of them with a Backup now."""
    limited = policy("slow", concurrency={"max": most, "group": "slow"})
    found = []
    for number, after in enumerate(minutes):
        due, name = NOON + timedelta(minutes=after), f"s{number:02}"
        wire = schedule_wire(f"{due.minute} {due.hour} * * *", name, status={"lastBackup": "2026-11-15T12:00:00Z"})
        wire["metadata"]["creationTimestamp"] = wire["status"]["lastBackup"]
        row = backup(f"{name}-now", "InProgress", schedule=name, slot=NOON, created=NOON)
        found.append(seen(wire, [row] if number < running else [], policies=(limited,)))
    return found


def starts_by_the_rule(
    minutes: list[int], most: int, running: int, takes: timedelta, days: int
) -> list[tuple[datetime, datetime, str]]:
    """Return slots and starts by the definition: in the order of slots, then of names, when a place is free."""
    slots = sorted(
        (NOON + timedelta(days=day, minutes=after), f"s{number:02}")
        for day in range(days)
        for number, after in enumerate(minutes)
    )
    busy = {f"s{number:02}": NOON + takes for number in range(running)}
    places, found = sorted([NOON + takes] * running + [NOON] * max(most - running, 0)), []
    places = places[max(running - most, 0) :]  # more may run than a new limit allows
    for slot, name in slots:
        start = max(slot, places[0], busy.get(name, NOON))
        places = sorted([*places[1:], start + takes])
        found.append((slot, start, name))
    return found


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.integers(60, 240), min_size=1, max_size=10),
    st.integers(1, 4),
    st.integers(0, 5),
    st.integers(0, 59),
)
@example([120] * 9, 2, 0, 45)
@example([120] * 3, 1, 3, 59)
def test_runs_of_a_group_start_in_the_order_of_their_slots_when_a_place_is_free(
    minutes: list[int], most: int, running: int, takes: int
) -> None:
    running, lasts = min(running, len(minutes)), timedelta(minutes=takes)
    schedules = in_group(minutes, most, running)
    span = Span(NOW, NOON + timedelta(days=2))
    found = fates_of(schedules, NOW, span, lasts)
    starts = [(fate.slot, fate.at, each.schedule.key.name) for fate, each in found]
    assert starts == starts_by_the_rule(minutes, most, running, lasts, days=2)
    for fate, _ in found:
        assert fate.outcome is (Outcome.LATE if fate.at != fate.slot else Outcome.RUNS)
        assert fate.at is not None
        at_once = sum(other.at is not None and other.at <= fate.at < other.at + lasts for other, _ in found)
        assert at_once <= most
    for row in summary_rows(found, "UTC"):
        late = sum(fate.outcome is Outcome.LATE for fate, each in found if str(each.schedule.key) == row[0])
        assert row[1:5] == ("2", str(2 - late), str(late), "0")


def test_run_that_waits_in_its_group_beyond_its_deadline_is_skipped() -> None:
    limited = policy("slow", concurrency={"max": 1, "group": "slow"}, startingDeadline="50m")
    daily = {"lastBackup": "2026-11-15T12:00:00Z"}
    schedules = [seen(schedule_wire("0 13 * * *", name, status=daily), policies=(limited,)) for name in "abc"]
    found = fates_of(schedules, NOW, Span(NOW, at("18:00:00")), timedelta(minutes=40))
    assert [(each.schedule.key.name, fate.outcome.value, fate.because) for fate, each in found] == [
        ("a", "runs", ""),
        ("b", "runs late", ""),
        ("c", "skipped", "DeadlineExceeded"),
    ]


def test_backups_of_schedules_that_are_not_simulated_hold_their_place_once() -> None:
    (only,) = in_group([60], 1)
    full = replace(only, view=msgspec.structs.replace(only.view, group=GroupView("slow", 1, ("other",))))
    ((fate, _),) = fates_of([full], NOW, Span(NOW, NOON + timedelta(days=1)), timedelta(hours=2))
    assert fate.at == NOW + timedelta(hours=2)


def test_a_schedule_that_counts_from_its_last_run_is_followed_run_by_run() -> None:
    every = schedule_wire("@every 2h", status={"lastBackup": "2026-11-15T11:30:00Z"})
    assert fates(seen(every), at("18:00:00")) == [("15 13:30", "runs"), ("15 15:30", "runs"), ("15 17:30", "runs")]


def test_runs_seconds_apart_are_all_found() -> None:
    every = schedule_wire("@every 5s", status={"lastBackup": "2026-11-15T12:00:30Z"})
    found = list(simulated(seen(every).view, NOW, Span(NOW, NOW + timedelta(seconds=21)), NOTHING))
    assert [each.slot for each in found] == [NOW + timedelta(seconds=5 * number) for number in (1, 2, 3, 4)]


def test_a_schedule_that_is_refused_has_no_slots() -> None:
    assert fates(seen(schedule_wire("0 0 30 2 *")), at("2027-11-15T00:00:00")) == []


def test_only_the_span_that_is_asked_for_is_looked_at_and_years_before_it_cost_nothing() -> None:
    minutely = seen(schedule_wire("* * * * *", status={"lastBackup": "2016-01-01T00:00:00Z"}), locations=[BROKEN])
    found = list(simulated(minutely.view, NOW, Span(NOW, NOW + timedelta(minutes=2)), NOTHING))
    assert [each.slot for each in found] == [at("12:01:00"), at("12:02:00")]
    daily = simulated(
        seen(schedule_wire()).view, NOW, Span(at("2026-11-17T00:00:00"), at("2026-11-18T00:00:00")), NOTHING
    )
    assert [each.slot for each in daily] == [at("2026-11-17T03:00:00")]


def test_a_late_run_is_shown_if_it_comes_in_the_span_though_its_slot_was_before() -> None:
    late = simulated(seen(schedule_wire("0 */4 * * *")).view, NOW, Span(NOW, at("15:00:00")), NOTHING)
    assert [(each.slot, each.outcome.value, each.at) for each in late] == [(at("12:00:00"), "runs late", NOW)]


@pytest.mark.repeats
def test_a_week_is_summed_up_in_one_line_for_each_schedule() -> None:
    minutely, span = seen(schedule_wire("* * * * *")), Span(NOW, NOW + timedelta(days=7))
    fates = [(fate, minutely) for fate in simulated(minutely.view, NOW, span, timedelta(minutes=7))]
    assert len(fates) > 5000
    ((name, slots, on_time, late, lost, first),) = summary_rows(fates, "UTC")
    assert (name, int(slots)) == ("velero/daily", len(fates))
    assert int(on_time) + int(late) + int(lost) == len(fates)
    assert first.startswith("Sun 2026-11-15 12:0")


def test_how_late_a_run_is_and_how_long_backups_take_reads_like_a_duration() -> None:
    late = Fate(at("12:00:00"), Outcome.LATE, at("12:07:00"))
    assert outcome(late, "UTC") == "runs 7m late, at Sun 2026-11-15 12:07 +00"
    spans = {"45s": 45, "7m": 420, "1h30m": 5400, "2d": 172800, "1d1h": 90000, "1m30s": 90, "0s": 0}
    assert [compact(timedelta(seconds=each)) for each in spans.values()] == list(spans)
