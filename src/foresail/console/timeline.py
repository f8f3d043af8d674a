"""The time line of a namespace: what was backed up, restored and checked, what is planned, and what will be deleted.

Pure: from points and a window to SVG. Every point is a link, so the keyboard and screen readers reach it, and the
same points follow as a table. Points that would touch are one point with the worst state of them and their number.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from typing import Protocol

from foresail.cli.output.words import counted, moment
from foresail.console.web.markup import Child, Html, element, joined
from foresail.console.web.parts import data_table, words


class What(StrEnum):
    """What a point of the time line is; the words are those of the legend."""

    FAILED = "failed"
    REFUSED = "refused"
    LACKING = "incomplete"
    RUNNING = "waits or runs"
    UNJUDGED = "ended, not judged"
    COMPLETE = "complete"
    CHECK_FAILED = "check failed"
    PASSED = "check passed"
    RESTORE_FAILED = "restore failed"
    RESTORE_REFUSED = "restore refused"
    RESTORED = "restore"
    PLANNED = "planned"
    DELETED = "will be deleted"


_WORST_FIRST = tuple(What)
_SIGNS = {
    What.FAILED: "✖",
    What.REFUSED: "⊘",
    What.LACKING: "◐",
    What.RUNNING: "◌",
    What.UNJUDGED: "●",
    What.COMPLETE: "●",
    What.CHECK_FAILED: "✖",
    What.PASSED: "✔",
    What.RESTORE_FAILED: "✖",
    What.RESTORE_REFUSED: "⊘",
    What.RESTORED: "▲",
    What.PLANNED: "○",
    What.DELETED: "▽",
}
_LANES = (
    (
        "Backups",
        {What.FAILED, What.REFUSED, What.LACKING, What.RUNNING, What.UNJUDGED, What.COMPLETE, What.PLANNED},
    ),
    ("Restores", {What.RESTORED, What.RESTORE_FAILED, What.RESTORE_REFUSED}),
    ("Checks", {What.PASSED, What.CHECK_FAILED}),
    ("Deletions", {What.DELETED}),
)


@dataclass(frozen=True, slots=True)
class Point:
    """Something at an instant, and the page that shows it."""

    at: datetime
    what: What
    name: str
    path: tuple[str, ...] = ()
    note: str = ""


SPANS = {
    "day": (timedelta(hours=24), timedelta(hours=12)),
    "week": (timedelta(days=7), timedelta(days=3)),
    "month": (timedelta(days=31), timedelta(days=10)),
    "quarter": (timedelta(days=92), timedelta(days=31)),
    "year": (timedelta(days=366), timedelta(days=92)),
    "years": (timedelta(days=5 * 366), timedelta(days=366)),
}
"""How far a time line goes back, and ahead, by its name."""

_DEFAULT = "week"
_TICKS = {
    "day": timedelta(hours=4),
    "week": timedelta(days=1),
    "month": timedelta(days=5),
    "quarter": timedelta(days=15),
    "year": timedelta(days=61),
    "years": timedelta(days=366),
}
_FURTHEST = timedelta(days=20 * 366)


@dataclass(frozen=True, slots=True)
class Window:
    """The part of time that is shown."""

    span: str
    middle: datetime  # between what was and what will be, such as now
    now: datetime

    @property
    def start(self) -> datetime:
        """The left end."""
        return self.middle - SPANS[self.span][0]

    @property
    def end(self) -> datetime:
        """The right end."""
        return self.middle + SPANS[self.span][1]

    def has(self, at: datetime) -> bool:
        """Whether an instant is shown."""
        return self.start <= at <= self.end


def window_of(span: str, middle: str, now: datetime) -> Window:
    """Return the window that a link asks for; what it cannot be is the default."""
    span = span if span in SPANS else _DEFAULT
    days = int(middle) if middle.removeprefix("-").isdecimal() and len(middle) <= 5 else 0  # noqa: PLR2004 - 273 years
    moved = timedelta(days=days)
    return Window(span, now + moved if abs(moved) <= _FURTHEST else now, now)


_WIDTH, _LEFT, _RIGHT = 1000, 92, 14
_LANE, _TOP = 34, 26
_DAYS = {"day": "%H:%M", "week": "%a %d", "years": "%Y"}  # for each span; all others name the day and the month
_TOUCHING = 26  # units between two points, each of which is 24 wide for fingers
_MOST_LISTED = 100
_HALF_A_DAY = 26  # units that the name of a day needs on each side


@dataclass(frozen=True, slots=True)
class Mark:
    """A point as it is drawn: several that would touch are one."""

    x: float
    points: tuple[Point, ...]

    @property
    def what(self) -> What:
        """The worst of them."""
        return min((point.what for point in self.points), key=_WORST_FIRST.index)


def marks_of(points: Iterable[Point], window: Window) -> list[Mark]:
    """Return the points of a lane that are shown, from left to right, those that would touch together."""
    marks: list[Mark] = []
    for point in sorted(points, key=lambda point: point.at):
        if not window.has(point.at):
            continue
        share = (point.at - window.start) / (window.end - window.start)
        x = _LEFT + share * (_WIDTH - _LEFT - _RIGHT)
        if marks and x - marks[-1].x < _TOUCHING and _is_ahead(point, window) == _is_ahead(marks[-1].points[0], window):
            marks[-1] = Mark(marks[-1].x, (*marks[-1].points, point))
        else:
            marks.append(Mark(x, (point,)))
    return marks


def _is_ahead(point: Point, window: Window) -> bool:
    return point.at > window.now


class LinkOf(Protocol):
    """Writes links; a Site does."""

    def link(self, *parts: str, **query: str | int) -> str:
        """Return the path of a page."""


def time_line(link: LinkOf, path: Sequence[str], points: Sequence[Point], window: Window) -> Html:
    """Return the time line with links that zoom and move, its legend, and the same as a table."""
    lanes = [(name, [point for point in points if point.what in kinds]) for name, kinds in _LANES]
    used = [(name, of_lane) for name, of_lane in lanes if of_lane or name == "Backups"]
    height = _TOP + _LANE * len(used) + 6
    marks = [(name, marks_of(of_lane, window)) for name, of_lane in used]
    drawn = [_lane(link, path, name, of_lane, window, _TOP + _LANE * row) for row, (name, of_lane) in enumerate(marks)]
    label = f"Time line from {window.start:%Y-%m-%d} to {window.end:%Y-%m-%d}"
    svg = element(
        "svg",
        *_ticks(window, height),
        *drawn,
        viewBox=f"0 0 {_WIDTH} {height}",
        role="group",
        aria_label=label,
        class_="line",
    )
    shown = sorted((point for point in points if window.has(point.at)), key=lambda point: point.at, reverse=True)
    kinds = [what for what in What if any(point.what is what for point in shown)]
    return joined(
        (
            element("div", svg, class_="scroll wide", role="region", aria_label=label, tabindex=0),
            _legend(kinds, has_groups=any(map(_has_groups, marks))),
            _zoom(link, path, window),
            _as_table(link, shown, window),
        )
    )


def _has_groups(lane: tuple[str, Sequence[Mark]]) -> bool:
    return any(len(mark.points) > 1 for mark in lane[1])


def _ticks(window: Window, height: int) -> list[Html]:
    step = _TICKS[window.span]
    first = window.start.astimezone(UTC).replace(minute=0, second=0, microsecond=0)
    first = first if window.span == "day" else first.replace(hour=0)
    marks = list[Html]()
    at = first + step
    while at <= window.end:
        x = _x(at, window)
        marks.append(element("line", x1=x, x2=x, y1=18, y2=height, class_="tick"))
        if float(x) <= _WIDTH - _HALF_A_DAY:
            marks.append(element("text", _day(at, window.span), x=x, y=13, class_="when"))
        at += step
    if window.has(window.now):
        x = _x(window.now, window)
        marks.append(element("line", x1=x, x2=x, y1=18, y2=height - 14, class_="now"))
        marks.append(element("text", "now", x=x, y=height - 2, class_="when now"))
    return marks


def _day(at: datetime, span: str) -> str:
    return f"{at:{_DAYS.get(span, '%d %b')}}"


def _x(at: datetime, window: Window) -> str:
    share = (at - window.start) / (window.end - window.start)
    return f"{_LEFT + share * (_WIDTH - _LEFT - _RIGHT):.1f}"


def _lane(link: LinkOf, path: Sequence[str], name: str, marks: Sequence[Mark], window: Window, top: int) -> Html:
    middle = top + _LANE // 2
    rule = element("line", x1=_LEFT, x2=_WIDTH - _RIGHT, y1=middle, y2=middle, class_="rule")
    title = element("text", name, x=0, y=middle + 4, class_="lane")
    return element("g", title, rule, *(_mark(link, path, mark, window, middle) for mark in marks))


def _mark(link: LinkOf, path: Sequence[str], mark: Mark, window: Window, middle: int) -> Html:
    """Return a point that leads to its page, or several that lead to a closer look."""
    count = len(mark.points)
    first = mark.points[0]
    text = _told(first, window.now)
    href = link.link(*first.path) if first.path else None
    if count > 1:
        text = f"{counted(count, 'point')} until {mark.points[-1].at:%Y-%m-%d %H:%M} UTC, the worst: {mark.what}"
        href = _closer(link, path, mark, window)
    area = element("rect", x=f"{mark.x - 12:.1f}", y=middle - 12, width=24, height=24, class_="area")
    sign = element("text", _SIGNS[mark.what], x=f"{mark.x:.1f}", y=middle + 6, class_=f"sign {_class(mark.what)}")
    number = element("text", str(count), x=f"{mark.x + 8:.1f}", y=middle - 7, class_="count") if count > 1 else None
    title = element("title", text)
    if href is None:
        return element("g", title, area, sign, number, role="img", aria_label=text)
    return element("a", title, area, sign, number, href=href, aria_label=text)


def _closer(link: LinkOf, path: Sequence[str], mark: Mark, window: Window) -> str:
    spans = list(SPANS)
    closer = spans[max(spans.index(window.span) - 1, 0)]
    days = round((mark.points[-1].at - window.now) / timedelta(days=1))
    return link.link(*path, span=closer, days=days)


def _class(what: What) -> str:
    if what in (What.FAILED, What.CHECK_FAILED, What.RESTORE_FAILED):
        return "bad"
    if what in (What.LACKING, What.REFUSED, What.RESTORE_REFUSED):
        return "warn"
    return "good" if what in (What.COMPLETE, What.PASSED) else "plain"


def _told(point: Point, now: datetime) -> str:
    note = f", {point.note}" if point.note else ""
    return f"{point.name}: {point.what}{note}, {moment(point.at, now)}"


def _legend(kinds: Iterable[What], *, has_groups: bool) -> Html | None:
    signs = [
        element("li", element("span", _SIGNS[what], class_=f"sign {_class(what)}", aria_hidden="true"), f" {what}")
        for what in kinds
    ]
    groups = element("li", "2, 3, …: so many at once, the worst is drawn; open it for all") if has_groups else None
    return element("ul", *signs, groups, class_="legend") if signs else None


def _zoom(link: LinkOf, path: Sequence[str], window: Window) -> Html:
    """Return links to other lengths, to what was before and comes after, and back to now."""
    days = round((window.middle - window.now) / timedelta(days=1))
    spans = [
        element("a", span, href=link.link(*path, span=span), aria_current="true" if span == window.span else None)
        for span in SPANS
    ]
    step = max(round(SPANS[window.span][0] / timedelta(days=1)), 1)
    moves = [
        element("a", name, href=link.link(*path, span=window.span, days=days + by))
        for name, by in (("earlier", -step), ("later", step))
    ]
    today = element("a", "now", href=link.link(*path, span=window.span)) if days else None
    return element(
        "p", "Show a ", words((*spans, "|", *moves, today) if today else (*spans, "|", *moves)), class_="zoom"
    )


def _as_table(link: LinkOf, shown: Sequence[Point], window: Window) -> Html:
    rows: list[tuple[Child, ...]] = [
        (
            element("a", point.name, href=link.link(*point.path)) if point.path else point.name,
            str(point.what),
            moment(point.at, window.now),
            point.note,
        )
        for point in shown[:_MOST_LISTED]
    ]
    more = len(shown) - _MOST_LISTED
    rest = element("p", f"{more} more: choose a shorter time.", class_="note") if more > 0 else None
    table = data_table("Time line", ("name", "what", "when", "note"), rows, "Nothing happened in this time.")
    return element("details", element("summary", "The same as a table"), table, rest)
