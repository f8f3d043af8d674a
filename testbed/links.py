"""The links of a highly available control plane: TCP on loopback between its servers, which can be held.

One process of the cluster has all of them: the address before the API servers, one link from each API server to its
etcd member, and one before each member for the others. It is told over HTTP what to do, as the whole state.
"""

import asyncio
import http.client
import json
import re
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from functools import partial
from itertools import count
from typing import Any

from testbed.api import is_ok, request
from testbed.errors import TestbedError
from testbed.places import HERE
from testbed.ports import Port
from testbed.processes import Program
from testbed.replicas import APISERVER, members, replicas
from testbed.site import Site
from testbed.watch_frames import WatchFrames

LINKS = "links"
_PEER = re.compile(rb"X-PeerURLs: \S*?:(\d+)\r\n", re.IGNORECASE)
_LENGTH = re.compile(rb"Content-Length: (\d+)\r\n", re.IGNORECASE)


@dataclass
class State:
    """What the links do, apart from passing everything on."""

    frozen: list[str] = field(default_factory=list)  # API servers that hear nothing from the watches of etcd
    cut: list[str] = field(default_factory=list)  # etcd members between which and the others nothing passes
    led: list[str] = field(default_factory=list)  # the API servers to which the common address leads; none: to all


def links(site: Site) -> Program:
    """Return the process of the links."""
    command = [sys.executable, "-c", f"from testbed.links import main; main({site.name!r})"]
    environment = {"PYTHONPATH": str(HERE.parent), "XDG_STATE_HOME": str(site.folder.parents[2])}
    return Program(LINKS, command, environment, lambda: is_ok(_url(site)))


def told(site: Site) -> State:
    """Return what the links of a cluster do now."""
    return State(**request("GET", _url(site)).json())


def tell(site: Site, state: State) -> None:
    """Let the links of a cluster do that from now on."""
    answer = request("PUT", _url(site), body=asdict(state))
    if answer.code != http.client.OK:
        raise TestbedError(f"the links of {site.name!r} answered {answer.code}: {answer.text}", "see their log")


def _url(site: Site) -> str:
    return site.url(Port.LINKS, "http")


class Rule:
    """What a link does with one connection: as it is, pass everything on."""

    def reached(self, server: str) -> None:
        """Note which server it is that answers."""

    def asked(self, data: bytes) -> None:
        """Note what the client sends."""

    def answered(self, data: bytes) -> tuple[bytes, bytes]:
        """Return what of the server's bytes to pass on, and what to send back to the server."""
        return data, b""

    def obey(self, _state: State) -> bytes:
        """Note a new state; return what was held so far and goes to the client now."""
        return b""

    def is_held(self, _state: State) -> bool:
        """Whether nothing passes in this state."""
        return False

    def is_over(self, _state: State) -> bool:
        """Whether the connection ends in this state."""
        return False


class OfClient(Rule):
    """A connection of a client to an API server."""

    _server = ""

    def reached(self, server: str) -> None:
        """Note which server it is that answers."""
        self._server = server

    def is_over(self, state: State) -> bool:
        """Whether the common address leads elsewhere."""
        return bool(state.led) and self._server not in state.led


class OfApiServer(Rule):
    """A connection of an API server to its etcd member."""

    def __init__(self, server: str) -> None:
        self._server = server
        self._frames = WatchFrames()

    def asked(self, data: bytes) -> None:
        """Note which of its streams are watches."""
        self._frames.asked(data)

    def answered(self, data: bytes) -> tuple[bytes, bytes]:
        """Keep what watches say while the server is frozen."""
        return self._frames.answered(data)

    def obey(self, state: State) -> bytes:
        """Freeze, or release."""
        if self._server not in state.frozen:
            return self._frames.release()
        self._frames.holds = True
        return b""


class OfMember(Rule):
    """A connection of one etcd member to another."""

    def __init__(self, to: str, names: dict[int, str]) -> None:
        self._ends = {to}
        self._names = names  # of the members, by the ports at which others reach them

    def asked(self, data: bytes) -> None:
        """Note who asks: each request says where its sender is reached."""
        if said := _PEER.search(data):
            self._ends.add(self._names[int(said[1])])

    def is_held(self, state: State) -> bool:
        """Whether one of the two is cut off."""
        return not self._ends.isdisjoint(state.cut)


class _End(asyncio.Protocol):
    """One end of a connection; what comes in here goes out at the other."""

    def __init__(self, connection: "_Connection") -> None:
        self._connection = connection
        self.transport: Any = None
        self.is_full = False
        self.kept: list[bytes] = []

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self.transport = transport
        self._connection.made(self)

    def data_received(self, data: bytes) -> None:
        self._connection.came(self, data)

    def connection_lost(self, _error: Exception | None) -> None:
        self._connection.lost(self)

    def pause_writing(self) -> None:
        self.is_full = True
        self._connection.flow()

    def resume_writing(self) -> None:
        self.is_full = False
        self._connection.flow()

    def read(self, *, on: bool) -> None:
        if not self.transport.is_closing() and self.transport.is_reading() != on:
            (self.transport.resume_reading if on else self.transport.pause_reading)()


