"""The pages of the console: pure functions from what was read to HTML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from typing import Any

from foresail.api.velero import RESTORABLE
from foresail.cli.access.self_service import enabling_command, instead, not_enabled
from foresail.cli.check.checks import CheckCells, facts, problems
from foresail.cli.doctor.finding import Finding, Grade
from foresail.cli.doctor.visit import summary as findings_summary
from foresail.cli.output.rule_chain import NO, NOT_CHECKED, STOPS, YES
from foresail.cli.output.words import Transfer, moment, short, transfer_text
from foresail.cli.policy.usage import Usage, in_order
from foresail.cli.tenant.advice import capital
from foresail.cli.tenant.explain import advised, steps_of, summary
from foresail.cli.tenant.get import until, why
from foresail.cli.tenant.schedule.get import short_cells as own_schedule_cells
from foresail.cli.tenant.schedule.snapshot import TenantSchedule
from foresail.cli.tenant.tenant_request import INCOMPLETE, TenantRequest
from foresail.console.home_pages import home, line_of, verdict_of
from foresail.console.layout import Search, Site, act, button, cut, searched, shell
from foresail.console.live import digest
from foresail.console.read import OwnNamespace
from foresail.console.report.figures import Figures
from foresail.console.report.page import (
    CHECKS,
    COVERAGE,
    calendar_section,
    check_cells,
    check_title,
    coverage_cells,
    failed_section,
)
from foresail.console.report.worth import Worth, worths_of
from foresail.console.restore_pages import CONTENTS, LOG
from foresail.console.running import elapsed
from foresail.console.timeline import Window
from foresail.console.web.markup import Child, Html, element
from foresail.console.web.parts import badge, command, data_table, section, words
from foresail.plan import Key
from foresail.selfservice.families import BACKUPS, RESTORES

_HEADER = ("name", "namespace", "result", "reason", "backup", "found", "seconds", "checked", "passed", "status", "act")
_RUNS = ("started", "result", "seconds", "duration", "backup", "reason")
_CHECK_MOODS = {"Pass": "good", "Fail": "bad"}

Check = Mapping[str, Any]


def checks(site: Site, places: Sequence[str], pairs: Sequence[CheckCells], search: Search) -> Html:
    """Return each RestoreCheck of some namespaces with its last result, searched and paged; an empty one means all."""

    def cells(place: int) -> tuple[Child, ...]:
        key, (_, result, *rest) = pairs[place]
        link = element("a", cut(key.name), href=site.link(*check_path(key)))
        is_offered = "run-checks" in site.offered
        run = act(site, "Run", *check_path(key), "run", about=key.name) if is_offered else None
        return link, cut(key.namespace), badge(cut(result), _CHECK_MOODS.get(result, "")), *map(cut, rest), run

    table = searched(site, "checks", "Restore checks", _HEADER, [str(key) for key, _ in pairs], cells, search)
    where = f"-n {places[0]}" if places[0] else "-A"
    return shell(site, "Checks", f"foresail check get {where}", section("checks", "Restore checks", table))


def check_path(key: Key) -> tuple[str, ...]:
    """Return the path of the page of a RestoreCheck."""
    return "ns", key.namespace, "check", key.name


def check(
    site: Site, key: Key, shown: Check, record: Check, history: Sequence[Check], *, may_run: bool = False
) -> Html:
    """Return one RestoreCheck: its last result, every problem, and the runs whose evidence is kept."""
    name = key.name
    namespace = key.namespace
    listed = [(cut(reason), cut(message)) for reason, message in problems(shown, record)]
    evidence = element("a", "Download the evidence", href=site.link(*check_path(key), "evidence.json"))
    longest = max((_seconds(item) for item in history), default=0)
    runs = [_run(item, longest) for item in history]
    return shell(
        site,
        f"RestoreCheck {name}",
        f"foresail check explain {name} -n {namespace}",
        element("p", "In ", element("a", namespace, href=site.link("ns", namespace)), "."),
        element("p", act(site, "Run the check", *check_path(key), "run")) if may_run else None,
        section("facts", "Last result", data_table("Last result", ("what", "value"), _cut(facts(shown)), "")),
        section("problems", "Problems", data_table("Problems", ("reason", "message"), listed, "No problem.")),
        section(
            "runs",
            "Runs",
            data_table(
                "Runs", _RUNS, runs, "No evidence is kept, or you may not list ConfigMaps in Velero's namespace."
            ),
            element("p", evidence) if record else None,
        ),
    )


def _cut(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, cut(value)) for name, value in pairs]


def _run(record: Check, longest: int) -> tuple[Child, ...]:
    result = cut(str(record.get("result", "-")))
    seconds = _seconds(record)
    bar = element("progress", max=max(longest, 1), value=seconds, aria_label=f"{seconds} seconds")
    texts = (cut(str(record.get(name, "-"))) for name in ("backup", "reason"))
    started = cut(str(record.get("started", "-")))
    return started, badge(result, _CHECK_MOODS.get(result, "")), str(seconds), words((bar,)), *texts


def _seconds(record: Check) -> int:
    seconds = record.get("restoreSeconds")
    return seconds if isinstance(seconds, int) and seconds >= 0 else 0


_SHOWN, _NEWEST = 25, 10
_ALL = Search()
_GRADES = {Grade.GOOD: "good", Grade.WARNING: "warn", Grade.PROBLEM: "bad"}
SCHEDULES = ("schedule", "cron", "last run", "next run", "waiting")
"""The columns of every table of schedules."""

_QUOTAS = ("backups", "active backups", "restores", "active restores")
_MOODS = {INCOMPLETE: "warn", "Failed": "bad", "PartiallyFailed": "bad", "FailedValidation": "bad"}


def overview(site: Site, figures: Figures, waiting: Sequence[TenantRequest], search: Search = _ALL) -> Html:
    """Return an administrator's first page: is everything safe, then what waits, failed and runs next."""
    return home(
        site,
        figures,
        waiting,
        search,
        gap_part(site, figures),
        waiting_section(site, waiting),
        failed_section(replace(figures, failed=figures.failed[:_SHOWN])),
        calendar_section(figures),
    )


