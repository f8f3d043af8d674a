"""What the operator wrote on the objects of others, and what it made for a while: taken away when it no longer runs."""

import re
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.batch import CRON_JOB, JOB_NAME_LABEL
from foresail.api.capacity_buffers import POD_TEMPLATE, capacity_buffer, served_kind
from foresail.api.core import CONFIG_MAP, NAMESPACE
from foresail.api.marks import (
    CHECK_LABEL,
    LEASES,
    OBSERVED,
    PRIMER_LABEL,
    RETIRED_LEASE,
    ROLLBACK_FINALIZER,
    ROLLBACK_IN_PROGRESS,
    WARM_UP_STATUS,
)
from foresail.api.metadata import Metadata
from foresail.api.nonadmin import NON_ADMIN_LOCATION
from foresail.api.pods import POD
from foresail.api.restore_check import SANDBOX_NAME
from foresail.api.rollback import ENDED, ROLLBACK
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.installed import hook_bindings
from foresail.cli.install.manifests import CAPABILITIES, TENANT_LOCATIONS, InstallOptions, Piece, operators, retired
from foresail.cli.install.objects import Patience, deleted, leading, report
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.selfservice.families import BACKUPS, RESTORES
from foresail.selfservice.rows.locations import FINALIZER
from foresail.tenancy.namespaces import NOT_LABELLED

_CHECK_NAME = re.compile(r"check-[0-9a-f]{10}(-(?!evidence)[a-z]+)?")
_ENDED = ("Completed", "PartiallyFailed", "Failed", "FailedValidation")
_OPERATOR = "foresail"  # the first part of its User-Agent, by which the API server knows who wrote a field


class _Writer(msgspec.Struct, frozen=True, rename={"fields": "fieldsV1"}):
    manager: str = ""
    fields: dict[str, Any] = {}

    @property
    def is_operator_with_finalizers(self) -> bool:
        return self.manager == _OPERATOR and "f:finalizers" in self.fields.get("f:metadata", {})


class _Metadata(Metadata, frozen=True, rename="camel"):
    finalizers: tuple[str, ...] = ()
    managed_fields: tuple[_Writer, ...] = ()

    def has_from_us(self, finalizer: str) -> bool:
        """Return whether our operator put it there: the other controller of these kinds has one of the same name."""
        return finalizer in self.finalizers and any(field.is_operator_with_finalizers for field in self.managed_fields)


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)


class _Phase(msgspec.Struct, frozen=True):
    phase: str = ""


class _Rollback(_Named, frozen=True):
    status: _Phase = _Phase()

    @property
    def is_running(self) -> bool:
        return ROLLBACK_FINALIZER in self.metadata.finalizers and self.status.phase not in ("", "New", *ENDED)


class _Restore(_Named, frozen=True):
    status: _Phase = _Phase()

    @property
    def is_running(self) -> bool:
        return self.status.phase not in _ENDED


async def refuse_amid_rollbacks(cluster: Cluster) -> None:
    """Refuse while a Rollback runs: without its operator, nobody starts what it has stopped, or gives volumes back."""
    rollbacks = (msgspec.json.decode(raw, type=_Rollback) for raw in await cluster.listed_if_known(ROLLBACK))
    running = sorted(f"{item.key} ({item.status.phase})" for item in rollbacks if item.is_running)
    if running:
        problem = f"Rollback {running[0]} has not ended; nothing was written"
        hint = "wait, or foresail rollback undo. If no operator runs, foresail install --rollback has it end"
        raise CommandError(problem, hint)


