"""What a hand-over sees of access: the files about the backup, and what the last background read found."""

import msgspec

from foresail.plan import Key, ReadResult
from foresail.selfservice.access.rules import Options, Verdict
from foresail.selfservice.rows.velero import DownloadRequestRow

LIST, VOLUME_INFOS = "BackupResourceList", "BackupVolumeInfos"
PREFIXES = {LIST: "contents-", VOLUME_INFOS: "volumes-"}
"""The files that are read, and how the names of the DownloadRequests for them begin."""


class Check(msgspec.Struct, frozen=True):
    """The question whether a restore may be handed over; with URLs, only the contents of the backup are read."""

    backup_uid: str
    options: Options
    list_url: str = ""
    volumes_url: str = ""
    authority: str = ""

    @property
    def contents(self) -> str:
        """The key of the contents in the cache."""
        shared = self.options.namespace if self.options.is_shared else ""
        return contents_key(self.backup_uid, shared)


def contents_key(backup_uid: str, shared_with: str = "") -> str:
    """Return the key of the contents of a backup; of one that others share, for one namespace."""
    return f"{backup_uid}/{shared_with}" if shared_with else backup_uid


class Checked(msgspec.Struct, frozen=True):
    """The answer, or why there is none."""

    verdict: Verdict | None = None
    problem: str = ""
    is_too_large: bool = False  # the backup is too large to check


class Recheck(msgspec.Struct, frozen=True):
    """The question whether the requester of a waiting restore may still create the kinds that Velero was given."""

    options: Options


class Rechecked(msgspec.Struct, frozen=True):
    """The kinds that the requester may no longer create, or why there is no answer."""

    denied: tuple[str, ...] = ()
    problem: str = ""


class SecretsCheck(msgspec.Struct, frozen=True):
    """The question whether a user may read the Secrets of a namespace."""

    namespace: str
    user: str
    groups: tuple[str, ...]


class PodCheck(msgspec.Struct, frozen=True):
    """The questions whether a pod or a resource policy makes Velero do what is refused, and what the named kinds are.

    For a backup in a bucket of its tenant, also whether its requester and the location's may read Secrets.
    """

    namespace: str
    checks_hooks: bool = True  # annotations by which Velero runs a command
    checks_files: bool = True  # annotations by which Velero copies files
    kinds: tuple[str, ...] = ()  # that the backup names
    secrets: tuple[SecretsCheck, ...] = ()  # the requester of the backup first
    volume_policies: Key | None = None  # the ConfigMap of an administrator that must not choose file-system backup

    @property
    def checks_pods(self) -> bool:
        """Whether the annotations of pods are read."""
        return self.checks_hooks or self.checks_files


class PodsChecked(msgspec.Struct, frozen=True):
    """The first such pod with its annotation, or why there is no answer; and the kinds that are not served."""

    pod: str = ""
    annotation: str = ""
    problem: str = ""
    unserved: tuple[str, ...] = ()
    cluster_scoped: tuple[str, ...] = ()  # named kinds without a namespace
    secrets_readers: frozenset[SecretsCheck] = frozenset()  # those asked about who may read them
    volume_policies: str = ""  # what is wrong with them
    is_too_large: bool = False  # the metadata of the pods is too large to check


class SecretsChecked(msgspec.Struct, frozen=True):
    """The answer, or why there is none."""

    is_allowed: bool = False
    problem: str = ""


AccessResult = ReadResult[Check | PodCheck | Recheck, Checked | PodsChecked | Rechecked]


class AccessView(msgspec.Struct, frozen=True):
    """What is known about access to what a request would bring back."""

    has_contents: bool = False
    files: tuple[DownloadRequestRow, ...] = ()
    authority: str = ""
    reserved: frozenset[str] = frozenset()  # namespaces whose ServiceAccounts are never requesters
    read_result: AccessResult | None = None
