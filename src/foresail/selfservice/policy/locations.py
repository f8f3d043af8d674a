"""Where backups are stored, whose the place is, and whether Velero would store one there now."""

from collections.abc import Iterable

from foresail.api import velero
from foresail.plan import Key
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.rows.locations import LocationRow, TenantLocationRow
from foresail.tenancy.policies import PolicyRow


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
    if row.owner is not None:
        return _own_closed(row, row.owner.name)
    state = "read-only" if row.is_read_only else "not available"
    text = f"Storage location {row.name} is {state}; the backup starts automatically when it is available"
    return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}. If this persists, ask a cluster administrator")


# Locations of tenants


def is_administrators(name: str, policy: PolicyRow, locations: Iterable[LocationRow]) -> bool:
    """Whether a name means a location of the administrator, so that no tenant's location can stand in for it."""
    return is_listed(name, policy) or any(row.name == name and row.owner is None for row in locations)


def is_listed(name: str, policy: PolicyRow) -> bool:
    """Whether a policy names a location, which need not exist at all times."""
    rules = policy.spec.backup
    chosen = (rules.defaults.storage_location, rules.required.storage_location)
    return name in rules.allowed.storage_locations or name in chosen


def own_location(
    key: Key, namespace_uid: str, locations: Iterable[LocationRow], owners: Iterable[TenantLocationRow]
) -> LocationRow | None:
    """Return the Velero location that was made for a namespace's own location of that name.

    The record on Velero's object decides, with the UIDs of the namespace and the location: a name can be taken again.
    """
    owned = (row for row in locations if row.owner == key and row.namespace_uid == namespace_uid)
    return next((row for row in owned if owner_of(row, owners) is not None), None)


def owner_of(row: LocationRow, owners: Iterable[TenantLocationRow]) -> TenantLocationRow | None:
    """Return the tenant's location that a Velero location was made for; None if it is deleted or terminating."""
    locations = (owner for owner in owners if (owner.key, owner.uid) == (row.owner, row.request_uid))
    return next((location for location in locations if not location.is_terminating), None)


def missing(name: str, policy: PolicyRow) -> Refused | None:
    """Say that a backup waits for an own location that is not there yet; None if the name means another one."""
    rules = policy.spec
    is_other = name in rules.backup.allowed.storage_locations or rules.backup.required.storage_location is not None
    if not name or not rules.locations.allowed or is_other:
        return None
    text = f"NonAdminBackupStorageLocation {name[:80]} does not exist or is not approved yet"
    return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}; the backup starts automatically when it can be used")


def not_restorable(row: LocationRow | None, policy: PolicyRow) -> Refused | None:
    """Say why a tenant's restore from the tenant's own location does not go ahead; None if it does."""
    if row is None or row.owner is None:
        return None
    if policy.spec.locations.restores == "Refused":
        text = f"SelfServicePolicy {policy.name} refuses restores from storage locations of tenants"
        return Refused(Reason.POLICY_VIOLATION, f"{text}; ask a cluster administrator to restore the backup")
    return _own_closed(row, row.owner.name) if row.suspended or not row.is_available else None


def _own_closed(row: LocationRow, name: str) -> Refused:
    if row.suspended:
        text = f"Storage location {name} is not approved any more ({row.suspended})"
        return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}; ask a cluster administrator to approve it")
    state = "not available" if not row.is_available else "read-only"
    text = f"Storage location {name} is {state}; this starts automatically when it can be used"
    return Refused(Reason.LOCATION_UNAVAILABLE, f"{text}. Check the bucket and its credentials")
