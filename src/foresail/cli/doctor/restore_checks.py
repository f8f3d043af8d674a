"""What the doctor makes of RestoreChecks: whether they run, which fail, and whether a sandbox was left behind."""

from collections.abc import Iterator
from datetime import datetime

from foresail.api.marks import CHECK_LABEL, CHECKS_LEASE
from foresail.cli.doctor.evidence import CheckSeen, Evidence
from foresail.cli.doctor.finding import Finding, good, some, warning
from foresail.cli.doctor.running import without_leader


def restore_checks(seen: Evidence) -> Iterator[Finding]:
    """Report an operator that does not run, failed checks, and sandboxes that no check needs."""
    absent = [each for each in seen.operators if each.lease == CHECKS_LEASE and not seen.holder(seen.checks_lease)]
    if absent:
        yield without_leader(seen, absent[0], "restores", "no RestoreCheck runs")
    now = seen.server_time or seen.instant
    own = [each for each in seen.checks if each.metadata.namespace == seen.namespace]  # tenants see to theirs
    failed = [each for each in own if each.status.last is not None and each.status.last.result == "Fail"]
    if failed:
        first = failed[0]
        names = some([each.metadata.name for each in failed])
        why = first.status.last.message if first.status.last is not None else ""
        yield warning(
            "restores", f"RestoreCheck {names} failed: {why}", f"foresail check explain {first.metadata.name}"
        )
    elif not absent and any(each.status.last is not None for each in own):
        yield good("restores", "every RestoreCheck has passed")
    in_use = {each.metadata.uid for each in seen.checks if _needs_sandbox(each, now)}
    left = [each for each in seen.sandboxes if (each.metadata.labels or {}).get(CHECK_LABEL) not in in_use]
    left = [each for each in left if each.metadata.deletion_timestamp is None]
    if left:
        names = some([each.metadata.name for each in left])
        fix = f"start the operator with restore checks, or kubectl delete namespace {left[0].metadata.name}"
        yield warning("restores", f"sandboxes that no RestoreCheck needs: {names}", fix)


def _needs_sandbox(check: CheckSeen, now: datetime) -> bool:
    last = check.status.last
    is_kept = last is not None and last.kept_until is not None and last.kept_until > now
    return check.status.run is not None or is_kept
