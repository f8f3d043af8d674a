"""What a process reports on SIGUSR1."""

import asyncio
import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import msgspec

from foresail.kube.clock import now
from foresail.kube.debug import report, store_bytes
from foresail.kube.execute import Executor
from foresail.kube.loop import Loop
from foresail.kube.store import Store
from foresail.plan import Key
from tests.unit.kube.nowhere import nowhere
from tests.unit.kube.test_health import Idle

STUCK = """
import asyncio, time
from foresail.kube.debug import debugging

async def main():
    with debugging([]):
        stuck()

def stuck():
    print("ready", flush=True)
    time.sleep(60)

asyncio.run(main())
"""
REPORTS = """
import asyncio
from foresail.kube.debug import debugging
from foresail.kube.logs import log_as_json

async def main():
    log_as_json()
    with debugging([]):
        print("ready", flush=True)
        await asyncio.sleep(60)

asyncio.run(main())
"""


class Row(msgspec.Struct, frozen=True, gc=False):
    name: str
    labels: dict[str, str]


def test_it_names_stores_queues_and_where_each_task_waits(tmp_path: Path) -> None:
    async def run() -> list[tuple[str, dict[str, Any]]]:
        async with nowhere(tmp_path) as client:
            loop = Loop(client, Idle(), Executor(client), now)
            loop.watches[0].reflector.store.put(Key("ns", "a"), b"x" * 100)
            loop.queue.add(Key("ns", "b"))
            loop.queue.add(Key("ns", "c"), initial=True)
            loop.queue.retry(Key("ns", "d"))
            running = asyncio.create_task(loop.run(), name="the loop")
            await asyncio.sleep(0.05)
            found = [(what, dict(fields)) for what, fields in report([loop])]
            running.cancel()
            await asyncio.wait([running])
            return found

    found = asyncio.run(run())
    of = {what: fields for what, fields in found if what != "task"}
    assert of["memory"]["resident_bytes"] > 1 << 20
    assert 100 < of["memory"]["store_bytes"]["idle"] < 1000
    assert (of["store"]["kind"], of["store"]["objects"]) == ("Thing", 1)
    assert (of["queue"]["live"], of["queue"]["initial"], of["queue"]["in_back_off"]) == (1, 1, 1)
    assert set(of["queue"]["oldest"]) == {"ns/b", "ns/c"}
    assert of["queue"]["failing"] == {"ns/d": 1}
    stacks = {fields["task"]: fields["stack"] for what, fields in found if what == "task"}
    assert any("Loop.run" in frame for frame in stacks["the loop"])
    assert len(stacks["the loop"]) > 1, "it shows what the task waits for inside, not only its outermost function"


def test_the_bytes_of_a_store_grow_with_its_rows() -> None:
    def filled(count: int) -> Store[Row]:
        store = Store[Row]()
        for number in range(count):
            store.put(Key("ns", str(number)), Row(f"name-{number}", {"label": f"value-{number}"}))
        return store

    assert store_bytes(filled(0)) == 0
    ratio = store_bytes(filled(10_000)) / store_bytes(filled(1_000))
    assert 8 < ratio < 12


def lines_after_the_signal(script: str) -> Iterator[str]:
    """Start a script, send it SIGUSR1, and return what it writes to stderr."""
    with subprocess.Popen([sys.executable, "-c", script], stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        assert process.stdout.readline() == b"ready\n"
        os.kill(process.pid, signal.SIGUSR1)
        try:
            while line := process.stderr.readline().decode():
                yield line
        finally:
            process.kill()


def test_a_stuck_event_loop_still_shows_where_it_is_stuck() -> None:
    assert any("in stuck" in line for line in lines_after_the_signal(STUCK))


def test_the_report_is_in_the_log_and_the_process_goes_on() -> None:
    for line in lines_after_the_signal(REPORTS):
        if line.startswith("{"):
            found = json.loads(line)
            if found["message"] == "debug: task":
                assert any("main" in frame for frame in found["stack"])
                return
    raise AssertionError("it ended without a report")
