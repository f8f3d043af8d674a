"""The three capabilities together for an hour, amid faults: `make soak`; `--minutes 8 --size 0.05` is a rehearsal.

Starts a cluster with Velero, S3 and nodes, and two replicas of the operator; kills the API server, Velero, S3 and the
leader every few minutes; and judges in the end whether every promise was kept. The last line that it prints is one
JSON object with every figure. What was seen is kept in a file, which `--judge` judges again.
"""

import argparse
import json
import shutil
import signal
import sys
from datetime import timedelta
from pathlib import Path
from types import FrameType
from typing import Never

from bench.soak.curve import write_curve
from bench.soak.filling import begin, fill
from bench.soak.hour import Hour
from bench.soak.judge import verdicts
from bench.soak.program import blows, numbers
from bench.soak.record import Record
from bench.soak.seen import Seen, read
from bench.soak.settling import settle
from bench.soak.world import Replicas, world
from foresail.kube.clock import now
from testbed.velero import VELERO

_KEPT = Path("build/soak")
_FILE, _CURVE = "seen.json", "curve.json"


def soak(seen: Seen, folder: Path) -> None:
    """Live through it, and note what is seen; what the processes say is kept in a folder."""
    began = now()
    print(f"seed {seen.seed}: {seen.numbers}", flush=True)
    for each in blows(seen.seed, seen.numbers.minutes):
        print(f"  {each.kind} {each.after:.0f} s after what was before, away for {each.away:.0f} s", flush=True)
    with world(seen.numbers) as cluster:
        replicas = Replicas(cluster, folder)
        seen.lives = replicas.lives
        try:
            fill(cluster, seen)
            with Record(cluster, seen) as record:
                for one in (replicas.start(), replicas.start()):
                    one.wait_synced()
                begin(cluster, seen)
                print(f"filled after {(now() - began).total_seconds():.0f} s", flush=True)
                hour = Hour(cluster, replicas, record, seen)
                hour.live()
                settle(cluster, hour, record, seen)
        finally:
            replicas.end()
            shutil.copy(cluster.log(VELERO), folder)


def judged(seen: Seen) -> int:
    """Say of each promise whether it was kept, print all figures as the last line, and return the exit code."""
    found = verdicts(seen)
    for fault in seen.faults:
        back = f"{(fault.back - fault.at).total_seconds():.0f} s" if fault.back else "for good"
        print(f"  {fault.at:%H:%M:%S} {fault.kind} away {back}; seen: {'; '.join(fault.seen) or 'nowhere'}")
    for each in found:
        print(f"{'kept' if each.kept else 'BROKEN':>6}  {each.about}: {each.says}")
    figures: dict[str, object] = {"seed": seen.seed, "minutes": seen.numbers.minutes, "gaps": seen.gaps}
    for each in found:
        figures |= each.figures
    figures["broken"] = [each.about for each in found if not each.kept]
    print(json.dumps(figures), flush=True)
    return 1 if figures["broken"] else 0


def _as_interrupt(_number: int, _frame: FrameType | None) -> Never:
    raise KeyboardInterrupt


def main() -> int:
    """Soak, or judge what was seen before."""
    parser = argparse.ArgumentParser(prog="python -m bench.soak", description=__doc__)
    parser.add_argument("--minutes", type=int, default=60, help="how long it lasts, after it was filled (default: 60)")
    parser.add_argument("--size", type=float, default=1.0, help="the part of the full size, such as 0.05")
    parser.add_argument("--seed", type=int, default=7, help="of all chance (default: 7)")
    parser.add_argument("--keep", type=Path, default=_KEPT, help=f"the folder for what was seen (default: {_KEPT})")
    parser.add_argument("--judge", type=Path, metavar="FILE", help="judge what was seen before, and start nothing")
    args = parser.parse_args()
    if args.judge:
        seen = read(args.judge)
        write_curve(seen, args.judge.with_name(_CURVE))
        return judged(seen)
    signal.signal(signal.SIGTERM, _as_interrupt)  # so that nothing stays behind then either
    shutil.rmtree(args.keep, ignore_errors=True)
    args.keep.mkdir(parents=True)
    at = now()
    seen = Seen(numbers(args.size, args.minutes), args.seed, at, at + timedelta(days=1))
    try:
        soak(seen, args.keep)
    finally:
        seen.write(args.keep / _FILE)
        write_curve(seen, args.keep / _CURVE)
        print(f"what was seen is in {args.keep / _FILE}", flush=True)
    return judged(seen)


if __name__ == "__main__":
    sys.exit(main())
