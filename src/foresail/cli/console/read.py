"""What the pages show, read by the modules of the command line with the viewer's own rights."""

import argparse
import asyncio
from collections.abc import Iterable
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import msgspec

from foresail.api.core import EVENT
from foresail.api.requests import NON_ADMIN_DOWNLOAD_REQUEST, NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.own_rights import may
from foresail.cli.access.refused_writes import refused_writes
from foresail.cli.console.changes import restore_fields
from foresail.cli.console.restore_pages import Copies
from foresail.cli.doctor.checks import findings
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.finding import Finding
from foresail.cli.errors import CommandError
from foresail.cli.report.figures import Figures
from foresail.cli.report.snapshot import Wanted, is_administrator, read_cluster, read_own
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.cli.schedule.snapshot import EvaluatedSchedule, evaluate_selected
from foresail.cli.tenant.copies import restorable
from foresail.cli.tenant.explain import with_refusal
from foresail.cli.tenant.files import Access
from foresail.cli.tenant.plan import plan_restore
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, decode_each
from foresail.cli.tenant.selection import read_request
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family

_FRESH = timedelta(minutes=1)


@dataclass(frozen=True, slots=True)
class OwnNamespace:
    """What a tenant sees of their namespace, and what they may do there."""

    figures: Figures
    backups: tuple[TenantRequest, ...]
    restores: tuple[TenantRequest, ...]
    schedules: tuple[TenantSchedule, ...]
    may_back_up: bool
    may_pause: bool
    may_restore: bool = False


class Reader:
    """Reads pages for one viewer; the rights are reviewed again every minute."""

    def __init__(self, cluster: Cluster, wanted: Wanted) -> None:
        self.cluster, self.wanted = cluster, wanted
        self._reviewed: tuple[datetime, bool] | None = None
        self._planning = asyncio.Lock()

    async def is_administrator(self, now: datetime) -> bool:
        """Return whether the viewer may read the whole cluster."""
        if self._reviewed is None or now - self._reviewed[0] > _FRESH:
            self._reviewed = now, await is_administrator(self.cluster, self.wanted.velero_namespace)
        return self._reviewed[1]

    async def figures(self, now: datetime) -> Figures:
        """Return what the report shows: of the cluster, or of the viewer's namespace."""
        if await self.is_administrator(now):
            return await read_cluster(self.cluster, replace(self.wanted, namespace=""), now)
        return await read_own(self.cluster, self.wanted, now)

    async def waiting(self, now: datetime) -> list[TenantRequest]:
        """Return the backups and restores that have not ended, as far as the viewer may list them."""
        namespace = "" if await self.is_administrator(now) else self.wanted.namespace
        found = [each for family in (BACKUPS, RESTORES) for each in await self._requests(family, namespace)]
        return [each for each in found if each.is_open]

    async def namespace(self, name: str, now: datetime) -> OwnNamespace:
        """Return everything about one namespace."""
        wanted = replace(self.wanted, namespace=name)
        is_all = await self.is_administrator(now)
        figures = await (read_cluster if is_all else read_own)(self.cluster, wanted, now)
        schedules: tuple[TenantSchedule, ...] = ()
        if await may(self.cluster, "list", NON_ADMIN_SCHEDULE, name):
            schedules = tuple(decode_each(await self.cluster.listed_if_known(NON_ADMIN_SCHEDULE, name)))
        return OwnNamespace(
            figures,
            tuple(await self._requests(BACKUPS, name)),
            tuple(await self._requests(RESTORES, name)),
            schedules,
            may_back_up=await may(self.cluster, "create", BACKUPS.kind, name),
            may_pause=await may(self.cluster, "patch", NON_ADMIN_SCHEDULE, name),
            may_restore=await self.may_restore(name),
        )

    async def may_restore(self, namespace: str) -> bool:
        """Return whether the viewer may create restores in a namespace."""
        return await may(self.cluster, "create", RESTORES.kind, namespace)

    async def copies(self, namespace: str, now: datetime) -> Copies:
        """Return the backups of a namespace that can be restored, and what the viewer may do with them."""
        files = NON_ADMIN_DOWNLOAD_REQUEST
        needed = [("get", BACKUPS.kind), *((verb, files) for verb in ("create", "get", "delete"))]
        return Copies(
            restorable(await self._requests(BACKUPS, namespace), now),
            may_restore=await self.may_restore(namespace),
            may_plan=all([await may(self.cluster, verb, kind, namespace) for verb, kind in needed]),
        )

    async def copy(self, key: Key) -> TenantRequest:
        """Return one backup."""
        return await read_request(self.cluster, BACKUPS, key)

    async def plan(self, copy: Key, policy: str, access: Access) -> RestorePlan:
        """Return what a restore of a backup would do; one plan is made at a time."""
        async with self._planning:
            return await plan_restore(self.cluster, copy.namespace, restore_fields(copy.name, policy), access)

    async def request(self, family: Family, key: Key, now: datetime) -> TenantRequest:
        """Return one backup or restore, with what the API server refused of it."""
        if not await may(self.cluster, "get", family.kind, key.namespace):
            raise CommandError(f"you may not get {family.kind.plural} in namespace {key.namespace}", "ask for access")
        found = await read_request(self.cluster, family, key)
        if not await may(self.cluster, "list", EVENT, key.namespace):
            return found
        refused = await refused_writes(self.cluster, family.kind, key.namespace, now)
        return with_refusal(found, refused.get(found.request.metadata.uid))

    async def schedules(self, now: datetime) -> list[EvaluatedSchedule]:
        """Return Velero's Schedules with the verdict of the rules."""
        namespace = self.wanted.velero_namespace
        chosen = argparse.Namespace(names=[], selector="", all_namespaces=False, namespace=namespace)
        return await evaluate_selected(self.cluster, chosen, now)

    async def findings(self) -> list[Finding]:
        """Return what the doctor finds."""
        return list(findings(await gather(self.cluster, self.wanted.velero_namespace, None)))

    async def _requests(self, family: Family, namespace: str) -> list[TenantRequest]:
        if not await may(self.cluster, "list", family.kind, namespace):
            return []
        found = await self.cluster.listed_if_known(family.kind, namespace)
        return sorted(_decoded(family, found), key=_created, reverse=True)


def _decoded(family: Family, found: Iterable[msgspec.Raw]) -> Iterable[TenantRequest]:
    """Yield the requests that can be decoded: that of one tenant hides no other."""
    for each in found:
        try:
            yield decode_request(family, each)
        except CommandError:
            continue


def _created(each: TenantRequest) -> tuple[str, Key]:
    created = each.request.metadata.creation_timestamp
    return created.isoformat() if created else "", each.key
