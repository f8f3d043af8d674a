"""`foresail check run --wait`: how far the requested check is, and its result."""

import asyncio
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from foresail.api.instants import instant
from foresail.api.restore_check import RESTORE_CHECK
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.proof.checks.reasons import Reason

_PAUSE = 2.0
_SETTLED = timedelta(seconds=5)  # until then a condition may be older than the request
_UNSERVED = timedelta(minutes=1)

BLOCKED = {
    Reason.NOT_ALLOWED: "ask a cluster administrator",
    Reason.QUOTA_EXCEEDED: "delete a RestoreCheck, or ask a cluster administrator",
    Reason.NO_BACKUP: "correct spec.backups, or wait until the Schedule has a Completed Backup",
    Reason.DATA_DISABLED: "set proof.data.enabled in the chart's values, or spec.depth to Objects",
    Reason.INVALID_SCHEDULE: "correct spec.schedule",
    Reason.SUSPENDED: "set spec.suspend to false",
}
"""Reasons why a requested check does not start, and what to do."""

_WAITS = (Reason.TOO_SOON, Reason.WAITING_FOR_TURN, Reason.SANDBOX_TERMINATING)
"""Reasons why it does not start yet."""


@dataclass(frozen=True)
class Progress:
    """How far a requested check is."""

    has_ended: bool = False
    has_begun: bool = False
    text: str = ""
    """Why it has not begun yet."""


def condition(check: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return a condition of a check; empty if it has none of this type."""
    found = (check.get("status") or {}).get("conditions") or ()
    return next((item for item in found if item["type"] == kind), {})


def progress(key: Key, check: Mapping[str, Any], request: str, waited: timedelta) -> Progress:
    """Return how far a check is, this long after the request; raise the reason if it cannot start."""
    status = check.get("status") or {}
    if status.get("handledRequest") == request:
        return Progress(has_ended=not status.get("run"), has_begun=True)
    ready = condition(check, "Ready")
    reason = ready.get("reason")
    message = str(ready.get("message", ""))
    if reason in BLOCKED and waited >= _SETTLED:
        raise CommandError(f"check {key} does not start: {message}", BLOCKED[reason])
    if reason in _WAITS:
        return Progress(text=f"{message}.")
    if not status.get("run") and waited >= _UNSERVED:
        raise CommandError(
            f"check {key} does not start: no operator has seen the request for a minute",
            "see with kubectl get pods -n VELERO_NAMESPACE whether Deployment foresail-checks runs",
        )
    return Progress()


async def wait_for_result(
    cluster: Cluster, key: Key, request: str, before: Mapping[str, Any], until: datetime | None
) -> int:
    """Wait for the result of the run that serves a request; return 0 for a pass, raise the problem if not."""
    began = now()
    said = ""
    own = ""
    earlier = {before.get("id")}
    while True:
        document = await cluster.read(RESTORE_CHECK, key, dict[str, Any])
        status = document.get("status") or {}
        last = status.get("last") or {}
        run = (status.get("run") or {}).get("id", "")
        step = progress(key, document, request, now() - began) if not own else Progress(has_begun=True)
        if step.has_begun:
            own = own or run
        else:
            earlier |= {last.get("id"), run}
        if step.has_ended or (own and run != own):
            is_own = last.get("id") == own if own else _is_since(last, request) and last.get("id") not in earlier
            return report_result(key, last if is_own else {})
        _report_wait(key, step, said, until)
        said = step.text
        await asyncio.sleep(_PAUSE)


def _report_wait(key: Key, step: Progress, said: str, until: datetime | None) -> None:
    """Print why a check has not begun yet, once; raise that the time is over."""
    if step.text and step.text != said:
        print(step.text, file=sys.stderr)
    if until is not None and now() >= until:
        state = "running" if step.has_begun else "not started"
        hint = f"see foresail check explain {key.name} -n {key.namespace}"
        raise CommandError(f"check {key}: timed out; it is {state}", hint)


def _is_since(last: Mapping[str, Any], request: str) -> bool:
    """Whether a run that was never seen running started after the request, whose value is its time."""
    started = instant(str(last.get("started", "")))
    requested = instant(request)
    return started is not None and requested is not None and started >= requested


def report_result(key: Key, last: Mapping[str, Any]) -> int:
    """Return 0 if a check has passed; otherwise say why not."""
    if last.get("result") == "Pass":
        print(f"Check {key} passed: {last.get('message')}.", file=sys.stderr)
        return 0
    cause = f"{last.get('reason', 'NoResult')}: {last.get('message', 'its Backup was deleted')}"
    raise CommandError(f"check {key} failed: {cause}", f"see foresail check explain {key.name} -n {key.namespace}")
