"""In which namespaces Foresail runs: a SelfServicePolicy never applies there."""

from typing import Any

import msgspec

from foresail.api.apps import DEPLOYMENT
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.operators import OPERATORS
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint

_any = msgspec.json.Decoder(dict[str, Any])


async def operator_namespaces(cluster: Cluster, given: str | None) -> set[str]:
    """Return the namespace that is given, or those of the operator's Deployments; none, with a hint, if unreadable."""
    if given:
        return {given}
    try:
        listed = await cluster.listed(DEPLOYMENT, "", OPERATORS)
    except CommandError as error:
        hint(f"the operator's namespace is not known ({error.problem}); specify it with --operator-namespace")
        return set()
    return {str(_any.decode(raw)["metadata"]["namespace"]) for raw in listed}
