"""Splits a stream into lines and decodes JSON of any nesting depth."""

import re
from typing import TypeVar

import msgspec

T = TypeVar("T")

MAX_LINE_BYTES = 16 << 20  # several times the largest object that the API server accepts
MAX_DEPTH = 100
"""Levels that `truncate_depth` keeps."""

_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


class LineSplitter:
    """Collects chunks of any size and returns whole lines; drops lines above the limit."""

    __slots__ = ("_max_bytes", "_pending", "_size")

    def __init__(self, max_bytes: int = MAX_LINE_BYTES) -> None:
        self._max_bytes = max_bytes
        self._pending: list[bytes] = []
        self._size = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """Return the lines that this chunk completes, without their line ends."""
        *ends, rest = chunk.split(b"\n")
        lines = [line for line in map(self._complete, ends) if line]
        self._append(rest)
        return lines

    def _complete(self, end: bytes) -> bytes:
        """Return the line that this part completes; empty if it was too long."""
        if not self._size and len(end) <= self._max_bytes:
            return end  # the common case: the whole line came in one chunk
        self._append(end)
        line = b"".join(self._pending)
        self._pending.clear()
        self._size = 0
        return line

    def _append(self, part: bytes) -> None:
        self._size += len(part)
        if self._size > self._max_bytes:
            self._pending.clear()
        elif part:
            self._pending.append(part)


def decode(decoder: msgspec.json.Decoder[T], data: bytes | msgspec.Raw) -> T:
    """Decode JSON of any depth.

    The API server accepts ten thousand levels, and a tenant may write them in a field without a schema. The decoder
    fails at a thousand, which would end the watch and with it the work for everybody.
    """
    try:
        return decoder.decode(data)
    except RecursionError:
        return decoder.decode(truncate_depth(bytes(data)))


def truncate_depth(data: bytes, max_depth: int = MAX_DEPTH) -> bytes:
    """Return JSON with null in place of each array and object that is nested deeper than `max_depth`."""
    kept: list[bytes] = []
    depth = since = 0
    for token in _TOKEN.finditer(data):
        if token[0] in (b"{", b"["):
            depth += 1
            if depth == max_depth + 1:
                kept += (data[since : token.start()], b"null")
        elif token[0] in (b"}", b"]"):
            if depth == max_depth + 1:
                since = token.end()
            depth -= 1
    return b"".join([*kept, data[since:]])
