"""The results that Velero keeps of a backup or a restore: of all that is in them, the lines about one namespace.

Velero sorts its errors and warnings by namespace, but puts much of what happens to one into its own part, without
saying where it was: of those only what names this namespace, and no other, counts as about it. The file comes from a
bucket, so it may hold anything.
"""

import re

import msgspec

MOST_LINES = 10
_LONGEST_LINE = 1024
_MOST_OF_VELERO = 1000  # lines of its own part that are gone through
_MOST_COMMAS = 1_000_000  # so there is no more in a file than that, whatever it is: each takes its memory

_FIELDS = re.compile(
    r"(?: resource: /(?P<resource>\S*))?(?: name: /(?P<name>\S*))?"
    r" message: /(?P<message>.*?)(?: error: /(?P<error>.*))?",
    re.DOTALL,
)
_NAMESPACE = re.compile(r"\bnamespace(?:=|: ?)[\"'/]?([-a-z0-9]+)")


class Lines(msgspec.Struct, frozen=True):
    """What a tenant is told of the results."""

    own: tuple[str, ...] = ()  # the first few, errors before warnings
    more: int = 0  # about the namespace too
    others: int = 0  # errors that are about anything else


class Part(msgspec.Struct):
    """Lines by what they are about."""

    velero: list[str] | None = None
    cluster: list[str] | None = None
    namespaces: dict[str, list[str] | None] | None = None


class Results(msgspec.Struct):
    """All lines, by how bad they are."""

    errors: Part | None = None
    warnings: Part | None = None


_results = msgspec.json.Decoder(Results)


def lines_about(namespace: str, results: bytes) -> Lines | None:
    """Return what the results say about a namespace; None if they are not of Velero's shape."""
    sections = parts(results)
    if sections is None:
        return None
    errors = sections.errors or Part()
    warnings = sections.warnings or Part()
    velero = (errors.velero or [])[:_MOST_OF_VELERO]
    own = [*_of(errors, namespace), *(line for line in velero if is_about(namespace, line))]
    others = _count(errors) - len(own)
    own += _of(warnings, namespace)
    return Lines(tuple(filter(None, map(tidy, own[:MOST_LINES]))), max(len(own) - MOST_LINES, 0), others)


def parts(results: bytes) -> Results | None:
    """Return all lines of the results; None if they are not of Velero's shape."""
    if results.count(b",") > _MOST_COMMAS:
        return None
    try:
        return _results.decode(results)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError):
        return None


def is_about(namespace: str, line: str) -> bool:
    """Whether a line that is in no namespace's part names this namespace, and no other."""
    line = line[:_LONGEST_LINE]
    named = set(_NAMESPACE.findall(line))
    path = re.search(rf"(?<![-\w./:]){re.escape(namespace)}/[a-z0-9]", line)
    return named == {namespace} or (not named and path is not None)


def tidy(line: str) -> str:
    """Return a line as people write it: what it is about, what was done, and what came of it."""
    line = line[:_LONGEST_LINE]
    fields = _FIELDS.fullmatch(line)
    if fields is not None:
        about = " ".join(filter(None, (fields["resource"], fields["name"])))
        line = ": ".join(filter(None, (about, fields["message"], fields["error"])))
    return " ".join("".join(character if character.isprintable() else " " for character in line).split())


def _of(part: Part, namespace: str) -> list[str]:
    return (part.namespaces or {}).get(namespace) or []


def _count(part: Part) -> int:
    own = sum(len(namespace or ()) for namespace in (part.namespaces or {}).values())
    return len(part.velero or ()) + len(part.cluster or ()) + own
