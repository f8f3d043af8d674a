"""A real cluster with many Parents in it, and the ServiceAccount that the measured processes are.

One Parent is created through the API server, and with `converged` one child and one status by the very controller
that is measured; etcd then gets copies of what the API server stored, with other names and UIDs, while it is down.
"""

import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from bench import etcd
from testbed import Cluster, Options
from testbed.control_plane import CONTROLLER_MANAGER
from tests.cluster.kinds import rule
from tests.cluster.parents import PARENT, install, parents

ACCOUNT = "bench"
USER = f"system:serviceaccount:default:{ACCOUNT}"
NAMESPACES = 100
_FIRST_NAMESPACE, _FIRST_NAME = "bench-000", "parent-000000"
_RBAC = "rbac.authorization.k8s.io"


@contextmanager
def world() -> Iterator[Cluster]:
    """Bring up a cluster that knows Parents and our ServiceAccount, and take it down at the end."""
    with Cluster.create(f"bench-{os.getpid()}", Options(), owned=True) as cluster:
        install(cluster, ACCOUNT, rule("events.k8s.io", ["events"], "create"))
        here = {"name": ACCOUNT, "namespace": "default"}
        role = {"apiVersion": f"{_RBAC}/v1", "kind": "Role", "metadata": here}
        binding = {"apiVersion": f"{_RBAC}/v1", "kind": "RoleBinding", "metadata": here}
        cluster.apply(
            {**role, "rules": [rule("coordination.k8s.io", ["leases"], "get", "create", "patch")]},
            {
                **binding,
                "roleRef": {"apiGroup": _RBAC, "kind": "Role", "name": ACCOUNT},
                "subjects": [{"kind": "ServiceAccount", **here}],
            },
            *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(n)}} for n in range(NAMESPACES)),
        )
        # Nothing here needs it any more, and its garbage collector would read along on the same two cores.
        cluster.fault.kill(CONTROLLER_MANAGER)
        yield cluster


def namespace(number: int) -> str:
    """Return the namespace of the Parent with that number."""
    return f"bench-{number % NAMESPACES:03}"


def name(number: int) -> str:
    """Return the name of the Parent with that number, and of its child."""
    return f"parent-{number:06}"


def create_first(cluster: Cluster) -> None:
    """Create the Parent that all others are copies of."""
    cluster.apply(*parents(_FIRST_NAMESPACE, [_FIRST_NAME]))


def multiply(cluster: Cluster, count: int) -> None:
    """Make the first Parent, and its child if it has one, into so many."""
    models = _models(cluster)
    etcd.store(cluster, (each for number in range(1, count) for each in _copies(models, number)))


def stored_children(cluster: Cluster) -> int:
    """Return how many ConfigMaps our namespaces have."""
    return etcd.count(cluster, "/registry/configmaps/bench-", "/registry/configmaps/bench.")  # which comes right after


@dataclass(frozen=True, slots=True)
class _Model:
    prefix: str
    content: bytes


def _models(cluster: Cluster) -> dict[str, _Model]:
    """Return what is stored of the first Parent and of its child, by their UIDs."""
    found = {}
    for kind, resource in ((f"{PARENT.group}/{PARENT.plural}", "parents"), ("configmaps", "configmaps")):
        items = cluster.get(resource, "--namespace", _FIRST_NAMESPACE)["items"]
        for uid in (item["metadata"]["uid"] for item in items if item["metadata"]["name"] == _FIRST_NAME):
            key = f"/registry/{kind}/{_FIRST_NAMESPACE}/{_FIRST_NAME}"
            found[uid] = _Model(f"/registry/{kind}", etcd.stored(cluster, key))
    return found


def _copies(models: dict[str, _Model], number: int) -> Iterator[etcd.Stored]:
    # Everything that is replaced is as long as what it replaces, so the lengths in a stored ConfigMap stay true.
    others = {uid.encode(): str(uuid.uuid4()).encode() for uid in models}
    others |= {_FIRST_NAME.encode(): name(number).encode(), _FIRST_NAMESPACE.encode(): namespace(number).encode()}
    for model in models.values():
        content = model.content
        for old, new in others.items():
            content = content.replace(old, new)
        yield f"{model.prefix}/{namespace(number)}/{name(number)}", content
