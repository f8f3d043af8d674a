"""What the doctor makes of RestoreChecks: whether they run, which fail, and whether a sandbox was left behind."""

from collections.abc import Iterator
from datetime import datetime

from foresail.api.marks import CHECK_LABEL, CHECKS_LEASE
from foresail.cli.doctor.evidence import CheckSeen, Evidence
from foresail.cli.doctor.finding import Finding, good, some, warning
from foresail.cli.doctor.running import without_leader


def restore_checks(seen: Evidence) -> Iterator[Finding]:
    """Report an operator that does not run, failed checks, and sandboxes that no check needs."""
    absent = [
        operator for operator in seen.operators if operator.lease == CHECKS_LEASE and not seen.holder(seen.checks_lease)
    ]
    if absent:
        yield without_leader(seen, absent[0], "restores", "no RestoreCheck runs")
    yield from _results(seen, is_attended=not absent)
    yield from _left_behind(seen)


def _results(seen: Evidence, *, is_attended: bool) -> Iterator[Finding]:
    """Report the checks that failed last, or that all have passed; tenants see to theirs."""
    own = [check for check in seen.checks if check.metadata.namespace == seen.namespace]
    ended = [(check.metadata.name, check.status.last) for check in own if check.status.last is not None]
    failed = [(name, last) for name, last in ended if last.result == "Fail"]
    if failed:
        names = some([name for name, _ in failed])
        name, last = failed[0]
        yield warning("restores", f"RestoreCheck {names} failed: {last.message}", f"foresail check explain {name}")
    elif is_attended and ended:
        yield good("restores", "every RestoreCheck has passed")


def _left_behind(seen: Evidence) -> Iterator[Finding]:
    """Report the sandboxes that no check needs, and that nobody deletes."""
    now = seen.server_time or seen.instant
    in_use = {check.metadata.uid for check in seen.checks if _needs_sandbox(check, now)}
    staying = [sandbox.metadata for sandbox in seen.sandboxes if sandbox.metadata.deletion_timestamp is None]
    left = [metadata.name for metadata in staying if (metadata.labels or {}).get(CHECK_LABEL) not in in_use]
    if left:
        fix = f"start the operator with restore checks, or kubectl delete namespace {left[0]}"
        yield warning("restores", f"sandboxes that no RestoreCheck needs: {some(left)}", fix)


def _needs_sandbox(check: CheckSeen, now: datetime) -> bool:
    last = check.status.last
    is_kept = last is not None and last.kept_until is not None and last.kept_until > now
    return check.status.run is not None or is_kept
