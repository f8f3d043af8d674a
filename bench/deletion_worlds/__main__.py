"""`make deletion-worlds`: random histories of months, and a model that judges each deletion; the last line is JSON."""

import argparse
import json
import sys
import time
from contextlib import nullcontext

from bench.deletion_worlds.faults import FAULTS, planted
from bench.deletion_worlds.model import Report
from bench.deletion_worlds.schedule_world import ScheduleWorld
from bench.deletion_worlds.tenant_world import TenantWorld

WORLDS = 10_000
KINDS = (ScheduleWorld, TenantWorld)


def run(first: int, worlds: int) -> Report:
    """Live through that many worlds, in turn with a Schedule and with a tenant's schedule."""
    report = Report()
    for seed in range(first, first + worlds):
        KINDS[seed % 2](seed, report).live()
    return report


def main() -> int:
    """Run a part of the worlds, and print what was found."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="part of 10,000 worlds")
    parser.add_argument("--first", type=int, default=0, help="number of the first world")
    parser.add_argument("--plant", choices=sorted(FAULTS), help="plant a fault, to see that the model finds it")
    args = parser.parse_args()
    began = time.process_time()
    with planted(args.plant) if args.plant else nullcontext():
        report = run(args.first, max(1, round(WORLDS * args.size)))
    for text in (*report.wrong[:20], *report.unreported[:20], *report.starved[:20]):
        print(text, file=sys.stderr)
    figures = {
        "worlds": report.worlds,
        "deletions": report.deletions,
        "wrong_deletions": len(report.wrong),
        "unreported": len(report.unreported),
        "starved": len(report.starved),
        "cpu_seconds": round(time.process_time() - began, 1),
    }
    print(json.dumps(figures))
    return 1 if report.wrong or report.unreported or report.starved else 0


if __name__ == "__main__":
    sys.exit(main())
