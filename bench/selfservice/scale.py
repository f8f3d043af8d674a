"""A cluster full of backups that are complete: how long a cold start takes, what it holds, and how silent it is.

One request is served by the operator itself, and Velero's last word about it is written here; etcd then gets copies of
the request, of its Velero Backup and of its namespace, each with names, UIDs and times of its own.
"""

import re
import time
import uuid
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from datetime import datetime, timedelta

from bench import MeasurementError, etcd
from bench.operator import NAMESPACE, SELF_SERVICE_USER, operator
from bench.reading import streamed
from bench.selfservice.speed import arrivals_of_requests
from bench.selfservice.world import FLAGS, administrator, create_namespaces, in_line, request, velero_says, world
from bench.silence import asked_while_idle, silence_of
from bench.writing import create_all
from foresail.api import core, velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.plan import Kind
from foresail.tenancy.records import nacuuid_of
from testbed import Cluster
from testbed.control_plane import APISERVER

EACH = 10  # requests in a namespace
_WATCHING_AGAIN = 8.0  # seconds after which every watch is open again
_INSTANT = re.compile(rb"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_STATUS = {
    "version": 1,
    "formatVersion": "1.1.0",
    "phase": "Completed",
    "startTimestamp": "2026-01-01T00:00:00Z",
    "completionTimestamp": "2026-01-01T00:00:07Z",
    "expiration": "2036-01-01T00:00:00Z",
    "progress": {"totalItems": 42, "itemsBackedUp": 42},
    "hookStatus": {},
}


def scale(count: int, idle_seconds: float) -> dict[str, object]:
    """Measure one operator among so many requests, each with its Velero Backup."""
    with world() as cluster:
        multiply(cluster, first(cluster), count)
        check(cluster, count)
        with operator(cluster, *FLAGS) as process:
            synced = process.wait_synced()
            used = process.wait_idle()
            cold = process.idle_after
            held, peak = process.memory_mib(), process.memory_mib("VmHWM")
            print(f"synced {synced:.1f} s, quiet {cold:.1f} s, {used:.1f} s of CPU, {held:.0f} MiB", flush=True)
            asked = asked_while_idle(cluster, {SELF_SERVICE_USER: process}, idle_seconds)
            held_later = process.memory_mib()
    return {
        "stored": count,
        "rss_mib": round(held, 1),
        "rss_peak_mib": round(peak, 1),
        "rss_after_a_restart_of_the_api_server_mib": round(held_later, 1),
        "sync_s": round(synced, 1),
        "cold_start_s": round(cold, 1),
        "cold_start_cpu_s": round(used, 1),
        "idle_seconds": idle_seconds,
        **silence_of(asked),
    }


