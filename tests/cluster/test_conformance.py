"""The real API server does what every API server does: without this, the simulated one would prove nothing."""

import asyncio
from pathlib import Path

import pytest

from foresail.kube.client import Client
from foresail.kube.connect import connect
from testbed import Cluster
from tests.cluster import things
from tests.cluster.kinds import schemaless
from tests.worlds import conformance_of_watches, conformance_of_writes
from tests.worlds.conformance import Case, Stage

CASES = [*conformance_of_writes.case, *conformance_of_watches.case]


def namespace(case: Case) -> str:
    return f"conformance-{CASES.index(case)}"


@pytest.fixture(scope="module")
def player(cluster: Cluster) -> Path:
    """Return the kubeconfig of a ServiceAccount that may do what the cases do, and nothing else."""
    rbac = "rbac.authorization.k8s.io"
    account = {"name": "player", "namespace": "default"}
    on_things = {"apiGroups": [things.GROUP], "resources": ["things", "things/status"], "verbs": ["*"]}
    on_maps = {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]}
    places = [namespace(case) for case in CASES]

    def role(name: str, rule: object) -> dict[str, object]:
        return {"apiVersion": f"{rbac}/v1", "kind": "ClusterRole", "metadata": {"name": name}, "rules": [rule]}

    def binding(kind: str, of: str, **place: str) -> dict[str, object]:
        return {
            "apiVersion": f"{rbac}/v1",
            "kind": kind,
            "metadata": {"name": of, **place},
            "roleRef": {"apiGroup": rbac, "kind": "ClusterRole", "name": of},
            "subjects": [{"kind": "ServiceAccount", **account}],
        }

    cluster.apply(
        schemaless(things.THING),
        {"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account},
        role("player-things", on_things),
        role("player-maps", on_maps),
        *({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": place}} for place in places),
    )
    # Things everywhere: a namespace that does not exist must be refused for what it is, not for the account.
    cluster.apply(
        binding("ClusterRoleBinding", "player-things"),
        *(binding("RoleBinding", "player-maps", namespace=place) for place in places),
    )
    cluster.kubectl("wait", "--for=condition=Established", f"crd/{things.THING.plural}.{things.GROUP}")
    return cluster.service_account_kubeconfig("default", "player")


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.__name__)
def test_the_real_server_conforms(cluster: Cluster, player: Path, case: Case) -> None:
    async def forget() -> None:
        await asyncio.to_thread(cluster.fault.compact_etcd)

    async def play() -> None:
        async with Client(await connect(str(player))) as client:
            await case(Stage(client, namespace(case), forget))

    asyncio.run(play())
