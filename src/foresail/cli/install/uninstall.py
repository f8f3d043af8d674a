"""`foresail uninstall`: the Schedules back to Velero, then everything away; kinds and data stay unless asked.

Velero's schedule controller is on before the operator goes. The operator sees that in Velero's Deployment and fires
nothing from then on, so the two never run the Schedules both, and somebody always does.
"""

import argparse
import sys
from functools import partial
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.batch import CRON_JOB, JOB_NAME_LABEL
from foresail.api.capacity_buffers import POD_TEMPLATE, capacity_buffer, served_kind
from foresail.api.marks import OBSERVED, OPERATORS_LEASE, PRIMER_LABEL, PRIMERS_LEASE, WARM_UP_STATUS
from foresail.api.metadata import Metadata
from foresail.api.monitoring import UNATTENDED
from foresail.api.pods import POD
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.manifests import CAPABILITIES, Piece, Wishes, checked, defined, definitions, operators
from foresail.cli.install.objects import deleted, existing, leading, other_maker
from foresail.cli.install.patience import STOPPED, Patience
from foresail.cli.install.velero import switch, velero_server
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import confirm_deletion, interruptible
from foresail.kube.clock import now
from foresail.kube.lease import LEASE
from foresail.plan import Key, Kind
from foresail.selfservice.families import BACKUPS, RESTORES

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
        """Tell whether our operator put it there: the other controller of these kinds has one of the same name."""
        return finalizer in self.finalizers and any(each.is_operator_with_finalizers for each in self.managed_fields)


class _Named(msgspec.Struct, frozen=True):
    metadata: _Metadata

    @property
    def key(self) -> Key:
        return Key(self.metadata.namespace, self.metadata.name)


def run_uninstall(chosen: argparse.Namespace) -> int:
    """Run the command."""
    patience = Patience(deadline(chosen.timeout) or now())
    return interruptible(
        lambda: on_cluster(chosen, lambda cluster: _Uninstall(cluster, chosen, patience).run()), STOPPED
    )


