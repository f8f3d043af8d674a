"""The Schedules from Velero to the operator, or back: Velero's schedule controller is switched off or on.

A change of Velero waits until no Backup and no Restore is in progress; one that fails or is ended is undone.
"""

import asyncio
import sys
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.apps import (
    DEPLOYMENT,
    Container,
    DeploymentSpec,
    DeploymentStatus,
    StartedPod,
    is_server,
    is_wrapped,
    server_words,
)
from foresail.api.marks import SCHEDULES_LEASE
from foresail.api.metadata import Metadata
from foresail.api.pods import POD
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.managed_by import HELM_RELEASE, ManagedMetadata, ManagingTool, managing_tool
from foresail.cli.errors import CommandError
from foresail.cli.install.objects import Patience, leading
from foresail.cron import CronError
from foresail.cron.zone_names import validate_zone_name
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.schedules.observe import ScheduleRow, ScheduleView, VeleroServer, schedule_row
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.schedules.velero_server import (
    SERVER_PODS,
    pod_row,
    schedule_controller_is_off,
    scheduling_pod,
)

FLAG = "--disable-controllers"
_SCHEDULE = "schedule"
_TO_UNDO = timedelta(minutes=2)
_NOBODY = "maybe no Schedule runs"
_CHECK = "`foresail doctor` reports who runs the Schedules; run the same command again"


