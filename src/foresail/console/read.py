"""What the pages show, read by the modules of the command line with the viewer's own rights."""

import argparse
import asyncio
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager, suppress
from copy import copy
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api import velero
from foresail.api.batch import CRON_JOB
from foresail.api.core import CONFIG_MAP, EVENT, NAMESPACE, SECRET
from foresail.api.metadata import Named
from foresail.api.nonadmin import (
    NON_ADMIN_DOWNLOAD_REQUEST,
    NON_ADMIN_LOCATION,
    NON_ADMIN_LOCATION_REQUEST,
    NON_ADMIN_SCHEDULE,
    Approval,
)
from foresail.api.policy import SELF_SERVICE_POLICY
from foresail.api.primer import PRIMER
from foresail.api.protection import PROTECTION, PROTECTION_CLASS
from foresail.api.restore_check import RESTORE_CHECK
from foresail.api.rollback import ROLLBACK
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.cli.access.cluster import Cluster, may, may_all
from foresail.cli.access.refused_writes import refused_writes
from foresail.cli.access.self_service import is_enabled
from foresail.cli.access.together import all_of, in_thread
from foresail.cli.check.checks import CheckCells, read_check, read_check_rows, read_evidence, read_history
from foresail.cli.coverage.own_snapshot import is_administrator
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.finding import Finding
from foresail.cli.doctor.health import SystemHealth
from foresail.cli.doctor.installation import findings
from foresail.cli.doctor.read_health import read_health
from foresail.cli.errors import CommandError, NotAllowedError, TooLargeError, UnreachableError
from foresail.cli.location.request import read_requests, read_unrequested
from foresail.cli.output.words import short
from foresail.cli.policy.get import Applied, existing_resource_policies, read_applied
from foresail.cli.policy.preview import Preview, preview
from foresail.cli.policy.schedule_policies import AppliedSchedulePolicy, read_schedule_policies
from foresail.cli.policy.usage import (
    TenantShare,
    Usage,
    in_order,
    own_policy,
    read_own_usage,
    read_usage,
    tenant_shares,
)
from foresail.cli.primer.selection import Document, as_document, in_primers_form, key_of, read_annotated
from foresail.cli.restore_plan.planning import RestorePlan, make_plan
from foresail.cli.rollback.rollbacks import Seen
from foresail.cli.rollback.rollbacks import decode as decode_rollback
from foresail.cli.rollback.rollbacks import read as read_rollback
from foresail.cli.schedule.retention import waiting_of
from foresail.cli.schedule.snapshot import EvaluatedSchedule, evaluate_selected
from foresail.cli.tenant.adoptable import Scope, read_adoptable
from foresail.cli.tenant.contents import read_contents
from foresail.cli.tenant.explain import with_refusal
from foresail.cli.tenant.files import Access
from foresail.cli.tenant.held import HeldKind
from foresail.cli.tenant.logs import read_log_end
from foresail.cli.tenant.new_request import current_user
from foresail.cli.tenant.only import Picked
from foresail.cli.tenant.restore_plan import read_inputs
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, decode_each
from foresail.cli.tenant.selection import earlier_backups, read_request
from foresail.cli.tenant.since import Since, read_since
from foresail.cli.tenant.tenant_request import TenantRequest, decode_if_open, decode_request, restorable
from foresail.console.cancel_acts import can_be_cancelled
from foresail.console.changes import restore_fields
from foresail.console.kept import KeptCluster
from foresail.console.policy_pages import Approvals
from foresail.console.protection_pages import Protected
from foresail.console.read_once import ReadOnce
from foresail.console.recent import Recent
from foresail.console.report.figures import Figures
from foresail.console.report.snapshot import Wanted, read_cluster, read_own
from foresail.console.restore_pages import LARGEST_LOG, MOST_LOG, Copies
from foresail.console.running import Rates, last_like
from foresail.console.turns import Share
from foresail.kube.clock import steady
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.signatures import secret_key

