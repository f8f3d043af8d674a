"""What the ServiceAccount of Schedules writes, as its fence holds it to."""

from foresail.api import velero
from foresail.api.fence import (
    ANNOTATIONS,
    CREATE,
    DELETE,
    LABELS,
    NAME,
    OLD_ANNOTATIONS,
    OLD_LABELS,
    OLD_SPEC,
    OLD_STATUS,
    SPEC,
    STATUS,
    TENANTS_LOCATION,
    UNCHANGED_SPEC,
    UPDATE,
    Condition,
    Fence,
    Rule,
    all_of,
    any_of,
    events,
    has_all,
    lease,
    matches,
    only,
    plain,
    quoted,
    same,
    unchanged,
    value,
    words,
)
from foresail.api.marks import (
    DELETE_AFTER,
    DELETE_REASON,
    NAMESPACE_UIDS,
    OBSERVED,
    PROTECTION_CLASS,
    REQUEST_UID,
    RETENTION,
    SCHEDULE_UID,
    SCHEDULES_LEASE,
    SLOT,
)
from foresail.api.specs import BackupSpec
from foresail.kube.events import EVENT
from foresail.kube.lease import LEASE
from foresail.schedules.retention import deletion_name
from foresail.schedules.velero_server import ABOUT, REQUESTS

RUN = "-[0-9]{14}-[0-9a-f]{8}(-r[1-9][0-9]?)?"
"""The end of the name of a Backup of ours: the slot, the Schedule's UID, and the attempt."""

_ANY_RUN = "-[0-9]{14}(-[0-9a-f]{8}(-r[1-9][0-9]?)?)?"  # Velero's own too, which have the slot only
_OTHERS_MARKS = 'key.startsWith("openshift.io/oadp-")'
_MARKS = (SCHEDULE_UID, SLOT, PROTECTION_CLASS, NAMESPACE_UIDS)
_SCHEDULE = value(LABELS, velero.SCHEDULE_LABEL)

STATUS_REQUEST = Rule(
    velero.STATUS_REQUEST,
    CREATE,
    (
        plain("spec"),
        Condition(
            all_of(
                f"{NAME}.startsWith({quoted(REQUESTS)})",
                f"{SPEC} == {{}}",
                f"{LABELS} == {{}}",
                only(ANNOTATIONS, (ABOUT,)),
            ),
            "it asks Velero for its version only",
        ),
    ),
)
"""The request for Velero's version; the forecast of Schedules makes it too."""

