"""The Velero server: its version, the cron dialect that follows, and whether its schedule controller is on.

The Deployment tells how the next server starts; the pods tell how those were started that have not ended.

The operator creates a ServerStatusRequest for each change of the Deployment. Velero answers within seconds and
deletes the request a minute later. Without an answer the image tag counts, and then a flag of the operator.
"""

import re
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.apps import Container, Deployment, PodSpec, StartedPod, server_words
from foresail.cron import Dialect
from foresail.cron.duration import length_of
from foresail.plan import Claim, Create, Key, Keyed, Plan
from foresail.schedules.observe import VeleroServer
from foresail.scope.server import flag_value

REQUEST_INTERVAL = timedelta(days=1)
"""How often the version is requested where no Deployment of Velero can be watched."""

REQUESTS = "foresail-"
"""The prefix of the names of our requests."""

SERVER_PODS = "role!=node-agent,name!=node-agent"
"""Selects the pods in Velero's namespace, but the node agents: those are as many as nodes."""

_ENDED = ("Succeeded", "Failed")
ABOUT = "foresail.dev/asks-about"
_FIRST_GO_CRON = (1, 18, 3)
_VERSION = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:[-+.].*)?")
_OFF = "--disable-controllers"
_NO_BACKUPS = "--restore-only"
_CONCURRENCY = "--concurrent-backups"
_DEFAULT_TTL = "--default-backup-ttl"
_VELEROS_TTL = "720h"
_DIGITS = 5  # a number with as many digits is no sensible concurrency
_TRUE = ("1", "t", "T", "true", "True", "TRUE")  # as Go reads a flag


class DeploymentRow(Keyed, frozen=True):
    """A Deployment that runs a Velero server."""

    uid: str
    generation: int
    tag: str
    has_schedule_controller: bool
    is_rolled_out: bool
    concurrency: int = 1  # how many Backups it runs at a time
    default_ttl: timedelta | None = None  # of a Backup that names none; None if it cannot be read


class PodRow(Keyed, frozen=True):
    """A pod of a Velero server that has not ended."""

    has_schedule_controller: bool


class VersionRequest(Claim, msgspec.Struct, frozen=True):
    """A request for the version of this state of the Deployment, or of this day."""

    about: str
    requested: datetime


class VeleroView(msgspec.Struct, frozen=True):
    """Everything that a decision about a version request depends on, except the time."""

    namespace: str
    servers: tuple[DeploymentRow, ...]
    before: VersionRequest | None  # the last request
    requests: frozenset[str]  # names of requests that exist or were answered


def deployment_row(wire: Deployment) -> DeploymentRow | None:
    """Return the row of a Deployment; None if it runs no Velero server."""
    server, words = _server_of(wire.spec.template.spec)
    if server is None:
        return None
    meta = wire.metadata
    status = wire.status
    return DeploymentRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        generation=meta.generation,
        tag=server.image.rpartition("/")[2].partition("@")[0].partition(":")[2],
        has_schedule_controller=not schedule_controller_is_off(words),
        is_rolled_out=status.observed_generation >= meta.generation and status.updated_replicas == status.replicas,
        concurrency=concurrent_backups(words),
        default_ttl=length_of(flag_value(words, _DEFAULT_TTL) or _VELEROS_TTL),
    )


def pod_row(wire: StartedPod) -> PodRow | None:
    """Return the row of a pod; None if it runs no Velero server, or has ended."""
    server, words = _server_of(wire.spec)
    if server is None or wire.status.phase in _ENDED:
        return None
    is_on = not schedule_controller_is_off(words)
    return PodRow(Key(wire.metadata.namespace, wire.metadata.name), has_schedule_controller=is_on)


def _server_of(pod: PodSpec) -> tuple[Container | None, list[str]]:
    """Return the container that runs a Velero server, and its command line."""
    started = ((container, server_words(container)) for container in pod.containers)
    return next(((container, words) for container, words in started if words is not None), (None, []))


