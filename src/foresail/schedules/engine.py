"""Which Velero is beside us: its version, so its cron dialect, and whether its own schedule controller is on.

Velero itself is asked by a ServerStatusRequest, once for each change of its Deployment; it answers within seconds
and deletes the request a minute later. Where it does not answer, the tag of its image tells; where that tells
nothing, a flag of the operator.
"""

import re
from collections.abc import Iterable
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.apps import Container, Deployment
from foresail.cron import Dialect
from foresail.plan import Create, Key, Keyed, Plan
from foresail.schedules.observe import Engine

ASK_AGAIN = timedelta(days=1)
"""How often Velero is asked where it has no Deployment that could be watched."""

REQUESTS = "foresail-"
"""How the names of our requests begin."""

_ASKS = "foresail.dev/asks-about"
_FIRST_GO_CRON = (1, 18, 3)
_VERSION = re.compile(r"v?([0-9]{1,9})\.([0-9]{1,9})\.([0-9]{1,9})(?:[-+.].*)?")
_OFF = "--disable-controllers"
_NO_BACKUPS = "--restore-only"
_CONCURRENCY = "--concurrent-backups"
_DIGITS = 5  # a number with as many digits is no sensible concurrency
_TRUE = ("1", "t", "T", "true", "True", "TRUE")  # as Go reads a flag


class DeploymentRow(Keyed, frozen=True):
    """A Deployment that runs a Velero server."""

    uid: str
    generation: int
    tag: str
    schedules_itself: bool
    is_rolled_out: bool
    concurrency: int = 1  # how many Backups it runs at a time


class Question(msgspec.Struct, frozen=True):
    """What the answer is about: this state of the Deployment, or the Velero of this day."""

    about: str
    asked: datetime


class EngineSeen(msgspec.Struct, frozen=True):
    """What a decision about asking depends on, but the time."""

    namespace: str
    servers: tuple[DeploymentRow, ...]
    before: Question | None  # what was asked last
    requests: frozenset[str]  # the names of those that stand or were answered


def deployment_row(wire: Deployment) -> DeploymentRow | None:
    """Return what is kept of a Deployment; None if it runs no Velero server."""
    server = next((each for each in wire.spec.template.spec.containers if is_server(each)), None)
    if server is None:
        return None
    meta, status = wire.metadata, wire.status
    return DeploymentRow(
        key=Key(meta.namespace, meta.name),
        uid=meta.uid,
        generation=meta.generation,
        tag=server.image.rpartition("/")[2].partition("@")[0].partition(":")[2],
        schedules_itself=not schedule_controller_is_off([*server.command, *server.args]),
        is_rolled_out=status.observed_generation >= meta.generation and status.updated_replicas == status.replicas,
        concurrency=concurrent_backups([*server.command, *server.args]),
    )


def concurrent_backups(arguments: Iterable[str]) -> int:
    """Return how many Backups a Velero server that is started like this runs at a time."""
    found, is_next = "", False
    for argument in arguments:
        name, _, value = argument.partition("=")
        if is_next:
            found = argument
        elif name == _CONCURRENCY:
            found = value or found
        is_next = argument == _CONCURRENCY
    return max(int(found), 1) if found.isdecimal() and len(found) < _DIGITS else 1


def schedule_controller_is_off(arguments: Iterable[str]) -> bool:
    """Tell whether a Velero server that is started like this leaves Schedules alone."""
    is_list = False
    for argument in arguments:
        name, _, value = argument.partition("=")
        if argument == _NO_BACKUPS or (name == _NO_BACKUPS and value in _TRUE):
            return True
        listed = argument if is_list else value if name == _OFF else ""
        if "schedule" in [each.strip() for each in listed.split(",")]:
            return True
        is_list = argument == _OFF
    return False


def dialect_of(version: str) -> Dialect | None:
    """Return the cron dialect of a version of Velero; None if the text is no version."""
    found = _VERSION.fullmatch(version)
    if found is None:
        return None
    numbers = (int(found[1]), int(found[2]), int(found[3]))
    return Dialect.GOCRON if numbers >= _FIRST_GO_CRON else Dialect.ROBFIG


def engine(
    deployments: Iterable[DeploymentRow], answer: str, flag: Dialect | None, asked: datetime | None = None
) -> Engine:
    """Put together what is known: the answer counts before the image's tag, and that before the flag."""
    rows = list(deployments)
    schedules_itself = any(row.schedules_itself for row in rows)
    for version in (answer, *(row.tag for row in rows)):
        dialect = dialect_of(version)
        if dialect is not None:
            return Engine(dialect, version, schedules_itself)
    return Engine(flag, "", schedules_itself, None if answer else asked)


def question(deployments: Iterable[DeploymentRow], before: Question | None, now: datetime) -> Question | None:
    """Return what there is to be asked: the same as before unless something has changed."""
    rows = sorted(deployments, key=lambda row: row.key)
    if rows:
        if not all(row.is_rolled_out for row in rows):
            return None
        about = "-".join(f"{row.uid[:8]}-{row.generation}" for row in rows)
    elif before is not None and now - before.asked < ASK_AGAIN:
        return before
    else:
        about = f"{now:%Y%m%d}"
    return before if before is not None and before.about == about else Question(about, now)


def request_name(asked: Question) -> str:
    """Return the name of the request, the same after a restart."""
    return f"{REQUESTS}{asked.about}"


def decide_question(seen: EngineSeen, now: datetime) -> Plan:
    """Say what to ask Velero, if anything, and how: nothing while a new one is rolled out, for the old might answer."""
    asked = question(seen.servers, seen.before, now)
    if asked is None:
        return Plan()
    again = now + ASK_AGAIN - (now - asked.asked) % ASK_AGAIN  # after now, however old the question is
    name = request_name(asked)
    if name in seen.requests:
        return Plan(wake_at=again, verdict=asked)
    create = Create(velero.STATUS_REQUEST, Key(seen.namespace, name), {"spec": {}}, {_ASKS: asked.about})
    return Plan((create,), wake_at=again, verdict=asked)


def is_server(container: Container) -> bool:
    """Tell whether a container runs a Velero server."""
    words = [*container.command, *container.args]
    is_velero = "velero" in container.image.rpartition("/")[2] or any(each.endswith("/velero") for each in words)
    return is_velero and "server" in words
