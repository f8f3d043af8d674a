"""Velero's results as a table: how bad, where, and what; `foresail backup logs --results` prints it."""

from collections.abc import Iterator

from foresail.cli.errors import CommandError
from foresail.cli.output.table import table
from foresail.selfservice.results.file import Part, parts, tidy


def as_lines(results: bytes) -> str:
    """Return the results in lines, errors first."""
    found = parts(results)
    if found is None:
        raise CommandError("the results are not in Velero's format", "read the log, without --results")
    rows = [*_rows("error", found.errors), *_rows("warning", found.warnings)]
    return table(("LEVEL", "WHERE", "WHAT"), rows) if rows else "No errors and no warnings."


def _rows(level: str, part: Part | None) -> Iterator[tuple[str, str, str]]:
    if part is None:
        return
    places = [*(part.namespaces or {}).items(), ("cluster", part.cluster), ("velero", part.velero)]
    for place, lines in places:
        yield from ((level, tidy(place), tidy(line)) for line in lines or ())
