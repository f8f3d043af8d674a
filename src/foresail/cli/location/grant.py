"""`foresail location grant`: a Role by which the operator reads the one Secret of a location, and nothing else."""

import argparse
import sys

from foresail.api.nonadmin import Location
from foresail.api.requests import NON_ADMIN_LOCATION
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.location.get import location_spec
from foresail.plan import Key, Kind

_GROUP = "rbac.authorization.k8s.io"
_ROLE = Kind(_GROUP, "v1", "roles", "Role")
_BINDING = Kind(_GROUP, "v1", "rolebindings", "RoleBinding")


def grant(args: argparse.Namespace) -> int:
    """Grant access to the Secret that a location names."""
    settle_namespace(args)
    return on_cluster(args, lambda cluster: _grant(cluster, args))


async def _grant(cluster: Cluster, args: argparse.Namespace) -> int:
    key = Key(args.namespace, args.name)
    location = await cluster.read(NON_ADMIN_LOCATION, key, Location)
    secret = location_spec(location).get("credential", {}).get("name", "")
    if not secret:
        raise CommandError(f"{NON_ADMIN_LOCATION.name} {key} names no Secret", "set spec.credential, or create another")
    await grant_access(cluster, key, secret, args.operator)
    return 0


async def grant_access(cluster: Cluster, key: Key, secret: str, operator: str) -> None:
    """Apply the Role and the RoleBinding; the name of the Secret is in the Role, so no other is readable."""
    where, separator, account = operator.partition("/")
    if not separator or not where or not account:
        raise UsageError(f"--operator {operator}: it names no ServiceAccount", "write --operator NAMESPACE/NAME")
    at = Key(key.namespace, f"foresail-location-{key.name}"[:253])
    rule = {"apiGroups": [""], "resources": ["secrets"], "resourceNames": [secret], "verbs": ["get"]}
    head = {"metadata": {"name": at.name, "namespace": at.namespace}}
    await cluster.apply(_ROLE, at, {"apiVersion": _ROLE.api_version, "kind": _ROLE.name, **head, "rules": [rule]})
    binding = {
        "apiVersion": _BINDING.api_version,
        "kind": _BINDING.name,
        **head,
        "roleRef": {"apiGroup": _GROUP, "kind": _ROLE.name, "name": at.name},
        "subjects": [{"kind": "ServiceAccount", "name": account, "namespace": where}],
    }
    await cluster.apply(_BINDING, at, binding)
    print(f"ServiceAccount {operator} may read Secret {key.namespace}/{secret}.", file=sys.stderr)
