"""The cause of every reason and the next step for a tenant.

The messages in conditions name the field, the number or the time; the advice names the next step.
"""

from datetime import timedelta

import msgspec

from foresail.cli.errors import CommandError
from foresail.cli.output.words import compact, in_words
from foresail.kube.failures import WRITE_REFUSED
from foresail.plan import Key
from foresail.selfservice.families import RESTORES, Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests import outcome


class Advice(msgspec.Struct, frozen=True):
    """The cause and the next step; where a restore's differs from a backup's, it has its own."""

    cause: str
    next_step: str
    of_restore: str = ""


_CORRECT = "correct the field that the message names, with kubectl edit {kind} {name} -n {namespace}"
_WAIT = "wait for it with foresail {word} wait {name} -n {namespace}"
_WAIT_FOR_VELERO = f"{_WAIT}. If nothing starts for minutes, ask a cluster administrator whether Velero is running"
_AGAIN = "remove the cause and create another {word}"
_CONDITIONS = f"see its conditions with foresail {{word}} describe {{name}} -n {{namespace}}. {_AGAIN.capitalize()}"
_LOG = f"{_AGAIN}. Velero's log has more: foresail {{word}} logs {{name}} -n {{namespace}}"
_LOCATION = "foresail location describe {name} -n {namespace}"
_RETRY = "foresail restore retry {name} -n {namespace}"
_ASK_FOR_ACCESS = "ask a cluster administrator for access to the kinds that the message names"

