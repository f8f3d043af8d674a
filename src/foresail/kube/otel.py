"""Traces by the OpenTelemetry SDK; the only module that imports it, and loaded only if traces are on."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from functools import wraps
from threading import Thread
from types import SimpleNamespace
from typing import ParamSpec, TypeVar

import aiohttp
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import SpanKind, StatusCode

from foresail import __version__
from foresail.kube.expectations import Written
from foresail.kube.tracing import Reconcile
from foresail.plan import Key

P = ParamSpec("P")
R = TypeVar("R")
CONTROLLER, KEY, OUTCOME = "foresail.controller", "foresail.key", "foresail.outcome"
_LAST_SPANS = 2.0  # seconds for spans that still wait at the end
_FIRST_ERROR = 400


class OtelTracer:
    """Makes spans with the tracer of a provider; their parents follow from the running task."""

    def __init__(self, provider: TracerProvider) -> None:
        self._tracer = provider.get_tracer("foresail", __version__)

    def reconcile(self, controller: str, run: Reconcile) -> Reconcile:
        """Return a reconcile with a span around it: the controller, the key, and the outcome."""

        @wraps(run)
        async def traced(key: Key) -> tuple[str, tuple[Written, ...]]:
            about = {CONTROLLER: controller, KEY: str(key)}
            with self._tracer.start_as_current_span("reconcile", attributes=about) as span:
                outcome = "crashed"
                try:
                    outcome, written = await run(key)
                except asyncio.CancelledError:
                    outcome = "interrupted"
                    raise
                finally:
                    span.set_attribute(OUTCOME, outcome)
                if outcome == "failed":
                    span.set_status(StatusCode.ERROR)
                return outcome, written

        return traced

    def step(self, name: str, run: Callable[P, R]) -> Callable[P, R]:
        """Return a step with a span around it."""

        @wraps(run)
        def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._tracer.start_as_current_span(name):
                return run(*args, **kwargs)

        return traced

    def async_step(self, name: str, run: Callable[P, Awaitable[R]]) -> Callable[P, Awaitable[R]]:
        """Return a step that waits with a span around it."""

        @wraps(run)
        async def traced(*args: P.args, **kwargs: P.kwargs) -> R:
            with self._tracer.start_as_current_span(name):
                return await run(*args, **kwargs)

        return traced

    def tracing(self) -> aiohttp.TraceConfig:
        """Return what a session needs to make a span of each request inside a reconcile.

        A request outside is left out: Lease renewals and watches would be most of all spans.
        """
        config = aiohttp.TraceConfig()
        config.on_request_start.append(self._started)
        config.on_request_end.append(_answered)
        config.on_request_exception.append(_failed)
        return config

    async def _started(self, _: object, context: SimpleNamespace, start: aiohttp.TraceRequestStartParams) -> None:
        context.span = None
        if trace.get_current_span().is_recording():
            about: dict[str, str | int] = {
                "http.request.method": start.method,
                "url.path": start.url.path,
                "server.address": start.url.host or "",
                "server.port": start.url.port or 0,
            }
            context.span = self._tracer.start_span(start.method, kind=SpanKind.CLIENT, attributes=about)


async def _answered(_: object, context: SimpleNamespace, end: aiohttp.TraceRequestEndParams) -> None:
    if context.span is not None:
        context.span.set_attribute("http.response.status_code", end.response.status)
        if end.response.status >= _FIRST_ERROR:
            context.span.set_attribute("error.type", str(end.response.status))
            context.span.set_status(StatusCode.ERROR)
        context.span.end()


async def _failed(_: object, context: SimpleNamespace, end: aiohttp.TraceRequestExceptionParams) -> None:
    if context.span is not None:
        context.span.set_attribute("error.type", type(end.exception).__qualname__)
        context.span.set_status(StatusCode.ERROR)
        context.span.end()


@asynccontextmanager
async def exporting(identity: str) -> AsyncIterator[OtelTracer]:
    """Send spans from a thread to the collector that the OTEL_ variables name; flush them at the end."""
    ours = {"service.name": "foresail", "service.version": __version__, "service.instance.id": identity}
    resource = Resource.create().merge(Resource(ours)).merge(OTELResourceDetector().detect())
    provider = TracerProvider(resource=resource, shutdown_on_exit=False)
    provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter()))
    try:
        yield OtelTracer(provider)
    finally:
        # A collector that does not answer must not delay the shutdown.
        closing = Thread(target=provider.shutdown, daemon=True)
        closing.start()
        await asyncio.to_thread(closing.join, _LAST_SPANS)
