"""The kinds that the operator knows without discovery, beside those that the API server serves."""

import asyncio

from foresail.api.authorization import Discovery
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.selfservice.access.discovery import BUILT_IN, api_resources
from testbed import Cluster


def test_kinds_that_need_no_discovery_are_served_as_the_operator_knows_them(cluster: Cluster) -> None:
    async def discovered() -> Discovery | Failure:
        async with Client(await connect(str(cluster.kubeconfig))) as client:
            return await client.discover(Discovery)

    found = asyncio.run(discovered())
    assert isinstance(found, Discovery)
    served = {each.name: each for each in api_resources(found)}
    assert {each.name: served.get(each.name) for each in BUILT_IN} == {each.name: each for each in BUILT_IN}
