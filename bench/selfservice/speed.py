"""Many requests at once: how long until all are Created, in how many writes, beside the bare limit, and who waits."""

import subprocess
import sys
import time
from collections.abc import Hashable, Iterable
from statistics import median

import msgspec

from bench import MeasurementError
from bench.arrivals import Arrivals, Event
from bench.figures import beside_bare
from bench.operator import NAMESPACE, SELF_SERVICE_USER, Operator, operator
from bench.processes import cpu_seconds
from bench.selfservice.world import FLAGS, TENANTS, create_namespaces, request, requests, tenant, world
from bench.silence import heard, is_write
from bench.writing import create_all
from foresail.api import velero
from foresail.api.marks import SELF_SERVICE_LEASE
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.kube.clock import now
from testbed import Cluster
from testbed.audit import Request
from testbed.control_plane import APISERVER, ETCD

BEGUN = "the first write"
_LONGEST = 900.0
_NEIGHBOURS = 5
_OURS = (f"{NON_ADMIN_BACKUP.plural}.{NON_ADMIN_BACKUP.group}", f"{velero.BACKUP.plural}.{velero.BACKUP.group}")


class _Reference(msgspec.Struct):
    nacuuid: str = ""


class _Status(msgspec.Struct, rename="camel"):
    phase: str = ""
    velero_backup: _Reference = msgspec.field(default_factory=_Reference)


_status = msgspec.json.Decoder(_Status)


def when_created(event: Event) -> Hashable | None:
    """Note each request when it is Created, and once the first write of all."""
    phase = _status.decode(event.object.status).phase
    return event.object.metadata.name if phase == "Created" else BEGUN if phase else None


def arrivals_of_requests(cluster: Cluster) -> Arrivals:
    """Return a stopwatch at requests that become Created."""
    return Arrivals(cluster, NON_ADMIN_BACKUP, note=when_created)


def writes_per_request(asked: Iterable[Request], count: int) -> tuple[float, float]:
    """Return the writes of requests and of Velero Backups, and those of Events, for each of so many requests."""
    writes = [each.resource.partition("/")[0] for each in asked if is_write(each)]
    ours = sum(resource in _OURS for resource in writes)
    events = sum(resource == "events.events.k8s.io" for resource in writes)
    return round(ours / count, 3), round(events / count, 3)


def at_once(cluster: Cluster, count: int) -> float:
    """Create so many requests at once; return the seconds from the first to the last that is seen Created."""
    with arrivals_of_requests(cluster) as arrivals:
        begun = now()
        create_all(cluster, NON_ADMIN_BACKUP, requests(count))
        written = (now() - begun).total_seconds()
        arrivals.wait(count + 1, _LONGEST)
        seconds = arrivals.lags(begun)[-1]
    print(f"{count} requests in {written:.2f} s, all Created after {seconds:.2f} s", flush=True)
    return seconds


def created(count: int) -> dict[str, object]:
    """Measure requests that all come at once to an operator that waits for them."""
    with world(audit=True) as cluster:
        create_namespaces(cluster, map(tenant, range(TENANTS)))
        with operator(cluster, *FLAGS, settled="selfservice") as process:
            before = _cpu_seconds(cluster, process)
            seconds = at_once(cluster, count)
            after = _cpu_seconds(cluster, process)
            time.sleep(5)
            asked = heard(cluster, SELF_SERVICE_USER)
            writes, events = writes_per_request(asked, count)
    return {
        "requests": count,
        "all_created_s": round(seconds, 2),
        "writes_per_nab": writes,
        "events_per_nab": events,
        "pod_lists_per_nab": round(sum(each.resource == "pods" for each in asked) / count, 3),
        "created_cpu_s": {name: round(used - before[name], 2) for name, used in after.items()},
    }


def _cpu_seconds(cluster: Cluster, process: Operator) -> dict[str, float]:
    """Return the processor time that each of those has used that share the work."""
    found = cluster.status()
    return {name: cpu_seconds(found[name][0]) for name in (APISERVER, ETCD)} | {"operator": process.cpu_seconds}


def throughput(count: int, rounds: int) -> dict[str, object]:
    """Let a bare loop and the operator take turns over as many requests, each time on a new cluster."""
    bare, ours = [], []
    for _ in range(rounds):
        bare.append(count / _bare(count))
        ours.append(count / _operator(count))
    return {"throughput_requests": count, **beside_bare(ours, bare)}


def _bare(count: int) -> float:
    with world() as cluster:
        _prepare(cluster, count)
        kubeconfig = cluster.service_account_kubeconfig(NAMESPACE, SELF_SERVICE_LEASE)
        command = [sys.executable, "-m", "bench.selfservice.bare", str(kubeconfig)]
        with arrivals_of_requests(cluster) as arrivals:
            subprocess.run(command, check=True)
            arrivals.wait(count + 1, 60)
            seconds = _span(arrivals)
    print(f"bare: {count} requests in {seconds:.2f} s", flush=True)
    return seconds


def _operator(count: int) -> float:
    with world() as cluster:
        _prepare(cluster, count)
        with arrivals_of_requests(cluster) as arrivals, operator(cluster, *FLAGS) as process:
            arrivals.wait(count + 1, _LONGEST)
            seconds, used = _span(arrivals), process.cpu_seconds
    print(f"operator: {count} requests in {seconds:.2f} s, {used:.2f} s of CPU", flush=True)
    return seconds


def _prepare(cluster: Cluster, count: int) -> None:
    create_namespaces(cluster, map(tenant, range(TENANTS)))
    create_all(cluster, NON_ADMIN_BACKUP, requests(count))


def _span(arrivals: Arrivals) -> float:
    return arrivals.lags(arrivals.seen[BEGUN])[-1]


def neighbour(count: int) -> dict[str, object]:
    """Measure by how much one tenant's many requests, most of them waiting, delay the first one of others."""
    names = [f"neighbour-{number}" for number in range(_NEIGHBOURS)]
    with world() as cluster:
        create_namespaces(cluster, ("crowd", "alone", *names))
        with operator(cluster, *FLAGS, settled="selfservice"), arrivals_of_requests(cluster) as arrivals:
            alone = [one(cluster, arrivals, "alone", f"alone-{number}") for number in range(_NEIGHBOURS)]
            create_all(cluster, NON_ADMIN_BACKUP, (request("crowd", f"crowd-{number:05}") for number in range(count)))
            beside = [one(cluster, arrivals, name, name) for name in names]
            waiting = count + 2 * _NEIGHBOURS + 1 - len(arrivals.seen)
            arrivals.wait(count + 2 * _NEIGHBOURS + 1, _LONGEST)
    if not waiting:
        raise MeasurementError("the crowd was served before its neighbours came: nobody could have delayed them")
    return {
        "crowd_requests": count,
        "crowd_waiting": waiting,
        "neighbour_delay_s": round(max(beside) - median(alone), 3),
        "neighbour_alone_s": [round(each, 3) for each in alone],
        "neighbour_beside_s": [round(each, 3) for each in beside],
    }


def one(cluster: Cluster, arrivals: Arrivals, namespace: str, name: str) -> float:
    """Create one request; return the seconds until it is seen Created."""
    begun = now()
    create_all(cluster, NON_ADMIN_BACKUP, [request(namespace, name)])
    while name not in arrivals.seen:
        if (now() - begun).total_seconds() > _LONGEST:
            raise MeasurementError(f"{name} is not Created after {_LONGEST:g} s")
        time.sleep(0.005)
    return (arrivals.seen[name] - begun).total_seconds()
