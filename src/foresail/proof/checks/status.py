"""The status of a RestoreCheck: conditions, and the smallest patch from one status to the next."""

from collections.abc import Mapping
from datetime import datetime
from typing import Any, Literal

import msgspec

from foresail.api.instants import whole
from foresail.api.requests import Condition
from foresail.api.restore_check import CheckResult, RestoreCheckStatus
from foresail.proof.checks.observe import CheckRow
from foresail.proof.checks.reasons import Reason

READY, PASSED = "Ready", "Passed"
_LONGEST_MESSAGE = 2048
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
    old = next((each for each in check.status.conditions if each.type == kind), None)
    since = old.last_transition_time if old is not None and old.status == truth else whole(now)
    return Condition(kind, truth, reason, message[:_LONGEST_MESSAGE], since, check.generation)


def patch_body(before: RestoreCheckStatus, after: RestoreCheckStatus) -> dict[str, object]:
    """Return the merge patch from one status to the other; empty if nothing differs."""
    return _difference(msgspec.to_builtins(before), msgspec.to_builtins(after))


def _difference(before: Mapping[str, Any], after: Mapping[str, Any]) -> dict[str, object]:
    found: dict[str, object] = {name: None for name in before if name not in after}
    for name, value in after.items():
        old = before.get(name)
        if isinstance(old, Mapping) and isinstance(value, Mapping):
            changed = _difference(old, value)
            if changed:
                found[name] = changed
        elif old != value:
            found[name] = value
    return found
