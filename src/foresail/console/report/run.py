"""`foresail report`: read the cluster, and write one HTML file."""

import argparse
import asyncio
import sys
from collections.abc import Awaitable, Callable
from datetime import datetime, timedelta
from pathlib import Path

from foresail.cli.access.cluster import Cluster, on_cluster, settle_namespace
from foresail.cli.coverage.own_snapshot import is_administrator, not_all_namespaces
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.shared import read_objective
from foresail.console.report.figures import Figures
from foresail.console.report.fleet import Fleet
from foresail.console.report.fleet_page import fleet_report
from foresail.console.report.page import report_page
from foresail.console.report.snapshot import Wanted, read_cluster, read_own
from foresail.cron import CronError
from foresail.cron.zone_names import validate_zone_name
from foresail.kube.clock import now


def run_report(args: argparse.Namespace) -> int:
    """Run the command."""
    if args.fleet:
        return _run_fleet(args)
    objective = read_objective(args)
    try:
        zone = validate_zone_name(args.zone)
    except CronError as error:
        raise UsageError(f"--zone: {error}") from error
    instant = now()
    figures = on_cluster(args, lambda cluster: _read(cluster, args, objective, zone, instant))
    _write(args.html, report_page(figures))
    if args.html != "-":
        checks = f", {figures.passed_checks} of {len(figures.checks)} restore checks passed" if figures.checks else ""
        safe = f"{figures.safe} of {len(figures.counted)} safe"
        print(f"{args.html}: {figures.subject}, {safe}{checks}", file=sys.stderr)
    return 0


def _run_fleet(args: argparse.Namespace) -> int:
    """Write the page of many clusters."""
    from foresail.console.read_fleet import reader_of  # noqa: PLC0415 - the report of one cluster starts without it

    if args.namespace or args.all_namespaces:
        raise UsageError("--fleet: not with a namespace", "leave out -n and -A")
    wanted = Wanted(args.velero_namespace, "", read_objective(args), args.zone)
    fleet = asyncio.run(_fleet(reader_of(args, wanted)))
    _write(args.html, fleet_report(fleet))
    if args.html != "-":
        told = ", ".join(f"{number} {word.lower()}" for word, number in fleet.counts.items())
        print(f"{args.html}: {len(fleet.rows)} clusters: {told}", file=sys.stderr)
    return 0


async def _fleet(read: Callable[[], Awaitable[Fleet]]) -> Fleet:
    return await read()


async def _read(
    cluster: Cluster, args: argparse.Namespace, objective: timedelta | None, zone: str, instant: datetime
) -> Figures:
    velero_namespace = args.velero_namespace
    if await is_administrator(cluster, velero_namespace):
        wanted = Wanted(velero_namespace, args.namespace or "", objective, zone)
        return await read_cluster(cluster, wanted, instant)
    if args.all_namespaces:
        raise not_all_namespaces(velero_namespace)
    settle_namespace(args)
    return await read_own(cluster, Wanted(velero_namespace, args.namespace, objective, zone), instant)


def _write(file: str, page: str) -> None:
    if file == "-":
        sys.stdout.write(page)
        return
    try:
        Path(file).write_text(page, encoding="utf-8")
    except OSError as error:
        raise CommandError(f"cannot write {file}: {error}", "name a file in a folder that you may write to") from None
