"""`foresail doctor`: gather evidence, print the findings, and return 1 if there is a problem."""

import argparse
import json
import os
import sys
from collections.abc import Coroutine, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any, TypeVar

from foresail.api import velero
from foresail.api.apps import DEPLOYMENT
from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster, may, on_cluster, settle_namespace
from foresail.cli.access.self_service import enabling_command, is_enabled
from foresail.cli.access.together import all_of, together
from foresail.cli.doctor.evidence import gather
from foresail.cli.doctor.finding import Finding, Grade, good, minutes, problem, warning
from foresail.cli.doctor.installation import findings
from foresail.cli.doctor.requests import PROCESSED_WITHIN
from foresail.cli.errors import CommandError, UnreachableError
from foresail.cli.output.messages import GREEN, RED, YELLOW, hint, painted
from foresail.cli.tenant.explain import advised, reason_of
from foresail.cli.tenant.schedule.explain import advised as advised_schedule
from foresail.cli.tenant.schedule.snapshot import TenantSchedule, decode_each
from foresail.cli.tenant.stalled import NOTHING_STALLED, Stalled, read_stalled
from foresail.cli.tenant.tenant_request import TenantRequest, decode_request
from foresail.kube.clock import now
from foresail.reporting import some
from foresail.selfservice.families import FAMILIES, Family
from foresail.selfservice.reasons import Reason

T = TypeVar("T")
_STARTS_WITHIN = timedelta(minutes=10)
_IN_ORDER = frozenset(
    reason.value
    for reason in (Reason.WAITING, Reason.RUNNING, Reason.WAITING_FOR_TURN, Reason.CHECKING_ACCESS, Reason.BUSY)
)
_ASK = "ask a cluster administrator to run foresail doctor"


@dataclass(frozen=True, slots=True)
class TeamEvidence:
    """What a team may read of its namespace."""

    namespace: str
    instant: datetime
    requests: tuple[TenantRequest, ...] = ()
    schedules: tuple[TenantSchedule, ...] = ()
    is_labelled: bool | None = None  # the operator has enabled self-service; None if the namespace may not be read
    unread: tuple[CommandError, ...] = ()
    stalled: Stalled = NOTHING_STALLED
    """What keeps everything from starting, as the operator publishes it."""

    is_read: bool = True  # at least some of it


async def is_team(cluster: Cluster, velero_namespace: str) -> bool:
    """Return whether the user may read neither Velero's Backups nor the Deployments of the cluster."""
    try:
        asked = ((DEPLOYMENT, ""), (velero.BACKUP, velero_namespace))
        return not any(await all_of(may(cluster, "list", kind, namespace) for kind, namespace in asked))
    except UnreachableError:
        raise
    except CommandError:
        return False


async def read_team(cluster: Cluster, namespace: str) -> TeamEvidence:
    """Read the namespace, and the requests and schedules in it, as far as the user may."""
    unread: list[CommandError] = []

    async def tried(reading: Coroutine[Any, Any, T]) -> T | None:
        try:
            return await reading
        except UnreachableError:
            raise
        except CommandError as error:
            unread.append(error)
            return None

    async with together() as tasks:
        labelled = tasks.begin(is_enabled(cluster, namespace))
        requests = [tasks.begin(tried(_requests(cluster, family, namespace))) for family in FAMILIES]
        schedules = tasks.begin(tried(cluster.listed(NON_ADMIN_SCHEDULE, namespace)))
    read = tuple(request for several in requests for request in several.result() or ())
    velero_namespace = next((request.made.namespace for request in read if request.made.namespace), "")
    return TeamEvidence(
        namespace,
        now() - (cluster.client.skew or timedelta()),
        read,
        tuple(decode_each(schedules.result() or ())),
        labelled.result(),
        tuple(sorted(unread, key=str)),
        await read_stalled(cluster, velero_namespace, now()),
        is_read=len(unread) <= len(FAMILIES),
    )


async def _requests(cluster: Cluster, family: Family, namespace: str) -> list[TenantRequest]:
    return [decode_request(family, raw) for raw in await cluster.listed(family.kind, namespace)]


