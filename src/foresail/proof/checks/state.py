"""What the controller of checks knows: its stores, what it remembers beside them, and lookups across both."""

from collections.abc import Iterable, Iterator
from datetime import datetime

from foresail.api import velero
from foresail.api.policy import RestoreChecksPolicy
from foresail.kube.store import Store
from foresail.plan import Key, Keyed
from foresail.proof.checks import build, rules, tenants
from foresail.proof.checks.memory import Ages, Starts
from foresail.proof.checks.rows import (
    BackupRow,
    CheckRow,
    DownloadRow,
    LocationRow,
    NamedRow,
    OwnedObject,
    QuotaRow,
    RequestRow,
    RestoreRow,
    ServerRow,
)
from foresail.proof.checks.turns import AT_ONCE, Turns
from foresail.proof.checks.view import CheckView, DataSettings
from foresail.proof.checks.volumes import VolumeRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow, policy_for


def _by_check(row: OwnedObject) -> list[Key]:
    return [Key(row.check_namespace, row.check)] if row.check else []


def _by_tenant(row: OwnedObject) -> list[str]:
    return [row.check_namespace] if row.check_namespace else []


def _completed_of(row: BackupRow) -> list[str]:
    return [row.owner.namespace] if row.owner is not None and row.phase == velero.COMPLETED else []


def _by_namespace(row: Keyed) -> list[str]:
    return [row.key.namespace]


def is_running(row: CheckRow | None) -> bool:
    """Whether a check has a run that has not ended, as far as that blocks others."""
    return row is not None and tenants.busy_until(row) is not None


def _running_for(row: CheckRow) -> list[str]:
    return ["tenants"] if row.is_tenants and is_running(row) else []


def _starts_in(row: OwnedObject) -> list[str]:
    return [row.check_namespace] if row.check_namespace and build.is_start(row) else []


class CheckState:
    """The stores of checks and of what they depend on; those of tenants are filled only if `never` is given."""

    def __init__(
        self,
        velero_namespace: str,
        never: Iterable[str] | None,
        data: DataSettings | None,
        at_once: int = AT_ONCE,
    ) -> None:
        self.velero_namespace = velero_namespace
        self.data = data
        self.serves_tenants = never is not None
        self.never = frozenset((*(never or ()), velero_namespace))
        self.at_once = at_once  # how many checks of tenants
        self.turns = Turns(at_once)
        self.ages = Ages()
        self.starts = Starts()
        self.namespaces = Store[NamespaceRow]()
        self.policies = Store[PolicyRow]()
        self.requests = Store[RequestRow]()
        self.schedules = Store[RequestRow]()
        self.checks = Store[CheckRow]({"namespace": _by_namespace, "running for": _running_for})
        self.backups = Store[BackupRow]({"completed of": _completed_of})
        self.locations = Store[LocationRow]({"role": lambda row: ["default"] if row.is_default else []})
        self.classes = Store[NamedRow]()
        self.servers = Store[ServerRow]()
        self.sandboxes = Store[OwnedObject]({"check": _by_check, "tenant": _by_tenant})
        self.quotas = Store[QuotaRow]({"check": _by_check})
        self.restores = Store[RestoreRow]({"check": _by_check})
        self.config_maps = Store[OwnedObject]({"check": _by_check, "starts": _starts_in})
        self.downloads = Store[DownloadRow]({"check": _by_check})
        self.volumes = Store[VolumeRow](
            {
                "sandbox": lambda row: [row.taken_by] if row.taken_by else [],
                "free": lambda row: [] if row.free_class is None else [""],
            }
        )
        self.pass_due = dict[Key, datetime | None]()

    def backup_in_check(self, check: CheckRow) -> BackupRow | None:
        """Return the Backup of the run, if that still exists."""
        run = check.status.run
        backup = self.backups.get(Key(self.velero_namespace, run.backup)) if run is not None else None
        return backup if backup is not None and run is not None and backup.uid == run.backup_uid else None

    def taken_volumes(self, view: CheckView) -> Iterator[str]:
        """Return the volumes that the claims in the sandboxes have."""
        for sandbox in view.sandboxes:
            for row in self.volumes.by("sandbox", sandbox.key.name):
                yield row.key.name

    def selected_backups(self, check: CheckRow) -> list[BackupRow]:
        """Return the Backups that the check of an administrator selects, in the order of their names."""
        completed = (row for row in self.backups.rows() if row.phase == velero.COMPLETED)
        return sorted((row for row in completed if self.selects(check, row)), key=lambda row: row.key)

    def schedule(self, check: CheckRow) -> RequestRow | None:
        """Return the NonAdminSchedule that a tenant's check names."""
        name = check.spec.backups.non_admin_schedule
        return self.schedules.get(Key(check.key.namespace, name)) if name is not None else None

    def policy(self, namespace: str) -> RestoreChecksPolicy | None:
        """Return what the SelfServicePolicy of a namespace says about checks; None if none applies."""
        row = self.namespaces.get(Key("", namespace))
        policy = policy_for(namespace, row.labels, self.policies.rows(), self.never) if row is not None else None
        return policy.spec.restore_checks if policy is not None else None

    def selects(self, check: CheckRow, backup: BackupRow) -> bool:
        """Whether the check of an administrator selects a Backup."""
        return rules.is_selected(check, backup) and rules.is_of_administrator(self.location(backup))

    def location(self, backup: BackupRow) -> LocationRow | None:
        """Return the storage location of a Backup."""
        defaults = (location.key.name for location in self.locations.by("role", "default"))
        name = velero.resolve_location(backup.location, defaults)
        return self.locations.get(Key(self.velero_namespace, name))

    def served_keys(self, namespace: str) -> Iterable[Key]:
        """Return the checks of a tenant's namespace that the policy serves, the oldest ones."""
        policy = self.policy(namespace)
        return self.ages.oldest(namespace, policy.maximum) if policy is not None else ()
