"""What a process asks of the API server while nothing happens: from the audit log, which is off in all timed parts."""

import time
from collections.abc import Iterable, Mapping
from dataclasses import replace

from bench import MeasurementError
from bench.processes import Process
from testbed import Cluster
from testbed.audit import Request
from testbed.control_plane import APISERVER

LEASES = "leases.coordination.k8s.io"
_SETTLE_SECONDS = 15.0  # in which the watches are opened again after the API server was started with its audit log


def heard(cluster: Cluster, user: str) -> list[Request]:
    """Return all that a user has asked; who has asked nothing, not even for a Lease, is not the one who is measured."""
    asked = cluster.audit(user)
    if not asked:
        raise MeasurementError(f"the audit log has nothing of {user}: whoever is measured runs as somebody else")
    return asked


def asked_while_idle(cluster: Cluster, processes: Mapping[str, Process], seconds: float) -> list[Request]:
    """Start the API server again, with an audit log, and return what the processes ask of it once they have settled.

    Each is named by the user that it is.
    """
    site = cluster.site
    audited = Cluster(replace(site, options=replace(site.options, audit=True)))
    audited.fault.restart(APISERVER)
    time.sleep(_SETTLE_SECONDS)
    for process in processes.values():
        process.wait_idle()
    before = {user: len(heard(audited, user)) for user in processes}
    time.sleep(seconds)
    return [request for user in processes for request in heard(audited, user)[before[user] :]]


def silence_of(asked: Iterable[Request]) -> dict[str, object]:
    """Return how many requests and writes there were that should not have been, and show the first of them."""
    loud = [each for each in asked if not is_quiet(each)]
    for each in loud[:10]:
        print(f"not silent: {each}", flush=True)
    return {"idle_writes": sum(map(is_write, loud)), "idle_requests": len(loud)}


def is_quiet(request: Request) -> bool:
    """Whether a request is one of those without which no operator is: a renewal of its Lease, or a watch."""
    return request.verb == "watch" or (request.resource == LEASES and request.verb == "patch")


def is_write(request: Request) -> bool:
    """Whether a request changes something."""
    return request.verb not in ("get", "list", "watch")
