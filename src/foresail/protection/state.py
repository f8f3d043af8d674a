"""What the controller of protection knows: its stores, and lookups across them."""

from collections.abc import Iterable, Iterator
from datetime import datetime, timedelta

from foresail.api.marks import PROTECTION_CLASS
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.protection.rows import BackupRow, ClassRow, LocationRow, NamespaceRow, ProtectionRow, ScheduleRow
from foresail.protection.rules import choice, class_problem, class_unreadable
from foresail.protection.view import AssignmentView, Classes, ClassView, NamespaceView
from foresail.reporting import Because
from foresail.slots.policy_timing import PolicyRow, index_values, lookup_values, policy_for

REFUSED_FOR = timedelta(seconds=30)
"""How long a class waits whose Schedule the API server has refused; the others go on."""


class ProtectionState:
    """The stores, and which classes wait because the API server has refused a write for them."""

    def __init__(self, velero_namespace: str, never: Iterable[str], zone: str) -> None:
        self.velero_namespace, self.never, self.zone = velero_namespace, frozenset((*never, velero_namespace)), zone
        self.namespaces = Store[NamespaceRow]({"asked": lambda row: [row.asked]})
        self.classes = Store[ClassRow]()
        self.schedules = Store[ScheduleRow](
            {"class": lambda row: [row.protection_class], "member": lambda row: row.members}
        )
        self.backups = Store[BackupRow | None](
            {
                "schedule": lambda row: [row.schedule] if row is not None else [],
                "namespace": lambda row: row.uids if row is not None else [],
            }
        )
        self.policies = Store[PolicyRow]({"selects": index_values})
        self.locations = Store[LocationRow]()
        self.protections = Store[ProtectionRow]()
        self.refused: dict[str, tuple[datetime, str]] = {}

    def known_classes(self) -> Classes:
        """Return the classes of the cluster."""
        unread = {key.name: unreadable.problem for key, unreadable in self.classes.unread.items()}
        return Classes({row.name: row for row in self.classes.rows()}, unread, self.never)

    def runs_of(self, schedule: str) -> tuple[BackupRow, ...]:
        """Return the Backups of a Schedule."""
        return tuple(row for row in self.backups.by("schedule", schedule) if row is not None)

    def namespaces_of(self, name: str) -> set[str]:
        """Return the namespaces that name a class, or are in one of its Schedules."""
        asking = {row.name for row in self.namespaces.by("asked", name)} if name else set()
        members = {member for row in self.schedules.by("class", name) for member in row.members} if name else set()
        return asking | {member for member in members if Key("", member) in self.namespaces}

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

    # Views

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
        schedules = tuple(self.schedules.by("class", name))
        count = len(self.namespaces_of(name))
        return ClassView(row, self.known_classes(), count, schedules, self.problem_of(name))

    def namespace_view(self, key: Key, now: datetime) -> NamespaceView | None:
        """Return a namespace, what it asks for, and what protects it."""
        row = self.namespaces.get(Key("", key.namespace))
        if row is None:
            return None
        classes = self.known_classes()
        chosen = choice(row, classes, now)
        schedules = sorted(
            (each for each in self.schedules.by("member", row.name) if not each.is_terminating),
            key=lambda each: (each.protection_class != chosen.protection_class, each.name),
        )
        backups = (each for each in self.backups.by("namespace", row.name) if each is not None)
        policies = {each.name: self.policy_of(each) for each in schedules}
        return NamespaceView(
            row=row,
            chosen=chosen,
            schedules=tuple(schedules),
            runs={each.name: self.runs_of(each.name) for each in schedules},
            backups=tuple(each for each in backups if each.has(row)),
            policies={name: policy for name, policy in policies.items() if policy is not None},
            problem=self.problem_of(chosen.protection_class),
            protection=self.protections.get(key),
            zone=self.zone,
        )

    def members(self, names: Iterable[str]) -> Iterator[str]:
        """Yield those of these namespaces that exist."""
        return (name for name in names if Key("", name) in self.namespaces)
