"""`foresail backup get` and `foresail restore get`: how far each is, its place in the queue, and why it waits."""

import argparse
import asyncio
import sys
from collections.abc import Mapping, Sequence
from datetime import datetime

from foresail.api.instants import instant, stamp
from foresail.cli.access.cluster import Cluster
from foresail.cli.errors import UsageError
from foresail.cli.options.output import is_table
from foresail.cli.options.values import deadline
from foresail.cli.output.messages import interruptible
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import columns, fitted, shortened, table, terminal_width
from foresail.cli.output.times import distance, moment, short
from foresail.cli.output.words import in_words
from foresail.cli.tenant.selection import in_namespace, read_selected, selected_requests
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, Family
from foresail.selfservice.requests.status import DELETING

_SHRINKS = ("NAMESPACE", "BACKUP", "NAME", "STATUS")
_PAUSE = 2.0


def get(args: argparse.Namespace) -> int:
    """Print the selected requests; with --watch, print changes."""
    if args.watch:
        if args.output not in ("table", "wide", "name"):
            raise UsageError("--watch prints tables and names", "leave out -o, or use -o wide or -o name")
        return interruptible(lambda: in_namespace(args, lambda cluster, family: _watch(cluster, family, args)), "")
    found = read_selected(args)
    if not is_table(args.output):
        print(as_text([each.content for each in found], args.output))
    elif found:
        wide = args.output == "wide"
        width = terminal_width(sys.stdout)
        print(request_table(found, now(), wide=wide, with_namespace=args.all_namespaces, width=width))
    return 0


async def _watch(cluster: Cluster, family: Family, args: argparse.Namespace) -> int:
    """Print a table, then each row that is new, has changed or is deleted."""
    until, wide = deadline(args.timeout), args.output == "wide"
    before: dict[Key, TenantRequest] = {}
    widths: list[int] = []
    while True:
        found = {each.key: each for each in await selected_requests(cluster, family, args, is_quiet=bool(widths))}
        shown, deleted = changes(before, found)
        if args.output == "name":
            for each in shown:
                print(as_text([each.content], "name"), flush=True)
        elif shown or deleted:
            rows = [*request_rows(shown, now(), wide=wide), *_deleted_rows(deleted, wide=wide)]
            if not args.all_namespaces:
                rows = [row[1:] for row in rows]
            header = request_header(family, wide=wide, with_namespace=args.all_namespaces)
            lines = shortened(header, rows, None if wide else terminal_width(sys.stdout), _SHRINKS)
            shown_lines = lines[1:] if widths else lines
            widths = widths or columns(lines)
            print("\n".join(_padded(line, widths) for line in shown_lines), flush=True)
        before = found
        if until is not None and now() >= until:
            return 0
        await asyncio.sleep(_PAUSE)


def changes(
    before: Mapping[Key, TenantRequest], after: Mapping[Key, TenantRequest]
) -> tuple[list[TenantRequest], list[TenantRequest]]:
    """Return the requests that are new or have changed, and those that were deleted."""
    changed = [each for key, each in after.items() if key not in before or before[key].content != each.content]
    return changed, [each for key, each in before.items() if key not in after]


def request_table(
    found: Sequence[TenantRequest], at: datetime, *, wide: bool, with_namespace: bool = False, width: int | None = None
) -> str:
    """Return the table: backups with when they expire, restores with what they restore from; the short one fits."""
    rows = request_rows(found, at, wide=wide)
    header = request_header(found[0].family, wide=wide, with_namespace=with_namespace)
    shown = rows if with_namespace else [row[1:] for row in rows]
    return table(header, shown) if wide else fitted(header, shown, width, _SHRINKS)


def request_header(family: Family, *, wide: bool, with_namespace: bool) -> tuple[str, ...]:
    """Return the headings."""
    own = "EXPIRES" if family is BACKUPS else "BACKUP"
    first = ("NAMESPACE", "NAME") if with_namespace else ("NAME",)
    if not wide:
        return (*first, "STATUS", "QUEUE", own, "AGE", "WHY")
    phases, counts = ("REQUEST", "VELERO", "QUEUE"), ("ERRORS", "WARNINGS")
    return (*first, *phases, own, "AGE", *counts, "STARTED", "ENDED", "VELERO NAME", "WHY")


def request_rows(found: Sequence[TenantRequest], at: datetime, *, wide: bool) -> list[tuple[str, ...]]:
    """Return a row for each request, with its namespace first."""
    cells = _wide_cells if wide else _short_cells
    return [(each.key.namespace, each.key.name, *cells(each, at)) for each in found]


def _short_cells(each: TenantRequest, at: datetime) -> tuple[str, ...]:
    expiration = instant(each.velero.expiration) if each.velero.expiration else None
    expires = distance(expiration, at) if expiration else "n/a"
    return (
        DELETING if each.is_terminating else each.shown_phase,
        _position(each),
        expires if each.family is BACKUPS else _backup_name(each),
        _age(each, at),
        why(each, in_full=False),
    )


def _wide_cells(each: TenantRequest, at: datetime) -> tuple[str, ...]:
    velero = each.velero
    return (
        each.phase or "New",
        velero.phase or "<none>",
        _position(each),
        until(velero.expiration, at) if each.family is BACKUPS else _backup_name(each),
        _age(each, at),
        str(velero.errors),
        str(velero.warnings),
        until(velero.start_timestamp, at),
        until(velero.completion_timestamp, at),
        each.made.name or "<none>",
        why(each, in_full=True),
    )


def _position(each: TenantRequest) -> str:
    return str(each.position) if each.position else ""


def _backup_name(each: TenantRequest) -> str:
    return str(each.spec.get("backupName") or "<none>")


def _age(each: TenantRequest, at: datetime) -> str:
    """Return the age of the data of a backup; before it has any, and of a restore, that of the request."""
    started = instant(each.velero.start_timestamp or "") if each.family is BACKUPS else None
    since = started or each.request.metadata.creation_timestamp
    return short(at - since) if since else "n/a"


def _deleted_rows(deleted: Sequence[TenantRequest], *, wide: bool) -> list[tuple[str, ...]]:
    empty = ("",) * (10 if wide else 4)
    return [(each.key.namespace, each.key.name, "Deleted", *empty) for each in deleted]


def _padded(row: Sequence[str], widths: Sequence[int]) -> str:
    return "   ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()


def why(each: TenantRequest, *, in_full: bool) -> str:
    """Return when a backup goes, why there is no complete one yet, what it lacks, or what a restore left."""
    mark = each.mark
    if mark.is_marked and not each.is_terminating:
        after = f"deleted after {stamp(mark.delete_after)}" if mark.delete_after is not None else "waits for approval"
        return f"{after}: {mark.why}" if in_full else after
    blocking = each.blocking or each.incomplete
    if blocking is None and each.restored is not None:
        from foresail.selfservice.results.restored import short_text, summary  # noqa: PLC0415 - for restores alone

        return summary(each.restored) if in_full else short_text(each.restored)
    if blocking is None:
        return ""
    return f"{blocking.reason}: {blocking.message}" if in_full else in_words(blocking.reason.removeprefix("Velero"))


def until(text: str | None, at: datetime) -> str:
    """Return an instant of a status, with how far away it is."""
    found = instant(text) if text else None
    return moment(found, at) if found else "n/a"
