"""A cluster with thousands of CronJobs that have run: three Jobs with their pods each, and a Primer if asked for.

The first ones are made through the API server, and their Primers are served by the operator itself; etcd then gets
copies of them, each with a name, UIDs, an image and fires of its own. All fires are hours away.
"""

import asyncio
import json
import os
import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Any

from bench import MeasurementError, etcd
from bench.operator import operator
from bench.reading import streamed
from foresail.api import batch, pods
from foresail.api.instants import stamp
from foresail.api.primer import PRIMER
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from testbed import Cluster, Options
from testbed.control_plane import CONTROLLER_MANAGER
from tests.cluster import primers

NAMESPACES = 100
RUNS = 3  # as many Jobs as a CronJob keeps by default
WARM_UP = timedelta(minutes=10)
_AWAY, _SPREAD = timedelta(hours=8), 480  # no fire for so long, and then within so many minutes
_KINDS = {batch.CRON_JOB: "cronjobs", batch.JOB: "jobs", pods.POD: "pods", PRIMER: f"{PRIMER.group}/{PRIMER.plural}"}


@contextmanager
def world() -> Iterator[Cluster]:
    """Bring up a cluster with the chart's permissions, and with nobody who would start or clean up Jobs."""
    with Cluster.create(f"bench-primers-{os.getpid()}", Options(), owned=True) as cluster:
        primers.install(cluster)
        prepare(cluster)
        cluster.fault.kill(CONTROLLER_MANAGER)
        yield cluster


