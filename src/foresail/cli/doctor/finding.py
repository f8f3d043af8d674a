"""A finding of the doctor: its severity, and what to do."""

from dataclasses import dataclass
from datetime import timedelta
from enum import Enum

_TWO_HOURS = 120


class Grade(Enum):
    """How bad it is."""

    GOOD = "good"
    WARNING = "warning"
    PROBLEM = "problem"


@dataclass(frozen=True, slots=True)
class Finding:
    """The result of one check."""

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


def minutes(span: timedelta) -> str:
    """Return a length of time in minutes, or in hours from two on."""
    count = int(span.total_seconds() // 60)
    return f"{count} min" if count < _TWO_HOURS else f"{count // 60} h"
