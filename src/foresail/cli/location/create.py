"""`foresail location create`: ask for a location, and let the operator read its Secret if the user may allow that."""

import argparse
import sys
from base64 import b64encode
from pathlib import Path
from typing import Any

import msgspec

from foresail.api.requests import NON_ADMIN_LOCATION
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.location.grant import grant_access
from foresail.cli.options.booleans import CLIENT
from foresail.cli.options.output import is_table
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text
from foresail.cli.tenant.requester import stamped
from foresail.plan import Key


def create(args: argparse.Namespace) -> int:
    """Create the object, or print the manifest, which needs no cluster."""
    body = location_object(args)
    if args.dry_run == CLIENT or (not args.dry_run and not (is_table(args.output) or args.output == "name")):
        print(as_text([body], "yaml" if is_table(args.output) else args.output))
        return 0
    settle_namespace(args)
    return on_cluster(args, lambda cluster: _create(cluster, args, body))


async def _create(cluster: Cluster, args: argparse.Namespace, body: dict[str, Any]) -> int:
    key = Key(args.namespace, args.name)
    body = {**body, "metadata": {**body["metadata"], "namespace": args.namespace}}
    made = await cluster.create(NON_ADMIN_LOCATION, key, await stamped(cluster, body), dry_run=bool(args.dry_run))
    if args.dry_run:
        print(f"{NON_ADMIN_LOCATION.name} {key} would be created (server dry run).", file=sys.stderr)
        return 0
    if args.output == "name":
        print(as_text([msgspec.json.decode(made, type=dict[str, Any])], "name"), flush=True)
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