def own_overview(site: Site, own: OwnNamespace, waiting: Sequence[TenantRequest], window: Window) -> Html:
    """Return a team's first page: am I safe, the time line, and what runs; then gaps, failures and the next runs."""
    figures = own.figures
    newest = sorted(
        (*own.backups, *own.restores), key=lambda request: str(request.velero.start_timestamp), reverse=True
    )
    ended = section("newest", "Newest", requests_table(site, "Newest", newest[:_NEWEST], figures.instant))
    return shell(
        site,
        "Overview",
        f"foresail report --html report.html -n {site.namespace}",
        verdict_of(site, site.namespace, own),
        line_of(site, ("",), own, window),
        waiting_section(site, waiting),
        gap_part(site, figures),
        ended if newest else None,
        failed_section(replace(figures, failed=figures.failed[:_SHOWN])),
        calendar_section(figures),
        live=site.link("live", seen=digest(waiting)),
    )


def gap_part(site: Site, figures: Figures) -> Html:
    """Return the gaps, each with the command that closes it or shows its cause."""
    found_gaps = figures.gaps
    gaps = [
        (
            namespace_link(site, open_gaps.namespace),
            words(badge(word, "bad") for word in dict.fromkeys(gap.reason.value for gap in open_gaps.gaps)),
            cut("; ".join(gap.message for gap in open_gaps.gaps)),
            command(cut(open_gaps.command)),
        )
        for open_gaps in found_gaps[:_SHOWN]
    ]
    more = len(found_gaps) - _SHOWN
    rest = element("a", f"{more} more in the list of namespaces", href=site.link("namespaces")) if more > 0 else None
    return section(
        "gaps", "Gaps", data_table("Gaps", ("namespace", "reason", "what", "command"), gaps, "No gaps found."), rest
    )


def waiting_section(site: Site, waiting: Sequence[TenantRequest]) -> Html:
    """Return what runs and what waits, in the order of the queue, and why."""
    rows = [
        (
            request_link(site, request),
            request.key.namespace,
            request.family.word,
            request.velero.phase or request.phase or "New",
            str(request.position) if request.position else "n/a",
            cut(why(request, in_full=True) or summary(request)),
        )
        for request in in_order(waiting)[:_SHOWN]
    ]
    more = len(waiting) - _SHOWN
    note = element("p", f"{more} more wait.", class_="note") if more > 0 else None
    header = ("name", "namespace", "kind", "status", "queue", "why")
    return section("waiting", "Waiting and running", data_table("Waiting", header, rows, "Nothing waits."), note)


def namespaces(site: Site, figures: Figures, search: Search) -> Html:
    """Return the coverage of each namespace, searched and paged."""
    names = [coverage.name for coverage in figures.namespaces]

    def cells(place: int) -> tuple[Child, ...]:
        coverage = figures.namespaces[place]
        return namespace_link(site, coverage.name), *coverage_cells(coverage, figures)

    table = searched(site, "namespaces", "Coverage by namespace", COVERAGE, names, cells, search)
    same = "foresail coverage -A -o wide" if site.is_administrator else f"foresail backup get -n {site.namespace}"
    return shell(site, "Namespaces", same, section("coverage", "Coverage", table))


