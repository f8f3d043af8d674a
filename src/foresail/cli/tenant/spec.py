"""The NonAdminBackup or NonAdminRestore that options describe; what is not given is left to the policy."""

import argparse
from collections.abc import Mapping
from typing import Any

from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.values import read_length, read_list, read_ordered, read_pairs, spelled
from foresail.cli.output.times import go_duration
from foresail.cli.tenant import spec_arguments as options
from foresail.selfservice.families import BACKUPS, Family

_Table = Mapping[str, tuple[str, str]]


def request_object(family: Family, chosen: argparse.Namespace) -> dict[str, Any]:
    """Return the request that the options describe."""
    metadata: dict[str, Any] = {"name": chosen.name}
    if chosen.namespace is not None:
        metadata["namespace"] = chosen.namespace
    for field in ("labels", "annotations"):
        pairs = read_pairs(getattr(chosen, field), f"--{field}")
        if pairs:
            metadata[field] = pairs
    spec = {"backupSpec": backup_spec(chosen)} if family is BACKUPS else {"restoreSpec": restore_spec(chosen)}
    kind = {"apiVersion": family.kind.api_version, "kind": family.kind.name}
    return {**kind, "metadata": metadata, "spec": spec}


def backup_spec(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be backed up."""
    policy, files = chosen.resource_policies_configmap, chosen.parallel_files_upload
    return {
        **_selectors(chosen),
        **_lists(chosen, options.BACKUP_LISTS),
        **({"orderedResources": read_ordered(chosen.ordered_resources)} if chosen.ordered_resources else {}),
        **({"resourcePolicy": {"kind": "configmap", "name": policy}} if policy else {}),
        **_given(chosen, options.BACKUP_SWITCHES),
        **_given(chosen, options.BACKUP_TEXTS),
        **_times(chosen, options.BACKUP_TIMES),
        **({"uploaderConfig": {"parallelFilesUpload": files}} if files is not None else {}),
    }


def restore_spec(chosen: argparse.Namespace) -> dict[str, Any]:
    """Return what is to be restored, and from which backup."""
    uploader = {
        "parallelFilesDownload": chosen.parallel_files_download,
        "writeSparseFiles": chosen.write_sparse_files,
    }
    uploader = {field: value for field, value in uploader.items() if value is not None}
    return {
        "backupName": chosen.from_backup,
        **_selectors(chosen),
        **_lists(chosen, options.RESTORE_LISTS),
        **_given(chosen, options.RESTORE_SWITCHES),
        **_given(chosen, options.RESTORE_TEXTS),
        **_times(chosen, options.RESTORE_TIMES),
        **({"uploaderConfig": uploader} if uploader else {}),
    }


def _selectors(chosen: argparse.Namespace) -> dict[str, Any]:
    if chosen.selector and chosen.or_selector:
        raise CommandError("--selector and --or-selector cannot be combined", "specify one of them")
    if chosen.selector:
        return {"labelSelector": read_selector(chosen.selector)}
    if chosen.or_selector:
        return {"orLabelSelectors": [read_selector(each) for each in chosen.or_selector.split(" or ")]}
    return {}


def _lists(chosen: argparse.Namespace, table: _Table) -> dict[str, Any]:
    given = {field: read_list(getattr(chosen, option)) for option, (field, _) in table.items()}
    return {field: names for field, names in given.items() if names}


def _given(chosen: argparse.Namespace, table: _Table) -> dict[str, Any]:
    given = {field: getattr(chosen, option) for option, (field, _) in table.items()}
    return {field: value for field, value in given.items() if value is not None}


def _times(chosen: argparse.Namespace, table: _Table) -> dict[str, Any]:
    return {
        field: go_duration(read_length(getattr(chosen, option), spelled(option)))
        for option, (field, _) in table.items()
        if getattr(chosen, option) is not None
    }
