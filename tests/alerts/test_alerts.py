"""The alert rules of the chart, checked by Prometheus' own tool."""

import re
import subprocess
from pathlib import Path

import pytest
import yaml

from foresail.schedules.controller import Schedules
from foresail.schedules.observe import Settings
from testbed.promtool import promtool

RULES = Path(__file__).parents[2] / "charts" / "foresail" / "rules" / "schedules.yaml"
DASHBOARD = RULES.parents[1] / "dashboards" / "schedules.json"
CASES = Path(__file__).parent / "schedules.yaml"


def check(*arguments: str | Path) -> str:
    done = subprocess.run([promtool(), *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_the_rules_are_well_formed() -> None:
    assert "SUCCESS: 5 rules found" in check("check", "rules", RULES)


def test_each_alert_fires_and_clears_when_it_should(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.read_text().replace("RULES", str(RULES)))
    assert "SUCCESS" in check("test", "rules", cases)


def test_a_case_that_does_not_hold_is_noticed(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text(CASES.read_text().replace("RULES", str(RULES)).replace("eval_time: 61m", "eval_time: 31m"))
    with pytest.raises(AssertionError, match="ForesailScheduleHeld"):
        check("test", "rules", cases)


def test_each_alert_has_a_case_that_fires_and_one_that_does_not() -> None:
    alerts = {rule["alert"] for group in yaml.safe_load(RULES.read_text())["groups"] for rule in group["rules"]}
    tested = [each for test in yaml.safe_load(CASES.read_text())["tests"] for each in test["alert_rule_test"]]
    assert {each["alertname"] for each in tested if each["exp_alerts"]} == alerts
    assert {each["alertname"] for each in tested if not each["exp_alerts"]} == alerts


def test_rules_and_dashboard_ask_only_for_metrics_that_there_are() -> None:
    schedules = Schedules("velero", Settings())
    families = {metric.name for metric in schedules.metrics.collect()}
    text = RULES.read_text() + DASHBOARD.read_text()
    asked = {re.sub(r"_bucket$", "", name) for name in re.findall(r"foresail_(?:schedule|backup)_\w+", text)}
    assert asked == families
