"""Everything that the controller knows of the cluster, and the questions that several of its parts ask."""

from collections.abc import Callable, Iterable
from datetime import datetime, timedelta

from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.access.view import PREFIXES
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.policy.quota_ledger import QuotaLedger
from foresail.selfservice.queue.window import Limits, Window
from foresail.selfservice.records import NO_KEYS, Keyring, secret_key
from foresail.selfservice.requests.force_deleted import ForceDeletedBackups
from foresail.selfservice.requests.protection import good_ones
from foresail.selfservice.requests.rules import is_refused
from foresail.selfservice.requests.status import ACCEPTED
from foresail.selfservice.requests.view import Source
from foresail.selfservice.rows.locations import ApprovalRow, LocationRow, TenantLocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import ClaimRow, DeletionRow, DownloadRequestRow, VeleroRow, location_of
from foresail.selfservice.state.family import FamilyState
from foresail.slots.policies import PolicyRow as SchedulePolicyRow
from foresail.tenancy.namespaces import AdmissionLabels, NamespaceRow
from foresail.tenancy.policies import ChartLimits, PolicyRow, admission_labels, at_least, policy_for
from foresail.tenancy.records import nacuuid


class ClusterState:
    """The stores of all kinds, and what is remembered beside them."""

    def __init__(self, velero_namespace: str, reserved: Iterable[str], limits: Limits, chart: ChartLimits) -> None:
        self.velero_namespace = velero_namespace
        self.chart = chart
        self.reserved = frozenset((*reserved, velero_namespace))  # namespaces that no policy reaches
        self.force_deleted = ForceDeletedBackups()
        window = Window(limits.window, limits.next_slot)
        restore_window = Window(limits.restore_window)
        self.backups = FamilyState(BACKUPS, velero_namespace, window, QuotaLedger(self.force_deleted.names))
        self.restores = FamilyState(RESTORES, velero_namespace, restore_window, QuotaLedger())
        self.deletions = Store[DeletionRow]()
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()
        self.schedule_policies = Store[SchedulePolicyRow]()
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
        found = (self.tenant_locations.get(row.owner) for row in locations if row.owner is not None)
        return tuple(each for each in found if each is not None)

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
        ended = self.restores.requests.by("ended", namespace)
        if policy is None or len(ended) <= policy.spec.quotas.restores.history:
            return []
        newest_first = sorted(ended, key=lambda row: (row.created, row.key), reverse=True)
        return newest_first[policy.spec.quotas.restores.history :]


def _is_about_contents(row: DownloadRequestRow) -> bool:
    prefix = PREFIXES.get(row.target.kind)
    return prefix is not None and row.key.name.startswith(prefix) and row.owner is None
