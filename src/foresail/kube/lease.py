"""Who of several replicas may write: the one that holds a Lease; asks and writes what the candidate says."""

import asyncio
import logging
from collections.abc import Awaitable, Callable
from datetime import datetime
from typing import assert_never

import msgspec

from foresail.kube.candidate import NEVER, Candidate, Hold, Look, Record, Terms, Wait
from foresail.kube.client import Client
from foresail.kube.clock import steady
from foresail.kube.failures import Cause, Failure
from foresail.plan import Body, Key, Kind

LEASE = Kind("coordination.k8s.io", "v1", "leases", "Lease")
_log = logging.getLogger(__name__)


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None
    acquire_time: str | None = None
    lease_transitions: int | None = None
    lease_duration_seconds: int | None = None


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str


class _Lease(msgspec.Struct):
    metadata: _Metadata
    spec: _Spec = msgspec.field(default_factory=_Spec)

    def record(self) -> Record:
        spec = self.spec
        return Record(
            spec.holder_identity or "",
            spec.renew_time or "",
            spec.lease_transitions or 0,
            spec.acquire_time or "",
            spec.lease_duration_seconds or 0,
            self.metadata.resource_version,
        )


class Leadership:
    """Stands for a Lease as long as `run` runs, and stands again after each loss; `is_leader` asks nobody.

    Give it a client of its own: a renewal must not wait behind the writes of the controllers.
    """

    def __init__(
        self, client: Client, lease: Key, identity: str, now: Callable[[], datetime], terms: Terms | None = None
    ) -> None:
        self.lease = lease
        self._client = client
        self._now = now
        self._candidate = Candidate(identity, terms or Terms())
        self._leading, self._following = asyncio.Event(), asyncio.Event()
        self._following.set()
        self._trouble: Failure | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this process may write now: true only before the deadline, whatever else is going on."""
        return self._candidate.leads(steady())

    async def until_leader(self) -> None:
        """Return when this process leads."""
        await self._leading.wait()

    async def until_follower(self) -> None:
        """Return when this process does not lead."""
        await self._following.wait()

    async def run(self) -> None:
        """Get the Lease, keep it, and if it is lost stand for it again; until cancelled."""
        while True:
            now = steady()
            self._tell(now)
            move = self._candidate.move(now)
            match move:
                case Wait():
                    await asyncio.sleep(move.seconds)
                case Look():
                    await self._look()
                case Hold():
                    await self._hold(move.over)
                case _:
                    assert_never(move)

    async def release(self) -> None:
        """Give the Lease up so that another takes it at once; call it when `run` has ended and nothing is written."""
        if not self.is_leader:
            return
        self._candidate = self._candidate.resigned()  # first, and whatever becomes of the request
        self._show(leads=False)
        for _ in range(2):  # again if the last renewal got no answer, and the version that we know is old
            if self._candidate.unsure:
                await self._look()
            seen = self._candidate.seen
            if self._candidate.unsure or seen is None or not self._candidate.owns(seen):
                break
            if await self._write(seen, {"holderIdentity": "", "renewTime": _text(self._now())}) is not None:
                _log.info("released the Lease %s", self.lease)
                return
        _log.warning("the Lease %s could not be released and runs out by itself", self.lease)

    async def _look(self) -> None:
        answer = await self._limited(self._client.get(LEASE, self.lease, _Lease))
        if not isinstance(answer, Failure):
            self._candidate = self._candidate.looked(answer.record(), steady())
        elif answer.cause is Cause.NOT_FOUND:
            self._candidate = self._candidate.looked(None, steady())
        else:
            self._failed(answer)

    async def _hold(self, over: Record | None) -> None:
        mine = self._candidate
        stamp = _text(self._now())
        taken = over is None or over.holder != mine.identity
        spec = {
            "holderIdentity": mine.identity,
            "renewTime": stamp,
            "acquireTime": stamp if over is None or taken else over.acquired or stamp,
            "leaseTransitions": 0 if over is None else over.transitions + taken,
            "leaseDurationSeconds": mine.terms.duration,
        }
        self._candidate = mine.sending(stamp)
        sent = steady()
        record = await self._write(over, spec)
        if record is not None:
            self._candidate = self._candidate.held(record, sent, steady())

    async def _write(self, over: Record | None, spec: Body) -> Record | None:
        """Write into the Lease if it still is what was seen; return what it says now, or None if that failed."""
        if over is None or not over.version:
            metadata = {"name": self.lease.name, "namespace": self.lease.namespace}
            body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": spec}
            request = self._client.create(LEASE, self.lease, body, _Lease)
        else:
            body = {"metadata": {"resourceVersion": over.version}, "spec": spec}
            request = self._client.merge(LEASE, self.lease, body, _Lease)
        answer = await self._limited(request)
        if isinstance(answer, Failure):
            self._failed(answer)
            return None
        return answer.record()

    async def _limited(self, request: Awaitable[_Lease | Failure]) -> _Lease | Failure:
        """Wait for an answer as long as one call may take, and never beyond the deadline."""
        now = steady()
        left = self._candidate.leads_until - now if self._candidate.leads(now) else self._candidate.terms.call
        limit = min(left, self._candidate.terms.call)
        try:
            async with asyncio.timeout(limit):
                answer = await request
        except TimeoutError:
            return Failure(Cause.UNREACHABLE, f"no answer within {limit:.1f} s")
        if not isinstance(answer, Failure):
            self._trouble = None
        return answer

    def _failed(self, why: Failure) -> None:
        if self._trouble is None or self._trouble.cause is not why.cause:
            _log.warning("the Lease %s: %s", self.lease, why)
        self._trouble = why
        overtaken = why.cause in (Cause.CONFLICT, Cause.ALREADY_EXISTS)
        self._candidate = self._candidate.failed(steady(), overtaken=overtaken)

    def _tell(self, now: float) -> None:
        """Let everyone know when this process has begun to lead, or ceased to."""
        mine = self._candidate
        if mine.leads(now) == self._leading.is_set():
            return
        self._show(leads=mine.leads(now))
        if mine.leads(now):
            _log.info("%s leads now: it holds the Lease %s", mine.identity, self.lease)
        elif mine.leads_until == NEVER and mine.seen is not None:
            _log.warning("%s leads no longer: %s the Lease %s", mine.identity, self._who_took(mine.seen), self.lease)
        else:
            late = now - mine.leads_until + mine.terms.renew_deadline
            why = f"paused, or cut off ({self._trouble})" if self._trouble else "paused"
            text = "%s leads no longer: its last renewal of the Lease %s was sent %.1f s ago, so it was %s"
            _log.warning(text, mine.identity, self.lease, late, why)

    def _who_took(self, record: Record) -> str:
        if record.holder == self._candidate.identity:
            return "another process under the same name has taken"
        return f"{record.holder} has taken" if record.holder else "somebody has emptied"

    def _show(self, *, leads: bool) -> None:
        now, before = (self._leading, self._following) if leads else (self._following, self._leading)
        now.set()
        before.clear()


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
