"""One small HTTP server for whoever looks after the process: /metrics, /healthz and /readyz."""

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from foresail.kube.loop import Loop
from foresail.kube.metrics import CONTENT_TYPE, Metrics, text
from foresail.kube.watch import STALE_SECONDS


def complaints_of_health(loops: Sequence[Loop[Any]]) -> list[str]:
    """Say what only a restart can mend: a watch that has ended. That nobody answers at all says the rest."""
    return [
        f"{loop.controller.name}: the watch of {kind.name} has ended" for loop in loops for kind in loop.ended_watches
    ]


def complaints_of_readiness(loops: Sequence[Loop[Any]], stale_seconds: float = STALE_SECONDS) -> list[str]:
    """Report stores that were never read or are stale. A follower is ready too: it must be there before it leads."""
    found = []
    for loop in loops:
        for watch in loop.watches:
            name = f"{loop.controller.name}: {watch.reflector.spec.kind.name}"
            why = f": {watch.last_failure}" if watch.last_failure else ""
            if not watch.reflector.synced:
                found.append(f"{name} has not been read yet{why}")
            elif watch.age() > stale_seconds:
                found.append(f"{name} is stale, last confirmed {watch.age():.0f} s ago{why}")
    return found


@asynccontextmanager
async def serving(
    loops: Sequence[Loop[Any]],
    metrics: Metrics,
    host: str | None,
    port: int,
    *,
    stale_seconds: float = STALE_SECONDS,
) -> AsyncIterator[int]:
    """Answer until the block ends; yield the port, which is a free one if 0 was asked for."""

    async def show(_: web.Request) -> web.Response:
        return web.Response(body=await _rendered(metrics), headers={"Content-Type": CONTENT_TYPE})

    async def healthy(_: web.Request) -> web.Response:
        return _answer(complaints_of_health(loops))

    async def ready(_: web.Request) -> web.Response:
        return _answer(complaints_of_readiness(loops, stale_seconds))

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
    """Read the figures in parts, and render them in a thread: the event loop has other work."""
    parts = []
    for part in metrics.parts():
        parts.append(part)
        await asyncio.sleep(0)
    return await asyncio.to_thread(text, parts)


def _answer(complaints: list[str]) -> web.Response:
    return web.Response(text="\n".join(complaints or ["ok"]) + "\n", status=503 if complaints else 200)
