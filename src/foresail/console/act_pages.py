"""The page of an act: what it does, its runs, its object and its command, and one button that does it."""

from datetime import datetime

import yaml

from foresail.api.instants import stamp
from foresail.console.acts import Act, Choice, Runs
from foresail.console.layout import Site, cut, shell
from foresail.console.web.markup import Html, element
from foresail.console.web.parts import data_table, section

_MOST_SHOWN, _LONGEST_CLUSTER = 12, 60
_CHANGED = "You changed the form, or the cluster has changed: this is what it would write now."
_VERBS = {(True, False): "Creates", (False, False): "Changes", (False, True): "Deletes"}


def preview(site: Site, act: Act, at: datetime, *, is_changed: bool = False) -> Html:
    """Return what an act will write, as it was made then; nothing is written yet."""
    text = yaml.safe_dump(act.body, sort_keys=False, allow_unicode=True)
    shown = element("pre", text, class_="scroll", tabindex=0, role="region", aria_label="YAML")
    verb = f"{_VERBS[act.creates, act.deletes]} {act.kind.name} {act.key}"
    changed = element("p", _CHANGED, role="status")
    return shell(
        site,
        act.title,
        act.command,
        section(
            "does", "Nothing is written yet", element("p", cut(act.does)), changed if is_changed else None,
            _problem(act), _wished(site, act) if act.problem else _confirmed(site, act, at),
        ),
        section("effects", "What it would do", *_effects(act)) if act.effects else None,
        section("runs", "When it would run", *_runs(act.runs)) if act.runs is not None else None,
        section("yaml", cut(verb), shown),
    )  # fmt: skip


def _confirmed(site: Site, act: Act, at: datetime) -> Html:
    """Return the form that does what is shown; what was changed in it since comes back as another preview."""
    fixed = {"csrf": site.csrf, "previewed": act.digest, "at": stamp(at)}
    hidden = (element("input", type="hidden", name=name, value=value) for name, value in fixed.items())
    again = element("button", "Preview", type="submit", name="what", value="preview", formnovalidate=True)
    go = element("button", act.label, type="submit", class_="go")
    buttons = element("div", again if act.is_a_form else None, go, back(site, act), class_="acts")
    inner = (*hidden, *map(_field, act.choices), _typed(site, act), buttons)
    kind = " ".join(filter(None, ("choices", "danger" if act.typed else "")))
    return element("form", *inner, method="post", action=site.link(*act.place), class_=kind)


def _wished(site: Site, act: Act) -> Html:
    """Return the form with which another preview is asked for; it writes nothing."""
    again = element("button", "Preview", type="submit") if act.is_a_form else None
    buttons = element("div", again, back(site, act), class_="acts")
    fields = map(_field, act.choices)
    return element("form", *fields, buttons, method="get", action=site.link(*act.place), class_="choices")


def _typed(site: Site, act: Act) -> Html | None:
    """Return the field for what has to be typed."""
    if not act.typed:
        return None
    field = element(
        "input", type="text", id="typed", name="typed", required=True, maxlength=63, pattern=act.typed,
        autocomplete="off", spellcheck="false",
    )  # fmt: skip
    label = f"Type {act.typed} to confirm, in cluster {cut(site.viewpoint.title or 'unknown', _LONGEST_CLUSTER)}"
    return element("p", element("label", label, for_="typed"), field)


def back(site: Site, act: Act) -> Html:
    """Return the way out."""
    return element("a", act.way_out, href=site.link(*act.after[:2]))


def _problem(act: Act) -> Html | None:
    """Return why it cannot be written; what an administrator must allow is folded away."""
    if not act.problem:
        return None
    told: Html | None = element("p", cut(act.hint)) if act.hint else None
    if act.hint and act.is_refused:
        summary = element("summary", "For a cluster administrator")
        told = element("details", summary, element("p", element("code", cut(act.hint))))
    return element("div", element("p", cut(act.problem), class_="problem", role="alert"), told)


def _field(choice: Choice) -> Html:
    if choice.is_hidden:
        return element("input", type="hidden", name=choice.name, value=choice.value)
    identity = f"choice-{choice.name}"
    label = element("label", choice.label, for_=identity)
    if choice.options:
        options = [
            element("option", shown, value=value, selected=value == choice.value) for value, shown in choice.options
        ]
        return element("p", label, element("select", *options, id=identity, name=choice.name))
    field = element(
        "input", type="text", id=identity, name=choice.name, value=choice.value, required=choice.is_required,
        maxlength=2000, autocomplete="off", spellcheck="false",
    )  # fmt: skip
    return element("p", label, field)


def _effects(act: Act) -> list[Html]:
    sentences = [element("p", cut(text)) for title, text in act.effects if not title]
    rows = [(title, cut(text)) for title, text in act.effects if title]
    table = data_table("What it would do", ("what", "value"), rows, "")
    return [*sentences, table] if rows else sentences


def _runs(runs: Runs) -> tuple[Html, ...]:
    listed = [
        element("li", element("time", f"{at:%a %d %b, %H:%M} UTC", datetime=at.isoformat()))
        for at in runs.starts[:_MOST_SHOWN]
    ]
    more = len(runs.starts) - _MOST_SHOWN
    rest = (element("p", f"{more} more.", class_="note"),) if more > 0 else ()
    return (element("p", str(runs)), element("ul", *listed, class_="runs"), *rest)
