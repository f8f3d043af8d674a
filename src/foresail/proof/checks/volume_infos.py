"""Which claims have their data in a backup: read from the list of volumes that Velero stores beside it."""

import msgspec

from foresail.api.velero_files import volume_infos

_FILES, _SNAPSHOT = "PodVolumeBackup", "CSISnapshot"
_GOOD = ("", "succeeded")
Place = tuple[str, str]
"""Namespace and name of a claim."""


class _Info(msgspec.Struct, frozen=True):
    name: str = msgspec.field(default="", name="pvcName")
    namespace: str = msgspec.field(default="", name="pvcNamespace")
    method: str = msgspec.field(default="", name="backupMethod")
    is_moved: bool = msgspec.field(default=False, name="snapshotDataMoved")
    skipped: bool = False
    result: str = ""

    @property
    def place(self) -> Place:
        return self.namespace, self.name


class SavedClaims(msgspec.Struct, frozen=True):
    """The claims whose data is in the bucket: copied from files, or moved from snapshots."""

    files: tuple[Place, ...] = ()
    moved: tuple[Place, ...] = ()


_infos = msgspec.json.Decoder(list[_Info] | None)


def saved_claims(file: bytes) -> SavedClaims | None:
    """Return the claims whose data can be restored into a sandbox; None if the list is not of Velero's shape."""
    infos = volume_infos(file, _infos)
    if infos is None:
        return None
    good = [info for info in infos if not info.skipped and info.result in _GOOD]
    return SavedClaims(
        tuple(sorted(item.place for item in good if item.method == _FILES)),
        tuple(sorted(item.place for item in good if item.method == _SNAPSHOT and item.is_moved)),
    )
