"""Parts of pages: tables, tiles and commands."""

from collections.abc import Iterable, Sequence
from datetime import date, datetime

from foresail.cli.cron.load import SHOWN, SLOTS, Load, pile_line
from foresail.cli.output.words import moment
from foresail.console.web.markup import Child, Html, element, joined, text

_MANY, _VERY_MANY = 3, 10
_HOURS = 24


def data_table(label: str, header: Sequence[str], rows: Iterable[Sequence[Child]], empty: str) -> Html:
    """Return a table that scrolls by keyboard, whose first column names the row; without rows, a sentence."""
    lines = [element("tr", *(_cell(cell, is_name=number == 0) for number, cell in enumerate(row))) for row in rows]
    if not lines:
        return element("p", empty, class_="empty")
    head = element("thead", element("tr", *(element("th", title, scope="col") for title in header)))
    html = element("table", element("caption", label, class_="unseen"), head, element("tbody", *lines))
    return element("div", html, class_="scroll", role="region", aria_label=label, tabindex=0)


def _cell(cell: Child, *, is_name: bool) -> Html:
    return element("th", cell, scope="row") if is_name else element("td", cell)


def tile(label: str, value: str, detail: str, mood: str = "") -> Html:
    """Return a figure with its name; `mood` is good, warn or bad."""
    return element(
        "div",
        element("dt", label),
        element("dd", element("span", value, class_="figure"), element("span", detail, class_="detail")),
        class_=f"tile {mood}".strip(),
    )


def tiles(*shown: Html) -> Html:
    """Return tiles in a row."""
    return element("dl", *shown, class_="tiles")


def command(line: str) -> Html | None:
    """Return a command with a button that copies it, which only the script shows; nothing for an empty one."""
    if not line:
        return None
    return joined((element("code", line, class_="command"), element("button", "Copy", type="button", class_="copy")))


def badge(word: str, mood: str = "") -> Html:
    """Return a word with a colour; the word alone carries the meaning."""
    return element("span", word, class_=f"badge {mood}".strip())


def words(childs: Iterable[Child]) -> Html:
    """Return parts with spaces between them."""
    parts: list[Child] = []
    for child in childs:
        parts += [" ", child] if parts else [child]
    return joined(parts)


def section(identity: str, title: str, *children: Child) -> Html:
    """Return a part of a page under its heading."""
    return element("section", element("h2", title, id=identity), *children, aria_labelledby=identity)


def shown_time(at: datetime | None, now: datetime) -> Html:
    """Return an instant with how far away it is."""
    if at is None:
        return text("n/a")
    return element("time", moment(at, now), datetime=at.isoformat())


def week(load: Load) -> Html:
    """Return the days of a calendar as a table of hours: the most runs that start in one minute of each."""
    head = element(
        "tr",
        element("th", "day", scope="col"),
        *(element("th", f"{hour:02}", scope="col") for hour in range(_HOURS)),
        element("th", "runs", scope="col"),
    )
    label = f"The most runs that start in one minute of each hour, in {load.zone}"
    table = element(
        "table",
        element("caption", label),
        element("thead", head),
        element("tbody", *(_day(load, day) for day in load.days)),
        class_="week",
    )
    return element("div", table, class_="scroll", role="region", aria_label=label, tabindex=0)


def _day(load: Load, day: date) -> Html:
    per_hour = SLOTS // _HOURS
    counts = [
        max(load.peaks.get((day, hour * per_hour + half), 0) for half in range(per_hour)) for hour in range(_HOURS)
    ]
    return element(
        "tr",
        element("th", f"{day:%a %d %b}", scope="row"),
        *(element("td", str(count) if count else "", class_=_load_class(count)) for count in counts),
        element("td", str(load.runs.get(day, 0))),
    )


def _load_class(count: int) -> str | None:
    if not count:
        return None
    if count >= _VERY_MANY:
        return "l3"
    return "l2" if count >= _MANY else "l1"


def pile_list(load: Load) -> Html | None:
    """Return the pile-ups in words; nothing without any."""
    if not load.piles:
        return None
    more = len(load.piles) - SHOWN
    rest = [f"and {more} more; foresail schedule spread proposes other minutes"] if more > 0 else []
    lines = [*map(pile_line, load.piles[:SHOWN]), *rest]
    return joined((element("h3", "In the same minute"), element("ul", *(element("li", line) for line in lines))))
