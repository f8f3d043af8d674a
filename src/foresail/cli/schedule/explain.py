"""`foresail schedule explain`: the rules in order, and the first that blocks."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from foresail.api.instants import stamp
from foresail.api.velero import SCHEDULE
from foresail.cli.access.cluster import Cluster, on_cluster
from foresail.cli.access.refused_writes import RefusedWrite, refused_writes
from foresail.cli.output.objects import document
from foresail.cli.output.rule_chain import LATER, NO, NOT_CHECKED, STOPS, WAITS, YES, Step, lines
from foresail.cli.output.words import in_words, moment, runs
from foresail.cli.schedule.get import dialect_of
from foresail.cli.schedule.hints import velero_down, waits_because
from foresail.cli.schedule.snapshot import EvaluatedSchedule, read_selected
from foresail.kube.failures import WRITE_REFUSED
from foresail.proof.reasons import Reason as Gap
from foresail.reporting import Because
from foresail.schedules.observe import Turn
from foresail.schedules.reasons import Reason
from foresail.schedules.retries import Attempts
from foresail.schedules.rules import BLOCKERS, concurrency_limit, skip_not_applied, velero_schedules

_BLOCKED: dict[str, str] = {Gap.VELERO_NOT_READY: "Velero does not run", Gap.NOBODY_RUNS: "nothing runs it"}
_QUESTIONS = {
    "velero_schedules": "Velero's own schedule controller is off",
    "hooks_not_allowed": "the chart allows its hooks, or it has none",
    "busy": "no Backup of it runs",
    "outside_window": "it is inside the windows of its policy",
    "location_unavailable": "its storage location is available",
}


def explain(args: argparse.Namespace) -> int:
    """Print the chain of rules for each selected Schedule."""
    evaluated, instant = read_selected(args)
    if any(schedule.verdict.due for schedule in evaluated):  # a run that is due and not there may have been refused
        evaluated = on_cluster(args, lambda cluster: _with_refusals(cluster, evaluated, instant))
    if args.output != "table":
        print(document([as_data(schedule, instant) for schedule in evaluated], args.output))
    elif evaluated:
        print("\n\n".join(explained(schedule, instant) for schedule in evaluated))
    return 0


async def _with_refusals(
    cluster: Cluster, evaluated: list[EvaluatedSchedule], instant: datetime
) -> list[EvaluatedSchedule]:
    namespaces = {schedule.schedule.key.namespace for schedule in evaluated if schedule.verdict.due}
    refused: dict[str, RefusedWrite] = {}
    for namespace in namespaces:
        refused |= await refused_writes(cluster, SCHEDULE, namespace, instant)
    return [
        replace(schedule, refused=refused.get(schedule.schedule.uid)) if schedule.verdict.due else schedule
        for schedule in evaluated
    ]


def explained(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return the chain as lines, with an arrow before the rule that holds the Schedule back."""
    steps = chain_of(schedule, instant)
    return "\n".join([f"Schedule {schedule.schedule.key}: {summary(schedule, instant)}", *lines(steps)])


def summary(schedule: EvaluatedSchedule, instant: datetime) -> str:
    """Return in a sentence what becomes of it."""
    because = waits_because(schedule, instant)
    verdict = schedule.verdict
    if schedule.refused is not None and schedule.blocked_by is None:
        return f"blocked: {in_words(WRITE_REFUSED)}"
    if because is not None and because[0] == Gap.RUNNER_UNKNOWN:
        return f"unknown whether it runs: {because[1]}"
    if because is not None:
        return f"blocked: {_BLOCKED.get(because[0]) or in_words(because[0])}"
    if verdict.due is not None:
        idle = "" if schedule.operator else ", and Foresail's operator does not run"
        return f"the run of {stamp(verdict.due)} is due now{idle}"
    return f"the next run is at {moment(verdict.starts, instant)}" if verdict.starts else "no run is planned"


def chain_of(schedule: EvaluatedSchedule, instant: datetime) -> list[Step]:
    """Return every rule with its answer; after the first no, rules answer for what would be."""
    steps = list(_steps(schedule, instant))
    first = next((place for place, step in enumerate(steps) if step.answer in STOPS), len(steps))
    return [
        step if place <= first or step.answer not in STOPS else Step(step.rule, LATER, step.because)
        for place, step in enumerate(steps)
    ]


def _steps(evaluated: EvaluatedSchedule, instant: datetime) -> Iterator[Step]:
    schedule = evaluated.schedule
    verdict = evaluated.verdict
    yield Step("it is not being deleted", NO if schedule.is_terminating else YES)
    yield from _read_steps(evaluated)
    since = f"since {evaluated.paused_since}" if schedule.paused and evaluated.paused_since else ""
    yield Step("it is not paused", NO if schedule.paused else YES, since)
    yield Step("nothing is skipped", YES, _skip(evaluated))
    yield _due(evaluated, instant)
    if verdict.attempts is not None:
        yield _attempts(verdict.attempts, instant)
    down = velero_down(evaluated)
    yield Step("a pod of Velero runs", NO if down else YES, down)
    is_veleros = not evaluated.operator and evaluated.blocked_by is None  # whose controller fires it then, if it is on
    for blocker in BLOCKERS:
        if blocker is velero_schedules and is_veleros:
            continue
        yield _step(_QUESTIONS[blocker.__name__], blocker(evaluated.view, instant))
    group = evaluated.view.group
    if group is not None:
        full = concurrency_limit(evaluated.view, verdict.turn or Turn(verdict.starts or instant, instant))
        running = f"{len(group.unfinished)} of {group.most} in {group.name}"
        yield _step("its group has room for a Backup", full, running)
    yield _runner(evaluated)
    if evaluated.refused is not None:
        yield Step("the API server accepts its writes", NO, str(evaluated.refused))