def scheduling_pod(pods: Iterable[PodRow | None]) -> Key | None:
    """Return a pod whose schedule controller is on; an old one may work until it has ended, whatever replaces it."""
    return min((row.key for row in pods if row is not None and row.has_schedule_controller), default=None)


def concurrent_backups(arguments: Sequence[str]) -> int:
    """Return how many Backups a Velero server that is started like this runs at a time."""
    text = flag_value(arguments, _CONCURRENCY)
    return max(int(text), 1) if text.isdecimal() and len(text) < _DIGITS else 1


def schedule_controller_is_off(arguments: Iterable[str]) -> bool:
    """Return whether a Velero server that is started like this leaves Schedules alone."""
    is_list = False
    for argument in arguments:
        name, _, value = argument.partition("=")
        if argument == _NO_BACKUPS or (name == _NO_BACKUPS and value in _TRUE):
            return True
        in_one_word = value if name == _OFF else ""
        listed = argument if is_list else in_one_word
        if "schedule" in [controller.strip() for controller in listed.split(",")]:
            return True
        is_list = argument == _OFF
    return False


def dialect_of(version: str) -> Dialect | None:
    """Return the cron dialect of a version of Velero; None if the text is no version."""
    match = _VERSION.fullmatch(version)
    if match is None:
        return None
    numbers = (int(match[1]), int(match[2]), int(match[3]))
    return Dialect.GOCRON if numbers >= _FIRST_GO_CRON else Dialect.ROBFIG


def identify_server(
    deployments: Iterable[DeploymentRow],
    answer: str,
    flag: Dialect | None,
    version_requested: datetime | None = None,
    pods: Iterable[PodRow | None] = (),
) -> VeleroServer:
    """Return what is known of the server: the answer counts before the image tag, and the tag before the flag."""
    rows = list(deployments)
    running = [row for row in pods if row is not None]
    known = VeleroServer(
        flag,
        has_schedule_controller=any(row.has_schedule_controller for row in rows),
        scheduling_pod=scheduling_pod(running),
        is_recognised=bool(rows or running),
        default_ttl=min((row.default_ttl for row in rows if row.default_ttl is not None), default=None),
    )
    for version in (answer, *(row.tag for row in rows)):
        dialect = dialect_of(version)
        if dialect is not None:
            return msgspec.structs.replace(known, dialect=dialect, version=version)
    return msgspec.structs.replace(known, version_requested=None if answer else version_requested)


def version_request(
    deployments: Iterable[DeploymentRow], before: VersionRequest | None, now: datetime
) -> VersionRequest | None:
    """Return the request to make: the last one unless the Deployment or the day has changed."""
    rows = sorted(deployments, key=lambda row: row.key)
    if rows:
        if not all(row.is_rolled_out for row in rows):
            return None
        about = "-".join(f"{row.uid[:8]}-{row.generation}" for row in rows)
    elif before is not None and now - before.requested < REQUEST_INTERVAL:
        return before
    else:
        about = f"{now:%Y%m%d}"
    return before if before is not None and before.about == about else VersionRequest(about, now)


def request_name(request: VersionRequest) -> str:
    """Return the name of the request, the same after a restart."""
    return f"{REQUESTS}{request.about}"


def decide_version_request(view: VeleroView, now: datetime) -> Plan:
    """Decide whether to request the version; not during a rollout, because the old server might answer."""
    request = version_request(view.servers, view.before, now)
    if request is None:
        return Plan()
    again = (
        now + REQUEST_INTERVAL - (now - request.requested) % REQUEST_INTERVAL
    )  # after now, however old the request is
    name = request_name(request)
    if name in view.requests:
        return Plan(wake_at=again, claims=(request,))
    create = Create(velero.STATUS_REQUEST, Key(view.namespace, name), {"spec": {}}, {ABOUT: request.about})
    return Plan((create,), wake_at=again, claims=(request,))
