"""What a scrape of /metrics costs the event loop, and how many series it has, among ten thousand of everything.

Needs no cluster: the collectors get the rows that a cluster would bring, and are asked over HTTP as Prometheus asks.
"""

import asyncio
import time
import urllib.request
from collections.abc import Iterator
from datetime import datetime, timedelta
from statistics import median
from types import SimpleNamespace
from typing import Any

import msgspec
from prometheus_client.registry import Collector

from foresail.api import velero
from foresail.api.nonadmin import Condition
from foresail.api.policy import SelfServicePolicySpec
from foresail.cron import Dialect
from foresail.kube.clock import now
from foresail.kube.health import serving
from foresail.kube.metrics import Metrics
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Key
from foresail.primers.metrics import PrimerMetrics
from foresail.primers.rows import PlaceholderRow, PrimerRow
from foresail.schedules.metrics import ScheduleMetrics
from foresail.schedules.observe import BackupRow, LocationRow, ScheduleView, VeleroServer
from foresail.schedules.rules import judge
from foresail.schedules.settings import Settings
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.metrics import SelfServiceMetrics
from foresail.selfservice.policy.quota_ledger import QuotaLedger
from foresail.selfservice.requests.status import QUEUED, SUCCEEDED, TRUE
from foresail.selfservice.rows.requests import RequestRow, Status
from foresail.selfservice.rows.velero import VeleroRow
from foresail.tenancy.namespaces import NamespaceRow
from foresail.tenancy.policies import PolicyRow, policy_for
from tests.unit.primers import rows as primer_rows
from tests.unit.schedules import rows as schedule_rows

BACKUPS_EACH, ROUNDS = 30, 5
TROUBLED = 100  # of the Schedules, one in so many fails
DAY = timedelta(days=1)
AVAILABLE = LocationRow(Key("velero", "default"), is_default=True, is_read_only=False, phase="Available", message="")
AWAY = msgspec.structs.replace(AVAILABLE, phase="Unavailable")


def measure(count: int) -> dict[str, object]:
    """Measure scrapes of so many Schedules, healthy and all of them held, and of so many namespaces and Primers."""
    healthy, held = _scraped(_schedules(count, AVAILABLE)), _scraped(_schedules(count, AWAY))
    namespaces, primers = _scraped(_namespaces(count)), _scraped(_primers(count))
    return {
        "scrape_ms_10k_schedules": max(healthy.loop_ms, held.loop_ms),
        "scrape_block_ms_10k_schedules": max(healthy.block_ms, held.block_ms),
        "series_10k_schedules": healthy.series,
        "series_10k_schedules_all_held": held.series,
        "scrape_ms_10k_namespaces": namespaces.loop_ms,
        "scrape_block_ms_10k_namespaces": namespaces.block_ms,
        "series_10k_namespaces": namespaces.series,
        "series_10k_primers": primers.series,
    }


def _scraped(collector: Collector) -> SimpleNamespace:
    return asyncio.run(_scrape(collector))


async def _scrape(collector: Collector) -> SimpleNamespace:
    nothing: Any = SimpleNamespace(writes={}, refused={}, outcomes={"written": 0, "repeated": 0, "dropped": 0})
    metrics = Metrics((), nothing, nothing, lambda: True, [collector])
    spent, blocks, page = [], [], b""
    async with serving((), metrics, "127.0.0.1", 0) as port:
        for _ in range(ROUNDS):
            begun = time.thread_time()
            page = await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")
            spent.append(time.thread_time() - begun)
        for _ in range(ROUNDS):
            ticking = asyncio.create_task(_longest_block())
            await asyncio.to_thread(_read, f"http://127.0.0.1:{port}/metrics")
            ticking.cancel()
            blocks.append(await ticking)
    series = sum(not line.startswith(b"#") for line in page.splitlines())
    return SimpleNamespace(
        loop_ms=round(median(spent) * 1000, 1), block_ms=round(median(blocks) * 1000, 1), series=series
    )


async def _longest_block() -> float:
    """Return the longest processor time between two turns of the event loop, when cancelled."""
    longest, last = 0.0, time.thread_time()
    try:
        while True:
            await asyncio.sleep(0)
            spent = time.thread_time()
            longest, last = max(longest, spent - last), spent
    except asyncio.CancelledError:
        return longest


def _read(address: str) -> bytes:
    with urllib.request.urlopen(address, timeout=60) as answer:  # noqa: S310 - loopback
        found: bytes = answer.read()
        return found


# Schedules


def _schedules(count: int, location: LocationRow) -> ScheduleMetrics:
    metrics, instant = ScheduleMetrics(Store[LocationRow](), tuple), now()
    for number in range(count):
        seen = _seen(number, location, instant)
        metrics.record(seen, judge(seen, instant))
    return metrics


