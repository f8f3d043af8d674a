"""Annotated CronJobs among the Primers that `foresail primer` shows, without a cluster."""

import json
from datetime import UTC, datetime
from typing import Any

from foresail.api.batch import CronJob
from foresail.api.marks import WARM_UP, WARM_UP_STATUS
from foresail.cli.primer.explain import explanation_of
from foresail.cli.primer.get import described, primer_table
from foresail.cli.primer.selection import in_primers_form, queue_key_of
from foresail.plan import Key
from foresail.primers.annotated import annotated_primer
from foresail.primers.rows import Annotated
from foresail.primers.view import Settings, Target
from tests.unit.primers.rows import cron_job, primer_view

NOW = datetime(2026, 1, 2, 2, 55, tzinfo=UTC)
UID = "11111111-aaaa"
PRIMED: dict[str, Any] = {
    "name": "daily",
    "uid": UID,
    "nextFire": "2026-01-02T03:00:00Z",
    "nextWarmUp": "2026-01-02T02:50:00Z",
    "dutyCyclePercent": 1,
    "startDelays": [
        {"fire": "2025-12-31T03:00:00Z", "seconds": 41, "warm": False},
        {"fire": "2026-01-01T03:00:00Z", "seconds": 1, "warm": True},
    ],
}


def document(record: str = "", warm_up: str = "10m") -> dict[str, Any]:
    annotations = {WARM_UP: warm_up, **({WARM_UP_STATUS: record} if record else {})}
    metadata = {"name": "daily", "namespace": "reports", "uid": UID, "annotations": annotations}
    return {"apiVersion": "batch/v1", "kind": CronJob.__name__, "metadata": metadata, "spec": {"schedule": "0 3 * * *"}}


def shown(record: str = "") -> list[str]:
    table = primer_table([in_primers_form(document(record), NOW)], NOW, wide=True, namespaced=True)
    return table.splitlines()[1].split()


def test_the_start_delays_of_an_annotated_cron_job_are_listed_as_those_of_a_primer() -> None:
    line = shown(json.dumps(PRIMED))
    assert line[:7] == ["cronjob/daily", "10m", "in", "5m", "41s", "1s", "Warming"]


def test_one_that_a_primer_takes_is_listed_with_the_reason() -> None:
    record = {"name": "daily", "uid": UID, "reason": "PrimedByAnother", "message": "Primer other primes CronJob daily"}
    line = shown(json.dumps(record))
    assert "PrimedByAnother" in line
    assert " ".join(line).endswith("Primer other primes CronJob daily")
    text = described(in_primers_form(document(json.dumps(record)), NOW), NOW)
    assert "no capacity is held: PrimedByAnother: Primer other primes CronJob daily" in text


def test_one_that_the_operator_has_not_recorded_or_with_a_forged_record_is_not_seen_yet() -> None:
    assert "NotSeenYet" in shown()
    assert "NotSeenYet" in shown('{"name": "daily", "uid": "another"}')


def test_it_is_described_with_its_last_fires() -> None:
    text = described(in_primers_form(document(json.dumps(PRIMED)), NOW), NOW)
    assert "Name:       reports/cronjob/daily" in text
    assert "Warm-up:    10m" in text
    assert "2026-01-01T03:00:00Z  warm" in text


def explained(warm_up: str, taken_by: str = "") -> str:
    row = cron_job(annotated=Annotated(warm_up, "", "", "1"))
    primer = annotated_primer(row, Settings(annotated_cron_jobs=True))
    target = Target(row, taken_by=taken_by)
    return str(explanation_of(primer_view(target, primer=primer, annotated=row), target, NOW))


def test_explain_names_the_annotation_and_the_primer_that_counts_before_it() -> None:
    text = explained("10m", taken_by="other")
    assert text.startswith("annotation foresail.dev/warm-up, CronJob daily: blocked: primed by another")
    assert "Primer other primes CronJob daily, so its annotation foresail.dev/warm-up is ignored" in text


def test_explain_names_a_value_that_cannot_be_read() -> None:
    text = explained("soon")
    assert "blocked: invalid annotation" in text
    assert "annotation foresail.dev/warm-up is 'soon': write 1m to 7 days" in text


def test_the_operator_reconciles_it_under_a_key_of_its_own() -> None:
    assert queue_key_of(document()) == Key("reports", "cronjob/daily")
