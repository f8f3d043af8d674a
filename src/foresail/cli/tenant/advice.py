"""What every reason means to a tenant and what to do next, in one sentence.

The messages in conditions are the operator's, and name the field, the number or the time; these say what follows.
"""

from dataclasses import dataclass

from foresail.kube.refusals import WRITE_REFUSED
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.reasons import Reason


@dataclass(frozen=True, slots=True)
class Advice:
    """The cause and the next step; where a restore's differs from a backup's, it has its own."""

    cause: str
    next_step: str
    of_restore: str = ""


_CORRECT = "correct the field that the message names with kubectl edit {kind} {name} -n {namespace}"
_WAIT = "wait for it with foresail {word} wait {name} -n {namespace}"
_AGAIN = "read its conditions with foresail {word} describe {name} -n {namespace}, remove the cause and create another"

_WHY = (
    "read why with foresail {word} describe {name} -n {namespace} or in full with foresail {word} logs {name} "
    "-n {namespace}, remove the cause and create another"
)

ADVICE = {
    Reason.INVALID_BACKUP_SPEC: Advice("the backup asks for something that it may not have", _CORRECT),
    Reason.BACKUP_ACCEPTED: Advice("the backup is valid and within its policy", _WAIT),
    Reason.BACKUP_SCHEDULED: Advice("Velero was asked for the backup", _WAIT),
    Reason.VELERO_BACKUP_NOT_FOUND: Advice(
        "the Velero Backup behind it was removed",
        "create another, and let this one go with foresail backup delete {name} -n {namespace}",
    ),
    Reason.DELETION_PENDING: Advice(
        "it is on its way out and not gone yet",
        "say that its data is to go too, and wait for that, with foresail backup delete {name} -n {namespace} --wait",
        "wait until it is gone with foresail restore delete {name} -n {namespace} --wait",
    ),
    Reason.INVALID_RESTORE_SPEC: Advice("the restore asks for something that it may not have", _CORRECT),
    Reason.RESTORE_ACCEPTED: Advice("the restore is valid and within its policy", _WAIT),
    Reason.RESTORE_SCHEDULED: Advice("Velero was asked for the restore", _WAIT),
    Reason.VELERO_RESTORE_NOT_FOUND: Advice(
        "the Velero Restore behind it was removed before it had ended",
        "create another, and let this one go with foresail restore delete {name} -n {namespace}",
    ),
    Reason.POLICY_VIOLATION: Advice(
        "the policy of namespace {namespace} forbids what the {word} asks for",
        "change the field that the message names with kubectl edit {kind} {name} -n {namespace}, or ask the "
        "administrator of the cluster to allow it, and the {word} starts by itself",
    ),
    Reason.RESTORED_FROM_BACKUP: Advice(
        "a restore of the namespace brought this request back, and it does not run again by itself",
        "run it with kubectl label {kind} {name} -n {namespace} velero.io/restore-name- or delete it with foresail "
        "{word} delete {name} -n {namespace}",
    ),
    Reason.NO_POLICY: Advice(
        "no policy opens self-service in namespace {namespace}",
        "ask the administrator of the cluster to open it, and the {word} starts by itself",
    ),
    Reason.QUOTA_EXCEEDED: Advice(
        "namespace {namespace} has as many {word}s as its policy allows",
        "wait until one has ended or let one go with foresail backup delete, and this one starts by itself",
    ),
    Reason.RESTORE_HISTORY: Advice(
        "the policy keeps only the newest finished restores of a namespace",
        "ask the administrator to keep more",
    ),
    Reason.WAITING_FOR_TURN: Advice(
        "other backups and restores are before it in the queue", "wait, and it starts automatically when its turn comes"
    ),
    Reason.BACKUP_NOT_READY: Advice(
        "the backup to restore from does not exist or has not ended",
        "create or wait for that backup, and the restore starts by itself",
    ),
    Reason.LOCATION_UNAVAILABLE: Advice(
        "Velero cannot store backups where this one is to be",
        "wait until it can, and the backup starts by itself, or ask the administrator of the cluster about the "
        "storage location",
    ),
    Reason.REQUESTER_UNKNOWN: Advice(
        "the restore does not say who asked for it, so nobody's access can be checked",
        "create it again with foresail restore create NAME --from-backup BACKUP -n {namespace}, or ask the "
        "administrator to install the admission policies",
    ),
    Reason.CHECKING_ACCESS: Advice("the operator checks what the requester may create", _WAIT),
    Reason.ALL_KINDS_ALLOWED: Advice("the requester may create everything that comes back", _WAIT),
    Reason.KINDS_LEFT_OUT: Advice(
        "the requester may not create some of the kinds in the backup, so they are left out",
        "ask the administrator for access to the kinds that the message names, and create another restore",
    ),
    Reason.ACCESS_DENIED: Advice(
        "the requester may not create any of the kinds in the backup",
        "ask the administrator for access to the kinds that the message names, and the restore starts by itself within "
        "ten minutes",
    ),
    Reason.VOLUME_NOT_BACKED_UP: Advice(
        "a volume of the backup would come back as it was, not from backed-up data",
        "create a restore with --exclude-resources persistentvolumeclaims,pods, or ask the administrator for "
        "restore.volumes: AsIs or the right to create PersistentVolumes; with either the restore starts by itself",
    ),
    Reason.BACKUP_TOO_LARGE: Advice(
        "the backup holds more objects than the operator can check for the requester",
        "restore from a backup of fewer kinds (--include-resources), or ask the administrator to restore it or to set "
        "restore.authorization: Policy and restore.volumes: AsIs for namespace {namespace}",
    ),
    Reason.WAITING: Advice("Velero has not started it yet", _WAIT),
    Reason.RUNNING: Advice("Velero works on it", _WAIT),
    Reason.COMPLETED: Advice(
        "everything is done",
        "bring it back at any time with foresail restore create NAME --from-backup {name} -n {namespace}",
        "look at what came back with kubectl get all -n {namespace}",
    ),
    Reason.PARTIALLY_FAILED: Advice("Velero could do only a part of it", _WHY),
    Reason.FAILED: Advice("Velero could not do it", _WHY),
    Reason.FAILED_VALIDATION: Advice("Velero refused it before it began", _AGAIN),
    Reason.KINDS_NOT_SERVED: Advice(
        "the backup names kinds that the cluster does not serve, so they are not in it",
        "check their names with kubectl api-resources, and create another",
    ),
    Reason.NOTHING_BACKED_UP: Advice(
        "nothing in the namespace matches what the backup asks for",
        "create another with a --selector or --include-resources that matches something",
    ),
    Reason.VOLUMES_LEFT_OUT: Advice(
        "the namespace has volumes whose data is not in the backup",
        "create another with --snapshot-volumes or --default-volumes-to-fs-backup, and ask the administrator of the "
        "cluster if they stay out of it",
    ),
    Reason.ERROR: Advice(
        "what the download is about is not there, or is not of namespace {namespace}",
        "name a backup or a restore of this namespace in spec.target of a new NonAdminDownloadRequest",
    ),
    Reason.SUCCESS: Advice(
        "the file can be fetched", "fetch it from status.velero.status.downloadURL before it expires"
    ),
    Reason.TARGET_NOT_SERVED: Advice(
        "files of that kind are not given to tenants",
        "ask for BackupLog, BackupResults, RestoreLog or RestoreResults in a new NonAdminDownloadRequest",
    ),
    Reason.VELERO_SILENT: Advice(
        "Velero has not answered for a minute", "ask the administrator of the cluster whether Velero runs"
    ),
    Reason.DOWNLOAD_EXPIRED: Advice(
        "the download URL has expired, so the request was deleted",
        "create another NonAdminDownloadRequest for the same file",
    ),
    Reason.DELETION_FAILED: Advice(
        "Velero could not delete its data",
        "wait for the next attempt, ask the administrator whether the storage location is there, or give the data up "
        "with foresail backup delete {name} -n {namespace} --force",
    ),
    Reason.FORCE_DELETED: Advice(
        "the backup was deleted by force and its data still counts as stored",
        "delete the data too with foresail backup delete {name} -n {namespace}",
    ),
    Reason.DELETION_PROTECTED: Advice(
        "the policy of namespace {namespace} protects the backup from deletion",
        "wait, and it is deleted as soon as the policy allows it, or ask the administrator of the cluster",
    ),
    Reason.BACKUP_EXPIRED: Advice(
        "the backup has expired, and Velero deletes it",
        "create another, with a longer --ttl if it may have one",
        "restore from another with foresail restore create NAME --from-backup BACKUP -n {namespace}",
    ),
    Reason.BACKUP_ORPHANED: Advice(
        "namespace {namespace} was deleted, and the backup stays until its time",
        "ask the administrator of the cluster to restore it",
    ),
    Reason.NAMESPACE_GONE: Advice(
        "namespace {namespace} was deleted while the {word} waited for Velero",
        "create a new {kind} in the namespace that exists now",
    ),
}