ADVICE = {
    Reason.INVALID_BACKUP_SPEC: Advice("the backup spec is not allowed", _CORRECT),
    Reason.BACKUP_ACCEPTED: Advice("the backup is valid and within its policy", _WAIT),
    Reason.BACKUP_SCHEDULED: Advice("the operator has created the Velero Backup", _WAIT),
    Reason.VELERO_BACKUP_NOT_FOUND: Advice(
        "the Velero Backup was removed",
        "create another backup, and delete this one with foresail backup delete {name} -n {namespace}",
    ),
    Reason.DELETION_PENDING: Advice(
        "the {word} is being deleted",
        "delete its data too, and wait for that, with foresail backup delete {name} -n {namespace} --wait",
        "wait until it is deleted with foresail restore delete {name} -n {namespace} --wait",
    ),
    Reason.INVALID_RESTORE_SPEC: Advice(
        "the restore is not allowed as it was asked for",
        f"{_CORRECT}. Or let what it names be allowed, then run {_RETRY}",
    ),
    Reason.RESTORE_ACCEPTED: Advice("the restore is valid and within its policy", _WAIT),
    Reason.RESTORE_SCHEDULED: Advice("the operator has created the Velero Restore", _WAIT),
    Reason.VELERO_RESTORE_NOT_FOUND: Advice(
        "the Velero Restore was removed before it finished",
        "create another restore, and delete this one with foresail restore delete {name} -n {namespace}",
    ),
    Reason.BSL_SPEC_VALIDATION: Advice(
        "the operator has checked the spec of the storage location",
        "if it was refused, correct the field that the message names, with kubectl edit nabsl {name} -n {namespace}",
    ),
    Reason.BSL_SPEC_APPROVAL_PENDING: Advice(
        "a cluster administrator has not approved the storage location or its changed credentials",
        "ask a cluster administrator to run foresail location request approve {name} -n {namespace}",
    ),
    Reason.BSL_SPEC_APPROVED: Advice(
        "a cluster administrator has approved the storage location", f"see it with {_LOCATION}"
    ),
    Reason.BSL_SPEC_REJECTED: Advice(
        "a cluster administrator has rejected the storage location, or withdrawn an approval",
        "ask why, then delete it with foresail location delete {name} -n {namespace} or have it approved",
    ),
    Reason.SECRET_CREATED: Advice("the operator has copied the credentials for Velero", f"see it with {_LOCATION}"),
    Reason.SECRET_UPDATED: Advice(
        "the operator has copied the changed credentials for Velero", f"see it with {_LOCATION}"
    ),
    Reason.SECRET_SYNC_FAILED: Advice(
        "the operator cannot use the Secret of the storage location",
        "do what the message says; the operator reads the Secret again automatically",
    ),
    Reason.BSL_CREATED: Advice("the operator has created the BackupStorageLocation", f"see it with {_LOCATION}"),
    Reason.BSL_SYNC_ERROR: Advice(
        "the operator cannot create the BackupStorageLocation",
        "ask a cluster administrator to remove the object that the message names",
    ),
    Reason.LOCATION_NAME_TAKEN: Advice(
        "a storage location of the cluster administrator has the same name",
        "create it with another name, and delete this one with foresail location delete {name} -n {namespace}",
    ),
    Reason.POLICY_VIOLATION: Advice(
        "the policy of namespace {namespace} does not allow this {word}",
        f"{_CORRECT}. Or ask a cluster administrator to allow it; the {{word}} then starts automatically",
        f"{_CORRECT}. Or ask a cluster administrator to allow it, then run {_RETRY}",
    ),
    Reason.RESTORED_FROM_BACKUP: Advice(
        "a restore of the namespace re-created this {word}, and it does not run again automatically",
        "run it with kubectl label {kind} {name} -n {namespace} velero.io/restore-name-. "
        "Or delete it with foresail {word} delete {name} -n {namespace}",
    ),
    Reason.INVALID_SCHEDULE_SPEC: Advice(
        "the schedule or its backup template is not allowed",
        "correct the field that the message names, with kubectl edit nonadminschedule {name} -n {namespace}",
    ),
    Reason.SCHEDULE_ACCEPTED: Advice(
        "the schedule is valid and within its policy",
        "see its next run with foresail backup schedule get {name} -n {namespace}",
    ),
    Reason.SCHEDULED: Advice(
        "the next run starts when it is due", "see it with foresail backup schedule get {name} -n {namespace}"
    ),
    Reason.PAUSED: Advice(
        "the schedule is paused", "resume it with foresail backup schedule unpause {name} -n {namespace}"
    ),
    Reason.BUSY: Advice(
        "the previous backup of the schedule has not finished",
        "see what blocks that backup with foresail backup explain -n {namespace}",
    ),
    Reason.RETENTION_APPLIES: Advice(
        "old backups of the schedule are deleted as the policy says", "there is nothing that you need to do"
    ),
    Reason.RETENTION_NOT_APPROVED: Advice(
        "keepLast of the policy would delete many backups of the schedule at once",
        "look at the list and approve it with foresail backup schedule retention {name} -n {namespace}",
    ),
    Reason.RETENTION_IN_DOUBT: Advice(
        "a clock or a storage location cannot be relied on, so no old backup of the schedule is deleted",
        "ask a cluster administrator to correct what the message names",
    ),
    Reason.NAME_TAKEN: Advice(
        "another NonAdminBackup has the name of the run that is due",
        "delete the NonAdminBackup that the message names, or wait for the next run",
    ),
    Reason.TOO_MANY_SCHEDULES: Advice(
        "the namespace has as many schedules as its policy allows",
        "delete another one with foresail backup schedule delete, or ask a cluster administrator to raise the limit",
    ),
    Reason.SKIPPED: Advice(
        "skipImmediately was applied, or an edit dropped a run that was due", "there is nothing that you need to do"
    ),
    Reason.SKIP_NOT_APPLIED: Advice(
        "skipImmediately was set again without a pause in between, so it is ignored",
        "pause the schedule and unpause it with foresail backup schedule unpause {name} --skip-immediately "
        "-n {namespace}",
    ),
    Reason.POLICY_INVALID: Advice(
        "the SchedulePolicy that the policy of the namespace names is missing or cannot be used",
        "ask a cluster administrator to correct it; the schedule then runs",
    ),
    Reason.OUTSIDE_WINDOW: Advice(
        "slots were outside the windows of the SchedulePolicy, so they are skipped or wait for the next opening",
        "there is nothing that you need to do",
    ),
    Reason.DEADLINE_EXCEEDED: Advice(
        "a run could not start within startingDeadline of the SchedulePolicy, so it is not run",
        "see what blocks runs with foresail backup schedule explain {name} -n {namespace}",
    ),
    Reason.NEVER_IN_WINDOW: Advice(
        "no slot of the schedule is inside the windows of the SchedulePolicy",
        "choose another time, or ask a cluster administrator about the windows",
    ),
    Reason.MISSED: Advice(
        "runs were missed while the operator was down or runs were blocked, and only the last one runs",
        "there is nothing that you need to do",
    ),
    Reason.TIME_IN_FUTURE: Advice(
        "a recorded time of the schedule is in the future, so runs count from now",
        "ask a cluster administrator to check the clocks",
    ),
    Reason.BACKUP_ADOPTED: Advice(
        "the backup was made before, and the operator has given it to the namespace",
        "restore from it with foresail restore create --from-backup {name} -n {namespace}",
    ),
    Reason.BACKUPS_ADOPTABLE: Advice(
        "Velero has backups of namespace {namespace} without a NonAdminBackup",
        "ask a cluster administrator to run foresail backup adopt -n {namespace}",
    ),
    Reason.NO_POLICY: Advice(
        "self-service is not enabled in namespace {namespace}",
        "ask a cluster administrator to enable it; the {word} then starts automatically",
        f"ask a cluster administrator to enable it, then run {_RETRY}",
    ),
    Reason.QUOTA_EXCEEDED: Advice(
        "namespace {namespace} has reached the limit of {word}s that its policy sets",
        "wait until one finishes, or delete one with foresail {word} delete; this one then starts automatically",
        "wait until one finishes, or delete one with foresail restore delete; this one then starts, unless it expires",
    ),
    Reason.RESTORE_HISTORY: Advice(
        "the policy keeps only the newest finished restores of a namespace",
        "ask a cluster administrator to keep more",
    ),
    Reason.WAITING_FOR_TURN: Advice(
        "other backups and restores are ahead of it in the queue",
        "wait; it starts automatically when its turn comes",
        "wait; it starts automatically when its turn comes, unless it expires",
    ),
    Reason.BACKUP_NOT_READY: Advice(
        "the backup to restore from does not exist or has not finished",
        "create that backup or wait for it; the restore then starts automatically, unless it expires",
    ),
    Reason.LOCATION_UNAVAILABLE: Advice(
        "the storage location of the backup is unavailable",
        "wait; the backup starts automatically when it is available. If this persists, ask a cluster administrator",
        "wait; the restore starts when it is available, unless it expires. If this persists, ask a cluster "
        "administrator",
    ),
    Reason.REQUESTER_UNKNOWN: Advice(
        "the restore has no recorded requester, so access cannot be checked",
        "create it again with foresail restore create NAME --from-backup BACKUP -n {namespace}. "
        "Or ask a cluster administrator to install the admission policies",
    ),
    Reason.CHECKING_ACCESS: Advice("the operator is checking what the requester may create", _WAIT),
    Reason.NAMESPACE_UNLABELLED: Advice(
        "the operator has not labelled the namespace for admission yet, or someone removed the label",
        "wait; the {word} then starts automatically. If this persists, ask a cluster administrator",
    ),
    Reason.ALL_KINDS_ALLOWED: Advice("the requester may create everything in the backup", _WAIT),
    Reason.KINDS_LEFT_OUT: Advice(
        "the requester may not create or read some kinds, so they are left out",
        f"{_ASK_FOR_ACCESS}, and create another {{word}}",
    ),
    Reason.ACCESS_DENIED: Advice(
        "the requester may not create any kind in the backup, or not change what the restore would change",
        f"{_ASK_FOR_ACCESS}, then run {_RETRY}",
    ),
    Reason.VOLUME_NOT_BACKED_UP: Advice(
        "a volume would be re-created unchanged, not from backed-up data",
        "create a restore with --exclude-resources persistentvolumeclaims,pods. Or ask a cluster administrator for "
        f"restore.volumes: AsIs or permission to create PersistentVolumes, then run {_RETRY}",
    ),
    Reason.VOLUME_NOT_NEW: Advice(
        "Velero would write files as root into a volume that the restore does not create itself",
        "delete the claims that the message names and create another restore. Or create a restore with "
        "--exclude-resources pods",
    ),
    Reason.BACKUP_TOO_LARGE: Advice(
        "the backup contains more objects than the operator can check",
        "restore from a backup of fewer kinds (--include-resources). Or ask a cluster administrator to restore it, or "
        "to set restore.authorization: Policy, restore.volumes: AsIs, and 1000000 for restore.maximumObjects and "
        "restore.maximumClaims",
    ),
    Reason.RESTORE_WITHDRAWN: Advice(
        "the policy or the requester's access changed before Velero began the restore, so it was withdrawn",
        f"{_ASK_FOR_ACCESS}, and create another restore",
    ),
    Reason.EXPIRED: Advice(
        "the restore could not start in time, and a later one could overwrite what is newer",
        "remove the cause of the wait and ask again as the message says",
    ),
    Reason.WAITING: Advice("Velero has not started it yet", _WAIT_FOR_VELERO),
    Reason.RUNNING: Advice("Velero is working on it", _WAIT),
    Reason.COMPLETED: Advice(
        "the {word} is complete",
        "restore it with foresail restore create NAME --from-backup {name} -n {namespace}",
        "check the restored objects with kubectl get all -n {target}",
    ),
    Reason.PARTIALLY_FAILED: Advice("the {word} partially failed", _LOG),
    Reason.FAILED: Advice("the {word} failed in Velero", _LOG),
    Reason.FAILED_VALIDATION: Advice("Velero rejected the {word} before it started", _CONDITIONS),
    Reason.SNAPSHOT_TIMEOUT_SHORTENED: Advice(
        "Velero waits for each snapshot less long than asked for, because the namespace has many volume claims",
        "if snapshots fail for it, leave volumes out, or ask a cluster administrator for a required csiSnapshotTimeout",
    ),
    Reason.KINDS_NOT_SERVED: Advice(
        "the backup names kinds that the cluster does not serve, so it does not contain them",
        "check the names with kubectl api-resources, and create another backup",
    ),
    Reason.NOTHING_BACKED_UP: Advice(
        "nothing in the namespace matches the backup spec",
        "create another backup with a --selector or --include-resources that matches something",
    ),
    Reason.VOLUMES_LEFT_OUT: Advice(
        "the backup lacks the data of some volumes of the namespace",
        "create another backup with --snapshot-volumes, or with --default-volumes-to-fs-backup if the policy allows "
        "it. If that does not help, ask a cluster administrator",
    ),
    Reason.ERROR: Advice(
        "the target of the download does not exist in namespace {namespace}",
        "name a backup or restore of this namespace in spec.target of a new NonAdminDownloadRequest",
    ),
    Reason.SUCCESS: Advice(
        "the file is ready to download", "download it from status.velero.status.downloadURL before the URL expires"
    ),
    Reason.TARGET_NOT_SERVED: Advice(
        "files of that kind hold backed-up objects and are not available to tenants",
        "ask a cluster administrator for downloads.contents: Allowed in the policy of namespace {namespace}, for the "
        "contents of a backup. Otherwise request a log, results or a list",
    ),
    Reason.CONTENTS_DENIED: Advice(
        "contents of backups hold Secrets, and the requester may not get Secrets in namespace {namespace}",
        "ask a cluster administrator for that permission, then create another NonAdminDownloadRequest",
    ),
    Reason.VELERO_SILENT: Advice(
        "Velero has not answered for a minute", "ask a cluster administrator whether Velero is running"
    ),
    Reason.DOWNLOAD_EXPIRED: Advice(
        "the download URL has expired, so the request was deleted",
        "create another NonAdminDownloadRequest for the same file",
    ),
    Reason.DELETION_FAILED: Advice(
        "Velero failed to delete the data of the backup",
        "wait for the next attempt, or ask a cluster administrator to check the storage location. "
        "To leave the data in the bucket, run foresail backup delete {name} -n {namespace} --force",
    ),
    Reason.FORCE_DELETED: Advice(
        "the backup was force-deleted, and its data still counts as stored",
        "delete the data too with foresail backup delete {name} -n {namespace}",
    ),
    Reason.DELETION_PROTECTED: Advice(
        "the policy of namespace {namespace} protects the backup from deletion",
        "wait; it is deleted as soon as the policy allows it. Or ask a cluster administrator",
    ),
    Reason.BACKUP_EXPIRED: Advice(
        "the backup has expired, and Velero deletes it",
        "create another backup, with a longer --ttl if the policy allows it",
        "restore from another backup with foresail restore create NAME --from-backup BACKUP -n {namespace}",
    ),
    Reason.BACKUP_ORPHANED: Advice(
        "namespace {namespace} was deleted, and the backup remains until it expires",
        "ask a cluster administrator to restore it",
    ),
    Reason.OWNER_GONE: Advice(
        "a Velero object had no owner, so it was deleted after an hour; a storage location with backups is read-only",
        "no action is needed; backups are never deleted this way",
    ),
    Reason.NAMESPACE_GONE: Advice(
        "namespace {namespace} was deleted while the {word} waited for Velero",
        "create a new {kind} in the namespace that exists now",
    ),
}

