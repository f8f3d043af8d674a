"""What fifty SchedulePolicies cost on a real cluster: `make bench-schedule-policies`, at a tenth `SIZE=0.1`.

The same 10,000 Schedules are served without a policy and then under fifty, by a new process each time. The last line
is one JSON object. It fails if a figure misses its bound.
"""

import argparse
import json
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from functools import partial
from pathlib import Path
from statistics import median
from typing import Any
from zoneinfo import ZoneInfo

import msgspec

from bench import MeasurementError
from bench.arrivals import Arrivals, Event
from bench.figures import Bounds, verdict
from bench.operator import NAMESPACE, SCHEDULES_USER, Operator, operator
from bench.schedules.world import schedule, world
from bench.silence import asked_while_idle, silence_of
from bench.writing import create_all, write_all
from foresail.api import velero
from foresail.api.instants import stamp, whole
from foresail.api.marks import OBSERVED
from foresail.api.schedule_policy import SCHEDULE_POLICY
from foresail.kube.client import Client
from foresail.kube.clock import now
from foresail.plan import Body, Key
from foresail.schedules.build import create_backup
from foresail.schedules.observe import schedule_row
from foresail.schedules.settings import Settings
from testbed import Cluster

CRD = Path(__file__).parents[2] / "charts" / "foresail-crds" / "templates" / "schedulepolicies.yaml"
MANY, DUE, POLICIES, IDLE_SECONDS = 10_000, 2_000, 50, 120.0
NEVER = "0 3 1 1 *"  # not while we measure
ZONE, OTHER_ZONE = "Europe/Berlin", "Asia/Tokyo"
AHEAD = timedelta(seconds=90)  # in which the operator reads the expressions that will be due
EVERYTHING = Key("", "everything")
_LONGEST = 300.0

BOUNDS: Bounds = {
    "idle_writes is 0": lambda f: f["idle_writes"] == 0,
    "memory_ratio is at most 1.1": lambda f: f["memory_ratio"] <= 1.1,
    "lag_p99_s is at most 8": lambda f: f["lag_p99_s"] <= 8,
    "edit_settled_s is at most 60": lambda f: f["edit_settled_s"] <= 60,
}


def policy(key: Key, number: int) -> Body:
    """Return a policy that uses every field; the last one selects all Schedules, and comes last."""
    selector: Body = {} if key == EVERYTHING else {"matchLabels": {"pool": key.name}}
    return {
        "apiVersion": SCHEDULE_POLICY.api_version,
        "kind": SCHEDULE_POLICY.name,
        "metadata": {"name": key.name},
        "spec": {
            "selector": selector,
            "priority": -1 if key == EVERYTHING else number,
            "timeZone": ZONE,
            "spread": {"within": "1s"},  # more would count as lag
            "windows": {"allowed": [{"schedule": "0 * * * *", "duration": "1h"}]},
            "startingDeadline": "4h",
            "retry": {"attempts": 3},
            "concurrency": {"max": 1_000},
            "retention": {"keepLast": 7, "daily": 14, "monthly": 12},
            "objective": {"rpo": "25h"},
        },
    }


def create_schedules(cluster: Cluster, count: int) -> None:
    """Create Schedules that are not due, spread over the pools of all policies, each with one Completed Backup."""
    bodies = [schedule(f"s-{number:05}", NEVER) for number in range(count)]
    for number, body in enumerate(bodies):
        body["metadata"]["labels"]["pool"] = pool(number)
    create_all(cluster, velero.SCHEDULE, ((Key(NAMESPACE, each["metadata"]["name"]), each) for each in bodies))
    made = cluster.get("schedules.velero.io", f"--namespace={NAMESPACE}")["items"]
    slot = whole(now()) - timedelta(hours=12)
    create_all(cluster, velero.BACKUP, (_completed(each, slot) for each in made))


def _completed(made: dict[str, Any], slot: datetime) -> tuple[Key, Body]:
    create = create_backup(
        schedule_row(msgspec.json.decode(msgspec.json.encode(made), type=velero.Schedule)), slot, Settings()
    )
    metadata = create.body["metadata"]
    assert isinstance(metadata, dict)  # noqa: S101 - for the type checker
    named = {**metadata, "name": create.key.name, "namespace": NAMESPACE, "annotations": dict(create.mark)}
    ended = stamp(now() + timedelta(minutes=1))  # after its creation, or it would be one of another cluster
    status = {"phase": "Completed", "startTimestamp": stamp(slot), "completionTimestamp": ended}
    kind = {"apiVersion": velero.BACKUP.api_version, "kind": velero.BACKUP.name}
    return create.key, {**create.body, **kind, "metadata": named, "status": status}


def pool(number: int) -> str:
    """Return the label by which one policy selects a Schedule."""
    return f"pool-{number % (POLICIES - 1):02}"


