"""A kind without a schema, for tests of the runtime: the worst that a tenant can send gets through to us."""

from typing import Any

import msgspec

from foresail.plan import Kind
from testbed import Cluster

GROUP = "runtime.foresail.dev"
THING = Kind(GROUP, "v1", "things", "Thing")
USER = "system:serviceaccount:default:watcher"


class Spec(msgspec.Struct, frozen=True):
    size: int = 0


class Wire(msgspec.Struct, frozen=True):
    spec: Spec = Spec()


def definition() -> dict[str, Any]:
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{THING.plural}.{GROUP}"},
        "spec": {
            "group": GROUP,
            "scope": "Namespaced",
            "names": {"plural": THING.plural, "singular": "thing", "kind": THING.name},
            "versions": [
                {
                    "name": THING.version,
                    "served": True,
                    "storage": True,
                    "schema": {"openAPIV3Schema": schema},
                    "subresources": {"status": {}},
                }
            ],
        },
    }


def install(cluster: Cluster) -> None:
    """Create the kind, and a ServiceAccount that may do everything with it and nothing else."""
    rbac = "rbac.authorization.k8s.io"
    cluster.apply(
        definition(),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "watcher", "namespace": "default"}},
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": "watcher"},
            "rules": [{"apiGroups": [GROUP], "resources": ["things", "things/status"], "verbs": ["*"]}],
        },
        {
            "apiVersion": f"{rbac}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": "watcher"},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": "watcher"},
            "subjects": [{"kind": "ServiceAccount", "name": "watcher", "namespace": "default"}],
        },
    )
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{THING.plural}.{GROUP}")


def thing(name: str, size: object = 1) -> dict[str, Any]:
    return {
        "apiVersion": THING.api_version,
        "kind": THING.name,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {"size": size},
    }
