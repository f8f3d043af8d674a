"""The annotations that name the requester, for API servers that do not set them by themselves."""

from collections.abc import Mapping
from typing import Any

import msgspec

from foresail.api.marks import REQUESTER, REQUESTER_GROUPS
from foresail.cli.access.cluster import Cluster
from foresail.plan import Kind

_REVIEW = Kind("authentication.k8s.io", "v1", "selfsubjectreviews", "SelfSubjectReview", namespaced=False)


class _User(msgspec.Struct, frozen=True):
    username: str = ""
    groups: tuple[str, ...] = ()


class _Status(msgspec.Struct, frozen=True, rename="camel"):
    user_info: _User = _User()


class _Review(msgspec.Struct, frozen=True):
    status: _Status = _Status()


async def stamped(cluster: Cluster, body: Mapping[str, Any]) -> dict[str, Any]:
    """Return a request, or a change of one, with the annotations that name the current user."""
    metadata = body.get("metadata", {})
    annotations = {**metadata.get("annotations", {}), **await _stamp(cluster)}
    return {**body, "metadata": {**metadata, "annotations": annotations}} if annotations else dict(body)


async def _stamp(cluster: Cluster) -> dict[str, str]:
    """Ask the API server who the user is; without an answer, leave the annotations to the API server."""
    raw = await cluster.reviewed(_REVIEW, {"apiVersion": _REVIEW.api_version, "kind": _REVIEW.name})
    if raw is None:
        return {}
    user = msgspec.json.decode(raw, type=_Review).status.user_info
    return {REQUESTER: user.username, REQUESTER_GROUPS: "\n".join(user.groups)}
