"""The pages of RestoreChecks: results, durations over time, and evidence to download."""

from collections.abc import Mapping, Sequence
from typing import Any

from foresail.cli.check.checks import CheckCells, facts, problems
from foresail.console.layout import Search, Site, cut, searched, shell
from foresail.console.web.markup import Child, Html, element
from foresail.console.web.parts import badge, data_table, section, words
from foresail.plan import Key

_HEADER = ("name", "namespace", "result", "reason", "backup", "found", "seconds", "checked", "passed", "status")
_RUNS = ("started", "result", "seconds", "duration", "backup", "reason")
_MOODS = {"Pass": "good", "Fail": "bad"}

Check = Mapping[str, Any]


def checks(site: Site, places: Sequence[str], found: Sequence[CheckCells], search: Search) -> Html:
    """Return each RestoreCheck of some namespaces with its last result, searched and paged; an empty one means all."""

    def cells(place: int) -> tuple[Child, ...]:
        key, (_, result, *rest) = found[place]
        link = element("a", cut(key.name), href=site.link(*check_path(key)))
        return link, cut(key.namespace), badge(cut(result), _MOODS.get(result, "")), *map(cut, rest)

    table = searched(site, "checks", "Restore checks", _HEADER, [str(key) for key, _ in found], cells, search)
    where = f"-n {places[0]}" if places[0] else "-A"
    return shell(site, "Checks", f"foresail check get {where}", section("checks", "Restore checks", table))


def check_path(key: Key) -> tuple[str, ...]:
    """Return the path of the page of a RestoreCheck."""
    return "ns", key.namespace, "check", key.name


def check(site: Site, key: Key, found: Check, record: Check, history: Sequence[Check]) -> Html:
    """Return one RestoreCheck: its last result, every problem, and the runs whose evidence is kept."""
    name = key.name
    namespace = key.namespace
    listed = [(cut(reason), cut(message)) for reason, message in problems(found, record)]
    evidence = element("a", "Download the evidence", href=site.link(*check_path(key), "evidence.json"))
    longest = max((_seconds(item) for item in history), default=0)
    runs = [_run(item, longest) for item in history]
    return shell(
        site,
        f"RestoreCheck {name}",
        f"foresail check explain {name} -n {namespace}",
        element("p", "In ", element("a", namespace, href=site.link("ns", namespace)), "."),
        section("facts", "Last result", data_table("Last result", ("what", "value"), _cut(facts(found)), "")),
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
    return started, badge(result, _MOODS.get(result, "")), str(seconds), words((bar,)), *texts


def _seconds(record: Check) -> int:
    found = record.get("restoreSeconds")
    return found if isinstance(found, int) and found >= 0 else 0
