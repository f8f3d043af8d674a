"""What the doctor says: one finding, how bad it is, and what to do."""

from dataclasses import dataclass
from enum import Enum


class Grade(Enum):
    """How bad it is."""

    GOOD = "good"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at."""

    grade: Grade
    about: str
    says: str
    fix: str = ""


def good(about: str, says: str) -> Finding:
    """Return that something is as it should be."""
    return Finding(Grade.GOOD, about, says)


def warning(about: str, says: str, fix: str) -> Finding:
    """Return that something may hurt, and what to do."""
    return Finding(Grade.WARNING, about, says, fix)


def problem(about: str, says: str, fix: str) -> Finding:
    """Return that something does not work, and what to do."""
    return Finding(Grade.PROBLEM, about, says, fix)
