"""`foresail uninstall`: the Schedules back to Velero, then everything away; kinds and data stay unless asked.

Velero's schedule controller is on before the operator goes. The operator sees that in Velero's Deployment and fires
nothing from then on, so exactly one of the two runs the Schedules.
"""

import argparse
import sys
from dataclasses import replace
from functools import partial

import msgspec

from foresail.api.marks import LEASES, RETIRED_LEASE
from foresail.api.monitoring import UNATTENDED
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.errors import CommandError
from foresail.cli.install.hand_over import hand_over, velero_server
from foresail.cli.install.installed import hook_bindings
from foresail.cli.install.manifests import (
    CAPABILITIES,
    InstallOptions,
    Piece,
    checked,
    defined,
    definitions,
    operators,
    retired,
)
from foresail.cli.install.objects import STOPPED, Patience, deleted, existing, leading, other_maker
from foresail.cli.install.releases import Releases, refuse_amid_rollbacks
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import confirm_deletion, interruptible
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.signatures import SECRET, secret_key


def run_uninstall(args: argparse.Namespace) -> int:
    """Run the command."""
    patience = Patience(deadline(args.timeout) or now())
    return interruptible(lambda: on_cluster(args, lambda cluster: _Uninstall(cluster, args, patience).run()), STOPPED)


class _Uninstall:
    """One run of the command."""

    def __init__(self, cluster: Cluster, args: argparse.Namespace, patience: Patience) -> None:
        self._cluster = cluster
        self._patience = patience
        self._namespace: str = args.namespace
        self._dry_run = bool(args.dry_run)
        self._leaves_stopped: bool = args.leave_schedules_stopped
        self._and_kinds: bool = args.crds
        self._is_confirmed = bool(args.confirm or args.dry_run)
        options = InstallOptions(
            CAPABILITIES,
            self._namespace,
            "velero",
            "foresail",
            "pause",
            monitoring=True,
            tenant_locations=True,
        )
        self._options = checked(options)
        self._pieces = list[Piece]()
        self._leases = [Key(self._namespace, name) for name in (*LEASES, RETIRED_LEASE)]

    async def run(self) -> int:
        await refuse_amid_rollbacks(self._cluster)
        if self._and_kinds and not self._is_confirmed:
            await self._confirm_kinds()
        if not self._leaves_stopped:
            await self._hand_back()
        options = replace(self._options, schedules_with_hooks=await hook_bindings(self._cluster))
        self._pieces = [*operators(options), *reversed(retired(self._namespace))]
        running = [piece for piece in self._pieces if piece.is_operator]
        for operator in running:
            maker = await other_maker(self._cluster, operator)
            if maker:
                problem = f"{operator} stays: {maker} created it"
                hint = "remove it with the tool that manages it, such as helm uninstall, then run this command again"
                raise CommandError(problem, hint)
        await deleted(self._cluster, running, dry_run=self._dry_run)
        if not self._dry_run:
            await self._ended()
        await self._forget()
        alert, rest = self._beside_the_operator()
        await deleted(self._cluster, reversed(rest), dry_run=self._dry_run)
        if not self._leaves_stopped:  # a removed chart has left it behind
            await deleted(self._cluster, alert, dry_run=self._dry_run, any_owner=True)
        await self._end_kinds()
        await self._report_key()
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
            names_left = ", ".join(piece.key.name for piece in left)
            text = f"These kinds stay, with their objects: {names_left}." if left else ""
        else:
            there = await existing(self._cluster, definitions())
            text = "Foresail's kinds and their objects stay; --crds deletes both." if there else ""
        if text:
            print(text, file=sys.stderr)

    async def _report_key(self) -> None:
        """Report that the recovery key stays: without it, no record in the bucket can be verified again."""
        key = secret_key(self._namespace)
        if await self._cluster.if_there(SECRET, key, msgspec.Raw) is not None:
            delete = f"kubectl delete secret {key.name} -n {key.namespace}"
            print(
                f"Secret {key} stays: it verifies the records of tenants' backups. To delete it: {delete}",
                file=sys.stderr,
            )

    def _beside_the_operator(self) -> tuple[list[Piece], list[Piece]]:
        """Return the alert that no controller runs the Schedules, and everything else."""
        pieces = [piece for piece in self._pieces if not piece.is_operator]
        alert = [piece for piece in pieces if piece.key.name == UNATTENDED]
        return alert, [piece for piece in pieces if piece not in alert]

    async def _hand_back(self) -> None:
        server = await velero_server(self._cluster, self._namespace)
        if server is None:
            print(f"No Deployment in namespace {self._namespace} runs a Velero server.", file=sys.stderr)
            return
        try:
            await hand_over(self._cluster, server, self._patience, off=False, dry_run=self._dry_run)
        except CommandError as error:
            problem = f"{error.problem}; nothing was removed"
            raise CommandError(problem, f"{error.hint}; or add --leave-schedules-stopped") from error

    async def _ended(self) -> None:
        """Wait until no replica leads any more: it would write again what is taken away here."""
        for key in self._leases:
            problem = f"Lease {key}: an operator still holds it"
            hint = "stop its holder (foresail doctor names it), then try again"
            is_stopped = partial(self._is_free, key)
            await self._patience.wait("the operator has stopped", is_stopped, CommandError(problem, hint))

    async def _is_free(self, key: Key) -> bool:
        return not await leading(self._cluster, key)

    async def _forget(self) -> None:
        """Take away what the operator wrote on the objects of others, and what it made for a while."""
        releases = Releases(self._cluster, self._namespace, dry_run=self._dry_run)
        for capability in CAPABILITIES:
            await releases.of(capability)
        for key in self._leases:
            await releases.delete_lease(key)
