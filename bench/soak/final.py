"""Reads what is there, to be judged."""

from collections.abc import Sequence
from typing import Any

import msgspec

from bench.operator import NAMESPACE
from bench.reading import everything
from bench.soak.seen import Final, Thing
from foresail.api import velero
from foresail.api.nonadmin import NON_ADMIN_BACKUP, NON_ADMIN_RESTORE
from foresail.api.primer import PRIMER
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.plan import Kind
from testbed import Cluster


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""
    annotations: dict[str, str] = {}


class _Wire(msgspec.Struct):
    metadata: _Metadata
    status: dict[str, Any] = {}


async def read_all(client: Client, cluster: Cluster) -> Final:
    """Return what is there now."""
    return Final(
        now(),
        requests=await _things(client, NON_ADMIN_BACKUP),
        backups=await _things(client, velero.BACKUP, NAMESPACE),
        restore_requests=await _things(client, NON_ADMIN_RESTORE),
        restores=await _things(client, velero.RESTORE, NAMESPACE),
        deletions=await _things(client, velero.DELETE_REQUEST, NAMESPACE),
        primers=await _things(client, PRIMER),
        bucket=in_bucket(cluster.bucket_objects()),
    )


def in_bucket(paths: Sequence[str]) -> list[str]:
    """Return the names of Backups of which there is something."""
    parts = (path.split("/") for path in paths)
    return sorted({each[1] for each in parts if each[0] == "backups" and len(each) > 2})


async def _things(client: Client, kind: Kind, namespace: str = "") -> list[Thing]:
    found, _ = await everything(client, kind, _Wire, namespace=namespace)
    return [
        Thing(each.metadata.namespace, each.metadata.name, each.metadata.uid, each.status, each.metadata.annotations)
        for each in found
    ]
