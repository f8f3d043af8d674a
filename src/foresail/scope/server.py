"""How a Velero server is set up, as far as that decides how backups save volumes."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from foresail.api.specs import BackupSpec

_FILE_SYSTEM = "--default-volumes-to-fs-backup"
_FEATURES = "--features"
_CSI = "EnableCSI"
_GLOBAL_POLICIES = "--global-backup-volume-policies-configmap"
_TRUE = ("1", "t", "T", "true", "True", "TRUE")  # as Go reads a flag


@dataclass(frozen=True, slots=True)
class ServerFlags:
    """How a server was started; by default, one whose flags are unknown."""

    default_volumes_to_fs_backup: bool = False
    has_csi: bool = True
    """Whether the feature EnableCSI is on."""

    global_policies: str = ""
    """The ConfigMap with volume policies for all backups; empty if there are none."""

    snapshot_providers: frozenset[str] | None = None
    """The providers of the VolumeSnapshotLocations, without which there are no native snapshots; None if unknown."""

    def completed(self, spec: BackupSpec) -> BackupSpec:
        """Return a spec with the server's default where it has no value."""
        if spec.default_volumes_to_fs_backup is not None:
            return spec
        return msgspec.structs.replace(spec, default_volumes_to_fs_backup=self.default_volumes_to_fs_backup)


UNKNOWN = ServerFlags()
"""A server whose flags nobody could read."""


def server_flags(arguments: Iterable[str]) -> ServerFlags:
    """Return the flags among the arguments of a server's container."""
    words = list(arguments)
    return ServerFlags(
        _is_set(words, _FILE_SYSTEM),
        _CSI in flag_value(words, _FEATURES).split(","),
        flag_value(words, _GLOBAL_POLICIES),
    )


def _is_set(words: Iterable[str], flag: str) -> bool:
    """Whether a flag without or with a value is true; the last one counts."""
    found = [
        value in _TRUE if equals else True
        for name, equals, value in (word.partition("=") for word in words)
        if name == flag
    ]
    return bool(found) and found[-1]


def flag_value(words: Sequence[str], flag: str) -> str:
    """Return the value of a flag, written as `--flag=value` or as `--flag value`; the last one counts."""
    text = ""
    for word, following in pairwise([*words, ""]):
        name, equals, value = word.partition("=")
        if name == flag:
            text = value if equals else following
    return text
