"""Every reason that a tenant can meet, with its cause and the next step."""

import re
import shlex

import pytest

from foresail.cli.main import parser
from foresail.cli.tenant.advice import ADVICE, UNSEEN, Advice, advice_for, sentence
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.reasons import Reason

KEY = Key("shop", "daily")
SENTENCES = {
    "InvalidBackupSpec": (
        (
            "The backup spec is not allowed. Correct the field that the message names, with kubectl edit "
            "nonadminbackup daily -n shop"
        ),
    ),
    "BackupAccepted": (
        "The backup is valid and within its policy. Wait for it with foresail backup wait daily -n shop",
    ),
    "BackupScheduled": (
        "The operator has created the Velero Backup. Wait for it with foresail backup wait daily -n shop",
    ),
    "VeleroBackupNotFound": (
        (
            "The Velero Backup was removed. Create another backup, and delete this one with foresail backup "
            "delete daily -n shop"
        ),
    ),
    "DeletionPending": (
        (
            "The backup is being deleted. Delete its data too, and wait for that, with foresail backup delete "
            "daily -n shop --wait"
        ),
        ("The restore is being deleted. Wait until it is deleted with foresail restore delete daily -n shop --wait"),
    ),
    "InvalidRestoreSpec": (
        (
            "The restore spec is not allowed. Correct the field that the message names, with kubectl edit "
            "nonadminrestore daily -n shop"
        ),
    ),
    "RestoreAccepted": (
        "The restore is valid and within its policy. Wait for it with foresail restore wait daily -n shop",
    ),
    "RestoreScheduled": (
        "The operator has created the Velero Restore. Wait for it with foresail restore wait daily -n shop",
    ),
    "VeleroRestoreNotFound": (
        (
            "The Velero Restore was removed before it finished. Create another restore, and delete this one with "
            "foresail restore delete daily -n shop"
        ),
    ),
    "BslSpecValidation": (
        (
            "The operator has checked the spec of the storage location. If it was refused, correct the field "
            "that the message names, with kubectl edit nabsl daily -n shop"
        ),
    ),
    "BslSpecApprovalPending": (
        (
            "A cluster administrator has not approved the storage location or its changed credentials. Ask a "
            "cluster administrator to run foresail location request approve daily -n shop"
        ),
    ),
    "BslSpecApproved": (
        (
            "A cluster administrator has approved the storage location. See it with foresail location "
            "describe daily -n shop"
        ),
    ),
    "BslSpecRejected": (
        (
            "A cluster administrator has rejected the storage location, or withdrawn an approval. Ask why, "
            "then delete it with foresail location delete daily -n shop or have it approved"
        ),
    ),
    "SecretCreated": (
        ("The operator has copied the credentials for Velero. See it with foresail location describe daily -n shop"),
    ),
    "SecretUpdated": (
        (
            "The operator has copied the changed credentials for Velero. See it with foresail location "
            "describe daily -n shop"
        ),
    ),
    "SecretSyncFailed": (
        (
            "The operator cannot use the Secret of the storage location. Do what the message says; the "
            "operator reads the Secret again automatically"
        ),
    ),
    "BackupStorageLocationCreated": (
        ("The operator has created the BackupStorageLocation. See it with foresail location describe daily -n shop"),
    ),
    "LocationNameTaken": (
        (
            "A storage location of the cluster administrator has the same name. Create it with another name, and "
            "delete this one with foresail location delete daily -n shop"
        ),
    ),
    "BackupStorageLocationSyncError": (
        (
            "The operator cannot create the BackupStorageLocation. Ask a cluster administrator to remove the "
            "object that the message names"
        ),
    ),
    "PolicyViolation": (
        (
            "The policy of namespace shop does not allow this backup. Correct the field that the message names, "
            "with kubectl edit nonadminbackup daily -n shop. Or ask a cluster administrator to allow it; the "
            "backup then starts automatically"
        ),
        (
            "The policy of namespace shop does not allow this restore. Correct the field that the message names, "
            "with kubectl edit nonadminrestore daily -n shop. Or ask a cluster administrator to allow it, then run "
            "foresail restore retry daily -n shop"
        ),
    ),
    "RestoredFromBackup": (
        (
            "A restore of the namespace re-created this restore, and it does not run again automatically. Run it "
            "with kubectl label nonadminrestore daily -n shop velero.io/restore-name-. Or delete it with foresail "
            "restore delete daily -n shop"
        ),
    ),
    "InvalidScheduleSpec": (
        (
            "The schedule or its backup template is not allowed. Correct the field that the message names, with "
            "kubectl edit nonadminschedule daily -n shop"
        ),
    ),
    "ScheduleAccepted": (
        (
            "The schedule is valid and within its policy. See its next run with foresail backup schedule get daily "
            "-n shop"
        ),
    ),
    "Scheduled": ("The next run starts when it is due. See it with foresail backup schedule get daily -n shop",),
    "Paused": ("The schedule is paused. Resume it with foresail backup schedule unpause daily -n shop",),
    "Busy": (
        (
            "The previous backup of the schedule has not finished. See what blocks that backup with foresail backup "
            "explain -n shop"
        ),
    ),
    "RetentionApplies": (
        "Old backups of the schedule are deleted as the policy says. There is nothing that you need to do",
    ),
    "RetentionNotApproved": (
        (
            "KeepLast of the policy would delete many backups of the schedule at once. Look at the list and approve it "
            "with foresail backup schedule retention daily -n shop"
        ),
    ),
    "RetentionInDoubt": (
        (
            "A clock or a storage location cannot be relied on, so no old backup of the schedule is deleted. Ask a "
            "cluster administrator to correct what the message names"
        ),
    ),
    "NameTaken": (
        (
            "Another NonAdminBackup has the name of the run that is due. Delete the NonAdminBackup that the message "
            "names, or wait for the next run"
        ),
    ),
    "TooManySchedules": (
        (
            "The namespace has as many schedules as its policy allows. Delete another one with foresail backup "
            "schedule delete, or ask a cluster administrator to raise the limit"
        ),
    ),
    "PolicyInvalid": (
        (
            "The SchedulePolicy that the policy of the namespace names is missing or cannot be used. Ask a cluster "
            "administrator to correct it; the schedule then runs"
        ),
    ),
    "OutsideWindow": (
        (
            "Slots were outside the windows of the SchedulePolicy, so they are skipped or wait for the next opening. "
            "There is nothing that you need to do"
        ),
    ),
    "DeadlineExceeded": (
        (
            "A run could not start within startingDeadline of the SchedulePolicy, so it is not run. See what blocks "
            "runs with foresail backup schedule explain daily -n shop"
        ),
    ),
    "NeverInWindow": (
        (
            "No slot of the schedule is inside the windows of the SchedulePolicy. Choose another time, or ask a "
            "cluster administrator about the windows"
        ),
    ),
    "Skipped": (
        "SkipImmediately was applied, or an edit dropped a run that was due. There is nothing that you need to do",
    ),
    "SkipNotApplied": (
        (
            "SkipImmediately was set again without a pause in between, so it is ignored. Pause the schedule and "
            "unpause it with foresail backup schedule unpause daily --skip-immediately -n shop"
        ),
    ),
    "Missed": (
        (
            "Runs were missed while the operator was down or runs were blocked, and only the last one runs. There is "
            "nothing that you need to do"
        ),
    ),
    "TimeInFuture": (
        (
            "A recorded time of the schedule is in the future, so runs count from now. Ask a cluster administrator "
            "to check the clocks"
        ),
    ),
    "NoPolicy": (
        (
            "Self-service is not enabled in namespace shop. Ask a cluster administrator to enable it; the backup "
            "then starts automatically"
        ),
        (
            "Self-service is not enabled in namespace shop. Ask a cluster administrator to enable it, then run "
            "foresail restore retry daily -n shop"
        ),
    ),
    "QuotaExceeded": (
        (
            "Namespace shop has reached the limit of backups that its policy sets. Wait until one finishes, or "
            "delete one with foresail backup delete; this one then starts automatically"
        ),
        (
            "Namespace shop has reached the limit of restores that its policy sets. Wait until one finishes, or "
            "delete one with foresail restore delete; this one then starts, unless it expires"
        ),
    ),
    "RestoreHistory": (
        ("The policy keeps only the newest finished restores of a namespace. Ask a cluster administrator to keep more"),
    ),
    "WaitingForTurn": (
        ("Other backups and restores are ahead of it in the queue. Wait; it starts automatically when its turn comes"),
        (
            "Other backups and restores are ahead of it in the queue. Wait; it starts automatically when its turn "
            "comes, unless it expires"
        ),
    ),
    "BackupNotReady": (
        (
            "The backup to restore from does not exist or has not finished. Create that backup or wait for it; "
            "the restore then starts automatically, unless it expires"
        ),
    ),
    "LocationUnavailable": (
        (
            "The storage location of the backup is unavailable. Wait; the backup starts automatically when it is "
            "available. If this persists, ask a cluster administrator"
        ),
        (
            "The storage location of the backup is unavailable. Wait; the restore starts when it is available, "
            "unless it expires. If this persists, ask a cluster administrator"
        ),
    ),
    "RequesterUnknown": (
        (
            "The restore has no recorded requester, so access cannot be checked. Create it again with foresail "
            "restore create NAME --from-backup BACKUP -n shop. Or ask a cluster administrator to install the "
            "admission policies"
        ),
    ),
    "CheckingAccess": (
        ("The operator is checking what the requester may create. Wait for it with foresail backup wait daily -n shop"),
    ),
    "NamespaceUnlabelled": (
        (
            "The operator has not labelled the namespace for admission yet, or someone removed the label. Wait; the "
            "backup then starts automatically. If this persists, ask a cluster administrator"
        ),
    ),
    "AllKindsAllowed": (
        ("The requester may create everything in the backup. Wait for it with foresail backup wait daily -n shop"),
    ),
    "KindsLeftOut": (
        (
            "The requester may not create or read some kinds, so they are left out. Ask a cluster "
            "administrator for access to the kinds that the message names, and create another backup"
        ),
        (
            "The requester may not create or read some kinds, so they are left out. Ask a cluster "
            "administrator for access to the kinds that the message names, and create another restore"
        ),
    ),
    "AccessDenied": (
        (
            "The requester may not create any kind in the backup. Ask a cluster administrator for access to the "
            "kinds that the message names, then run foresail restore retry daily -n shop"
        ),
    ),
    "VolumeNotBackedUp": (
        (
            "A volume would be re-created unchanged, not from backed-up data. Create a restore with "
            "--exclude-resources persistentvolumeclaims,pods. Or ask a cluster administrator for restore.volumes: "
            "AsIs or permission to create PersistentVolumes, then run foresail restore retry daily -n shop"
        ),
    ),
    "VolumeNotNew": (
        (
            "Velero would write files as root into a volume that the restore does not create itself. Delete the "
            "claims that the message names and create another restore. Or create a restore with "
            "--exclude-resources pods"
        ),
    ),
    "BackupTooLarge": (
        (
            "The backup contains more objects than the operator can check. Restore from a backup of fewer kinds "
            "(--include-resources). Or ask a cluster administrator to restore it, or to set "
            "restore.authorization: Policy, restore.volumes: AsIs and restore.maximumObjects: 1000000"
        ),
    ),
    "RestoreWithdrawn": (
        (
            "The policy or the requester's access changed before Velero began the restore, so it was withdrawn. "
            "Ask a cluster administrator for access to the kinds that the message names, and create another restore"
        ),
    ),
    "Expired": (
        (
            "The restore could not start in time, and a later one could overwrite what is newer. Remove the cause of "
            "the wait and ask again as the message says"
        ),
    ),
    "Waiting": ("Velero has not started it yet. Wait for it with foresail backup wait daily -n shop",),
    "Running": ("Velero is working on it. Wait for it with foresail backup wait daily -n shop",),
    "Completed": (
        "The backup is complete. Restore it with foresail restore create NAME --from-backup daily -n shop",
        "The restore is complete. Check the restored objects with kubectl get all -n shop",
    ),
    "PartiallyFailed": (
        (
            "The backup partially failed. Remove the cause and create another backup. Velero's log has more: "
            "foresail backup logs daily -n shop"
        ),
    ),
    "Failed": (
        (
            "The backup failed in Velero. Remove the cause and create another backup. Velero's log has more: "
            "foresail backup logs daily -n shop"
        ),
    ),
    "FailedValidation": (
        (
            "Velero rejected the backup before it started. See its conditions with foresail backup describe daily "
            "-n shop. Remove the cause and create another backup"
        ),
    ),
    "KindsNotServed": (
        (
            "The backup names kinds that the cluster does not serve, so it does not contain them. Check the names "
            "with kubectl api-resources, and create another backup"
        ),
    ),
    "NothingBackedUp": (
        (
            "Nothing in the namespace matches the backup spec. Create another backup with a --selector or "
            "--include-resources that matches something"
        ),
    ),
    "VolumesLeftOut": (
        (
            "The backup lacks the data of some volumes of the namespace. Create another backup with "
            "--snapshot-volumes, or with --default-volumes-to-fs-backup if the policy allows it. If that does not "
            "help, ask a cluster administrator"
        ),
    ),
    "Error": (
        (
            "The target of the download does not exist in namespace shop. Name a backup or restore of this "
            "namespace in spec.target of a new NonAdminDownloadRequest"
        ),
    ),
    "Success": (
        ("The file is ready to download. Download it from status.velero.status.downloadURL before the URL expires"),
    ),
    "TargetNotServed": (
        (
            "Files of that kind hold backed-up objects and are not available to tenants. For the contents of a backup, "
            "ask a cluster administrator for downloads.contents: Allowed in the policy of namespace shop. Otherwise "
            "request a log, results or a list"
        ),
    ),
    "ContentsDenied": (
        (
            "Contents of backups hold Secrets, and the requester may not get Secrets in namespace shop. Ask a cluster "
            "administrator for that permission, then create another NonAdminDownloadRequest"
        ),
    ),
    "VeleroSilent": ("Velero has not answered for a minute. Ask a cluster administrator whether Velero is running",),
    "DownloadExpired": (
        (
            "The download URL has expired, so the request was deleted. Create another NonAdminDownloadRequest for "
            "the same file"
        ),
    ),
    "DeletionFailed": (
        (
            "Velero failed to delete the data of the backup. Wait for the next attempt, or ask a cluster "
            "administrator to check the storage location. To leave the data in the bucket, run foresail backup "
            "delete daily -n shop --force"
        ),
    ),
    "ForceDeleted": (
        (
            "The backup was force-deleted, and its data still counts as stored. Delete the data too with foresail "
            "backup delete daily -n shop"
        ),
    ),
    "DeletionProtected": (
        (
            "The policy of namespace shop protects the backup from deletion. Wait; it is deleted as soon as the "
            "policy allows it. Or ask a cluster administrator"
        ),
    ),
    "BackupExpired": (
        (
            "The backup has expired, and Velero deletes it. Create another backup, with a longer --ttl if the "
            "policy allows it"
        ),
        (
            "The backup has expired, and Velero deletes it. Restore from another backup with foresail restore "
            "create NAME --from-backup BACKUP -n shop"
        ),
    ),
    "BackupOrphaned": (
        (
            "Namespace shop was deleted, and the backup remains until it expires. Ask a cluster administrator to "
            "restore it"
        ),
    ),
    "NamespaceGone": (
        (
            "Namespace shop was deleted while the backup waited for Velero. Create a new nonadminbackup in the "
            "namespace that exists now"
        ),
    ),
    "BackupAdopted": (
        (
            "The backup was made before, and the operator has given it to the namespace. Restore from it with "
            "foresail restore create --from-backup daily -n shop"
        ),
    ),
    "BackupsAdoptable": (
        (
            "Velero has backups of namespace shop without a NonAdminBackup. Ask a cluster administrator to run "
            "foresail backup adopt -n shop --all"
        ),
    ),
    "OwnerGone": (
        (
            "A Velero object had no owner, so it was deleted after an hour; a storage location with backups is "
            "read-only. No action is needed; backups are never deleted this way"
        ),
    ),
}
"""A backup's sentence, and a restore's where that has one of its own; of InvalidRestoreSpec and so on, a restore's."""