def namespace(site: Site, name: str, own_namespace: OwnNamespace, now: datetime, window: Window) -> Html:
    """Return one namespace: its newest good copy, schedules, backups and restores, and what the viewer may do."""
    offered = _offered(name, own_namespace)
    gaps = [
        (badge(gap.reason.value, "bad"), cut(gap.message), command(cut(open_gaps.command)))
        for open_gaps in own_namespace.figures.gaps
        for gap in open_gaps.gaps
    ]
    earlier = element("p", f"{capital(own_namespace.earlier)}.", class_="note") if own_namespace.earlier else None
    return shell(
        site,
        f"Namespace {name}",
        f"foresail backup get -n {name}",
        verdict_of(site, name, own_namespace),
        line_of(site, ("ns", name), own_namespace, window),
        section("do", "Self-service is off", *offered) if offered else None,
        section("gaps", "Gaps", data_table("Gaps", ("reason", "what", "command"), gaps, "No gaps found.")),
        quota_section(own_namespace.usage) if own_namespace.usage is not None else None,
        section(
            "schedules",
            "Schedules",
            own_schedules(site, own_namespace.schedules, now, may_pause=own_namespace.may_pause),
        ),
        velero_section(site, name, own_namespace.figures),
        section("backups", "Backups", requests_table(site, "Backups", own_namespace.backups, now), earlier),
        section("restores", "Restores", requests_table(site, "Restores", own_namespace.restores, now)),
        checks_section(site, own_namespace.figures) if own_namespace.figures.checks is not None else None,
        live=site.link("live", "ns", name, seen=digest((*own_namespace.backups, *own_namespace.restores))),
    )


def velero_section(site: Site, name: str, figures: Figures) -> Html | None:
    """Return what administrators have of a namespace: its Schedules, and Backups with the command that restores one."""
    offered = act(site, "Create a Schedule", "ns", name, "new-schedule") if "schedule" in site.offered else None
    if not figures.velero and offered is None:
        return None
    worths = worths_of(figures)
    backups = [
        (
            cut(backup.name),
            *_status_and_why(backup.phase or "New", *worths.get(backup.name, (Worth.UNJUDGED, ""))),
            moment(backup.started, figures.instant) if backup.started else "n/a",
            command(f"foresail plan {backup.name} --include-namespaces {name} --restore")
            if backup.phase in RESTORABLE
            else None,
        )
        for backup in figures.velero
    ]
    header = ("name", "status", "why", "started", "plan and restore")
    schedules = velero_schedules(site, name, figures)
    return section(
        "velero",
        "Velero: Schedules and Backups of administrators",
        data_table("Velero Schedules", ("schedule", "next run", "do"), schedules, "No Schedule covers it."),
        element("p", offered) if offered is not None else None,
        data_table("Velero Backups", header, backups, "") if backups else None,
    )


def _status_and_why(phase: str, worth: Worth, why: str) -> tuple[Child, Child]:
    """Return the phase, which warns of a backup that lacks something, and what it lacks."""
    mood = _MOODS.get(phase) or ("warn" if worth is Worth.LACKING else "")
    return badge(cut(phase), mood), cut(why)


def velero_schedules(site: Site, name: str, figures: Figures) -> list[tuple[Child, ...]]:
    """Return a row for each Schedule of a namespace, with what the viewer may do with it."""
    titles = [title for coverage in figures.namespaces for title in coverage.schedules if "/" not in title]
    upcoming = {run.schedule: run.at for run in reversed(figures.upcoming)}
    at = {title: upcoming.get(str(Key(figures.velero_namespace, title))) for title in titles}
    doable = [(label, path) for right, label, path in _WITH_SCHEDULES if right in site.offered]
    return [
        (
            cut(title),
            moment(next_run, figures.instant) if next_run else "n/a",
            words(act(site, label, "ns", name, path, title, about=title) for label, path in doable),
        )
        for title, next_run in at.items()
    ]


_WITH_SCHEDULES = (("run", "Run now", "run"), ("change-schedules", "Change", "change-schedule"))
"""What can be done with a Schedule: by which right, in words, and on which page."""


def _offered(name: str, own_namespace: OwnNamespace) -> list[Child]:
    """Return what an administrator does for a namespace without self-service; the verdict has the other buttons."""
    if own_namespace.is_enabled is False:
        told = f"{not_enabled(name)}: its team cannot back up or restore. Schedules go on without. To enable it:"
        return [
            element("p", told, class_="note"),
            element("p", command(enabling_command(name))),
            element("p", "Or backs it up and restores it directly:", class_="note"),
            *(element("p", command(instead(family.kind, name))) for family in (BACKUPS, RESTORES)),
        ]
    return []


