"""Fails on phrases that the texts must not contain: `python -m docs.phrases`, which `make lint` runs.

A phrase joins the list once it is removed everywhere. Spaces match line breaks and comment marks too.
"""

import re
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from docs.texts import literals

ROOT = Path(__file__).parent.parent
FOLDERS = ("src", "docs", "charts")
PAGES = ("README.md", "CONTRIBUTING.md", "CHANGELOG.md")
SUFFIXES = (".json", ".md", ".py", ".svg", ".tpl", ".txt", ".yaml")

INSTEAD = {
    "after the past": "a wake-up in the past",
    "as (?:it|they) stands?": "unchanged",
    "at each look": "at each reconcile",
    "beside other work": "on a busy machine",
    "beside (?:its|the) Lease": "besides the Lease",
    "change of clocks": "clock change",
    "complaints? of": "problems",
    "echoes": "expectations",
    "errands?": "background read, lookup",
    "gains? the lead": "becomes leader",
    "goes on by itself": "continues by itself",
    "good no more": "expired",
    "has nobody": "has no one, is without",
    "hasty": "with a wake-up in the past",
    "holds its key": "delays its key",
    "(?:holds|applies) whole": "applies; nothing is merged",
    "how (?:things|it|they) stands?": "the status",
    "is away": "is unavailable, is unreachable",
    "is going or gone": "is being deleted or already deleted",
    "is kept by": "is managed by",
    "leads (?:now|no longer)": "became leader, lost leadership",
    "let go(?! ahead)": "released",
    "let through": "admitted",
    "look(?:s|ing)? again": "requeue, reconcile again",
    "no Event says": "dropped Event",
    "nobody confirms": "without confirmation",
    "nobody waits any more": "stopped waiting",
    "out of (?:every|any) policy's reach": "no policy applies",
    "processor time": "CPU time",
    "push(?:es|ed)?(?: it| them| a placeholder)? aside": "preempt",
    "rehears(?:al|als|e|es)": "dry run, short run",
    "sees to it": "ensures",
    "stands? for the Lease": "campaigns for the Lease",
    "stands? (?:above|alone|guard|there)": "is, has precedence",
    "stands? in(?! for)": "is in, appears in",
    "the clock on the wall": "the wall clock",
    "the lead is lost": "leadership is lost",
    "tires? of": "stops",
    "told to end": "signalled, stopped",
    "unsayable": "inexpressible",
    "what was asked for goes on": "the operation continues",
    "whatever it must remember": "all state",
    "whoever leads": "the leader",
    "whom a change concerns": "map events to keys",
}
"""A pattern for each phrase, and what to write instead."""

IN_TEXTS = {
    "held back": "blocked",
    "(?:is|are|was|were|be|been) said": "reported",
    "(?:is|are|was|were|be|been) told": "reported, recognised",
    "nothing tells": "is unknown",
    "tells (?:its|more|what|which|whether|why)": "shows, reports",
    "what (?:becomes|became) of it": "outcome",
    "what is there": "existing objects",
    "what holds (?:it|them)": "what blocks it",
}
"""The same for texts that users read: pages, charts and the text literals of our code, not names and docstrings."""

_GAP = r"(?:\s|#)+"
_PATTERNS = {phrase: re.compile(rf"\b{phrase.replace(' ', _GAP)}\b", re.IGNORECASE) for phrase in (*INSTEAD, *IN_TEXTS)}


def problems(text: str, phrases: Mapping[str, str] = INSTEAD) -> Iterator[tuple[int, str]]:
    """Yield the line and the problem of each phrase in a text."""
    for phrase, instead in phrases.items():
        for found in _PATTERNS[phrase].finditer(text):
            line = text.count("\n", 0, found.start()) + 1
            yield line, f"{' '.join(found[0].split())!r}: write {instead}"


def file_problems(path: Path) -> Iterator[tuple[int, str]]:
    """Yield the problems of a file; of Python code, only text literals are read by users."""
    text = path.read_text()
    yield from problems(text)
    if path.suffix != ".py":
        yield from problems(text, IN_TEXTS)
        return
    for line, literal in literals(text):
        yield from ((line, problem) for _, problem in problems(literal, IN_TEXTS))


def main() -> int:
    """Print each problem of the texts; return 1 if there are any."""
    files = [path for folder in FOLDERS for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    found = [
        f"{path.relative_to(ROOT)}:{line}: {problem}"
        for path in sorted({*files, *(ROOT / page for page in PAGES)} - {Path(__file__)})
        for line, problem in sorted(set(file_problems(path)))
    ]
    for each in found:
        sys.stdout.write(f"{each}\n")
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main())
