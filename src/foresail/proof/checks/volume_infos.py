"""Which claims have their data in a backup: read from the list of volumes that Velero stores beside it."""

import msgspec

from foresail.api.velero_files import volume_infos

_FILES = "PodVolumeBackup"
_GOOD = ("", "succeeded")


class _Info(msgspec.Struct, frozen=True):
    name: str = msgspec.field(default="", name="pvcName")
    namespace: str = msgspec.field(default="", name="pvcNamespace")
    method: str = msgspec.field(default="", name="backupMethod")
    skipped: bool = False
    result: str = ""


_infos = msgspec.json.Decoder(list[_Info] | None)


def claims_with_files(file: bytes) -> tuple[tuple[str, str], ...] | None:
    """Return namespace and name of each claim with a file-system backup; None if the list is not of Velero's shape."""
    infos = volume_infos(file, _infos)
    if infos is None:
        return None
    good = [each for each in infos if each.method == _FILES and not each.skipped and each.result in _GOOD]
    return tuple(sorted((each.namespace, each.name) for each in good))
