"""The annotations that name the requester, for API servers that do not set them by themselves."""

from collections.abc import Mapping
from typing import Any

import msgspec

from foresail.api.marks import REQUESTER, REQUESTER_GROUPS
from foresail.cli.access.cluster import Cluster
from foresail.plan import Kind

_REVIEW = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class User(msgspec.Struct, frozen=True):
    """Who makes the requests, as the API server knows them."""

    username: str = ""
    groups: tuple[str, ...] = ()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    user_info: User = User()


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


async def stamped(cluster: Cluster, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request, or a change of one, with the annotations that name the current user."""
    metadata = body.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), **await _stamp(cluster)}
    return {**body, "metadata": {**metadata, "annotations": annotations}} if annotations else dict(body)


async def current_user(cluster: Cluster) -> User | None:
    """Ask the API server who the user is; None if it does not answer."""
    raw = await cluster.reviewed(_REVIEW, {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.name})
    return None if raw is None else msgspec.json.decode(raw, type=_Review).status.user_info


async def _stamp(cluster: Cluster) -> dict[str, str]:
    """Return the annotations; without an answer, leave them to the API server."""
    user = await current_user(cluster)
    return {} if user is None else {REQUESTER: user.username, REQUESTER_GROUPS: "\n".join(user.groups)}
