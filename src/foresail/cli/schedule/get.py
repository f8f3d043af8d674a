"""`foresail schedule get`: the last run, the next run and why one waits; the wide table has Velero's columns too."""

import argparse
import sys
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

from foresail.cli.options.selectors import shown_selector
from foresail.cli.options.shared import is_table
from foresail.cli.output.messages import BOLD, GREEN, RED, painted
from foresail.cli.output.objects import as_text
from foresail.cli.output.table import aligned, fitted, table, terminal_width
from foresail.cli.output.words import ago, go_time, moment, runs, short, shown_duration
from foresail.cli.schedule.hints import hint_who_fires, manager_of, runner_problem, waits_because
from foresail.cli.schedule.snapshot import NOTED, EvaluatedSchedule, read_contents, read_selected
from foresail.proof.reasons import Reason
from foresail.schedules.decide import not_run
from foresail.schedules.observe import BackupRow
from foresail.schedules.results import good_since, last_ended
from foresail.schedules.rules import skip_not_applied
from foresail.slots.policy_timing import rpo_of

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
    attempts = schedule.verdict.attempts
    if attempts is None:
        return "n/a"
    if attempts.next_at is None:
        return attempts.shown
    return f"{attempts.shown}, next {moment(attempts.next_at, instant)}"


def objective(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return the age of the newest good Backup beside the one that is acceptable."""
    rpo = rpo_of(schedule.view.policy)
    if rpo is None:
        return "n/a"
    age = instant - good_since(schedule.view)
    return f"{short(age)} of {short(rpo)}{', exceeded' if age > rpo else ''}"


def why(schedule: EvaluatedSchedule, instant: datetime, *, in_full: bool) -> str:
    """Return why it waits, why nothing runs it, or what would block its next run: a word, or that and a sentence."""
    because = waits_because(schedule, instant)
    if because is None:
        return ""
    return ": ".join(because) if in_full else because[0]


_NONE = "<none>"
_SCOPED = (
    ("Included cluster-scoped", "includedClusterScopedResources", _NONE),
    ("Excluded cluster-scoped", "excludedClusterScopedResources", _NONE),
    ("Included namespace-scoped", "includedNamespaceScopedResources", "*"),
    ("Excluded namespace-scoped", "excludedNamespaceScopedResources", _NONE),
)


def veleros_lines(evaluated_schedule: EvaluatedSchedule) -> Iterator[str]:
    """Yield the lines of `velero schedule describe`."""
    schedule = evaluated_schedule.schedule
    template = evaluated_schedule.spec.get("template") or {}
    yield f"Name:\t{schedule.key.name}"
    yield f"Namespace:\t{schedule.key.namespace}"
    yield from _pairs("Labels", schedule.labels)
    yield from _pairs("Annotations", schedule.annotations)
    yield ""
    yield f"Phase:\t{schedule.phase or 'New'}"
    policy = template.get("resourcePolicy")
    if policy:
        yield from ("", "Resource policies:", f"\tType:\t{policy.get('kind')}", f"\tName:\t{policy.get('name')}")
    files = (template.get("uploaderConfig") or {}).get("parallelFilesUpload") or 0
    if files > 0:
        yield from ("", "Uploader config:", f"\tParallel files upload:\t{files}")
    if schedule.errors:
        first, *others = schedule.errors
        yield from ("", f"Validation errors:\t{first}", *(f"\t{error}" for error in others))
    yield from ("", f"Paused:\t{str(schedule.paused).lower()}")
    yield from ("", f"Schedule:\t{schedule.text}")
    yield from ("", "Backup Template:")
    for line in _template(template):
        yield f"\t{line}"
    yield from ("", f"Last Backup:\t{go_time(schedule.last_backup) if schedule.last_backup else '<never>'}")


def _pairs(name: str, pairs: Mapping[str, str]) -> Iterator[str]:
    lines = [f"{key}={pairs[key]}" for key in sorted(pairs)] or [_NONE]
    yield f"{name}:\t{lines[0]}"
    for line in lines[1:]:
        yield f"\t{line}"


def _template(template: Mapping[str, Any]) -> Iterator[str]:
    yield "Namespaces:"
    yield f"\tIncluded:\t{_listed(template.get('includedNamespaces'), '*')}"
    yield f"\tExcluded:\t{_listed(template.get('excludedNamespaces'), _NONE)}"
    yield from ("", "Resources:")
    cluster = template.get("includeClusterResources")
    if template.get("includedResources") or template.get("excludedResources") or cluster is not None:
        yield f"\tIncluded:\t{_listed(template.get('includedResources'), '*')}"
        yield f"\tExcluded:\t{_listed(template.get('excludedResources'), _NONE)}"
        yield f"\tCluster-scoped:\t{_switch(cluster, 'included', 'excluded')}"
    else:
        for name, field, empty in _SCOPED:
            yield f"\t{name}:\t{_listed(template.get(field), empty)}"
    yield from ("", f"Label selector:\t{shown_selector(template.get('labelSelector'))}")
    others = [shown_selector(item) for item in template.get("orLabelSelectors") or []]
    yield from ("", f"Or label selector:\t{' or '.join(others) or _NONE}")
    yield from ("", f"Storage Location:\t{template.get('storageLocation') or ''}")
    yield from ("", f"Velero-Native Snapshot PVs:\t{_switch(template.get('snapshotVolumes'))}")
    if template.get("defaultVolumesToFsBackup") is not None:
        yield f"File System Backup (Default):\t{_switch(template['defaultVolumesToFsBackup'])}"
    yield f"Snapshot Move Data:\t{_switch(template.get('snapshotMoveData'))}"
    yield f"Data Mover:\t{template.get('datamover') or 'velero'}"
    yield from ("", f"TTL:\t{shown_duration(template.get('ttl'))}")
    yield from ("", f"CSISnapshotTimeout:\t{shown_duration(template.get('csiSnapshotTimeout'))}")
    yield f"ItemOperationTimeout:\t{shown_duration(template.get('itemOperationTimeout'))}"
    yield ""
    yield from _hooks((template.get("hooks") or {}).get("resources") or [])
    ordered = template.get("orderedResources")
    if ordered is not None:
        yield from ("", "OrderedResources:", *(f"\t{kind}: {ordered[kind]}" for kind in sorted(ordered)))


def _hooks(hooks: Sequence[Mapping[str, Any]]) -> Iterator[str]:
    if not hooks:
        yield f"Hooks:\t{_NONE}"
        return
    yield from ("Hooks:", "\tResources:")
    for item in hooks:
        yield f"\t\t{item.get('name')}:"
        yield "\t\t\tNamespaces:"
        yield f"\t\t\t\tIncluded:\t{_listed(item.get('includedNamespaces'), '*')}"
        yield f"\t\t\t\tExcluded:\t{_listed(item.get('excludedNamespaces'), _NONE)}"
        yield from ("", "\t\t\tResources:")
        yield f"\t\t\t\tIncluded:\t{_listed(item.get('includedResources'), '*')}"
        yield f"\t\t\t\tExcluded:\t{_listed(item.get('excludedResources'), _NONE)}"
        yield from ("", f"\t\t\tLabel selector:\t{shown_selector(item.get('labelSelector'))}")
        for when in ("pre", "post"):
            for hook in item.get(when) or []:
                yield from _command(when, hook.get("exec"))


def _command(when: str, run: Mapping[str, Any] | None) -> Iterator[str]:
    if run is None:
        return
    yield from ("", f"\t\t\t{when.capitalize()} Exec Hook:")
    yield f"\t\t\t\tContainer:\t{run.get('container') or ''}"
    yield f"\t\t\t\tCommand:\t{' '.join(run.get('command') or [])}"
    yield f"\t\t\t\tOn Error:\t{run.get('onError') or ''}"
    yield f"\t\t\t\tTimeout:\t{shown_duration(run.get('timeout'))}"


def _listed(names: Sequence[str] | None, empty: str) -> str:
    return ", ".join(names or ()) or empty


def _switch(value: object, yes: str = "true", no: str = "false") -> str:
    if value is None:
        return "auto"
    return yes if value else no


_SHOWN = 5
_COLOURS = {"Enabled": GREEN, "FailedValidation": RED}


def describe(args: argparse.Namespace) -> int:
    """Print everything about the selected Schedules."""
    evaluated, instant = read_selected(args)
    if evaluated:
        print("\n\n\n".join(described(schedule, instant) for schedule in evaluated))
        hint_who_fires(evaluated)
    return 0


def described(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return a Schedule in Velero's layout, with our part below it."""
    text = aligned([*veleros_lines(schedule), "", *_our_lines(schedule, instant)])
    name = schedule.schedule.key.name
    phase = schedule.schedule.phase
    text = text.replace(name, painted(name, BOLD, sys.stdout), 1)
    if phase in _COLOURS:
        text = text.replace(phase, painted(phase, _COLOURS[phase], sys.stdout), 1)
    return f"{text}\n\n{_last_backups(schedule)}"


def _our_lines(evaluated: EvaluatedSchedule, instant: datetime) -> Iterator[str]:
    schedule = evaluated.schedule
    because = evaluated.blocked_by
    yield f"Next Run:\t{next_run(evaluated, instant)}"
    yield f"Last Result:\t{last_result(evaluated)}"
    ignored = f" ({skip_not_applied().message})" if evaluated.verdict.changes.observed.ignored else ""
    yield f"Skip Immediately:\t{'<unset>' if schedule.skip is None else str(schedule.skip).lower()}{ignored}"
    yield f"Last Skipped:\t{go_time(schedule.last_skipped) if schedule.last_skipped else '<never>'}"
    yield f"Waiting:\t{f'{because.reason}: {because.message}' if because else _would_wait(evaluated)}"
    if evaluated.verdict.missed:
        since = go_time(evaluated.verdict.base)
        yield f"Missed:\t{runs(evaluated.verdict.missed)} since {since}; one late run at most follows"
    yield f"Dialect:\t{dialect_of(evaluated)}"
    yield f"Policy:\t{evaluated.view.policy.name if evaluated.view.policy else '<none>'}"
    if evaluated.view.policy is not None and evaluated.verdict.not_run is not None:
        yield f"Not Run:\t{not_run(evaluated.verdict.not_run, evaluated.verdict.base).message}"
    retained = evaluated.verdict.retained
    if retained is not None:
        deletes = f"{len(retained.goes)} of {len(retained.kept)} Backups are deleted"
        problem = retained.blocked_by or retained.failed
        why = f"; {problem.reason}: {problem.message}" if problem else ""
        yield f"Retention:\t{deletes}{why}"
    manager = manager_of(schedule)
    if manager:
        yield f"Managed By:\t{manager}"


def _would_wait(schedule: EvaluatedSchedule) -> str:
    because = schedule.blocks_next_run
    if because is None:
        return "<no>"
    return f"not yet; the next run would be blocked by {because.reason}: {because.message}"


def dialect_of(schedule: EvaluatedSchedule) -> str:
    """Return by whose rules the expression is read."""
    server = schedule.view.server
    if server.dialect is None:
        return "<unknown>: the version of Velero is unknown"
    if server.version == NOTED:
        return f"{server.dialect.value} ({NOTED})"
    return f"{server.dialect.value} ({f'Velero {server.version}' if server.version else 'by --velero-dialect'})"


def _last_backups(schedule: EvaluatedSchedule) -> str:
    ours = [row for row in schedule.view.backups if row.is_of(schedule.schedule)]
    if not ours:
        return "Last Backups:  <none>"
    newest = sorted(ours, key=lambda row: (row.created, row.key), reverse=True)[:_SHOWN]
    rows = [(f"  {row.key.name}", row.phase or "New", _slot(row), go_time(row.created), _end(row)) for row in newest]
    return "Last Backups:\n" + table(("  NAME", "PHASE", "SLOT", "CREATED", "ENDED"), rows)


def _slot(row: BackupRow) -> str:
    return go_time(row.slot) if row.slot else "<by hand>"


def _end(row: BackupRow) -> str:
    if row.completed:
        return go_time(row.completed)
    return "<n/a>" if row.is_terminal else "<not yet>"
