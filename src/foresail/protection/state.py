"""What the controller of protection knows: its stores, and lookups across them."""

from collections.abc import Callable, Iterable, Iterator
from datetime import datetime, timedelta

import msgspec

from foresail.api.apps import Deployment
from foresail.api.marks import PROTECTION_CLASS
from foresail.kube.store import Store, Unreadable
from foresail.plan import Key
from foresail.protection.groups import order
from foresail.protection.health import Health, HealthView, health_of
from foresail.protection.rows import (
    BackupRow,
    ClaimRow,
    ClassRow,
    LocationRow,
    NamespaceRow,
    ProtectionRow,
    ScheduleRow,
)
from foresail.protection.rules import (
    choice,
    class_location,
    class_problem,
    class_unreadable,
    newest_good,
    schedule_problem,
    schedule_unreadable,
)
from foresail.protection.view import AssignmentView, Classes, ClassView, NamespaceView
from foresail.reporting import Because
from foresail.safety.velero_pods import last_validation, server_pods, validates_every
from foresail.slots.policy_timing import PolicyRow, index_values, lookup_values, policy_for

REFUSED_FOR = timedelta(seconds=30)
"""How long a class waits whose Schedule the API server has refused; the others go on."""


class ProtectionState:
    """The stores, and which classes wait because the API server has refused a write for them."""

    def __init__(
        self,
        velero_namespace: str,
        never: Iterable[str],
        zone: str,
        skew: Callable[[], timedelta | None] = timedelta,
    ) -> None:
        self.velero_namespace = velero_namespace
        self.never = frozenset((*never, velero_namespace))
        self.zone = zone
        self.namespaces = Store[NamespaceRow]({"asked": lambda row: [row.asked]})
        self.classes = Store[ClassRow]()
        self.schedules = Store[ScheduleRow](
            {
                "class": lambda row: [row.protection_class],
                "member": lambda row: row.members,
                "uid": lambda row: [row.uid],
            }
        )
        self.backups = Store[BackupRow | None](
            {
                "schedule": lambda row: [row.schedule] if row is not None else [],
                "namespace": lambda row: row.uids if row is not None else [],
                "class": lambda row: [row.protection_class] if row is not None else [],
            }
        )
        self.policies = Store[PolicyRow]({"selects": index_values})
        self.locations = Store[LocationRow]()
        self.deployments = Store[Deployment]()
        self.claims = Store[ClaimRow | None]({"namespace": lambda row: [row.key.namespace] if row is not None else []})
        self.health: Health | None = None
        self._skew = skew
        self.protections = Store[ProtectionRow]()
        self.refused: dict[str, tuple[datetime, str]] = {}

    def known_classes(self) -> Classes:
        """Return the classes of the cluster."""
        unread = {key.name: unreadable.problem for key, unreadable in self.classes.unread.items()}
        return Classes({row.name: row for row in self.classes.rows()}, unread, self.never)

    def runs_of(self, schedule: str) -> tuple[BackupRow, ...]:
        """Return the Backups of a Schedule of this cluster."""
        return tuple(self._made_here(self.backups.by("schedule", schedule)))

    def _made_here(self, rows: Iterable[BackupRow | None]) -> Iterator[BackupRow]:
        """Yield those that this cluster made: others write to the bucket, and may have a Schedule of the same name."""
        for row in rows:
            if row is not None and (not row.is_synced or (row.schedule_uid and self._has_schedule(row.schedule_uid))):
                yield row

    def _has_schedule(self, uid: str) -> bool:
        return self.schedules.count("uid", uid) > 0

    def namespaces_of(self, name: str) -> set[str]:
        """Return the namespaces that name a class, or are in one of its Schedules."""
        asking = {row.name for row in self.namespaces.by("asked", name)} if name else set()
        members = {member for row in self.schedules.by("class", name) for member in row.members} if name else set()
        return asking | {member for member in members if Key("", member) in self.namespaces}

    def taken_for(self, name: str) -> set[str]:
        """Return the namespaces of which the backups of a class were taken."""
        return {uid for row in self.backups.by("class", name) if row is not None for uid in row.uids}

    def policy_of(self, schedule: ScheduleRow) -> PolicyRow | None:
        """Return the SchedulePolicy of a Schedule."""
        values = lookup_values(schedule.name, schedule.labels)
        may_apply = (policy for value in values for policy in self.policies.by("selects", value))
        return policy_for(schedule.name, schedule.labels, may_apply)

    def problem_of(self, name: str) -> Because | None:
        """Return what keeps a class from running."""
        unreadable = self.classes.unread.get(Key("", name))
        if unreadable is not None:
            return class_unreadable(name, unreadable.problem)
        row = self.classes.get(Key("", name))
        if row is None:
            return None
        policies = {key.name for key in self.policies} | {key.name for key in self.policies.unread}
        _, refused = self.refused.get(name, (None, ""))
        return class_problem(row, policies, self.locations.rows(), refused)

    def location_of(self, name: str) -> str:
        """Return the storage location of a class; empty if there is no such class."""
        row = self.classes.get(Key("", name))
        return class_location(row, self.locations.rows()) if row is not None else ""

    # Views

    def health_view(self) -> HealthView:
        """Return what tells whether Velero works."""
        deployments = list(self.deployments.rows())
        locations = tuple(self.locations.rows())
        wires = (row.wire for row in locations if row.wire is not None)
        validation = last_validation(wires, validates_every(deployments))
        return HealthView(
            tuple(server_pods(deployments)), validation, locations, self.health, self._skew() or timedelta()
        )

    def assignment(self, now: datetime) -> AssignmentView:
        """Return all namespaces, classes and Schedules."""
        moving = {
            row.name
            for row in self.schedules.rows()
            if any(self.schedules.count("member", member) > 1 for member in row.members)
        }
        labelled = (unreadable.labels.get(PROTECTION_CLASS, "") for unreadable in self.schedules.unread.values())
        return AssignmentView(
            velero_namespace=self.velero_namespace,
            namespaces={row.name: row for row in self.namespaces.rows()},
            classes=self.known_classes(),
            schedules=tuple(self.schedules.rows()),
            unread_names=frozenset(key.name for key in self.schedules.unread),
            runs={name: self.runs_of(name) for name in moving},
            held={name: until for name, (until, _) in self.refused.items() if until > now},
            unread=frozenset(labelled),
            unread_namespaces=frozenset(key.name for key in self.namespaces.unread),
        )

    def class_view(self, name: str) -> ClassView | None:
        """Return a class and who uses it."""
        row = self.classes.get(Key("", name))
        if row is None:
            return None
        schedules = tuple(sorted(self.schedules.by("class", name), key=lambda schedule: order(schedule.name)))
        count = len(self.namespaces_of(name))
        of_schedules = (
            *(schedule_unreadable(str(each.key), each.problem) for each in self._unread_schedules_of(name)),
            *(schedule_problem(schedule) for schedule in schedules),
        )
        problems = (because for because in (self.problem_of(name), *of_schedules) if because is not None)
        return ClassView(row, self.known_classes(), count, schedules, next(problems, None))

    def _unread_schedules_of(self, name: str) -> Iterator[Unreadable]:
        found = self.schedules.unread.values()
        return (unreadable for unreadable in found if unreadable.labels.get(PROTECTION_CLASS) == name)

    def namespace_view(self, key: Key, now: datetime) -> NamespaceView | None:
        """Return a namespace, what it asks for, and what protects it."""
        row = self.namespaces.get(Key("", key.namespace))
        if row is None:
            return None
        classes = self.known_classes()
        chosen = choice(row, classes, now)
        schedules = self._schedules_of(row.name, chosen.protection_class)
        policies = {schedule.name: self.policy_of(schedule) for schedule in schedules}
        view = NamespaceView(
            row=row,
            chosen=chosen,
            schedules=schedules,
            runs={schedule.name: self.runs_of(schedule.name) for schedule in schedules},
            backups=self._backups_of(row),
            policies={name: policy for name, policy in policies.items() if policy is not None},
            problem=self.problem_of(chosen.protection_class),
            protection=self.protections.get(key),
            zone=self.zone,
            open_classes=frozenset(row.name for row in self.classes.rows() if row.spec.restore.by_tenants),
            locations=frozenset(key.name for key in self.locations),
            location=self.location_of(chosen.protection_class),
            health=self.health or health_of(self.health_view(), now),
            claims=self.claims_of((row.name,)),
        )
        return self._with_claims_together(view, now) if view.claims else view

    def _schedules_of(self, namespace: str, first: str) -> tuple[ScheduleRow, ...]:
        """Return the Schedules that take a namespace, those of one class first."""
        schedules = (schedule for schedule in self.schedules.by("member", namespace) if not schedule.is_terminating)
        return tuple(sorted(schedules, key=lambda schedule: (schedule.protection_class != first, schedule.name)))

    def _backups_of(self, row: NamespaceRow) -> tuple[BackupRow, ...]:
        backups = self._made_here(self.backups.by("namespace", row.name))
        return tuple(backup for backup in backups if backup.has(row))

    def _with_claims_together(self, view: NamespaceView, now: datetime) -> NamespaceView:
        good = newest_good(view, now)
        return msgspec.structs.replace(view, claims_together=self.claims_of(good.uids)) if good is not None else view

    def claims_of(self, namespaces: Iterable[str]) -> tuple[datetime, ...]:
        """Return when the claims with a volume of these namespaces were created."""
        rows = (row for name in namespaces for row in self.claims.by("namespace", name))
        return tuple(row.created for row in rows if row is not None)

    def members(self, names: Iterable[str]) -> Iterator[str]:
        """Yield those of these namespaces that exist."""
        return (name for name in names if Key("", name) in self.namespaces)
