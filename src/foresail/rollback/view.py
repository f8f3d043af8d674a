"""What a decision about a Rollback sees: rows from the stores, and one live survey of the namespace."""

from collections.abc import Mapping
from datetime import datetime

import msgspec

from foresail.api.nonadmin import RestoredItems, VolumesLeftOut
from foresail.api.rollback import RollbackSpec, RollbackStatus
from foresail.plan import Key, Keyed, Kind, ReadResult
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow


class RollbackRow(Keyed, frozen=True):
    """A Rollback."""

    uid: str
    version: str
    generation: int
    created: datetime
    spec: RollbackSpec
    status: RollbackStatus
    requester: str = ""
    groups: tuple[str, ...] = ()
    restored_by: str = ""  # the Velero Restore that brought it back; empty if none did
    is_terminating: bool = False
    finalizers: tuple[str, ...] = ()
    is_labelled: bool = False  # as in progress, for admission
    written: datetime | None = None  # when somebody last wrote to it, in whole seconds


class Survey(msgspec.Struct, frozen=True):
    """What to read of a namespace, for one version of a Rollback."""

    key: Key
    version: str
    user: str
    groups: tuple[str, ...]
    to: str  # NonAdminBackups and NonAdminRestores by name; empty: not read
    safety: str = ""
    restore: str = ""
    undo: str = ""
    download: str = ""  # the NonAdminDownloadRequest of the list of the backup
    lists: bool = False  # the metadata of listed kinds
    prunes: bool = False  # whether the requester may delete is asked
    claims_restore: str = ""
    glance: bool = False  # nothing but the Rollback itself
    storage: bool = False  # claims, what uses them, and their volumes
    kept: tuple[str, ...] = ()  # PersistentVolumes that are read too, by name
    changes: bool = False  # whether the requester may change objects back is asked
    accounts: bool = False  # ServiceAccounts, and whether the requester may change them
    unlisted: tuple[str, ...] = ()  # kinds that are not listed: whether an undo may delete objects of them is asked


class RequestSeen(msgspec.Struct, frozen=True):
    """A NonAdminBackup or NonAdminRestore."""

    uid: str
    is_ours: bool  # it has the mark of the Rollback
    phase: str = ""  # of the request
    refusal: str = ""  # why it was not accepted
    velero_phase: str = ""
    velero_name: str = ""
    location: str = ""
    started: datetime | None = None  # of a backup: what is written later is not in it
    expires: datetime | None = None  # of a backup
    left_out: str = ""  # of a restore: the kinds that do not come back, and why
    restored: RestoredItems | None = None  # of a restore, once Velero's files about it were read
    is_terminating: bool = False
    moved: int = 0  # volumes of a backup whose data is in the bucket by snapshots
    copied: int = 0  # volumes of a backup whose files were copied
    volumes_left_out: VolumesLeftOut | None = None  # volumes that a complete backup has not


class DownloadSeen(msgspec.Struct, frozen=True):
    """The request for the list of the backup."""

    uid: str
    is_ours: bool
    has_url: bool = False
    problem: str = ""


class Suspendable(msgspec.Struct, frozen=True):
    """Something that can be suspended, and whether it is."""

    resource: str
    name: str
    uid: str
    version: str
    is_suspended: bool
    value: str = ""  # of its field or annotation; empty if absent


class Listed(msgspec.Struct, frozen=True):
    """An object of a listed kind."""

    resource: str
    name: str
    uid: str
    created: datetime | None = None
    restored_by: str = ""  # the Velero Restore that created or changed it last
    is_owned: bool = False  # by another object
    is_terminating: bool = False
    is_excluded: bool = False  # from backups, by its label
    stopped_by: str = ""  # the UID of the Rollback in its mark
    edited: datetime | None = None  # when anybody but Foresail, Velero and Kubernetes itself last wrote to it


class Unlisted(msgspec.Struct, frozen=True):
    """A kind whose objects come back and are not listed."""

    word: str  # as people write it: plural.group, or as the plan has it if the API server does not serve it
    name: str = ""  # such as Secret; empty if it is not served
    kind: Kind | None = None  # None if the operator or the requester may not delete objects of it
    refused: str = ""  # what the requester may not do of all that changes objects back


class AccountSeen(msgspec.Struct, frozen=True):
    """A ServiceAccount."""

    name: str
    uid: str
    version: str
    pull_secrets: tuple[Mapping[str, object], ...] = ()
    secrets: tuple[Mapping[str, object], ...] = ()
    labels: tuple[str, ...] = ()  # their keys
    annotations: tuple[str, ...] = ()


class OwnedClaim(msgspec.Struct, frozen=True):
    """A claim that Kubernetes deletes with an object."""

    name: str
    owners: tuple[str, ...]  # UIDs
    created: datetime | None = None


