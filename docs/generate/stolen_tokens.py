"""The page of what a stolen token can do, from what the API server admitted in the last run of `make stolen-token`."""

import json
from pathlib import Path
from typing import Any

_FILE = Path(__file__).parents[1] / "stolen-tokens.json"
_HEAD = """# What a stolen token can do

`make stolen-token` has tried this on a real cluster with everything on, and found nothing else.
[Tokens](../../concepts/tokens.md) describes the fences.
"""
_READS = ("get", "list", "watch")
_AS_WRITTEN = "as the operator writes it"


def page() -> str:
    """Return the page."""
    known: dict[str, Any] = json.loads(_FILE.read_text())
    parts = [_HEAD, *(_part(token, known) for token in known["rights"])]
    return "\n".join(parts)


def _part(token: str, known: dict[str, Any]) -> str:
    lines = [f"## {token}", ""]
    means = known["means"].get(token, [])
    lines += [*(f"- {each}" for each in means), ""] if means else []
    for where, rules in known["rights"][token].items():
        reads = sorted({_words(each) for each in rules if each.split()[0] in _READS})
        if reads:
            lines += [f"It reads, in {where}: {', '.join(reads)}.", ""]
    rows = known["admitted"].get(token, {})
    if rows:
        lines += ["| it may | what | in which shape |", "|---|---|---|"]
        lines += [_row(token, title) for title in rows]
    else:
        lines += ["It writes nothing."]
    return "\n".join([*lines, ""])


def _words(rule: str) -> str:
    what, _, name = rule.partition(" named ")
    resource = what.partition(" ")[2]
    return f"`{resource}`" + (f" named `{name}`" if name else "")


def _row(token: str, title: str) -> str:
    what, _, shape = title.removeprefix(f"{token} ").partition(": ")
    verb, _, resource = what.partition(" ")
    return f"| {verb} | `{resource}` | {shape} |"
