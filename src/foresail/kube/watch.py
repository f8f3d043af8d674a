"""Runs a reflector against the API server: opens what it asks for, and feeds it what comes."""

import asyncio
import random
from collections.abc import AsyncIterator
from typing import Generic, TypeVar

import aiohttp

from foresail.kube.client import Client, address
from foresail.kube.failures import Failure, unreachable
from foresail.kube.lines import Lines
from foresail.kube.reflector import Page, Phase, Reflector

Wire = TypeVar("Wire")
Row = TypeVar("Row")

_STALL_SECONDS = 90.0  # the API server sends a bookmark each minute, so silence beyond that is a dead stream
_FIRST_PAUSE, _LONGEST_PAUSE = 0.2, 10.0
_TURN = 500  # lines after which other tasks get a turn


class Watch(Generic[Wire, Row]):
    """One stream for one interest, kept open for as long as `run` runs."""

    def __init__(self, client: Client, reflector: Reflector[Wire, Row], *, stall: float = _STALL_SECONDS) -> None:
        self.reflector = reflector
        self.synced = asyncio.Event()
        self.last_failure: Failure | None = None
        self._client = client
        self._stall = stall
        self._path = address(reflector.interest.kind, reflector.interest.namespace)

    async def run(self) -> None:
        """Follow the interest until cancelled; no answer of the server's ends it."""
        pause = _FIRST_PAUSE
        while True:
            before = self.reflector.phase
            failure = await self._request()
            self.last_failure = failure
            wait = self.reflector.ended(failure)
            if self.reflector.phase is not before or failure is None:
                pause = _FIRST_PAUSE
            if wait:
                await asyncio.sleep(pause * random.uniform(0.75, 1.25))  # noqa: S311 - to spread, not to hide
                pause = min(pause * 2, _LONGEST_PAUSE)

    async def _request(self) -> Failure | None:
        if self.reflector.phase is Phase.LISTING:
            return await self._list()
        response = await self._client.stream(self._path, self.reflector.parameters)
        if isinstance(response, Failure):
            return response
        async with response:
            try:
                async for line in self._lines(response):
                    failure = self.reflector.line(line)
                    if failure is not None:
                        return failure
                    if self.reflector.synced and not self.synced.is_set():
                        self.synced.set()
            except (aiohttp.ClientError, OSError) as problem:
                return unreachable(problem)
            finally:
                # Not released: what is left of the stream belongs to nobody. And aborted first, because TLS says
                # farewell to the server and waits for the answer, for which the event loop may not live long enough.
                if response.connection is not None and response.connection.transport is not None:
                    response.connection.transport.abort()
                response.close()
        return None

    async def _lines(self, response: aiohttp.ClientResponse) -> AsyncIterator[bytes]:
        lines = Lines()
        since_turn = 0
        while True:
            try:
                async with asyncio.timeout(self._stall):  # not wait_for: see the queue
                    chunk = await response.content.readany()
            except TimeoutError:
                raise ConnectionAbortedError(f"nothing came for {self._stall:g} s") from None
            if not chunk:
                return
            for line in lines.feed(chunk):
                since_turn += 1
                yield line
            if since_turn >= _TURN:
                since_turn = 0
                await asyncio.sleep(0)

    async def _list(self) -> Failure | None:
        interest = self.reflector.interest
        while self.reflector.phase is Phase.LISTING:
            page = await self._client.page(interest.kind, interest.namespace, self.reflector.parameters, Page)
            if isinstance(page, Failure):
                return page
            self.reflector.page(page)
        self.synced.set()
        return None
