"""The page of protection by label: the classes, and for each namespace what protects it as the operator reports."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from foresail.cli.output.words import counted
from foresail.cli.protection.get import short_cells, wide_cells
from foresail.console.layout import Search, Site, act, cut, searched, shell
from foresail.console.web.markup import Child, Html, element
from foresail.console.web.parts import badge, command, data_table, section

_CLASSES = ("class", "schedule", "policy", "default", "namespaces", "Schedules", "ready", "act")
_HEADER = ("namespace", "class", "protected", "reason", "newest good", "next run", "Schedules", "what", "act")
_MOODS = {"True": "good", "False": "bad", "Unknown": "warn"}
_EMPTY = (
    "A ProtectionClass says when namespaces are backed up, and a label on a namespace names its class. "
    "There is none yet. The first step:"
)


@dataclass(frozen=True, slots=True)
class Protected:
    """The classes and Protections that the viewer may list; None for what they may not."""

    classes: Sequence[Mapping[str, Any]] | None
    protections: Sequence[Mapping[str, Any]]


def protection(site: Site, protected: Protected, search: Search, now: datetime) -> Html:
    """Return the page: gaps first."""
    items = sorted(protected.protections, key=lambda item: (short_cells(item, now)[2] == "True", _place(item)))
    gaps = sum(short_cells(item, now)[2] != "True" for item in items)

    def cells(place: int) -> tuple[Child, ...]:
        name, of_class, truth, *rest = map(cut, short_cells(items[place], now))
        is_open = truth != "True" and "protect" in site.offered
        return (
            element("a", name, href=site.link("ns", name)),
            of_class,
            badge(truth, _MOODS.get(truth, "")),
            *rest,
            *map(cut, wide_cells(items[place])),
            act(site, "Protect", "ns", name, "protect", about=name) if is_open else None,
        )

    told = f"{gaps} of {counted(len(items), 'namespace')} are not protected as asked." if items else ""
    table = searched(site, "protection", "Protections", _HEADER, [_place(item) for item in items], cells, search)
    empty = element(
        "p", "No Protection: the operator writes one for each namespace that is in a class.", class_="empty"
    )
    where = "-A" if site.is_administrator else f"-n {site.namespace}"
    return shell(
        site,
        "Protection",
        f"foresail protection get {where} -o wide",
        section("namespaces", "Namespaces", element("p", told) if told else None, table if items else empty),
        _classes(site, protected.classes),
    )


def _place(item: Mapping[str, Any]) -> str:
    return str(item["metadata"]["namespace"])


def _classes(site: Site, classes: Sequence[Mapping[str, Any]] | None) -> Html:
    if classes is None:
        return section("classes", "Classes", element("p", "You may not list ProtectionClasses.", class_="empty"))
    if not classes:
        first = command("foresail protection preview -f FILE")
        return section("classes", "Classes", element("p", _EMPTY, class_="empty"), element("p", first), _new(site))
    rows = [_class(site, item) for item in classes]
    return section("classes", "Classes", data_table("Classes", _CLASSES, rows, ""), _new(site))


def _new(site: Site) -> Html | None:
    link = act(site, "Create a class", "protection", "new-class")
    return element("p", link, class_="acts") if "new-class" in site.offered else None


def _class(site: Site, item: Mapping[str, Any]) -> tuple[Child, ...]:
    name = str(item["metadata"]["name"])
    spec = item.get("spec") or {}
    status = item.get("status") or {}
    ready: Mapping[str, Any] = next((one for one in status.get("conditions") or () if one.get("type") == "Ready"), {})
    truth = str(ready.get("status", "Unknown"))
    return (
        cut(name),
        cut(str(spec.get("schedule", ""))),
        cut(str(spec.get("schedulePolicy") or "none")),
        "yes" if spec.get("default") else "no",
        str(status.get("namespaces", 0)),
        str(status.get("schedules", 0)),
        badge(f"{truth}: {ready.get('reason', 'not reported')}", _MOODS.get(truth, "")),
        act(site, "Change", "protection", "class", name, about=name) if "change-classes" in site.offered else None,
    )