class Releases:
    """Releases what the operator holds, by capability; a second run finds nothing."""

    def __init__(self, cluster: Cluster, namespace: str, *, dry_run: bool) -> None:
        self._cluster = cluster
        self._namespace = namespace
        self._dry_run = dry_run

    async def of(self, capability: str) -> None:
        """Release what one capability holds."""
        if capability == "schedules":
            await self._remove_annotation(velero.SCHEDULE, self._namespace, OBSERVED)
        elif capability == "self-service":
            await self._release_requests()
        elif capability == TENANT_LOCATIONS:
            await self._release_locations()
        elif capability == "primers":
            await self._release_capacity()
        elif capability == "restore-checks":
            await self._remove_sandboxes()
        elif capability == "rollback":
            await self._release_rollbacks()
        # The Schedules of protection run on: nobody loses backups by a switch.

    async def delete_lease(self, key: Key) -> None:
        """Delete a Lease of the operator."""
        lease = await self._cluster.if_there(LEASE, key, _Named)
        if lease is not None:
            await self._delete(LEASE, lease)

    async def _release_requests(self) -> None:
        for family in (BACKUPS, RESTORES):
            for item in await self._listed(family.kind):
                await self._release(family.kind, item, family.finalizer)

        await self._release_locations()
        await self._remove_labels()

    async def _release_rollbacks(self) -> None:
        """Remove the label of their namespaces first: only where a Rollback has its own may it be changed."""
        for namespace in await self._listed(NAMESPACE):
            if ROLLBACK_IN_PROGRESS in (namespace.metadata.labels or {}):
                if not self._dry_run:
                    body = {"metadata": {"labels": {ROLLBACK_IN_PROGRESS: None}}}
                    await self._cluster.merged_if_same(NAMESPACE, namespace.key, body)
                self._report("released", NAMESPACE, namespace)
        for item in await self._listed(ROLLBACK):
            await self._release(ROLLBACK, item, ROLLBACK_FINALIZER)

    async def _remove_labels(self) -> None:
        """Remove the labels by which admission policies select namespaces with self-service."""
        for namespace in await self._listed(NAMESPACE):
            labels = [key for key in NOT_LABELLED.by_key() if key in (namespace.metadata.labels or {})]
            if labels:
                if not self._dry_run:
                    body = {"metadata": {"labels": dict.fromkeys(labels)}}
                    await self._cluster.merged_if_same(NAMESPACE, namespace.key, body)
                self._report("released", NAMESPACE, namespace)

    async def _release_locations(self) -> None:
        for location in await self._listed(NON_ADMIN_LOCATION):
            await self._release(NON_ADMIN_LOCATION, location, FINALIZER)

    async def _remove_sandboxes(self) -> None:
        """Delete what checks left, evidence excepted; a restore must end first, because then the fence goes."""
        here = self._namespace
        if await self._cluster.knows(velero.RESTORE):
            raw = await self._cluster.listed(velero.RESTORE, here, CHECK_LABEL)
            running = [
                restore for restore in (msgspec.json.decode(one, type=_Restore) for one in raw) if restore.is_running
            ]
            if running and not self._dry_run:
                problem = f"Velero still restores {running[0].key} into a sandbox of a RestoreCheck, so its fence stays"
                raise CommandError(problem, "wait until the Restore has ended, then run the same command again")
        for kind, namespace, name in (  # a label alone is no proof
            (velero.RESTORE, here, _CHECK_NAME),
            (velero.DOWNLOAD_REQUEST, here, _CHECK_NAME),
            (CONFIG_MAP, here, _CHECK_NAME),
            (NAMESPACE, "", SANDBOX_NAME),
        ):
            items = await self._listed(kind, namespace, CHECK_LABEL) if await self._cluster.knows(kind) else []
            for item in items:
                if name.fullmatch(item.metadata.name):
                    await self._delete(kind, item)

    async def _release_capacity(self) -> None:
        await self._remove_annotation(CRON_JOB, "", WARM_UP_STATUS)
        for kind, labels in ((POD, f"{PRIMER_LABEL},!{JOB_NAME_LABEL}"), (CRON_JOB, PRIMER_LABEL)):
            for item in await self._listed(kind, labels=labels):
                await self._delete(kind, item)
        await self._delete_buffers()

    async def _delete_buffers(self) -> None:
        """Scale CapacityBuffers to 0, then delete them: one has no deadline, so its nodes would stay."""
        discovery = await self._cluster.discovered()
        kind = served_kind(discovery) if discovery is not None else capacity_buffer()
        if kind is None or not await self._cluster.knows(kind):
            return
        buffers = await self._listed(kind, labels=PRIMER_LABEL)
        for buffer in buffers:
            if not self._dry_run:  # Karpenter keeps the nodes of one that is only deleted
                await self._cluster.merged_if_same(kind, buffer.key, {"spec": {"replicas": 0}})
        for buffer in buffers:
            await self._delete(kind, buffer)
        for template in await self._listed(POD_TEMPLATE, labels=PRIMER_LABEL):
            await self._delete(POD_TEMPLATE, template)

    async def _remove_annotation(self, kind: Kind, namespace: str, annotation: str) -> None:
        """Remove what the operator recorded on the objects of a kind."""
        for item in await self._listed(kind, namespace):
            if annotation in (item.metadata.annotations or {}):
                if not self._dry_run:  # without a version: its controller may write to it at any time, to other fields
                    body = {"metadata": {"annotations": {annotation: None}}}
                    await self._cluster.merged_if_same(kind, item.key, body)
                self._report("released", kind, item)

    async def _listed(self, kind: Kind, namespace: str = "", labels: str = "") -> list[_Named]:
        raw = (
            await self._cluster.listed(kind, namespace, labels)
            if labels
            else await self._cluster.listed_if_known(kind, namespace)
        )
        return [msgspec.json.decode(item, type=_Named) for item in raw]

    async def _release(self, kind: Kind, item: _Named, finalizer: str) -> None:
        """Remove our finalizer, because no operator is left to do it; finalizers of others stay."""
        current: _Named | None = item
        while current is not None and current.metadata.has_from_us(finalizer):
            others = [name for name in current.metadata.finalizers if name != finalizer]
            version = {"resourceVersion": current.metadata.resource_version}
            body = {"metadata": {"finalizers": others or None, **version}}
            if self._dry_run or await self._cluster.merged_if_same(kind, current.key, body):
                self._report("released", kind, item)
                return
            current = await self._cluster.if_there(kind, item.key, _Named)

    async def _delete(self, kind: Kind, item: _Named) -> None:
        await self._cluster.delete(kind, item.key, item.metadata.uid, dry_run=self._dry_run)
        self._report("deleted", kind, item)

    def _report(self, what: str, kind: Kind, item: _Named) -> None:
        report(what, f"{kind.name} {item.key}", dry_run=self._dry_run)


