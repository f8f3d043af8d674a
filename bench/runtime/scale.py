"""A cluster full of converged Parents: how long a cold start takes, what it holds, how soon it acts, how silent."""

import asyncio
import time

import msgspec

from bench import MeasurementError
from bench.reading import everything
from bench.runtime.processes import Measured
from bench.runtime.reading import CHILD, Found, check_converged
from bench.runtime.world import USER, create_first, multiply, name, namespace, stored_children, world
from bench.silence import LEASES, asked_while_idle, silence_of
from foresail.api.core import NAMESPACE
from foresail.kube.client import Client
from foresail.kube.connect import connect
from foresail.kube.failures import Failure
from foresail.kube.json_stream import LineSplitter
from foresail.kube.server import Stream
from foresail.plan import Key
from testbed import Cluster
from tests.cluster.parents import OWNER, PARENT, parents

_EVENTS_PER_SECOND = 20
_LONGEST = 30.0


def scale(count: int, events: int, idle_seconds: float) -> dict[str, object]:
    """Measure one process among so many Parents, each with its child."""
    with world() as cluster:
        create_first(cluster)
        before = stored_children(cluster)
        with Measured(cluster, "ours") as process:
            process.wait_for(lambda: stored_children(cluster) > before)
            process.wait_idle()
            process.end()
        multiply(cluster, count)
        # They are what they should be; and the API server, which has just been started, has them all in its cache.
        asyncio.run(check_converged(cluster, count))
        with Measured(cluster, "ours") as process:
            synced = process.wait_synced()
            started = process.wait_idle()
            print(f"synced after {synced:.2f} s, {started:.2f} s of CPU until idle", flush=True)
            held, peak = process.memory_mib(), process.memory_mib("VmHWM")
            delays = sorted(asyncio.run(_delays(cluster, count, events)))
            print(f"event to write: {delays[len(delays) // 2] * 1000:.1f} ms at the median", flush=True)
            asked = asked_while_idle(cluster, {USER: process}, idle_seconds)
            facts = process.end()
    if facts["writes"] != 2 * events:
        raise MeasurementError(f"{facts['writes']} writes were sent for {events} new Parents; two each are needed")
    return {
        "sync_s": round(synced, 2),
        "sync_cpu_s": round(started, 2),
        "rss_mib": round(held, 1),
        "rss_peak_mib": round(peak, 1),
        "event_to_write_p50_ms": round(delays[len(delays) // 2] * 1000, 1),
        "event_to_write_p99_ms": round(delays[int(len(delays) * 0.99) - 1] * 1000, 1),
        "event_to_write_max_ms": round(delays[-1] * 1000, 1),
        "idle_seconds": idle_seconds,
        **silence_of(asked),
        "idle_lease_renewals": sum(request.resource == LEASES for request in asked),
        "idle_watches_opened": sum(request.verb == "watch" for request in asked),
    }


async def _delays(cluster: Cluster, before: int, events: int) -> list[float]:
    """Create Parents one by one; return the seconds from each request to the moment at which its child is seen."""
    seen: dict[str, float] = {}
    sent: dict[str, float] = {}
    async with Client(await connect(str(cluster.kubeconfig))) as client:
        _, version = await everything(client, NAMESPACE, Found)
        parameters = {"watch": "true", "resourceVersion": version, "labelSelector": OWNER}
        stream = await client.stream(CHILD, "", parameters)
        if isinstance(stream, Failure):
            raise MeasurementError(f"children cannot be watched: {stream}")
        watching = asyncio.create_task(_note(stream, seen, events))
        for number in range(before, before + events):
            (body,) = parents(namespace(number), [name(number)])
            sent[name(number)] = time.perf_counter()
            answer = await client.create(PARENT, Key(namespace(number), name(number)), body, msgspec.Raw)
            if isinstance(answer, Failure):
                raise MeasurementError(f"Parent {name(number)} was not created: {answer}")
            await asyncio.sleep(1 / _EVENTS_PER_SECOND)
        await asyncio.wait([watching], timeout=_LONGEST)
        watching.cancel()
    if missing := sent.keys() - seen.keys():
        raise MeasurementError(f"{len(missing)} Parents have no child after {_LONGEST:g} s, {min(missing)} among them")
    return [seen[each] - at for each, at in sent.items()]


class _Metadata(msgspec.Struct):
    name: str


class _Object(msgspec.Struct):
    metadata: _Metadata


class _Event(msgspec.Struct):
    object: _Object


async def _note(stream: Stream, seen: dict[str, float], wanted: int) -> None:
    lines = LineSplitter()
    async with stream:
        while len(seen) < wanted:
            chunk = await stream.read()
            now = time.perf_counter()
            for line in lines.feed(chunk):
                seen.setdefault(msgspec.json.decode(line, type=_Event).object.metadata.name, now)