def create_policies(cluster: Cluster) -> None:
    """Create one policy for each pool, and one that selects all Schedules."""
    keys = [*(Key("", pool(number)) for number in range(POLICIES - 1)), EVERYTHING]
    create_all(cluster, SCHEDULE_POLICY, ((key, policy(key, number)) for number, key in enumerate(keys)))


def serve(cluster: Cluster, first: int, due: int, zone: str, then: Callable[[Operator], None]) -> dict[str, Any]:
    """Measure a new process over what another one has settled: its memory, and how late many runs of one minute are."""
    with operator(cluster, settled="schedules") as process:
        process.wait_events()
    with operator(cluster, settled="schedules") as process:
        process.wait_idle()
        idle_mib = process.memory_mib()
        cpu_seconds, lags = lags_of_due(cluster, process, first, due, zone)
        process.wait_settled("schedules")
        process.wait_idle()
        found = {
            "memory_mib": round(idle_mib, 1),
            "memory_later_mib": round(process.memory_mib(), 1),
            "cpu_ms_per_run": round(cpu_seconds * 1000 / due, 2),
            "lag_p50_s": round(median(lags), 3),
            "lag_p99_s": round(lags[max(int(len(lags) * 0.99) - 1, 0)], 3),
        }
        print(json.dumps(found), flush=True)
        then(process)
    return found


def lags_of_due(cluster: Cluster, process: Operator, first: int, due: int, zone: str) -> tuple[float, list[float]]:
    """Let some Schedules be due at one instant of the year, and return how long after it each Backup was there.

    The first value is the CPU time that the operator used until then.
    """
    tick = (now() + AHEAD + timedelta(minutes=1)).replace(second=0, microsecond=0)
    local = tick.astimezone(ZoneInfo(zone))
    body = {"spec": {"schedule": f"{local.minute} {local.hour} {local.day} {local.month} *"}}
    keys = [Key(NAMESPACE, f"s-{number:05}") for number in range(first, first + due)]
    names = {f"{key.name}-{tick:%Y%m%d%H%M%S}" for key in keys}

    def run_of_the_tick(event: Event) -> str | None:
        name = event.object.metadata.name
        return name if name.rpartition("-")[0] in names else None

    with Arrivals(cluster, velero.BACKUP, NAMESPACE, note=run_of_the_tick) as arrivals:
        write_all(
            cluster, (partial(Client.merge, kind=velero.SCHEDULE, key=key, body=body, of=msgspec.Raw) for key in keys)
        )
        if now() >= tick:
            raise MeasurementError("the machine is too slow: the Schedules were not written before they were due")
        time.sleep((tick - now()).total_seconds())
        before = process.cpu_seconds
        arrivals.wait(due, _LONGEST)
        return process.cpu_seconds - before, arrivals.lags(tick)


def edit(cluster: Cluster, count: int) -> float:
    """Give the policy of all Schedules the highest priority and another zone: each of them records the new zone."""

    def recorded(event: Event) -> str | None:
        return event.object.metadata.name if OTHER_ZONE in event.object.metadata.annotations.get(OBSERVED, "") else None

    body = {"spec": {"priority": 1_000, "timeZone": OTHER_ZONE}}
    with Arrivals(cluster, velero.SCHEDULE, NAMESPACE, note=recorded) as arrivals:
        begun = now()
        write_all(cluster, [partial(Client.merge, kind=SCHEDULE_POLICY, key=EVERYTHING, body=body, of=msgspec.Raw)])
        arrivals.wait(count, _LONGEST)
        return arrivals.lags(begun)[-1]


def measure(cluster: Cluster, many: int, due: int, idle: float) -> dict[str, Any]:
    """Serve the same Schedules without policies and under them; then edit one that concerns all, and be idle."""
    cluster.kubectl("apply", "--server-side", f"--filename={CRD}")
    cluster.wait_for_kinds()
    create_schedules(cluster, many)
    bare = serve(cluster, 0, due, "UTC", lambda _: None)
    create_policies(cluster)
    found: dict[str, Any] = {"schedules": many, "due": due, "policies": POLICIES}

    def edited(process: Operator) -> None:
        found["edit_settled_s"] = round(edit(cluster, many), 2)
        process.wait_settled("schedules")
        process.wait_events()
        found["idle_seconds"] = idle
        found.update(silence_of(asked_while_idle(cluster, {SCHEDULES_USER: process}, idle)))

    under = serve(cluster, due, due, ZONE, edited)
    return {
        **found,
        **under,
        **{f"without_policies_{name}": value for name, value in bare.items()},
        "memory_ratio": round(under["memory_mib"] / bare["memory_mib"], 3),
        "memory_later_ratio": round(under["memory_later_mib"] / bare["memory_later_mib"], 3),
    }


def main() -> int:
    """Measure, print, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedules.under_policies", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    size = parser.parse_args().size
    with world() as cluster:
        figures = measure(cluster, int(MANY * size), int(DUE * size), IDLE_SECONDS * max(size, 0.25))
    return verdict({"size": size, **figures}, BOUNDS)


if __name__ == "__main__":
    sys.exit(main())
