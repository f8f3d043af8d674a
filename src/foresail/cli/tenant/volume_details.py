"""The volumes in backups and restores, as Velero's own files list them."""

import argparse
from collections.abc import Iterable

from foresail.api.velero_files import MOST_BYTES
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.tenant.files import Access, File, access_of, read_file
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.cli.tenant.volumes import volume_infos, volumes_text
from foresail.selfservice.downloads.decide import HAS_FILES
from foresail.selfservice.families import BACKUPS

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
