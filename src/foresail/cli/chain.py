"""A chain of rules, as `explain` shows it: what each says, and why."""

from dataclasses import dataclass

YES, NO, WAITS, LATER, UNASKED = "ok", "holds", "waits", "would hold", "not asked"


@dataclass(frozen=True, slots=True)
class Step:
    """One rule, what it says, and why."""

    rule: str
    answer: str
    because: str = ""