def _seen(number: int, location: LocationRow, instant: datetime) -> ScheduleView:
    name, last = f"schedule-{number:05}", instant - (DAY if location is AVAILABLE else 2 * DAY) + timedelta(hours=1)
    schedule = schedule_rows.schedule(
        key=Key("velero", name),
        uid=name,
        created=instant - 40 * DAY,
        text="@every 24h",
        phase=velero.ENABLED,
        last_backup=last,
    )
    failed = number % TROUBLED == 0
    backups = tuple(_backup(name, age, last, failed=failed and not age) for age in range(BACKUPS_EACH))
    return ScheduleView(schedule, backups, location, VeleroServer(Dialect.GOCRON, "v1.18.3"), Settings())


def _backup(schedule: str, age: int, last: datetime, *, failed: bool) -> BackupRow:
    slot = last - age * DAY
    return BackupRow(
        key=Key("velero", f"{schedule}-{age}"),
        schedule=schedule,
        schedule_uid=schedule,
        slot=slot,
        phase=velero.FAILED if failed else velero.COMPLETED,
        created=slot,
        completed=slot + timedelta(minutes=5),
        expires=slot + 30 * DAY,
    )


# Namespaces with self-service, each with a quota and one backup that has ended


def _namespaces(count: int) -> SelfServiceMetrics:
    spec = {"namespaceSelector": {}, "quotas": {"stored": 20, "active": 2}}
    policies = [PolicyRow(Key("", "team"), msgspec.convert(spec, SelfServicePolicySpec))]
    store, ledger = Store[NamespaceRow](), QuotaLedger()
    metrics = SelfServiceMetrics(store, ledger, lambda name: policy_for(name, {}, policies, frozenset()), lambda _: ())
    for number in range(count):
        name = f"team-{number:05}"
        store.put(Key("", name), NamespaceRow(f"uid-{number}", {}, is_terminating=False))
        ledger.record(f"uid-{number}", f"backup-{number}", is_active=False)
        for old, new in _life(name):
            metrics.changed(BACKUPS, Change(new.key, old, new, initial=False))
        waits, begun = _velero(name, "New"), _velero(name, "InProgress")
        metrics.waited(BACKUPS, Change(waits.key, None, waits, initial=False))
        metrics.waited(BACKUPS, Change(waits.key, waits, begun, initial=False))
    return metrics


def _life(namespace: str) -> Iterator[tuple[RequestRow | None, RequestRow]]:
    """Return a request before and after it was handed to Velero, and after it has ended."""
    queued = Condition(QUEUED, TRUE, "BackupScheduled")
    ended = Condition(SUCCEEDED, TRUE, "Completed")
    first, second, third = (_request(namespace, each) for each in ((), (queued,), (queued, ended)))
    yield first, second
    yield second, third


def _request(namespace: str, conditions: tuple[Condition, ...]) -> RequestRow:
    return RequestRow(
        key=Key(namespace, "daily"),
        uid=namespace,
        version="1",
        generation=1,
        created=now(),
        is_terminating=False,
        finalizer_index=0,
        has_others_finalizers=False,
        is_to_be_deleted=False,
        is_to_be_forced=False,
        source="",
        spec="",
        status=Status(conditions=conditions),
    )


def _velero(namespace: str, phase: str) -> VeleroRow:
    return VeleroRow(
        key=Key("velero", f"{namespace}-daily"),
        uid=namespace,
        created=now(),
        owner=Key(namespace, "daily"),
        request_uid=namespace,
        namespace_uid=namespace,
        is_orphaned=False,
        is_terminating=False,
        phase=phase,
        queue_position=0,
        expires=None,
        mirror="{}",
        spec="{}",
    )


# Primers, each in a namespace of its own, each with one placeholder that was deleted


def _primers(count: int) -> PrimerMetrics:
    metrics = PrimerMetrics()
    for number in range(count):
        primer, pod = _primer(f"team-{number:05}"), _placeholder(f"team-{number:05}")
        metrics.learn_primer(Change(primer.key, None, primer, initial=True))
        metrics.learn_placeholder(Change(pod.key, None, pod, initial=True), is_owned=True)
        metrics.learn_placeholder(Change(pod.key, pod, None, initial=False), is_owned=True)
    return metrics


def _primer(namespace: str) -> PrimerRow:
    return primer_rows.primer(key=Key(namespace, "warm"), uid=namespace, created=now())


def _placeholder(namespace: str) -> PlaceholderRow:
    return PlaceholderRow(
        key=Key(namespace, "placeholder"),
        uid=namespace,
        primer_uid=namespace,
        target_uid=namespace,
        fire=None,
        created=now(),
        scheduled=now() - timedelta(minutes=10),
        node="node",
        phase="Running",
        is_terminating=False,
        disrupted="",
        requests=(("cpu", "1"), ("memory", "1Gi")),
    )