async def remove(
    cluster: Cluster,
    options: InstallOptions,
    wanted: Sequence[Piece],
    off: Sequence[str],
    patience: Patience,
    *,
    dry_run: bool,
) -> None:
    """Delete what is no longer wanted, and release what these capabilities hold; a second run finishes a first one."""
    bindings = await hook_bindings(cluster)
    gone = [*_no_longer(options, wanted, bindings), *reversed(retired(options.namespace))]
    await deleted(cluster, [piece for piece in gone if piece.is_operator], dry_run=dry_run)
    if off:
        if not dry_run:
            await _ended(cluster, options.namespace, wanted, patience)
        releases = Releases(cluster, options.namespace, dry_run=dry_run)
        for capability in off:
            await releases.of(capability)
    await deleted(cluster, reversed([piece for piece in gone if not piece.is_operator]), dry_run=dry_run)


def _no_longer(options: InstallOptions, wanted: Sequence[Piece], hooked: tuple[str, ...]) -> list[Piece]:
    """Return what an installation with everything switched on has and this one has not."""
    everything = replace(
        options,
        capabilities=CAPABILITIES,
        monitoring=True,
        tenant_locations=True,
        schedules_with_hooks=hooked,
    )
    there = {(piece.kind, piece.key) for piece in wanted}
    return [operator for operator in operators(everything) if (operator.kind, operator.key) not in there]


async def _ended(cluster: Cluster, namespace: str, wanted: Sequence[Piece], patience: Patience) -> None:
    """Wait until no replica of a deleted Deployment leads: it would write again what is released here."""
    running = {piece.key for piece in wanted if piece.is_operator}
    for key in (Key(namespace, name) for name in (*LEASES, RETIRED_LEASE)):
        if key not in running:
            problem = f"Lease {key}: an operator still holds it"
            hint = "stop its holder (foresail doctor names it), then run the same command again"
            await patience.wait(
                "the operator has stopped", partial(_is_free, cluster, key), CommandError(problem, hint)
            )


async def _is_free(cluster: Cluster, key: Key) -> bool:
    return not await leading(cluster, key)
