"""How far the data of the volumes of a Velero Backup is, for who may list them in Velero's namespace."""

from datetime import datetime, timedelta

import msgspec

from foresail.api import mirrored, velero
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.transfer import Transfer, transfer_of
from foresail.plan import Key, Kind
from foresail.selfservice.rows.velero import movement_row, movements

_EVERY = timedelta(seconds=5)
_KINDS = (velero.DATA_UPLOAD, velero.POD_VOLUME_BACKUP)


class VolumeData:
    """Reads how far the data of one Backup is, seldom enough to follow it for hours."""

    def __init__(self, cluster: Cluster, backup: Key) -> None:
        self._cluster = cluster
        self._backup = backup
        self._kinds = list(_KINDS)
        self._known: Transfer | None = None
        self._read_again: datetime | None = None

    async def transfer(self, phase: str, now: datetime) -> Transfer | None:
        """Return how far the data is; None while nothing is moved, and if the caller may not know."""
        if phase in velero.WAITING or phase in velero.TERMINAL:
            return None
        if self._read_again is None or now >= self._read_again:
            self._read_again = now + _EVERY
            self._known = transfer_of(*[await self._counts(kind) for kind in list(self._kinds)])
        return self._known

    async def _counts(self, kind: Kind) -> dict[str, int]:
        label = velero.BACKUP_NAME_LABEL
        name = velero.label_of(self._backup.name)
        try:
            found = await self._cluster.listed(kind, self._backup.namespace, f"{label}={name}")
        except CommandError:  # the wait goes on without bytes; what is wrong with the cluster, the next read says
            self._kinds.remove(kind)
            return {}
        rows = [movement_row(msgspec.json.decode(raw, type=mirrored.Movement), label) for raw in found]
        return dict(movements(rows, with_bytes=True))
