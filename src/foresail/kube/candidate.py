"""When a replica may take, keep and must leave a Lease: a state machine without I/O, on a steady clock alone.

```
              the Lease is free, and our write of it succeeded
FOLLOWING ──────────────────────────────────────────────────────→ LEADING ─┐ renewed: the deadline moves on
    ↑                                                                ↑─────┘
    └──── no renewal succeeded until the deadline, or someone else holds it
```
Why two never lead at once: the leader counts its deadline from the moment *before* it sent the renewal, a follower
counts the longer duration from the moment *after* it saw it, and no clock is compared with another one. A call
that failed may still arrive; it then meets another resourceVersion, or it renews what is ours anyway.

What is left is the instant between the check and the write: a process that is stopped exactly there and continued
minutes later sends that one write. It does no harm by itself: a name that is taken is taken, an old
resourceVersion is refused, a UID that is gone is gone. That is why every Plan must be safe to repeat.
"""

from dataclasses import dataclass, replace

NEVER = float("-inf")
_STAMPS = 64


@dataclass(frozen=True, slots=True)
class Terms:
    """How long a Lease lasts, by when a leader must have renewed it, and how often it is tried; in seconds."""

    duration: int = 10
    renew_deadline: float = 7.0
    retry: float = 1.0

    def __post_init__(self) -> None:
        if not self.duration > self.renew_deadline > 2 * self.retry > 0:
            raise ValueError(f"{self}: the duration must exceed the deadline, and the deadline two tries")

    @property
    def call(self) -> float:
        """How long one request may take, so that another can follow before the deadline."""
        return self.renew_deadline / 3


@dataclass(frozen=True, slots=True)
class Record:
    """What a Lease says; an empty holder has released it, an empty version is one that was deleted."""

    holder: str
    renewed: str  # the holder's wall clock: for people, and a mark that changes; no clock is compared with it
    transitions: int
    acquired: str
    duration: int
    version: str


@dataclass(frozen=True, slots=True)
class Look:
    """Read the Lease."""


@dataclass(frozen=True, slots=True)
class Hold:
    """Write ourselves into the Lease if it still is what was seen; create it if nothing was."""

    over: Record | None


@dataclass(frozen=True, slots=True)
class Wait:
    """Do nothing for so many seconds."""

    seconds: float


@dataclass(frozen=True, slots=True)
class Candidate:
    """All that one process knows about the Lease: a value that is replaced by each answer, and never asks a clock."""

    identity: str
    terms: Terms = Terms()
    seen: Record | None = None  # as it was last read or written
    since: float = NEVER  # when holder, renewal and transitions were first seen to be so
    stamps: tuple[str, ...] = ()  # renewals that are ours, those among them that may yet arrive
    leads_until: float = NEVER
    unsure: bool = True  # nobody knows what the Lease says now
    not_before: float = NEVER  # the next request

    def leads(self, now: float) -> bool:
        """Tell whether this process may write."""
        return now < self.leads_until

    def move(self, now: float) -> Look | Hold | Wait:
        """Say what to do now."""
        if self.leads(now):
            if now < self.not_before:
                return Wait(min(self.not_before, self.leads_until) - now)
            return Look() if self.unsure else Hold(self.seen)
        if not self.unsure and self.is_free(now):
            return Hold(self.seen)  # however long ago it was read: it is written only if nothing changed since
        if now < self.not_before:
            return Wait((self.not_before if self.unsure else min(self.not_before, self.expires)) - now)
        return Look()

    def is_free(self, now: float) -> bool:
        """Tell whether the Lease may be taken: it is nobody's, our own, or was not renewed for its whole duration."""
        return self.seen is None or not self.seen.holder or self.owns(self.seen) or now >= self.expires

    @property
    def expires(self) -> float:
        """When the Lease runs out if nobody is seen to renew it: the holder's own promise counts, not our terms."""
        return self.since + (self.seen.duration if self.seen and self.seen.duration else self.terms.duration)

    def looked(self, found: Record | None, now: float) -> "Candidate":
        """Take in what was read; None if there is no Lease."""
        if found is None and self.seen is not None:
            found = replace(self.seen, version="")  # deleted: its holder may not know yet, and keeps its time
        first = self.seen is None
        unchanged = found is not None and self.seen is not None and _signs(found) == _signs(self.seen)
        stamps = self.stamps
        if first and found is not None and found.holder == self.identity:
            stamps += (found.renewed,)  # this process has just begun, so whoever wrote that is gone: it is ours at once
        seen = replace(self, seen=found, since=self.since if unchanged else now, stamps=stamps, unsure=False)
        if found is None or seen.owns(found):
            return replace(seen, not_before=now)
        return replace(seen, leads_until=NEVER, not_before=now + self.terms.retry)

    def sending(self, stamp: str) -> "Candidate":
        """Remember a renewal before it is sent: it is ours even if no answer comes."""
        # Old ones are dropped: the API server gives up on a request after a minute, and one is sent each second.
        latest = (*self.stamps, stamp)[-_STAMPS:]
        present = (self.seen.renewed,) if self.seen is not None and self.owns(self.seen) else ()
        return replace(self, stamps=tuple(dict.fromkeys((*present, *latest))))

    def held(self, record: Record, sent: float, now: float) -> "Candidate":
        """Take in that our write was done; the deadline counts from before it was sent."""
        until = sent + self.terms.renew_deadline
        mine = replace(self, seen=record, since=now, stamps=(record.renewed,), leads_until=until)
        return replace(mine, unsure=False, not_before=sent + self.terms.retry)

    def failed(self, now: float, *, overtaken: bool) -> "Candidate":
        """Take in that a request failed; it may have been done all the same, so the next one is a look.

        That look comes at once if somebody else's write was earlier, and otherwise after a pause.
        """
        return replace(self, unsure=True, not_before=now if overtaken else now + self.terms.retry)

    def resigned(self) -> "Candidate":
        """Lead no longer."""
        return replace(self, leads_until=NEVER)

    def owns(self, record: Record) -> bool:
        """Tell whether it was this process that wrote the record."""
        # The name alone does not say so: a second process under the same name must not share the Lease with us.
        return record.holder == self.identity and record.renewed in self.stamps


def _signs(record: Record) -> tuple[str, str, int]:
    """Return what changes when a holder is alive; a label that someone puts on the Lease is no sign of life."""
    return record.holder, record.renewed, record.transitions
