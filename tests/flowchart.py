"""The arrows of the design document's flowchart of a NonAdminBackup, and which test covers which.

An arrow stands for an answer to one of the chart's questions, with the boxes up to the next one; an arrow without a
question before it belongs to the one that leads there. The four at the end are those of a restore that differ.
"""

from collections import defaultdict
from collections.abc import Callable
from enum import StrEnum
from typing import TypeVar

Test = TypeVar("Test", bound=Callable[..., None])


class Arrow(StrEnum):
    """A question of the chart, and the answer."""

    CREATE_OR_UPDATE = "Switch on workflow type: API create/update event"
    API_DELETE = "Switch on workflow type: API delete event"
    FORCE_DELETE = "Switch on workflow type: force delete spec"
    DELETE_BACKUP = "Switch on workflow type: delete spec"

    PHASE_EMPTY = "NAB phase empty? Yes: New"
    PHASE_SET = "NAB phase empty? No"
    INVALID = "Validate BackupSpec: invalid: BackingOff, Accepted=False, terminal error"
    VALID = "Validate BackupSpec: valid: Accepted=True, re-fetch"
    NO_NACUUID = "Does the status contain a NACUUID? No: generate it, update the status"
    NACUUID = "Does the status contain a NACUUID? Yes"
    NO_FINALIZER = "NAB has finalizer? No: add it"
    FINALIZER = "NAB has finalizer? Yes"
    NO_VELERO_BACKUP = "VeleroBackup exists? No: create it, Created, Queued=True"
    VELERO_BACKUP = "VeleroBackup exists? Yes: update the status from it"

    PLAIN_WAITS = "Process API delete: Deleting, DeletionPending with what to set, end"

    FORCE_TO_SAY = "Force delete: status requires update? Yes: update, requeue"
    FORCE_SAID = "Force delete: status requires update? No"
    FORCE_TO_MARK = "Force delete: deletion timestamp is zero? Yes: delete the NAB, requeue"
    FORCE_MARKED = "Force delete: deletion timestamp is zero? No: go on"
    FORCE_OBJECTS = "Force delete: VeleroBackup or DeleteBackupRequest exist: delete them, remove the finalizer"
    FORCE_NO_OBJECTS = "Force delete: VeleroBackup and DeleteBackupRequest don't exist: remove the finalizer"

    DELETE_TO_SAY = "Delete backup: status requires update? Yes: update, requeue"
    DELETE_SAID = "Delete backup: status requires update? No"
    DELETE_TO_MARK = "Delete backup: deletion timestamp is zero? Yes: delete the NAB, requeue"
    DELETE_MARKED = "Delete backup: deletion timestamp is zero? No: go on"
    DELETE_NO_FINALIZER = "Delete backup: NAB has finalizer? No: end"
    DELETE_FINALIZER = "Delete backup: NAB has finalizer? Yes"
    DELETE_NO_BACKUP = "Delete backup: VeleroBackup doesn't exist: remove the finalizer"
    DELETE_NO_REQUEST = "Delete backup: VeleroBackup exists, DeleteBackupRequest doesn't: create it"
    DELETE_REQUEST = "Delete backup: DeleteBackupRequest exists: update the status from it"
    DELETE_WAITS = "Delete backup: VeleroBackup still exists? Yes: requeue"
    DELETE_DONE = "Delete backup: VeleroBackup still exists? No: remove the finalizer"

    RESTORE_INVALID = "Restore: invalid: BackingOff, Accepted=False"
    RESTORE_MADE = "Restore: valid: VeleroRestore created, Created, Queued=True"
    RESTORE_SHOWN = "Restore: VeleroRestore exists: update the status from it"
    RESTORE_DELETED = "Restore: API delete: VeleroRestore deleted, finalizer removed"


WALKED: dict[str, set[Arrow]] = defaultdict(set)
"""By the module of the tests."""


def walks(*arrows: Arrow) -> Callable[[Test], Test]:
    """Say along which arrows a test walks."""

    def mark(test: Test) -> Test:
        WALKED[test.__module__].update(arrows)
        return test

    return mark
