"""The steps that both forms of the command share: prepare, ask, decide, report."""

import argparse
import asyncio
import secrets
import signal
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import msgspec

from foresail.api.metadata import Named
from foresail.api.specs import RestoreSpec
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.together import in_thread
from foresail.cli.errors import PROBLEM, CommandError, TooLargeError
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import document
from foresail.cli.restore_plan.dry_runs import ACCOUNT, NAMESPACE, DryRuns, Write, moved, served_kinds
from foresail.cli.restore_plan.report import as_data, as_text
from foresail.kube.client import Client
from foresail.kube.failures import Failure
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.actions import Settings
from foresail.proof.restore_plan.archive import ArchiveError, LargeArchiveError, read_archive
from foresail.proof.restore_plan.decide import Outcome, Verdict, World, decide
from foresail.proof.restore_plan.items import Document, ItemKey, mapping, metadata
from foresail.proof.restore_plan.modifiers import Modifiers
from foresail.proof.restore_plan.prepare import Backup, Preparation, prepare, token_namespaces
from foresail.proof.restore_plan.validation import rejection
from foresail.proof.restore_plan.volumes import read_volumes
from foresail.reporting import some

MARK = "foresail.dev/restore-plan"
"""The label of scratch namespaces."""

PREFIX = "foresail-plan-"
"""The beginning of their names."""

_LIMITS = Kind("", "v1", "limitranges", "LimitRange")
MOST_SCRATCH = 250
"""The most scratch namespaces of one plan."""

_NOT_COPIED = (
    "kubernetes.io/metadata.name",
    "velero.io/exclude-from-backup",  # Backups that run meanwhile would lose cluster-scoped objects
)
_PATIENCE = 50
_PAUSE = 0.1


@dataclass(frozen=True, slots=True)
class Scratch:
    """The stand-in of each missing namespace, and what differs there from the restored namespace."""

    names: Mapping[str, str]
    warnings: list[str] = field(default_factory=list, hash=False)


@asynccontextmanager
async def scratch_namespaces(
    cluster: Cluster, preparation: Preparation, missing: Iterable[str]
) -> AsyncIterator[Scratch]:
    """Let each missing namespace have a stand-in with its labels and limits."""
    wanted = list(missing)
    if len(wanted) > MOST_SCRATCH:
        problem = f"{len(wanted)} namespaces do not exist, and a plan creates at most {MOST_SCRATCH} scratch namespaces"
        raise CommandError(problem, "plan some of them at a time with --include-namespaces")
    scratch = Scratch({name: f"{PREFIX}{secrets.token_hex(4)}" for name in wanted})
    try:
        for target in scratch.names:
            await _uninterrupted(_create(cluster, preparation, target, scratch))
        yield scratch
    finally:
        # The names are known before the requests are sent: what a lost answer created is deleted too.
        for name in scratch.names.values():
            await _uninterrupted(_delete(cluster, name))


async def _uninterrupted(work: Coroutine[Any, Any, None]) -> None:
    """Finish the work even if the command is interrupted: a namespace created after its deletion would stay."""
    task = asyncio.ensure_future(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait([task])
        raise


def scratch_body(name: str, target: Document) -> Document:
    """Return a stand-in for a namespace: its labels, which admission reads, and our mark."""
    labels = {key: value for key, value in mapping(metadata(target).get("labels")).items() if key not in _NOT_COPIED}
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": name, "labels": {**labels, MARK: "scratch"}},
    }


def scratch_limits(preparation: Preparation, target: str, name: str) -> list[Document]:
    """Return the LimitRanges of a stand-in, under names of its own: their dry runs must not find them."""
    items = [
        moved(step.body, name)
        for step in preparation.steps
        if step.target.resource == "limitranges" and step.target.namespace == target and step.body
    ]
    return [{**body, "metadata": {**metadata(body), "name": f"{name}-{index}"}} for index, body in enumerate(items)]


async def _create(cluster: Cluster, preparation: Preparation, target: str, scratch: Scratch) -> None:
    name = scratch.names[target]
    await cluster.create(NAMESPACE, Key("", name), scratch_body(name, preparation.namespaces[target]))
    for body in scratch_limits(preparation, target, name):
        made = await cluster.client.create(_LIMITS, Key(name, str(metadata(body)["name"])), body, msgspec.Raw)
        if isinstance(made, Failure):
            scratch.warnings.append(f"a LimitRange of namespace {target} cannot be tried, so it is ignored: {made}")
    if any(_is_pod(step.target, target) for step in preparation.steps):
        await _wait_for_account(cluster, name)


def _is_pod(key: ItemKey, namespace: str) -> bool:
    return key.resource == "pods" and key.namespace == namespace


async def _wait_for_account(cluster: Cluster, namespace: str) -> None:
    """Wait for the default ServiceAccount, without which every pod is refused."""
    for _ in range(_PATIENCE):
        account = await cluster.client.get(ACCOUNT, Key(namespace, "default"), msgspec.Raw)
        if not isinstance(account, Failure):
            return
        await asyncio.sleep(_PAUSE)


async def _delete(cluster: Cluster, name: str) -> None:
    existing = await cluster.client.get(NAMESPACE, Key("", name), Named)
    if isinstance(existing, Failure):
        return
    try:
        await cluster.delete(NAMESPACE, Key("", name), existing.metadata.uid)
    except CommandError as error:
        hint(f"the scratch namespace {name} is left: {error.problem}; delete it: kubectl delete namespace {name}")


_WITH_VOLUMES = ("persistentvolumes", "persistentvolumeclaims", "pods")
_MOST_NAMES = 10

