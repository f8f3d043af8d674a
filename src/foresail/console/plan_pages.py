"""The second and the third step of a restore: what it would do to each object, in groups, and the confirmation."""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass
from datetime import datetime

from foresail.api.instants import stamp
from foresail.cli.errors import CommandError
from foresail.cli.output.words import counted
from foresail.cli.restore_plan.planning import RestorePlan
from foresail.cli.restore_plan.report import Judged, reason_text
from foresail.cli.tenant.get import until
from foresail.cli.tenant.only import is_pickable, word_of
from foresail.cli.tenant.since import Since
from foresail.cli.tenant.tenant_request import TenantRequest
from foresail.console.layout import Site, cut, form, shell
from foresail.console.restore_pages import POLICIES, UPDATE, rail
from foresail.console.web.markup import Html, element, joined
from foresail.console.web.parts import badge, data_table, section

MOST_PICKED = 200
"""Objects that can be ticked: each is a field of the form."""

_MOST_ITEMS, _MOST_CHARACTERS = 1000, 2 << 20
_WORST_FIRST = (
    "refused", "differs", "exists", "not predictable", "not restored", "create", "follows", "unchanged",
)  # fmt: skip
"""The groups in the order in which they get room on a page."""

_MOST_NEW = 200
_LONGEST_WORDS = 9_000  # characters of all words that can be ticked
_LONGEST_REASON = 400
_LONGEST_VALUE = 200


@dataclass(frozen=True, slots=True)
class Wish:
    """The restore that a viewer has described and not confirmed yet."""

    copy: TenantRequest
    policy: str
    search: str = ""
    picked: tuple[str, ...] = ()  # as RESOURCE/NAME; empty: everything

    @property
    def command(self) -> str:
        """The options of the same restore in the terminal."""
        key = self.copy.key
        existing = f" --existing-resource-policy {UPDATE}" if self.policy == UPDATE else ""
        only = f" --only {','.join(self.picked)}" if self.picked else ""
        return f"--from-backup {key.name} -n {key.namespace}{existing}{only}"

    @property
    def fields(self) -> dict[str, str]:
        """The fields of a form that say which restore it is."""
        return {"backup": self.copy.key.name, "uid": self.copy.request.metadata.uid, "policy": self.policy}


@dataclass(frozen=True, slots=True)
class Group:
    """Items of a plan that are alike for a reader, with their colour and what they mean."""

    word: str  # the outcome in a plan
    title: str
    meaning: str = ""
    mood: str = ""
    can_be_picked: bool = False
    is_open: bool = False


_FOLLOWS = "follows"
_WORDS = {"create": "is created", "unchanged": "is as in the copy"}
_EXISTS = "Choose to change objects back if you want the copy's."
_MADE = "Kubernetes makes these for other objects."
_GROUPS = {
    group.word: group
    for group in (
        Group(
            "differs", "Changed back", "These objects exist and are overwritten.", "warn",
            can_be_picked=True, is_open=True,
        ),
        Group("create", "Brought back", "These objects are missing.", can_be_picked=True, is_open=True),
        Group("refused", "Refused", "The API server would refuse these.", "bad", is_open=True),
        Group("exists", "Stays as it is, although it differs", _EXISTS, "warn", is_open=True),
        Group("not predictable", "Not predictable"),
        Group(_FOLLOWS, "Follows by itself", _MADE),
        Group("not restored", "Not restored"),
        Group("unchanged", "No change"),
    )
}  # fmt: skip
"""By the outcome in a plan, in the order of a reader's questions."""


