"""The names of the NonAdminBackups that NonAdminSchedules create: `<schedule>-<slot>`."""

import hashlib
import re
from datetime import UTC, datetime

_LONGEST_STEM = 48  # with the slot, a name of at most 63 characters, which fits into a label
_DIGEST = 8
_RUN = re.compile(r"(.+)-\d{14}")


def run_name(schedule: str, slot: datetime) -> str:
    """Return the name of the NonAdminBackup of a slot; the same slot always has the same name."""
    return f"{stem(schedule)}-{slot.astimezone(UTC):%Y%m%d%H%M%S}"


def stem(schedule: str) -> str:
    """Return with what the names of a schedule's runs begin: its name, cut with a digest if it is too long."""
    if len(schedule) <= _LONGEST_STEM:
        return schedule
    digest = hashlib.sha256(schedule.encode()).hexdigest()[:_DIGEST]
    return f"{schedule[: _LONGEST_STEM - _DIGEST - 1].rstrip('-.')}-{digest}"


def stem_of_run(name: str) -> str | None:
    """Return with what the name of a run begins; None for a name that no run has."""
    match = _RUN.fullmatch(name)
    return match[1] if match is not None else None
