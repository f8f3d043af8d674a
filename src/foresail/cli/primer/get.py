"""`foresail primer get`: Primers, one on a line."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from foresail.api.instants import instant
from foresail.api.primer import AUTO
from foresail.cli.options.output import is_table
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, terminal_width
from foresail.cli.output.times import moment, short
from foresail.cli.primer.annotated import in_primers_form, selected
from foresail.cli.primer.selection import Document, check_selection, in_namespace
from foresail.kube.clock import now
from foresail.primers.status import READY, WARMING

HEADER = ("NAME", "WARM-UP", "NEXT FIRE", "COLD", "WARM", "STATUS")
WIDE = ("CRONJOBS", "METHOD", "HELD", "NEXT WARM-UP", "NEXT FIRE AT", "AGE", "MESSAGE")
_SHRINKS = ("NAME", "NAMESPACE")
_UNSEEN = "NotSeenYet"


def get(args: argparse.Namespace) -> int:
    """List the selected Primers."""
    check_selection(args)
    items = in_namespace(args, lambda cluster: selected(cluster, args))
    if not is_table(args.output):
        print(as_text(items, args.output))
    elif items:
        at = now()
        shown = [in_primers_form(item, at) for item in items]
        width = None if args.output == "wide" else terminal_width(sys.stdout)
        print(primer_table(shown, at, wide=args.output == "wide", namespaced=not args.all_namespaces, width=width))
    return 0


def primer_table(
    documents: Sequence[Document], at: datetime, *, wide: bool, namespaced: bool, width: int | None = None
) -> str:
    """Return Primers, one on a line: with the next fire and the median start delays, cold and warm."""
    header = (*(() if namespaced else ("NAMESPACE",)), *HEADER, *(WIDE if wide else ()))
    rows = []
    for item in documents:
        place = () if namespaced else (item["metadata"]["namespace"],)
        rows.append((*place, *short_cells(item, at), *(wide_cells(item, at) if wide else ())))
    return fitted(header, rows, width, _SHRINKS)


def median(status: dict[str, Any], *, warm: bool) -> str:
    """Return the median of the last start delays, cold or warm."""
    found = sorted(
        item["seconds"]
        for cron in status.get("cronJobs", ())
        for item in cron.get("startDelays", ())
        if item["warm"] is warm
    )
    return f"{found[len(found) // 2]}s" if found else "-"


def condition(primer: Document, kind: str) -> dict[str, Any]:
    """Return a condition of a Primer; empty if it has none of that type."""
    document = primer.get("status", {}).get("conditions", ())
    return next((item for item in document if item["type"] == kind), {})


def short_cells(primer: Document, at: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    status = primer.get("status", {})
    fire = instant(status.get("nextFire") or "")
    return (
        primer["metadata"]["name"],
        status.get("warmUp") or str(primer["spec"]["warmUp"]),
        _distance(fire, at),
        median(status, warm=False),
        median(status, warm=True),
        _state(primer),
    )


def _state(primer: Document) -> str:
    """Return why a Primer is not ready; of one that is ready, whether capacity is held right now."""
    ready = condition(primer, READY)
    if ready.get("status") == "True" and condition(primer, WARMING).get("status") == "True":
        return WARMING
    return str(ready.get("reason", _UNSEEN))


def wide_cells(primer: Document, at: datetime) -> tuple[str, ...]:
    """Return the further cells of the wide table."""
    status = primer.get("status", {})
    created = instant(primer["metadata"].get("creationTimestamp", ""))
    held = max((item.get("dutyCyclePercent", 0) for item in status.get("cronJobs", ())), default=0)
    ready = condition(primer, READY)
    return (
        str(status.get("matched", 0)),
        _method(primer),
        f"{held} %",
        _moment(status.get("nextWarmUp"), at),
        _moment(status.get("nextFire"), at),
        short(at - created) if created else "-",
        "" if ready.get("status") == "True" else ready.get("message", ""),
    )


def _method(primer: Document) -> str:
    """Return the method, and in parentheses what Auto has chosen."""
    asked = primer["spec"].get("method") or AUTO
    used = sorted({item["method"] for item in primer.get("status", {}).get("cronJobs", ()) if item.get("method")})
    return f"{asked} ({', '.join(used)})" if asked == AUTO and used else str(asked)


def _distance(fire: datetime | None, at: datetime) -> str:
    if fire is None:
        return "-"
    return f"in {short(fire - at)}" if fire > at else f"{short(at - fire)} ago"


def _moment(text: str | None, at: datetime) -> str:
    found = instant(text) if text else None
    return moment(found, at) if found else "-"
