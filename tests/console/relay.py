"""Lets one console reach the API server from an address of its own, by which the audit log knows its requests."""

import asyncio
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

_CHUNK = 1 << 16


@contextmanager
def relayed(kubeconfig: Path, address: str, file: Path) -> Iterator[Path]:
    """Pass bytes on from that loopback address until the block ends; return a kubeconfig that leads through here."""
    content = json.loads(kubeconfig.read_text())
    cluster = content["clusters"][0]["cluster"]
    target = urlsplit(cluster["server"])
    loop = asyncio.new_event_loop()
    thread = threading.Thread(target=loop.run_forever, name="relay", daemon=True)
    thread.start()

    async def passed_on(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError):
            there = await asyncio.open_connection(target.hostname, target.port, local_addr=(address, 0))
            await asyncio.gather(_pump(reader, there[1]), _pump(there[0], writer))

    async def listen() -> asyncio.Server:
        return await asyncio.start_server(passed_on, "127.0.0.1", 0)

    server = asyncio.run_coroutine_threadsafe(listen(), loop).result(10)
    cluster["server"] = f"https://127.0.0.1:{server.sockets[0].getsockname()[1]}"
    file.touch(mode=0o600)
    file.write_text(json.dumps(content))
    try:
        yield file
    finally:
        loop.call_soon_threadsafe(server.close)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(10)


async def _pump(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    try:
        while data := await reader.read(_CHUNK):
            writer.write(data)
            await writer.drain()
    except OSError:
        pass
    finally:
        writer.close()
