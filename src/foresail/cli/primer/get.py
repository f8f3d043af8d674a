"""`foresail primer get`: Primers, one on a line."""

import argparse
from datetime import datetime
from typing import Any

from foresail.api.instants import instant
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import table
from foresail.cli.output.times import moment
from foresail.cli.primer.place import chosen_primers, in_namespace
from foresail.kube.clock import now

HEADER = ("NAME", "CRONJOBS", "WARM-UP", "NEXT FIRE", "NEXT WARM-UP", "COLD", "WARM", "READY", "REASON")


def get(chosen: argparse.Namespace) -> int:
    """List the chosen Primers."""
    found = in_namespace(chosen, lambda cluster: chosen_primers(cluster, chosen))
    if chosen.output != "table":
        print(as_text(found, chosen.output))
    elif found:
        header = ("NAMESPACE", *HEADER) if chosen.all_namespaces else HEADER
        places = [[each["metadata"]["namespace"]] if chosen.all_namespaces else [] for each in found]
        print(table(header, [[*place, *row(each, now())] for place, each in zip(places, found, strict=True)]))
    return 0


def row(primer: dict[str, Any], at: datetime) -> list[str]:
    """Return what stands on the line of a Primer."""
    status = primer.get("status", {})
    ready: dict[str, Any] = next((each for each in status.get("conditions", ()) if each["type"] == "Ready"), {})
    said = ready.get("reason", "NotSeenYet")
    return [
        primer["metadata"]["name"],
        str(status.get("matched", 0)),
        status.get("warmUp") or str(primer["spec"]["warmUp"]),
        _moment(status.get("nextFire"), at),
        _moment(status.get("nextWarmUp"), at),
        median(status, warm=False),
        median(status, warm=True),
        ready.get("status", "Unknown"),
        "" if said == "Ready" else said,
    ]


def median(status: dict[str, Any], *, warm: bool) -> str:
    """Return the median of the last start delays, cold or warm."""
    found = sorted(
        each["seconds"]
        for cron in status.get("cronJobs", ())
        for each in cron.get("startDelays", ())
        if each["warm"] is warm
    )
    return f"{found[len(found) // 2]} s" if found else "-"


def _moment(text: str | None, at: datetime) -> str:
    found = instant(text) if text else None
    return moment(found, at) if found else "-"
