"""What benchmarks do with their figures: set two rates beside each other, and hold all of them against bounds."""

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from statistics import median
from typing import Any

Figures = Mapping[str, Any]
Bounds = dict[str, Callable[[Figures], bool]]
"""Each bound in words, of which the first is the name of its figure, and whether it holds."""


def beside_bare(ours: Sequence[float], bare: Sequence[float]) -> dict[str, object]:
    """Return the rates of several rounds, and those of the operator as shares of the bare loop's."""
    ratios = [one / other for one, other in zip(ours, bare, strict=True)]
    return {
        "throughput_ratio": round(median(ratios), 3),
        "throughput_ratios": [round(each, 3) for each in ratios],
        "bare_per_s": [round(each, 1) for each in bare],
        "ours_per_s": [round(each, 1) for each in ours],
    }


def measured(bounds: Bounds, figures: Figures) -> Bounds:
    """Return the bounds of those figures that there are, where only some parts were measured."""
    return {text: holds for text, holds in bounds.items() if text.split()[0] in figures}


def verdict(figures: Figures, bounds: Bounds) -> int:
    """Say which bounds are missed, print all figures as the last line, and return the exit code."""
    missed = [text for text, holds in bounds.items() if not holds(figures)]
    for text in missed:
        print(f"missed: {text}", file=sys.stderr)
    print(json.dumps(figures))
    return 1 if missed else 0
