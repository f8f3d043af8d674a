"""Measures what traces cost a reconcile, off and on, side by side: `python -m bench.tracing`.

The controller decides nothing and writes nothing, so that the runtime is all that is measured.
The last line is one JSON object with every figure.
"""

import asyncio
import json
import sys
import time
from datetime import datetime
from typing import Any

from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor, SpanExporter, SpanExportResult

from foresail.kube.clock import now
from foresail.kube.controller import Informer
from foresail.kube.execute import Outcome, Result
from foresail.kube.loop import Loop
from foresail.kube.otel import OtelTracer
from foresail.kube.tracing import Tracer
from foresail.plan import Key, Plan

KEYS, ROUNDS = 5_000, 7


class Nothing:
    """A controller with nothing to watch, and an executor with nothing to write."""

    name = "nothing"
    informers: tuple[Informer, ...] = ()

    def observe(self, key: Key, _: datetime) -> Key | None:
        """Return the key."""
        return key

    def decide(self, _: Key, __: datetime) -> Plan:
        """Return a Plan without writes."""
        return Plan()

    async def execute(self, _: Plan) -> Result:
        """Do nothing."""
        return Result(Outcome.DONE)


class _Nowhere(SpanExporter):
    def export(self, _: object) -> SpanExportResult:
        return SpanExportResult.SUCCESS

    def shutdown(self) -> None:
        pass


async def reconcile(keys: int, tracer: Tracer | None) -> float:
    """Return the microseconds of processor time of one reconcile."""
    nothing = Nothing()
    no_server: Any = None  # without a watch, nobody is asked
    loop = Loop(no_server, nothing, nothing, now, tracer=tracer)
    done = 0
    ended = asyncio.Event()

    def looked(_: str, __: float) -> None:
        nonlocal done
        done += 1
        if done == keys:
            ended.set()

    loop.on_reconciled = looked
    for number in range(keys):
        loop.queue.add(Key("ns", f"key-{number}"))
    began = time.thread_time()
    running = asyncio.create_task(loop.run())
    await ended.wait()
    used = time.thread_time() - began
    loop.drain()
    await running
    return used / keys * 1e6


def main() -> int:
    """Measure both in turns, and print the best of each."""
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(SimpleSpanProcessor(_Nowhere()))
    off, on = [], []
    for _ in range(ROUNDS):
        off.append(asyncio.run(reconcile(KEYS, None)))
        on.append(asyncio.run(reconcile(KEYS, OtelTracer(provider))))
    print(json.dumps({"reconcile_off_us": round(min(off), 2), "reconcile_on_us": round(min(on), 2)}))
    return 0


if __name__ == "__main__":
    sys.exit(main())
