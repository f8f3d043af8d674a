"""The memory of each replica as a curve, small enough to be drawn in the docs."""

import json
from pathlib import Path

from bench.soak.memory import slopes
from bench.soak.seen import Life, Seen

EVERY = 30.0
"""Seconds between two points of the curve."""


def write_curve(seen: Seen, file: Path) -> None:
    """Write the curve of every replica that lived for more than a minute."""
    lives = [_life(each) for each in seen.lives if each.samples and each.samples[-1][0] > 60]
    curve = {"minutes": seen.numbers.minutes, "seed": seen.seed, "faults": len(seen.faults), "lives": lives}
    file.write_text(json.dumps(curve) + "\n")


def _life(life: Life) -> dict[str, object]:
    points: list[tuple[float, float]] = []
    following = 0.0
    for seconds, mib in life.samples:
        if seconds >= following:
            points.append((round(seconds / 60, 1), round(mib, 1)))
            following = seconds + EVERY
    found = [round(each, 2) for _, each in slopes(life.samples, life.led)]
    return {"name": life.name, "led": life.led, "slope": found[-1] if found else None, "samples": points}