def switched_off(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the schedule controller off; others that are off stay in the same list."""
    changed = list(arguments)
    for place, listed in _lists(changed):
        if _SCHEDULE not in listed:
            changed[place] = _written(changed[place], [*listed, _SCHEDULE])
        return changed
    return [*changed, f"{FLAG}={_SCHEDULE}"]


def switched_on(arguments: Sequence[str]) -> list[str]:
    """Return the arguments with the schedule controller on; others that are off stay off."""
    changed: list[str | None] = [*arguments]
    for place, listed in _lists(arguments):
        if _SCHEDULE not in listed:
            continue
        left = [name for name in listed if name != _SCHEDULE]
        if left:
            changed[place] = _written(arguments[place], left)
        else:
            changed[place] = None
            if not arguments[place].startswith(FLAG):  # the list was a word of its own, after the flag
                changed[place - 1] = None
    return [argument for argument in changed if argument is not None]


def others_off(arguments: Sequence[str]) -> list[str]:
    """Return the controllers that are off beside that of schedules."""
    return [name for _, listed in _lists(arguments) for name in listed if name != _SCHEDULE]


def _lists(arguments: Sequence[str]) -> Iterator[tuple[int, list[str]]]:
    """Yield each list of controllers with its place; the flag may be given twice, and its list may follow as a word."""
    for place, argument in enumerate(arguments):
        name, is_one_word, value = argument.partition("=")
        if name == FLAG and is_one_word:
            yield place, _names(value)
        elif place and arguments[place - 1] == FLAG:
            yield place, _names(argument)


def _names(text: str) -> list[str]:
    return [name for part in text.split(",") if (name := part.strip())]


def _written(before: str, names: Sequence[str]) -> str:
    return (f"{FLAG}=" if before.startswith(FLAG) else "") + ",".join(names)


def change(tool: ManagingTool, others: Sequence[str], *, off: bool) -> str:
    """Return the exact change by which Velero's schedule controller is off or on; `others` are off and stay so."""
    names = [*others, "schedule"] if off else list(others)
    if tool.is_oadp:
        values = f"[{', '.join(names)}]"
        return f"spec:\n  configuration:\n    velero:\n      args:\n        disabled-controllers: {values}"
    if tool.has_values:
        text = f'configuration:\n  disableControllers: "{",".join(names)}"'
        if not tool.source.startswith(HELM_RELEASE):
            return text
        return "spec:\n  values:\n" + "\n".join(f"    {line}" for line in text.splitlines())
    if not names:
        return f"remove the argument {FLAG}=schedule of the container"
    return f"let the container have the argument {FLAG}={','.join(names)}, and no other {FLAG}"


RESTART_TIME = timedelta(seconds=15)
_VELERO_LATENESS = timedelta(minutes=2)  # a run that is due for longer is blocked: it would not start now


def readable(raws: Iterable[msgspec.Raw]) -> list[ScheduleRow]:
    """Return the rows of the Schedules that can be read; the others never run."""
    rows = []
    for raw in raws:
        try:
            rows.append(schedule_row(msgspec.json.decode(raw, type=velero.Schedule)))
        except (msgspec.DecodeError, ValueError):
            continue
    return rows


def is_quiet(schedules: Iterable[ScheduleRow], zone: str, now: datetime) -> bool:
    """Tell whether no run is due now or within the time of a restart, by the cron expressions read in that zone."""
    return not any(_runs_soon(schedule, zone, now) for schedule in schedules)


def _runs_soon(row: ScheduleRow, zone: str, now: datetime) -> bool:
    verdict = judge(ScheduleView(row, (), None, VeleroServer(None), Settings(zone=zone)), now)
    if verdict.due_since is not None and now - verdict.due_since < _VELERO_LATENESS:
        return True
    return not row.paused and verdict.starts is not None and verdict.starts - now < RESTART_TIME


_UNFINISHED = velero.WAITING | velero.RUNNING  # those that wait in Velero's queue are never begun after a restart

_NAMED = 5  # a warning names so many
_TO_BE_QUIET = timedelta(seconds=90)
_TO_ROLL_OUT = timedelta(minutes=2)  # once Velero restarts, however long it took until then


class _Deployment(msgspec.Struct, frozen=True):
    metadata: ManagedMetadata
    spec: DeploymentSpec = DeploymentSpec()
    status: DeploymentStatus = DeploymentStatus()


class _Phase(msgspec.Struct, frozen=True):
    phase: str = ""


class _Work(msgspec.Struct, frozen=True):
    metadata: Metadata
    status: _Phase = _Phase()


@dataclass(frozen=True, slots=True)
class Server:
    """Velero's server, as its Deployment says."""

    key: Key
    container: Container
    account: str
    resource_version: str
    managed_by: ManagingTool | None
    is_rolled_out: bool

    @property
    def words(self) -> list[str]:
        """Its command line."""
        return server_words(self.container) or []

    @property
    def is_off(self) -> bool:
        """Whether it leaves Schedules alone."""
        return schedule_controller_is_off(self.words)

    @property
    def time_zone(self) -> str:
        """The time zone of its clock, as its environment says; what is no time zone is UTC to it."""
        text = next((variable.value for variable in self.container.env if variable.name == "TZ"), "")
        try:
            return validate_zone_name(text)
        except CronError:
            return "UTC"

    @property
    def others_off(self) -> list[str]:
        """The controllers that are off beside that of schedules."""
        return others_off(self.words)

    def switched(self, *, off: bool) -> dict[str, list[str]]:
        """Return the words of its container with the schedule controller off or on, as far as they change."""
        words = {"command": self.container.command, "args": self.container.args}
        if off:
            field = "command" if "server" in self.container.command else "args"  # flags come after that word
            return {field: switched_off(words[field])}
        after = {field: switched_on(arguments) for field, arguments in words.items()}
        return {field: arguments for field, arguments in after.items() if arguments != words[field]}


async def velero_server(cluster: Cluster, namespace: str) -> Server | None:
    """Return Velero's server in a namespace, or None if no Deployment there runs one."""
    deployments = [msgspec.json.decode(raw, type=_Deployment) for raw in await cluster.listed(DEPLOYMENT, namespace)]
    servers = [server for deployment in deployments if (server := _server(deployment)) is not None]
    if len(servers) > 1:
        names = ", ".join(str(server.key) for server in servers)
        raise CommandError(f"several Deployments run a Velero server: {names}", "keep only one in this namespace")
    return servers[0] if servers else None


async def hand_over(cluster: Cluster, server: Server, patience: Patience, *, off: bool, dry_run: bool) -> None:
    """Have Velero's schedule controller off or on while an operator leads; after a failure, have it as it was."""
    try:
        await switch(cluster, server, patience, off=off, dry_run=dry_run)
    except CommandError as error:
        if dry_run:
            raise
        raise await _undone(cluster, server, error) from error
    except asyncio.CancelledError:  # Ctrl-C; a second one ends this too
        if not dry_run and server.is_off != off:
            print((await _undone(cluster, server, CommandError("interrupted"))).problem, file=sys.stderr)
        raise


async def _undone(cluster: Cluster, before: Server, error: CommandError) -> CommandError:
    """Switch Velero's schedule controller back to what it was; return what to report."""
    who = "the operator runs" if before.is_off else "Velero runs"
    try:
        server = await velero_server(cluster, before.key.namespace)
    except CommandError as second:
        return with_problem(error, f"{_NOBODY}: {second.problem}", _CHECK)
    if server is not None and server.is_off == before.is_off:
        return with_problem(error, f"{who} the Schedules")
    is_led = bool(await leading(cluster, Key(before.key.namespace, SCHEDULES_LEASE)))
    if server is None or server.managed_by is not None or (before.is_off and not is_led):
        return with_problem(error, f"{_NOBODY} until its rollout has finished", _CHECK)
    try:
        await switch(cluster, server, Patience(now() + _TO_UNDO), off=before.is_off, dry_run=False)
    except CommandError as second:
        return with_problem(error, f"{_NOBODY}: {second.problem}", _CHECK)
    return with_problem(error, f"{who} the Schedules again")


def with_problem(error: CommandError, problem: str, hint: str = "") -> CommandError:
    """Return an error of the same exit code, with a second problem and what to do about it."""
    hints = "; ".join(text for text in (error.hint, hint) if text)
    return type(error)(f"{error.problem}; {problem}", hints or None)


async def switch(cluster: Cluster, server: Server, patience: Patience, *, off: bool, dry_run: bool) -> None:
    """Have Velero's schedule controller off or on; return when the server that runs is one that was started so."""
    word = "off" if off else "on"
    if server.is_off == off:
        print(f"unchanged   Deployment {server.key}: Velero's schedule controller is {word}")
    elif is_wrapped(server.container):
        problem = f"Deployment {server.key} starts Velero in a script of a shell, which this command does not edit"
        flag = "--disable-controllers=schedule"
        raise CommandError(problem, f"{'add' if off else 'remove'} {flag} there, then run this command again")
    elif server.managed_by is not None:
        await _ask(cluster, server, server.managed_by, patience, off=off, dry_run=dry_run)
    else:
        await _write(cluster, server, patience, off=off, dry_run=dry_run)
        print(f"changed     Deployment {server.key}: Velero's schedule controller is {word}", flush=True)
    if not dry_run:
        problem = f"Deployment {server.key}: its rollout has not finished"
        hint = f"kubectl rollout status deployment/{server.key.name} -n {server.key.namespace}; then try again"
        await patience.at_least(_TO_ROLL_OUT).wait(
            f"Deployment {server.key} is rolled out",
            lambda: _runs(cluster, server.key, off=off),
            CommandError(problem, hint),
        )


async def _ask(
    cluster: Cluster, server: Server, managed_by: ManagingTool, patience: Patience, *, off: bool, dry_run: bool
) -> None:
    """Report what has to be changed where, and wait for it: what we changed in the cluster would be undone."""
    word = "off" if off else "on"
    exact = change(managed_by, server.others_off, off=off)
    unfinished = await _unfinished(cluster, server.key.namespace)
    if unfinished:
        names = ", ".join(unfinished[:_NAMED]) + (" and more" if len(unfinished) > _NAMED else "")
        print(
            f"warning: the change restarts Velero, which would lose what has not ended: {names}; wait for them first:"
            f" kubectl get backups.velero.io,restores.velero.io -n {server.key.namespace}",
            file=sys.stderr,
        )
    print(
        f"Deployment {server.key} is managed by {managed_by}. "
        f"To switch Velero's schedule controller {word}, change it there:"
    )
    print("\n".join(f"    {line}" for line in exact.splitlines()), flush=True)
    if dry_run:
        return
    problem = f"Deployment {server.key}: {managed_by} has not switched Velero's schedule controller {word}"
    await patience.wait(
        f"{managed_by} has switched Velero's schedule controller {word}",
        _written_or_idle(cluster, server.key, off=off, is_idle=not unfinished),
        CommandError(problem, "make the change shown above, then try again; --timeout waits longer"),
    )
    print(f"changed     Deployment {server.key}: Velero's schedule controller is {word}", flush=True)


def _written_or_idle(cluster: Cluster, key: Key, *, off: bool, is_idle: bool) -> Callable[[], Awaitable[bool]]:
    """Return a check for the change, which also says once that nothing would be lost by it any more."""

    async def is_written() -> bool:
        nonlocal is_idle
        if not is_idle and await _is_idle(cluster, key.namespace):
            is_idle = True
            print("Every Backup and Restore has ended: make the change now.", file=sys.stderr, flush=True)
        return await _is_written(cluster, key, off=off)

    return is_written


async def _write(cluster: Cluster, server: Server, patience: Patience, *, off: bool, dry_run: bool) -> None:
    if not server.switched(off=off):
        problem = f"Deployment {server.key}: Velero runs with --restore-only, and so without its schedule controller"
        raise CommandError(problem, "remove --restore-only from its arguments")
    if not dry_run:
        await patience.wait(
            "every Backup and Restore has ended, because a restart of Velero would lose the others",
            lambda: _is_idle(cluster, server.key.namespace),
            CommandError(
                f"Deployment {server.key}: Backups or Restores have not ended, and a restart of Velero would lose them",
                f"wait for them: kubectl get backups.velero.io,restores.velero.io -n {server.key.namespace}",
            ),
        )
        await _wait_for_quiet(cluster, server, patience)
    latest = _server(await cluster.read(DEPLOYMENT, server.key, _Deployment)) or server
    container = {"name": latest.container.name, **latest.switched(off=off)}
    body = {
        "metadata": {"resourceVersion": latest.resource_version},
        "spec": {"template": {"spec": {"containers": [container]}}},
    }
    await cluster.merge_by_name(DEPLOYMENT, server.key, body, dry_run=dry_run)


async def _wait_for_quiet(cluster: Cluster, server: Server, patience: Patience) -> None:
    """Wait for a moment at which a restart loses no run that Velero just begins; where there is none, not for long."""
    namespace = server.key.namespace
    until = now() + _TO_BE_QUIET

    async def is_good() -> bool:
        schedules = readable(await cluster.listed(velero.SCHEDULE, namespace))
        instant = await cluster.server_time()
        return now() >= until or (is_quiet(schedules, server.time_zone, instant) and await _is_idle(cluster, namespace))

    never = CommandError("there is no such moment")
    try:
        await patience.wait("no Schedule is due for a moment", is_good, never)
    except CommandError as error:
        if error is not never:
            raise


async def _is_written(cluster: Cluster, key: Key, *, off: bool) -> bool:
    server = _server(await cluster.read(DEPLOYMENT, key, _Deployment))
    return server is not None and server.is_off == off


async def _runs(cluster: Cluster, key: Key, *, off: bool) -> bool:
    """Tell whether the server that runs was started so; off, the last one with the controller has ended as well."""
    server = _server(await cluster.read(DEPLOYMENT, key, _Deployment))
    if server is None or server.is_off != off or not server.is_rolled_out:
        return False
    pods = await cluster.listed(POD, key.namespace, SERVER_PODS) if off else []
    return scheduling_pod(pod_row(msgspec.json.decode(pod, type=StartedPod)) for pod in pods) is None


async def _is_idle(cluster: Cluster, namespace: str) -> bool:
    return not await _unfinished(cluster, namespace)


async def _unfinished(cluster: Cluster, namespace: str) -> list[str]:
    """Return the Backups and Restores that have not ended, each with its kind."""
    return [
        f"{kind.name} {work.metadata.name}"
        for kind in (velero.BACKUP, velero.RESTORE)
        for raw in await cluster.listed(kind, namespace)
        if (work := msgspec.json.decode(raw, type=_Work)).status.phase in _UNFINISHED
    ]


def _server(wire: _Deployment) -> Server | None:
    pod = wire.spec.template.spec
    meta = wire.metadata
    status = wire.status
    container = next((container for container in pod.containers if is_server(container)), None)
    if container is None:
        return None
    replicas = wire.spec.replicas
    return Server(
        key=Key(meta.namespace, meta.name),
        container=container,
        account=pod.service_account_name or "default",
        resource_version=meta.resource_version,
        managed_by=managing_tool(meta),
        is_rolled_out=status.observed_generation >= meta.generation
        and status.updated_replicas == status.replicas == replicas
        and status.available_replicas >= replicas,
    )
