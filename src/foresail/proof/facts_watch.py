"""Watches what teams cannot read, and publishes the facts with each renewal of the operator's Lease."""

from collections.abc import Callable, Mapping, Sequence
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.apps import DAEMON_SET, DEPLOYMENT, DaemonSet, Deployment
from foresail.api.marks import FACTS
from foresail.api.metadata import Metadata
from foresail.kube.controller import Informer, no_keys
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Plan
from foresail.proof.facts import Facts, encode, facts_of

_EVERY = timedelta(seconds=3)
"""How old the facts are at most; the Lease is renewed once per second."""


class _ProviderSpec(msgspec.Struct, frozen=True):
    provider: str = ""


class _SnapshotLocation(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: _ProviderSpec = _ProviderSpec()


class PublishedFacts:
    """A controller that decides nothing: its stores are what the Lease tells."""

    name = "facts"

    def __init__(self, velero_namespace: str, skew: Callable[[], timedelta | None]) -> None:
        self._namespace = velero_namespace
        self._skew = skew
        self.deployments = Store[Deployment]()
        self.locations = Store[velero.Location]()
        self.providers = Store[str]()
        self.agents = Store[DaemonSet]()
        self._told: tuple[datetime, str] | None = None

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Deployments, DaemonSets and the locations for backups and for snapshots, in Velero's namespace."""
        where = self._namespace
        snapshots = WatchSpec(velero.VOLUME_SNAPSHOT_LOCATION, _SnapshotLocation, _provider, where, optional=True)
        return (
            Informer(WatchSpec(DEPLOYMENT, Deployment, _as_is, where), self.deployments, no_keys),
            Informer(WatchSpec(velero.LOCATION, velero.Location, _location, where), self.locations, no_keys),
            Informer(snapshots, self.providers, no_keys),
            Informer(WatchSpec(DAEMON_SET, DaemonSet, _daemon_set, where), self.agents, no_keys),
        )

    def observe(self, _key: Key, _now: datetime) -> None:
        """Return None: there is nothing to decide."""

    def decide(self, _view: None, _now: datetime) -> Plan:
        """Return an empty Plan."""
        return Plan()

    def annotations(self, now: datetime, problems: Sequence[str]) -> Mapping[str, str]:
        """Return the annotation of the Lease; `problems` are those for which this replica is not ready."""
        unread = [
            f"{key} cannot be read" for store in (self.deployments, self.locations, self.agents) for key in store.unread
        ]
        if problems or unread:
            return {FACTS: encode(Facts(stale=next(iter([*problems, *unread]))))}
        if self._told is None or not timedelta() <= now - self._told[0] < _EVERY:  # there may be many locations
            at = now - (self._skew() or timedelta())
            known = list(self.deployments.rows()), list(self.locations.rows())
            facts = facts_of(*known, self.providers.rows(), self.agents.rows(), at)
            self._told = now, encode(facts)
        return {FACTS: self._told[1]}


def _as_is(wire: Deployment) -> Deployment:
    return wire


def _daemon_set(wire: DaemonSet) -> DaemonSet:
    return wire


def _location(wire: velero.Location) -> velero.Location:
    return wire


def _provider(wire: _SnapshotLocation) -> str:
    return wire.spec.provider
