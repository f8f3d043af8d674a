"""What the API server refuses: the CapacityBuffer itself, or a pod with the resources that it would hold."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from foresail.api.pods import POD
from foresail.api.primer import AUTO, BY_BUFFER, PLACEHOLDER, PrimerStatus
from foresail.plan import Create, Plan
from foresail.primers.buffer_rows import BUFFER_RETRY, BufferSupport
from foresail.primers.controller import Primers
from foresail.primers.decide import decide, is_dry_run_due
from foresail.primers.rows import PrimerRow
from foresail.primers.view import Target
from tests.unit.primers.rows import SETTINGS, buffer, cron_job, primer, primer_view, run

FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
NOW = FIRE - timedelta(minutes=5)
REFUSED = {buffer(FIRE).key.name: 'admission webhook "policy" denied the request: no buffers here'}


def decided(row: PrimerRow, now: datetime = NOW) -> Plan:
    view = primer_view(cron_job("0 * * * *"), primer=row, buffers=BufferSupport(is_served=True), refused=REFUSED)
    return decide(view, now)


def kinds(plan: Plan) -> list[str]:
    return [each.kind.name for each in plan.actions if isinstance(each, Create)]


def test_where_the_api_server_refuses_the_buffer_auto_uses_placeholders_and_reports_it_once() -> None:
    first = decided(primer(method=AUTO))
    assert kinds(first) == []
    assert first.status is not None
    (note,) = first.notes
    assert (note.reason, "no buffers here" in note.message) == ("Refused", True)
    assert "Placeholders hold the capacity instead" in note.message
    body: Any = first.status.body["status"]
    assert body["cronJobs"][0]["bufferRefused"] == "2026-01-02T02:55:00Z"
    assert body["cronJobs"][0].get("reason") is None
    later = primer(method=AUTO, status=msgspec.convert({**body, "observedGeneration": 1}, PrimerStatus))
    second = decided(later)
    assert kinds(second) == [POD.name]
    assert second.notes == ()
    assert kinds(decided(later, NOW + BUFFER_RETRY)) == ["PodTemplate", "CapacityBuffer"]


def test_where_the_method_is_named_the_refusal_is_the_reason() -> None:
    plan = decided(primer(method=BY_BUFFER))
    assert (kinds(plan), [each.reason for each in plan.notes]) == ([], ["Refused"])


@pytest.mark.parametrize(
    ("dry_run", "created", "reasons"),
    [
        ({}, [], []),
        ({"is_dry_run_done": True}, ["PodTemplate", "CapacityBuffer"], []),
        ({"is_dry_run_done": True, "refused": "maximum cpu usage per Container is 8"}, [], ["Refused"]),
    ],
    ids=["not-yet", "admitted", "refused"],
)
@pytest.mark.parametrize("method", [AUTO, BY_BUFFER])
def test_the_resources_of_a_primer_are_dry_run_before_a_buffer_holds_them(
    method: str, dry_run: dict[str, Any], created: list[str], reasons: list[str]
) -> None:
    job, pod = run(FIRE - timedelta(days=1), phase="Succeeded", node="node-1")
    resources = (("cpu", "64"),)
    target = Target(cron_job(), (job,), (pod,), resources=resources, dry_run_at=NOW if dry_run else None, **dry_run)
    row = primer(method=method, requests=resources)
    view = primer_view(primer=row, targets=(target,), buffers=BufferSupport(is_served=True))
    plan = decide(view, NOW)
    assert kinds(plan) == created
    assert [each.reason for each in plan.notes] == reasons
    assert all("spec.template" in each.message for each in plan.notes)
    assert is_dry_run_due(view, target, NOW) is (not dry_run)


def test_a_controller_asks_for_the_resources_only_where_a_buffer_may_hold_them() -> None:
    for method, asked in ((AUTO, True), (BY_BUFFER, True), (PLACEHOLDER, False)):
        primers, row = Primers(SETTINGS), primer(method=method, requests=(("cpu", "64"),))
        primers.state.primers.put(row.key, row)
        primers.state.cron_jobs.put(cron_job().key, cron_job())
        view = primers.observe(row.key, NOW)
        assert view is not None
        assert bool(view.targets[0].resources) is asked
