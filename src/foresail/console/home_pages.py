"""The first pages: a verdict in one sentence with the button that mends it, then the time line, then what runs.

Nothing is judged here: the verdict is that of coverage, and a button leads to a page that shows what it will do.
"""

from collections.abc import Sequence
from datetime import UTC, datetime
from itertools import groupby

from foresail.cli.output.words import ago, counted, moment
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import Search, Site, act, button, cut, searched, shell
from foresail.console.live import digest
from foresail.console.points import points_of
from foresail.console.read import OwnNamespace
from foresail.console.report.figures import MOST_RUNS, Figures
from foresail.console.report.standing import (
    Mend,
    Remedy,
    Standing,
    evidence,
    is_stopped,
    own_remedy,
    row_of,
    rows_of,
    standing_of,
    words_of,
)
from foresail.console.report.worth import Worth
from foresail.console.timeline import Window, time_line
from foresail.console.web.assets import OLD_MINUTES
from foresail.console.web.markup import Child, Html, element
from foresail.console.web.parts import badge, section
from foresail.safety.verdict import Verdict


def banner(standing: Standing, title: str, at: datetime, *children: Child) -> Html:
    """Return a verdict in one sentence: a sign, the word, the evidence or the cause, and of when it is."""
    sign = element("span", standing.sign, class_="mark", aria_hidden="true")
    head = element("h2", sign, f" {title}", id="verdict")
    why = element("p", standing.message, class_="why")
    kind = f"verdict {standing.mood} bare" if standing.is_bare else f"verdict {standing.mood}"
    parts = (head, why, *_time_of(at), *children)
    return element("section", *parts, class_=kind, aria_labelledby="verdict", data_verdict=standing.verdict)


def _time_of(at: datetime) -> tuple[Html, Html]:
    """Return of when a verdict is, and what the sheet shows when it is old; the script says when it is live."""
    state = element("strong", "Not live", class_="state")
    clock = element("time", f"{at.astimezone(UTC):%Y-%m-%d %H:%M:%S} UTC", datetime=at.isoformat())
    again = element("a", "Reload the page", href="")  # an empty reference is the page itself, with its query
    reload = element("span", " ", again, " for the verdict of now.", class_="reload")
    old = element("p", f"This verdict is older than {counted(OLD_MINUTES, 'minute')}. It may no longer be true.")
    return element("p", state, ": as of ", clock, ".", reload, class_="state-of"), element("div", old, class_="aged")


def mend(site: Site, namespace: str, remedy: Remedy | None, about: str = "") -> Html | None:
    """Return the way to the page that mends a gap; nothing where the page of the namespace has the button itself."""
    if remedy is None:
        return None
    match remedy.mend:
        case Mend.PROTECT if "protect" in site.offered:
            return act(site, remedy.mend, "ns", namespace, "protect", about=about)
        case Mend.RUN if "run" in site.offered:
            return act(site, remedy.mend, "ns", namespace, "run", remedy.schedule, about=about)
        case Mend.RESUME if "change-schedules" in site.offered:
            return act(site, remedy.mend, "ns", namespace, "unpause", remedy.schedule, about=about)
        case Mend.DOCTOR if "doctor" in site.offered:
            return act(site, remedy.mend, "doctor", about=about)
    return None


def verdict_of(site: Site, name: str, own: OwnNamespace) -> Html:
    """Return the verdict about one namespace, what it rests on, and the buttons that mend it."""
    figures = own.figures
    newest = figures.namespaces[0].newest_good if figures.namespaces else None
    standing = standing_of(figures.safety, has_backup=newest is not None)
    following = figures.upcoming[0] if figures.upcoming else None
    now = figures.instant
    planned = f"Next run: {moment(following.at, now)}, {following.schedule}." if following else "No run is planned."
    title = f"Unknown whether namespace {name} is safe" if standing.is_unknown else f"{standing.word}: namespace {name}"
    if standing.verdict == Verdict.AT_RISK:
        title += f", last good backup {ago(newest.started, now)}" if newest is not None else ", no good backup yet"
    facts = element("p", cut(" ".join((*evidence(figures), planned))), class_="facts-line")
    return banner(standing, title, now, facts, _buttons(site, name, own))


def _buttons(site: Site, name: str, own: OwnNamespace) -> Html | None:
    remedy = own_remedy(own.figures)
    is_served = own.is_enabled is not False
    can_start = not any(map(is_stopped, own.figures.namespaces))
    may_back_up = can_start and own.may_back_up and is_served
    is_veleros = can_start and not is_served and "run" in site.offered
    offers = (
        (own.may_schedule and is_served, act(site, Mend.SCHEDULE, "ns", name, "schedule")),
        (may_back_up, button(site, site.link("ns", name, "backup"), "Back up now")),
        (may_back_up, act(site, "Back up with options", "ns", name, "back-up")),
        (is_veleros, act(site, "Back up with Velero", "ns", name, "back-up")),
        (own.may_restore and bool(own.backups), act(site, "Restore from a backup", "ns", name, "restore")),
    )
    acts = [
        mend(site, name, remedy),
        _unpause(site, name, own, remedy),
        *(html for offered, html in offers if offered),
    ]
    shown = [html for html in acts if html is not None]
    return element("div", *shown, class_="acts") if shown else None


