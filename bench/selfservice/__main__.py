"""How fast and how large self-service is: `make bench-selfservice`, at a tenth `make bench-selfservice SIZE=0.1`.

The last line that it prints is one JSON object with every figure. It fails if a figure misses its bound; at less
than the full size only those bounds hold that do not depend on it.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from bench.figures import Bounds, measured, verdict
from bench.selfservice.fairness import accepted, admin_restore, nightly, share
from bench.selfservice.hostile import hostile
from bench.selfservice.line import fanout
from bench.selfservice.scale import restarts, scale
from bench.selfservice.speed import created, neighbour, throughput

AT_ONCE, MANY, CROWD, STORED = 1_000, 10_000, 5_000, 100_000
PATCHES, SPECS = 2_000, 500  # of 1 MB, by a hostile tenant
COMPLETIONS, IDLE_SECONDS, RESTARTS = 100, 300.0, 24
FEWEST = 40  # completions: long enough for farther positions to be told
ROUNDS = 3
NIGHTLY, SHARED, FEWEST_WAITING = 500, 200, 30
PARTS: dict[str, Callable[[float, int], dict[str, object]]] = {
    "created": lambda size, _: created(int(AT_ONCE * size)),
    "throughput": lambda size, rounds: throughput(int(MANY * size), rounds),
    "fanout": lambda size, _: fanout(int(MANY * size), max(int(COMPLETIONS * size), FEWEST)),
    "neighbour": lambda size, _: neighbour(int(CROWD * size)),
    "accepted": lambda size, _: accepted(int(AT_ONCE * size)),
    "nightly": lambda size, _: nightly(max(int(NIGHTLY * size), FEWEST_WAITING)),
    "share": lambda size, _: share(max(int(SHARED * size), FEWEST_WAITING)),
    "restore": lambda size, _: admin_restore(max(int(NIGHTLY * size), FEWEST_WAITING)),
    "scale": lambda size, _: scale(int(STORED * size), IDLE_SECONDS * max(size, 0.1)),
    "hostile": lambda size, _: hostile(int(PATCHES * size), int(SPECS * size)),
    "restarts": lambda size, _: restarts(int(CROWD * size), RESTARTS),
}

AT_ANY_SIZE: Bounds = {
    "writes_per_nab is at most 4": lambda f: f["writes_per_nab"] <= 4,
    "active_writes_per_nab is at most 4": lambda f: f["active_writes_per_nab"] <= 4,
    "fanout_requests is at most 2": lambda f: f["fanout_requests"] <= 2,
    "far_writes_per_s is at most 20": lambda f: f["far_writes_per_s"] <= 20,
    "near_not_shown is 0": lambda f: f["near_not_shown"] == 0,
    "nightly_delay_backups is at most 1": lambda f: f["nightly_delay_backups"] <= 1,
    "admin_restore_waits_for is at most 2": lambda f: f["admin_restore_waits_for"] <= 2,
    "idle_writes is 0": lambda f: f["idle_writes"] == 0,
    "idle_requests is 0": lambda f: f["idle_requests"] == 0,
    "hostile_rss_growth_mib is below 20": lambda f: f["hostile_rss_growth_mib"] < 20,
    "hostile_rss_growth_with_largest_kept_mib is below 20": lambda f: (
        f["hostile_rss_growth_with_largest_kept_mib"] < 20
    ),
    "hostile_delay_s is below 1": lambda f: f["hostile_delay_s"] < 1,
    "rss_growth_in_the_second_half_mib is at most 2": lambda f: f["rss_growth_in_the_second_half_mib"] <= 2,
}
AT_FULL_SIZE: Bounds = {
    "all_created_s is at most 15": lambda f: f["all_created_s"] <= 15,
    "accepted_1000_s is at most 15": lambda f: f["accepted_1000_s"] <= 15,
    "share_error is at most 0.1": lambda f: f["share_error"] <= 0.1,
    "weight_error is at most 0.1": lambda f: f["weight_error"] <= 0.1,
    "throughput_ratio is at least 0.8": lambda f: f["throughput_ratio"] >= 0.8,
    "neighbour_delay_s is at most 1": lambda f: f["neighbour_delay_s"] <= 1,
    "near_shown_p99_s is at most 1": lambda f: f["near_shown_p99_s"] <= 1,
    "rss_mib is at most 400": lambda f: f["rss_mib"] <= 400,
    "cold_start_s is at most 40": lambda f: f["cold_start_s"] <= 40,
}


def main() -> int:
    """Measure everything, print it, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.selfservice", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    parser.add_argument("--part", action="append", choices=PARTS, help="measure only this; may be repeated")
    parser.add_argument("--rounds", type=int, default=ROUNDS, help=f"of bare loop and operator (default: {ROUNDS})")
    args = parser.parse_args()
    figures: dict[str, Any] = {"size": args.size}
    for part in args.part or PARTS:
        figures |= PARTS[part](args.size, args.rounds)
        print(json.dumps(figures), flush=True)
    bounds = AT_ANY_SIZE | (AT_FULL_SIZE if args.size >= 1 else {})
    return verdict(figures, measured(bounds, figures))


if __name__ == "__main__":
    sys.exit(main())