_NEVER = datetime.min.replace(tzinfo=UTC)
_FRESH, _HEALTH_FRESH = 60.0, 10.0
_LONGEST_PLAN = timedelta(minutes=5)
Decode = Callable[[Family, msgspec.Raw], TenantRequest | None]
GiveAccess = Callable[[], Access]

LARGEST_PLAN, MOST_VALUES = 16 << 20, 300_000
"""Bytes of the contents of a backup that a plan reads, and values in them: decoded, a value has up to 120 bytes."""

MOST_NAMESPACES = 200
"""Namespaces that each page offers; with more, the viewer writes a name."""

LARGEST_CONTENTS = 4 << 20
"""Bytes of the list of what is in a backup: some 50,000 objects."""


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
    may_schedule: bool = False
    is_enabled: bool | None = None  # self-service; None if the namespace may not be read
    usage: Usage | None = None  # None if the viewer may not count the requests
    earlier: str = ""  # without backups: what to do about those of an earlier namespace of this name


@dataclass(frozen=True, slots=True)
class Rights:
    """What the viewer may read."""

    is_administrator: bool
    offered: frozenset[str]
    has_namespace: bool  # the backups and schedules of the namespace that the reader is about
    checks: tuple[str, ...] = ()  # the namespaces whose RestoreChecks the viewer may list; an empty one means all
    user: str = ""  # the viewer's name; empty if the API server does not tell
    namespaces: tuple[str, ...] = ()  # what the viewer may list; empty if they may not, or if there are too many


