"""Self-service knows the next slots of Schedules that another process runs, and writes nothing to them."""

from typing import TYPE_CHECKING, cast

import pytest

from foresail.api import velero
from foresail.kube.execute import Outcome, Result
from foresail.operator.main import controllers
from foresail.operator.settings import Settings as OperatorSettings
from foresail.plan import Create
from foresail.proof.facts_watch import PublishedFacts
from foresail.schedules.controller import Schedules
from foresail.schedules.decide import decide
from foresail.schedules.forecast import Forecast
from foresail.schedules.reasons import Reason
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.schedules.velero_server import VeleroView
from foresail.selfservice.controller import SelfService
from tests.unit.schedules.rows import HOUR, NOON, backup, schedule, view

if TYPE_CHECKING:
    from foresail.kube.client import Client

HOOKS = b'{"hooks": {"resources": [{"name": "db", "pre": [{"exec": {"command": ["dump"]}}]}]}}'


def test_a_forecast_knows_the_next_slot_and_writes_nothing() -> None:
    due = schedule(last_backup=NOON - 2 * HOUR)
    assert decide(view(due), NOON).writes, "the operator of Schedules has something to write"
    forecast = Forecast("velero", Settings())
    forecast.schedules.put(due.key, due)
    plan = forecast.decide(view(due), NOON)
    assert (plan.writes, plan.notes) == ((), ())
    forecast.settled(due.key, view(due), plan, Result(Outcome.DONE), NOON)
    assert plan.wake_at is not None
    assert plan.wake_at > NOON, "it does not spin while the other process is late"
    ran = view(due, backup(slot=NOON))
    forecast.settled(due.key, ran, forecast.decide(ran, NOON), Result(Outcome.DONE), NOON)
    assert forecast.next_slot(NOON) == NOON + HOUR


def test_a_forecast_asks_for_veleros_version_itself() -> None:
    plan = Forecast("velero", Settings()).decide(VeleroView("velero", (), None, frozenset()), NOON)
    assert [type(each) for each in plan.actions] == [Create]
    assert plan.actions[0].kind == velero.STATUS_REQUEST


def test_a_forecast_watches_nothing_that_only_retention_needs() -> None:
    kinds = {each.spec.kind for each in Schedules("velero", Settings()).informers}
    followed = {each.spec.kind for each in Forecast("velero", Settings()).informers}
    assert kinds - followed == {velero.DELETE_REQUEST, velero.RESTORE}


@pytest.mark.parametrize("heeds", [True, False])
def test_self_service_follows_the_schedules_of_another_process_if_it_is_told_to(*, heeds: bool) -> None:
    settings = OperatorSettings("one", runs_schedules=False, runs_self_service=True, heeds_schedules=heeds)
    found = controllers(settings, cast("Client", None))
    assert [type(each) for each in found] == [*([Forecast] if heeds else []), SelfService, PublishedFacts]
    both = OperatorSettings("one", runs_schedules=True, runs_self_service=True, heeds_schedules=heeds)
    assert [type(each) for each in controllers(both, cast("Client", None))] == [Schedules, SelfService, PublishedFacts]


@pytest.mark.parametrize(
    ("listed", "blocks"), [(None, False), (("*",), False), (("daily",), False), (("other",), True), ((), True)]
)
def test_a_schedule_with_hooks_waits_until_the_chart_lists_it(listed: tuple[str, ...] | None, *, blocks: bool) -> None:
    row = schedule(last_backup=NOON - 2 * HOUR, template=HOOKS)
    found = judge(view(row, settings=Settings(with_hooks=listed)), NOON)
    reason = found.blocked_by.reason if found.blocked_by else None
    assert reason == (Reason.HOOKS_NOT_ALLOWED if blocks else None)


def test_a_schedule_without_hooks_needs_no_list() -> None:
    row = schedule(last_backup=NOON - 2 * HOUR, template=b'{"hooks": {}}')
    assert judge(view(row, settings=Settings(with_hooks=())), NOON).fires is not None
