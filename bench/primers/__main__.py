"""How warm, punctual and large primers are: `make bench-primers`, at a tenth `make bench-primers SIZE=0.1`.

The last line that it prints is one JSON object with every figure. It fails if a figure misses its bound; at less
than the full size nodes take 20 s instead of 60, and each CronJob is measured at one fire.
"""

import argparse
import json
import sys
from collections.abc import Callable
from typing import Any

from bench.figures import Bounds, measured, verdict
from bench.primers.arms import arms
from bench.primers.scale import scale, suggest
from bench.primers.stampede import stampede

FIRES, NODE_SECONDS, NEAR_NODE_SECONDS = 5, 60, 20
WARM_UPS, CROWD, UNPRIMED = 1_000, 10_000, 2_000
IDLE_SECONDS = 300.0
PARTS: dict[str, Callable[[float], dict[str, object]]] = {
    "arms": lambda size: arms(FIRES, NODE_SECONDS) if size >= 1 else arms(1, NEAR_NODE_SECONDS),
    "stampede": lambda size: stampede(int(WARM_UPS * size)),
    "scale": lambda size: scale(int(CROWD * size), IDLE_SECONDS * max(size, 0.1)),
    "suggest": lambda size: suggest(int(UNPRIMED * size)),
}
BOUNDS: Bounds = {
    "ratio is at most 0.1": lambda f: f["ratio"] <= 0.1,
    "left_behind is 0": lambda f: f["left_behind"] == 0,
    "buffer_refill_node_s is at most 60 after each fire": lambda f: max(f["buffer_refill_node_s"]) <= 60,
    "contested_reported is contested": lambda f: f["contested_reported"] == f["contested"],
    "buffer_placeholders is 0": lambda f: f["buffer_placeholders"] == 0,
    "stampede_p99_s is at most 8": lambda f: f["stampede_p99_s"] <= 8,
    "rss_mib is at most 300": lambda f: f["rss_mib"] <= 300,
    "idle_requests is 0": lambda f: f["idle_requests"] == 0,
    "suggest_s is at most 30": lambda f: f["suggest_s"] <= 30,
    "suggest_missed is 0": lambda f: f["suggest_missed"] == 0,
    "suggest_wrong is 0": lambda f: f["suggest_wrong"] == 0,
}


def main() -> int:
    """Measure everything, print it, and say which bounds are missed."""
    parser = argparse.ArgumentParser(prog="python -m bench.primers", description=__doc__)
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.1")
    parser.add_argument("--part", action="append", choices=PARTS, help="measure only this; may be repeated")
    args = parser.parse_args()
    figures: dict[str, Any] = {"size": args.size}
    for part in args.part or PARTS:
        figures |= PARTS[part](args.size)
        print(json.dumps(figures), flush=True)
    return verdict(figures, measured(BOUNDS, figures))


if __name__ == "__main__":
    sys.exit(main())