UNSEEN = Advice(
    "the operator has not looked at it yet",
    "wait some seconds, and then ask the administrator whether Foresail's operator runs with --self-service",
)
"""For what has no reason yet."""


def next_step(advice: Advice, family: Family, key: Key) -> str:
    """Return what a tenant can do next about a request."""
    text = advice.next_step if family is BACKUPS else advice.of_restore or advice.next_step
    return _filled(text, family, key)


def sentence(advice: Advice, family: Family, key: Key) -> str:
    """Return the cause and the next step."""
    return f"{_filled(advice.cause, family, key)}: {next_step(advice, family, key)}"


REFUSED = Advice(
    "the API server refuses a write of the operator",
    "ask the administrator of the cluster to correct what the message names, and the {word} continues by itself",
)


def advice_for(reason: str) -> Advice:
    """Return what is known of a reason; one that a later operator has added is left to its message."""
    if not reason:
        return UNSEEN
    if reason == WRITE_REFUSED:
        return REFUSED
    if reason in list(Reason):
        return ADVICE[Reason(reason)]
    return Advice(f"it is {reason}", "do what the message says, or ask the administrator of the cluster")


def _filled(text: str, family: Family, key: Key) -> str:
    kind = family.kind.name.lower()
    return text.format(word=family.word, kind=kind, name=key.name, namespace=key.namespace)
