"""The page of a fleet: one sentence, then one row per cluster, the worst first; as a file or from the console."""

from collections.abc import Sequence
from urllib.parse import quote

from foresail import __version__
from foresail.cli.output.words import ago, counted, short
from foresail.console.report.fleet import ClusterRow, Fleet
from foresail.console.report.page import short_text
from foresail.console.web.assets import CONSOLE, SHEET
from foresail.console.web.markup import Child, Html, document, element, style
from foresail.console.web.parts import badge, command, data_table, section

_HEADER = (
    "cluster", "verdict", "why", "safe", "no good backup", "oldest", "failed checks", "reported", "console",
)  # fmt: skip
_MEANING = "Safe and no good backup count namespaces; oldest is the age of the oldest last good backup."
_MOODS = {"good": "✔", "warn": "?", "bad": "✖"}


_POLICY = "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def fleet_report(fleet: Fleet) -> Html:
    """Return the whole page as one file."""
    head = (
        element("meta", http_equiv="Content-Security-Policy", content=_POLICY),
        element("meta", name="referrer", content="no-referrer"),
        style(f"{SHEET}{CONSOLE}"),
    )
    header = element("header", element("h1", "Fleet"))
    return document("Backup report: fleet", head, (header, fleet_main(fleet, fleet.rows, ""), fleet_footer()))


def fleet_main(
    fleet: Fleet, rows: Sequence[ClusterRow], console_url: str, search: Html | None = None, paging: Html | None = None
) -> Html:
    """Return the content of the page, with some of the rows."""
    counts = fleet.counts
    worst = next(iter(counts), "")
    mood = next((row.mood for row in fleet.rows if row.word == worst), "plain")
    every = len(fleet.rows)
    title = f"{worst}: {counts[worst]} of {counted(every, 'cluster')}" if every else "There is no cluster"
    if worst == "Safe":
        title = f"Safe: {counted(every, 'cluster')}"
    others = ", ".join(f"{number} {word.lower()}" for word, number in counts.items() if word != worst)
    sign = element("span", _MOODS.get(mood, ""), class_="mark", aria_hidden="true")
    told = element("p", _MEANING, class_="note")
    table = data_table("Clusters", _HEADER, [_row(row, fleet, console_url) for row in rows], "None.")
    return element(
        "main",
        element(
            "section",
            element("h2", sign, f" {title}", id="verdict"),
            element("p", f"{others.capitalize()}." if others else "", class_="why"),
            element("p", f"From {fleet.source}, {fleet.at:%Y-%m-%d %H:%M:%S} UTC.", class_="facts-line"),
            class_=f"verdict {mood}",
            aria_labelledby="verdict",
        ),
        section("clusters", "Clusters, the worst first", told, search, table, paging),
    )


def _row(row: ClusterRow, fleet: Fleet, console_url: str) -> tuple[Child, ...]:
    safe = "n/a" if row.not_safe is None else f"{row.not_safe} not safe"
    if row.safe is not None:
        safe = f"{row.safe} of {row.counted}"
    return (
        row.name,
        badge(row.word, row.mood),
        short_text(row.message),
        safe,
        "n/a" if row.without is None else str(row.without),
        short(row.oldest) if row.oldest is not None else "n/a",
        "n/a" if row.failed_checks is None else str(row.failed_checks),
        ago(row.reported, fleet.at),
        _console(row.name, console_url),
    )


def _console(name: str, console_url: str) -> Child:
    """Return the way to the console of a cluster: its address, or the command that starts it."""
    if console_url:
        return element(
            "a",
            "Open",
            element("span", f" {name}", class_="unseen"),
            href=console_url.replace("{}", quote(name, safe="")),
        )
    return command(f"foresail console --context {name}")


def fleet_footer() -> Html:
    """Return which version has made the page."""
    return element("footer", f"Foresail {__version__}. Each cluster is read with your own rights; nothing is stored.")
