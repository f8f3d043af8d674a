"""What the user may do, as the API server's own access review says it."""

from collections.abc import Sequence

import msgspec

from foresail.api.authorization import OWN_ACCESS_REVIEW, Review
from foresail.cli.access.cluster import Cluster
from foresail.plan import Key, Kind


async def may(cluster: Cluster, verb: str, kind: Kind, namespace: str = "", name: str = "") -> bool:
    """Return whether the user may do something with a kind or one object, in a namespace or in the whole cluster."""
    asked = {"verb": verb, "group": kind.group, "resource": kind.plural, "namespace": namespace}
    if name:
        asked["name"] = name
    review = OWN_ACCESS_REVIEW
    body = {"apiVersion": review.api_version, "kind": review.name, "spec": {"resourceAttributes": asked}}
    made = await cluster.create(review, Key("", ""), body)
    return msgspec.json.decode(made, type=Review).status.allowed


async def may_all(cluster: Cluster, verb: str, kinds: Sequence[tuple[Kind, str]]) -> bool:
    """Return whether the user may do something with each kind in its namespace; the first no is enough."""
    for kind, namespace in kinds:
        if not await may(cluster, verb, kind, namespace):
            return False
    return True
