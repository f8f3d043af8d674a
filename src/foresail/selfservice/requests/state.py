"""Everything that the controllers of self-service know of the cluster: stores, quota ledgers, windows and positions."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import datetime, timedelta
from typing import Any

from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.deletion import operators_doubts
from foresail.kube.controller import LowPriority
from foresail.kube.store import Store
from foresail.plan import Key, Kind, PartKey
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.quota_ledger import QuotaLedger, QuotaQueue
from foresail.selfservice.queue.interruptions import Interruptions
from foresail.selfservice.queue.positions import NEAR, PositionReports, VeleroQueue
from foresail.selfservice.queue.window import WINDOW, Limits, Window
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import doubts, outcome, protection
from foresail.selfservice.requests.force_deleted import ForceDeletedBackups, forced_at
from foresail.selfservice.requests.protection import good_ones
from foresail.selfservice.requests.rules import beyond_history, is_refused
from foresail.selfservice.requests.status import ACCEPTED, CREATED, DELETING
from foresail.selfservice.requests.view import Source
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import stem_of_run
from foresail.selfservice.rows.velero import (
    ClaimRow,
    DeletionRow,
    DownloadRequestRow,
    MovementRow,
    VeleroRow,
    location_of,
)
from foresail.selfservice.signatures import NO_KEYS, Keyring, secret_key
from foresail.slots.policy_timing import PolicyRow as SchedulePolicyRow
from foresail.tenancy.namespaces import AdmissionLabels, NamespaceRow
from foresail.tenancy.points import ClassRestoresRow
from foresail.tenancy.policies import ChartLimits, PolicyRow, admission_labels, at_least, policy_for
from foresail.tenancy.records import nacuuid

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
                "from protection": lambda row: [True] if row.point and not outcome.has_ended(row) else [],
            }
        )
        self.velero = Store[VeleroRow](
            {"waits in": _waits_in, "namespace uid": self._namespace_uid, "adoptable": _adoptable, "reads": _reads}
        )
        kinds = _MOVEMENTS[family.word]
        self.movements = {kind: Store[MovementRow]({"of": lambda row: [row.of]}) for kind in kinds}
        self.velero_queue = VeleroQueue()
        self.reports = PositionReports()
        self.window_key = PartKey("", family.kind.plural, WINDOW)
        self._velero_namespace = velero_namespace

    def key(self, key: Key) -> PartKey:
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

    def _namespace_uid(self, row: VeleroRow) -> list[Hashable]:
        return [row.namespace_uid] if self.family is BACKUPS and row.is_recorded else []


def _waits_in(row: VeleroRow) -> list[Hashable]:
    """Return the namespaces without which a waiting Velero object must not be: its own, and that of a restore into."""
    if row.owner is None or not row.is_recorded or not row.is_waiting:
        return []
    return list(filter(None, (row.owner.namespace, row.target)))


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
    if row.point:
        return [point_key(row.point)]
    return [Key(row.key.namespace, row.source)] if row.source else []


def point_key(backup: str) -> Key:
    """Return under which key restores from the backup of a class are found: no request has it."""
    return Key("", backup)


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


class ClusterState:
    """The stores of all kinds, and what is remembered beside them."""

    def __init__(self, velero_namespace: str, reserved: Iterable[str], limits: Limits, chart: ChartLimits) -> None:
        self.velero_namespace = velero_namespace
        self.chart = chart
        self.reserved = frozenset((*reserved, velero_namespace))  # namespaces that no policy reaches
        self.force_deleted = ForceDeletedBackups()
        interruptions = Interruptions()
        window = Window(limits.window, limits.next_slot, interruptions)
        restore_window = Window(limits.restore_window, interruptions=interruptions, of_restores=True)
        self.backups = FamilyState(BACKUPS, velero_namespace, window, QuotaLedger(self.force_deleted.names))
        self.restores = FamilyState(RESTORES, velero_namespace, restore_window, QuotaLedger())
        self.deletions = Store[DeletionRow]()
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()
        self.schedule_policies = Store[SchedulePolicyRow]()
        self.protection_classes = Store[ClassRestoresRow]()
        self.keyrings = Store[Keyring]()  # at most one
        self.locations = Store[LocationRow]({"whose": lambda row: [row.owner.namespace if row.owner else ""]})
        self.tenant_locations = Store[TenantLocationRow](
            {"namespace": lambda row: [row.key.namespace], "name": lambda row: [row.key.name]}
        )
        self.approvals = Store[ApprovalRow]()
        self.claims = Store[ClaimRow]({"namespace": lambda row: [row.namespace]})
        self.download_requests = Store[DownloadRequestRow](
            {
                "for": lambda row: [row.owner] if row.owner is not None else [],
                "unanswered in": lambda row: [row.owner.namespace] if row.owner is not None and not row.url else [],
                "results of": lambda row: [row.results_of] if row.results_of is not None else [],
                "contents of": lambda row: [row.target.name] if _is_about_contents(row) else [],
            }
        )
        self.skew: Callable[[], timedelta | None] = lambda: None  # by how much our clock is ahead of the API server's
        self.unobserved: dict[str, datetime] = {}  # since when a Velero object may exist that is not observed

    @property
    def families(self) -> tuple[FamilyState, FamilyState]:
        """Both families."""
        return self.backups, self.restores

    def of(self, family: Family) -> FamilyState:
        """Return what is known of a family."""
        return self.backups if family is BACKUPS else self.restores

    def of_plural(self, plural: str) -> FamilyState:
        """Return what is known of the family whose tenants' or Velero's kind has this plural."""
        is_backup = plural in (BACKUPS.kind.plural, BACKUPS.velero.plural)
        return self.backups if is_backup else self.restores

    def namespace(self, name: str) -> NamespaceRow | None:
        """Return a namespace."""
        return self.namespaces.get(Key("", name))

    def policy(self, namespace: str) -> PolicyRow | None:
        """Return the policy that applies to a namespace."""
        row = self.namespace(namespace)
        if row is None or namespace in self.chart.out_of_reach:
            return None
        return policy_for(namespace, row.labels, self.policies.rows(), self.reserved)

    def admission_labels(self, name: str, namespace: NamespaceRow) -> AdmissionLabels:
        """Return the labels for admission that a namespace should have."""
        labels = admission_labels(name, namespace.labels, self.policies.rows(), self.reserved)
        return at_least(labels, namespace.admission) if self.policies.unread else labels

    def location(self, name: str) -> LocationRow | None:
        """Return a storage location by its name."""
        return self.locations.get(Key(self.velero_namespace, name))

    def all_locations(self) -> tuple[LocationRow, ...]:
        """Return the storage locations of everybody."""
        return tuple(self.locations.rows())

    def location_rows(self, namespace: str) -> tuple[LocationRow, ...]:
        """Return the administrator's storage locations and those of one namespace."""
        return (*self.locations.by("whose", ""), *self.locations.by("whose", namespace))

    def owners(self, locations: Iterable[LocationRow]) -> tuple[TenantLocationRow, ...]:
        """Return the tenants' locations that have the names in the records of Velero locations."""
        rows = (self.tenant_locations.get(row.owner) for row in locations if row.owner is not None)
        return tuple(owner for owner in rows if owner is not None)

    @property
    def keyring(self) -> Keyring:
        """The keys that sign records."""
        return self.keyrings.get(secret_key(self.velero_namespace)) or NO_KEYS

    def authority_of(self, backup: VeleroRow | None) -> str:
        """Return the CA certificate of the location of a Velero Backup; empty if it has none."""
        location = self.location(location_of(backup))
        return location.authority if location is not None else ""

    def velero_rows(self, family: FamilyState, request: RequestRow) -> tuple[VeleroRow | None, VeleroRow | None]:
        """Return Velero's object of a request by its name, and the Velero Backup behind it."""
        row = family.velero.get(family.velero_key(nacuuid(request)))
        if row is None or family is self.backups:
            return row, row
        return row, self.backups.velero.get(self.backups.velero_key(row.source))

    def source(self, request: RequestRow) -> Source:
        """Return what a restore is made from."""
        if request.point:
            row = self.backups.velero.get(self.backups.velero_key(request.point))
            of = Key("", row.protection_class) if row is not None else Key("", "")
            known = self.protection_classes.get(of)
            is_unread = of in self.protection_classes.unread
            return Source(None, row, known is not None and known.by_tenants, is_class_unread=is_unread)
        backup = self.backups.requests.get(Key(request.key.namespace, request.source))
        if backup is None:
            return Source(None, None)
        return Source(backup, self.backups.velero.get(self.backups.velero_key(nacuuid(backup))))

    def source_location(self, request: RequestRow) -> LocationRow | None:
        """Return the location of the Velero Backup that a restore is made from, as that Backup names it."""
        backup = self.source(request).velero
        return self.location(location_of(backup)) if backup is not None else None

    def expirations(self, namespace_uid: str) -> tuple[datetime, ...]:
        """Return when the ended backups of a namespace expire."""
        rows = self.backups.velero.by("namespace uid", namespace_uid)
        return tuple(row.expires for row in rows if row.expires is not None and row.is_terminal)

    def good_backups(self, namespace_uid: str) -> tuple[VeleroRow, ...]:
        """Return the good backups of a namespace whose deletion Velero was not asked for."""
        rows = self.backups.velero.by("namespace uid", namespace_uid)
        return tuple(row for row in good_ones(rows) if row.key not in self.deletions)

    def doubts(self, namespace: str, backups: Iterable[VeleroRow]) -> Iterator[str]:
        """Yield what is not certain about Velero Backups of a namespace, or about what may keep them."""
        yield from operators_doubts(self.skew(), self._stale())
        restores = (restore for restore in self.restores.requests.unread if restore.namespace == namespace)
        yield from doubts.unread(self.policies.unread, restores, is_restore_unread=bool(self.restores.velero.unread))
        names = {location_of(row) for row in backups} - {""}
        yield from doubts.of_locations({name: self.location(name) for name in sorted(names)})

    def doubts_about_protection(self, policy: PolicyRow | None) -> Iterator[str]:
        """Yield what is not certain about what the policy of a namespace protects, also from its tenants."""
        if policy is not None and protection.protects(policy):
            yield from operators_doubts(self.skew(), self._stale())
        yield from doubts.unread(self.policies.unread, (), is_restore_unread=False)

    def _stale(self) -> Iterator[str]:
        """Yield the kinds that say what must stay, of which the operator may not know the present state."""
        stores: tuple[tuple[Kind, Store[Any]], ...] = (
            (NON_ADMIN_BACKUP, self.backups.requests),
            (velero.BACKUP, self.backups.velero),
            (NON_ADMIN_RESTORE, self.restores.requests),
            (velero.RESTORE, self.restores.velero),
            (SELF_SERVICE_POLICY, self.policies),
        )
        return (kind.name for kind, store in stores if store.is_stale)

    def is_read(self, backup: Key, name: str) -> bool:
        """Whether a restore reads a backup, given its Velero Backup's name too, or is about to."""
        restores = self.restores
        if restores.velero.by("reads", name) or restores.requests.by("handed over from", backup):
            return True
        waiting = restores.requests.by("restores", backup)
        return any(not is_refused(RESTORES, row.status.phase, row.status.condition(ACCEPTED)) for row in waiting)

    def past_history(self, namespace: str) -> list[RequestRow]:
        """Return the finished restores of a namespace beyond the number that its policy keeps."""
        policy = self.policy(namespace)
        if policy is None:
            return []
        return beyond_history(self.restores.requests.by("ended", namespace), policy.spec.quotas.restores.history)


def _is_about_contents(row: DownloadRequestRow) -> bool:
    prefix = PREFIXES.get(row.target.kind)
    return prefix is not None and row.key.name.startswith(prefix) and row.owner is None
