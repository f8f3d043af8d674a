"""The controller of self-service: what it watches, which keys a change concerns, and what it remembers."""

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import replace
from datetime import datetime
from functools import partial
from itertools import chain
from typing import Any

import msgspec

from foresail.api import core, mirrored, nonadmin, velero
from foresail.api.policy import SELF_SERVICE_POLICY, SelfServicePolicy
from foresail.kube.background_reads import BackgroundReads
from foresail.kube.controller import Informer, LowPriority
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change, WatchSpec
from foresail.kube.store import Store
from foresail.plan import Key, Kind, Plan
from foresail.selfservice.access.observe import (
    PREFIXES,
    AccessSeen,
    Check,
    Checked,
    FileRow,
    PodCheck,
    PodsChecked,
    file_name,
)
from foresail.selfservice.access.reader import AccessReader
from foresail.selfservice.downloads import decide as downloads
from foresail.selfservice.downloads.controller import Downloads
from foresail.selfservice.downloads.observe import AnswerRow, DownloadRow, DownloadSeen, answer_row, download_row
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.metrics import SelfServiceMetrics
from foresail.selfservice.policy.observe import PolicyRow, policy_row
from foresail.selfservice.policy.quota_ledger import Places
from foresail.selfservice.policy.rules import policy_for
from foresail.selfservice.queue import window
from foresail.selfservice.queue.observe import Place
from foresail.selfservice.queue.positions import NEAR, Line, Telling
from foresail.selfservice.queue.quota_queue import QuotaQueue
from foresail.selfservice.queue.window import UNLIMITED, Limits, Turns, WindowSeen
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import authorization as hand_over
from foresail.selfservice.requests import build, outcome, protection, rules, volumes
from foresail.selfservice.requests import dangling as strays
from foresail.selfservice.requests.dangling import StraySeen
from foresail.selfservice.requests.decide import authorizes, creates, decide, promises
from foresail.selfservice.requests.force_delete import Lingering, forced_at
from foresail.selfservice.requests.observe import Seen, Source
from foresail.selfservice.requests.status import ACCEPTED, BACKING_OFF, CREATED, DELETING
from foresail.selfservice.results import decide as results
from foresail.selfservice.results.controller import WORD, Fetch, Results, fetch
from foresail.selfservice.results.observe import Found, ResultsSeen, Wanted, location_of
from foresail.selfservice.rows.locations import LocationRow, location_row
from foresail.selfservice.rows.namespaces import ClaimRow, NamespaceRow, claim_row, namespace_row
from foresail.selfservice.rows.requests import RequestRow, request_row
from foresail.selfservice.rows.velero import (
    DeletionRow,
    MovementRow,
    VeleroRow,
    deletion_row,
    movement_row,
    movements,
    velero_row,
)

_WINDOW = "window"  # begins the name of the key under which hand-overs are given up
_READS = 8  # in the background at once
_WOKEN = 16  # of those that wait for a place; each that does not take it wakes others by its going


class Side:
    """Everything that is known of one family: backups, or restores."""

    def __init__(self, family: Family, transfer: Kind, volume: Kind, turns: Turns) -> None:
        self.family = family
        self.turns = turns
        self.places = Places()
        self.quota_queue = QuotaQueue()
        self.requests = Store[RequestRow](
            {
                "here": lambda row: [row.key.namespace],
                "open": lambda row: [] if row.status.velero.nacuuid else [True],
                "held": _held_by,
                "ended": lambda row: [row.key.namespace] if family is RESTORES and outcome.has_ended(row) else [],
                "awaits": lambda row: _source_of(row) if _awaits_hand_over(row) else [],
                "source": lambda row: _source_of(row) if not row.status.velero.nacuuid else [],
            }
        )
        self.velero = Store[VeleroRow]({"waits in": self._waits_in, "of namespace": self._of_namespace})
        self.moves = {kind: Store[MovementRow]({"of": lambda row: [row.of]}) for kind in (transfer, volume)}
        self.line, self.telling = Line(), Telling()
        self.window_key = Key("", f"{_WINDOW}/{family.kind.plural}")
        self.label = velero.BACKUP_NAME_LABEL if family is BACKUPS else velero.RESTORE_NAME_LABEL

    def key(self, key: Key) -> Key:
        """Return the key under which a request is looked at."""
        return self.family.looked_at(key)

    def keys(self, rows: Iterable[RequestRow]) -> Iterator[Key]:
        """Return the keys of requests."""
        return (self.key(row.key) for row in rows)

    def stray_keys(self, rows: Iterable[VeleroRow]) -> Iterator[Key]:
        """Return the keys of the waiting Velero objects among some."""
        return (key for row in rows if (key := strays.key_for(self.family, row)) is not None)

    def _of_namespace(self, row: VeleroRow) -> list[Hashable]:
        return [row.namespace_uid] if self.family is BACKUPS and strays.is_recorded(row) else []

    def deleted_stray_keys(self, row: VeleroRow) -> Iterator[Key]:
        """Return the key of a Velero object that was deleted, if it was made for a request."""
        key = strays.deleted_key_for(self.family, row)
        return iter(() if key is None else (key,))

    def _waits_in(self, row: VeleroRow) -> list[Hashable]:
        key = strays.key_for(self.family, row)
        return [] if key is None else [key.namespace]


