"""Aligned columns: tables of ours, and lines with tabs as Go's tabwriter aligns them for Velero."""

from collections.abc import Iterable, Sequence

_PADDING = 2


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the rows under their header, each column as wide as its widest cell."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = [max(len(line[column]) for line in lines) for column in range(len(header))]
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def aligned(lines: Sequence[str]) -> str:
    """Return the lines with each column as wide as its widest cell, among lines that follow each other.

    A cell ends with a tab; what follows the last tab of a line belongs to no column.
    """
    rows = [line.split("\t") for line in lines]
    _align(rows, 0)
    return "\n".join("".join(cells) for cells in rows)


def _align(rows: Sequence[list[str]], column: int) -> None:
    at = 0
    while at < len(rows):
        block: list[list[str]] = []
        for row in rows[at:]:
            if len(row) <= column + 1:
                break
            block.append(row)
        width = max((len(row[column]) for row in block), default=0) + _PADDING
        for row in block:
            row[column] = row[column].ljust(width)
        if block:
            _align(block, column + 1)
        at += max(len(block), 1)
