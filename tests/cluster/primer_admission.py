"""Whether the API server accepts the placeholder of every pod that it accepts: random pods in strict namespaces."""

import asyncio
import random
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec

from foresail.api.pods import POD, Pod
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Create, Key
from foresail.primers.decide import decide
from foresail.primers.reads import DRY_RUN_NAME
from foresail.primers.shape import shape_of, shape_of_template
from foresail.primers.view import Target
from testbed import Cluster
from tests.cluster import primers
from tests.unit.primers.rows import SETTINGS, cron_job, primer, primer_view

GPU, FPGA, HUGE = "example.com/gpu", "example.com/fpga", "hugepages-2Mi"
AT_ONCE = 8
_FIRE = datetime(2026, 1, 2, 3, tzinfo=UTC)
# As the operator of the cluster has it, on nodes that can pull.
_SETTINGS = msgspec.structs.replace(SETTINGS, pause_image="pause", image_volumes=True)
_MOST_TRIES = 20  # random pods for each that is accepted
_BOUNDS = {"min": {"cpu": "50m", "memory": "16Mi"}, "max": {"cpu": "2", "memory": "2Gi"}}
_DEFAULTS = {"default": {"cpu": "1", "memory": "512Mi"}, "defaultRequest": {"cpu": "333m", "memory": "100Mi"}}
_OF_POD = {"type": "Pod", "max": {"cpu": "6", "memory": "6Gi"}}
_REQUESTS = {"requests.cpu": "5", "requests.memory": "5Gi", f"requests.{GPU}": "3", "pods": "5"}
_LIMITS = {"limits.cpu": "7", "limits.memory": "7Gi"}
NAMESPACES: dict[str, tuple[list[dict[str, Any]], dict[str, str]]] = {
    "admission-bounds": (
        [{"type": "Container", **_BOUNDS, "maxLimitRequestRatio": {"cpu": "3"}}, _OF_POD],
        {**_REQUESTS, **_LIMITS},
    ),
    "admission-defaults": ([{"type": "Container", **_BOUNDS, **_DEFAULTS}], {**_REQUESTS, **_LIMITS}),
    "admission-free": ([{"type": "Container", "max": {GPU: "2"}, "default": {GPU: "0"}}], _REQUESTS),
}
"""The limits of the LimitRange and the hard limits of the ResourceQuota of each namespace."""


@dataclass
class Tally:
    """What came of random pods."""

    pods: int = 0  # accepted, with something to reserve
    refused: list[str] = field(default_factory=list)  # their placeholders


def install(cluster: Cluster) -> None:
    """Create the strict namespaces, and what the chart gives the operator."""
    primers.install(cluster)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    for name, (limits, hard) in NAMESPACES.items():
        about = {"name": "strict", "namespace": name}
        cluster.apply(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}},
            {"apiVersion": "v1", "kind": "LimitRange", "metadata": about, "spec": {"limits": limits}},
            {"apiVersion": "v1", "kind": "ResourceQuota", "metadata": about, "spec": {"hard": hard}},
        )


def is_ready(cluster: Cluster) -> bool:
    """Whether pods can be created in every namespace: each has its ServiceAccount, and its quota is counted."""
    return all(
        cluster.get("serviceaccount", "default", f"--namespace={name}")
        and cluster.get("resourcequota", "strict", f"--namespace={name}").get("status", {}).get("used")
        for name in NAMESPACES
    )


