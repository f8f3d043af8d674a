"""How the volumes of a backup were backed up, from the file that Velero keeps about them."""

from dataclasses import dataclass

import msgspec

from foresail.api.velero_files import volume_infos


class _PodVolume(msgspec.Struct, rename="camel"):
    pod_name: str = ""
    pod_namespace: str = ""


class _Info(msgspec.Struct, rename="camel"):
    pv_name: str = ""
    pvc_name: str = ""
    pvc_namespace: str = ""
    backup_method: str = ""
    pvb_info: _PodVolume | None = None


@dataclass(frozen=True, slots=True)
class Volumes:
    """The method of each volume, the pods with file-system backups, and the claims with snapshots."""

    methods: dict[str, str]
    pods: frozenset[tuple[str, str]]
    claims: frozenset[tuple[str, str]]


_infos = msgspec.json.Decoder(list[_Info] | None)


def read_volumes(file: bytes) -> Volumes | None:
    """Return what the file says; None if it is not in Velero's format."""
    infos = volume_infos(file, _infos)
    if infos is None:
        return None
    pods = [each.pvb_info for each in infos if each.pvb_info is not None]
    return Volumes(
        {each.pv_name: each.backup_method for each in infos if each.pv_name},
        frozenset((each.pod_namespace, each.pod_name) for each in pods),
        frozenset((each.pvc_namespace, each.pvc_name) for each in infos if each.backup_method == "CSISnapshot"),
    )
