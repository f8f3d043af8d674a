"""HTML as a type: text of a cluster becomes markup only by being escaped."""

import re
from collections.abc import Iterable
from html import escape

_UNSEEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff]")
_VOID = frozenset({"br", "col", "hr", "input", "link", "meta"})


class Html(str):
    """Markup; only this module makes it from text."""

    __slots__ = ()


Child = Html | str | None
Attribute = str | int | bool | None


def text(content: str) -> Html:
    """Return text as markup: escaped, with `?` for characters that are unseen or turn the line."""
    is_plain = content.isascii() and content.isprintable()  # most text: nothing to look for, and faster to tell
    return Html(escape(content if is_plain else _UNSEEN.sub("?", content), quote=True))


def joined(children: Iterable[Child]) -> Html:
    """Return children one after the other; what is not markup yet is escaped."""
    return Html("".join(child if isinstance(child, Html) else text(child) for child in children if child is not None))


def element(tag: str, *children: Child, **attributes: Attribute) -> Html:
    """Return an element; `class_` and `aria_label` name the attributes `class` and `aria-label`."""
    start = f"<{tag}{''.join(_attribute(name, value) for name, value in attributes.items())}>"
    return Html(start if tag in _VOID else f"{start}{joined(children)}</{tag}>")


def _attribute(name: str, value: Attribute) -> str:
    if value is None or value is False:
        return ""
    spelled = name.rstrip("_").replace("_", "-")
    return f" {spelled}" if value is True else f' {spelled}="{text(str(value))}"'


def style(rules: str) -> Html:
    """Return a style sheet of ours; its rules hold no text of a cluster."""
    return Html(f"<style>{rules}</style>")


def document(title: str, head: Iterable[Child], body: Iterable[Child]) -> Html:
    """Return a whole page."""
    parts = (
        element("meta", charset="utf-8"),
        element("meta", name="viewport", content="width=device-width, initial-scale=1"),
        element("meta", name="color-scheme", content="light dark"),
        element("title", title),
        *head,
    )
    content = joined((element("head", *parts), element("body", *body)))
    return Html(f"<!doctype html>\n{element('html', content, lang='en')}\n")
