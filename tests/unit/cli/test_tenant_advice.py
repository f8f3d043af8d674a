"""Every reason that a tenant can meet, with the one sentence that says its cause and what to do next."""

import re
import shlex

import pytest

from foresail.cli.main import parser
from foresail.cli.tenant.advice import ADVICE, UNSEEN, Advice, advice_for, sentence
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES, Family
from foresail.selfservice.reasons import Reason

KEY = Key("shop", "daily")
EDIT = "correct the field that the message names with kubectl edit"
WHY = "read why with foresail {0} describe daily -n shop or in full with foresail {0} logs daily -n shop, "
AGAIN = "daily -n shop, remove the cause and create another"
ACCESS = "ask the administrator for access to the kinds that the message names, and create another restore"

SAID = {
    "InvalidBackupSpec": (f"the backup asks for something that it may not have: {EDIT} nonadminbackup daily -n shop",),
    "BackupAccepted": (
        "the backup is valid and within its policy: wait for it with foresail backup wait daily -n shop",
    ),
    "BackupScheduled": ("Velero was asked for the backup: wait for it with foresail backup wait daily -n shop",),
    "VeleroBackupNotFound": (
        (
            "the Velero Backup behind it was removed: create another, and let this one go with foresail backup delete "
            "daily -n shop"
        ),
    ),
    "DeletionPending": (
        (
            "it is on its way out and not gone yet: say that its data is to go too, and wait for that, with foresail "
            "backup delete daily -n shop --wait"
        ),
        (
            "it is on its way out and not gone yet: wait until it is gone with foresail restore delete daily -n shop "
            "--wait"
        ),
    ),
    "InvalidRestoreSpec": (
        f"the restore asks for something that it may not have: {EDIT} nonadminrestore daily -n shop",
    ),
    "RestoreAccepted": (
        "the restore is valid and within its policy: wait for it with foresail restore wait daily -n shop",
    ),
    "RestoreScheduled": ("Velero was asked for the restore: wait for it with foresail restore wait daily -n shop",),
    "VeleroRestoreNotFound": (
        (
            "the Velero Restore behind it was removed before it had ended: create another, and let this one go with "
            "foresail restore delete daily -n shop"
        ),
    ),
    "NoPolicy": (
        (
            "no policy opens self-service in namespace shop: ask the administrator of the cluster to open it, and the "
            "backup starts by itself"
        ),
        (
            "no policy opens self-service in namespace shop: ask the administrator of the cluster to open it, and the "
            "restore starts by itself"
        ),
    ),
    "RequesterUnknown": (
        (
            "the restore does not say who asked for it, so nobody's access can be checked: create it again with "
            "foresail restore create NAME --from-backup BACKUP -n shop, or ask the administrator to install the "
            "admission policies"
        ),
    ),
    "CheckingAccess": (
        "the operator checks what the requester may create: wait for it with foresail backup wait daily -n shop",
    ),
    "AllKindsAllowed": (
        "the requester may create everything that comes back: wait for it with foresail backup wait daily -n shop",
    ),
    "KindsLeftOut": (f"the requester may not create some of the kinds in the backup, so they are left out: {ACCESS}",),
    "AccessDenied": (
        (
            "the requester may not create any of the kinds in the backup: ask the administrator for access to the "
            "kinds that the message names, and the restore starts by itself within ten minutes"
        ),
    ),
    "VolumeNotBackedUp": (
        (
            "a volume of the backup would come back as it was, not from backed-up data: create a restore with "
            "--exclude-resources persistentvolumeclaims,pods, or ask the administrator for restore.volumes: AsIs or "
            "the right to create PersistentVolumes; with either the restore starts by itself"
        ),
    ),
    "BackupTooLarge": (
        (
            "the backup holds more objects than the operator can check for the requester: restore from a backup of "
            "fewer kinds (--include-resources), or ask the administrator to restore it or to set "
            "restore.authorization: Policy and restore.volumes: AsIs for namespace shop"
        ),
    ),
    "QuotaExceeded": (
        (
            "namespace shop has as many backups as its policy allows: wait until one has ended or let one go with "
            "foresail backup delete, and this one starts by itself"
        ),
    ),
    "RestoreHistory": (
        "the policy keeps only the newest finished restores of a namespace: ask the administrator to keep more",
    ),
    "WaitingForTurn": (
        "other backups and restores are before it in the queue: wait, and it starts automatically when its turn comes",
    ),
    "BackupNotReady": (
        (
            "the backup to restore from does not exist or has not ended: create or wait for that backup, and the "
            "restore starts by itself"
        ),
    ),
    "LocationUnavailable": (
        (
            "Velero cannot store backups where this one is to be: wait until it can, and the backup starts by itself, "
            "or ask the administrator of the cluster about the storage location"
        ),
    ),
    "Waiting": (
        "Velero has not started it yet: wait for it with foresail backup wait daily -n shop",
        "Velero has not started it yet: wait for it with foresail restore wait daily -n shop",
    ),
    "Running": (
        "Velero works on it: wait for it with foresail backup wait daily -n shop",
        "Velero works on it: wait for it with foresail restore wait daily -n shop",
    ),
    "Completed": (
        "everything is done: bring it back at any time with foresail restore create NAME --from-backup daily -n shop",
        "everything is done: look at what came back with kubectl get all -n shop",
    ),
    "PartiallyFailed": (
        f"Velero could do only a part of it: {WHY.format('backup')}remove the cause and create another",
        f"Velero could do only a part of it: {WHY.format('restore')}remove the cause and create another",
    ),
    "Failed": (
        f"Velero could not do it: {WHY.format('backup')}remove the cause and create another",
        f"Velero could not do it: {WHY.format('restore')}remove the cause and create another",
    ),
    "FailedValidation": (
        f"Velero refused it before it began: read its conditions with foresail backup describe {AGAIN}",
        f"Velero refused it before it began: read its conditions with foresail restore describe {AGAIN}",
    ),
    "KindsNotServed": (
        (
            "the backup names kinds that the cluster does not serve, so they are not in it: check their names with "
            "kubectl api-resources, and create another"
        ),
    ),
    "NothingBackedUp": (
        (
            "nothing in the namespace matches what the backup asks for: create another with a --selector or "
            "--include-resources that matches something"
        ),
    ),
    "VolumesLeftOut": (
        (
            "the namespace has volumes whose data is not in the backup: create another with --snapshot-volumes or "
            "--default-volumes-to-fs-backup, and ask the administrator of the cluster if they stay out of it"
        ),
    ),
    "DeletionFailed": (
        (
            "Velero could not delete its data: wait for the next attempt, ask the administrator whether the storage "
            "location is there, or give the data up with foresail backup delete daily -n shop --force"
        ),
    ),
    "Error": (
        (
            "what the download is about is not there, or is not of namespace shop: name a backup or a restore of this "
            "namespace in spec.target of a new NonAdminDownloadRequest"
        ),
    ),
    "Success": ("the file can be fetched: fetch it from status.velero.status.downloadURL before it expires",),
    "TargetNotServed": (
        (
            "files of that kind are not given to tenants: ask for BackupLog, BackupResults, RestoreLog or "
            "RestoreResults in a new NonAdminDownloadRequest"
        ),
    ),
    "VeleroSilent": ("Velero has not answered for a minute: ask the administrator of the cluster whether Velero runs",),
    "DownloadExpired": (
        (
            "the download URL has expired, so the request was deleted: create another "
            "NonAdminDownloadRequest for the same file"
        ),
    ),
    "BackupExpired": (
        "the backup has expired, and Velero deletes it: create another, with a longer --ttl if it may have one",
        (
            "the backup has expired, and Velero deletes it: restore from another with foresail restore create NAME "
            "--from-backup BACKUP -n shop"
        ),
    ),
    "BackupOrphaned": (
        (
            "namespace shop was deleted, and the backup stays until its time: ask the administrator of the cluster to "
            "restore it"
        ),
    ),
    "PolicyViolation": (
        (
            "the policy of namespace shop forbids what the backup asks for: change the field that the message names "
            "with kubectl edit nonadminbackup daily -n shop, or ask the administrator of the cluster to allow it, and "
            "the backup starts by itself"
        ),
    ),
    "RestoredFromBackup": (
        (
            "a restore of the namespace brought this request back, and it does not run again by itself: run it with "
            "kubectl label nonadminrestore daily -n shop velero.io/restore-name- or delete it with foresail restore "
            "delete daily -n shop"
        ),
    ),
    "ForceDeleted": (
        (
            "the backup was deleted by force and its data still counts as stored: delete the data too with foresail "
            "backup delete daily -n shop"
        ),
    ),
    "DeletionProtected": (
        (
            "the policy of namespace shop protects the backup from deletion: wait, and it is deleted as soon as the "
            "policy allows it, or ask the administrator of the cluster"
        ),
    ),
    "NamespaceGone": (
        (
            "namespace shop was deleted while the backup waited for Velero: create a new nonadminbackup in the "
            "namespace that exists now"
        ),
    ),
}
"""A backup's sentence, and a restore's where that has one of its own; of InvalidRestoreSpec and so on, a restore's."""


