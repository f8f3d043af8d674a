"""`foresail backup schedule explain`: the rules in the order in which they are asked, and the first that blocks."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from datetime import datetime
from typing import Any

from foresail.api.requests import NON_ADMIN_SCHEDULE
from foresail.cli.access.cluster import Cluster
from foresail.cli.access.refused_writes import refused_writes
from foresail.cli.output.objects import document
from foresail.cli.output.rule_chain import NO, NOT_CHECKED, STOPS, WAITS, YES, Step, lines
from foresail.cli.output.times import moment
from foresail.cli.output.words import in_words
from foresail.cli.tenant.advice import advice_for, sentence
from foresail.cli.tenant.schedule.snapshot import SCHEDULES, TenantSchedule, in_namespace, selected_schedules
from foresail.kube.clock import now
from foresail.kube.refusals import WRITE_REFUSED
from foresail.selfservice.requests.status import ACCEPTED, FALSE
from foresail.selfservice.rows.schedules import ScheduleStatus
from foresail.selfservice.schedules.rules import DIALECT
from foresail.selfservice.schedules.status import READY
from foresail.slots.expression import Unusable, read_expression
from foresail.slots.rules import skip_not_applied_text


def explain(args: argparse.Namespace) -> int:
    """Print the chain of rules for each selected schedule."""
    found, instant = in_namespace(args, lambda cluster: _read(cluster, args)), now()
    if args.output != "table":
        print(document([as_data(each, instant) for each in found], args.output))
    elif found:
        print("\n\n".join(explained(each, instant) for each in found))
    return 0


async def _read(cluster: Cluster, args: argparse.Namespace) -> list[TenantSchedule]:
    found = await selected_schedules(cluster, args)
    refused = await refused_writes(cluster, NON_ADMIN_SCHEDULE, args.namespace, now()) if found else {}
    return [replace(each, refused=refused.get(each.row.uid)) for each in found]


def explained(each: TenantSchedule, instant: datetime) -> str:
    """Return the chain as lines, with an arrow before the rule that blocks, and the next step below."""
    first = f"{NON_ADMIN_SCHEDULE.name} {each.key}: {summary(each, instant)}"
    return "\n".join([first, *lines(steps_of(each, instant)), f"Next: {advised(each)}"])


def summary(each: TenantSchedule, instant: datetime) -> str:
    """Return in a sentence what becomes of it."""
    reason = reason_of(each)
    if each.refused is not None or each.blocking is not None:
        return f"blocked: {in_words(reason)}"
    return f"the next run is at {moment(each.next_run, instant)}" if each.next_run else "no run is planned"


def reason_of(each: TenantSchedule) -> str:
    """Return the reason that counts now; empty if the operator has given none."""
    if each.refused is not None:
        return WRITE_REFUSED
    ready = each.blocking or each.row.status.condition(READY)
    return ready.reason if ready is not None else ""


def advised(each: TenantSchedule) -> str:
    """Return the cause and the next step."""
    return sentence(advice_for(reason_of(each)), SCHEDULES, each.key)


def steps_of(each: TenantSchedule, instant: datetime) -> list[Step]:
    """Return every rule with its answer; none is asked after the first that blocks."""
    found: list[Step] = []
    for step in _steps(each, instant):
        is_blocked = bool(found) and found[-1].answer in (*STOPS, NOT_CHECKED)
        found.append(Step(step.rule, NOT_CHECKED) if is_blocked else step)
    return found


def _steps(each: TenantSchedule, instant: datetime) -> Iterator[Step]:
    row, ready = each.row, each.row.status.condition(READY)
    yield Step("it is not being deleted", NO if row.is_terminating else YES)
    cron = read_expression(row.text, each.zone, DIALECT)
    is_unusable = isinstance(cron, Unusable)
    text = cron.message if isinstance(cron, Unusable) else repr(row.text)
    yield Step("its expression is valid and fires", NO if is_unusable else YES, text)
    if each.refused is not None:
        yield Step("the API server accepts its writes", NO, str(each.refused))
    yield Step("the operator has processed it", YES if row.phase else WAITS)
    yield _allowed(row.status)
    yield Step("it is not paused", NO if row.paused else YES)
    yield _nothing_skipped(row.status)
    blocked = ready if ready is not None and ready.status == FALSE else None
    yield Step("no run that is due is blocked", NO if blocked else YES, blocked.message if blocked else "")
    planned = moment(each.next_run, instant) if each.next_run else ""
    yield Step("the next run is planned", YES if each.next_run else WAITS, planned)


def _allowed(status: ScheduleStatus) -> Step:
    rule, accepted = "the policy of the namespace allows it", status.condition(ACCEPTED)
    if accepted is None:
        return Step(rule, WAITS)
    return Step(rule, NO if accepted.status == FALSE else YES, accepted.message)


def _nothing_skipped(status: ScheduleStatus) -> Step:
    observed = status.observed
    skipped = f"last skipped at {status.last_skipped}" if status.last_skipped else ""
    is_ignored = observed is not None and observed.ignored
    return Step("nothing is skipped", YES, skip_not_applied_text(NON_ADMIN_SCHEDULE.name) if is_ignored else skipped)


def as_data(each: TenantSchedule, instant: datetime) -> dict[str, Any]:
    """Return the steps and the next step as data."""
    blocking = each.blocking
    return {
        "namespace": each.key.namespace,
        "name": each.key.name,
        "phase": each.row.phase or "New",
        "nextRun": each.row.status.next_run or None,
        "reason": reason_of(each) or None,
        "message": each.refused.message if each.refused else blocking.message if blocking else None,
        "next": advised(each),
        "steps": [
            {"step": step.rule, "answer": step.answer, "because": step.because} for step in steps_of(each, instant)
        ],
    }
