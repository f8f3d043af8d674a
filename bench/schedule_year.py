"""A simulated year of random Schedules against the rules computed with the Go libraries: `make schedule-year`.

With `--tenants` they are NonAdminSchedules: `make tenant-schedule-year`.
"""

import argparse
import multiprocessing
import sys
import time

from tests.worlds import year_of_schedules, year_of_tenants
from tests.worlds.year_of_schedules import Year
from tests.worlds.year_stories import ZONES


def main() -> int:
    """Live through the year of every cluster, two at a time, and print what was compared."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--schedules", type=int, default=1000, help="in all, spread over as many clusters as zones")
    options.add_argument("--seed", type=int, default=2026)
    options.add_argument("--policies", action="store_true", help="each Schedule under a random SchedulePolicy")
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--tenants", action="store_true", help="NonAdminSchedules, not Velero's Schedules")
    asked = options.parse_args()
    each = -(-asked.schedules // len(ZONES))
    live_and_compare = (year_of_tenants if asked.tenants else year_of_schedules).live_and_compare
    policies = {"policies": True} if asked.policies else {}
    began = time.monotonic()
    year = Year()
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        jobs = [
            pool.apply_async(live_and_compare, (number, each, asked.seed), policies) for number in range(len(ZONES))
        ]
        for number, job in enumerate(jobs):
            found = job.get()
            year.add(found)
            print(f"cluster {number}: {found.runs} runs, {len(found.differences)} differences", flush=True)
    print(
        f"{year.schedules} schedules in {len(year.zones)} zones, a year: {year.runs} runs, of which {year.late} late; "
        f"{year.skips} skips, {year.restarts} restarts of the operator; the latest that nothing held came "
        f"{year.latest * 1000:.0f} ms after its instant; {len(year.differences)} differences; "
        f"{time.monotonic() - began:.0f} s"
    )
    print(*year.differences[:20], sep="\n")
    return 1 if year.differences else 0


if __name__ == "__main__":
    sys.exit(main())