class Reader:
    """Reads pages for one viewer; the rights are reviewed again every minute."""

    def __init__(self, cluster: Cluster, wanted: Wanted, operator_namespace: str | None, share: Share) -> None:
        self.cluster = cluster
        self.wanted = wanted
        self.operator_namespace = operator_namespace
        self.share = share
        self._reviewed: tuple[float, Rights] | None = None
        self._reviewing = asyncio.Lock()
        self._health: tuple[float, SystemHealth] | None = None
        self.recent = Recent(self._is_accepted)
        self.rates = Rates()

    def for_one_page(self) -> "Reader":
        """Return the same reader for one page, which reads nothing twice."""
        reader = copy(self)
        reader.cluster = ReadOnce(self.cluster)
        return reader

    async def _is_accepted(self) -> bool:
        """Ask the API server about something cheap, which fails if it no longer accepts the viewer."""
        return await may(self.cluster, "list", BACKUPS.kind, self.wanted.namespace)

    def forget(self) -> None:
        """Forget what was read: the viewer has changed something."""
        self.recent.forget()
        if isinstance(self.cluster, KeptCluster):
            self.cluster.forget()

    async def health(self, now: datetime) -> SystemHealth:
        """Return whether Velero and Foresail run, read some seconds ago at most."""
        async with self._reviewing:
            is_fresh = self._health is not None and steady() - self._health[0] <= _HEALTH_FRESH
            if self._health is None or not is_fresh:
                is_all = self._reviewed is not None and self._reviewed[1].is_administrator
                place = self.wanted.velero_namespace
                self._health = steady(), await read_health(self.cluster, place, now, is_administrator=is_all)
            return self._health[1]

    async def is_administrator(self) -> bool:
        """Return whether the viewer may read the whole cluster."""
        return (await self.rights()).is_administrator

    async def rights(self) -> Rights:
        """Return what the viewer may read."""
        async with self._reviewing:  # pages that are opened at once ask once
            if self._reviewed is None or steady() - self._reviewed[0] > _FRESH:
                self._reviewed = steady(), await self._review()
            return self._reviewed[1]

    async def _review(self) -> Rights:
        velero_namespace = self.wanted.velero_namespace
        is_all = await is_administrator(self.cluster, velero_namespace)
        checks = await self._places_of_checks()
        offered = {"checks"} if checks else set()
        if checks and await may(self.cluster, "patch", RESTORE_CHECK, checks[0]):
            offered.add("run-checks")
        if await may(self.cluster, "list", PROTECTION, "" if is_all else self.wanted.namespace):
            offered.add("protection")
        if await self._has_rollbacks("" if is_all else self.wanted.namespace):
            offered.add("rollbacks")
        if await may(self.cluster, "list", PRIMER, "" if is_all else self.wanted.namespace):
            offered.add("primers")
        if is_all:
            offered |= {"doctor", "queue", *await self._acts()}
            needed = [(SELF_SERVICE_POLICY, ""), (velero.RESTORE, velero_namespace), (RESTORES.kind, "")]
            offered |= {"policies"} if await may_all(self.cluster, "list", needed) else set()
        has_namespace = not is_all and await self._has_namespace()
        user = await current_user(self.cluster)
        return Rights(
            is_all,
            frozenset(offered),
            has_namespace=has_namespace,
            checks=checks,
            user=user.username if user is not None else "",
            namespaces=await self._namespaces(),
        )

    async def _acts(self) -> set[str]:
        """Return what an administrator may do at the row of a namespace."""
        place = self.wanted.velero_namespace
        may_label = await may(self.cluster, "patch", NAMESPACE)
        may_apply = await may(self.cluster, "create", SCHEDULE_POLICY) and await may(
            self.cluster, "patch", SCHEDULE_POLICY
        )
        offered = {"apply-policies"} if may_apply else set()
        if await may(self.cluster, "create", velero.SCHEDULE, place):
            offered |= {"protect", "schedule"}
        offered |= {"protect"} if may_label else set()
        for verb, act in (("create", "new-class"), ("patch", "change-classes")):
            offered |= {act} if await may(self.cluster, verb, PROTECTION_CLASS) else set()
        offered |= {"change-schedules"} if await may(self.cluster, "patch", velero.SCHEDULE, place) else set()
        return offered | ({"run"} if await may(self.cluster, "create", velero.BACKUP, place) else set())

    async def _has_rollbacks(self, namespace: str) -> bool:
        """Return whether the viewer may list Rollbacks, and the cluster serves them."""
        if not await may(self.cluster, "list", ROLLBACK, namespace):
            return False
        try:
            await self.cluster.first_page(ROLLBACK, namespace, "", 1)
        except UnreachableError:
            raise
        except CommandError:
            return False
        return True

    async def _namespaces(self) -> tuple[str, ...]:
        """Return the namespaces to choose from, as far as the viewer may list them."""
        if not await may(self.cluster, "list", NAMESPACE):
            return ()
        try:
            raws = await self.cluster.first_page(NAMESPACE, "", "", MOST_NAMESPACES + 1)
        except CommandError:
            return ()  # every page needs the review; without the list the viewer writes a name
        names = sorted(msgspec.json.decode(raw, type=Named).metadata.name for raw in raws)
        return tuple(names) if len(names) <= MOST_NAMESPACES else ()

    async def _places_of_checks(self) -> tuple[str, ...]:
        """Return the namespaces whose RestoreChecks the viewer may list: an empty one for all, Velero's, their own."""
        if await may(self.cluster, "list", RESTORE_CHECK):
            return ("",)
        places = dict.fromkeys((self.wanted.velero_namespace, self.wanted.namespace))
        return tuple([place for place in places if place and await may(self.cluster, "list", RESTORE_CHECK, place)])

    async def _has_namespace(self) -> bool:
        place = self.wanted.namespace
        return bool(place) and await may_all(self.cluster, "list", [(NON_ADMIN_SCHEDULE, place), (BACKUPS.kind, place)])

    async def figures(self, now: datetime) -> Figures:
        """Return what the report shows: of the cluster, or of the viewer's namespace."""
        return await self.recent.get("figures", lambda: self._figures(now))

    async def _figures(self, now: datetime) -> Figures:
        if await self.is_administrator():
            return await read_cluster(self.cluster, replace(self.wanted, namespace=""), now)
        return await read_own(self.cluster, self.wanted, now)

    async def waiting(self) -> list[TenantRequest]:
        """Return the backups and restores that have not ended, as far as the viewer may list them."""
        return await self.recent.get("waiting", self._waiting)

    async def _waiting(self) -> list[TenantRequest]:
        namespace = "" if await self.is_administrator() else self.wanted.namespace
        return [
            request
            for family in (BACKUPS, RESTORES)
            for request in await self._requests(family, namespace, decode_if_open)
        ]

    async def namespace(self, name: str, now: datetime) -> OwnNamespace:
        """Return everything about one namespace."""
        wanted = replace(self.wanted, namespace=name)
        is_all = await self.is_administrator()
        figures = await (read_cluster if is_all else read_own)(self.cluster, wanted, now)
        schedules: tuple[TenantSchedule, ...] = ()
        if await may(self.cluster, "list", NON_ADMIN_SCHEDULE, name):
            schedules = tuple(decode_each(await self.cluster.listed_if_known(NON_ADMIN_SCHEDULE, name)))
        backups = tuple(await self._requests(BACKUPS, name))
        may_back_up, may_pause, may_restore, may_schedule = await all_of(
            may(self.cluster, verb, kind, name)
            for verb, kind in (
                ("create", BACKUPS.kind),
                ("patch", NON_ADMIN_SCHEDULE),
                ("create", RESTORES.kind),
                ("create", NON_ADMIN_SCHEDULE),
            )
        )
        return OwnNamespace(
            figures,
            backups,
            tuple(await self._requests(RESTORES, name)),
            schedules,
            may_back_up=may_back_up,
            may_pause=may_pause,
            may_restore=may_restore,
            may_schedule=may_schedule,
            is_enabled=await is_enabled(self.cluster, name),
            usage=await self._usage(name),
            earlier="" if backups else await earlier_backups(self.cluster, name),
        )

    async def _usage(self, namespace: str) -> Usage | None:
        if not await may_all(self.cluster, "list", [(family.kind, namespace) for family in (BACKUPS, RESTORES)]):
            return None
        options = self._policy_options()
        options.namespace = namespace
        return await read_own_usage(self.cluster, options)

    async def may_restore(self, namespace: str) -> bool:
        """Return whether the viewer may create restores in a namespace."""
        return await may(self.cluster, "create", RESTORES.kind, namespace)

    async def copies(self, namespace: str, now: datetime) -> Copies:
        """Return the backups of a namespace that can be restored, and what the viewer may do with them."""
        return Copies(
            restorable(await self._requests(BACKUPS, namespace), now),
            may_restore=await self.may_restore(namespace),
            may_plan=await self.may_download(namespace) and await may(self.cluster, "get", BACKUPS.kind, namespace),
            choices=await self._choices(namespace),
        )

    async def _choices(self, namespace: str) -> tuple[str, ...] | None:
        """Return what the policy lets a restore do with objects that exist; None if the viewer may not read it."""
        options = self._policy_options()
        options.namespace = namespace
        try:
            policy = await own_policy(self.cluster, options)
        except CommandError:
            return None
        return () if policy is None else existing_resource_policies(policy)

    async def may_download(self, namespace: str) -> bool:
        """Return whether the viewer may ask for files of Velero in a namespace, and delete the request."""
        for verb in ("create", "get", "delete"):
            if not await may(self.cluster, verb, NON_ADMIN_DOWNLOAD_REQUEST, namespace):
                return False
        return True

    async def log(self, family: Family, key: Key, access: GiveAccess) -> tuple[TenantRequest, str]:
        """Return a backup or restore with the end of its log."""
        request = await read_request(self.cluster, family, key)
        async with self._reading(f"foresail {family.word} logs {key.name} -n {key.namespace}"):
            return request, await read_log_end(self.cluster, family, key, access(), MOST_LOG, LARGEST_LOG)

    async def contents(self, key: Key, access: GiveAccess) -> tuple[TenantRequest, list[HeldKind]]:
        """Return a backup with what is in it."""
        request = await self.copy(key)
        async with self._reading(f"foresail backup contents {key.name} -n {key.namespace}"):
            return request, await read_contents(self.cluster, key, access(), LARGEST_CONTENTS)

    @asynccontextmanager
    async def _reading(self, command: str) -> AsyncIterator[None]:
        """Wait for the turn to read files; what is too large for the console, the command can read."""
        async with self.share.file():
            try:
                yield
            except TooLargeError as error:
                raise CommandError(error.problem, f"run {command}") from error

    async def copy(self, key: Key) -> TenantRequest:
        """Return one backup."""
        return await self.polled(BACKUPS, key)

    async def polled(self, family: Family, key: Key) -> TenantRequest:
        """Return one backup or restore in a single read: the API server refuses who may not."""
        return await read_request(self.cluster, family, key)

    async def last_like(self, request: TenantRequest) -> TenantRequest | None:
        """Return the last complete request like one that runs; None without one, or if the viewer may not list them."""
        if not request.is_running:
            return None
        return last_like(request, await self._requests(request.family, request.key.namespace))

    async def may_cancel(self, request: TenantRequest) -> bool:
        """Return whether a request only waits, and the viewer may delete it: of a backup, a field of its spec does."""
        verb = "patch" if request.family is BACKUPS else "delete"
        return can_be_cancelled(request) and await may(self.cluster, verb, request.family.kind, request.key.namespace)

    async def plan(
        self,
        copy: Key,
        policy: str,
        access: GiveAccess,
        longest: timedelta = _LONGEST_PLAN,
        picked: Picked | None = None,
    ) -> tuple[RestorePlan, Since]:
        """Return what a restore of a backup would do, of the picked objects or of all; time counts from its turn."""
        command = f"foresail restore plan --from-backup {copy.name} -n {copy.namespace}"
        async with self._reading(command):
            try:
                async with asyncio.timeout(longest.total_seconds()):
                    return await self._plan(copy, restore_fields(copy.name, policy), access(), picked)
            except TimeoutError as error:
                problem = f"the plan of NonAdminBackup {copy} takes longer than {short(longest)}"
                raise CommandError(problem, f"run {command}") from error

    async def _plan(
        self, copy: Key, fields: dict[str, Any], access: Access, picked: Picked | None
    ) -> tuple[RestorePlan, Since]:
        """Read the files beside those of another viewer, whose bucket may be slow, and then plan alone."""
        if picked is not None:
            fields = {**fields, "includedResources": sorted({key.resource for key in picked})}
        inputs = await read_inputs(self.cluster, copy.namespace, fields, access, LARGEST_PLAN)
        inputs = replace(inputs, most_values=MOST_VALUES, only=picked)
        async with self.share.plan():
            plan = await make_plan(self.cluster, self.cluster.client, inputs)
            since = await read_since(self.cluster, await self.copy(copy), inputs) if picked is None else Since()
            return plan, since

    async def requests(self, namespace: str) -> list[TenantRequest]:
        """Return the backups and restores of a namespace, the newest first, as far as the viewer may list them."""
        requests = [request for family in (BACKUPS, RESTORES) for request in await self._requests(family, namespace)]
        return sorted(requests, key=_created, reverse=True)

    async def request(self, family: Family, key: Key, now: datetime) -> TenantRequest:
        """Return one backup or restore, with what the API server refused of it."""
        if not await may(self.cluster, "get", family.kind, key.namespace):
            raise NotAllowedError(
                f"you may not get {family.kind.plural} in namespace {key.namespace}", "ask for access"
            )
        request = await read_request(self.cluster, family, key)
        if not await may(self.cluster, "list", EVENT, key.namespace):
            return request
        refused = await refused_writes(self.cluster, family.kind, key.namespace, now)
        return with_refusal(request, refused.get(request.request.metadata.uid))

    async def schedules(self, now: datetime) -> list[EvaluatedSchedule]:
        """Return Velero's Schedules with the verdict of the rules."""
        namespace = self.wanted.velero_namespace
        chosen = argparse.Namespace(names=[], selector="", all_namespaces=False, namespace=namespace)
        return await evaluate_selected(self.cluster, chosen, now)

    async def preview(self, text: str, now: datetime) -> Preview:
        """Return what the SchedulePolicies of a text would change in the next days."""
        evaluated = await self.schedules(now)
        return await in_thread(lambda: preview(text, evaluated, self.wanted.zone, now))

    async def findings(self) -> list[Finding]:
        """Return what the doctor finds."""
        return list(findings(await gather(self.cluster, self.wanted.velero_namespace, None)))

    async def queue(self) -> tuple[list[TenantRequest], list[TenantShare]]:
        """Return the open requests in order, and the share of each namespace; without policies all weigh the same."""
        requests = in_order(await self.waiting())
        is_known = "policies" in (await self.rights()).offered
        names = {request.key.namespace for request in requests}
        usages = await read_usage(self.cluster, self._policy_options(), names) if is_known else []
        return requests, tenant_shares(requests, usages)

    async def policies(self) -> list[Applied]:
        """Return the SelfServicePolicies with where each applies."""
        return await read_applied(self.cluster, self._policy_options())

    async def schedule_policies(self, now: datetime) -> list[AppliedSchedulePolicy]:
        """Return the SchedulePolicies with the Schedules to which each applies."""
        if not await may(self.cluster, "list", SCHEDULE_POLICY):
            return []
        return await read_schedule_policies(self.cluster, await self.schedules(now))

    async def approvals(self, now: datetime) -> Approvals:
        """Return what waits for an administrator, and what the viewer may decide."""
        place = self.wanted.velero_namespace
        locations = list[Approval]()
        if await may(self.cluster, "list", NON_ADMIN_LOCATION_REQUEST, place):
            locations = [approval for _, approval in await read_requests(self.cluster, place)]
        may_read = await may(self.cluster, "get", NON_ADMIN_LOCATION)
        key = secret_key(place)
        may_verify = await may(self.cluster, "get", SECRET, place, key.name)
        return Approvals(
            locations,
            await read_adoptable(self.cluster, self.scope, now),
            may_decide=may_read and await may(self.cluster, "patch", NON_ADMIN_LOCATION_REQUEST, place),
            may_adopt=await may(self.cluster, "patch", velero.BACKUP, place),
            unread_key="" if may_verify else str(key),
            unrequested=await read_unrequested(self.cluster, "", locations),
            deletions=[(schedule.schedule.key.name, waiting_of(schedule)) for schedule in await self.schedules(now)],
            may_delete=await may(self.cluster, "patch", velero.SCHEDULE, place),
        )

    @property
    def scope(self) -> Scope:
        """Where backups to adopt are looked for."""
        return Scope(self.wanted.velero_namespace, self.operator_namespace)

    async def checks(self, now: datetime) -> list[CheckCells]:
        """Return the RestoreChecks that the viewer may list, those of administrators first."""
        places = (await self.rights()).checks
        rows = [row for place in places for row in await read_check_rows(self.cluster, place, now)]
        return sorted(rows, key=lambda row: (row[0].namespace != self.wanted.velero_namespace, row[0]))

    async def may_run_check(self, key: Key) -> bool:
        """Return whether the viewer may start a RestoreCheck."""
        return await may(self.cluster, "patch", RESTORE_CHECK, key.namespace)

    async def check(self, key: Key) -> tuple[dict[str, Any], str, list[dict[str, Any]]]:
        """Return a RestoreCheck with its evidence and the records of earlier runs, as far as the viewer may read."""
        document = await self._check(key)
        place = self.wanted.velero_namespace
        history = list[dict[str, Any]]()
        if await may(self.cluster, "list", CONFIG_MAP, place):
            history = await read_history(self.cluster, place, document)
        return document, await self._evidence(document), history

    async def evidence(self, key: Key) -> str:
        """Return the evidence of the last run; empty if there is none, or if the viewer may not read it."""
        return await self._evidence(await self._check(key))

    async def _check(self, key: Key) -> dict[str, Any]:
        if not await may(self.cluster, "get", RESTORE_CHECK, key.namespace):
            problem = f"you may not get {RESTORE_CHECK.plural} in namespace {key.namespace}"
            raise NotAllowedError(problem, "ask for access")
        return await read_check(self.cluster, key)

    async def _evidence(self, check: dict[str, Any]) -> str:
        place = self.wanted.velero_namespace
        if not await may(self.cluster, "get", CONFIG_MAP, place):
            return ""
        return await read_evidence(self.cluster, place, check)

    async def protection(self) -> Protected:
        """Return the classes and the Protections that the viewer may list."""
        place = "" if await self.is_administrator() else self.wanted.namespace
        may_list = await may(self.cluster, "list", PROTECTION_CLASS)
        classes = await self.cluster.listed_if_known(PROTECTION_CLASS) if may_list else None
        return Protected(
            None if classes is None else [msgspec.json.decode(raw, type=dict[str, Any]) for raw in classes],
            [
                msgspec.json.decode(raw, type=dict[str, Any])
                for raw in await self.cluster.listed_if_known(PROTECTION, place)
            ],
        )

    async def rollbacks(self) -> list[Seen]:
        """Return the Rollbacks of the cluster or of the viewer's namespace, the newest first."""
        return await self._rollbacks("" if await self.is_administrator() else self.wanted.namespace)

    async def rollbacks_of(self, namespace: str) -> list[Seen]:
        """Return the Rollbacks of one namespace, as far as the viewer may list them."""
        return await self._rollbacks(namespace) if await may(self.cluster, "list", ROLLBACK, namespace) else []

    async def _rollbacks(self, place: str) -> list[Seen]:
        rollbacks = list[Seen]()
        for raw in await self.cluster.listed_if_known(ROLLBACK, place):
            with suppress(CommandError):  # one that cannot be decoded hides no other
                rollbacks.append(decode_rollback(raw))
        return sorted(rollbacks, key=_made, reverse=True)

    async def rollback(self, key: Key) -> Seen:
        """Return one Rollback."""
        if not await may(self.cluster, "get", ROLLBACK, key.namespace):
            raise NotAllowedError(f"you may not get rollbacks in namespace {key.namespace}", "ask for access")
        return await read_rollback(self.cluster, key)

    async def may_roll_back(self, verb: str, namespace: str) -> bool:
        """Return whether the viewer may create or patch Rollbacks, where the cluster serves them."""
        is_served = "rollbacks" in (await self.rights()).offered
        return is_served and await may(self.cluster, verb, ROLLBACK, namespace)

    async def primers(self, now: datetime) -> list[Document]:
        """Return the Primers, and the CronJobs that are primed by annotations."""
        place = "" if await self.is_administrator() else self.wanted.namespace
        items = [as_document(raw) for raw in await self.cluster.listed_if_known(PRIMER, place)]
        if await may(self.cluster, "list", CRON_JOB, place):
            items += await read_annotated(self.cluster, place)
        return sorted((in_primers_form(item, now) for item in items), key=key_of)

    def _policy_options(self) -> argparse.Namespace:
        return argparse.Namespace(
            names=[],
            selector="",
            all_namespaces=True,
            velero_namespace=self.wanted.velero_namespace,
            operator_namespace=self.operator_namespace,
        )

    async def _requests(self, family: Family, namespace: str, decode: Decode = decode_request) -> list[TenantRequest]:
        if not await may(self.cluster, "list", family.kind, namespace):
            return []
        items = await self.cluster.listed_if_known(family.kind, namespace)
        return await in_thread(lambda: _newest_first(family, items, decode))  # other viewers wait for no long list


def _newest_first(family: Family, raws: Iterable[msgspec.Raw], decode: Decode) -> list[TenantRequest]:
    return sorted(_decoded(family, raws, decode), key=_created, reverse=True)


def _decoded(family: Family, raws: Iterable[msgspec.Raw], decode: Decode) -> Iterable[TenantRequest]:
    """Yield the requests that can be decoded: that of one tenant hides no other."""
    for raw in raws:
        try:
            request = decode(family, raw)
        except CommandError:
            continue
        if request is not None:
            yield request


def _made(seen: Seen) -> tuple[datetime, Key]:
    return seen.rollback.metadata.creation_timestamp or _NEVER, seen.key


def _created(request: TenantRequest) -> tuple[datetime, Key]:
    return request.request.metadata.creation_timestamp or _NEVER, request.key
