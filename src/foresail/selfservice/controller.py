"""The controller of self-service: what it watches, whom a change concerns, and which decision to ask."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from datetime import datetime
from functools import partial
from typing import Any

import msgspec

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.kube.errands import Errands
from foresail.kube.loop import Later, Watched
from foresail.kube.reflector import Change, Interest
from foresail.kube.store import Store
from foresail.plan import Key, Kind, Plan
from foresail.selfservice import build, downloads, results, rules, volumes
from foresail.selfservice.decide import creates, decide, promises
from foresail.selfservice.downloads_controller import Downloads
from foresail.selfservice.downloads_observe import AnswerRow, DownloadRow, DownloadSeen, answer_row, download_row
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.locations import LocationRow, location_row
from foresail.selfservice.metrics import SelfServiceMetrics
from foresail.selfservice.observe import (
    ClaimRow,
    DeletionRow,
    MovementRow,
    NamespaceRow,
    Place,
    RequestRow,
    Seen,
    Source,
    VeleroRow,
    claim_row,
    deletion_row,
    movement_row,
    movements,
    namespace_row,
    request_row,
    velero_row,
)
from foresail.selfservice.places import Places
from foresail.selfservice.policy import PolicyRow, policy_for, policy_row
from foresail.selfservice.queue import Line, Telling
from foresail.selfservice.reasons import Reason
from foresail.selfservice.results_controller import WORD, Fetch, Results, fetch
from foresail.selfservice.results_observe import Found, ResultsSeen, Wanted, location_of
from foresail.selfservice.status import ACCEPTED, BACKING_OFF, CREATED, DELETING

_WOKEN = 16  # of those that wait for a place; each that does not take it wakes others by its going


class Side:
    """Everything that is known of one family: backups, or restores."""

    def __init__(self, family: Family, transfer: Kind, volume: Kind, label: str) -> None:
        self.family = family
        self.requests = Store[RequestRow](
            {
                "here": lambda row: [row.key.namespace],
                "open": lambda row: [] if row.status.velero.nacuuid else [True],
                "held": _held_by,
                "source": lambda row: [row.source] if row.source and not row.status.velero.nacuuid else [],
            }
        )
        self.velero = Store[VeleroRow]()
        self.moves = {kind: Store[MovementRow]({"of": lambda row: [row.of]}) for kind in (transfer, volume)}
        self.line, self.telling = Line(), Telling()
        self.label = label

    def key(self, key: Key) -> Key:
        """Return the key under which a request is looked at."""
        return self.family.looked_at(key)

    def keys(self, rows: Iterable[RequestRow]) -> Iterator[Key]:
        """Return the keys of requests."""
        return (self.key(row.key) for row in rows)


class SelfService:
    """Lets tenants back up and restore their own namespaces, through one Velero."""

    name = "selfservice"

    def __init__(self, velero_namespace: str, never: Iterable[str] = (), fetch: Fetch = fetch) -> None:
        self.velero_namespace = velero_namespace
        self.never = frozenset((*never, velero_namespace))
        self.backups = Side(BACKUPS, velero.DATA_UPLOAD, velero.POD_VOLUME_BACKUP, velero.BACKUP_NAME_LABEL)
        self.restores = Side(RESTORES, velero.DATA_DOWNLOAD, velero.POD_VOLUME_RESTORE, velero.RESTORE_NAME_LABEL)
        self.downloads = Downloads()
        self.results = Results(self.downloads.answers, fetch)
        self.deletions = Store[DeletionRow]()
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()
        self.claims = Store[ClaimRow]({"here": lambda row: [row.namespace]})
        self.places = Places()
        self.metrics = SelfServiceMetrics(self.namespaces, self.places, self._policy)

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.backups, self.restores

    @property
    def errands(self) -> Errands[Wanted, Found]:
        """The results of what has failed, on their way."""
        return self.results.errands

    @property
    def watched(self) -> tuple[Watched, ...]:
        """Requests, namespaces and policies everywhere; Velero's objects in Velero's namespace."""
        here, asked = self.velero_namespace, self.downloads
        found = [
            _watched(asked.kind, nonadmin.Download, download_row, asked.requests, asked.of_request),
            _watched(asked.velero, mirrored.Download, answer_row, asked.answers, self._of_answer, here),
            _watched(core.NAMESPACE, core.Namespace, namespace_row, self.namespaces, self._of_namespace, meta=True),
            _watched(core.CLAIM, core.Claim, claim_row, self.claims, _nobody, meta=True),
            _watched(SELF_SERVICE_POLICY, SelfServicePolicy, policy_row, self.policies, self._of_policy),
            _watched(velero.DELETE_REQUEST, mirrored.Mirrored, deletion_row, self.deletions, self._of_deletion, here),
        ]
        why = self.results
        found.append(_watched(why.kind, mirrored.Location, location_row, why.locations, self._of_location, here))
        for side in self._sides:
            family = side.family
            to_request, to_velero = partial(request_row, family=family), partial(velero_row, family=family)
            of_request, of_velero = partial(self._of_request, side), partial(self._of_velero, side)
            found.append(_watched(family.kind, nonadmin.Request, to_request, side.requests, of_request))
            found.append(_watched(family.velero, mirrored.Mirrored, to_velero, side.velero, of_velero, here))
            to_move, of_move = partial(movement_row, label=side.label), partial(self._of_movement, side)
            for kind, store in side.moves.items():
                found.append(_watched(kind, mirrored.Movement, to_move, store, of_move, here))
        return tuple(found)

    # Whom a change concerns

    def _of_request(self, side: Side, change: Change[RequestRow]) -> Iterator[Key]:
        old, new = change.old, change.new
        yield side.key(change.key)
        yield from self.downloads.about(side.family, change.key)
        yield from self.results.of_request(side.key(change.key), change)
        self.metrics.changed(side.family, change)
        row = new or old
        if row is None:
            return
        name, namespace = build.nacuuid(row), change.key.namespace
        if (new is None or not rules.has_nacuuid(new)) and Key(self.velero_namespace, name) not in side.velero:
            side.line.leave(name)  # it never came to Velero, and will not
            side.telling.forget(name)
        if side is self.restores:
            return
        if new is None or new.status.phase in (CREATED, DELETING):
            self.places.settle(namespace, name)
        elif rules.has_nacuuid(new):
            self.places.promise(namespace, name)
        if new is None or new.status.phase == BACKING_OFF or (old is not None and _lacks_a_place(old)):
            yield from self._short_of_a_place(namespace)  # it does not need a place any more, or has found one
        if old is None or new is None or old.status.phase != new.status.phase:
            yield from self._restores_of(change.key)

    def _of_velero(self, side: Side, change: Change[VeleroRow]) -> Iterator[Key | Later]:
        row = change.new or change.old
        if row is None:
            return
        self.metrics.waited(side.family, change)
        if row.owner is not None:
            yield side.key(row.owner)
            yield from self.downloads.about(side.family, row.owner)
            if side is self.backups:
                yield from self._take_place(change, row.owner.namespace)
                if change.old is None or change.new is None or change.old.phase != change.new.phase:
                    yield from self._restores_of(row.owner)
        if self._moved(side, change):
            yield from self._asked_for(side, side.line.first())
            farther = (name for name in side.line.rest() if not side.telling.waits(name))
            yield from map(Later, self._asked_for(side, farther))  # thousands, before whom nobody near is to wait

    def _asked_for(self, side: Side, names: Iterable[str]) -> Iterator[Key]:
        """Return the requests for which Velero objects were made."""
        for name in names:
            row = side.velero.get(Key(self.velero_namespace, name))
            if row is not None and row.owner is not None and row.request_uid:
                yield side.key(row.owner)

    def _moved(self, side: Side, change: Change[VeleroRow]) -> bool:
        """Bring the line up to date, and return whether anyone has moved in it."""
        new, name = change.new, change.key.name
        if new is None or new.is_terminal:
            side.telling.forget(name)
            return side.line.leave(name)
        side.line.enter(name, new.created if change.initial else None)
        is_running = new.phase in velero.RUNNING
        return side.line.change(name, is_waiting=new.is_waiting, is_running=is_running, number=new.queue_position)

    def _take_place(self, change: Change[VeleroRow], namespace: str) -> Iterator[Key]:
        old, new = change.old, change.new
        if old is not None and (new is None or new.namespace_uid != old.namespace_uid):
            self.places.free(old.namespace_uid, change.key.name)
            yield from self._short_of_a_place(namespace)
        if new is not None and self.places.hold(new.namespace_uid, change.key.name, is_active=not new.is_terminal):
            yield from self._short_of_a_place(namespace)

    def _short_of_a_place(self, namespace: str) -> Iterator[Key]:
        waiting = self.backups.requests.by("held", (Reason.QUOTA_EXCEEDED, namespace))
        return self.backups.keys(sorted(waiting, key=lambda row: (row.created, row.key))[:_WOKEN])

    def _restores_of(self, backup: Key) -> Iterator[Key]:
        rows = self.restores.requests.by("source", backup.name)
        return self.restores.keys(row for row in rows if row.key.namespace == backup.namespace)

    def _of_deletion(self, change: Change[DeletionRow]) -> Iterator[Key]:
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield self.backups.key(row.owner)

    def _of_answer(self, change: Change[AnswerRow]) -> Iterator[Key]:
        yield from self.downloads.of_answer(change)
        yield from self.results.of_answer(change)

    def _of_movement(self, side: Side, change: Change[MovementRow]) -> Iterator[Key]:
        row = change.new or change.old
        of = side.velero.get(Key(self.velero_namespace, row.of)) if row is not None else None
        if of is not None and of.owner is not None:
            yield side.key(of.owner)

    def _of_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        is_going = change.new is not None and change.new.is_going
        if change.new is None:
            self.metrics.gone(change.key.name)
        yield from self.downloads.here(change.key.name)
        for side in self._sides:
            rows = side.requests.by("here", change.key.name)
            yield from side.keys(row for row in rows if is_going or not row.status.velero.nacuuid)

    def _of_policy(self, _change: Change[PolicyRow]) -> Iterator[Key]:
        for side in self._sides:
            yield from side.keys(side.requests.by("open", True))  # noqa: FBT003 - a value of the index

    def _of_location(self, _change: Change[LocationRow]) -> Iterator[Key]:
        return self.backups.keys(self.backups.requests.by("held", Reason.LOCATION_UNAVAILABLE))

    # What a decision sees, and which one

    def observe(self, key: Key) -> Seen | DownloadSeen | ResultsSeen | None:
        """Collect what is known about a request."""
        plural, _, name = key.name.partition("/")
        if plural == WORD:
            return self._results(key, Key(key.namespace, name))
        if plural == self.downloads.kind.plural:
            return self._download(Key(key.namespace, name))
        side = self.backups if plural == BACKUPS.kind.plural else self.restores
        request = side.requests.get(Key(key.namespace, name))
        if request is None:
            return None
        made = build.nacuuid(request)
        at = Key(self.velero_namespace, made)
        namespace = self.namespaces.get(Key("", key.namespace))
        uid = namespace.uid if namespace is not None else ""
        transfers, copies = side.moves.values()
        seen = Seen(
            family=side.family,
            request=request,
            velero_namespace=self.velero_namespace,
            namespace=namespace,
            policy=None if request.status.phase in (CREATED, DELETING) else self._policy(key.namespace),
            velero=side.velero.get(at),
            deletion=self.deletions.get(at) if side is self.backups else None,
            source=self._source(request) if side is self.restores else None,
            stored=self.places.stored(uid, key.namespace, made),
            active=self.places.active(uid, key.namespace, made),
            locations=self._locations() if side is self.backups and not rules.has_nacuuid(request) else (),
            transfers=movements(transfers.by("of", made)),
            volumes=movements(copies.by("of", made)),
            place=Place(side.line.position(made) if made in side.line or at in side.velero else side.line.last),
        )
        return self._with_claims(side, seen) if side is self.backups and volumes.is_new(seen) else seen

    def _locations(self) -> tuple[LocationRow, ...]:
        return tuple(self.results.locations.rows())

    def _with_claims(self, side: Side, seen: Seen) -> Seen:
        """Add the volumes that a namespace has, and whose data is in a backup that has just ended."""
        made = build.nacuuid(seen.request)
        saved = frozenset(each.claim for store in side.moves.values() for each in store.by("of", made))
        claims = tuple(self.claims.by("here", seen.request.key.namespace))
        return msgspec.structs.replace(seen, claims=claims, saved=saved)

    def decide(self, seen: Seen | DownloadSeen | ResultsSeen, now: datetime) -> Plan:
        """Say what is to be done, and remember what the stores will only show later."""
        if isinstance(seen, ResultsSeen):
            self.results.send(seen, now)
            return results.decide(seen, now)
        if isinstance(seen, DownloadSeen):
            return downloads.decide(seen, now)
        side = self.backups if seen.family is BACKUPS else self.restores
        name, shown, position = build.nacuuid(seen.request), seen.request.status.position, seen.place.position
        if position is not None and (shown is None or position < shown):
            at = side.telling.when(name, shown, position, now)
            seen = msgspec.structs.replace(seen, place=Place(position, at))
        plan = decide(seen, now)
        if side is self.backups and not rules.has_nacuuid(seen.request):
            keep = self.places.promise if promises(plan, seen) else self.places.settle
            keep(seen.request.key.namespace, name)
        if creates(plan, seen):
            side.line.enter(name)
        if plan.status is not None and name in side.line:
            side.telling.told(name, now)
        return plan

    def _results(self, key: Key, asked: Key) -> ResultsSeen | None:
        """Collect what is known about the results of a request; of one that cannot be read, nothing."""
        plural, _, name = asked.name.partition("/")
        side = self.backups if plural == BACKUPS.kind.plural else self.restores
        at = Key(asked.namespace, name)
        request, answers = side.requests.get(at), self.results.answers(asked)
        if request is None:
            self.errands.forget(key)
            if not answers or at in side.requests.unread:
                return None
            return ResultsSeen(key, side.family, None, self.velero_namespace, answers=answers)
        row, backup = self._made(side, request)
        location = self.results.locations.get(Key(self.velero_namespace, location_of(backup)))
        return ResultsSeen(
            key=key,
            family=side.family,
            request=request,
            velero_namespace=self.velero_namespace,
            namespace=self.namespaces.get(Key("", asked.namespace)),
            velero=row,
            backup=backup,
            answers=answers,
            authority=location.authority if location is not None else "",
            brought=self.errands.brought(key),
        )

    def _made(self, side: Side, request: RequestRow) -> tuple[VeleroRow | None, VeleroRow | None]:
        """Return Velero's object of a request by its name, and the Velero Backup behind it."""
        row = side.velero.get(Key(self.velero_namespace, build.nacuuid(request)))
        if row is None or side is self.backups:
            return row, row
        return row, self.backups.velero.get(Key(self.velero_namespace, row.source))

    def _download(self, key: Key) -> DownloadSeen | None:
        """Collect what is known about a download; of one that cannot be read, nothing."""
        request = self.downloads.requests.get(key)
        answers = tuple(self.downloads.answers.by("for", key))
        if request is None:
            is_gone = key not in self.downloads.requests.unread
            return DownloadSeen(None, self.velero_namespace, answers=answers) if is_gone and answers else None
        return self._whose(DownloadSeen(request, self.velero_namespace, answers=answers), request)

    def _whose(self, seen: DownloadSeen, request: DownloadRow) -> DownloadSeen:
        """Add what a download is about: the tenant's object, Velero's, and the Velero Backup behind both."""
        namespace = request.key.namespace
        side = self.backups if downloads.family_of(request.target.kind) is BACKUPS else self.restores
        about = side.requests.get(Key(namespace, request.target.name))
        row, backup = self._made(side, about) if about is not None else (None, None)
        row_of_namespace = self.namespaces.get(Key("", namespace))
        return msgspec.structs.replace(seen, namespace=row_of_namespace, about=about, velero=row, backup=backup)

    def _policy(self, namespace: str) -> PolicyRow | None:
        row = self.namespaces.get(Key("", namespace))
        return policy_for(namespace, row.labels, self.policies.rows(), self.never) if row is not None else None

    def _source(self, request: RequestRow) -> Source:
        backup = self.backups.requests.get(Key(request.key.namespace, request.source))
        if backup is None:
            return Source(None, None)
        return Source(backup, self.backups.velero.get(Key(self.velero_namespace, build.nacuuid(backup))))


def _held_by(row: RequestRow) -> list[Hashable]:
    """Return what a request waits for: a place in its namespace, or a storage location."""
    accepted = row.status.condition(ACCEPTED)
    if accepted is not None and accepted.reason == Reason.QUOTA_EXCEEDED:
        return [(Reason.QUOTA_EXCEEDED, row.key.namespace)]
    is_held = accepted is not None and accepted.reason == Reason.LOCATION_UNAVAILABLE
    return [Reason.LOCATION_UNAVAILABLE] if is_held else []


def _lacks_a_place(row: RequestRow) -> bool:
    return (Reason.QUOTA_EXCEEDED, row.key.namespace) in _held_by(row)


def _nobody(_: Change[Any]) -> Iterator[Key]:
    return iter(())


def _watched(
    kind: Kind,
    wire: type[Any],
    row: Callable[[Any], Any],
    store: Store[Any],
    keys: Callable[[Change[Any]], Iterable[Key | Later]],
    namespace: str = "",
    *,
    meta: bool = False,
) -> Watched:
    return Watched(Interest(kind, wire, row, namespace, metadata_only=meta), store, keys)
