"""Checks the shift on random schedules, by brute force and by the Go libraries: `make cron-shift`."""

import argparse
import sys
from collections import Counter
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass, field
from itertools import islice
from time import thread_time

from bench.shift_cases import Case, cases
from bench.shift_check import SINCE, judge
from bench.shift_oracle import wrong_by_go
from foresail.cron.dialect import Dialect
from foresail.cron.parser import parse
from foresail.cron.shift import Shifted, shift
from testbed.oracle import Oracle

_BATCH = 500


@dataclass
class Report:
    """What was compared, what came out, what was wrong and how long one shift took."""

    kinds: Counter[str] = field(default_factory=Counter)
    fires: int = 0
    wrong: list[str] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)


def run(count: int, seed: int, jobs: int = 1) -> Report:
    """Shift `count` random cases, spread over `jobs` processes, and judge each twice."""
    Oracle()  # built before several want to build it
    drawn = cases(seed, count)
    batches = iter(lambda: list(islice(drawn, _BATCH)), [])
    if jobs == 1:
        return _merged(map(_judge_all, batches))
    with ProcessPoolExecutor(jobs) as pool:
        return _merged(pool.map(_judge_all, batches))


def _judge_all(batch: list[Case]) -> Report:
    report = Report()
    judged = [(case, _judged(case, report)) for case in batch]
    wrong, report.fires = wrong_by_go(Oracle(), judged, seed=len(batch))
    report.wrong += wrong
    return report


def _merged(reports: Iterable[Report]) -> Report:
    whole = Report()
    for report in reports:
        whole.kinds += report.kinds
        whole.fires += report.fires
        whole.wrong += report.wrong
        whole.seconds += report.seconds
        print(f"{whole.kinds.total()} shifts, {len(whole.wrong)} wrong", file=sys.stderr)
    return whole


def _judged(case: Case, report: Report) -> Shifted:
    schedule = parse(case.text, Dialect(case.dialect), case.zone)
    began = thread_time()
    shift(schedule, case.lead, SINCE)
    report.seconds.append(thread_time() - began)
    found = judge(case)
    report.kinds[found.kind] += 1
    if found.wrong:
        report.wrong.append(f"{case}: {found.wrong}")
    return found.shifted


def main() -> int:
    """Run, print the share of each class, and fail if anything was wrong."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--count", type=int, default=20_000, help="random cases, over both dialects")
    options.add_argument("--seed", type=int, default=1)
    options.add_argument("--jobs", type=int, default=2, help="processes")
    asked = options.parse_args()
    report = run(asked.count, asked.seed, asked.jobs)
    print(f"{asked.count} shifts, each minute of 2023-2030 by brute force, {report.fires} fires by Go")
    print(f"{len(report.wrong)} wrong")
    for kind, number in report.kinds.most_common():
        print(f"  {number / asked.count:6.2%}  {kind}")
    times = sorted(report.seconds)
    marks = ", ".join(f"{share:.0%} {1000 * times[int(share * (len(times) - 1))]:.2f}" for share in (0.5, 0.9, 0.99, 1))
    print(f"ms of CPU per shift: {marks}")
    print(*report.wrong[:20], sep="\n")
    return 1 if report.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
