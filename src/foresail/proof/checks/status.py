"""The status of a RestoreCheck: conditions, and the smallest patch from one status to the next."""

from datetime import datetime
from typing import Literal

import msgspec

from foresail.api.instants import whole
from foresail.api.requests import Condition
from foresail.api.restore_check import CheckResult, RestoreCheckStatus
from foresail.proof.checks.reasons import Reason
from foresail.proof.checks.rows import CheckRow
from foresail.reporting import LONGEST_MESSAGE, dated, merge_patch

READY, PASSED = "Ready", "Passed"
_Truth = Literal["True", "False", "Unknown"]


def with_conditions(
    check: CheckRow, status: RestoreCheckStatus, ready: tuple[bool, Reason, str], now: datetime
) -> RestoreCheckStatus:
    """Return a status with its conditions; a transition time changes only with the condition's status."""
    is_ready, reason, message = ready
    wanted = (
        _condition(check, READY, "True" if is_ready else "False", reason.value, message, now),
        _passed(check, status.last, now),
    )
    return msgspec.structs.replace(status, conditions=wanted, observed_generation=check.generation)


def _passed(check: CheckRow, last: CheckResult | None, now: datetime) -> Condition:
    if last is None:
        return _condition(check, PASSED, "Unknown", Reason.NOT_CHECKED.value, "No check has ended yet", now)
    return _condition(check, PASSED, "True" if last.result == "Pass" else "False", last.reason, last.message, now)


def _condition(check: CheckRow, kind: str, truth: _Truth, reason: str, message: str, now: datetime) -> Condition:
    new = Condition(kind, truth, reason, message[:LONGEST_MESSAGE], whole(now), check.generation)
    return dated(check.status.conditions, new)


def patch_body(before: RestoreCheckStatus, after: RestoreCheckStatus) -> dict[str, object]:
    """Return the merge patch from one status to the other; empty if nothing differs."""
    return merge_patch(msgspec.to_builtins(before), msgspec.to_builtins(after))
