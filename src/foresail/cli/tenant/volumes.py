"""The volumes of a backup or a restore by claim, from Velero's volume infos: size, method and result."""

import argparse
from collections.abc import Iterable

import msgspec

from foresail.api import velero_files
from foresail.api.velero_files import MOST_BYTES
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.table import table
from foresail.cli.output.words import size
from foresail.cli.tenant.files import Access, File, access_of, read_file
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.selfservice.downloads.decide import HAS_FILES
from foresail.selfservice.families import BACKUPS


class _Snapshot(msgspec.Struct, frozen=True):
    size: int = 0


class _PodVolume(msgspec.Struct, frozen=True, rename="camel"):
    size: int = 0
    volume_name: str = ""
    pod_name: str = ""
    pod_namespace: str = ""


class VolumeInfo(msgspec.Struct, frozen=True, rename="camel"):
    """A volume of a backup or of a restore; of each pair of fields, one is a backup's and one a restore's."""

    pvc_name: str = ""
    pvc_namespace: str = ""
    pv_name: str = ""
    backup_method: str = ""
    restore_method: str = ""
    snapshot_data_moved: bool = False
    skipped: bool = False
    skipped_reason: str = ""
    result: str = ""
    csi_snapshot_info: _Snapshot | None = None
    snapshot_data_movement_info: _Snapshot | None = None
    pvb_info: _PodVolume | None = None
    pvr_info: _PodVolume | None = None

    @property
    def pod_volume(self) -> _PodVolume:
        """What was copied from or to the file system of a pod."""
        return self.pvb_info or self.pvr_info or _PodVolume()

    @property
    def claim(self) -> str:
        """The claim; of a volume without one, the pod and its volume."""
        pod = (
            f"pod {self.pod_volume.pod_name}, volume {self.pod_volume.volume_name}" if self.pod_volume.pod_name else ""
        )
        return self.pvc_name or pod or self.pv_name

    @property
    def size(self) -> str:
        """The size of the data; n/a if Velero does not know it."""
        infos = (self.snapshot_data_movement_info, self.csi_snapshot_info, self.pod_volume)
        count = next((info.size for info in infos if info is not None and info.size), 0)
        return size(count) if count else "n/a"

    @property
    def method(self) -> str:
        """How the data was copied."""
        name = self.backup_method or self.restore_method or "n/a"
        return f"{name}, data moved" if self.snapshot_data_moved else name

    @property
    def outcome(self) -> str:
        """Whether its data is in the backup."""
        if self.skipped:
            return f"skipped: {self.skipped_reason}" if self.skipped_reason else "skipped"
        return self.result or "n/a"


_infos = msgspec.json.Decoder(list[VolumeInfo] | None)


def volume_infos(namespace: str, file: bytes) -> list[VolumeInfo] | None:
    """Return the volumes of a namespace; None if the file is not of Velero's shape."""
    infos = velero_files.volume_infos(file, _infos)
    if infos is None:
        return None
    own = [info for info in infos if namespace in (info.pvc_namespace, info.pod_volume.pod_namespace)]
    return sorted(own, key=lambda volume_info: volume_info.claim)


def volumes_text(infos: list[VolumeInfo], *, has_results: bool) -> str:
    """Return a row for each volume; a restore's file does not say whether it succeeded."""
    if not infos:
        return "Volumes:  <none>"
    rows = [(f"  {info.claim}", info.size, info.method, *((info.outcome,) if has_results else ())) for info in infos]
    header = ("  CLAIM", "SIZE", "METHOD", *(("RESULT",) if has_results else ()))
    return "Volumes:\n" + table(header, rows)


_NONE = "<none>"


async def read_volumes(cluster: Cluster, requests: Iterable[TenantRequest], args: argparse.Namespace) -> list[str]:
    """Return the text about the volumes of each request."""
    access = access_of(args)
    return [await _volumes(cluster, request, access) for request in requests]


async def _volumes(cluster: Cluster, request: TenantRequest, access: Access) -> str:
    """Return the volumes by claim; if they cannot be read, why, for the rest is worth reading all the same."""
    if request.velero.phase not in HAS_FILES:
        return f"Volumes:  {_NONE}; the {request.family.word} has not finished"
    kind = "BackupVolumeInfos" if request.family is BACKUPS else "RestoreVolumeInfo"
    file = File(request.family, request.key, kind, "list of volumes")
    try:
        infos = volume_infos(request.key.namespace, await read_file(cluster, file, access, MOST_BYTES))
    except UnreachableError:
        raise
    except CommandError as error:
        return f"Volumes:  unknown: {error.problem}"
    if infos is None:
        return "Volumes:  unknown: the list of volumes is not in Velero's format"
    return volumes_text(infos, has_results=request.family is BACKUPS)
