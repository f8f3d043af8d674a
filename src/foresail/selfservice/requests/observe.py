"""From the stores to the view of one request; it reads, and changes nothing."""

from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import NamedTuple

import msgspec

from foresail.api import velero
from foresail.plan import Key
from foresail.selfservice.access.view import PREFIXES, AccessResult, AccessView, contents_key
from foresail.selfservice.families import RESTORES
from foresail.selfservice.policy.admission import missing_label
from foresail.selfservice.policy.quota_ledger import incoming
from foresail.selfservice.queue.window import Position
from foresail.selfservice.requests import outcome, rules
from foresail.selfservice.requests.file_requests import file_name
from foresail.selfservice.requests.force_deleted import forced_at
from foresail.selfservice.requests.protection import is_by_rule
from foresail.selfservice.requests.state import ClusterState, FamilyState
from foresail.selfservice.requests.status import CREATED, DELETING
from foresail.selfservice.requests.view import RequestView, Target
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow, location_of, movements
from foresail.tenancy.records import nacuuid


class Access(NamedTuple):
    """What was read about access: whether the contents of a backup are known, and what the last read found."""

    knows_contents: Callable[[str], bool]
    read_result: AccessResult | None


def observe(cluster: ClusterState, family: FamilyState, key: Key, access: Access, now: datetime) -> RequestView | None:
    """Collect everything that a decision about a request depends on, but the time."""
    request = family.requests.get(key)
    if request is None:
        return None
    name = nacuuid(request)
    at = family.velero_key(name)
    namespace = cluster.namespace(key.namespace)
    uid = namespace.uid if namespace is not None else ""
    row = family.velero.get(at)
    transfers, copies = family.movements.values()
    is_moving = row is not None and not row.is_terminal
    needs_policy = _needs_policy(request) or _waits_in_velero(family, row)
    view = RequestView(
        family=family.family,
        request=request,
        velero_namespace=cluster.velero_namespace,
        namespace=namespace,
        policy=cluster.policy(key.namespace) if needs_policy else None,
        velero=row,
        stored=family.ledger.stored(uid, key.namespace, name),
        active=family.ledger.active(uid, key.namespace, name),
        keyring=cluster.keyring,
        transfers=movements(transfers.by("of", name), with_bytes=is_moving),
        volumes=movements(copies.by("of", name), with_bytes=is_moving),
        bytes_at=family.reports.bytes_at(name),
        position=_reported_position(family, request, at, now),
    )
    view = _of_backup(cluster, view, at, uid) if family is cluster.backups else _of_restore(cluster, view, needs_policy)
    view = _with_turn(cluster, family, view, now)
    view = _with_access(cluster, family, view, access)
    if family is cluster.backups and outcome.is_newly_complete(view):
        return _with_claims(cluster, family, view)
    return view


def _of_backup(cluster: ClusterState, view: RequestView, at: Key, namespace_uid: str) -> RequestView:
    """Add what concerns a backup only: its deletion, its location, and what its namespace keeps."""
    request = view.request
    locations = cluster.location_rows(request.key.namespace) if _needs_locations(request) else ()
    return msgspec.structs.replace(
        view,
        deletion=cluster.deletions.get(at),
        expirations=_expirations(cluster, request, namespace_uid),
        good=_good_backups(cluster, request, namespace_uid),
        is_restored=request.is_to_be_deleted and cluster.is_read(request.key, at.name),
        doubt=next(_doubts(cluster, view), ""),
        location=cluster.location(location_of(view.velero)) if request.is_to_be_deleted else None,
        locations=locations,
        owners=cluster.owners(locations),
    )


def _doubts(cluster: ClusterState, view: RequestView) -> Iterator[str]:
    """Yield what is not certain about a deletion that a rule or its owner has requested."""
    request = view.request
    if is_by_rule(request):
        yield from cluster.doubts(request.key.namespace, () if view.velero is None else (view.velero,))
    elif request.is_to_be_deleted or request.is_to_be_forced:
        yield from cluster.doubts_about_protection(view.policy)


def _of_restore(cluster: ClusterState, view: RequestView, needs_policy: bool) -> RequestView:  # noqa: FBT001 - of one caller
    """Add what concerns a restore only: its backup, where that is, its target, and how many restores are kept."""
    request = view.request
    return msgspec.structs.replace(
        view,
        source=cluster.source(request),
        source_location=cluster.source_location(request),
        target=_target(cluster, request) if needs_policy and request.target else None,
        history=_history(cluster, request),
        skew=cluster.skew() or timedelta(),
    )


def _target(cluster: ClusterState, request: RequestRow) -> Target:
    """Collect what is known about the other namespace that a restore is to create its objects in."""
    name = request.target
    namespace = cluster.namespace(name)
    if namespace is None:
        return Target(name, None, None)
    counted = incoming(nacuuid(request))
    ledger = cluster.restores.ledger
    return Target(
        name,
        namespace,
        cluster.policy(name),
        missing_label(namespace, cluster.admission_labels(name, namespace)),
        ledger.stored(namespace.uid, name, counted),
        ledger.active(namespace.uid, name, counted),
    )


def _with_access(cluster: ClusterState, family: FamilyState, view: RequestView, access: Access) -> RequestView:
    """Add what is known about access, and what a request that Velero does not have yet depends on."""
    key = view.request.key
    namespace = view.namespace
    is_pending = view.request.status.phase not in (CREATED, DELETING)
    if not is_pending and not _waits_in_velero(family, view.velero):
        return view
    view = msgspec.structs.replace(view, access=_access_to(cluster, access, view))
    if not is_pending:
        return view
    if namespace is not None:
        missing = missing_label(namespace, cluster.admission_labels(key.namespace, namespace))
        view = msgspec.structs.replace(view, missing_label=missing)
    if family is not cluster.backups:
        return _with_copies(cluster, view)
    return msgspec.structs.replace(view, claims=tuple(cluster.claims.by("namespace", key.namespace)))


