"""What is created for a NonAdminSchedule: the NonAdminBackup of a slot, and the deletion of an old one."""

from datetime import datetime

import msgspec

from foresail import deletion_writes
from foresail.api.instants import stamp
from foresail.api.marks import REQUESTER, REQUESTER_GROUPS, SCHEDULE_UID, SLOT
from foresail.api.requests import NON_ADMIN_BACKUP, NON_ADMIN_SCHEDULE
from foresail.plan import Create, Delete, Key, Patch
from foresail.selfservice.rows.requests import RequestRow
from foresail.selfservice.rows.schedules import ScheduleRow, run_name


def create_run(schedule: ScheduleRow, slot: datetime) -> Create:
    """Return the creation of the NonAdminBackup of a slot, in the name of whoever last changed the schedule.

    There is no owner reference: deleting the schedule keeps its backups until they expire.
    """
    requester = {REQUESTER: schedule.requester, REQUESTER_GROUPS: "\n".join(schedule.requester_groups)}
    spec = msgspec.json.decode(schedule.template or "{}", type=dict[str, object])
    body: dict[str, object] = {
        "metadata": {"annotations": {name: value for name, value in requester.items() if value}},
        "spec": {"backupSpec": spec},
    }
    mark = {SCHEDULE_UID: schedule.uid, SLOT: stamp(slot)}
    return Create(NON_ADMIN_BACKUP, Key(schedule.key.namespace, run_name(schedule.key.name, slot)), body, mark)


def request_deletion(backup: RequestRow, at: datetime, why: str) -> Patch:
    """Return the write that asks for a deletion as a tenant would; it fails if the backup has changed."""
    metadata = {"uid": backup.uid, "annotations": deletion_writes.mark_annotations(at, why)}
    return Patch(NON_ADMIN_BACKUP, backup.key, {"metadata": metadata, "spec": {"deleteBackup": True}}, backup.version)


def mark(backup: RequestRow, at: datetime | None, why: str) -> Patch:
    """Return the write of the mark that a backup is deleted later, or of its removal."""
    return deletion_writes.mark(NON_ADMIN_BACKUP, backup.key, backup.uid, backup.version, at, why)


def delete_refused(backup: RequestRow) -> Delete:
    """Return the deletion of a run that was refused: nothing was backed up for it."""
    return Delete(NON_ADMIN_BACKUP, backup.key, backup.uid)


def remove_skip(schedule: ScheduleRow) -> Patch:
    """Return the write that removes spec.skipImmediately, which has been applied."""
    body = {"metadata": {"uid": schedule.uid}, "spec": {"skipImmediately": None}}
    return Patch(NON_ADMIN_SCHEDULE, schedule.key, body)
