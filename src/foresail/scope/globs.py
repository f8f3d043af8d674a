"""Velero's glob patterns: `*`, `**`, `?`, `[abc]`, `[!a-z]` and `{a,b}`, which match a whole name.

With a separator, `*` and `?` stop at it and `**` does not.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import lru_cache
from itertools import groupby

WILDCARDS = frozenset("*?[")
"""The characters that make a namespace name a pattern."""

Matcher = Callable[[str], bool]

_REMEMBERED = 10_000
_SPECIAL = frozenset(("*", "**", "{", ",", "}"))
_MEANINGFUL = frozenset("*?[]{},!\\")


def has_wildcard(name: str) -> bool:
    """Whether a namespace name is a pattern."""
    return not WILDCARDS.isdisjoint(name)


def is_plain(pattern: str) -> bool:
    """Whether a pattern matches itself only."""
    return _MEANINGFUL.isdisjoint(pattern)


@lru_cache(_REMEMBERED)
def compiled(pattern: str, separator: str = "") -> Matcher | None:
    """Return whether a name matches a pattern, as a function; None if the pattern is malformed."""
    try:
        parts = list(_parts(pattern, separator))
        return _matcher_of_steps(parts, separator) if separator or "{" in parts else _matcher_of_stars(parts)
    except (ValueError, re.error):
        return None


def matches(patterns: Iterable[str], name: str) -> bool:
    """Whether one of the patterns matches; as in Velero, a malformed one ends the search."""
    for pattern in sorted(patterns):
        is_match = compiled(pattern)
        if is_match is None:
            return False
        if is_match(name):
            return True
    return False


def _parts(pattern: str, separator: str) -> Iterator[str]:
    """Yield `*`, `**`, the `{`, `,` and `}` of alternatives, and regular expressions of one character."""
    depth = 0
    position = 0
    any_character = f"[^{re.escape(separator)}]" if separator else "."
    while position < len(pattern):
        character = pattern[position]
        position += 1
        if character == "\\":
            yield _character(pattern[position : position + 1])
            position += 1
        elif character == "[":
            end = pattern.index("]", position + 1)
            yield _class(pattern[position:end])
            position = end + 1
        elif pattern.startswith("**", position - 1):
            yield "**"
            position += 1
        elif character in "{*" or (character in ",}" and depth):
            depth += {"{": 1, "}": -1}.get(character, 0)
            yield character
        else:
            yield any_character if character == "?" else _character(character)
    if depth:
        raise ValueError("unclosed brace")


def _matcher_of_stars(parts: list[str]) -> Matcher:
    """Return the matcher of a pattern without braces; with many stars it takes no exponential time."""
    segments: list[str] = [""]
    for part in parts:
        if part in ("*", "**"):
            segments.append("")
        else:
            segments[-1] += part
    middle = "".join(f"(?>.*?{segment})" for segment in segments[1:-1] if segment)
    end = f".*{segments[-1]}" if len(segments) > 1 else ""
    expression = re.compile(f"{segments[0]}{middle}{end}", re.DOTALL)
    return lambda name: expression.fullmatch(name) is not None


def _matcher_of_steps(parts: list[str], separator: str) -> Matcher:
    """Return the matcher of any pattern; it looks at each part once for each position in the name."""
    steps: list[str | re.Pattern[str]] = []
    for is_special, group in groupby(parts, _SPECIAL.__contains__):
        run = list(group)
        steps += run if is_special else [re.compile("".join(run), re.DOTALL)]
    return lambda name: len(name) in _ends(steps, name, separator)


def _ends(steps: Iterable[str | re.Pattern[str]], name: str, separator: str) -> set[int]:
    """Return the positions in the name where the steps can end."""
    at = {0}
    outer: list[tuple[set[int], set[int]]] = []  # of each open brace: where it began, where its alternatives ended
    for step in steps:
        if not isinstance(step, str):
            at = {match.end() for position in at if (match := step.match(name, position))}
        elif step == "*" and separator:
            at = {end for position in at for end in range(position, _segment_end(name, position, separator) + 1)}
        elif step in ("*", "**"):
            at = set(range(min(at), len(name) + 1)) if at else at
        elif step == "{":
            outer.append((at, set()))
        elif step == ",":
            began, ended = outer[-1]
            ended |= at
            at = began
        else:
            _, ended = outer.pop()
            at = ended | at
    return at


def _segment_end(name: str, position: int, separator: str) -> int:
    found = name.find(separator, position)
    return len(name) if found < 0 else found


def _character(character: str) -> str:
    """Return the expression of one character; those that are special in a pattern as a class."""
    return f"[{character}]" if character in _SPECIAL else re.escape(character)


def _class(content: str) -> str:
    negated = "^" if content.startswith("!") else ""
    content = content[1:] if negated else content
    if not content:
        raise ValueError("empty class")
    if len(content) == 3 and content[1] == "-":  # noqa: PLR2004  a range is two characters and a hyphen
        return f"[{negated}{re.escape(content[0])}-{re.escape(content[2])}]"
    return f"[{negated}{''.join(re.escape(each) for each in content)}]"
