"""`foresail schedule get`: Velero's columns, then the next run, the last result and why one waits."""

import argparse
from collections.abc import Sequence
from datetime import datetime

from foresail.cli.options.selectors import shown_selector
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import table
from foresail.cli.output.times import ago, go_time, moment, shown_duration
from foresail.cli.schedule.hints import say_who_fires
from foresail.cli.schedule.sight import Sight, looked_at
from foresail.schedules.metrics import last_ended

VELERO = ("NAME", "STATUS", "CREATED", "SCHEDULE", "BACKUP TTL", "LAST BACKUP", "SELECTOR", "PAUSED")
OURS = ("NEXT RUN", "LAST RESULT", "WAITING")
_WIDE = ("LOCATION", "SKIP IMMEDIATELY", "LAST SKIPPED")


def get(chosen: argparse.Namespace) -> int:
    """Print the chosen Schedules."""
    sights, instant = looked_at(chosen)
    if chosen.output not in ("table", "wide"):
        print(as_text([each.content for each in sights], chosen.output))
        return 0
    if sights:
        print(schedule_table(sights, instant, chosen))
        say_who_fires(sights)
    return 0


def schedule_table(sights: Sequence[Sight], instant: datetime, chosen: argparse.Namespace) -> str:
    """Return the table that the options ask for."""
    wide = chosen.output == "wide"
    columns = [label for each in chosen.label_columns for label in each.split(",")]
    header = [
        *(("NAMESPACE",) if chosen.all_namespaces else ()),
        *VELERO,
        *OURS[:2],
        *(_WIDE if wide else ()),
        OURS[2],
        *(label.rpartition("/")[2].upper() for label in columns),
        *(("LABELS",) if chosen.show_labels else ()),
    ]
    rows = []
    for each in sights:
        labels = each.schedule.labels
        rows.append(
            [
                *((each.schedule.key.namespace,) if chosen.all_namespaces else ()),
                *veleros_cells(each, instant),
                next_run(each, instant),
                last_result(each),
                *(_wide_cells(each, instant) if wide else ()),
                why(each, in_full=wide),
                *(labels.get(label, "<none>") for label in columns),
                *((",".join(f"{name}={value}" for name, value in sorted(labels.items())) or "<none>",))
                * chosen.show_labels,
            ]
        )
    return table(header, rows)


def veleros_cells(each: Sight, instant: datetime) -> tuple[str, ...]:
    """Return the cells of Velero's own columns."""
    schedule, template = each.schedule, each.spec.get("template") or {}
    return (
        schedule.key.name,
        schedule.phase or "New",
        go_time(schedule.created),
        schedule.text,
        shown_duration(template.get("ttl")),
        ago(schedule.last_backup, instant),
        shown_selector(template.get("labelSelector")),
        "true" if schedule.paused else "false",
    )


def next_run(each: Sight, instant: datetime) -> str:
    """Return when it runs next, or has been due if the run is held."""
    return moment(each.verdict.next_run, instant) if each.verdict.next_run else "n/a"


def last_result(each: Sight) -> str:
    """Return how the last run that has ended did so."""
    last = last_ended(each.seen)
    return last.phase if last is not None else "n/a"


def why(each: Sight, *, in_full: bool) -> str:
    """Return why it waits: a word, or that and a sentence."""
    because = each.waits
    if because is None:
        return ""
    return f"{because.reason}: {because.message}" if in_full else because.reason.value


def _wide_cells(each: Sight, instant: datetime) -> tuple[str, ...]:
    skip = each.schedule.skip
    location = each.seen.location
    named = each.schedule.location or (location.key.name if location else "<none>")
    return named, "<unset>" if skip is None else str(skip).lower(), ago(each.schedule.last_skipped, instant)