class _Connection:
    """A client's connection and its twin to a server."""

    def __init__(self, links: "Links", rule: Rule, servers: "Servers") -> None:
        self._links, self._rule, self._servers = links, rule, servers
        self.client, self.server = _End(self), _End(self)
        self._opening: asyncio.Task[None] | None = None

    def made(self, end: _End) -> None:
        """Begin with the client: look for a server."""
        if end is self.client:
            self._links.connections.add(self)
            self._opening = asyncio.get_running_loop().create_task(self._open())

    async def _open(self) -> None:
        """Connect to the first server that is there, and let pass what has come meanwhile."""
        loop = asyncio.get_running_loop()
        for name, port in self._servers():
            with suppress(OSError):
                await loop.create_connection(lambda: self.server, "127.0.0.1", port)
                self._rule.reached(name)
                self.obey()
                return
        self.client.transport.abort()  # all are down: the client learns it as it would without us

    def obey(self) -> None:
        """Do what the state says."""
        if self.server.transport is None:
            return
        if self._rule.is_over(self._links.state):
            self.end()
            return
        self.client.transport.write(self._rule.obey(self._links.state))
        self._pass()

    def came(self, end: _End, data: bytes) -> None:
        """Take what came in at one end."""
        if end is self.client:
            self._rule.asked(data)
        end.kept.append(data)
        self._pass()

    def _pass(self) -> None:
        if self.server.transport is not None and not self._rule.is_held(self._links.state):
            for data in self.client.kept:
                self.server.transport.write(data)
            for data in self.server.kept:
                passed, back = self._rule.answered(data)
                self.client.transport.write(passed)
                self.server.transport.write(back)
            self.client.kept.clear()
            self.server.kept.clear()
        self.flow()

    def flow(self) -> None:
        """Read at each end only if the other one can take more."""
        if self.server.transport is None:
            self.client.read(on=False)
            return
        held = self._rule.is_held(self._links.state)
        self.client.read(on=not (self.server.is_full or held))
        self.server.read(on=not (self.client.is_full or held))

    def end(self) -> None:
        """Reset it at both ends."""
        for end in (self.client, self.server):
            if end.transport is not None:
                end.transport.abort()

    def lost(self, end: _End) -> None:
        """End with either of the two."""
        self._links.connections.discard(self)
        other = self.server if end is self.client else self.client
        if other.transport is not None:
            other.transport.close()


Servers = Callable[[], Sequence[tuple[str, int]]]


class Links:
    """All links of one cluster."""

    def __init__(self, site: Site) -> None:
        self._site = site
        self.state = State()
        self.connections: set[_Connection] = set()
        self._turns = count()

    async def serve(self) -> None:
        """Listen at every link, and for who tells what to do."""
        site = self._site
        names = {site.port(each.peer_link): each.name for each in members(site.options)}
        servers = [await self._listen(Port.APISERVER, OfClient, self._api_servers)]
        for server, member in zip(replicas(site.options, APISERVER), members(site.options), strict=True):
            client, peer = [(member.name, site.port(member.client))], [(member.name, site.port(member.peer))]
            of_client, of_peer = partial(OfApiServer, server.name), partial(OfMember, member.name, names)
            servers.append(await self._listen(member.client_link, of_client, partial(list, client)))
            servers.append(await self._listen(member.peer_link, of_peer, partial(list, peer)))
        servers.append(await asyncio.start_server(self._told, "127.0.0.1", site.port(Port.LINKS)))
        try:
            await asyncio.gather(*(each.serve_forever() for each in servers))
        finally:
            for each in list(self.connections):
                each.end()

    def _api_servers(self) -> Sequence[tuple[str, int]]:
        """Return the API servers to which the common address leads, each in its turn as the first."""
        every = [(each.name, self._site.port(each.port)) for each in replicas(self._site.options, APISERVER)]
        chosen = [each for each in every if not self.state.led or each[0] in self.state.led]
        first = next(self._turns) % len(chosen)
        return chosen[first:] + chosen[:first]

    async def _listen(self, at: Port, rule: Callable[[], Rule], servers: Servers) -> asyncio.Server:
        loop = asyncio.get_running_loop()
        where = "127.0.0.1", self._site.port(at)
        return await loop.create_server(lambda: _Connection(self, rule(), servers).client, *where)

    async def _told(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = await reader.readuntil(b"\r\n\r\n")
        length = _LENGTH.search(head)
        body = await reader.readexactly(int(length[1]) if length else 0)
        if head.startswith(b"PUT "):
            self.state = State(**json.loads(body))
            for each in list(self.connections):
                each.obey()
        answer = json.dumps(asdict(self.state)).encode()
        writer.write(b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: %d\r\n\r\n%s" % (len(answer), answer))
        await writer.drain()
        writer.close()


def main(name: str) -> None:
    """Be the links of the cluster of that name."""
    with suppress(KeyboardInterrupt):
        asyncio.run(Links(Site.open(name)).serve())
