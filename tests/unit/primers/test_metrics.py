"""What is counted of Primers."""

from datetime import UTC, datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec
import pytest

from foresail.api.batch import CRON_JOB
from foresail.api.marks import WARM_UP_STATUS
from foresail.api.pods import POD
from foresail.api.primer import PRIMER, Primed, PrimerStatus, StartDelay, Warming
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import Cause, Failure
from foresail.kube.reflector import Change
from foresail.plan import Create, Key, Plan
from foresail.primers.annotated import annotated_primer, record
from foresail.primers.controller import Primers
from foresail.primers.decide import decide
from foresail.primers.metrics import MOST_RESOURCES, PrimerMetrics
from foresail.primers.rows import Annotated, CronJobRow, PrimerRow, cold_fires
from foresail.primers.view import Target
from tests.unit.primers.rows import SETTINGS, cron_job, placeholder, primer, primer_view, run

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
    metrics.learn_primer(change(None, with_status(first)))
    metrics.learn_primer(change(with_status(first), with_status(first, second)))
    metrics.learn_primer(change(with_status(first, second), with_status(first, second)))
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
        metrics.learn_primer(change(old, new))
    assert figures(metrics)["foresail_primer_lost_total[('cause', 'Preempted')]"] == 2


HELD = "foresail_primer_held_seconds_total[('namespace', 'reports'), ('resource', 'cpu')]"


def hold(metrics: PrimerMetrics) -> None:
    row = placeholder(FIRE)
    metrics.learn_placeholder(Change(row.key, None, row, initial=False), is_owned=True)
    metrics.learn_placeholder(Change(row.key, row, None, initial=False), is_owned=True)


def test_what_a_placeholder_held_is_added_up_when_it_is_gone() -> None:
    metrics = PrimerMetrics()
    metrics.learn_primer(change(None, primer()))
    assert HELD not in figures(metrics)
    hold(metrics)
    assert figures(metrics)[HELD] > 0