UNSEEN = Advice(
    "the operator has not processed it yet",
    "wait a few seconds. Then ask a cluster administrator whether Foresail's operator runs with --self-service",
)
"""For a request without a reason."""

PATIENCE = timedelta(seconds=15)
"""How long to wait for the operator before a hint names whom to ask."""

UNSERVED = timedelta(minutes=1)
"""How long to wait for the operator before a command gives up: what nobody serves may wait for ever."""


def unserved(name: str, withdrawal: str = "") -> CommandError:
    """Return that no operator has seen a request; `withdrawal` is the command with which its owner takes it back."""
    ask = "ask a cluster administrator whether Foresail's operator runs with --self-service"
    back = f". It starts with the operator, unless you withdraw it: {withdrawal}" if withdrawal else ""
    return CommandError(f"{name}: no operator has seen it for {compact(UNSERVED)}", f"{ask}{back}")


def next_step(advice: Advice, family: Family, key: Key, target: str = "") -> str:
    """Return what a tenant can do next about a request; `target` is the namespace of what it restores, if another."""
    text = advice.of_restore if family is RESTORES and advice.of_restore else advice.next_step
    return _filled(text, family, key, target)


def sentence(advice: Advice, family: Family, key: Key, target: str = "") -> str:
    """Return the cause and the next step, each as a sentence."""
    return f"{capital(_filled(advice.cause, family, key))}. {capital(next_step(advice, family, key, target))}"


