"""Fills the cluster: what was there before the hour begins."""

from collections.abc import Iterator
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bench import MeasurementError
from bench.operator import NAMESPACE
from bench.reading import everything
from bench.selfservice.scale import EACH, check, first, multiply
from bench.selfservice.world import administrator, create_namespaces
from bench.soak.program import WARM_UP, Numbers, fire_minutes, firing, namespace, resting
from bench.soak.seen import Asked, Seen
from bench.writing import create_all
from foresail.api import batch, velero
from foresail.api.instants import stamp
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.api.primer import PRIMER
from foresail.kube.clock import now
from foresail.plan import Body, Key
from testbed import Cluster
from testbed.velero import VELERO
from tests.cluster import primers, schedules

QUICK = {"includedResources": ["configmaps"]}
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


def fill_requests(cluster: Cluster, of: Numbers) -> list[Asked]:
    """Let the operator serve one request, and store copies of it: those that are complete when the hour begins.

    Velero is down meanwhile, and its words about them are ours: it could not make thousands in a few minutes. Theirs
    do not count as having reached it. They are older than what comes, and Velero's sync does not look for them in the
    bucket, for they lack the label of a location.
    """
    count = of.requests - of.live
    cluster.fault.kill(VELERO)
    multiply(cluster, first(cluster), count, apart=-1)
    check(cluster, count)
    create_namespaces(cluster, map(namespace, range(-(-count // EACH), of.namespaces)))
    cluster.fault.start(VELERO)
    with administrator(cluster) as (runner, client):
        requests, _ = runner.run(everything(client, NON_ADMIN_BACKUP, Named))
    return [Asked(each.metadata.namespace, each.metadata.name, each.metadata.uid) for each in requests]


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


def fill(cluster: Cluster, seen: Seen) -> None:
    """Fill the cluster with what is there before the operator, and note it."""
    of = seen.numbers
    seen.asked = fill_requests(cluster, of)
    print(f"{len(seen.asked)} NonAdminBackups in {of.namespaces} namespaces are complete", flush=True)
    seen.schedules = fill_schedules(cluster, of)
    print(f"{of.schedules} Schedules, {of.firing} of which fire every {of.every} min", flush=True)


def begin(cluster: Cluster, seen: Seen) -> None:
    """Say when it begins, and create the CronJobs that fire from then on."""
    of = seen.numbers
    seen.begins = _whole_minute(now() + timedelta(seconds=20 + of.cron_jobs / 20))
    seen.ends = seen.begins + timedelta(minutes=of.minutes)
    seen.cron_jobs = fill_cron_jobs(cluster, of, seen.begins)
    print(f"{len(seen.cron_jobs)} primed CronJobs; it begins at {stamp(seen.begins)}", flush=True)
    if now() > seen.begins + WARM_UP:
        raise MeasurementError("the CronJobs were not there when it began: the machine is too slow")


def _whole_minute(at: datetime) -> datetime:
    return at.replace(second=0, microsecond=0) + timedelta(minutes=1)
