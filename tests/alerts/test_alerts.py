"""The alert rules and dashboards of the chart, checked by Prometheus' own tool."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.registry import Collector

from foresail.schedules.controller import Schedules
from foresail.schedules.observe import Settings
from foresail.selfservice.controller import SelfService
from testbed.prometheus import promtool

CHART = Path(__file__).parents[2] / "charts" / "foresail"
METRICS: dict[str, Collector] = {
    "schedules": Schedules("velero", Settings()).metrics,
    "selfservice": SelfService("velero").metrics,
}
each_file = pytest.mark.parametrize("file", [*METRICS, "unattended"])
each_capability = pytest.mark.parametrize("capability", METRICS)


def rules_of(capability: str) -> Path:
    return CHART / "rules" / f"{capability}.yaml"


def cases_of(capability: str) -> Path:
    return Path(__file__).parent / f"{capability}.yaml"


def alerts_of(capability: str) -> set[str]:
    groups = yaml.safe_load(rules_of(capability).read_text())["groups"]
    return {rule["alert"] for group in groups for rule in group["rules"]}


def check(*arguments: str | Path) -> str:
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@each_file
def test_the_rules_are_well_formed(file: str) -> None:
    assert f"SUCCESS: {len(alerts_of(file))} rules found" in check("check", "rules", rules_of(file))


@each_file
def test_each_alert_fires_and_clears_when_it_should(file: str, tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(cases_of(file).read_text().replace("RULES", str(rules_of(file))))
    assert "SUCCESS" in check("test", "rules", cases)


def test_a_case_that_does_not_hold_is_noticed(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    text = cases_of("schedules").read_text().replace("RULES", str(rules_of("schedules")))
    cases.write_text(text.replace("eval_time: 61m", "eval_time: 31m"))
    with pytest.raises(AssertionError, match="ForesailScheduleHeld"):
        check("test", "rules", cases)


@each_file
def test_each_alert_has_a_case_that_fires_and_one_that_does_not(file: str) -> None:
    cases = yaml.safe_load(cases_of(file).read_text())["tests"]
    tested = [each for test in cases for each in test["alert_rule_test"]]
    assert {each["alertname"] for each in tested if each["exp_alerts"]} == alerts_of(file)
    assert {each["alertname"] for each in tested if not each["exp_alerts"]} == alerts_of(file)


@each_capability
def test_rules_and_dashboard_ask_for_all_metrics_that_there_are_and_no_others(capability: str) -> None:
    families = {metric.name for metric in METRICS[capability].collect()}
    text = rules_of(capability).read_text() + dashboard_of(capability).read_text()
    asked = re.findall(r"foresail_(?:schedule|backup|selfservice)_\w+", text)
    assert {re.sub(r"_(bucket|count|sum|total)$", "", name) for name in asked} == families


@each_capability
def test_prometheus_can_read_each_question_of_the_dashboard(capability: str, tmp_path: Path) -> None:
    panels = json.loads(dashboard_of(capability).read_text())["panels"]
    questions = [target["expr"] for panel in panels for target in panel["targets"]]
    records = [{"record": f"panel_{number}", "expr": _filled(each)} for number, each in enumerate(questions)]
    rules = tmp_path / "panels.yaml"
    rules.write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": records}]}))
    assert f"SUCCESS: {len(questions)} rules found" in check("check", "rules", "--lint=none", rules)


def dashboard_of(capability: str) -> Path:
    return CHART / "dashboards" / f"{capability}.json"


def _filled(question: str) -> str:
    """Return a question as Grafana asks it: with its variables filled in."""
    return question.replace("$__rate_interval", "5m").replace("$__range", "1h")
