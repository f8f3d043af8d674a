"""`foresail protection get` and `describe`: Protections, as the operator has written them."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import msgspec

from foresail.api.instants import instant
from foresail.api.protection import PROTECTION, PROTECTION_NAME
from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.options.shared import is_table
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import aligned, fitted, table, terminal_width
from foresail.cli.output.words import ago, moment
from foresail.kube.clock import now
from foresail.plan import Key

_any = msgspec.json.Decoder(dict[str, Any])
_HEADER = ("NAMESPACE", "CLASS", "PROTECTED", "REASON", "NEWEST GOOD", "NEXT RUN")

Row = Mapping[str, Any]


def get(args: argparse.Namespace) -> int:
    """Print the Protections of one namespace or of all."""
    if not args.all_namespaces:
        settle_namespace(args)
    namespace = "" if args.all_namespaces else args.namespace
    items = on_cluster(args, lambda cluster: _listed(cluster, namespace))
    items = [item for item in items if is_wanted(item, gaps=args.gaps, of_class=args.of_class)]
    if not is_table(args.output):
        print(as_text(items, args.output))
    elif items:
        is_wide = args.output == "wide"
        print(protection_table(items, now(), wide=is_wide, width=terminal_width(sys.stdout)))
    else:
        place = "" if args.all_namespaces else f" in namespace {args.namespace}"
        print(f"No Protections found{place}", file=sys.stderr)
    return 0


async def _listed(cluster: Cluster, namespace: str) -> list[dict[str, Any]]:
    protections = [_any.decode(raw) for raw in await cluster.listed(PROTECTION, namespace)]
    return sorted(protections, key=lambda item: str(item["metadata"]["namespace"]))


def is_wanted(item: Row, *, gaps: bool, of_class: str | None) -> bool:
    """Whether a Protection is one of those that the options select."""
    status = item.get("status") or {}
    return (not gaps or bool(status.get("notCovered"))) and of_class in (None, status.get("class", ""))


def protection_table(items: Sequence[Row], at: datetime, *, wide: bool, width: int | None) -> str:
    """Return a row for each namespace."""
    header = (*_HEADER, *(("SCHEDULE", "MESSAGE") if wide else ()))
    rows = [(*short_cells(item, at), *(wide_cells(item) if wide else ())) for item in items]
    return table(header, rows) if wide else fitted(header, rows, width, ("NAMESPACE", "REASON"))


def short_cells(item: Row, at: datetime) -> tuple[str, ...]:
    """Return the cells of a Protection."""
    status = item.get("status") or {}
    good = status.get("newestGood") or {}
    next_run = instant(status.get("nextRun", ""))
    condition = _condition(status)
    return (
        item["metadata"]["namespace"],
        status.get("class") or "-",
        condition.get("status", "-"),
        condition.get("reason", "-"),
        ago(instant(good.get("started", "")), at) if good else "-",
        moment(next_run, at) if next_run is not None else "-",
    )


def wide_cells(item: Row) -> tuple[str, str]:
    """Return its Schedules, and the message of its condition."""
    status = item.get("status") or {}
    return ",".join(status.get("schedules") or ()) or "-", str(_condition(status).get("message", "-"))


def _condition(status: Row) -> Row:
    return next((condition for condition in status.get("conditions") or () if condition["type"] == "Protected"), {})


def describe(args: argparse.Namespace) -> int:
    """Print everything that is known about the protection of a namespace."""
    settle_namespace(args)
    key = Key(args.namespace, PROTECTION_NAME)
    protection = on_cluster(args, lambda cluster: cluster.if_there(PROTECTION, key, dict[str, Any]))
    if protection is None:
        print(f"Namespace {args.namespace} is in no ProtectionClass, and no class is the default.")
        print("To protect it: foresail protection set CLASS -n " + args.namespace)
        return 0
    print(aligned(list(described(protection, now()))))
    return 0


def described(item: Row, at: datetime) -> Iterator[str]:
    """Yield the lines about one Protection."""
    status = item.get("status") or {}
    condition = _condition(status)
    next_run = instant(status.get("nextRun", ""))
    yield f"Namespace:\t{item['metadata']['namespace']}"
    yield f"Class:\t{status.get('class') or '-'}"
    truth, reason, message = (condition.get(field, "-") for field in ("status", "reason", "message"))
    yield f"Protected:\t{truth} ({reason}): {message}"
    yield f"Schedules:\t{', '.join(status.get('schedules') or ()) or '-'}"
    yield f"Next run:\t{moment(next_run, at) if next_run is not None else '-'}"
    if status.get("exemptUntil"):
        yield f"Exempt until:\t{status['exemptUntil']}"
    points = status.get("points") or ()
    yield f"Points in time:\t{len(points)}"
    for point in points:
        yield f"  {point['started']}\t{point['backup']}{'' if point.get('good', True) else ' (not good)'}"
    if points:
        where = f"-n {item['metadata']['namespace']}"
        yield f"To restore one:\tforesail restore create --from-protection {points[0]['backup']} {where}"
    for gap in status.get("notCovered") or ():
        yield f"Gap:\t{gap['reason']}: {gap['message']}"
