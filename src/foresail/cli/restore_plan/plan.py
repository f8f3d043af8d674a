"""`foresail plan`: what an administrator's restore of a Backup would do, and with --restore the restore itself."""

import argparse
from collections.abc import Mapping
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.specs import RestoreSpec
from foresail.cli.access.cluster import MANAGER, Cluster, on_cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.options.output import is_table
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.values import read_list
from foresail.cli.output.messages import hint, interruptible
from foresail.cli.restore_plan.planning import (
    Inputs,
    RestorePlan,
    ended_in_order,
    make_plan,
    report,
    restore_spec_of,
    together,
)
from foresail.cli.restore_plan.restore import CONTINUES, check_options, restore, restore_object
from foresail.cli.restore_plan.velero_files import read_velero_file
from foresail.cli.tenant.files import Access, access_of
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import ConnectError, connect
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.actions import CHANGE_IMAGE_NAME, CHANGE_STORAGE_CLASS, Settings
from foresail.proof.restore_plan.modifiers import ModifierError, Modifiers, read_modifiers

_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
_PLUGIN = "velero.io/plugin-config,velero.io/{}=RestoreItemAction"


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    included_namespaces: list[str] | None = None


class _Backup(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def plan(args: argparse.Namespace) -> int:
    """Print what a restore of a Backup would do; with --restore, do it."""
    check_options(args)
    access = access_of(args)
    return interruptible(
        lambda: on_cluster(args, lambda cluster: ended_in_order(lambda: _plan(cluster, args, access))),
        CONTINUES if args.restore else "Stopped. Nothing was restored.",
    )


async def _plan(cluster: Cluster, args: argparse.Namespace, access: Access) -> int:
    about = Key(args.namespace, args.backup)
    backup = await cluster.read(velero.BACKUP, about, _Backup)
    fields = spec_fields(args, backup.spec.included_namespaces or [])
    spec = restore_spec_of(fields)
    if args.restore:
        body = restore_object(args, fields, now())
        return await restore(cluster, args, body, lambda: planned(cluster, args, spec, access))
    code = report(args, await planned(cluster, args, spec, access))
    if is_table(args.output):
        hint("nothing was restored; the same command with --restore does it")
    return code


async def planned(cluster: Cluster, args: argparse.Namespace, spec: RestoreSpec, access: Access) -> RestorePlan:
    """Return what a restore of the Backup would do."""
    about = Key(args.namespace, args.backup)
    modifiers = await _modifiers(cluster, args)
    archive, volumes = await together(
        read_velero_file(cluster, about, "BackupContents", access),
        read_velero_file(cluster, about, "BackupVolumeInfos", access),
    )
    if archive is None:
        raise CommandError(f"Backup {about} has no contents in the bucket", "choose another backup")
    configs = {
        name: await _plugin_configs(cluster, args.namespace, name) for name in (CHANGE_STORAGE_CLASS, CHANGE_IMAGE_NAME)
    }
    inputs = Inputs(args.backup, archive, volumes, settings_of(spec, configs), modifiers)
    if args.as_user:
        async with await _as(args) as client:
            return await make_plan(cluster, client, inputs)
    return await make_plan(cluster, cluster.client, inputs)


def spec_fields(args: argparse.Namespace, backed_up: list[str]) -> dict[str, Any]:
    """Return the restore that the options describe."""
    fields: dict[str, Any] = {
        "backupName": args.backup,
        "includedNamespaces": read_list(args.include_namespaces),
        "excludedNamespaces": read_list(args.exclude_namespaces),
        "includedResources": read_list(args.include_resources),
        "excludedResources": read_list(args.exclude_resources),
        "existingResourcePolicy": args.existing_resource_policy,
        "includeClusterResources": args.include_cluster_resources,
        "preserveNodePorts": args.preserve_nodeports,
    }
    if args.selector:
        fields["labelSelector"] = read_selector(args.selector)
    if args.resource_modifier_configmap:
        fields["resourceModifier"] = {"kind": "configmap", "name": args.resource_modifier_configmap}
    mappings = dict(_pair(each) for each in read_list(args.namespace_mappings))
    if args.to:
        source = fields["includedNamespaces"] or backed_up
        if len(source) != 1 or "*" in source[0]:
            problem = f"--to {args.to}: the restore has not exactly one namespace"
            raise CommandError(problem, "name one with --include-namespaces, or use --namespace-mappings OLD:NEW")
        mappings[source[0]] = args.to
    if mappings:
        fields["namespaceMapping"] = mappings
    return {name: value for name, value in fields.items() if value not in (None, [], ())}


def _pair(text: str) -> tuple[str, str]:
    old, colon, new = text.partition(":")
    if not (old and colon and new):
        raise CommandError(f"--namespace-mappings {text}: not OLD:NEW", "write --namespace-mappings shop:shop-copy")
    return old, new


async def _as(args: argparse.Namespace) -> Client:
    try:
        connection = await connect(args.kubeconfig, args.context, args.as_user, tuple(args.as_group or ()))
    except ConnectError as error:
        raise UnreachableError(str(error), "check --kubeconfig and --context") from error
    return Client(connection, manager=MANAGER)


async def _plugin_configs(cluster: Cluster, namespace: str, action: str) -> list[dict[str, str]]:
    items = await cluster.listed(_CONFIG_MAP, namespace, _PLUGIN.format(action))
    return [msgspec.json.decode(raw, type=_ConfigMap).data or {} for raw in items]


def settings_of(spec: RestoreSpec, configs: Mapping[str, list[dict[str, str]]]) -> Settings:
    """Return the settings of the actions from the data of the ConfigMaps that configure each of them."""
    data = {name: found[0] if len(found) == 1 else {} for name, found in configs.items()}
    ambiguous = frozenset(name for name, found in configs.items() if len(found) > 1)
    return Settings(spec, data[CHANGE_STORAGE_CLASS], tuple(data[CHANGE_IMAGE_NAME].values()), ambiguous)


async def _modifiers(cluster: Cluster, args: argparse.Namespace) -> Modifiers:
    name = args.resource_modifier_configmap
    if not name:
        return Modifiers()
    data = (await cluster.read(_CONFIG_MAP, Key(args.namespace, name), _ConfigMap)).data or {}
    if len(data) != 1:
        raise CommandError(f"ConfigMap {args.namespace}/{name} has not exactly one entry", "leave one entry")
    try:
        return read_modifiers(msgspec.yaml.decode(next(iter(data.values()))))
    except (ModifierError, msgspec.DecodeError) as error:
        raise CommandError(f"ConfigMap {args.namespace}/{name}: {error}", "correct the resource modifiers") from error
