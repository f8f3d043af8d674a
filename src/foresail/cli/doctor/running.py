"""Checks of what runs: Velero's server, its node agents and the operators, by their pods."""

from collections.abc import Iterator
from datetime import datetime, timedelta

from foresail.api.marks import PRIMERS_LEASE, SELF_SERVICE_LEASE
from foresail.api.pod_problems import ObservedPod
from foresail.cli.access.operators import OPERATOR_LABEL, Operator
from foresail.cli.doctor.evidence import Evidence
from foresail.cli.doctor.finding import Finding, good, minutes, problem, warning
from foresail.cli.doctor.workloads import Trouble, Workload, trouble
from foresail.plan import Key
from foresail.safety.velero_pods import (
    RUNS,
    ServerPods,
    VeleroState,
    last_validation,
    velero_state,
)
from foresail.schedules.velero_server import identify_server

_READY_WITHIN = timedelta(minutes=1)


def veleros(seen: Evidence) -> Iterator[Finding]:
    """Report which Velero runs, and why one does not."""
    if not seen.servers:
        says = f"no Deployment in namespace {seen.namespace} runs a Velero server"
        fix = "name the namespace with"
        if not seen.has_read_deployments:
            says = "not checked: you may not list Deployments"
            fix = "let an administrator run this, or check"
        yield problem("velero", says, f"{fix} --velero-namespace")
        return
    now = seen.server_time or seen.instant
    for row in seen.servers:
        work = _workload(seen, row.key)
        cause = _server_trouble(seen, work, now) if work is not None else None
        if work is not None and cause is not None:
            grade = warning if cause.is_mild else problem
            yield grade("velero", f"{work}: {cause.says}", cause.fix)
            if cause.is_down or not cause.is_mild:
                return
    yield _version(seen)


def _version(seen: Evidence) -> Finding:
    known = identify_server(seen.servers, "", None)
    if known.dialect is None:
        return warning(
            "velero",
            f"its image tag ({seen.servers[0].tag or 'none'}) is not a version",
            "the operator asks Velero itself; if that fails, set --velero-dialect of the operator",
        )
    work = _workload(seen, seen.servers[0].key)
    outside = " outside its Deployment, which has 0 replicas" if work is not None and not work.desired else ""
    return good("velero", f"{known.version}, which reads schedules as {known.dialect.value}{outside}")


def _server_trouble(seen: Evidence, work: Workload, now: datetime) -> Trouble | None:
    if work.desired:
        return trouble(work, now)
    state = server_state(seen, now)
    if state == RUNS:
        return None
    if state.unknown:
        says = "it has 0 replicas, and it is unknown whether a server runs outside it"
        return Trouble(says, "run this again in two minutes", is_down=True, is_mild=True)
    return trouble(work, now)


def server_state(seen: Evidence, now: datetime) -> VeleroState:
    """Return whether a Velero server runs, by the rule of coverage; pods tell sooner than their Deployment."""
    works = [work for row in seen.servers if (work := _workload(seen, row.key)) is not None]
    pods = [
        ServerPods(work.key.name, work.desired, work.ready, work.is_processed, work.created, work.scaled)
        for work in works
    ]
    return velero_state(pods, last_validation(seen.locations, seen.validates_every), now)


def pods(seen: Evidence) -> Iterator[Finding]:
    """Report the operators and node agents whose pods do not run, and why."""
    now = seen.server_time or seen.instant
    servers = {row.key for row in seen.servers}
    ready: list[Workload] = []
    for work in seen.workloads:
        cause = trouble(work, now)
        if cause is None:
            ready += [work] * bool(work.desired)
        elif work.key in servers and work.kind == "Deployment":
            continue  # finding velero
        elif not any(_is_stale(pod, now) for pod in work.pods):  # finding stores
            yield _pods_finding(seen, work, cause)
    if ready and len(ready) == len(seen.workloads):
        yield good("pods", f"all are ready: {', '.join(f'{work.ready} of {work.key.name}' for work in ready)}")


