"""The NonAdminBackup or NonAdminRestore that options describe; what is not given is left to the policy."""

import argparse
from collections.abc import Mapping
from typing import Any

from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.values import metadata_of, read_length, read_list, read_ordered, spelled
from foresail.cli.output.words import go_duration
from foresail.cli.tenant import spec_arguments as options
from foresail.selfservice.families import BACKUPS, Family

_Table = Mapping[str, tuple[str, str]]


def request_object(family: Family, args: argparse.Namespace) -> dict[str, Any]:
    """Return the request that the options describe."""
    spec = {"backupSpec": backup_spec(args)} if family is BACKUPS else {"restoreSpec": restore_spec(args)}
    if family is not BACKUPS and args.from_protection:
        spec["fromProtection"] = {"backup": args.from_protection}
    kind = {"apiVersion": family.kind.api_version, "kind": family.kind.name}
    return {**kind, "metadata": metadata_of(args), "spec": spec}


def backup_spec(args: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be backed up."""
    policy = args.resource_policies_configmap
    files = args.parallel_files_upload
    return {
        **_selectors(args),
        **_lists(args, options.BACKUP_LISTS),
        **({"orderedResources": read_ordered(args.ordered_resources)} if args.ordered_resources else {}),
        **({"resourcePolicy": {"kind": "configmap", "name": policy}} if policy else {}),
        **_given(args, options.BACKUP_SWITCHES),
        **_given(args, options.BACKUP_TEXTS),
        **_times(args, options.BACKUP_TIMES),
        **({"uploaderConfig": {"parallelFilesUpload": files}} if files is not None else {}),
    }


def restore_spec(args: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be restored, and from which backup."""
    uploader = {
        "parallelFilesDownload": args.parallel_files_download,
        "writeSparseFiles": args.write_sparse_files,
    }
    uploader = {field: value for field, value in uploader.items() if value is not None}
    return {
        **({"backupName": args.from_backup} if args.from_backup else {}),
        **_mapping(args),
        **_selectors(args),
        **_lists(args, options.RESTORE_LISTS),
        **_given(args, options.RESTORE_SWITCHES),
        **_given(args, options.RESTORE_TEXTS),
        **_times(args, options.RESTORE_TIMES),
        **({"uploaderConfig": uploader} if uploader else {}),
    }


def _mapping(args: argparse.Namespace) -> dict[str, Any]:
    """Return the mapping of the namespace of the backup to the one that --to names."""
    if not args.to:
        return {}
    if args.namespace is None:
        raise CommandError(f"--to {args.to}: the namespace of the backup is not known", "name it with --namespace")
    if args.to == args.namespace:
        raise CommandError(f"--to {args.to} is the namespace of the backup", "leave --to out, or name another one")
    return {"namespaceMapping": {args.namespace: args.to}}


def _selectors(args: argparse.Namespace) -> dict[str, Any]:
    if args.selector and args.or_selector:
        raise CommandError("--selector and --or-selector cannot be combined", "specify one of them")
    if args.selector:
        return {"labelSelector": read_selector(args.selector)}
    if args.or_selector:
        return {"orLabelSelectors": [read_selector(item) for item in args.or_selector.split(" or ")]}
    return {}


def _lists(args: argparse.Namespace, table: _Table) -> dict[str, Any]:
    given = {field: read_list(getattr(args, option)) for option, (field, _) in table.items()}
    return {field: names for field, names in given.items() if names}


def _given(args: argparse.Namespace, table: _Table) -> dict[str, Any]:
    given = {field: getattr(args, option) for option, (field, _) in table.items()}
    return {field: value for field, value in given.items() if value is not None}


def _times(args: argparse.Namespace, table: _Table) -> dict[str, Any]:
    return {
        field: go_duration(read_length(getattr(args, option), spelled(option)))
        for option, (field, _) in table.items()
        if getattr(args, option) is not None
    }
