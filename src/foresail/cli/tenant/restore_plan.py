"""`foresail restore plan`: what a tenant's restore would do, with the tenant's own rights."""

import argparse
from collections.abc import Mapping
from typing import Any

from foresail.api.policy import REFUSED_KINDS, RestoredKinds
from foresail.api.specs import RestoreSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.output.messages import interruptible
from foresail.cli.restore_plan.planning import (
    Inputs,
    ended_in_order,
    make_plan,
    report,
    restore_spec_of,
    together,
)
from foresail.cli.tenant.files import Access, File, NotServedError, access_of, check_has_files, read_file
from foresail.cli.tenant.selection import in_namespace, read_request
from foresail.cli.tenant.spec import restore_spec
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.plan import Key
from foresail.proof.restore_plan.actions import Settings
from foresail.proof.restore_plan.archive import MOST_BYTES
from foresail.proof.restore_plan.modifiers import Modifiers
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.specs import kinds
from foresail.selfservice.specs.values import Refusal


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
        asked = restore_of(await read_request(cluster, RESTORES, Key(args.namespace, args.name)))
    else:
        asked = restore_spec(args)
    try:
        inputs = await read_inputs(cluster, args.namespace, asked, access, MOST_BYTES)
    except NotServedError as error:
        other = f"foresail backup diff {asked['backupName']} -n {args.namespace} needs no such permission"
        further = error.hint or ""
        raise NotServedError(error.problem, f"{other}. {further[:1].upper()}{further[1:]}") from error
    return report(args, await make_plan(cluster, cluster.client, inputs))


async def read_inputs(cluster: Cluster, namespace: str, asked: Mapping[str, Any], access: Access, most: int) -> Inputs:
    """Return what a plan of a tenant's restore with these fields is made from; no file may be larger."""
    backup = str(asked.get("backupName", ""))
    about = Key(namespace, backup)
    check_has_files(await read_request(cluster, BACKUPS, about), "contents")  # if it does not exist, that is the error
    spec = restore_spec_of(tenant_fields(asked, namespace))
    files = (File(BACKUPS, about, "BackupContents", "contents"), File(BACKUPS, about, "BackupVolumeInfos", "volumes"))
    archive, volumes = await together(*(read_file(cluster, file, access, most) for file in files))
    return Inputs(backup, archive, volumes, Settings(spec), Modifiers(), ignored_fields(spec))


def ignored_fields(spec: RestoreSpec) -> tuple[str, ...]:
    """Return a warning for each field that names a ConfigMap, which a tenant may not read."""
    fields = {"resourceModifier": spec.resource_modifier, "resourcePolicy": spec.resource_policy}
    return tuple(
        f"the plan ignores {field}: you may not read ConfigMap {reference.name} in Velero's namespace"
        for field, reference in fields.items()
        if reference is not None
    )


def restore_of(request: TenantRequest) -> dict[str, Any]:
    """Return the restoreSpec of a NonAdminRestore, which names a backup."""
    asked = request.spec
    if request.point:
        problem = f"NonAdminRestore {request.key} is from backup {request.point} of a ProtectionClass"
        raise CommandError(f"{problem}, which holds other namespaces too", "ask a cluster administrator for the plan")
    if not asked.get("backupName"):
        raise CommandError(f"NonAdminRestore {request.key} names no backup", "set spec.restoreSpec.backupName")
    return asked


def tenant_fields(asked: Mapping[str, Any], namespace: str) -> dict[str, Any]:
    """Return a tenant's restore as the operator hands it to Velero: from its namespace, without the refused kinds.

    A tenant may not read the policy, so its default list of refused kinds counts, except for those that are named.
    """
    fields = {name: value for name, value in asked.items() if name not in ("namespaceMapping", "excludedNamespaces")}
    mapping = asked.get("namespaceMapping") or {}
    if set(mapping) == {namespace}:
        fields["namespaceMapping"] = mapping
    spec = restore_spec_of(fields)
    named = {resource.lower() for resource in spec.included_resources or ()}
    refused = tuple(kind for kind in REFUSED_KINDS if kind not in named)
    try:
        included, excluded = kinds.restored(
            spec.included_resources,
            spec.excluded_resources,
            RestoredKinds(refused=refused),
            "spec.restoreSpec",
            f"of namespace {namespace}",
        )
    except Refusal as refusal:
        raise CommandError(f"the restore would be refused: {refusal}", "correct the restore") from refusal
    lists = {"includedResources": included, "excludedResources": excluded}
    given = {name: list(entries) for name, entries in lists.items() if entries}
    return {**fields, **given, "includedNamespaces": [namespace]}