_RUN_OF_SCHEDULE = Rule(
    velero.BACKUP,
    CREATE,
    (
        plain("spec", metadata=("ownerReferences",)),
        Condition(
            all_of(
                has_all(ANNOTATIONS, (SCHEDULE_UID, SLOT)),
                f'{_SCHEDULE} != ""',
                f'{NAME}.startsWith({_SCHEDULE} + "-")',
                f"{NAME}.matches({quoted(f'{RUN}$')})",
                f'{NAME}.contains("-" + {value(ANNOTATIONS, SCHEDULE_UID)}.substring(0, 8))',
            ),
            "it creates only runs of Schedules, named after their Schedule and slot",
        ),
        Condition(
            all_of(
                f'{LABELS}.all(key, !key.startsWith("foresail.dev/") && !{_OTHERS_MARKS})',
                f'{ANNOTATIONS}.all(key, key in {words(_MARKS)} || (!key.startsWith("foresail.dev/")'
                f" && !{_OTHERS_MARKS}))",
            ),
            "a run has no mark of a tenant's backup",
        ),
        Condition(
            "variables.owners.all(each, each.kind == "
            f"{quoted(velero.SCHEDULE.name)} && each.name == {_SCHEDULE} && each.uid == "
            f"{value(ANNOTATIONS, SCHEDULE_UID)})",
            "a run is owned by its Schedule only",
        ),
        Condition(only(SPEC, BackupSpec.__struct_encode_fields__), "a run has no unknown fields"),
        Condition(
            f"!{value(SPEC, 'storageLocation')}.matches({quoted(TENANTS_LOCATION)})",
            "a run is never stored in the location of a tenant",
        ),
        Condition(
            any_of(
                f'!("hooks" in {SPEC}) || {value(SPEC, "hooks", "{}")} == {{}}',
                f'"*" in variables.withHooks || {_SCHEDULE} in variables.withHooks',
            ),
            "a run has hooks only if schedules.withHooks lists its Schedule",
        ),
    ),
)
_RECORD = Rule(
    velero.SCHEDULE,
    UPDATE,
    (
        *unchanged(annotations=(OBSERVED,)),
        Condition(
            all_of(same(SPEC, OLD_SPEC, ("skipImmediately",)), f'!("skipImmediately" in {SPEC})')
            + f" || {same(SPEC, OLD_SPEC)}",
            "it changes nothing in the spec of a Schedule but skipImmediately, which it removes",
        ),
        Condition(
            only("variables.status", ("phase", "lastBackup", "lastSkipped", "validationErrors")),
            "it writes no other status of a Schedule",
        ),
    ),
)
_RETENTION = Rule(
    velero.DELETE_REQUEST,
    CREATE,
    (
        plain("spec", metadata=("ownerReferences",)),
        Condition(
            all_of(
                only(SPEC, ("backupName",)),
                only(LABELS, (velero.BACKUP_NAME_LABEL, velero.BACKUP_UID_LABEL)),
                f"variables.owners.all(owner, owner.kind == {quoted(velero.BACKUP.name)}"
                f" && owner.name == {value(SPEC, 'backupName')})",
                only(ANNOTATIONS, (SCHEDULE_UID, RETENTION)),
                has_all(ANNOTATIONS, (SCHEDULE_UID, RETENTION)),
                f"{NAME} == {value(SPEC, 'backupName')} + {quoted(deletion_name(''))}",
                matches(value(SPEC, "backupName"), f".+{_ANY_RUN}"),
            ),
            "it deletes only runs of Schedules, by retention",
        ),
    ),
)
_OF_SCHEDULE = Condition(
    all_of(f"{quoted(velero.SCHEDULE_LABEL)} in {OLD_LABELS}", f"!({quoted(REQUEST_UID)} in {OLD_ANNOTATIONS})"),
    "it touches runs of Schedules only",
)
_MARK = Rule(
    velero.BACKUP,
    UPDATE,
    (
        _OF_SCHEDULE,
        *unchanged(annotations=(DELETE_AFTER, DELETE_REASON)),
        UNCHANGED_SPEC,
        Condition(same(STATUS, OLD_STATUS), "it changes no status of a Backup"),
    ),
)
_FAILED_RUN = Rule(  # the object alone: its data in the bucket, if any, belongs to an earlier backup of that name
    velero.BACKUP,
    DELETE,
    (
        _OF_SCHEDULE,
        Condition(
            all_of(has_all(OLD_ANNOTATIONS, (SCHEDULE_UID,)), f'{value(OLD_STATUS, "phase")} == "Failed"'),
            "it deletes only the objects of its own failed runs",
        ),
    ),
)
_WITHDRAWN = Rule(
    velero.DELETE_REQUEST,
    DELETE,
    (Condition(has_all(OLD_ANNOTATIONS, (SCHEDULE_UID, RETENTION)), "it withdraws only its own requests"),),
)

FENCE = Fence(
    SCHEDULES_LEASE,
    "schedules.enabled",
    "The token of Schedules, fenced: Velero acts as cluster administrator, so the shape of what it is given is\n"
    "held here. Written by `make fences` from src/foresail/schedules/fence.py: change that.",
    (
        _RUN_OF_SCHEDULE,
        _RECORD,
        _RETENTION,
        _MARK,
        _FAILED_RUN,
        _WITHDRAWN,
        STATUS_REQUEST,
        events(EVENT),
        lease(LEASE, SCHEDULES_LEASE),
    ),
    {"withHooks": '{{ include "foresail.schedulesWithHooks" . }}'},
)
