"""The controller of protection: what it watches, how changes map to keys, and which `decide` it calls."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from foresail.api import core, velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.marks import PROTECTION_CLASS as CLASS_MARK
from foresail.api.protection import PROTECTION, PROTECTION_CLASS, PROTECTION_NAME, Protection, ProtectionClass
from foresail.api.schedule_policy import SCHEDULE_POLICY, SchedulePolicy
from foresail.kube.controller import Informer, LowPriority
from foresail.kube.execute import Outcome, Result
from foresail.kube.failures import is_refusal
from foresail.kube.reflector import Change, WatchSpec
from foresail.plan import Action, Create, Key, Plan
from foresail.protection import rows
from foresail.protection.decide import decide_assignment, decide_class, decide_namespace
from foresail.protection.health import Health, HealthView, decide_health
from foresail.protection.metrics import ProtectionMetrics
from foresail.protection.rows import BackupRow, ClaimRow, ClassRow, LocationRow, NamespaceRow, ScheduleRow
from foresail.protection.state import REFUSED_FOR, ProtectionState
from foresail.protection.status import Report
from foresail.protection.view import AssignmentView, ClassView, NamespaceView
from foresail.slots.policy_timing import PolicyRow, policy_row, reaches

ASSIGNMENT = Key("", "")
"""Who is in which Schedule; other keys are those of classes and of Protections."""

HEALTH = Key("", "velero/health")
"""Whether Velero works; no class has such a name."""

View = AssignmentView | ClassView | NamespaceView | HealthView


def _key(namespace: str) -> Key:
    return Key(namespace, PROTECTION_NAME)


class ProtectionByLabel:
    """Keeps the Schedules of every ProtectionClass, and one Protection per namespace."""

    name = "protection"

    def __init__(
        self,
        velero_namespace: str,
        never: Iterable[str] = (),
        zone: str = "UTC",
        skew: Callable[[], timedelta | None] = timedelta,
    ) -> None:
        self.state = ProtectionState(velero_namespace, never, zone, skew)
        self.metrics = ProtectionMetrics(self.state.classes, self.state.schedules)

    @property
    def informers(self) -> tuple[Informer, ...]:
        """Namespaces and their claims, classes, Protections; Schedules, Backups, policies, locations, Velero's pods."""
        state = self.state
        here = state.velero_namespace
        namespaces = WatchSpec(core.NAMESPACE, core.Namespace, rows.namespace_row)
        classes = WatchSpec(PROTECTION_CLASS, ProtectionClass, rows.class_row)
        protections = WatchSpec(PROTECTION, Protection, rows.protection_row)
        schedules = WatchSpec(velero.SCHEDULE, velero.Schedule, rows.schedule_row, here)
        backups = WatchSpec(velero.BACKUP, velero.Backup, rows.backup_row, here, labels=velero.SCHEDULE_LABEL)
        policies = WatchSpec(SCHEDULE_POLICY, SchedulePolicy, policy_row, optional=True)
        locations = WatchSpec(velero.LOCATION, velero.Location, rows.location_row, here)
        claims = WatchSpec(core.CLAIM, core.Claim, rows.claim_row)
        deployments = WatchSpec(DEPLOYMENT, Deployment, _as_is, here)
        return (
            Informer(namespaces, state.namespaces, self._for_namespace),
            Informer(classes, state.classes, self._for_class),
            Informer(protections, state.protections, lambda change: (LowPriority(change.key),)),
            Informer(schedules, state.schedules, self._for_schedule),
            Informer(backups, state.backups, self._for_backup),
            Informer(policies, state.policies, self._for_policy),
            Informer(locations, state.locations, self._for_location),
            Informer(claims, state.claims, _for_claim),
            Informer(deployments, state.deployments, lambda _: (HEALTH,)),
        )

    # Map changes to keys

    def _for_namespace(self, change: Change[NamespaceRow]) -> Iterator[Key | LowPriority]:
        yield ASSIGNMENT
        yield LowPriority(_key(change.key.name))  # in the queue namespaces take turns: the Schedules come first
        for name in {row.asked for row in (change.old, change.new) if row is not None}:
            if Key("", name) in self.state.classes:
                yield LowPriority(Key("", name))

    def _for_class(self, change: Change[ClassRow]) -> Iterator[Key | LowPriority]:
        """Return a class and its namespaces; if it is or was the default, every namespace."""
        if change.old is not None and change.new is not None and change.old.spec == change.new.spec:
            yield change.key
            return
        yield ASSIGNMENT
        yield change.key
        is_default = any(row.spec.default for row in (change.old, change.new) if row is not None)
        every = (key.name for key in self.state.namespaces)
        for name in every if is_default else self.state.namespaces_of(change.key.name):
            yield LowPriority(_key(name))
        if len({row is not None and row.spec.restore.by_tenants for row in (change.old, change.new)}) > 1:
            yield from self._taken_for(change.key.name)
        if is_default:
            yield from (key for key in self.state.classes if key != change.key)

    def _taken_for(self, name: str) -> Iterator[LowPriority]:
        """Return the namespaces that a class has backups of: they may have left it."""
        return (LowPriority(_key(member)) for member in self.state.members(self.state.taken_for(name)))

    def _for_schedule(self, change: Change[ScheduleRow]) -> Iterator[Key | LowPriority]:
        """Return what depends on a Schedule, but not for what changes with each of its runs."""
        before, after = change.old, change.new
        if before is not None and after is not None and before.asks == after.asks:
            return
        rows = [row for row in (before, after) if row is not None and row.protection_class]
        if not rows:
            return
        yield ASSIGNMENT
        yield from {Key("", row.protection_class) for row in rows}
        old = set(before.members) if before is not None else set()
        new = set(after.members) if after is not None else set()
        is_same = before is not None and after is not None and _without_members(before) == _without_members(after)
        for name in self.state.members(old ^ new if is_same else old | new):
            yield LowPriority(_key(name))

    def _for_backup(self, change: Change[BackupRow | None]) -> Iterator[Key | LowPriority]:
        """Return the namespaces of a Backup that has ended or is deleted; and who may leave a Schedule by it."""
        rows = [row for row in (change.old, change.new) if row is not None]
        if (
            not any(row.is_terminal for row in rows)
            or len({(row.phase, row.expires, row.snapshots, row.is_terminating) for row in rows}) == len(rows) - 1
        ):
            return
        names = {name for row in rows for name in row.uids}
        for name in self.state.members(names):
            yield LowPriority(_key(name))
        if any(self.state.schedules.count("member", name) > 1 for name in names):
            yield ASSIGNMENT

    def _for_policy(self, change: Change[PolicyRow]) -> Iterator[Key | LowPriority]:
        """Return the classes that name a policy, and the namespaces of the Schedules to which it applies."""
        rows = [row for row in (change.old, change.new) if row is not None]
        for row in self.state.classes.rows():
            if row.spec.schedule_policy == change.key.name:
                yield row.key
                yield from (LowPriority(_key(name)) for name in self.state.namespaces_of(row.name))
        for schedule in self.state.schedules.rows():
            if schedule.protection_class and any(reaches(row, schedule.name, schedule.labels) for row in rows):
                yield from (LowPriority(_key(name)) for name in self.state.members(schedule.members))

    def _for_location(self, change: Change[LocationRow]) -> Iterator[Key | LowPriority]:
        """Return every class and its namespaces: which location a class means depends on all of them."""
        yield HEALTH
        if _asks(change.old) == _asks(change.new):
            return
        for row in self.state.classes.rows():
            yield row.key
            yield from (LowPriority(_key(name)) for name in self.state.namespaces_of(row.name))
            yield from self._taken_for(row.name)

    # Observe, decide, settle

    def observe(self, key: Key, now: datetime) -> View | None:
        """Collect what a decision depends on; None if the class or the namespace is deleted."""
        if key == ASSIGNMENT:
            return self.state.assignment(now)
        if key == HEALTH:
            return self.state.health_view()
        if not key.namespace:
            return self.state.class_view(key.name)
        return None if key.name != PROTECTION_NAME else self.state.namespace_view(key, now)

    def decide(self, view: View, now: datetime) -> Plan:
        """Return the Plan."""
        match view:
            case AssignmentView():
                return decide_assignment(view, now)
            case ClassView():
                return decide_class(view, now)
            case HealthView():
                return decide_health(view, now)
            case NamespaceView():
                return decide_namespace(view, now)

    def settled(self, key: Key, view: View | None, plan: Plan, result: Result, now: datetime) -> Iterable[Key]:
        """Note the state of a namespace, and for which classes the API server refuses writes."""
        health = plan.claim(Health)
        if health is not None:
            return self._settle_health(health)
        report = plan.claim(Report)
        if key.namespace:
            if report is None:
                self.metrics.forget(key)
            else:
                self.metrics.record(key, report)
        return self._settle_assignment(result, now) if isinstance(view, AssignmentView) else ()

    def _settle_health(self, health: Health) -> Iterable[Key]:
        """Return every namespace if something else counts than before."""
        before, self.state.health = self.state.health, health
        is_same = before is None or before.counted == health.counted
        return () if is_same else [_key(key.name) for key in self.state.namespaces]

    def _settle_assignment(self, result: Result, now: datetime) -> Iterable[Key]:
        """Let a class wait whose write was refused: its Plan must not stop those of the others."""
        over = [name for name, (until, _) in self.state.refused.items() if until <= now]
        if result.outcome is Outcome.DONE:
            for name in over:
                del self.state.refused[name]
            return [Key("", name) for name in over]
        is_final = result.failure is not None and (is_refusal(result.failure) or result.outcome is Outcome.REFUSED)
        name = self._class_of(result.action) if result.action is not None and is_final else ""
        if not name or result.failure is None:
            return ()
        self.state.refused[name] = now + REFUSED_FOR, result.failure.message
        return (ASSIGNMENT, Key("", name))

    def _class_of(self, action: Action) -> str:
        if isinstance(action, Create):
            return action.mark.get(CLASS_MARK, "")
        row = self.state.schedules.get(action.key)
        return row.protection_class if row is not None else ""

    def start_term(self) -> Iterable[Key]:
        """Forget what was refused and reported in an earlier term, and reconcile everything."""
        self.state.refused.clear()
        self.metrics.clear()
        self.state.health = None
        return (ASSIGNMENT, HEALTH, *self.state.classes, *(_key(key.name) for key in self.state.namespaces))


def _asks(row: LocationRow | None) -> LocationRow | None:
    return row.asks if row is not None else None


def _as_is(wire: Deployment) -> Deployment:
    return wire


def _for_claim(change: Change[ClaimRow | None]) -> Iterator[LowPriority]:
    """Return the namespace of a claim that gets a volume, or that backups no longer need to have."""
    if (change.old is None) != (change.new is None):
        yield LowPriority(_key(change.key.namespace))


def _without_members(row: ScheduleRow) -> ScheduleRow:
    return msgspec.structs.replace(row.asks, members=(), template=b"")
