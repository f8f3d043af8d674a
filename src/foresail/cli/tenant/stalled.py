"""Why nothing starts for a team, as the operator publishes it."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime

from foresail.api.velero import WAITING
from foresail.cli.access.cluster import Cluster
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.selfservice.families import BACKUPS


@dataclass(frozen=True, slots=True)
class Stalled:
    """What keeps everything of a team from starting; all are empty if nothing does."""

    nobody_runs: str = ""
    """Why no operator serves requests and runs NonAdminSchedules, if so."""

    velero: str = ""
    """Why Velero starts nothing, if so."""

    unknown: str = ""
    """What is unknown about it, if so."""

    locations: Mapping[str, str] = field(default_factory=dict)
    """Why a storage location of administrators cannot be used, or nothing, by its name; "" is the default one."""

    @property
    def problem(self) -> str:
        """The first cause."""
        return self.nobody_runs or self.velero


NOTHING_STALLED = Stalled()


async def why_nothing_starts(cluster: Cluster, request: TenantRequest, now: datetime) -> str:
    """Return why a request that waits for Velero will not start now; empty if it waits for nothing else."""
    if not request.is_open or not request.made.name or request.velero.phase not in WAITING:
        return ""
    return (await read_stalled(cluster, request.made.namespace, now)).problem


async def read_stalled(cluster: Cluster, velero_namespace: str, now: datetime) -> Stalled:
    """Return what keeps everything from starting.

    Without Velero's namespace the usual one is looked at: that there is no Lease of an operator proves nothing then.
    """
    from foresail.cli.coverage.facts import read_facts  # noqa: PLC0415 - few requests wait for Velero

    usual = os.environ.get("VELERO_NAMESPACE") or "velero"
    shared = await read_facts(cluster, velero_namespace or usual, now)
    nobody = shared.nobody_runs if velero_namespace or shared.has_lease else ""
    velero = shared.facts.velero_problem if shared.facts is not None else ""
    return Stalled(nobody, velero, "; ".join(shared.unknown), shared.location_problems())


async def read_stalled_in(cluster: Cluster, namespace: str, now: datetime) -> Stalled:
    """Return the same for a namespace, whose backups tell where Velero is if the usual place does not."""
    usual = await read_stalled(cluster, "", now)
    if usual.problem or not usual.unknown:
        return usual
    listed = await cluster.listed_if_known(BACKUPS.kind, namespace)
    made = (decode_request(BACKUPS, raw).made.namespace for raw in listed)
    velero_namespace = next(filter(None, made), "")
    return await read_stalled(cluster, velero_namespace, now) if velero_namespace else usual
