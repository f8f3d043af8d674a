"""What is not certain about the deletion of backups that a rule has asked for: then nothing is deleted."""

from collections.abc import Iterable, Iterator, Mapping

from foresail.plan import Key
from foresail.selfservice.rows.locations import LocationRow


def unread(policies: Iterable[Key], restores: Iterable[Key], *, is_restore_unread: bool) -> Iterator[str]:
    """Yield what cannot be decoded: a policy that may apply here and keep more, or a restore that may read a run.

    Velero's Restores are not named: they may be another tenant's.
    """
    ask = "Ask a cluster administrator to correct it"
    for policy in sorted(policies):
        yield f"SelfServicePolicy {policy.name} cannot be read, and may be the one of this namespace. {ask}"
    if is_restore_unread:
        yield f"a Velero Restore cannot be read, and may read a backup. {ask}"
    for restore in sorted(restores):
        yield f"NonAdminRestore {restore.name} cannot be read. Correct or delete it"


def of_locations(locations: Mapping[str, LocationRow | None]) -> Iterator[str]:
    """Yield which locations of backups cannot be asked or written to now."""
    for name, location in locations.items():
        if location is None:
            yield f"BackupStorageLocation {name} does not exist"
        elif not location.is_available or location.is_read_only:
            state = "read-only" if location.is_read_only else location.phase or "not checked by Velero yet"
            yield f"BackupStorageLocation {name} is {state}"
