"""What the controller of requests remembers: it changes with each event, and before and after the writes of a Plan.

Two Plans under way never both take the last of a quota or the last turn: a reservation counts from before the first
write.
"""

from collections.abc import Callable, Iterable
from datetime import datetime
from itertools import chain

from foresail.api import velero
from foresail.kube.controller import LowPriority
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change
from foresail.plan import Key, Plan
from foresail.selfservice.policy.quota_ledger import incoming
from foresail.selfservice.requests import authorization, rules
from foresail.selfservice.requests.state import ClusterState, FamilyState, lacks_quota
from foresail.selfservice.requests.status import CREATED, DELETING
from foresail.selfservice.requests.view import RequestView, Takes
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.records import nacuuid


class Memory:
    """Ledger, queue and positions: events change them, and what Plans have taken that the cluster does not show yet."""

    def __init__(self, cluster: ClusterState, clock: Callable[[], datetime | None]) -> None:
        self._cluster = cluster
        self._clock = clock  # None until a loop runs

    # Requests

    def request_changed(self, family: FamilyState, change: Change[RequestRow]) -> list[Key | LowPriority]:
        """Update from a change of a request."""
        new = change.new
        row = change.new or change.old
        if row is None:
            return []
        if family is self._cluster.backups:
            self._update_lingering(row, is_deleted=new is None)
        if new is not None and lacks_quota(new):
            family.quota_queue.enter(new.key, new.created)
        else:
            family.quota_queue.leave(change.key)
        name = nacuuid(row)
        namespace = change.key.namespace
        if (new is None or not rules.has_nacuuid(new)) and not family.is_in_velero(name):
            family.velero_queue.leave(name)  # it never came to Velero, and will not
            family.reports.forget(name)
        moved = self._update_queue(family, name, row, is_deleted=new is None)
        if new is None or new.status.phase in (CREATED, DELETING):
            family.ledger.release(namespace, name)
            family.ledger.release(row.target, incoming(name))
        elif rules.has_nacuuid(new):
            family.ledger.reserve(namespace, name)
        return moved

    def _update_lingering(self, row: RequestRow, *, is_deleted: bool) -> None:
        """Count a backup that was deleted by force until Velero no longer has it, even if its request is deleted."""
        name = nacuuid(row)
        self._cluster.force_deleted.take(name, row)
        if is_deleted:
            self._cluster.force_deleted.forget_if_lost(name, self._cluster.all_locations())

    def _update_queue(
        self, family: FamilyState, name: str, row: RequestRow, *, is_deleted: bool
    ) -> list[Key | LowPriority]:
        """Let an accepted request wait for its turn, or remove one from the queue that needs none any more."""
        is_created = row.status.phase in (CREATED, DELETING) or family.is_in_velero(name)
        if not is_deleted and not is_created and rules.has_nacuuid(row) and not row.is_being_removed:
            family.window.enter(name, row.key, row.created)
            self.update_weight(row.key.namespace)
            return []
        if is_deleted or is_created or not row.has_finalizer:
            self._cluster.unobserved.pop(name, None)
        if (not is_created or row.status.position == 0) and family.window.leave(name):
            return [*family.next_turn_keys(), *family.front_keys()]
        return []

    # Velero's objects

    def velero_changed(self, family: FamilyState, change: Change[VeleroRow]) -> Iterable[Key | LowPriority]:
        """Update from a change of a Velero Backup or Restore."""
        row = change.new or change.old
        if row is None:
            return ()
        keys: list[Key | LowPriority] = []
        for namespace in _update_ledger(family, change):
            keys += family.keys_short_of_quota(namespace)
        self._note_left(family, change)
        if self._update_window(family, change, row):
            keys += family.next_turn_keys()
        is_first_read = change.initial and change.old is None  # then everything is reconciled anyway
        if _update_positions(family, change) and not is_first_read:
            return chain(keys, family.queued_keys())  # thousands, not gathered into a list
        return keys

    def _update_window(self, family: FamilyState, change: Change[VeleroRow], row: VeleroRow) -> bool:
        """Update what Velero has; return whether a turn may have become free."""
        if change.new is None:
            return family.window.remove(change.key.name)
        return family.window.observe(row, change.old, change.initial)

    def _note_left(self, family: FamilyState, change: Change[VeleroRow]) -> None:
        """Note how long an object ran whose data is still moved, for its turn is over."""
        old = change.old
        new = change.new
        now = self._clock()
        if old is not None and new is not None and now is not None and old.is_queued:
            family.window.note_left(new, now)

    # Namespaces, policies and locations

    def namespace_changed(self, name: str, *, is_deleted: bool) -> None:
        """Update from a change of a namespace."""
        if is_deleted:
            self._cluster.force_deleted.leave(name)
            for family in self._cluster.families:
                family.window.queue.forget(name)
        else:
            self.update_weight(name)

    def policies_changed(self) -> None:
        """Update from a change of any policy."""
        for family in self._cluster.families:
            for namespace in family.window.queue.namespaces:
                self.update_weight(namespace)

    def update_weight(self, namespace: str) -> None:
        """Set the share of a namespace from its policy."""
        policy = self._cluster.policy(namespace)
        if policy is not None:
            for family in self._cluster.families:
                family.window.queue.set_weight(namespace, policy.spec.weight)

    def locations_changed(self) -> list[Key]:
        """Forget the backups deleted by force that Velero no longer has; return which requests may use their quota."""
        lost = self._cluster.force_deleted.forget_lost(self._cluster.all_locations())
        return [key for object_key in lost for key in self._cluster.backups.keys_short_of_quota(object_key.namespace)]

    def forget_collected(self, now: datetime) -> list[Key]:
        """Forget the backups deleted by force that have expired since; return which requests may use their quota."""
        namespaces = {key.namespace for key in self._cluster.force_deleted.forget_collected(now)}
        return [key for namespace in namespaces for key in self._cluster.backups.keys_short_of_quota(namespace)]

    # Plans

    def reserve(self, view: RequestView, plan: Plan, now: datetime) -> list[Key]:
        """Reserve what a Plan takes; return which requests may proceed."""
        family = self._cluster.of(view.family)
        request = view.request
        name = nacuuid(request)
        family.window.queue.replay()
        if view.position.report_at is not None:
            family.reports.book(name, view.position.report_at, now)
        if view.unobserved_since is not None:
            self._cluster.unobserved.setdefault(name, view.unobserved_since)
        woken = self._reserve_turn(family, name, view, plan, now)
        woken += self._reserve_quota(family, name, view, plan)
        if Takes.HAND_OVER in plan.claims:
            family.velero_queue.enter(name)
            if view.target is not None:  # not before: until then nobody has asked what its requester may do there
                family.ledger.reserve(view.target.name, incoming(name))
        if plan.status is not None and (name in family.velero_queue or name in family.window.queue):
            family.reports.reported(name, now)
        return woken

    def _reserve_quota(self, family: FamilyState, name: str, view: RequestView, plan: Plan) -> list[Key]:
        """Count a request that is accepted; return who may have the quota of one that is not accepted any more."""
        namespace = view.request.key.namespace
        if rules.has_nacuuid(view.request):
            return []
        if Takes.QUOTA in plan.claims:
            family.ledger.reserve(namespace, name)
            return []
        return list(family.keys_short_of_quota(namespace)) if family.ledger.release(namespace, name) else []

    def _reserve_turn(self, family: FamilyState, name: str, view: RequestView, plan: Plan, now: datetime) -> list[Key]:
        """Note a hand-over, or let others go before a request that cannot use its turn: those are returned."""
        request = view.request
        window = family.window
        is_free = window.expire(now)
        if view.turn.is_blocked and rules.has_nacuuid(request):
            window.rejoin(name)
        if Takes.HAND_OVER in plan.claims:
            window.hand_over(name, request.key.namespace, now)
            return [family.window_key] if window.is_bounded else []
        if any(map(authorization.is_quick, plan.reads)):
            return []  # the answer comes in a moment, and the order stays fair
        if Takes.NEXT_TURN in plan.claims:
            return []  # it uses its turn with the next reconcile
        if Takes.QUOTA in plan.claims:
            window.reserve(name, request.key, request.created)
            self.update_weight(request.key.namespace)
        elif name in window.queue and not view.turn.is_blocked:
            window.set_aside(name)
        if is_free:
            return family.next_turn_keys()
        if name in window.queue and view.turn.until is None:
            return self._others(family, request.key)
        return []

    def release(self, view: RequestView, result: Result) -> list[Key]:
        """Let others go first if a request could not use its turn, because a write failed: those are returned."""
        if result.outcome is Outcome.DONE:
            return []
        family = self._cluster.of(view.family)
        request = view.request
        name = nacuuid(request)
        if family.is_in_velero(name):
            return []
        family.ledger.release(request.target, incoming(name))
        stored = family.requests.get(request.key)
        is_over = stored is None or stored.uid != request.uid or stored.is_being_removed
        if family.window.release(name, request.key, request.created, is_over=is_over):
            family.velero_queue.leave(name)
        elif name in family.window.queue and not view.turn.is_blocked:
            family.window.set_aside(name)
        else:
            return []
        return self._others(family, request.key)

    def expire(self, plural: str, now: datetime) -> list[Key]:
        """Give up the hand-overs whose objects were not observed in time; return which requests may proceed."""
        family = self._cluster.of_plural(plural)
        return family.next_turn_keys() if family.window.expire(now) else []

    @staticmethod
    def _others(family: FamilyState, request: Key) -> list[Key]:
        return [key for key in family.next_turn_keys() if key != family.key(request)]


