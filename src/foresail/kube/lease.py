"""Campaigns for the Lease: sends the requests that the candidate's state machine asks for."""

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import assert_never

import msgspec

from foresail.kube.candidate import NEVER, AcquireLease, Candidate, LeaseTiming, ReadLease, Record, Wait
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
    annotations: dict[str, str] | None = None


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


class HistoryRewoundError(RuntimeError):
    """The API server has an older state than before: etcd was restored from a backup."""


class Leadership:
    """Campaigns for a Lease as long as `run` runs; `is_leader` needs no request.

    It needs its own client, so that a renewal never waits behind the controllers' writes. `annotations` are written
    with a renewal if they differ, never with its creation: whoever may read the Lease reads them, as fresh as it is.
    """

    def __init__(
        self,
        client: Client,
        lease: Key,
        identity: str,
        now: Callable[[], datetime],
        timing: LeaseTiming | None = None,
        annotations: Callable[[], Mapping[str, str]] = dict,
    ) -> None:
        self.lease = lease
        self._annotations = annotations
        self._written: dict[str, str] = {}  # the annotations in the cluster
        self._client = client
        self._now = now
        self._candidate = Candidate(identity, timing or LeaseTiming())
        self._leading = asyncio.Event()
        self._following = asyncio.Event()
        self._following.set()
        self._last_failure: Failure | None = None

    @property
    def is_leader(self) -> bool:
        """Whether this process may write now: true only before the renew deadline."""
        return self._candidate.is_leader(steady())

    async def until_leader(self) -> None:
        """Return when this process is the leader."""
        await self._leading.wait()

    async def until_follower(self) -> None:
        """Return when this process does not lead."""
        await self._following.wait()

    async def run(self) -> None:
        """Acquire the Lease, renew it, and campaign again if it is lost; until cancelled."""
        while True:
            now = steady()
            self._announce(now)
            if self._candidate.is_rewound:
                problem = f"Lease {self.lease} is older than before, so etcd was restored to an earlier state"
                raise HistoryRewoundError(f"{problem}; everything must be read again")
            step = self._candidate.next_step(now)
            match step:
                case Wait():
                    await asyncio.sleep(step.seconds)
                case ReadLease():
                    await self._read()
                case AcquireLease():
                    await self._acquire(step.replacing)
                case _:
                    assert_never(step)

    async def release(self) -> None:
        """Release the Lease so that another replica acquires it at once; call it after `run` and all writes."""
        if not self.is_leader:
            return
        self._candidate = self._candidate.resigned()  # before the request, whatever its result
        self._set_leading(is_leader=False)
        for _ in range(2):  # twice if the last renewal got no answer, so that our resourceVersion is old
            if self._candidate.is_outdated:
                await self._read()
            observed = self._candidate.observed
            if self._candidate.is_outdated or observed is None or not self._candidate.owns(observed):
                break
            if await self._write(observed, {"holderIdentity": "", "renewTime": _text(self._now())}) is not None:
                _log.info("released Lease %s", self.lease)
                return
        _log.warning("could not release Lease %s; it expires automatically", self.lease)

    async def _read(self) -> None:
        answer = await self._limited(self._client.get(LEASE, self.lease, _Lease))
        if not isinstance(answer, Failure):
            self._candidate = self._candidate.after_read(answer.record(), steady())
        elif answer.cause is Cause.NOT_FOUND:
            self._candidate = self._candidate.after_read(None, steady())
        else:
            self._failed(answer)

    async def _acquire(self, replacing: Record | None) -> None:
        mine = self._candidate
        stamp = _text(self._now())
        taken = replacing is None or replacing.holder != mine.identity
        spec = {
            "holderIdentity": mine.identity,
            "renewTime": stamp,
            "acquireTime": stamp if replacing is None or taken else replacing.acquired or stamp,
            "leaseTransitions": 0 if replacing is None else replacing.transitions + taken,
            "leaseDurationSeconds": mine.timing.duration,
        }
        self._candidate = mine.before_write(stamp)
        sent = steady()
        record = await self._write(replacing, spec)
        if record is not None:
            self._candidate = self._candidate.after_write(record, sent, steady())

    async def _write(self, replacing: Record | None, spec: Body) -> Record | None:
        """Write the Lease if it is still as observed; return its new content, or None on failure."""
        annotations = dict(self._annotations())
        known = {"annotations": annotations} if annotations.items() - self._written.items() else {}
        if replacing is None or not replacing.version:
            metadata = {"name": self.lease.name, "namespace": self.lease.namespace}  # the fence admits a plain one
            body = {"apiVersion": LEASE.api_version, "kind": LEASE.name, "metadata": metadata, "spec": spec}
            request = self._client.create(LEASE, self.lease, body, _Lease)
        else:
            body = {"metadata": {"resourceVersion": replacing.version, **known}, "spec": spec}
            request = self._client.merge(LEASE, self.lease, body, _Lease)
        answer = await self._limited(request)
        if isinstance(answer, Failure):
            self._failed(answer)
            return None
        return answer.record()

    async def _limited(self, request: Awaitable[_Lease | Failure]) -> _Lease | Failure:
        """Wait for an answer as long as one request may take, and never beyond the deadline."""
        now = steady()
        limit = self._candidate.timing.request_timeout
        if self._candidate.is_leader(now):
            limit = min(limit, self._candidate.leader_until - now)
        try:
            async with asyncio.timeout(limit):
                answer = await request
        except TimeoutError:
            return Failure(Cause.UNREACHABLE, f"no answer within {limit:.1f} s")
        if not isinstance(answer, Failure):
            self._last_failure = None
            self._written = answer.metadata.annotations or {}
        return answer

    def _failed(self, why: Failure) -> None:
        if self._last_failure is None or self._last_failure.cause is not why.cause:
            _log.warning("request for Lease %s failed, retrying: %s", self.lease, why)
        self._last_failure = why
        overtaken = why.cause in (Cause.CONFLICT, Cause.ALREADY_EXISTS)
        self._candidate = self._candidate.after_failure(steady(), overtaken=overtaken)

    def _announce(self, now: float) -> None:
        """Notify waiters and log when this process becomes leader or loses leadership."""
        mine = self._candidate
        if mine.is_leader(now) == self._leading.is_set():
            return
        self._set_leading(is_leader=mine.is_leader(now))
        if mine.is_leader(now):
            _log.info("%s became leader: it holds Lease %s", mine.identity, self.lease)
        elif mine.leader_until == NEVER and mine.observed is not None:
            text = "%s lost leadership: Lease %s %s"
            _log.warning(text, mine.identity, self.lease, self._new_holder(mine.observed))
        else:
            late = now - mine.leader_until + mine.timing.renew_deadline
            why = f"paused or disconnected ({self._last_failure})" if self._last_failure else "paused"
            text = "%s lost leadership: its last renewal of Lease %s was sent %.1f s ago, so it was %s"
            _log.warning(text, mine.identity, self.lease, late, why)

    def _new_holder(self, record: Record) -> str:
        if record.holder == self._candidate.identity:
            return "was acquired by another process with the same identity"
        return f"was acquired by {record.holder}" if record.holder else "was released by someone else"

    def _set_leading(self, *, is_leader: bool) -> None:
        now, before = (self._leading, self._following) if is_leader else (self._following, self._leading)
        now.set()
        before.clear()


def _text(instant: datetime) -> str:
    return instant.strftime("%Y-%m-%dT%H:%M:%S.%fZ")
