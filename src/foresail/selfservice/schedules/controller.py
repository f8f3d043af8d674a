"""NonAdminSchedules: what is known of them, which events concern them, and what a decision about one sees."""

from bisect import bisect_left, insort
from collections import Counter
from collections.abc import Iterator
from datetime import datetime

from foresail.api.requests import NON_ADMIN_SCHEDULE
from foresail.kube.controller import LowPriority
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.run_names import stem
from foresail.selfservice.rows.schedules import ScheduleRow
from foresail.selfservice.schedules.observe import ScheduleView
from foresail.selfservice.schedules.rules import Verdict
from foresail.selfservice.state.cluster import ClusterState
from foresail.slots.policies import PolicyRow as SchedulePolicyRow

_Age = tuple[datetime, str]


class TenantSchedules:
    """The store of NonAdminSchedules, in each namespace by their age."""

    kind = NON_ADMIN_SCHEDULE

    def __init__(self, cluster: ClusterState) -> None:
        self._cluster = cluster
        self.schedules = Store[ScheduleRow]({"uid": lambda row: [(row.key.namespace, row.uid)]})
        self._by_age: dict[str, list[_Age]] = {}  # by namespace, the oldest first
        self._deleted: dict[str, datetime] = {}  # the slot of the last run that was deleted, by its schedule's UID
        self._states: dict[Key, str] = {}
        self.counts: Counter[str] = Counter()  # of schedules, by what they wait for

    def key(self, key: Key) -> Key:
        """Return the key under which a schedule is reconciled."""
        return Key(key.namespace, f"{self.kind.plural}/{key.name}")

    # What is learned from an event

    def schedule_changed(self, change: Change[ScheduleRow]) -> Iterator[Key]:
        """Keep the order of age; a schedule that is deleted makes room for the first that waits."""
        old, new = change.old, change.new
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
        ages, age = self._by_age.get(row.key.namespace, []), (row.created, row.key.name)
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
            for each in self.schedules.by("uid", (row.key.namespace, row.schedule_uid)):
                yield self.key(each.key)

    def keys_for_schedule_policy(self, change: Change[SchedulePolicyRow]) -> Iterator[LowPriority]:
        """Return all schedules if a SelfServicePolicy names the SchedulePolicy that has changed."""
        named = (each.spec.schedules.schedule_policy for each in self._cluster.policies.rows())
        return self.all_keys() if change.key.name in named else iter(())

    def keys_in(self, namespace: str) -> Iterator[Key]:
        """Return the schedules of a namespace."""
        return (self.key(Key(namespace, name)) for _, name in self._by_age.get(namespace, ()))

    def all_keys(self) -> Iterator[LowPriority]:
        """Return the schedules of all namespaces, for when nobody waits."""
        return (LowPriority(self.key(key)) for key in self.schedules)

    # What a decision sees

    def observe(self, key: Key) -> ScheduleView | None:
        """Collect what is known about a NonAdminSchedule."""
        cluster, schedule = self._cluster, self.schedules.get(key)
        if schedule is None:
            return None
        requests, age = cluster.backups.requests, (schedule.created, key.name)
        policy = cluster.policy(key.namespace)
        named = Key("", (policy.spec.schedules.schedule_policy if policy is not None else None) or "")
        unread = cluster.schedule_policies.unread.get(named)
        return ScheduleView(
            schedule=schedule,
            namespace=cluster.namespace(key.namespace),
            policy=policy,
            schedule_policy=cluster.schedule_policies.get(named),
            schedule_policy_problem=unread.problem if unread is not None else "",
            backups=tuple(requests.by("schedule", (key.namespace, schedule.uid))),
            older=bisect_left(self._by_age.get(key.namespace, []), age),
            deleted=self._deleted.get(schedule.uid),
            taken=frozenset(
                row.key.name
                for row in requests.by("run of", (key.namespace, stem(key.name)))
                if row.schedule_uid != schedule.uid
            ),
        )

    # What the metrics show

    def settled(self, key: Key, verdict: Verdict | None) -> None:
        """Count a schedule by what it waits for; one that is deleted no longer counts."""
        before = self._states.pop(key, None)
        if before is not None:
            self.counts[before] -= 1
        if verdict is not None:
            self._states[key] = state = _state(verdict)
            self.counts[state] += 1


def _state(verdict: Verdict) -> str:
    why = verdict.refused or verdict.blocked_by
    return why.reason.value if why is not None else "Scheduled"
