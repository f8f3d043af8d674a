"""The controller of NonAdminSchedules: what is known of them, and which events concern them."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Collection, Iterable, Iterator
from datetime import datetime

import msgspec

from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.kube.controller import LowPriority
from foresail.kube.execute import Result
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key, PartKey, Plan
from foresail.selfservice.requests.state import ClusterState, lacks_quota
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import ScheduleRow, stem
from foresail.selfservice.rows.velero import VeleroRow
from foresail.selfservice.schedules.decide import decide
from foresail.selfservice.schedules.keep_last import is_on_its_way
from foresail.selfservice.schedules.rules import Verdict
from foresail.selfservice.schedules.view import ScheduleView
from foresail.slots.policy_timing import PolicyRow as SchedulePolicyRow
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.records import nacuuid

_MOST_WAITING = 50  # of the requests that wait for quota, how many are looked at for runs

_Age = tuple[datetime, str]


class TenantSchedules:
    """The store of NonAdminSchedules, in each namespace by their age."""

    view = ScheduleView
    decide = staticmethod(decide)
    kind = NON_ADMIN_SCHEDULE
    parts = (kind.plural,)

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.schedules = Store[ScheduleRow]({"uid": lambda row: [(row.key.namespace, row.uid)]})
        self._by_age: dict[str, list[_Age]] = {}  # by namespace, the oldest first
        self._deleted: dict[str, datetime] = {}  # the slot of the last run that was deleted, by its schedule's UID
        self._states: dict[Key, str] = {}
        self.counts: Counter[str] = Counter()  # of schedules, by what they wait for

    def key(self, key: Key) -> PartKey:
        """Return the key under which a schedule is reconciled."""
        return PartKey(key.namespace, key.name, self.kind.plural)

    # What is learned from an event

    def schedule_changed(self, change: Change[ScheduleRow]) -> Iterator[Key]:
        """Keep the order of age; a schedule that is deleted makes room for the first that waits."""
        old = change.old
        new = change.new
        if old is not None and (new is None or old.uid != new.uid):
            self._deleted.pop(old.uid, None)
            self._forget(old)
            yield from self._first_beyond_limit(change.key.namespace)
        if new is not None and (old is None or old.uid != new.uid):
            insort(self._by_age.setdefault(new.key.namespace, []), (new.created, new.key.name))

    def run_changed(self, change: Change[RequestRow]) -> None:
        """Remember the slot of a run that is deleted: status.lastBackup of its schedule may not record it yet."""
        row = change.old
        if change.new is not None or row is None or row.slot is None or not row.schedule_uid:
            return
        if self.schedules.by("uid", (row.key.namespace, row.schedule_uid)):
            self._deleted[row.schedule_uid] = max(row.slot, self._deleted.get(row.schedule_uid, row.slot))

    def _forget(self, row: ScheduleRow) -> None:
        ages = self._by_age.get(row.key.namespace, [])
        age = (row.created, row.key.name)
        place = bisect_left(ages, age)
        if place < len(ages) and ages[place] == age:
            del ages[place]
        if not ages:
            self._by_age.pop(row.key.namespace, None)

    def _first_beyond_limit(self, namespace: str) -> Iterator[Key]:
        policy = self._cluster.policy(namespace)
        ages = self._by_age.get(namespace, [])
        most = policy.spec.schedules.maximum if policy is not None else 0
        if 0 < most <= len(ages):
            yield self.key(Key(namespace, ages[most - 1][1]))

    # Events to keys

    def keys_for_schedule(self, change: Change[ScheduleRow]) -> Iterator[Key]:
        """Return the key of a schedule that has changed."""
        yield self.key(change.key)

    def keys_for_run(self, change: Change[RequestRow]) -> Iterator[Key]:
        """Return the schedule that a NonAdminBackup was created for."""
        row = change.new or change.old
        if row is not None and row.schedule_uid:
            for schedule in self.schedules.by("uid", (row.key.namespace, row.schedule_uid)):
                yield self.key(schedule.key)
            new = change.new
            if new is None or new.is_being_removed or lacks_quota(new):  # an old run of any schedule may make room
                yield from self.keys_in(row.key.namespace)

    def keys_for_schedule_policy(self, change: Change[SchedulePolicyRow]) -> Iterator[LowPriority]:
        """Return all schedules if a SelfServicePolicy names the SchedulePolicy that has changed."""
        named = (row.spec.schedules.schedule_policy for row in self._cluster.policies.rows())
        return self.all_keys() if change.key.name in named else iter(())

    def keys_in(self, namespace: str) -> Iterator[Key]:
        """Return the schedules of a namespace."""
        return (self.key(Key(namespace, name)) for _, name in self._by_age.get(namespace, ()))

    def all_keys(self) -> Iterator[LowPriority]:
        """Return the schedules of all namespaces, for when nobody waits."""
        return (LowPriority(self.key(key)) for key in self.schedules)

    # What a decision sees

    def observe(self, part_key: PartKey, _: datetime) -> ScheduleView | None:
        """Collect what is known about a NonAdminSchedule, and about those that make room before it."""
        key = part_key.object
        view = self._observe(key)
        if view is None or not view.is_full:
            return view
        others = map(self._observe, (Key(key.namespace, name) for _, name in self._by_age[key.namespace]))
        in_turn = sorted((other for other in others if other is not None), key=lambda other: not other.is_waiting)
        names = [other.schedule.key.name for other in in_turn]
        place = names.index(key.name) if key.name in names else 0
        return msgspec.structs.replace(view, first=tuple(in_turn[:place]), last=tuple(in_turn[place + 1 :]))

    def _observe(self, key: Key) -> ScheduleView | None:
        cluster = self._cluster
        schedule = self.schedules.get(key)
        if schedule is None:
            return None
        requests = cluster.backups.requests
        age = (schedule.created, key.name)
        policy = cluster.policy(key.namespace)
        named = Key("", (policy.spec.schedules.schedule_policy if policy is not None else None) or "")
        unread = cluster.schedule_policies.unread.get(named)
        runs = tuple(requests.by("schedule", (key.namespace, schedule.uid)))
        is_limited = policy is not None and policy.spec.schedules.keep_last is not None
        made = self._velero_backups(runs) if is_limited else {}
        waiting = self._waiting_runs(key.namespace, policy) if is_limited else []
        return ScheduleView(
            schedule=schedule,
            namespace=cluster.namespace(key.namespace),
            policy=policy,
            schedule_policy=cluster.schedule_policies.get(named),
            schedule_policy_problem=unread.problem if unread is not None else "",
            backups=runs,
            velero=made,
            restored=frozenset(
                name for name, row in made.items() if cluster.is_read(Key(key.namespace, name), row.name)
            ),
            good=self._last_good(key.namespace, policy) if is_limited else (),
            is_full=len(waiting) > self._on_the_way(key.namespace, waiting),
            is_waiting=any(row.schedule_uid == schedule.uid for row in waiting),
            doubt=next(cluster.doubts(key.namespace, made.values()), "") if is_limited else "",
            older=bisect_left(self._by_age.get(key.namespace, []), age),
            deleted=self._deleted.get(schedule.uid),
            taken=frozenset(
                row.key.name
                for row in requests.by("run of", (key.namespace, stem(key.name)))
                if row.schedule_uid != schedule.uid
            ),
        )

    def _velero_backups(self, runs: Iterable[RequestRow]) -> dict[str, VeleroRow]:
        """Return the Velero Backups of runs that exist, by the names of the runs."""
        cluster = self._cluster
        rows = ((run, cluster.backups.velero.get(Key(cluster.velero_namespace, nacuuid(run)))) for run in runs)
        return {run.key.name: row for run, row in rows if row is not None and row.request_uid == run.uid}

    def _last_good(self, namespace: str, policy: PolicyRow | None) -> tuple[VeleroRow, ...]:
        """Return the good backups of a namespace, if its policy keeps the last of them."""
        row = self._cluster.namespace(namespace)
        if row is None or policy is None or not policy.spec.deletion.keep_last_good:
            return ()
        return self._cluster.good_backups(row.uid)

    def _on_the_way(self, namespace: str, waiting: Collection[RequestRow]) -> int:
        """Return how many backups of a namespace are deleted soon; counted only if a run waits for one."""
        family = self._cluster.backups
        rows = family.requests.by("namespace", namespace) if waiting else ()
        return sum(is_on_its_way(row) and family.is_in_velero(nacuuid(row)) for row in rows)

    def _waiting_runs(self, namespace: str, policy: PolicyRow | None) -> list[RequestRow]:
        """Return runs that wait because the namespace stores as many backups as it may."""
        family = self._cluster.backups
        most = policy.spec.quotas.stored if policy is not None else None
        row = self._cluster.namespace(namespace)
        if most is None or row is None:
            return []
        waiting = [family.requests.get(key) for key in family.quota_queue.first(namespace, _MOST_WAITING)]
        runs = [run for run in waiting if run is not None and run.schedule_uid and not run.is_being_removed]
        return [run for run in runs if family.ledger.stored(row.uid, namespace, nacuuid(run)) >= most]

    # What the metrics show

    def settled(
        self, key: PartKey, _view: ScheduleView | None, plan: Plan, _result: Result, _now: datetime
    ) -> Iterable[Key]:
        """Count a schedule by what it waits for; one that is deleted no longer counts."""
        verdict = plan.claim(Verdict)
        before = self._states.pop(key, None)
        if before is not None:
            self.counts[before] -= 1
        if verdict is not None:
            self._states[key] = state = _state(verdict)
            self.counts[state] += 1
        return ()


def _state(verdict: Verdict) -> str:
    why = verdict.refused or verdict.blocked_by
    return why.reason.value if why is not None else "Scheduled"
