"""`foresail primer suggest`: which CronJobs wait longest for their nodes, and the Primers that would end it."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime, timedelta
from itertools import islice
from typing import Any

from foresail.api.primer import PRIMER
from foresail.cli.access.cluster import Cluster
from foresail.cli.output.objects import document
from foresail.cli.output.table import table
from foresail.cli.primer.place import in_namespace
from foresail.cli.primer.sight import primers_of
from foresail.cli.primer.starts import Starts, starts
from foresail.cron import chain
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.fires import STANDING, duty_cycle, reading
from foresail.primers.observe import CronJobRow, Target
from foresail.primers.reasons import Because
from foresail.primers.rules import minutes, runs_of

_MARGIN = 1.5
_DAY = timedelta(days=1)
_WEEK = 7
_MOST_FIRES = 1440 * _WEEK


@dataclass(frozen=True, slots=True)
class Suggestion:
    """One CronJob, how its runs have waited, and what would be held so that they do not."""

    key: Key
    delays: tuple[int, ...]
    fires_a_day: float
    warm_up: timedelta
    duty: int
    asks: str

    @property
    def p95(self) -> int:
        """The delay that nineteen of twenty runs do not exceed."""
        return _p95(self.delays)

    @property
    def waits_a_day(self) -> float:
        """Seconds that its runs wait in a day: what suggestions are ranked by."""
        return self.p95 * self.fires_a_day

    @property
    def held_a_day(self) -> timedelta:
        """For how long in a day capacity would be held."""
        return _DAY * self.duty / 100


def suggest(chosen: argparse.Namespace) -> int:
    """Print suggestions, or the Primers themselves."""
    known, told = in_namespace(chosen, lambda cluster: _read(cluster, chosen))
    found = suggestions(known, chosen.at_least, chosen.zone, now(), told)
    if chosen.output != "table":
        print(_as_text(found, chosen.output))
        return 0
    if not found:
        print(
            "no CronJob that is not primed waits that long, as far as Jobs, pods and Events still tell", file=sys.stderr
        )
        return 0
    header = ("NAMESPACE", "CRONJOB", "RUNS", "P95 DELAY", "FIRES A DAY", "WARM-UP", "HELD A DAY", "HOLDS")
    print(table(header, [_row(each) for each in found]))
    return 0


async def _read(cluster: Cluster, chosen: argparse.Namespace) -> tuple[Primers, Starts]:
    return await primers_of(cluster, chosen), await starts(cluster, chosen.namespace)


def suggestions(known: Primers, at_least: int, zone: str, at: datetime, told: Starts) -> list[Suggestion]:
    """Return a suggestion for each CronJob that waits and is not primed, the one that waits most first."""
    found = [_suggestion(known, row, zone, at, told) for row in known.cron_jobs.rows() if not row.primer_uid]
    worth = [each for each in found if each is not None and each.p95 >= at_least]
    return sorted(worth, key=lambda each: (-each.waits_a_day, each.key))


def primer_of(suggestion: Suggestion) -> dict[str, Any]:
    """Return the Primer that a suggestion means."""
    spec: dict[str, Any] = {"cronJob": suggestion.key.name, "warmUp": minutes(suggestion.warm_up)}
    if suggestion.duty > STANDING:
        spec["allowStanding"] = True
    metadata = {"name": suggestion.key.name, "namespace": suggestion.key.namespace}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


def _suggestion(known: Primers, row: CronJobRow, zone: str, at: datetime, told: Starts) -> Suggestion | None:
    if known.primers_for(row):
        return None
    delays = tuple(_delays(known.runs(row), told))
    schedule = reading(row.text, row.zone or zone)
    if not delays or isinstance(schedule, Because):
        return None
    fires = 0
    for fire in islice(chain(schedule, at), _MOST_FIRES):
        if fire > at + _WEEK * _DAY:
            break
        fires += 1
    warm_up = timedelta(minutes=max(-(-_p95(delays) * _MARGIN // 60), 1))
    shape = row.shape
    asks = ", ".join(f"{name} {amount}" for name, amount in shape.requests) if shape else ""
    return Suggestion(row.key, delays, fires / _WEEK, warm_up, duty_cycle(row, zone, warm_up), asks)


def _p95(delays: Sequence[int]) -> int:
    return sorted(delays)[max(-(-len(delays) * 95 // 100) - 1, 0)]


def _delays(target: Target, told: Starts) -> Iterable[int]:
    for job, pods in runs_of(target):
        began = [each.began for each in pods if each.began is not None]
        if not pods and job.key in told:
            began = [told[job.key]]
        if began:
            yield max(int((min(began) - job.fire).total_seconds()), 0)


def _row(each: Suggestion) -> list[str]:
    return [
        each.key.namespace,
        each.key.name,
        str(len(each.delays)),
        f"{each.p95} s",
        f"{each.fires_a_day:g}" if each.fires_a_day == round(each.fires_a_day) else f"{each.fires_a_day:.1f}",
        minutes(each.warm_up),
        minutes(each.held_a_day),
        each.asks or "nothing: set requests first",
    ]


def _as_text(found: list[Suggestion], form: str) -> str:
    primers = [primer_of(each) for each in found if each.asks]
    if form == "json":
        return document({"apiVersion": "v1", "kind": "List", "items": primers}, form)
    return "\n---\n".join(document(each, form) for each in primers)
