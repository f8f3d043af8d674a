"""A survey that takes long is as good as a quick one, or no Rollback would proceed on a slow API server."""

from datetime import UTC, datetime, timedelta

from foresail.api.rollback import RollbackSpec, RollbackStatus
from foresail.plan import Key, ReadResult
from foresail.rollback import rules
from foresail.rollback.decide import decide
from foresail.rollback.steps import POLL
from foresail.rollback.view import Findings, RollbackRow, RollbackView
from foresail.tenancy.namespaces import NamespaceRow

NOW = datetime(2026, 11, 19, tzinfo=UTC)
ROW = RollbackRow(
    Key("shop", "back"), "u", "5", 1, NOW, RollbackSpec(to="daily"), RollbackStatus(phase="Planning"), "ann"
)
SLOW = 10 * POLL


def view(took: timedelta, findings: Findings) -> RollbackView:
    read = ReadResult(rules.survey_of(ROW), findings, NOW, 1, took)
    return RollbackView(ROW, NamespaceRow("n", {}, is_terminating=False), None, read=read)


def test_a_survey_is_used_as_long_after_its_end_as_after_a_quick_one() -> None:
    seen = view(SLOW, Findings(version="5"))
    soon, late = decide(seen, NOW + SLOW + POLL / 2), decide(seen, NOW + SLOW + POLL)
    assert soon.reads == ()
    assert soon.status is not None, "the backup is gone, and that is reported"
    assert (late.reads, late.status) == ((rules.survey_of(ROW),), None)


def test_a_slow_survey_that_failed_is_repeated_later_and_not_at_once() -> None:
    plan = decide(view(SLOW, Findings(version="5", problem="busy")), NOW + SLOW + timedelta(seconds=1))
    assert plan.reads == ()
    assert plan.wake_at == NOW + SLOW + POLL
