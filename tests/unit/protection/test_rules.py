"""What a namespace asks for, what it gets, and when a Schedule has taken it over."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from foresail.plan import Key
from foresail.protection.reasons import Reason
from foresail.protection.rows import LocationRow
from foresail.protection.rules import (
    choice,
    class_problem,
    exempt_until,
    has_taken_over,
    next_run,
    schedule_problem,
)
from tests.unit.protection.rows import DAY, NOON, backup, classes, namespace, protection_class, schedule

GOLD = protection_class()
DEFAULT = protection_class("all", default=True)
EXEMPTION = {"reason": "a copy of shop", "until": "2026-12-31"}


@pytest.mark.parametrize(
    ("fields", "expected", "reason"),
    [
        ({"asked": "gold"}, "gold", None),
        ({"asked": ""}, "all", None),
        ({"asked": "glod"}, "all", Reason.UNKNOWN_CLASS),
        ({"asked": "none", **EXEMPTION}, "", None),
        ({"asked": "none", "until": "2026-12-31"}, "all", Reason.EXEMPTION_INCOMPLETE),
        ({"asked": "none", "reason": "why not"}, "all", Reason.EXEMPTION_INCOMPLETE),
        ({"asked": "none", "reason": "  ", "until": "2026-12-31"}, "all", Reason.EXEMPTION_INCOMPLETE),
        ({"asked": "none", "reason": "why", "until": "soon"}, "all", Reason.EXEMPTION_INCOMPLETE),
        ({"asked": "none", "reason": "why", "until": "2026-02-28"}, "all", Reason.EXEMPTION_EXPIRED),
        ({"asked": "gold", "is_excluded": True}, "", Reason.EXCLUDED),
        ({"asked": "", "is_excluded": True}, "", None),
        ({"asked": "", "name": "kube-system"}, "", None),
        ({"asked": "", "name": "velero"}, "", None),
        ({"asked": "gold", "name": "kube-system"}, "gold", None),
    ],
)
def test_a_namespace_gets_what_it_asks_for_or_what_it_would_get_if_it_asked_for_nothing(
    fields: dict[str, Any], expected: str, reason: Reason | None
) -> None:
    found = choice(namespace(**fields), classes(GOLD, DEFAULT, never={"velero"}), NOON)
    assert found.protection_class == expected
    assert (found.problem.reason if found.problem else None) is reason


@pytest.mark.parametrize(
    ("fields", "leaves"),
    [
        ({"asked": ""}, False),
        ({"asked": "glod"}, False),
        ({"asked": "none", "until": "2026-12-31"}, False),
        ({"asked": "none", "reason": "why", "until": "2026-02-28"}, False),
        ({"asked": "none", **EXEMPTION}, True),
        ({"asked": "gold", "is_excluded": True}, True),
    ],
)
def test_only_a_valid_exemption_and_veleros_label_take_a_namespace_out_of_every_schedule(
    fields: dict[str, Any], leaves: bool
) -> None:
    assert choice(namespace(**fields), classes(GOLD), NOON).leaves is leaves


def test_a_class_that_cannot_be_read_exists() -> None:
    found = choice(namespace(), classes(unread={"gold": "no schedule"}), NOON)
    assert found.protection_class == "gold"
    assert found.problem is None


def test_of_several_default_classes_the_first_by_name_is_it() -> None:
    assert classes(protection_class("b", default=True), DEFAULT).default == "all"


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("2026-12-31", datetime(2026, 12, 31, 23, 59, 59, tzinfo=UTC)),
        ("2026-12-31T10:00:00Z", datetime(2026, 12, 31, 10, tzinfo=UTC)),
        ("2026-12-31T10:00:00+02:00", datetime(2026, 12, 31, 8, tzinfo=UTC)),
        ("2026-12-31T10:00:00", None),
        ("2026-13-31", None),
        ("", None),
        ("for ever", None),
    ],
)
def test_an_exemption_holds_until_an_instant_or_the_end_of_a_day(text: str, expected: datetime | None) -> None:
    assert exempt_until(text) == expected


SILVER = schedule("silver-1", "shop", of="silver")
SHOP = namespace(asked="silver")


@pytest.mark.parametrize(
    ("runs", "expected"),
    [
        ((), False),
        ((backup("silver-1", NOON, "shop"),), True),
        ((backup("silver-1", NOON, "shop", phase="InProgress"),), False),
        ((backup("silver-1", NOON, "shop", phase="PartiallyFailed"),), False),
        ((backup("silver-1", NOON, "shop", phase="Failed"),), False),
        ((backup("silver-1", NOON, "shop", items=0),), False),
        ((backup("silver-1", NOON, "shop", expires=NOON),), False),
        ((backup("silver-1", NOON, "other"),), False),
        ((backup("silver-1", NOON, "shop", uids={"shop": "uid-before"}),), False),
        ((backup("silver-1", NOON, "shop", schedule_uid="uid-before"),), False),
        ((backup("silver-1", NOON, "shop", schedule_uid=""),), True),
        ((backup("silver-1", NOON - DAY, "shop", schedule_uid=""),), False),
        ((backup("silver-1", NOON - DAY, "shop"), backup("silver-1", NOON, "shop", phase="Failed")), True),
        ((backup("silver-1", NOON - DAY, "shop"), backup("silver-1", NOON, "shop", phase="InProgress")), True),
        ((backup("silver-1", NOON - DAY, "shop"), backup("silver-1", NOON, "other")), False),
    ],
    ids=[
        "none", "good", "running", "partial", "failed", "empty", "expired", "without it", "an earlier namespace",
        "an earlier schedule", "by hand", "by hand, before the schedule", "failed after good", "running after good",
        "before it left",
    ],
)  # fmt: skip
def test_a_schedule_has_taken_over_with_a_good_backup_since_it_takes_the_namespace(
    runs: tuple[Any, ...], expected: bool
) -> None:
    assert has_taken_over(SILVER, runs, SHOP, NOON + timedelta(hours=1)) is expected


HERE = (LocationRow(Key("velero", "default"), is_default=True, is_read_only=False),)
READ_ONLY = (LocationRow(Key("velero", "default"), is_default=True, is_read_only=True),)


@pytest.mark.parametrize(
    ("spec", "policies", "locations", "reason"),
    [
        ({}, (), HERE, None),
        ({"schedule": "no expression"}, (), HERE, Reason.CLASS_INVALID),
        ({"schedule": "0 0 30 2 *"}, (), HERE, Reason.CLASS_INVALID),
        ({"schedulePolicy": "nights"}, ("nights",), HERE, None),
        ({"schedulePolicy": "nights"}, (), HERE, Reason.POLICY_MISSING),
        ({}, (), (), Reason.LOCATION_UNUSABLE),
        ({"template": {"storageLocation": "far"}}, (), HERE, Reason.LOCATION_UNUSABLE),
        (
            {},
            (),
            (LocationRow(Key("velero", "default"), is_default=True, is_read_only=True),),
            Reason.LOCATION_UNUSABLE,
        ),
    ],
)
def test_what_keeps_a_class_from_running(
    spec: dict[str, Any], policies: tuple[str, ...], locations: tuple[LocationRow, ...], reason: Reason | None
) -> None:
    found = class_problem(protection_class(**spec), policies, locations)
    assert (found.reason if found else None) is reason


def test_a_paused_and_an_invalid_schedule_are_problems() -> None:
    paused, invalid = schedule_problem(schedule(paused=True)), schedule_problem(schedule(phase="FailedValidation"))
    assert paused is not None
    assert invalid is not None
    assert (paused.reason, invalid.reason) == (Reason.SCHEDULE_PAUSED, Reason.SCHEDULE_INVALID)
    assert schedule_problem(schedule()) is None


def test_the_next_run_is_counted_from_the_last_that_has_ended() -> None:
    row = schedule("gold-1", "shop", created=NOON, last_backup=NOON.replace(day=3, hour=1))
    ended = backup("gold-1", NOON.replace(day=2, hour=1), "shop")
    running = backup("gold-1", NOON.replace(day=3, hour=1), "shop", phase="InProgress")
    over = backup("gold-1", NOON.replace(day=3, hour=1), "shop")
    now = NOON.replace(day=3, hour=2)
    assert next_run(row, (ended, running), None, "UTC", now) == NOON.replace(day=3, hour=1)
    assert next_run(row, (ended, over), None, "UTC", now) == NOON.replace(day=4, hour=1)
    assert next_run(schedule(paused=True), (), None, "UTC", now) is None
