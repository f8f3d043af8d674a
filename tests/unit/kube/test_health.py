"""What the probes and the metrics say of a process that cannot reach its server."""

import asyncio
from datetime import datetime
from pathlib import Path

import aiohttp
import msgspec

from foresail.kube.clock import now
from foresail.kube.controller import Informer
from foresail.kube.events import Events
from foresail.kube.execute import Executor
from foresail.kube.failures import failure
from foresail.kube.health import readiness_problems, serving
from foresail.kube.loop import Loop
from foresail.kube.metrics import Metrics
from foresail.kube.reflector import WatchSpec
from foresail.kube.store import Store
from foresail.kube.watch import Watch
from foresail.plan import Key, Kind, Plan
from tests.unit.kube.nowhere import nowhere

THING = Kind("runtime.foresail.dev", "v1", "things", "Thing")


class Idle:
    """A controller that watches things and does nothing."""

    name = "idle"

    def __init__(self) -> None:
        self.informers = (Informer(WatchSpec(THING, msgspec.Raw, bytes), Store[bytes](), lambda change: [change.key]),)

    def observe(self, key: Key, _now: datetime) -> Key | None:
        return key

    def decide(self, _seen: Key, _now: datetime) -> Plan:
        return Plan()


def test_without_its_server_a_process_is_healthy_and_not_ready_and_says_why(tmp_path: Path) -> None:
    async def run() -> None:
        async with nowhere(tmp_path) as client, aiohttp.ClientSession() as session:
            executor = Executor(client)
            loop = Loop(client, Idle(), executor, now)
            metrics = Metrics([loop], executor, Events(client, "idle", "me", now), lambda: False)
            running = asyncio.create_task(loop.run())
            async with serving([loop], metrics, "127.0.0.1", 0) as port:

                async def ask(path: str) -> tuple[int, str]:
                    async with session.get(f"http://127.0.0.1:{port}{path}") as answer:
                        return answer.status, await answer.text()

                while loop.watches[0].last_failure is None:  # noqa: ASYNC110 - it is no event of ours
                    await asyncio.sleep(0.01)
                assert await ask("/healthz") == (200, "ok\n")
                code, text = await ask("/readyz")
                assert code == 503
                assert text.startswith("idle: Thing has not been read yet: Unreachable: ")
                code, text = await ask("/metrics")
                assert code == 200
                assert 'leader_election_master_status{name="foresail"} 0.0' in text
                assert "process_resident_memory_bytes" in text
                watched = 'controller="idle",kind="Thing",selector=""'
                assert f'foresail_watch_failures_total{{cause="Unreachable",{watched}}} ' in text
                assert f"foresail_store_age_seconds{{{watched}}} " in text
                assert 'foresail_watch_restarts_total{controller="idle",kind="Thing",selector=""} 1.0' in text
                running.cancel()
                await asyncio.wait([running])
                assert await ask("/healthz") == (503, "idle: the watch of Thing has ended\n")

    asyncio.run(run())


def test_a_failure_of_a_stream_that_two_controllers_share_counts_once(tmp_path: Path) -> None:
    async def run() -> None:
        async with nowhere(tmp_path) as client:
            executor = Executor(client)
            first = Loop(client, Idle(), executor, now)
            second = Loop(client, Idle(), executor, now, siblings=[first])
            metrics = Metrics([first, second], executor, Events(client, "idle", "me", now), lambda: False)
            running = asyncio.create_task(first.run())
            while first.watches[0].last_failure is None:  # noqa: ASYNC110 - it is no event of ours
                await asyncio.sleep(0.01)
            running.cancel()
            await asyncio.wait([running])
            assert second.watches[0].last_failure is not None
            found = {each.name: each.samples for each in metrics.collect()}
            assert [each.value for each in found["foresail_watch_failures"]] == [1.0]
            assert [each.value for each in found["foresail_watch_restarts"]] == [1.0]
            assert len(found["foresail_store_age_seconds"]) == 2

    asyncio.run(run())


def test_a_store_that_the_server_has_not_confirmed_for_long_makes_the_process_unready(tmp_path: Path) -> None:
    async def run() -> None:
        async with nowhere(tmp_path) as client:
            loop = Loop(client, Idle(), Executor(client), now)
            (watch,) = loop.watches
            assert isinstance(watch, Watch)
            watch.reflector.synced = True
            assert readiness_problems([loop]) == []
            watch.last_failure = failure(403, "Forbidden", "things is forbidden")
            await asyncio.sleep(0.01)
            assert readiness_problems([loop], stale_seconds=0.005) == [
                "idle: Thing is stale, last confirmed 0 s ago: Forbidden: things is forbidden (403)"
            ]

    asyncio.run(run())
