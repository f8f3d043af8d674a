"""What ended with Velero's server, and which namespaces wait for it: Velero may be dying of what they ask for.

Velero runs backups and restores beside each other, and says of all of them that it found them unfinished. Who is only
there when it ends must not wait for whoever makes it end. So what ran beside an object of another namespace counts
against the namespace that was there more often; a backup and a restore that were there as often count against nobody.
"""

from datetime import datetime, timedelta

import msgspec

from foresail.deletion import INTERRUPTED
from foresail.selfservice.rows.velero import VeleroRow, glimpse

PAUSES = (timedelta(hours=1), timedelta(hours=6), timedelta(hours=24))
"""How long a namespace waits whose second, third and further ones ended with Velero's server within a day."""

_DAY = timedelta(hours=24)
_REMEMBERED = 2 * _DAY  # the longest pause, and the day before it
_ONE_START = timedelta(minutes=1)  # the server finds everything unfinished within that time


class _Interruption(msgspec.Struct, frozen=True):
    namespace: str  # empty for one of administrators
    is_restore: bool
    at: datetime


class Interruptions:
    """What Velero's server did not survive, of all namespaces; shared by the windows of backups and restores."""

    def __init__(self) -> None:
        self._known: dict[str, _Interruption] = {}  # by the name of Velero's object

    def note(self, row: VeleroRow) -> bool:
        """Take the end of a Velero object; return whether it ended with the server."""
        status = glimpse(row.mirror)
        if INTERRUPTED not in status.failure_reason:
            return False
        at = status.completion_timestamp or status.start_timestamp or row.created
        namespace = row.owner.namespace if row.owner is not None and row.request_uid else ""
        self._known[row.key.name] = _Interruption(namespace, bool(row.source), at)
        newest = max(interruption.at for interruption in self._known.values())
        self._known = {
            name: interruption for name, interruption in self._known.items() if interruption.at > newest - _REMEMBERED
        }
        return True

    def barred_until(self, namespace: str, *, restores: bool) -> datetime | None:
        """Return until when the backups, or the restores, of a namespace wait; None if they do not."""
        own = [
            interruption
            for interruption in self._known.values()
            if (interruption.namespace, interruption.is_restore) == (namespace, restores)
        ]
        ends = sorted(interruption.at for interruption in own if self._is_to_blame(interruption))
        if not ends:
            return None
        number = sum(end > ends[-1] - _DAY for end in ends)
        return None if number == 1 else ends[-1] + PAUSES[min(number - 2, len(PAUSES) - 1)]

    def _is_to_blame(self, interruption: _Interruption) -> bool:
        """Whether nothing that ran beside it explains the end as well, or better."""
        beside = [
            other
            for other in self._known.values()
            if other.namespace != interruption.namespace and abs(other.at - interruption.at) <= _ONE_START
        ]
        number = self._count(interruption)
        return not any(
            (other := self._count(neighbour)) > number
            or (other == number and neighbour.is_restore != interruption.is_restore)
            for neighbour in beside
        )

    def _count(self, interruption: _Interruption) -> int:
        """Return how often a namespace was there within the day before; once for each start of the server."""
        ends = sorted(
            other.at
            for other in self._known.values()
            if other.namespace == interruption.namespace and abs(other.at - interruption.at) <= _DAY
        )
        return sum(1 for number, end in enumerate(ends) if not number or end - ends[number - 1] > _ONE_START)
