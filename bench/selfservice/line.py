"""A long queue: what one change in it costs, and how a queue that moves is told to those who wait."""

import time
from bisect import bisect_right
from collections.abc import Hashable, Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from itertools import pairwise
from typing import Any

import msgspec

from bench.arrivals import Arrivals, Event
from bench.operator import SELF_SERVICE_USER, operator
from bench.selfservice.speed import at_once, writes_per_request
from bench.selfservice.world import (
    FLAGS,
    TENANTS,
    administrator,
    create_namespaces,
    in_line,
    tenant,
    velero_says,
    world,
)
from bench.silence import heard, is_quiet, is_write
from foresail.api.nonadmin import NON_ADMIN_BACKUP
from foresail.kube.clock import now
from foresail.selfservice.queue.positions import NEAR
from testbed import Cluster
from testbed.audit import Request

PROGRESS = 3
STEP = 0.5  # seconds between two completions
WINDOW = 5.0  # seconds over which the rate of farther positions is taken
_SETTLE = 3.0
_PATIENCE = 60.0


class _QueueInfo(msgspec.Struct, rename="camel"):
    estimated_queue_position: int | None = None


class _Status(msgspec.Struct, rename="camel"):
    queue_info: _QueueInfo = msgspec.field(default_factory=_QueueInfo)


_status = msgspec.json.Decoder(_Status)


def positions(event: Event) -> Hashable | None:
    """Note each position that each request is shown."""
    position = _status.decode(event.object.status).queue_info.estimated_queue_position
    return None if position is None else (event.object.metadata.name, position)


def fanout(count: int, completions: int) -> dict[str, object]:
    """Measure what one change costs among so many that are active, and what so many completions cost."""
    with world(audit=True) as cluster:
        create_namespaces(cluster, map(tenant, range(TENANTS)))
        with operator(cluster, *FLAGS, settled="selfservice") as process:
            seconds = at_once(cluster, count)
            process.wait_idle()
            writes, events = writes_per_request(heard(cluster, SELF_SERVICE_USER), count)
            found: dict[str, object] = {
                "active": count,
                "active_created_s": round(seconds, 2),
                "active_writes_per_nab": writes,
                "active_events_per_nab": events,
            }
            with administrator(cluster) as (runner, client):
                line = runner.run(in_line(client))
                runner.run(velero_says(client, line[0][1], {"phase": "InProgress"}))
                time.sleep(_SETTLE)
                process.wait_idle()
                costs = []
                for done in range(PROGRESS):
                    before = len(heard(cluster, SELF_SERVICE_USER))
                    progress = {"totalItems": 100, "itemsBackedUp": done + 1}
                    runner.run(velero_says(client, line[0][1], {"progress": progress}))
                    time.sleep(_SETTLE)
                    costs.append(sum(not is_quiet(each) for each in heard(cluster, SELF_SERVICE_USER)[before:]))
            print(f"one progress change costs {costs} requests", flush=True)
            return found | {"fanout_requests": max(costs)} | _completions(cluster, line, completions)


def _completions(cluster: Cluster, line: Sequence[tuple[str, str]], count: int) -> dict[str, object]:
    before = len(heard(cluster, SELF_SERVICE_USER))
    steps: list[datetime] = []
    with administrator(cluster) as (runner, client), Arrivals(cluster, NON_ADMIN_BACKUP, note=positions) as arrivals:
        arrivals.wait(len(line), _PATIENCE)  # what it is told at first: all that are there
        for (_, done), (_, next_one) in pairwise(line[: count + 1]):
            begun = time.monotonic()
            steps.append(now())
            runner.run(velero_says(client, done, {"phase": "Completed"}))
            runner.run(velero_says(client, next_one, {"phase": "InProgress"}))
            time.sleep(max(STEP - (time.monotonic() - begun), 0.0))
        names = [name for name, _ in line]
        deadline = now() + timedelta(seconds=_PATIENCE)
        while (lags := near_lags(names, steps, arrivals.seen.copy()))[1] and now() < deadline:
            time.sleep(0.5)
    asked = heard(cluster, SELF_SERVICE_USER)[before:]
    late, missing = lags
    far = far_writes(names, steps, asked)
    figures: dict[str, object] = {
        "completions": count,
        "near_shown_p99_s": round(late[max(int(len(late) * 0.99) - 1, 0)], 3),
        "near_not_shown": missing,
        "completion_requests": sum(not is_quiet(each) for each in asked),
        "far_writes": len(far),
        "far_writes_per_s": most_per_second(far, WINDOW),
    }
    print(figures, flush=True)
    return figures


def near_lags(names: Sequence[str], steps: Sequence[datetime], seen: Mapping[Any, datetime]) -> tuple[list[float], int]:
    """Return how long after each step those near the front were shown their position or a lower one, and how many not.

    After so many steps, whoever was at position P at the start is at P less their number.
    """
    shown: dict[str, list[tuple[int, datetime]]] = {}
    for (name, position), at in seen.items():
        shown.setdefault(name, []).append((position, at))
    lags, missing = [], 0
    for step, begun in enumerate(steps, start=1):
        for place in range(step + 1, min(step + NEAR, len(names))):
            times = [at for position, at in shown.get(names[place], ()) if position <= place + 1 - step]
            if times:
                lags.append(max((min(times) - begun).total_seconds(), 0.0))
            else:
                missing += 1
    return sorted(lags) or [0.0], missing


def far_writes(names: Sequence[str], steps: Sequence[datetime], asked: Iterable[Request]) -> list[float]:
    """Return when requests were written that were far from the front, in seconds."""
    place = {name: number for number, name in enumerate(names)}
    kind = f"{NON_ADMIN_BACKUP.plural}.{NON_ADMIN_BACKUP.group}/status"
    return sorted(
        each.at.timestamp()
        for each in asked
        if is_write(each) and each.resource == kind and place[each.name] + 1 - bisect_right(steps, each.at) > NEAR
    )


def most_per_second(instants: Sequence[float], window: float) -> int:
    """Return the highest rate over any stretch of that many seconds, to the next whole number."""
    most, first = 0, 0
    for last, instant in enumerate(instants):
        while instants[first] <= instant - window:
            first += 1
        most = max(most, last - first + 1)
    return round(most / window)
