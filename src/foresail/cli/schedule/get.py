"""`foresail schedule get`: the last run, the next run and why one waits; the wide table has Velero's columns too."""

import argparse
import sys
from collections.abc import Sequence
from datetime import datetime

from foresail.cli.options.output import is_table
from foresail.cli.options.selectors import shown_selector
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import fitted, table, terminal_width
from foresail.cli.output.times import ago, go_time, moment, short, shown_duration
from foresail.cli.schedule.hints import hint_who_fires
from foresail.cli.schedule.runner import runner_problem
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_contents, read_selected
from foresail.proof.reasons import Reason
from foresail.schedules.policies import rpo_of
from foresail.schedules.results import good_since, last_ended

VELERO = ("NAME", "STATUS", "CREATED", "SCHEDULE", "BACKUP TTL", "LAST BACKUP", "SELECTOR", "PAUSED")
_WIDE = (
    "NEXT RUN",
    "LAST RESULT",
    "LOCATION",
    "SKIP IMMEDIATELY",
    "LAST SKIPPED",
    "POLICY",
    "ATTEMPTS",
    "OBJECTIVE",
    "WAITING",
)
_SHORT = ("NAME", "SCHEDULE", "LAST RUN", "NEXT RUN", "WAITING")
_SHRINKS = ("NAME", "SCHEDULE", "NAMESPACE", "LAST RUN")


def get(args: argparse.Namespace) -> int:
    """Print the selected Schedules."""
    if not is_table(args.output):
        print(as_text(read_contents(args), args.output))
        return 0
    evaluated, instant = read_selected(args)
    if evaluated:
        print(schedule_table(evaluated, instant, args, terminal_width(sys.stdout)))
        hint_who_fires(evaluated)
    return 0


def schedule_table(
    evaluated: Sequence[EvaluatedSchedule], instant: datetime, args: argparse.Namespace, width: int | None
) -> str:
    """Return the table that the options ask for; the short one fits the width."""
    wide = args.output == "wide"
    columns = [label for column in args.label_columns for label in column.split(",")]
    header = [
        *(("NAMESPACE",) if args.all_namespaces else ()),
        *((*VELERO, *_WIDE) if wide else _SHORT),
        *(label.rpartition("/")[2].upper() for label in columns),
        *(("LABELS",) if args.show_labels else ()),
    ]
    rows = []
    for schedule in evaluated:
        labels = schedule.schedule.labels
        rows.append(
            [
                *((schedule.schedule.key.namespace,) if args.all_namespaces else ()),
                *(wide_cells(schedule, instant) if wide else short_cells(schedule, instant)),
                *(labels.get(label, "<none>") for label in columns),
                *((",".join(f"{name}={value}" for name, value in sorted(labels.items())) or "<none>",))
                * args.show_labels,
            ]
        )
    return table(header, rows) if wide else fitted(header, rows, width, _SHRINKS)


def short_cells(evaluated_schedule: EvaluatedSchedule, instant: datetime) -> tuple[str, ...]:
    """Return the cells of the short table."""
    schedule = evaluated_schedule.schedule
    due = evaluated_schedule.verdict.due_since
    upcoming = evaluated_schedule.verdict.starts
    problem = runner_problem(evaluated_schedule, instant)
    ended = last_ended(evaluated_schedule.view)
    age = ago(schedule.last_backup, instant) if schedule.last_backup else ""
    last = " ".join(filter(None, (ended.phase if ended else "", age))) or "n/a"
    if due is not None:
        following = f"due {ago(due, instant)}"
    else:
        is_run = problem is None or problem[0] is not Reason.NOBODY_RUNS
        following = f"in {short(upcoming - instant)}" if upcoming and is_run else "n/a"
    return schedule.key.name, schedule.text, last, following, why(evaluated_schedule, instant, in_full=False)


def wide_cells(schedule: EvaluatedSchedule, instant: datetime) -> tuple[str, ...]:
    """Return the cells of the wide table: Velero's columns, then ours."""
    skip = schedule.schedule.skip
    location = schedule.view.location
    return (
        *veleros_cells(schedule, instant),
        next_run(schedule, instant),
        last_result(schedule),
        schedule.schedule.location or (location.key.name if location else "<none>"),
        "<unset>" if skip is None else str(skip).lower(),
        ago(schedule.schedule.last_skipped, instant),
        schedule.view.policy.name if schedule.view.policy else "<none>",
        attempts(schedule, instant),
        objective(schedule, instant),
        why(schedule, instant, in_full=True),
    )


def veleros_cells(evaluated_schedule: EvaluatedSchedule, instant: datetime) -> tuple[str, ...]:
    """Return the cells of Velero's own columns."""
    schedule = evaluated_schedule.schedule
    template = evaluated_schedule.spec.get("template") or {}
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


def next_run(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return when it runs next, or since when a blocked run is due."""
    problem = runner_problem(schedule, instant)
    is_run = problem is None or problem[0] is not Reason.NOBODY_RUNS or schedule.verdict.due_since is not None
    return moment(schedule.verdict.next_run, instant) if schedule.verdict.next_run and is_run else "n/a"


def last_result(schedule: EvaluatedSchedule) -> str:
    """Return how the last run that has ended did so."""
    last = last_ended(schedule.view)
    return last.phase if last is not None else "n/a"


def attempts(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return how many attempts the last slot took, and when another one follows."""
    found = schedule.verdict.attempts
    if found is None:
        return "n/a"
    if found.next_at is None:
        return found.shown
    return f"{found.shown}, next {moment(found.next_at, instant)}"


def objective(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return the age of the newest good Backup beside the one that is acceptable."""
    rpo = rpo_of(schedule.view.policy)
    if rpo is None:
        return "n/a"
    age = instant - good_since(schedule.view)
    return f"{short(age)} of {short(rpo)}{', exceeded' if age > rpo else ''}"


def why(schedule: EvaluatedSchedule, instant: datetime, *, in_full: bool) -> str:
    """Return why it waits, why nothing runs it, or what would block its next run: a word, or that and a sentence."""
    if schedule.blocked_by is not None:
        reason = schedule.blocked_by.reason.value
        message = schedule.blocked_by.message
    elif (problem := runner_problem(schedule, instant)) is not None:
        reason = problem[0].value
        message = problem[1]
    elif schedule.blocks_next_run is not None:
        reason = schedule.blocks_next_run.reason.value
        message = schedule.blocks_next_run.message
    else:
        return ""
    return f"{reason}: {message}" if in_full else reason
