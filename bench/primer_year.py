"""A simulated year of random CronJobs and Primers in 20 zones: `make primer-year`."""

import argparse
import multiprocessing
import sys
import time

from tests.worlds.year_of_primers import Year, live_and_compare
from tests.worlds.year_stories import ZONES


def main() -> int:
    """Live through the year of every cluster, two at a time, and print what was compared."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--cronjobs", type=int, default=100, help="in all, spread over as many clusters as zones")
    options.add_argument("--days", type=int, default=365)
    options.add_argument("--seed", type=int, default=2026)
    options.add_argument("--processes", type=int, default=2)
    options.add_argument("--zones", type=int, nargs="*", default=range(len(ZONES)), help="only these, by their number")
    asked = options.parse_args()
    each = -(-asked.cronjobs // len(ZONES))
    began = time.monotonic()
    year = Year()
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        jobs = [pool.apply_async(live_and_compare, (number, each, asked.seed, asked.days)) for number in asked.zones]
        for number, job in zip(asked.zones, jobs, strict=True):
            found = job.get()
            year.add(found)
            print(f"{ZONES[number]}: {found.fires} fires, {len(found.differences)} differences", flush=True)
    print(
        f"{year.cron_jobs} CronJobs in {len(asked.zones)} zones, {asked.days} days: {year.fires} fires, {year.exactly} "
        f"that nothing disturbed, each primed once at the fire minus the warm-up; {year.disturbed} beside an edit, a "
        f"suspension or a restart; {year.restarts} restarts; the latest placeholder came {year.latest * 1000:.0f} ms "
        f"late; {len(year.differences)} differences; {time.monotonic() - began:.0f} s"
    )
    print(*year.differences[:20], sep="\n")
    return 1 if year.differences else 0


if __name__ == "__main__":
    sys.exit(main())
