"""The alert rules and dashboards of the chart, checked by Prometheus' own tool."""

import json
import re
import subprocess
from pathlib import Path

import pytest
import yaml
from prometheus_client.registry import Collector

from foresail.api.marks import SELF_SERVICE_LEASE
from foresail.primers.metrics import PrimerMetrics
from foresail.proof.checks.controller import RestoreChecks
from foresail.proof.checks.reads import FileReader
from foresail.schedules.controller import Schedules
from foresail.schedules.settings import Settings
from foresail.selfservice.controller import SelfService
from testbed.prometheus import promtool
from tests.worlds.tenancy import Tenancy
from tests.worlds.test_selfservice_paths import NAB, backed_up, tell
from tests.worlds.test_selfservice_reevaluation import remove_velero_backup

CHART = Path(__file__).parents[2] / "charts" / "foresail"
METRICS: dict[str, Collector] = {
    "schedules": Schedules("velero", Settings()).metrics,
    "selfservice": SelfService("velero").metrics,
    "primers": PrimerMetrics(),
    "checks": RestoreChecks("velero", FileReader(None).run).metrics,
}
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]
each_file = pytest.mark.parametrize("file", [*METRICS, "runtime", "unattended"])
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
    asked = re.findall(r"foresail_(?:schedule|backup|selfservice|primer|restore_check)\w+", text)
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


def samples(tenancy: Tenancy) -> Samples:
    """Return each figure of self-service by its name and labels."""
    assert tenancy.process is not None
    metrics = tenancy.process.loop.controller.metrics  # type: ignore[attr-defined]
    return {
        (each.name, tuple(each.labels.items())): each.value for family in metrics.collect() for each in family.samples
    }


def alerts_between(before: Samples, after: Samples, folder: Path) -> str:
    """Let Prometheus read an hour of the one figures and then of the others; return which alerts it takes for wrong."""
    series = [
        {
            "series": f"{name}{{{', '.join(f'{key}={json.dumps(value)}' for key, value in labels)}}}",
            "values": f"{f'{before[name, labels]:g}' if (name, labels) in before else '_'}x60 {value:g}x60",
        }
        for (name, labels), value in after.items()
    ]
    leads = f"leader_election_master_status{{name={json.dumps(SELF_SERVICE_LEASE)}}}"  # of the runtime, which serves
    series.append({"series": leads, "values": "1x120"})
    silent = [{"eval_time": "65m", "alertname": each, "exp_alerts": []} for each in sorted(alerts_of("selfservice"))]
    case = {"interval": "1m", "input_series": series, "alert_rule_test": silent}
    cases = folder / "cases.yaml"
    rules = [str(rules_of("selfservice"))]
    cases.write_text(yaml.safe_dump({"rule_files": rules, "evaluation_interval": "1m", "tests": [case]}))
    done = subprocess.run([promtool(), "test", "rules", cases], capture_output=True, text=True, check=False)
    return "" if done.returncode == 0 else done.stdout + done.stderr


def test_a_velero_backup_that_an_administrator_deletes_fires_no_alert(tmp_path: Path) -> None:
    async def story(tenancy: Tenancy) -> None:
        await backed_up(tenancy)
        before = samples(tenancy)
        remove_velero_backup(tenancy)
        await tenancy.settle()
        assert tenancy.condition(NAB, "Accepted")[:2] == ("False", "VeleroBackupNotFound")
        assert tenancy.condition(NAB, "Succeeded")[:2] == ("True", "Completed")
        assert alerts_between(before, samples(tenancy), tmp_path) == ""

    tell(story)


def test_a_backup_that_fails_fires_one(tmp_path: Path) -> None:
    async def story(tenancy: Tenancy) -> None:
        tenancy.back_up(NAB)
        await tenancy.settle()
        before = samples(tenancy)
        tenancy.velero_says(NAB, "Failed")
        await tenancy.settle()
        assert "ForesailTenantRequestFailed" in alerts_between(before, samples(tenancy), tmp_path)

    tell(story)
