"""The pages of RestoreChecks: results, durations over time, and evidence to download."""

from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

from foresail.cli.check.checks import check_cells, facts, problems
from foresail.cli.console.layout import Site, cut, shell
from foresail.cli.web.markup import Child, Html, element
from foresail.cli.web.parts import badge, data_table, section, words

_HEADER = ("name", "result", "reason", "backup", "found", "seconds", "checked", "passed", "status")
_RUNS = ("started", "result", "seconds", "duration", "backup", "reason")
_MOODS = {"Pass": "good", "Fail": "bad"}
_MOST = 500

Check = Mapping[str, Any]


def checks(site: Site, namespace: str, found: Sequence[Check], now: datetime) -> Html:
    """Return each RestoreCheck with its last result."""
    rows: list[tuple[Child, ...]] = []
    for each in found[:_MOST]:
        name, result, *cells = map(cut, check_cells(each, now))
        link = element("a", name, href=site.link("checks", name))
        rows.append((link, badge(result, _MOODS.get(result, "")), *cells))
    more = len(found) - _MOST
    rest = element("p", f"{more} more: use the command line.", class_="note") if more > 0 else None
    table = data_table("Restore checks", _HEADER, rows, "No RestoreCheck.")
    return shell(site, "Checks", f"foresail check get -n {namespace}", section("checks", "Restore checks", table, rest))


def check(site: Site, namespace: str, found: Check, record: Check, history: Sequence[Check]) -> Html:
    """Return one RestoreCheck: its last result, every problem, and the runs whose evidence is kept."""
    name = str(found["metadata"]["name"])
    listed = [(cut(reason), cut(message)) for reason, message in problems(found, record)]
    evidence = element("a", "Download the evidence", href=site.link("checks", name, "evidence.json"))
    longest = max((_seconds(each) for each in history), default=0)
    runs = [_run(each, longest) for each in history]
    return shell(
        site,
        f"RestoreCheck {name}",
        f"foresail check explain {name} -n {namespace}",
        element("p", element("a", "All checks", href=site.link("checks"))),
        section("facts", "Last result", data_table("Last result", ("what", "value"), _cut(facts(found)), "")),
        section("problems", "Problems", data_table("Problems", ("reason", "message"), listed, "No problem.")),
        section(
            "runs",
            "Runs",
            data_table("Runs", _RUNS, runs, "No evidence is kept, or you may not list ConfigMaps."),
            element("p", evidence) if record else None,
        ),
    )


def _cut(pairs: Sequence[tuple[str, str]]) -> list[tuple[str, str]]:
    return [(name, cut(value)) for name, value in pairs]


def _run(record: Check, longest: int) -> tuple[Child, ...]:
    result, seconds = cut(str(record.get("result", "-"))), _seconds(record)
    bar = element("progress", max=max(longest, 1), value=seconds, aria_label=f"{seconds} seconds")
    texts = (cut(str(record.get(name, "-"))) for name in ("backup", "reason"))
    started = cut(str(record.get("started", "-")))
    return started, badge(result, _MOODS.get(result, "")), str(seconds), words((bar,)), *texts


def _seconds(record: Check) -> int:
    found = record.get("restoreSeconds")
    return found if isinstance(found, int) and found >= 0 else 0
