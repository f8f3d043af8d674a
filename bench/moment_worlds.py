"""Random histories of restores, 10,000 by default: `make moment-worlds`. None may act after its refusal or expiry.

The last line is one JSON object; `acted_late` must be 0.
"""

import argparse
import json
import multiprocessing
import sys
import time
from collections import Counter

from tests.worlds.moment_histories import live


def _lived(seed: int) -> tuple[int, Counter[str], list[str], float]:
    began = time.process_time()
    witness = live(seed)
    return seed, witness.counts, witness.late, time.process_time() - began


def main() -> int:
    """Live through every history, and print what the witnesses have seen."""
    options = argparse.ArgumentParser(description=__doc__)
    options.add_argument("--histories", type=int, default=10_000)
    options.add_argument("--first", type=int, default=0, help="the first seed")
    options.add_argument("--processes", type=int, default=2)
    asked = options.parse_args()
    counts: Counter[str] = Counter()
    late, seconds = 0, 0.0
    with multiprocessing.get_context("spawn").Pool(asked.processes) as pool:
        seeds = range(asked.first, asked.first + asked.histories)
        for number, (seed, seen, problems, took) in enumerate(pool.imap_unordered(_lived, seeds, chunksize=20), 1):
            counts += seen
            late += len(problems)
            seconds += took
            for problem in problems:
                print(f"seed {seed}: {problem}", flush=True)
            if number % 500 == 0:
                print(f"{number} histories, {counts['restores']} restores, {late} late", flush=True)
    words = ("restores", "asked again", "refused", "expired", "acted", "kills", "begun while the operator was down")
    figures = {word.replace(" ", "_"): counts[word] for word in words}
    print(json.dumps({"histories": asked.histories, **figures, "acted_late": late, "cpu_seconds": round(seconds)}))
    return 1 if late else 0


if __name__ == "__main__":
    sys.exit(main())