def team_findings(seen: TeamEvidence) -> list[Finding]:
    """Say whether self-service works for the team, and what its requests and schedules wait for."""
    if not seen.is_read:
        says = f"namespace {seen.namespace} is not checked: {seen.unread[0].problem}"
        return [problem("access", says, "name your own namespace with -n, or ask a cluster administrator")]
    unread = (warning("access", f"not checked: {error.problem}", error.hint or "") for error in seen.unread)
    velero = seen.stalled.velero
    down = [problem("velero", velero, _ASK)] if velero else []
    return [*unread, _service(seen), *down, *_locations(seen), *_waiting(seen), *_idle(seen)]


def _locations(seen: TeamEvidence) -> Iterator[Finding]:
    """Report the storage locations of administrators that the schedules use, or by default would, and that fail."""
    if seen.stalled.problem:  # that comes first, whatever a location is like
        return
    used = {schedule.location for schedule in seen.schedules} or {""}
    for text in dict.fromkeys(filter(None, (seen.stalled.locations.get(name) for name in sorted(used)))):
        yield problem("locations", f"{text}, so no backup starts there", _ASK)


def _service(seen: TeamEvidence) -> Finding:
    """Return whether an operator serves the namespace, by what it has done."""
    unserved = _unserved(seen)
    if unserved:
        return problem("self-service", unserved, _ASK)
    if (
        any(reason_of(request) == Reason.NO_POLICY for request in seen.requests if request.is_open)
        or seen.is_labelled is False
    ):
        says = f"self-service is not enabled in namespace {seen.namespace}"
        ask = f"ask a cluster administrator to enable it: {enabling_command(seen.namespace)}"
        return problem("self-service", says, ask)
    new = [request for request in seen.requests if not request.phase]
    if new:
        says = f"{_names(new)} {'is' if len(new) == 1 else 'are'} new, and no operator has processed {_them(new)} yet"
        return warning("self-service", says, f"run this again in {minutes(PROCESSED_WITHIN)}")
    count = len(seen.requests) + len(seen.schedules)
    if count:
        says = f"the operator has processed every request of namespace {seen.namespace}: {count}"
        return good("self-service", says)
    if seen.is_labelled:
        return good("self-service", f"it is enabled in namespace {seen.namespace}, which has no request yet")
    says = f"namespace {seen.namespace} has no request, so it is unknown whether self-service is enabled"
    return warning("self-service", says, "try it: foresail backup create NAME --wait")


def _unserved(seen: TeamEvidence) -> str:
    """Return which requests or runs no operator serves, although they are due; empty if there are none."""
    if seen.stalled.nobody_runs:
        return f"{seen.stalled.nobody_runs}, so no request of namespace {seen.namespace} is served"
    new = [request for request in seen.requests if not request.phase]
    late = [request for request in new if _age(request, seen.instant) > PROCESSED_WITHIN]
    if late:
        age = minutes(max(_age(request, seen.instant) for request in late))
        return f"no operator has processed {_names(late)} for up to {age}"
    overdue = [schedule.key.name for schedule in seen.schedules if _is_overdue(schedule, seen.instant)]
    return f"the last planned run of schedule {some(overdue)} has not started" if overdue else ""


def _waiting(seen: TeamEvidence) -> Iterator[Finding]:
    """Report what blocks open requests, once for each reason; a turn that takes its time is no trouble."""
    by_reason: dict[str, list[TenantRequest]] = {}
    for request in seen.requests:
        if request.is_open and request.phase and not request.is_terminating:
            by_reason.setdefault(reason_of(request), []).append(request)
    waiting = 0
    for reason, several in sorted(by_reason.items()):
        age = max(_age(request, seen.instant) for request in several)
        if reason == Reason.WAITING and age > _STARTS_WITHIN:
            yield warning("requests", f"Velero has not started {_names(several)} for up to {minutes(age)}", _ASK)
        elif reason in _IN_ORDER:
            waiting += len(several)
        elif reason != Reason.NO_POLICY:  # finding self-service
            first = several[0]
            because = first.blocking.message if first.blocking is not None else reason
            yield warning("requests", f"{_names(several)} waits: {because}", advised(first))
    if waiting:
        yield _in_order(waiting, seen.stalled)


