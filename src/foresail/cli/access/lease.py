"""Which replica of the operator holds its Lease."""

from datetime import datetime, timedelta

import msgspec

_SILENCE = timedelta(minutes=1)  # a Lease is renewed every few seconds; two clocks may differ by some more
BY_SERVER_TIME = timedelta(seconds=15)
"""How long a Lease of 10 s counts, by the API server's clock, from which the operator's may differ by some seconds."""


class LeaseSpec(msgspec.Struct, rename="camel"):
    """Who holds a Lease, and since when it was not renewed."""

    holder_identity: str | None = None
    renew_time: datetime | None = None


class Lease(msgspec.Struct):
    """The Lease of the operator."""

    spec: LeaseSpec = msgspec.field(default_factory=LeaseSpec)


def leader(lease: Lease | None, instant: datetime, silence: timedelta = _SILENCE) -> str:
    """Return who holds the operator's Lease; empty if no replica does, or has not renewed it for a while."""
    if lease is None or lease.spec.renew_time is None or instant - lease.spec.renew_time > silence:
        return ""
    return lease.spec.holder_identity or ""