def planned(site: Site, wish: Wish, plan: RestorePlan, now: datetime, since: Since | None = None) -> Html:
    """Return what the restore would do to each item, in groups, and the ways to the last step."""
    differing = since or Since()
    grouped = _grouped(plan.verdicts, differing)
    pickable = _pickable(grouped)
    drawn, more = _drawn(grouped, wish, pickable)
    parts = [*drawn[:2], _new(differing, wish), *drawn[2:]]
    rest = element("p", f"{more} more items: use the command line with -o json.", class_="note") if more else None
    hidden = joined(_hidden(name, value) for name, value in wish.fields.items())
    secret = _hidden("csrf", site.csrf)
    everything = element("button", "Restore everything…", type="submit", name="what", value="all", class_="go")
    ticked = element("button", "Restore what is ticked…", type="submit", name="what", value="ticked")
    buttons = element("div", everything, ticked if pickable else None, _another(site, wish), class_="acts")
    action = site.link("ns", wish.copy.key.namespace, "confirm")
    empty = element("p", "The backup has no items.", class_="empty") if not plan.verdicts else None
    return shell(
        site,
        "Restore plan",
        f"foresail restore plan {wish.command}",
        rail(1),
        _about(site, wish, now),
        element(
            "form", secret, hidden,
            section("next", "Nothing is restored yet", _kept(wish), buttons, _limits(plan, grouped, pickable)),
            section("items", "What it would do", empty, *parts, rest),
            method="post", action=action,
        ),
        section("search", "Search", _search(site, wish)),
    )  # fmt: skip


def _grouped(verdicts: Iterable[Judged], since: Since) -> dict[str, list[Judged]]:
    """Return the items by group, as far as a page has room."""
    grouped: dict[str, list[Judged]] = {name: [] for name in _GROUPS}
    for verdict in verdicts:
        grouped[_FOLLOWS if verdict.target in since.following else verdict.outcome.value].append(verdict)
    return grouped


def _pickable(grouped: dict[str, list[Judged]]) -> frozenset[str]:
    """Return what can be ticked; nothing if there is more than a form can carry."""
    words = [
        word_of(verdict.target)
        for name, verdicts in grouped.items()
        if _GROUPS[name].can_be_picked
        for verdict in verdicts
        if is_pickable(verdict.target)
    ]
    fits = len(words) <= MOST_PICKED and sum(map(len, words)) <= _LONGEST_WORDS
    return frozenset(words) if fits else frozenset()


def _drawn(grouped: dict[str, list[Judged]], wish: Wish, pickable: frozenset[str]) -> tuple[list[Html | None], int]:
    """Return the groups, and how many items a page has no room for: what is wrong comes before what is new."""
    left, room, hidden = _MOST_ITEMS, _MOST_CHARACTERS, 0
    drawn: dict[str, Html] = {}
    for name in _WORST_FIRST:
        group, verdicts = _GROUPS[name], grouped[name]
        if not verdicts:
            continue
        shown = [verdict for verdict in verdicts if wish.search.lower() in str(verdict.target).lower()]
        rows: list[tuple[Html, Html]] = []
        for verdict in shown[:left]:
            row = _name(verdict, pickable if group.can_be_picked else ()), _why(verdict)
            room -= sum(map(len, row))
            if room < 0:
                break
            rows.append(row)
        left -= len(rows)
        hidden += len(shown) - len(rows)
        drawn[name] = _group(group, len(verdicts), rows, is_open=group.is_open or bool(wish.search and rows))
    return [drawn.get(name) for name in _GROUPS], hidden


def _group(group: Group, number: int, rows: Sequence[tuple[Html, Html]], *, is_open: bool) -> Html:
    head = element("summary", f"{group.title} ({number}) ", badge(group.word, group.mood))
    told = element("p", group.meaning, class_="note") if group.meaning else None
    table = data_table(group.title, ("object", "what"), rows, "None of these is shown.")
    return element("details", head, told, table, open=is_open)


def _name(verdict: Judged, pickable: Container[str]) -> Html:
    word = word_of(verdict.target)
    name = cut(str(verdict.target), _LONGEST_REASON)
    if word not in pickable:
        return joined((name,))
    box = element("input", type="checkbox", name="pick", value=word)
    return element("label", box, " ", element("span", name))


