"""Who runs, who waits, and which share of Velero's time each namespace has by the weight of its policy."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from foresail.api.velero import WAITING
from foresail.cli.policy.usage import Usage
from foresail.cli.tenant.tenant_request import TenantRequest


@dataclass(frozen=True, slots=True)
class TenantShare:
    """A namespace with open requests."""

    namespace: str
    policy: str  # empty if none applies
    weight: int
    share: float  # of Velero's time, while all of these namespaces wait
    running: int
    waiting: int
    stored: tuple[int | None, int | None]  # backups (None: unknown), and the quota


def is_running(request: TenantRequest) -> bool:
    """Whether Velero works on an open request; a Velero object that only waits in Velero's queue does not run."""
    return request.is_open and request.velero.phase not in WAITING


def in_order(requests: Iterable[TenantRequest]) -> list[TenantRequest]:
    """Return open requests as they are served: what runs, then by position in the queue, then by age."""
    return sorted(requests, key=_rank)


def _rank(request: TenantRequest) -> tuple[bool, bool, int, str, str]:
    created = request.request.metadata.creation_timestamp
    age = created.isoformat() if created else ""
    return not is_running(request), not request.position, request.position, age, str(request.key)


def tenant_shares(requests: Sequence[TenantRequest], usages: Iterable[Usage]) -> list[TenantShare]:
    """Return the share of each namespace that has open requests, the largest first."""
    known = {usage.namespace: usage for usage in usages}
    every = Counter(request.key.namespace for request in requests)
    running = Counter(request.key.namespace for request in requests if is_running(request))
    names = sorted(every)
    weights = {name: known[name].weight if name in known else 1 for name in names}
    total = sum(weights.values())
    shares = [
        TenantShare(
            name,
            known[name].policy if name in known else "",
            weights[name],
            weights[name] / total if total else 0.0,
            running[name],
            every[name] - running[name],
            known[name].shares["stored"] if name in known else (None, None),
        )
        for name in names
    ]
    return sorted(shares, key=lambda share: (-share.share, share.namespace))
