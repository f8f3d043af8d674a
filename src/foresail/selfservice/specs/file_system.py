"""Whether Velero copies files from and to the pods of tenants: not by default.

Velero's file-system data path works as root beside all pods of a node, on files that a tenant can change meanwhile.
With `backup.fileSystem: Refused` three things hold: a request that asks for it is refused, the spec for Velero has a
volume policy that never chooses it, and no restore fills a volume from it.
"""

from collections.abc import Collection, Mapping
from typing import Any

from foresail.api.specs import LocalReference
from foresail.reporting import some
from foresail.scope.resource_policies import PolicyError, policies_of
from foresail.scope.volumes import file_system_gap
from foresail.selfservice.reasons import Reason, Refused
from foresail.selfservice.specs.values import Violation, shown
from foresail.tenancy.policies import PolicyRow
from foresail.tenancy.volume_policies import volume_policy

_FIELD = "spec.backupSpec.defaultVolumesToFsBackup"
_INSTEAD = "use CSI snapshots with snapshotMoveData, or ask a cluster administrator for backup.fileSystem: Allowed"

MISSING = "does not exist"
"""What is wrong with a resource policy whose ConfigMap is missing."""

ALLOWED_MEANS = (
    "a tenant who may run pods can reach data of other pods on the node and Velero's credentials through Velero's"
    " file-system data path"
)
"""What an administrator must know about `backup.fileSystem: Allowed`."""


def is_refused(policy: PolicyRow | None) -> bool:
    """Whether Velero must not copy files from or to the pods of a tenant."""
    return policy is not None and policy.spec.backup.file_system == "Refused"


# Backups


def left_out(values: Mapping[str, Any], policy: str) -> dict[str, Any]:
    """Return the fields by which Velero copies no files; a resource policy of the administrator is checked later."""
    if values["default_volumes_to_fs_backup"]:
        raise Violation(f"{_FIELD} copies files from pods, which SelfServicePolicy {policy} refuses; {_INSTEAD}")
    own = LocalReference("configmap", volume_policy(snapshots=values["snapshot_volumes"]))
    return {"default_volumes_to_fs_backup": False, "resource_policy": values["resource_policy"] or own}


def chosen_by_pod(pod: str, annotation: str, policy: PolicyRow) -> Refused:
    """Return why a namespace with a pod that asks for a copy of its files is not backed up."""
    text = f"Pod {pod} has annotation {annotation} to copy its files, which SelfServicePolicy {policy.name} refuses"
    more = "remove it, use snapshotMoveData and create the backup again, or ask a cluster administrator"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; {more}")


def gap_in(data: Mapping[str, str] | None) -> str:
    """Return how the resource policy in a ConfigMap leaves room for file-system backup; empty if it does not."""
    try:
        return file_system_gap(policies_of(data))
    except PolicyError as error:
        return f"is refused by Velero: {shown(str(error))}"


def chosen_by_volume_policy(config_map: str, gap: str, policy: PolicyRow) -> Refused:
    """Return why a backup with a resource policy that leaves room for file-system backup is not made."""
    text = f"Resource policy {config_map} {gap}, and SelfServicePolicy {policy.name} refuses to copy files from pods"
    return Refused(Reason.POLICY_VIOLATION, f"{text}; ask a cluster administrator to correct the ConfigMap")


# Restores


def refused_restore(
    backup: str, copied: Collection[str], claims: Collection[str], policy: PolicyRow, *, restores_claims: bool
) -> Refused | None:
    """Return why Velero must not write the files of a backup into the pods of a restore; None if it may.

    `copied` are the claims with files in the backup, with an empty name for a volume without one; `claims` those that
    exist. Velero writes into a volume as root, so it must be one that the restore itself creates.
    """
    if not copied:
        return None
    if is_refused(policy):
        text = f"Backup {backup} has files copied from {_listed(copied)}, and SelfServicePolicy {policy.name} refuses"
        more = "exclude pods, or ask a cluster administrator to restore it"
        return Refused(Reason.POLICY_VIOLATION, f"{text} to write files into pods; {more}")
    there = sorted(set(copied) & set(claims))
    if there:
        text = f"Velero would write the files of backup {backup} into existing {_listed(there)}"
        more = "delete what exists, or exclude pods; then create the restore again"
        return Refused(Reason.VOLUME_NOT_NEW, f"{text}; {more}")
    if "" in copied or not restores_claims:
        where = "volumes without claims" if "" in copied else "claims that the restore leaves out"
        more = "exclude pods" if "" in copied else "include persistentvolumeclaims, or exclude pods"
        return Refused(Reason.VOLUME_NOT_NEW, f"Velero would write files of backup {backup} into {where}; {more}")
    return None


def _listed(claims: Collection[str]) -> str:
    names = sorted(filter(None, claims))
    if not names:
        return "volumes of pods"
    return f"claim {some(names)}"
