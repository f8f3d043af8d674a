"""Method Auto: placeholders where the API server refuses the CapacityBuffer."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api.pods import POD
from foresail.api.primer import AUTO, BY_BUFFER, PrimerStatus
from foresail.plan import Create, Plan
from foresail.primers.buffer_rows import BUFFER_RETRY, BufferSupport
from foresail.primers.decide import decide
from foresail.primers.rows import PrimerRow
from tests.unit.primers.rows import buffer, cron_job, primer, primer_view

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
