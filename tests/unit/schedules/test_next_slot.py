"""The next slot of any Schedule, as self-service asks for it, and what is answered before all have been looked at."""

from datetime import timedelta

import pytest

from foresail.kube.execute import Outcome, Result
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import ScheduleRow
from foresail.schedules.settings import Settings
from tests.unit.schedules.rows import HOUR, NOON, schedule, view

DAILY, WEEKLY = Key("velero", "daily"), Key("velero", "weekly")


def put(store: Store[ScheduleRow], *rows: ScheduleRow) -> None:
    for row in rows:
        store.put(row.key, row)


def look_at(controller: Schedules, row: ScheduleRow) -> None:
    sight = view(row)
    controller.settled(row.key, sight, controller.decide(sight, NOON), Result(Outcome.DONE), NOON)


def test_before_every_schedule_is_reconciled_a_slot_may_be_near() -> None:
    controller = Schedules("velero", Settings())
    assert controller.next_slot(NOON) is None, "there is no Schedule"
    first, second = schedule(), schedule(key=WEEKLY)
    put(controller.schedules, first, second)
    near = controller.next_slot(NOON)
    assert near is not None
    assert timedelta() < near - NOON < timedelta(seconds=10)
    look_at(controller, first)
    assert controller.next_slot(NOON) == near
    look_at(controller, second)
    assert controller.next_slot(NOON) == NOON + HOUR


@pytest.mark.parametrize("row", [schedule(text="nonsense"), schedule(paused=True)], ids=["invalid", "paused"])
def test_a_schedule_that_will_not_run_blocks_no_tenant(row: ScheduleRow) -> None:
    controller = Schedules("velero", Settings())
    put(controller.schedules, row)
    if not row.paused:
        look_at(controller, row)
    assert controller.next_slot(NOON) is None
