"""Whether self-service is enabled in a namespace, by the labels that the operator sets there."""

import asyncio

from foresail.api.core import NAMESPACE, Namespace
from foresail.api.marks import VELERO_ANNOTATIONS_LABEL
from foresail.api.policy import OPT_IN_LABEL
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.plan import Key, Kind

_ATTEMPTS, _PAUSE = 5, 0.5  # the operator labels a namespace within a second of its policy

_INSTEAD = {
    "NonAdminBackup": "velero backup create NAME --include-namespaces {}",
    "NonAdminRestore": "foresail plan BACKUP --include-namespaces {} --restore",
    "NonAdminSchedule": "foresail schedule create NAME --schedule '0 3 * * *' --include-namespaces {}",
    "Rollback": "foresail plan BACKUP --include-namespaces {} --existing-resource-policy update --restore",
}
"""What an administrator runs for a namespace without self-service."""


async def is_enabled(cluster: Cluster, namespace: str) -> bool | None:
    """Return whether the operator serves requests in a namespace; None if that is unknown.

    It is unknown if the namespace may not be read, or has asked for it and the operator has not answered.
    """
    try:
        row = await cluster.read(NAMESPACE, Key("", namespace), Namespace)
    except UnreachableError:
        raise
    except CommandError:
        return None
    labels = row.metadata.labels or {}
    if VELERO_ANNOTATIONS_LABEL in labels:
        return True
    return None if OPT_IN_LABEL in labels else False


async def require(cluster: Cluster, kind: Kind, namespace: str) -> None:
    """Refuse a request that nothing would serve: it would stay, and start once somebody enables self-service."""
    for attempt in range(_ATTEMPTS):
        if await is_enabled(cluster, namespace) is not False:
            return
        if attempt < _ATTEMPTS - 1:
            await asyncio.sleep(_PAUSE)
    problem = f"{not_enabled(namespace)}, so no {kind.name} is created"
    enable = f"ask a cluster administrator to enable it: {enabling_command(namespace)}"
    raise CommandError(problem, f"{enable}; or to run {instead(kind, namespace)}")


def not_enabled(namespace: str) -> str:
    """Return what is missing."""
    return f"Self-service is not enabled in namespace {namespace}"


def enabling_command(namespace: str) -> str:
    """Return what an administrator runs to enable self-service under the default policy."""
    return f"kubectl label namespace {namespace} {OPT_IN_LABEL}=enabled"


def instead(kind: Kind, namespace: str) -> str:
    """Return what an administrator runs instead of a request of that kind."""
    return _INSTEAD[kind.name].format(namespace)
