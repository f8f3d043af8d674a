"""Who of many schedules at one time starts how much later: the delay of `spread`."""

from datetime import timedelta
from hashlib import sha256


def stable_delay(identity: str, longest: timedelta) -> timedelta:
    """Return the delay of a schedule, in whole seconds up to the longest: the same after every restart.

    The identity of a Schedule is its namespace and name, so that it keeps its delay if it is created again; that of a
    NonAdminSchedule is its UID, which its tenant cannot choose.
    """
    seconds = longest // timedelta(seconds=1)
    if seconds <= 0:
        return timedelta()
    return timedelta(seconds=int.from_bytes(sha256(identity.encode()).digest()[:8], "big") % (seconds + 1))
