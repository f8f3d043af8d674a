"""Whether a Velero server and its node agents run: the one rule for all who ask, from coverage to the doctor.

A Deployment with a ready pod runs; a rolling update keeps one. Without a Deployment that wants pods, a server may work
outside of it: Velero validates storage locations all the time. Where that proves too little, the answer is unknown.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta

from foresail.api import velero
from foresail.api.apps import DaemonSet, Deployment, is_node_agent, is_server, server_words
from foresail.cron.duration import length_of
from foresail.scope.server import flag_value

VALIDATES_EVERY = timedelta(minutes=1)
"""How often Velero validates its locations, unless a flag of the server or the location says otherwise."""

_VALIDATION = "--store-validation-frequency"
_SLACK = timedelta(minutes=1)
_FRESH = timedelta(minutes=5)
"""No older validation proves that a server runs now, and no clock is further ahead than this."""

ENDS_WITHIN = timedelta(seconds=10)
"""How long a pod that is scaled away may still validate locations."""


@dataclass(frozen=True, slots=True)
class VeleroState:
    """Whether a Velero server runs: neither a problem nor a doubt means that it does."""

    problem: str = ""
    unknown: str = ""


RUNS = VeleroState()


@dataclass(frozen=True, slots=True)
class ServerPods:
    """The pods of a Deployment with a Velero server, and what tells when it got none."""

    name: str
    desired: int
    ready: int
    is_processed: bool = True
    """Whether its controller has seen its last change."""

    created: datetime | None = None
    scaled: datetime | None = None
    """When somebody last set the replicas, if the API server tells."""


@dataclass(frozen=True, slots=True)
class Validation:
    """When Velero last validated a location, and how often it does."""

    at: datetime
    every: timedelta

    def missed_for(self, now: datetime) -> timedelta | None:
        """Return for how long Velero has validated no more, if a server that works would have done so again."""
        age = now - self.at
        return age if age > 2 * self.every + _SLACK else None


def server_pods(deployments: Iterable[Deployment]) -> list[ServerPods]:
    """Return the pods of the Deployments that have a Velero server."""
    return [
        ServerPods(
            deployment.metadata.name,
            deployment.spec.replicas,
            deployment.status.ready_replicas,
            deployment.status.observed_generation >= deployment.metadata.generation,
            deployment.metadata.creation_timestamp,
            deployment.metadata.scaled,
        )
        for deployment in deployments
        if any(map(is_server, deployment.spec.template.spec.containers))
    ]


def validates_every(deployments: Iterable[Deployment]) -> timedelta:
    """Return how often Velero validates a location that does not say it itself; zero if never."""
    containers = (container for deployment in deployments for container in deployment.spec.template.spec.containers)
    words = next(filter(None, map(server_words, containers)), [])
    every = length_of(flag_value(words, _VALIDATION))
    return VALIDATES_EVERY if every is None else every


def validation_of(location: velero.Location, default: timedelta) -> Validation | None:
    """Return the last validation of a location; None if there was none, or Velero never validates it."""
    at = location.status.last_validation_time
    own = location.spec.validation_frequency
    every = length_of(own) if own else None
    if every is None:
        every = default
    return Validation(at, every) if at is not None and every else None


def last_validation(locations: Iterable[velero.Location], default: timedelta) -> Validation | None:
    """Return the last validation of any location; None if Velero has validated none, or never does."""
    validations = (validation_of(location, default) for location in locations)
    return max(filter(None, validations), key=lambda validation: validation.at, default=None)


def velero_state(servers: Sequence[ServerPods], validation: Validation | None, now: datetime) -> VeleroState:
    """Return why no Velero server runs, or that this is unknown."""
    if any(server.ready for server in servers):
        return RUNS
    desired = sum(server.desired for server in servers)
    if desired:
        names = ", ".join(server.name for server in servers)
        return VeleroState(f"0 of {desired} pods of Velero's Deployment {names} are ready")
    if servers:
        return _outside(servers, validation, now)
    if validation is not None and _is_timely(validation, now) and _is_fresh(validation, now):
        return RUNS
    text = "whether Velero runs: no Deployment has its server, and no storage location was validated lately"
    return VeleroState(unknown=text)


def _outside(servers: Sequence[ServerPods], validation: Validation | None, now: datetime) -> VeleroState:
    """Return whether a server works outside of Deployments with 0 replicas: it validates after they were scaled."""
    down = VeleroState(f"Velero's Deployment {servers[0].name} is scaled to 0 pods")
    unknown = VeleroState(
        unknown=f"whether Velero runs: its Deployment {servers[0].name} has 0 replicas, and no validation of a storage"
        " location proves yet that a server works outside of it"
    )
    if validation is None or not _is_timely(validation, now):
        return down
    answers = [_has_validated_since(server, validation) for server in servers]
    if False in answers:
        return down
    return RUNS if all(answers) and _is_fresh(validation, now) else unknown


def _has_validated_since(server: ServerPods, validation: Validation) -> bool | None:
    """Whether a validation is by another server than the one that was scaled away; None if that is unknown."""
    if server.scaled is None:
        return None
    if validation.at > server.scaled + ENDS_WITHIN:
        return True if server.is_processed else None
    was_created_so = server.created is not None and server.scaled - server.created < ENDS_WITHIN
    return None if was_created_so else False


def _is_timely(validation: Validation, now: datetime) -> bool:
    """Whether the next validation is not overdue, as far as the clocks agree."""
    return validation.at - now <= _FRESH and validation.missed_for(now) is None


def _is_fresh(validation: Validation, now: datetime) -> bool:
    return now - validation.at <= _FRESH


def agents_problem(sets: Iterable[DaemonSet]) -> str:
    """Return why no node agent works: then no run copies files or moves snapshots.

    Empty if one works, because another node's may be the one that is needed.
    """
    agents = [daemon_set for daemon_set in sets if is_node_agent(daemon_set)]
    if not agents:
        return "no DaemonSet runs Velero's node agent"
    if any(agent.status.number_ready for agent in agents):
        return ""
    desired = sum(agent.status.desired_number_scheduled for agent in agents)
    names = ", ".join(agent.metadata.name for agent in agents)
    return f"0 of {desired} pods of Velero's node agent, DaemonSet {names}, are ready"
