"""`foresail primer`: what is shown, without a cluster."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import msgspec
import pytest
import yaml

from foresail.api.pods import PAUSE_IMAGE
from foresail.api.primer import PRIMER as KIND
from foresail.cli.access.cluster import refusal
from foresail.cli.install.install import install_options
from foresail.cli.main import main, parser
from foresail.cli.primer.change import body_of
from foresail.cli.primer.explain import Image, explanation_of, pulled_ahead, refusal_of, sizes_of
from foresail.cli.primer.get import described
from foresail.cli.primer.preview import previewed
from foresail.cli.primer.settings import primer_settings
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key
from foresail.primers.view import Settings, Target
from tests.primer_scenarios import ALLOWED, Scenario
from tests.unit.primers.rows import cron_job, primer_view, shape

CHART = Path(__file__).parents[3] / "charts" / "foresail"
NOW = datetime(2026, 1, 2, 2, tzinfo=UTC)
STATUS: dict[str, Any] = {
    "warmUp": "10m",
    "matched": 1,
    "nextFire": "2026-01-02T03:00:00Z",
    "nextWarmUp": "2026-01-02T02:50:00Z",
    "conditions": [{"type": "Ready", "status": "True", "reason": "Ready", "message": "One CronJob is primed."}],
    "cronJobs": [
        {
            "name": "daily",
            "dutyCyclePercent": 1,
            "nextFire": "2026-01-02T03:00:00Z",
            "nextWarmUp": "2026-01-02T02:50:00Z",
            "warming": {"fire": "2026-01-01T03:00:00Z", "made": 1, "nodes": ["node-1"], "provisioned": 38},
            "startDelays": [
                {"fire": "2025-12-31T03:00:00Z", "seconds": 41, "warm": False},
                {"fire": "2026-01-01T03:00:00Z", "seconds": 1, "warm": True},
            ],
        }
    ],
}
PRIMER = {"metadata": {"name": "warm", "namespace": "reports"}, "spec": {"warmUp": "10m"}, "status": STATUS}


def manifest(folder: Path, schedule: str) -> str:
    container = {"name": "work", "image": "work:1", "resources": {"requests": {"cpu": "2"}}}
    job = {"spec": {"template": {"spec": {"containers": [container]}}}}
    body = {"kind": "CronJob", "metadata": {"name": "daily"}, "spec": {"schedule": schedule, "jobTemplate": job}}
    file = folder / "cronjob.json"
    file.write_text(json.dumps(body))
    return str(file)


@pytest.mark.parametrize("scenario", ALLOWED, ids=lambda each: each.name)
def test_preview_shows_what_would_be_done_for_every_allowed_scenario(
    scenario: Scenario, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = manifest(tmp_path, scenario.cronjob)
    assert main(["primer", "preview", "-f", file, "--warm-up", str(scenario.warmup)]) == 0
    output = capsys.readouterr().out
    assert "method CronJob would make:" in output
    assert all(schedule in output for schedule, _ in scenario.schedules)
    assert "\nexact" in output
    assert "each placeholder holds cpu 2" in output


DRY_RUN = """
apiVersion: batch/v1
kind: CronJob
metadata:
  creationTimestamp: null
  name: daily
spec:
  jobTemplate:
    metadata: {creationTimestamp: null, name: daily}
    spec:
      template:
        metadata: {creationTimestamp: null}
        spec:
          containers: [{image: work, name: daily, resources: {}}]
          restartPolicy: OnFailure
  schedule: 0 3 * * *