def _why(verdict: Judged) -> Html:
    """Return the fields side by side, or why an item has its outcome."""
    if not verdict.changes:
        why = "; ".join(filter(None, (reason_text(verdict), verdict.warning)))
        return joined((cut(why or _WORDS.get(verdict.outcome.value, ""), _LONGEST_REASON),))
    head = element("tr", *(element("th", text, scope="col") for text in ("field", "in the cluster", "in the copy")))
    rows = [
        element(
            "tr",
            element("th", cut(change.path, _LONGEST_VALUE), scope="row"),
            element("td", _value(change.in_cluster)),
            element("td", _value(change.in_backup)),
        )
        for change in verdict.changes
    ]
    why = cut("; ".join(filter(None, (verdict.reason, verdict.warning))), _LONGEST_REASON)
    table = element("table", element("thead", head), element("tbody", *rows), class_="fields")
    return joined((element("p", why) if why else None, table))


def _value(text: str | None) -> str:
    return cut(text, _LONGEST_VALUE) if text is not None else "(absent)"


def _new(since: Since, wish: Wish) -> Html | None:
    """Return what is in the namespace and not in the copy: a restore leaves it."""
    if not since.new and not since.unknown:
        return None
    shown = [pair for pair in since.new if wish.search.lower() in "/".join(pair).lower()]
    rows = [(f"{kind}/{name}", "stays") for kind, name in shown[:_MOST_NEW]]
    more = f"{len(shown) - _MOST_NEW} more. " if len(shown) > _MOST_NEW else ""
    unknown = f"Not known in full: {cut(since.unknown)}." if since.unknown else ""
    head = element("summary", f"New since then ({len(since.new)}) ", badge("stays"))
    table = data_table("New since then", ("object", "what"), rows, "Nothing.")
    note = element("p", more, unknown, class_="note") if more or unknown else None
    told = element("p", "These are not in the copy. A restore deletes nothing.", class_="note")
    return element("details", head, told, table, note, open=bool(rows))


def _limits(plan: RestorePlan, grouped: dict[str, list[Judged]], pickable: frozenset[str]) -> Html | None:
    out = [f"Warning: {cut(warning)}." for warning in plan.warnings]
    if plan.left_out:
        out.append(f"{counted(len(plan.left_out), 'item')} are left out by the restore itself.")
    if not pickable and any(grouped[name] for name, group in _GROUPS.items() if group.can_be_picked):
        out.append(f"Single objects can be ticked where there are at most {MOST_PICKED} that are no volumes.")
    return element("p", " ".join(out), class_="note") if out else None


def _search(site: Site, wish: Wish) -> Html:
    """Return the form that makes the plan again, and shows the objects with a text in their names."""
    label = element("label", "Object contains ", for_="q")
    field = element("input", type="search", id="q", name="q", value=wish.search, maxlength=253)
    hidden = (_hidden(name, value) for name, value in wish.fields.items())
    return form(site, site.link("ns", wish.copy.key.namespace, "plan"), "Search", joined((label, field, *hidden)))


def unplanned(site: Site, wish: Wish, error: CommandError, now: datetime) -> Html:
    """Return why there is no plan; the whole restore can be confirmed all the same."""
    hidden = joined(_hidden(name, value) for name, value in wish.fields.items())
    onward = form(site, site.link("ns", wish.copy.key.namespace, "confirm"), "Restore without a plan", hidden)
    return shell(
        site,
        "Restore plan",
        f"foresail restore plan {wish.command}",
        rail(1),
        _about(site, wish, now),
        section("problem", "There is no plan", element("p", cut(error.problem)), element("p", cut(error.hint or ""))),
        section("next", "Nothing is restored yet", _kept(wish), onward, element("p", _another(site, wish))),
    )