def _unpause(site: Site, name: str, own: OwnNamespace, remedy: Remedy | None) -> Html | None:
    """Return the button that lets a paused schedule of a team run again, if that is what is missing."""
    if remedy is None or remedy.mend is not Mend.UNPAUSE or not own.may_pause:
        return None
    uid = next((one.row.uid for one in own.schedules if one.key.name == remedy.schedule), "")
    path = site.link("ns", name, "schedule", remedy.schedule, "unpause")
    return button(site, path, f"Unpause {remedy.schedule} again", uid=uid) if uid else None


def line_of(site: Site, path: Sequence[str], own: OwnNamespace, window: Window) -> Html:
    """Return the time line of a namespace as a part of a page."""
    points = points_of(own.figures, own.backups, own.restores)
    return section("line", "Time line", time_line(site, path, points, window))


_STRIP = {
    Worth.COMPLETE: ("●", "good"),
    Worth.LACKING: ("◐", "warn"),
    Worth.FAILED: ("✖", "bad"),
    Worth.UNJUDGED: ("●", "plain"),
}


def strip(runs: Sequence[Worth]) -> Html:
    """Return the last runs as signs, the oldest first, with their counts in words."""
    if not runs:
        return element("span", "no run", class_="note")
    signs = [
        element("span", _STRIP[worth][0] * len(list(group)), class_=f"sign {_STRIP[worth][1]}")
        for worth, group in groupby(runs)
    ]
    told = ", ".join(f"{runs.count(worth)} {worth}" for worth in dict.fromkeys(runs))
    return element("span", *signs, role="img", aria_label=f"{counted(len(runs), 'run')}: {told}", class_="strip")


HOME = ("namespace", "verdict", "why", "last good backup", f"last {MOST_RUNS} runs", "next run", "act")


def home(site: Site, figures: Figures, waiting: Sequence[TenantRequest], search: Search, *parts: Html | None) -> Html:
    """Return the first page of an administrator: one sentence, and one row per namespace, the worst first."""
    pairs = rows_of(figures)

    def cells(place: int) -> tuple[Child, ...]:
        row = row_of(pairs[place], figures)
        standing = row.standing
        opened = None if standing.is_safe else act(site, "Open", "ns", row.name, about=row.name)
        return (
            element("a", row.name, href=site.link("ns", row.name)),
            badge(standing.label, f"{standing.mood} bare" if standing.is_bare else standing.mood),
            "" if standing.is_safe else cut(standing.message),
            row.newest,
            strip(row.runs),
            moment(row.next_run, figures.instant) if row.next_run is not None else "none",
            mend(site, row.name, row.remedy, row.name) or opened,
        )

    names = [coverage.name for coverage, _ in pairs]
    table = searched(site, "", "Namespaces, the worst first", HOME, names, cells, search)
    return shell(
        site,
        "Overview",
        "foresail report --html report.html",
        _sentence(figures, waiting),
        section("worst", "Namespaces, the worst first", table),
        *parts,
        live=site.link("live", seen=digest(waiting)),
    )


def _sentence(figures: Figures, waiting: Sequence[TenantRequest]) -> Html:
    """Return how many namespaces are safe, and what else an administrator wants to know at once."""
    standing = standing_of(figures.safety)
    every = len(figures.counted)
    numbers = words_of(figures)
    title = standing.word
    if standing.is_safe:
        title = f"Safe: {counted(every, 'namespace')}, each with a good backup"
    elif standing.is_unknown and every:
        title = f"Unknown whether {numbers[standing.word]} of {counted(every, 'namespace')} are safe"
    elif every:
        title = f"{standing.word}: {numbers[standing.word]} of {counted(every, 'namespace')}"
    others = [f"{number} {word.lower()}" for word, number in numbers.items() if word != standing.word]
    running = sum(request.is_running for request in waiting)
    failed = len(figures.failed)
    without = len(figures.without_backup)
    facts = [
        f"{', '.join(others).capitalize()}." if others else "",
        f"{without} without any good backup." if without else "",
        f"{counted(failed, 'run')} failed in the last 7 days." if failed else "No run failed in the last 7 days.",
        f"{running} running, {len(waiting) - running} waiting.",
        f"Next run: {moment(figures.upcoming[0].at, figures.instant)}." if figures.upcoming else "No run is planned.",
    ]
    told = element("p", " ".join(filter(None, facts)), class_="facts-line")
    return banner(standing, title, figures.instant, told)
