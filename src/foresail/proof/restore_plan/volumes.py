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
    pods = [info.pvb_info for info in infos if info.pvb_info is not None]
    return Volumes(
        {info.pv_name: info.backup_method for info in infos if info.pv_name},
        frozenset((pod.pod_namespace, pod.pod_name) for pod in pods),
        frozenset((info.pvc_namespace, info.pvc_name) for info in infos if info.backup_method == "CSISnapshot"),
    )