def _in_order(waiting: int, stalled: Stalled) -> Finding:
    if stalled.problem:
        stopped = "Velero" if stalled.velero else "the operator"
        says = f"{waiting} {'waits' if waiting == 1 else 'wait'} or ran when {stopped} stopped"
        return warning("requests", says, _ASK)
    return good("requests", f"{waiting} {'is' if waiting == 1 else 'are'} running or waiting for a turn")


def _idle(seen: TeamEvidence) -> Iterator[Finding]:
    """Report the schedules that do not run, once for each reason."""
    by_reason: dict[str, list[TenantSchedule]] = {}
    for schedule in seen.schedules:
        if schedule.blocking is not None and schedule.blocking.reason not in (
            *_IN_ORDER,
            Reason.PAUSED,
            Reason.NO_POLICY,
        ):
            by_reason.setdefault(schedule.blocking.reason, []).append(schedule)
    for _, several in sorted(by_reason.items()):
        first = several[0]
        because = first.blocking.message if first.blocking is not None else ""
        names = some([tenant_schedule.key.name for tenant_schedule in several])
        yield warning("schedules", f"schedule {names} does not run: {because}", advised_schedule(first, seen.instant))


def _is_overdue(schedule: TenantSchedule, at: datetime) -> bool:
    return schedule.blocking is None and schedule.next_run is not None and at - schedule.next_run > _STARTS_WITHIN


def _names(several: Sequence[TenantRequest]) -> str:
    return some([f"{request.family.word} {request.key.name}" for request in several])


def _them(several: Sequence[TenantRequest]) -> str:
    return "it" if len(several) == 1 else "them"


def _age(request: TenantRequest, at: datetime) -> timedelta:
    return at - (request.request.metadata.creation_timestamp or at)


_COLOURS = {Grade.GOOD: GREEN, Grade.WARNING: YELLOW, Grade.PROBLEM: RED}


def run_doctor(args: argparse.Namespace) -> int:
    """Run the command: for the cluster, or for the namespace of a team that may read no more."""
    findings, scope = on_cluster(args, lambda cluster: _examined(cluster, args))
    if args.output == "json":
        print(json.dumps([_data(finding) for finding in findings], indent=2))
    else:
        print(shown(findings))
        print(summary(findings), file=sys.stderr)
    if scope:
        hint(f"this is about namespace {scope}; to check the cluster, you must be allowed to list Velero's Backups")
    return 1 if any(finding.grade is Grade.PROBLEM for finding in findings) else 0


async def _examined(cluster: Cluster, args: argparse.Namespace) -> tuple[list[Finding], str]:
    """Return the findings, and the namespace if they are about one."""
    velero_namespace = args.namespace or os.environ.get("VELERO_NAMESPACE") or "velero"
    if not await is_team(cluster, velero_namespace):
        return findings(await gather(cluster, velero_namespace, args.service_account)), ""
    settle_namespace(args)
    return team_findings(await read_team(cluster, args.namespace)), str(args.namespace)


def shown(findings: Sequence[Finding]) -> str:
    """Return the findings, each with what to do about it."""
    width = max((len(finding.about) for finding in findings), default=0)
    lines = []
    for finding in findings:
        grade = painted(finding.grade.value.upper().ljust(7), _COLOURS[finding.grade], sys.stdout)
        lines.append(f"{grade}   {finding.about.ljust(width)}   {finding.says}")
        if finding.fix:
            lines.append(f"{'':10}{'':{width}}   fix: {finding.fix}")
    return "\n".join(lines)


def summary(findings: Sequence[Finding]) -> str:
    """Return how many are how bad."""
    bad, doubtful = (sum(finding.grade is grade for finding in findings) for grade in (Grade.PROBLEM, Grade.WARNING))
    if not bad and not doubtful:
        return "No problems found."
    return f"Problems: {bad}. Warnings: {doubtful}."


def _data(finding: Finding) -> dict[str, str]:
    return {"grade": finding.grade.value, "about": finding.about, "says": finding.says, "fix": finding.fix}
