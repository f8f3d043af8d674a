"""A request that has its Velero object: mirror it, notice that it was deleted, and remove old restores."""

from datetime import datetime

import msgspec

from foresail.plan import Delete, Plan
from foresail.selfservice.families import BACKUPS
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import build, outcome, rules
from foresail.selfservice.requests.observe import Seen
from foresail.selfservice.requests.plans import (
    created_status,
    note_about,
    status_plan,
    subject_of,
    wait_for_absence,
    with_condition,
)
from foresail.selfservice.requests.status import (
    ACCEPTED,
    FALSE,
    SUCCEEDED,
    Said,
    patch_body,
)
from foresail.selfservice.rows.velero import VeleroRow


def update_from_velero(seen: Seen, row: VeleroRow, now: datetime) -> Plan:
    """Show the tenant what Velero says; a number in the queue that is far from the front is told in its own time."""
    before = seen.request.status
    after = created_status(seen, row.mirror, row.spec, now)
    if not patch_body(seen.family, before, msgspec.structs.replace(after, position=before.position)):
        at = seen.place.tell_at
        if at is not None and at > now and after.position != before.position:
            return Plan(wake_at=at)
    return status_plan(seen, after)


def velero_object_deleted(seen: Seen, now: datetime) -> Plan:
    """Report that Velero's object was removed; delete the request of a backup once it has expired.

    What `Succeeded` reports stays true. Our clock may be behind Velero's, so an expiration to come is waited for.
    """
    waiting = wait_for_absence(seen, now)
    if waiting is not None:
        return waiting
    request, family = seen.request, seen.family
    expires = rules.expires_at(request) if family is BACKUPS else None
    if expires is not None and expires <= now:
        text = (
            f"the time of the backup has passed, and Velero has deleted it: NonAdminBackup {request.key.name} goes too"
        )
        return Plan(
            (build.delete_request(seen),),
            notes=(note_about(seen, Reason.BACKUP_EXPIRED, text),),
            subject=subject_of(seen),
        )
    if family is not BACKUPS and seen.request.status.position == 0:
        return Plan()  # it has ended, and how it went is still true
    text, after = rules.why_gone(seen), msgspec.structs.replace(request.status, position=0)
    after = with_condition(seen, after, Said(ACCEPTED, FALSE, family.not_found, text), now)
    if not outcome.has_ended(request):
        after = with_condition(seen, after, Said(SUCCEEDED, FALSE, family.not_found, text), now)
    return status_plan(seen, after, wake_at=expires)


def remove_from_history(seen: Seen, row: VeleroRow | None, history: int) -> Plan:
    """Delete a finished restore, and its Velero Restore first, beyond the number that the policy keeps."""
    name = seen.request.key.name
    text = f"Deleted NonAdminRestore {name}: the policy keeps the newest {history} finished restores of a namespace"
    gone = (Delete(seen.family.velero, row.key, row.uid),) if row is not None and not row.is_going else ()
    note = note_about(seen, Reason.RESTORE_HISTORY, text)
    return Plan((*gone, build.delete_request(seen)), notes=(note,), subject=subject_of(seen))
