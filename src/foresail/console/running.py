"""Something that runs: how fast its data moves, and how long it takes beside the last one of its like."""

from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

from foresail.api.instants import instant
from foresail.api.velero import COMPLETED
from foresail.cli.output.words import Throughput, compact
from foresail.cli.rollback.rollbacks import Seen
from foresail.cli.tenant.tenant_request import TenantRequest

MOST = 64
"""Requests whose throughput one viewer measures at once."""


class Rates:
    """Measures the throughput of the requests that one viewer follows, from what the pages read anyway."""

    def __init__(self) -> None:
        self._meters = dict[str, Throughput]()

    def observe(self, request: TenantRequest, at: datetime) -> float | None:
        """Take what was read of a request; return its bytes per second, None if they are not known."""
        uid = request.request.metadata.uid
        meter = self._meters.pop(uid, None) or Throughput()
        if request.transfer is None:
            return None
        self._meters[uid] = meter  # the last used is the last
        while len(self._meters) > MOST:
            del self._meters[next(iter(self._meters))]
        return meter.observe(request.transfer, at)


def length_of(request: TenantRequest) -> timedelta | None:
    """Return how long Velero took for a request; None if it has not ended."""
    ended = instant(request.velero.completion_timestamp or "")
    return ended - request.started if ended is not None and request.started is not None else None


def last_like(request: TenantRequest, others: Iterable[TenantRequest]) -> TenantRequest | None:
    """Return the newest complete request with the same spec, whatever backup a restore is from; None without one."""
    alike = [
        other
        for other in others
        if other.key != request.key
        and other.velero.phase == COMPLETED
        and length_of(other) is not None
        and _shape(other) == _shape(request)
    ]
    return max(alike, key=lambda other: other.velero.start_timestamp or "", default=None)


def _shape(request: TenantRequest) -> dict[str, Any]:
    return {name: value for name, value in request.spec.items() if name != "backupName"}


def elapsed(request: TenantRequest, last: TenantRequest | None, at: datetime) -> str:
    """Return how long a request runs or ran, beside the last of its like."""
    if request.started is None:
        return "n/a"
    ended = length_of(request)
    if ended is not None:
        return compact(ended)
    return _beside(at - request.started, last.key.name if last else "", length_of(last) if last else None)


def rollback_length(seen: Seen, at: datetime) -> timedelta | None:
    """Return how long a Rollback runs or ran, by its steps; None before the first."""
    steps = seen.status.steps
    if not steps:
        return None
    ended = steps[-1].finished if seen.has_ended else None
    return (ended or at) - steps[0].started


def rollback_elapsed(seen: Seen, others: Sequence[Seen], at: datetime) -> str:
    """Return how long a Rollback runs or ran, beside the last complete one of its namespace."""
    length = rollback_length(seen, at)
    if length is None:
        return "n/a"
    if seen.has_ended:
        return compact(length)
    done = [other for other in others if _is_like(other, seen)]
    last = max(done, key=lambda other: other.status.steps[0].started, default=None)
    return _beside(length, last.key.name if last else "", rollback_length(last, at) if last else None)


def _is_like(other: Seen, seen: Seen) -> bool:
    is_done = other.status.phase == "Completed" and bool(other.status.steps) and not other.spec.dry_run
    return is_done and other.key != seen.key and other.key.namespace == seen.key.namespace


def _beside(length: timedelta, name: str, last: timedelta | None) -> str:
    return compact(length) + (f"; the last one, {name}, took {compact(last)}" if last is not None else "")
