"""Everything that an administrator can set, in one frozen value."""

from dataclasses import dataclass, field

from foresail.api.marks import SCHEDULES_LEASE
from foresail.cron import Dialect
from foresail.primers.view import Settings as PrimerSettings
from foresail.proof.checks.turns import AT_ONCE
from foresail.proof.checks.view import DataSettings
from foresail.schedules.settings import Settings as ScheduleSettings
from foresail.tenancy.policies import ChartLimits


@dataclass(frozen=True, slots=True)
class Settings:
    """How one replica of the operator runs."""

    identity: str  # unlike that of any other replica; in a pod, its name
    velero_namespace: str = "velero"
    lease_namespace: str = "velero"
    lease_name: str = SCHEDULES_LEASE  # for which all replicas campaign
    own_namespace: str = ""  # of the operator's pod, out of reach of self-service; empty outside a pod
    kubeconfig: str | None = None
    context: str | None = None
    host: str | None = None
    port: int = 8081
    dry_run: bool = False
    sends_traces: bool = False  # to the collector that the OTEL_ variables name
    runs_schedules: bool = True
    metrics_for_all_schedules: bool = False  # else for those that need attention
    runs_self_service: bool = False
    runs_primers: bool = False
    runs_restore_checks: bool = False
    runs_protection: bool = False
    runs_rollbacks: bool = False
    records_namespaces: bool = False  # on Backups of ProtectionClasses, whose Schedules it runs
    serves_tenant_checks: bool = False
    tenant_checks_at_once: int = AT_ONCE
    check_data: DataSettings | None = None  # how pods of backups start; None if depth Data is off
    heeds_schedules: bool = False  # of another process: no tenant's backup may still run at their slots
    self_service_window: int | None = None  # None: Velero's concurrency and one more
    self_service_restore_window: int = 1
    chart: ChartLimits = field(default_factory=ChartLimits)  # what the fence of the operator's token admits
    serves_locations: bool = False  # of tenants
    velero_dialect: Dialect | None = None
    schedules: ScheduleSettings = field(default_factory=ScheduleSettings)
    primers: PrimerSettings = field(default_factory=PrimerSettings)
