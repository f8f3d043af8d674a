"""Leader election as a state machine without I/O: when a replica may acquire, must renew and has lost the Lease.

```
              the Lease is free, and our write succeeded
FOLLOWER ──────────────────────────────────────────────────→ LEADER ─┐ renewed: the deadline moves on
    ↑                                                            ↑───┘
    └──── no renewal succeeded before the deadline, or someone else holds it
```
Two replicas never lead at once: the leader counts its deadline from *before* it sent the renewal, a follower counts
the longer duration from *after* it observed it, and no clock is compared with another. A request that failed may still
arrive; it then fails on its resourceVersion, or renews a Lease that is ours anyway.

If the Lease has an older resourceVersion than before, etcd was restored: whatever this process knows comes from a
history that no longer exists. It leads no more, and must end.

One gap remains: a process that is paused between the check and the write, and resumed minutes later, sends that one
write. It does no harm: an existing name, an old resourceVersion or an old UID makes it fail. So every Plan must be safe
to repeat.
"""

from dataclasses import dataclass, replace

NEVER = float("-inf")
_STAMPS = 64


@dataclass(frozen=True, slots=True)
class LeaseTiming:
    """The duration of a Lease, the leader's renew deadline and the retry period, in seconds."""

    duration: int = 10
    renew_deadline: float = 7.0
    retry_period: float = 1.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > 2 * self.retry_period > 0:
            raise ValueError(f"{self}: the duration must exceed the deadline, and the deadline two tries")

    @property
    def request_timeout(self) -> float:
        """How long one request may take so that two more fit before the deadline."""
        return self.renew_deadline / 3


@dataclass(frozen=True, slots=True)
class Record:
    """The content of a Lease; without a holder it was released, without a version it was deleted."""

    holder: str
    renewed: str  # by the holder's wall clock; used only to notice a change
    transitions: int
    acquired: str
    duration: int
    version: str


@dataclass(frozen=True, slots=True)
class ReadLease:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class AcquireLease:
    """Write our identity into the Lease if it is still as observed; create it if there was none."""

    replacing: Record | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Wait for some seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """What one process knows about the Lease: an immutable value that each answer replaces."""

    identity: str
    timing: LeaseTiming = LeaseTiming()
    observed: Record | None = None  # as it was last read or written
    observed_at: float = NEVER  # when holder, renewal and transitions were first observed as they are
    own_renewals: tuple[str, ...] = ()  # our renewals, including those that may still arrive
    leader_until: float = NEVER
    is_outdated: bool = True  # the Lease may differ from `observed`
    next_request: float = NEVER  # the earliest time
    newest: int = 0  # the highest resourceVersion of the Lease that was read or written
    is_rewound: bool = False  # an older one came after it: etcd was restored to an earlier state

    def is_leader(self, now: float) -> bool:
        """Return whether this process may write."""
        return now < self.leader_until

    def next_step(self, now: float) -> ReadLease | AcquireLease | Wait:
        """Return what to do now."""
        if self.is_leader(now):
            if now < self.next_request:
                return Wait(min(self.next_request, self.leader_until) - now)
            return ReadLease() if self.is_outdated else AcquireLease(self.observed)
        if not self.is_outdated and self.is_free(now):
            return AcquireLease(self.observed)  # safe however old it is: the write fails if the Lease has changed
        if now < self.next_request:
            return Wait((self.next_request if self.is_outdated else min(self.next_request, self.expires)) - now)
        return ReadLease()

    def is_free(self, now: float) -> bool:
        """Return whether the Lease may be acquired: it has no holder, is our own, or has expired."""
        return self.observed is None or not self.observed.holder or self.owns(self.observed) or now >= self.expires

    @property
    def expires(self) -> float:
        """When the Lease expires without a renewal, by the duration that its holder wrote."""
        duration = self.observed.duration if self.observed is not None else 0
        return self.observed_at + (duration or self.timing.duration)

    def after_read(self, record: Record | None, now: float) -> "Candidate":
        """Return the state after the Lease was read; None if there is no Lease."""
        if record is None and self.observed is not None:
            record = replace(self.observed, version="")  # deleted: its holder may still lead until it expires
        first = self.observed is None
        unchanged = record is not None and self.observed is not None and _heartbeat(record) == _heartbeat(self.observed)
        own_renewals = self.own_renewals
        if first and record is not None and record.holder == self.identity:
            own_renewals += (record.renewed,)  # this process has just started, so its predecessor wrote it: it is ours
        observed_at = self.observed_at if unchanged else now
        updated = replace(self, observed=record, observed_at=observed_at, own_renewals=own_renewals, is_outdated=False)
        updated = _seen(updated, record.version if record is not None else "")
        if updated.is_rewound:
            return updated
        if record is None or updated.owns(record):
            return replace(updated, next_request=now)
        return replace(updated, leader_until=NEVER, next_request=now + self.timing.retry_period)

    def before_write(self, stamp: str) -> "Candidate":
        """Return the state before a renewal is sent: it is ours even if no answer comes."""
        # The oldest are dropped: the API server times a request out after a minute, and one is sent each second.
        latest = (*self.own_renewals, stamp)[-_STAMPS:]
        present = (self.observed.renewed,) if self.observed is not None and self.owns(self.observed) else ()
        return replace(self, own_renewals=tuple(dict.fromkeys((*present, *latest))))

    def after_write(self, record: Record, sent: float, now: float) -> "Candidate":
        """Return the state after our write succeeded; the deadline counts from before it was sent."""
        until = sent + self.timing.renew_deadline
        mine = replace(self, observed=record, observed_at=now, own_renewals=(record.renewed,), leader_until=until)
        mine = replace(mine, is_outdated=False, next_request=sent + self.timing.retry_period)
        return _seen(mine, record.version)

    def after_failure(self, now: float, *, overtaken: bool) -> "Candidate":
        """Return the state after a request failed; it may have succeeded all the same, so a read follows.

        The read follows at once after a conflict, otherwise after the retry period.
        """
        return replace(self, is_outdated=True, next_request=now if overtaken else now + self.timing.retry_period)

    def resigned(self) -> "Candidate":
        """Return the state after leadership was given up."""
        return replace(self, leader_until=NEVER)

    def owns(self, record: Record) -> bool:
        """Return whether this process wrote the record."""
        # The identity is not enough: a second process with the same identity must not share the Lease.
        return record.holder == self.identity and record.renewed in self.own_renewals


def _seen(candidate: Candidate, version: str) -> Candidate:
    """Return the state after the Lease had a resourceVersion; one below the newest ends leadership at once."""
    number = int(version) if version.isdecimal() else candidate.newest
    if number < candidate.newest:
        return replace(candidate, is_rewound=True, leader_until=NEVER)
    return replace(candidate, newest=number)


def _heartbeat(record: Record) -> tuple[str, str, int]:
    """Return what changes while the holder is alive; other edits of the Lease, such as labels, do not count."""
    return record.holder, record.renewed, record.transitions