def families(reason: str) -> tuple[Family, ...]:
    return (RESTORES,) if "Restore" in reason else (BACKUPS, RESTORES)


@pytest.mark.parametrize("reason", [each.value for each in Reason])
def test_every_reason_has_its_advice(reason: str) -> None:
    texts = [sentence(advice_for(reason), family, KEY) for family in families(reason)]
    assert tuple(texts[: len(SENTENCES[reason])]) == SENTENCES[reason]


def test_the_tables_have_every_reason_and_no_other() -> None:
    assert set(ADVICE) == set(Reason)
    assert set(SENTENCES) == {each.value for each in Reason}


@pytest.mark.parametrize("advice", [*ADVICE.values(), UNSEEN])
def test_each_has_a_cause_and_a_next_step_in_plain_sentences(advice: Advice) -> None:
    for family in (BACKUPS, RESTORES):
        text = sentence(advice, family, KEY)
        cause, separator, step = text.partition(". ")
        assert separator
        assert len(cause.split()) >= 3
        assert len(step.split()) >= 5
        assert not re.search(r"[.!?]$|[{}]|\n", text)


@pytest.mark.parametrize("advice", ADVICE.values(), ids=[each.value for each in ADVICE])
def test_every_command_that_is_named_can_be_given(advice: Advice) -> None:
    for family in (BACKUPS, RESTORES):
        text = sentence(advice, family, KEY)
        for words in re.findall(r"foresail ((?:backup|restore|location) .*?)(?=[,;]|\. |$)", text):
            given = re.split(r" and | or ", words)[0]
            assert callable(parser().parse_args(shlex.split(given)).run)


def test_a_reason_of_a_later_operator_is_left_to_its_message() -> None:
    assert sentence(advice_for("Moonlit"), BACKUPS, KEY).startswith("Moonlit. Follow the message")
    assert advice_for("") is UNSEEN
