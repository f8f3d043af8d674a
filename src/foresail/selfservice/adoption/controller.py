"""The controller that adopts: which Velero Backups a change concerns, and what is offered."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from foresail.kube.controller import LowPriority
from foresail.kube.reflector import Change
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.adoption.decide import decide
from foresail.selfservice.adoption.rules import Offer
from foresail.selfservice.adoption.view import WORD, AdoptionView, key_for
from foresail.selfservice.requests.state import ClusterState
from foresail.selfservice.rows.locations import LocationRow
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow, location_of
from foresail.selfservice.signatures import Keyring
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow

_ALL = True  # a value of the index


class Adoption:
    """Maps changes to the Velero Backups that may be adopted, and remembers which are offered.

    Nothing is kept of a Backup but its name and its offer; all Backups are in the store already.
    """

    view = AdoptionView
    decide = staticmethod(decide)
    parts = (WORD,)

    def __init__(self, cluster: ClusterState) -> None:
        self.offers: dict[str, Offer] = {}  # by the name of the Velero Backup
        self._announced: set[str] = set()  # UIDs of namespaces
        self._cluster = cluster

    def velero_changed(self, change: Change[VeleroRow]) -> None:
        """Forget the offer of a Velero Backup that is deleted."""
        if change.new is None:
            self.offers.pop(change.key.name, None)

    # Events to keys

    def keys_for_velero(self, change: Change[VeleroRow]) -> Iterator[LowPriority]:
        """Return the Velero Backup."""
        if change.new is not None:
            yield from self._keys((change.new,))

    def keys_for_request(self, change: Change[RequestRow]) -> Iterator[LowPriority]:
        """Return the Velero Backups that wait for a NonAdminBackup to be observed, or for its name."""
        if change.old is None or change.new is None:
            yield from self._keys(self._cluster.backups.velero.by("adoptable", change.key))

    def keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[LowPriority]:
        """Return the Velero Backups of a namespace that is created, or whose policy may be another one now."""
        old = change.old
        new = change.new
        if old is None or new is None or (old.uid, old.labels) != (new.uid, new.labels):
            yield from self._keys(self._cluster.backups.velero.by("adoptable", change.key.name))

    def keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[LowPriority]:
        """Return every Velero Backup that may be adopted, if a policy says something else about that."""
        old = change.old
        new = change.new
        if old is None or new is None or _where(old) != _where(new):
            yield from self._every(change)

    def keys_for_keyring(self, change: Change[Keyring]) -> Iterator[LowPriority]:
        """Return every Velero Backup that may be adopted: its signature may verify now."""
        yield from self._every(change)

    def keys_for_location(self, change: Change[LocationRow]) -> Iterator[LowPriority]:
        """Return every Velero Backup that may be adopted, if a location is another bucket now."""
        old = change.old
        new = change.new
        if old is None or new is None or old.storage != new.storage:
            yield from self._every(change)

    def _every(self, change: Change[PolicyRow] | Change[Keyring] | Change[LocationRow]) -> Iterator[LowPriority]:
        if not change.initial:  # at first every Backup is reconciled anyway
            yield from self._keys(self._cluster.backups.velero.by("adoptable", _ALL))

    @staticmethod
    def _keys(rows: Iterable[VeleroRow]) -> Iterator[LowPriority]:
        return (LowPriority(key) for row in rows if (key := key_for(row)) is not None)

    # One reconcile

    def observe(self, key: PartKey, _: datetime) -> AdoptionView | None:
        """Collect what is known about a Velero Backup, its NonAdminBackup and its namespace."""
        name = key.name
        cluster = self._cluster
        backups = self._cluster.backups
        row = backups.velero.get(backups.velero_key(name))
        if row is None or row.owner is None or not row.may_be_adopted or row.owner in backups.requests.unread:
            return None
        owner = row.owner
        location = cluster.locations.get(Key(cluster.velero_namespace, location_of(row)))
        namespace = cluster.namespace(owner.namespace)
        return AdoptionView(
            backup=row,
            owner=owner,
            namespace=namespace,
            policy=cluster.policy(owner.namespace),
            request=backups.requests.get(owner),
            keyring=cluster.keyring,
            storage=location.storage if location is not None else "",
            is_force_deleted=name in cluster.force_deleted.names(owner.namespace),
            is_announced=namespace is not None and namespace.uid in self._announced,
        )

    def begin(self, _: PartKey, view: AdoptionView, plan: Plan, _now: datetime) -> Iterable[Key]:
        """Remember what is offered, and that a namespace is announced."""
        if plan.notes and view.namespace is not None:
            self._announced.add(view.namespace.uid)
        offer = plan.claim(Offer)
        if offer is not None and not plan.actions:
            self.offers[view.backup.key.name] = offer
        else:
            self.offers.pop(view.backup.key.name, None)
        return ()

    def counts(self) -> dict[str, int]:
        """Return how many Velero Backups wait for an administrator, by what their records are."""
        verified = sum(offer.is_verified for offer in self.offers.values())
        return {"verified": verified, "unverified": len(self.offers) - verified}


def _where(policy: PolicyRow) -> tuple[object, ...]:
    spec = policy.spec
    return spec.namespace_selector, spec.priority, spec.adoption