def tally(cluster: Cluster, pods: int, seed: int) -> Tally:
    """Try random pods until so many are accepted, and their placeholders, all as dry runs of the operator's account."""

    async def run() -> Tally:
        kubeconfig = cluster.service_account_kubeconfig("velero", "foresail-primers")
        chance, found = random.Random(seed), Tally()  # noqa: S311 - chance, not secrecy
        async with Client(await connect(str(kubeconfig)), max_in_flight=AT_ONCE) as client:
            for _ in range(_MOST_TRIES * pods // AT_ONCE):
                batch = [(chance.choice(list(NAMESPACES)), random_spec(chance)) for _ in range(AT_ONCE)]
                await asyncio.gather(*(_try(client, found, *each) for each in batch[: pods - found.pods]))
                if found.pods >= pods:
                    break
        return found

    return asyncio.run(run())


async def _try(client: Client, found: Tally, namespace: str, spec: dict[str, Any]) -> None:
    about = {"apiVersion": "v1", "kind": "Pod"}
    body = {**about, "metadata": {"name": DRY_RUN_NAME, "namespace": namespace}, "spec": spec}
    pod = await client.create_dry_run(POD, Key(namespace, DRY_RUN_NAME), body, Pod)
    if isinstance(pod, Failure):
        return
    template = shape_of_template(msgspec.json.encode({"spec": spec}))
    cron = cron_job(key=Key(namespace, "daily"), shape=template)
    target = Target(cron, admitted=shape_of(pod.spec), is_dry_run_done=True)
    looked = primer_view(target, primer=primer(key=Key(namespace, "warm")), settings=_SETTINGS)
    makes = [each for each in decide(looked, _FIRE - timedelta(minutes=1)).actions if isinstance(each, Create)]
    for make in makes:
        metadata: Any = make.body["metadata"]
        marked = {**metadata["annotations"], **make.mark}
        placed = {**metadata, "name": make.key.name, "namespace": namespace, "annotations": marked}
        answer = await client.create_dry_run(POD, make.key, {**about, **make.body, "metadata": placed}, Pod)
        found.pods += 1
        if isinstance(answer, Failure):
            told = msgspec.json.encode({"namespace": namespace, "pod": spec, "placeholder": make.body["spec"]}).decode()
            found.refused.append(f"{answer.message}\n{told}")


def random_spec(chance: random.Random) -> dict[str, Any]:
    """Return the spec of a pod that a restricted namespace may accept: mostly small, sometimes not."""
    init = [_container(chance, f"init-{index}") for index in range(chance.choice((0, 0, 1, 2)))]
    for each in init:
        if chance.random() < 0.4:
            each["restartPolicy"] = "Always"
    more: dict[str, Any] = {
        "nodeSelector": {"pool": "batch"},
        "tolerations": [{"key": "batch", "operator": "Exists"}],
        "priorityClassName": "system-node-critical" if chance.random() < 0.1 else "",
        "activeDeadlineSeconds": 600,
        "schedulerName": "another",
    }
    return {
        "restartPolicy": chance.choice(("Never", "OnFailure")),
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [_container(chance, f"main-{index}") for index in range(chance.choice((1, 1, 2, 3)))],
        "initContainers": init,
        **{name: value for name, value in more.items() if value and chance.random() < 0.3},
    }


def _container(chance: random.Random, name: str) -> dict[str, Any]:
    requests: dict[str, str] = {}
    limits: dict[str, str] = {}
    for resource, unit, least, most in (("cpu", "m", 50, 2000), ("memory", "Mi", 16, 2048)):
        low = chance.choice((0, least, chance.randint(least, most // 4), chance.randint(least, most)))
        high = min(chance.choice((low, 2 * low, chance.randint(low, most), most)), most)
        kind = chance.choice(("both", "both", "both", "both", "request", "limit", "none"))
        if kind in ("both", "request"):
            requests[resource] = f"{low}{unit}"
        if kind in ("both", "limit") and high:
            limits[resource] = f"{high}{unit}"
    for device in (GPU, FPGA):
        if chance.random() < 0.15:
            limits[device] = str(chance.randint(0, 2))
    if chance.random() < 0.1 and {"cpu", "memory"} & {*requests, *limits}:
        limits[HUGE] = requests[HUGE] = f"{2 * chance.randint(1, 3)}Mi"
    return {
        "name": name,
        "image": "work:1",
        "resources": {"requests": requests, "limits": limits},
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
