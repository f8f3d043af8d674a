"""The real API server does what every API server does: without this, the simulated one would prove nothing."""

import asyncio
from pathlib import Path

import pytest

from foresail.kube.client import Client
from foresail.kube.connect import connect
from testbed import Cluster
from tests.cluster import things
from tests.cluster.kinds import rule, schemaless, service_account
from tests.unit.kube.nowhere import HTTP
from tests.worlds import conformance_of_watches, conformance_of_writes
from tests.worlds.conformance import Case, Stage

CASES = [*conformance_of_writes.case, *conformance_of_watches.case]


def namespace(case: Case, http: str) -> str:
    return f"conformance-{CASES.index(case)}-{http}"


@pytest.fixture(scope="module")
def player(cluster: Cluster) -> Path:
    """Return the kubeconfig of a ServiceAccount that may do what the cases do, and nothing else."""
    resources = ["things", "things/status", "wholes", "wholes/status"]
    on_things = rule(things.GROUP, resources, "get", "list", "watch", "create", "patch", "delete", "deletecollection")
    on_maps = rule("", ["configmaps"], "get", "create", "patch", "delete")
    cluster.apply(
        schemaless(things.THING),
        schemaless(things.WHOLE, status=False),
        *service_account("player", on_things, on_maps),
        *(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace(case, http)}}
            for case in CASES
            for http in HTTP
        ),
    )
    cluster.wait_for_kinds()
    return cluster.service_account_kubeconfig("default", "player")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
@pytest.mark.parametrize("http", HTTP)
def test_the_real_server_conforms(cluster: Cluster, player: Path, case: Case, http: str) -> None:
    async def forget() -> None:
        await asyncio.to_thread(cluster.fault.compact_etcd)

    async def play() -> None:
        connection = await connect(str(player))
        async with Client(connection, http=HTTP[http](connection)) as client:
            await case(Stage(client, namespace(case, http), forget))

    asyncio.run(play())