class SelfService:
    """Lets tenants back up and restore their own namespaces, through one Velero."""

    name = "selfservice"

    def __init__(
        self,
        velero_namespace: str,
        never: Iterable[str] = (),
        fetch: Fetch = fetch,
        limits: Limits = UNLIMITED,
        access: AccessReader | None = None,
    ) -> None:
        self.velero_namespace = velero_namespace
        self.never = frozenset((*never, velero_namespace))
        turns, restore_turns = Turns(limits.window, limits.next_slot), Turns(limits.restore_window)
        self.backups = Side(BACKUPS, velero.DATA_UPLOAD, velero.POD_VOLUME_BACKUP, turns)
        self.restores = Side(RESTORES, velero.DATA_DOWNLOAD, velero.POD_VOLUME_RESTORE, restore_turns)
        self.downloads = Downloads()
        self.access = access or AccessReader(None)
        self._fetch = fetch
        self.background_reads = BackgroundReads[Any, Any](self._read, concurrency=_READS, is_quick=hand_over.is_quick)
        self.results = Results(self.downloads.answers)
        self.deletions = Store[DeletionRow]()
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()
        self.claims = Store[ClaimRow]({"here": lambda row: [row.namespace]})
        self._unseen: dict[str, datetime] = {}  # since when a Velero object may exist that is not seen
        self.lingering = Lingering()
        self.backups.places = Places(self.lingering.names)
        self.metrics = SelfServiceMetrics(self.namespaces, self.backups.places, self._policy, self._expirations_in)

    @property
    def _sides(self) -> tuple[Side, Side]:
        return self.backups, self.restores

    async def _read(self, wish: Wanted | Check | PodCheck) -> Found | Checked | PodsChecked:
        """Do one background read."""
        return await (self._fetch(wish) if isinstance(wish, Wanted) else self.access.run(wish))

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Requests, namespaces and policies everywhere; Velero's objects in Velero's namespace."""
        here, asked = self.velero_namespace, self.downloads
        namespaces = core.NAMESPACE, core.Namespace, namespace_row, self.namespaces, self._keys_for_namespace
        policies = SELF_SERVICE_POLICY, SelfServicePolicy, policy_row, self.policies, self._keys_for_policy
        deletions = velero.DELETE_REQUEST, mirrored.Mirrored, deletion_row, self.deletions, self._keys_for_deletion
        locations = velero.LOCATION, mirrored.Location, location_row, self.results.locations, self._keys_for_location
        found = [
            _informer(asked.kind, nonadmin.Download, download_row, asked.requests, asked.of_request),
            _informer(asked.velero, mirrored.Download, answer_row, asked.answers, self._keys_for_answer, here),
            replace(_informer(*namespaces, meta=True), learn=self._learn_namespace),
            _informer(core.CLAIM, core.Claim, claim_row, self.claims, _nobody, meta=True),
            replace(_informer(*policies), learn=self._learn_policy),
            _informer(*deletions, here),
            replace(_informer(*locations, here), learn=self._learn_location),
        ]
        for side in self._sides:
            family = side.family
            to_request, to_velero = partial(request_row, family=family), partial(velero_row, family=family)
            for_request, for_velero = partial(self._keys_for_request, side), partial(self._keys_for_velero, side)
            requests = _informer(family.kind, nonadmin.Request, to_request, side.requests, for_request)
            made = _informer(family.velero, mirrored.Mirrored, to_velero, side.velero, for_velero, here)
            found.append(replace(requests, learn=partial(self._learn_request, side)))
            found.append(replace(made, learn=partial(self._learn_velero, side)))
            to_move, for_move = partial(movement_row, label=side.label), partial(self._keys_for_movement, side)
            for kind, store in side.moves.items():
                found.append(_informer(kind, mirrored.Movement, to_move, store, for_move, here))
        return tuple(found)

    # What is learned from a change

    def _learn_request(self, side: Side, change: Change[RequestRow]) -> list[Key | LowPriority]:
        new, row = change.new, change.new or change.old
        self.metrics.changed(side.family, change)
        if row is None:
            return []
        if side is self.backups:
            self._linger(row, is_gone=new is None)
        if new is not None and _lacks_a_place(new):
            side.quota_queue.enter(new.key, new.created)
        else:
            side.quota_queue.leave(change.key)
        name, namespace = build.nacuuid(row), change.key.namespace
        if (new is None or not rules.has_nacuuid(new)) and Key(self.velero_namespace, name) not in side.velero:
            side.line.leave(name)  # it never came to Velero, and will not
            side.telling.forget(name)
        moved = self._queue(side, name, row, is_deleted=new is None)
        if new is None or new.status.phase in (CREATED, DELETING):
            side.places.settle(namespace, name)
        elif rules.has_nacuuid(new):
            side.places.promise(namespace, name)
        return moved

    def _learn_velero(self, side: Side, change: Change[VeleroRow]) -> Iterable[Key | LowPriority]:
        row = change.new or change.old
        if row is None:
            return ()
        self.metrics.waited(side.family, change)
        if change.new is None:
            self.access.discard(row.uid)
        found: list[Key | LowPriority] = []
        if row.owner is not None and self._take_place(side, change):
            found += self._short_of_a_place(side, row.owner.namespace)
        self._note_left(side, change)
        turns = side.turns
        is_free = turns.lose(change.key.name) if change.new is None else turns.see(row, change.old, change.initial)
        if is_free:
            found += self._next_turns(side)
        is_first_read = change.initial and change.old is None  # then everybody is looked at anyway
        if self._moved(side, change) and not is_first_read:
            return chain(found, self._all_in_line(side))  # thousands, not gathered into a list
        return found

    def _learn_namespace(self, change: Change[NamespaceRow]) -> Iterable[Key]:
        if change.new is None:
            self.metrics.gone(change.key.name)
            self.lingering.leave(change.key.name)
        self._weigh(change.key.name, is_deleted=change.new is None)
        return ()

    def _learn_policy(self, _: Change[PolicyRow]) -> Iterable[Key]:
        self.metrics.policies_changed()
        for side in self._sides:
            for namespace in side.turns.queue.namespaces:
                self._weigh(namespace)
        return ()

    def _learn_location(self, _: Change[LocationRow]) -> list[Key]:
        lost = self.lingering.forget_lost(self._locations())
        return [key for each in lost for key in self._short_of_a_place(self.backups, each.namespace)]

    # Which keys a change concerns

    def _keys_for_request(self, side: Side, change: Change[RequestRow]) -> Iterator[Key | LowPriority]:
        old, new = change.old, change.new
        yield side.key(change.key)
        yield from self.downloads.about(side.family, change.key)
        yield from self.results.of_request(side.key(change.key), change)
        if new is None and old is None:
            return
        namespace = change.key.namespace
        if new is None or (old is not None and _needs_no_place_now(old, new)):
            yield from self._short_of_a_place(side, namespace)
        if side is self.restores:
            if new is not None and outcome.has_ended(new) and not (old is not None and outcome.has_ended(old)):
                yield from side.keys(self._past_history(namespace))
            return
        if old is None or new is None or _restorability(old) != _restorability(new):
            yield from self._restores_of(change.key)

    def _linger(self, row: RequestRow, *, is_gone: bool) -> None:
        """Count a backup that was deleted by force until Velero has lost it, even if its request is gone."""
        name = build.nacuuid(row)
        self.lingering.take(name, row)
        if is_gone:
            self.lingering.forget_if_lost(name, self._locations())

    def _keys_for_velero(self, side: Side, change: Change[VeleroRow]) -> Iterator[Key]:
        row = change.new or change.old
        if row is None:
            return
        if change.old is None:
            yield from side.stray_keys((row,))
        if change.new is None:
            yield from side.deleted_stray_keys(row)
        if row.owner is not None:
            yield side.key(row.owner)
            yield from self.downloads.about(side.family, row.owner)
            is_another = change.old is None or change.new is None or change.old.phase != change.new.phase
            if side is self.backups and is_another:
                yield from self._restores_of(row.owner)
                protected = side.requests.by("held", (Reason.DELETION_PROTECTED, row.owner.namespace))
                yield from side.keys(protected)

    def _note_left(self, side: Side, change: Change[VeleroRow]) -> None:
        """Note how long an object ran whose data is still moved, for its turn is over."""
        old, new, clock = change.old, change.new, self.background_reads.clock
        if old is not None and new is not None and clock is not None and old.is_queued:
            side.turns.note_left(new, clock())

    def _queue(self, side: Side, name: str, row: RequestRow, *, is_deleted: bool) -> list[Key | LowPriority]:
        """Let an accepted request wait for its turn, or take one off the queue that needs none any more."""
        is_made = row.status.phase in (CREATED, DELETING) or Key(self.velero_namespace, name) in side.velero
        if not is_deleted and not is_made and rules.has_nacuuid(row) and not row.is_to_go:
            side.turns.enter(name, row.key, row.created)
            self._weigh(row.key.namespace)
            return []
        if is_deleted or is_made or not row.has_finalizer:
            self._unseen.pop(name, None)
        if (not is_made or row.status.position == 0) and side.turns.leave(name):
            return [*self._next_turns(side), *self._near(side)]
        return []

    def _near(self, side: Side) -> list[Key]:
        """Return those at the front of our queue."""
        side.turns.queue.replay()
        return [side.key(side.turns.queue.key(name)) for name in side.turns.queue.first(NEAR)]

    def _next_turns(self, side: Side) -> list[Key]:
        """Return the requests that may be handed over now."""
        side.turns.queue.replay()
        return [side.key(side.turns.queue.key(name)) for name in side.turns.next_names()]

    def _all_in_line(self, side: Side) -> Iterator[Key | LowPriority]:
        """Return everybody whose position may have changed: the near ones at once, the others later."""
        line, queue, is_told = side.line, side.turns.queue, side.telling.waits
        yield from self._asked_for(side, line.first())
        yield from self._near(side)
        farther = (name for name in line.rest() if not is_told(name))
        yield from map(LowPriority, self._asked_for(side, farther))  # thousands, before whom nobody near is to wait
        yield from (LowPriority(side.key(queue.key(name))) for name in list(queue) if not is_told(name))

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

    def _take_place(self, side: Side, change: Change[VeleroRow]) -> bool:
        """Count a Velero object for its namespace, and return whether a place may have become free."""
        old, new, places = change.old, change.new, side.places
        is_free = old is not None and (new is None or new.namespace_uid != old.namespace_uid)
        if old is not None and is_free:
            places.free(old.namespace_uid, change.key.name)
        if new is not None and places.hold(new.namespace_uid, change.key.name, is_active=not new.is_terminal):
            is_free = True
        return is_free

    def _short_of_a_place(self, side: Side, namespace: str) -> Iterator[Key]:
        return map(side.key, side.quota_queue.first(namespace, _WOKEN))

    def _past_history(self, namespace: str) -> list[RequestRow]:
        """Return the finished restores of a namespace that its policy does not keep any longer."""
        policy = self._policy(namespace)
        ended = self.restores.requests.by("ended", namespace)
        if policy is None or len(ended) <= policy.spec.quotas.restores.history:
            return []
        newest_first = sorted(ended, key=lambda row: (row.created, row.key), reverse=True)
        return newest_first[policy.spec.quotas.restores.history :]

    def _restores_of(self, backup: Key) -> Iterator[Key]:
        return self.restores.keys(self.restores.requests.by("source", backup))

    def _keys_for_deletion(self, change: Change[DeletionRow]) -> Iterator[Key]:
        row = change.new or change.old
        if row is not None and row.owner is not None:
            yield self.backups.key(row.owner)

    def _keys_for_answer(self, change: Change[AnswerRow]) -> Iterator[Key]:
        yield from self.downloads.of_answer(change)
        yield from self.results.of_answer(change)
        row = change.new or change.old
        if row is not None and row.target.kind in PREFIXES:
            yield from self._awaiting(row.target.name)

    def _awaiting(self, velero_backup: str) -> Iterator[Key]:
        """Return the restores that wait to be handed over from a Velero Backup."""
        backup = self.backups.velero.get(Key(self.velero_namespace, velero_backup))
        owner = backup.owner if backup is not None else None
        if owner is not None:
            yield from self.restores.keys(self.restores.requests.by("awaits", owner))

    def _keys_for_movement(self, side: Side, change: Change[MovementRow]) -> Iterator[Key]:
        row = change.new or change.old
        of = side.velero.get(Key(self.velero_namespace, row.of)) if row is not None else None
        if of is not None and of.owner is not None:
            yield side.key(of.owner)

    def _keys_for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key]:
        is_going = change.new is not None and change.new.is_going
        yield from self.downloads.here(change.key.name)
        for side in self._sides:
            rows = side.requests.by("here", change.key.name)
            yield from side.keys(
                row for row in rows if is_going or not row.status.velero.nacuuid or protection.is_protected(row.status)
            )
            if change.new is None or is_going or change.old is None:
                yield from side.stray_keys(side.velero.by("waits in", change.key.name))

    def _weigh(self, namespace: str, *, is_deleted: bool = False) -> None:
        """Set the share of a namespace from its policy."""
        policy = None if is_deleted else self._policy(namespace)
        for side in self._sides:
            if is_deleted:
                side.turns.queue.forget(namespace)
            elif policy is not None:
                side.turns.queue.set_weight(namespace, policy.spec.weight)

    def _keys_for_policy(self, change: Change[PolicyRow]) -> Iterator[Key | LowPriority]:
        if not change.initial:
            for namespace in {row.key.namespace for row in self.restores.requests.rows() if outcome.has_ended(row)}:
                yield from map(LowPriority, self.restores.keys(self._past_history(namespace)))
        for side in self._sides:
            yield from side.keys(side.requests.by("open", True))  # noqa: FBT003 - a value of the index
            yield from side.keys(side.requests.by("held", Reason.DELETION_PROTECTED))
        yield from self.downloads.unanswered()

    def _keys_for_location(self, change: Change[LocationRow]) -> Iterator[Key]:
        requests, old, new = self.backups.requests, change.old, change.new
        if old is None or new is None or old != msgspec.structs.replace(new, last_synced=old.last_synced):
            yield from self.backups.keys(requests.by("held", Reason.LOCATION_UNAVAILABLE))
        yield from self.backups.keys(requests.by("held", Reason.FORCE_DELETED))

    # What a decision sees

    def observe(self, key: Key, now: datetime) -> Seen | DownloadSeen | ResultsSeen | StraySeen | WindowSeen | None:
        """Collect what is known about a request."""
        plural, _, name = key.name.partition("/")
        if plural == _WINDOW:
            side = self.backups if name == BACKUPS.kind.plural else self.restores
            return WindowSeen(name, side.turns.next_expiry(now))
        if plural == strays.WORD:
            return self._stray(key.namespace, name)
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
            policy=self._policy(key.namespace) if _needs_policy(request) else None,
            velero=side.velero.get(at),
            deletion=self.deletions.get(at) if side is self.backups else None,
            source=self._source(request) if side is self.restores else None,
            stored=side.places.stored(uid, key.namespace, made),
            active=side.places.active(uid, key.namespace, made),
            expirations=self._expirations(side, request, uid),
            history=self._history(side, request),
            good=self._good(side, request, uid),
            locations=self._locations() if side is self.backups and _needs_locations(request) else (),
            transfers=movements(transfers.by("of", made)),
            volumes=movements(copies.by("of", made)),
            place=self._place(side, request, at, now),
        )
        seen = self._with_turn(side, made, seen, now)
        if request.status.phase not in (CREATED, DELETING):
            seen = msgspec.structs.replace(seen, access=self._access(key, seen.source))
        return self._with_claims(side, seen) if side is self.backups and volumes.is_new(seen) else seen

    def _place(self, side: Side, request: RequestRow, at: Key, now: datetime) -> Place:
        """Return where a request stands, and when that is to be told."""
        position, shown = self._position(side, request, at), request.status.position
        if position is None or (shown is not None and position >= shown):
            return Place(position)
        return Place(position, side.telling.when(at.name, shown, position, now))

    def _position(self, side: Side, request: RequestRow, at: Key) -> int | None:
        """Return where a request stands: in Velero's queue, or in ours behind everything that Velero has."""
        if at.name in side.line or at in side.velero:
            return side.line.position(at.name)
        if not side.turns.is_bounded:
            return side.line.last if rules.has_nacuuid(request) else None
        return side.line.last + side.turns.queue.rank(request.key.namespace, (request.created, at.name))

    def _history(self, side: Side, request: RequestRow) -> int | None:
        """Return how many finished restores are kept, if this one is not among them any longer."""
        if side is self.backups or not outcome.has_ended(request):
            return None
        is_past = any(row.uid == request.uid for row in self._past_history(request.key.namespace))
        policy = self._policy(request.key.namespace) if is_past else None
        return policy.spec.quotas.restores.history if policy is not None else None

    def _expirations(self, side: Side, request: RequestRow, namespace_uid: str) -> tuple[datetime, ...]:
        """Return when the ended backups of a namespace expire, if a request may not fit beside them."""
        if side is not self.backups or rules.has_nacuuid(request):
            return ()
        policy = self._policy(request.key.namespace)
        most = policy.spec.quotas.stored if policy is not None else None
        if most is None or side.places.stored(namespace_uid, request.key.namespace, build.nacuuid(request)) < most:
            return ()
        return self._expirations_in(namespace_uid)

    def _expirations_in(self, namespace_uid: str) -> tuple[datetime, ...]:
        rows = self.backups.velero.by("of namespace", namespace_uid)
        return tuple(row.expires for row in rows if row.expires is not None and row.is_terminal)

    def _good(self, side: Side, request: RequestRow, namespace_uid: str) -> tuple[VeleroRow, ...]:
        """Return when the complete backups of a namespace began that nobody deletes."""
        if side is not self.backups or not (request.is_to_be_deleted or request.is_to_be_forced):
            return ()
        rows = side.velero.by("of namespace", namespace_uid)
        return protection.good_backups(row for row in rows if row.key not in self.deletions)

    def _access(self, key: Key, source: Source | None) -> AccessSeen:
        """Collect what is known about access to what a request would bring back."""
        backup = source.velero if source is not None else None
        read_result = self.background_reads.result(key)
        if backup is None:
            return AccessSeen(reserved=self.never, read_result=read_result)
        rows = self.downloads.answers.by("contents of", backup.key.name)
        location = self.results.locations.get(Key(self.velero_namespace, location_of(backup)))
        return AccessSeen(
            has_contents=self.access.knows(backup.uid),
            files=tuple(
                FileRow(row.key, row.uid, row.target.kind, row.created, row.url, row.expires)
                for row in rows
                if row.key.name == file_name(row.target.kind, backup.uid)
            ),
            authority=location.authority if location is not None else "",
            reserved=self.never,
            read_result=read_result,
        )

    def _locations(self) -> tuple[LocationRow, ...]:
        return tuple(self.results.locations.rows())

    def _with_claims(self, side: Side, seen: Seen) -> Seen:
        """Add the volumes that a namespace has, and whose data is in a backup that has just ended."""
        made = build.nacuuid(seen.request)
        saved = frozenset(each.claim for store in side.moves.values() for each in store.by("of", made))
        claims = tuple(self.claims.by("here", seen.request.key.namespace))
        return msgspec.structs.replace(seen, claims=claims, saved=saved)

    def decide(self, seen: Seen | DownloadSeen | ResultsSeen | StraySeen | WindowSeen, now: datetime) -> Plan:
        """Say what is to be done."""
        if isinstance(seen, WindowSeen):
            return window.decide(seen)
        if isinstance(seen, StraySeen):
            return strays.decide(seen, now)
        if isinstance(seen, ResultsSeen):
            return results.decide(seen, now)
        if isinstance(seen, DownloadSeen):
            return downloads.decide(seen, now)
        return decide(seen, now)

    # What is remembered of a Plan

    def begin(
        self, _key: Key, seen: Seen | DownloadSeen | ResultsSeen | StraySeen | WindowSeen, plan: Plan, now: datetime
    ) -> Iterable[Key]:
        """Reserve the quota and the turn that a Plan takes: two Plans under way never take the last one both."""
        if isinstance(seen, WindowSeen):
            side = self.backups if seen.plural == BACKUPS.kind.plural else self.restores
            return self._next_turns(side) if side.turns.expire(now) else ()
        if not isinstance(seen, Seen):
            return ()
        side, request = self.backups if seen.family is BACKUPS else self.restores, seen.request
        name = build.nacuuid(request)
        side.turns.queue.replay()
        if seen.place.tell_at is not None:
            side.telling.book(name, seen.place.tell_at, now)
        if seen.unseen_since is not None:
            self._unseen.setdefault(name, seen.unseen_since)
        woken = self._take_turn(side, name, seen, plan, now)
        if not rules.has_nacuuid(request):
            if promises(plan, seen):
                side.places.promise(request.key.namespace, name)
            elif side.places.settle(request.key.namespace, name):
                woken += self._short_of_a_place(side, request.key.namespace)
        if creates(plan, seen):
            side.line.enter(name)
        if plan.status is not None and (name in side.line or name in side.turns.queue):
            side.telling.told(name, now)
        return woken

    def start_term(self) -> Iterable[Key]:
        """Forget since when Velero objects are not seen: whoever led since then may have made them."""
        self._unseen.clear()
        return ()

    def settled(
        self,
        key: Key,
        seen: Seen | DownloadSeen | ResultsSeen | StraySeen | WindowSeen | None,
        plan: Plan,
        result: Result,
        now: datetime,
    ) -> Iterable[Key]:
        """Release a turn that was not used, and forget the background reads that no decision needs any more."""
        if seen is None or (not plan.reads and _needs_no_read(seen, plan)):
            self.background_reads.forget(key)
        woken = self._expired(now)
        if isinstance(seen, Seen) and result.outcome is not Outcome.DONE:
            woken += self._take_back(seen)
        return woken

    def _expired(self, now: datetime) -> list[Key]:
        """Let backups that were deleted by force count no longer than they would have lived; return who may go on."""
        namespaces = {key.namespace for key in self.lingering.forget_collected(now)}
        return [key for namespace in namespaces for key in self._short_of_a_place(self.backups, namespace)]

    def _with_turn(self, side: Side, name: str, seen: Seen, now: datetime) -> Seen:
        """Add whether a request may be handed over now, and since when its Velero object may exist unseen."""
        request = seen.request
        if seen.velero is not None or request.status.phase in (CREATED, DELETING):
            return seen
        is_accepted = rules.has_nacuuid(request)
        unseen = self._unseen.get(name, now) if is_accepted and request.has_finalizer else None
        if is_accepted:
            turn = side.turns.turn(name, request.key.namespace, side.family.word, now)
        else:
            turn = side.turns.expected_turn(side.family.word)
        return msgspec.structs.replace(seen, turn=turn, unseen_since=unseen)

    def _take_turn(self, side: Side, name: str, seen: Seen, plan: Plan, now: datetime) -> list[Key]:
        """Note a hand-over, or let others go before a request that cannot use its turn: those are returned."""
        request, turns = seen.request, side.turns
        is_free = turns.expire(now)
        if seen.turn.is_blocked and rules.has_nacuuid(request):
            turns.rejoin(name)
        if creates(plan, seen):
            turns.hand_over(name, request.key.namespace, now)
            return [side.window_key] if turns.is_bounded else []
        if any(map(hand_over.is_quick, plan.reads)):
            return []  # the answer comes in a moment, and the order stays fair
        if authorizes(plan, seen):
            return []  # it uses its turn with the next reconcile
        if promises(plan, seen):
            turns.promise(name, request.key, request.created)
            self._weigh(request.key.namespace)
        elif name in turns.queue and not seen.turn.is_blocked:
            turns.set_aside(name)
        if is_free:
            return self._next_turns(side)
        if name in turns.queue and seen.turn.until is None:
            return [key for key in self._next_turns(side) if key != side.key(request.key)]
        return []

    def _take_back(self, seen: Seen) -> list[Key]:
        """Let others go first if a request could not use its turn, because a write failed: those are returned."""
        side, request = self.backups if seen.family is BACKUPS else self.restores, seen.request
        made = build.nacuuid(request)
        if Key(self.velero_namespace, made) in side.velero:
            return []
        stored = side.requests.get(request.key)
        is_over = stored is None or stored.uid != request.uid or stored.is_to_go
        if side.turns.take_back(made, request.key, request.created, is_over=is_over):
            side.line.leave(made)
        elif made in side.turns.queue and not seen.turn.is_blocked:
            side.turns.set_aside(made)
        else:
            return []
        return [key for key in self._next_turns(side) if key != side.key(request.key)]

    def _stray(self, namespace: str, path: str) -> StraySeen | None:
        """Collect what is known about a waiting Velero object and its namespace."""
        plural, _, name = path.partition("/")
        side = self.backups if plural == BACKUPS.velero.plural else self.restores
        row, at = side.velero.get(Key(self.velero_namespace, name)), Key("", namespace)
        if row is None or at in self.namespaces.unread:
            return None
        return StraySeen(side.family, row, self.namespaces.get(at))

    def _results(self, key: Key, asked: Key) -> ResultsSeen | None:
        """Collect what is known about the results of a request; of one that cannot be read, nothing."""
        plural, _, name = asked.name.partition("/")
        side = self.backups if plural == BACKUPS.kind.plural else self.restores
        at = Key(asked.namespace, name)
        request, answers = side.requests.get(at), self.results.answers(asked)
        if request is None:
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
            read_result=self.background_reads.result(key),
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
        has_policy = self._policy(namespace) is not None
        seen = msgspec.structs.replace(seen, namespace=row_of_namespace, has_policy=has_policy)
        return msgspec.structs.replace(seen, about=about, velero=row, backup=backup)

    def _policy(self, namespace: str) -> PolicyRow | None:
        row = self.namespaces.get(Key("", namespace))
        return policy_for(namespace, row.labels, self.policies.rows(), self.never) if row is not None else None

    def _source(self, request: RequestRow) -> Source:
        backup = self.backups.requests.get(Key(request.key.namespace, request.source))
        if backup is None:
            return Source(None, None)
        return Source(backup, self.backups.velero.get(Key(self.velero_namespace, build.nacuuid(backup))))


