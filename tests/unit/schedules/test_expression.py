"""What an expression means, with and without knowing Velero's version, and what a new version changes."""

import time

import pytest

from foresail.cron import CalendarSchedule, Dialect
from foresail.reporting import Because
from foresail.schedules.decide import decide
from foresail.schedules.expression import diff_dialects, parse_expression
from foresail.schedules.observe import VeleroServer
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import judge
from foresail.schedules.status import UNKNOWN
from foresail.slots.observed import Observed
from tests.unit.schedules.rows import DAY, GO_CRON, HOUR, NOON, schedule, view, watched

ROBFIG = VeleroServer(Dialect.ROBFIG, "v1.17.2")
BOTH_DAYS = "0 0 13 * 5"  # either day in the one dialect, both in the other


@pytest.mark.parametrize(
    ("text", "dialect", "expected"),
    [
        ("0 3 * * *", Dialect.ROBFIG, None),
        ("0 3 * * *", Dialect.GOCRON, None),
        ("0 3 * * *", None, None),
        (BOTH_DAYS, Dialect.ROBFIG, None),
        (BOTH_DAYS, Dialect.GOCRON, None),
        (BOTH_DAYS, None, Reason.DIALECT_UNKNOWN),
        ("0 */24 * * *", Dialect.ROBFIG, None),
        ("0 */24 * * *", Dialect.GOCRON, Reason.INVALID),
        ("0 */24 * * *", None, Reason.DIALECT_UNKNOWN),
        ("TZ=Europe/Berlin 30 2 * * *", None, Reason.DIALECT_UNKNOWN),
        ("TZ=Asia/Tokyo 30 2 * * *", None, None),
        ("@every 10s", None, None),
        ("@manual", Dialect.GOCRON, Reason.NEVER_FIRES),
        ("@manual", Dialect.ROBFIG, Reason.INVALID),
        ("@manual", None, Reason.DIALECT_UNKNOWN),
        ("0 0 30 2 *", Dialect.ROBFIG, Reason.NEVER_FIRES),
        ("0 0 30 2 *", Dialect.GOCRON, Reason.NEVER_FIRES),
        ("0 0 30 2 *", None, Reason.NEVER_FIRES),
        ("", None, Reason.INVALID),
        ("", Dialect.GOCRON, Reason.INVALID),
        ("nonsense", None, Reason.INVALID),
        ("\x00", Dialect.ROBFIG, Reason.INVALID),
    ],
)
def test_an_expression_is_read_as_far_as_velero_is_known(
    text: str, dialect: Dialect | None, expected: Reason | None
) -> None:
    found = parse_expression(text, "UTC", dialect, NOON)
    assert (found.reason if isinstance(found, Because) else None) is expected


def test_an_expression_without_a_zone_is_read_in_veleros() -> None:
    found = parse_expression("30 2 * * *", "Europe/Berlin", Dialect.GOCRON, NOON)
    assert isinstance(found, CalendarSchedule)
    assert found.zone == "Europe/Berlin"


@pytest.mark.parametrize(
    "text", ["0," * 500_000 + "0 * * * *", "* * * * *" + " " * 1_000_000, "@every " + "1h" * 400_000, "x" * 1_000_000]
)
@pytest.mark.parametrize("server", [ROBFIG, GO_CRON, VeleroServer(None)])
@pytest.mark.timed
def test_an_enormous_expression_is_refused_at_once_and_not_repeated_in_what_is_written(
    text: str, server: VeleroServer
) -> None:
    began = time.thread_time()
    plan = decide(view(schedule(text=text), server=server), NOON)
    assert time.thread_time() - began < 0.1
    assert plan.status is not None
    assert len(str(plan.status.body)) < 1000
    assert all(len(note.message) < 1000 for note in plan.notes)
    assert "the maximum is 1024" in str(plan.status.body)


