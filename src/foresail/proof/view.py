"""What coverage is judged from: rows with only what decisions need."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.specs import BackupSpec
from foresail.origin import Origin
from foresail.proof.reasons import Remedy
from foresail.scope.discovery import Discovery
from foresail.scope.releases import LATEST, Release
from foresail.scope.resource_policies import Policies
from foresail.scope.server import ServerFlags


@dataclass(frozen=True, slots=True)
class NamespaceRow:
    """A namespace."""

    name: str
    created: datetime
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class ClaimRow:
    """A claim, its volume and the pods that mount it, as JSON has them."""

    namespace: str
    name: str
    body: Mapping[str, Any]
    volume: Mapping[str, Any] | None = None
    pods: tuple[Mapping[str, Any], ...] = ()
    created: datetime | None = None


@dataclass(frozen=True, slots=True)
class ScheduleRow:
    """A Schedule, or a NonAdminSchedule with the spec that its Backups get."""

    kind: str
    namespace: str
    name: str
    spec: BackupSpec
    paused: bool = False
    next_run: datetime | None = None
    policies: Policies | None = None
    policy_problem: str = ""
    """Why Velero refuses the resource policy, if it does."""

    objective: timedelta | None = None
    """How old the newest good backup may be, by the SchedulePolicy."""

    not_running: str = ""
    """Why no run starts until someone acts; a pause is not meant."""

    nobody_runs: str = ""
    """Why neither Velero nor the operator runs it, if so."""

    runner_unknown: str = ""
    """Why it is unknown whether anything runs it, if so."""

    velero_down: str = ""
    """Why no pod of Velero can run it now, if so."""

    location_problem: str = ""
    """Why its storage location cannot be used now, if so."""

    expected: datetime | None = None
    """A good backup should have started since then: the third last time at which it was due; None if unknown."""

    policy_unread: str = ""
    """Why its resource policy could not be read, if so: it is unknown then which data it saves."""

    is_in_tenants_bucket: bool = False
    """Whether its backups are in a bucket that the tenant can empty."""

    refused: frozenset[Remedy] = frozenset()
    """The fields that a SelfServicePolicy does not let its owner set, or is not known to."""

    @property
    def title(self) -> str:
        """How people know it: the kind is named only for a tenant's schedule."""
        return self.name if self.kind == "Schedule" else f"{self.namespace}/{self.name}"


_FOREIGN = {
    Origin.ELSEWHERE: "another cluster made it",
    Origin.UNKNOWN: "nothing shows that this cluster made it",
}


@dataclass(frozen=True, slots=True)
class BackupRow:
    """A Velero Backup; `schedule` is the title of the schedule that made it."""

    name: str
    phase: str
    spec: BackupSpec
    started: datetime | None = None
    items: int | None = None
    schedule: str = ""
    failure: str = ""
    """Why it failed, as Velero reports it in the status."""

    is_in_tenants_bucket: bool = False
    has_snapshots: bool = True
    """Whether it has snapshots, or data moved from them, as far as its status says."""

    left_out: frozenset[str] | None = frozenset()
    """The claims whose data it has not, as a NonAdminBackup says; None if it does not say which."""

    @property
    def selection(self) -> BackupSpec:
        """The spec without the ttl, by which it is compared with other runs."""
        return msgspec.structs.replace(self.spec, ttl=None)

    origin: Origin = Origin.HERE
    location_problem: str = ""
    """Why Velero cannot read it now, if so."""

    created: datetime | None = None

    @property
    def foreign(self) -> str:
        """Why it may be no backup of this cluster, and counts for nothing; empty if it is one."""
        return _FOREIGN.get(self.origin, "")

    @property
    def run_at(self) -> datetime | None:
        """When it ran: one that Velero refused never started, and ran when it was created."""
        return self.started or self.created


@dataclass(frozen=True, slots=True)
class CoverageView:
    """Everything that coverage is judged from."""

    namespaces: tuple[NamespaceRow, ...]
    claims: tuple[ClaimRow, ...] = ()
    schedules: tuple[ScheduleRow, ...] = ()
    backups: tuple[BackupRow, ...] = ()
    objective: timedelta | None = None
    """How old the newest good backup of any namespace may be, whatever SchedulePolicies say."""

    release: Release = LATEST
    """The Velero by whose rules the specs are judged."""

    kinds: Discovery | None = None
    """The kinds that the cluster serves; None if they are unknown, or no spec includes kinds by name."""

    server: ServerFlags = field(default_factory=ServerFlags)
    is_own: bool = False
    """Whether it has the schedules of one team only: those of administrators may cover its namespace too."""

    velero_down: str = ""
    """Why no Velero server runs, if so."""

    default_location_problem: str = ""
    """Why a backup that names no location would fail, if so."""

    unknown: tuple[str, ...] = ()
    """What the reader could not find out about any namespace, each as a sentence without its end."""

    unknown_volumes: tuple[str, ...] = ()
    """The same about namespaces with volumes."""

    agents_down: str = ""
    """Why no node agent of Velero works, if so."""

    agents_unknown: str = ""
    """Why that is unknown, if so."""