def restarts(count: int, times: int) -> dict[str, object]:
    """Measure what an operator holds after each restart of the API server: not more each time."""
    with world() as cluster:
        multiply(cluster, first(cluster), count)
        check(cluster, count)
        with operator(cluster, *FLAGS) as process:
            process.wait_synced()
            process.wait_idle()
            held = [process.memory_mib()]
            for number in range(1, times + 1):
                cluster.fault.restart(APISERVER)
                time.sleep(_WATCHING_AGAIN)
                held.append(process.memory_mib())
                print(f"{held[-1]:.1f} MiB after restart {number} of the API server", flush=True)
    return {
        "rss_after_restarts_mib": [round(each, 1) for each in held],
        "rss_growth_in_the_second_half_mib": round(held[-1] - held[times // 2], 1),
    }


def namespace_of(number: int) -> str:
    """Return the namespace of the request with that number."""
    return f"tenant-{number // EACH:05}"


def name_of(number: int) -> str:
    """Return the name of the request with that number."""
    return f"nab-{number:06}"


@dataclass(frozen=True, slots=True)
class Model:
    """What is stored of the first request, and who it is."""

    request: bytes
    backup: bytes
    namespace: bytes
    request_uid: str
    backup_uid: str
    namespace_uid: str

    @property
    def backup_name(self) -> str:
        """The name of its Velero Backup."""
        return nacuuid_of(namespace_of(0), name_of(0), self.request_uid)


def first(cluster: Cluster) -> Model:
    """Have one request served to its end."""
    namespace, name = namespace_of(0), name_of(0)
    create_namespaces(cluster, [namespace])
    with operator(cluster, *FLAGS) as process, administrator(cluster) as (runner, client):
        with arrivals_of_requests(cluster) as arrivals:
            create_all(cluster, NON_ADMIN_BACKUP, [request(namespace, name)])
            process.wait_for(lambda: name in arrivals.seen)
        ((_, backup),) = runner.run(in_line(client))
        runner.run(velero_says(client, backup, _STATUS))
        process.wait_for(lambda: not runner.run(in_line(client)))
        process.wait_idle()
    uid = "-o=jsonpath={.metadata.uid}"
    return Model(
        request=etcd.stored(cluster, f"{_prefix(NON_ADMIN_BACKUP)}/{namespace}/{name}"),
        backup=etcd.stored(cluster, f"{_prefix(velero.BACKUP)}/{NAMESPACE}/{backup}"),
        namespace=etcd.stored(cluster, f"/registry/namespaces/{namespace}"),
        request_uid=cluster.kubectl("get", "nonadminbackup", name, f"--namespace={namespace}", uid),
        backup_uid=cluster.kubectl("get", "backups.velero.io", backup, f"--namespace={NAMESPACE}", uid),
        namespace_uid=cluster.kubectl("get", "namespace", namespace, uid),
    )


def multiply(cluster: Cluster, model: Model, count: int, *, apart: int = 1) -> None:
    """Store copies until there are so many, each that many seconds later than the one before."""
    etcd.store(cluster, (each for number in range(1, count) for each in _copies(model, number, number * apart)))


def _copies(model: Model, number: int, later: int) -> Iterator[etcd.Stored]:
    """Return a request with its Velero Backup, and if it is the first of its namespace, that too."""
    namespace, name, uid = namespace_of(number), name_of(number), _uid("request", number)
    backup = nacuuid_of(namespace, name, uid)
    # The name of the Velero Backup holds those of the namespace and of the request, so it is replaced first; and
    # everything is as long as what it replaces, so the lengths in a stored Namespace stay true.
    others = {
        model.backup_name: backup,
        model.request_uid: uid,
        model.backup_uid: _uid("backup", number),
        model.namespace_uid: _uid("namespace", number // EACH) if number >= EACH else model.namespace_uid,
        name_of(0): name,
        namespace_of(0): namespace,
    }
    if number >= EACH and number % EACH == 0:
        yield f"/registry/namespaces/{namespace}", _replaced(model.namespace, others)
    yield f"{_prefix(NON_ADMIN_BACKUP)}/{namespace}/{name}", _replaced(_later(model.request, later), others)
    yield f"{_prefix(velero.BACKUP)}/{NAMESPACE}/{backup}", _replaced(_later(model.backup, later), others)


def _later(content: bytes, seconds: int) -> bytes:
    """Return a document with every instant in it that much later: each backup has times of its own."""

    def moved(found: re.Match[bytes]) -> bytes:
        return stamp(datetime.fromisoformat(found[0].decode()) + timedelta(seconds=seconds)).encode()

    return _INSTANT.sub(moved, content)


def _replaced(content: bytes, others: Mapping[str, str]) -> bytes:
    for old, new in others.items():
        content = content.replace(old.encode(), new.encode())
    return content


def _uid(of: str, number: int) -> str:
    return str(uuid.uuid5(uuid.NAMESPACE_OID, f"{of} {number}"))


def _prefix(kind: Kind) -> str:
    return f"/registry/{kind.group}/{kind.plural}"


def check(cluster: Cluster, count: int) -> None:
    """Fail unless all are there; and the API server, which has just been started, then has them in its cache."""
    with administrator(cluster) as (runner, client):
        for kind, wanted in ((NON_ADMIN_BACKUP, count), (velero.BACKUP, count), (core.NAMESPACE, count // EACH)):
            found = runner.run(streamed(client, kind))
            if found < wanted:
                raise MeasurementError(f"there are {found} {kind.plural} for {count} requests")