def checks_section(site: Site, figures: Figures) -> Html:
    """Return the last result of each RestoreCheck of a namespace, failed ones first."""
    checks = figures.checks or ()
    rows = [
        (
            element("a", check_title(check, figures), href=site.link(*check_path(Key(check.namespace, check.name)))),
            *check_cells(check, figures),
        )
        for check in checks[:_SHOWN]
    ]
    more = len(checks) - _SHOWN
    rest = element("p", f"{more} more are left out.", class_="note") if more > 0 else None
    return section("checks", "Restore checks", data_table("Restore checks", CHECKS, rows, "No RestoreCheck."), rest)


def quota_section(usage: Usage) -> Html:
    """Return how much of each quota a namespace uses, and which policy sets it."""
    free = "limit unknown" if usage.unknown else "no limit"
    rows = [
        (name, _quota(name, used, most, free))
        for name, (used, most) in zip(_QUOTAS, usage.shares.values(), strict=True)
    ]
    if usage.unknown:
        told = f"The limits are unknown: {cut(usage.unknown)}. A request beyond a limit waits and reports it."
    else:
        told = f"Set by SelfServicePolicy {usage.policy}." if usage.policy else "No SelfServicePolicy applies here."
    same = element("p", command(f"foresail policy usage -n {usage.namespace}"))
    table = data_table("Quotas", ("quota", "used"), rows, "")
    left_out = element("p", f"Not counted: {usage.left_out}.", class_="note")
    return section("quotas", "Quotas", element("p", told, class_="note"), table, left_out, same)


def _quota(name: str, used: int | None, most: int | None, free: str) -> Child:
    if used is None:
        return "use unknown" if most is None else f"use unknown, limit {most}"
    return progress_bar(used, most, f"{name} used") if most is not None else f"{used}, {free}"


def own_schedules(site: Site, schedules: Sequence[TenantSchedule], now: datetime, *, may_pause: bool) -> Html:
    """Return a tenant's schedules, each with a button that pauses or unpauses it."""
    rows: list[tuple[Child, ...]] = []
    for schedule in schedules[:_SHOWN]:
        verb = "Unpause" if schedule.row.paused else "Pause"
        path = site.link(*own_path(schedule.key), verb.lower())
        changes: list[Child] = []
        if may_pause:
            changes = [
                button(site, path, f"{verb} {schedule.key.name}", uid=schedule.row.uid),
                act(site, "Change", *own_path(schedule.key), "edit", about=schedule.key.name),
            ]
            observed = schedule.row.status.observed
            if observed is not None and observed.asks:
                changes.append(act(site, "See deletions", *own_path(schedule.key), "approve", about=schedule.key.name))
        paused = "yes" if schedule.row.paused else "no"
        rows.append((*map(cut, own_schedule_cells(schedule, now)), paused, words(changes)))
    return data_table("Schedules", (*SCHEDULES, "paused", "change"), rows, "No NonAdminSchedule.")


def own_path(key: Key) -> tuple[str, ...]:
    """Return the path of what can be done with a NonAdminSchedule."""
    return "ns", key.namespace, "schedule", key.name


def requests_table(site: Site, label: str, requests: Sequence[TenantRequest], now: datetime) -> Html:
    """Return backups or restores, the newest first."""
    rows = [
        (
            request_link(site, request),
            status_badge(request),
            until(request.velero.completion_timestamp, now),
            cut(why(request, in_full=True)),
        )
        for request in requests[:_SHOWN]
    ]
    return data_table(label, ("name", "status", "ended", "why"), rows, "None.")


def status_badge(request: TenantRequest) -> Html:
    """Return the phase with its colour."""
    phase = request.shown_phase
    return badge(cut(phase), _MOODS.get(phase, ""))


@dataclass(frozen=True, slots=True)
class Offered:
    """What the viewer may do with a backup or restore."""

    may_restore: bool
    may_download: bool
    may_roll_back: bool = False
    may_cancel: bool = False


@dataclass(frozen=True, slots=True)
class Pace:
    """How fast a request goes: bytes per second, if they were measured, and the last one of its like."""

    rate: float | None = None
    last: TenantRequest | None = None


_NO_PACE = Pace()