T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Inputs:
    """What a plan is made from: the files of a backup, and how it is to be restored."""

    backup: str
    archive: bytes
    volumes: bytes | None
    settings: Settings
    modifiers: Modifiers
    warnings: tuple[str, ...] = ()
    most_values: int | None = None  # in the JSON of the archive: decoded, they need far more memory
    only: frozenset[ItemKey] | None = None  # the items that count; all if None


@dataclass(frozen=True, slots=True)
class RestorePlan:
    """What a restore would do to each item of a backup, and which items it leaves out."""

    backup: str
    verdicts: tuple[Verdict, ...]
    left_out: Sequence[tuple[ItemKey, str]] = ()
    warnings: tuple[str, ...] = ()
    """What the plan does not take into account."""
    writes: tuple[Write, ...] = ()
    """What does the same without Velero; only where some items count alone."""


def restore_spec_of(fields: Mapping[str, Any]) -> RestoreSpec:
    """Return a RestoreSpec from its fields."""
    try:
        return msgspec.convert(fields, RestoreSpec)
    except msgspec.ValidationError as error:
        raise CommandError(f"the restore cannot be read: {error}", "correct the field") from error


async def together(*works: Coroutine[Any, Any, T]) -> list[T]:
    """Do the works at the same time; if one fails, end the others in order before the error is raised."""
    tasks = [asyncio.ensure_future(work) for work in works]
    try:
        return await asyncio.gather(*tasks)
    except BaseException:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)
        raise


async def make_plan(cluster: Cluster, caller: Client, inputs: Inputs) -> RestorePlan:
    """Return what a restore would do; `cluster` creates scratch namespaces, `caller` sends the dry runs."""
    rejected = rejection(inputs.settings.spec)
    if rejected:
        raise CommandError(
            f"Velero would reject the restore of Backup {inputs.backup}: {rejected}", "correct the restore"
        )
    discovery = await cluster.discovered()
    if discovery is None:
        raise CommandError("the API server does not answer which kinds it serves", "try again")
    served = served_kinds(discovery)
    policy = inputs.settings.spec.existing_resource_policy or ""
    asking = DryRuns(caller, served, policy)
    backup = await in_thread(lambda: backup_of(inputs))
    accounts = await asking.accounts(token_namespaces(backup, inputs.settings.spec, served))
    preparation = await in_thread(lambda: prepare(backup, inputs.settings, served, inputs.modifiers, accounts))
    world = await asking.world(preparation.namespaces)
    missing = [
        name
        for name in preparation.namespaces
        if name not in world.namespaces and any(step.target.namespace == name for step in preparation.steps)
    ]
    async with scratch_namespaces(cluster, preparation, missing) as scratch:
        observed = await asking.observed(preparation, world, scratch.names)
    verdicts = await in_thread(lambda: decide(preparation, observed, world, policy))
    warnings = (*inputs.warnings, *warnings_of(backup, world), *scratch.warnings)
    writes = () if inputs.only is None else asking.writes(preparation, observed)
    return RestorePlan(inputs.backup, verdicts, preparation.left_out, warnings, writes)


def warnings_of(backup: Backup, world: World) -> list[str]:
    """Return what a plan does not take into account of a backup and of the cluster."""
    notes = []
    if not backup.has_volumes and any(item.key.resource in _WITH_VOLUMES for item in backup.items):
        notes.append(f"Backup {backup.name} has no readable list of its volumes: which of them have data is not known")
    if world.unlisted_quotas:
        names = sorted(world.unlisted_quotas)
        where = some(names, _MOST_NAMES)
        notes.append(f"ResourceQuotas cannot be listed, so what the items take of them is not added up: {where}")
    return notes


def backup_of(inputs: Inputs) -> Backup:
    """Return the items of a backup, and what is known of its volumes."""
    try:
        items = read_archive(inputs.archive, inputs.most_values)
    except LargeArchiveError as error:
        raise TooLargeError(f"Backup {inputs.backup}: {error}") from error
    except ArchiveError as error:
        raise CommandError(f"Backup {inputs.backup}: {error}", "choose another backup") from error
    if inputs.only is not None:
        items = [item for item in items if item.key in inputs.only]
    volumes = read_volumes(inputs.volumes) if inputs.volumes is not None else None
    if volumes is None:
        return Backup(inputs.backup, items, has_volumes=False)
    return Backup(inputs.backup, items, volumes.methods, volumes.pods, volumes.claims)


def report(args: argparse.Namespace, plan: RestorePlan) -> int:
    """Print a plan, and return the exit code that --fail-on asks for."""
    if args.output == "table":
        print(as_text(plan.backup, plan.verdicts, plan.left_out, plan.warnings))
    else:
        print(document(as_data(plan.backup, plan.verdicts, plan.left_out, plan.warnings), args.output))
    if args.fail_on != "refused":
        return 0
    unanswered = sum(verdict.is_unanswered for verdict in plan.verdicts)
    if unanswered:
        hint(f"--fail-on refused: dry runs that the API server did not answer count too: {unanswered}; try again")
    is_refused = any(verdict.outcome is Outcome.REFUSED for verdict in plan.verdicts)
    return PROBLEM if is_refused or unanswered else 0


async def ended_in_order(work: Callable[[], Awaitable[int]]) -> int:
    """Do the work; SIGTERM and SIGHUP end it like Ctrl-C, so that what it created is deleted."""
    task = asyncio.current_task()
    loop = asyncio.get_running_loop()
    signals = (signal.SIGTERM, signal.SIGHUP)
    for number in signals:
        if task is not None:
            loop.add_signal_handler(number, task.cancel)
    try:
        return await work()
    except asyncio.CancelledError:
        raise KeyboardInterrupt from None
    finally:
        for number in signals:
            loop.remove_signal_handler(number)
