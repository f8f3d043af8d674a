"""What fifty SchedulePolicies cost the operator among ten thousand Schedules: time of its decisions, and memory.

Needs no cluster: the controller gets the rows that a cluster would bring. A cluster adds the time of its writes: a new
time zone or new retention rules change an annotation of each Schedule.
"""

import gc
import time
import tracemalloc
from datetime import datetime, timedelta

import msgspec

from foresail.api.schedule_policy import (
    Concurrency,
    Objective,
    Retention,
    Retry,
    SchedulePolicySpec,
    ScheduleSelector,
)
from foresail.cron import Dialect
from foresail.kube.controller import LowPriority
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change
from foresail.plan import Key
from foresail.schedules.controller import Schedules
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import PolicyRow
from tests.unit.schedules import rows

POLICIES = 50
NOW = rows.NOON + timedelta(minutes=7)


def measure(count: int) -> dict[str, object]:
    """Measure reconciles of so many Schedules without a policy, under fifty, and after an edit that concerns all."""
    bare_kib, bare_s, _ = _reconciled(count, 0)
    kib, seconds, edit_s = _reconciled(count, POLICIES)
    return {
        "policies": POLICIES,
        "policies_schedules": count,
        "bare_memory_kib": bare_kib,
        "policies_memory_kib": kib,
        "policies_memory_ratio": round(kib / bare_kib, 3),
        "bare_reconcile_all_s": bare_s,
        "policies_reconcile_all_s": seconds,
        "policy_edit_reconcile_all_s": edit_s,
    }


def _reconciled(count: int, policies: int) -> tuple[int, float, float]:
    """Return the memory of a controller in KiB, and how long it takes to reconcile all, and all after an edit."""
    gc.collect()
    tracemalloc.start()
    controller = Schedules("velero", Settings(velero_schedules_off=True), Dialect.GOCRON)
    for number in range(policies):
        controller.policies.put(Key("", f"p{number:02}"), _policy(number, {"pool": f"p{number:02}"}))
    everything = _policy(99, {})
    if policies:
        controller.policies.put(everything.key, everything)
    controller.locations.put(rows.AVAILABLE.key, rows.AVAILABLE)
    for number in range(count):
        key = Key("velero", f"s-{number:05}")
        labels = {"pool": f"p{number % POLICIES:02}"}
        row = rows.watched(rows.schedule(key=key, uid=f"{number:08}-uid", labels=labels, last_backup=rows.NOON))
        controller.schedules.put(key, row)
        made = rows.backup(slot=rows.NOON, schedule=key.name, schedule_uid=row.uid, completed=rows.NOON)
        name = Key("velero", f"{key.name}-20260310120000-{row.uid[:8]}")
        controller.backups.put(name, msgspec.structs.replace(made, key=name))
    keys = list(controller.schedules)
    _settle(controller, keys, NOW)
    gc.collect()
    kib = tracemalloc.get_traced_memory()[0] // 1024
    tracemalloc.stop()
    begun = time.perf_counter()
    _settle(controller, keys, NOW)
    all_s = time.perf_counter() - begun
    begun = time.perf_counter()
    if policies:
        edited = msgspec.structs.replace(
            everything, spec=msgspec.structs.replace(everything.spec, objective=Objective("30h"))
        )
        controller.policies.put(edited.key, edited)
        change = Change(edited.key, everything, edited, initial=False)
        (informer,) = [each for each in controller.informers if each.store is controller.policies]
        list(informer.learn(change))
        found = [each.key if isinstance(each, LowPriority) else each for each in informer.keys(change)]
        if len(found) != count:
            raise SystemExit(f"the edit concerns {len(found)} Schedules instead of {count}")
        _settle(controller, found, NOW)
    return kib, round(all_s, 2), round(time.perf_counter() - begun, 2)


def _policy(number: int, labels: dict[str, str]) -> PolicyRow:
    spec = SchedulePolicySpec(
        ScheduleSelector(match_labels=labels or None),
        priority=-1 if not labels else number,
        retention=Retention(keep_last=7, daily=14),
        retry=Retry(3),
        concurrency=Concurrency(4),
        objective=Objective("25h"),
    )
    return PolicyRow(Key("", f"p{number:02}"), spec)


def _settle(controller: Schedules, keys: list[Key], now: datetime) -> None:
    """Reconcile as the loop does, as if each write succeeded."""
    for key in keys:
        view = controller.observe(key, now)
        if view is None:
            raise SystemExit(f"{key} is not known")
        plan = controller.decide(view, now)
        if plan.actions:
            raise SystemExit(f"{key} would write {plan.actions}: nothing is due")
        controller.begin(key, view, plan, now)
        list(controller.settled(key, view, plan, Result(Outcome.DONE), now))
