"""What a hand-over sees of access: the files about the backup, and what the last background read found."""

from datetime import datetime

import msgspec

from foresail.plan import Key, ReadResult
from foresail.selfservice.access.rules import Options, Verdict

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
    is_repeat: bool = False  # asked again after a refusal: a recent no still counts


class Checked(msgspec.Struct, frozen=True):
    """The answer, or why there is none."""

    verdict: Verdict | None = None
    problem: str = ""
    is_too_large: bool = False  # what the backup holds is more than can be checked, and stays so


class PodCheck(msgspec.Struct, frozen=True):
    """The questions whether a pod of a namespace makes Velero run a command, and what the named kinds are."""

    namespace: str
    checks_pods: bool = True
    kinds: tuple[str, ...] = ()  # that the backup names


class PodsChecked(msgspec.Struct, frozen=True):
    """The first such pod with its annotation, or why there is no answer; and the kinds that are not served."""

    pod: str = ""
    annotation: str = ""
    problem: str = ""
    unserved: tuple[str, ...] = ()
    cluster_scoped: tuple[str, ...] = ()  # named kinds without a namespace


class FileRow(msgspec.Struct, frozen=True):
    """A DownloadRequest for a file about a backup."""

    key: Key
    uid: str
    kind: str
    created: datetime
    url: str
    expires: datetime | None


class AccessSeen(msgspec.Struct, frozen=True):
    """What is known about access to what a request would bring back."""

    has_contents: bool = False
    files: tuple[FileRow, ...] = ()
    authority: str = ""
    reserved: frozenset[str] = frozenset()  # namespaces whose ServiceAccounts are never requesters
    read_result: ReadResult[Check | PodCheck, Checked | PodsChecked] | None = None


def file_name(kind: str, backup_uid: str) -> str:
    """Return the name of the DownloadRequest for a file about a backup."""
    return f"{PREFIXES[kind]}{backup_uid}"
