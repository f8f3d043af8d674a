"""Forwards TCP connections from an address to the same ports on loopback: `forward.py ADDRESS PORT...`."""

import asyncio
import sys
from contextlib import suppress

_CHUNK = 1 << 16


async def _copy(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await source.read(_CHUNK):
            sink.write(data)
            await sink.drain()
        sink.write_eof()


async def _serve(address: str, port: int) -> None:
    async def forward(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            upstream, sink = await asyncio.open_connection("127.0.0.1", port)
        except OSError:
            writer.close()  # nobody listens: the caller learns it as if it had asked there
            return
        await asyncio.gather(_copy(reader, sink), _copy(upstream, writer))
        for each in (writer, sink):
            each.close()

    server = await asyncio.start_server(forward, address, port)
    async with server:
        await server.serve_forever()


async def _main(address: str, ports: list[int]) -> None:
    await asyncio.gather(*(_serve(address, port) for port in ports))


if __name__ == "__main__":
    asyncio.run(_main(sys.argv[1], [int(port) for port in sys.argv[2:]]))