class _Uninstall:
    """One run of the command."""

    def __init__(self, cluster: Cluster, chosen: argparse.Namespace, patience: Patience) -> None:
        self._cluster, self._patience = cluster, patience
        self._namespace: str = chosen.namespace
        self._dry_run = bool(chosen.dry_run)
        self._leaves_stopped: bool = chosen.leave_schedules_stopped
        self._and_kinds: bool = chosen.crds
        self._is_confirmed = bool(chosen.confirm or chosen.dry_run)
        wishes = Wishes(CAPABILITIES, self._namespace, "velero", "foresail", "pause", monitoring=True)
        self._pieces = operators(checked(wishes))
        self._leases = [Key(self._namespace, name) for name in (OPERATORS_LEASE, PRIMERS_LEASE)]

    async def run(self) -> int:
        if self._and_kinds and not self._is_confirmed:
            await self._confirm_kinds()
        if not self._leaves_stopped:
            await self._hand_back()
        running = [each for each in self._pieces if each.is_operator]
        for operator in running:
            maker = await other_maker(self._cluster, operator)
            if maker:
                problem = f"{operator} stays, for {maker} has made it"
                hint = "remove it with the tool that keeps it, such as helm uninstall, then do this again for the rest"
                raise CommandError(problem, hint)
        await deleted(self._cluster, running, dry_run=self._dry_run)
        if not self._dry_run:
            await self._ended()
        await self._forget()
        alert, rest = self._beside_the_operator()
        await deleted(self._cluster, reversed(rest), dry_run=self._dry_run)
        if not self._leaves_stopped:  # a chart that was removed has left it behind, and nobody else takes it away
            await deleted(self._cluster, alert, dry_run=self._dry_run, whoever_made_it=True)
        await self._end_kinds()
        if self._dry_run:
            print("Nothing was written: this was a dry run.", file=sys.stderr)
        return 0

    async def _confirm_kinds(self) -> None:
        """Ask before the kinds are deleted, with how many objects go with each."""
        names = []
        for piece in await existing(self._cluster, definitions()):
            count = len(await self._cluster.listed_if_known(defined(piece)))
            names.append(f"{piece} with its {count} object{'' if count == 1 else 's'}")
        if names:
            confirm_deletion(names)

    async def _end_kinds(self) -> None:
        if self._and_kinds:
            left = await deleted(self._cluster, definitions(), dry_run=self._dry_run)
            said = f"These kinds stay, with their objects: {', '.join(each.key.name for each in left)}." if left else ""
        else:
            there = await existing(self._cluster, definitions())
            said = "The kinds of Foresail stay, with every object of them; --crds deletes both." if there else ""
        if said:
            print(said, file=sys.stderr)

    def _beside_the_operator(self) -> tuple[list[Piece], list[Piece]]:
        """Return the alert that nobody runs the Schedules, and everything else."""
        found = [each for each in self._pieces if not each.is_operator]
        alert = [each for each in found if each.key.name == UNATTENDED]
        return alert, [each for each in found if each not in alert]

    async def _hand_back(self) -> None:
        server = await velero_server(self._cluster, self._namespace)
        if server is None:
            print(f"No Deployment in namespace {self._namespace} runs a Velero server.", file=sys.stderr)
            return
        try:
            await switch(self._cluster, server, self._patience, off=False, dry_run=self._dry_run)
        except CommandError as error:
            problem = f"{error.problem}; nobody would run the Schedules, so nothing was removed"
            raise CommandError(problem, f"{error.hint}; or add --leave-schedules-stopped") from error

    async def _ended(self) -> None:
        """Wait until no replica leads any more: it would write again what is taken away here."""
        for key in self._leases:
            problem = f"Lease {key}: an operator still leads"
            hint = "end whoever holds it (foresail doctor names it), then try it again"
            is_gone = partial(self._is_free, key)
            await self._patience.wait("the operator has ended", is_gone, CommandError(problem, hint))

    async def _is_free(self, key: Key) -> bool:
        return not await leading(self._cluster, key)

    async def _forget(self) -> None:
        """Take away what the operator wrote on the objects of others, and what it made for a while."""
        await self._remove_annotation(velero.SCHEDULE, self._namespace, OBSERVED)
        await self._remove_annotation(CRON_JOB, "", WARM_UP_STATUS)
        for family in (BACKUPS, RESTORES):
            for each in await self._listed(family.kind):
                await self._release(family.kind, each, family.finalizer)
        for kind, labels in ((POD, f"{PRIMER_LABEL},!{JOB_NAME_LABEL}"), (CRON_JOB, PRIMER_LABEL)):
            for each in await self._listed(kind, labels=labels):
                await self._delete(kind, each)
        await self._delete_buffers()
        for key in self._leases:
            lease = await self._cluster.if_there(LEASE, key, _Named)
            if lease is not None:
                await self._delete(LEASE, lease)

    async def _delete_buffers(self) -> None:
        """Scale CapacityBuffers to 0, then delete them: one has no deadline, so its nodes would stay for ever."""
        discovery = await self._cluster.discovered()
        kind = served_kind(discovery) if discovery is not None else capacity_buffer()
        if kind is None or not await self._cluster.knows(kind):
            return
        buffers = await self._listed(kind, labels=PRIMER_LABEL)
        for each in buffers:
            if not self._dry_run:  # Karpenter keeps the nodes of one that is only deleted
                await self._cluster.merged_if_same(kind, each.key, {"spec": {"replicas": 0}})
        for each in buffers:
            await self._delete(kind, each)
        for each in await self._listed(POD_TEMPLATE, labels=PRIMER_LABEL):
            await self._delete(POD_TEMPLATE, each)

    async def _remove_annotation(self, kind: Kind, namespace: str, annotation: str) -> None:
        """Remove what the operator recorded on the objects of a kind."""
        for each in await self._listed(kind, namespace):
            if annotation in (each.metadata.annotations or {}):
                if not self._dry_run:  # without a version: its controller may write to it at any time, to other fields
                    body = {"metadata": {"annotations": {annotation: None}}}
                    await self._cluster.merged_if_same(kind, each.key, body)
                _told("released", kind, each)

    async def _listed(self, kind: Kind, namespace: str = "", labels: str = "") -> list[_Named]:
        raw = (
            await self._cluster.listed(kind, namespace, labels)
            if labels
            else await self._cluster.listed_if_known(kind, namespace)
        )
        return [msgspec.json.decode(each, type=_Named) for each in raw]

    async def _release(self, kind: Kind, each: _Named, finalizer: str) -> None:
        """Take our finalizer off, for nobody is left who would; those of others stay, whoever writes meanwhile."""
        found: _Named | None = each
        while found is not None and found.metadata.has_from_us(finalizer):
            others = [name for name in found.metadata.finalizers if name != finalizer]
            version = {"resourceVersion": found.metadata.resource_version}
            body = {"metadata": {"finalizers": others or None, **version}}
            if self._dry_run or await self._cluster.merged_if_same(kind, found.key, body):
                _told("released", kind, each)
                return
            found = await self._cluster.if_there(kind, each.key, _Named)

    async def _delete(self, kind: Kind, each: _Named) -> None:
        await self._cluster.delete(kind, each.key, each.metadata.uid, dry_run=self._dry_run)
        _told("deleted", kind, each)


def _told(what: str, kind: Kind, each: _Named) -> None:
    print(f"{what:<11} {kind.name} {each.key}", flush=True)