def warnings_step(family: Family, key: Key) -> str:
    """Return how to read the warnings of a request that is complete."""
    return _filled("see the warnings with foresail {word} logs {name} -n {namespace} --results", family, key)


REFUSED = Advice(
    "the API server rejects a write of the operator",
    "ask a cluster administrator to correct what the message names; the {word} then continues automatically",
)

STALLED = Advice(
    "Velero starts nothing now",
    "ask a cluster administrator to run foresail doctor; the backup then starts automatically",
    "ask a cluster administrator to run foresail doctor; the restore then starts, if its time has not passed",
)

NOBODY_RUNS = Advice(
    "no operator runs for namespace {namespace} now",
    "ask a cluster administrator to run foresail doctor; the {word} then continues automatically",
)

LOCATION_DOWN = Advice(
    "the storage location of the {word} is not available",
    "ask a cluster administrator to run foresail doctor; the {word} then continues automatically",
)

RESTARTED = Advice("Velero was restarted while it worked on the {word}", "create another {word}")
"""For what failed because of that; Velero has no log about it."""


def advice_for(reason: str, message: str = "") -> Advice:
    """Return what is known of a reason; one that a later operator has added is left to its message."""
    if message.endswith(outcome.RESTARTED):
        return RESTARTED
    if not reason:
        return UNSEEN
    if reason == WRITE_REFUSED:
        return REFUSED
    if reason in list(Reason):
        return ADVICE[Reason(reason)]
    return Advice(in_words(reason), "follow the message, or ask a cluster administrator")


def capital(text: str) -> str:
    """Return a text that begins with a capital letter."""
    return text[:1].upper() + text[1:]


def _filled(text: str, family: Family, key: Key, target: str = "") -> str:
    kind = family.kind.name.lower()
    where = target or key.namespace
    return text.format(word=family.word, kind=kind, name=key.name, namespace=key.namespace, target=where)