def _needs_no_read(seen: Seen | DownloadSeen | ResultsSeen | StraySeen | WindowSeen, plan: Plan) -> bool:
    """Whether what was read in the background is of no use any more."""
    if isinstance(seen, Seen):
        return creates(plan, seen) or seen.access is None or not rules.has_nacuuid(seen.request)
    return isinstance(seen, ResultsSeen) and results.is_over(seen)


def _restorability(backup: RequestRow) -> tuple[str, bool]:
    """Return what a restore from a backup depends on: its phase, and whether it is on its way out."""
    return backup.status.phase, rules.is_being_deleted(backup)


def _needs_policy(request: RequestRow) -> bool:
    is_to_go = request.is_to_be_deleted or request.is_to_be_forced
    return is_to_go or request.status.phase not in (CREATED, DELETING)


def _needs_locations(request: RequestRow) -> bool:
    return request.is_to_be_forced or not rules.has_nacuuid(request) or forced_at(request.status) is not None


def _held_by(row: RequestRow) -> list[Hashable]:
    """Return what a request waits for, apart from quota."""
    if forced_at(row.status) is not None:
        return [Reason.FORCE_DELETED]
    if protection.is_protected(row.status):
        return [Reason.DELETION_PROTECTED, (Reason.DELETION_PROTECTED, row.key.namespace)]
    accepted = row.status.condition(ACCEPTED)
    is_held = accepted is not None and accepted.reason == Reason.LOCATION_UNAVAILABLE
    return [Reason.LOCATION_UNAVAILABLE] if is_held else []