def _with_turn(cluster: ClusterState, family: FamilyState, view: RequestView, now: datetime) -> RequestView:
    """Add whether a request may be handed over now, and since when its Velero object may exist unobserved."""
    request = view.request
    if view.velero is not None or request.status.phase in (CREATED, DELETING):
        return view
    name = nacuuid(request)
    is_accepted = rules.has_nacuuid(request)
    unseen = cluster.unobserved.get(name, now) if is_accepted and request.has_finalizer else None
    if is_accepted:
        turn = family.window.turn(name, request.key.namespace, family.family.word, now)
    else:
        turn = family.window.expected_turn(request.key.namespace, family.family.word)
    return msgspec.structs.replace(view, turn=turn, unobserved_since=unseen)


def _with_claims(cluster: ClusterState, family: FamilyState, view: RequestView) -> RequestView:
    """Add the volumes that a namespace has, and those whose data is in a backup that has just ended."""
    name = nacuuid(view.request)
    saved = frozenset(movement.claim for store in family.movements.values() for movement in store.by("of", name))
    claims = tuple(cluster.claims.by("namespace", view.request.key.namespace))
    return msgspec.structs.replace(view, claims=claims, saved=saved)


def _with_copies(cluster: ClusterState, view: RequestView) -> RequestView:
    """Add the claims that exist, and those with files in the backup of a restore."""
    backup = view.source.velero if view.source is not None else None
    if backup is None:
        return view
    store = cluster.backups.movements[velero.POD_VOLUME_BACKUP]
    rows = store.by("of", velero.label_of(backup.key.name))
    copied = {row.claim_name for row in rows if row.has_snapshot}
    claims = tuple(cluster.claims.by("namespace", view.request.target or view.request.key.namespace))
    return msgspec.structs.replace(view, claims=claims, copied=tuple(sorted(copied)))


def _history(cluster: ClusterState, request: RequestRow) -> int | None:
    """Return how many finished restores are kept, if this one is not among them any longer."""
    if not outcome.has_ended(request):
        return None
    namespace = request.key.namespace
    is_past = any(row.uid == request.uid for row in cluster.past_history(namespace))
    policy = cluster.policy(namespace) if is_past else None
    return policy.spec.quotas.restores.history if policy is not None else None


def _expirations(cluster: ClusterState, request: RequestRow, namespace_uid: str) -> tuple[datetime, ...]:
    """Return when the ended backups of a namespace expire, if a request may not fit beside them."""
    if rules.has_nacuuid(request):
        return ()
    namespace = request.key.namespace
    ledger = cluster.backups.ledger
    policy = cluster.policy(namespace)
    most = policy.spec.quotas.stored if policy is not None else None
    if most is None or ledger.stored(namespace_uid, namespace, nacuuid(request)) < most:
        return ()
    return cluster.expirations(namespace_uid)


def _good_backups(cluster: ClusterState, request: RequestRow, namespace_uid: str) -> tuple[VeleroRow, ...]:
    """Return the good backups of a namespace that are not being deleted, if a deletion is requested."""
    if not (request.is_to_be_deleted or request.is_to_be_forced):
        return ()
    return cluster.good_backups(namespace_uid)


def _access_to(cluster: ClusterState, access: Access, view: RequestView) -> AccessView:
    """Collect what is known about access to what a request would bring back."""
    backup = view.source.velero if view.source is not None else None
    shared = view.request.key.namespace if view.request.point else ""
    reserved = cluster.reserved
    if backup is None:
        return AccessView(reserved=reserved, read_result=access.read_result)
    rows = cluster.download_requests.by("contents of", backup.key.name)
    return AccessView(
        has_contents=access.knows_contents(contents_key(backup.uid, shared)),
        files=tuple(row for row in rows if row.key.name == file_name(PREFIXES[row.target.kind], backup.uid)),
        authority=cluster.authority_of(backup),
        reserved=reserved,
        read_result=access.read_result,
    )


def _reported_position(family: FamilyState, request: RequestRow, at: Key, now: datetime) -> Position:
    """Return the position of a request, and when it is to be reported."""
    position = _position(family, request, at)
    shown = request.status.position
    if position is None or (shown is not None and position >= shown):
        return Position(position)
    return Position(position, family.reports.when(at.name, shown, position, now))


def _position(family: FamilyState, request: RequestRow, at: Key) -> int | None:
    """Return the position of a request: in Velero's queue, or in ours behind everything that Velero has."""
    queue = family.velero_queue
    window = family.window
    if at.name in queue or at in family.velero:
        return queue.position(at.name)
    if not window.is_bounded:
        return queue.last if rules.has_nacuuid(request) else None
    return queue.last + window.queue.rank(request.key.namespace, (request.created, at.name))


def _waits_in_velero(family: FamilyState, row: VeleroRow | None) -> bool:
    """Whether a restore may still be withdrawn."""
    return family.family is RESTORES and row is not None and row.is_waiting


def _needs_policy(request: RequestRow) -> bool:
    is_being_removed = request.is_to_be_deleted or request.is_to_be_forced
    return is_being_removed or request.status.phase not in (CREATED, DELETING)


def _needs_locations(request: RequestRow) -> bool:
    is_made = request.status.phase in (CREATED, DELETING)
    return request.is_to_be_forced or not is_made or forced_at(request.status) is not None
