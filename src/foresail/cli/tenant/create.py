"""`foresail backup create` and `foresail restore create`: a request, and the wait for what becomes of it."""

import argparse
import sys
from datetime import datetime
from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster, settle_namespace
from foresail.cli.access.self_service import require
from foresail.cli.errors import CommandError
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import as_text
from foresail.cli.tenant.kinds import check_kinds
from foresail.cli.tenant.names import settle_name
from foresail.cli.tenant.requester import stamped
from foresail.cli.tenant.restored_backup import check_backup
from foresail.cli.tenant.selection import family_of, in_namespace
from foresail.cli.tenant.spec import request_object
from foresail.cli.tenant.wait import wait_for
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import Family


def create(args: argparse.Namespace) -> int:
    """Create a request, or print the manifest, which needs no cluster."""
    family = family_of(args)
    if getattr(args, "only", None):
        from foresail.cli.tenant.only import check_options  # noqa: PLC0415 - only for --only

        check_options(args)
    settle_name(family, args, now())
    until = deadline(args.timeout)
    if args.dry_run == CLIENT or (not args.dry_run and not (is_table(args.output) or args.output == "name")):
        _settle_namespace_if_known(args)
        body = request_object(family, args)
        print(as_text([body], "yaml" if is_table(args.output) else args.output))
        return 0
    return interruptible(lambda: in_namespace(args, lambda cluster, family: _create(cluster, family, args, until)))


def _settle_namespace_if_known(args: argparse.Namespace) -> None:
    """Use the namespace of the kube context; a manifest without one goes where it is applied."""
    try:
        settle_namespace(args)
    except CommandError:
        args.namespace = None


async def _create(cluster: Cluster, family: Family, args: argparse.Namespace, until: datetime | None) -> int:
    await require(cluster, family.kind, args.namespace)
    body = request_object(family, args)
    await check_kinds(cluster, family, body)
    await check_backup(cluster, family, body, args.namespace)
    if getattr(args, "only", None):
        from foresail.cli.tenant.only import restore_only  # noqa: PLC0415

        kinds = await restore_only(cluster, args)
        if not kinds:
            return 0
        body["spec"]["restoreSpec"]["includedResources"] = list(kinds)
    key = Key(args.namespace, args.name)
    made = await cluster.create(family.kind, key, await stamped(cluster, body), dry_run=bool(args.dry_run))
    if args.dry_run:
        form = "yaml" if is_table(args.output) else args.output
        print(as_text([msgspec.json.decode(made, type=dict[str, Any])], form), flush=True)
        print(f"{family.kind.name} {key} would be created (server dry run).", file=sys.stderr)
        return 0
    if args.output == "name":
        print(as_text([msgspec.json.decode(made, type=dict[str, Any])], "name"), flush=True)
    print(f"{family.kind.name} {key} created.", file=sys.stderr)
    if args.wait:
        return await wait_for(cluster, family, key, until, args.fail_on)
    print(f"Follow it with foresail {family.word} wait {key.name} -n {key.namespace}", file=sys.stderr)
    return 0
