"""`foresail restore plan`: what a tenant's restore would do, with the tenant's own rights."""

import argparse
from typing import Any

import msgspec

from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import UsageError
from foresail.cli.output.messages import interruptible
from foresail.cli.restore_plan.planning import (
    Inputs,
    RestorePlan,
    ended_in_order,
    make_plan,
    report,
    restore_spec_of,
)
from foresail.cli.tenant.files import Access, File, access_of, read_file
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.cli.tenant.spec import restore_spec
from foresail.plan import Key
from foresail.proof.restore_plan.actions import Settings
from foresail.proof.restore_plan.archive import MOST_BYTES
from foresail.proof.restore_plan.modifiers import Modifiers
from foresail.selfservice.families import BACKUPS, RESTORES

_spec = msgspec.json.Decoder(dict[str, Any])


def plan(args: argparse.Namespace) -> int:
    """Print what a restore would do to each item of the backup."""
    if bool(args.name) == bool(args.from_backup):
        raise UsageError("name a NonAdminRestore, or a backup with --from-backup", "not both")
    access = access_of(args)
    return interruptible(
        lambda: in_namespace(args, lambda cluster, _: ended_in_order(lambda: _plan(cluster, args, access))),
        "Stopped. Nothing was restored.",
    )


async def _plan(cluster: Cluster, args: argparse.Namespace, access: Access) -> int:
    if args.name:
        request = await read_request(cluster, RESTORES, Key(args.namespace, args.name))
        asked = _spec.decode(request.made.spec)
    else:
        asked = restore_spec(args)
    return report(args, await plan_restore(cluster, args.namespace, asked, access))


async def plan_restore(cluster: Cluster, namespace: str, asked: dict[str, Any], access: Access) -> RestorePlan:
    """Return what a tenant's restore with these fields would do, by dry runs with the caller's own rights."""
    backup = str(asked.get("backupName", ""))
    about = Key(namespace, backup)
    await read_request(cluster, BACKUPS, about)  # if it does not exist, that is the error
    archive = await read_file(cluster, File(BACKUPS, about, "BackupContents", "contents"), access, MOST_BYTES)
    volumes = await read_file(cluster, File(BACKUPS, about, "BackupVolumeInfos", "volumes"), access, MOST_BYTES)
    spec = restore_spec_of(tenant_fields(asked, namespace))
    inputs = Inputs(backup, archive, volumes, Settings(spec), Modifiers())
    return await make_plan(cluster, cluster.client, inputs)


def tenant_fields(asked: dict[str, Any], namespace: str) -> dict[str, Any]:
    """Return a tenant's restore as the operator hands it to Velero: within the namespace, and nowhere else."""
    fields = {name: value for name, value in asked.items() if name not in ("namespaceMapping", "excludedNamespaces")}
    return {**fields, "includedNamespaces": [namespace]}
