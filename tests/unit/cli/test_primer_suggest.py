"""`foresail primer suggest`: what Primers are worth, what they cost, and the manifests that it writes."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from foresail.cli.main import main
from foresail.cli.primer.preview import Prices, Suggestion, Usage, requests_text, usage
from foresail.cli.primer.suggest import (
    Event,
    Starts,
    Subject,
    first_of_each,
    manifests,
    primer_of,
    remarks,
    suggestion_table,
    suggestions,
)
from foresail.cron import Dialect, parse
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.view import Settings
from tests.unit.cli.canned import canned
from tests.unit.cli.cron_jobs import CronJob, answers
from tests.unit.primers.rows import cron_job, primer, run, shape

NOW = datetime(2026, 1, 2, 2, tzinfo=UTC)
FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
FREE = Prices()
MINUTES_10 = timedelta(minutes=10)


def known(*delays: int, primed: bool = False, **fields: Any) -> Primers:  # noqa: ANN401 - a field of the row
    controller = Primers(Settings())
    cron = cron_job(**fields)
    controller.state.cron_jobs.put(cron.key, cron)
    for number, seconds in enumerate(delays):
        fire = FIRE - timedelta(days=number)
        job, pod = run(fire, began=fire + timedelta(seconds=seconds))
        controller.state.jobs.put(job.key, job)
        controller.state.pods.put(pod.key, pod)
    if primed:
        controller.state.primers.put(primer().key, primer())
    return controller


def suggested(controller: Primers, told: Starts | None = None) -> list[Suggestion]:
    return suggestions(controller, controller.state.cron_jobs.rows(), 5, "UTC", NOW, told or {})


def suggestion(name: str = "daily", *, requests: dict[str, str] | None = None, **fields: Any) -> Suggestion:  # noqa: ANN401
    given = {"delays": (60,), "warm_up": MINUTES_10, "usage": Usage(24.0, timedelta(hours=4)), "duty": 17}
    asks = {"cpu": "2", "memory": "4Gi"} if requests is None else requests
    return Suggestion(key=Key("reports", name), requests=tuple(asks.items()), **{**given, **fields})


def test_a_suggestion_is_a_primer_with_a_warm_up_above_the_delays() -> None:
    (found,) = suggested(known(100, 110, 90))
    assert found.warm_up == timedelta(minutes=3)
    assert primer_of(found)["spec"] == {"cronJob": "daily", "warmUp": "3m"}
    assert dict(found.requests) == {"cpu": "2"}


def test_the_worth_is_the_mean_delay_times_the_fires_of_a_day() -> None:
    (found,) = suggested(known(100, 110, 90))
    assert (found.saved_per_fire, found.usage.fires_a_day, found.saved_a_day) == (100, 1.0, timedelta(seconds=100))
    hourly = suggestion(delays=(0, 60, 60, 0), usage=Usage(24.0, timedelta(hours=4)))
    assert hourly.saved_a_day == timedelta(seconds=30 * 24)


def test_the_cost_is_what_the_pods_of_a_run_request_for_as_long_as_it_is_held() -> None:
    found = suggestion(count=3)
    assert found.cpu_hours == pytest.approx(2 * 3 * 4)
    assert found.memory_gib_hours == pytest.approx(4 * 3 * 4)
    assert found.cost_a_day(Prices(0.5, 0.25)) == pytest.approx(24 * 0.5 + 48 * 0.25)
    assert found.cost_a_day(Prices(cpu_hour=0.5)) == pytest.approx(12)


def test_a_warm_up_of_minutes_once_a_day_is_held_for_these_minutes() -> None:
    (found,) = suggested(known(100))
    assert found.duty == 0
    assert found.usage.held_a_day == timedelta(minutes=3)
    assert found.cpu_hours == pytest.approx(0.1)


@pytest.mark.parametrize(
    ("schedule", "fires_a_day", "held"),
    [
        ("*/5 * * * *", 288.0, timedelta(days=1)),  # windows that overlap are held once
        ("0 * * * *", 24.0, timedelta(hours=4)),
        ("0 3 * * *", 1.0, MINUTES_10),
        ("0 3 * * 1-5", 5 / 7, MINUTES_10 * 5 / 7),  # too few in a week: a year counts
        ("0 3 1 * *", 12 / 371, MINUTES_10 * 12 / 371),
        ("@every 12h", 2.0, 2 * MINUTES_10),
        ("0 3 30 2 *", 0.0, timedelta(0)),
    ],
)
def test_fires_and_held_time_of_a_day(schedule: str, fires_a_day: float, held: timedelta) -> None:
    found = usage(parse(schedule, Dialect.ROBFIG, "UTC"), MINUTES_10, NOW)
    assert found.fires_a_day == pytest.approx(fires_a_day, rel=0.01)
    assert found.held_a_day.total_seconds() == pytest.approx(held.total_seconds(), rel=0.01)


def test_the_one_that_saves_most_comes_first() -> None:
    both = known(10)
    often = cron_job("*/30 * * * *", key=Key("reports", "often"), uid="44444444-dddd")
    both.state.cron_jobs.put(often.key, often)
    job, pod = run(FIRE, began=FIRE + timedelta(seconds=8))
    mine = msgspec.structs.replace(job, key=Key("reports", "often-1"), uid="often-1", cron_job_uid=often.uid)
    both.state.jobs.put(mine.key, mine)
    own = msgspec.structs.replace(pod, key=Key("reports", "often-1-x"), job_uid=mine.uid)
    both.state.pods.put(own.key, own)
    assert [each.key.name for each in suggested(both)] == ["often", "daily"]


@pytest.mark.parametrize("others", [known(1, 2), known(), known(100, primed=True)])
def test_what_does_not_wait_or_is_primed_is_left_out(others: Primers) -> None:
    assert suggested(others) == []


def test_requests_that_admission_added_count() -> None:
    controller = known(100, shape=shape(resources={}))
    (found,) = suggested(controller)
    assert dict(found.requests) == {"cpu": "2"}, "as the last pod had them after admission"


def test_events_report_how_long_a_run_waited_whose_pod_is_deleted() -> None:
    gone = known()
    job, _ = run(FIRE)
    gone.state.jobs.put(job.key, job)
    told = first_of_each(
        Event(Subject(job.key.namespace, f"{job.key.name}-{tail}"), event_time=FIRE + timedelta(seconds=seconds))
        for tail, seconds in (("x7k2p", 90), ("0-x7k2p", 65))  # the second is of a Job that counts its pods
    )
    (found,) = suggested(gone, told)
    assert found.delays == (65,)
    assert suggested(known(1), told) == [], "what a pod reports itself counts before Events"


def test_the_table_shows_worth_and_cost_in_80_columns() -> None:
    found = [suggestion("a-name-of-20-letters"), suggestion("b", delays=(3600,))]
    shown = suggestion_table(found, FREE, wide=False, namespaced=True).splitlines()
    assert shown[0].split() == ["CRONJOB", "SAVES", "A", "DAY", "WARM-UP", "CPU-H", "GIB-H"]
    assert shown[1].split() == ["a-name-of-20-letters", "60s", "x", "24", "=", "24m", "10m", "8", "16"]
    everywhere = suggestion_table(found, FREE, wide=False, namespaced=False).splitlines()
    assert everywhere[1].startswith("reports ")
    assert max(map(len, (*shown, *everywhere))) <= 80
    priced = suggestion_table(found, Prices(0.04), wide=False, namespaced=True).splitlines()
    assert priced[0].endswith("COST")
    assert priced[1].endswith("0.32")
    wide = suggestion_table(found, FREE, wide=True, namespaced=True).splitlines()
    assert wide[1].endswith("cpu 2, memory 4Gi")


def test_one_that_requests_nothing_has_no_cost_and_no_manifest_but_advice() -> None:
    found = [suggestion(requests={})]
    assert suggestion_table(found, FREE, wide=False, namespaced=True).split()[-2:] == ["-", "-"]
    assert manifests(found, FREE, "yaml", allow_standing=True) == ""
    (said,) = remarks(found, 5, allow_standing=True)
    assert "request nothing" in said


def test_without_a_suggestion_one_reads_which_delay_counts() -> None:
    assert remarks([], 5, allow_standing=True) == [
        "no CronJob without a Primer waits 5 s or longer, according to its Jobs, pods and Events"
    ]


@pytest.mark.parametrize("form", ["yaml", "json", "name"])
def test_a_standing_reservation_is_left_out_unless_it_is_allowed(form: str) -> None:
    found = [suggestion("calm"), suggestion("standing", duty=80)]
    refused = manifests(found, FREE, form, allow_standing=False)
    assert "calm" in refused
    assert "standing" not in refused.lower()
    (said,) = remarks(found, 5, allow_standing=False)
    assert "held for 80 % of the time" in said
    assert "--allow-standing" in said
    allowed = manifests(found, FREE, form, allow_standing=True)
    assert "standing" in allowed
    (said,) = remarks(found, 5, allow_standing=True)
    assert "sets spec.allowStanding" in said


def test_yaml_documents_have_their_worth_and_cost_in_comments() -> None:
    text = manifests([suggestion("calm"), suggestion("standing", duty=80)], Prices(0.04), "yaml", allow_standing=True)
    calm, standing = text.split("---")
    assert calm.splitlines()[0] == "# A day: saves 60s x 24 = 24m; holds 8 CPU-hours, 16 GiB-hours, cost 0.32"
    assert "# allowStanding: capacity is held for 80 % of the time" in standing
    assert [each["spec"].get("allowStanding") for each in yaml.safe_load_all(text)] == [None, True]


def test_requests_are_shown_in_units() -> None:
    assert requests_text((("cpu", "250m"), ("memory", "3221225472"))) == "cpu 250m, memory 3Gi"
    assert requests_text((("memory", "1500"), ("nvidia.com/gpu", "1"))) == "memory 1500, nvidia.com/gpu 1"


def test_the_command_writes_primers_for_the_selected_cron_jobs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with canned(tmp_path, answers(CronJob("late", waited=90), CronJob("later", waited=90))) as server:
        where = [f"--kubeconfig={server.kubeconfig}", "-n", "reports"]
        assert main(["primer", "suggest", *where, "-o", "json"]) == 0
        assert [each["metadata"]["name"] for each in json.loads(capsys.readouterr().out)["items"]] == ["late", "later"]
        assert main(["primer", "suggest", *where, "-l", "tier=later", "-o", "name"]) == 0
        assert capsys.readouterr().out == "primer.foresail.dev/later\n"
        assert main(["primer", "suggest", *where, "-o", "jsonpath={.items[*].spec.warmUp}"]) == 0
        assert capsys.readouterr().out.split() == ["3m", "3m"]
        assert main(["primer", "suggest", *where, "--price-cpu-hour=0.04"]) == 0
        shown = capsys.readouterr().out.splitlines()
        assert shown[1].split() == ["late", "90s", "x", "24", "=", "36m", "3m", "2.4", "0", "0.096"]
        assert server.writes == []


@pytest.mark.parametrize("price", ["much", "-1", "nan", "inf"])
def test_a_price_is_a_number(price: str, capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        main(["primer", "suggest", f"--price-cpu-hour={price}"])
    assert "is not a price" in capsys.readouterr().err