def test_what_is_held_now_counts_already(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    metrics, row = PrimerMetrics(), placeholder(FIRE, scheduled=FIRE)
    metrics.learn_placeholder(Change(row.key, None, row, initial=False), is_owned=True)
    instant += timedelta(minutes=1)
    assert figures(metrics)[HELD] == 120, "two processors for a minute"
    ended = placeholder(FIRE, scheduled=FIRE, phase="Failed")
    metrics.learn_placeholder(Change(row.key, row, ended, initial=False), is_owned=True)
    instant += timedelta(minutes=1)
    metrics.learn_placeholder(Change(row.key, ended, None, initial=False), is_owned=True)
    assert figures(metrics)[HELD] == 120


def test_what_the_last_process_has_counted_is_not_counted_again(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    metrics, row = PrimerMetrics(), placeholder(FIRE, scheduled=FIRE - timedelta(hours=5))
    metrics.learn_placeholder(Change(row.key, None, row, initial=True), is_owned=True)
    instant += timedelta(seconds=30)
    assert figures(metrics)[HELD] == 60


def test_what_was_held_can_be_scraped_for_a_while_after_the_last_primer(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    metrics, owner = PrimerMetrics(), primer()
    metrics.learn_primer(change(None, owner))
    hold(metrics)
    before = figures(metrics)[HELD]
    metrics.learn_primer(Change(owner.key, owner, None, initial=False))
    instant += timedelta(minutes=14)
    assert figures(metrics)[HELD] == before
    instant += timedelta(minutes=1)
    assert HELD not in figures(metrics)
    elsewhere = primer(key=Key("elsewhere", "warm"))
    metrics.learn_primer(change(None, elsewhere))
    instant = FIRE
    assert HELD not in figures(metrics), "forgotten, not only hidden"


def test_a_primer_that_comes_back_goes_on_with_the_same_figure() -> None:
    metrics, owner = PrimerMetrics(), primer()
    metrics.learn_primer(change(None, owner))
    hold(metrics)
    before = figures(metrics)[HELD]
    metrics.learn_primer(Change(owner.key, owner, None, initial=False))
    metrics.learn_primer(change(None, owner))
    hold(metrics)
    assert figures(metrics)[HELD] > 1.5 * before


def series(metrics: PrimerMetrics, name: str) -> list[str]:
    return [each for each in figures(metrics) if each.startswith(name)]


def test_a_pod_that_only_has_the_label_makes_no_series_and_is_counted_once_its_owner_is_seen() -> None:
    primers, row, owner = Primers(SETTINGS), placeholder(FIRE), primer()
    elsewhere = primer(key=Key("elsewhere", "warm"))
    informers = {each.spec.kind: each for each in primers.informers}  # of pods, the placeholders
    primers.state.placeholders.put(row.key, row)
    informers[POD].learn(Change(row.key, None, row, initial=True))
    informers[PRIMER].learn(Change(elsewhere.key, None, elsewhere, initial=True))
    assert not series(primers.metrics, "foresail_primer_held_seconds")
    informers[PRIMER].learn(Change(owner.key, None, owner, initial=True))
    assert series(primers.metrics, "foresail_primer_held_seconds") == [HELD]


def test_thousands_of_resources_of_one_namespace_make_few_series(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    none = tuple((f"example.com/none-{each}", "0") for each in range(2_000))
    some = tuple((f"example.com/some-{each}", "1") for each in range(2_000))
    metrics = PrimerMetrics()
    for number, requests in enumerate((none, some, none, some)):
        row = placeholder(FIRE, key=Key("reports", f"pod-{number}"), scheduled=FIRE, requests=requests)
        metrics.learn_placeholder(Change(row.key, None, row, initial=False), is_owned=True)
        if number > 1:
            metrics.learn_placeholder(Change(row.key, row, None, initial=False), is_owned=True)
    instant += timedelta(seconds=10)
    assert len(series(metrics, "foresail_primer_held_seconds")) == MOST_RESOURCES + 1
    assert figures(metrics)[HELD.replace("cpu", "other")] == 10 * (2_000 - MOST_RESOURCES)


REFUSED = "foresail_primer_refused_total[('cause', 'Forbidden'), ('namespace', 'reports')]"


def test_what_the_api_server_refuses_is_counted_by_namespace_and_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    instant = FIRE
    monkeypatch.setattr("foresail.primers.metrics.now", lambda: instant)
    primers, owner = Primers(SETTINGS), primer()
    metrics = primers.metrics
    metrics.learn_primer(change(None, owner))
    make = Create(POD, Key("reports", "daily-warm"), {}, {})
    answers = Failure(Cause.FORBIDDEN, "no"), Failure(Cause.UNREACHABLE, "no")
    for failure in answers:
        primers.settled(owner.key, primer_view(), Plan(), Result(Outcome.FAILED, make, failure), FIRE)
    assert figures(metrics)[REFUSED] == 1, "one that could not be reached has refused nothing"
    metrics.learn_primer(Change(owner.key, owner, None, initial=False))
    instant += timedelta(minutes=14)
    assert REFUSED in figures(metrics)
    instant += timedelta(minutes=1)
    assert REFUSED not in figures(metrics)


STATE = "foresail_primer_cronjobs[('namespace', 'reports'), ('reason', '{}')]"


def test_cronjobs_without_capacity_are_counted_by_reason() -> None:
    metrics, good = PrimerMetrics(), with_status()
    short = primer(status=PrimerStatus(cron_jobs=(Primed(name="daily", uid="1", reason="QuotaTooSmall"),)))
    metrics.learn_primer(change(None, good))
    assert figures(metrics)[STATE.format("Primed")] == 1
    metrics.learn_primer(change(good, short))
    found = figures(metrics)
    assert (found.get(STATE.format("Primed")), found[STATE.format("QuotaTooSmall")]) == (None, 1)
    metrics.learn_primer(Change(short.key, short, None, initial=False))
    assert STATE.format("QuotaTooSmall") not in figures(metrics)


COLD = "foresail_primer_cold_fires[('namespace', 'reports'), ('primer', 'warm')]"
WARM_FIRE = StartDelay(FIRE, 1, warm=True)


def cold_at(days: int, seconds: int = 41) -> StartDelay:
    return StartDelay(FIRE + timedelta(days=days), seconds, warm=False)


@pytest.mark.parametrize(
    ("delays", "cold"),
    [
        ((WARM_FIRE, cold_at(1), cold_at(2)), 2),
        ((cold_at(1), cold_at(2), StartDelay(FIRE + timedelta(days=3), 1, warm=True)), None),
        ((cold_at(1), cold_at(2, seconds=9)), None),
        ((cold_at(-9), cold_at(-8), cold_at(1)), 1),
    ],
    ids=["since a warm one", "warm again", "waited for no node", "before the Primer"],
)
def test_fires_in_a_row_that_started_cold_are_counted(delays: tuple[StartDelay, ...], cold: int | None) -> None:
    metrics = PrimerMetrics()
    metrics.learn_primer(change(None, with_status(*delays)))
    assert figures(metrics).get(COLD) == cold


@pytest.mark.parametrize("reason", ["Suspended", "PrimedByAnother"])
def test_a_primer_that_is_to_warm_nothing_is_not_cold(reason: str) -> None:
    metrics = PrimerMetrics()
    one = Primed(name="daily", uid="1", reason=reason, start_delays=(cold_at(1),))
    metrics.learn_primer(change(None, primer(status=PrimerStatus(cron_jobs=(one,)))))
    assert COLD not in figures(metrics)


def test_fires_before_its_annotation_do_not_make_a_cronjob_cold() -> None:
    settings = msgspec.structs.replace(SETTINGS, annotated_cron_jobs=True)
    fires = [FIRE + timedelta(days=number) for number in range(5)]
    asks = Annotated("10m", "", "", "7")

    def recorded(cron: CronJobRow, at: datetime) -> CronJobRow:
        """Return the CronJob with the record that is written then, after a cold run at each fire so far."""
        runs = [run(each, began=each + timedelta(minutes=1), node="node") for each in fires if each <= at]
        target = Target(cron, tuple(job for job, _ in runs), tuple(pod for _, pod in runs))
        plan = decide(
            primer_view(target, primer=annotated_primer(cron, settings), annotated=cron, settings=settings), at
        )
        assert plan.status is not None
        body: Any = plan.status.body
        text = body["metadata"]["annotations"][WARM_UP_STATUS]
        return cron_job(annotated=msgspec.structs.replace(asks, record=text))

    cron = recorded(cron_job(annotated=asks), fires[2] + timedelta(hours=1))
    assert cold_fires(annotated_primer(cron, settings)) == 0
    cron = recorded(cron, fires[3] + timedelta(hours=1))
    assert cold_fires(annotated_primer(cron, settings)) == 1
    cron = recorded(cron, fires[4] + timedelta(hours=1))
    assert cold_fires(annotated_primer(cron, settings)) == 2


def test_of_very_many_cold_primers_the_coldest_have_series(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("foresail.primers.metrics.MOST_COLD", 2)
    metrics = PrimerMetrics()
    for name, days in (("a", 1), ("warm", 3), ("c", 2)):
        row = with_status(*(cold_at(each) for each in range(1, days + 1)))
        metrics.learn_primer(change(None, msgspec.structs.replace(row, key=Key("reports", name))))
    found = figures(metrics)
    assert [each for each in found if each.startswith("foresail_primer_cold_fires")] == [
        COLD,
        COLD.replace("warm", "c"),
    ]
    assert found["foresail_primer_cold_omitted[]"] == 1


def test_one_namespace_with_very_many_cold_primers_leaves_series_to_the_others() -> None:
    metrics = PrimerMetrics()
    forged = [Key("evil", f"daily-{each}") for each in range(300)]
    for key, days in (*((each, 9) for each in forged), (Key("reports", "warm"), 1)):
        row = with_status(*(cold_at(each) for each in range(1, days + 1)))
        metrics.learn_primer(change(None, msgspec.structs.replace(row, key=key)))
    found = figures(metrics)
    assert found[COLD] == 1
    assert len(series(metrics, "foresail_primer_cold_fires")) == 11
    assert found["foresail_primer_cold_omitted[]"] == 290


def test_a_cronjob_with_annotations_counts_like_one_with_a_primer() -> None:
    primers = Primers(msgspec.structs.replace(SETTINGS, annotated_cron_jobs=True))
    (learn,) = [each.learn for each in primers.informers if each.spec.kind == CRON_JOB]
    delays = (cold_at(1), cold_at(2))

    def row(reason: str | None) -> CronJobRow:
        said = record(Primed(name="daily", uid="11111111-aaaa", reason=reason, start_delays=delays))
        return cron_job(annotated=Annotated("10m", "", said, "7"))

    first, forged = row(None), row("whatever its owner wrote")
    learn(Change(first.key, None, first, initial=True))
    found = figures(primers.metrics)
    assert found[STATE.format("Primed")] == 1
    assert found[COLD.replace("warm", "cronjob/daily")] == 2
    learn(Change(first.key, first, forged, initial=False))
    assert figures(primers.metrics)[STATE.format("Unknown")] == 1
    learn(Change(first.key, forged, cron_job(), initial=False))
    assert not [each for each in figures(primers.metrics) if "daily" in each or "Unknown" in each]
