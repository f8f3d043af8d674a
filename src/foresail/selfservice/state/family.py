"""Everything that is known of one family, backups or restores: stores, quota ledger, window and positions."""

from collections.abc import Hashable, Iterable, Iterator

from foresail.api import velero
from foresail.kube.controller import LowPriority
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.quota_ledger import QuotaLedger, QuotaQueue
from foresail.selfservice.queue.positions import NEAR, PositionReports, VeleroQueue
from foresail.selfservice.queue.window import Window
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import dangling, outcome, protection
from foresail.selfservice.requests.force_deleted import forced_at
from foresail.selfservice.requests.status import ACCEPTED, CREATED, DELETING
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import stem_of_run
from foresail.selfservice.rows.velero import MovementRow, VeleroRow

WINDOW = "window"
"""How the name of the key begins under which hand-overs are given up."""

_WOKEN = 16  # of those that wait for quota; each that cannot use it wakes others when it leaves


class FamilyState:
    """The requests of one family, Velero's objects for them, and who waits for what."""

    def __init__(self, family: Family, velero_namespace: str, window: Window, ledger: QuotaLedger) -> None:
        self.family = family
        self.window = window
        self.ledger = ledger
        self.quota_queue = QuotaQueue()
        self.requests = Store[RequestRow](
            {
                "namespace": lambda row: [row.key.namespace],
                "target": lambda row: [row.target] if row.target else [],
                "not accepted": lambda row: [] if row.status.velero.nacuuid else [True],
                "blocked by": _blocked_by,
                "ended": lambda row: [row.key.namespace] if family is RESTORES and outcome.has_ended(row) else [],
                "handed over from": lambda row: _source_of(row) if _awaits_hand_over(row) else [],
                "schedule": _schedule_of,
                "run of": _run_of,
                "restores": lambda row: _source_of(row) if not row.status.velero.nacuuid else [],
            }
        )
        self.velero = Store[VeleroRow](
            {"waits in": self._waits_in, "namespace uid": self._namespace_uid, "adoptable": _adoptable, "reads": _reads}
        )
        kinds = _MOVEMENTS[family.word]
        self.movements = {kind: Store[MovementRow]({"of": lambda row: [row.of]}) for kind in kinds}
        self.velero_queue, self.reports = VeleroQueue(), PositionReports()
        self.window_key = Key("", f"{WINDOW}/{family.kind.plural}")
        self._velero_namespace = velero_namespace

    def key(self, key: Key) -> Key:
        """Return the key under which a request is reconciled."""
        return self.family.queue_key(key)

    def keys(self, rows: Iterable[RequestRow]) -> Iterator[Key]:
        """Return the keys of requests."""
        return (self.key(row.key) for row in rows)

    def velero_key(self, name: str) -> Key:
        """Return the key of a Velero object."""
        return Key(self._velero_namespace, name)

    def is_in_velero(self, name: str) -> bool:
        """Whether Velero has an object of that name."""
        return self.velero_key(name) in self.velero

    # Who is reconciled when something becomes free

    def keys_short_of_quota(self, namespace: str) -> Iterator[Key]:
        """Return the first requests of a namespace that wait for quota."""
        return map(self.key, self.quota_queue.first(namespace, _WOKEN))

    def next_turn_keys(self) -> list[Key]:
        """Return the requests that may be handed over now."""
        self.window.queue.replay()
        return [self.key(self.window.queue.key(name)) for name in self.window.next_names()]

    def front_keys(self) -> list[Key]:
        """Return the requests at the front of our queue."""
        self.window.queue.replay()
        return [self.key(self.window.queue.key(name)) for name in self.window.queue.first(NEAR)]

    def queued_keys(self) -> Iterator[Key | LowPriority]:
        """Return every request whose position may have changed: the near ones at once, the others later."""
        queue = self.window.queue
        is_booked = self.reports.is_booked
        yield from self._keys_of_objects(self.velero_queue.first())
        yield from self.front_keys()
        farther = (name for name in self.velero_queue.rest() if not is_booked(name))
        yield from map(LowPriority, self._keys_of_objects(farther))  # thousands, which must not delay near ones
        yield from (LowPriority(self.key(queue.key(name))) for name in list(queue) if not is_booked(name))

    def _keys_of_objects(self, names: Iterable[str]) -> Iterator[Key]:
        """Return the requests for which Velero objects were made."""
        for name in names:
            row = self.velero.get(self.velero_key(name))
            if row is not None and row.owner is not None and row.request_uid:
                yield self.key(row.owner)

    # Velero objects whose namespace may be deleted

    def dangling_keys(self, rows: Iterable[VeleroRow]) -> Iterator[Key]:
        """Return the keys of the waiting Velero objects among some."""
        return (key for row in rows if (key := dangling.key_for(self.family, row)) is not None)

    def deleted_dangling_keys(self, row: VeleroRow) -> Iterator[Key]:
        """Return the key of a Velero object that was deleted, if it was made for a request."""
        key = dangling.deleted_key_for(self.family, row)
        return iter(() if key is None else (key,))

    def _waits_in(self, row: VeleroRow) -> list[Hashable]:
        key = dangling.key_for(self.family, row)
        return [] if key is None else list(filter(None, (key.namespace, row.target)))

    def _namespace_uid(self, row: VeleroRow) -> list[Hashable]:
        return [row.namespace_uid] if self.family is BACKUPS and dangling.is_recorded(row) else []


