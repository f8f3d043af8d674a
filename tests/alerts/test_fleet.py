"""The rules for a fleet, checked by Prometheus' own tool, on the metrics that `foresail coverage` prints."""

import re
from pathlib import Path

import yaml

from foresail.cli.coverage.metrics import FAMILIES
from tests.alerts.test_alerts import METRICS, check

RULES = Path(__file__).parents[2] / "examples" / "fleet-rules.yaml"
NAME = re.compile(r"(?<![\w/-])(?:(?:cluster|namespace):)?foresail_[a-z0-9_]+(?::\w+)?")
GUIDE = Path(__file__).parents[2] / "docs" / "how-to" / "fleet.md"


def test_the_rules_record_and_alert_as_they_should(tmp_path: Path) -> None:
    cases = tmp_path / "cases.yaml"
    cases.write_text((Path(__file__).parent / "fleet.yaml").read_text().replace("RULES", str(RULES)))
    assert "SUCCESS" in check("test", "rules", cases)


def test_the_rules_and_the_guide_use_metrics_that_exist() -> None:
    (group,) = yaml.safe_load(RULES.read_text())["groups"]
    recorded = {rule["record"] for rule in group["rules"] if "record" in rule}
    texts = [*(rule["expr"] for rule in group["rules"]), GUIDE.read_text()]
    used = {name for text in texts for name in NAME.findall(text)}
    operators = {metric.name for collector in METRICS.values() for metric in collector.collect()}
    assert used <= recorded | set(FAMILIES) | operators
    assert used >= recorded
