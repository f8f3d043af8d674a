"""A real cluster with many Parents in it, and the ServiceAccount that the measured processes are.

A hundred thousand objects are not created one by one: that would take minutes, and their creation is not what is
measured. One Parent is created through the API server, and with `converged` one child and one status by the very
controller that is measured; etcd then gets copies of what the API server stored, with other names and UIDs, while
the API server is down. When it is back it reads them as it reads everything it has stored.
"""

import base64
import os
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from itertools import islice
from typing import Any

from bench import MeasurementError
from testbed import Cluster, Options
from testbed.api import request
from testbed.control_plane import APISERVER, CONTROLLER_MANAGER
from testbed.ports import Port
from tests.cluster.kinds import rule
from tests.cluster.parents import PARENT, install, parents

ACCOUNT = "bench"
USER = f"system:serviceaccount:default:{ACCOUNT}"
NAMESPACES = 100
_FIRST_NAMESPACE, _FIRST_NAME = "bench-000", "parent-000000"
_AT_ONCE = 100  # objects in one write to etcd, which takes 128
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
    cluster.fault.kill(APISERVER)
    pairs = (pair for number in range(1, count) for pair in _copies(models, number))
    while puts := [{"requestPut": pair} for pair in islice(pairs, _AT_ONCE)]:
        _etcd(cluster, "kv/txn", {"success": puts})
    cluster.fault.start(APISERVER)


def stored_children(cluster: Cluster) -> int:
    """Return how many ConfigMaps our namespaces have; etcd is asked, so that the API server has no work by it."""
    first, end = (f"/registry/configmaps/bench{mark}".encode() for mark in "-.")  # a dot comes right after a dash
    asked = {"key": _text(first), "range_end": _text(end), "count_only": True}
    return int(_etcd(cluster, "kv/range", asked).get("count", 0))


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
            stored = _etcd(cluster, "kv/range", {"key": _text(key.encode())})["kvs"][0]["value"]
            found[uid] = _Model(f"/registry/{kind}", base64.b64decode(stored))
    return found


def _copies(models: dict[str, _Model], number: int) -> Iterator[dict[str, str]]:
    # Everything that is replaced is as long as what it replaces, so the lengths in a stored ConfigMap stay true.
    others = {uid.encode(): str(uuid.uuid4()).encode() for uid in models}
    others |= {_FIRST_NAME.encode(): name(number).encode(), _FIRST_NAMESPACE.encode(): namespace(number).encode()}
    for model in models.values():
        content = model.content
        for old, new in others.items():
            content = content.replace(old, new)
        key = f"{model.prefix}/{namespace(number)}/{name(number)}"
        yield {"key": _text(key.encode()), "value": _text(content)}


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()


def _etcd(cluster: Cluster, call: str, body: object) -> dict[str, Any]:
    answer = request("POST", f"{cluster.site.url(Port.ETCD, 'http')}/v3/{call}", body=body)
    content: dict[str, Any] = answer.json()
    if "error" in content:
        raise MeasurementError(f"etcd refused {call}: {answer.text}")
    return content