def _update_ledger(family: FamilyState, change: Change[VeleroRow]) -> list[str]:
    """Count a Velero object for its namespaces, and return those in which quota may have become free."""
    into = _update_incoming(family, change)
    old = change.old
    new = change.new
    ledger = family.ledger
    is_free = old is not None and (new is None or new.namespace_uid != old.namespace_uid)
    if old is not None and is_free:
        ledger.remove(old.namespace_uid, change.key.name)
    if new is not None:
        is_free |= ledger.record(new.namespace_uid, change.key.name, is_active=not new.is_terminal)
    row = new or old
    owner = row.owner.namespace if is_free and row is not None and row.owner is not None else ""
    return [namespace for namespace in (into, owner) if namespace]


def _update_incoming(family: FamilyState, change: Change[VeleroRow]) -> str:
    """Count a restore in the namespace that it is made into until it ends; return that one if quota became free.

    What is kept of it then is of the other namespace: nobody of this one could delete it.
    """
    name = incoming(change.key.name)
    old = change.old
    new = change.new
    if new is not None and new.target_uid and not new.is_terminal:
        family.ledger.record(new.target_uid, name, is_active=True)
    elif old is not None and old.target_uid:
        family.ledger.remove(old.target_uid, name)
        return old.target
    return ""


def _update_positions(family: FamilyState, change: Change[VeleroRow]) -> bool:
    """Update what waits and runs in Velero; return whether any position has changed."""
    new = change.new
    name = change.key.name
    queue = family.velero_queue
    if new is None or new.is_terminal:
        family.reports.forget(name)
        return queue.leave(name)
    queue.enter(name, new.created if change.initial else None)
    is_running = new.phase in velero.RUNNING
    return queue.change(name, is_waiting=new.is_waiting, is_running=is_running, number=new.queue_position)
