"""The report as one HTML file: no script, nothing fetched, every string of the cluster escaped."""

import shlex
from collections.abc import Sequence
from datetime import timedelta

from foresail import __version__
from foresail.cli.output.words import ago, compact, short
from foresail.console.report.figures import RECENT, Figures, LastCheck, UpcomingRun
from foresail.console.web.assets import SHEET
from foresail.console.web.markup import Child, Html, document, element, style
from foresail.console.web.parts import (
    badge,
    command,
    data_table,
    pile_list,
    section,
    shown_time,
    tile,
    tiles,
    week,
    words,
)
from foresail.proof.coverage import NamespaceCoverage
from foresail.proof.safety import safety_of
from foresail.safety.verdict import Verdict

MOST_ROWS = 5000
"""Rows of one table; a report with more of them names how many are left out."""

_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
_CHECKS = ("checks", "Restore checks")
_PARTS = (("gaps", "Gaps"), ("coverage", "Coverage"), ("calendar", "Calendar"), ("failed", "Failed runs"))
_OWN_ONLY = (
    "This is a tenant's report: it knows the NonAdminSchedules, NonAdminBackups and RestoreChecks of the namespace. "
    "Schedules of administrators may cover it as well."
)


def report_page(figures: Figures) -> Html:
    """Return the page."""
    head = (
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="referrer", content="no-referrer"),
        style(SHEET),
    )
    main = element(
        "main",
        summary_tiles(figures),
        gap_section(figures),
        coverage_section(figures),
        calendar_section(figures),
        failed_section(figures),
        check_section(figures) if figures.checks is not None else None,
    )
    return document(f"Backup report: {figures.subject}", head, (_header(figures), main, _footer(figures)))


def _header(figures: Figures) -> Html:
    objective = f" · objective {compact(figures.objective)}" if figures.objective else ""
    parts = (*_PARTS, _CHECKS) if figures.checks is not None else _PARTS
    return element(
        "header",
        element("h1", f"Backup report: {figures.subject}"),
        element("p", f"{figures.instant:%Y-%m-%d %H:%M} UTC{objective}"),
        element("p", _OWN_ONLY, class_="note") if figures.is_tenant else None,
        element("nav", words(element("a", title, href=f"#{name}") for name, title in parts), aria_label="parts"),
    )


def _footer(figures: Figures) -> Html:
    where = ["-n", figures.namespace] if figures.namespace else ["-A"]
    same = shlex.join(["foresail", "coverage", *where, "-o", "wide"])
    return element("footer", f"Foresail {__version__}. Coverage in the terminal: ", command(same))


def _oldest_tile(figures: Figures) -> Html:
    without = figures.without_backup
    name, age = figures.worst or ("", None)
    shown = short(age) if age is not None else "n/a"
    if without:
        shown = "no backup"
        name = f"{_some(without)} {'has' if len(without) == 1 else 'have'} no good backup"
    return tile("Oldest last good backup", shown, name, _mood(bool(without) or figures.is_late))


def summary_tiles(figures: Figures) -> Html:
    """Return the answers at a glance: what is protected, the oldest last good backup, gaps, failures, the next run."""
    counted = len(figures.counted)
    failed = len(figures.failed)
    gaps = sum(len(namespace.all_gaps()) for namespace in figures.namespaces)
    following = figures.upcoming[0] if figures.upcoming else None
    return tiles(
        tile(
            "Safe namespaces",
            f"{figures.safe} of {counted}",
            short_text(figures.safety.message),
            mood_of(figures.safety.verdict),
        ),
        _oldest_tile(figures),
        tile("Gaps", str(gaps), "each with a command below" if gaps else "none", _mood(bool(gaps))),
        tile("Failed runs", str(failed), f"in the last {RECENT.days} days", _mood(bool(failed))),
        _next_tile(figures, following),
        *((_check_tile(figures),) if figures.checks else ()),
    )


def _check_tile(figures: Figures) -> Html:
    """Return how many checks passed of those that have ended: one that was never due is no failure, and no proof."""
    checks = figures.checks or ()
    ended = [check for check in checks if check.last is not None]
    open_checks = len(checks) - len(ended)
    more = f"{open_checks} without a result" if open_checks else ""
    if not ended:
        return tile("Restore checks", "none yet", more)
    mood = "" if open_checks else "good"
    if any(check.has_failed for check in ended):
        mood = "bad"
    detail = ", ".join(filter(None, ("passed last time", more)))
    return tile("Restore checks", f"{figures.passed_checks} of {len(ended)}", detail, mood)


def _next_tile(figures: Figures, following: UpcomingRun | None) -> Html:
    return tile(
        "Next run",
        f"in {short(following.at - figures.instant)}" if following else "n/a",
        following.schedule if following else f"none within {RECENT.days} days",
    )


_MOODS = {Verdict.SAFE: "good", Verdict.AT_RISK: "warn", Verdict.UNKNOWN: "warn", Verdict.UNSAFE: "bad"}
_LONGEST = 240  # characters of a verdict
_TITLES = {Verdict.AT_RISK: "At risk"}


def mood_of(verdict: Verdict) -> str:
    """Return the colour of a verdict."""
    return _MOODS.get(verdict, "")


