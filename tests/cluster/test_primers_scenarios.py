"""The scenarios as real CronJobs and Primers: what a real API server makes of them."""

import json
from http import HTTPStatus
from pathlib import Path

import pytest

from foresail.cli.main import main
from foresail.kube.clock import now
from testbed import Cluster
from testbed.api import request
from testbed.oracle import Oracle
from tests.cluster import operators, primers
from tests.cluster.schedules import Eventually, Figure
from tests.primer_scenarios import ALLOWED, REJECTED, Scenario, year

HOME = "scenarios"
CRON_JOBS = f"/apis/batch/v1/namespaces/{HOME}/cronjobs"
UTC = {"Etc/UTC": "UTC"}  # the zone of the testbed's kube-controller-manager has its longer name
NAMES = [f"scenario-{number}" for number in range(len(ALLOWED))]


def schedules(cluster: Cluster) -> dict[str, list[tuple[str, str]]]:
    """Return the schedules of the primer CronJobs of each Primer, as the API server has them."""
    found: dict[str, list[tuple[str, str]]] = {}
    for item in cluster.listed(f"{CRON_JOBS}?labelSelector=foresail.dev%2Fprimer"):
        spec = item["spec"]
        found.setdefault(item["metadata"]["ownerReferences"][0]["name"], []).append(
            (spec["schedule"], spec["timeZone"])
        )
    return found


@pytest.mark.full
def test_a_year_of_the_primer_cronjobs_of_every_scenario_is_the_original_minus_the_warm_up(
    cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    primers.install(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    of = dict(zip(NAMES, ALLOWED, strict=True))
    with operators.running(cluster, tmp_path, *primers.FLAGS):
        start = int(now().timestamp())
        cluster.apply(*[primers.cron_job(name, each.cronjob, "none", HOME) for name, each in of.items()])
        cluster.apply(*[primers.primer(name, f"{each.warmup}m", HOME, method="CronJob") for name, each in of.items()])
        eventually(lambda: all(primers.primed(cluster, name).get("shifted") for name in NAMES), 120)
        for name in NAMES:
            status = primers.shown(cluster, name)
            assert {each["type"]: each["status"] for each in status["conditions"] if each["type"] != "Warming"} == {
                "Ready": "True",
                "Exact": "True",
            }, status
    kept, oracle, fires = schedules(cluster), Oracle(), 0
    cluster.kubectl("delete", "namespace", HOME, "--wait=false")
    assert sorted(kept) == sorted(NAMES)
    for name, scenario in of.items():
        assert sorted((text, UTC.get(zone, zone)) for text, zone in kept[name]) == sorted(scenario.schedules), scenario
        wanted, fired = year(oracle, scenario, kept[name], start)
        assert wanted, scenario
        assert fired == wanted, (scenario, kept[name])
        fires += len(fired)
    made = sum(map(len, kept.values()))
    figure(f"primers: {len(ALLOWED)} scenarios are {made} primer CronJobs, and {fires} fires of a year by Go are right")


@pytest.mark.parametrize("scenario", REJECTED, ids=lambda each: each.name)
def test_a_rejected_scenario_is_rejected_by_the_api_server_and_the_preview_names_the_field(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str], scenario: Scenario
) -> None:
    wrong = primers.cron_job("wrong", scenario.cronjob, "none")
    answer = request(
        "POST", f"{cluster.server}/apis/batch/v1/namespaces/default/cronjobs", cluster.site.admin_trust, wrong
    )
    assert answer.code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text
    assert "spec.schedule" in answer.json()["message"]
    manifest = tmp_path / "wrong.json"
    manifest.write_text(json.dumps(wrong))
    assert main(["primer", "preview", f"--file={manifest}", f"--warm-up={scenario.warmup}m"]) != 0
    assert "CronJob wrong: spec.schedule: " in capsys.readouterr().err
