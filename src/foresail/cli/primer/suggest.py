"""`foresail primer suggest`: which CronJobs wait for nodes, what Primers for them are worth, and what they cost."""

import argparse
import sys
from collections.abc import Iterable, Mapping, Sequence
from datetime import datetime, timedelta
from typing import Any

import msgspec

from foresail.api import pods
from foresail.api.core import EVENT
from foresail.api.instants import utc
from foresail.api.primer import PRIMER
from foresail.api.selectors import selects
from foresail.api.specs import LabelSelector
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.errors import CommandError
from foresail.cli.options.selectors import read_selector
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import hint
from foresail.cli.output.objects import as_text, document
from foresail.cli.output.table import fitted, terminal_width
from foresail.cli.primer.preview import Prices, Suggestion, p95, requests_text, usage
from foresail.cli.primer.snapshot import read_snapshot
from foresail.kube.clock import now
from foresail.plan import Key
from foresail.primers.controller import Primers
from foresail.primers.fires import duty_cycle, parsed_schedule
from foresail.primers.rows import CronJobRow, minutes
from foresail.primers.rules import last_admitted
from foresail.primers.steps import runs_of
from foresail.primers.view import Target
from foresail.reporting import Because

SCHEDULED, STARTED = "Scheduled", "Started"

Starts = Mapping[Key, datetime]
"""By Job: when its first container started; without that Event, when its first pod was scheduled."""


class Subject(msgspec.Struct, frozen=True):
    """What an Event is about."""

    namespace: str = ""
    name: str = ""


class Event(msgspec.Struct, frozen=True, rename="camel"):
    """What happened to a pod; the scheduler sets `eventTime`, and kubelets set `firstTimestamp`."""

    involved_object: Subject
    event_time: datetime | None = None
    first_timestamp: datetime | None = None


_events = msgspec.json.Decoder(Event)


async def starts(cluster: Cluster, namespace: str) -> Starts:
    """Read the start of each Job from Events; empty if the user may not read them."""
    starts: dict[Key, datetime] = {}
    for reason in (SCHEDULED, STARTED):  # the later one counts: a node may be there long before the image is
        selector = f"involvedObject.kind={pods.POD.name},reason={reason}"
        try:
            raw = await cluster.listed(EVENT, namespace, fields=selector)
        except CommandError:
            return starts
        starts |= first_of_each(map(_events.decode, raw))
    return starts


def first_of_each(events: Iterable[Event]) -> dict[Key, datetime]:
    """Return for each Job the first Event of one of its pods."""
    starts: dict[Key, datetime] = {}
    for event in events:
        at = event.event_time or event.first_timestamp
        if at is None:
            continue
        for name in _jobs(event.involved_object.name):
            key = Key(event.involved_object.namespace, name)
            starts[key] = min(utc(at), starts.get(key, utc(at)))
    return starts


def _jobs(pod: str) -> list[str]:
    """Return the Jobs that a pod may belong to: its name is the Job's name, an index if it is indexed, and a suffix."""
    name = pod.rpartition("-")[0]
    counted, _, index = name.rpartition("-")
    return [name, counted] if index.isdecimal() else [name]


_MARGIN = 1.5
_HOUR = timedelta(hours=1)
_HUNDRED = 100
_SHRINKS = ("CRONJOB", "NAMESPACE")


def suggest(args: argparse.Namespace) -> int:
    """Print suggestions, or the Primers themselves."""
    selector = msgspec.convert(read_selector(args.selector), LabelSelector) if args.selector else LabelSelector()
    known, started = on_namespace(args, lambda cluster: _read(cluster, args))
    rows = [row for row in known.state.cron_jobs.rows() if not row.primer_uid and selects(selector, row.labels)]
    suggested = suggestions(known, rows, args.at_least, args.zone, now(), started)
    prices = Prices(args.price_cpu_hour, args.price_memory_gib_hour)
    if is_table(args.output):
        if suggested:
            wide = args.output == "wide"
            namespaced = not args.all_namespaces
            width = None if wide else terminal_width(sys.stdout)
            print(suggestion_table(suggested, prices, wide=wide, namespaced=namespaced, width=width))
    else:
        print(manifests(suggested, prices, args.output, allow_standing=args.allow_standing))
    for text in remarks(suggested, args.at_least, allow_standing=args.allow_standing):
        hint(text)
    return 0


async def _read(cluster: Cluster, args: argparse.Namespace) -> tuple[Primers, Starts]:
    return await read_snapshot(cluster, args), await starts(cluster, args.namespace)


def suggestions(
    known: Primers, rows: Iterable[CronJobRow], at_least: int, zone: str, at: datetime, started: Starts
) -> list[Suggestion]:
    """Return a suggestion for each CronJob that waits and is not primed, the one that saves most first."""
    possible = [_suggestion(known, row, at_least, zone, at, started) for row in rows]
    return sorted(
        (suggestion for suggestion in possible if suggestion is not None),
        key=lambda suggestion: (-suggestion.saved_a_day, suggestion.key),
    )


