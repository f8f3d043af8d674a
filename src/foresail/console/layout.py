"""What every page of the console has: navigation, a notice, and the same command in the terminal."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from urllib.parse import quote, urlencode

from foresail.console.web.markup import Child, Html, document, element, joined
from foresail.console.web.parts import command, data_table, section

ROWS = 100
"""Rows of a table on one page."""

FURTHER = {"queue": "Queue", "policies": "Policies", "checks": "Checks", "primers": "Primers", "doctor": "Doctor"}
"""The pages that not everybody may read, by path and title."""

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

    @property
    def cluster(self) -> str:
        """The cluster in words."""
        return f"{self.context} ({self.server})" if self.context and self.server else self.context or self.server


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
        found = [(self.link(""), "Overview"), (self.link("namespaces"), "Namespaces")]
        if not self.is_administrator:
            found[1] = self.link("ns", self.namespace), f"Namespace {self.namespace}"
        found.append((self.link("calendar"), "Calendar"))
        return [*found, *((self.link(word), title) for word, title in FURTHER.items() if word in self.offered)]


def shell(site: Site, title: str, same: str, *children: Child, live: str = "") -> Html:
    """Return a page of the console; `live` is where its changes are reported."""
    head = [element("link", rel="stylesheet", href=site.link("style.css"))]
    if live:
        head.append(element("script", src=site.link("live.js"), defer=True))
    navigation = element(
        "nav",
        *(element("a", name, href=path, aria_current="page" if name == title else None) for path, name in site.pages),
        aria_label="pages",
    )
    top = element("header", _bar(site), navigation, element("h1", title))
    footer = element("footer", "The same in the terminal: ", command(same))
    named = " · ".join(filter(None, (title, cut(site.viewpoint.context, _LONGEST_NAME), "Foresail")))
    return document(named, head, (top, element("main", *children, data_live=live or None), footer))


def _bar(site: Site) -> Html:
    """Return what tells two tabs apart: the product, the cluster and the user; and the way to another namespace."""
    at = site.viewpoint
    facts = (("Cluster", at.cluster or "unknown"), ("User", at.user or "unknown"))
    named = [
        element("div", element("dt", name), element("dd", cut(value, _LONGEST_NAME)), class_="fact")
        for name, value in facts
    ]
    product = element("span", "Foresail", class_="product")
    return element("div", product, element("dl", *named, class_="facts"), _switcher(site), class_="bar")


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


def plain_page(title: str, text: str, hint: str = "") -> Html:
    """Return a page without navigation: for who is not signed in, and for errors."""
    body = element("main", element("h1", title), element("p", cut(text)), element("p", cut(hint)) if hint else None)
    return document(f"{title} · Foresail", (), (body,))


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
