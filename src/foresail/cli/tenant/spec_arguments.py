"""The options that say what is backed up and what is restored: by Velero's names, without what no tenant may set."""

import argparse

from foresail.cli.options.booleans import BooleanOption
from foresail.cli.options.values import spelled

BACKUP_LISTS = {
    "include_resources": ("includedResources", "kinds that are backed up, such as deployments.apps"),
    "exclude_resources": ("excludedResources", "kinds that are left out"),
    "exclude_cluster_scoped_resources": ("excludedClusterScopedResources", "kinds without a namespace to leave out"),
    "include_namespace_scoped_resources": ("includedNamespaceScopedResources", "kinds that are backed up"),
    "exclude_namespace_scoped_resources": ("excludedNamespaceScopedResources", "kinds that are left out"),
    "volume_snapshot_locations": ("volumeSnapshotLocations", "where snapshots of volumes are kept"),
}
RESTORE_LISTS = {
    "include_resources": ("includedResources", "kinds that are restored, such as deployments.apps"),
    "exclude_resources": ("excludedResources", "kinds that are left out"),
}
"""Options that take several values, with commas or repeated: the field that each fills, and what it means."""

BACKUP_SWITCHES = {
    "include_cluster_resources": ("includeClusterResources", "what belongs to no namespace; only false is taken"),
    "snapshot_volumes": ("snapshotVolumes", "snapshots of volumes"),
    "snapshot_move_data": ("snapshotMoveData", "move the data of snapshots to the storage location"),
    "default_volumes_to_fs_backup": ("defaultVolumesToFsBackup", "volumes through the file system"),
}
RESTORE_SWITCHES = {
    "include_cluster_resources": ("includeClusterResources", "what belongs to no namespace; only false is taken"),
    "restore_volumes": ("restorePVs", "volumes from their snapshots"),
    "preserve_nodeports": ("preserveNodePorts", "Services keep the node ports that they had"),
}
"""Options that say yes or no, and leave their field out if they are not given."""

BACKUP_TIMES = {
    "ttl": ("ttl", "for how long the backup is kept"),
    "csi_snapshot_timeout": ("csiSnapshotTimeout", "how long Velero waits for a snapshot"),
    "item_operation_timeout": ("itemOperationTimeout", "how long Velero waits for the data of a volume"),
}
RESTORE_TIMES = {"item_operation_timeout": BACKUP_TIMES["item_operation_timeout"]}
"""Options that take a length of time."""

BACKUP_TEXTS = {
    "storage_location": ("storageLocation", "where the backup is stored (default: the policy's)"),
    "data_mover": ("datamover", "who moves the data of snapshots (default: Velero)"),
}
RESTORE_TEXTS = {
    "existing_resource_policy": ("existingResourcePolicy", "what happens to objects that exist already"),
}
"""Options that are a field as they are."""

EXISTING = ("none", "update")
"""What Velero does to objects that exist already."""


def add_backup_spec(one: argparse.ArgumentParser) -> None:
    """Add every option with which a backup is described."""
    what = one.add_argument_group("what is backed up (default: the whole namespace)")
    _add_selectors(what)
    _add(what, BACKUP_LISTS, "NAME,...", several=True)
    what.add_argument(
        "--ordered-resources", metavar="KINDS", help="what comes first: 'pods=ns/a,ns/b;persistentvolumeclaims=ns/c'"
    )
    what.add_argument("--resource-policies-configmap", metavar="NAME", help="a ConfigMap in Velero's namespace")
    how = one.add_argument_group("how it is backed up")
    _add_switches(how, BACKUP_SWITCHES)
    _add(how, BACKUP_TEXTS, "NAME")
    _add(how, BACKUP_TIMES, "DURATION")
    how.add_argument("--parallel-files-upload", type=int, metavar="N", help="files at once, with kopia")
    _add_marks(one)


def add_restore_spec(one: argparse.ArgumentParser) -> None:
    """Add every option with which a restore is described."""
    what = one.add_argument_group("what is restored (default: all that is in the backup)")
    _add_selectors(what)
    _add(what, RESTORE_LISTS, "NAME,...", several=True)
    how = one.add_argument_group("how it is restored")
    _add_switches(how, RESTORE_SWITCHES)
    for option, (_, meaning) in RESTORE_TEXTS.items():
        how.add_argument(spelled(option), choices=EXISTING, help=meaning)
    _add(how, RESTORE_TIMES, "DURATION")
    how.add_argument("--parallel-files-download", type=int, metavar="N", help="files at once, with kopia")
    how.add_argument("--write-sparse-files", action=BooleanOption, help="files with holes keep them")
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
    group.add_argument("-l", "--selector", metavar="SELECTOR", help="only what has these labels")
    group.add_argument("--or-selector", metavar="SELECTORS", help="what has one of these: 'app=web or app=shop'")


def _add_marks(one: argparse.ArgumentParser) -> None:
    marks = one.add_argument_group("what is written on it")
    for option in ("--labels", "--annotations"):
        text = f"{option.removeprefix('--')} of the request; may be repeated"
        marks.add_argument(option, action="append", default=[], metavar="K=V,...", help=text)
