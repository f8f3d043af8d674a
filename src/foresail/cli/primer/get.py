"""`foresail primer get`: Primers, one on a line."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime
from typing import Any

from foresail.api.instants import instant
from foresail.api.primer import AUTO
from foresail.cli.access.cluster import on_namespace
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import GREEN, YELLOW, painted
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, terminal_width
from foresail.cli.output.words import moment, short
from foresail.cli.primer.selection import Document, check_selection, in_primers_form, selected
from foresail.kube.clock import now
from foresail.primers.status import READY, WARMING

HEADER = ("NAME", "WARM-UP", "NEXT FIRE", "COLD", "WARM", "STATUS")
WIDE = ("CRONJOBS", "METHOD", "HELD", "NEXT WARM-UP", "NEXT FIRE AT", "AGE", "MESSAGE")
_SHRINKS = ("NAME", "NAMESPACE")
_UNSEEN = "NotSeenYet"


def get(args: argparse.Namespace) -> int:
    """List the selected Primers."""
    check_selection(args)
    items = on_namespace(args, lambda cluster: selected(cluster, args))
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
    delays = sorted(
        item["seconds"]
        for cron in status.get("cronJobs", ())
        for item in cron.get("startDelays", ())
        if item["warm"] is warm
    )
    return f"{delays[len(delays) // 2]}s" if delays else "-"


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
    when = instant(text) if text else None
    return moment(when, at) if when else "-"


_WIDTH = 40


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected Primers."""
    check_selection(args)
    items = on_namespace(args, lambda cluster: selected(cluster, args))
    at = now()
    if items:
        print("\n\n".join(described(in_primers_form(item, at), at) for item in items))
    return 0


def described(primer: dict[str, Any], at: datetime) -> str:
    """Return a Primer in lines."""
    status = primer.get("status", {})
    spec = primer["spec"]
    metadata = primer["metadata"]
    lines = [
        f"Name:       {metadata['namespace']}/{metadata['name']}",
        f"Warm-up:    {status.get('warmUp') or spec['warmUp']}, method {spec.get('method') or 'Auto'}",
    ]
    lines += [
        f"{item['type'] + ':':<11} {item['status']} ({item['reason']}): {item['message']}"
        for item in status.get("conditions", ())
    ]
    for cron in status.get("cronJobs", ()):
        lines += ["", *_cron_job(cron, at)]
    return "\n".join(lines)


def _cron_job(cron: dict[str, Any], at: datetime) -> list[str]:
    lines = [f"CronJob {cron['name']}: held for {cron.get('dutyCyclePercent', 0)} % of the time"]
    fire = instant(cron.get("nextFire", ""))
    warm_up = instant(cron.get("nextWarmUp", ""))
    if cron.get("reason"):
        lines.append(f"  no capacity is held: {cron['reason']}: {cron.get('message', '')}")
    elif fire and warm_up:
        lines.append(f"  next warm-up {moment(warm_up, at)}, next fire {moment(fire, at)}")
    if cron.get("methodBecause"):
        lines.append(f"  method {cron['method']}: {cron['methodBecause']}")
    elif cron.get("method"):
        lines.append(f"  method {cron['method']}")
    if cron.get("early"):
        lines.append(f"  released early: {cron['early']}")
    lines += [f"  primer CronJob: {item['schedule']} in {item['timeZone']}" for item in cron.get("shifted", ())]
    if not cron.get("exact", True):
        dates = ", ".join(cron.get("inexactDates", ()))
        lines.append(f"  not exact: {cron.get('inexactBecause')} {f'({dates})' if dates else ''}".rstrip())
    warming = cron.get("warming")
    if warming:
        lines.append(f"  {_held(warming)}")
    return [*lines, *_delays(cron.get("startDelays", ()))]


def _held(warming: dict[str, Any]) -> str:
    if warming.get("buffer"):
        return _buffered(warming)
    where = ", ".join(warming.get("nodes", ())) or "no node yet"
    took = f", scheduled after {warming['provisioned']} s" if warming.get("provisioned") is not None else ""
    lost = f"; lost: {warming['lost']}, attempt {warming.get('attempt', 1)}" if warming.get("lost") else ""
    return f"last held for {warming['fire']}: {warming['made']} on {where}{took}{lost}"


def _buffered(warming: dict[str, Any]) -> str:
    took = f", with room after {warming['provisioned']} s" if warming.get("provisioned") is not None else ""
    lost = f"; lost: {warming['lost']}" if warming.get("lost") else ""
    return f"last held for {warming['fire']}: {warming['made']} by CapacityBuffer {warming['buffer']}{took}{lost}"


def _delays(delays: list[dict[str, Any]]) -> list[str]:
    if not delays:
        return ["  no run has been measured yet"]
    longest = max(delay["seconds"] for delay in delays) or 1
    lines = ["  from the fire to the first running pod:"]
    for delay in delays:
        bar = "█" * max(round(_WIDTH * delay["seconds"] / longest), 1)
        word, colour = ("warm", GREEN) if delay["warm"] else ("cold", YELLOW)
        note = f"  {delay['note']}" if delay.get("note") else ""
        lines.append(f"  {delay['fire']}  {word}  {painted(bar, colour, sys.stdout)} {delay['seconds']} s{note}")
    return lines
