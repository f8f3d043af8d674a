"""Aligned columns: tables of ours, and lines with tabs as Go's tabwriter aligns them for Velero."""

import sys
from collections.abc import Iterable, Sequence
from typing import TextIO

_PADDING = 2
_LEAST = 8  # characters that a shortened cell keeps


def table(header: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return the rows under their header, each column as wide as its widest cell."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = columns(lines)
    return "\n".join(
        "   ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)).rstrip() for line in lines
    )


def columns(lines: Sequence[Sequence[str]]) -> list[int]:
    """Return how wide each column is."""
    return [max(map(len, column)) for column in zip(*lines, strict=True)]


def fitted(header: Sequence[str], rows: Iterable[Sequence[str]], width: int | None, shrinks: Sequence[str]) -> str:
    """Return the table, with the cells of some columns shortened one after the other until it fits the width."""
    lines = shortened(header, rows, width, shrinks)
    return table(lines[0], lines[1:])


def shortened(
    header: Sequence[str], rows: Iterable[Sequence[str]], width: int | None, shrinks: Sequence[str]
) -> list[list[str]]:
    """Return the header and the rows, with the cells of some columns shortened until a table of them fits."""
    lines = [list(header), *(list(row) for row in rows)]
    widths = columns(lines)
    excess = sum(widths) + 3 * (len(widths) - 1) - (width or sys.maxsize)
    for column in [header.index(shrink) for shrink in shrinks if shrink in header]:
        room = max(widths[column] - excess, min(widths[column], _LEAST))
        if excess > 0 and room < widths[column]:
            for line in lines:
                line[column] = line[column] if len(line[column]) <= room else f"{line[column][: room - 1]}…"
            excess -= widths[column] - room
    return lines


def terminal_width(stream: TextIO) -> int | None:
    """Return the columns of a terminal; None for a file or a pipe, where nothing is shortened."""
    if not stream.isatty():
        return None
    from shutil import get_terminal_size  # noqa: PLC0415 - it imports bz2 and lzma

    return get_terminal_size().columns


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
