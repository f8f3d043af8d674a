"""Namespaces for dry runs where the target does not exist yet; deleted however the command ends."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Coroutine, Iterable, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

import msgspec

from foresail.api.metadata import Named
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.output.messages import hint
from foresail.cli.restore_plan.dry_runs import ACCOUNT, NAMESPACE, moved
from foresail.kube.failures import Failure
from foresail.plan import Key, Kind
from foresail.proof.restore_plan.items import Document, ItemKey, mapping, metadata
from foresail.proof.restore_plan.prepare import Preparation

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
        found = await cluster.client.get(ACCOUNT, Key(namespace, "default"), msgspec.Raw)
        if not isinstance(found, Failure):
            return
        await asyncio.sleep(_PAUSE)


async def _delete(cluster: Cluster, name: str) -> None:
    found = await cluster.client.get(NAMESPACE, Key("", name), Named)
    if isinstance(found, Failure):
        return
    try:
        await cluster.delete(NAMESPACE, Key("", name), found.metadata.uid)
    except CommandError as error:
        hint(f"the scratch namespace {name} is left: {error.problem}; delete it: kubectl delete namespace {name}")
