"""What a decision about a RestoreCheck sees: everything that it depends on, but the time."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from foresail.api.policy import RestoreChecksPolicy
from foresail.plan import Key, ReadResult
from foresail.proof.checks.contents import Contents, SavedClaims
from foresail.proof.checks.judge import Verdict
from foresail.proof.checks.kinds import Wanted
from foresail.proof.checks.rows import (
    BackupRow,
    CheckRow,
    DownloadRow,
    OwnedObject,
    Pods,
    PodsFound,
    QuotaRow,
    RestoreRow,
)
from foresail.tenancy.namespaces import NamespaceRow


class DataSettings(msgspec.Struct, frozen=True):
    """How pods of a backup may start; without it, depth Data is off."""

    canary_image: str  # Foresail's own image, or one with `foresail canary`
    account: Key  # the operator's ServiceAccount, which gets its rights in each sandbox
    targets: tuple[str, ...] = ()  # what the canary tries beside the API server, DNS and the bucket, as host:port


class Environment(msgspec.Struct, frozen=True, rename="camel"):
    """In which a backup is checked, for the evidence."""

    velero_image: str = ""
    backup_kubernetes: str = ""
    location: str = ""
    bucket: str = ""
    prefix: str = ""


class Files(msgspec.Struct, frozen=True):
    """The files of a run to read, by their URLs, and how to read them."""

    run: str
    contents: str
    wanted: Wanted
    authority: str = ""
    phase: str = ""  # of the restore, once it has ended
    restored: str = ""
    results: str = ""
    sandboxes: tuple[tuple[str, str], ...] = ()
    classes: tuple[str, ...] = ()  # storage classes of this cluster
    volumes: str = ""  # with depth Data


class FilesFound(msgspec.Struct, frozen=True):
    """What the files say, or why they cannot be read now; `is_final` if they never can."""

    contents: Contents | None = None
    verdict: Verdict | None = None
    problem: str = ""
    is_final: bool = False
    kubernetes: str = ""  # the version of this cluster
    outside: str = ""  # with depth Data: the address of the bucket
    claims: SavedClaims | None = None  # None if it was not asked for


Query = Files | Pods

Found = FilesFound | PodsFound


class Tenant(msgspec.Struct, frozen=True):
    """What holds for a check in the namespace of a tenant."""

    namespace: NamespaceRow | None  # None if it is deleted
    policy: RestoreChecksPolicy | None  # None if no SelfServicePolicy applies
    rank: int = 0  # how many checks of the namespace are older
    starts: tuple[OwnedObject, ...] = ()  # the recorded starts of checks of the namespace
    is_free: bool = True  # whether there is a turn for it, and no other tenant's check comes first
    busy_until: datetime | None = None  # when the first of those that run must have ended
    sandboxes: tuple[OwnedObject, ...] = ()  # of all checks of the namespace


class CheckView(msgspec.Struct, frozen=True):
    """Everything that a decision about one RestoreCheck depends on, but the time."""

    key: Key
    check: CheckRow | None  # None if it is deleted; what was made for it may still be there
    tenant: Tenant | None = None  # None if it is the administrator's
    backups: tuple[BackupRow, ...] = ()  # those that it selects
    sandboxes: tuple[OwnedObject, ...] = ()
    quotas: tuple[QuotaRow, ...] = ()  # of the sandboxes
    restores: tuple[RestoreRow, ...] = ()
    config_maps: tuple[OwnedObject, ...] = ()
    downloads: tuple[DownloadRow, ...] = ()
    taken_volumes: tuple[str, ...] = ()  # which claims in the sandboxes have, and were not provisioned for them
    free_volumes: Mapping[str, str] = msgspec.field(default_factory=dict)
    """For each storage class with volumes that any claim could take, the name of one."""

    authority: str = ""
    classes: tuple[str, ...] = ()  # the names of all storage classes
    environment: Environment = Environment()
    data: DataSettings | None = None  # None if depth Data is off
    read_result: ReadResult[Query, Found] | None = None

    @property
    def files_result(self) -> ReadResult[Files, FilesFound] | None:
        """What the files say, if they were read last."""
        result = self.read_result
        if result is None or not (isinstance(result.query, Files) and isinstance(result.answer, FilesFound)):
            return None
        return ReadResult(result.query, result.answer, result.started, result.attempts)

    @property
    def pods_result(self) -> ReadResult[Pods, PodsFound] | None:
        """What the pods in the sandboxes do, if they were read last."""
        result = self.read_result
        if result is None or not (isinstance(result.query, Pods) and isinstance(result.answer, PodsFound)):
            return None
        return ReadResult(result.query, result.answer, result.started, result.attempts)