def prepare(cluster: Cluster) -> None:
    """Create the namespaces, and the ServiceAccount of the pods that are made by hand."""
    places = [{"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place(n)}} for n in range(NAMESPACES)]
    account = {"name": "default", "namespace": place(0)}
    cluster.apply(*places, {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})


def place(number: int) -> str:
    """Return the namespace of the CronJob with that number."""
    return f"crowd-{number % NAMESPACES:03}"


def name(number: int) -> str:
    """Return the name of the CronJob with that number, and of its Primer."""
    return f"job-{number:05}"


@dataclass(frozen=True, slots=True)
class Crowd:
    """What there is to be: how many CronJobs, for how many seconds the runs of each model of them waited."""

    count: int
    delays: Sequence[int]  # of one model, or of two
    late_every: int = 0  # one of so many is like the second model
    primed: bool = False

    def model_of(self, number: int) -> int:
        """Return the number of the CronJob that another one is a copy of."""
        return 1 if self.late_every and number % self.late_every == 1 else 0


def fill(cluster: Cluster, crowd: Crowd, *flags: str) -> None:
    """Make the first ones, let the operator serve their Primers, and copy them."""
    base = now().replace(second=0, microsecond=0) + _AWAY
    for number, delay in enumerate(crowd.delays):
        _make(cluster, number, delay, base, primed=crowd.primed)
    if crowd.primed:
        with operator(cluster, *flags, settled="primers") as process:
            process.wait_for(lambda: all(_is_told(cluster, number) for number in range(len(crowd.delays))))
            process.wait_idle()
    models = [_model(cluster, number) for number in range(len(crowd.delays))]
    others = range(len(models), crowd.count)
    etcd.store(cluster, (each for n in others for each in _copies(models[crowd.model_of(n)], n, base)))
    asyncio.run(_check(cluster, crowd))


# The first ones


def _make(cluster: Cluster, number: int, delay: int, base: datetime, *, primed: bool) -> None:
    here = place(0)
    cron = primers.cron_job(name(number), _schedule(_fire(base, number)), "crowd", here)
    template = cron["spec"]["jobTemplate"]["spec"]["template"]
    template["spec"]["containers"][0]["image"] = _image(number)
    cluster.apply(cron)
    owner = _owner("batch/v1", "CronJob", name(number), _uid_of(cluster, "cronjob", name(number)))
    for run in range(RUNS):
        fire = base - timedelta(days=RUNS - run + 1)
        job = f"{name(number)}-{run}"
        _make_job(cluster, job, owner, template, fire)
        _make_pod(cluster, job, template, fire + timedelta(seconds=delay))
    if primed:
        cluster.apply(primers.primer(name(number), f"{WARM_UP // timedelta(minutes=1)}m", here))


def _make_job(
    cluster: Cluster, job: str, owner: Mapping[str, Any], template: Mapping[str, Any], fire: datetime
) -> None:
    metadata = {
        "name": job,
        "namespace": place(0),
        "ownerReferences": [owner],
        "annotations": {batch.SCHEDULED_AT: stamp(fire)},
    }
    cluster.apply({"apiVersion": "batch/v1", "kind": "Job", "metadata": metadata, "spec": {"template": template}})
    began, ended = stamp(fire), stamp(fire + timedelta(minutes=5))
    conditions = [
        {"type": each, "status": "True", "lastProbeTime": ended, "lastTransitionTime": ended}
        for each in ("SuccessCriteriaMet", "Complete")
    ]
    status = {"startTime": began, "completionTime": ended, "succeeded": 1, "ready": 0, "conditions": conditions}
    _say(cluster, "job", job, {**status, "uncountedTerminatedPods": {}})


def _make_pod(cluster: Cluster, job: str, template: Mapping[str, Any], began: datetime) -> None:
    uid = _uid_of(cluster, "job", job)
    metadata = {
        "name": f"{job}-0",
        "namespace": place(0),
        "labels": {batch.JOB_NAME_LABEL: job, batch.JOB_UID_LABEL: uid},
        "annotations": template["metadata"]["annotations"],
        "ownerReferences": [_owner("batch/v1", "Job", job, uid)],
    }
    spec = {**template["spec"], "nodeName": "node-of-the-past"}
    cluster.apply({"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": spec})
    since, ended = stamp(began), stamp(began + timedelta(minutes=4))
    over = {"exitCode": 0, "reason": "Completed", "startedAt": since, "finishedAt": ended}
    container = {"name": "work", "image": "work", "imageID": "", "ready": False, "restartCount": 0}
    conditions = [
        {"type": each, "status": word, "lastTransitionTime": ended}
        for each, word in (("PodScheduled", "True"), ("Initialized", "True"), ("Ready", "False"))
    ]
    status = {"phase": "Succeeded", "startTime": since, "conditions": conditions}
    _say(cluster, "pod", f"{job}-0", {**status, "containerStatuses": [{**container, "state": {"terminated": over}}]})


def _say(cluster: Cluster, resource: str, its_name: str, status: Mapping[str, Any]) -> None:
    """Write a status, as the controllers do that are not there."""
    change = json.dumps({"status": status})
    here = f"--namespace={place(0)}"
    cluster.kubectl("patch", resource, its_name, here, "--subresource=status", "--type=merge", f"--patch={change}")


def _owner(version: str, kind: str, its_name: str, uid: str) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": its_name, "uid": uid, "controller": True}


def _uid_of(cluster: Cluster, resource: str, its_name: str) -> str:
    return cluster.kubectl("get", resource, its_name, f"--namespace={place(0)}", "--output=jsonpath={.metadata.uid}")


def _is_told(cluster: Cluster, number: int) -> bool:
    return len(primers.primed(cluster, name(number)).get("startDelays", ())) == RUNS


# Their copies


@dataclass(frozen=True, slots=True)
class _Model:
    """What is stored of a CronJob and of all that belongs to it, by key, and what is to be replaced in it."""

    number: int
    stored: Mapping[str, bytes]
    uids: Sequence[str]


def _model(cluster: Cluster, number: int) -> _Model:
    found: dict[str, bytes] = {}
    uids: list[str] = []
    for kind, prefix in _KINDS.items():
        for each in cluster.get(kind.plural, f"--namespace={place(0)}")["items"]:
            its_name: str = each["metadata"]["name"]
            if its_name.startswith(name(number)):
                key = f"/registry/{prefix}/{place(0)}/{its_name}"
                found[key] = etcd.stored(cluster, key)
                uids.append(each["metadata"]["uid"])
    return _Model(number, found, uids)


def _copies(model: _Model, number: int, base: datetime) -> Iterator[etcd.Stored]:
    old, new = _fire(base, model.number), _fire(base, number)
    # Everything is as long as what it replaces, so the lengths in what is stored stay true.
    others = {uid: str(uuid.uuid5(uuid.NAMESPACE_OID, f"{uid} {number}")) for uid in model.uids}
    others |= {
        name(model.number): name(number),
        place(0): place(number),
        _image(model.number): _image(number),
        _schedule(old): _schedule(new),
        stamp(old): stamp(new),
        stamp(old - WARM_UP): stamp(new - WARM_UP),
    }
    for key, content in model.stored.items():
        yield _replaced(key.encode(), others).decode(), _replaced(content, others)


def _replaced(content: bytes, others: Mapping[str, str]) -> bytes:
    for old, new in others.items():
        content = content.replace(old.encode(), new.encode())
    return content


def _fire(base: datetime, number: int) -> datetime:
    return base + timedelta(minutes=number % _SPREAD)


def _schedule(fire: datetime) -> str:
    return f"{fire:%M %H} * * *"


def _image(number: int) -> str:
    return f"work:{number:05}"


async def _check(cluster: Cluster, crowd: Crowd) -> None:
    """Fail unless all are there."""
    wanted = {batch.CRON_JOB: 1, batch.JOB: RUNS, pods.POD: RUNS, PRIMER: int(crowd.primed)}
    async with Client(await connect(str(cluster.kubeconfig))) as client:
        for kind, each in wanted.items():
            found = await streamed(client, kind)
            if found < crowd.count * each:
                raise MeasurementError(f"there are {found} {kind.plural} for {crowd.count} CronJobs")
