"""Reads whether Velero and Foresail run, by the rules of coverage."""

import argparse
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.api.marks import SCHEDULES_LEASE, SELF_SERVICE_LEASE
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.operators import OPERATOR_LABEL, is_operator
from foresail.cli.coverage.facts import SharedFacts, read_facts
from foresail.cli.doctor.health import ABSENT, DOWN, UNKNOWN, UP, Health, SystemHealth
from foresail.cli.errors import CommandError, UnauthorizedError, UnreachableError
from foresail.cli.schedule.snapshot import Controllers, read_controllers
from foresail.safety.velero_pods import VeleroState, last_validation, server_pods, validates_every, velero_state


async def read_health(
    cluster: Cluster, velero_namespace: str, now: datetime, *, is_administrator: bool
) -> SystemHealth:
    """Read it from the pods and Leases, or for teams from what the operator publishes."""
    try:
        if not is_administrator:
            return health_for_teams(await read_facts(cluster, velero_namespace, now))
        controllers = await read_controllers(cluster, velero_namespace, argparse.Namespace(), now)
        listed = await cluster.listed(velero.LOCATION, velero_namespace)
    except (UnauthorizedError, UnreachableError):
        raise
    except CommandError as error:
        return SystemHealth(Health(UNKNOWN, error.problem), Health(UNKNOWN, error.problem))
    locations = [msgspec.json.decode(raw, type=velero.Location) for raw in listed]
    validation = last_validation(locations, validates_every(controllers.deployments))
    server_time = now - (cluster.client.skew or timedelta())
    state = velero_state(server_pods(controllers.deployments), validation, server_time)
    return SystemHealth(velero_health(state, controllers), foresail_health(controllers))


def velero_health(state: VeleroState, controllers: Controllers) -> Health:
    """Return whether a Velero server runs, with its version."""
    if state.problem:
        return Health(DOWN, state.problem)
    return Health(UNKNOWN, state.unknown) if state.unknown else Health(UP, controllers.server.version)


def foresail_health(controllers: Controllers) -> Health:
    """Return whether replicas of Foresail hold the Lease of each that is installed; what is not is no failure."""
    installed = {(deployment.metadata.labels or {}).get(OPERATOR_LABEL) for deployment in controllers.deployments}
    holders = {SCHEDULES_LEASE: controllers.operator, SELF_SERVICE_LEASE: controllers.self_service}
    absent = [lease for lease, holder in holders.items() if lease in installed and not holder]
    if absent:
        return Health(DOWN, f"no replica holds the Lease {' or '.join(absent)}")
    if controllers.self_service and not controllers.operator and not controllers.server.runs_schedules:
        return Health(DOWN, "nothing runs Schedules: Velero's controller is off, and no replica holds the Lease")
    if any(holders.values()):
        return Health(UP)
    if any(map(is_operator, controllers.deployments)):
        return Health(DOWN, "no replica holds the Lease of schedules or self-service")
    return Health(ABSENT, "no Deployment of it is in Velero's namespace, and nobody holds its Leases")


def health_for_teams(shared: SharedFacts) -> SystemHealth:
    """Return the same from what the operator publishes."""
    unknown = Health(UNKNOWN, "; ".join(shared.unknown))
    if shared.nobody_runs:
        return SystemHealth(unknown, Health(DOWN, shared.nobody_runs))
    if shared.facts is None:
        return SystemHealth(unknown, unknown)
    problem = shared.facts.velero_problem
    state = Health(DOWN, problem) if problem else Health(UP)
    return SystemHealth(unknown if shared.facts.velero_unknown else state, Health(UP))
