"""A chain of rules, as `explain` shows it: what each says, and why."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from foresail.cli.output.terminal import GREEN, PALE, RED, YELLOW, painted

YES, NO, WAITS, LATER, UNASKED = "ok", "holds", "waits", "would hold", "not asked"
STOPS = (NO, WAITS)
"""What holds something back."""

_COLOURS = {YES: GREEN, NO: RED, WAITS: YELLOW, LATER: YELLOW, UNASKED: PALE}


@dataclass(frozen=True, slots=True)
class Step:
    """One rule, what it says, and why."""

    rule: str
    answer: str
    because: str = ""


def lines(steps: Sequence[Step]) -> list[str]:
    """Return the chain as people read it, with an arrow before what holds something back."""
    widest = max(len(step.rule) for step in steps)
    found = []
    for step in steps:
        arrow = "→" if step.answer in STOPS else " "
        answer = painted(f"{step.answer:<10}", _COLOURS[step.answer], sys.stdout)
        found.append(f"{arrow} {answer}  {step.rule:<{widest}}  {step.because}".rstrip())
    return found
