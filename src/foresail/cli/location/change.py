"""`foresail location create`, `grant` and `delete`: storage locations, and the right to read their Secrets."""

import argparse
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

from foresail.api.nonadmin import NON_ADMIN_LOCATION, Location
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.location.get import location_spec
from foresail.cli.options.parser import CLIENT
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import Request, shown
from foresail.cli.tenant.new_request import stamped
from foresail.cli.verbs import confirm, create_object, is_printed, print_object
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


def create(args: argparse.Namespace) -> int:
    """Create the object, or print the manifest, which needs no cluster."""
    body = location_object(args)
    if is_printed(args):
        print_object(args, body)
        return 0
    settle_namespace(args)
    return on_cluster(args, lambda cluster: _create(cluster, args, body))


async def _create(cluster: Cluster, args: argparse.Namespace, body: dict[str, Any]) -> int:
    key = Key(args.namespace, args.name)
    body = {**body, "metadata": {**body["metadata"], "namespace": args.namespace}}
    await create_object(cluster, args, NON_ADMIN_LOCATION, await stamped(cluster, body))
    if args.dry_run:
        return 0
    print(f"{NON_ADMIN_LOCATION.name} {key} created.", file=sys.stderr)
    secret = body["spec"]["backupStorageLocationSpec"]["credential"]["name"]
    try:
        await grant_access(cluster, key, secret, args.operator)
    except CommandError:
        hint(
            f"the operator may not read Secret {secret} yet: let an administrator of the namespace run "
            f"foresail location grant {key.name} -n {key.namespace}"
        )
    print(f"Follow it with foresail location describe {key.name} -n {key.namespace}", file=sys.stderr)
    return 0


def location_object(args: argparse.Namespace) -> dict[str, Any]:
    """Return the manifest."""
    secret, separator, key = args.credential.partition("=")
    if not separator or not secret or not key:
        raise UsageError(f"--credential {args.credential}: it names no key", "write --credential SECRET=KEY")
    stored = {"bucket": args.bucket}
    if args.prefix:
        stored["prefix"] = args.prefix
    if args.cacert:
        stored["caCert"] = _certificate(args.cacert)
    spec: dict[str, Any] = {"provider": args.provider, "objectStorage": stored, "config": _config(args)}
    spec["credential"] = {"name": secret, "key": key}
    metadata = {"name": args.name, **({"namespace": args.namespace} if args.namespace else {})}
    return {
        "apiVersion": NON_ADMIN_LOCATION.api_version,
        "kind": NON_ADMIN_LOCATION.name,
        "metadata": metadata,
        "spec": {"backupStorageLocationSpec": spec},
    }


def _config(args: argparse.Namespace) -> dict[str, str]:
    document = {"region": args.region} if args.region else {}
    for item in args.config:
        key, separator, value = item.partition("=")
        if not separator:
            raise UsageError(f"--config {item}: it has no value", "write --config KEY=VALUE")
        document[key] = value
    return document


def _certificate(file: str) -> str:
    try:
        return b64encode(Path(file).read_bytes()).decode()
    except OSError as error:
        raise UsageError(f"--cacert {file}: {error.strerror}", "name a file with certificates in PEM") from error


def delete(args: argparse.Namespace) -> int:
    """Delete a location, after asking."""
    settle_namespace(args)
    return on_cluster(args, lambda cluster: _delete(cluster, args))


async def _delete(cluster: Cluster, args: argparse.Namespace) -> int:
    kind = NON_ADMIN_LOCATION
    key = Key(args.namespace, args.name)
    location = await cluster.read(kind, key, Location)
    if args.dry_run == CLIENT:
        print(shown([Request("DELETE", kind, key)], "table"))
        return 0
    confirm(args, [f"{kind.name} {key} with its backups"])
    await cluster.delete(kind, key, location.metadata.uid, dry_run=bool(args.dry_run))
    if args.dry_run:
        print(f"{kind.name} {key} would be deleted (server dry run).", file=sys.stderr)
        return 0
    print(f"{kind.name} {key} deletion started; the data of its backups stays in the bucket.", file=sys.stderr)
    return 0
