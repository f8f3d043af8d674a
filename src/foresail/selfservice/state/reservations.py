"""Reserve the quota and the turn that a Plan takes, and release what it could not use.

Two Plans under way never take the last of either both: a reservation counts from before the first write.
"""

from collections.abc import Callable
from datetime import datetime

from foresail.kube.execute import Outcome, Result
from foresail.plan import Key, Plan
from foresail.selfservice.policy.quota_ledger import incoming
from foresail.selfservice.requests import authorization, rules
from foresail.selfservice.requests.plan_effects import authorizes, creates, reserves_quota
from foresail.selfservice.requests.view import RequestView
from foresail.selfservice.state.cluster import ClusterState
from foresail.selfservice.state.family import FamilyState
from foresail.tenancy.records import nacuuid


class Reservations:
    """What Plans have taken that the cluster does not show yet."""

    def __init__(self, cluster: ClusterState, update_weight: Callable[[str], None]) -> None:
        self._cluster = cluster
        self._update_weight = update_weight

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
        if creates(plan, view):
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
        if reserves_quota(plan, view):
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
        if creates(plan, view):
            window.hand_over(name, request.key.namespace, now)
            return [family.window_key] if window.is_bounded else []
        if any(map(authorization.is_quick, plan.reads)):
            return []  # the answer comes in a moment, and the order stays fair
        if authorizes(plan, view):
            return []  # it uses its turn with the next reconcile
        if reserves_quota(plan, view):
            window.reserve(name, request.key, request.created)
            self._update_weight(request.key.namespace)
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
