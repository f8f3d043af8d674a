"""Everything that an administrator can set, in one frozen value."""

from dataclasses import dataclass, field

from foresail.cron import Dialect
from foresail.primers.observe import Settings as PrimerSettings
from foresail.schedules.observe import Settings as ScheduleSettings


@dataclass(frozen=True, slots=True)
class Settings:
    """How one replica of the operator runs."""

    identity: str  # unlike that of any other replica; in a pod, its name
    velero_namespace: str = "velero"
    lease_namespace: str = "velero"
    kubeconfig: str | None = None
    context: str | None = None
    host: str | None = None
    port: int = 8081
    dry_run: bool = False
    runs_schedules: bool = True
    runs_self_service: bool = False
    runs_primers: bool = False
    velero_dialect: Dialect | None = None
    schedules: ScheduleSettings = field(default_factory=ScheduleSettings)
    primers: PrimerSettings = field(default_factory=PrimerSettings)
