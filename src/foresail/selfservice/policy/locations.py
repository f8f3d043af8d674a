"""Where backups are stored, and whether Velero would store one there now."""

from collections.abc import Iterable

from foresail.api import velero
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.rows.locations import LocationRow


def location_named(name: str, locations: Iterable[LocationRow]) -> LocationRow | None:
    """Return the location of a name, the default one if it is empty; None if it does not exist."""
    rows = {row.name: row for row in locations}
    return rows.get(velero.resolve_location(name, (row.name for row in rows.values() if row.is_default)))


def closed(name: str, locations: Iterable[LocationRow]) -> Refused | None:
    """Report why Velero would refuse a backup for its location, the default one if it names none; None if it would not.

    Velero itself reports a location that does not exist: its name must be corrected, so waiting does not help.
    Velero's message about an unreachable location is for administrators: it names addresses and buckets.
    """
    row = location_named(name, locations)
    if row is None or (row.is_available and not row.is_read_only):
        return None
    state = "read-only" if row.is_read_only else "not available"
    text = f"Storage location {row.name} is {state}; the backup starts automatically when it is available"
    return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}. If this persists, ask a cluster administrator")
