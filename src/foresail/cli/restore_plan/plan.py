"""`foresail plan`: what an administrator's restore of a Backup would do, and with --restore the restore itself."""

import argparse
import asyncio
import secrets
import sys
from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT, Deployment
from foresail.api.specs import RestoreSpec
from foresail.bucket import DownloadError, MissingFileError, download
from foresail.cli.access.cluster import MANAGER, Cluster, on_cluster
from foresail.cli.errors import CommandError, UnreachableError, UsageError
from foresail.cli.options.parser import CLIENT
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import read_list
from foresail.cli.output.messages import confirmed, hint, interruptible
from foresail.cli.output.objects import as_text
from foresail.cli.output.progress import Bar
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.planning import (
    Inputs,
    RestorePlan,
    ended_in_order,
    make_plan,
    report,
    restore_spec_of,
    together,
)
from foresail.cli.tenant.files import Access, access_of
from foresail.cli.tenant.new_request import check_name, restore_name
from foresail.cli.tenant.restored import left_text, restored_text
from foresail.cli.tenant.tenant_request import decode_velero
from foresail.cli.tenant.wait import progress_in_velero
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import ConnectError, connect
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.actions import CHANGE_IMAGE_NAME, CHANGE_STORAGE_CLASS, Settings
from foresail.proof.restore_plan.archive import MOST_BYTES
from foresail.proof.restore_plan.modifiers import ModifierError, Modifiers, read_modifiers
from foresail.schedules.velero_server import deployment_row
from foresail.scope.releases import unknown_release
from foresail.selfservice.families import RESTORES
from foresail.selfservice.requests.outcome import outcome
from foresail.selfservice.requests.status import TRUE, UNKNOWN, NewCondition
from foresail.selfservice.results.restored import CHANGE_BACK, restored_everywhere

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


async def read_velero_file(cluster: Cluster, about: Key, kind: str, access: Access) -> bytes | None:
    """Return a file about a Backup or a Restore; None if there is none. Velero signs its URL for a DownloadRequest."""
    key = Key(about.namespace, f"{about.name[:200].rstrip('.-')}-{secrets.token_hex(4)}")
    body = {
        "apiVersion": velero.DOWNLOAD_REQUEST.api_version,
        "kind": velero.DOWNLOAD_REQUEST.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"target": {"kind": kind, "name": about.name}},
    }
    name = f"the file {kind} of {about}"
    made = msgspec.json.decode(await cluster.create(velero.DOWNLOAD_REQUEST, key, body), type=_Object)
    try:
        url = await _url(cluster, key, name, access)
        pieces = download(url, most=MOST_BYTES, seconds=_SECONDS, tls=access.tls)
        return b"".join([piece async for piece in pieces])
    except MissingFileError:
        return None
    except DownloadError as error:
        hint = "the bucket must be reachable from here; see --cacert"
        raise CommandError(f"{name} cannot be read: {error}", hint) from error
    finally:
        await asyncio.shield(cluster.delete(velero.DOWNLOAD_REQUEST, key, made.metadata.uid))


async def _url(cluster: Cluster, key: Key, name: str, access: Access) -> str:
    pause = _FIRST_PAUSE
    while True:
        status = (await cluster.read(velero.DOWNLOAD_REQUEST, key, _Download)).status
        if status.download_url:
            return status.download_url
        if access.until is not None and now() >= access.until:
            raise CommandError(f"Velero signs no URL for {name}", "check that Velero runs")
        await asyncio.sleep(pause)
        pause = min(2 * pause, _LONGEST_PAUSE)


CONTINUES = "Stopped. A Restore that was created continues in the cluster."
"""What Ctrl-C does to a restore."""

_ONLY_WITH_RESTORE = {"--name": "name", "--yes": "confirm", "--dry-run": "dry_run", "--wait": "wait"}
_HAVE_FILES = (velero.COMPLETED, velero.PARTIALLY_FAILED)
_NOTHING = "nothing was restored"
_PAUSE = 0.5


class _Restore(msgspec.Struct):
    status: msgspec.Raw = msgspec.Raw(b"{}")


def check_options(args: argparse.Namespace) -> None:
    """Refuse options that do not go together, and a restore that nobody can confirm."""
    if not args.restore:
        for option, field in _ONLY_WITH_RESTORE.items():
            if getattr(args, field):
                raise UsageError(f"{option} needs --restore", f"add --restore, or leave out {option}")
        return
    if args.as_user:
        problem = "--as cannot be combined with --restore: Velero restores with its own rights"
        raise UsageError(problem, "plan with --as first, then restore without it")
    if args.name:
        check_name(velero.RESTORE, args.name)
    if not (args.confirm or args.dry_run or sys.stdin.isatty()):
        problem = f"refusing to restore without confirmation (no terminal): Backup {args.namespace}/{args.backup}"
        raise UsageError(problem, "add --yes")


def restore_object(args: argparse.Namespace, spec: Mapping[str, Any], instant: datetime) -> dict[str, Any]:
    """Return the Restore that the options describe, named after its backup and the time if no name is given."""
    return {
        "apiVersion": velero.RESTORE.api_version,
        "kind": velero.RESTORE.name,
        "metadata": {"name": args.name or restore_name(args.backup, instant), "namespace": args.namespace},
        "spec": dict(spec),
    }