def _pods_finding(seen: Evidence, work: Workload, cause: Trouble) -> Finding:
    leader = next((_holder(seen, operator) for operator in seen.operators if operator.key == work.key), "")
    if leader and leader not in {pod.metadata.name for pod in work.pods}:
        return warning("pods", f"{work}: {cause.says}; {leader} works in its place", cause.fix)
    return (warning if cause.is_mild else problem)("pods", f"{work}: {cause.says}", cause.fix)


def why_down(seen: Evidence, operator: Operator) -> str:
    """Return why no replica of an operator works, as the end of a sentence; empty if its pods do not tell."""
    work = _workload(seen, operator.key)
    cause = trouble(work, seen.server_time or seen.instant) if work is not None else None
    return f" ({cause.says})" if cause is not None else ""


def without_leader(seen: Evidence, operator: Operator, about: str, so: str) -> Finding:
    """Return that no replica of an operator works, why, and what follows."""
    key = operator.key
    fix = f"kubectl describe pods -n {key.namespace} -l {OPERATOR_LABEL}={key.name}"
    says = f"Deployment {key}: no replica holds the Lease{why_down(seen, operator)}, so {so}"
    return problem(about, says, fix)


def stores(seen: Evidence) -> Iterator[Finding]:
    """Report the replicas that are not ready: they lack a kind, or have had no news of one for five minutes."""
    now = seen.server_time or seen.instant
    ours = {operator.key for operator in seen.operators}
    for pod in (observed_pod for work in seen.workloads if work.key in ours for observed_pod in work.pods):
        if _is_stale(pod, now):
            name = pod.metadata.name
            namespace = pod.metadata.namespace
            yield problem(
                "stores",
                f"Pod {namespace}/{name} has not been ready for {minutes(_unready_for(pod, now))}: it has not read a"
                " kind, or its data of one is stale",
                f"kubectl logs -n {namespace} {name} | grep 'cannot watch' names the kind and the cause",
            )


def _is_stale(pod: ObservedPod, now: datetime) -> bool:
    """Return whether a pod runs, and has not been ready for a while."""
    is_running = pod.status.phase == "Running" and all(
        status.state.running is not None for status in pod.status.container_statuses or ()
    )
    return is_running and not pod.is_ready and _unready_for(pod, now) > _READY_WITHIN


def _unready_for(pod: ObservedPod, now: datetime) -> timedelta:
    ready = next((condition for condition in pod.status.conditions or () if condition.type == "Ready"), None)
    return now - ((ready.last_transition_time if ready is not None else None) or now)


def _holder(seen: Evidence, operator: Operator) -> str:
    return seen.holder(seen.leases.get(operator.lease))


def _workload(seen: Evidence, key: Key) -> Workload | None:
    return next(
        (workload for workload in seen.workloads if workload.key == key and workload.kind == "Deployment"), None
    )


def served(seen: Evidence) -> Iterator[Finding]:
    """Report whether the operator of self-service runs, if it should."""
    does, lacks = "serves the requests of teams", "no request of a team is served"
    yield from _led(seen, SELF_SERVICE_LEASE, seen.holder(seen.self_service_lease), "self-service", does, lacks)


def primed(seen: Evidence) -> Iterator[Finding]:
    """Report whether the operator of primers runs, if it should."""
    does, lacks = "holds capacity for them", "no capacity is held for CronJobs"
    yield from _led(seen, PRIMERS_LEASE, seen.holder(seen.primers_lease), "primers", does, lacks)


def _led(seen: Evidence, lease: str, holder: str, about: str, does: str, lacks: str) -> Iterator[Finding]:
    """Report what the leader of an operator does, or what is missing without one; nothing if it is not installed."""
    apart = next((operator for operator in seen.operators if operator.lease == lease), None)
    if apart is not None:
        yield good(about, f"{holder} {does}") if holder else without_leader(seen, apart, about, lacks)


def log_command(seen: Evidence) -> str:
    """Return the command that shows the log of Velero's server."""
    return f"kubectl logs deployment/{server_name(seen)} -n {seen.namespace}"


def server_name(seen: Evidence) -> str:
    """Return the name of the Deployment with Velero's server."""
    return seen.servers[0].key.name if seen.servers else "velero"
