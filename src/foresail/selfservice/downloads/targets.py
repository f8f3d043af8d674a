"""The files that Velero keeps about a backup or a restore, and which of them a tenant may download.

Every kind that Velero knows has one row. A file is served if it is about how a backup or a restore went. It needs a
policy if it holds the objects themselves, and is never served if it holds cluster-scoped objects.
"""

from enum import Enum

import msgspec


class Rule(Enum):
    """When a tenant may have a file about an own backup or restore."""

    SERVED = "Served"
    CONTENTS = "Contents"  # if the policy allows contents, and the requester may read Secrets
    NEVER = "Never"


class Target(msgspec.Struct, frozen=True):
    """A kind of file: what it holds, and when it is served."""

    rule: Rule
    holds: str


TARGETS = {
    "BackupLog": Target(Rule.SERVED, "the log of the backup"),
    "BackupResults": Target(Rule.SERVED, "errors and warnings by namespace"),
    "BackupResourceList": Target(Rule.SERVED, "the names of the objects in the backup, by kind"),
    "BackupItemOperations": Target(Rule.SERVED, "the progress of operations that outlast their item, such as uploads"),
    "BackupVolumeInfos": Target(Rule.SERVED, "each volume: its claim, size, method and result"),
    "RestoreLog": Target(Rule.SERVED, "the log of the restore"),
    "RestoreResults": Target(Rule.SERVED, "errors and warnings by namespace"),
    "RestoreResourceList": Target(Rule.SERVED, "the names of the restored objects, by kind"),
    "RestoreItemOperations": Target(Rule.SERVED, "the progress of operations that outlast their item"),
    "RestoreVolumeInfo": Target(Rule.SERVED, "each restored volume: its claim, size and method"),
    "BackupContents": Target(Rule.CONTENTS, "every object in the backup, Secrets included"),
    "CSIBackupVolumeSnapshots": Target(Rule.CONTENTS, "the VolumeSnapshots of the namespace, whole"),
    "BackupVolumeSnapshots": Target(Rule.NEVER, "PersistentVolumes and snapshots by their IDs at the storage provider"),
    "CSIBackupVolumeSnapshotContents": Target(Rule.NEVER, "cluster-scoped VolumeSnapshotContents, whole"),
}
"""Every kind that Velero knows, with its rule."""

SERVED = frozenset(kind for kind, target in TARGETS.items() if target.rule is Rule.SERVED)
"""The kinds that need no more than the policy that enables self-service."""


def rule_of(kind: str) -> Rule:
    """Return when a file is served; one of a kind that Velero does not know, never."""
    return TARGETS[kind].rule if kind in TARGETS else Rule.NEVER


def is_contents(kind: str) -> bool:
    """Whether a file holds the objects of a backup."""
    return rule_of(kind) is Rule.CONTENTS
