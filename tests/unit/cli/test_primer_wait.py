"""`foresail primer wait`: when it ends, how, and what it reports meanwhile."""

import json
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest

from foresail.cli.errors import CommandError
from foresail.cli.main import main
from foresail.cli.primer.wait import FIRED, WARM, outcome, remark
from tests.unit.cli.canned import canned

SINCE = datetime(2026, 1, 2, 2, tzinfo=UTC)
NEXT, LAST = "2026-01-02T03:00:00Z", "2026-01-01T03:00:00Z"
READY = {"type": "Ready", "status": "True", "reason": "Ready", "message": "One CronJob is primed."}


def primer(*cron_jobs: dict[str, Any], ready: dict[str, str] | None = None, **fields: Any) -> dict[str, Any]:  # noqa: ANN401
    conditions = [ready or READY, {"type": "Warming", "status": "True", "reason": "Warming", "message": ""}]
    status = {"observedGeneration": 1, "nextFire": NEXT, "nextWarmUp": "2026-01-02T02:50:00Z"}
    return {
        "metadata": {"name": "report", "namespace": "shop", "generation": 1},
        "spec": {"warmUp": "10m", **fields},
        "status": {**status, "cronJobs": list(cron_jobs), "conditions": conditions},
    }


def held(fire: str = NEXT, **fields: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
    warming = {"fire": fire, "made": 1, "nodes": ["node-1"], "provisioned": 40, **fields}
    return {"name": "report", "warming": warming}


def started(fire: str, *, warm: bool) -> dict[str, Any]:
    return {"name": "report", "startDelays": [{"fire": fire, "seconds": 7, "warm": warm}]}


def blocked(reason: str) -> dict[str, Any]:
    ready = {"type": "Ready", "status": "False", "reason": reason, "message": "because."}
    return primer({"name": "report", "reason": reason}, ready=ready)


def test_it_is_warm_once_what_is_held_for_a_coming_fire_has_nodes() -> None:
    found = outcome(primer(held()), WARM, SINCE, SINCE)
    assert found == f"warm for CronJob report at {NEXT} on node-1"


def test_a_buffer_is_warm_once_the_autoscaler_has_room() -> None:
    assert outcome(primer(held(nodes=[], buffer="report-1", provisioned=None)), WARM, SINCE, SINCE) is None
    found = outcome(primer(held(nodes=[], buffer="report-1")), WARM, SINCE, SINCE)
    assert found == f"warm for CronJob report at {NEXT} by CapacityBuffer report-1"


@pytest.mark.parametrize(
    "cron_job",
    [held(LAST), held(provisioned=None), held(made=0), {"name": "report"}],
    ids=["of the last fire", "without a node", "lost", "nothing yet"],
)
def test_it_is_not_warm_before(cron_job: dict[str, Any]) -> None:
    assert outcome(primer(cron_job), WARM, SINCE, SINCE) is None


def test_method_cron_job_is_warm_when_its_warm_up_has_begun() -> None:
    assert outcome(primer({"name": "report"}, method="CronJob"), WARM, SINCE, SINCE) == (
        f"the warm-up for {NEXT} has begun"
    )


@pytest.mark.parametrize(("warm", "word"), [(True, "warm"), (False, "cold")])
def test_it_has_fired_once_a_run_after_the_beginning_has_started(warm: bool, word: str) -> None:
    assert outcome(primer(started(LAST, warm=warm)), FIRED, SINCE, SINCE) is None
    found = outcome(primer(started(NEXT, warm=warm)), FIRED, SINCE, SINCE)
    assert found == f"CronJob report fired at {NEXT} and started after 7 s, {word}"


@pytest.mark.parametrize(
    ("reason", "event", "is_over"),
    [
        ("NeedsAllowStanding", WARM, True),
        ("NothingToReserve", WARM, True),
        ("Suspended", WARM, True),
        ("QuotaTooSmall", WARM, False),
        ("NothingToReserve", FIRED, False),
        ("InvalidSchedule", FIRED, True),
    ],
)
def test_what_does_not_come_by_itself_is_an_error(reason: str, event: str, *, is_over: bool) -> None:
    found = outcome(blocked(reason), event, SINCE, SINCE)
    assert isinstance(found, CommandError) is is_over
    if isinstance(found, CommandError):
        assert found.problem == f"Primer shop/report is {reason}: because."
        assert found.hint is not None
        assert "foresail primer explain report -n shop" in found.hint


def test_a_status_of_an_older_spec_ends_nothing() -> None:
    found = blocked("NeedsAllowStanding")
    found["metadata"]["generation"] = 2
    assert outcome(found, WARM, SINCE, SINCE) is None


def test_one_blocked_cron_job_of_several_ends_nothing() -> None:
    found = blocked("NothingToReserve")
    found["status"]["cronJobs"].append({"name": "other"})
    assert outcome(found, WARM, SINCE, SINCE) is None


def test_meanwhile_it_reports_the_next_step_or_that_no_operator_has_seen_it() -> None:
    assert remark(primer(), timedelta(0)) == f"next warm-up 2026-01-02T02:50:00Z, next fire {NEXT}"
    assert remark(blocked("QuotaTooSmall"), timedelta(0)) == "QuotaTooSmall: because."
    unseen = {**primer(), "status": {}}
    assert remark(unseen, timedelta(seconds=1)) == ""
    assert "foresail doctor" in remark(unseen, timedelta(minutes=1))


def test_an_annotated_cron_job_is_waited_for_by_its_record(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    uid = "11111111-aaaa"
    path = "/apis/batch/v1/namespaces/shop/cronjobs/"

    def cron_job(**record: Any) -> dict[str, Any]:  # noqa: ANN401 - JSON
        text = json.dumps({"name": "report", "uid": uid, **record})
        annotations = {"foresail.dev/warm-up": "10m", "foresail.dev/warm-up-status": text}
        return {"metadata": {"name": "report", "namespace": "shop", "uid": uid, "annotations": annotations}}

    warm = cron_job(warming={**held("2999-01-01T00:00:00Z")["warming"], "attempt": 1})
    idle = cron_job(reason="NothingToReserve", message="because.")
    with canned(tmp_path, {f"{path}warm": warm, f"{path}idle": idle}) as server:
        where = [f"--kubeconfig={server.kubeconfig}", "-n", "shop"]
        assert main(["primer", "wait", "cronjob/warm", *where]) == 0
        assert "Primer shop/cronjob/warm: warm for CronJob report at 2999" in capsys.readouterr().err
        assert main(["primer", "wait", "cronjob/idle", *where]) == 1
        assert "is NothingToReserve: because." in capsys.readouterr().err


def test_the_command_ends_with_the_answer_or_with_the_timeout(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = "/apis/foresail.dev/v1alpha1/namespaces/shop/primers/"
    warm, cold = primer(held("2999-01-01T00:00:00Z")), primer({"name": "report"})
    with canned(tmp_path, {f"{path}warm": warm, f"{path}cold": cold}) as server:
        where = [f"--kubeconfig={server.kubeconfig}", "-n", "shop"]
        assert main(["primer", "wait", "warm", *where]) == 0
        assert "Primer shop/warm: warm for CronJob report at 2999" in capsys.readouterr().err
        assert main(["primer", "wait", "warm", "cold", "--timeout=0s", *where]) == 1
        said = capsys.readouterr().err
        assert "error: timed out: Primer shop/cold is not warm yet" in said
        assert said.count("next fire") == 1
