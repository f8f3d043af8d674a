"""The client, at a server that no API server can be made to be."""

import asyncio
from pathlib import Path

import aiohttp
import pytest

from foresail.kube.failures import Cause, Failure
from tests.unit.kube.nowhere import nowhere


async def _say_nothing(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        await reader.read()  # until the client has had enough
    finally:
        writer.close()
        await writer.wait_closed()


def test_who_takes_the_connection_and_never_answers_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("foresail.kube.client._TIMEOUT", aiohttp.ClientTimeout(total=0.2))

    async def ask() -> object:
        async with await asyncio.start_server(_say_nothing, "127.0.0.1", 0) as silent:
            port = silent.sockets[0].getsockname()[1]
            async with nowhere(tmp_path, port) as client, asyncio.timeout(20):
                return await client.server_time()

    answer = asyncio.run(ask())
    assert isinstance(answer, Failure)
    assert answer.cause is Cause.UNREACHABLE
