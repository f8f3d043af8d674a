"""Whether backups of an earlier namespace of the same name wait for a cluster administrator to adopt them."""

from foresail.api.core import EVENT
from foresail.cli.access.cluster import Cluster, may
from foresail.cli.errors import CommandError
from foresail.cli.tenant.advice import advice_for
from foresail.selfservice.reasons import Reason


async def earlier_backups(cluster: Cluster, namespace: str) -> str:
    """Return what a team without backups does about those of an earlier namespace, which only an operator sees."""
    if await _is_announced(cluster, namespace):
        advice = advice_for(Reason.BACKUPS_ADOPTABLE.value)
        return f"{advice.cause}: {advice.next_step}".format(namespace=namespace)
    command = f"foresail backup adopt -n {namespace}"
    return (
        f"backups of an earlier namespace {namespace} are not listed; a cluster administrator returns them: {command}"
    )


async def _is_announced(cluster: Cluster, namespace: str) -> bool:
    """Whether the operator reported them: an Event, which the API server keeps for an hour by default."""
    try:
        if not await may(cluster, "list", EVENT, namespace):
            return False
        return bool(await cluster.listed(EVENT, namespace, fields=f"reason={Reason.BACKUPS_ADOPTABLE.value}"))
    except CommandError:
        return False  # a hint alone: the list itself has succeeded
