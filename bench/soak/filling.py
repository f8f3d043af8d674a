"""Fills the cluster: what was there before the hour begins, served by the operator itself."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from functools import partial
from typing import Any

import msgspec

from bench import MeasurementError, etcd
from bench.operator import NAMESPACE, Operator
from bench.reading import everything
from bench.selfservice.world import administrator, create_namespaces
from bench.soak.program import WARM_UP, Numbers, fire_minutes, firing, namespace, resting
from bench.soak.seen import Asked, Seen
from bench.writing import create_all, write_all
from foresail.api import batch, velero
from foresail.api.instants import stamp
from foresail.api.primer import PRIMER
from foresail.api.requests import NON_ADMIN_BACKUP
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.plan import Body, Key
from testbed import Cluster
from testbed.velero import VELERO
from tests.cluster import primers, schedules

QUICK = {"includedResources": ["configmaps"]}
_BACKUPS = f"/registry/{velero.GROUP}/{velero.BACKUP.plural}/"
_KEPT = timedelta(days=3650)
_RUNS = 20  # seconds


class _Metadata(msgspec.Struct):
    name: str
    namespace: str = ""
    uid: str = ""


class Named(msgspec.Struct):
    """An object of which only the name is wanted."""

    metadata: _Metadata


def request(key: Key) -> Body:
    """Return a NonAdminBackup that Velero is soon done with."""
    return {
        "apiVersion": NON_ADMIN_BACKUP.api_version,
        "kind": NON_ADMIN_BACKUP.name,
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {"backupSpec": QUICK},
    }


def fill_requests(cluster: Cluster, of: Numbers, leader: Operator) -> list[Asked]:
    """Let the operator serve the requests that are complete when the hour begins; Velero's words about them are ours.

    Velero is down meanwhile: it could not make thousands in a few minutes. Theirs do not count as having reached it.
    """
    create_namespaces(cluster, map(namespace, range(of.namespaces)))
    cluster.fault.kill(VELERO)
    count = of.requests - of.live
    keys = [Key(namespace(number % of.namespaces), f"kept-{number:04}") for number in range(count)]
    create_all(cluster, NON_ADMIN_BACKUP, ((key, request(key)) for key in keys))
    leader.wait_for(lambda: etcd.count(cluster, _BACKUPS, _BACKUPS[:-1] + "0") >= count)
    with administrator(cluster) as (runner, client):
        backups, _ = runner.run(everything(client, velero.BACKUP, Named, namespace=NAMESPACE))
    write_all(cluster, (_completed(each.metadata.name) for each in backups))
    leader.wait_settled("selfservice")
    cluster.fault.start(VELERO)
    with administrator(cluster) as (runner, client):
        requests, _ = runner.run(everything(client, NON_ADMIN_BACKUP, Named))
    if len(requests) != count:
        raise MeasurementError(f"{len(requests)} of {count} NonAdminBackups are there")
    return [Asked(each.metadata.namespace, each.metadata.name, each.metadata.uid) for each in requests]


def _completed(name: str) -> Any:  # noqa: ANN401 - a write, as `write_all` takes them
    at = now() + timedelta(seconds=1)  # not before its creation, whose instant is rounded down
    status = {
        "version": 1,
        "formatVersion": "1.1.0",
        "phase": velero.COMPLETED,
        "startTimestamp": stamp(at),
        "completionTimestamp": stamp(at + timedelta(seconds=1)),
        "expiration": stamp(at + _KEPT),
        "progress": {"totalItems": 2, "itemsBackedUp": 2},
    }
    body = {"status": status}
    return partial(Client.merge, kind=velero.BACKUP, key=Key(NAMESPACE, name), body=body, of=msgspec.Raw)


def fill_schedules(cluster: Cluster, of: Numbers) -> dict[str, str]:
    """Create all Schedules; return the UIDs of those that fire."""
    create_all(cluster, velero.SCHEDULE, _schedules(of, now()))
    with administrator(cluster) as (runner, client):
        found, _ = runner.run(everything(client, velero.SCHEDULE, Named))
    wanted = {firing(number, of)[0] for number in range(of.firing)}
    return {each.metadata.name: each.metadata.uid for each in found if each.metadata.name in wanted}


def _schedules(of: Numbers, at: datetime) -> Iterator[tuple[Key, Body]]:
    named = [firing(number, of) for number in range(of.firing)]
    named += [resting(number, at) for number in range(of.schedules - of.firing)]
    for number, (name, text) in enumerate(named):
        template = {"includedNamespaces": [namespace(number % of.namespaces)], **QUICK, "ttl": "720h0m0s"}
        yield Key(NAMESPACE, name), schedules.schedule(name, text, template)


def fill_cron_jobs(cluster: Cluster, of: Numbers, begins: datetime) -> dict[str, str]:
    """Create the CronJobs, each with its Primer; return their UIDs."""
    create_all(cluster, batch.CRON_JOB, (_cron_job(number, of, begins) for number in range(of.cron_jobs)))
    create_all(cluster, PRIMER, (_primer(number, of) for number in range(of.cron_jobs)))
    with administrator(cluster) as (runner, client):
        found, _ = runner.run(everything(client, batch.CRON_JOB, Named))
    return {each.metadata.name: each.metadata.uid for each in found}


def _cron_job(number: int, of: Numbers, begins: datetime) -> tuple[Key, Body]:
    key = _key(number, of)
    minutes = ",".join(map(str, fire_minutes(number, of, begins)))
    anywhere: dict[str, Any] = {"nodeSelector": {}, "tolerations": []}
    return key, primers.cron_job(key.name, f"{minutes} * * * *", "none", key.namespace, runs=_RUNS, **anywhere)


def _primer(number: int, of: Numbers) -> tuple[Key, Body]:
    key = _key(number, of)
    return key, primers.primer(key.name, f"{WARM_UP // timedelta(minutes=1)}m", key.namespace)


def _key(number: int, of: Numbers) -> Key:
    return Key(namespace(number % of.namespaces), f"job-{number:04}")


def filled(cluster: Cluster, seen: Seen, leader: Operator) -> None:
    """Fill the cluster with everything, and note what there is."""
    of = seen.numbers
    seen.asked = fill_requests(cluster, of, leader)
    print(f"{len(seen.asked)} NonAdminBackups in {of.namespaces} namespaces are complete", flush=True)
    seen.schedules = fill_schedules(cluster, of)
    leader.wait_settled("schedules")
    print(f"{of.schedules} Schedules, {of.firing} of which fire every {of.every} min", flush=True)
    seen.begins = _whole_minute(now() + timedelta(seconds=20 + of.cron_jobs / 20))
    seen.ends = seen.begins + timedelta(minutes=of.minutes)
    seen.cron_jobs = fill_cron_jobs(cluster, of, seen.begins)
    leader.wait_settled("primers")
    print(f"{len(seen.cron_jobs)} primed CronJobs; it begins at {stamp(seen.begins)}", flush=True)
    if now() > seen.begins + WARM_UP:
        raise MeasurementError("the CronJobs were not there when it began: the machine is too slow")


def _whole_minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0) + timedelta(minutes=1)
