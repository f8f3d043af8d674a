"""The seed's scenarios and known issues as real CronJobs and Primers: what a real API server makes of them."""

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
from tests.primer_scenarios import KNOWN_ISSUES, SIX_FIELDS, VALID, year

HOME = "scenarios"
CRON_JOBS = f"/apis/batch/v1/namespaces/{HOME}/cronjobs"
NAMES = [f"scenario-{number}" for number in range(len(VALID))]


def said(cluster: Cluster) -> dict[str, list[tuple[str, str]]]:
    """Return what the primer CronJobs of each Primer say, as the API server keeps it."""
    found: dict[str, list[tuple[str, str]]] = {}
    for item in cluster.listed(f"{CRON_JOBS}?labelSelector=foresail.dev%2Fprimer"):
        spec = item["spec"]
        found.setdefault(item["metadata"]["ownerReferences"][0]["name"], []).append(
            (spec["schedule"], spec["timeZone"])
        )
    return found


def test_a_year_of_the_primer_cronjobs_of_every_scenario_is_the_original_minus_the_warm_up(
    cluster: Cluster, tmp_path: Path, eventually: Eventually, figure: Figure
) -> None:
    assert {each["cronjob"] for each in VALID} >= set(KNOWN_ISSUES)
    primers.install(cluster)
    cluster.apply({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": HOME}})
    of = dict(zip(NAMES, VALID, strict=True))
    with operators.running(cluster, tmp_path, *primers.FLAGS):
        start = int(now().timestamp())
        cluster.apply(*[primers.cron_job(name, each["cronjob"], "none", HOME) for name, each in of.items()])
        cluster.apply(
            *[primers.primer(name, f"{each['warmup']}m", HOME, method="CronJob") for name, each in of.items()]
        )
        eventually(lambda: all(primers.primed(cluster, name).get("shifted") for name in NAMES), 120)
        for name in NAMES:
            status = primers.shown(cluster, name)
            assert {each["type"]: each["status"] for each in status["conditions"] if each["type"] != "Warming"} == {
                "Ready": "True",
                "Exact": "True",
            }, status
    kept, oracle, fires = said(cluster), Oracle(), 0
    cluster.kubectl("delete", "namespace", HOME, "--wait=false")
    assert sorted(kept) == sorted(NAMES)
    for name, scenario in of.items():
        assert len(kept[name]) <= 2, kept[name]
        wanted, fired = year(oracle, scenario, kept[name], start)
        assert wanted, scenario
        assert fired == wanted, (scenario, kept[name])
        fires += len(fired)
    made = sum(map(len, kept.values()))
    figure(f"primers: {len(VALID)} scenarios are {made} primer CronJobs, and {fires} fires of a year by Go are right")


def test_a_schedule_of_six_fields_is_refused_and_the_preview_names_the_field(
    cluster: Cluster, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    six = primers.cron_job("six", SIX_FIELDS, "none")
    answer = request(
        "POST", f"{cluster.server}/apis/batch/v1/namespaces/default/cronjobs", cluster.site.admin_trust, six
    )
    assert answer.code == HTTPStatus.UNPROCESSABLE_ENTITY, answer.text
    assert "spec.schedule" in answer.json()["message"]
    manifest = tmp_path / "six.json"
    manifest.write_text(json.dumps(six))
    assert main(["primer", "preview", f"--file={manifest}", "--warm-up=5m"]) != 0
    problem = capsys.readouterr().err
    assert "CronJob six: spec.schedule: there are 6 fields instead of five" in problem
