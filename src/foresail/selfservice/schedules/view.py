"""What a decision about a NonAdminSchedule depends on."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import ScheduleRow
from foresail.selfservice.rows.velero import VeleroRow
from foresail.slots.policy_timing import PolicyRow as SchedulePolicyRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow


class ScheduleView(msgspec.Struct, frozen=True):
    """Everything that a decision about one NonAdminSchedule depends on, except the time."""

    schedule: ScheduleRow
    namespace: NamespaceRow | None
    policy: PolicyRow | None
    backups: tuple[RequestRow, ...] = ()  # the NonAdminBackups that were created for it
    taken: frozenset[str] = frozenset()  # names of other NonAdminBackups that begin like those of its runs
    older: int = 0  # NonAdminSchedules of the namespace that were created before it
    schedule_policy: SchedulePolicyRow | None = None  # the one that the policy names
    schedule_policy_problem: str = ""  # why that one cannot be read
    velero: Mapping[str, VeleroRow] = {}  # the Velero Backups of its runs that exist, by the NonAdminBackup's name
    restored: frozenset[str] = frozenset()  # its runs that a restore reads
    good: tuple[VeleroRow, ...] = ()  # the good backups of the namespace; only if the policy keeps the last of them
    is_full: bool = False  # quotas.stored is reached, and more runs of the namespace wait than deletions are on the way
    first: tuple["ScheduleView", ...] = ()  # if it is full: the schedules that make room before this one, if they can
    last: tuple["ScheduleView", ...] = ()  # the same, those after this one
    is_waiting: bool = False  # that run is one of this schedule
    doubt: str = ""  # what is not certain about its old runs
    deleted: datetime | None = None  # the slot of a run that was deleted before status.lastBackup recorded it
