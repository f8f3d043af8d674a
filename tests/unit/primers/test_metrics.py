"""What is counted of Primers."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise

import pytest

from foresail.api.primer import Primed, PrimerStatus, StartDelay, Warming
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.observe import PrimerRow
from tests.unit.primers.rows import placeholder, primer

FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)


def figures(metrics: PrimerMetrics) -> dict[str, float]:
    found = [sample for family in metrics.collect() for sample in family.samples]
    return {f"{each.name}{sorted(each.labels.items())}": each.value for each in found}


def with_status(*delays: StartDelay, warming: Warming | None = None) -> PrimerRow:
    one = Primed(name="daily", uid="11111111-aaaa", warming=warming, start_delays=delays)
    return primer(status=PrimerStatus(cron_jobs=(one,)))


def change(old: PrimerRow | None, new: PrimerRow) -> Change[PrimerRow]:
    return Change(new.key, old, new, initial=old is None)


def test_a_start_delay_counts_once_when_it_comes_to_stand_in_the_status() -> None:
    metrics = PrimerMetrics()
    first, second = StartDelay(FIRE, 41, warm=False), StartDelay(FIRE + timedelta(days=1), 1, warm=True)
    metrics.changed(change(None, with_status(first)))
    metrics.changed(change(with_status(first), with_status(first, second)))
    metrics.changed(change(with_status(first, second), with_status(first, second)))
    found = figures(metrics)
    assert found["foresail_primer_start_delay_seconds_count[('warm', 'true')]"] == 1
    assert found["foresail_primer_start_delay_seconds_sum[('warm', 'true')]"] == 1
    assert "foresail_primer_start_delay_seconds_count[('warm', 'false')]" not in found, "counted in another life"


def test_a_loss_counts_by_its_cause_once_for_each_attempt() -> None:
    metrics = PrimerMetrics()
    held = Warming(fire=FIRE, made=1)
    lost = Warming(fire=FIRE, made=0, attempt=2, lost="Preempted")
    again = Warming(fire=FIRE, made=0, attempt=3, lost="Preempted")
    rows = [with_status(warming=each) for each in (held, lost, lost, again)]
    for old, new in pairwise(rows):
        metrics.changed(change(old, new))
    assert figures(metrics)["foresail_primer_lost_total[('cause', 'Preempted')]"] == 2


HELD = "foresail_primer_held_seconds_total[('namespace', 'reports'), ('resource', 'cpu')]"


def hold(metrics: PrimerMetrics) -> None:
    row = placeholder(FIRE)
    metrics.held(Change(row.key, None, row, initial=False))
    metrics.held(Change(row.key, row, None, initial=False))


def test_what_a_placeholder_held_is_added_up_when_it_is_gone() -> None:
    metrics = PrimerMetrics()
    metrics.changed(change(None, primer()))
    assert figures(metrics) == {}
    hold(metrics)
    assert figures(metrics)[HELD] > 0


def test_what_was_held_can_be_scraped_for_a_while_after_the_last_primer(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    metrics, owner = PrimerMetrics(), primer()
    metrics.changed(change(None, owner))
    hold(metrics)
    before = figures(metrics)[HELD]
    metrics.changed(Change(owner.key, owner, None, initial=False))
    instant += timedelta(minutes=14)
    assert figures(metrics)[HELD] == before
    instant += timedelta(minutes=1)
    assert HELD not in figures(metrics)
    elsewhere = primer(key=Key("elsewhere", "warm"))
    metrics.changed(change(None, elsewhere))
    instant = FIRE
    assert HELD not in figures(metrics), "forgotten, not only hidden"


def test_a_primer_that_comes_back_goes_on_with_the_same_figure() -> None:
    metrics, owner = PrimerMetrics(), primer()
    metrics.changed(change(None, owner))
    hold(metrics)
    before = figures(metrics)[HELD]
    metrics.changed(Change(owner.key, owner, None, initial=False))
    metrics.changed(change(None, owner))
    hold(metrics)
    assert figures(metrics)[HELD] > 1.5 * before
