"""Nothing that the API server acknowledged is lost with it, and the bare limit of creating custom resources."""

import asyncio
import ssl
import time
from collections import Counter
from collections.abc import Callable

import aiohttp
import pytest

from foresail.kube.client import address
from foresail.plan import Kind
from testbed import Cluster
from tests.cluster.kinds import rule, schemaless, service_account
from tests.cluster.schedules import FULL

pytestmark = pytest.mark.full

COUNT = 20_000 if FULL else 4_000
AT_ONCE = 32
LOAD = Kind("bench.foresail.dev", "v1", "loads", "Load")
DATA = {f"key-{number}": "x" * 60 for number in range(16)}  # about the size of a ConfigMap that people write


class Loader:
    """Creates numbered objects until each is known to exist, through an API server that may go away meanwhile."""

    def __init__(self, session: aiohttp.ClientSession, url: str) -> None:
        self.acknowledged: dict[str, float] = {}  # name: when the API server said that it was created
        self.answers: Counter[str] = Counter()
        self.half_done = asyncio.Event()
        self._session = session
        self._url = url
        self._left = iter(range(COUNT))

    async def work(self) -> None:
        for number in self._left:
            name = f"load-{number:05}"
            while True:
                if await self._create(name):
                    break
                await asyncio.sleep(0.2)

    async def _create(self, name: str) -> bool:
        body = {"apiVersion": LOAD.api_version, "kind": LOAD.name, "metadata": {"name": name}, "spec": {"data": DATA}}
        try:
            async with self._session.post(self._url, json=body) as response:
                await response.read()
                code = response.status
        except aiohttp.ClientError as error:
            self.answers[type(error).__name__] += 1
            return False
        self.answers[str(code)] += 1
        if code == 201:
            self.acknowledged[name] = time.monotonic()
            if len(self.acknowledged) == COUNT // 2:
                self.half_done.set()
        return code in (201, 409)  # 409: it was created, but the answer was lost with the API server


async def _listed(session: aiohttp.ClientSession, url: str) -> set[str]:
    names: set[str] = set()
    token = ""
    while True:
        async with session.get(url, params={"limit": "5000", "continue": token}) as response:
            page = await response.json()
        names.update(item["metadata"]["name"] for item in page["items"])
        token = page["metadata"].get("continue", "")
        if not token:
            return names


def test_every_acknowledged_object_survives_a_killed_api_server(
    doomed_cluster: Cluster, figure: Callable[[str], None]
) -> None:
    cluster = doomed_cluster
    permitted = rule(LOAD.group, [LOAD.plural], "create", "list")
    cluster.apply(schemaless(LOAD), *service_account("loader", permitted))
    cluster.wait_for_kinds()
    url = cluster.server + address(LOAD, "default")

    async def run() -> None:
        trust = ssl.create_default_context(cafile=cluster.site.pki / "ca.crt")
        headers = {"Authorization": f"Bearer {cluster.service_account_token('default', 'loader')}"}
        connector = aiohttp.TCPConnector(ssl=trust, limit=AT_ONCE)
        async with aiohttp.ClientSession(connector=connector, headers=headers) as session:
            loader = Loader(session, url)
            began = time.monotonic()
            workers = [asyncio.create_task(loader.work()) for _ in range(AT_ONCE)]
            await loader.half_done.wait()
            killed = time.monotonic()
            await asyncio.to_thread(cluster.fault.kill, "kube-apiserver")
            before = dict(loader.acknowledged)
            await asyncio.to_thread(cluster.fault.start, "kube-apiserver")
            ready = time.monotonic()
            await asyncio.gather(*workers)
            ended = time.monotonic()
            exist = await _listed(session, url)

        assert sum(at <= killed for at in before.values()) >= COUNT // 2
        assert len(before) < COUNT, "the kill came too late to matter"
        assert set(loader.acknowledged) - exist == set()
        assert len(exist) == COUNT
        assert loader.answers.keys() - {"201", "409", "429"}, "no request met the dead API server"
        first, second = (COUNT // 2) / (killed - began), (COUNT - len(before)) / (ended - ready)
        figure(
            f"bare creates, {AT_ONCE} at a time: {first:.0f} per second before the kill, {second:.0f} after; "
            f"API server gone for {ready - killed:.1f} s; answers {dict(loader.answers)}"
        )

    asyncio.run(run())
