"""A chain of rules as `explain` shows it, each with its answer and the reason."""

import sys
from collections.abc import Sequence
from dataclasses import dataclass

from foresail.cli.output.messages import GREEN, PALE, RED, YELLOW, painted

YES, NO, WAITS, LATER, NOT_CHECKED = "ok", "blocks", "waits", "would block", "not checked"
FAILED = "failed"
STOPS = (NO, WAITS, FAILED)
"""Answers that block."""

_COLOURS = {YES: GREEN, NO: RED, FAILED: RED, WAITS: YELLOW, LATER: YELLOW, NOT_CHECKED: PALE}


@dataclass(frozen=True, slots=True)
class Step:
    """One rule, its answer and the reason."""

    rule: str
    answer: str
    because: str = ""


def lines(steps: Sequence[Step]) -> list[str]:
    """Return the chain as lines, with an arrow before each rule that blocks."""
    widest = max(len(step.rule) for step in steps)
    texts = []
    for step in steps:
        arrow = "→" if step.answer in STOPS else " "
        answer = painted(f"{step.answer:<11}", _COLOURS[step.answer], sys.stdout)
        texts.append(f"{arrow} {answer}  {step.rule:<{widest}}  {step.because}".rstrip())
    return texts
