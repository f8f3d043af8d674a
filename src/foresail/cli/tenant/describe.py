"""`foresail backup describe` and `foresail restore describe`: everything about a request, and what to do next."""

import argparse
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime

from foresail.cli.access.cluster import Cluster
from foresail.cli.output.messages import BOLD, painted
from foresail.cli.output.objects import document
from foresail.cli.output.table import aligned, table
from foresail.cli.output.words import moment, transfer_text
from foresail.cli.tenant.explain import advised
from foresail.cli.tenant.get import until
from foresail.cli.tenant.selection import in_namespace, selected_requests
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.requests.outcome import cause_in_words
from foresail.selfservice.rows.velero import BYTES

_NONE = "<none>"


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected requests."""
    return in_namespace(args, lambda cluster, family: _describe(cluster, family, args))


async def _describe(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    requests = await selected_requests(cluster, family, args)
    if args.details:
        from foresail.cli.tenant.volumes import read_volumes  # noqa: PLC0415 - the rest needs no bucket

        volumes = await read_volumes(cluster, requests, args)
    else:
        volumes = [""] * len(requests)
    if requests:
        print("\n\n\n".join(described(request, now(), text) for request, text in zip(requests, volumes, strict=True)))
    return 0


def described(request: TenantRequest, at: datetime, volumes: str = "") -> str:
    """Return the text about a request: metadata, progress, spec, volumes, conditions and the next step."""
    text = aligned([*_request_lines(request, at), "", *_velero_lines(request, at), ""])
    name = request.key.name
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    spec = document(request.spec, "yaml") if request.spec else "{}"
    spec_lines = "\n".join(["Spec:", *(f"  {line}" for line in spec.splitlines())])
    parts = (f"{text}\n{spec_lines}", _restored(request), volumes, _conditions(request), f"Next: {advised(request)}")
    return "\n\n".join(filter(None, parts))


def _request_lines(request: TenantRequest, at: datetime) -> Iterator[str]:
    metadata = request.request.metadata
    yield f"Name:\t{request.key.name}"
    yield f"Namespace:\t{request.key.namespace}"
    yield f"Labels:\t{_pairs(metadata.labels)}"
    yield f"Annotations:\t{_pairs(metadata.annotations)}"
    yield f"Phase:\t{request.phase or 'New'}"
    if request.position:
        yield f"Queue:\t{request.position}"
    if request.starts_by:
        yield f"Waits Until:\t{until(request.starts_by, at)}"


def _velero_lines(request: TenantRequest, at: datetime) -> Iterator[str]:
    velero = request.velero
    yield f"Velero {request.family.word.capitalize()}:\t{request.made.name or _NONE}"
    yield f"Velero Phase:\t{velero.phase or _NONE}"
    yield f"Started:\t{until(velero.start_timestamp, at)}"
    yield f"Ended:\t{until(velero.completion_timestamp, at)}"
    if request.family is BACKUPS:
        yield f"Expires:\t{until(velero.expiration, at)}"
        yield f"Deletion:\t{_deletion(request, at)}"
    if velero.progress is not None:
        done = velero.progress.items_backed_up or velero.progress.items_restored
        yield f"Items:\t{done} of {velero.progress.total_items}"
    yield f"Errors:\t{velero.errors}"
    yield f"Warnings:\t{velero.warnings}"
    for cause in filter(None, (cause_in_words(velero.failure_reason), *(velero.validation_errors or ()))):
        yield f"Cause:\t{cause}"
    yield from _volume_lines(request)


def _volume_lines(request: TenantRequest) -> Iterator[str]:
    """Return how far the data of volumes is: in bytes while it is moved, and by volumes."""
    status = request.request.status
    if request.transfer is not None:
        yield f"Data:\t{transfer_text(request.transfer)}"
    for name, counts in (
        ("Volumes Moved", status.data_mover_data_uploads or status.data_mover_data_downloads),
        ("Volumes Copied", status.file_system_pod_volume_backups or status.file_system_pod_volume_restores),
    ):
        if counts:
            volumes = sorted((word, number) for word, number in counts.items() if number and word not in BYTES)
            yield f"{name}:\t{', '.join(f'{number} {word}' for word, number in volumes)}"


def _restored(request: TenantRequest) -> str:
    """Return what a restore did; empty if that is not known, or it is a backup."""
    if request.restored is None:
        return ""
    from foresail.cli.tenant.restored import restored_text  # noqa: PLC0415 - for restores alone

    # What is in the backup of a class is not shown to teams, and --diff compares with the namespace of the backup.
    if request.point or request.target != request.key.namespace:
        return f"Objects:\n{restored_text(request.restored)}"
    backup = request.spec.get("backupName")
    namespace = request.key.namespace
    new = f"  not in the backup: see foresail backup contents {backup} --diff -n {namespace}"
    return f"Objects:\n{restored_text(request.restored)}\n{new}"


def _deletion(request: TenantRequest, at: datetime) -> str:
    """Return when `keepLast` deletes a backup, and how to keep it."""
    mark = request.mark
    if not mark.is_marked:
        return "never by keepLast: it is kept" if mark.is_kept else "not announced"
    when = f"after {moment(mark.delete_after, at)}" if mark.delete_after is not None else "waits for approval"
    return f"{when}: {mark.why}. To keep it: foresail backup keep {request.key.name}"


def _conditions(request: TenantRequest) -> str:
    conditions = request.request.status.conditions or []
    if not conditions:
        return f"Conditions:  {_NONE}"
    rows = [(f"  {one.type}", one.status, one.reason, one.last_transition_time, one.message) for one in conditions]
    return "Conditions:\n" + table(("  TYPE", "STATUS", "REASON", "SINCE", "MESSAGE"), rows)


def _pairs(pairs: Mapping[str, str] | None) -> str:
    return ", ".join(f"{key}={value}" for key, value in sorted((pairs or {}).items())) or _NONE
