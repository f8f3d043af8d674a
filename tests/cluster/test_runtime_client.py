"""The client at a real API server, as a ServiceAccount: what it returns, and what it returns instead."""

import asyncio
import tracemalloc
from collections.abc import Awaitable, Callable
from contextlib import AsyncExitStack

import msgspec
import pytest

from foresail.kube.client import Client
from foresail.kube.connect import ConnectError, connect
from foresail.kube.failures import Cause, Failure
from foresail.plan import Key, Kind
from testbed import Cluster
from tests.cluster import things
from tests.cluster.things import THING
from tests.unit.kube.nowhere import HTTP, MakeHttp


class Metadata(msgspec.Struct, frozen=True):
    name: str
    uid: str
    resource_version: str = msgspec.field(name="resourceVersion")
    annotations: dict[str, str] = {}


class Seen(msgspec.Struct, frozen=True):
    metadata: Metadata
    spec: dict[str, object] = {}
    status: dict[str, object] = {}


@pytest.fixture(scope="module", autouse=True)
def things_installed(cluster: Cluster) -> None:
    things.install(cluster)


@pytest.fixture(params=HTTP.values(), ids=list(HTTP))
def make_http(request: pytest.FixtureRequest) -> MakeHttp:
    made: MakeHttp = request.param
    return made


def as_watcher(cluster: Cluster, make_http: MakeHttp, work: Callable[[Client], Awaitable[None]]) -> None:
    async def run() -> None:
        connection = await connect(str(cluster.service_account_kubeconfig("default", "watcher")))
        async with Client(connection, http=make_http(connection)) as client:
            await work(client)

    asyncio.run(run())


def test_every_verb_does_what_it_says(cluster: Cluster, make_http: MakeHttp) -> None:
    key = Key("default", f"whole-life-{make_http.__name__.lower()}")

    async def work(client: Client) -> None:
        made = await client.create(THING, key, things.thing(key.name), Seen)
        assert isinstance(made, Seen)
        assert await client.get(THING, key, Seen) == made

        merged = await client.merge(THING, key, {"status": {"phase": "Ready"}}, Seen, "status")
        assert isinstance(merged, Seen)
        assert (merged.status, merged.spec) == ({"phase": "Ready"}, {"size": 1})

        body = {**things.thing(key.name, 5), "metadata": {"name": key.name, "annotations": {"by": "us"}}}
        stale = {"metadata": {"resourceVersion": made.metadata.resource_version}, "spec": {"size": 3}}
        conflict = await client.merge(THING, key, stale, Seen)
        assert isinstance(conflict, Failure)
        assert conflict.cause is Cause.CONFLICT

        taken = await client.apply(THING, key, body, Seen)
        assert isinstance(taken, Failure)
        assert taken.cause is Cause.CONFLICT, "the field belongs to whoever created it"
        applied = await client.apply(THING, key, {**body, "spec": {"colour": "red"}}, Seen)
        assert isinstance(applied, Seen)
        assert (applied.spec, applied.metadata.annotations) == ({"size": 1, "colour": "red"}, {"by": "us"})

        wrong = await client.delete(THING, key, "00000000-0000-0000-0000-000000000000")
        assert wrong is not None
        assert wrong.cause is Cause.CONFLICT
        assert await client.delete(THING, key, made.metadata.uid) is None
        assert await client.delete(THING, key, made.metadata.uid) is None

    as_watcher(cluster, make_http, work)


def test_each_refusal_is_a_value_with_the_servers_reason(cluster: Cluster, make_http: MakeHttp) -> None:
    async def work(client: Client) -> None:
        key = Key("default", f"refused-{make_http.__name__.lower()}")
        assert isinstance(await client.create(THING, key, things.thing(key.name), Seen), Seen)
        nowhere = Kind("runtime.foresail.dev", "v1", "nothings", "Nothing")
        cases = [
            (await client.create(THING, key, things.thing(key.name), Seen), Cause.ALREADY_EXISTS, 409),
            (await client.get(THING, Key("default", "nobody"), Seen), Cause.NOT_FOUND, 404),
            (await client.get(nowhere, key, Seen), Cause.FORBIDDEN, 403),
            (await client.create(THING, key, things.thing("Not A Name"), Seen), Cause.INVALID, 422),
            (await client.get(THING, key, int), Cause.UNREADABLE, 200),
        ]
        for answer, cause, code in cases:
            assert isinstance(answer, Failure)
            assert (answer.cause, answer.code) == (cause, code)
            assert answer.message

    as_watcher(cluster, make_http, work)


def test_a_server_that_is_not_there_is_a_value_too(cluster: Cluster, make_http: MakeHttp) -> None:
    async def run() -> Seen | Failure:
        kubeconfig = cluster.service_account_kubeconfig("default", "watcher", "https://127.0.0.1:1")
        connection = await connect(str(kubeconfig))
        async with Client(connection, http=make_http(connection)) as client:
            return await client.create(THING, Key("default", "x"), things.thing("x"), Seen)

    answer = asyncio.run(run())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNREACHABLE


def test_a_client_certificate_connects_too(cluster: Cluster, make_http: MakeHttp) -> None:
    async def run() -> Seen | Failure:
        connection = await connect(str(cluster.kubeconfig))
        async with Client(connection, http=make_http(connection)) as client:
            return await client.get(
                Kind("", "v1", "namespaces", "Namespace", namespaced=False), Key("", "default"), Seen
            )

    assert isinstance(asyncio.run(run()), Seen)


def test_a_missing_kubeconfig_says_so() -> None:
    with pytest.raises(ConnectError, match="there is no kubeconfig at /no/such/kubeconfig"):
        asyncio.run(connect("/no/such/kubeconfig"))


def test_a_watch_holds_little_memory_while_it_is_silent(cluster: Cluster, make_http: MakeHttp) -> None:
    number = 20

    async def work(client: Client) -> None:
        tracemalloc.start()
        try:
            async with AsyncExitStack() as stack:
                for _ in range(number):
                    stream = await client.stream(THING, "default", {"watch": "true", "resourceVersion": "0"})
                    assert not isinstance(stream, Failure), stream
                    await stack.enter_async_context(stream)
                held, _ = tracemalloc.get_traced_memory()
        finally:
            tracemalloc.stop()
        assert held / number < 128 << 10, "asyncio's own buffer is 256 KiB for each"

    as_watcher(cluster, make_http, work)
