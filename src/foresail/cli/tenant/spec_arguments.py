"""The options that say what is backed up and what is restored: by Velero's names, without what no tenant may set."""

import argparse

from foresail.cli.options.parser import BooleanOption
from foresail.cli.options.values import spelled

BACKUP_LISTS = {
    "include_resources": ("includedResources", "kinds to back up, such as deployments.apps"),
    "exclude_resources": ("excludedResources", "kinds to exclude"),
    "exclude_cluster_scoped_resources": ("excludedClusterScopedResources", "cluster-scoped kinds to exclude"),
    "include_namespace_scoped_resources": ("includedNamespaceScopedResources", "kinds to back up"),
    "exclude_namespace_scoped_resources": ("excludedNamespaceScopedResources", "kinds to exclude"),
    "volume_snapshot_locations": ("volumeSnapshotLocations", "volume snapshot locations"),
}
RESTORE_LISTS = {
    "include_resources": ("includedResources", "kinds to restore, such as deployments.apps"),
    "exclude_resources": ("excludedResources", "kinds to exclude"),
}
"""Options that take several values, with commas or repeated: the field that each fills, and what it means."""

BACKUP_SWITCHES = {
    "include_cluster_resources": (
        "includeClusterResources",
        "include cluster-scoped resources; only false is accepted",
    ),
    "snapshot_volumes": ("snapshotVolumes", "take snapshots of volumes"),
    "snapshot_move_data": ("snapshotMoveData", "move snapshot data to the storage location"),
    "default_volumes_to_fs_backup": (
        "defaultVolumesToFsBackup",
        "back up volumes through the file system, if the policy allows it",
    ),
}
RESTORE_SWITCHES = {
    "include_cluster_resources": (
        "includeClusterResources",
        "include cluster-scoped resources; only false is accepted",
    ),
    "restore_volumes": ("restorePVs", "restore volumes from their snapshots"),
    "preserve_nodeports": ("preserveNodePorts", "keep the node ports of Services"),
}
"""Options that say yes or no, and leave their field out if they are not given."""

BACKUP_TIMES = {
    "ttl": ("ttl", "how long to keep the backup"),
    "csi_snapshot_timeout": ("csiSnapshotTimeout", "how long Velero waits for a snapshot"),
    "item_operation_timeout": ("itemOperationTimeout", "how long Velero waits for the data of a volume"),
}
RESTORE_TIMES = {"item_operation_timeout": BACKUP_TIMES["item_operation_timeout"]}
"""Options that take a length of time."""

BACKUP_TEXTS = {
    "storage_location": ("storageLocation", "where the backup is stored (default: the policy's)"),
    "data_mover": ("datamover", "data mover for snapshots (default: Velero)"),
}
RESTORE_TEXTS = {
    "existing_resource_policy": ("existingResourcePolicy", "what to do with objects that already exist"),
}
"""Options that are a field as they are."""

EXISTING = ("none", "update")
"""What Velero does to objects that exist already."""


def add_backup_spec(one: argparse.ArgumentParser) -> None:
    """Add every option with which a backup is described."""
    what = one.add_argument_group("what to back up (default: the whole namespace)")
    _add_selectors(what)
    _add(what, BACKUP_LISTS, "NAME,...", several=True)
    what.add_argument(
        "--ordered-resources", metavar="KINDS", help="order of resources: 'pods=ns/a,ns/b;persistentvolumeclaims=ns/c'"
    )
    what.add_argument("--resource-policies-configmap", metavar="NAME", help="a ConfigMap in Velero's namespace")
    how = one.add_argument_group("how to back up")
    _add_switches(how, BACKUP_SWITCHES)
    _add(how, BACKUP_TEXTS, "NAME")
    _add(how, BACKUP_TIMES, "DURATION")
    how.add_argument(
        "--parallel-files-upload", type=int, metavar="N", help="number of files to transfer in parallel, with kopia"
    )
    _add_marks(one)


def add_restore_spec(one: argparse.ArgumentParser) -> None:
    """Add every option with which a restore is described."""
    what = one.add_argument_group("what to restore (default: everything in the backup)")
    _add_selectors(what)
    _add(what, RESTORE_LISTS, "NAME,...", several=True)
    how = one.add_argument_group("how to restore")
    target = "restore into another namespace of yours, if the policies of both allow it"
    how.add_argument("--to", metavar="NAMESPACE", help=target)
    _add_switches(how, RESTORE_SWITCHES)
    for option, (_, meaning) in RESTORE_TEXTS.items():
        how.add_argument(spelled(option), choices=EXISTING, help=meaning)
    _add(how, RESTORE_TIMES, "DURATION")
    how.add_argument(
        "--parallel-files-download", type=int, metavar="N", help="number of files to transfer in parallel, with kopia"
    )
    how.add_argument("--write-sparse-files", action=BooleanOption, help="write sparse files")
    _add_marks(one)


def _add(
    group: "argparse._ArgumentGroup", options: dict[str, tuple[str, str]], value: str, *, several: bool = False
) -> None:
    for option, (_, meaning) in options.items():
        group.add_argument(spelled(option), action="append" if several else "store", metavar=value, help=meaning)


def _add_switches(group: "argparse._ArgumentGroup", options: dict[str, tuple[str, str]]) -> None:
    for option, (_, meaning) in options.items():
        group.add_argument(spelled(option), action=BooleanOption, help=meaning)


def _add_selectors(group: "argparse._ArgumentGroup") -> None:
    group.add_argument("-l", "--selector", metavar="SELECTOR", help="only objects with these labels")
    group.add_argument(
        "--or-selector", metavar="SELECTORS", help="objects that match one of these: 'app=web or app=shop'"
    )


def _add_marks(one: argparse.ArgumentParser) -> None:
    marks = one.add_argument_group("metadata")
    for option in ("--labels", "--annotations"):
        text = f"{option.removeprefix('--')} of the request; may be repeated"
        marks.add_argument(option, action="append", default=[], metavar="K=V,...", help=text)
