"""What decisions about protection see."""

from collections.abc import Container, Mapping
from datetime import datetime

import msgspec

from foresail.api.protection import PROTECTION_NAME
from foresail.plan import Key
from foresail.protection.health import Health
from foresail.protection.rows import BackupRow, ClassRow, NamespaceRow, ProtectionRow, ScheduleRow
from foresail.reporting import Because
from foresail.slots.policy_timing import PolicyRow


class Classes(msgspec.Struct, frozen=True):
    """The classes of a cluster, and who has none by default."""

    rows: Mapping[str, ClassRow]
    unread: Mapping[str, str] = {}  # by name: why one that exists cannot be read
    never: Container[str] = ()  # namespaces that no default class takes: Velero's and ours

    @property
    def default(self) -> str:
        """The class of namespaces that name none; empty if there is none."""
        return min((row.name for row in self.rows.values() if row.spec.default), default="")


class Choice(msgspec.Struct, frozen=True):
    """What a namespace asks for, and what it gets."""

    protection_class: str = ""  # empty: it is taken into no class, and stays where it is
    leaves: bool = False  # every Schedule, at once
    exempt_until: datetime | None = None
    problem: Because | None = None  # why it does not get what it asks for


class AssignmentView(msgspec.Struct, frozen=True):
    """All namespaces, classes and Schedules: who is in which Schedule is one decision."""

    velero_namespace: str
    namespaces: Mapping[str, NamespaceRow]
    classes: Classes
    schedules: tuple[ScheduleRow, ...]  # those of others too
    runs: Mapping[str, tuple[BackupRow, ...]]  # by Schedule, of those with a namespace that is in several
    held: Mapping[str, datetime] = {}  # classes whose write the API server has refused, and until when they wait
    unread_names: frozenset[str] = frozenset()  # of Schedules that cannot be read, whosoever they are
    unread: frozenset[str] = frozenset()  # classes with a Schedule that cannot be read: who is in it is unknown
    unread_namespaces: frozenset[str] = frozenset()


class ClassView(msgspec.Struct, frozen=True):
    """One class: who uses it, and what keeps it from running."""

    row: ClassRow
    classes: Classes
    namespaces: int
    schedules: tuple[ScheduleRow, ...]
    problem: Because | None = None  # what keeps it from running


class NamespaceView(msgspec.Struct, frozen=True):
    """One namespace: what it asks for, what protects it, and what is reported."""

    row: NamespaceRow
    chosen: Choice
    schedules: tuple[ScheduleRow, ...]  # that take it, those of its class first
    runs: Mapping[str, tuple[BackupRow, ...]]  # all of those Schedules, by name
    backups: tuple[BackupRow, ...]  # of this namespace, of any class
    policies: Mapping[str, PolicyRow]  # that applies, by Schedule
    problem: Because | None = None  # why its class cannot run
    protection: ProtectionRow | None = None
    zone: str = "UTC"  # of Velero's clock
    open_classes: frozenset[str] = frozenset()  # from whose backups teams may restore
    locations: frozenset[str] = frozenset()  # that exist
    location: str = ""  # of its class
    health: Health = Health()
    claims: tuple[datetime, ...] = ()  # when its claims with a volume were created
    claims_together: tuple[datetime, ...] = ()  # the same of all namespaces in its newest good backup

    @property
    def key(self) -> Key:
        """The key of its Protection."""
        return Key(self.row.name, PROTECTION_NAME)