def families(reason: str) -> tuple[Family, ...]:
    return (RESTORES,) if "Restore" in reason else (BACKUPS, RESTORES)


@pytest.mark.parametrize("reason", [each.value for each in Reason])
def test_every_reason_has_its_sentence(reason: str) -> None:
    said = [sentence(advice_for(reason), family, KEY) for family in families(reason)]
    assert tuple(said[: len(SAID[reason])]) == SAID[reason]


def test_the_tables_have_every_reason_and_no_other() -> None:
    assert set(ADVICE) == set(Reason)
    assert set(SAID) == {each.value for each in Reason}


@pytest.mark.parametrize("advice", [*ADVICE.values(), UNSEEN])
def test_each_is_one_sentence_with_a_cause_and_a_next_step(advice: Advice) -> None:
    for family in (BACKUPS, RESTORES):
        text = sentence(advice, family, KEY)
        cause, separator, step = text.partition(": ")
        assert separator
        assert len(cause.split()) >= 3
        assert len(step.split()) >= 5
        assert not re.search(r"[.!?](\s|$)|[{}]|\n", text)


@pytest.mark.parametrize("advice", ADVICE.values(), ids=[each.value for each in ADVICE])
def test_every_command_that_is_named_can_be_given(advice: Advice) -> None:
    for family in (BACKUPS, RESTORES):
        text = sentence(advice, family, KEY)
        for words in re.findall(r"foresail ((?:backup|restore) [^,]*)", text):
            given = re.split(r" and | or ", words)[0]
            assert callable(parser().parse_args(shlex.split(given)).run)


def test_a_reason_of_a_later_operator_is_left_to_its_message() -> None:
    assert sentence(advice_for("Moonlit"), BACKUPS, KEY).startswith("it is Moonlit: do what the message says")
    assert advice_for("") is UNSEEN
