"""`foresail primer preview`: what a Primer would do for a CronJob, before anything is created."""

import argparse
from collections.abc import Iterator
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

import msgspec

from foresail.api.batch import CRON_JOB, CronJob
from foresail.api.instants import stamp
from foresail.cli.access.cluster import Cluster
from foresail.cli.cron.words import minutes_of, pointed_out, wall_time
from foresail.cli.errors import CommandError, UsageError
from foresail.cli.options.manifest_files import documents, objects
from foresail.cli.output.table import table
from foresail.cli.primer.selection import in_namespace
from foresail.cli.primer.worth import requests_text
from foresail.cron import CronError, Dialect, fires_after, outlook, parse
from foresail.cron.shift import Shifted, shift
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.primers.fires import STANDING, duty_cycle
from foresail.primers.rows import CronJobRow, cron_job_row, minutes
from foresail.primers.rules import MAX_PRIMER_CRON_JOBS

_DATES = 6


def preview(args: argparse.Namespace) -> int:
    """Print what would be done."""
    lead = minutes_of(args.warm_up)
    jobs = _from_file(args) if args.file else [_from_cluster(args)]
    print("\n\n".join("\n".join(previewed(job, lead, args, now())) for job in jobs))
    return 0


def previewed(cron: CronJobRow, lead: int, args: argparse.Namespace, at: datetime) -> Iterator[str]:
    """Yield the lines about one CronJob."""
    zone = cron.zone or args.zone
    length = timedelta(minutes=lead)
    try:
        schedule = parse(cron.text, Dialect.ROBFIG, zone)
    except CronError as error:
        problem = f"CronJob {cron.key.name}: spec.schedule: {pointed_out(error)}"
        raise CommandError(problem, f"allowed: {error.allowed}") from None
    yield f"CronJob {cron.key.name}: {cron.text!r} in {zone}, {schedule.describe()}"
    # Counted from the last run, which may be long ago: of a CronJob that was suspended since, say.
    first = outlook(schedule, cron.last or at, at).upcoming
    fires = [first, *islice(fires_after(schedule, first), args.count)][: args.count] if first is not None else []
    yield table(("WARM-UP", "FIRE"), [(wall_time(fire - length, zone), wall_time(fire, zone)) for fire in fires])
    duty = duty_cycle(cron, args.zone, length)
    note = "; this needs spec.allowStanding" if duty > STANDING else ""
    yield f"held for {duty} % of the time{note}"
    shape = cron.shape
    asks = requests_text(shape.requests) if shape else ""
    yield f"each placeholder holds {asks}" if asks else "nothing to hold: the pods request nothing (NothingToReserve)"
    yield from _by_cron_jobs(shift(schedule, lead, at), length)


def _by_cron_jobs(shifted: Shifted, length: timedelta) -> Iterator[str]:
    if shifted.schedules:
        yield "method CronJob would make:"
        yield table(
            ("SCHEDULE", "TIME ZONE"), [(schedule.schedule, schedule.time_zone) for schedule in shifted.schedules]
        )
    if len(shifted.schedules) > MAX_PRIMER_CRON_JOBS:
        yield f"more than {MAX_PRIMER_CRON_JOBS}: use method Placeholder"
    if shifted.exact:
        until = f" until {shifted.until:%Y-%m-%d}" if shifted.until else ""
        yield f"exact{until}: each fires {minutes(length)} before a fire, and at no other time"
        return
    yield f"method CronJob is not exact: {shifted.reason}"
    if shifted.inexact_dates:
        shown = ", ".join(day.isoformat() for day in shifted.inexact_dates[:_DATES])
        more = len(shifted.inexact_dates) - _DATES
        yield f"first on {shown}" + (f" and {more} more dates" if more > 0 else "")
    yield "method Placeholder is exact on every date"


def _from_file(args: argparse.Namespace) -> list[CronJobRow]:
    items = list(objects(documents(args.file), CRON_JOB.name))
    if not items:
        raise CommandError(f"{args.file} contains no CronJob", "specify a file with at least one")
    try:
        return [cron_job_row(_decoded(item)) for item in items]
    except (msgspec.DecodeError, TypeError, ValueError) as error:
        problem = f"a CronJob in {args.file} cannot be decoded: {error}"
        raise CommandError(problem, "correct it; kubectl apply --dry-run=server shows the field") from error


def _decoded(document: dict[str, Any]) -> CronJob:
    """Read a CronJob from a file; without a creation time it counts as created now."""
    metadata = {**(document.get("metadata") or {})}
    metadata["creationTimestamp"] = metadata.get("creationTimestamp") or stamp(now())
    return msgspec.json.decode(msgspec.json.encode({**document, "metadata": metadata}), type=CronJob)


def _from_cluster(args: argparse.Namespace) -> CronJobRow:
    if not args.cron_job:
        raise UsageError("no CronJob is specified", "specify a name, or -f FILE")

    async def read(cluster: Cluster) -> CronJobRow:
        return cron_job_row(await cluster.read(CRON_JOB, Key(args.namespace, args.cron_job), CronJob))

    return in_namespace(args, read)
