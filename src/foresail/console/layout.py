"""What every page of the console has: navigation, a notice, and the same command in the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from urllib.parse import quote, urlencode

from foresail.cli.doctor.health import NOT_READ, UP, Health, SystemHealth
from foresail.console.web.markup import Child, Html, document, element, joined
from foresail.console.web.parts import badge, command, data_table, section, words

ROWS = 100
"""Rows of a table on one page."""

FURTHER = {
    "protection": "Protection",
    "rollbacks": "Rollbacks",
    "queue": "Queue",
    "policies": "Policies",
    "checks": "Checks",
    "primers": "Primers",
    "doctor": "Doctor",
}
"""The pages that not everybody may read, by path and title."""

COLORS = ("blue", "brown", "gray", "orange", "pink", "purple", "teal", "yellow")
"""Colors of a cluster: none of them is that of a verdict."""

_LONGEST = 4000  # characters of a message that are shown
_LONGEST_NAME = 253
_SWITCH = "switch-namespace"


@dataclass(frozen=True, slots=True)
class Viewpoint:
    """Which cluster is shown, to whom, and which other namespaces there are to choose from."""

    context: str = ""  # of the kubeconfig; empty behind a proxy
    server: str = ""  # host and port of the API server
    user: str = ""  # as the API server knows the viewer
    namespaces: tuple[str, ...] = ()  # empty: the viewer may not list them, or there are too many; they write a name
    name: str = ""  # as the administrator calls the cluster; instead of the context
    color: str = ""  # one of COLORS, chosen by the administrator
    health: SystemHealth = NOT_READ
    at: datetime | None = None  # when the page was read

    @property
    def title(self) -> str:
        """The shortest name of the cluster that people know."""
        return self.name or self.context or self.server

    @property
    def cluster(self) -> str:
        """The cluster in words."""
        named = self.name or self.context
        return f"{named} ({self.server})" if named and self.server else named or self.server


@dataclass(frozen=True, slots=True)
class Site:
    """Where the pages are, and what the viewer sees of them."""

    mount: str
    csrf: str
    namespace: str  # the viewer's own
    is_administrator: bool
    offered: frozenset[str] = frozenset()  # the further pages that the viewer may read
    viewpoint: Viewpoint = Viewpoint()

    def link(self, *parts: str, **query: str | int) -> str:
        """Return the path of a page; the parts are quoted."""
        path = "/".join(("", self.mount, *(quote(part, safe="") for part in parts)))
        return f"{path}?{urlencode(query)}" if query else path

    @property
    def pages(self) -> list[tuple[str, str]]:
        """The pages that the viewer may open, by path and title."""
        pages = [(self.link(""), "Overview"), (self.link("namespaces"), "Namespaces")]
        if not self.is_administrator:
            pages[1] = self.link("ns", self.namespace), f"Namespace {self.namespace}"
        pages.append((self.link("calendar"), "Calendar"))
        return [*pages, *((self.link(word), title) for word, title in FURTHER.items() if word in self.offered)]


def shell(site: Site, title: str, same: str, *children: Child, live: str = "") -> Html:
    """Return a page of the console; `live` is where its changes are reported."""
    head = [element("link", rel="stylesheet", href=site.link("style.css"))]
    head.append(element("script", src=site.link("live.js"), defer=True))
    navigation = element(
        "nav",
        *(element("a", name, href=path, aria_current="page" if name == title else None) for path, name in site.pages),
        aria_label="pages",
    )
    top = element("header", _bar(site), navigation, element("h1", title), class_=_color_class(site))
    footer = element("footer", "The same in the terminal: ", command(same))
    named = " · ".join(filter(None, (title, cut(site.viewpoint.title, _LONGEST_NAME), "Foresail")))
    return document(named, head, (top, element("main", *children, data_live=live or None), footer))


def _bar(site: Site) -> Html:
    """Return what tells two tabs apart, whether the system runs, how old the page is, and the way elsewhere."""
    at = site.viewpoint
    facts: list[tuple[str, Child]] = [
        ("Cluster", element("strong", cut(at.cluster or "unknown", _LONGEST_NAME))),
        ("User", cut(at.user or "unknown", _LONGEST_NAME)),
        ("Velero", _state(at.health.velero)),
        ("Operator", _state(at.health.foresail)),
    ]
    if at.at is not None:
        facts.append(("As of", _freshness(at.at)))
    named = [element("div", element("dt", name), element("dd", value), class_="fact") for name, value in facts]
    product = element("a", "Foresail", href=site.link(""), class_="product")
    return element("div", product, element("dl", *named, class_="facts"), _switcher(site), class_="bar")


def _color_class(site: Site) -> str | None:
    return f"of-{site.viewpoint.color}" if site.viewpoint.color in COLORS else None


def _state(health: Health) -> Html:
    """Return a word with its colour, and why it is not up; which version is up is shown beside it."""
    detail = cut(health.detail, _LONGEST_NAME)
    if health.word == UP:
        return words((badge(health.word, health.mood), detail or None))
    return element("span", badge(health.word, health.mood), element("span", detail, class_="unseen"), title=detail)


def _freshness(at: datetime) -> Html:
    """Return when the page was read; the script replaces the second word while the page renews itself."""
    clock = element("time", f"{at.astimezone(UTC):%H:%M:%S} UTC", datetime=at.isoformat(), id="as-of")
    return words((clock, element("span", "not live", id="live")))


def _switcher(site: Site) -> Html:
    """Return a form that leads to another namespace: it changes nothing, and works without JavaScript."""
    names = site.viewpoint.namespaces
    if names:
        known = names if site.namespace in names or not site.namespace else (site.namespace, *names)
        options = [element("option", name, value=name, selected=name == site.namespace) for name in known]
        field = element("select", *options, id=_SWITCH, name="namespace")
    else:
        field = element(
            "input",
            type="text",
            id=_SWITCH,
            name="namespace",
            value=site.namespace,
            required=True,
            maxlength=63,
            autocomplete="off",
            spellcheck="false",
        )
    return element(
        "form",
        element("label", "Namespace", for_=_SWITCH),
        field,
        element("button", "Switch", type="submit"),
        method="get",
        action=site.link(""),
        class_="switch",
        aria_label="another namespace",
    )


def entrance(url: str) -> Html:
    """Return a page that leads on: a cookie that is SameSite=Strict is sent only from a page of the same site."""
    head = (element("meta", http_equiv="refresh", content=f"0; url={url}"),)
    return document("Foresail", head, (element("main", element("a", "Open the console", href=url)),))


def plain_page(title: str, text: str, hint: str = "", base: str = "") -> Html:
    """Return a page without navigation: for errors, and for who is not signed in, who has no `base` to go back to."""
    told = element("p", cut(hint)) if hint else None
    back = element("p", element("a", "Back to the overview", href=base)) if base else None
    head = (element("link", rel="stylesheet", href=f"{base}style.css"),) if base else ()
    parts = section("problem", "What happened", element("p", cut(text)), told, back)
    header = element("header", element("h1", title))
    return document(f"{title} · Foresail", head, (header, element("main", parts)))


def problem_page(site: Site, problem: str, hint: str, again: str = "", *, is_refused: bool = False) -> Html:
    """Return what did not work, with the ways out; what an administrator must allow is folded away."""
    told: Html | None = element("p", cut(hint)) if hint else None
    if hint and is_refused:
        summary = element("summary", "For a cluster administrator")
        told = element("details", summary, element("p", element("code", cut(hint))))
    back = element("a", "Back to the overview", href=site.link(""))
    retry = None
    if again:
        retry = element("a", "Try again", href=again)
    children = (element("p", cut(problem)), told, element("p", back, " ", retry))
    return shell(site, "This did not work", "foresail doctor", section("problem", "What happened", *children))


def act(site: Site, label: str, *path: str, about: str = "", **query: str) -> Html:
    """Return a link that is drawn as a button; `about` tells the same buttons of several rows apart."""
    more = element("span", f" {about}", class_="unseen") if about else None
    return element("a", label, more, href=site.link(*path, **query), class_="act")


def button(site: Site, path: str, label: str, **fields: str) -> Html:
    """Return a form of one button that changes something."""
    hidden = joined(element("input", type="hidden", name=name, value=value) for name, value in fields.items())
    return form(site, path, label, hidden)


def form(site: Site, path: str, label: str, fields: Html) -> Html:
    """Return a form that changes something, with the secret that makes it the console's own."""
    secret = element("input", type="hidden", name="csrf", value=site.csrf)
    return element("form", secret, fields, element("button", label, type="submit"), method="post", action=path)


