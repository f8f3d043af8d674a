"""`foresail primer describe`: all about a Primer, with a picture of its last fires, cold against warm."""

import argparse
import sys
from datetime import datetime
from typing import Any

from foresail.api.instants import instant
from foresail.cli.output.terminal import GREEN, YELLOW, painted
from foresail.cli.output.times import moment
from foresail.cli.primer.annotated import in_primers_form, selected
from foresail.cli.primer.selection import check_selection, in_namespace
from foresail.kube.clock import now

_WIDTH = 40


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected Primers."""
    check_selection(args)
    items = in_namespace(args, lambda cluster: selected(cluster, args))
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
