"""What the doctor says about Schedules: who runs them, which never run, and which miss their objective."""

from collections.abc import Iterator
from datetime import datetime

from foresail.api.marks import SCHEDULES_LEASE
from foresail.api.monitoring import UNATTENDED
from foresail.cli.doctor.evidence import Evidence
from foresail.cli.doctor.finding import Finding, good, problem, warning
from foresail.cli.doctor.running import why_down
from foresail.cli.output.words import compact
from foresail.cli.schedule.lifetimes import LONGER, expires_first, short_life_of
from foresail.reporting import Because, some
from foresail.schedules.expression import parse_expression
from foresail.schedules.observe import ScheduleView, Unread, location_of, location_row
from foresail.schedules.policies import settings_under
from foresail.schedules.rules import cannot_run, judge
from foresail.schedules.settings import Settings
from foresail.schedules.velero_server import identify_server
from foresail.slots.interval import longest_gap
from foresail.slots.policy_timing import policy_for, policy_row, rpo_of

_PILE_UP = 20  # Schedules that start in one minute


def attended(seen: Evidence) -> Iterator[Finding]:
    """Report whether exactly one controller runs the Schedules."""
    if not seen.servers:
        yield from _unrecognised(seen)
        return
    holder = seen.holder(seen.lease)
    by_velero = any(row.has_schedule_controller for row in seen.servers)
    by_us = any(operator.schedules for operator in seen.operators) or (bool(holder) and not seen.operators)
    if by_velero and by_us:
        fix = f"add --disable-controllers=schedule to the arguments of Deployment {seen.servers[0].key}"
        yield problem("schedules", "Velero's own schedule controller is on, so the operator fires nothing", fix)
    elif by_velero:
        yield good("schedules", "Velero's own schedule controller runs them")
        if seen.has_alert:
            says = "the alert ForesailSchedulesUnattended was left behind and fires although Velero runs them"
            yield warning("schedules", says, f"kubectl delete prometheusrule {UNATTENDED} -n {seen.namespace}")
    elif not holder:
        yield _unattended(seen)
    elif not by_us:
        fix = "start the operator with --schedules=true, or turn Velero's controller on"
        yield problem("schedules", "nothing runs them: both Velero's controller and the operator's are off", fix)
    else:
        yield good("schedules", f"{holder} runs them")


def _unattended(seen: Evidence) -> Finding:
    """Return that neither Velero nor a replica of the operator runs the Schedules."""
    start = f"start the operator (kubectl get pods -l app.kubernetes.io/name={SCHEDULES_LEASE} -A)"
    fix = (
        f"{start if seen.operators else 'install the operator (foresail install)'}, or give them back"
        f" to Velero: remove --disable-controllers=schedule from Deployment {seen.servers[0].key}"
    )
    count = len(seen.schedules)
    those = f"the {count} Schedules" if count else "new Schedules"
    if count == 1:
        those = "the only Schedule"
    why = next((why_down(seen, operator) for operator in seen.operators if operator.schedules), "")
    return problem("schedules", f"nothing runs {those}: Velero's controller and the operator are off{why}", fix)


def _unrecognised(seen: Evidence) -> Iterator[Finding]:
    """Report an operator that fires nothing, because it recognises no Velero server."""
    by_us = [operator for operator in seen.operators if operator.schedules]
    if seen.has_read_deployments and by_us and not any(operator.velero_schedules_off for operator in by_us):
        says = "no Velero server is recognised, so the operator cannot know that Velero's schedule controller is off"
        value = "in the chart, schedules.veleroSchedulesOff"
        fix = f"if it is off, add --velero-schedules-off to Deployment {by_us[0].key} ({value})"
        yield problem("schedules", f"{says}, and fires nothing unless a pod shows it", fix)


def runnable(seen: Evidence) -> Iterator[Finding]:
    """Report the Schedules that never run until someone corrects them."""
    now = seen.server_time or seen.instant
    reasons: dict[str, list[tuple[str, str]]] = {}
    minutes_of_starts: dict[datetime, list[str]] = {}
    for name, row in sorted(seen.schedules.items()):
        if isinstance(row, Unread):
            fix = f"correct that field: kubectl edit schedule.velero.io {name} -n {seen.namespace}"
            yield problem("schedules", f"Schedule {name} cannot be read: {row.problem}", fix)
    for name, view in _views(seen):
        verdict = judge(view, now)
        because = cannot_run(view, verdict)
        if verdict.starts is not None:
            minutes_of_starts.setdefault(verdict.starts.replace(second=0), []).append(name)
        if because is not None:
            reasons.setdefault(because.reason.value, []).append((name, because.message))
    for reason, cases in reasons.items():
        name, message = cases[0]
        says = f"{some([name for name, _ in cases])} can never run ({reason}): {message}"
        yield problem("schedules", says, f"foresail schedule explain {name} -n {seen.namespace}")
    yield from _piled_up(minutes_of_starts)


def _views(seen: Evidence) -> Iterator[tuple[str, ScheduleView]]:
    """Yield the Schedules that can be read, each with the policy and the location that apply to it."""
    known = identify_server(seen.servers, "", None)
    places = [location_row(location) for location in seen.locations]
    policies = [policy_row(schedule_policy) for schedule_policy in seen.schedule_policies]
    for name, row in sorted(seen.schedules.items()):
        if not isinstance(row, Unread):
            policy = policy_for(name, row.labels, policies)
            settings = settings_under(policy, Settings())
            yield name, ScheduleView(row, (), location_of(row.location, places), known, settings, policy=policy)


def _piled_up(starts: dict[datetime, list[str]]) -> Iterator[Finding]:
    """Report the minute in which most Schedules start next, if they are many."""
    at, names = max(starts.items(), key=lambda item: (len(item[1]), -item[0].timestamp()), default=(None, []))
    if at is None or len(names) < _PILE_UP:
        return
    says = f"{len(names)} Schedules start in the same minute, {at:%Y-%m-%d %H:%M} UTC: {some(names)}"
    fix = "set spread in a SchedulePolicy, or choose other minutes: foresail schedule spread"
    yield warning("schedules", says, fix)


def lifetimes(seen: Evidence) -> Iterator[Finding]:
    """Report the Schedules whose Backups do not live until the next run."""
    now = seen.server_time or seen.instant
    short = []
    for name, view in _views(seen):
        life = short_life_of(view, now) if not view.schedule.paused else None
        if life is not None:
            short.append((name, expires_first(life)))
    if short:
        says = f"{some([name for name, _ in short])}: {short[0][1]}"
        yield warning("lifetimes", says, LONGER)


def objectives(seen: Evidence) -> Iterator[Finding]:
    """Report the Schedules whose runs are further apart than their objective allows."""
    now = seen.server_time or seen.instant
    missed = []
    for name, view in _views(seen):
        rpo = rpo_of(view.policy)
        if rpo is None:
            continue
        cron = parse_expression(view.schedule.text, view.settings.zone, view.server.dialect, now)
        gap = longest_gap(cron, now) if not isinstance(cron, Because) else None
        if gap is not None and gap > rpo:
            missed.append((name, f"runs are up to {compact(gap)} apart, and the objective is {compact(rpo)}"))
    if missed:
        says = f"{some([name for name, _ in missed])} cannot meet the objective: {missed[0][1]}"
        yield warning("objectives", says, "run them more often, or raise objective.rpo of their SchedulePolicy")
