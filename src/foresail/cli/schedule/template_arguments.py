"""The options of `foresail schedule create` that say what to back up: Velero's own, by Velero's names."""

import argparse

from foresail.cli.options.booleans import BooleanOption
from foresail.cli.options.values import spelled

LISTS = {
    "include_namespaces": "includedNamespaces",
    "exclude_namespaces": "excludedNamespaces",
    "include_resources": "includedResources",
    "exclude_resources": "excludedResources",
    "include_cluster_scoped_resources": "includedClusterScopedResources",
    "exclude_cluster_scoped_resources": "excludedClusterScopedResources",
    "include_namespace_scoped_resources": "includedNamespaceScopedResources",
    "exclude_namespace_scoped_resources": "excludedNamespaceScopedResources",
    "volume_snapshot_locations": "volumeSnapshotLocations",
}
"""Options that take several values, with commas or repeated, and the field of the template that each fills."""

SWITCHES = {
    "include_cluster_resources": "includeClusterResources",
    "snapshot_volumes": "snapshotVolumes",
    "snapshot_move_data": "snapshotMoveData",
    "default_volumes_to_fs_backup": "defaultVolumesToFsBackup",
}
"""Options that say yes or no, and leave their field out if they are not given."""

DURATIONS = {
    "ttl": "ttl",
    "csi_snapshot_timeout": "csiSnapshotTimeout",
    "item_operation_timeout": "itemOperationTimeout",
}
"""Options that take a length of time; 0s lets Velero choose."""


def add_template(one: argparse.ArgumentParser) -> None:
    """Add every option with which a Backup is described."""
    what = one.add_argument_group("what to back up")
    what.add_argument("-l", "--selector", metavar="SELECTOR", help="only objects with these labels")
    what.add_argument(
        "--or-selector", metavar="SELECTORS", help="objects that match one of these: 'app=web or app=shop'"
    )
    for option in LISTS:
        what.add_argument(spelled(option), action="append", metavar="NAME,...", help=_of_list(option))
    what.add_argument(
        "--ordered-resources", metavar="KINDS", help="order of resources: 'pods=ns/a,ns/b;persistentvolumeclaims=ns/c'"
    )
    what.add_argument("--resource-policies-configmap", metavar="NAME", help="the ConfigMap with resource policies")
    how = one.add_argument_group("how to back up")
    for option in SWITCHES:
        how.add_argument(spelled(option), action=BooleanOption, help=_of_switch(option))
    how.add_argument("--storage-location", default="", metavar="NAME", help="storage location of the Backups")
    for option in DURATIONS:
        how.add_argument(spelled(option), default="0s", metavar="DURATION", help="such as 72h (default: Velero's)")
    how.add_argument("--data-mover", default="", metavar="NAME", help="(default: Velero's)")
    how.add_argument(
        "--parallel-files-upload",
        type=int,
        default=0,
        metavar="N",
        help="number of files to upload in parallel, with kopia",
    )
    marks = one.add_argument_group("metadata")
    for option, word in (("--labels", "labels"), ("--annotations", "annotations")):
        marks.add_argument(
            option,
            action="append",
            default=[],
            metavar="K=V,...",
            help=f"{word} of the Schedule and its Backups",
        )


def _of_list(option: str) -> str:
    verb, _, things = option.partition("_")
    all_of_them = "; * for all" if "resources" in option or option == "include_namespaces" else ""
    if verb == "volume":
        return "volume snapshot locations, one for each provider"
    return f"{things.replace('_', ' ')} to {'exclude' if verb == 'exclude' else 'back up'}{all_of_them}"


def _of_switch(option: str) -> str:
    return {
        "include_cluster_resources": "include cluster-scoped resources",
        "snapshot_volumes": "take snapshots of volumes",
        "snapshot_move_data": "move snapshot data to the storage location",
        "default_volumes_to_fs_backup": "back up volumes through the file system by default",
    }[option]
