"""The proxy does to a real watch what its verbs say, and to nothing else."""

import asyncio
import socket
import ssl
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from urllib.parse import urlsplit

import aiohttp
import pytest

from foresail.kube.http_pool import Response
from testbed import Cluster
from testbed.proxy import Proxy

Eventually = Callable[[Callable[[], object], float], None]
CONFIG_MAPS = "/api/v1/namespaces/default/configmaps"
WATCH = f"{CONFIG_MAPS}?watch=true"
SECONDS = 60.0


@pytest.fixture
def proxy(cluster: Cluster) -> Iterator[Proxy]:
    with cluster.proxy() as proxy:
        yield proxy


@pytest.fixture(scope="module")
def token(cluster: Cluster, eventually: Eventually) -> str:
    """Return the token of somebody who may watch and write, once the API server knows of it."""
    name = "through-the-proxy"
    cluster.kubectl("create", "serviceaccount", name)
    cluster.kubectl("create", "rolebinding", name, "--clusterrole=edit", f"--serviceaccount=default:{name}")
    asked = ("auth", "can-i", "create", "configmaps", f"--as=system:serviceaccount:default:{name}")
    eventually(lambda: cluster.kubectl(*asked).strip() == "yes", SECONDS)
    return cluster.service_account_token("default", name)


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
            await line_about(response.content, "kube-root-ca.crt")  # every namespace has it
            yield session, response.content


async def line_about(stream: aiohttp.StreamReader, name: str, seconds: float = SECONDS) -> None:
    async with asyncio.timeout(seconds):
        while f'"{name}"'.encode() not in (line := await stream.readline()):
            assert line, "the stream has ended"


async def create(cluster: Cluster, name: str) -> None:
    await asyncio.to_thread(cluster.kubectl, "create", "configmap", name)


def test_untouched_it_passes_everything_on(cluster: Cluster, proxy: Proxy, token: str) -> None:
    async def run() -> None:
        async with watching(cluster, proxy.url, token) as (session, stream):
            await create(cluster, "passed-on")
            await line_about(stream, "passed-on")
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
    only = f"{WATCH}&fieldSelector=metadata.name%3Dtorn-apart"  # so that there is one line, whatever others have made
    where = urlsplit(proxy.url)
    trust = ssl.create_default_context(cafile=cluster.site.pki / "ca.crt")
    with (
        socket.create_connection((where.hostname, where.port), timeout=SECONDS) as plain,
        trust.wrap_socket(plain, server_hostname=where.hostname) as wire,
    ):
        wire.sendall(f"GET {only} HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n\r\n".encode())
        before = b""
        while not before.endswith(b"\r\n\r\n"):  # it watches when the headers have come
            before += wire.recv(4096)
        assert before.startswith(b"HTTP/1.1 200 ")
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


def test_a_delayed_answer_comes_late_though_what_was_asked_for_is_done(
    cluster: Cluster, proxy: Proxy, token: str
) -> None:
    seconds = 3.0

    async def run() -> None:
        async with watching(cluster, proxy.url, token) as (session, stream):
            await asyncio.to_thread(proxy.delay, "answered-late", seconds)
            now = asyncio.get_running_loop().time
            begun = now()
            asked = asyncio.create_task(session.post(CONFIG_MAPS, json={"metadata": {"name": "answered-late"}}))
            await asyncio.to_thread(proxy.wait_delayed)
            await line_about(stream, "answered-late")
            assert not asked.done()
            async with await asked as answer:
                assert answer.status == 201
            assert now() - begun >= seconds

    asyncio.run(run())


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
            await line_about(stream, "held-back")

    asyncio.run(run())


@pytest.mark.parametrize(("code", "reason"), [(429, "Too Many Requests"), (410, "Gone")])
def test_the_next_list_is_refused_and_the_one_after_it_is_not(
    cluster: Cluster, proxy: Proxy, token: str, code: int, reason: str
) -> None:
    async def run() -> None:
        async with watching(cluster, proxy.url, token) as (session, _):
            await asyncio.to_thread(proxy.refuse, "limit=", 0.0, code, 1)
            async with session.get(f"{CONFIG_MAPS}?limit=5") as answer:
                assert (answer.status, answer.reason) == (code, reason)
            async with session.get(f"{CONFIG_MAPS}?limit=5") as answer:
                assert answer.status == 200

    asyncio.run(run())
