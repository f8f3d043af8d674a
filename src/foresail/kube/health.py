"""The HTTP server with /metrics, /healthz and /readyz."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from foresail.kube.loop import Loop
from foresail.kube.metrics import CONTENT_TYPE, Metrics, text
from foresail.kube.store import STALE_SECONDS


def liveness_problems(loops: Sequence[Loop[Any]]) -> list[str]:
    """Return what only a restart can fix: a watch that has ended. A blocked event loop answers nothing at all."""
    return [
        f"{loop.controller.name}: the watch of {kind.name} has ended" for loop in loops for kind in loop.ended_watches
    ]


def readiness_problems(loops: Sequence[Loop[Any]], stale_seconds: float = STALE_SECONDS) -> list[str]:
    """Return the stores that were never read or are stale; a follower can be ready too."""
    problems = []
    for loop in loops:
        for watch in loop.watches:
            name = f"{loop.controller.name}: {watch.reflector.spec.kind.name}"
            why = f": {watch.last_failure}" if watch.last_failure else ""
            if not watch.reflector.synced:
                problems.append(f"{name} has not been read yet{why}")
            elif watch.age() > stale_seconds:
                why = why or ": the API server answers and sends nothing new"
                problems.append(f"{name} is stale, last confirmed {watch.age():.0f} s ago{why}")
    return problems


@asynccontextmanager
async def serving(
    loops: Sequence[Loop[Any]],
    metrics: Metrics,
    host: str | None,
    port: int,
    *,
    stale_seconds: float = STALE_SECONDS,
) -> AsyncIterator[int]:
    """Serve until the block ends; yield the port, which is a free one if `port` is 0."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=await _rendered(metrics), headers={"Content-Type": CONTENT_TYPE})

    async def healthy(_: web.Request) -> web.Response:
        return _answer(liveness_problems(loops))

    async def ready(_: web.Request) -> web.Response:
        return _answer(readiness_problems(loops, stale_seconds))

    application = web.Application()
    application.add_routes([web.get("/metrics", show), web.get("/healthz", healthy), web.get("/readyz", ready)])
    runner = web.AppRunner(application, access_log=None, handle_signals=False)
    await runner.setup()
    try:
        site = web.TCPSite(runner, host, port)
        await site.start()
        yield runner.addresses[0][1]
    finally:
        await runner.cleanup()


async def _rendered(metrics: Metrics) -> bytes:
    """Collect the metrics in parts and render them in a thread, so that the event loop is not blocked."""
    parts = []
    for part in metrics.parts():
        parts.append(part)
        await asyncio.sleep(0)
    return await asyncio.to_thread(text, parts)


def _answer(problems: list[str]) -> web.Response:
    return web.Response(text="\n".join(problems or ["ok"]) + "\n", status=503 if problems else 200)