def _about(site: Site, wish: Wish, now: datetime) -> Html:
    key = wish.copy.key
    place = element("a", key.namespace, href=site.link("ns", key.namespace))
    made = until(wish.copy.velero.start_timestamp, now)
    return element("p", "Backup ", element("strong", key.name), f" of {made}, into namespace ", place, ".")


def _kept(wish: Wish) -> Html:
    return element("p", f"Objects that exist: {dict(POLICIES)[wish.policy].lower()}.")


def _another(site: Site, wish: Wish) -> Html:
    key = wish.copy.key
    return element("a", "Choose another backup", href=site.link("ns", key.namespace, "restore", backup=key.name))


def confirm(site: Site, wish: Wish, now: datetime, plan: RestorePlan | None = None, seen: str = "") -> Html:
    """Return the last step: it names cluster and namespace, is red if it overwrites, and the name must be typed."""
    key = wish.copy.key
    overwrites = wish.policy == UPDATE
    if plan is not None:
        overwrites = any(verdict.outcome.value == "differs" for verdict in plan.verdicts)
    cluster = site.viewpoint.title or "this cluster"
    number = counted(len(wish.picked), "object") if wish.picked else "everything"
    extra = {"only": ",".join(wish.picked), "seen": seen} if wish.picked else {}
    hidden = [_hidden(name, value) for name, value in {**wish.fields, **extra, "at": stamp(now)}.items()]
    typed = element(
        "p", element("label", f"Type {key.namespace} to confirm ", for_="typed"),
        element(
            "input", type="text", id="typed", name="typed", required=True, maxlength=63, pattern=key.namespace,
            autocomplete="off", spellcheck="false",
        ),
    )  # fmt: skip
    verb = "Overwrite" if overwrites else "Restore"
    label = f"{verb}{f' {number}' if wish.picked else ''} in {cut(cluster, 60)} / {key.namespace}"
    whole = form(site, site.link("ns", key.namespace, "restore"), label, joined((*hidden, typed)))
    head = element("h2", f"Restore {number} into namespace {key.namespace} of cluster {cut(cluster, 60)}", id="confirm")
    return shell(
        site,
        "Confirm the restore",
        f"foresail restore create {wish.command}",
        rail(2),
        _about(site, wish, now),
        element(
            "section", head, element("p", _effect(wish, overwrites=overwrites), class_="why"), whole,
            element("p", _another(site, wish)),
            class_=f"verdict {'bad danger' if overwrites else 'plain'}", aria_labelledby="confirm",
        ),
        _chosen(plan) if plan is not None else None,
    )  # fmt: skip


def _effect(wish: Wish, *, overwrites: bool) -> str:
    if wish.picked:
        way = "They are written with your own permissions, and only over what this page shows"
        return f"{way}. Some are OVERWRITTEN." if overwrites else f"{way}."
    return "Objects that exist and differ are OVERWRITTEN." if overwrites else "Objects that exist stay as they are."


def _chosen(plan: RestorePlan) -> Html:
    rows = [(cut(str(verdict.target), _LONGEST_REASON), _why(verdict)) for verdict in plan.verdicts[:_MOST_ITEMS]]
    table = data_table("What is ticked", ("object", "what"), rows, "None of them is in the copy.")
    return section("chosen", "What is ticked", table)


def done(site: Site, wish: Wish, told: Sequence[str]) -> Html:
    """Return what was restored; opening the page again restores nothing, because the objects are others now."""
    key = wish.copy.key
    lines = element("ul", *(element("li", cut(text, _LONGEST_REASON)) for text in told))
    back = element("a", f"Namespace {key.namespace}", href=site.link("ns", key.namespace))
    return shell(
        site,
        "Restored",
        f"foresail restore create {wish.command}",
        section("done", f"{counted(len(told), 'object')} restored", lines, element("p", back)),
    )


def _hidden(name: str, value: str) -> Html:
    return element("input", type="hidden", name=name, value=value)
