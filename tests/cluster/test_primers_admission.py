"""The API server accepts the placeholder of every pod that it accepts, and checks what a buffer would hold."""

import asyncio

import msgspec

from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.plan import Key
from foresail.primers.reads import dry_run_result, dry_run_with
from foresail.primers.shape import Shape, shape_of_template
from foresail.primers.view import DryRunRequest
from testbed import Cluster
from tests.cluster import primer_admission
from tests.cluster.schedules import Eventually, Figure

PODS = 100  # `make primer-admission` tries 2,000


def test_whatever_pod_the_api_server_accepts_it_accepts_the_placeholder_of_it(
    cluster: Cluster, eventually: Eventually, figure: Figure
) -> None:
    primer_admission.install(cluster)
    eventually(lambda: primer_admission.is_ready(cluster), 60)
    found = primer_admission.tally(cluster, PODS, seed=15)
    figure(f"placeholders of {found.pods} random pods: {len(found.refused)} refused")
    assert found.refused == [], found.refused[0]
    assert found.pods == PODS


def test_a_dry_run_with_the_resources_of_a_primer_is_bound_by_the_limit_range(
    cluster: Cluster, eventually: Eventually
) -> None:
    primer_admission.install(cluster)
    eventually(lambda: primer_admission.is_ready(cluster), 60)
    key = Key("admission-defaults", "daily")
    secure = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    ports = [{"containerPort": 8080, "name": "web"}]
    pod = {
        "restartPolicy": "Never",
        "securityContext": {"runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [
            {"name": each, "image": "work:1", "securityContext": secure, "ports": ports} for each in ("work", "beside")
        ],
    }
    job = {"spec": {"template": {"spec": pod}}}
    spec = {"schedule": "0 3 * * *", "jobTemplate": job, "suspend": True}
    about = {"name": key.name, "namespace": key.namespace}
    cluster.apply({"apiVersion": "batch/v1", "kind": "CronJob", "metadata": about, "spec": spec})
    template = shape_of_template(msgspec.json.encode({"spec": pod}))

    async def dry_run(cpu: str) -> Shape | Failure:
        kubeconfig = cluster.service_account_kubeconfig("velero", "foresail-primers")
        async with Client(await connect(str(kubeconfig))) as client:
            return await dry_run_with(client)(DryRunRequest(key, "uid", template, resources=(("cpu", cpu),)))

    admitted, refused = asyncio.run(dry_run("2")), asyncio.run(dry_run("64"))
    assert isinstance(admitted, Shape), admitted
    assert (admitted.containers, dict(admitted.requests)["cpu"]) == (2, "2")
    assert isinstance(refused, Failure)
    assert dry_run_result(DryRunRequest(key, "uid", template), refused, now()).refused