def primer_of(suggestion: Suggestion) -> dict[str, Any]:
    """Return the Primer that a suggestion proposes."""
    spec: dict[str, Any] = {"cronJob": suggestion.key.name, "warmUp": minutes(suggestion.warm_up)}
    if suggestion.needs_allow_standing:
        spec["allowStanding"] = True
    metadata = {"name": suggestion.key.name, "namespace": suggestion.key.namespace}
    return {"apiVersion": PRIMER.api_version, "kind": PRIMER.name, "metadata": metadata, "spec": spec}


def manifests(suggested: Sequence[Suggestion], prices: Prices, form: str, *, allow_standing: bool) -> str:
    """Return the Primers as names, as a JSON list, or as YAML with their worth and cost in comments."""
    proposed = [
        suggestion
        for suggestion in suggested
        if suggestion.holds_something and (allow_standing or not suggestion.needs_allow_standing)
    ]
    primers = [primer_of(suggestion) for suggestion in proposed]
    if form == "name":
        return as_text(primers, form)
    if form != "yaml":
        return document({"apiVersion": "v1", "kind": "List", "items": primers}, form)
    return "\n---\n".join(
        "\n".join((*_comments(suggestion, prices), document(primer, form)))
        for suggestion, primer in zip(proposed, primers, strict=True)
    )


def suggestion_table(
    suggested: Sequence[Suggestion], prices: Prices, *, wide: bool, namespaced: bool, width: int | None = None
) -> str:
    """Return the suggestions, one on a line; time saved, hours held and their cost are those of a day."""
    header = ["CRONJOB", "SAVES A DAY", "WARM-UP", "CPU-H", "GIB-H"]
    header = header if namespaced else ["NAMESPACE", *header]
    header += ["COST"] if prices else []
    header += ["RUNS", "P95 DELAY", "HELD A DAY", "HOLDS"] if wide else []
    rows = []
    for suggestion in suggested:
        row = [] if namespaced else [suggestion.key.namespace]
        held = suggestion.holds_something
        row += [suggestion.key.name, _saves(suggestion), minutes(suggestion.warm_up)]
        row += [_number(suggestion.cpu_hours), _number(suggestion.memory_gib_hours)] if held else ["-", "-"]
        if prices:
            row.append(_number(suggestion.cost_a_day(prices)) if held else "-")
        if wide:
            row += [
                str(len(suggestion.delays)),
                f"{p95(suggestion.delays)}s",
                _span(suggestion.usage.held_a_day),
                _holds(suggestion),
            ]
        rows.append(row)
    return fitted(header, rows, width, _SHRINKS)


def remarks(suggested: Sequence[Suggestion], at_least: int, *, allow_standing: bool) -> list[str]:
    """Return what a user must know beside the suggestions."""
    if not suggested:
        return [f"no CronJob without a Primer waits {at_least} s or longer, according to its Jobs, pods and Events"]
    notes = []
    for suggestion in suggested:
        if not suggestion.holds_something:
            notes.append(
                f"CronJob {suggestion.key}: its pods request nothing, so a Primer would hold no capacity."
                " Set their requests."
            )
        elif suggestion.needs_allow_standing:
            text = f"CronJob {suggestion.key}: capacity would be held for {suggestion.duty} % of the time"
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
    for job, started_pods in runs_of(target):
        began = [pod.began for pod in started_pods if pod.began is not None]
        if not started_pods and job.key in started:
            began = [started[job.key]]
        if began:
            yield max(int((min(began) - job.fire).total_seconds()), 0)


def _comments(suggestion: Suggestion, prices: Prices) -> list[str]:
    cpu = _number(suggestion.cpu_hours)
    memory = _number(suggestion.memory_gib_hours)
    cost = f", cost {_number(suggestion.cost_a_day(prices))}" if prices else ""
    lines = [f"# A day: saves {_saves(suggestion)}; holds {cpu} CPU-hours, {memory} GiB-hours{cost}"]
    if suggestion.needs_allow_standing:
        lines.append(f"# allowStanding: capacity is held for {suggestion.duty} % of the time")
    return lines


def _saves(suggestion: Suggestion) -> str:
    return f"{suggestion.saved_per_fire}s x {_number(suggestion.usage.fires_a_day)} = {_span(suggestion.saved_a_day)}"


def _holds(suggestion: Suggestion) -> str:
    asks = requests_text(suggestion.requests)
    return f"{suggestion.count} x ({asks})" if suggestion.count > 1 else asks or "nothing"


def _span(length: timedelta) -> str:
    if length >= _HOUR:
        return minutes(length)
    whole, seconds = divmod(round(length.total_seconds()), 60)
    return "".join((f"{whole}m" if whole else "", f"{seconds}s" if seconds or not whole else ""))


def _number(value: float) -> str:
    return f"{value:.0f}" if value >= _HUNDRED else f"{value:.3g}"
