"""The links of a highly available control plane, with servers that only say who they are."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import ClassVar

import pytest

from testbed.links import Links, State, tell, told
from testbed.ports import Port, is_free
from testbed.replicas import APISERVER, ETCD, members, names, replicas
from testbed.site import Options, Site

SECONDS = 5.0


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Site:
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    return Site.claim("linked", Options(ha=True), None)


@asynccontextmanager
async def linked(site: Site, *down: str) -> AsyncIterator[None]:
    """Run the links, and servers that answer each line with their name, but for those that are down."""
    writers: list[asyncio.StreamWriter] = []

    async def answer(name: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writers.append(writer)
        with suppress(ConnectionError):
            while await reader.readline():
                writer.write(f"{name}\n".encode())
        writer.close()

    ports = {each.name: each.port for each in replicas(site.options, APISERVER)}
    ports |= {each.name: each.peer for each in members(site.options)}
    up = [(name, port) for name, port in ports.items() if name not in down]
    servers = [await asyncio.start_server(partial(answer, name), "127.0.0.1", site.port(port)) for name, port in up]
    serving = asyncio.create_task(Links(site).serve())
    while is_free(site.port(Port.LINKS)):  # noqa: ASYNC110 - a port tells nobody
        await asyncio.sleep(0.01)
    yield
    serving.cancel()
    for server in servers:
        server.close()
    for writer in [*writers, *Caller.writers]:
        writer.transport.abort()
    Caller.writers.clear()
    await asyncio.sleep(0.05)


class Caller:
    """One connection to a link."""

    writers: ClassVar[list[asyncio.StreamWriter]] = []

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader, self.writer = reader, writer
        self.writers.append(writer)

    @classmethod
    async def to(cls, site: Site, port: Port) -> "Caller":
        return cls(*await asyncio.open_connection("127.0.0.1", site.port(port)))

    async def ask(self, line: str = "who", seconds: float = SECONDS) -> str:
        self.writer.write(f"{line}\r\n".encode())
        with suppress(ConnectionError):
            return (await asyncio.wait_for(self.reader.readline(), seconds)).decode().strip()
        return ""


def test_one_control_plane_has_no_links_and_the_usual_names() -> None:
    (member,) = members(Options())
    assert (member.client_link, member.peer_link) == (member.client, member.peer)
    assert names(Options(), APISERVER) == [APISERVER]
    assert names(Options(ha=True), ETCD) == ["etcd-1", "etcd-2", "etcd-3"]
    assert names(Options(ha=True), "velero") == ["velero"]


def test_the_common_address_leads_to_each_server_in_turn_and_to_none_that_is_down(site: Site) -> None:
    async def run() -> None:
        async with linked(site, "kube-apiserver-2"):
            found = [await (await Caller.to(site, Port.APISERVER)).ask() for _ in range(6)]
            assert set(found) == {"kube-apiserver-1", "kube-apiserver-3"}

    asyncio.run(run())


def test_when_it_leads_elsewhere_connections_to_other_servers_end(site: Site) -> None:
    async def run() -> None:
        async with linked(site):
            callers = [await Caller.to(site, Port.APISERVER) for _ in range(3)]
            before = [await each.ask() for each in callers]
            assert sorted(before) == names(site.options, APISERVER)
            await asyncio.to_thread(tell, site, State(led=["kube-apiserver-2"]))
            after = [await each.ask() for each in callers]
            assert after == [name if name == "kube-apiserver-2" else "" for name in before]
            assert await (await Caller.to(site, Port.APISERVER)).ask() == "kube-apiserver-2"

    asyncio.run(run())


def test_between_a_member_that_is_cut_off_and_the_others_nothing_passes_until_it_rejoins(site: Site) -> None:
    async def run() -> None:
        async with linked(site):
            first, second, third = members(site.options)
            of_first = f"X-PeerURLs: http://127.0.0.1:{site.port(first.peer_link)}"
            of_second = f"X-PeerURLs: http://127.0.0.1:{site.port(second.peer_link)}"
            spared = await Caller.to(site, third.peer_link)
            await spared.ask(of_second)
            await asyncio.to_thread(tell, site, State(cut=["etcd-1"]))
            assert (await asyncio.to_thread(told, site)).cut == ["etcd-1"]
            held = [(await Caller.to(site, port), line) for port, line in
                    ((first.peer_link, of_second), (second.peer_link, of_first))]  # fmt: skip
            for caller, line in held:
                with pytest.raises(TimeoutError):
                    await caller.ask(line, 0.2)
            assert await spared.ask() == "etcd-3"
            await asyncio.to_thread(tell, site, State())
            answers = [(await asyncio.wait_for(caller.reader.readline(), SECONDS)).decode() for caller, _ in held]
            assert answers == ["etcd-1\n", "etcd-2\n"]

    asyncio.run(run())