def _runner(evaluated: EvaluatedSchedule) -> Step:
    """Return whether the operator fires it, or Velero's own controller in its place."""
    if evaluated.operator:
        return Step("Foresail's operator runs", YES, evaluated.operator)
    if evaluated.view.server.is_recognised and evaluated.view.server.runs_schedules:
        return Step("Velero's schedule controller runs it", YES, "no replica of Foresail's operator holds its Lease")
    return Step("Foresail's operator runs", NO, "no replica holds its Lease")


def _step(rule: str, problem: Because | None, detail: str = "") -> Step:
    """Return a rule that a problem answers with no; the detail is for a yes."""
    return Step(rule, NO, problem.message) if problem is not None else Step(rule, YES, detail)


def _read_steps(evaluated: EvaluatedSchedule) -> Iterator[Step]:
    """Yield whether the name, the dialect and the expression can be used."""
    refused = evaluated.verdict.refused
    blocked_by = evaluated.verdict.blocked_by
    too_long = refused if refused is not None and refused.reason is Reason.NAME_TOO_LONG else None
    yield _step("its name fits in a label", too_long)
    unknown = blocked_by if blocked_by is not None and blocked_by.reason is Reason.DIALECT_UNKNOWN else None
    yield _step("Velero's cron dialect is known", unknown, dialect_of(evaluated))
    rule = "its expression is valid and fires"
    text = repr(evaluated.schedule.text)
    if too_long is not None or unknown is not None:
        yield Step(rule, NOT_CHECKED, text)
    else:
        yield _step(rule, refused, text)


def _due(schedule: EvaluatedSchedule, instant: datetime) -> Step:
    verdict = schedule.verdict
    rule = "a run is due"
    base = f"counted from {stamp(verdict.base)}"
    if verdict.due is not None:
        missed = f"; {runs(verdict.missed)} before it will not run" if verdict.missed else ""
        since = moved(verdict.due, verdict.due_since)
        return Step(rule, YES, f"{moment(verdict.due, instant)}{since}, {base}{missed}")
    if verdict.starts is not None:
        since = moved(verdict.upcoming, verdict.starts)
        return Step(rule, WAITS, f"not before {moment(verdict.starts, instant)}{since}, {base}")
    return Step(rule, NOT_CHECKED)


def _attempts(attempts: Attempts, instant: datetime) -> Step:
    if attempts.ended is not None:
        because = attempts.ended.message
    elif attempts.next_at is not None:
        because = f"Backup {attempts.last.key.name} is {attempts.last.phase}; the next attempt is at"
        because = f"{because} {moment(attempts.next_at, instant)}"
    else:
        because = f"Backup {attempts.last.key.name} is {attempts.last.phase or 'New'}"
    return Step("a failed run is repeated", YES, f"{attempts.shown} attempts made at {stamp(attempts.slot)}; {because}")


def moved(slot: datetime | None, starts: datetime | None) -> str:
    """Return where a policy moved a slot; empty if it did not."""
    if slot is None or starts is None or slot == starts:
        return ""
    return f" (slot {stamp(slot)}, moved by its policy to {stamp(starts)})"


def _skip(evaluated_schedule: EvaluatedSchedule) -> str:
    schedule = evaluated_schedule.schedule
    field = "unset" if schedule.skip is None else str(schedule.skip).lower()
    applied = "; it is applied now, and earlier runs are skipped" if evaluated_schedule.verdict.skipped else ""
    if evaluated_schedule.verdict.changes.observed.ignored:
        applied = f"; {skip_not_applied().message}"
    last = f"; last skipped {stamp(schedule.last_skipped)}" if schedule.last_skipped else ""
    return f"skipImmediately is {field}{applied}{last}"


def as_data(schedule: EvaluatedSchedule, instant: datetime) -> dict[str, Any]:
    """Return the chain and what follows from it, for programs."""
    verdict = schedule.verdict
    because = schedule.blocked_by
    blocks = schedule.blocks_next_run
    shown = because or schedule.refused
    refused = WRITE_REFUSED if schedule.refused else None
    return {
        "namespace": schedule.schedule.key.namespace,
        "name": schedule.schedule.key.name,
        "nextRun": stamp(verdict.next_run) if verdict.next_run else None,
        "due": verdict.due is not None,
        "missed": verdict.missed,
        "attempts": _as_attempts(verdict.attempts),
        "reason": because.reason.value if because else refused,
        "message": shown.message if shown else None,
        "nextRunBlockedBy": {"reason": blocks.reason.value, "message": blocks.message} if blocks else None,
        "rules": [_as_rule(step) for step in chain_of(schedule, instant)],
    }


def _as_attempts(attempts: Attempts | None) -> dict[str, Any] | None:
    if attempts is None:
        return None
    return {
        "slot": stamp(attempts.slot),
        "made": attempts.made,
        "allowed": attempts.allowed,
        "next": stamp(attempts.next_at) if attempts.next_at else None,
        "endedBecause": attempts.ended.message if attempts.ended else None,
    }


def _as_rule(step: Step) -> dict[str, Any]:
    return {"rule": step.rule, "answer": step.answer, "because": step.because}
