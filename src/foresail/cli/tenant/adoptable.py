"""The Velero Backups that can be adopted, by the operator's own rules and from the live cluster."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import TypeVar

import msgspec

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.marks import RECORD_SIGNATURE
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.cli.access.cluster import Cluster, may
from foresail.cli.access.operators import operator_namespaces
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.recovery_key.keys import read_keyring
from foresail.plan import Key
from foresail.selfservice.adoption.rules import Offer, offer
from foresail.selfservice.adoption.view import AdoptionView
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.rows.locations import location_row
from foresail.selfservice.rows.requests import RequestRow, request_row
from foresail.selfservice.rows.velero import Claim, VeleroRow, glimpse, location_of, velero_row
from foresail.selfservice.signatures import NO_KEYS, Keyring, secret_key
from foresail.tenancy.namespaces import NamespaceRow, namespace_row
from foresail.tenancy.policies import PolicyRow, policy_for, policy_row

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Adoptable:
    """A Velero Backup that can be adopted, and how."""

    view: AdoptionView
    namespace: NamespaceRow
    offer: Offer

    @property
    def record(self) -> str:
        """Whether the record is signed."""
        return "verified" if self.offer.is_verified else "unverified"

    @property
    def state(self) -> str:
        """What it waits for."""
        if self.offer.is_name_taken:
            return "NameTaken"
        return "Approved" if self.offer.is_permitted else "Adoptable"

    @property
    def made_for(self) -> str:
        """Whether it was made for this very namespace, or for an earlier one of its name."""
        uid = self.view.backup.namespace_uid
        if not uid:
            return "unknown"
        return "this namespace" if uid == self.namespace.uid else "an earlier namespace"

    @property
    def started(self) -> datetime | None:
        """When the backup began."""
        return glimpse(self.view.backup.mirror).start_timestamp


@dataclass(frozen=True, slots=True)
class Scope:
    """Where to look."""

    velero_namespace: str
    operator_namespace: str | None = None  # None: that of its Deployment
    namespace: str = ""  # of the tenant; empty: all


async def read_adoptable(cluster: Cluster, scope: Scope, now: datetime) -> list[Adoptable]:
    """Return the Velero Backups of a namespace, or of all, that can be adopted."""
    where = scope.velero_namespace
    only = scope.namespace
    backups = _decoded(await cluster.listed(velero.BACKUP, where, BACKUPS.nacuuid_label), mirrored.Mirrored)
    rows = [row for backup in backups if (row := _row(backup)).is_adoptable and row.owner is not None]
    rows = [row for row in rows if not only or (row.owner is not None and row.owner.namespace == only)]
    if not rows:
        return []
    wire = _decoded(await cluster.listed(core.NAMESPACE, ""), core.Namespace)
    namespaces = {namespace.metadata.name: namespace_row(namespace) for namespace in wire}
    policies = [
        policy_row(policy) for policy in _decoded(await cluster.listed(SELF_SERVICE_POLICY, ""), SelfServicePolicy)
    ]
    requests = _decoded(await cluster.listed(BACKUPS.kind, only), nonadmin.Request)
    by_key = {row.key: row for row in (request_row(request, BACKUPS) for request in requests)}
    locations = _decoded(await cluster.listed(velero.LOCATION, where), mirrored.Location)
    storages = {row.name: row.storage for row in map(location_row, locations)}
    keyring = await _keyring(cluster, where)
    never = {where, *await operator_namespaces(cluster, scope.operator_namespace)}
    views = (_view(row, namespaces, policies, by_key, storages, keyring, never) for row in rows)
    return sorted(_offered(views, now), key=lambda adoptable: (adoptable.view.owner, adoptable.view.backup.key))


def _offered(views: Iterable[AdoptionView | None], now: datetime) -> Iterable[Adoptable]:
    for view in views:
        if view is None or view.namespace is None:
            continue
        offered = offer(view, now)
        if offered is not None:
            yield Adoptable(view, view.namespace, offered)


def _view(
    row: VeleroRow,
    namespaces: Mapping[str, NamespaceRow],
    policies: Iterable[PolicyRow],
    requests: Mapping[Key, RequestRow],
    storages: Mapping[str, str],
    keyring: Keyring,
    never: set[str],
) -> AdoptionView | None:
    owner = row.owner
    namespace = namespaces.get(owner.namespace) if owner is not None else None
    if owner is None or namespace is None:
        return None
    return AdoptionView(
        backup=row,
        owner=owner,
        namespace=namespace,
        policy=policy_for(owner.namespace, namespace.labels, policies, never),
        request=requests.get(owner),
        keyring=keyring,
        storage=storages.get(location_of(row), ""),
    )


def _row(wire: mirrored.Mirrored) -> VeleroRow:
    """Return a Velero Backup with its signature, also if it never left the cluster."""
    row = velero_row(wire, BACKUPS)
    if row.claim is not None:
        return row
    signature = (wire.metadata.annotations or {}).get(RECORD_SIGNATURE, "")
    return msgspec.structs.replace(row, claim=Claim(is_synced=False, signature=signature))


async def _keyring(cluster: Cluster, namespace: str) -> Keyring:
    key = secret_key(namespace)
    if not await may(cluster, "get", core.SECRET, namespace, key.name):
        hint(f"no record can be verified: you may not get Secret {key}")
        return NO_KEYS
    try:
        return await read_keyring(cluster, namespace) or NO_KEYS
    except CommandError as error:
        hint(f"no record can be verified: {error.problem}")
        return NO_KEYS


def _decoded(raws: Iterable[msgspec.Raw], of: type[T]) -> list[T]:
    decoder = msgspec.json.Decoder(of)
    return [decoder.decode(raw) for raw in raws]