def short_text(message: str) -> str:
    """Return the beginning of a message: tenants choose how long their names and texts are."""
    return message if len(message) <= _LONGEST else f"{message[: _LONGEST - 1]}…"


def _title(verdict: Verdict) -> str:
    return _TITLES.get(verdict, verdict.value)


def _mood(is_bad: bool) -> str:  # noqa: FBT001 - the one thing it says
    return "bad" if is_bad else "good"


def _some(names: Sequence[str]) -> str:
    return names[0] if len(names) == 1 else f"{names[0]} and {len(names) - 1} more"


def gap_section(figures: Figures) -> Html:
    """Return the gaps, each with the command that closes it or shows its cause."""
    rows = [
        (
            gaps.namespace,
            words(badge(word, "bad") for word in dict.fromkeys(gap.reason.value for gap in gaps.gaps)),
            "; ".join(gap.message for gap in gaps.gaps),
            command(gaps.command),
        )
        for gaps in figures.gaps
    ]
    return section("gaps", "Gaps", *_table("Gaps", ("namespace", "reason", "what", "command"), rows, "No gaps found."))


COVERAGE = ("namespace", "verdict", "covered by", "newest good backup", "age", "next run", "volumes", "gaps")
"""The header of the table of namespaces."""


def coverage_section(figures: Figures) -> Html:
    """Return a row for each namespace."""
    rows = [(namespace.name, *coverage_cells(namespace, figures)) for namespace in figures.namespaces]
    return section("coverage", "Coverage", *_table("Coverage by namespace", COVERAGE, rows, "There is no namespace."))


def coverage_cells(coverage: NamespaceCoverage, figures: Figures) -> tuple[Child, ...]:
    """Return the cells of a namespace, without its name."""
    backup = coverage.newest_good
    gaps = dict.fromkeys(gap.reason.value for gap in coverage.all_gaps())
    verdict = safety_of(coverage).verdict
    return (
        badge(_title(verdict), mood_of(verdict)),
        ", ".join(coverage.covered_by) or "none",
        f"{backup.name}{coverage.newest_note}" if backup else "none",
        ago(backup.started, figures.instant) if backup else "n/a",
        shown_time(coverage.next_run, figures.instant),
        f"{coverage.claims_saved} of {coverage.claims_wanted}" if coverage.claims_wanted else "none",
        words(badge(word, "bad") for word in gaps) if gaps else "none",
    )


def calendar_section(figures: Figures) -> Html:
    """Return the days to come: how many runs start when, pile-ups, and the next runs."""
    rows = [(run.schedule, shown_time(run.at, figures.instant)) for run in figures.upcoming]
    return section(
        "calendar",
        "Calendar",
        week(figures.load),
        pile_list(figures.load),
        element("h3", "Next runs"),
        data_table("Next runs", ("schedule", "starts"), rows, f"No run within {RECENT.days} days."),
    )


def failed_section(figures: Figures) -> Html:
    """Return the runs that failed recently."""
    rows = [
        (
            backup.name,
            badge(backup.phase, "bad"),
            backup.schedule or "none",
            shown_time(backup.run_at, figures.instant),
            backup.failure or "see the log",
        )
        for backup in figures.failed
    ]
    header = ("backup", "result", "schedule", "started", "cause")
    empty = f"No run failed in the last {RECENT.days} days."
    return section("failed", "Failed runs", *_table("Failed runs", header, rows, empty))


CHECKS = ("check", "result", "backup", "checked", "restored in", "objects", "what")
"""The header of the table of RestoreChecks."""


def check_section(figures: Figures) -> Html:
    """Return the last result of each RestoreCheck, failed ones first."""
    rows = [(check_title(check, figures), *check_cells(check, figures)) for check in figures.checks or ()]
    empty = "There is no RestoreCheck: nothing has proved yet that this cluster takes these backups back."
    if figures.is_tenant:
        empty = "There is no RestoreCheck in this namespace."
    return section("checks", "Restore checks", *_table("Restore checks", CHECKS, rows, empty))


def check_title(check: LastCheck, figures: Figures) -> str:
    """Return the name of a check; of a tenant's, with its namespace."""
    return check.name if check.namespace in ("", figures.velero_namespace) else f"{check.namespace}/{check.name}"


def check_cells(check: LastCheck, figures: Figures) -> tuple[Child, ...]:
    """Return the cells of a check, without its name."""
    last = check.last
    if last is None:
        return (badge("none yet"), "n/a", "n/a", "n/a", "n/a", check.problem)
    return (
        badge(last.reason, "bad") if check.has_failed else badge("Pass", "good"),
        last.backup,
        shown_time(last.completed, figures.instant),
        "n/a" if last.restore_seconds is None else short(timedelta(seconds=last.restore_seconds)),
        f"{last.items_found} of {last.items_expected}",
        last.message,
    )


def _table(label: str, header: Sequence[str], rows: Sequence[Sequence[Child]], empty: str) -> tuple[Child, ...]:
    more = len(rows) - MOST_ROWS
    rest = element("p", f"{more} more rows are left out.", class_="note") if more > 0 else None
    return data_table(label, header, rows[:MOST_ROWS], empty), rest
