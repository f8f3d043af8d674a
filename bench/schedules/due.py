"""What the operator computes for each of many Schedules that are due at once, without policies and under fifty.

Needs no cluster: `python -m bench.schedules.due` plays 2,000 of 10,000 Schedules from the instant at which they are due
until each has recorded its run. The calls of functions do not depend on the machine, CPU time does. With --profile, it
prints where the time goes.
"""

import argparse
import cProfile
import json
import pstats
import sys
import time
from collections.abc import Callable
from datetime import datetime, timedelta
from typing import Any

import msgspec

from bench.schedules.under_policies import DUE, EVERYTHING, MANY, NEVER, POLICIES, policy, pool
from foresail.api import velero
from foresail.api.instants import instant
from foresail.api.marks import SLOT
from foresail.api.schedule_policy import SchedulePolicy
from foresail.cron import Dialect
from foresail.kube.execute import Outcome, Result
from foresail.kube.reflector import Change
from foresail.kube.store import Store
from foresail.plan import Create, Key, Keyed, Plan
from foresail.schedules.build import create_backup
from foresail.schedules.controller import Schedules
from foresail.schedules.observe import BackupRow, ScheduleRow
from foresail.schedules.settings import Settings
from foresail.slots.policy_timing import policy_row
from tests.unit.schedules import rows

TICK = rows.NOON
AT_TICK = {0: "0 12 10 3 *", POLICIES: "0 13 10 3 *"}  # in UTC, and in the zone of the policies
_HALF_A_DAY = timedelta(hours=12)


class Played:
    """The controller, and a cluster that stores at once what it writes."""

    def __init__(self, many: int, due: int, policies: int) -> None:
        self.controller = Schedules("velero", Settings(velero_schedules_off=True), Dialect.GOCRON)
        self._informers = {id(each.store): each for each in self.controller.informers}
        keys = [*(Key("", pool(number)) for number in range(policies - 1)), EVERYTHING] if policies else []
        for number, key in enumerate(keys):
            body = msgspec.json.encode(policy(key, number))
            self._store(self.controller.policies, policy_row(msgspec.json.decode(body, type=SchedulePolicy)))
        self._store(self.controller.locations, rows.AVAILABLE)
        for number in range(many):
            row = rows.schedule(
                key=key_of(number),
                uid=f"{number:08}-d9cb-469f-a165-70867728950e",
                labels={"pool": pool(number)},
                text=AT_TICK[policies] if number < due else NEVER,
                created=TICK - timedelta(days=30),
            )
            self._store(self.controller.schedules, row)
            slot = TICK - _HALF_A_DAY
            made = create_backup(row, slot, Settings())
            self._store(self.controller.backups, _backup_row(made, row, velero.COMPLETED, slot))
        self.play([key_of(number) for number in range(many)], TICK - timedelta(hours=1))

    def play(self, keys: list[Key], now: datetime) -> None:
        """Reconcile until there is nothing more to do at an instant."""
        while keys:
            again = [each for key in keys for each in self._reconcile(key, now)]
            keys = list(dict.fromkeys(again))

    def _reconcile(self, key: Key, now: datetime) -> list[Key]:
        controller = self.controller
        view = controller.observe(key, now)
        if view is None or not key.namespace:
            return []
        plan = controller.decide(view, now)
        found = [*controller.begin(key, view, plan, now)]
        found += controller.settled(key, view, plan, Result(Outcome.DONE), now)
        return [*found, *self._write(key, plan, now)]

    def _write(self, key: Key, plan: Plan, now: datetime) -> list[Key]:
        row, found = self.controller.schedules.get(key), list[Key]()
        if row is None:
            return found
        for each in plan.actions:
            if isinstance(each, Create) and each.kind == velero.BACKUP:
                found += self._store(self.controller.backups, _backup_row(each, row, "", now))
        if plan.status is not None:
            found += self._store(self.controller.schedules, _patched(row, plan.status.body))
        return found

    def _store(self, store: Store[Any], row: Keyed) -> list[Key]:
        """Store a row as its watch does, and return the keys to reconcile."""
        informer = self._informers[id(store)]
        change = Change(row.key, store.put(row.key, row), row, initial=False)
        return [each for each in (*informer.learn(change), *informer.keys(change)) if isinstance(each, Key)]


def key_of(number: int) -> Key:
    """Return the key of a Schedule."""
    return Key("velero", f"s-{number:05}")


def _backup_row(made: Create, row: ScheduleRow, phase: str, now: datetime) -> BackupRow:
    ended = now if phase else None
    return BackupRow(made.key, row.key.name, row.uid, instant(made.mark[SLOT]), phase, now, ended, None, "default")


def _patched(row: ScheduleRow, body: Any) -> ScheduleRow:  # noqa: ANN401 - a merge patch
    status = body.get("status", {})
    return msgspec.structs.replace(
        row,
        phase=status.get("phase", row.phase),
        last_backup=instant(status["lastBackup"]) if "lastBackup" in status else row.last_backup,
        annotations={**row.annotations, **body.get("metadata", {}).get("annotations", {})},
        version=str(int(row.version) + 1),
    )


def measure(many: int, due: int, policies: int, profile: cProfile.Profile) -> dict[str, float]:
    """Return the CPU time and the calls of functions for each Schedule that is due."""
    seconds = _timed(Played(many, due, policies), due, lambda play: play())
    _timed(Played(many, due, policies), due, profile.runcall)
    calls = sum(each.callcount for each in profile.getstats())
    return {"cpu_ms": round(seconds * 1000 / due, 3), "calls": round(calls / due)}


def _timed(played: Played, due: int, run: Callable[[Callable[[], None]], object]) -> float:
    keys = [key_of(number) for number in range(due)]
    begun = time.process_time()
    run(lambda: played.play(keys, TICK + timedelta(seconds=1)))
    seconds = time.process_time() - begun
    rows_after = [played.controller.schedules.get(key) for key in keys]
    if any(row is None or row.last_backup != TICK for row in rows_after):
        raise SystemExit("not every Schedule that was due has recorded its run")
    return seconds


def main() -> int:
    """Measure without policies and under them, and print both."""
    parser = argparse.ArgumentParser(prog="python -m bench.schedules.due", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    parser.add_argument("--profile", action="store_true", help="print where the time goes")
    args = parser.parse_args()
    figures: dict[str, float] = {"size": args.size}
    for policies, prefix in ((0, "without_policies_"), (POLICIES, "")):
        profile = cProfile.Profile()
        found = measure(int(MANY * args.size), int(DUE * args.size), policies, profile)
        figures |= {f"{prefix}{name}": value for name, value in found.items()}
        if args.profile:
            pstats.Stats(profile).sort_stats("cumulative").print_stats(50)
    print(json.dumps(figures))
    return 0


if __name__ == "__main__":
    sys.exit(main())