def detail(site: Site, request: TenantRequest, now: datetime, offers: Offered, pace: Pace = _NO_PACE) -> Html:
    """Return one backup or restore: how far it is, the chain of its steps, and what to do next."""
    velero = request.velero
    progress = velero.progress
    done = max(progress.items_backed_up, progress.items_restored) if progress else 0
    restores = site.link("ns", request.key.namespace, "restore", backup=request.key.name)
    place = ("ns", request.key.namespace, request.family.word, request.key.name)
    here = site.link(*place)
    shown = [
        element("a", "Restore this backup", href=restores, class_="act") if offers.may_restore else None,
        act(site, "Roll back", "ns", request.key.namespace, "new-rollback", about="to it", to=request.key.name)
        if offers.may_roll_back
        else None,
        button(site, site.link(*place, CONTENTS), "Show what is in it")
        if offers.may_download and offers.may_restore
        else None,
        act(site, "Cancel it", "ns", request.key.namespace, "cancel", request.family.word, request.key.name)
        if offers.may_cancel
        else None,
    ]
    log = element("p", command(f"foresail {request.family.word} logs {request.key.name} -n {request.key.namespace}"))
    created = request.request.metadata.creation_timestamp
    facts = [
        ("status", status_badge(request)),
        ("summary", cut(summary(request))),
        ("next", cut(advised(request))),
        ("items", progress_bar(done, progress.total_items) if progress else "n/a"),
        ("data of volumes", data_bar(request.transfer, pace.rate) if request.transfer is not None else "n/a"),
        ("elapsed", cut(elapsed(request, pace.last, now))),
        ("position in the queue", str(request.position) if request.position else "n/a"),
        ("errors, warnings", f"{velero.errors}, {velero.warnings}"),
        ("age", short(now - created) if created else "n/a"),
        ("started", until(velero.start_timestamp, now)),
        ("ended", until(velero.completion_timestamp, now)),
    ]
    steps = [(step.rule, badge(step.answer, _step_mood(step.answer)), cut(step.because)) for step in steps_of(request)]
    return shell(
        site,
        f"{capital(request.family.word)} {request.key.name}",
        f"foresail {request.family.word} explain {request.key.name} -n {request.key.namespace}",
        element(
            "p",
            "In ",
            namespace_link(site, request.key.namespace),
            ". ",
            element("span", element("a", "Reload", href=here), " to follow it.", class_="nojs"),
        ),
        element("div", *shown, class_="acts") if any(shown) else None,
        section("facts", "Now", data_table("Now", ("what", "value"), facts, "")),
        section("steps", "Steps", data_table("Steps", ("step", "answer", "because"), steps, "")),
        section("log", "Log", button(site, site.link(*place, LOG), "Show the log") if offers.may_download else log),
        live=site.link("live", *place, seen=digest([request])) if request.is_open else "",
    )


def progress_bar(done: int, total: int, label: str = "items done") -> Html:
    """Return how many of a total, as a bar and in figures."""
    bar = element("progress", max=max(total, 1), value=min(done, max(total, 1)), aria_label=label)
    return words((bar, f"{done} of {total}"))


def data_bar(transfer: Transfer, rate: float | None = None) -> Html:
    """Return how much data of volumes was moved, as a bar and in figures, with the throughput and the time left."""
    total = max(transfer.total_bytes, 1)
    bar = element("progress", max=total, value=min(transfer.bytes_done, total), aria_label="data moved")
    return words((bar, transfer_text(transfer, rate)))


_STEP_MOODS = {YES: "good", NO: "bad", NOT_CHECKED: ""}


def _step_mood(answer: str) -> str:
    return _STEP_MOODS.get(answer, "warn" if answer in STOPS else "")


def doctor(site: Site, findings: Sequence[Finding]) -> Html:
    """Return the findings, the worst first, each with its fix."""
    order = [Grade.PROBLEM, Grade.WARNING, Grade.GOOD]
    rows = [
        (cut(finding.about), badge(finding.grade.value, _GRADES[finding.grade]), cut(finding.says), cut(finding.fix))
        for finding in sorted(findings, key=lambda finding: order.index(finding.grade))
    ]
    told = element("p", findings_summary(findings))
    table = data_table("Findings", ("about", "grade", "finding", "fix"), rows, "No finding.")
    return shell(site, "Doctor", "foresail doctor", section("findings", "Findings", told, table))


def namespace_link(site: Site, name: str) -> Html:
    """Return a link to the page of a namespace."""
    return element("a", name, href=site.link("ns", name))


def request_link(site: Site, request: TenantRequest) -> Html:
    """Return a link to the page of a backup or restore."""
    return element(
        "a", request.key.name, href=site.link("ns", request.key.namespace, request.family.word, request.key.name)
    )