def _adoptable(row: VeleroRow) -> list[Hashable]:
    """Return by what a Backup that may be adopted is found: its namespace, its NonAdminBackup, or all of them."""
    return [True, row.owner.namespace, row.owner] if row.may_be_adopted and row.owner is not None else []


_MOVEMENTS = {
    BACKUPS.word: (velero.DATA_UPLOAD, velero.POD_VOLUME_BACKUP),
    RESTORES.word: (velero.DATA_DOWNLOAD, velero.POD_VOLUME_RESTORE),
}
"""What the data mover moves, and what is copied from the file systems of pods."""


def lacks_quota(row: RequestRow) -> bool:
    """Whether a request waits for quota."""
    accepted = row.status.condition(ACCEPTED)
    if accepted is None or accepted.reason != Reason.QUOTA_EXCEEDED:
        return False
    return forced_at(row.status) is None and not protection.is_protected(row.status)


def _blocked_by(row: RequestRow) -> list[Hashable]:
    """Return what a request waits for, apart from quota."""
    if forced_at(row.status) is not None:
        return [Reason.FORCE_DELETED]
    if protection.is_protected(row.status):
        return [Reason.DELETION_PROTECTED, (Reason.DELETION_PROTECTED, row.key.namespace)]
    accepted = row.status.condition(ACCEPTED)
    is_blocked = accepted is not None and accepted.reason == Reason.LOCATION_UNAVAILABLE
    return [Reason.LOCATION_UNAVAILABLE] if is_blocked else []


def _source_of(row: RequestRow) -> list[Hashable]:
    """Return the key of the backup that a restore is from."""
    return [Key(row.key.namespace, row.source)] if row.source else []


def _schedule_of(row: RequestRow) -> list[Hashable]:
    """Return the schedule that a backup was created for; a UID of another namespace is not from us."""
    return [(row.key.namespace, row.schedule_uid)] if row.schedule_uid else []


def _run_of(row: RequestRow) -> list[Hashable]:
    """Return the schedule whose run the name of a backup means, whoever created it."""
    name = stem_of_run(row.key.name)
    return [(row.key.namespace, name)] if name is not None else []


def _awaits_hand_over(row: RequestRow) -> bool:
    """Whether a request is accepted and Velero's object was not made yet."""
    return bool(row.status.velero.nacuuid) and row.status.phase not in (CREATED, DELETING)


def _reads(row: VeleroRow) -> list[str]:
    """Return the Velero Backup that a Restore reads, until it has ended."""
    return [row.source] if row.source and not row.is_terminal else []
