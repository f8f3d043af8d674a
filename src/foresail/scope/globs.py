"""Velero's glob patterns: `*`, `?`, `[abc]`, `[!a-z]` and `{a,b}`, which match a whole name."""

import re
from collections.abc import Iterable
from functools import lru_cache

WILDCARDS = frozenset("*?[")
"""The characters that make a namespace name a pattern."""

_REMEMBERED = 10_000
_ANY = ".*"


def has_wildcard(name: str) -> bool:
    """Whether a namespace name is a pattern."""
    return not WILDCARDS.isdisjoint(name)


@lru_cache(_REMEMBERED)
def compiled(pattern: str) -> re.Pattern[str] | None:
    """Return a pattern as a regular expression; None if it is malformed."""
    try:
        return re.compile(_expression(pattern), re.DOTALL)
    except (ValueError, re.error):
        return None


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns matches; as in Velero, a malformed one ends the search."""
    for pattern in sorted(patterns):
        expression = compiled(pattern)
        if expression is None:
            return False
        if expression.fullmatch(name):
            return True
    return False


def _expression(pattern: str) -> str:
    parts: list[str] = []
    depth, position = 0, 0
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "\\":
            parts.append(re.escape(pattern[position : position + 1]))
            position += 1
        elif character == "[":
            end = pattern.index("]", position + 1)
            parts.append(_class(pattern[position:end]))
            position = end + 1
        elif character == "{":
            depth += 1
            parts.append("(?:")
        elif character == "}" and depth:
            depth -= 1
            parts.append(")")
        elif character == "," and depth:
            parts.append("|")
        else:
            parts.append({"*": _ANY, "?": "."}.get(character) or re.escape(character))
    if depth:
        raise ValueError("unclosed brace")
    return _joined(parts)


def _joined(parts: list[str]) -> str:
    """Join the parts so that a pattern with many stars takes no exponential time."""
    if "(?:" in parts or parts.count(_ANY) < 2:  # noqa: PLR2004  one star cannot backtrack
        return re.sub(r"(?:\.\*)+", _ANY, "".join(parts))
    segments: list[str] = [""]
    for part in parts:
        if part == _ANY:
            segments.append("")
        else:
            segments[-1] += part
    middle = "".join(f"(?>.*?{each})" for each in segments[1:-1] if each)
    return f"{segments[0]}{middle}{_ANY}{segments[-1]}"


def _class(content: str) -> str:
    negated = "^" if content.startswith("!") else ""
    content = content[1:] if negated else content
    if not content:
        raise ValueError("empty class")
    if len(content) == 3 and content[1] == "-":  # noqa: PLR2004  a range is two characters and a hyphen
        return f"[{negated}{re.escape(content[0])}-{re.escape(content[2])}]"
    return f"[{negated}{''.join(re.escape(each) for each in content)}]"
