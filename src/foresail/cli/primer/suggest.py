"""`foresail primer suggest`: which CronJobs wait for nodes, what Primers for them are worth, and what they cost."""

import argparse
import sys
from collections.abc import Iterable, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api.primer import PRIMER
from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector
from foresail.cli.access.cluster import Cluster
from foresail.cli.options.output import is_table
from foresail.cli.options.selectors import read_selector
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text, document
from foresail.cli.output.table import fitted, terminal_width
from foresail.cli.primer.selection import in_namespace
from foresail.cli.primer.snapshot import read_snapshot
from foresail.cli.primer.starts import Starts, starts
from foresail.cli.primer.worth import Prices, Suggestion, p95, requests_text, usage
from foresail.kube.clock import now
from foresail.primers.admission import last_admitted
from foresail.primers.controller import Primers
from foresail.primers.durations import minutes
from foresail.primers.fires import duty_cycle, parsed_schedule
from foresail.primers.observe import Target
from foresail.primers.reasons import Because
from foresail.primers.rows import CronJobRow
from foresail.primers.runs import runs_of

_MARGIN = 1.5
_HOUR = timedelta(hours=1)
_HUNDRED = 100
_SHRINKS = ("CRONJOB", "NAMESPACE")


def suggest(args: argparse.Namespace) -> int:
    """Print suggestions, or the Primers themselves."""
    selector = msgspec.convert(read_selector(args.selector), LabelSelector) if args.selector else LabelSelector()
    known, started = in_namespace(args, lambda cluster: _read(cluster, args))
    rows = [row for row in known.state.cron_jobs.rows() if not row.primer_uid and selects(selector, row.labels)]
    found = suggestions(known, rows, args.at_least, args.zone, now(), started)
    prices = Prices(args.price_cpu_hour, args.price_memory_gib_hour)
    if is_table(args.output):
        if found:
            wide, namespaced = args.output == "wide", not args.all_namespaces
            width = None if wide else terminal_width(sys.stdout)
            print(suggestion_table(found, prices, wide=wide, namespaced=namespaced, width=width))
    else:
        print(manifests(found, prices, args.output, allow_standing=args.allow_standing))
    for text in remarks(found, args.at_least, allow_standing=args.allow_standing):
        hint(text)
    return 0


async def _read(cluster: Cluster, args: argparse.Namespace) -> tuple[Primers, Starts]:
    return await read_snapshot(cluster, args), await starts(cluster, args.namespace)


def suggestions(
    known: Primers, rows: Iterable[CronJobRow], at_least: int, zone: str, at: datetime, started: Starts
) -> list[Suggestion]:
    """Return a suggestion for each CronJob that waits and is not primed, the one that saves most first."""
    found = [_suggestion(known, row, at_least, zone, at, started) for row in rows]
    return sorted((each for each in found if each is not None), key=lambda each: (-each.saved_a_day, each.key))


def primer_of(suggestion: Suggestion) -> dict[str, Any]:
    """Return the Primer that a suggestion proposes."""
    spec: dict[str, Any] = {"cronJob": suggestion.key.name, "warmUp": minutes(suggestion.warm_up)}
    if suggestion.needs_allow_standing:
        spec["allowStanding"] = True
    metadata = {"name": suggestion.key.name, "namespace": suggestion.key.namespace}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


def manifests(found: Sequence[Suggestion], prices: Prices, form: str, *, allow_standing: bool) -> str:
    """Return the Primers as names, as a JSON list, or as YAML with their worth and cost in comments."""
    proposed = [each for each in found if each.holds_something and (allow_standing or not each.needs_allow_standing)]
    primers = [primer_of(each) for each in proposed]
    if form == "name":
        return as_text(primers, form)
    if form != "yaml":
        return document({"apiVersion": "v1", "kind": "List", "items": primers}, form)
    return "\n---\n".join(
        "\n".join((*_comments(each, prices), document(primer, form)))
        for each, primer in zip(proposed, primers, strict=True)
    )


