"""`foresail backup describe` and `foresail restore describe`: everything about a request, and what to do next."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime

from foresail.cli.access.cluster import Cluster
from foresail.cli.output.objects import document
from foresail.cli.output.table import aligned, table
from foresail.cli.output.terminal import BOLD, painted
from foresail.cli.output.times import moment
from foresail.cli.tenant.explain import advised
from foresail.cli.tenant.get import until
from foresail.cli.tenant.selection import in_namespace, selected_requests
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.requests.outcome import cause_in_words

_NONE = "<none>"


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected requests."""
    return in_namespace(args, lambda cluster, family: _describe(cluster, family, args))


async def _describe(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    found = await selected_requests(cluster, family, args)
    if args.details:
        from foresail.cli.tenant.volume_details import read_volumes  # noqa: PLC0415 - the rest needs no bucket

        volumes = await read_volumes(cluster, found, args)
    else:
        volumes = [""] * len(found)
    if found:
        print("\n\n\n".join(described(each, now(), text) for each, text in zip(found, volumes, strict=True)))
    return 0


def described(each: TenantRequest, at: datetime, volumes: str = "") -> str:
    """Return the text about a request: metadata, progress, spec, volumes, conditions and the next step."""
    text = aligned([*_request_lines(each, at), "", *_velero_lines(each, at), ""])
    name = each.key.name
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    spec = document(each.spec, "yaml") if each.spec else "{}"
    spec_lines = "\n".join(["Spec:", *(f"  {line}" for line in spec.splitlines())])
    parts = (f"{text}\n{spec_lines}", _restored(each), volumes, _conditions(each), f"Next: {advised(each)}")
    return "\n\n".join(filter(None, parts))


def _request_lines(each: TenantRequest, at: datetime) -> Iterator[str]:
    metadata = each.request.metadata
    yield f"Name:\t{each.key.name}"
    yield f"Namespace:\t{each.key.namespace}"
    yield f"Labels:\t{_pairs(metadata.labels)}"
    yield f"Annotations:\t{_pairs(metadata.annotations)}"
    yield f"Phase:\t{each.phase or 'New'}"
    if each.position:
        yield f"Queue:\t{each.position}"
    if each.starts_by:
        yield f"Waits Until:\t{until(each.starts_by, at)}"


def _velero_lines(each: TenantRequest, at: datetime) -> Iterator[str]:
    velero, status = each.velero, each.request.status
    yield f"Velero {each.family.word.capitalize()}:\t{each.made.name or _NONE}"
    yield f"Velero Phase:\t{velero.phase or _NONE}"
    yield f"Started:\t{until(velero.start_timestamp, at)}"
    yield f"Ended:\t{until(velero.completion_timestamp, at)}"
    if each.family is BACKUPS:
        yield f"Expires:\t{until(velero.expiration, at)}"
        yield f"Deletion:\t{_deletion(each, at)}"
    if velero.progress is not None:
        done = velero.progress.items_backed_up or velero.progress.items_restored
        yield f"Items:\t{done} of {velero.progress.total_items}"
    yield f"Errors:\t{velero.errors}"
    yield f"Warnings:\t{velero.warnings}"
    for cause in filter(None, (cause_in_words(velero.failure_reason), *(velero.validation_errors or ()))):
        yield f"Cause:\t{cause}"
    for name, counts in (
        ("Volumes Moved", status.data_mover_data_uploads or status.data_mover_data_downloads),
        ("Volumes Copied", status.file_system_pod_volume_backups or status.file_system_pod_volume_restores),
    ):
        if counts:
            yield f"{name}:\t{', '.join(f'{number} {word}' for word, number in sorted(counts.items()) if number)}"


def _restored(each: TenantRequest) -> str:
    """Return what a restore did; empty if that is not known, or it is a backup."""
    if each.restored is None:
        return ""
    from foresail.cli.tenant.restored import restored_text  # noqa: PLC0415 - for restores alone

    backup, namespace = each.spec.get("backupName"), each.key.namespace
    new = f"  not in the backup: see foresail backup contents {backup} --diff -n {namespace}"
    return f"Objects:\n{restored_text(each.restored)}\n{new}"


def _deletion(each: TenantRequest, at: datetime) -> str:
    """Return when `keepLast` deletes a backup, and how to keep it."""
    mark = each.mark
    if not mark.is_marked:
        return "never by keepLast: it is kept" if mark.is_kept else "not announced"
    when = f"after {moment(mark.delete_after, at)}" if mark.delete_after is not None else "waits for approval"
    return f"{when}: {mark.why}. To keep it: foresail backup keep {each.key.name}"


def _conditions(each: TenantRequest) -> str:
    found = each.request.status.conditions or []
    if not found:
        return f"Conditions:  {_NONE}"
    rows = [(f"  {one.type}", one.status, one.reason, one.last_transition_time, one.message) for one in found]
    return "Conditions:\n" + table(("  TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), rows)


def _pairs(pairs: Mapping[str, str] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or _NONE