status: {}
"""


def test_preview_reads_what_kubectl_prints_of_an_object_that_is_not_made_yet(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = tmp_path / "cronjob.yaml"
    file.write_text(DRY_RUN)
    assert main(["primer", "preview", "-f", str(file), "--warm-up", "5m"]) == 0
    assert "CronJob daily: '0 3 * * *' in UTC" in capsys.readouterr().out


@pytest.mark.parametrize("made", ["2026-01-01T00:00:00", "yesterday", 7])
def test_preview_says_it_if_a_file_has_something_else(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], made: object
) -> None:
    file = tmp_path / "cronjob.json"
    file.write_text(json.dumps({"kind": "CronJob", "metadata": {"name": "daily", "creationTimestamp": made}}))
    assert main(["primer", "preview", "-f", str(file), "--warm-up", "5m"]) == 1
    assert "cannot be decoded" in capsys.readouterr().err


def test_preview_names_the_field_that_is_wrong(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["primer", "preview", "-f", manifest(tmp_path, "* 0 * * * *"), "--warm-up", "5m"]) == 1
    said = capsys.readouterr().err
    assert "CronJob daily: spec.schedule: there are 6 fields instead of five" in said
    assert "hint: " in said


def test_preview_names_the_dates_on_which_expressions_are_not_exact(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = manifest(tmp_path, "0 3 * * *")
    assert main(["primer", "preview", "-f", file, "--warm-up", "30m", "--zone", "Europe/Berlin"]) == 0
    said = capsys.readouterr().out
    assert "method CronJob is not exact" in said
    assert "first on 20" in said
    assert "method Placeholder is exact on every date" in said


def test_preview_shows_the_fires_to_come_of_a_cron_job_that_last_ran_long_ago() -> None:
    args = parser().parse_args(["primer", "preview", "daily", "--warm-up", "10m", "--count", "2"])
    idle = cron_job("*/5 * * * *", last=NOW - timedelta(days=90))
    shown = list(previewed(idle, 10, args, NOW))[1]
    assert [line.split()[-2] for line in shown.splitlines()[1:]] == ["02:05", "02:10"]


def test_a_cluster_that_does_not_know_primers_is_asked_about_by_their_name() -> None:
    error = refusal(Failure(Cause.NOT_FOUND, "404 page not found"), "list", KIND, Key("reports", ""))
    assert error.hint == "install Foresail with primers: foresail install --primers"


def test_create_makes_a_primer_of_the_options() -> None:
    args = parser().parse_args(
        ["primer", "create", "warm", "-n", "reports", "-l", "tier=batch", "--warm-up", "10", "--method", "CronJob"]
    )
    assert body_of(args)["spec"] == {
        "warmUp": 10,
        "selector": {"matchLabels": {"tier": "batch"}},
        "method": "CronJob",
    }


def test_describe_draws_the_last_fires() -> None:
    lines = described(PRIMER, NOW).splitlines()
    cold, warm = lines[-2:]
    assert "cold  " + "█" * 40 + " 41 s" in cold
    assert "warm  █ 1 s" in warm
    assert any("1 on node-1, scheduled after 38 s" in line for line in lines)


def test_explain_points_at_the_first_rule_that_says_no() -> None:
    said = str(explanation_of(primer_view(), Target(cron_job(shape=shape(resources={}))), NOW))
    assert "blocked: nothing to reserve" in said
    (arrow,) = [line for line in said.splitlines() if line.startswith("→")]
    assert "its pods request something" in arrow
    assert "set resources.requests" in arrow
    assert "not checked" in said


def test_explain_of_one_that_is_fine_says_when_it_warms_up() -> None:
    said = str(explanation_of(primer_view(), Target(cron_job()), NOW))
    assert "warm-up 2026-01-02 02:50 UTC" in said
    assert "→" not in said


def test_explain_has_the_same_for_programs() -> None:
    data = explanation_of(primer_view(), Target(cron_job(shape=shape(resources={}))), NOW).as_data()
    assert (data["source"], data["cronJob"]) == ("Primer reports/warm", "daily")
    (blocking,) = [each for each in data["steps"] if each["answer"] == "blocks"]
    assert blocking["rule"] == "its pods request something"


def test_explain_names_what_the_api_server_refused() -> None:
    status = {"cronJobs": [{"name": "daily", "reason": "Refused", "message": "violates PodSecurity"}, {"name": "b"}]}
    assert refusal_of({"status": status}, "daily") == "violates PodSecurity"
    assert refusal_of({"status": status}, "b") == refusal_of({}, "daily") == ""
    said = str(explanation_of(primer_view(), Target(cron_job()), NOW, "violates PodSecurity"))
    assert "blocked: refused" in said
    (arrow,) = [line for line in said.splitlines() if line.startswith("→")]
    assert "the API server accepts its writes" in arrow
    assert arrow.endswith("violates PodSecurity")


def test_the_settings_of_the_operator_are_read_from_its_flags() -> None:
    flags = ["--primers", "--primer-pause-image=pause@sha256:1", "--primer-longest-warm-up=90m", "--primer-label=a=b=c"]
    settings = primer_settings(parser().parse_args(["operator", "run", *flags]))
    assert settings == msgspec.structs.replace(
        Settings(), pause_image="pause@sha256:1", max_warm_up=timedelta(minutes=90), labels=(("a", "b=c"),)
    )


def test_placeholders_run_the_same_image_by_default_whoever_installs_them() -> None:
    values = yaml.safe_load((CHART / "values.yaml").read_text())
    flags = parser().parse_args(["operator", "run", "--primers"])
    install = install_options(parser().parse_args(["install", "--primers", "--image=foresail:1"]), None)
    found = {values["primers"]["pauseImage"], primer_settings(flags).pause_image, install.pause_image}
    assert found == {PAUSE_IMAGE}


@pytest.mark.parametrize(
    ("flags", "problem"),
    [
        (["--primer-longest-warm-up=soon"], "is not a duration"),
        (["--primer-time-zone=Nowhere"], "--primer-time-zone"),
        (["--primer-label=a"], "--primer-label: 'a' has no value"),
    ],
)
def test_a_setting_that_cannot_be_is_refused(
    flags: list[str], problem: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["operator", "run", "--primers", "--kubeconfig=/nowhere", *flags]) == 1
    assert problem in capsys.readouterr().err


def test_the_size_of_a_pull_is_shown_where_a_node_reports_it() -> None:
    sizes = sizes_of([Image(["example.com/team/work@sha256:1", "example.com/team/work:1"], 412_300_000), Image()])
    sizes = {**sizes, **sizes_of([Image(["example.com/library/tool:latest"], 5_000)])}
    wanted = ["example.com/team/work:1", "tool", "other:2", "example.com/team/work@sha256:1"]
    assert pulled_ahead(wanted, sizes, pulls=True) == (
        "images: pulled ahead with each placeholder: example.com/team/work:1 (412 MB), tool (1 MB), "
        "other:2 (size not known: no node reports it), example.com/team/work@sha256:1 (412 MB)"
    )
    assert pulled_ahead(wanted, sizes, pulls=False).startswith("images: not pulled ahead")