class ClaimSeen(msgspec.Struct, frozen=True):
    """A PersistentVolumeClaim."""

    name: str
    uid: str
    version: str
    volume: str = ""
    storage_class: str = ""
    is_bound: bool = False
    is_terminating: bool = False
    finalizers: tuple[str, ...] = ()  # but that of Kubernetes, which goes with the last pod
    owner: str = ""  # what Kubernetes deletes it with, as Kind name; its StatefulSet does not count
    created: datetime | None = None
    restored_by: str = ""
    rollback_uid: str = ""  # the Rollback whose undo has created it
    body: str = ""  # its labels, annotations and spec in JSON, to create it again


class VolumeSeen(msgspec.Struct, frozen=True):
    """A PersistentVolume, with the mark of the Rollback that keeps it."""

    name: str
    uid: str
    version: str
    claim: Key = Key("", "")
    claim_uid: str = ""
    reclaim_policy: str = ""
    phase: str = ""
    rollback_uid: str = ""
    record: str = ""
    is_terminating: bool = False


class KeptRow(Keyed, frozen=True):
    """A volume with the mark of a Rollback."""

    seen: VolumeSeen


class Workload(msgspec.Struct, frozen=True):
    """Something that starts pods."""

    resource: str
    name: str
    uid: str
    version: str
    value: str = ""  # of the field that stops it; empty if absent
    is_active: bool = True
    is_ready: bool = True
    stopped_by: str = ""  # the UID of the Rollback in its mark
    restored_by: str = ""  # the Velero Restore that created or changed it last
    claims: tuple[str, ...] = ()
    owner: str = ""  # what controls it, as Kind name
    deletes_claims: bool = False  # when it is stopped


class PodSeen(msgspec.Struct, frozen=True):
    """A pod that uses claims."""

    name: str
    claims: tuple[str, ...]
    owner: str = ""  # the UID of what starts it, as far as that is a Workload
    owner_name: str = ""  # what controls it, as Kind name


class Storage(msgspec.Struct, frozen=True):
    """The claims of a namespace, their volumes, and what uses them."""

    claims: tuple[ClaimSeen, ...] = ()
    volumes: tuple[VolumeSeen, ...] = ()
    workloads: tuple[Workload, ...] = ()
    pods: tuple[PodSeen, ...] = ()
    late_classes: tuple[str, ...] = ()  # StorageClasses whose volumes wait for a pod, if Velero waits too
    no_classes: tuple[str, ...] = ()  # StorageClasses of claims that do not exist


class Findings(msgspec.Struct, frozen=True):
    """The answer to a survey, or why there is none."""

    problem: str = ""
    version: str = ""  # of the Rollback, read live
    row: RollbackRow | None = None  # the Rollback itself, if nothing else is read
    to: RequestSeen | None = None
    safety: RequestSeen | None = None
    restore: RequestSeen | None = None
    undo: RequestSeen | None = None
    download: DownloadSeen | None = None
    contents: Mapping[str, tuple[str, ...]] | None = None  # names in the backup, by group and kind as group/Kind
    unreadable: str = ""  # why the list of the backup cannot be read now
    suspendables: tuple[Suspendable, ...] = ()
    served: tuple[str, ...] = ()  # the suspended kinds that the API server serves
    listed: tuple[Listed, ...] = ()
    owned_claims: tuple[OwnedClaim, ...] = ()
    unlisted: tuple[Unlisted, ...] = ()
    accounts: tuple[AccountSeen, ...] = ()
    in_the_way: tuple[str, ...] = ()  # what applies objects here and is not in the namespace
    claims_restore: RequestSeen | None = None
    storage: Storage = Storage()
    denied: frozenset[tuple[str, str]] = frozenset()  # verb and resource that the requester may not


class RollbackView(msgspec.Struct, frozen=True):
    """Everything that a decision about one Rollback depends on, but the time."""

    row: RollbackRow
    namespace: NamespaceRow | None  # None if it is deleted
    policy: PolicyRow | None  # None if no SelfServicePolicy applies
    reserved: frozenset[str] = frozenset()  # namespaces whose ServiceAccounts are never requesters
    blocking: str = ""  # another Rollback of the namespace that comes first
    keeping: str = ""  # an old volume of the namespace that a Rollback keeps
    read: ReadResult[Survey, Findings] | None = None
    is_shared: bool = False  # another Rollback of the namespace has the finalizer
    later: str = ""  # another Rollback that has changed the namespace since
    may_replace: bool = True  # the chart lets Rollbacks replace volumes


class KeptView(msgspec.Struct, frozen=True):
    """Everything that a decision about one old volume depends on, but the time."""

    volume: KeptRow
    rollback: RollbackRow | None  # as the store has it
    read: ReadResult[Survey, Findings] | None = None
