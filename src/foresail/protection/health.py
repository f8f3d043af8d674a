"""Whether Velero runs and reaches its storage locations: what goes wrong counts after ten minutes.

Velero's pod is replaced and networks fail for moments. Thousands of Protections would be written for nothing.
"""

from collections.abc import Iterator, Mapping
from datetime import datetime, timedelta

import msgspec

from foresail.api import velero
from foresail.plan import Claim, Plan
from foresail.protection.rows import LocationRow
from foresail.safety.velero_pods import ServerPods, Validation, velero_state

PATIENCE = timedelta(minutes=10)
_AGAIN = timedelta(minutes=1)
"""How often a server without a Deployment is looked for: only the age of its validations tells that it works."""


class Problem(msgspec.Struct, frozen=True):
    """What is wrong, or unknown."""

    message: str
    since: datetime
    counts: bool


class Health(Claim, msgspec.Struct, frozen=True):
    """What is wrong with Velero, what is unknown of it, and with which locations something is wrong."""

    velero: Problem | None = None
    unknown: Problem | None = None
    locations: Mapping[str, Problem] = {}

    @property
    def counted(self) -> list[str]:
        """Everything that counts, for a comparison."""
        return [problem.message for problem in self._problems() if problem.counts]

    def location_problem(self, name: str) -> str:
        """Return what counts of a location; empty if nothing does."""
        problem = self.locations.get(name)
        return problem.message if problem is not None and problem.counts else ""

    def begins_to_count(self) -> datetime | None:
        """Return when the next problem counts that does not yet."""
        return min((problem.since + PATIENCE for problem in self._problems() if not problem.counts), default=None)

    def _problems(self) -> Iterator[Problem]:
        yield from (problem for problem in (self.velero, self.unknown) if problem is not None)
        yield from (self.locations[name] for name in sorted(self.locations))


class HealthView(msgspec.Struct, frozen=True):
    """Velero's pods, the last validation of a location, the locations, and what was known of all that before."""

    servers: tuple[ServerPods, ...]
    validation: Validation | None
    locations: tuple[LocationRow, ...]
    known: Health | None = None  # none at the start: then what is wrong counts at once
    skew: timedelta = timedelta()  # between this clock and that of the API server


def health_of(view: HealthView, now: datetime) -> Health:
    """Return what is wrong now."""
    state = velero_state(view.servers, view.validation, now - view.skew)
    known = view.known

    def problem(message: str, before: Problem | None) -> Problem | None:
        if not message:
            return None
        begun = now - PATIENCE if known is None else now
        since = before.since if before is not None else begun
        return Problem(message, since, now - since >= PATIENCE)

    before = known if known is not None else Health()
    problems = {
        row.key.name: problem(_unavailable(row), before.locations.get(row.key.name))
        for row in view.locations
        if row.phase != velero.AVAILABLE
    }
    return Health(
        problem(state.problem, before.velero),
        problem(state.unknown, before.unknown),
        {name: present for name, present in problems.items() if present is not None},
    )


def _unavailable(row: LocationRow) -> str:
    return f"BackupStorageLocation {row.key.name} is {row.phase or 'not checked by Velero yet'}"


def decide_health(view: HealthView, now: datetime) -> Plan:
    """Return the Plan that writes nothing: what is wrong, and when that may be another."""
    health = health_of(view, now)
    has_pods = any(server.ready for server in view.servers)
    ends = (health.begins_to_count(), None if has_pods else now + _AGAIN)
    return Plan(wake_at=min((end for end in ends if end is not None), default=None), claims=(health,))
