"""The last result of each RestoreCheck, as a report shows it."""

from collections.abc import Iterable
from dataclasses import dataclass

import msgspec

from foresail.api.metadata import Named
from foresail.api.restore_check import CheckResult, RestoreCheckSpec, RestoreCheckStatus


@dataclass(frozen=True, slots=True)
class LastCheck:
    """A RestoreCheck with its last result."""

    name: str
    schedule: str = ""  # whose backups it checks; empty if it selects them by labels
    last: CheckResult | None = None  # None if no check has ended yet
    problem: str = ""  # why there is no result
    namespace: str = ""  # Velero's, or that of a tenant

    @property
    def has_failed(self) -> bool:
        """Whether the last check ended, and did not pass."""
        return self.last is not None and self.last.result != "Pass"


class _Check(Named, frozen=True):
    spec: RestoreCheckSpec
    status: RestoreCheckStatus = RestoreCheckStatus()


def last_checks(raw: Iterable[msgspec.Raw]) -> tuple[LastCheck, ...]:
    """Return the last results, failed ones first; one that cannot be decoded hides no other."""
    return failed_first(_last_check(item) for item in raw)


def failed_first(checks: Iterable[LastCheck]) -> tuple[LastCheck, ...]:
    """Return checks in the order of a report."""
    return tuple(sorted(checks, key=lambda check: (not check.has_failed, check.namespace, check.name)))


def _last_check(raw: msgspec.Raw) -> LastCheck:
    try:
        check = msgspec.json.decode(raw, type=_Check)
    except msgspec.ValidationError as error:
        meta = msgspec.json.decode(raw, type=Named).metadata
        return LastCheck(meta.name, problem=f"cannot be decoded: {error}", namespace=meta.namespace)
    ready = next(
        (condition.message for condition in check.status.conditions if condition.type == "Ready"),
        "no operator has seen it",
    )
    meta = check.metadata
    last = check.status.last
    return LastCheck(meta.name, check.spec.backups.schedule or "", last, "" if last else ready, meta.namespace)
