"""Which replica shows which figures."""

import asyncio
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from aiohttp import web
from prometheus_client import Gauge

from foresail.kube.metrics import Metrics, text
from foresail.kube.requests import Requests
from foresail.plan import Key, Kind
from tests.unit.kube.nowhere import nowhere


def test_figures_about_objects_are_shown_by_the_leader_alone_and_by_no_former_one() -> None:
    overdue = Gauge("overdue_seconds", "What the last reconcile found.", registry=None)
    overdue.set(7)
    leads = True
    nothing: Any = SimpleNamespace(writes={}, refused={}, outcomes={"written": 0, "repeated": 0, "dropped": 0})
    metrics = Metrics((), nothing, nothing, lambda: leads, [overdue])
    assert b"\noverdue_seconds 7.0\n" in text(metrics.parts())
    leads = False
    assert b"overdue_seconds" not in text(metrics.parts())


def test_requests_are_counted_by_code_and_measured_under_the_names_of_client_go(tmp_path: Path) -> None:
    async def run() -> str:
        requests = Requests()

        async def refuse(_: web.Request) -> web.Response:
            return web.json_response({"kind": "Status", "code": 403, "reason": "Forbidden"}, status=403)

        application = web.Application()
        application.router.add_route("*", "/{path:.*}", refuse)
        runner = web.AppRunner(application)
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        port = runner.addresses[0][1]
        async with nowhere(tmp_path, port, requests) as client:
            await client.delete(Kind("", "v1", "configmaps", "ConfigMap"), Key("here", "one"), "uid")
            await runner.cleanup()
            await client.delete(Kind("", "v1", "configmaps", "ConfigMap"), Key("here", "one"), "uid")
        nothing: Any = SimpleNamespace(writes={}, refused={}, outcomes={"written": 0, "repeated": 0, "dropped": 0})
        metrics = Metrics((), nothing, nothing, lambda: True, requests=requests)
        return text(metrics.parts()).decode().replace(str(port), "PORT")

    found = asyncio.run(run())
    host = 'host="127.0.0.1:PORT",method="DELETE"'
    assert f'rest_client_requests_total{{code="403",{host}}} 1.0' in found
    assert f'rest_client_requests_total{{code="<error>",{host}}} 1.0' in found
    assert 'rest_client_request_duration_seconds_count{host="127.0.0.1:PORT",verb="DELETE"} 1.0' in found
