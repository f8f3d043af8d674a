"""`foresail backup schedule explain`: the rules in the order in which they are asked, and the first that blocks."""

import argparse
from collections.abc import Iterator, Mapping
from dataclasses import replace
from datetime import datetime
from typing import Any

from foresail.api.nonadmin import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster, on_namespace
from foresail.cli.access.refused_writes import refused_writes
from foresail.cli.output.objects import document
from foresail.cli.output.rule_chain import NO, NOT_CHECKED, STOPS, WAITS, YES, Step, lines
from foresail.cli.output.words import in_words, moment
from foresail.cli.tenant.advice import LOCATION_DOWN, NOBODY_RUNS, STALLED, Advice, advice_for, sentence
from foresail.cli.tenant.schedule.snapshot import SCHEDULES, TenantSchedule, stopped_by, with_stalled
from foresail.kube.clock import now
from foresail.kube.failures import WRITE_REFUSED
from foresail.proof.reasons import Reason as Gap
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.rows.schedules import ScheduleStatus
from foresail.selfservice.schedules.rules import DIALECT
from foresail.selfservice.schedules.status import READY
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.skip_immediately import skip_not_applied_text

_STOPPED: Mapping[Gap, str] = {
    Gap.NOBODY_RUNS: "no operator runs it",
    Gap.VELERO_NOT_READY: "Velero starts nothing now",
    Gap.LOCATION_UNAVAILABLE: "its storage location is not available",
}
_RULES: Mapping[Gap, str] = {
    Gap.NOBODY_RUNS: "an operator runs it",
    Gap.LOCATION_UNAVAILABLE: "its storage location is available",
}
_ADVICE: Mapping[Gap, Advice] = {
    Gap.NOBODY_RUNS: NOBODY_RUNS,
    Gap.VELERO_NOT_READY: STALLED,
    Gap.LOCATION_UNAVAILABLE: LOCATION_DOWN,
}


def explain(args: argparse.Namespace) -> int:
    """Print the chain of rules for each selected schedule."""
    schedules = on_namespace(args, lambda cluster: _read(cluster, args))
    instant = now()
    if args.output != "table":
        print(document([as_data(schedule, instant) for schedule in schedules], args.output))
    elif schedules:
        print("\n\n".join(explained(schedule, instant) for schedule in schedules))
    return 0


async def _read(cluster: Cluster, args: argparse.Namespace) -> list[TenantSchedule]:
    schedules = await with_stalled(cluster, args)
    refused = await refused_writes(cluster, NON_ADMIN_SCHEDULE, args.namespace, now()) if schedules else {}
    return [replace(schedule, refused=refused.get(schedule.row.uid)) for schedule in schedules]


def explained(schedule: TenantSchedule, instant: datetime) -> str:
    """Return the chain as lines, with an arrow before the rule that blocks, and the next step below."""
    first = f"{NON_ADMIN_SCHEDULE.name} {schedule.key}: {summary(schedule, instant)}"
    return "\n".join([first, *lines(steps_of(schedule, instant)), f"Next: {advised(schedule, instant)}"])


def summary(schedule: TenantSchedule, instant: datetime) -> str:
    """Return in a sentence what becomes of it."""
    reason = reason_of(schedule)
    if schedule.refused is not None or schedule.blocking is not None:
        return f"blocked: {in_words(reason)}"
    stopped = stopped_by(schedule, instant)
    if stopped is not None:
        return f"blocked: {_STOPPED[stopped[0]]}"
    return f"the next run is at {moment(schedule.next_run, instant)}" if schedule.next_run else "no run is planned"


def reason_of(schedule: TenantSchedule) -> str:
    """Return the reason that counts now; empty if the operator has given none."""
    if schedule.refused is not None:
        return WRITE_REFUSED
    ready = schedule.blocking or schedule.row.status.condition(READY)
    return ready.reason if ready is not None else ""


def advised(schedule: TenantSchedule, instant: datetime) -> str:
    """Return the cause and the next step."""
    stopped = stopped_by(schedule, instant)
    if schedule.refused is None and stopped is not None:
        return sentence(_ADVICE[stopped[0]], SCHEDULES, schedule.key)
    return sentence(advice_for(reason_of(schedule)), SCHEDULES, schedule.key)


def steps_of(schedule: TenantSchedule, instant: datetime) -> list[Step]:
    """Return every rule with its answer; none is asked after the first that blocks."""
    steps: list[Step] = []
    for step in _steps(schedule, instant):
        is_blocked = bool(steps) and steps[-1].answer in (*STOPS, NOT_CHECKED)
        steps.append(Step(step.rule, NOT_CHECKED) if is_blocked else step)
    return steps


def _steps(schedule: TenantSchedule, instant: datetime) -> Iterator[Step]:
    row = schedule.row
    ready = schedule.row.status.condition(READY)
    yield Step("it is not being deleted", NO if row.is_terminating else YES)
    cron = read_expression(row.text, schedule.zone, DIALECT)
    is_unusable = isinstance(cron, Unusable)
    text = cron.message if isinstance(cron, Unusable) else repr(row.text)
    yield Step("its expression is valid and fires", NO if is_unusable else YES, text)
    if schedule.refused is not None:
        yield Step("the API server accepts its writes", NO, str(schedule.refused))
    yield Step("the operator has processed it", YES if row.phase else WAITS)
    yield _allowed(row.status)
    yield Step("it is not paused", NO if row.paused else YES)
    yield _nothing_skipped(row.status)
    blocked = ready if ready is not None and ready.status == FALSE else None
    yield Step("no run that is due is blocked", NO if blocked else YES, blocked.message if blocked else "")
    stopped = stopped_by(schedule, instant)
    if stopped is not None and stopped[0] in _RULES:
        yield Step(_RULES[stopped[0]], NO, stopped[1])
    planned = moment(schedule.next_run, instant) if schedule.next_run else ""
    yield Step("the next run is planned", YES if schedule.next_run else WAITS, planned)
    yield _started(schedule)


def _started(schedule: TenantSchedule) -> Step:
    rule, stalled = "Velero starts backups", schedule.stalled
    if stalled.velero:
        return Step(rule, NO, stalled.velero)
    return Step(rule, NOT_CHECKED, f"unknown is {stalled.unknown}") if stalled.unknown else Step(rule, YES)


def _allowed(status: ScheduleStatus) -> Step:
    rule = "the policy of the namespace allows it"
    accepted = status.condition(ACCEPTED)
    if accepted is None:
        return Step(rule, WAITS)
    return Step(rule, NO if accepted.status == FALSE else YES, accepted.message)


def _nothing_skipped(status: ScheduleStatus) -> Step:
    observed = status.observed
    skipped = f"last skipped at {status.last_skipped}" if status.last_skipped else ""
    is_ignored = observed is not None and observed.ignored
    return Step("nothing is skipped", YES, skip_not_applied_text(NON_ADMIN_SCHEDULE.name) if is_ignored else skipped)


def as_data(schedule: TenantSchedule, instant: datetime) -> dict[str, Any]:
    """Return the steps and the next step as data."""
    shown = schedule.refused or schedule.blocking
    return {
        "namespace": schedule.key.namespace,
        "name": schedule.key.name,
        "phase": schedule.row.phase or "New",
        "nextRun": schedule.row.status.next_run or None,
        "reason": reason_of(schedule) or None,
        "message": shown.message if shown else None,
        "next": advised(schedule, instant),
        "steps": [
            {"step": step.rule, "answer": step.answer, "because": step.because} for step in steps_of(schedule, instant)
        ],
    }
