"""Whether the Velero server runs: by the pods of its Deployment, or by the locations that it validates each minute."""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.api.apps import Deployment, is_server

_FRESH = timedelta(minutes=5)
"""Velero validates each location every minute; one that was validated this recently shows that a server runs."""


@dataclass(frozen=True, slots=True)
class VeleroState:
    """Whether a Velero server runs: neither a problem nor a doubt means that it does."""

    problem: str = ""
    unknown: str = ""


RUNS = VeleroState()


def velero_state(deployments: Iterable[Deployment], validated: datetime | None, now: datetime) -> VeleroState:
    """Return why no Velero server runs, or that this is unknown; `validated` is when one last validated a location."""
    servers = [each for each in deployments if any(map(is_server, each.spec.template.spec.containers))]
    if any(each.status.ready_replicas for each in servers):
        return RUNS
    wanted = sum(each.spec.replicas for each in servers)
    if wanted:
        names = ", ".join(each.metadata.name for each in servers)
        return VeleroState(f"0 of {wanted} pods of Velero's Deployment {names} are ready")
    if _is_validating(servers, validated, now):
        return RUNS
    if servers:
        return VeleroState(f"Velero's Deployment {servers[0].metadata.name} is scaled to 0 pods")
    text = "whether Velero runs: no Deployment has its server, and no storage location was validated for five minutes"
    return VeleroState(unknown=text)


def _is_validating(servers: Iterable[Deployment], validated: datetime | None, now: datetime) -> bool:
    """Whether a server outside of these Deployments, which have no pod, works: it has validated a location since."""
    scaled = [each.metadata.scaled or each.metadata.creation_timestamp for each in servers]
    since = max((each for each in scaled if each is not None), default=None)
    if validated is None or abs(now - validated) > _FRESH:
        return False
    return since is None or validated > since
