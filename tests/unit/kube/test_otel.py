"""Spans of requests, and the way of spans out of the process."""

import asyncio
import socket
import threading
import time
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind

from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.otel import OtelTracer, exporting
from foresail.plan import Key, Kind
from tests.unit.kube.nowhere import kubeconfig_of

THING, NAME = Kind("runtime.foresail.dev", "v1", "things", "Thing"), Key("ns", "a")
_FOUND = b"HTTP/1.1 200 OK\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"
_MISSING = b"HTTP/1.1 404 Not Found\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}"


async def _answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    """Find what is read, and miss what is written to; the rest of the connection is closed."""
    head = await reader.readuntil(b"\r\n\r\n")
    writer.write(_FOUND if head.startswith(b"GET") else _MISSING)
    await writer.drain()
    writer.close()
    await writer.wait_closed()


def test_each_request_inside_a_reconcile_is_a_span_and_those_outside_are_not(tmp_path: Path) -> None:
    exporter = InMemorySpanExporter()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    tracer = OtelTracer(provider)

    async def ask(port: int) -> None:
        async with Client(await connect(kubeconfig_of(tmp_path, port)), tracer=tracer) as client:

            async def execute() -> None:
                await client.get(THING, NAME, dict[str, object])
                await client.merge(THING, NAME, {}, dict[str, object])

            await client.get(THING, NAME, dict[str, object])  # as a background read does
            await tracer.async_step("execute", execute)()

    async def live() -> None:
        async with await asyncio.start_server(_answer, "127.0.0.1", 0) as server:
            await ask(server.sockets[0].getsockname()[1])
        async with Client(await connect(kubeconfig_of(tmp_path, 9)), tracer=tracer) as client:
            await tracer.async_step("execute", lambda: client.merge(THING, NAME, {}, dict[str, object]))()

    asyncio.run(live())
    read, missing, first, unreachable, second = exporter.get_finished_spans()
    assert [each.name for each in (first, second)] == ["execute", "execute"]
    for each, parent, method, code, error in (
        (read, first, "GET", 200, None),
        (missing, first, "PATCH", 404, "404"),
        (unreachable, second, "PATCH", None, "ClientConnectorError"),
    ):
        assert each.parent is not None
        assert parent.context is not None
        assert each.parent.span_id == parent.context.span_id
        assert (each.name, each.kind) == (method, SpanKind.CLIENT)
        assert each.attributes is not None
        assert each.attributes["url.path"] == "/apis/runtime.foresail.dev/v1/namespaces/ns/things/a"
        assert each.attributes.get("http.response.status_code") == code
        assert each.attributes.get("error.type") == error
        assert each.status.is_ok == (error is None)


def test_a_collector_that_does_not_answer_blocks_no_one(monkeypatch: pytest.MonkeyPatch) -> None:
    async def live() -> float:
        async with exporting("one") as tracer:
            for _ in range(10):
                tracer.step("observe", lambda: None)()
            began = time.monotonic()
        return time.monotonic() - began

    before = set(threading.enumerate())
    with socket.create_server(("127.0.0.1", 0)) as silent:  # takes the connection, and never reads from it
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{silent.getsockname()[1]}")
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "4")
        assert asyncio.run(live()) < 3.5
        for thread in set(threading.enumerate()) - before:
            thread.join(60)
