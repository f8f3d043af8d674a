"""Access in a world: who may create what, what the API server serves, and what the backups in the bucket hold."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from foresail.api.authorization import SUBJECT_ACCESS_REVIEW
from foresail.bucket import TooLargeError
from foresail.kube.client import decoder
from foresail.kube.failures import Failure
from foresail.plan import Body, Key, Kind
from foresail.selfservice.access.contents import ContentKind, Contents
from foresail.selfservice.access.reader import NotAnsweredError
from foresail.selfservice.access.view import Check
from tests.worlds.visitor import Visitor

T = TypeVar("T")
May = Callable[[str, str, str, str], bool]
"""Whether a user may do a verb with a resource, as plural.group, in a namespace."""

SERVED = {
    ("apps", "deployments", "Deployment"): ("deployment", "deploy"),
    ("rbac.authorization.k8s.io", "clusterroles", "ClusterRole"): ("clusterrole",),
    ("rbac.authorization.k8s.io", "roles", "Role"): ("role",),
    ("rbac.authorization.k8s.io", "rolebindings", "RoleBinding"): ("rolebinding",),
    ("kyverno.io", "policyexceptions", "PolicyException"): ("polex",),
    ("networking.k8s.io", "ingresses", "Ingress"): ("ingress", "ing"),
    ("batch", "jobs", "Job"): ("job",),
}
CLUSTER_SCOPED = ("clusterroles",)
HELD = Contents(kinds=(ContentKind("", "ConfigMap"), ContentKind("", "Pod"), ContentKind("apps", "Deployment")))


def everything(_user: str, _verb: str, _resource: str, _namespace: str) -> bool:
    return True


@dataclass
class Reviews:
    """What every AccessReader of one world meets."""

    may: May = everything
    held: Contents = HELD
    broken: str = ""  # why nothing can be read from the bucket
    is_too_large: bool = False  # whether the lists in the bucket are
    asked: list[tuple[str, str, str]] = field(default_factory=list)  # verb, resource, namespace
    discovered: int = 0
    lists: int = 0  # pages of pods
    read: list[Check] = field(default_factory=list)

    async def contents(self, wish: Check) -> Contents:
        self.read.append(wish)
        if self.is_too_large:
            raise TooLargeError("it is larger than 16 MiB")
        if self.broken:
            raise NotAnsweredError(self.broken)
        return self.held


class Reviewer:
    """The API server as an AccessReader sees it, with the Role of the visitor."""

    def __init__(self, visitor: Visitor, reviews: Reviews) -> None:
        self._visitor = visitor
        self._reviews = reviews

    async def create(self, kind: Kind, key: Key, body: Body, of: type[T]) -> T | Failure:
        assert kind == SUBJECT_ACCESS_REVIEW
        assert key == Key("", "")
        refused = self._visitor.role.refusal("create", kind, "") if self._visitor.role is not None else None
        if refused is not None:
            return refused
        spec: Any = body["spec"]
        what = spec["resourceAttributes"]
        resource = f"{what['resource']}.{what['group']}".removesuffix(".")
        resource += f"/{what['subresource']}" if "subresource" in what else ""
        self._reviews.asked.append((what["verb"], resource, what["namespace"]))
        allowed = self._reviews.may(spec["user"], what["verb"], resource, what["namespace"])
        return decoder(of).decode(msgspec.json.encode({"status": {"allowed": allowed}}))

    async def get(self, kind: Kind, key: Key, of: type[T]) -> T | Failure:
        return await self._visitor.get(kind, key, of)

    async def page(
        self,
        kind: Kind,
        namespace: str,
        parameters: Mapping[str, str],
        of: type[T],
        *,
        metadata_only: bool = False,
        most_bytes: int | None = None,
    ) -> T | Failure:
        self._reviews.lists += 1
        return await self._visitor.page(
            kind, namespace, parameters, of, metadata_only=metadata_only, most_bytes=most_bytes
        )

    async def discover(self, of: type[T]) -> T | Failure:
        self._reviews.discovered += 1
        groups: dict[str, list[dict[str, Any]]] = {}
        for (group, plural, kind), names in SERVED.items():
            scope = "Cluster" if plural in CLUSTER_SCOPED else "Namespaced"
            row = {"resource": plural, "responseKind": {"kind": kind}, "scope": scope, "shortNames": names}
            groups.setdefault(group, []).append(row)
        items = [
            {"metadata": {"name": group}, "versions": [{"version": "v1", "resources": rows}]}
            for group, rows in groups.items()
        ]
        return decoder(of).decode(msgspec.json.encode({"kind": "APIGroupDiscoveryList", "items": items}))
