"""The proxy does to a real watch what its verbs say, and to nothing else."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import pytest

from foresail.kube.client import Response
from testbed import Cluster
from testbed.proxy import Proxy

WATCH = "/api/v1/namespaces/default/configmaps?watch=true"


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with cluster.proxy() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def token(cluster: Cluster) -> str:
    cluster.kubectl("create", "serviceaccount", "watcher")
    cluster.kubectl("create", "rolebinding", "watcher", "--clusterrole=view", "--serviceaccount=default:watcher")
    return cluster.service_account_token("default", "watcher")


@asynccontextmanager
async def watching(
    cluster: Cluster, url: str, token: str
) -> AsyncIterator[tuple[aiohttp.ClientSession, aiohttp.StreamReader]]:
    trust = ssl.create_default_context(cafile=cluster.site.pki / "ca.crt")
    headers = {"Authorization": f"Bearer {token}"}
    async with aiohttp.ClientSession(url, connector=aiohttp.TCPConnector(ssl=trust), headers=headers) as session:
        response = await session.get(WATCH, timeout=aiohttp.ClientTimeout(total=None))
        async with Response(response):  # closes it for good: the farewell of TLS would outlive the event loop
            assert response.status == 200
            await line_about(response.content, "kube-root-ca.crt", 10)  # every namespace has it
            yield session, response.content


async def line_about(stream: aiohttp.StreamReader, name: str, seconds: float) -> None:
    async with asyncio.timeout(seconds):
        while f'"{name}"'.encode() not in await stream.readline():
            pass


async def create(cluster: Cluster, name: str) -> None:
    await asyncio.to_thread(cluster.kubectl, "create", "configmap", name)


def test_untouched_it_passes_everything_on(cluster: Cluster, proxy: Proxy, token: str) -> None:
    async def run() -> None:
        async with watching(cluster, proxy.url, token) as (session, stream):
            await create(cluster, "passed-on")
            await line_about(stream, "passed-on", 10)
            async with session.get("/version") as answer:
                assert (await answer.json())["gitVersion"] == "v1.36.3"

    asyncio.run(run())


def test_a_cut_resets_the_streams_that_are_meant_and_spares_the_others(
    cluster: Cluster, proxy: Proxy, token: str
) -> None:
    async def run() -> None:
        async with watching(cluster, proxy.url, token) as (session, stream):
            assert await asyncio.to_thread(proxy.cut, "/no/such/path") == 0
            assert await asyncio.to_thread(proxy.cut, "watch=true") == 1
            with pytest.raises(aiohttp.ClientError):
                await stream.read()
            async with session.get("/version") as answer:
                assert answer.status == 200

    asyncio.run(run())


def test_a_torn_stream_ends_in_the_middle_of_a_line(cluster: Cluster, proxy: Proxy, token: str) -> None:
    # A bare socket, to see every byte: HTTP clients drop what they hold when a stream ends too early.
    where = urlsplit(proxy.url)
    trust = ssl.create_default_context(cafile=cluster.site.pki / "ca.crt")
    with (
        socket.create_connection((where.hostname, where.port), timeout=10) as plain,
        trust.wrap_socket(plain, server_hostname=where.hostname) as wire,
    ):
        wire.sendall(f"GET {WATCH} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        before = b""
        while b'"kube-root-ca.crt"' not in before or not before.endswith(b"}\n\r\n"):
            before += wire.recv(4096)
        proxy.tear("watch=true")
        cluster.kubectl("create", "configmap", "torn-apart")
        proxy.wait_torn()
        torn = b""
        while more := wire.recv(4096):
            torn += more
    size, half_line = torn.split(b"\r\n", 1)
    assert half_line.startswith(b'{"type":"ADDED"')
    assert b"\n" not in half_line
    assert len(half_line) < int(size, 16)


def test_a_stalled_stream_stays_open_and_silent_until_it_is_resumed(cluster: Cluster, proxy: Proxy, token: str) -> None:
    async def run() -> None:
        async with watching(cluster, proxy.url, token) as (session, stream):
            await asyncio.to_thread(proxy.stall, "watch=true")
            await create(cluster, "held-back")
            with pytest.raises(TimeoutError):
                await line_about(stream, "held-back", 1.5)
            async with session.get("/version") as answer:
                assert answer.status == 200
            await asyncio.to_thread(proxy.resume)
            await line_about(stream, "held-back", 10)

    asyncio.run(run())
