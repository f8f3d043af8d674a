"""The globs of Velero's resource modifiers, which know more than those of shells."""

import re


class GlobError(Exception):
    """Why a glob cannot be read."""


def glob_matches(text: str, glob: str, separator: str = "") -> bool:
    """Whether a text matches a glob with `*`, `**`, `?`, `[a-z]` and `{a,b}`; `*` and `?` stop at the separator."""
    try:
        return re.fullmatch(_regex(glob, separator), text) is not None
    except re.error as error:
        raise GlobError(f"{glob!r} is not a glob") from error


def _regex(glob: str, separator: str) -> str:
    one = f"[^{re.escape(separator)}]" if separator else "."
    found: list[str] = []
    depth = 0
    for token in re.findall(r"\\.|\*\*|\[!?[^]]*\]?|.", glob, re.DOTALL):
        if token.startswith("["):
            found.append("[^" + token[2:] if token.startswith("[!") else token)
            continue
        depth += {"{": 1, "}": -1}.get(token, 0)
        found.append(_part(token, one, is_in_braces=depth > 0))
    return "".join(found)


def _part(token: str, one: str, *, is_in_braces: bool) -> str:
    parts = {"**": ".*", "*": f"{one}*", "?": one, "{": "(?:", "}": ")"}
    if is_in_braces:
        parts[","] = "|"
    return parts.get(token) or re.escape(token.removeprefix("\\") or token)
