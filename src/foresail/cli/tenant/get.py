"""`foresail backup get` and `foresail restore get`: how far each is, its place in the queue, and why it waits."""

import argparse
import asyncio
import re
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from foresail.api.instants import instant, stamp
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import UsageError
from foresail.cli.options.shared import is_table
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import columns, fitted, shortened, table, terminal_width
from foresail.cli.output.words import distance, in_words, moment, short, transfer_text
from foresail.cli.tenant.selection import in_namespace, read_selected, selected_requests
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.reasons import Reason
from foresail.selfservice.requests.status import DELETING

_SHRINKS = ("NAMESPACE", "BACKUP", "NAME", "STATUS")
_PAUSE = 2.0
_FIELD = re.compile(r"spec\.(?:backup|restore)Spec\.([A-Za-z]+ is (?:restricted|invalid))")
"""The field of a request that is refused, and how: its reason alone says that the spec is."""


def get(args: argparse.Namespace) -> int:
    """Print the selected requests; with --watch, print changes."""
    if args.watch:
        if args.output not in ("table", "wide", "name"):
            raise UsageError("--watch prints tables and names", "leave out -o, or use -o wide or -o name")
        return interruptible(lambda: in_namespace(args, lambda cluster, family: _watch(cluster, family, args)), "")
    requests = read_selected(args)
    if not is_table(args.output):
        print(as_text([request.content for request in requests], args.output))
    elif requests:
        wide = args.output == "wide"
        width = terminal_width(sys.stdout)
        print(request_table(requests, now(), wide=wide, with_namespace=args.all_namespaces, width=width))
    return 0


async def _watch(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    """Print a table, then each row that is new, has changed or is deleted."""
    until = deadline(args.timeout)
    wide = args.output == "wide"
    before: dict[Key, TenantRequest] = {}
    widths: list[int] = []
    while True:
        after = {
            request.key: request for request in await selected_requests(cluster, family, args, is_quiet=bool(widths))
        }
        shown, deleted = changes(before, after)
        if args.output == "name":
            for tenant_request in shown:
                print(as_text([tenant_request.content], "name"), flush=True)
        elif shown or deleted:
            rows = [*request_rows(shown, now(), wide=wide), *_deleted_rows(deleted, wide=wide)]
            if not args.all_namespaces:
                rows = [row[1:] for row in rows]
            header = request_header(family, wide=wide, with_namespace=args.all_namespaces)
            lines = shortened(header, rows, None if wide else terminal_width(sys.stdout), _SHRINKS)
            shown_lines = lines[1:] if widths else lines
            widths = widths or columns(lines)
            print("\n".join(_padded(line, widths) for line in shown_lines), flush=True)
        before = after
        if until is not None and now() >= until:
            return 0
        await asyncio.sleep(_PAUSE)


def changes(
    before: Mapping[Key, TenantRequest], after: Mapping[Key, TenantRequest]
) -> tuple[list[TenantRequest], list[TenantRequest]]:
    """Return the requests that are new or have changed, and those that were deleted."""
    changed = [request for key, request in after.items() if key not in before or before[key].content != request.content]
    return changed, [request for key, request in before.items() if key not in after]


def request_table(
    requests: Sequence[TenantRequest],
    at: datetime,
    *,
    wide: bool,
    with_namespace: bool = False,
    width: int | None = None,
) -> str:
    """Return the table: backups with when they expire, restores with what they restore from; the short one fits."""
    rows = request_rows(requests, at, wide=wide)
    header = request_header(requests[0].family, wide=wide, with_namespace=with_namespace)
    shown = rows if with_namespace else [row[1:] for row in rows]
    return table(header, shown) if wide else fitted(header, shown, width, _SHRINKS)


def request_header(family: Family, *, wide: bool, with_namespace: bool) -> tuple[str, ...]:
    """Return the headings."""
    own = "EXPIRES" if family is BACKUPS else "BACKUP"
    first = ("NAMESPACE", "NAME") if with_namespace else ("NAME",)
    if not wide:
        return (*first, "STATUS", "QUEUE", own, "AGE", "WHY")
    phases = ("REQUEST", "VELERO", "QUEUE")
    counts = ("ERRORS", "WARNINGS")
    return (*first, *phases, own, "AGE", *counts, "STARTED", "ENDED", "VELERO NAME", "WHY")


def request_rows(requests: Sequence[TenantRequest], at: datetime, *, wide: bool) -> list[tuple[str, ...]]:
    """Return a row for each request, with its namespace first."""
    cells = _wide_cells if wide else _short_cells
    return [(request.key.namespace, request.key.name, *cells(request, at)) for request in requests]


def _short_cells(request: TenantRequest, at: datetime) -> tuple[str, ...]:
    expiration = instant(request.velero.expiration) if request.velero.expiration else None
    expires = distance(expiration, at) if expiration else "n/a"
    return (
        DELETING if request.is_terminating else request.shown_phase,
        _position(request),
        expires if request.family is BACKUPS else _backup_name(request),
        _age(request, at),
        why(request, in_full=False),
    )


def _wide_cells(request: TenantRequest, at: datetime) -> tuple[str, ...]:
    velero = request.velero
    return (
        request.phase or "New",
        velero.phase or "<none>",
        _position(request),
        until(velero.expiration, at) if request.family is BACKUPS else _backup_name(request),
        _age(request, at),
        str(velero.errors),
        str(velero.warnings),
        until(velero.start_timestamp, at),
        until(velero.completion_timestamp, at),
        request.made.name or "<none>",
        why(request, in_full=True),
    )


def _position(request: TenantRequest) -> str:
    return str(request.position) if request.position else ""


def _backup_name(request: TenantRequest) -> str:
    return request.source or "<none>"


def _age(request: TenantRequest, at: datetime) -> str:
    """Return the age of the data of a backup; before it has any, and of a restore, that of the request."""
    started = instant(request.velero.start_timestamp or "") if request.family is BACKUPS else None
    since = started or request.request.metadata.creation_timestamp
    return short(at - since) if since else "n/a"


def _deleted_rows(deleted: Sequence[TenantRequest], *, wide: bool) -> list[tuple[str, ...]]:
    empty = ("",) * (10 if wide else 4)
    return [(request.key.namespace, request.key.name, "Deleted", *empty) for request in deleted]


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    return "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def why(request: TenantRequest, *, in_full: bool) -> str:
    """Return when a backup goes, why there is no complete one yet, how far its data is, what it lacks or left."""
    mark = request.mark
    if mark.is_marked and not request.is_terminating:
        after = f"deleted after {stamp(mark.delete_after)}" if mark.delete_after is not None else "waits for approval"
        return f"{after}: {mark.why}" if in_full else after
    blocking = request.blocking or request.incomplete
    if blocking is None and request.restored is not None:
        from foresail.selfservice.results.restored import short_text, summary  # noqa: PLC0415 - for restores alone

        return summary(request.restored) if in_full else short_text(request.restored)
    if blocking is None:
        return ""
    if request.transfer is not None and blocking.reason == Reason.RUNNING:
        text = transfer_text(request.transfer)
        return f"{blocking.reason}: {blocking.message}, {text}" if in_full else text
    if in_full:
        return f"{blocking.reason}: {blocking.message}"
    field = _FIELD.search(blocking.message)
    return field[1] if field is not None else in_words(blocking.reason.removeprefix("Velero"))


def until(text: str | None, at: datetime) -> str:
    """Return an instant of a status, with how far away it is."""
    end = instant(text) if text else None
    return moment(end, at) if end else "n/a"