async def restore(
    cluster: Cluster, args: argparse.Namespace, body: Mapping[str, Any], planned: Callable[[], Awaitable[RestorePlan]]
) -> int:
    """Show the plan, ask, and create the Restore; with --wait, report what it did."""
    key = Key(args.namespace, str(body["metadata"]["name"]))
    form = "yaml" if is_table(args.output) else args.output
    if args.dry_run == CLIENT:
        print(as_text([dict(body)], form))
        return 0
    # Before the plan, which takes minutes: whether the caller may create it, and whether the name is free.
    checked = await cluster.create(velero.RESTORE, key, body, dry_run=True)
    if args.dry_run:
        print(as_text([msgspec.json.decode(checked, type=dict[str, Any])], form), flush=True)
        print(f"Restore {key} would be created (server dry run).", file=sys.stderr)
        return 0
    plan = await planned()
    if report(args, plan):
        raise CommandError(f"{_NOTHING}: --fail-on {args.fail_on}", "correct what the plan lists, or leave it out")
    if not args.confirm:
        _ask(args, key, len(plan.verdicts))
    await cluster.create(velero.RESTORE, key, body)
    print(f"Restore {key} created.", file=sys.stderr)
    if args.wait:
        return await _wait(cluster, args, key)
    print(f"Follow it with velero restore describe {key.name} -n {key.namespace}", file=sys.stderr)
    return 0


def _ask(args: argparse.Namespace, key: Key, items: int) -> None:
    sys.stdout.flush()
    question = f"Restore {counted(items, 'item')} of Backup {args.namespace}/{args.backup} as Restore {key}? [y/N] "
    if not confirmed(question, _NOTHING):
        raise CommandError(_NOTHING)


async def _wait(cluster: Cluster, args: argparse.Namespace, key: Key) -> int:
    """Show the progress until the Restore has ended; return 0 if it has completed, raise its problem if not."""
    ended, phase = await _ended(cluster, key)
    is_complete = ended.status == TRUE
    if is_complete:
        print(f"Restore {key}: {ended.message}", file=sys.stderr)
    if phase in _HAVE_FILES:
        await _tell_what_it_did(cluster, args, key)
    if not is_complete:
        read = f"see velero restore {'logs' if phase in _HAVE_FILES else 'describe'} {key.name} -n {key.namespace}"
        raise CommandError(f"Restore {key}: {ended.message}", read)
    return 0


async def _ended(cluster: Cluster, key: Key) -> tuple[NewCondition, str]:
    """Return how a Restore has ended, and in which phase."""
    progress = Bar()
    try:
        while True:
            status = (await cluster.read(velero.RESTORE, key, _Restore)).status
            reported = decode_velero(status)
            progress.show(progress_in_velero(reported))
            ended = outcome(RESTORES, bytes(status).decode())
            if ended is not None and ended.status != UNKNOWN:
                return ended, reported.phase
            await asyncio.sleep(_PAUSE)
    finally:
        progress.close()


async def _tell_what_it_did(cluster: Cluster, args: argparse.Namespace, key: Key) -> None:
    """Print what a Restore did to each object, and what would change more."""
    access = access_of(args)
    try:
        listed, results = await together(
            read_velero_file(cluster, key, "RestoreResourceList", access),
            read_velero_file(cluster, key, "RestoreResults", access),
        )
    except CommandError as error:
        hint(f"what it did to each object cannot be read: {error.problem}")
        return
    items = restored_everywhere(listed or b"", results or b"{}")
    if items is None:
        hint("what it did to each object cannot be read: Velero's list of restored objects is missing or too large")
        return
    print(restored_text(items), file=sys.stderr)
    if items.left.count and args.existing_resource_policy != "update":
        hint(left_text(items.left.count, f"the same command with {CHANGE_BACK}"))
        if any(name.startswith(f"{_DEFINITION} ") for name in items.left.names):
            hint(_KEEP_DEFINITIONS)


_DEFINITION = "CustomResourceDefinition"
_KEEP_DEFINITIONS = (
    f"a {_DEFINITION} is among them, which is of the whole cluster and may be newer than the backup. To leave it as it "
    "is, add --exclude-resources customresourcedefinitions"
)
_CONFIG_MAP = Kind("", "v1", "configmaps", "ConfigMap")
_PLUGIN = "velero.io/plugin-config,velero.io/{}=RestoreItemAction"


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    included_namespaces: list[str] | None = None


class _Backup(msgspec.Struct):
    spec: _Spec = msgspec.field(default_factory=_Spec)


_deployment = msgspec.json.Decoder(Deployment)


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
    await _refuse_unknown_release(cluster, args.namespace)
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


async def _refuse_unknown_release(cluster: Cluster, namespace: str) -> None:
    """Refuse to plan for a Velero whose rules are not known; a plan would be a guess."""
    try:
        deployments = [_deployment.decode(raw) for raw in await cluster.listed_if_known(DEPLOYMENT, namespace)]
    except UnreachableError:
        raise
    except CommandError as error:
        hint(f"the plan is for Velero 1.17 and 1.18; which one runs is not checked: {error.problem}")
        return
    rows = filter(None, map(deployment_row, deployments))
    if problem := next(filter(None, (unknown_release(row.tag) for row in rows)), ""):
        raise CommandError(f"{problem}, and a plan would be a guess", "use a RestoreCheck, or a newer Foresail")


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
    mappings = dict(_pair(text) for text in read_list(args.namespace_mappings))
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
    data = {name: maps[0] if len(maps) == 1 else {} for name, maps in configs.items()}
    ambiguous = frozenset(name for name, maps in configs.items() if len(maps) > 1)
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