def test_dialects_that_agree_for_400_days_are_taken_to_agree() -> None:
    assert diff_dialects("0 3 * * *", "UTC", NOON) is None
    assert diff_dialects(BOTH_DAYS, "UTC", NOON) is not None
    assert diff_dialects("30 2 * * *", "Europe/Berlin", NOON) is not None


# The dialect that is remembered


@pytest.mark.parametrize(
    ("text", "server", "previous", "expected"),
    [
        ("0 3 * * *", GO_CRON, None, ""),
        ("0 3 * * *", VeleroServer(None), None, ""),
        (BOTH_DAYS, GO_CRON, None, "go-cron"),
        (BOTH_DAYS, ROBFIG, None, "robfig"),
        (BOTH_DAYS, VeleroServer(None), None, UNKNOWN),
        (BOTH_DAYS, GO_CRON, Observed(BOTH_DAYS, dialect="robfig"), "go-cron"),
        (BOTH_DAYS, GO_CRON, Observed(BOTH_DAYS, dialect=UNKNOWN), "go-cron"),
        (BOTH_DAYS, VeleroServer(None), Observed(BOTH_DAYS, dialect="robfig"), "robfig"),
        (BOTH_DAYS, VeleroServer(None), Observed("0 3 * * *", dialect="robfig"), UNKNOWN),
        (BOTH_DAYS, GO_CRON, Observed("0 3 * * *"), "go-cron"),
        ("0 3 * * *", GO_CRON, Observed(BOTH_DAYS, dialect="robfig"), ""),
        ("0 3 * * *", GO_CRON, Observed("0 3 * * *"), ""),
    ],
)
def test_the_dialect_is_remembered_where_it_makes_a_difference(
    text: str, server: VeleroServer, previous: Observed | None, expected: str
) -> None:
    row = schedule(text=text)
    if previous:
        row = watched(row, schedule=previous.schedule, dialect=previous.dialect)
    assert judge(view(row, server=server), NOON).changes.observed.dialect == expected


def test_a_new_version_that_changes_fires_is_reported_once_before_the_first_of_them() -> None:
    row = watched(schedule(text=BOTH_DAYS, last_backup=NOON - DAY), dialect="robfig")
    plan = decide(view(row, server=GO_CRON), NOON)
    (note,) = plan.notes
    assert note.reason == "DialectChanged"
    assert "The first fire that differs is 2026-03-20T00:00:00Z" in note.message
    after = watched(schedule(text=BOTH_DAYS, last_backup=NOON - DAY), dialect="go-cron")
    assert decide(view(after, server=GO_CRON), NOON + HOUR).notes == ()


def test_a_dialect_that_was_unknown_at_first_is_no_change_but_the_next_is() -> None:
    """What was first seen without knowing the version was never told of a later change."""
    first = judge(view(schedule(text=BOTH_DAYS), server=VeleroServer(None)), NOON).changes.observed
    row = watched(schedule(text=BOTH_DAYS, last_backup=NOON - DAY), dialect=first.dialect)
    known = judge(view(row, server=ROBFIG), NOON)
    assert known.dialect_changed is None
    later = watched(schedule(text=BOTH_DAYS, last_backup=NOON - DAY), dialect=known.changes.observed.dialect)
    assert judge(view(later, server=GO_CRON), NOON).dialect_changed is not None


@pytest.mark.parametrize("text", ["0 3 * * *", "nonsense"])
def test_a_new_version_that_changes_nothing_is_not_reported(text: str) -> None:
    row = watched(schedule(text=text), dialect="robfig")
    assert judge(view(row, server=GO_CRON), NOON).dialect_changed is None


def test_an_expression_that_the_new_version_refuses_is_reported_and_refused() -> None:
    row = watched(schedule(text="0 */24 * * *"), dialect="robfig")
    plan = decide(view(row, server=GO_CRON), NOON)
    assert [note.reason for note in plan.notes] == ["InvalidSchedule", "DialectChanged"]
    assert plan.status is not None
    assert "FailedValidation" in str(plan.status.body)