def suggestion_table(
    found: Sequence[Suggestion], prices: Prices, *, wide: bool, namespaced: bool, width: int | None = None
) -> str:
    """Return the suggestions, one on a line; time saved, hours held and their cost are those of a day."""
    header = ["CRONJOB", "SAVES A DAY", "WARM-UP", "CPU-H", "GIB-H"]
    header = header if namespaced else ["NAMESPACE", *header]
    header += ["COST"] if prices else []
    header += ["RUNS", "P95 DELAY", "HELD A DAY", "HOLDS"] if wide else []
    rows = []
    for each in found:
        row = [] if namespaced else [each.key.namespace]
        held = each.holds_something
        row += [each.key.name, _saves(each), minutes(each.warm_up)]
        row += [_number(each.cpu_hours), _number(each.memory_gib_hours)] if held else ["-", "-"]
        if prices:
            row.append(_number(each.cost_a_day(prices)) if held else "-")
        if wide:
            row += [str(len(each.delays)), f"{p95(each.delays)}s", _span(each.usage.held_a_day), _holds(each)]
        rows.append(row)
    return fitted(header, rows, width, _SHRINKS)


def remarks(found: Sequence[Suggestion], at_least: int, *, allow_standing: bool) -> list[str]:
    """Return what a user must know beside the suggestions."""
    if not found:
        return [f"no CronJob without a Primer waits {at_least} s or longer, according to its Jobs, pods and Events"]
    notes = []
    for each in found:
        if not each.holds_something:
            notes.append(
                f"CronJob {each.key}: its pods request nothing, so a Primer would hold no capacity. Set their requests."
            )
        elif each.needs_allow_standing:
            text = f"CronJob {each.key}: capacity would be held for {each.duty} % of the time"
            left_out = "A Primer for it needs --allow-standing; without it, -o yaml and json leave it out."
            notes.append(f"{text}. {'Its Primer sets spec.allowStanding.' if allow_standing else left_out}")
    return notes


def _suggestion(
    known: Primers, row: CronJobRow, at_least: int, zone: str, at: datetime, started: Starts
) -> Suggestion | None:
    if known.state.primers_for(row):
        return None
    target = known.state.runs(row)
    delays = tuple(_delays(target, started))
    schedule = parsed_schedule(row.text, row.zone or zone)
    if not delays or p95(delays) < at_least or isinstance(schedule, Because):
        return None
    warm_up = timedelta(minutes=max(-(-p95(delays) * _MARGIN // 60), 1))
    shape = (last_admitted(target, row.shape) or row.shape) if row.shape else None
    return Suggestion(
        key=row.key,
        delays=delays,
        warm_up=warm_up,
        usage=usage(schedule, warm_up, at),
        duty=duty_cycle(row, zone, warm_up),
        requests=shape.requests if shape else (),
        count=max(row.parallelism, 1),
    )


def _delays(target: Target, started: Starts) -> Iterable[int]:
    for job, pods in runs_of(target):
        began = [each.began for each in pods if each.began is not None]
        if not pods and job.key in started:
            began = [started[job.key]]
        if began:
            yield max(int((min(began) - job.fire).total_seconds()), 0)


def _comments(each: Suggestion, prices: Prices) -> list[str]:
    cpu, memory = _number(each.cpu_hours), _number(each.memory_gib_hours)
    cost = f", cost {_number(each.cost_a_day(prices))}" if prices else ""
    lines = [f"# A day: saves {_saves(each)}; holds {cpu} CPU-hours, {memory} GiB-hours{cost}"]
    if each.needs_allow_standing:
        lines.append(f"# allowStanding: capacity is held for {each.duty} % of the time")
    return lines


def _saves(each: Suggestion) -> str:
    return f"{each.saved_per_fire}s x {_number(each.usage.fires_a_day)} = {_span(each.saved_a_day)}"


def _holds(each: Suggestion) -> str:
    asks = requests_text(each.requests)
    return f"{each.count} x ({asks})" if each.count > 1 else asks or "nothing"


def _span(length: timedelta) -> str:
    if length >= _HOUR:
        return minutes(length)
    whole, seconds = divmod(round(length.total_seconds()), 60)
    return "".join((f"{whole}m" if whole else "", f"{seconds}s" if seconds or not whole else ""))


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= _HUNDRED else f"{value:.3g}"
