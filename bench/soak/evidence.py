"""Where a fault was seen: pure functions from the metrics before, during and after it."""

from collections.abc import Iterator, Mapping
from datetime import datetime

from bench.soak.seen import Seen
from foresail.api.instants import stamp

Figures = Mapping[str, Mapping[str, float]]
"""The metrics of each replica."""


LEADER = "leader_election_master_status"


def total(figures: Mapping[str, float], family: str) -> float:
    """Return the sum of a metric over all its labels."""
    return sum(value for name, value in figures.items() if name.partition("{")[0] == family)


def leader(figures: Figures) -> str:
    """Return who says that it leads."""
    return next((name for name, each in figures.items() if total(each, LEADER) == 1.0), "")


def watches_restarted(before: Figures, after: Figures) -> Iterator[str]:
    """Say which replicas have opened watches again."""
    family = "foresail_watch_restarts_total"
    for name, each in after.items():
        more = total(each, family) - total(before.get(name, each), family)
        if more > 0:
            yield f"{family} of {name} rose by {more:g}"


def lead_moved(seen: Seen, since: datetime, figures: Figures) -> Iterator[str]:
    """Say who leads now."""
    moved = [(at, holder) for at, holder in seen.leaders if at >= since and holder]
    if moved:
        at, holder = moved[0]
        yield f"the Lease went to {holder} after {(at - since).total_seconds():.1f} s"
        if leader(figures):
            yield f"{LEADER} of {leader(figures)} is 1"


def requests_wait(before: Figures, during: Figures) -> Iterator[str]:
    """Say how many more Backups wait for Velero, and how many Schedules are held."""
    for family in ("foresail_selfservice_waiting", "foresail_schedules_waiting_backups", "foresail_schedule_held"):
        was = max((total(each, family) for each in before.values()), default=0.0)
        is_now = max((total(each, family) for each in during.values()), default=0.0)
        if is_now > was:
            yield f"{family} rose from {was:g} to {is_now:g}"


def location_away(during: Figures) -> Iterator[str]:
    """Say that the location is away."""
    family = "foresail_backup_location_available"
    found = [name for each in during.values() for name, value in each.items() if name.startswith(family) and not value]
    if found:
        yield f"{found[0]} is 0"


def said_since(seen: Seen, since: datetime, reason: str) -> Iterator[str]:
    """Say how many Events have had a reason since then."""
    found = [each for each in seen.said if each.at >= since and each.reason == reason]
    if found:
        yield f"{len(found)} Events {reason}, the first at {stamp(found[0].at)}"