def _source_of(row: RequestRow) -> list[Hashable]:
    """Return the key of the backup that a restore is from."""
    return [Key(row.key.namespace, row.source)] if row.source else []


def _awaits_hand_over(row: RequestRow) -> bool:
    """Whether a request is accepted and Velero's object was not made yet."""
    return bool(row.status.velero.nacuuid) and row.status.phase not in (CREATED, DELETING)


def _lacks_a_place(row: RequestRow) -> bool:
    accepted = row.status.condition(ACCEPTED)
    if accepted is None or accepted.reason != Reason.QUOTA_EXCEEDED:
        return False
    return forced_at(row.status) is None and not protection.is_protected(row.status)


def _needs_no_place_now(old: RequestRow, new: RequestRow) -> bool:
    """Whether a request has just been refused, or has just got its place."""
    is_refused = new.status.phase == BACKING_OFF and old.status.phase != BACKING_OFF
    return is_refused or (_lacks_a_place(old) and not _lacks_a_place(new))


def _nobody(_: Change[Any]) -> Iterator[Key]:
    return iter(())


def _informer(
    kind: Kind,
    wire: type[Any],
    row: Callable[[Any], Any],
    store: Store[Any],
    keys: Callable[[Change[Any]], Iterable[Key | LowPriority]],
    namespace: str = "",
    *,
    meta: bool = False,
) -> Informer:
    return Informer(WatchSpec(kind, wire, row, namespace, metadata_only=meta), store, keys)
