"""Method CronJob: which primer CronJobs there are, what they hold, and until when."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.batch import CRON_JOB
from foresail.cli.in_pods import seconds_left
from foresail.plan import Create, Delete
from foresail.primers.build import LONGEST_CRON_JOB_NAME
from foresail.primers.decide import decide
from foresail.primers.rows import CronJobRow
from foresail.primers.view import Target
from testbed.oracle import Oracle
from tests.primer_scenarios import ALLOWED, DOCUMENT_EXAMPLES, REJECTED, SCENARIOS, Scenario, year
from tests.unit.primers.rows import SETTINGS, cron_job, primer, primer_view

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)


def decided(cron: CronJobRow, warm_up: int = 10, **fields: Any) -> list[Create]:  # noqa: ANN401 - a field of the Primer
    row = primer(method="CronJob", warm_up=timedelta(minutes=warm_up), allow_standing=True, **fields)
    plan = decide(primer_view(cron, primer=row), NOW)
    return [each for each in plan.actions if isinstance(each, Create)]


def schedules(made: list[Create]) -> list[tuple[str, str]]:
    specs: list[Any] = [each.body["spec"] for each in made]
    return [(each["schedule"], each["timeZone"]) for each in specs]


@pytest.mark.parametrize("scenario", ALLOWED, ids=lambda each: each.name)
def test_an_allowed_scenario_has_the_expected_primer_cronjobs(scenario: Scenario) -> None:
    made = decided(cron_job(scenario.cronjob), scenario.warmup)
    assert schedules(made) == scenario.schedules
    assert 1 <= len(made) <= 2
    assert all(each.kind == CRON_JOB and len(each.key.name) <= LONGEST_CRON_JOB_NAME for each in made)


@pytest.mark.parametrize("scenario", REJECTED, ids=lambda each: each.name)
def test_a_rejected_scenario_has_no_primer_cronjob_and_the_reason(scenario: Scenario) -> None:
    plan = decide(primer_view(cron_job(scenario.cronjob), primer=primer(method="CronJob")), NOW)
    assert (plan.actions, scenario.expected) == ((), ())
    assert plan.notes[0].reason == "InvalidSchedule"


@pytest.mark.repeats
def test_a_year_of_every_allowed_scenario_is_that_of_the_original_minus_the_warm_up_by_the_go_library() -> None:
    oracle = Oracle()
    for scenario in ALLOWED:
        wanted, fired = year(oracle, scenario, scenario.schedules, int(NOW.timestamp()))
        assert wanted, scenario
        assert fired == wanted, scenario


def test_the_scenarios_have_every_example_of_the_design_document_and_its_answers() -> None:
    known = {each.cronjob: each for each in SCENARIOS}
    assert set(DOCUMENT_EXAMPLES) <= set(known)
    assert len({each.name for each in SCENARIOS}) == len(SCENARIOS) == len(known)
    answered = [each for each in SCENARIOS if each.document]
    assert len(answered) == 3
    assert all(each.expected == (each.document,) for each in answered)
    issues = [each for each in SCENARIOS if each.document == ""]
    assert len(issues) == 3
    assert all(each.expected for each in issues), "what the document cannot convert, we can"


def test_a_schedule_of_six_fields_is_rejected_with_its_reason() -> None:
    (six,) = (each for each in REJECTED if each.name == "six fields")
    plan = decide(primer_view(cron_job(six.cronjob), primer=primer(method="CronJob")), NOW)
    assert "6 fields" in plan.notes[0].message


def test_a_primer_cronjob_holds_what_the_target_asks_for_until_a_moment_before_the_fire() -> None:
    (made,) = decided(cron_job("0 3 * * *", parallelism=3))
    spec: Any = made.body["spec"]
    job, pod = spec["jobTemplate"]["spec"], spec["jobTemplate"]["spec"]["template"]["spec"]
    assert (spec["schedule"], spec["timeZone"], spec["concurrencyPolicy"]) == ("50 2 * * *", "UTC", "Forbid")
    assert (job["parallelism"], job["completions"], job["backoffLimit"]) == (3, 3, 0)
    assert job["activeDeadlineSeconds"] == 599, "one whose node came too late is gone before the fire as well"
    assert job["ttlSecondsAfterFinished"] > 0
    assert job["podFailurePolicy"]["rules"][0]["onPodConditions"][0]["type"] == "DisruptionTarget"
    assert pod["restartPolicy"] == "Never"
    assert pod["containers"][0]["command"] == ["foresail", "hold", "589"]
    assert pod["containers"][0]["resources"] == {"requests": {"cpu": "2"}}
    assert made.body["metadata"]["ownerReferences"][0]["uid"] == primer().uid  # type: ignore[index]


@pytest.mark.parametrize("minutes", [1, 10, 120])
def test_a_busy_kubelet_has_time_to_report_the_end_of_a_primer_pod_before_its_deadline(minutes: int) -> None:
    (made,) = decided(cron_job("0 3 * * *"), minutes)
    job: Any = made.body["spec"]["jobTemplate"]["spec"]  # type: ignore[index]
    held = int(job["template"]["spec"]["containers"][0]["command"][-1])
    assert held + 10 <= job["activeDeadlineSeconds"] < minutes * 60, "a kubelet takes three seconds when it is idle"


def test_velero_backs_up_neither_a_primer_cronjob_nor_its_jobs_and_pods() -> None:
    (made,) = decided(cron_job())
    body: Any = made.body
    job = body["spec"]["jobTemplate"]
    for each in (body, job, job["spec"]["template"]):
        assert each["metadata"]["labels"]["velero.io/exclude-from-backup"] == "true"


def test_nothing_that_other_tools_claim_objects_by_is_taken_from_the_target() -> None:
    (made,) = decided(cron_job(labels={"app.kubernetes.io/instance": "shop", "argocd.argoproj.io/x": "y"}))
    assert "argo" not in str(made.body)
    assert "instance" not in str(made.body)


def there(made: Create, uid: str = "99") -> CronJobRow:
    return cron_job(key=made.key, uid=uid, primer_uid=primer().uid, target_uid=cron_job().uid)


def test_what_is_there_is_left_alone_and_a_change_of_the_target_replaces_it() -> None:
    (made,) = decided(cron_job())
    row = primer(method="CronJob")
    same = decide(primer_view(Target(cron_job(), primer_cron_jobs=(there(made),)), primer=row), NOW)
    assert same.actions == ()
    changed = decide(primer_view(Target(cron_job("0 4 * * *"), primer_cron_jobs=(there(made),)), primer=row), NOW)
    assert [type(each) for each in changed.actions] == [Create, Delete]


@pytest.mark.parametrize("fields", [{"suspend": True}, {"method": "Placeholder"}])
def test_a_suspended_primer_or_another_method_deletes_the_primer_cronjobs(fields: dict[str, Any]) -> None:
    (made,) = decided(cron_job())
    row = msgspec.structs.replace(primer(method="CronJob"), **fields)
    plan = decide(primer_view(Target(cron_job(), primer_cron_jobs=(there(made),)), primer=row), NOW)
    assert [each for each in plan.actions if isinstance(each, Delete)] == [Delete(CRON_JOB, made.key, "99")]


def test_an_interval_has_no_expression_and_is_left_to_the_other_method() -> None:
    plan = decide(primer_view(cron_job("@every 1h"), primer=primer(method="CronJob")), NOW)
    assert plan.actions == ()
    assert plan.notes[0].reason == "Inexact"
    assert "Placeholder" in plan.notes[0].message


def test_in_a_zone_with_summer_time_the_dates_are_named() -> None:
    plan = decide(primer_view(cron_job("0 3 * * *", zone="Europe/Berlin"), primer=primer(method="CronJob")), NOW)
    assert plan.status is None, "it is said once the CronJobs are there"
    assert any(each.reason == "Inexact" and "2026-" in each.message for each in plan.notes)


def test_without_an_image_that_can_sleep_the_method_is_off() -> None:
    settings = msgspec.structs.replace(SETTINGS, hold_image="")
    plan = decide(primer_view(primer=primer(method="CronJob"), settings=settings), NOW)
    assert plan.notes[0].reason == "NoHoldImage"


@pytest.mark.parametrize(
    ("job", "at", "left"),
    [("daily-29000000", 29000000 * 60 + 40, 560), ("daily-29000000", 29000000 * 60 + 700, 0), ("", 5, 600)],
)
def test_a_hold_is_counted_from_the_minute_that_the_job_was_due(job: str, at: float, left: float) -> None:
    assert seconds_left(600, job, at) == left