def cut(text: str, longest: int = _LONGEST) -> str:
    """Return a text of the cluster, shortened to what a page can show."""
    return text if len(text) <= longest else f"{text[:longest]}… ({len(text)} characters)"


@dataclass(frozen=True, slots=True)
class Search:
    """The part of a long list that is shown: rows whose name has a text, and the number of the page."""

    text: str = ""
    page: int = 1

    def chosen(self, names: Sequence[str]) -> list[int]:
        """Return the places of all rows that match."""
        return [at for at, name in enumerate(names) if self.text.lower() in name.lower()]


def searched(
    site: Site,
    path: str,
    label: str,
    header: Sequence[str],
    names: Sequence[str],
    cells: Callable[[int], Sequence[Child]],
    search: Search,
) -> Html:
    """Return a table with a search field, one page of it at a time; `names` are searched, `cells` makes a row."""
    places = search.chosen(names)
    pages = max((len(places) + ROWS - 1) // ROWS, 1)
    at = min(max(search.page, 1), pages)
    shown = [cells(place) for place in places[(at - 1) * ROWS : at * ROWS]]
    field = element("input", type="search", id="q", name="q", value=search.text, maxlength=253)
    form = element(
        "form",
        element("label", "Name contains ", for_="q"),
        field,
        " ",
        element("button", "Search", type="submit"),
        method="get",
        action=site.link(path),
        role="search",
    )
    links = [
        element("a", name, href=site.link(path, q=search.text, page=number))
        for name, number, is_there in (("previous", at - 1, at > 1), ("next", at + 1, at < pages))
        if is_there
    ]
    told = element("p", f"{len(places)} of {len(names)}, page {at} of {pages} ", *links, class_="note paging")
    return joined((form, data_table(label, header, shown, "Nothing matches."), told))
