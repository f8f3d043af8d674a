"""`foresail plan`: what an administrator's restore of a Backup would do."""

import argparse
import asyncio
import secrets
from collections.abc import Mapping
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.specs import RestoreSpec
from foresail.bucket import DownloadError, MissingFileError, download
from foresail.cli.access.cluster import MANAGER, Cluster, on_cluster
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.values import read_list
from foresail.cli.output.messages import interruptible
from foresail.cli.restore_plan.planning import Inputs, ended_in_order, make_plan, report, restore_spec_of, together
from foresail.cli.tenant.files import Access, access_of
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import ConnectError, connect
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.actions import CHANGE_IMAGE_NAME, CHANGE_STORAGE_CLASS, Settings
from foresail.proof.restore_plan.archive import MOST_BYTES
from foresail.proof.restore_plan.modifiers import ModifierError, Modifiers, read_modifiers

_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
_PLUGIN = "velero.io/plugin-config,velero.io/{}=RestoreItemAction"
_FIRST_PAUSE, _LONGEST_PAUSE = 0.05, 0.4  # Velero signs within milliseconds
_SECONDS = 600.0


class _Signed(msgspec.Struct, rename="camel"):
    phase: str = ""
    download_url: str = msgspec.field(default="", name="downloadURL")


class _Download(msgspec.Struct):
    status: _Signed = msgspec.field(default_factory=_Signed)


class _Made(msgspec.Struct):
    uid: str


class _Object(msgspec.Struct):
    metadata: _Made


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    included_namespaces: list[str] | None = None


class _Backup(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


def plan(args: argparse.Namespace) -> int:
    """Print what a restore of a Backup would do."""
    access = access_of(args)
    return interruptible(
        lambda: on_cluster(args, lambda cluster: ended_in_order(lambda: _plan(cluster, args, access))),
        "Stopped. Nothing was restored.",
    )


async def _plan(cluster: Cluster, args: argparse.Namespace, access: Access) -> int:
    about = Key(args.namespace, args.backup)
    backup = await cluster.read(velero.BACKUP, about, _Backup)
    spec = restore_spec_of(spec_fields(args, backup.spec.included_namespaces or []))
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
            return report(args, await make_plan(cluster, client, inputs))
    return report(args, await make_plan(cluster, cluster.client, inputs))


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


async def read_velero_file(cluster: Cluster, about: Key, kind: str, access: Access) -> bytes | None:
    """Return a file about a backup; None if there is none. Velero signs its URL for a DownloadRequest."""
    key = Key(about.namespace, f"{about.name[:200].rstrip('.-')}-{secrets.token_hex(4)}")
    body = {
        "apiVersion": velero.DOWNLOAD_REQUEST.api_version,
        "kind": velero.DOWNLOAD_REQUEST.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"target": {"kind": kind, "name": about.name}},
    }
    made = msgspec.json.decode(await cluster.create(velero.DOWNLOAD_REQUEST, key, body), type=_Object)
    try:
        url = await _url(cluster, key, about, access)
        pieces = download(url, most=MOST_BYTES, seconds=_SECONDS, tls=access.tls)
        return b"".join([piece async for piece in pieces])
    except MissingFileError:
        return None
    except DownloadError as error:
        hint = "the bucket must be reachable from here; see --cacert"
        raise CommandError(f"the contents of Backup {about} cannot be read: {error}", hint) from error
    finally:
        await asyncio.shield(cluster.delete(velero.DOWNLOAD_REQUEST, key, made.metadata.uid))


async def _url(cluster: Cluster, key: Key, about: Key, access: Access) -> str:
    pause = _FIRST_PAUSE
    while True:
        status = (await cluster.read(velero.DOWNLOAD_REQUEST, key, _Download)).status
        if status.download_url:
            return status.download_url
        if access.until is not None and now() >= access.until:
            raise CommandError(f"Backup {about}: Velero signs no URL for its contents", "check that Velero runs")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


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
