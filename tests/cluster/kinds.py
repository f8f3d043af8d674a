"""Kinds and permissions that cluster tests bring along."""

from typing import Any

from foresail.plan import Kind

_RBAC = "rbac.authorization.k8s.io"


def schemaless(kind: Kind, *, status: bool = True) -> dict[str, Any]:
    """Return the definition of a kind that takes anything in `spec` and `status`: the worst that a tenant can send.

    Without a status of its own, that is written together with the rest.
    """
    anything = {"x-kubernetes-preserve-unknown-fields": True}
    schema = {"type": "object", "properties": {"spec": anything, "status": anything}}
    version: dict[str, Any] = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
        "subresources": {"status": {}} if status else {},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{kind.plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"plural": kind.plural, "singular": kind.name.lower(), "kind": kind.name},
            "versions": [version],
        },
    }


def rule(group: str, resources: list[str], *verbs: str) -> dict[str, list[str]]:
    """Return one rule of a role."""
    return {"apiGroups": [group], "resources": resources, "verbs": list(verbs)}


def service_account(name: str, *rules: dict[str, list[str]]) -> list[dict[str, Any]]:
    """Return a ServiceAccount in `default` that may do, in the whole cluster, what the rules say and nothing else."""
    return [
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": name, "namespace": "default"}},
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRole",
            "metadata": {"name": name},
            "rules": list(rules),
        },
        {
            "apiVersion": f"{_RBAC}/v1",
            "kind": "ClusterRoleBinding",
            "metadata": {"name": name},
            "roleRef": {"apiGroup": _RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [{"kind": "ServiceAccount", "name": name, "namespace": "default"}],
        },
    ]
